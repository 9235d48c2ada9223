/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host's processors: see processors.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "hosts/processors.h"

#define MOST 8192 /* as many as Linux may be built for */

void hosts_processors_pick(const cpu_set_t *all, size_t bytes, unsigned host, unsigned n,
                           cpu_set_t *own)
{
	unsigned count = (unsigned)CPU_COUNT_S(bytes, all), nth = 0;
	unsigned first = count ? (unsigned)((size_t)host * n % count) : 0;

	CPU_ZERO_S(bytes, own);
	for (unsigned cpu = 0; cpu < bytes * 8; cpu++) {
		if (!CPU_ISSET_S(cpu, bytes, all))
			continue;
		/* how far it is behind the first, around the end */
		if ((nth++ + count - first) % count < n)
			CPU_SET_S(cpu, bytes, own);
	}
}

int hosts_processors_limit(unsigned host, unsigned n, bool was_on_host)
{
	cpu_set_t all[MOST / CPU_SETSIZE], own[MOST / CPU_SETSIZE];

	if (!n)
		return 0;
	if (was_on_host) { /* back to all that we may have: the kernel knows them */
		memset(all, 0xFF, sizeof(all));
		if (sched_setaffinity(0, sizeof(all), all))
			return -errno;
	}
	memset(all, 0, sizeof(all));
	if (sched_getaffinity(0, sizeof(all), all))
		return -errno;
	hosts_processors_pick(all, sizeof(all), host, n, own);
	return sched_setaffinity(0, sizeof(own), own) ? -errno : 0;
}
