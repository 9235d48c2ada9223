/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links and switches that fail and return: see link.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/flow.h"
#include "fabric/link.h"

struct fabric_node *fabric_node_find(const struct fabric *f, const char *name)
{
	for (unsigned i = 0; i < f->n_nodes; i++)
		if (!strcmp(f->node[i]->name, name))
			return f->node[i];
	return NULL;
}

static void set_state(struct fabric *f, struct fabric_port *p, uint8_t state)
{
	p->state = state;
	if (p->node->type == FABRIC_HCA)
		fabric_port_publish(f, p);
}

/* Brings both ends to where what has been done to the link leaves them. */
static void settle(struct fabric *f, struct fabric_port *p)
{
	bool up = !p->cut && !p->node->dead && !p->peer->node->dead;

	if (up == (p->state != IB_PORT_DOWN))
		return;
	set_state(f, p, up ? IB_PORT_INIT : IB_PORT_DOWN);
	set_state(f, p->peer, up ? IB_PORT_INIT : IB_PORT_DOWN);
}

int fabric_link_set(struct fabric *f, struct fabric_port *p, bool up)
{
	if (!p->peer)
		return -ENOTCONN;
	if (up && (p->node->dead || p->peer->node->dead))
		return -EHOSTDOWN;
	if (p->cut == !up)
		return -EALREADY;
	p->cut = p->peer->cut = !up;
	settle(f, p);
	if (!up)
		fabric_flow_links_down(f);
	return 0;
}

static void forget_tables(struct fabric_node *sw)
{
	free(sw->lft);
	free(sw->mft);
	sw->lft = NULL;
	sw->mft = NULL;
	sw->lft_size = sw->mft_size = 0;
}

int fabric_switch_set(struct fabric *f, struct fabric_node *sw, bool alive)
{
	if (sw->dead == !alive)
		return -EALREADY;
	sw->dead = !alive;
	if (!alive)
		forget_tables(sw);
	for (unsigned i = 1; i <= sw->n_ports; i++)
		if (sw->port[i].peer)
			settle(f, &sw->port[i]);
	if (!alive)
		fabric_flow_links_down(f);
	return 0;
}
