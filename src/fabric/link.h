/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links and switches that fail and return. What is plugged in stays plugged in: a link
 * that is down has both its ports DOWN (physically polling), and when it returns they
 * are INIT, as after a reset, until a subnet manager makes them ACTIVE. A switch that
 * is dead takes all its links down; one that is revived has lost its tables. A switch
 * that sees a port go down or come back notes it in SwitchInfo:PortStateChange and tells
 * its subnet manager by trap 128 (traps.h).
 *
 * Called by whoever breaks the fabric; telling the subnet manager is up to them. The
 * manager's; not thread-safe.
 */
#ifndef FABRIC_LINK_H
#define FABRIC_LINK_H

#include <stdbool.h>

#include "fabric/fabric.h"

/* The node named @name, or NULL. */
struct fabric_node *fabric_node_find(const struct fabric *f, const char *name);

/*
 * Takes the link at @p down, or up again. 0; -ENOTCONN: nothing is plugged in there;
 * -EALREADY: it is so already; -EHOSTDOWN: it cannot come up, as a switch at one of its
 * ends is dead.
 */
int fabric_link_set(struct fabric *f, struct fabric_port *p, bool up);

/*
 * What an SMA does to its port (PortPhysicalState and PortState of PortInfo): a link that is
 * down comes up, if nothing keeps it down; it keeps the link down, or no more; takes it down for
 * a moment, until both ends are INIT or find nothing to agree on (training.h). Flows are up to
 * the caller.
 */
void fabric_port_poll(struct fabric *f, struct fabric_port *p);
void fabric_port_disable(struct fabric *f, struct fabric_port *p, bool disabled);
void fabric_port_retrain(struct fabric *f, struct fabric_port *p);

/* Kills a switch or revives it; links that were taken down stay down. 0 or -EALREADY. */
int fabric_switch_set(struct fabric *f, struct fabric_node *sw, bool alive);

#endif
