/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the files of the subnet manager: sm.c sweeps, sm_net.c knows the cables, sm_lids.c
 * gives LIDs, sm_pkeys.c writes P_Key tables, sm_routes.c the unicast tables, sm_trees.c the
 * multicast tables, with cores from sm_cores.c; sm_updn.c says which paths are legal with up/down
 * routing. For these files alone. Those of unicast routing share more: sm_routes.h.
 *
 * The cables between switches are in one flat array, switch by switch, which all computations over
 * the whole fabric walk. A sweep looks which of them are up.
 */
#ifndef SUBNET_SM_STATE_H
#define SUBNET_SM_STATE_H

#include "fabric/model/fabric.h"
#include "subnet/sm_ops.h"

#define SM_FAR UINT16_MAX /* a distance: there is no path */

/* A cable to another switch (or back to the same one), seen from one of its ends. */
struct sm_link {
	uint32_t to; /* index of the switch there */
	uint8_t port;
	bool up; /* at the last look */
};

/* An HCA's port. */
struct sm_known_port {
	uint16_t lid;
	uint8_t lmc;
	bool up;
};

/* A link that has gone down, at one of its ends. */
struct sm_down {
	unsigned at; /* the switch */
	const struct sm_link *link;
};

struct sm_net {
	struct fabric *f;
	struct fabric_node **sw; /* the switches, each at its index */
	unsigned n;
	struct sm_link *link;
	unsigned *first; /* switch i has link[first[i]] to link[first[i + 1] - 1] */
	bool *has_hosts; /* by switch: HCAs are plugged in */
	/* the results of the last look, on which all routing relies: changes by programs' SMPs
	 * meanwhile are for the next sweep */
	struct sm_known_port *known;   /* by the HCA port's index */
	uint16_t *lid;                 /* by switch */
	uint16_t *level;               /* by switch: distance from those with hosts; SM_FAR */
	unsigned *queue;               /* scratch of the look */
	struct fabric_port **to_ready; /* those that the look has found, to be made ACTIVE */
	unsigned n_to_ready, max_to_ready;
	bool ready_all; /* or all */
	bool looked;
	bool left;            /* not all findings of the look before are in the tables */
	bool came_up;         /* a link between switches came up after the first look */
	struct sm_down *down; /* links between switches that went down */
	unsigned n_down;
	bool *home_changed; /* by switch: a link to an HCA went down or came up */
	unsigned n_homes_changed;
	bool lids_changed;
	bool little_changed; /* links went down, or links to HCAs changed, and nothing else */
	bool nothing_changed;
	uint64_t foreign, settings; /* at the last look: fabric.foreign, and a hash */
};

#define SM_MLID_WORDS ((IB_LID_MCAST_LAST - IB_LID_MCAST_FIRST) / 64 + 1)

enum sm_sweep_phase {
	SM_SWEEP_DONE,
	SM_SWEEP_LIDS,
	SM_SWEEP_LOOK,
	SM_SWEEP_PKEYS,
	SM_SWEEP_PORTS, /* before routes, which may lead over links that have just come up */
	SM_SWEEP_BEGIN_ROUTES,
	SM_SWEEP_ROUTES,
	SM_SWEEP_TELL,
};

struct sm {
	struct fabric *f;
	struct sm_ops ops;
	struct sm_net net;
	struct sm_routes *routes;
	struct sm_trees *trees;
	const struct partitions *partitions;    /* NULL: the SM does not write P_Key tables */
	uint16_t next_lid;                      /* where the search for a free LID continues */
	uint64_t lids[IB_LID_MCAST_FIRST / 64]; /* in use */
	bool learning;                          /* sm_learn_step() */
	uint64_t earlier[SM_MLID_WORDS];        /* MLIDs that had tables then */
	enum sm_sweep_phase phase;
	unsigned at, at_port; /* how far the phase has come, if it takes several steps */
	bool more;            /* it needs another one */
	bool pkeys_changed;   /* of switches' ports: sm_pkeys_follow() is due */
	int swept;            /* the sweep's result */
	uint64_t changed[IB_LID_MCAST_FIRST / 64]; /* LIDs whose flows have to follow */
	unsigned home, told_home; /* the SM's port, and the one last written to PortInfo */
};

/* ---- sm_net.c ---- */

/* Returns 0 or -ENOMEM; sm_net_fini() is due in any case. */
int sm_net_init(struct sm_net *net, struct fabric *f);
void sm_net_fini(struct sm_net *net);

