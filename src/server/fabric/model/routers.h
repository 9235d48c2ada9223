/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Routers to other subnets (InfiniBand specification volume 1, chapter 19), as this subnet sees
 * them: end ports whose nodes are routers, and which subnets, by the prefix of their GIDs, can be
 * reached through which of them. If a packet for another subnet arrives at such a port, the daemon
 * takes it there (daemon/router/). Only the daemon uses this; not thread-safe.
 */
#ifndef FABRIC_ROUTERS_H
#define FABRIC_ROUTERS_H

#include "fabric/model/fabric.h"

#define FABRIC_ROUTERS 16 /* ports that can be routers' */
#define FABRIC_ROUTES  64 /* other subnets that are known */

/* The way to a subnet: the best that there is. */
struct fabric_route {
	uint64_t prefix; /* host order */
	uint8_t router;  /* fabric_port.router: from 1 */
	uint8_t hops;    /* subnets that are entered: 1 is the next one */
};

struct fabric_routers {
	struct fabric_port *port[FABRIC_ROUTERS];
	unsigned n;
	uint16_t active; /* fabric_router_bit() of those that lead to another subnet now */
	struct fabric_route route[FABRIC_ROUTES];
	unsigned n_routes;
	/* A queue pair was attached to a group that may reach beyond the subnet (@change is 1), or
	 * detached (-1). NULL: nobody wants to know. */
	void (*attached)(void *arg, const struct ib_gid *mgid, int change);
	void *arg;
};

/* The bit of a router's port in a mask of all. */
static inline uint16_t fabric_router_bit(const struct fabric_port *p)
{
	return (uint16_t)(1u << (p->router - 1));
}

/* Numbers a port, if its node is a router, and there are not too many. */
void fabric_router_add(struct fabric *f, struct fabric_port *p);

/* The prefix of a GID, in host order. */
uint64_t fabric_prefix_of(const struct ib_gid *gid);

/* Whether @gid, which is not a group's, is in another subnet: its prefix is neither this subnet's
 * nor the link-local one. */
bool fabric_gid_is_beyond(const struct fabric *f, const struct ib_gid *gid);

/* Whether the group's packets may leave the subnet: its scope is wider than the link (section
 * 4.1.1). */
bool fabric_mgid_is_wide(const struct ib_gid *mgid);

/* The way to the subnet with this prefix; NULL: none is known. */
const struct fabric_route *fabric_route_find(const struct fabric *f, uint64_t prefix);

/* Gives the subnet another prefix, so all its ports other GIDs. Flows do not follow by themselves.
 */
void fabric_set_prefix(struct fabric *f, uint64_t prefix);

#endif
