/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets of GUIDs: see guids.h. Open addressing, at most half full.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/util.h"
#include "fabric/plan/guids.h"

int fabric_guids_init(struct fabric_guids *set, uint32_t n)
{
	set->mask = (2u << base_log2_up(n + 1)) - 1;
	set->slot = calloc(set->mask + 1ull, sizeof(*set->slot));
	return set->slot ? 0 : -ENOMEM;
}

void fabric_guids_fini(struct fabric_guids *set)
{
	free(set->slot);
	set->slot = NULL;
}

/* The slot of @guid, or the free slot where it belongs. */
static struct fabric_guid_owner *look(const struct fabric_guids *set, uint64_t guid)
{
	uint32_t i = (uint32_t)base_hash_of(&guid, sizeof(guid), 0) & set->mask;

	while (set->slot[i].guid && set->slot[i].guid != guid)
		i = (i + 1) & set->mask;
	return &set->slot[i];
}

int fabric_guids_add(struct fabric_guids *set, uint64_t guid, uint32_t owner,
                     struct fabric_guid_clash *clash)
{
	struct fabric_guid_owner *slot = look(set, guid);

	if (slot->guid) {
		if (clash)
			*clash = (struct fabric_guid_clash){ guid, slot->owner, owner };
		return -EEXIST;
	}
	*slot = (struct fabric_guid_owner){ guid, owner };
	return 0;
}

bool fabric_guids_has(const struct fabric_guids *set, uint64_t guid)
{
	return look(set, guid)->guid != 0;
}

bool fabric_guids_find(const struct fabric_guids *set, uint64_t guid, uint32_t *owner)
{
	const struct fabric_guid_owner *slot = look(set, guid);

	*owner = slot->owner;
	return slot->guid != 0;
}
