/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Up/down routing: switches are ranked by their distance from the roots of the fabric, and a path
 * that has gone down never goes up again, towards the roots. So the links on a circle cannot wait
 * for each other's buffers (a credit loop), which shortest paths alone do not prevent.
 *
 * The roots are the switches farthest from the switches with hosts: the spines of a fat tree. If
 * there are none, or if some hosts then have no legal path to each other, the switch in the middle
 * is the only root; over it there is always a path. Between two roots there may be none, as with
 * OpenSM; no host needs one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "subnet/sm_state.h"

struct sm_updn {
	struct sm_net *net;
	uint16_t *rank;   /* 0: a root */
	unsigned *order;  /* the position of a switch in the order of ranks; up is towards 0 */
	unsigned *sorted; /* the switches in that order */
	bool *is_down;    /* by switch: its path to the measured root only goes down */
	/* while ranking */
	unsigned *island;       /* by switch: the lowest switch connected to it */
	uint16_t *level;        /* by switch: the distance from hosts */
	uint16_t *top;          /* by island: its highest level */
	bool *single;           /* by island: it has one root, */
	unsigned *middle;       /* this one; */
	uint64_t *eccentricity; /* how far it is from the others, the less the better */
	bool *has_hosts;
	enum { RANKED, FIND_MIDDLES, TRY_ROOTS } phase;
	unsigned next;  /* switch of the phase */
	bool again;     /* some islands have become single ones */
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
	u->order = calloc(n, sizeof(*u->order));
	u->sorted = calloc(n, sizeof(*u->sorted));
	u->is_down = calloc(n, sizeof(*u->is_down));
	u->island = calloc(n, sizeof(*u->island));
	u->level = calloc(n, sizeof(*u->level));
	u->top = calloc(n, sizeof(*u->top));
	u->single = calloc(n, sizeof(*u->single));
	u->middle = calloc(n, sizeof(*u->middle));
	u->eccentricity = calloc(n, sizeof(*u->eccentricity));
	u->has_hosts = calloc(n, sizeof(*u->has_hosts));
	u->hops = calloc(n, sizeof(*u->hops));
	u->queue = calloc(n, sizeof(*u->queue));
	if (!u->rank || !u->order || !u->sorted || !u->is_down || !u->island || !u->level ||
	    !u->top || !u->single || !u->middle || !u->eccentricity || !u->has_hosts || !u->hops ||
	    !u->queue) {
		sm_updn_free(u);
		return -ENOMEM;
	}
	*out = u;
	return 0;
}

void sm_updn_free(struct sm_updn *u)
{
	free(u->rank);
	free(u->order);
	free(u->sorted);
	free(u->is_down);
	free(u->island);
	free(u->level);
	free(u->top);
	free(u->single);
	free(u->middle);
	free(u->eccentricity);
	free(u->has_hosts);
	free(u->hops);
	free(u->queue);
	free(u);
}

/* ---- ranks ---- */

/*
 * Measures distances from the switches with 0 in @dist; the others have SM_FAR. How many it
 * reached.
 */
static unsigned measure_hops(struct sm_updn *u, uint16_t *dist)
{
	const struct sm_net *net = u->net;
	unsigned head = 0, tail = 0;

	for (unsigned i = 0; i < net->n; i++)
		if (!dist[i])
			u->queue[tail++] = i;
	while (head < tail) {
		unsigned at = u->queue[head++];

		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
			const struct sm_link *l = &net->link[k];

			if (!l->up || dist[l->to] != SM_FAR)
				continue;
			dist[l->to] = dist[at] + 1;
			u->queue[tail++] = l->to;
		}
	}
	return tail;
}

static void set_far(const struct sm_updn *u, uint16_t *dist)
{
	memset(dist, 0xFF, u->net->n * sizeof(*dist));
}

static bool has_hosts(const struct fabric_node *sw)
{
	for (unsigned k = 1; k <= sw->n_ports; k++) {
		const struct fabric_port *end = sm_far_end(&sw->port[k]);

		if (end && end->node->type == FABRIC_HCA)
			return true;
	}
	return false;
}

