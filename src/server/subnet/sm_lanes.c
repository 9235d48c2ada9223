/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lanes that make paths free of deadlock. A packet that waits for a buffer behind one link holds
 * one behind the link before: the links of a lane, and which waits for which, are its channel
 * dependency graph. If no lane's graph has a circle, packets cannot wait for each other in one
 * (Dally and Seitz). Called by sm_dfsssp.c when all paths are chosen.
 *
 * Each path, from a switch to a LID, gets the first lane that it fits in. The first one is for
 * those that go up and then down, as the trees of groups do in the same order (sm_cores.c): so
 * groups have a lane in which no circle can be, whichever there are, and need no other service
 * level when links fail. In the others each graph has a topological order, which is repaired when a
 * dependency does not fit in (Pearce and Kelly, 2006). Links to hosts wait for nothing, and are
 * left out. So are paths between switches without hosts: nobody sends there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "fabric/forwarding/flow.h"
#include "fabric/model/lanes.h"
#include "subnet/sm_routes.h"

/*
 * A dependency is from a link to one that begins where it ends: number i of the links there has
 * index ->base[link] + i. Bits by lane.
 */
struct sm_lanes {
	struct sm_routes *r;
	size_t *base;
	uint32_t *reverse;         /* by link: the link back by the same cable */
	uint8_t *present;          /* by dependency: it is in that lane's graph */
	uint8_t *closes;           /* it would close a circle */
	uint32_t *place[SM_LANES]; /* by link: its place in the order of a lane; NULL: not in use */
	uint32_t *updown;          /* by link: its place in the order of up/down paths */
	uint32_t *initial;         /* by link: its first place in the lanes but 0 */
	uint8_t **lane;            /* by LID: by switch; NULL: all have lane 0 */
	unsigned n_lanes;          /* in use */
	uint8_t **told;            /* the same of the paths that are in the tables */
	unsigned n_told;           /* 0: nobody knows */
	const uint8_t *row;        /* the out ports for the LID whose paths get their lanes */
	uint32_t work;             /* links that were listed, for the caller to spend */
	unsigned node;             /* where sm_lanes_write() goes on */
	/* scratch */
	uint32_t *stack, *ahead, *behind, *places;
	uint32_t n_stack, n_ahead, n_behind;
	bool *seen;               /* by link */
	struct dependency *added; /* by the paths that are tried */
	uint32_t n_added, added_room;
};

struct dependency {
	uint32_t from, to; /* links */
	size_t index;
};

/* ---- life ---- */

static void lay_out(struct sm_lanes *l)
{
	const struct sm_net *net = l->r->net;
	size_t n = 0;

	for (unsigned i = 0; i < net->n; i++)
		for (unsigned k = net->first[i]; k < net->first[i + 1]; k++) {
			unsigned to = net->link[k].to;
			const struct fabric_port *there = net->sw[i]->port[net->link[k].port].peer;

			l->base[k] = n;
			n += net->first[to + 1] - net->first[to];
			l->reverse[k] = l->r->load.link[l->r->load.first[to] + there->num] - 1;
		}
	l->base[net->first[net->n]] = n;
}

int sm_lanes_new(struct sm_lanes **out, struct sm_routes *r)
{
	struct sm_lanes *l = calloc(1, sizeof(*l));
	size_t n_links = r->net->first[r->net->n] + 1;

	if (!l)
		return -ENOMEM;
	l->r = r;
	l->base = calloc(n_links, sizeof(*l->base));
	l->reverse = calloc(n_links, sizeof(*l->reverse));
	l->updown = calloc(n_links, sizeof(*l->updown));
	l->initial = calloc(n_links, sizeof(*l->initial));
	l->lane = calloc(IB_LID_MCAST_FIRST, sizeof(*l->lane));
	l->told = calloc(IB_LID_MCAST_FIRST, sizeof(*l->told));
	l->stack = calloc(n_links, sizeof(*l->stack));
	l->ahead = calloc(n_links, sizeof(*l->ahead));
	l->behind = calloc(n_links, sizeof(*l->behind));
	l->places = calloc(n_links, sizeof(*l->places));
	l->seen = calloc(n_links, sizeof(*l->seen));
	if (!l->base || !l->reverse || !l->updown || !l->initial || !l->lane || !l->told ||
	    !l->stack || !l->ahead || !l->behind || !l->places || !l->seen) {
		sm_lanes_free(l);
		return -ENOMEM;
	}
	lay_out(l);
	*out = l;
	return 0;
}

static void forget_lanes(uint8_t **lane)
{
	for (unsigned i = 0; lane && i < IB_LID_MCAST_FIRST; i++) {
		free(lane[i]);
		lane[i] = NULL;
	}
}

