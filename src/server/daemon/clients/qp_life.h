/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of a queue pair in the daemon, as a state machine: a table of pure values, which qp.c
 * and reserve.c follow. Its state of section 10.3.1 of the InfiniBand specification, Reset to
 * Error, is another one. That is in the record in shared memory, and matters while the queue pair
 * is LIVE.
 */
#ifndef DAEMON_QP_LIFE_H
#define DAEMON_QP_LIFE_H

enum daemon_qp_state {
	DAEMON_QP_PREPARED, /* it has a number and memory, and no holder */
	DAEMON_QP_RESERVED, /* likewise; a process may make a queue pair of it (reserve.h) */
	DAEMON_QP_LIVE,     /* from Create Queue Pair to Destroy Queue Pair: it has a holder */
	DAEMON_QP_ENDING,   /* destroyed: nobody finds it, and a chore frees it in slices */
	DAEMON_QP_GONE,     /* its number and memory are free */
	DAEMON_QP_N_STATES
};

enum daemon_qp_event {
	DAEMON_QP_IS_RESERVED,
	DAEMON_QP_IS_TAKEN, /* from what lies reserved */
	DAEMON_QP_IS_CREATED,
	DAEMON_QP_IS_HANDED_OVER, /* an XRC target gets another owner */
	DAEMON_QP_IS_DESTROYED,
	DAEMON_QP_IS_FREED,
	DAEMON_QP_N_EVENTS
};

/* The state after the event; DAEMON_QP_N_STATES: it cannot happen in that state. */
enum daemon_qp_state daemon_qp_next(enum daemon_qp_state state, enum daemon_qp_event event);

#endif
