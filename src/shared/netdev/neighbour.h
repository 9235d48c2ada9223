/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Neighbours on a network, as the kernel knows them by ARP and neighbour discovery. The kernel is
 * asked by rtnetlink: for the route to an address, and for the neighbour that packets go to first,
 * the address itself or a gateway. A neighbour that the kernel does not know is sent a datagram,
 * which has the kernel ask for it. The watch tells that it has come (netdev_watch_neighbours()). No
 * privileges are needed, and nothing waits: the kernel replies to such requests before send()
 * returns. Not thread-safe.
 */
#ifndef NETDEV_NEIGHBOUR_H
#define NETDEV_NEIGHBOUR_H

#include "netdev/netdev.h"

struct mnl_socket;

/* By which a network is asked. Set ->network; the rest is zero at first. */
struct netdev_neighbours {
	const struct netdev_network *network; /* NULL: this process's */
	struct mnl_socket *nl;                /* NULL: nothing was asked yet */
	uint32_t seq;
};

void netdev_neighbours_close(struct netdev_neighbours *n);

/* Where packets go first. */
struct netdev_hop {
	int ifindex;
	struct ib_gid gid; /* IPv4: mapped */
	bool is_asked_for; /* the kernel is about it already */
};

/*
 * Where packets from @sgid to @dgid that leave by device @ifindex go first. 1, with *@hop: to a
 * neighbour; 0: to nobody in particular, as they stay on this host or are for a group;
 * -ENETUNREACH and the like: there is no route. 0, too, if the kernel does not say.
 */
int netdev_neighbour_route(struct netdev_neighbours *n, int ifindex, const struct ib_gid *sgid,
                           const struct ib_gid *dgid, struct netdev_hop *hop);

/* 0: the kernel knows @hop, or does not say; -EINPROGRESS: it does not know it. */
int netdev_neighbour_find(struct netdev_neighbours *n, struct netdev_hop *hop);

/* Has the kernel ask for @hop. 0; -EPERM: it may not, as by a filter. */
int netdev_neighbour_probe(struct netdev_neighbours *n, const struct netdev_hop *hop);

#endif
