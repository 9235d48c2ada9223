/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The plan of a fabric before it is built: hosts, their HCAs, switches, links. The builders here
 * or a topology file (topology_file.h) fill it; fabric_plan_finish() completes it; fabric_new()
 * (build.h) builds the fabric. A plan has no port states and no LIDs.
 *
 * Nodes and hosts have numbers, from 0 in the order in which they were added. Names are made
 * unique. Not thread-safe.
 */
#ifndef FABRIC_PLAN_H
#define FABRIC_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/model/fabric.h"
#include "fabric/model/names.h"

#define FABRIC_MAX_HOSTS      49151
#define FABRIC_MAX_HOST_PORTS 256 /* of all HCAs of a host */
#define FABRIC_MAX_NODES      49151
#define FABRIC_MAX_ALL_PORTS  (1u << 20)
#define FABRIC_MAX_LIDS       (IB_LID_MCAST_FIRST - 1) /* HCA ports and switches */

#define FABRIC_UNLINKED UINT32_MAX

/* Width and speed as in struct ibv_port_attr. */
struct fabric_link_rate {
	uint8_t width, speed;
};

#define FABRIC_RATE_DEFAULT ((struct fabric_link_rate){ FABRIC_WIDTH_4X, FABRIC_SPEED_EDR })

struct fabric_plan_port {
	/* of an HCA's port or a switch's port 0; 0: fabric_plan_finish() chooses one */
	uint64_t guid;
	uint32_t peer_node; /* FABRIC_UNLINKED: nothing plugged in */
	uint8_t peer_port;
	struct fabric_link_rate rate;
};

struct fabric_plan_node {
	enum fabric_node_type type;
	char name[FABRIC_NAME];
	char device[FABRIC_NAME]; /* HCAs: what programs on its host call it; empty: as @name */
	bool is_named;            /* by its device */
	char desc[FABRIC_DESC];   /* NodeDescription */
	unsigned host;            /* HCAs */
	unsigned n_ports;
	struct fabric_plan_port *port; /* [1] to [n_ports], and a switch's [0] */
	uint64_t guid, system_guid;    /* 0: fabric_plan_finish() chooses one */
	/* what it says that it is; zero, empty: fabric_plan_finish() fills in what Umbel's nodes
	 * say */
	uint32_t vendor_id, device_id;
	char type_name[FABRIC_WORD], fw_ver[FABRIC_WORD], board_id[FABRIC_WORD]; /* HCAs */
	bool enhanced_port0;
	bool is_router; /* HCAs: the node says that it is a router (fabric/model/routers.h) */
	bool ethernet;  /* HCAs: each port is a network device (ethernet.h) */
};

struct fabric_plan_host {
	char name[FABRIC_NAME];
	unsigned n_hcas, n_ports;
};

struct fabric_plan {
	struct fabric_plan_host *host;
	struct fabric_plan_node *node;
	unsigned n_hosts, n_nodes, n_hcas, n_switches, n_hca_ports, n_ports;
	unsigned host_room, node_room;
	struct fabric_names host_names, node_names;
	/* what HCAs are called on their hosts, with one "%d" for a number from 0; NULL: as they say
	 */
	const char *device_names;
	unsigned hcas; /* of each host that the builders below make; 0: one */
};

void fabric_plan_init(struct fabric_plan *plan);
void fabric_plan_fini(struct fabric_plan *plan);

/*
 * These add a host or a node and return its number; -ERANGE: more than a fabric can have
 * (FABRIC_MAX_*); -EINVAL: no such host, or a node cannot have so many ports; -ENOMEM. Its name is
 * made from @name; if that is NULL or has no usable character, it is "h" or "sw" and a number. An
 * HCA is named after its host: umbel_h1_0; if it has a device's name, fabric_plan_finish() changes
 * that to h1.mlx5_0, or mlx5_0 where there is no other host. The description of a switch is its
 * name, that of an HCA its host's name and its device's.
 */
