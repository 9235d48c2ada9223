/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Builds a fabric by its plan, with its shared memory, and frees it. Not thread-safe.
 */
#ifndef FABRIC_BUILD_H
#define FABRIC_BUILD_H

#include "fabric/plan/plan.h"

/*
 * Makes the fabric that @plan, a finished one (plan.h), describes, and its shared memory. Copies
 * what it needs of @plan. Returns 0 and *@f, to be freed by fabric_free(); or -errno.
 */
int fabric_new(struct fabric **f, const struct fabric_plan *plan,
               const struct shm_settings *settings);
void fabric_free(struct fabric *f);

#endif
