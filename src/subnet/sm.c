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
	unsigned *parent;        /* scratch: breadth-first tree by switch index */
	struct fabric_port **up; /* scratch: the port towards the parent */
	unsigned *queue;         /* scratch */
	struct pending *pending; /* in order of time */
	uint16_t next_lid;
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

/* All switches learn the way to what hangs on @root: itself and its HCAs. */
static int route_towards(struct sm *sm, struct fabric_node *root)
{
	int ret = 0;

	clear_trees(sm);
	grow_tree(sm, root);
	for (unsigned i = 0; i < sm->n_sw && !ret; i++) {
		struct fabric_node *sw = sm->sw[i];
		uint8_t up;

		if (sm->parent[i] == NO_SWITCH)
			continue;
		up = sw == root ? 0 : sm->up[i]->num;
		ret = fabric_lft_set(sw, root->port[0].lid, up);
		for (unsigned k = 1; k <= root->n_ports && !ret; k++) {
			struct fabric_port *peer = root->port[k].peer;

			if (peer && peer->node->type == FABRIC_HCA)
				ret = fabric_lft_set(sw, peer->lid, sw == root ? (uint8_t)k : up);
		}
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

static void give_lid(struct sm *sm, struct fabric_port *p)
{
	if (!p->lid)
		p->lid = sm->next_lid++;
}

int sm_sweep(struct sm *sm)
{
	struct fabric *f = sm->f;
	int ret = 0;

	for (unsigned i = 0; i < f->n_hca_ports; i++)
		give_lid(sm, f->hca_port[i]);
	for (unsigned i = 0; i < sm->n_sw; i++)
		give_lid(sm, &sm->sw[i]->port[0]);
	for (unsigned i = 0; i < sm->n_sw && !ret; i++)
		ret = route_towards(sm, sm->sw[i]);
	for (unsigned i = 0; i < f->n_nodes; i++)
		for (unsigned k = 1; k <= f->node[i]->n_ports; k++)
			bring_up(sm, &f->node[i]->port[k]);
	for (unsigned i = 0; i < f->n_hca_ports; i++) {
		struct shm_port *s = &f->region->ports[i];

		/* the SM answers at the first HCA's LID, as one that runs on a host does */
		shm_write_begin(&s->seq);
		s->sm_lid = f->hca_port[0]->lid;
		shm_write_end(&s->seq);
	}
	fabric_flow_all_changed(f);
	return ret;
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

/* The row of @mlid in one switch. A switch that has none needs no memory for an empty one. */
static int write_row(struct sm *sm, struct fabric_node *sw, uint16_t mlid,
                     const struct fabric_mft_row *row, bool *changed)
{
	static const struct fabric_mft_row empty;
	const struct fabric_mft_row *old = fabric_mft_get(sw, mlid);

	if (!memcmp(old ? old : &empty, row, sizeof(*row)))
		return 0;
	*changed = true;
	return fabric_mft_set(sm->f, sw, mlid, row);
}

static int write_rows(struct sm *sm, uint16_t mlid, const struct fabric_mft_row *row)
{
	bool changed = false;
	int ret = 0;

	for (unsigned i = 0; i < sm->n_sw && !ret; i++)
		ret = write_row(sm, sm->sw[i], mlid, &row[i], &changed);
	if (changed)
		fabric_flow_lid_changed(sm->f, mlid);
	return ret;
}

static void clear_rows(struct sm *sm, uint16_t mlid)
{
	static const struct fabric_mft_row empty;
	bool changed = false;

	for (unsigned i = 0; i < sm->n_sw; i++)
		write_row(sm, sm->sw[i], mlid, &empty, &changed);
	if (changed)
		fabric_flow_lid_changed(sm->f, mlid);
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
		clear_rows(sm, mlid);
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
