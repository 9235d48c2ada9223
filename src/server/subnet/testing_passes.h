/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the unit tests of the subnet manager and the SA: whole passes of what the daemon does in
 * slices. Each test program includes it once.
 */
#ifndef SUBNET_TESTING_PASSES_H
#define SUBNET_TESTING_PASSES_H

#include "fabric/testing.h"
#include "subnet/sa.h"

static UNUSED void sa_swept(struct sa *sa)
{
	uint32_t mlid = 0, budget;

	do
		budget = UINT32_MAX;
	while (!sa_swept_step(sa, &mlid, &budget));
}

static UNUSED void sa_learned(struct sa *sa)
{
	uint32_t mlid = 0, budget;

	do
		budget = UINT32_MAX;
	while (!sa_learned_step(sa, &mlid, &budget));
}

static UNUSED void sm_learn(struct sm *sm)
{
	unsigned at = 0;
	uint32_t budget;

	do
		budget = UINT32_MAX;
	while (!sm_learn_step(sm, &at, &budget));
}

#endif
