/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports of the Ethernet link layer. Such a port is a network device of the host, linked to
 * nothing in the fabric: what leaves it goes out on the wire, by RoCEv2. It has neither LID nor
 * subnet manager; its GIDs are the device's addresses.
 *
 * Whoever watches the devices says here what has changed. Not thread-safe.
 */
#ifndef FABRIC_ETHERNET_H
#define FABRIC_ETHERNET_H

#include "fabric/fabric.h"

/* What a network device is like. All zero: there is none. */
struct fabric_ethernet {
	uint32_t ifindex;
	bool up;       /* it carries packets */
	uint8_t round; /* another one, other sockets */
	uint32_t ipv4; /* its first address, network order; 0: none */
	uint8_t ipv6[16];
	struct ib_gid gid[SHM_GIDS]; /* zero where an entry is empty */
};

/* Whether the ports of HCA @hca (index) are Ethernet's. */
static inline bool fabric_hca_is_ethernet(const struct fabric *f, uint32_t hca)
{
	return f->hca_port[f->region->hcas[hca].first_port]->ethernet;
}

enum fabric_ethernet_change {
	FABRIC_ETHERNET_STATE = 1,
	FABRIC_ETHERNET_GIDS = 2,
};

/*
 * The device of @p is now like @now, and takes messages of @mtu (enum ibv_mtu). Publishes that,
 * and compiles flows anew that may lead elsewhere. Which of enum fabric_ethernet_change it was.
 */
unsigned fabric_ethernet_set(struct fabric *f, struct fabric_port *p,
                             const struct fabric_ethernet *now, uint8_t mtu);

/*
 * The fabric's own port that has @gid: @from if it has it, as addresses of one link need not be
 * unique among several; or NULL, as it is not ours or its port is down.
 */
struct fabric_port *fabric_ethernet_find(const struct fabric *f, struct fabric_port *from,
                                         const struct ib_gid *gid);

#endif
