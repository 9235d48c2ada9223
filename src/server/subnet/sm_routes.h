/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the files of unicast routing: sm_routes.c chooses paths, sm_fresh.c those that are all
 * chosen anew, sm_root.c has what all engines do for a root, sm_hops.c measures distances,
 * sm_load.c counts what the links carry, sm_ftree.c routes fat trees, sm_dfsssp.c by the load of
 * whole paths, with lanes from sm_lanes.c. For these files alone.
 *
 * All paths to one switch, the present root, and to the HCAs at its ports are made together.
 */
#ifndef SUBNET_SM_ROUTES_H
#define SUBNET_SM_ROUTES_H

#include "subnet/sm_state.h"

/* A LID of an HCA at the present root. Those of one port follow each other. */
struct sm_home_lid {
	uint16_t lid;
	uint8_t n;    /* LIDs of its port */
	uint8_t port; /* of the root */
	bool up;
};

struct sm_load {
	unsigned *first; /* by switch: where its ports are in the next two */
	uint32_t *lids;  /* by port: LIDs of HCAs that go out by it */
	uint32_t *link;  /* by port: 1 + the index of the link; 0: it leads to no switch */
	uint64_t *
	        reached; /* by switch: bits of the root's LIDs that a host's packets reach it for */
	unsigned words;  /* of each switch's bits */
	unsigned left_out; /* a switch that counts as not reached; SM_NOBODY: none */
};

#define SM_NOBODY (~0u)

/* A link to another switch, as short as can be. */
struct sm_exit {
	uint32_t to : 24, port : 8;
};

/* Which links are on a shortest path to a root: bits, of each switch's links in their order. */
struct sm_leads {
	unsigned *word;    /* by switch: where its words begin; the last one: how many there are */
	uint64_t *bits;    /* of up to SM_HOPS_ROOTS roots: stale if none of them has HCAs */
	uint64_t *by_link; /* by link: bits of the roots */
	uint8_t *port;     /* by switch and root: of the first of these links */
	struct sm_exit *exit; /* by link */
};

/* Where a switch's table is: the node itself lies anywhere in memory. */
struct sm_table {
	uint8_t *out; /* by LID; NULL: the switch is dead */
	uint32_t size;
};

/* How a root's LIDs are spread over so many ports, from a first one on. */
struct sm_spread {
	unsigned root, port, n, n_lids; /* 0: of none */
	uint8_t out[FABRIC_MAX_PORTS];
};

/* The phases of a sweep that go from one root to the other. */
enum sm_routes_phase {
	SM_ROUTES_DONE,
	SM_ROUTES_FTREE,  /* sm_ftree.c */
	SM_ROUTES_GROW,   /* tables reach to the highest LID */
	SM_ROUTES_DFSSSP, /* sm_dfsssp.c */
	SM_ROUTES_RANK,   /* sm_updn.c ranks the switches */
	SM_ROUTES_COUNT,  /* counts the loads by the present paths */
	SM_ROUTES_ALL,    /* chooses all paths */
	SM_ROUTES_REPAIR, /* those that a failure has changed */
};

struct sm_routes {
	struct sm_net *net;
	struct sm_table *table;   /* by switch; while all paths are chosen anew */
	struct sm_updn *updn;     /* NULL: all paths are legal */
	struct sm_ftree *ftree;   /* NULL: no routing of fat trees */
	struct sm_dfsssp *dfsssp; /* NULL: no lanes */
	struct sm_hops *measure;
	struct sm_load load;
	uint16_t *rows; /* distances between switches; or those to SM_HOPS_ROOTS roots */
	bool has_all_rows;
	uint16_t *hops;  /* the row of the present root: distances to it */
	unsigned *order; /* the switches, the farthest from the present root first */
	unsigned *start; /* scratch */
	enum sm_routes_phase phase;
	enum sm_routing engine; /* by which the tables were written last */
	unsigned next;          /* root of the phase; or switch */
	uint16_t top;           /* the highest LID */
	bool keep;              /* paths that are still shortest are kept */
	bool fresh;    /* no switch had a table before this sweep, or one of another engine's */
	bool measured; /* a repair measured the distances to the last root, and routed to it, anew
	                */
	struct sm_leads leads;
	struct sm_spread spread; /* that was made last */
	const uint64_t *lead;    /* the present root's bits; unless paths are kept */
	uint64_t *changed;
	unsigned root;           /* the present one */
	struct sm_home_lid *lid; /* its HCAs' */
	unsigned n_lids;
	uint16_t row;           /* the first one, if they follow each other; else 0 */
	bool one_each;          /* each HCA's port has one LID */
	bool all_up, all_noted; /* their links are; all of them are in @changed */
};

