/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast: the spanning tree that joins the members of a group, and the rows of the
 * switches on it, at once or when their delay has passed. See sm_route_mcast() in sm.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fabric/flow.h"
#include "subnet/sm_state.h"

#define NO_SWITCH (~0u)

/* A multicast table that waits for its time. */
struct pending {
	struct pending *next;
	uint64_t due_ms;
	uint16_t mlid;
	struct fabric_mft_row row[]; /* by switch */
};

struct sm_trees {
	unsigned *parent;        /* scratch: breadth-first tree by switch index */
	uint8_t *up;             /* scratch: the port towards the parent; 0: this is the root */
	unsigned *queue;         /* scratch */
	struct pending *pending; /* in order of time */
};

int sm_trees_new(struct sm_trees **out, struct sm *sm)
{
	struct sm_trees *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->parent = calloc(sm->net.n + 1, sizeof(*t->parent));
	t->up = calloc(sm->net.n + 1, sizeof(*t->up));
	t->queue = calloc(sm->net.n + 1, sizeof(*t->queue));
	if (!t->parent || !t->up || !t->queue) {
		sm_trees_free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

void sm_trees_free(struct sm_trees *t)
{
	while (t->pending) {
		struct pending *p = t->pending;

		t->pending = p->next;
		free(p);
	}
	free(t->parent);
	free(t->up);
	free(t->queue);
	free(t);
}

static void clear_trees(struct sm *sm)
{
	for (unsigned i = 0; i < sm->net.n; i++)
		sm->trees->parent[i] = NO_SWITCH;
}

/* The breadth-first tree of switches from @root, which is in none: parent and up are filled. */
static void grow_tree(struct sm *sm, unsigned root)
{
	const struct sm_net *net = &sm->net;
	struct sm_trees *t = sm->trees;
	unsigned head = 0, tail = 0;

	t->parent[root] = root;
	t->up[root] = 0;
	t->queue[tail++] = root;
	while (head < tail) {
		unsigned at = t->queue[head++];

		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
			const struct sm_link *l = &net->link[k];

			if (!l->up || t->parent[l->to] != NO_SWITCH)
				continue;
			t->parent[l->to] = at;
			t->up[l->to] = net->sw[at]->port[l->port].peer->num;
			t->queue[tail++] = l->to;
		}
	}
}

/*
 * The rows of the tree that joins the members (of several, if the subnet has come
 * apart). Towards the root a packet may come from any member; away from it a link
 * leads only to those that receive.
 */
static void build_rows(struct sm *sm, const struct sm_member *member, unsigned n,
                       struct fabric_mft_row *row)
{
	const struct sm_trees *t = sm->trees;

	clear_trees(sm);
	for (unsigned i = 0; i < n; i++) {
		struct fabric_port *edge = sm_far_end(member[i].port);
		unsigned at;

		if (!edge || edge->node->type != FABRIC_SWITCH)
			continue;
		at = edge->node->index;
		if (t->parent[at] == NO_SWITCH)
			grow_tree(sm, at);
		if (member[i].receives)
			fabric_row_add(&row[at], edge->num);
		for (; t->up[at]; at = t->parent[at]) {
			const struct fabric_port *up = &sm->net.sw[at]->port[t->up[at]];

			fabric_row_add(&row[at], up->num);
			if (member[i].receives)
				fabric_row_add(&row[t->parent[at]], up->peer->num);
		}
	}
}

static const struct fabric_mft_row empty;

static struct fabric_mft_row row_of(const struct fabric_node *sw, uint16_t mlid)
{
	const struct fabric_mft_row *row = fabric_mft_get(sw, mlid);

	return row ? *row : empty;
}

/* The ports that are in one row and not in the other. */
static struct fabric_mft_row difference(const struct fabric_mft_row *a,
                                        const struct fabric_mft_row *b)
{
	struct fabric_mft_row d;

	for (unsigned i = 0; i < FABRIC_MFT_BLOCKS; i++)
		d.ports[i] = a->ports[i] ^ b->ports[i];
	return d;
}

/* The port after @port that is in the row; 0: none. */
static unsigned next_port(const struct fabric_mft_row *row, unsigned port)
{
	for (port++; port <= FABRIC_MAX_PORTS; port++)
		if (fabric_row_has(row, port))
			return port;
	return 0;
}

/* How rows change: not at all, in ports to HCAs alone, or in the tree itself. */
enum change { SAME = 0, EDGES = 1, TREE = 3 };

static enum change compare(const struct fabric_node *sw, uint16_t mlid,
                           const struct fabric_mft_row *row)
{
	struct fabric_mft_row old = row_of(sw, mlid), d = difference(&old, row);

	if (!memcmp(&d, &empty, sizeof(d)))
		return SAME;
	for (unsigned k = next_port(&d, 0); k; k = next_port(&d, k))
		if (k > sw->n_ports || !sw->port[k].peer ||
		    sw->port[k].peer->node->type != FABRIC_HCA)
			return TREE;
	return EDGES;
}

/* The row of @mlid in one switch, and the flows that come by. */
static int write_edges(struct sm *sm, struct fabric_node *sw, uint16_t mlid,
                       const struct fabric_mft_row *row)
{
	struct fabric_mft_row old = row_of(sw, mlid), d = difference(&old, row);
	int ret = fabric_mft_set(sm->f, sw, mlid, row);

	for (unsigned k = ret ? 0 : next_port(&d, 0); k; k = next_port(&d, k))
		fabric_flow_edge_changed(sm->f, &sw->port[k], mlid);
	return ret;
}

/*
 * Writes the rows of @mlid, @row by switch (NULL: empties them). A switch that has none needs no
 * memory for an empty one. As long as the tree stays, joins and leaves cost the flows little.
 */
static int write_rows(struct sm *sm, uint16_t mlid, const struct fabric_mft_row *row)
{
	enum change change = SAME;
	int ret = 0;

	for (unsigned i = 0; i < sm->net.n && change != TREE; i++)
		change |= compare(sm->net.sw[i], mlid, row ? &row[i] : &empty);
	for (unsigned i = 0; i < sm->net.n && !ret; i++) {
		const struct fabric_mft_row *r = row ? &row[i] : &empty;

		if (compare(sm->net.sw[i], mlid, r) == SAME)
			continue;
		if (change == EDGES)
			ret = write_edges(sm, sm->net.sw[i], mlid, r);
		else
			ret = fabric_mft_set(sm->f, sm->net.sw[i], mlid, r);
	}
	if (change == TREE)
		fabric_flow_lid_changed(sm->f, mlid);
	return ret;
}

/* What would be written for @mlid at @due_ms or later is out of date. */
static void forget_pending(struct sm *sm, uint16_t mlid, uint64_t due_ms)
{
	struct pending **p = &sm->trees->pending;

	while (*p) {
		struct pending *old = *p;

		if (old->mlid != mlid || old->due_ms < due_ms) {
			p = &old->next;
			continue;
		}
		*p = old->next;
		free(old);
	}
}

static void append_pending(struct sm *sm, struct pending *p)
{
	struct pending **at = &sm->trees->pending;

	while (*at && (*at)->due_ms <= p->due_ms)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
}

static uint64_t now_ms(const struct sm *sm)
{
	return sm->ops.now_ms ? sm->ops.now_ms(sm->ops.arg) : base_now_ns() / 1000000;
}

int sm_route_mcast(struct sm *sm, uint16_t mlid, const struct sm_member *member, unsigned n)
{
	unsigned delay = sm->f->settings.mft_delay_ms;
	struct pending *p;
	int ret;

	if (!ib_lid_is_mcast(mlid) ||
	    mlid - IB_LID_MCAST_FIRST >= (int)sm->f->settings.mft_capacity)
		return -ENOSPC;
	if (!n) {
		forget_pending(sm, mlid, 0);
		write_rows(sm, mlid, NULL);
		return 0;
	}
	p = calloc(1, sizeof(*p) + sm->net.n * sizeof(p->row[0]));
	if (!p)
		return -ENOMEM;
	build_rows(sm, member, n, p->row);
	if (!delay) {
		forget_pending(sm, mlid, 0);
		ret = write_rows(sm, mlid, p->row);
		free(p);
		return ret;
	}
	p->mlid = mlid;
	p->due_ms = now_ms(sm) + delay;
	forget_pending(sm, mlid, p->due_ms); /* the delay has become shorter */
	append_pending(sm, p);
	sm->ops.wake(sm->ops.arg, delay);
	return 0;
}

bool sm_mcast_is_stale(const struct sm *sm, uint16_t mlid)
{
	const struct sm_net *net = &sm->net;

	if (!net->little_changed)
		return true;
	for (const struct pending *p = sm->trees->pending; p; p = p->next)
		if (p->mlid == mlid)
			return true;
	for (unsigned i = 0; i < net->n_down; i++) {
		const struct sm_down *down = &net->down[i];

		if (fabric_row_has(fabric_mft_get(net->sw[down->at], mlid), down->link->port))
			return true;
	}
	return false;
}

void sm_run_due(struct sm *sm, uint64_t now_ms)
{
	while (sm->trees->pending && sm->trees->pending->due_ms <= now_ms) {
		struct pending *p = sm->trees->pending;

		sm->trees->pending = p->next;
		write_rows(sm, p->mlid, p->row); /* capacity was checked when it was routed */
		free(p);
	}
	if (sm->trees->pending)
		sm->ops.wake(sm->ops.arg, (unsigned)(sm->trees->pending->due_ms - now_ms));
}
