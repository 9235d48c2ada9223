/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The embedded subnet manager (SM): it assigns LIDs, writes unicast and multicast tables into the
 * switches, and brings ports up. It uses only what a subnet manager can see: nodes, ports, links,
 * tables.
 *
 * Only the daemon uses this; it is not thread-safe, and no function blocks. For later work the SM
 * requests a call by ops.wake(), and the daemon then calls sm_run_due().
 */
#ifndef SUBNET_SM_H
#define SUBNET_SM_H

#include <stdint.h>

#include "fabric/model/fabric.h"
#include "subnet/sm_ops.h"

/* A unit of fabric_flows.work costs as much as so many table entries. */
#define SM_FLOW_WORK 20

struct partitions;
struct sm;

/*
 * Makes an SM, which has done nothing yet. Returns 0 and *@sm, which sm_free() frees; or -ENOMEM.
 */
int sm_new(struct sm **sm, struct fabric *f, const struct sm_ops *ops);
void sm_free(struct sm *sm);

/*
 * A heavy sweep: assigns LIDs to ports that have none, writes the LFTs, and makes all ports ACTIVE
 * that are not DOWN. Ports keep their LIDs. The caller then has the SA route the multicast trees
 * again (sa_swept_step()). Returns 0; -ENOSPC: no LID is left; -ENOMEM.
 */
int sm_sweep(struct sm *sm);

/*
 * The same in slices. A step spends @budget, about one for each table entry, and ends when @budget
 * is 0 or the sweep is done (true). Between the steps all other functions may be used, and the
 * fabric may change; but no switch may die. The sweep sees links and LIDs as they were when it
 * looked, in its first steps: code that changes a link or LID later has to request another sweep.
 * For each LID the routes of all switches are written in one step, and the flows to it follow one
 * by one, before the next step. So packets always take the old routes to the LID or the new ones,
 * and never go round in circles. Where no route changes, packets are not disturbed. Multicast
 * tables are not touched before sa_swept_step(). A new sm_sweep_begin() gives up the current sweep.
 */
void sm_sweep_begin(struct sm *sm);
bool sm_sweep_step(struct sm *sm, uint32_t *budget);
int sm_sweep_result(const struct sm *sm);

/* Gives @port another LID; a sweep is due then. Returns 0 or -ENOSPC. */
int sm_give_other_lid(struct sm *sm, struct fabric_port *port);

/*
 * Sets the partitions: the next sweep writes the P_Keys, and an SA that is made later has the
 * groups. NULL: the SM does not write P_Key tables. @p stays the caller's and must outlive its use.
 */
void sm_set_partitions(struct sm *sm, const struct partitions *p);
const struct partitions *sm_partitions(const struct sm *sm);

/* Checks that the P_Keys fit in the tables of all ports. Returns 0; -ENOSPC with @why; -ENOMEM. */
int sm_partitions_check(const struct fabric *f, const struct partitions *p, char *why, size_t len);

/* Before the first sweep: sets the SM's port, an HCA port; else it is the first one. */
void sm_set_home(struct sm *sm, struct fabric_port *home);

/*
 * Before the first tree: the multicast tables may be those of another subnet manager, and ports
 * will register their memberships again. Until sm_learned(), tables that lead to the members given
 * to sm_route_mcast() stay as they are, so that no member misses a message. In slices, as
 * sm_sweep_step(). *@at: 0 at first, then the place where the next step goes on. True: done.
 */
bool sm_learn_step(struct sm *sm, unsigned *at, uint32_t *budget);

/* Whether the SM is still learning; and whether it found a table for @mlid. */
bool sm_is_learning(const struct sm *sm);
bool sm_mlid_is_earlier(const struct sm *sm, uint16_t mlid);

/* End the learning for one MLID, which the caller has routed to its members, or to none; or for all
 * MLIDs. */
void sm_mlid_learned(struct sm *sm, uint16_t mlid);
void sm_learned(struct sm *sm);

/* Makes @home the SM's port from now on. */
void sm_move_to(struct sm *sm, struct fabric_port *home);

/* Makes the next HCA port that is ACTIVE the SM's port, if there is one. */
void sm_move(struct sm *sm);

/* The routing that the SM has used, which may differ from the setting. */
enum sm_routing sm_routing(const struct sm *sm);

/* The SM's port, an HCA port. */
struct fabric_port *sm_port(const struct sm *sm);

/*
 * The links as the last sweep has read them. sm_reach() sets @reached of each switch, by its index,
 * to whether links connect it with switch @first; NULL: of none. @queue: scratch, with room for all
 * switches. False: there was no sweep yet. sm_has_link(): whether the link of HCA port @i is up.
 */
bool sm_reach(const struct sm *sm, const struct fabric_node *first, bool *reached, unsigned *queue);
bool sm_has_link(const struct sm *sm, unsigned i);

/* Switch number @i, from 0; NULL: there are no more. */
struct fabric_node *sm_switch(const struct sm *sm, unsigned i);

/* The service level that packets from an end port to a LID must have, for routes that need several
 * lanes to be free of deadlock; -1: any. */
int sm_path_sl(const struct sm *sm, const struct fabric_port *from, uint16_t dlid);

/* The service level that messages to groups must have, likewise; -1: any. It stays the same when
 * links fail, as members do not ask again. */
int sm_group_sl(const struct sm *sm);

/* A member of a multicast group. */
struct sm_member {
	struct fabric_port *port;
	bool receives; /* false: a send-only member */
};

/*
 * Routes @mlid to the @n members along a spanning tree: writes the tables at once, or after the
 * setting mft_delay_ms, in the order of the calls. Without members it removes the MLID from the
 * switches at once and cannot fail. Returns 0; -ENOSPC: @mlid is beyond a switch's capacity;
 * -ENOMEM.
 */
int sm_route_mcast(struct sm *sm, uint16_t mlid, const struct sm_member *member, unsigned n);

/*
 * Whether the last sweep found a change after which @mlid may need another tree for the same
 * members: any change, except that links went down which are not on its tree.
 */
bool sm_mcast_is_stale(const struct sm *sm, uint16_t mlid);

/* Writes the tables whose delay is over at @now_ms, of the clock of struct sm_ops. */
void sm_run_due(struct sm *sm, uint64_t now_ms);

#endif
