/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The embedded subnet manager: see sm.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fabric/flow.h"
#include "subnet/sm.h"
#include "wire/sm_attr.h"

/* A multicast table that waits for its time. */
struct pending {
	struct pending *next;
	uint64_t due_ms;
	uint16_t mlid;
	struct fabric_mft_row row[]; /* by switch */
};

struct sm {
	struct fabric *f;
	struct sm_ops ops;
	struct fabric_node **sw; /* the switches, each at its index */
	unsigned n_sw;
	unsigned *parent;                       /* scratch: breadth-first tree by switch index */
	struct fabric_port **up;                /* scratch: the port towards the parent */
	unsigned *queue;                        /* scratch */
	struct pending *pending;                /* in order of time */
	uint16_t next_lid;                      /* where the search for a free one goes on */
	uint64_t lids[IB_LID_MCAST_FIRST / 64]; /* in use */
	unsigned home, told_home; /* the HCA port that it answers at, and did before */
};

#define NO_SWITCH (~0u)

int sm_new(struct sm **out, struct fabric *f, const struct sm_ops *ops)
{
	struct sm *sm = calloc(1, sizeof(*sm));

	if (!sm)
		return -ENOMEM;
	sm->f = f;
	sm->ops = *ops;
	sm->next_lid = 1;
	sm->sw = calloc(f->n_nodes, sizeof(*sm->sw));
	sm->parent = calloc(f->n_nodes, sizeof(*sm->parent));
	sm->up = calloc(f->n_nodes, sizeof(*sm->up));
	sm->queue = calloc(f->n_nodes, sizeof(*sm->queue));
	if (!sm->sw || !sm->parent || !sm->up || !sm->queue) {
		sm_free(sm);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < f->n_nodes; i++) {
		if (f->node[i]->type == FABRIC_SWITCH)
			sm->sw[sm->n_sw++] = f->node[i];
	}
	while (sm->home + 1 < f->n_hca_ports && !f->hca_port[sm->home]->peer)
		sm->home++;
	*out = sm;
	return 0;
}

void sm_free(struct sm *sm)
{
	while (sm->pending) {
		struct pending *p = sm->pending;

		sm->pending = p->next;
		free(p);
	}
	free(sm->sw);
	free(sm->parent);
	free(sm->up);
	free(sm->queue);
	free(sm);
}

/* The port at the far end of a link that is not down, or NULL. */
static struct fabric_port *far_end(const struct fabric_port *p)
{
	if (!p->peer || p->state <= IB_PORT_DOWN || p->peer->state <= IB_PORT_DOWN)
		return NULL;
	return p->peer;
}

static void clear_trees(struct sm *sm)
{
	for (unsigned i = 0; i < sm->n_sw; i++)
		sm->parent[i] = NO_SWITCH;
}

/* The breadth-first tree of switches from @root, which is in none: parent and up are filled. */
static void grow_tree(struct sm *sm, struct fabric_node *root)
{
	unsigned head = 0, tail = 0;

	sm->parent[root->index] = root->index;
	sm->up[root->index] = NULL;
	sm->queue[tail++] = root->index;
	while (head < tail) {
		struct fabric_node *sw = sm->sw[sm->queue[head++]];

		for (unsigned i = 1; i <= sw->n_ports; i++) {
			struct fabric_port *peer = far_end(&sw->port[i]);

			if (!peer || peer->node->type != FABRIC_SWITCH ||
			    sm->parent[peer->node->index] != NO_SWITCH)
				continue;
			sm->parent[peer->node->index] = sw->index;
			sm->up[peer->node->index] = peer;
			sm->queue[tail++] = peer->node->index;
		}
	}
}

static int write_lft(struct fabric_node *sw, uint16_t lid, uint8_t out)
{
	return fabric_lft_get(sw, lid) == out ? 0 : fabric_lft_set(sw, lid, out);
}

/* Switch @sw learns the way to what hangs on @root, the root of the tree: by @out, or nowhere. */
static int route_from(struct fabric_node *sw, const struct fabric_node *root, uint8_t out)
{
	int ret = write_lft(sw, root->port[0].lid, out);

	for (unsigned k = 1; k <= root->n_ports && !ret; k++) {
		const struct fabric_port *p = &root->port[k];
		uint8_t to = sw == root ? (uint8_t)k : out;

		if (p->peer && p->peer->node->type == FABRIC_HCA)
			ret = write_lft(sw, p->peer->lid, far_end(p) ? to : FABRIC_LFT_NONE);
	}
	return ret;
}

