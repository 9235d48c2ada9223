/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Extents of shared memory: see extent.h.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "shm/extent.h"

void shm_extents_init(struct shm_extents *e, int fd, uint64_t unit, uint64_t from, uint64_t bytes)
{
	memset(e, 0, sizeof(*e));
	e->fd = fd;
	e->unit = unit;
	e->next = from;
	e->end = from + bytes;
}

void shm_extents_fini(struct shm_extents *e)
{
	for (unsigned i = 0; i < SHM_EXTENT_ORDERS; i++)
		free(e->free[i].off);
	memset(e, 0, sizeof(*e));
}

static unsigned order_of(const struct shm_extents *e, uint64_t bytes)
{
	return base_log2_up((bytes + e->unit - 1) / e->unit);
}

uint64_t shm_extent_get(struct shm_extents *e, uint64_t bytes)
{
	unsigned order = order_of(e, bytes);
	uint64_t size = e->unit << order, off;
	struct shm_extent_list *l;

	if (order >= SHM_EXTENT_ORDERS)
		return 0;
	l = &e->free[order];
	if (l->n) {
		off = l->off[--l->n];
	} else {
		if (e->end - e->next < size)
			return 0;
		off = e->next;
		e->next += size;
	}
	e->in_use += size;
	return off;
}

void shm_extent_put(struct shm_extents *e, uint64_t off, uint64_t bytes)
{
	unsigned order = order_of(e, bytes);
	uint64_t size = e->unit << order;
	struct shm_extent_list *l = &e->free[order];

	if (e->fd >= 0 &&
	    fallocate(e->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)size))
		base_log("cannot free %llu bytes of shared memory", (unsigned long long)size);
	e->in_use -= size;
	if (l->n == l->room) {
		uint32_t room = l->room ? l->room * 2 : 16;
		uint64_t *p = realloc(l->off, room * sizeof(*p));

		if (!p)
			return; /* address space is lost, memory is not */
		l->off = p;
		l->room = room;
	}
	l->off[l->n++] = off;
}
