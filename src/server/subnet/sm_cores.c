/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cores of multicast trees: the switch where a tree has its root. Called by sm_trees.c.
 *
 * Messages to groups go up to the core and down from it, in the order of the unicast paths
 * (sm_order.c). So the ways from a core lead down to all members. It is a top of the order: one of
 * the highest switches above the first member, a spine of a fat tree, and of several the one with
 * the fewest trees, so that trees are spread. From a spine there is one shortest path to each leaf,
 * so the tree has no more links than a tree over these leaves must have. If it is not above
 * somebody who joins later, as links have failed, another one is the core then.
 *
 * Where all switches have hosts, as on a torus, there is one top, in the middle of the fabric, and
 * all trees would lead there. So any switch can be a core there: the lowest one above all members,
 * at first the first one's own, and others as they join.
 *
 * Shortest paths have no order (minhop): then it is that of the levels. Where all switches have
 * hosts these say nothing: the core is the first member's own switch, and stays it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "subnet/sm_state.h"

#define MLIDS (IB_LID_PERMISSIVE - IB_LID_MCAST_FIRST)

struct core {
	unsigned at; /* 1 + the switch; 0: none */
	unsigned turn;
	uint32_t look;  /* of the last time that it was asked for, or known to be good */
	uint32_t order; /* the order that its tree obeys; 0: none */
};

struct sm_cores {
	const struct sm_net *net;
	struct core *core; /* by MLID - 0xC000 */
	uint32_t *trees;   /* by switch: trees that have their core there */
	struct sm_order *order, *levels;
	bool by_levels;      /* the order is that of the levels */
	bool known;          /* its tops are, by the last look */
	uint64_t *common;    /* scratch: bits of tops */
	unsigned *candidate; /* scratch */
	unsigned turns;
	uint32_t looks, orders;
};

