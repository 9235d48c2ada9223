/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unique names out of any text: letters, digits, '.', '_' and '-' only, so that they can
 * stand in commands and on them, and a number behind one that is taken already. Used by
 * plan.c. Not thread-safe.
 */
#ifndef FABRIC_NAMES_H
#define FABRIC_NAMES_H

#include "base/hash.h"
#include "fabric/fabric.h"

struct fabric_names {
	struct base_hash taken;
};

void fabric_names_fini(struct fabric_names *names);

/* Makes a name of @want and takes it. 0; -EINVAL: nothing usable in it; -ENOMEM. */
int fabric_names_take(struct fabric_names *names, const char *want, char name[FABRIC_NAME]);

#endif