/* Notes the LIDs that all ports have been given, none of them twice. */
void sm_net_look_at_lids(struct sm_net *net);

/* Looks at the links and HCA ports whose states somebody has set, at first at all, and notes what
 * has changed. */
void sm_net_look(struct sm_net *net);

/* Notes of each switch the lowest one that links connect with it, perhaps itself. @queue: scratch,
 * with room for all switches. */
void sm_net_find_islands(const struct sm_net *net, unsigned *island, unsigned *queue);

/* Measures distances over links that are up: from the switches that have 0 in @dist, to those that
 * have SM_FAR. @queue: the switches as they were reached. How many. */
unsigned sm_net_measure(const struct sm_net *net, uint16_t *dist, unsigned *queue);

/* The port at the far end of a link that is not down, or NULL. */
struct fabric_port *sm_far_end(const struct fabric_port *p);

struct sm_updn;
struct sm_cores;

/* ---- sm_order.c ---- */

#define SM_NO_SWITCH (~0u)
#define SM_TOPS      1024 /* of an island that are looked for */

struct sm_order {
	const struct sm_net *net;
	unsigned *place;  /* by switch; up is towards 0 */
	unsigned *sorted; /* the switches in that order */
	/* sm_order_find_tops(): the switches of an island from which no link leads up; all, if all
	 * have hosts */
	unsigned *island; /* by switch: the lowest switch connected to it */
	bool *is_flat;    /* by island: all switches have hosts */
	unsigned *n_tops; /* by island */
	unsigned *top;    /* by switch: its number among those of its island; or SM_NO_SWITCH */
	uint64_t *above;  /* by switch: bits of the tops from which ways lead down to it */
	unsigned words;   /* of each switch's bits */
	/* scratch */
	unsigned *queue, *hosts, *from;
	bool *covered;
};

/* 0 or -ENOMEM. */
int sm_order_new(struct sm_order **o, const struct sm_net *net);
void sm_order_free(struct sm_order *o);

/* Orders the switches by their ranks, or by their levels from the highest one down; those of one
 * rank or level by their index. */
void sm_order_by_rank(struct sm_order *o, const uint16_t *rank);
void sm_order_by_level(struct sm_order *o);

/* Whether they differed. */
bool sm_order_copy(struct sm_order *to, const struct sm_order *from);

/* By the links that are up. */
void sm_order_find_tops(struct sm_order *o);

static inline uint64_t *sm_order_above(const struct sm_order *o, unsigned at)
{
	return &o->above[(size_t)at * o->words];
}

/* Has the ways from one switch lead down to all switches with hosts that links connect. How many
 * got another place for that. */
unsigned sm_order_mend(struct sm_order *o);

/* ---- sm_lids.c ---- */

/* Gives all ports that the SM sees their LIDs, and notes in ->changed what has changed. Returns 0
 * or -ENOSPC. */
int sm_lids_give(struct sm *sm);

/* Gives @p other LIDs. Returns 0 or -ENOSPC. */
int sm_lids_change(struct sm *sm, struct fabric_port *p);

/* The highest LID in use. */
uint16_t sm_lids_top(const struct sm *sm);

/* ---- sm_pkeys.c ---- */

/* Writes the P_Key tables, if there are partitions. Returns 0 or -ENOMEM. The same in slices: from
 * the port *@at on, which is 0 at first; 1: there is more to do. */
int sm_pkeys_write(struct sm *sm);
int sm_pkeys_step(struct sm *sm, unsigned *at, uint32_t *budget);

/* After the last slice: if switches' ports have other P_Keys than before, all flows are to follow.
 * Once for all ports, as that is much work. */
void sm_pkeys_follow(struct sm *sm);

/* ---- sm_routes.c ---- */

/* 0 or -ENOMEM. */
int sm_routes_new(struct sm_routes **r, struct sm_net *net);
void sm_routes_free(struct sm_routes *r);

/*
 * Begins to write the routes to all LIDs, the highest of which is @top, to the switches, over the
 * links that are up. Each step spends some of @budget, in table entries, and ends when it is 0 or
 * all are written: then sm_routes_are_written(). It writes the routes of all switches to one LID in
 * one step, so between steps packets for a LID go either by its old routes or by its new ones. Sets
 * the bit of each LID in @changed whose route in some switch has changed. 0 or -ENOMEM.
 */
