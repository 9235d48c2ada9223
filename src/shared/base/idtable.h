/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A table of pointers by small numbers, which it allocates in rotation. The handle tables of the
 * daemon and of the verbs library (memory regions) use it. Not thread-safe: the caller locks.
 */
#ifndef BASE_IDTABLE_H
#define BASE_IDTABLE_H

#include <stdint.h>

struct base_idtable {
	void **slot;
	uint32_t size;  /* slots allocated */
	uint32_t limit; /* numbers are below this */
	uint32_t first; /* and not below this */
	uint32_t next;  /* where the search for a free number starts */
	uint32_t used;
};

/* An empty table for numbers in [0, @limit). It allocates memory with the first number. */
void base_idtable_init(struct base_idtable *t, uint32_t limit);
/* Likewise for numbers in [1, @limit): 0 stands for none. */
void base_idtable_init_from_1(struct base_idtable *t, uint32_t limit);
void base_idtable_fini(struct base_idtable *t);

/*
 * Stores @p under a free number, *@id. The search starts after the number allocated last, so that a
 * freed number is not used again at once. Returns 0; -ENOSPC: all numbers are in use; -ENOMEM;
 * -EINVAL: @p is NULL, which marks a free number.
 */
int base_idtable_add(struct base_idtable *t, void *p, uint32_t *id);

/* Stores @p under the number @id. Likewise; -ENOSPC also: it is in use, or no number of the
 * table. */
int base_idtable_add_at(struct base_idtable *t, void *p, uint32_t id);

/* Frees the number. Returns the pointer that was there, or NULL. */
void *base_idtable_remove(struct base_idtable *t, uint32_t id);

/* The pointer under @id; NULL: the number is free. */
static inline void *base_idtable_get(const struct base_idtable *t, uint32_t id)
{
	return id < t->size ? t->slot[id] : 0;
}

#endif