/* Makes @root the present root, and lists the LIDs of its HCAs. */
void sm_routes_list_lids(struct sm_routes *r, unsigned root);

/* Sorts the switches by their distance from the present root. */
void sm_routes_sort(struct sm_routes *r);

/* Writes an entry of a table. 0 or -ENOMEM. */
static inline int sm_routes_write(struct sm_routes *r, unsigned at, uint16_t lid, uint8_t out)
{
	struct fabric_node *sw = r->net->sw[at];

	if (fabric_lft_get(sw, lid) == out)
		return 0;
	r->changed[lid / 64] |= 1ull << (lid % 64);
	return fabric_lft_set(sw, lid, out);
}

/* Writes the routes of the present root, @at, to itself and its HCAs. 0 or -ENOMEM. */
int sm_routes_home(struct sm_routes *r, unsigned at);

/* The link from @at to another switch by @port, or NULL. */
static inline const struct sm_link *sm_link_of(const struct sm_routes *r, unsigned at,
                                               unsigned port)
{
	uint32_t link = 0;

	if (port <= r->net->sw[at]->n_ports)
		link = r->load.link[r->load.first[at] + port];
	return link ? &r->net->link[link - 1] : NULL;
}

/* ---- sm_hops.c ---- */

#define SM_HOPS_ROOTS 64

/* 0 or -ENOMEM. */
int sm_hops_new(struct sm_hops **h, const struct sm_net *net);
void sm_hops_free(struct sm_hops *h);

/* Measures the distances of all switches to @n roots, from @first on, at most SM_HOPS_ROOTS: a row
 * each. SM_FAR: there is no path. @leads: for the same roots; or NULL. With it, and if no root has
 * HCAs, only the first links that lead there are found. */
void sm_hops_measure(struct sm_hops *h, unsigned first, unsigned n, uint16_t *rows,
                     struct sm_leads *leads);

/* ---- sm_load.c ---- */

/* Returns 0 or -ENOMEM; sm_load_fini() is due in any case. */
int sm_load_init(struct sm_routes *r);
void sm_load_fini(struct sm_routes *r);

/* Forgets all loads. */
void sm_load_clear(struct sm_routes *r);

/* The load of a port, to be read and counted. */
static inline uint32_t *sm_load_at(const struct sm_routes *r, unsigned at, unsigned port)
{
	return &r->load.lids[r->load.first[at] + port];
}

/* Begins a present root: only switches with hosts are reached. */
void sm_load_begin(struct sm_routes *r);

/* Whether some host's packets for LID number @i of the present root reach @at. */
static inline bool sm_load_reaches(const struct sm_routes *r, unsigned at, unsigned i)
{
	return i / 64 < r->load.words &&
	       (r->load.reached[(size_t)at * r->load.words + i / 64] >> (i % 64) & 1);
}

/* They reach @to. */
static inline void sm_load_pass(struct sm_routes *r, unsigned to, unsigned i)
{
	if (i / 64 < r->load.words)
		r->load.reached[(size_t)to * r->load.words + i / 64] |= 1ull << (i % 64);
}

/*
 * Adds @add to the loads by the paths to @root in the tables that are shortest ones by its row of
 * distances, the present one; @also_down: over links that are down, too.
 */
void sm_load_count(struct sm_routes *r, unsigned root, int add, bool also_down);

/*
 * LID number @i of the present root leaves the path that it has from @at, whose distances have not
 * changed: the switches that it no longer reaches are uncounted, and those that it will reach from
 * @at on are known.
 */
void sm_load_leave(struct sm_routes *r, unsigned at, unsigned i);

/* It has got its path from @at, the load of which is counted: counts what it reaches there. */
void sm_load_arrive(struct sm_routes *r, unsigned at, unsigned i);

/* ---- sm_fresh.c ---- */

/* Returns 0 or -ENOMEM; sm_fresh_fini() is due in any case. */
int sm_fresh_init(struct sm_routes *r);
void sm_fresh_fini(struct sm_routes *r);

/* The tables have their size: notes where they are. */
void sm_fresh_begin(struct sm_routes *r);

/* The present root's bits, one root of a batch that has been measured; or found one by one. */
const uint64_t *sm_leads_of(const struct sm_leads *l, unsigned n_switches, unsigned root);

/* Fetches what sm_fresh_hcas() will need of a switch that has its turn SM_FRESH_AHEAD later: it
 * would wait for memory half of its time. */
