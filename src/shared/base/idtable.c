/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of pointers by number: see idtable.h. Free slots hold NULL.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/idtable.h"

#define FIRST_SIZE 16

void base_idtable_init(struct base_idtable *t, uint32_t limit)
{
	*t = (struct base_idtable){ .limit = limit };
}

void base_idtable_init_from_1(struct base_idtable *t, uint32_t limit)
{
	*t = (struct base_idtable){ .limit = limit, .first = 1 };
}

void base_idtable_fini(struct base_idtable *t)
{
	free(t->slot);
	*t = (struct base_idtable){ .limit = t->limit, .first = t->first };
}

static int grow(struct base_idtable *t)
{
	uint32_t size = t->size ? t->size * 2 : FIRST_SIZE;
	void **slot;

	if (size > t->limit)
		size = t->limit;
	if (size <= t->size)
		return -ENOSPC;
	slot = realloc(t->slot, size * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	memset(slot + t->size, 0, (size - t->size) * sizeof(*slot));
	t->next = t->size;
	t->slot = slot;
	t->size = size;
	return 0;
}

int base_idtable_add(struct base_idtable *t, void *p, uint32_t *id)
{
	int ret;

	if (!p)
		return -EINVAL;
	if (t->used + t->first >= t->size) {
		ret = grow(t);
		if (ret)
			return ret;
	}
	while (t->next % t->size < t->first || t->slot[t->next % t->size])
		t->next++;
	*id = t->next % t->size;
	t->slot[*id] = p;
	t->next = *id + 1;
	t->used++;
	return 0;
}

int base_idtable_add_at(struct base_idtable *t, void *p, uint32_t id)
{
	int ret;

	if (!p)
		return -EINVAL;
	if (id < t->first || id >= t->limit || base_idtable_get(t, id))
		return -ENOSPC;
	while (id >= t->size) {
		uint32_t next = t->next;

		ret = grow(t);
		if (ret)
			return ret;
		t->next = next;
	}
	t->slot[id] = p;
	t->used++;
	return 0;
}

void *base_idtable_remove(struct base_idtable *t, uint32_t id)
{
	void *p = base_idtable_get(t, id);

	if (p) {
		t->slot[id] = NULL;
		t->used--;
	}
	return p;
}
