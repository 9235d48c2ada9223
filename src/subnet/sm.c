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

/* The breadth-first tree of switches from @root: parent and up are filled. */
static void grow_tree(struct sm *sm, struct fabric_node *root)
{
	unsigned head = 0, tail = 0;

	for (unsigned i = 0; i < sm->n_sw; i++)
		sm->parent[i] = NO_SWITCH;
	sm->parent[root->index] = root->index;
	sm->up[root->index] = NULL;
	sm->queue[tail++] = root->index;
	while (head < tail) {
		struct fabric_node *sw = sm->sw[sm->queue[head++]];

		for (unsigned i = 1; i <= sw->n_ports; i++) {
			struct fabric_port *peer = sw->port[i].peer;

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
	if (p->peer)
		p->state = IB_PORT_ACTIVE;
	if (p->node->type == FABRIC_HCA)
		fabric_port_publish(sm->f, p);
}

int sm_sweep(struct sm *sm)
{
	struct fabric *f = sm->f;
	int ret = 0;

	for (unsigned i = 0; i < f->n_hca_ports; i++)
		f->hca_port[i]->lid = sm->next_lid++;
	for (unsigned i = 0; i < sm->n_sw; i++)
		sm->sw[i]->port[0].lid = sm->next_lid++;
	for (unsigned i = 0; i < sm->n_sw && !ret; i++)
		ret = route_towards(sm, sm->sw[i]);
	for (unsigned i = 0; i < f->n_nodes; i++)
		for (unsigned k = 1; k <= f->node[i]->n_ports; k++)
			bring_up(sm, &f->node[i]->port[k]);
	for (unsigned i = 0; i < f->n_hca_ports; i++) {
		/* the SM answers at the first HCA's LID, as one that runs on a host does */
		f->region->ports[i].sm_lid = f->hca_port[0]->lid;
	}
	fabric_flow_all_changed(f);
	return ret;
}

/*
 * The rows of the tree that joins the members. Towards the root a packet may come
 * from any member; away from it a link leads only to those that receive.
 */
static void build_rows(struct sm *sm, const struct sm_member *member, unsigned n,
                       struct fabric_mft_row *row)
{
	memset(row, 0, sm->n_sw * sizeof(*row));
	for (unsigned i = 0; i < n; i++) {
		struct fabric_port *edge = member[i].port->peer;
		unsigned at;

		if (!edge || edge->node->type != FABRIC_SWITCH)
			continue;
		at = edge->node->index;
		if (sm->parent[at] == NO_SWITCH)
			continue;
		if (member[i].receives)
			fabric_row_add(&row[at], edge->num);
		for (; sm->up[at]; at = sm->parent[at]) {
			fabric_row_add(&row[at], sm->up[at]->num);
			if (member[i].receives)
				fabric_row_add(&row[sm->parent[at]], sm->up[at]->peer->num);
		}
	}
}

static int write_rows(struct sm *sm, uint16_t mlid, const struct fabric_mft_row *row)
{
	int ret = 0;

	for (unsigned i = 0; i < sm->n_sw && !ret; i++)
		ret = fabric_mft_set(sm->f, sm->sw[i], mlid, &row[i]);
	fabric_flow_lid_changed(sm->f, mlid);
	return ret;
}

/* What waits for @mlid is out of date. */
static void forget_pending(struct sm *sm, uint16_t mlid)
{
	struct pending **p = &sm->pending;

	while (*p) {
		struct pending *old = *p;

		if (old->mlid != mlid) {
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

int sm_route_mcast(struct sm *sm, uint16_t mlid, const struct sm_member *member, unsigned n)
{
	unsigned delay = n ? sm->f->settings.mft_delay_ms : 0;
	struct pending *p;
	int ret = 0;

	if (!ib_lid_is_mcast(mlid) ||
	    mlid - IB_LID_MCAST_FIRST >= (int)sm->f->settings.mft_capacity)
		return -ENOSPC;
	p = calloc(1, sizeof(*p) + sm->n_sw * sizeof(p->row[0]));
	if (!p)
		return -ENOMEM;
	forget_pending(sm, mlid);
	if (n && member[0].port->peer && member[0].port->peer->node->type == FABRIC_SWITCH) {
		grow_tree(sm, member[0].port->peer->node);
		build_rows(sm, member, n, p->row);
	}
	if (!delay) {
		ret = write_rows(sm, mlid, p->row);
		free(p);
		return ret;
	}
	p->mlid = mlid;
	p->due_ms = base_now_ns() / 1000000 + delay;
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
