/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Deadlock-free single-source shortest paths (DFSSSP): paths are shortest ones, on any topology,
 * and as even as the load of whole paths can make them; lanes make them free of deadlock
 * (sm_lanes.c). Called by sm_routes.c.
 *
 * LIDs are routed one after the other, from all switches at once. A link weighs as much as paths
 * from hosts to the LIDs before have crossed it; of the shortest paths from a switch the one is
 * taken whose links together weigh least. (Routing by the load of the next link alone, as minhop
 * does, cannot see that the ways from there are full.) The first LIDs have chosen without knowing
 * the rest, so all LIDs choose once more. Loads are those of the cables that are plugged in at
 * hosts: when a host's link goes down, no path to another one moves.
 *
 * It takes seconds on large fabrics, so it is done in slices. The chosen paths are kept here, LID
 * by LID, and written when lanes are known to suffice: until then packets go by the old routes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "subnet/sm_routes.h"

#define ROUNDS 2

/* A link on a shortest path to the present root. */
struct way {
	uint32_t link; /* its index */
	uint32_t to;
};

enum dfsssp_phase {
	DFSSSP_DONE,
	DFSSSP_RANK,   /* sm_updn.c ranks the switches, for sm_lanes.c */
	DFSSSP_CLEAR,  /* an attempt begins */
	DFSSSP_CHOOSE, /* paths, in several rounds */
	DFSSSP_LANES,  /* lanes */
	DFSSSP_MAPS,   /* writes the maps of lanes, which do no harm to the old paths, */
	DFSSSP_WRITE,  /* and the tables */
};

struct sm_dfsssp {
	struct sm_routes *r;
	struct sm_lanes *lanes;
	bool routed; /* the tables are ours, and complete */
	enum dfsssp_phase phase;
	unsigned attempt, round;
	unsigned next;       /* switch of the phase, */
	uint32_t next_lid;   /* the LID that has its turn, by its number, */
	unsigned next_from;  /* and where paths to it come from */
	uint64_t penalty;    /* of a turn that does not suit lane 0; 0: no matter */
	uint64_t mean;       /* load of a link after the first attempt */
	uint16_t *lid;       /* all, switch by switch: its own, its HCAs' */
	uint32_t *first_lid; /* by switch: their numbers */
	uint8_t **rows;     /* by switch: its LIDs, as they are numbered: by switch: the port out */
	uint64_t *load;     /* by link: paths from hosts */
	uint64_t *cost;     /* by switch: of its path to the present LID */
	uint64_t *paths;    /* by switch: from hosts, that come through it to the present LID */
	uint32_t *hosts;    /* by switch: HCA ports that are plugged in */
	uint32_t *choice;   /* by switch: 1 + the index of the link */
	struct way *way;    /* those of a switch follow each other, the nearest switches first */
	uint32_t *near;     /* the switches that reach the present root, the nearest first */
	uint32_t *way_ends; /* by place in near: where its ways end */
	unsigned n_near;
};

int sm_dfsssp_new(struct sm_dfsssp **out, struct sm_routes *r)
{
	struct sm_dfsssp *d = calloc(1, sizeof(*d));
	const struct sm_net *net = r->net;
	size_t n = net->n + 1, n_links = net->first[net->n] + 1;

	if (!d)
		return -ENOMEM;
	d->r = r;
	d->load = calloc(n_links, sizeof(*d->load));
	d->cost = calloc(n, sizeof(*d->cost));
	d->paths = calloc(n, sizeof(*d->paths));
	d->hosts = calloc(n, sizeof(*d->hosts));
	d->choice = calloc(n, sizeof(*d->choice));
	d->way = calloc(n_links, sizeof(*d->way));
	d->near = calloc(n, sizeof(*d->near));
	d->lid = calloc(IB_LID_MCAST_FIRST, sizeof(*d->lid));
	d->first_lid = calloc(n, sizeof(*d->first_lid));
	d->rows = calloc(n, sizeof(*d->rows));
	d->way_ends = calloc(n, sizeof(*d->way_ends));
	if (!d->load || !d->cost || !d->paths || !d->hosts || !d->choice || !d->way || !d->near ||
	    !d->way_ends || !d->lid || !d->first_lid || !d->rows || sm_lanes_new(&d->lanes, r)) {
		sm_dfsssp_free(d);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < net->f->n_ib_ports; i++) {
		const struct fabric_port *at = net->f->hca_port[i]->peer;

		if (at && at->node->type == FABRIC_SWITCH)
			d->hosts[at->node->index]++;
	}
	*out = d;
	return 0;
}

