/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes network devices, in the network of the calling thread: a bridge, pairs of which one end is
 * a port of it, devices that share another one, addresses, routes. By rtnetlink; each call waits
 * for the kernel. It takes CAP_NET_ADMIN there. All return 0 or -errno; -EOPNOTSUPP: the kernel has
 * no such devices.
 */
#ifndef NETDEV_MAKE_H
#define NETDEV_MAKE_H

#include <stdint.h>

#include "netdev/netdev.h"

/*
 * A bridge that is up, and forwards a group to those ports only behind which somebody is a member:
 * it snoops IGMP and MLD. Until netdev_make_querier() it forwards groups to all.
 */
int netdev_make_bridge(const char *name);

/* Has it send queries, once its ports are up; a member that leaves is asked after for 0.2 s. */
int netdev_make_querier(const char *bridge);

/* Has it answer for queries in the usual time. Before, they want an answer at once, so that it
 * knows all members soon. */
int netdev_make_settled(const char *bridge);

struct netdev_pair {
	const char *port, *bridge; /* the end here, which is up, and whose port it is */
	const char *name;          /* of the end there */
	uint8_t mac[NETDEV_MAC_BYTES];
	uint32_t mtu;
	int net; /* the network namespace of the end there, which is down */
};

int netdev_make_pair(const struct netdev_pair *pair);

/* A device (macvlan) in the network namespace @net that shares @parent with its other users, and
 * has the Ethernet address @mac, and IP addresses of its own. It has its name, and is down. */
int netdev_make_shared(const char *parent, const uint8_t mac[static NETDEV_MAC_BYTES], int net);

int netdev_make_up(const char *name);
int netdev_make_ipv4(const char *name, uint32_t address, uint8_t prefix);
int netdev_make_ipv6(const char *name, const uint8_t address[static 16], uint8_t prefix);

/* It answers ARP for addresses of its own alone, not for those of the host's other devices: these
 * may be on the same bridge. */
int netdev_make_arp_its_own(const char *name);

/* Groups of IPv4 are reached by it, unless another device has such a route of a better metric. */
int netdev_make_multicast_route(const char *name);

#endif