/* Measures the levels of switches, and the highest one of each island. */
static void find_levels(struct sm_updn *u)
{
	set_far(u, u->level);
	memset(u->top, 0, u->net->n * sizeof(*u->top));
	for (unsigned i = 0; i < u->net->n; i++) {
		u->has_hosts[i] = has_hosts(u->net->sw[i]);
		if (u->has_hosts[i])
			u->level[i] = 0;
	}
	measure_hops(u, u->level);
	for (unsigned i = 0; i < u->net->n; i++)
		if (u->level[i] != SM_FAR && u->level[i] > u->top[u->island[i]])
			u->top[u->island[i]] = u->level[i];
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
	reached = measure_hops(u, u->hops);
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
	unsigned n = u->net->n, placed = 0;

	set_far(u, u->rank);
	for (unsigned i = 0; i < n; i++)
		if (!u->single[u->island[i]] && u->level[i] == u->top[u->island[i]])
			u->rank[i] = 0;
	for (unsigned i = 0; i < n; i++)
		if (u->island[i] == i && u->single[i])
			u->rank[u->middle[i]] = 0;
	measure_hops(u, u->rank);
	for (unsigned rank = 0; placed < n; rank++)
		for (unsigned i = 0; i < n; i++)
			if (u->rank[i] == rank) {
				u->order[i] = placed;
				u->sorted[placed++] = i;
			}
}

/* Whether all hosts of the island have a legal path to the hosts of switch @to. */
static bool is_reached(struct sm_updn *u, unsigned to)
{
	sm_updn_measure(u, to, u->hops);
	for (unsigned i = 0; i < u->net->n; i++)
		if (u->has_hosts[i] && u->island[i] == u->island[to] && u->hops[i] == SM_FAR)
			return false;
	return true;
}

static void begin_phase(struct sm_updn *u, unsigned phase)
{
	u->phase = phase;
	u->next = 0;
	if (phase == FIND_MIDDLES)
		memset(u->eccentricity, 0xFF, u->net->n * sizeof(*u->eccentricity));
}

void sm_updn_begin(struct sm_updn *u)
{
	u->again = false;
	sm_net_find_islands(u->net, u->island, u->queue);
	find_levels(u);
	begin_phase(u, FIND_MIDDLES);
}

/* Whether all hosts reach those of this switch; if not, the island gets one root instead. */
static void try_roots(struct sm_updn *u, unsigned at)
{
	unsigned island = u->island[at];

	if (is_reached(u, at))
		return;
	base_log_warning(sm,
	                 "up/down routing: from the roots that were found no legal path leads from "
	                 "all hosts to those of '%s'; there is one root instead",
	                 u->net->sw[at]->name);
	u->single[island] = u->again = true;
}

/* All switches have had their turns. */
static void end_phase(struct sm_updn *u)
{
	if (u->phase == FIND_MIDDLES) {
		rank_all(u);
		begin_phase(u, u->again ? RANKED : TRY_ROOTS);
	} else {
		begin_phase(u, u->again ? FIND_MIDDLES : RANKED);
	}
}

bool sm_updn_step(struct sm_updn *u, uint32_t *budget)
{
	const uint32_t cost = u->net->n + u->net->first[u->net->n] / 4;

	while (u->phase != RANKED && *budget) {
		unsigned at = u->next++;

		if (at == u->net->n) {
			end_phase(u);
			continue;
		}
		if (u->phase == FIND_MIDDLES && u->single[u->island[at]])
			try_middle(u, at);
		else if (u->phase == TRY_ROOTS && u->has_hosts[at] && !u->single[u->island[at]])
			try_roots(u, at);
		else
			continue;
		*budget -= cost < *budget ? cost : *budget;
	}
	return u->phase == RANKED;
}

unsigned sm_updn_place(const struct sm_updn *u, unsigned at)
{
	return u->order[at];
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

			if (!l->up || u->order[l->to] >= u->order[at] || hops[l->to] != SM_FAR)
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
		unsigned at = u->sorted[i];

		if (u->is_down[at])
			continue;
		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
			const struct sm_link *l = &net->link[k];

			if (l->up && u->order[l->to] < i && hops[l->to] != SM_FAR &&
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
		return u->is_down[to] && u->order[to] > u->order[from];
	return u->order[to] < u->order[from];
}
