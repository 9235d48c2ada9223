/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The requests of a group to the SA: see group_state.h.
 */
#include "cm/group_state.h"

/* 1 + the next state; 0: it cannot happen. */
#define TO(state) (1 + CM_GROUP_##state)

/* A request that is out has an answer, or is withdrawn; nothing else is sent meanwhile. */
#define ENDS [CM_GROUP_ANSWERED] = TO(IDLE), [CM_GROUP_WITHDRAWN] = TO(IDLE)

static const unsigned char next[CM_GROUP_N_STATES][CM_GROUP_N_EVENTS] = {
	[CM_GROUP_IDLE] = { [CM_GROUP_SETS] = TO(JOINING),
	                    [CM_GROUP_DELETES] = TO(LEAVING),
	                    [CM_GROUP_PROGRAM_SETS] = TO(PROGRAM_JOINING),
	                    [CM_GROUP_PROGRAM_DELETES] = TO(PROGRAM_LEAVING),
	                    [CM_GROUP_HAS_NEW_SA] = TO(REREGISTER_DUE),
	                    [CM_GROUP_WITHDRAWN] = TO(IDLE) },
	[CM_GROUP_REREGISTER_DUE] = { [CM_GROUP_REREGISTERS] = TO(REREGISTERING),
	                              [CM_GROUP_WITHDRAWN] = TO(IDLE) },
	[CM_GROUP_REREGISTERING] = { ENDS },
	[CM_GROUP_JOINING] = { ENDS },
	[CM_GROUP_LEAVING] = { ENDS },
	[CM_GROUP_PROGRAM_JOINING] = { ENDS },
	[CM_GROUP_PROGRAM_LEAVING] = { ENDS },
};

enum cm_group_state cm_group_next(enum cm_group_state state, enum cm_group_event event)
{
	const unsigned to = next[state][event];

	return to ? (enum cm_group_state)(to - 1) : CM_GROUP_N_STATES;
}

bool cm_group_is_asking(enum cm_group_state state)
{
	return state != CM_GROUP_IDLE && state != CM_GROUP_REREGISTER_DUE;
}

bool cm_group_asks_for_program(enum cm_group_state state)
{
	return state == CM_GROUP_PROGRAM_JOINING || state == CM_GROUP_PROGRAM_LEAVING;
}
