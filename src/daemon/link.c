/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links and switches that fail and return on command. Three steps each time: the fabric
 * changes, the embedded subnet manager sweeps if it is the master, and whoever uses the
 * ports is told: asynchronous events by verbs, MULTICAST_ERROR by rdma_cm. The command is
 * answered after all three. What another subnet manager does by MADs is told here, too.
 *
 * The names come from the command line and are checked here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/state.h"
#include "daemon/umad.h"
#include "fabric/ethernet.h"
#include "fabric/link.h"
#include "fabric/traps.h"

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

int daemon_port_find(const struct daemon *d, const struct control_port *at,
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

void daemon_tell_port(struct daemon *d, const struct fabric_port *p, enum ibv_event_type type)
{
	for (uint32_t i = 0; i < d->hcas.size; i++) {
		struct daemon_hca *h = base_idtable_get(&d->hcas, i);

		if (h && h->hca == p->node->hca)
			daemon_hca_event(h, type, p->num);
	}
}

void daemon_reset_port(struct daemon *d, struct fabric_port *p, enum ibv_event_type type)
{
	daemon_tell_port(d, p, type);
	cm_port_changed(d->cm, p);
}

static void tell_state(struct daemon *d, struct fabric_port *p)
{
	bool was_active = d->told_state[p->index] == IB_PORT_ACTIVE;
	bool is_active = p->state == IB_PORT_ACTIVE;

	d->told_state[p->index] = p->state;
	if (was_active && !is_active)
		daemon_reset_port(d, p, IBV_EVENT_PORT_ERR);
	if (is_active && !was_active) {
		daemon_tell_port(d, p, IBV_EVENT_PORT_ACTIVE);
		cm_port_active(d->cm, p);
	}
}

void daemon_tell_states(struct daemon *d)
{
	for (unsigned i = 0; i < d->f->n_hca_ports; i++)
		tell_state(d, d->f->hca_port[i]);
}

void daemon_ethernet_changed(struct daemon *d, struct fabric_port *p, unsigned what)
{
	if (what & FABRIC_ETHERNET_GIDS)
		daemon_tell_port(d, p, IBV_EVENT_GID_CHANGE);
	if (what & FABRIC_ETHERNET_STATE)
		tell_state(d, p);
}

/* The fabric has changed. */
static int follow(struct daemon *d)
{
	int ret = daemon_subnet_sweep(d);

	daemon_tell_states(d);
	daemon_umad_send_queued(d->umad); /* rdma_cm's, of what it has been told */
	return ret;
}

void daemon_links_refresh(struct daemon *d)
{
	for (unsigned i = 0; i < d->f->n_hca_ports; i++)
		cm_port_active(d->cm, d->f->hca_port[i]);
	daemon_umad_send_queued(d->umad);
}

/* ---- what a subnet manager does by MADs ---- */

/* The sink of fabric/mads.h. */
static void on_port_changed(void *arg, struct fabric_port *p, unsigned what)
{
	struct daemon *d = arg;

	if (what & FABRIC_PORT_GIDS)
		for (unsigned i = 0; i < d->f->n_hca_ports; i++)
			daemon_tell_port(d, d->f->hca_port[i], IBV_EVENT_GID_CHANGE);
	if (p->node->type != FABRIC_HCA)
		return;
	if (what & FABRIC_PORT_STATE)
		tell_state(d, p);
	if (what & FABRIC_PORT_LID)
		daemon_reset_port(d, p, IBV_EVENT_LID_CHANGE);
	if (what & FABRIC_PORT_SM)
		daemon_tell_port(d, p, IBV_EVENT_SM_CHANGE);
	if (what & FABRIC_PORT_ALIAS)
		daemon_tell_port(d, p, IBV_EVENT_GID_CHANGE);
	if (what & FABRIC_PORT_PKEYS) {
		daemon_qps_follow_pkeys(d, p);
		daemon_tell_port(d, p, IBV_EVENT_PKEY_CHANGE);
	}
	if (what & (FABRIC_PORT_SM | FABRIC_PORT_PKEYS))
		cm_port_active(d->cm, p);
	if (what & FABRIC_PORT_REREGISTER)
		daemon_reset_port(d, p, IBV_EVENT_CLIENT_REREGISTER);
}

/* After whatever else the loop has done: before anybody else has a turn. */
static int on_turn_done(sd_event_source *s, void *arg)
{
	struct daemon *d = arg;

	(void)s;
	fabric_traps_notice_keys(d->f);
	if (d->sweep_wanted)
		follow(d);
	if (d->umad)
		daemon_umad_send_queued(d->umad);
	fabric_mads_settle(d->f);
	return 0;
}

int daemon_links_init(struct daemon *d)
{
	sd_event_source *post;
	int ret;

	d->told_state = calloc(d->f->n_hca_ports, sizeof(*d->told_state));
	if (!d->told_state)
		return -ENOMEM;
	for (unsigned i = 0; i < d->f->n_hca_ports; i++)
		d->told_state[i] = d->f->hca_port[i]->state;
	d->f->mads->sink.port_changed = on_port_changed;
	d->f->mads->sink.arg = d;
	ret = sd_event_add_post(d->loop, &post, on_turn_done, d);
	if (ret >= 0)
		ret = sd_event_source_set_priority(post, SD_EVENT_PRIORITY_IMPORTANT);
	if (ret >= 0)
		ret = sd_event_source_set_floating(post, true);
	if (ret < 0)
		return ret;
	sd_event_source_unref(post);
	return 0;
}

/* ---- commands ---- */

int daemon_link_set(struct daemon *d, const struct control_link *request)
{
	struct fabric_port *p;
	int ret = daemon_port_find(d, &request->at, &p);

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
