/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The requests of a group to the SA, as a state machine: a table of pure values, which group.c and
 * program.c follow. A group has one request out at a time, or none.
 *
 * Set and Delete are SubnAdmSet(MCMemberRecord) and SubnAdmDelete(MCMemberRecord)
 * (section 15.2.5.17 of the InfiniBand specification). A port registers again for a subnet
 * administrator that is new (ClientReregister of PortInfo, section 14.2.5.6).
 */
#ifndef CM_GROUP_STATE_H
#define CM_GROUP_STATE_H

#include <stdbool.h>

enum cm_group_state {
	CM_GROUP_IDLE,            /* no request is out */
	CM_GROUP_REREGISTER_DUE,  /* likewise, and the SA has to be told of all states */
	CM_GROUP_REREGISTERING,   /* by a Set of all states */
	CM_GROUP_JOINING,         /* by the Set of a join */
	CM_GROUP_LEAVING,         /* by a Delete of the states that nobody holds */
	CM_GROUP_PROGRAM_JOINING, /* by the first of programs' requests, a Set */
	CM_GROUP_PROGRAM_LEAVING, /* likewise, a Delete */
	CM_GROUP_N_STATES
};

enum cm_group_event {
	CM_GROUP_SETS,         /* a join's Set is sent */
	CM_GROUP_DELETES,      /* the port's Delete is sent */
	CM_GROUP_PROGRAM_SETS, /* a program's request is sent */
	CM_GROUP_PROGRAM_DELETES,
	CM_GROUP_HAS_NEW_SA,  /* it does not know the port's states */
	CM_GROUP_REREGISTERS, /* the Set of all states is sent */
	CM_GROUP_ANSWERED,    /* by the SA, or its time is over */
	CM_GROUP_WITHDRAWN,   /* the request is not wanted any more */
	CM_GROUP_N_EVENTS
};

/* The state after the event; CM_GROUP_N_STATES: it cannot happen in that state. */
enum cm_group_state cm_group_next(enum cm_group_state state, enum cm_group_event event);

/* Whether a request is out. */
bool cm_group_is_asking(enum cm_group_state state);

/* Whether that is a program's. */
bool cm_group_asks_for_program(enum cm_group_state state);

#endif
