/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that gets other pages, or goes: unmapped, mapped anew, moved, discarded, cut off, freed. A
 * card goes on with the pages that a region had when it was registered. So no request may name
 * memory that got others since, and none may be outstanding when its memory goes. A registration
 * cache may keep a region of memory that went, as long as nobody uses it. With the lock of the
 * checker held.
 */
#ifndef CHECKED_MOVES_H
#define CHECKED_MOVES_H

#include "checked/objects.h"
#include "hca/queue/record.h"

/* A change of mappings: how ("unmapped"), the range of memory, and the caller, a return address or
 * NULL. */
struct checked_move {
	const char *how;
	uint64_t from, to;
	const void *caller;
};

/* The pages of the range went. */
void checked_move(const struct checked_move *m);

/* A request, posted at @place, names a range of the region. */
void checked_moves_check(const struct hca_record *r, uint32_t place,
                         const struct checked_object *region, uint64_t from, uint64_t to);

/* Whether the program calls our functions (wrap_memory.c), and not others. */
bool checked_sees_moves(void);

/* The process forks. */
void checked_forks(void);
void checked_fork_is_safe(void);

#endif