#define SM_FRESH_AHEAD 6
static inline void sm_fresh_prefetch(const struct sm_routes *r, unsigned at)
{
	const struct sm_table *t = &r->table[at];
	const char *load = (const char *)sm_load_at(r, at, 0);
	const char *end = (const char *)sm_load_at(r, at + 1, 0);

	__builtin_prefetch(&r->lead[r->leads.word[at]]);
	for (; load < end; load += 64)
		__builtin_prefetch(load, 1);
	if (r->n_lids && r->lid[0].lid + r->n_lids <= t->size) {
		__builtin_prefetch(&t->out[r->lid[0].lid], 1);
		__builtin_prefetch(&t->out[r->lid[r->n_lids - 1].lid], 1);
	}
}

/*
 * sm_fresh_switches() writes the routes of all switches to @n switches, from @first on, whose
 * distances have been measured; sm_fresh_switch() the route of switch @at to the present root;
 * sm_fresh_hcas() the routes to the HCAs of switch @at, which have one LID each. Former entries are
 * overwritten. 0 or -ENOMEM.
 */
int sm_fresh_switches(struct sm_routes *r, unsigned first, unsigned n);
int sm_fresh_switch(struct sm_routes *r, unsigned at);
int sm_fresh_hcas(struct sm_routes *r, unsigned at);

/* ---- sm_ftree.c ---- */

/* 0 or -ENOMEM. */
int sm_ftree_new(struct sm_ftree **t, struct sm_routes *r);
void sm_ftree_free(struct sm_ftree *t);

/* The order in which its paths go up and down. */
const struct sm_order *sm_ftree_order(const struct sm_ftree *t);

/* Begins to write all tables. False: the fabric is no fat tree, or not any more. *@ret: 0 or
 * -errno. */
bool sm_ftree_begin(struct sm_ftree *t, int *ret);

/* A step, as sm_routes_step(). True: all are written, or it has failed. */
bool sm_ftree_step(struct sm_ftree *t, uint32_t *budget, int *ret);

/* Others write the tables now. Whether they find paths there that were chosen here. */
bool sm_ftree_give_way(struct sm_ftree *t);

/* ---- sm_dfsssp.c ---- */

/* 0 or -ENOMEM. Needs ->updn of @r. */
int sm_dfsssp_new(struct sm_dfsssp **d, struct sm_routes *r);
void sm_dfsssp_free(struct sm_dfsssp *d);

/* Begins to choose paths and lanes, and then to write them. 0 or -errno. */
int sm_dfsssp_begin(struct sm_dfsssp *d);

/* A step, as sm_routes_step(). True: all is written, or it has failed: *@ret is 0; -ENOSPC: lanes
 * are too few, and nothing was written; -ENOMEM. */
bool sm_dfsssp_step(struct sm_dfsssp *d, uint32_t *budget, int *ret);

/* As sm_routes_lane(). */
int sm_dfsssp_lane(const struct sm_dfsssp *d, unsigned at, uint16_t lid);

/* ---- sm_lanes.c ---- */

#define SM_LANES 8 /* data lanes: the most that the setting routing_lanes can allow */

struct sm_lanes;

/* 0 or -ENOMEM. Needs ->updn of @r. */
int sm_lanes_new(struct sm_lanes **l, struct sm_routes *r);
void sm_lanes_free(struct sm_lanes *l);

/* Forgets all paths that were chosen. The switches have been ranked. 0 or -ENOMEM. */
int sm_lanes_clear(struct sm_lanes *l);

/* While paths are chosen: whether a path that goes by @link and then by @next, both between
 * switches, is likely to fit in lane 0; and notes that some path does. */
bool sm_lanes_suits(const struct sm_lanes *l, unsigned link, unsigned next);
void sm_lanes_note(struct sm_lanes *l, unsigned link, unsigned next);

/*
 * Once all are chosen: begins to choose lanes, 0 or -ENOMEM; and chooses that of the path from
 * switch @at to a LID, for which @row has the out ports of all switches. 0; -ENOSPC: there are too
 * few; -ENOMEM.
 */
int sm_lanes_begin(struct sm_lanes *l);
int sm_lanes_assign(struct sm_lanes *l, unsigned at, uint16_t lid, const uint8_t *row);

/* How much work the last calls were, about, in table entries. */
uint32_t sm_lanes_spend(struct sm_lanes *l);

/* Has the ports give each service level its lane, in steps as sm_routes_step(). True: all do, or
 * *@ret is -ENOMEM. */
void sm_lanes_begin_write(struct sm_lanes *l);
bool sm_lanes_write(struct sm_lanes *l, uint32_t *budget, int *ret);

/* From now on sm_lanes_of() tells the lanes that were chosen last; or none. */
void sm_lanes_tell(struct sm_lanes *l, bool known);

/* How many lanes they are; 0: none were chosen. */
unsigned sm_lanes_count(const struct sm_lanes *l);

/* The lane of paths from switch @at to a LID; -1: any will do, as one is enough for all paths. */
int sm_lanes_of(const struct sm_lanes *l, unsigned at, uint16_t lid);

#endif
