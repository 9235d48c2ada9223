/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which of several subnet managers is the master: the state machine of the InfiniBand
 * specification, volume 1, section 14.4.1. The embedded SM finds the others by the IsSM bit of
 * their ports, asks them by SubnGet(SMInfo), and hands the subnet over, or takes it, by
 * SubnSet(SMInfo). The one with the higher priority wins; of equals, the one with the lower GUID.
 *
 * A master asks the others from time to time, a standby asks its master: an SM that is killed
 * says nothing. Alone, nobody asks anybody.
 *
 * SMInfo MADs in and out; time is passed in, milliseconds of a clock that does not jump. The
 * manager's; not thread-safe.
 */
#ifndef SUBNET_SM_ROLE_H
#define SUBNET_SM_ROLE_H

#include "fabric/mads.h"
#include "wire/sm_attr.h"

#define SM_KEY 1 /* that subnet managers show each other; OpenSM's default, which insists on it */

struct sm_role;

struct sm_role_ops {
	/* Sends a MAD from the SM's port. Its answer does not come before this returns. */
	void (*send)(void *arg, const struct fabric_mad *mad);
	/* The subnet is ours: sweep it, serve it. Again, if it is ours already and another has
	 * handed its part over. */
	void (*master)(void *arg);
	/* It is not any more. */
	void (*resign)(void *arg);
	/* Asks to call sm_role_run_due() after @ms milliseconds; the soonest of several counts. */
	void (*wake)(void *arg, unsigned ms);
	uint32_t tid_high; /* of the transaction IDs of its requests */
	void *arg;
};

/* Not active yet. @home: the HCA port that it answers at. 0 or -ENOMEM. */
int sm_role_new(struct sm_role **role, struct fabric *f, struct fabric_port *home,
                const struct sm_role_ops *ops);
void sm_role_free(struct sm_role *role);

/* Starts to look for others; becomes master in here if there is none. */
void sm_role_start(struct sm_role *role, uint64_t now_ms);

/* Ends, as if killed: says nothing to anybody. ops.resign is called if it was master. */
void sm_role_stop(struct sm_role *role);

enum sm_state sm_role_state(const struct sm_role *role);
struct fabric_port *sm_role_home(const struct sm_role *role);

/*
 * The subnet managers that it knows of, from 0: itself, then those that have answered it. False:
 * no more.
 */
bool sm_role_known(const struct sm_role *role, unsigned i, struct fabric_port **at,
                   struct wire_sm_info *info);

/* From now on it answers at another HCA port. */
void sm_role_move(struct sm_role *role, struct fabric_port *home);

/* Another SM may have come, gone, or changed its mind: asks all that there are. */
void sm_role_look(struct sm_role *role, uint64_t now_ms);

/*
 * A MAD with SMInfo that has come to its port. False: it is not for us. *@reply: whether @out,
 * its data, is to go back.
 */
bool sm_role_input(struct sm_role *role, const struct fabric_mad *in, uint64_t now_ms,
                   struct fabric_mad *out, bool *reply);

void sm_role_run_due(struct sm_role *role, uint64_t now_ms);

#endif
