/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hands out extents of a part of the shared memory: sizes are powers of two of at
 * least a unit, and an extent that comes back serves later requests of its own
 * size only. That makes both operations constant in time. The manager's; not
 * thread-safe.
 */
#ifndef SHM_EXTENT_H
#define SHM_EXTENT_H

#include <stdint.h>

#define SHM_EXTENT_ORDERS 28

struct shm_extents {
	int fd;        /* whose pages go back to the system with an extent; -1: they stay */
	uint64_t unit; /* smallest size */
	uint64_t next, end;
	uint64_t in_use;
	struct shm_extent_list {
		uint64_t *off;
		uint32_t n, room;
	} free[SHM_EXTENT_ORDERS];
};

void shm_extents_init(struct shm_extents *e, int fd, uint64_t unit, uint64_t from, uint64_t bytes);
void shm_extents_fini(struct shm_extents *e);

/* An extent of at least @bytes (all zero, if pages go back); its offset, or 0: nothing left. */
uint64_t shm_extent_get(struct shm_extents *e, uint64_t bytes);

/* Gives it back; @bytes as asked for. */
void shm_extent_put(struct shm_extents *e, uint64_t off, uint64_t bytes);

#endif
