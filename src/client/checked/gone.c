/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects that are gone: see gone.h.
 */
#include <stddef.h>

#include "checked/gone.h"
#include "checked/places.h"

#define MOST 256 /* of each kind */

/* In a circle; ->name of 0 is none. */
static struct {
	struct checked_gone last[MOST];
	uint32_t next;
} all[CHECKED_N_KINDS];

static struct checked_gone *find(enum checked_kind kind, uint64_t name)
{
	for (uint32_t i = 0; name && i < MOST; i++)
		if (all[kind].last[i].name == name)
			return &all[kind].last[i];
	return NULL;
}

void checked_gone_add(enum checked_kind kind, uint64_t name, uint32_t made, const void *caller)
{
	checked_gone_back(kind, name);
	all[kind].last[all[kind].next++ % MOST] =
	        (struct checked_gone){ name, made, checked_place(caller) };
}

void checked_gone_back(enum checked_kind kind, uint64_t name)
{
	struct checked_gone *g = find(kind, name);

	if (g)
		g->name = 0;
}

const struct checked_gone *checked_gone_find(enum checked_kind kind, uint64_t name)
{
	return find(kind, name);
}