static void forget_rows(struct sm_dfsssp *d)
{
	for (unsigned i = 0; d->rows && i < d->r->net->n; i++) {
		free(d->rows[i]);
		d->rows[i] = NULL;
	}
}

void sm_dfsssp_free(struct sm_dfsssp *d)
{
	forget_rows(d);
	if (d->lanes)
		sm_lanes_free(d->lanes);
	free(d->load);
	free(d->cost);
	free(d->paths);
	free(d->hosts);
	free(d->choice);
	free(d->way);
	free(d->near);
	free(d->lid);
	free(d->first_lid);
	free(d->rows);
	free(d->way_ends);
	free(d);
}

int sm_dfsssp_lane(const struct sm_dfsssp *d, unsigned at, uint16_t lid)
{
	return sm_lanes_of(d->lanes, at, lid);
}

/* ---- one root ---- */

/* Makes @root the present root, after all before it. */
static void turn_to(struct sm_dfsssp *d, unsigned root)
{
	struct sm_routes *r = d->r;
	unsigned left = r->net->n - root;

	if (root % SM_HOPS_ROOTS == 0)
		sm_hops_measure(r->measure, root, left < SM_HOPS_ROOTS ? left : SM_HOPS_ROOTS,
		                r->rows, NULL);
	r->hops = &r->rows[(size_t)(root % SM_HOPS_ROOTS) * r->net->n];
	sm_routes_list_lids(r, root);
	sm_routes_sort(r);
}

/* Lists the ways of all switches but the root, the nearest first. */
static void list_ways(struct sm_dfsssp *d)
{
	const struct sm_net *net = d->r->net;
	const uint16_t *hops = d->r->hops;
	unsigned n_ways = 0;

	d->n_near = 0;
	for (unsigned i = net->n; i-- > 0 && hops[d->r->order[i]] != SM_FAR;) {
		unsigned at = d->r->order[i];

		if (at == d->r->root)
			continue;
		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++)
			if (net->link[k].up && hops[net->link[k].to] + 1 == hops[at])
				d->way[n_ways++] = (struct way){ k, net->link[k].to };
		d->near[d->n_near] = at;
		d->way_ends[d->n_near++] = n_ways;
	}
}

/* The cost of the path by this way. */
static inline uint64_t cost_of(const struct sm_dfsssp *d, const struct way *way)
{
	uint64_t cost = d->cost[way->to] + d->load[way->link];

	if (d->penalty && way->to != d->r->root &&
	    !sm_lanes_suits(d->lanes, way->link, d->choice[way->to] - 1))
		cost += d->penalty;
	return cost;
}

/* Chooses the way of each switch for one LID. */
static void choose(struct sm_dfsssp *d)
{
	unsigned k = 0;

	d->cost[d->r->root] = 0;
	for (unsigned i = 0; i < d->n_near; i++) {
		uint64_t least = UINT64_MAX;
		unsigned at = d->near[i];

		for (; k < d->way_ends[i]; k++) {
			uint64_t cost = cost_of(d, &d->way[k]);

			if (cost >= least)
				continue;
			least = cost;
			d->choice[at] = d->way[k].link + 1;
		}
		d->cost[at] = least;
	}
}