void sm_routes_begin(struct sm_routes *r, uint16_t top, uint64_t changed[IB_LID_MCAST_FIRST / 64]);
int sm_routes_step(struct sm_routes *r, uint32_t *budget);
bool sm_routes_are_written(const struct sm_routes *r);

/* How the routes were chosen last. */
enum sm_routing sm_routes_engine(const struct sm_routes *r);

/* The order in which all paths that were written last go up and then down; NULL: they do not. */
const struct sm_order *sm_routes_order(const struct sm_routes *r);

/* The lane that paths from switch @at to a LID are to have; -1: any. */
int sm_routes_lane(const struct sm_routes *r, unsigned at, uint16_t lid);

/* With lanes: that of paths that go up and then down, and of trees. */
#define SM_UPDN_LANE 0

/* ---- sm_updn.c ---- */

/* 0 or -ENOMEM. */
int sm_updn_new(struct sm_updn **u, struct sm_net *net);
void sm_updn_free(struct sm_updn *u);

/* Finds the roots and ranks the switches by the links that are up: in steps, each of which spends
 * some of @budget, in table entries. True: they are ranked. */
void sm_updn_begin(struct sm_updn *u);
bool sm_updn_step(struct sm_updn *u, uint32_t *budget);

/* The order of the switches by their ranks: packets go up first. */
const struct sm_order *sm_updn_order(const struct sm_updn *u);

/* Writes the lengths, in links, of the shortest legal paths to @root to @hops; SM_FAR: none. */
void sm_updn_measure(struct sm_updn *u, unsigned root, uint16_t *hops);

/* Whether packets to the root measured last may go from switch @from to its neighbour @to. */
bool sm_updn_may_go(const struct sm_updn *u, unsigned from, unsigned to);

/* ---- sm_trees.c ---- */

/* 0 or -ENOMEM. */
int sm_trees_new(struct sm_trees **t, struct sm *sm);
void sm_trees_free(struct sm_trees *t);

/* The links have been looked at. */
void sm_trees_look(struct sm_trees *t);

/* All routes have been written: trees go up and down in the same order; NULL: they have none. */
void sm_trees_obey(struct sm_trees *t, const struct sm_order *order);

/* ---- sm_cores.c ---- */

#define SM_CORE_TRIES 16

/* 0 or -ENOMEM. */
int sm_cores_new(struct sm_cores **c, struct sm_net *net);
void sm_cores_free(struct sm_cores *c);

/* The links have been looked at. */
void sm_cores_look(struct sm_cores *c);

/* From now on trees go up and down in this order; NULL: in that of the levels. */
void sm_cores_obey(struct sm_cores *c, const struct sm_order *order);

/* The order in which the island of switch @at has its trees; NULL: any will do. */
const struct sm_order *sm_core_order(struct sm_cores *c, unsigned at);

/* The lowest switch that links connect with @at. */
unsigned sm_core_island(struct sm_cores *c, unsigned at);

/*
 * The core of @mlid's tree, a switch from which the ways lead down to those of the @n switches
 * @edge that are in its island; SM_NO_SWITCH: one has to be chosen. *@check: it has not been asked
 * for since the last look.
 */
unsigned sm_core_get(struct sm_cores *c, uint16_t mlid, const unsigned *edge, unsigned n,
                     bool *check);

/* Lists switches that could be the core for @edge[0] and those of the other @n - 1 switches that
 * are in its island, the best first: at least one, and @room at most. */
unsigned sm_core_list(struct sm_cores *c, const unsigned *edge, unsigned n, unsigned *core,
                      unsigned room);

/* Makes @core the core of @mlid's tree. */
void sm_core_set(struct sm_cores *c, uint16_t mlid, unsigned core);

/* The same number each time, that spreads the trees of one core. */
unsigned sm_core_turn(const struct sm_cores *c, uint16_t mlid);

/* Whether its tree goes up and down in the order; and whether it may not do so any more. */
void sm_core_obeys(struct sm_cores *c, uint16_t mlid, bool obeys);
bool sm_core_is_stale(const struct sm_cores *c, uint16_t mlid);

/* The tree of @mlid was not affected by what the last look found. */
void sm_core_keep(struct sm_cores *c, uint16_t mlid);

/* @mlid has no tree any more. */
void sm_core_put(struct sm_cores *c, uint16_t mlid);

/* How many links a core is above hosts' switches. */
unsigned sm_core_height(const struct sm_cores *c, unsigned core);

#endif
