/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cores of multicast trees: the switch where a tree has its root. Called by sm_trees.c.
 *
 * A switch's height is its distance from the switches with hosts. The core of a group is one of the
 * highest switches straight above its first member: a spine of a fat tree, and on a torus, where
 * all switches have hosts, the member's own. Of several it is the one with the fewest trees, so
 * that trees are spread. From a spine there is one shortest path to each leaf, so the tree has no
 * more links than a tree over these leaves must have.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "subnet/sm_state.h"

#define NO_SWITCH (~0u)
#define MLIDS     (IB_LID_PERMISSIVE - IB_LID_MCAST_FIRST)

struct core {
	unsigned at; /* 1 + the switch; 0: none */
	unsigned turn;
	uint32_t look; /* of the last time that it was asked for, or known to be good */
};

struct sm_cores {
	const struct sm_net *net;
	struct core *core; /* by MLID - 0xC000 */
	uint32_t *trees;   /* by switch: trees that have their core there */
	uint16_t *height;  /* by switch */
	bool *has_hosts;
	unsigned *queue, *above; /* scratch */
	bool *seen;
	unsigned turns;
	uint32_t looks;
};

static bool has_hosts(const struct fabric_node *sw)
{
	for (unsigned k = 1; k <= sw->n_ports; k++)
		if (sw->port[k].peer && sw->port[k].peer->node->type == FABRIC_HCA)
			return true;
	return false;
}

int sm_cores_new(struct sm_cores **out, struct sm_net *net)
{
	struct sm_cores *c = calloc(1, sizeof(*c));
	size_t n = net->n + 1;

	if (!c)
		return -ENOMEM;
	c->net = net;
	c->core = calloc(MLIDS, sizeof(*c->core));
	c->trees = calloc(n, sizeof(*c->trees));
	c->height = calloc(n, sizeof(*c->height));
	c->has_hosts = calloc(n, sizeof(*c->has_hosts));
	c->queue = calloc(n, sizeof(*c->queue));
	c->above = calloc(n, sizeof(*c->above));
	c->seen = calloc(n, sizeof(*c->seen));
	if (!c->core || !c->trees || !c->height || !c->has_hosts || !c->queue || !c->above ||
	    !c->seen) {
		sm_cores_free(c);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < net->n; i++)
		c->has_hosts[i] = has_hosts(net->sw[i]);
	*out = c;
	return 0;
}

void sm_cores_free(struct sm_cores *c)
{
	free(c->core);
	free(c->trees);
	free(c->height);
	free(c->has_hosts);
	free(c->queue);
	free(c->above);
	free(c->seen);
	free(c);
}

void sm_cores_look(struct sm_cores *c)
{
	const struct sm_net *net = c->net;
	unsigned head = 0, tail = 0;

	c->looks++;
	memset(c->height, 0xFF, net->n * sizeof(*c->height));
	for (unsigned i = 0; i < net->n; i++) {
		if (!c->has_hosts[i] || net->sw[i]->dead)
			continue;
		c->height[i] = 0;
		c->queue[tail++] = i;
	}
	while (head < tail) {
		unsigned at = c->queue[head++];

		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
			const struct sm_link *l = &net->link[k];

			if (!l->up || c->height[l->to] != SM_FAR)
				continue;
			c->height[l->to] = c->height[at] + 1;
			c->queue[tail++] = l->to;
		}
	}
}

unsigned sm_core_height(const struct sm_cores *c, unsigned core)
{
	return c->height[core] == SM_FAR ? 0 : c->height[core];
}

/* Adds the switches one link above @at to the queue. */
static unsigned climb(struct sm_cores *c, unsigned at, unsigned tail)
{
	const struct sm_net *net = c->net;

	for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
		const struct sm_link *l = &net->link[k];

		if (!l->up || c->seen[l->to] || c->height[l->to] != c->height[at] + 1)
			continue;
		c->seen[l->to] = true;
		c->queue[tail++] = l->to;
	}
	return tail;
}

/* Lists the highest switches straight above @edge. How many there are: at least one. */
static unsigned list_above(struct sm_cores *c, unsigned edge)
{
	unsigned head = 0, tail = 0, first = 0;

	memset(c->seen, 0, c->net->n * sizeof(*c->seen));
	c->queue[tail++] = edge;
	while (head < tail) {
		unsigned at = c->queue[head];

		if (c->height[at] != c->height[c->queue[first]])
			first = head; /* the first of this height */
		tail = climb(c, at, tail);
		head++;
	}
	memcpy(c->above, &c->queue[first], (tail - first) * sizeof(*c->above));
	return tail - first;
}

/* The one with the fewest trees; NO_SWITCH: none. It is taken out. */
static unsigned take_best(struct sm_cores *c, unsigned n)
{
	unsigned best = NO_SWITCH, core;

	for (unsigned i = 0; i < n; i++)
		if (c->above[i] != NO_SWITCH &&
		    (best == NO_SWITCH || c->trees[c->above[i]] < c->trees[c->above[best]]))
			best = i;
	if (best == NO_SWITCH)
		return NO_SWITCH;
	core = c->above[best];
	c->above[best] = NO_SWITCH;
	return core;
}

unsigned sm_core_other(struct sm_cores *c, unsigned edge, unsigned i)
{
	unsigned n = list_above(c, edge), core = NO_SWITCH;

	for (unsigned k = 0; k <= i; k++)
		core = take_best(c, n);
	return core;
}

void sm_core_set(struct sm_cores *c, uint16_t mlid, unsigned core)
{
	struct core *of = &c->core[mlid - IB_LID_MCAST_FIRST];

	if (of->at)
		c->trees[of->at - 1]--;
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

unsigned sm_core_get(struct sm_cores *c, uint16_t mlid, unsigned edge, unsigned *turn, bool *check)
{
	struct core *of = &c->core[mlid - IB_LID_MCAST_FIRST];

	*check = of->look != c->looks;
	of->look = c->looks;
	if (!of->at || c->net->sw[of->at - 1]->dead) {
		sm_core_set(c, mlid, sm_core_other(c, edge, 0));
		of->turn = c->turns++;
	}
	*turn = of->turn;
	return of->at - 1;
}
