/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast paths: the queue pairs that packets to a multicast LID reach from one switch, and the
 * links that they cross. All flows to a group that enter the subnet by the same switch share one,
 * so that thousands of senders to thousands of receivers cost no more than the number of
 * switches. Some flows share with no other and have a path of their own: unicast flows, flows from
 * an Ethernet port, and flows of a queue pair that wants no copy of its own messages.
 *
 * Complication: senders at different ports of the switch differ in two links: the first link, and
 * the link back to the sender, which its packets do not cross, as the HCA gives the sender's own
 * port its copy. A flow adds the first and leaves out the second by itself. Flows of different
 * partitions never share a path, as switches may block one partition and pass the other; nor do
 * flows of different service levels, which use different lanes, nor senders at different ports of
 * a switch where the way depends on the port (fabric_node.parts_ports).
 *
 * For flow.c. Only the daemon uses this; not thread-safe.
 */
#ifndef FABRIC_MCAST_PATH_H
#define FABRIC_MCAST_PATH_H

#include <sys/queue.h>

#include "fabric/model/attach_table.h"
#include "fabric/model/flow_state.h"

/* A link that packets cross, by the port where it begins, and their lane; FABRIC_LANE_NONE: they
 * have none there, or the link carries none, and they are dropped. */
struct fabric_mcast_path_hop {
	struct fabric_port *out;
	struct fabric_mcast_path *path;
	TAILQ_ENTRY(fabric_mcast_path_hop) of_port;
	uint8_t vl;
	uint8_t in; /* the port by which they came to @out's switch; FABRIC_HOP_IN_UNKNOWN */
};

#define FABRIC_HOP_IN_UNKNOWN 255 /* no switch has such a port */

/* A switch's port that drops packets. */
struct fabric_mcast_path_loss {
	struct fabric_port *at; /* port 0: the port by which the sender's packets came in */
	enum fabric_loss why;
};

/* All paths to a multicast GID with a multicast LID. */
struct fabric_mcast_group {
	struct base_hash_node by_gid;
	struct ib_gid mgid;
	LIST_HEAD(, fabric_mcast_path) paths;
	uint64_t packets, bytes; /* the sums of theirs */
	uint32_t n_flows;        /* of theirs */
	bool loses_some;         /* change.h: fabric_change_gone() */
};

struct fabric_mcast_path {
	struct fabric_flow_key key; /* qpn 0: several senders may share it */
	uint16_t pkey;              /* of the packets */
	uint8_t in; /* the port of the ingress by which they come; 0: any, it makes no difference */
	struct fabric_node *ingress; /* the switch where packets enter the subnet, or NULL */
	struct fabric_port *from;    /* ingress is NULL: the port where the walk begins */
	LIST_HEAD(, fabric_flow) flows;
	LIST_ENTRY(fabric_mcast_path) of_ingress;
	TAILQ_ENTRY(fabric_mcast_path) of_stale;
	bool stale;                       /* it is to be compiled again */
	uint64_t round;                   /* fabric_flow_marks.round, when it was compiled last */
	uint64_t compiled;                /* fabric_flows.compiled, likewise */
	struct fabric_mcast_group *group; /* NULL: it is to none */
	LIST_ENTRY(fabric_mcast_path) of_group;
	struct base_hash_node by_lid, by_key;
	uint64_t list_off; /* of QP numbers, in shared memory */
	uint32_t list_room, count;
	struct fabric_mcast_path_hop *hop;
	struct fabric_port **reached;
	struct fabric_mcast_path_loss *loss;
	uint32_t n_hops, n_reached, n_losses, hop_room, reached_room, loss_room;
	uint64_t *visited; /* multicast: bits of the switches that packets come through, by index */
	uint32_t visited_words;
	uint16_t routers; /* whose ports it reaches: fabric_router_bit() */
	uint8_t mtu;
	bool unpruned;           /* it may list queue pairs that are gone */
	uint64_t packets, bytes; /* that its flows have sent, as far as they were counted */
	uint64_t counted_turn; /* the loop's turn in which a leaving receiver had the flows counted;
	                          0: none */
	TAILQ_ENTRY(fabric_mcast_path) of_unpruned;
	bool lacks_hops,
	        is_noted; /* there was no memory for all of them; it is in the list of such */
	LIST_ENTRY(fabric_mcast_path) of_lacking;
	bool roce; /* packets go out to the network by an Ethernet port */
};

/* NULL: no path leads to it. */
struct fabric_mcast_group *fabric_mcast_group_find(const struct fabric *f,
                                                   const struct ib_gid *mgid);

/* Finds the path that a flow from @from shares, or makes a new one. Returns 0 or -ENOMEM. */
int fabric_mcast_path_get(struct fabric *f, struct fabric_port *from,
                          const struct fabric_flow_key *key, struct fabric_mcast_path **path);

/* Removes @flow from the list of its port. */
void fabric_mcast_path_leave_port(struct fabric_flow *flow);

