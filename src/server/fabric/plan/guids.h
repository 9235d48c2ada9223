/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A set of GUIDs, each with its owner (a number). Its size is fixed when it is made. plan.c uses
 * it to choose GUIDs and to find duplicates; a subnet manager's state (subnet/state.h) likewise.
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

/* Makes a set for up to @n GUIDs. Returns 0 or -ENOMEM. */
int fabric_guids_init(struct fabric_guids *set, uint32_t n);
void fabric_guids_fini(struct fabric_guids *set);

/* Adds @guid, which is not 0. Returns 0; -EEXIST: it is there already, see @clash (may be NULL). */
int fabric_guids_add(struct fabric_guids *set, uint64_t guid, uint32_t owner,
                     struct fabric_guid_clash *clash);
bool fabric_guids_has(const struct fabric_guids *set, uint64_t guid);

/* Whether it is there; then with its owner. */
bool fabric_guids_find(const struct fabric_guids *set, uint64_t guid, uint32_t *owner);

#endif
