/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of the embedded subnet manager: it starts, becomes the master or stands by for another
 * one (subnet/sm_role.h), takes the subnet over, gives it up, moves to another port when a
 * program's comes to its own, and is stopped. Subnet manager and administrator exist only while it
 * is the master.
 *
 * It takes the subnet over by a sweep, in slices, too. The subnet administrator begins when that is
 * done; until then requests to it are not answered, and are repeated. Then all ports are asked to
 * register. Until the last one has been asked, only ports are served that join with the MLID that
 * they had: else a port that creates a group would give it another MLID than its members have.
 *
 * subnet/ does not use the daemon's timers: what is due there is a function of the time that it is
 * given. It asks to be called, and a timer here does.
 */
#ifndef DAEMON_SUBNET_H
#define DAEMON_SUBNET_H

#include "daemon/clients/request.h"
#include "daemon/subnet/mads.h"
#include "daemon/subnet/ports.h"
#include "daemon/subnet/subnet_mad.h"
#include "subnet/partitions.h"
#include "subnet/sm.h"
#include "subnet/state.h"

struct daemon_subnet {
	struct fabric *f;
	struct daemon_loop *loop;
	struct daemon_mads *mads;
	struct daemon_ports *ports;
	struct partitions *partitions;       /* partitions.c's; NULL: none were given */
	struct subnet_state saved;           /* what the first take-over restores; state.c's */
	struct subnet_state_misfits misfits; /* what of it did not fit */
	uint64_t changes;                    /* of what is saved of ports */
	struct sm *sm;                       /* NULL unless it is the master */
	struct daemon_subnet_mad mad;
	struct base_timer sm_timer, role_timer, learn_timer;
	/* the sweep that is under way */
	enum daemon_sweep {
		DAEMON_SWEEP_NONE,
		DAEMON_SWEEP_FLOWS, /* there is no SM of ours: only flows follow */
		DAEMON_SWEEP_SM,
		DAEMON_SWEEP_LEARN, /* the first one: of the tables of another subnet manager */
		DAEMON_SWEEP_SA,
		DAEMON_SWEEP_REGISTER, /* after the first one: ports are asked to register */
	} sweep;
	struct base_timer sweep_timer, follow_timer;
	uint32_t sweep_mlid, learned; /* where the SA goes on */
	unsigned next_switch;         /* to learn of */
	unsigned next_port;           /* to be asked to register */
	bool new_partitions;          /* the SA's groups are to follow it */
	int swept;                    /* the last one's result */
	uint64_t sweep_began_ns;      /* the last one, by the timers' clock */
};

/* Adds the requests to the table; @s is filled in as far as ->ports. */
void daemon_subnet_init(struct daemon_subnet *s, struct daemon_requests *all);

/* Starts it, unless the settings say that there is none; not for Ethernet ports, whose subnets
 * nobody manages. 0 or -errno. */
int daemon_subnet_start(struct daemon_subnet *s);

/*
 * The fabric has changed: flows follow (fabric_flow_note_link()), and if the embedded SM is the
 * master it sweeps, in slices. Between them the loop goes on; requests that change the subnet wait
 * (enum daemon_wait). If one is under way, it is followed by another.
 */
void daemon_subnet_sweep(struct daemon_subnet *s);

/* The loop's turn is over: flows follow what a program's subnet manager has changed, in slices. */
void daemon_subnet_follow(struct daemon_subnet *s);

/* A program has given a port another LID: a sweep that is under way is followed by another. */
void daemon_subnet_lid_changed(struct daemon_subnet *s);

/* Whether a sweep is under way; if not, ->swept is the last one's result: 0, -ENOSPC, -ENOMEM. */
static inline bool daemon_subnet_is_sweeping(const struct daemon_subnet *s)
{
	return s->sweep != DAEMON_SWEEP_NONE;
}

/* The status of a request that has had the subnet sweep: the result, or to wait for it. */
static inline int daemon_subnet_result(const struct daemon_subnet *s)
{
	return daemon_subnet_is_sweeping(s) ? DAEMON_REPLY_RESULT : s->swept;
}

/* Whether a link or the master has changed, so that it has to sweep. */
bool daemon_subnet_wants_sweep(const struct daemon_subnet *s);

/* Has an event happen, as CONTROL_SM_EVENT does it; while it sweeps, none does. The reply to that.
 */
int daemon_subnet_cause(struct daemon_subnet *s, const struct control_sm_event *event);

/* A program's subnet manager has come (@is_sm) to the port, or gone. */
void daemon_subnet_issm(struct daemon_subnet *s, struct fabric_port *at, bool is_sm);

/* The fabric's partitions are @p from now on, which stay the caller's. 0; -EINVAL, -ENOSPC and
 * why. */
int daemon_subnet_set_partitions(struct daemon_subnet *s, struct partitions *p, char *why,
                                 size_t len);

/* If the embedded SM is the master, ports and groups become as the partitions say, by a sweep. */
void daemon_subnet_partitions_changed(struct daemon_subnet *s);

#endif
