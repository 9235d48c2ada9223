/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of the subnet manager share: sm.c sweeps, sm_net.c knows the cables, sm_lids.c
 * gives LIDs, sm_routes.c writes the unicast tables, sm_updn.c says which ways are legal if up/down
 * routing is set, sm_trees.c writes the multicast tables. For these files alone.
 *
 * The cables between switches are noted once, switch by switch, in one flat array: all
 * that is computed over the whole fabric walks it. A sweep looks which of them are up.
 */
#ifndef SUBNET_SM_STATE_H
#define SUBNET_SM_STATE_H

#include "subnet/sm.h"

/* A cable to another switch (or back to the same one), seen from one of its ends. */
struct sm_link {
	uint32_t to; /* index of the switch there */
	uint8_t port;
	bool up; /* when last looked at */
};

/* One that has gone down, at one of its ends. */
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
	/* what the last look has found */
	bool looked;
	bool came_up;         /* a link between switches, as others were up already */
	struct sm_down *down; /* links between switches that went down */
	unsigned n_down;
	bool *home_changed; /* by switch: a link to an HCA went down or came up */
	unsigned n_homes_changed;
	bool lids_changed;
	bool little_changed; /* nothing else than links that went down, and links to HCAs */
	struct sm_known_port *known;
};

struct sm {
	struct fabric *f;
	struct sm_ops ops;
	struct sm_net net;
	struct sm_routes *routes;
	struct sm_trees *trees;
	const struct partitions *partitions;    /* NULL: P_Key tables are nobody's business */
	uint16_t next_lid;                      /* where the search for a free one goes on */
	uint64_t lids[IB_LID_MCAST_FIRST / 64]; /* in use */
	unsigned home, told_home; /* the HCA port that it answers at, and did before */
};

/* ---- sm_net.c ---- */

/* 0 or -ENOMEM; sm_net_fini() in any case. */
int sm_net_init(struct sm_net *net, struct fabric *f);
void sm_net_fini(struct sm_net *net);

/* Looks at all links and HCA ports. */
void sm_net_look(struct sm_net *net);

/* The port at the far end of a link that is not down, or NULL. */
struct fabric_port *sm_far_end(const struct fabric_port *p);

struct sm_updn;

/* ---- sm_lids.c ---- */

/* All ports that are seen have as many LIDs as they are to have. 0 or -ENOSPC. */
int sm_lids_give(struct sm *sm);

/* Gives @p others. 0 or -ENOSPC. */
int sm_lids_change(struct sm *sm, struct fabric_port *p);

/* The highest that somebody has. */
uint16_t sm_lids_top(const struct sm *sm);

/* ---- sm_pkeys.c ---- */

/* Writes the P_Key tables, if there are partitions. 0 or -ENOMEM. */
int sm_pkeys_write(struct sm *sm);

/* ---- sm_routes.c ---- */

/* 0 or -ENOMEM. */
int sm_routes_new(struct sm_routes **r, struct sm_net *net);
void sm_routes_free(struct sm_routes *r);

/*
 * Writes the ways to all LIDs into the switches, by the links that are up. @changed: a bit
 * for each LID is set if some switch forwards it otherwise than before. 0 or -ENOMEM.
 */
int sm_routes_sweep(struct sm_routes *r, uint64_t changed[IB_LID_MCAST_FIRST / 64]);

/* ---- sm_updn.c ---- */

#define SM_FAR UINT16_MAX /* a distance: no way leads there */

/* 0 or -ENOMEM. */
int sm_updn_new(struct sm_updn **u, struct sm_net *net);
void sm_updn_free(struct sm_updn *u);

/* Finds the roots and ranks the switches by the links that are up. */
void sm_updn_rank(struct sm_updn *u);

/* How many links it is from each switch to @root by a legal way; SM_FAR: there is none. */
void sm_updn_measure(struct sm_updn *u, unsigned root, uint16_t *hops);

/* Whether what is for the root that was measured last may go from one switch to its neighbour. */
bool sm_updn_may_go(const struct sm_updn *u, unsigned from, unsigned to);

/* ---- sm_trees.c ---- */

/* 0 or -ENOMEM. */
int sm_trees_new(struct sm_trees **t, struct sm *sm);
void sm_trees_free(struct sm_trees *t);

#endif