int sm_cores_new(struct sm_cores **out, struct sm_net *net)
{
	struct sm_cores *c = calloc(1, sizeof(*c));
	size_t n = net->n + 1;

	if (!c)
		return -ENOMEM;
	c->net = net;
	c->by_levels = true;
	c->orders = 1;
	c->core = calloc(MLIDS, sizeof(*c->core));
	c->trees = calloc(n, sizeof(*c->trees));
	c->common = calloc(SM_TOPS / 64, sizeof(*c->common));
	c->candidate = calloc(SM_TOPS, sizeof(*c->candidate));
	if (!c->core || !c->trees || !c->common || !c->candidate || sm_order_new(&c->order, net) ||
	    sm_order_new(&c->levels, net)) {
		sm_cores_free(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

void sm_cores_free(struct sm_cores *c)
{
	if (c->order)
		sm_order_free(c->order);
	if (c->levels)
		sm_order_free(c->levels);
	free(c->core);
	free(c->trees);
	free(c->common);
	free(c->candidate);
	free(c);
}

void sm_cores_look(struct sm_cores *c)
{
	c->looks++;
	c->known = false;
}

void sm_cores_obey(struct sm_cores *c, const struct sm_order *order)
{
	bool by_levels = !order;

	if (!order) {
		sm_order_by_level(c->levels);
		sm_order_mend(c->levels);
		order = c->levels;
	}
	if (!sm_order_copy(c->order, order) && by_levels == c->by_levels)
		return;
	c->by_levels = by_levels;
	c->known = false;
	c->orders++;
}

/* The tops, by the links that are up. */
static void know(struct sm_cores *c)
{
	if (!c->known)
		sm_order_find_tops(c->order);
	c->known = true;
}

unsigned sm_core_height(const struct sm_cores *c, unsigned core)
{
	return c->net->level[core] == SM_FAR ? 0 : c->net->level[core];
}

unsigned sm_core_island(struct sm_cores *c, unsigned at)
{
	know(c);
	return c->order->island[at];
}

const struct sm_order *sm_core_order(struct sm_cores *c, unsigned at)
{
	know(c);
	return c->by_levels && c->order->is_flat[c->order->island[at]] ? NULL : c->order;
}

/* ---- candidates ---- */

/* Whether ways lead down from @core to all of these switches in its island, and some are there. */
static bool is_above(const struct sm_cores *c, unsigned core, const unsigned *edge, unsigned n)
{
	const struct sm_order *o = c->order;
	unsigned top = o->top[core], island = o->island[core];
	bool any = false;

	for (unsigned i = 0; i < n && top != SM_NO_SWITCH; i++) {
		if (o->island[edge[i]] != island)
			continue;
		any = true;
		if (!(sm_order_above(o, edge[i])[top / 64] >> (top % 64) & 1))
			return false;
	}
	return any;
}

/* Lists the tops of the first one's island that are above all of these switches in it. */
static unsigned list_above(struct sm_cores *c, const unsigned *edge, unsigned n)
{
	const struct sm_order *o = c->order;
	unsigned island = o->island[edge[0]], found = 0;

	memset(c->common, 0xFF, o->words * sizeof(*c->common));
	for (unsigned i = 0; i < n; i++)
		for (unsigned w = 0; w < o->words && o->island[edge[i]] == island; w++)
			c->common[w] &= sm_order_above(o, edge[i])[w];
	for (unsigned i = 0; i < c->net->n; i++) {
		unsigned top = o->top[i];

		if (o->island[i] == island && top != SM_NO_SWITCH &&
		    (c->common[top / 64] >> (top % 64) & 1))
			c->candidate[found++] = i;
	}
	return found;
}

/* Whether @a is the better one: higher, or with fewer trees; where all switches have hosts, nearer
 * to the members. */
static bool is_better(const struct sm_cores *c, unsigned a, unsigned b)
{
	if (c->order->is_flat[c->order->island[a]])
		return c->order->place[a] > c->order->place[b];
	if (c->net->level[a] != c->net->level[b])
		return c->net->level[a] > c->net->level[b];
	return c->trees[a] < c->trees[b];
}

unsigned sm_core_list(struct sm_cores *c, const unsigned *edge, unsigned n, unsigned *core,
                      unsigned room)
{
	unsigned found = 0, listed = 0;

	know(c);
	if (sm_core_order(c, edge[0])) {
		found = list_above(c, edge, n);
		/* in mid-sweep there may be none; one of them is then the best start */
		if (!found)
			found = list_above(c, edge, 1);
	}
	if (!found)
		c->candidate[found++] = edge[0];
	for (; listed < room && listed < found; listed++) {
		unsigned best = listed;

		for (unsigned i = listed + 1; i < found; i++)
			if (is_better(c, c->candidate[i], c->candidate[best]))
				best = i;
		core[listed] = c->candidate[best];
		/* the others stay in their order, so equal ones have turns by their index */
		memmove(&c->candidate[listed + 1], &c->candidate[listed],
		        (best - listed) * sizeof(*c->candidate));
		c->candidate[listed] = core[listed];
	}
	return listed;
}

/* ---- the cores of trees ---- */

void sm_core_set(struct sm_cores *c, uint16_t mlid, unsigned core)
{
	struct core *of = &c->core[mlid - IB_LID_MCAST_FIRST];

	if (of->at)
		c->trees[of->at - 1]--;
	else
		of->turn = c->turns++;
	of->at = core + 1;
	c->trees[core]++;
}

void sm_core_put(struct sm_cores *c, uint16_t mlid)
{
	struct core *of = &c->core[mlid - IB_LID_MCAST_FIRST];

	if (of->at)
		c->trees[of->at - 1]--;
	of->at = 0;
}

void sm_core_keep(struct sm_cores *c, uint16_t mlid)
{
	c->core[mlid - IB_LID_MCAST_FIRST].look = c->looks;
}

void sm_core_obeys(struct sm_cores *c, uint16_t mlid, bool obeys)
{
	c->core[mlid - IB_LID_MCAST_FIRST].order = obeys ? c->orders : 0;
}

bool sm_core_is_stale(const struct sm_cores *c, uint16_t mlid)
{
	const struct core *of = &c->core[mlid - IB_LID_MCAST_FIRST];

	return of->at && of->order != c->orders;
}

unsigned sm_core_get(struct sm_cores *c, uint16_t mlid, const unsigned *edge, unsigned n,
                     bool *check)
{
	struct core *of = &c->core[mlid - IB_LID_MCAST_FIRST];
	unsigned core = of->at - 1;

	know(c);
	*check = of->look != c->looks;
	of->look = c->looks;
	if (!of->at || c->net->sw[core]->dead)
		return SM_NO_SWITCH;
	if (sm_core_order(c, core) ? !is_above(c, core, edge, n)
	                           : sm_core_order(c, edge[0]) != NULL)
		return SM_NO_SWITCH;
	return core;
}

unsigned sm_core_turn(const struct sm_cores *c, uint16_t mlid)
{
	const struct core *of = &c->core[mlid - IB_LID_MCAST_FIRST];

	return of->at ? of->turn : c->turns;
}