/* All switches learn the way to what hangs on @root: itself and its HCAs. */
static int route_towards(struct sm *sm, struct fabric_node *root)
{
	int ret = 0;

	clear_trees(sm);
	if (!root->dead)
		grow_tree(sm, root);
	for (unsigned i = 0; i < sm->n_sw && !ret; i++) {
		uint8_t out = FABRIC_LFT_NONE;

		if (sm->sw[i]->dead)
			continue;
		if (sm->parent[i] != NO_SWITCH)
			out = sm->sw[i] == root ? 0 : sm->up[i]->num;
		ret = route_from(sm->sw[i], root, out);
	}
	return ret;
}

static void bring_up(struct sm *sm, struct fabric_port *p)
{
	if (far_end(p))
		p->state = IB_PORT_ACTIVE;
	if (p->node->type == FABRIC_HCA)
		fabric_port_publish(sm->f, p);
}

static void mark_lid(struct sm *sm, uint16_t lid, bool used)
{
	if (used)
		sm->lids[lid / 64] |= 1ull << (lid % 64);
	else
		sm->lids[lid / 64] &= ~(1ull << (lid % 64));
}

/* A LID that nobody has; one that was given back rests as long as possible. 0: there is none. */
static uint16_t free_lid(struct sm *sm)
{
	for (unsigned n = 1; n < IB_LID_MCAST_FIRST; n++) {
		uint16_t lid = sm->next_lid;

		sm->next_lid = lid + 1 < IB_LID_MCAST_FIRST ? lid + 1 : 1;
		if (!(sm->lids[lid / 64] >> (lid % 64) & 1))
			return lid;
	}
	return 0;
}

static int give_lid(struct sm *sm, struct fabric_port *p)
{
	if (!p->lid)
		p->lid = free_lid(sm);
	if (!p->lid)
		return -ENOSPC;
	mark_lid(sm, p->lid, true);
	return 0;
}

static int give_lids(struct sm *sm)
{
	int ret = 0;

	for (unsigned i = 0; i < sm->f->n_hca_ports && !ret; i++)
		if (sm->f->hca_port[i]->peer) /* what has no cable a subnet manager does not see */
			ret = give_lid(sm, sm->f->hca_port[i]);
	for (unsigned i = 0; i < sm->n_sw && !ret; i++)
		ret = give_lid(sm, &sm->sw[i]->port[0]);
	return ret;
}

/* The SM answers at an HCA's LID, as one that runs on a host does: all end ports are told. */
static void tell_sm_lid(struct sm *sm)
{
	struct fabric *f = sm->f;
	uint16_t lid = f->hca_port[sm->home]->lid;

	f->hca_port[sm->told_home]->capabilities &= ~PORT_CAP_SM;
	f->hca_port[sm->home]->capabilities |= PORT_CAP_SM;
	sm->told_home = sm->home;
	for (unsigned i = 0; i < sm->n_sw; i++)
		sm->sw[i]->port[0].sm_lid = lid;
	for (unsigned i = 0; i < f->n_hca_ports; i++) {
		f->hca_port[i]->sm_lid = lid;
		fabric_port_publish(f, f->hca_port[i]);
	}
}

/* LinearFDBTop: beyond it there is nothing to read in the tables. */
static void tell_top(struct sm *sm)
{
	uint16_t top = IB_LID_MCAST_FIRST - 1;

	while (top && !(sm->lids[top / 64] >> (top % 64) & 1))
		top--;
	for (unsigned i = 0; i < sm->n_sw; i++)
		if (!sm->sw[i]->dead)
			sm->sw[i]->lft_top = top;
}

int sm_sweep(struct sm *sm)
{
	struct fabric *f = sm->f;
	int ret = give_lids(sm);

	for (unsigned i = 0; i < sm->n_sw && !ret; i++)
		ret = route_towards(sm, sm->sw[i]);
	for (unsigned i = 0; i < f->n_nodes; i++)
		for (unsigned k = 1; k <= f->node[i]->n_ports; k++)
			bring_up(sm, &f->node[i]->port[k]);
	tell_top(sm);
	tell_sm_lid(sm);
	fabric_flow_all_changed(f);
	return ret;
}

