/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Allocates extents of a part of the shared memory. Memory that was freed serves requests of any
 * size: an extent that is too large is split, and free neighbours are merged at once. So as long as
 * a free range is large enough, a request succeeds.
 *
 * This is a two-level segregated fit: free ranges are listed by size, in SHM_EXTENT_SPLITS lists
 * for each power of two, and bitmaps say which lists have any. Sizes are rounded up to the smallest
 * size of a list, by 1/16 at most, so that every range of that list fits. Both operations take
 * constant time. The records of ranges stand in the daemon's own memory, where no client can spoil
 * them.
 *
 * Only the daemon uses this; not thread-safe.
 */
#ifndef SHM_EXTENT_H
#define SHM_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

#define SHM_EXTENT_ORDERS 32
#define SHM_EXTENT_SPLITS 16

struct shm_extents {
	uint64_t unit; /* the smallest size, bytes */
	uint64_t from;
	uint32_t n_units;
	uint32_t walk;                  /* where shm_extent_walk() is: the first unit of a range */
	uint64_t in_use;                /* bytes */
	struct shm_extent_range *range; /* by first unit; NULL before the first request */
	uint32_t orders;                /* bit o: splits[o] is not zero */
	uint16_t splits[SHM_EXTENT_ORDERS];
	uint32_t first[SHM_EXTENT_ORDERS][SHM_EXTENT_SPLITS]; /* of the list; or none */
};

/* Manages [@from, @from + @bytes), offsets in bytes; @from is not 0. It allocates memory with the
 * first request. */
void shm_extents_init(struct shm_extents *e, uint64_t unit, uint64_t from, uint64_t bytes);
void shm_extents_fini(struct shm_extents *e);

/* Allocates at least @bytes. Returns the offset; 0: no free range is large enough. */
uint64_t shm_extent_get(struct shm_extents *e, uint64_t bytes);

/* Frees the extent at @off, which shm_extent_get() returned. */
void shm_extent_put(struct shm_extents *e, uint64_t off);

/* Makes two extents of the one at @off, the first of @bytes, a multiple of the unit. */
void shm_extent_split(struct shm_extents *e, uint64_t off, uint64_t bytes);

/* A range of it, in use or free. */
struct shm_extent_range_at {
	uint64_t from, to; /* offsets in bytes */
	bool free;
};

/*
 * A walk over all ranges in order, while extents come and go. The range where the walk is; false:
 * it has come to the end. If a range has meanwhile become part of the range before it, the walk
 * passes over both as one.
 */
void shm_extent_walk_begin(struct shm_extents *e);
bool shm_extent_walk(const struct shm_extents *e, struct shm_extent_range_at *range);
void shm_extent_walk_on(struct shm_extents *e);

/* The bytes of the extent at @off: those that were asked for, rounded up. */
uint64_t shm_extent_bytes(const struct shm_extents *e, uint64_t off);

#endif
