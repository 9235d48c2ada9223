/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links and switches that fail and return. Cables stay plugged in. Both ports of a link that is
 * down are DOWN (physically polling). When the link returns they are INIT, as after a reset,
 * until a subnet manager makes them ACTIVE. All links of a dead switch are down; a revived switch
 * has lost its tables. A switch whose port goes down or comes back sets
 * SwitchInfo:PortStateChange and sends trap 128 to its subnet manager (traps.h).
 *
 * A caller that wants new routes at once has the embedded subnet manager sweep. Only the daemon
 * uses this; not thread-safe.
 */
#ifndef FABRIC_LINK_H
#define FABRIC_LINK_H

#include <stdbool.h>

#include "fabric/model/fabric.h"

/* The node named @name, or NULL. */
struct fabric_node *fabric_node_find(const struct fabric *f, const char *name);

/*
 * Sets the link at @p down, or up again. Returns 0; -ENOTCONN: nothing is plugged in there;
 * -EALREADY: it is down, or up, already; -EHOSTDOWN: it cannot come up, as a switch at one of its
 * ends is dead; -EBUSY: as a fault keeps it down.
 */
int fabric_link_set(struct fabric *f, struct fabric_port *p, bool up);

/* The same as fabric_link_set() and fabric_switch_set(), but the flows follow later:
 * fabric_flow_note_link(). */
int fabric_link_note(struct fabric *f, struct fabric_port *p, bool up);
int fabric_switch_note(struct fabric *f, struct fabric_node *sw, bool alive);

/*
 * That is wrong with the link at @p from now on, which is plugged in, and nothing else. It goes
 * down, comes up, or trains again, so that it gets another width or speed: then it is INIT. Flows
 * follow later: fabric_flow_note_link(). Whether the state of its ends has changed.
 */
bool fabric_link_set_fault(struct fabric *f, struct fabric_port *p,
                           const struct fabric_link_fault *fault);

/*
 * An SMA does this to its port when PortPhysicalState or PortState of PortInfo is set; the caller
 * updates the flows. poll: brings a link up that is down, if nothing keeps it down. disable: keeps
 * the link down, or stops keeping it down. retrain: sets the link down and lets it come up again,
 * with both ends INIT; it stays down if they share no width and speed (training.h), or if both ends
 * are asleep. sleep: the same, and says whether the port is asleep until the link is up.
 */
void fabric_port_poll(struct fabric *f, struct fabric_port *p);
void fabric_port_disable(struct fabric *f, struct fabric_port *p, bool disabled);
void fabric_port_retrain(struct fabric *f, struct fabric_port *p);
void fabric_port_sleep(struct fabric *f, struct fabric_port *p, bool asleep);

/* Kills a switch or revives it; links that were set down stay down. Returns 0 or -EALREADY. */
int fabric_switch_set(struct fabric *f, struct fabric_node *sw, bool alive);

#endif
