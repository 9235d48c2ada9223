/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of channel.c: numbers, and what is left when there is none.
 */
#include <harness.h>

#include "daemon/clients/channel.h"

#define MOST 40

/* The descriptor that the next file gets. */
static int next_descriptor(void)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

CASE(a_channel_too_many_leaves_nothing_behind)
{
	struct daemon_channels *all = calloc(1, sizeof(*all));
	struct daemon_endings endings = { 0 };
	struct daemon_holder holder = { 0 };
	struct daemon_channel *ch[MOST + 1];
	unsigned n = 0;
	int ret, before;

	assert_non_null(all);
	daemon_channels_init(all, &endings);
	all->ids.limit = MOST; /* of numbers */
	do {
		before = next_descriptor();
		ret = daemon_channel_new(all, &holder, &ch[n]);
	} while (!ret && ++n <= MOST);
	assert_int_equal(ret, -ENOSPC);
	assert_in_range(n, 1, MOST);
	assert_int_equal(next_descriptor(), before);
	for (unsigned i = 0; i < n; i++)
		assert_ptr_equal(daemon_channel_find(all, ch[i]->id), ch[i]);
	while (n)
		daemon_channel_free(all, ch[--n]);
	assert_true(LIST_EMPTY(&holder.channels));
	base_idtable_fini(&all->ids);
	free(all);
}
