/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HCA ports that change, and the programs that are told: see ports.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/subnet/ports.h"
#include "fabric/plan/ethernet.h"

int daemon_ports_init(struct daemon_ports *ports, struct fabric *f, struct daemon_objects *objects,
                      struct cm *cm)
{
	ports->f = f;
	ports->objects = objects;
	ports->cm = cm;
	ports->told = calloc(f->n_hca_ports, sizeof(*ports->told));
	if (!ports->told)
		return -ENOMEM;
	for (unsigned i = 0; i < f->n_hca_ports; i++)
		ports->told[i].state = f->hca_port[i]->state;
	return 0;
}

void daemon_port_tell(struct daemon_ports *ports, const struct fabric_port *p,
                      enum ibv_event_type type)
{
	daemon_hcas_event(&ports->objects->hcas, p->node->hca, type, p->num);
}

/* The port's memberships may be lost, or be of other LIDs. */
static void note_members(struct daemon_ports *ports, struct fabric_port *p)
{
	if (ports->members)
		ports->members(ports->members_arg, p);
}

void daemon_port_reset(struct daemon_ports *ports, struct fabric_port *p, enum ibv_event_type type)
{
	daemon_port_tell(ports, p, type);
	cm_port_changed(ports->cm, p);
	note_members(ports, p);
}

void daemon_port_reregister(struct daemon_ports *ports, struct fabric_port *p)
{
	if (!ports->f->settings.keep_groups) {
		daemon_port_reset(ports, p, IBV_EVENT_CLIENT_REREGISTER);
		return;
	}
	daemon_port_tell(ports, p, IBV_EVENT_CLIENT_REREGISTER);
	cm_port_renew(ports->cm, p);
	note_members(ports, p);
}

static void tell_state(struct daemon_ports *ports, struct fabric_port *p)
{
	struct daemon_port_told *told = &ports->told[p->index];
	bool was_active = told->state == IB_PORT_ACTIVE;
	bool is_active = p->state == IB_PORT_ACTIVE;

	told->state = p->state;
	if (was_active && !is_active)
		daemon_port_reset(ports, p, IBV_EVENT_PORT_ERR);
	if (is_active && !was_active) {
		daemon_port_tell(ports, p, IBV_EVENT_PORT_ACTIVE);
		cm_port_active(ports->cm, p);
		note_members(ports, p);
	}
}

static void note_lid(struct daemon_ports *ports, const struct fabric_port *p)
{
	ports->told[p->index].lid = p->lid;
	ports->told[p->index].lmc = p->lmc;
}

/* After a sweep. A program that hears that the port has come up asks for its LID then. */
static void tell_lid(struct daemon_ports *ports, struct fabric_port *p)
{
	const struct daemon_port_told told = ports->told[p->index];

	note_lid(ports, p);
	if ((told.lid != p->lid || told.lmc != p->lmc) && told.state == IB_PORT_ACTIVE &&
	    p->state == IB_PORT_ACTIVE)
		daemon_port_reset(ports, p, IBV_EVENT_LID_CHANGE);
}

void daemon_port_swept(struct daemon_ports *ports, struct fabric_port *p)
{
	tell_lid(ports, p);
	tell_state(ports, p);
}

void daemon_ports_tell(struct daemon_ports *ports)
{
	for (unsigned i = 0; i < ports->f->n_hca_ports; i++)
		daemon_port_swept(ports, ports->f->hca_port[i]);
}

/* The GIDs of all ports of the subnet have changed. */
static void tell_gids(struct daemon_ports *ports)
{
	for (unsigned i = 0; i < ports->f->n_ib_ports; i++)
		daemon_port_tell(ports, ports->f->hca_port[i], IBV_EVENT_GID_CHANGE);
}

void daemon_port_changed(struct daemon_ports *ports, struct fabric_port *p, unsigned what)
{
	if (what & FABRIC_PORT_GIDS)
		tell_gids(ports);
	if (p->node->type != FABRIC_HCA)
		return;
	if (what & FABRIC_PORT_STATE)
		tell_state(ports, p);
	if (what & FABRIC_PORT_LID) {
		note_lid(ports, p);
		daemon_port_reset(ports, p, IBV_EVENT_LID_CHANGE);
	}
	if (what & FABRIC_PORT_SM)
		daemon_port_tell(ports, p, IBV_EVENT_SM_CHANGE);
	if (what & FABRIC_PORT_ALIAS)
		daemon_port_tell(ports, p, IBV_EVENT_GID_CHANGE);
	if (what & FABRIC_PORT_PKEYS) {
		daemon_qps_follow_pkeys(&ports->objects->qps, p);
		daemon_port_tell(ports, p, IBV_EVENT_PKEY_CHANGE);
	}
	if (what & (FABRIC_PORT_SM | FABRIC_PORT_PKEYS)) {
		cm_port_active(ports->cm, p);
		note_members(ports, p);
	}
	if (what & FABRIC_PORT_REREGISTER)
		daemon_port_reregister(ports, p);
}

void daemon_port_ethernet_changed(struct daemon_ports *ports, struct fabric_port *p, unsigned what)
{
	if (what & FABRIC_ETHERNET_GIDS)
		daemon_port_tell(ports, p, IBV_EVENT_GID_CHANGE);
	if (what & FABRIC_ETHERNET_STATE)
		tell_state(ports, p);
}

void daemon_ports_refresh(struct daemon_ports *ports)
{
	for (unsigned i = 0; i < ports->f->n_hca_ports; i++)
		cm_port_active(ports->cm, ports->f->hca_port[i]);
}
