/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The embedded subnet manager: gives LIDs, writes unicast and multicast tables into
 * the switches, brings ports up. It knows the fabric only as a subnet manager
 * would: nodes, ports, links, tables.
 *
 * The manager's; not thread-safe. Time is passed in: what is to happen later is
 * asked for by a callback and done by sm_run_due().
 */
#ifndef SUBNET_SM_H
#define SUBNET_SM_H

#include <stdint.h>

#include "fabric/fabric.h"

struct partitions;
struct sm;

#define SM_MAX_LMC 7

/* The setting "routing". */
enum sm_routing { SM_ROUTING_MINHOP, SM_ROUTING_UPDN };

/* @wake asks to call sm_run_due() after @ms milliseconds. @now_ms: the clock that sm_run_due() is
 * given; NULL: the system's monotonic one. */
struct sm_ops {
	void (*wake)(void *arg, unsigned ms);
	uint64_t (*now_ms)(void *arg);
	void *arg;
};

int sm_new(struct sm **sm, struct fabric *f, const struct sm_ops *ops);
void sm_free(struct sm *sm);

/*
 * A heavy sweep: LIDs for ports that have none, LFTs, all links up that are not DOWN.
 * LIDs stay. Multicast trees are the SA's to have routed anew (sa_swept()). 0, -ENOSPC:
 * no LID left, -ENOMEM.
 */
int sm_sweep(struct sm *sm);

/* Gives @port another LID, and sweeps. 0, -ENOSPC, -ENOMEM. */
int sm_change_lid(struct sm *sm, struct fabric_port *port);

/*
 * From the next sweep on, the ports' P_Keys are as @p says, and when an SA is made its groups are
 * there. NULL: P_Key tables are left as they are. @p stays the caller's.
 */
void sm_set_partitions(struct sm *sm, const struct partitions *p);
const struct partitions *sm_partitions(const struct sm *sm);

/* Whether all ports have room for their P_Keys. 0; -ENOSPC, and why; -ENOMEM. */
int sm_partitions_check(const struct fabric *f, const struct partitions *p, char *why, size_t len);

/* Before the first sweep: it answers at @home, an HCA port, and not at the first one. */
void sm_set_home(struct sm *sm, struct fabric_port *home);

/* Before the first sweep: empties the multicast tables that another subnet manager wrote. */
void sm_forget_groups(struct sm *sm);

/* The SM moves to @home, where it answers from now on. */
void sm_move_to(struct sm *sm, struct fabric_port *home);

/* The SM moves: from now on it answers at the next HCA port that is ACTIVE, if there is one. */
void sm_move(struct sm *sm);

/* The HCA port that it answers at. */
struct fabric_port *sm_port(const struct sm *sm);

/* The @i-th switch, from 0; NULL past the last. */
struct fabric_node *sm_switch(const struct sm *sm, unsigned i);

/* A port's part in a multicast group. */
struct sm_member {
	struct fabric_port *port;
	bool receives; /* no send-only member */
};

/*
 * Routes @mlid for these members along a spanning tree, at once or after the delay
 * that the settings ask for: each call's tables come so much later, in the order of
 * the calls. No members: the MLID is taken out of the switches, at once, and this
 * cannot fail. 0, -ENOSPC beyond a switch's capacity, -ENOMEM.
 */
int sm_route_mcast(struct sm *sm, uint16_t mlid, const struct sm_member *member, unsigned n);

/* Whether the last sweep has found what may make another tree of @mlid's with the same members:
 * only that a link went down that is not on it does not. */
bool sm_mcast_is_stale(const struct sm *sm, uint16_t mlid);

/* Writes the tables whose delay has passed. @now_ms: monotonic. */
void sm_run_due(struct sm *sm, uint64_t now_ms);

#endif