/* Adds the paths of hosts by the ways that were chosen to the loads, or takes them away. */
static void count(struct sm_dfsssp *d, bool add)
{
	const struct sm_net *net = d->r->net;

	for (unsigned i = 0; i < d->n_near; i++)
		d->paths[d->near[i]] = d->hosts[d->near[i]];
	d->paths[d->r->root] = 0;
	for (unsigned i = d->n_near; i-- > 0;) {
		unsigned at = d->near[i], link = d->choice[at] - 1;

		d->load[link] += add ? d->paths[at] : -d->paths[at];
		d->paths[net->link[link].to] += d->paths[at];
	}
}

/* Tells lane 0 of the ways that were chosen. */
static void note_turns(struct sm_dfsssp *d)
{
	for (unsigned i = 0; i < d->n_near; i++) {
		unsigned link = d->choice[d->near[i]] - 1, to = d->r->net->link[link].to;

		if (to != d->r->root)
			sm_lanes_note(d->lanes, link, d->choice[to] - 1);
	}
}

/* ---- one LID ---- */

static uint32_t count_lids(const struct sm_dfsssp *d, unsigned root)
{
	return d->first_lid[root + 1] - d->first_lid[root];
}

/* The row of a LID of switch @root, by its number among them: 0 is the switch's own. */
static uint8_t *row_of(const struct sm_dfsssp *d, unsigned root, uint32_t number)
{
	return &d->rows[root][(size_t)number * d->r->net->n];
}

/* The ways that the LID has from the round before. */
static void recall(struct sm_dfsssp *d, const uint8_t *row)
{
	const struct sm_routes *r = d->r;

	for (unsigned i = 0; i < d->n_near; i++)
		d->choice[d->near[i]] = r->load.link[r->load.first[d->near[i]] + row[d->near[i]]];
}

/* No path leads from those that are not near, and none to another switch from the root. */
static void keep(const struct sm_dfsssp *d, uint8_t *row)
{
	const struct sm_net *net = d->r->net;

	memset(row, FABRIC_LFT_NONE, net->n);
	for (unsigned i = 0; i < d->n_near; i++)
		row[d->near[i]] = net->link[d->choice[d->near[i]] - 1].port;
}

/* Nobody's messages to a switch itself count, so it chooses only once. */
static void route_root(struct sm_dfsssp *d, uint8_t *row)
{
	if (d->round)
		return;
	choose(d);
	keep(d, row);
}

static void route_lid(struct sm_dfsssp *d, uint8_t *row)
{
	if (d->round) {
		recall(d, row);
		count(d, false);
	}
	choose(d);
	if (d->penalty)
		note_turns(d);
	count(d, true);
	keep(d, row);
}

/* ---- phases ---- */

static void spend(uint32_t *budget, uint32_t cost)
{
	*budget -= cost < *budget ? cost : *budget;
}

static void begin_phase(struct sm_dfsssp *d, enum dfsssp_phase phase)
{
	d->phase = phase;
	d->next = d->next_lid = d->next_from = 0;
}

static int begin_attempt(struct sm_dfsssp *d, uint32_t *budget)
{
	const struct sm_net *net = d->r->net;

	memset(d->load, 0, net->first[net->n] * sizeof(*d->load));
	d->round = 0;
	spend(budget, 8 * net->first[net->n]);
	begin_phase(d, DFSSSP_CHOOSE);
	return sm_lanes_clear(d->lanes);
}

/* Turns to the next switch. 0 or -ENOMEM. */
static int turn_to_next(struct sm_dfsssp *d, uint32_t *budget)
{
	const struct sm_net *net = d->r->net;

	turn_to(d, d->next);
	list_ways(d);
	spend(budget, 4 * net->n + net->first[net->n]);
	if (!d->rows[d->next])
		d->rows[d->next] = malloc((size_t)count_lids(d, d->next) * net->n);
	return d->rows[d->next] ? 0 : -ENOMEM;
}

