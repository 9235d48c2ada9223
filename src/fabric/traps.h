/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traps of the subnet management agents (InfiniBand specification volume 1, section
 * 14.2.5.1): each is a Notice, sent once to the subnet manager that the node's PortInfo
 * names. To who knows none, nothing is sent.
 *
 * The manager's; not thread-safe. What the fabric is when they are called is what the
 * subnet manager finds.
 */
#ifndef FABRIC_TRAPS_H
#define FABRIC_TRAPS_H

#include "fabric/mads.h"

/* 128: a port of the switch @sw has gone down or come back. Of an HCA: nothing. */
void fabric_trap_link_state(struct fabric *f, struct fabric_node *sw);

/* 144: the CapabilityMask of @p, an HCA's port or a switch's port 0, has changed. */
void fabric_trap_capabilities(struct fabric *f, struct fabric_port *p);

/* 256: the request @mad, which arrived at @at, had the wrong M_Key. */
void fabric_trap_bad_m_key(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad);

#endif
