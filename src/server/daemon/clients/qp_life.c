/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of a queue pair: see qp_life.h.
 */
#include "daemon/clients/qp_life.h"

/* 1 + the next state; 0: it cannot happen. */
#define TO(state) (1 + DAEMON_QP_##state)

static const unsigned char next[DAEMON_QP_N_STATES][DAEMON_QP_N_EVENTS] = {
	[DAEMON_QP_PREPARED] = { [DAEMON_QP_IS_RESERVED] = TO(RESERVED),
	                         [DAEMON_QP_IS_CREATED] = TO(LIVE),
	                         [DAEMON_QP_IS_FREED] = TO(GONE) },
	[DAEMON_QP_RESERVED] = { [DAEMON_QP_IS_TAKEN] = TO(PREPARED) },
	[DAEMON_QP_LIVE] = { [DAEMON_QP_IS_HANDED_OVER] = TO(LIVE),
	                     [DAEMON_QP_IS_DESTROYED] = TO(ENDING) },
	[DAEMON_QP_ENDING] = { [DAEMON_QP_IS_FREED] = TO(GONE) },
};

enum daemon_qp_state daemon_qp_next(enum daemon_qp_state state, enum daemon_qp_event event)
{
	const unsigned to = next[state][event];

	return to ? (enum daemon_qp_state)(to - 1) : DAEMON_QP_N_STATES;
}
