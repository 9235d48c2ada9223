/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each event in each state of what a group asks the SA: the next state, or that it cannot be.
 */
#include <harness.h>

#include "cm/group_state.h"

/* One letter a state, in their order; '-': the event cannot happen. */
static const char letters[] = "idrjlJL-";

static const struct {
	enum cm_group_event event;
	const char *name;
	const char *next; /* a letter for each state before */
} events[] = {
	{ CM_GROUP_SETS, "the Set of a join", "j------" },
	{ CM_GROUP_DELETES, "the port's Delete", "l------" },
	{ CM_GROUP_PROGRAM_SETS, "a program's Set", "J------" },
	{ CM_GROUP_PROGRAM_DELETES, "a program's Delete", "L------" },
	{ CM_GROUP_HAS_NEW_SA, "a new SA", "d------" },
	{ CM_GROUP_REREGISTERS, "the Set of all states", "-r-----" },
	{ CM_GROUP_ANSWERED, "an answer", "--iiiii" },
	{ CM_GROUP_WITHDRAWN, "a withdrawal", "iiiiiii" },
};

CASE(each_event_leads_where_the_table_says)
{
	assert_int_equal(sizeof(events) / sizeof(events[0]), CM_GROUP_N_EVENTS);
	for (unsigned e = 0; e < CM_GROUP_N_EVENTS; e++) {
		char found[CM_GROUP_N_STATES + 1] = "";

		for (unsigned s = 0; s < CM_GROUP_N_STATES; s++)
			found[s] = letters[cm_group_next((enum cm_group_state)s, events[e].event)];
		if (strcmp(found, events[e].next))
			fail_msg("%s: leads from \"%.*s\" to \"%s\", and is to lead to \"%s\"",
			         events[e].name, CM_GROUP_N_STATES, letters, found, events[e].next);
	}
}

CASE(a_request_is_out_exactly_where_it_can_be_answered)
{
	for (unsigned s = 0; s < CM_GROUP_N_STATES; s++) {
		const enum cm_group_state at = (enum cm_group_state)s;
		const bool has_answer = cm_group_next(at, CM_GROUP_ANSWERED) != CM_GROUP_N_STATES;

		if (cm_group_is_asking(at) != has_answer)
			fail_msg("state '%c': a request is out: %d; can be answered: %d",
			         letters[s], cm_group_is_asking(at), has_answer);
		assert_true(!cm_group_asks_for_program(at) || has_answer);
	}
}

/* Nothing is forgotten: from each state the group comes to rest, and from there to each state. */
CASE(each_state_is_reached_and_left)
{
	unsigned reached = 1u << CM_GROUP_IDLE;

	for (unsigned step = 0; step < CM_GROUP_N_STATES; step++)
		for (unsigned s = 0; s < CM_GROUP_N_STATES; s++)
			for (unsigned e = 0; reached >> s & 1 && e < CM_GROUP_N_EVENTS; e++)
				reached |= 1u << cm_group_next((enum cm_group_state)s,
				                               (enum cm_group_event)e);
	assert_int_equal(reached, (1u << (CM_GROUP_N_STATES + 1)) - 1);
	for (unsigned s = 0; s < CM_GROUP_N_STATES; s++)
		assert_int_equal(cm_group_next((enum cm_group_state)s, CM_GROUP_WITHDRAWN),
		                 CM_GROUP_IDLE);
}
