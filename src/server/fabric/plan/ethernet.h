/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports of the Ethernet link layer. Such a port stands for a network device of the host. It is
 * linked to nothing in the fabric: its packets go out to the network, by RoCEv2. It has neither
 * LID nor subnet manager; its GIDs are the device's addresses.
 *
 * The daemon watches the devices and calls fabric_ethernet_set() when one changes. Not
 * thread-safe.
 */
#ifndef FABRIC_ETHERNET_H
#define FABRIC_ETHERNET_H

#include "fabric/model/fabric.h"

/* Whether the ports of HCA @hca (index) are Ethernet's. */
static inline bool fabric_hca_is_ethernet(const struct fabric *f, uint32_t hca)
{
	return f->hca_port[shm_hca_at(f->region, hca)->first_port]->ethernet;
}

enum fabric_ethernet_change {
	FABRIC_ETHERNET_STATE = 1,
	FABRIC_ETHERNET_GIDS = 2,
};

/*
 * Sets the state of @p's device to @now, and the port's MTU to @mtu (enum ibv_mtu). Publishes the
 * port and compiles the flows again that this may change. Returns enum fabric_ethernet_change,
 * ORed; 0: nothing of these changed.
 */
unsigned fabric_ethernet_set(struct fabric *f, struct fabric_port *p,
                             const struct fabric_ethernet *now, uint8_t mtu);

#endif
