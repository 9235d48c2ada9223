/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links and switches that fail and return on command, and what a subnet manager may do
 * to a port. Three steps each time: the fabric changes, the subnet manager sweeps, and
 * whoever uses the ports is told: asynchronous events by verbs, MULTICAST_ERROR by
 * rdma_cm. The command is answered after all three.
 *
 * The names come from the command line and are checked here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "daemon/state.h"
#include "fabric/link.h"

int daemon_links_init(struct daemon *d)
{
	d->told_state = calloc(d->f->n_hca_ports, sizeof(*d->told_state));
	if (!d->told_state)
		return -ENOMEM;
	for (unsigned i = 0; i < d->f->n_hca_ports; i++)
		d->told_state[i] = d->f->hca_port[i]->state;
	return 0;
}

/* ---- names ---- */

/* The only HCA of the host named @name. 0, -ENOENT, -EMLINK. */
static int hca_of_host(const struct daemon *d, const char *name, struct fabric_node **out)
{
	const struct fabric *f = d->f;

	*out = NULL;
	for (unsigned i = 0; i < f->n_nodes; i++) {
		struct fabric_node *node = f->node[i];

		if (node->type != FABRIC_HCA || strcmp(f->region->hcas[node->hca].host, name))
			continue;
		if (*out)
			return -EMLINK;
		*out = node;
	}
	return *out ? 0 : -ENOENT;
}

/* @name may come without its end. */
static int find_node(const struct daemon *d, const char name[static 32], struct fabric_node **node)
{
	if (!memchr(name, '\0', 32))
		return -ENOENT;
	*node = fabric_node_find(d->f, name);
	return *node ? 0 : hca_of_host(d, name, node);
}

static int find_port(const struct daemon *d, const struct control_port *at,
                     struct fabric_port **port)
{
	struct fabric_node *node;
	int ret = find_node(d, at->node, &node);

	if (ret)
		return ret;
	if (!at->port || at->port > node->n_ports)
		return -ERANGE;
	*port = &node->port[at->port];
	return 0;
}

/* ---- telling ---- */

/* Every process that has the HCA open. */
static void tell_hca(struct daemon *d, const struct fabric_port *p, enum ibv_event_type type)
{
	for (uint32_t i = 0; i < d->hcas.size; i++) {
		struct daemon_hca *h = base_idtable_get(&d->hcas, i);

		if (h && h->hca == p->node->hca)
			daemon_hca_event(h, type, p->num);
	}
}

/* The port's members must join anew. */
static void reset_port(struct daemon *d, struct fabric_port *p, enum ibv_event_type type)
{
	tell_hca(d, p, type);
	cm_port_changed(d->cm, p);
}

static void tell_states(struct daemon *d)
{
	for (unsigned i = 0; i < d->f->n_hca_ports; i++) {
		struct fabric_port *p = d->f->hca_port[i];
		bool was_active = d->told_state[i] == IB_PORT_ACTIVE;
		bool is_active = p->state == IB_PORT_ACTIVE;

		d->told_state[i] = p->state;
		if (was_active && !is_active)
			reset_port(d, p, IBV_EVENT_PORT_ERR);
		else if (is_active && !was_active)
			tell_hca(d, p, IBV_EVENT_PORT_ACTIVE);
	}
}

/* ---- commands ---- */

/* The fabric has changed. */
static int follow(struct daemon *d)
{
	int ret = sm_sweep(d->sm);

	sa_swept(d->sa);
	tell_states(d);
	return ret;
}

int daemon_link_set(struct daemon *d, const struct control_link *request)
{
	struct fabric_port *p;
	int ret = find_port(d, &request->at, &p);

	if (!ret)
		ret = fabric_link_set(d->f, p, request->up);
	return ret ? ret : follow(d);
}

int daemon_switch_set(struct daemon *d, const struct control_switch *request)
{
	struct fabric_node *node;
	int ret = find_node(d, request->name, &node);

	if (!ret && node->type != FABRIC_SWITCH)
		ret = -ENOTTY;
	if (!ret)
		ret = fabric_switch_set(d->f, node, request->alive);
	return ret ? ret : follow(d);
}

/* The new SM knows no member. */
static int change_sm(struct daemon *d)
{
	sm_move(d->sm);
	for (unsigned i = 0; i < d->f->n_hca_ports; i++)
		if (d->f->hca_port[i]->state == IB_PORT_ACTIVE)
			reset_port(d, d->f->hca_port[i], IBV_EVENT_SM_CHANGE);
	return 0;
}

static int change_lid(struct daemon *d, struct fabric_port *p)
{
	int ret = sm_change_lid(d->sm, p);

	if (!ret)
		reset_port(d, p, IBV_EVENT_LID_CHANGE);
	return ret;
}

int daemon_sm_event(struct daemon *d, const struct control_sm_event *request)
{
	struct fabric_port *p;
	int ret;

	if (request->type == CONTROL_SM_CHANGE)
		return change_sm(d);
	ret = find_port(d, &request->at, &p);
	if (ret)
		return ret;
	if (p->node->type != FABRIC_HCA)
		return -ENOTTY;
	if (p->state != IB_PORT_ACTIVE)
		return -ENETDOWN;
	if (request->type == CONTROL_SM_LID_CHANGE)
		return change_lid(d, p);
	if (request->type != CONTROL_SM_CLIENT_REREGISTER)
		return -EINVAL;
	reset_port(d, p, IBV_EVENT_CLIENT_REREGISTER);
	return 0;
}
