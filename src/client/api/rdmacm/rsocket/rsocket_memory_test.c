/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of rsockets' buffers: the blocks that are used again, and those that are not. The library
 * shows none of it, so this has a copy of its own.
 */
#include <harness.h>

#include "api/rdmacm/rsocket/rsocket_memory.c"

#define BYTES 5000 /* in whole pages 8192 */
#define MOST  20

/* The identifier of the segment that lies at @p; -1: none does. */
static long segment_at(const void *p)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to, inode;
	char line[512], name[64];
	long found = -1;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %*s %*s %lu %63s", &from, &to, &inode, name) == 4 &&
		    (uintptr_t)p >= from && (uintptr_t)p < to && !strncmp(name, "/SYSV", 5))
			found = (long)inode;
	fclose(f);
	return found;
}

static void take_all(uint8_t *block[MOST])
{
	for (unsigned i = 0; i < MOST; i++) {
		block[i] = rsocket_memory_get(BYTES);
		assert_non_null(block[i]);
		assert_true(segment_at(block[i]) >= 0);
		for (unsigned k = 0; k < 8192; k++)
			assert_int_equal(block[i][k], 0);
		memset(block[i], 'x', 8192);
	}
}

static void put_all(uint8_t *block[MOST])
{
	for (unsigned i = 0; i < MOST; i++)
		rsocket_memory_put(block[i], true);
}

CASE(what_was_used_is_zero_when_it_is_used_again)
{
	uint8_t *block[MOST];
	long last;

	take_all(block);
	last = segment_at(block[MOST - 1]);
	put_all(block);
	assert_int_equal(segment_at(block[MOST - 1]), last); /* the last one is kept */
	take_all(block);
	put_all(block);
}

CASE(what_a_peer_may_write_to_is_nobodys)
{
	uint8_t *block[MOST], *again[MOST];
	unsigned lost = 0;
	long segment;

	take_all(block);
	while (segment_at(block[lost]) != segment_at(block[MOST - 1]) || lost == MOST - 1)
		lost++; /* another one of that segment */
	assert_true(lost < MOST - 1);
	segment = segment_at(block[lost]);
	for (unsigned i = 0; i < MOST - 1; i++)
		rsocket_memory_put(block[i], i != lost);
	take_all(again);
	for (unsigned i = 0; i < MOST; i++)
		assert_ptr_not_equal(again[i], block[lost]);
	assert_int_equal(block[lost][0], 'x');
	for (unsigned i = 0; i < MOST; i++)
		rsocket_memory_put(again[i], true);
	assert_int_equal(segment_at(block[lost]), segment);
	rsocket_memory_put(block[MOST - 1], true); /* the last one that is used there */
	assert_int_not_equal(segment_at(block[lost]), segment);
}

CASE(a_child_has_segments_of_its_own)
{
	uint8_t *block[MOST], *mine;
	pid_t child;
	int status;

	take_all(block);
	rsocket_memory_put(block[3], true);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		mine = rsocket_memory_get(BYTES);
		for (unsigned i = 0; i < MOST; i++)
			if (segment_at(mine) == segment_at(block[i]))
				_exit(1);
		for (unsigned i = 0; i < MOST; i++)
			if (i != 3)
				rsocket_memory_put(block[i], true);
		_exit(segment_at(block[0]) < 0 ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(block[0][0], 'x');
	block[3] = rsocket_memory_get(BYTES);
	put_all(block);
}
