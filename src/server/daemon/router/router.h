/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Routers: ports by which datagrams leave this subnet for others, and come in from there
 * (InfiniBand specification volume 1, chapter 19). `umbel router` joins a router's port of one
 * fabric to one of another by a socket between the two daemons (link.h); each end then is:
 *
 *	router.c   the ports, the peers at their other ends, and questions about them
 *	routes.c   which subnets are reached through which router
 *	groups.c   groups of both subnets, of which the router's ports are members
 *	forward.c  packets that leave, and packets that come in
 *
 * A packet that reaches a router's port comes here from the detour, and one that comes in from
 * another subnet goes there: rules, captures and counters treat both as any other. UD's packets
 * with a GRH cross, and no MADs or connections.
 */
#ifndef DAEMON_ROUTER_H
#define DAEMON_ROUTER_H

#include "base/idtable.h"
#include "cm/cm.h"
#include "daemon/clients/request.h"
#include "daemon/detour/detour.h"
#include "daemon/router/link.h"

#define ROUTER_NAME      32
#define ROUTER_MAX_HOPS  16          /* subnets to enter on a way that is known */
#define ROUTER_MOST_TOLD (256 << 10) /* bytes that wait for the other end, and it is told later */

struct router_flow;

/* Why packets do not go on. */
enum router_drop {
	ROUTER_DROP_HOPS,  /* the hop limit does not allow another subnet */
	ROUTER_DROP_PKEY,  /* the router's port is not in the partition */
	ROUTER_DROP_ROUTE, /* no way leads there, or not this one */
	ROUTER_DROP_FULL,  /* too many wait for the other subnet */
	ROUTER_DROPS,
};

struct daemon_router {
	struct daemon_routers *all;
	struct fabric_port *port;
	struct router_link link;
	bool is_up;       /* the other end has named itself */
	bool owes_routes; /* the other end has not been told of all routes */
	bool is_full;     /* many wait for the other end, so senders wait */
	bool is_stalled;  /* senders have waited for it long enough, and do not until it has caught
	                     up */
	struct base_timer stall;
	char peer[ROUTER_NAME];           /* the other end's fabric, as the joining command says */
	uint64_t prefix;                  /* the other end's subnet's */
	struct router_routes told;        /* what the other end reaches */
	struct cm_program *program;       /* in whose name the port joins groups */
	struct base_hash flows;           /* struct router_flow */
	TAILQ_HEAD(, router_flow) by_use; /* the one that was used last comes last */
	uint64_t sent, received, dropped[ROUTER_DROPS];
};

struct daemon_routers {
	struct fabric *f;
	struct daemon_loop *loop;
	struct daemon_detour *detour;
	struct cm *cm;
	struct daemon_router of[FABRIC_ROUTERS];
	unsigned n_full; /* of those that are full */
	/* groups.c */
	struct base_hash groups;     /* struct router_wide, by MGID */
	struct base_idtable numbers; /* of groups */
	TAILQ_HEAD(, router_wide) busy;
	struct base_timer work;
	bool said_many;
};

/* f, loop, detour and cm are set. */
void daemon_routers_init(struct daemon_routers *all, struct daemon_requests *requests);
void daemon_routers_stop(struct daemon_routers *all);

/* The port's memberships may be lost, or the groups have other LIDs: its SA is asked again. */
void daemon_router_reset(struct daemon_routers *all, const struct fabric_port *port);

/* The subnet has another prefix: routes that name the old one are wrong, and its routers end. */
void daemon_routers_prefix_changed(struct daemon_routers *all);

/* The router with this number (fabric_port.router). */
static inline struct daemon_router *daemon_router_of(struct daemon_routers *all, unsigned number)
{
	return &all->of[number - 1];
}

/* ---- among the files of this room ---- */

/* routes.c: the other end has told its routes, or has gone. */
bool router_routes_heard(struct daemon_router *r, const struct router_routes *routes);
void router_routes_changed(struct daemon_routers *all);
void router_routes_tell(struct daemon_router *r);

/* groups.c */
void router_groups_init(struct daemon_routers *all);
void router_groups_fini(struct daemon_routers *all);
int router_groups_begin(struct daemon_router *r); /* 0 or -ENOMEM */
void router_groups_end(struct daemon_router *r);
void router_group_heard(struct daemon_router *r, const struct router_group *m);
void router_groups_reset(struct daemon_router *r);
/* Whether the other end wants messages to the group; and by which MLID, with which SL, the port is
 * a member: 0 if it is none. */
bool router_group_is_wanted(const struct daemon_router *r, const struct ib_gid *mgid);
uint16_t router_group_mlid(const struct daemon_router *r, const struct ib_gid *mgid, uint8_t *sl);
unsigned router_groups_count(const struct daemon_router *r);

/* forward.c */
void router_forward_init(struct daemon_routers *all);
void router_forward_in(struct daemon_router *r, const struct router_packet *p, const void *payload);
void router_forward_end(struct daemon_router *r);

#endif