int fabric_plan_add_host(struct fabric_plan *plan, const char *name);
int fabric_plan_add_hca(struct fabric_plan *plan, unsigned host, unsigned n_ports);
/* An HCA of one Ethernet port, named after its network device, umbel_eth0; @device NULL: its host.
 */
int fabric_plan_add_ethernet(struct fabric_plan *plan, unsigned host, const char *device);
int fabric_plan_add_switch(struct fabric_plan *plan, const char *name, unsigned n_ports);

struct fabric_plan_end {
	unsigned node, port;
};

/* Links two ports. Returns 0; -EINVAL: no such port, or @a is @b; -EBUSY: one is linked already. */
int fabric_plan_link(struct fabric_plan *plan, struct fabric_plan_end a, struct fabric_plan_end b,
                     struct fabric_link_rate rate);

/*
 * Makes the HCAs of the hosts in @names, a list with commas, routers. 0; -ENOENT: there is no such
 * host; -EINVAL: it is on Ethernet. *@name, of *@len bytes, is the one that is meant.
 */
int fabric_plan_set_routers(struct fabric_plan *plan, const char *names, const char **name,
                            size_t *len);

/*
 * Names the HCAs, fills in what nodes say that they are, chooses the missing GUIDs, and checks the
 * plan as a whole. Returns 0; -EINVAL: the reason is in
 * @why (at most @len bytes) and the number of the node in @node (-1: none); -ENOMEM.
 */
int fabric_plan_finish(struct fabric_plan *plan, int *node, char *why, size_t len);

/*
 * The IP addresses of port number @n of host number @host. Number 0 is the host's first port with
 * a link (its first port, if none has one); the others follow in order. Host i has 10.n.x.y with
 * x = i / 254 and y = i % 254 + 1 (network order), and fd75:6d62:656c:n::(i + 1).
 */
void fabric_plan_address(unsigned host, unsigned n, uint32_t *ipv4, uint8_t ipv6[16]);

enum {
	FABRIC_PLAN_PKEYS = 15,      /* partitions that have addresses of their own */
	FABRIC_PLAN_PKEY_PORTS = 16, /* of a host, which have addresses in them */
};

/*
 * Makes the addresses of a port those that it has in partition number @k, from 0, beside the
 * default one: 10.m.x.y and fd75:6d62:656c:m::(i + 1), where m is n + 16 (k + 1).
 */
void fabric_plan_partition_address(unsigned k, uint32_t *ipv4, uint8_t ipv6[16]);

enum { FABRIC_PLAN_ETHERNET_HCAS = 16 }; /* of a host, on a fabric's own Ethernet */

/* Those of HCA number @k, from 0, of host number @n on a fabric's own Ethernet: 172.(16 + k).x.y
 * alike, and fd75:6d62:656c:(e000 + k)::(n + 1). */
void fabric_plan_ethernet_address(unsigned n, unsigned k, uint32_t *ipv4, uint8_t ipv6[16]);

/* ---- plan_build.c: the shapes that `umbel up` offers; on a fresh plan, and finished ---- */

/*
 * @n hosts, h1 and so on, with HCAs of one port each, on one 36-port switch if its ports
 * suffice, else on a tree of them. Returns 0; -ERANGE: too few or too many hosts; -ENOMEM.
 */
int fabric_plan_tree(struct fabric_plan *plan, unsigned n);

struct fabric_fat_tree {
	unsigned levels; /* 2 or 3 */
	unsigned radix;  /* ports of a switch: even */
	unsigned hosts;  /* 0: as many as there is room for */
};

/*
 * A fat tree: each switch has as many links up as down, so that the upper links carry no more
 * than the lower ones. With fewer hosts than there is room for, unused leaf switches (with 3 levels
 * whole pods) are left out; spines are not. Returns 0; -EINVAL: the reason is in @why; -ENOMEM.
 */
int fabric_plan_fat_tree(struct fabric_plan *plan, const struct fabric_fat_tree *shape, char *why,
                         size_t len);

#endif