void sm_lanes_free(struct sm_lanes *l)
{
	forget_lanes(l->lane);
	forget_lanes(l->told);
	for (unsigned i = 0; i < SM_LANES; i++)
		free(l->place[i]);
	free(l->base);
	free(l->reverse);
	free(l->updown);
	free(l->initial);
	free(l->present);
	free(l->closes);
	free(l->lane);
	free(l->told);
	free(l->stack);
	free(l->ahead);
	free(l->behind);
	free(l->places);
	free(l->seen);
	free(l->added);
	free(l);
}

int sm_lanes_of(const struct sm_lanes *l, unsigned at, uint16_t lid)
{
	if (l->n_told < 2 || lid >= IB_LID_MCAST_FIRST)
		return -1;
	return l->told[lid] ? l->told[lid][at] : 0;
}

unsigned sm_lanes_count(const struct sm_lanes *l)
{
	return l->n_told;
}

void sm_lanes_tell(struct sm_lanes *l, bool known)
{
	uint8_t **lane = l->lane;

	forget_lanes(l->told);
	l->n_told = known ? l->n_lanes : 0;
	if (!known)
		return;
	l->lane = l->told;
	l->told = lane;
}

/* ---- one graph ---- */

/* Puts @link on the stack, once. */
static void visit(struct sm_lanes *l, uint32_t link)
{
	if (l->seen[link])
		return;
	l->seen[link] = true;
	l->stack[l->n_stack++] = link;
}

/* Lists the links that @to waits for, as far as the place @last. False: one of them is at @last. */
static bool list_ahead(struct sm_lanes *l, unsigned lane, uint32_t to, uint32_t last)
{
	const struct sm_net *net = l->r->net;
	const uint32_t *place = l->place[lane];

	visit(l, to);
	while (l->n_stack) {
		uint32_t link = l->stack[--l->n_stack];
		unsigned at = net->link[link].to;

		l->ahead[l->n_ahead++] = link;
		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
			if (!(l->present[l->base[link] + k - net->first[at]] >> lane & 1))
				continue;
			if (place[k] == last)
				return false;
			if (place[k] < last)
				visit(l, k);
		}
	}
	return true;
}

/* Lists the links that wait for @from, back to the place @first. */
static void list_behind(struct sm_lanes *l, unsigned lane, uint32_t from, uint32_t first)
{
	const struct sm_net *net = l->r->net;

	visit(l, from);
	while (l->n_stack) {
		uint32_t link = l->stack[--l->n_stack];
		unsigned at = net->link[l->reverse[link]].to; /* where it begins */

		l->behind[l->n_behind++] = link;
		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
			uint32_t in = l->reverse[k];

			if (l->place[lane][in] > first &&
			    (l->present[l->base[in] + link - net->first[at]] >> lane & 1))
				visit(l, in);
		}
	}
}

static int compare(const void *a, const void *b, void *arg)
{
	const uint32_t *place = arg, x = place[*(const uint32_t *)a],
	               y = place[*(const uint32_t *)b];

	return x < y ? -1 : x > y;
}

