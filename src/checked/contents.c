/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Contents of memory: see contents.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <isa-l.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "checked/contents.h"
#include "checked/report.h"

#define SHORT 1024  /* bytes that are copied */
#define PIECE 4096  /* bytes that have a sum */
#define ROOM  65536 /* bytes that are read at once */

struct checked_contents {
	bool is_copy;
	union {
		unsigned char copy[SHORT];
		uint32_t sum[1];
	};
};

static unsigned char room[ROOM];

static bool read_memory(void *to, uint64_t from, size_t bytes)
{
	const struct iovec here = { to, bytes }, there = { (void *)(uintptr_t)from, bytes };

	if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes)
		return true;
	if (errno == EPERM || errno == ENOSYS)
		checked_say("the contents of buffers: process_vm_readv() is not permitted");
	return false;
}

static bool make_sums(uint32_t *sum, uint64_t at, uint32_t bytes)
{
	for (uint32_t done = 0; done < bytes; done += ROOM) {
		const uint32_t n = bytes - done < ROOM ? bytes - done : ROOM;

		if (!read_memory(room, at + done, n))
			return false;
		for (uint32_t i = 0; i < n; i += PIECE)
			*sum++ = crc32_iscsi(room + i, (int)(n - i < PIECE ? n - i : PIECE), 0);
	}
	return true;
}

struct checked_contents *checked_contents_of(uint64_t at, uint32_t bytes)
{
	const size_t sums = (bytes + PIECE - 1) / PIECE;
	struct checked_contents *c = malloc(sizeof(*c) + sums * sizeof(c->sum[0]));

	if (!c)
		return NULL;
	c->is_copy = bytes <= SHORT;
	if (c->is_copy ? read_memory(c->copy, at, bytes) : make_sums(c->sum, at, bytes))
		return c;
	free(c);
	return NULL;
}

static bool short_changed(const struct checked_contents *c, uint64_t at, uint32_t bytes,
                          uint32_t *from, uint32_t *to)
{
	uint32_t first = 0, end = bytes;

	if (!read_memory(room, at, bytes) || !memcmp(room, c->copy, bytes))
		return false;
	while (room[first] == c->copy[first])
		first++;
	while (room[end - 1] == c->copy[end - 1])
		end--;
	*from = first;
	*to = end;
	return true;
}

bool checked_contents_changed(const struct checked_contents *c, uint64_t at, uint32_t bytes,
                              uint32_t *from, uint32_t *to)
{
	const uint32_t pieces = (bytes + PIECE - 1) / PIECE;
	uint32_t *now, first = 0, end = pieces;
	bool changed = false;

	if (c->is_copy)
		return short_changed(c, at, bytes, from, to);
	now = malloc(pieces * sizeof(*now));
	if (now && make_sums(now, at, bytes) && memcmp(now, c->sum, pieces * sizeof(*now))) {
		changed = true;
		while (now[first] == c->sum[first])
			first++;
		while (now[end - 1] == c->sum[end - 1])
			end--;
		*from = first * PIECE;
		*to = end * PIECE < bytes ? end * PIECE : bytes;
	}
	free(now);
	return changed;
}
