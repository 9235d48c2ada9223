/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The states of adopted memory: see adopt_state.h.
 */
#include "hca/memory/adopt_state.h"

/* 1 + the next state; 0: it cannot happen. */
#define TO(state) (1 + HCA_ADOPT_##state)

static const unsigned char next[HCA_ADOPT_N_STATES][HCA_ADOPT_N_EVENTS] = {
	[HCA_ADOPT_FREE] = { [HCA_ADOPT_MOVED_IN] = TO(SHARED),
	                     [HCA_ADOPT_DETACHED] =
	                             TO(SPENT), /* some had moved in, and then no more */
	                     [HCA_ADOPT_CHILD] = TO(FREE) },
	[HCA_ADOPT_SHARED] = { [HCA_ADOPT_DETACHED] = TO(PARTED),
	                       [HCA_ADOPT_GIVEN_BACK] = TO(FREE),
	                       [HCA_ADOPT_CHILD] = TO(FREE) },
	[HCA_ADOPT_PARTED] = { [HCA_ADOPT_DETACHED] = TO(PARTED),
	                       [HCA_ADOPT_GIVEN_BACK] = TO(SPENT),
	                       [HCA_ADOPT_CHILD] = TO(FREE) },
	[HCA_ADOPT_SPENT] = { [HCA_ADOPT_CHILD] = TO(FREE) },
};

enum hca_adopt_state hca_adopt_next(enum hca_adopt_state state, enum hca_adopt_event event)
{
	const unsigned to = next[state][event];

	return to ? (enum hca_adopt_state)(to - 1) : HCA_ADOPT_N_STATES;
}

enum hca_adopt_file hca_adopt_file_next(enum hca_adopt_file file, enum hca_adopt_file_event event)
{
	if (event == HCA_ADOPT_FILE_CHILD)
		return HCA_ADOPT_UNOFFERED;
	return event == HCA_ADOPT_FILE_OVER || file == HCA_ADOPT_OVER ? HCA_ADOPT_OVER
	                                                              : HCA_ADOPT_OFFERED;
}