static int compare_places(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Those behind, and then those ahead, get the places that all of them have. */
static void reorder(struct sm_lanes *l, unsigned lane)
{
	uint32_t *place = l->place[lane], n = 0;

	qsort_r(l->behind, l->n_behind, sizeof(*l->behind), compare, place);
	qsort_r(l->ahead, l->n_ahead, sizeof(*l->ahead), compare, place);
	for (uint32_t i = 0; i < l->n_behind; i++)
		l->places[n++] = place[l->behind[i]];
	for (uint32_t i = 0; i < l->n_ahead; i++)
		l->places[n++] = place[l->ahead[i]];
	qsort(l->places, n, sizeof(*l->places), compare_places);
	n = 0;
	for (uint32_t i = 0; i < l->n_behind; i++)
		place[l->behind[i]] = l->places[n++];
	for (uint32_t i = 0; i < l->n_ahead; i++)
		place[l->ahead[i]] = l->places[n++];
}

static void forget_lists(struct sm_lanes *l)
{
	l->work += 24 * (l->n_ahead + l->n_behind); /* they are sorted, and their links looked at */
	while (l->n_stack)
		l->seen[l->stack[--l->n_stack]] = false;
	for (uint32_t i = 0; i < l->n_ahead; i++)
		l->seen[l->ahead[i]] = false;
	for (uint32_t i = 0; i < l->n_behind; i++)
		l->seen[l->behind[i]] = false;
	l->n_ahead = l->n_behind = 0;
}

/* Adds a dependency to the graph of a lane. False: it would close a circle. */
static bool insert(struct sm_lanes *l, unsigned lane, const struct dependency *d)
{
	uint32_t *place = l->place[lane];
	bool fits = d->from != d->to; /* a cable from a switch to itself */

	if (place[d->from] > place[d->to]) {
		fits = list_ahead(l, lane, d->to, place[d->from]);
		if (fits) {
			list_behind(l, lane, d->from, place[d->to]);
			reorder(l, lane);
		}
		forget_lists(l);
	}
	if (fits)
		l->present[d->index] |= (uint8_t)(1u << lane);
	return fits;
}

/* ---- paths ---- */

/* Takes out what the paths that are tried have added. */
static void take_back(struct sm_lanes *l, unsigned lane)
{
	while (l->n_added)
		l->present[l->added[--l->n_added].index] &= (uint8_t) ~(1u << lane);
}

static struct dependency dependency(const struct sm_lanes *l, uint32_t link, uint32_t next)
{
	const struct sm_net *net = l->r->net;

	return (struct dependency){ link, next,
		                    l->base[link] + next - net->first[net->link[link].to] };
}

/* A dependency of a path. 0; -EDEADLK: the lane has no room for it; -ENOMEM. */
static int try_dependency(struct sm_lanes *l, unsigned lane, const struct dependency *d)
{
	if (l->present[d->index] >> lane & 1)
		return 0;
	if (l->closes[d->index] >> lane & 1)
		return -EDEADLK;
	if (base_array_reserve(&l->added, &l->added_room, (size_t)l->n_added + 1))
		return -ENOMEM;
	if (insert(l, lane, d)) {
		l->added[l->n_added++] = *d;
		return 0;
	}
	take_back(l, lane);
	if (insert(l, lane, d)) /* without the rest of these paths it would fit */
		l->present[d->index] &= (uint8_t) ~(1u << lane);
	else
		l->closes[d->index] |= (uint8_t)(1u << lane);
	return -EDEADLK;
}

/* The link by which switch @at sends to the LID; SM_NOBODY: by none to another switch. */
static uint32_t next_link(const struct sm_lanes *l, unsigned at)
{
	const struct sm_routes *r = l->r;
	unsigned port = l->row[at];

	if (port > r->net->sw[at]->n_ports)
		return SM_NOBODY;
	return r->load.link[r->load.first[at] + port] - 1;
}

/* The path from switch @at to the LID. As try_dependency(). */
static int try_path(struct sm_lanes *l, unsigned lane, unsigned at)
{
	uint32_t link = next_link(l, at), next;
	int ret = 0;

	for (; link != SM_NOBODY && !ret; link = next) {
		struct dependency d;

		next = next_link(l, l->r->net->link[link].to);
		if (next == SM_NOBODY)
			break;
		d = dependency(l, link, next);
		ret = try_dependency(l, lane, &d);
	}
	return ret;
}

/* Whether the path from switch @at to the LID goes up and then down. */
static bool is_up_down(const struct sm_lanes *l, unsigned at)
{
	uint32_t link = next_link(l, at), next;

	for (; link != SM_NOBODY; link = next) {
		next = next_link(l, l->r->net->link[link].to);
		if (next != SM_NOBODY && l->updown[link] >= l->updown[next])
			return false;
	}
	return true;
}

/* ---- all ---- */

/* The order of up/down paths: up, from the lowest switches, and then down. */
static void list_updown(struct sm_lanes *l)
{
	const struct sm_net *net = l->r->net;
	const struct sm_order *o = sm_updn_order(l->r->updn);
	uint32_t n = 0;

	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < net->n; i++) {
			unsigned at = o->sorted[pass ? i : net->n - 1 - i];

			for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
				unsigned to = net->link[k].to;

				if ((o->place[to] < o->place[at]) == !pass)
					l->updown[k] = n++;
			}
		}
}

static int use_lane(struct sm_lanes *l, unsigned lane)
{
	size_t n_links = l->r->net->first[l->r->net->n];

	if (lane < l->n_lanes)
		return 0;
	if (!l->place[lane])
		l->place[lane] = calloc(n_links + 1, sizeof(*l->place[lane]));
	if (!l->place[lane])
		return -ENOMEM;
	memcpy(l->place[lane], l->initial, n_links * sizeof(*l->initial));
	l->n_lanes = lane + 1;
	return 0;
}

static int set_lane(struct sm_lanes *l, unsigned lane, unsigned at, uint16_t lid)
{
	if (!lane) /* the one of every LID that has no other */
		return 0;
	if (!l->lane[lid])
		l->lane[lid] = calloc(l->r->net->n, sizeof(**l->lane));
	if (!l->lane[lid])
		return -ENOMEM;
	l->lane[lid][at] = (uint8_t)lane;
	return 0;
}

