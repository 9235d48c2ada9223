/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A set of GUIDs that knows whose they are, of a size that is known before. Used by
 * plan.c to give GUIDs and to find two alike.
 */
#ifndef FABRIC_GUIDS_H
#define FABRIC_GUIDS_H

#include <stdbool.h>
#include <stdint.h>

struct fabric_guids {
	struct fabric_guid_owner {
		uint64_t guid; /* 0: free */
		uint32_t owner;
	} * slot;
	uint32_t mask;
};

struct fabric_guid_clash {
	uint64_t guid;
	uint32_t first, second; /* owners */
};

/* For up to @n GUIDs. 0 or -ENOMEM. */
int fabric_guids_init(struct fabric_guids *set, uint32_t n);
void fabric_guids_fini(struct fabric_guids *set);

/* 0, or -EEXIST and, unless it is NULL, @clash. @guid is not 0. */
int fabric_guids_add(struct fabric_guids *set, uint64_t guid, uint32_t owner,
                     struct fabric_guid_clash *clash);
bool fabric_guids_has(const struct fabric_guids *set, uint64_t guid);

#endif
