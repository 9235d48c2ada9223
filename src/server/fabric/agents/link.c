/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links and switches that fail and return: see link.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/agents/link.h"
#include "fabric/agents/training.h"
#include "fabric/agents/traps.h"
#include "fabric/forwarding/flow.h"
#include "fabric/model/event.h"

struct fabric_node *fabric_node_find(const struct fabric *f, const char *name)
{
	for (unsigned i = 0; i < f->n_nodes; i++)
		if (!strcmp(f->node[i]->name, name))
			return f->node[i];
	return NULL;
}

/* Sets the state of a port because its link changed, not because a subnet manager set it. */
static void set_state(struct fabric *f, struct fabric_port *p, uint8_t state)
{
	if (state == IB_PORT_DOWN)
		p->stats.link_downed++;
	p->asleep = state == IB_PORT_DOWN && p->link.sleeps;
	p->state = state;
	fabric_port_relinked(f, p);
	if (p->node->type == FABRIC_HCA)
		fabric_port_publish(f, p);
	else
		p->node->state_change = 1;
	fabric_tell_port(f, p);
}

static bool may_come_up(const struct fabric_port *p)
{
	return !p->cut && !p->fault.down && !p->disabled && !p->node->dead;
}

/* Sets the states of both ends to what the link now allows. True: they changed. */
static bool settle(struct fabric *f, struct fabric_port *p)
{
	bool up = may_come_up(p) && may_come_up(p->peer) && fabric_link_can_train(p) &&
	          !(p->asleep && p->peer->asleep);

	if (up == (p->state != IB_PORT_DOWN))
		return false;
	if (up)
		fabric_link_train(p);
	set_state(f, p, up ? IB_PORT_INIT : IB_PORT_DOWN);
	set_state(f, p->peer, up ? IB_PORT_INIT : IB_PORT_DOWN);
	return true;
}

static void tell(struct fabric *f, struct fabric_port *p)
{
	fabric_trap_link_state(f, p->node);
	fabric_trap_link_state(f, p->peer->node);
}

void fabric_port_disable(struct fabric *f, struct fabric_port *p, bool disabled)
{
	p->disabled = disabled;
	fabric_port_poll(f, p);
}

void fabric_port_poll(struct fabric *f, struct fabric_port *p)
{
	if (p->peer && settle(f, p))
		tell(f, p);
}

void fabric_port_sleep(struct fabric *f, struct fabric_port *p, bool asleep)
{
	bool was_up = p->state != IB_PORT_DOWN;

	if (!p->peer)
		return;
	if (was_up) {
		set_state(f, p, IB_PORT_DOWN);
		set_state(f, p->peer, IB_PORT_DOWN);
	}
	p->asleep = asleep;
	if (settle(f, p) || was_up)
		tell(f, p);
}

void fabric_port_retrain(struct fabric *f, struct fabric_port *p)
{
	if (p->state != IB_PORT_DOWN)
		fabric_port_sleep(f, p, p->link.sleeps);
}

int fabric_link_note(struct fabric *f, struct fabric_port *p, bool up)
{
	if (!p->peer)
		return -ENOTCONN;
	if (up && (p->node->dead || p->peer->node->dead))
		return -EHOSTDOWN;
	if (p->cut == !up)
		return up && p->fault.down ? -EBUSY : -EALREADY;
	p->cut = p->peer->cut = !up;
	fabric_tell(f, &(struct fabric_event){ .kind = "link",
	                                       .what = up ? "up" : "down",
	                                       .port = p,
	                                       .tells_peer = true });
	if (settle(f, p))
		tell(f, p);
	if (!up)
		fabric_flow_note_link(f, p);
	return 0;
}

int fabric_link_set(struct fabric *f, struct fabric_port *p, bool up)
{
	int ret = fabric_link_note(f, p, up);

	fabric_flow_follow_all(f);
	return ret;
}

bool fabric_link_set_fault(struct fabric *f, struct fabric_port *p,
                           const struct fabric_link_fault *fault)
{
	bool can_differ = p->fault.widths != fault->widths || p->fault.speeds != fault->speeds;
	bool carried = fabric_port_carries(p), changed;

	p->fault = p->peer->fault = *fault;
	changed = settle(f, p);
	if (changed)
		tell(f, p);
	else if (can_differ && p->state != IB_PORT_DOWN && !fabric_link_is_trained(p)) {
		fabric_port_retrain(f, p);
		changed = true;
	}
	if (carried && changed)
		fabric_flow_note_link(f, p);
	return changed;
}

static void forget_tables(struct fabric_node *sw)
{
	free(sw->lft);
	free(sw->mft);
	for (unsigned i = 1; i <= sw->n_ports; i++)
		sw->port[i].asleep = sw->port[i].link.sleeps = false;
	sw->lft = NULL;
	sw->mft = NULL;
	sw->lft_size = sw->lft_end = sw->mft_size = sw->mft_end = 0;
	sw->lft_top = sw->mft_top = 0;
	sw->mcast_primary = sw->mcast_not_primary = FABRIC_LFT_NONE;
}

int fabric_switch_note(struct fabric *f, struct fabric_node *sw, bool alive)
{
	if (sw->dead == !alive)
		return -EALREADY;
	sw->dead = !alive;
	fabric_tell(f, &(struct fabric_event){ .kind = "switch",
	                                       .what = alive ? "revived" : "killed",
	                                       .node = sw });
	if (alive)
		f->foreign++;
	else
		forget_tables(sw);
	for (unsigned i = 1; i <= sw->n_ports; i++) {
		if (!sw->port[i].peer || !settle(f, &sw->port[i]))
			continue;
		fabric_trap_link_state(f, sw->port[i].peer->node);
		if (!alive)
			fabric_flow_note_link(f, &sw->port[i]);
	}
	return 0;
}

int fabric_switch_set(struct fabric *f, struct fabric_node *sw, bool alive)
{
	int ret = fabric_switch_note(f, sw, alive);

	fabric_flow_follow_all(f);
	return ret;
}
