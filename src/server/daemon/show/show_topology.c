/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view "topology": nodes, their ports and what these are linked to.
 */
#include "daemon/show/views.h"
#include "wire/rate.h"

static void add_link(const struct daemon_show *s, struct show_json *o, const struct fabric_port *p)
{
	show_open(o, NULL, '{');
	show_add_u64(o, "port", p->num);
	show_add_string(o, "state", show_state_name(p->state));
	show_add_u64(o, "lid", p->lid);
	if (p->peer) {
		show_add_string(o, "peer", p->peer->node->name);
		show_add_u64(o, "peer_port", p->peer->num);
	}
	if (p->ethernet)
		show_add_text(o, "device", "%s", daemon_roce_device(s->roce, p->index));
	show_add_u64(o, "mtu", IB_MTU_BYTES(p->mtu));
	show_add_text(o, "rate", "%ux %s", wire_link_lanes(p->width),
	              wire_link_speed_name(p->speed));
	show_close(o, '}');
}

bool daemon_show_node(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	const struct fabric_node *node;

	if (at->part >= s->f->n_nodes)
		return false;
	node = s->f->node[at->part];
	show_open(o, NULL, '{');
	show_add_string(o, "name", node->name);
	show_add_string(o, "type", node->type == FABRIC_SWITCH ? "switch" : "host");
	show_add_text(o, "guid", "0x%016llx", (unsigned long long)node->guid);
	if (node->type == FABRIC_SWITCH)
		show_add_u64(o, "lid", node->port[0].lid);
	if (node->dead)
		show_add_true(o, "dead");
	show_add_u64(o, "n_ports", node->n_ports);
	show_open(o, "ports", '[');
	for (unsigned k = 1; k <= node->n_ports; k++)
		if (node->port[k].peer || node->port[k].ethernet)
			add_link(s, o, &node->port[k]);
	show_close(o, ']');
	show_close(o, '}');
	return true;
}
