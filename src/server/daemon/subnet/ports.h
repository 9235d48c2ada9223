/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HCA ports that go up and down and change, and the programs that are told: processes by
 * asynchronous events of verbs, rdma_cm so that it tells members of groups.
 */
#ifndef DAEMON_PORTS_H
#define DAEMON_PORTS_H

#include "cm/cm.h"
#include "daemon/clients/objects.h"

struct daemon_ports {
	struct fabric *f;
	struct daemon_objects *objects;
	struct cm *cm;
	struct daemon_port_told {
		uint16_t lid;
		uint8_t lmc, state;
	} * told; /* by index: what processes have been told last */
	/* the SA may not know the port's memberships any more, or by other LIDs; may be NULL */
	void (*members)(void *arg, struct fabric_port *p);
	void *members_arg;
};

/* 0 or -ENOMEM. */
int daemon_ports_init(struct daemon_ports *ports, struct fabric *f, struct daemon_objects *objects,
                      struct cm *cm);

/* Sends an event of @p to every process that has its HCA open. */
void daemon_port_tell(struct daemon_ports *ports, const struct fabric_port *p,
                      enum ibv_event_type type);

/* The same, and the port's members of groups must join anew. */
void daemon_port_reset(struct daemon_ports *ports, struct fabric_port *p, enum ibv_event_type type);

/* The port has to register with its subnet manager again. Its members of groups are registered for
 * them; without the setting keep_groups they must join anew. */
void daemon_port_reregister(struct daemon_ports *ports, struct fabric_port *p);

/* After a sweep: ports have gone up or down, or have other LIDs. Tells the users of the port; or of
 * all ports. */
void daemon_port_swept(struct daemon_ports *ports, struct fabric_port *p);
void daemon_ports_tell(struct daemon_ports *ports);

/* A Set has changed what a port is: @what of enum fabric_port_change. */
void daemon_port_changed(struct daemon_ports *ports, struct fabric_port *p, unsigned what);

/* The device of an Ethernet port has changed: @what of enum fabric_ethernet_change. */
void daemon_port_ethernet_changed(struct daemon_ports *ports, struct fabric_port *p, unsigned what);

/* The SA may have changed what it says to all ports: they ask again. */
void daemon_ports_refresh(struct daemon_ports *ports);

#endif
