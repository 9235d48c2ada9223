/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host's processors: see processors.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

#include "hosts/processors.h"

#define MOST 8192 /* as many as Linux may be built for */

void hosts_processors_pick(const bool *all, unsigned n_all, unsigned host, unsigned n, bool *own)
{
	unsigned count = 0, nth = 0, first;

	for (unsigned i = 0; i < n_all; i++)
		count += all[i];
	first = count ? (unsigned)((size_t)host * n % count) : 0;
	/* how far each is behind the first, around the end */
	for (unsigned i = 0; i < n_all; i++)
		own[i] = all[i] && (nth++ + count - first) % count < n;
}

int hosts_processors_limit(unsigned host, unsigned n, bool was_on_host)
{
	cpu_set_t set[MOST / CPU_SETSIZE];
	bool all[MOST], own[MOST];

	if (!n)
		return 0;
	if (was_on_host) { /* back to all that we may have: the kernel knows them */
		memset(set, 0xFF, sizeof(set));
		if (sched_setaffinity(0, sizeof(set), set))
			return -errno;
	}
	memset(set, 0, sizeof(set));
	if (sched_getaffinity(0, sizeof(set), set))
		return -errno;
	for (unsigned i = 0; i < MOST; i++)
		all[i] = CPU_ISSET_S(i, sizeof(set), set);
	hosts_processors_pick(all, MOST, host, n, own);
	CPU_ZERO_S(sizeof(set), set);
	for (unsigned i = 0; i < MOST; i++)
		if (own[i])
			CPU_SET_S(i, sizeof(set), set);
	return sched_setaffinity(0, sizeof(set), set) ? -errno : 0;
}
