/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unique names made from any text. They consist of letters, digits, '.', '_' and '-' only, so that
 * they can be used in commands; a name that is in use already gets a number. Used by plan.c. Not
 * thread-safe.
 */
#ifndef FABRIC_NAMES_H
#define FABRIC_NAMES_H

#include "base/hash.h"
#include "fabric/model/fabric.h"

struct fabric_names {
	struct base_hash reserved;
};

void fabric_names_fini(struct fabric_names *names);

/*
 * Makes a name from @want and reserves it. Returns 0; -EINVAL: @want has no usable character;
 * -ENOMEM.
 */
int fabric_names_reserve(struct fabric_names *names, const char *want, char name[FABRIC_NAME]);

#endif