/* The next LID chooses its paths. Those of a switch follow each other, its own comes last. */
static int choose_next(struct sm_dfsssp *d, uint32_t *budget)
{
	const struct sm_net *net = d->r->net;
	int ret = d->next_lid ? 0 : turn_to_next(d, budget);

	if (ret)
		return ret;
	if (++d->next_lid < count_lids(d, d->next)) {
		route_lid(d, row_of(d, d->next, d->next_lid));
		spend(budget, 4 * net->n + net->first[net->n] / 4 + sm_lanes_spend(d->lanes));
		return 0;
	}
	route_root(d, row_of(d, d->next, 0));
	d->next_lid = 0;
	d->next++;
	return 0;
}

/* All choose, in rounds. */
static int choose_paths(struct sm_dfsssp *d, uint32_t *budget)
{
	if (d->next < d->r->net->n)
		return choose_next(d, budget);
	d->next = 0;
	if (++d->round < ROUNDS)
		return 0;
	begin_phase(d, DFSSSP_LANES);
	return sm_lanes_begin(d->lanes);
}

/* Whether paths from the switch to the present LID need a lane: without hosts it sends to hosts
 * alone. */
static bool needs_lane(const struct sm_dfsssp *d, unsigned from)
{
	return from != d->next && (count_lids(d, from) > 1 || d->next_lid);
}

/* Some paths to the next LID get their lanes. */
static int choose_lanes(struct sm_dfsssp *d, uint32_t *budget)
{
	const struct sm_net *net = d->r->net;
	int ret = 0;

	if (d->next == net->n) {
		sm_lanes_begin_write(d->lanes);
		begin_phase(d, DFSSSP_MAPS);
		return 0;
	}
	while (d->next_from < net->n && *budget && !ret) {
		unsigned from = d->next_from++;

		if (needs_lane(d, from))
			ret = sm_lanes_assign(d->lanes, from,
			                      d->lid[d->first_lid[d->next] + d->next_lid],
			                      row_of(d, d->next, d->next_lid));
		spend(budget, 24 + sm_lanes_spend(d->lanes));
	}
	if (d->next_from < net->n)
		return ret;
	d->next_from = 0;
	if (++d->next_lid < count_lids(d, d->next))
		return ret;
	d->next_lid = 0;
	d->next++;
	return ret;
}

static int write_maps(struct sm_dfsssp *d, uint32_t *budget)
{
	int ret;

	if (!sm_lanes_write(d->lanes, budget, &ret) || ret)
		return ret;
	sm_lanes_tell(d->lanes, true);
	begin_phase(d, DFSSSP_WRITE);
	return 0;
}

/* Writes the entries of one switch for the LIDs of @root. */
static int write_entries(struct sm_dfsssp *d, unsigned at, unsigned root)
{
	const uint16_t *lid = &d->lid[d->first_lid[root]];
	int ret = 0;

	for (uint32_t i = 0; i < count_lids(d, root) && !ret; i++)
		ret = sm_routes_write(d->r, at, lid[i], row_of(d, root, i)[at]);
	return ret;
}

/* Writes the routes of all switches to the next one and its HCAs. */
static int write_tables(struct sm_dfsssp *d, uint32_t *budget)
{
	const struct sm_net *net = d->r->net;
	unsigned root = d->next++;
	int ret = 0;

	if (root == net->n) {
		d->phase = DFSSSP_DONE;
		return 0;
	}
	sm_routes_list_lids(d->r, root);
	for (unsigned at = 0; at < net->n && !ret; at++)
		if (!net->sw[at]->dead)
			ret = at == root ? sm_routes_home(d->r, at) : write_entries(d, at, root);
	free(d->rows[root]);
	d->rows[root] = NULL;
	spend(budget, net->n * (d->r->n_lids + 2));
	return ret;
}

