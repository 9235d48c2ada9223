/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Deadlock-free single-source shortest paths (DFSSSP): paths are shortest ones, on any topology,
 * and as even as the load of whole paths can make them; lanes make them free of deadlock
 * (sm_lanes.c). Called by sm_routes.c.
 *
 * LIDs are routed one after the other, from all switches at once. A link weighs as much as paths
 * from hosts to the LIDs before have crossed it; of the shortest paths from a switch the one is
 * taken whose links together weigh least. (Routing by the load of the next link alone, as minhop
 * does, cannot see that the ways from there are full.) Who was first has chosen without knowing the
 * rest, so all LIDs choose once more. Loads are those of the cables that are plugged in at hosts:
 * when a host's link goes down, no path to another one moves.
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

struct sm_dfsssp {
	struct sm_routes *r;
	struct sm_lanes *lanes;
	bool routed;        /* the tables are ours, and were complete */
	uint64_t penalty;   /* of a turn that does not suit lane 0; 0: no matter */
	uint64_t *load;     /* by link: paths from hosts */
	uint64_t *cost;     /* by switch: of its path to the present LID */
	uint64_t *paths;    /* by switch: from hosts, that come through it to the present LID */
	uint32_t *hosts;    /* by switch: HCA ports that are plugged in */
	uint32_t *choice;   /* by switch: 1 + the index of the link; 0: none */
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
	d->way_ends = calloc(n, sizeof(*d->way_ends));
	if (!d->load || !d->cost || !d->paths || !d->hosts || !d->choice || !d->way || !d->near ||
	    !d->way_ends || sm_lanes_new(&d->lanes, r)) {
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

void sm_dfsssp_free(struct sm_dfsssp *d)
{
	if (d->lanes)
		sm_lanes_free(d->lanes);
	free(d->load);
	free(d->cost);
	free(d->paths);
	free(d->hosts);
	free(d->choice);
	free(d->way);
	free(d->near);
	free(d->way_ends);
	free(d);
}

int sm_dfsssp_lane(const struct sm_dfsssp *d, unsigned at, uint16_t lid)
{
	return d->routed ? sm_lanes_of(d->lanes, at, lid) : -1;
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

/* What the path by this way costs. */
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

/* Adds the paths of hosts by the ways that were chosen to the loads, or takes them away: none that
 * are not there. */
static void count(struct sm_dfsssp *d, bool add)
{
	const struct sm_net *net = d->r->net;

	for (unsigned i = 0; i < d->n_near; i++)
		d->paths[d->near[i]] = d->hosts[d->near[i]];
	d->paths[d->r->root] = 0;
	for (unsigned i = d->n_near; i-- > 0;) {
		unsigned at = d->near[i];
		uint64_t n = d->paths[at], *load;

		if (!d->choice[at])
			continue;
		load = &d->load[d->choice[at] - 1];
		*load = add ? *load + n : *load - (n < *load ? n : *load);
		d->paths[net->link[d->choice[at] - 1].to] += n;
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

/* The ways that the tables have for the LID, from the round before. Who else writes to them may
 * have left none. */
static void recall(struct sm_dfsssp *d, uint16_t lid)
{
	const struct sm_routes *r = d->r;

	for (unsigned i = 0; i < d->n_near; i++) {
		unsigned at = d->near[i];
		const struct sm_link *l = sm_link_of(r, at, fabric_lft_get(r->net->sw[at], lid));
		bool leads = l && l->up && r->hops[l->to] + 1 == r->hops[at];

		d->choice[at] = leads ? (uint32_t)(l - r->net->link) + 1 : 0;
	}
}

static int write_ways(struct sm_dfsssp *d, uint16_t lid)
{
	const struct sm_net *net = d->r->net;
	int ret = 0;

	for (unsigned i = 0; i < d->n_near && !ret; i++) {
		unsigned at = d->near[i];

		ret = sm_routes_write(d->r, at, lid, net->link[d->choice[at] - 1].port);
	}
	return ret;
}

static int route_lid(struct sm_dfsssp *d, uint16_t lid, unsigned round)
{
	if (round) {
		recall(d, lid);
		count(d, false);
	}
	choose(d);
	if (d->penalty)
		note_turns(d);
	count(d, true);
	return write_ways(d, lid);
}

/* Those that no path leads from. */
static int clear_far(struct sm_dfsssp *d, uint16_t lid)
{
	const struct sm_net *net = d->r->net;
	int ret = 0;

	for (unsigned i = 0; i < net->n && !ret && d->r->hops[d->r->order[i]] == SM_FAR; i++)
		if (!net->sw[d->r->order[i]]->dead)
			ret = sm_routes_write(d->r, d->r->order[i], lid, FABRIC_LFT_NONE);
	return ret;
}

/* Nobody's messages to the switch itself count. */
static int route_root(struct sm_dfsssp *d, uint16_t lid)
{
	int ret = clear_far(d, lid);

	choose(d);
	if (!ret)
		ret = write_ways(d, lid);
	return ret;
}

static int route_towards(struct sm_dfsssp *d, unsigned root, unsigned round)
{
	struct sm_routes *r = d->r;
	int ret = 0;

	turn_to(d, root);
	list_ways(d);
	if (!round && !r->net->sw[root]->dead)
		ret = sm_routes_home(r, root);
	for (unsigned i = 0; i < r->n_lids && !ret; i++) {
		ret = round ? 0 : clear_far(d, r->lid[i].lid);
		if (!ret)
			ret = route_lid(d, r->lid[i].lid, round);
	}
	return ret || round ? ret : route_root(d, r->net->lid[root]);
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

/* Routes all LIDs. 0; -ENOSPC: lanes are too few; -ENOMEM. */
static int route_all(struct sm_dfsssp *d)
{
	const struct sm_net *net = d->r->net;
	int ret = sm_lanes_clear(d->lanes);

	memset(d->load, 0, net->first[net->n] * sizeof(*d->load));
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < net->n && !ret; i++)
			ret = route_towards(d, i, round);
	return ret ? ret : sm_lanes_assign(d->lanes);
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

bool sm_dfsssp_route(struct sm_dfsssp *d, int *ret)
{
	/* once lanes have turned out to be too few: how much load it is worth to spare lane 0 a
	 * turn that does not suit it, in units of a link's mean load */
	static const double worth[] = { 0.25, 1, 4, 16, 64 };
	struct sm_net *net = d->r->net;
	uint64_t mean;

	*ret = 0;
	if (d->routed && net->little_changed && !net->n_down) {
		*ret = route_homes(d);
		return true;
	}
	d->routed = false;
	d->penalty = 0;
	*ret = route_all(d);
	mean = mean_load(d);
	for (unsigned i = 0; i < ARRAY_SIZE(worth) && *ret == -ENOSPC; i++) {
		d->penalty = (uint64_t)((double)mean * worth[i]) + 1;
		*ret = route_all(d);
	}
	if (!*ret)
		*ret = sm_lanes_write(d->lanes);
	d->routed = !*ret;
	if (*ret != -ENOSPC)
		return true;
	*ret = 0;
	base_log_warning(
	        sm,
	        "dfsssp routing: %u lanes are too few to be free of deadlock; the fabric is "
	        "routed as with updn",
	        net->f->settings.routing_lanes);
	return false;
}
