/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each event in each state of a queue pair's life in the daemon.
 */
#include <harness.h>

#include "daemon/clients/qp_life.h"

/* One letter a state, in their order; '-': the event cannot happen. */
static const char letters[] = "prleg-";

static const struct {
	enum daemon_qp_event event;
	const char *name;
	const char *next; /* a letter for each state before */
} events[] = {
	{ DAEMON_QP_IS_RESERVED, "is reserved", "r----" },
	{ DAEMON_QP_IS_TAKEN, "is taken", "-p---" },
	{ DAEMON_QP_IS_CREATED, "is created", "l----" },
	{ DAEMON_QP_IS_HANDED_OVER, "is handed over", "--l--" },
	{ DAEMON_QP_IS_DESTROYED, "is destroyed", "--e--" },
	{ DAEMON_QP_IS_FREED, "is freed", "g--g-" },
};

CASE(each_event_leads_where_the_table_says)
{
	assert_int_equal(sizeof(events) / sizeof(events[0]), DAEMON_QP_N_EVENTS);
	for (unsigned e = 0; e < DAEMON_QP_N_EVENTS; e++) {
		char found[DAEMON_QP_N_STATES + 1] = "";

		for (unsigned s = 0; s < DAEMON_QP_N_STATES; s++)
			found[s] =
			        letters[daemon_qp_next((enum daemon_qp_state)s, events[e].event)];
		if (strcmp(found, events[e].next))
			fail_msg("%s: leads from \"%.*s\" to \"%s\", and is to lead to \"%s\"",
			         events[e].name, DAEMON_QP_N_STATES, letters, found,
			         events[e].next);
	}
}

/* Memory of a queue pair that was created goes by the chore alone, and never twice. */
CASE(each_life_ends_once)
{
	for (unsigned e = 0; e < DAEMON_QP_N_EVENTS; e++) {
		const enum daemon_qp_state after =
		        daemon_qp_next(DAEMON_QP_LIVE, (enum daemon_qp_event)e);

		assert_int_equal(daemon_qp_next(DAEMON_QP_GONE, (enum daemon_qp_event)e),
		                 DAEMON_QP_N_STATES);
		assert_int_not_equal(after, DAEMON_QP_GONE);
		assert_int_not_equal(after, DAEMON_QP_PREPARED);
	}
}