static int go_on(struct sm_dfsssp *d, uint32_t *budget)
{
	switch (d->phase) {
	case DFSSSP_RANK:
		if (sm_updn_step(d->r->updn, budget))
			begin_phase(d, DFSSSP_CLEAR);
		return 0;
	case DFSSSP_CLEAR:
		return begin_attempt(d, budget);
	case DFSSSP_CHOOSE:
		return choose_paths(d, budget);
	case DFSSSP_LANES:
		return choose_lanes(d, budget);
	case DFSSSP_MAPS:
		return write_maps(d, budget);
	default:
		return write_tables(d, budget);
	}
}

/* ---- all ---- */

/* Only links of hosts have changed: the other switches keep their routes to them. */
static int route_homes(struct sm_dfsssp *d)
{
	int ret = 0;

	for (unsigned i = 0; i < d->r->net->n && !ret; i++) {
		if (!d->r->net->home_changed[i] || d->r->net->sw[i]->dead)
			continue;
		sm_routes_list_lids(d->r, i);
		ret = sm_routes_home(d->r, i);
	}
	return ret;
}

static void list_lids(struct sm_dfsssp *d)
{
	const struct sm_net *net = d->r->net;
	uint32_t n = 0;

	for (unsigned i = 0; i < net->n; i++) {
		d->first_lid[i] = n;
		d->lid[n++] = net->lid[i];
		sm_routes_list_lids(d->r, i);
		for (unsigned k = 0; k < d->r->n_lids; k++)
			d->lid[n++] = d->r->lid[k].lid;
	}
	d->first_lid[net->n] = n;
}

int sm_dfsssp_begin(struct sm_dfsssp *d)
{
	const struct sm_net *net = d->r->net;

	d->phase = DFSSSP_DONE;
	forget_rows(d); /* of a sweep that was given up */
	if (d->routed && net->little_changed && !net->n_down)
		return route_homes(d);
	d->routed = false;
	d->penalty = d->attempt = 0;
	list_lids(d);
	sm_updn_begin(d->r->updn);
	begin_phase(d, DFSSSP_RANK);
	return 0;
}

/* The load of a link between switches that is up. */
static uint64_t mean_load(const struct sm_dfsssp *d)
{
	const struct sm_net *net = d->r->net;
	uint64_t sum = 0, n = 0;

	for (unsigned k = 0; k < net->first[net->n]; k++) {
		sum += d->load[k];
		n += net->link[k].up;
	}
	return n ? sum / n : 0;
}

/* Lanes have turned out to be too few. False: there is nothing more to try. */
static bool try_again(struct sm_dfsssp *d)
{
	/* how much load it is worth to spare lane 0 a turn that does not suit it, in units of a
	 * link's mean load */
	static const double worth[] = { 0.25, 1, 4, 16, 64 };

	if (!d->attempt)
		d->mean = mean_load(d);
	if (d->attempt == ARRAY_SIZE(worth))
		return false;
	d->penalty = (uint64_t)((double)d->mean * worth[d->attempt++]) + 1;
	begin_phase(d, DFSSSP_CLEAR);
	return true;
}

/* All is written; or it cannot be. */
static void finish(struct sm_dfsssp *d, int ret)
{
	d->phase = DFSSSP_DONE;
	d->routed = !ret;
	forget_rows(d);
	if (ret)
		sm_lanes_tell(d->lanes, false);
	else
		base_log_debug(sm, "dfsssp routing: %u lanes, chosen %u times",
		               sm_lanes_count(d->lanes), d->attempt + 1);
	if (ret == -ENOSPC)
		base_log_warning(sm,
		                 "dfsssp routing: %u lanes are too few to be free of deadlock; the "
		                 "fabric is "
		                 "routed as with updn",
		                 d->r->net->f->settings.routing_lanes);
}

bool sm_dfsssp_step(struct sm_dfsssp *d, uint32_t *budget, int *ret)
{
	*ret = 0;
	while (d->phase != DFSSSP_DONE && *budget && !*ret) {
		*ret = go_on(d, budget);
		if (*ret == -ENOSPC && try_again(d))
			*ret = 0;
	}
	if (d->phase != DFSSSP_DONE && !*ret)
		return false;
	finish(d, *ret);
	return true;
}