/* Frees it if it has no flows. */
void fabric_mcast_path_put(struct fabric *f, struct fabric_mcast_path *s);

/* Adds @flow to @s and writes its record; or removes it. */
void fabric_mcast_path_join(struct fabric *f, struct fabric_mcast_path *s,
                            struct fabric_flow *flow);
void fabric_mcast_path_leave(struct fabric *f, struct fabric_flow *flow);

/* Writes the record of @flow, one of its own, again. */
void fabric_mcast_path_write(const struct fabric *f, const struct fabric_mcast_path *s,
                             struct fabric_flow *flow);

/* The receivers' numbers, s->count of them; there is room for s->list_room. */
uint32_t *fabric_mcast_path_list(const struct fabric *f, const struct fabric_mcast_path *s);

/* Whether the path is to list queue pair @qpn: the path reaches its port, and it is attached. */
bool fabric_mcast_path_is_for(const struct fabric *f, const struct fabric_mcast_path *s,
                              uint32_t qpn);

/* Rewrites the records of those of its flows that are to go by the daemon now, or no longer. */
void fabric_mcast_path_detour(const struct fabric *f, const struct fabric_mcast_path *s);

/* Walks the tables again and rewrites the records of all its flows. */
void fabric_mcast_path_compile(struct fabric *f, struct fabric_mcast_path *s);

/* Adds the receiver @qpn, if the path reaches its port; or removes it. */
void fabric_mcast_path_receiver_add(struct fabric *f, struct fabric_mcast_path *s, uint32_t qpn);
void fabric_mcast_path_receiver_remove(struct fabric *f, struct fabric_mcast_path *s, uint32_t qpn);

/* Removes the receivers that are gone, as their records say. */
void fabric_mcast_path_prune(struct fabric *f, struct fabric_mcast_path *s);

/*
 * @out, which leads to an HCA, was added to the multicast row of its switch, or removed: adds or
 * removes the receivers behind it. @g: the queue pairs attached there; NULL: none.
 */
void fabric_mcast_path_edge(struct fabric *f, struct fabric_mcast_path *s, struct fabric_port *out,
                            const struct fabric_attached *g);

/*
 * The lanes out of @out have changed: packets that leave there have their new lane from now on.
 * Only paths that begin or cease to be dropped there are compiled again.
 * fabric_flow_lanes_changed()
 */
void fabric_mcast_path_lanes_changed(struct fabric *f, struct fabric_port *out);

/* The link of @out carries packets, or no longer does: notes that the paths that leave there are to
 * be compiled again. It takes no longer if they are many. */
void fabric_mcast_path_link_changed(struct fabric *f, struct fabric_port *out);

/* Notes that the path is to be compiled again. */
void fabric_mcast_path_note_stale(struct fabric *f, struct fabric_mcast_path *s);

/* Whether any are noted, or flows whose first link has changed; and does one of them, or of such
 * flows some. */
bool fabric_mcast_path_is_behind(struct fabric *f);
void fabric_mcast_path_follow(struct fabric *f);

/* Whether packets come through @sw. */
bool fabric_mcast_path_visits(const struct fabric_mcast_path *s, const struct fabric_node *sw);

/* Finds the way by which responses to the flow come back, if any have come. It is kept, as it is
 * needed again. Not while paths are walked through: it may be a new one. Returns whether it is. */
bool fabric_flow_find_back(struct fabric *f, struct fabric_flow *flow);

/* The type of the queue pair whose packets they are: enum ibv_qp_type. Routers send on datagrams
 * alone. */
uint8_t fabric_flow_type(const struct fabric *f, const struct fabric_flow *flow);

/* Whether something was counted on the flow with this number since it was last added up. */
bool fabric_flow_has_more(const struct fabric *f, uint32_t id);

/* The fate of a packet on a link. */
enum fabric_fate {
	FABRIC_FATE_ARRIVES,
	FABRIC_FATE_DAMAGED, /* it arrives, and goes no further */
	FABRIC_FATE_LOST,
};

/* Why a packet that goes by the daemon does not arrive. */
struct fabric_mishap {
	/* on the link that begins at @out; on Ethernet, where there is none, @out is its sender's
	 * port */
	enum fabric_fate (*fate)(void *arg, const struct fabric_port *out);
	void *arg;
	uint8_t *behind; /* scratch, zero: by switch, then by HCA port, whether it does not come
	                    there */
};

/* Adds a packet of the flow to the ports that it crosses, which its sender has not counted as the
 * daemon sees it. @m: NULL if it arrives. */
void fabric_flow_count_packet(struct fabric *f, struct fabric_flow *flow, uint32_t bytes,
                              const struct fabric_mishap *m);

/* Adds what the flow's sender has counted since the last call to the ports along the path, and to
 * those of the way back, if that is known. */
void fabric_flow_count(struct fabric *f, struct fabric_flow *flow);

#endif
