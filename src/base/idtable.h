/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A table of pointers by small number: numbers are handed out lowest first or in
 * rotation, and given back. The handle tables of the manager and of the verbs
 * library (memory regions) are made of it. Not thread-safe: the caller locks.
 */
#ifndef BASE_IDTABLE_H
#define BASE_IDTABLE_H

#include <stdint.h>

struct base_idtable {
	void **slot;
	uint32_t size;  /* allocated */
	uint32_t limit; /* numbers are below this */
	uint32_t next;  /* where the search for a free number starts */
	uint32_t used;
};

/* Numbers in [0, @limit). No memory is taken until the first one is. */
void base_idtable_init(struct base_idtable *t, uint32_t limit);
void base_idtable_fini(struct base_idtable *t);

/*
 * Stores @p under a free number, searching on from the last one given so that a
 * number rests before it is used again. Returns 0, -ENOSPC, -ENOMEM, or -EINVAL: @p
 * is NULL, which means a free number.
 */
int base_idtable_add(struct base_idtable *t, void *p, uint32_t *id);

/* Takes the number back. The pointer that was there, or NULL. */
void *base_idtable_remove(struct base_idtable *t, uint32_t id);

static inline void *base_idtable_get(const struct base_idtable *t, uint32_t id)
{
	return id < t->size ? t->slot[id] : 0;
}

#endif