int sm_change_lid(struct sm *sm, struct fabric_port *port)
{
	uint16_t lid = free_lid(sm);

	if (!lid)
		return -ENOSPC;
	for (unsigned i = 0; i < sm->n_sw; i++)
		write_lft(sm->sw[i], port->lid, FABRIC_LFT_NONE);
	mark_lid(sm, port->lid, false);
	port->lid = lid;
	return sm_sweep(sm);
}

void sm_set_home(struct sm *sm, struct fabric_port *home)
{
	sm->home = sm->told_home = home->index;
}

void sm_forget_groups(struct sm *sm)
{
	static const struct fabric_mft_row nowhere;

	for (unsigned i = 0; i < sm->n_sw; i++)
		for (uint32_t m = 0; m < sm->sw[i]->mft_size; m++)
			fabric_mft_set(sm->f, sm->sw[i], (uint16_t)(IB_LID_MCAST_FIRST + m),
			               &nowhere);
}

void sm_move_to(struct sm *sm, struct fabric_port *home)
{
	sm->home = home->index;
	tell_sm_lid(sm);
}

void sm_move(struct sm *sm)
{
	struct fabric *f = sm->f;

	for (unsigned n = 1; n < f->n_hca_ports; n++) {
		unsigned next = (sm->home + n) % f->n_hca_ports;

		if (f->hca_port[next]->state != IB_PORT_ACTIVE)
			continue;
		sm->home = next;
		break;
	}
	tell_sm_lid(sm);
}

struct fabric_node *sm_switch(const struct sm *sm, unsigned i)
{
	return i < sm->n_sw ? sm->sw[i] : NULL;
}

struct fabric_port *sm_port(const struct sm *sm)
{
	return sm->f->hca_port[sm->home];
}

/*
 * The rows of the tree that joins the members (of several, if the subnet has come
 * apart). Towards the root a packet may come from any member; away from it a link
 * leads only to those that receive.
 */
static void build_rows(struct sm *sm, const struct sm_member *member, unsigned n,
                       struct fabric_mft_row *row)
{
	clear_trees(sm);
	for (unsigned i = 0; i < n; i++) {
		struct fabric_port *edge = far_end(member[i].port);
		unsigned at;

		if (!edge || edge->node->type != FABRIC_SWITCH)
			continue;
		at = edge->node->index;
		if (sm->parent[at] == NO_SWITCH)
			grow_tree(sm, edge->node);
		if (member[i].receives)
			fabric_row_add(&row[at], edge->num);
		for (; sm->up[at]; at = sm->parent[at]) {
			fabric_row_add(&row[at], sm->up[at]->num);
			if (member[i].receives)
				fabric_row_add(&row[sm->parent[at]], sm->up[at]->peer->num);
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

	for (unsigned i = 0; i < sm->n_sw && change != TREE; i++)
		change |= compare(sm->sw[i], mlid, row ? &row[i] : &empty);
	for (unsigned i = 0; i < sm->n_sw && !ret; i++) {
		const struct fabric_mft_row *r = row ? &row[i] : &empty;

		if (compare(sm->sw[i], mlid, r) == SAME)
			continue;
		if (change == EDGES)
			ret = write_edges(sm, sm->sw[i], mlid, r);
		else
			ret = fabric_mft_set(sm->f, sm->sw[i], mlid, r);
	}
	if (change == TREE)
		fabric_flow_lid_changed(sm->f, mlid);
	return ret;
}

/* What would be written for @mlid at @due_ms or later is out of date. */
static void forget_pending(struct sm *sm, uint16_t mlid, uint64_t due_ms)
{
	struct pending **p = &sm->pending;

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
	struct pending **at = &sm->pending;

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
	p = calloc(1, sizeof(*p) + sm->n_sw * sizeof(p->row[0]));
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

void sm_run_due(struct sm *sm, uint64_t now_ms)
{
	while (sm->pending && sm->pending->due_ms <= now_ms) {
		struct pending *p = sm->pending;

		sm->pending = p->next;
		write_rows(sm, p->mlid, p->row); /* capacity was checked when it was routed */
		free(p);
	}
	if (sm->pending)
		sm->ops.wake(sm->ops.arg, (unsigned)(sm->pending->due_ms - now_ms));
}
