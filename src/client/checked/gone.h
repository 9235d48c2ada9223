/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects that the program had and destroyed. A request may still name the key or the address: the
 * last ones of each kind. With the lock of the checker held.
 */
#ifndef CHECKED_GONE_H
#define CHECKED_GONE_H

#include "checked/watcher.h"

struct checked_gone {
	uint64_t name;      /* the local key of a region, the address of another object */
	uint32_t made, end; /* places */
};

/* It is about to be gone: it was made at that place. @caller: as of checked_place(). */
void checked_gone_add(enum checked_kind kind, uint64_t name, uint32_t made, const void *caller);

/* There is one of this name now. */
void checked_gone_back(enum checked_kind kind, uint64_t name);

/* NULL: none of the last ones had this name. */
const struct checked_gone *checked_gone_find(enum checked_kind kind, uint64_t name);

#endif