/* Gives the path from switch @at to a LID the first lane that has room for it. */
static int assign_path(struct sm_lanes *l, unsigned at, uint16_t lid)
{
	if (is_up_down(l, at))
		return set_lane(l, SM_UPDN_LANE, at, lid);
	for (unsigned lane = SM_UPDN_LANE + 1; lane < l->r->net->f->settings.routing_lanes;
	     lane++) {
		int ret = use_lane(l, lane);

		if (!ret)
			ret = try_path(l, lane, at);
		if (ret == -EDEADLK) {
			take_back(l, lane);
			continue;
		}
		l->n_added = 0;
		return ret ? ret : set_lane(l, lane, at, lid);
	}
	return -ENOSPC;
}

/* Empties the graphs. Fresh pages cost nothing where no path comes. */
static int clear_graphs(struct sm_lanes *l)
{
	size_t n = l->base[l->r->net->first[l->r->net->n]];

	free(l->present);
	free(l->closes);
	l->present = calloc(n + 1, sizeof(*l->present));
	l->closes = calloc(n + 1, sizeof(*l->closes));
	forget_lanes(l->lane);
	l->n_lanes = 0;
	return l->present && l->closes ? 0 : -ENOMEM;
}

int sm_lanes_clear(struct sm_lanes *l)
{
	int ret = clear_graphs(l);

	list_updown(l);
	memcpy(l->initial, l->updown, l->r->net->first[l->r->net->n] * sizeof(*l->initial));
	return ret ? ret : use_lane(l, 0);
}

/* All but lane 0 begin with the order that this has come to while paths were chosen. */
int sm_lanes_begin(struct sm_lanes *l)
{
	int ret = clear_graphs(l);

	l->n_lanes = 1;
	memcpy(l->initial, l->place[0], l->r->net->first[l->r->net->n] * sizeof(*l->initial));
	return ret;
}

int sm_lanes_assign(struct sm_lanes *l, unsigned at, uint16_t lid, const uint8_t *row)
{
	l->row = row;
	return assign_path(l, at, lid);
}

uint32_t sm_lanes_spend(struct sm_lanes *l)
{
	uint32_t work = l->work;

	l->work = 0;
	return work;
}

/* ---- while paths are chosen ---- */

bool sm_lanes_suits(const struct sm_lanes *l, unsigned link, unsigned next)
{
	return (l->present[dependency(l, link, next).index] & 1) ||
	       l->place[0][link] < l->place[0][next];
}

void sm_lanes_note(struct sm_lanes *l, unsigned link, unsigned next)
{
	const struct dependency d = dependency(l, link, next);

	if (!((l->present[d.index] | l->closes[d.index]) & 1) && !insert(l, 0, &d))
		l->closes[d.index] |= 1;
}

/* ---- ports ---- */

static int write_port(const struct sm_lanes *l, struct fabric_port *p)
{
	unsigned n_in = p->node->type == FABRIC_SWITCH ? p->node->n_ports + 1 : 1;
	bool few = fabric_lanes_used(p) < l->n_lanes;
	struct wire_sl_to_vl map;
	int ret = 0;

	if (!few && (!p->lanes || !p->lanes->map)) /* SL n has lane n modulo the number of lanes */
		return 0;
	if (few)
		p->link.operational_vls = 0;
	for (unsigned sl = 0; sl < IB_SLS; sl++)
		map.vl[sl] = (uint8_t)(sl % fabric_lanes_used(p));
	for (unsigned in = 0; in < n_in && !ret; in++)
		ret = fabric_lanes_map_write(p, in, &map);
	fabric_flow_lanes_changed(l->r->net->f, p);
	return ret;
}

/* Writes the ports of a node. How many entries that were, about. */
static uint32_t write_node(const struct sm_lanes *l, const struct fabric_node *node, int *ret)
{
	for (unsigned k = 1; k <= node->n_ports && !*ret; k++)
		if (node->port[k].peer)
			*ret = write_port(l, &node->port[k]);
	return node->n_ports * (node->type == FABRIC_SWITCH ? node->n_ports : 1);
}

void sm_lanes_begin_write(struct sm_lanes *l)
{
	l->node = 0;
}

bool sm_lanes_write(struct sm_lanes *l, uint32_t *budget, int *ret)
{
	const struct fabric *f = l->r->net->f;

	*ret = 0;
	while (l->n_lanes > 1 && l->node < f->n_nodes && *budget && !*ret) {
		uint32_t cost = 4 * write_node(l, f->node[l->node++], ret);

		*budget -= cost < *budget ? cost : *budget;
	}
	return l->n_lanes < 2 || l->node == f->n_nodes || *ret;
}
