/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Up/down routing: switches are ranked by their distance from the roots of the fabric, and a path
 * that has gone down never goes up again, towards the roots. So the links on a circle cannot wait
 * for each other's buffers (a credit loop), which shortest paths alone do not prevent.
 *
 * The roots are the switches farthest from the switches with hosts: the spines of a fat tree. If
 * there are none, the switch in the middle is the only root. The order of ranks is mended
 * (sm_order.c), so all hosts that links connect reach each other by way of one root, at least.
 * Between two roots there may be no path, as with OpenSM; no host needs one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "subnet/sm_state.h"

struct sm_updn {
	struct sm_net *net;
	uint16_t *rank; /* 0: a root */
	struct sm_order *order;
	bool *is_down; /* by switch: its path to the measured root only goes down */
	/* while ranking */
	unsigned *island;       /* by switch: the lowest switch connected to it */
	uint16_t *top;          /* by island: its highest level */
	bool *single;           /* by island: it has one root, */
	unsigned *middle;       /* this one; */
	uint64_t *eccentricity; /* how far it is from the others, the less the better */
	enum { RANKED, FIND_MIDDLES } phase;
	unsigned next;  /* switch of the phase */
	uint16_t *hops; /* scratch */
	unsigned *queue;
};

int sm_updn_new(struct sm_updn **out, struct sm_net *net)
{
	struct sm_updn *u = calloc(1, sizeof(*u));
	size_t n = net->n + 1;

	if (!u)
		return -ENOMEM;
	u->net = net;
	u->rank = calloc(n, sizeof(*u->rank));
	u->is_down = calloc(n, sizeof(*u->is_down));
	u->island = calloc(n, sizeof(*u->island));
	u->top = calloc(n, sizeof(*u->top));
	u->single = calloc(n, sizeof(*u->single));
	u->middle = calloc(n, sizeof(*u->middle));
	u->eccentricity = calloc(n, sizeof(*u->eccentricity));
	u->hops = calloc(n, sizeof(*u->hops));
	u->queue = calloc(n, sizeof(*u->queue));
	if (!u->rank || !u->is_down || !u->island || !u->top || !u->single || !u->middle ||
	    !u->eccentricity || !u->hops || !u->queue || sm_order_new(&u->order, net)) {
		sm_updn_free(u);
		return -ENOMEM;
	}
	*out = u;
	return 0;
}

void sm_updn_free(struct sm_updn *u)
{
	if (u->order)
		sm_order_free(u->order);
	free(u->rank);
	free(u->is_down);
	free(u->island);
	free(u->top);
	free(u->single);
	free(u->middle);
	free(u->eccentricity);
	free(u->hops);
	free(u->queue);
	free(u);
}

/* ---- ranks ---- */

static void set_far(const struct sm_updn *u, uint16_t *dist)
{
	memset(dist, 0xFF, u->net->n * sizeof(*dist));
}

/* Finds the highest level of each island. */
static void find_tops(struct sm_updn *u)
{
	const uint16_t *level = u->net->level;

	memset(u->top, 0, u->net->n * sizeof(*u->top));
	for (unsigned i = 0; i < u->net->n; i++)
		if (level[i] != SM_FAR && level[i] > u->top[u->island[i]])
			u->top[u->island[i]] = level[i];
	for (unsigned i = 0; i < u->net->n; i++)
		u->single[i] = !u->top[i];
}

/* Makes a switch the middle of its island if its largest distance is the smallest so far; of equal
 * ones, the sum. */
static void try_middle(struct sm_updn *u, unsigned at)
{
	unsigned island = u->island[at], reached;
	uint64_t sum = 0;

	set_far(u, u->hops);
	u->hops[at] = 0;
	reached = sm_net_measure(u->net, u->hops, u->queue);
	for (unsigned k = 0; k < reached; k++)
		sum += u->hops[u->queue[k]];
	sum |= (uint64_t)u->hops[u->queue[reached - 1]] << 40; /* the last is the farthest */
	if (sum >= u->eccentricity[island])
		return;
	u->eccentricity[island] = sum;
	u->middle[island] = at;
}

