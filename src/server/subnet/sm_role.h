/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decides which of several subnet managers is the master: the state machine of the InfiniBand
 * specification, volume 1, section 14.4.1. The embedded SM finds the others by the IsSM bit of
 * their ports, polls them by SubnGet(SMInfo), and hands the subnet over by SubnSet(SMInfo). The
 * higher priority wins; of equal ones the lower GUID.
 *
 * A master polls the others at intervals and a standby polls its master, as a killed SM sends
 * nothing. An SM that is alone polls nobody.
 *
 * The caller passes in MADs and the time: milliseconds of a monotonic clock. Only the daemon uses
 * this; not thread-safe; nothing blocks.
 */
#ifndef SUBNET_SM_ROLE_H
#define SUBNET_SM_ROLE_H

#include "fabric/agents/mads.h"
#include "wire/sm_attr.h"

#define SM_KEY 1 /* in SMInfo; OpenSM's default, which it requires */

struct sm_role;

struct sm_role_ops {
	/* Sends a MAD from the SM's port. Its response is delivered after this has returned. */
	void (*send)(void *arg, const struct fabric_mad *mad);
	/* We are the master: sweep the subnet and serve it. Called again if another master has
	 * handed its part over to us. */
	void (*master)(void *arg);
	/* We are no longer the master. */
	void (*resign)(void *arg);
	/* Asks the daemon to call sm_role_run_due() after @ms ms; the earliest request counts. */
	void (*wake)(void *arg, unsigned ms);
	uint32_t tid_high; /* the high half of the transaction IDs of requests */
	void *arg;
};

/*
 * Makes an SM that is not active yet. @home: its port, an HCA port. Returns 0 and *@role, which
 * sm_role_free() frees; or -ENOMEM.
 */
int sm_role_new(struct sm_role **role, struct fabric *f, struct fabric_port *home,
                const struct sm_role_ops *ops);
void sm_role_free(struct sm_role *role);

/* Starts to look for others. If there are none, it calls ops.master() before it returns. */
void sm_role_start(struct sm_role *role, uint64_t now_ms);

/* Stops without a message, as if killed. Calls ops.resign() if it was the master. */
void sm_role_stop(struct sm_role *role);

enum sm_state sm_role_state(const struct sm_role *role);
struct fabric_port *sm_role_home(const struct sm_role *role);

/*
 * The subnet managers that it knows, from 0: itself, then those that have responded. False: there
 * are no more.
 */
bool sm_role_known(const struct sm_role *role, unsigned i, struct fabric_port **at,
                   struct wire_sm_info *info);

/* Moves the SM to another HCA port. */
void sm_role_move(struct sm_role *role, struct fabric_port *home);

/* To be called when another SM may have come, gone or changed: polls all of them. */
void sm_role_look(struct sm_role *role, uint64_t now_ms);

/*
 * Processes a MAD with SMInfo that arrived at the SM's port. False: it is not for us. *@reply: the
 * caller sends @out back.
 */
bool sm_role_input(struct sm_role *role, const struct fabric_mad *in, uint64_t now_ms,
                   struct fabric_mad *out, bool *reply);

/* Does what is due at @now_ms: polls, or takes over from a master that does not respond. */
void sm_role_run_due(struct sm_role *role, uint64_t now_ms);

#endif
