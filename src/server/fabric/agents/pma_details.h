/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The optional counters of a port: by virtual lane, by service level, by the reason why a packet
 * was dropped. Counters of what never happens here are there, and stay 0: links are never congested
 * and need no flow control packets, as no packet waits for a link (docs/subnet.md). For pma.c.
 */
#ifndef FABRIC_PMA_DETAILS_H
#define FABRIC_PMA_DETAILS_H

#include "fabric/model/fabric.h"

/* The ports that PortSelect names: numbers @first to @last. */
struct fabric_pma_ports {
	struct fabric *f;
	struct fabric_node *node;
	unsigned first, last;
};

/* Whether @node has this optional attribute. */
bool fabric_pma_has_details(const struct fabric_node *node, uint16_t attribute);

/* Serves a Get or a Set of it, in @data. Returns enum mad_status. */
uint16_t fabric_pma_details(const struct fabric_pma_ports *at, uint16_t attribute, uint8_t *data,
                            bool is_set);

#endif
