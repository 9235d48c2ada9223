/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What flows have in common: whom packets reach and which links they cross. Of flows to a
 * group all those share one that come into the subnet by the same switch; thousands of senders
 * to thousands of receivers cost no more than there are switches. A flow that is alone of its
 * kind has one to itself: unicast, from an Ethernet port, or of a queue pair that wants no copy
 * of its own messages back.
 *
 * Complication: senders at different ports of the switch differ in their first link, and in the
 * link back to them, which their packets do not cross, as the HCA hands its own port its copy.
 * These two a flow adds and leaves out by itself. Packets of different partitions may get
 * differently far, and share nothing.
 *
 * For flow.c. The manager's; not thread-safe.
 */
#ifndef FABRIC_SPREAD_H
#define FABRIC_SPREAD_H

#include <sys/queue.h>

#include "fabric/attach.h"
#include "fabric/flow.h"

/* Where packets are dropped on their way. */
struct fabric_spread_loss {
	struct fabric_port *at; /* a switch's port 0: that by which they came into the subnet */
	enum fabric_loss why;
};

struct fabric_spread {
	struct fabric_flow_key key;  /* qpn: of the only sender; 0: there may be many */
	uint16_t pkey;               /* of the packets */
	struct fabric_node *ingress; /* the switch that packets come into the subnet by, or NULL: */
	struct fabric_port *from;    /* they are followed from this port on */
	LIST_HEAD(, fabric_flow) flows;
	struct base_hash_node by_gid, by_lid, by_key; /* by_gid: to a multicast GID */
	uint64_t list_off;                            /* of QP numbers, in shared memory */
	uint32_t list_room, count;
	struct fabric_port **hop; /* out ports of the links that packets cross */
	struct fabric_port **reached;
	struct fabric_spread_loss *loss;
	uint32_t n_hops, n_reached, n_losses, hop_room, reached_room, loss_room;
	uint64_t *visited; /* multicast: the switches that they come through, by index */
	uint32_t visited_words;
	uint8_t mtu;
	bool wire; /* they leave by an Ethernet port */
};

/* One for a flow from @from: an old one that it can share, or a new one. 0 or -ENOMEM. */
int fabric_spread_get(struct fabric *f, struct fabric_port *from, const struct fabric_flow_key *key,
                      struct fabric_spread **spread);

/* Frees it if it has no flows. */
void fabric_spread_put(struct fabric *f, struct fabric_spread *s);

/* Adds a flow, and writes its record. */
void fabric_spread_join(struct fabric *f, struct fabric_spread *s, struct fabric_flow *flow);
void fabric_spread_leave(struct fabric_flow *flow);

/* Follows the tables again. */
void fabric_spread_compile(struct fabric *f, struct fabric_spread *s);

/* One receiver more, behind a port that may be reached or not; or less. */
void fabric_spread_receiver_add(struct fabric *f, struct fabric_spread *s, uint32_t qpn);
void fabric_spread_receiver_remove(struct fabric *f, struct fabric_spread *s, uint32_t qpn);

/* The link out of @out, to an HCA, has come to carry what comes by its switch, or does so no
 * more. @g: what is attached there. */
void fabric_spread_edge(struct fabric *f, struct fabric_spread *s, struct fabric_port *out,
                        const struct fabric_attached *g);

/* Links have gone down: follows the tables again if they were crossed. */
void fabric_spread_links_down(struct fabric *f, struct fabric_spread *s);

/* Whether it comes by this switch. */
bool fabric_spread_visits(const struct fabric_spread *s, const struct fabric_node *sw);

/* Adds what the flow's sender has counted to the ports along the way. */
void fabric_flow_count(struct fabric *f, struct fabric_flow *flow);

#endif