static void rank_all(struct sm_updn *u)
{
	unsigned n = u->net->n, moved;

	set_far(u, u->rank);
	for (unsigned i = 0; i < n; i++)
		if (!u->single[u->island[i]] && u->net->level[i] == u->top[u->island[i]])
			u->rank[i] = 0;
	for (unsigned i = 0; i < n; i++)
		if (u->island[i] == i && u->single[i])
			u->rank[u->middle[i]] = 0;
	sm_net_measure(u->net, u->rank, u->queue);
	sm_order_by_rank(u->order, u->rank);
	moved = sm_order_mend(u->order);
	if (moved)
		base_log_info(sm,
		              "up/down routing: links lead down to all hosts from no root that was "
		              "found; they do as %u switches have another place",
		              moved);
}

void sm_updn_begin(struct sm_updn *u)
{
	sm_net_find_islands(u->net, u->island, u->queue);
	find_tops(u);
	memset(u->eccentricity, 0xFF, u->net->n * sizeof(*u->eccentricity));
	u->phase = FIND_MIDDLES;
	u->next = 0;
}

bool sm_updn_step(struct sm_updn *u, uint32_t *budget)
{
	const uint32_t cost = u->net->n + u->net->first[u->net->n] / 4;

	while (u->phase != RANKED && *budget) {
		unsigned at = u->next++;

		if (at == u->net->n) {
			rank_all(u);
			u->phase = RANKED;
		} else if (u->single[u->island[at]]) {
			try_middle(u, at);
		} else {
			continue;
		}
		*budget -= cost < *budget ? cost : *budget;
	}
	return u->phase == RANKED;
}

const struct sm_order *sm_updn_order(const struct sm_updn *u)
{
	return u->order;
}

/* ---- paths ---- */

/* Measures the paths that only go down. */
static void measure_down(struct sm_updn *u, unsigned root, uint16_t *hops)
{
	const struct sm_net *net = u->net;
	unsigned head = 0, tail = 0;

	hops[root] = 0;
	u->is_down[root] = true;
	u->queue[tail++] = root;
	while (head < tail) {
		unsigned at = u->queue[head++];

		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
			const struct sm_link *l = &net->link[k];

			if (!l->up || u->order->place[l->to] >= u->order->place[at] ||
			    hops[l->to] != SM_FAR)
				continue;
			hops[l->to] = hops[at] + 1;
			u->is_down[l->to] = true;
			u->queue[tail++] = l->to;
		}
	}
}

/* Measures the other paths, which go up first. Switches above are measured before those below. */
static void measure_up(struct sm_updn *u, uint16_t *hops)
{
	const struct sm_net *net = u->net;

	for (unsigned i = 0; i < net->n; i++) {
		unsigned at = u->order->sorted[i];

		if (u->is_down[at])
			continue;
		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
			const struct sm_link *l = &net->link[k];

			if (l->up && u->order->place[l->to] < i && hops[l->to] != SM_FAR &&
			    hops[l->to] + 1 < hops[at])
				hops[at] = hops[l->to] + 1;
		}
	}
}

void sm_updn_measure(struct sm_updn *u, unsigned root, uint16_t *hops)
{
	set_far(u, hops);
	memset(u->is_down, 0, u->net->n * sizeof(*u->is_down));
	if (u->net->sw[root]->dead)
		return;
	measure_down(u, root, hops);
	measure_up(u, hops);
}

bool sm_updn_may_go(const struct sm_updn *u, unsigned from, unsigned to)
{
	if (u->is_down[from]) /* packets from above may come through here: they may only go down */
		return u->is_down[to] && u->order->place[to] > u->order->place[from];
	return u->order->place[to] < u->order->place[from];
}
