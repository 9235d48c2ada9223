/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connection of two routers' ports: a socket between the daemons of two subnets, and the
 * messages on it, each one datagram. Messages that the socket has no room for wait here, in order.
 * Both ends are on one machine; a message is checked as a stranger's.
 */
#ifndef DAEMON_ROUTER_LINK_H
#define DAEMON_ROUTER_LINK_H

#include "daemon/core/loop.h"
#include "fabric/model/routers.h"
#include "wire/roce.h"

#define ROUTER_VERSION 1

enum router_message_type { ROUTER_HELLO, ROUTER_ROUTES, ROUTER_GROUP, ROUTER_PACKET };

/* The first message: names the sender. */
struct router_hello {
	uint32_t version;
	uint32_t reserved;
	uint64_t prefix;
};

/* All subnets that the sender of the message reaches, and its own. */
struct router_routes {
	uint32_t n;
	uint32_t reserved;
	struct {
		uint64_t prefix;
		uint64_t hops; /* as struct fabric_route's, for the receiver */
	} route[FABRIC_ROUTES];
};

/* Messages to a group are wanted. */
struct router_group {
	struct ib_gid mgid;
	uint32_t hops; /* subnets to enter up to a receiver; 0: they are not wanted */
	uint32_t reserved;
};

/* A datagram that goes on, with the fields of GRH, BTH and DETH. */
struct router_packet {
	struct ib_gid sgid, dgid;
	uint32_t class_flow; /* as in struct control_detour */
	uint32_t dest_qpn, src_qpn, qkey;
	uint32_t imm; /* network order */
	uint16_t pkey;
	uint8_t hop_limit, sl;
	uint8_t has_imm, solicited;
	uint8_t reserved[2];
	uint32_t payload_bytes; /* which follow */
};

struct router_message {
	uint64_t type; /* enum router_message_type */
	union {
		struct router_hello hello;
		struct router_routes routes;
		struct router_group group;
		struct {
			struct router_packet packet;
			uint8_t payload[WIRE_ROCE_MAX_PAYLOAD];
		};
	};
};

struct router_waiting;

struct router_link {
	struct daemon_loop *loop;
	struct daemon_source source;
	/* A message has come, of the length that its type has. False: it makes no sense, and the
	 * link has ended. */
	bool (*receive)(struct router_link *l, const struct router_message *m);
	bool (*is_busy)(struct router_link *l); /* no message is to come now */
	void (*drained)(struct router_link *l); /* fewer wait than did */
	void (*ended)(struct router_link *l);   /* the other end has gone; may free the link */
	TAILQ_HEAD(, router_waiting) waiting;
	size_t waiting_bytes;
};

/* Uses @fd, a socket of sequenced packets, which is the link's from now on. The functions and loop
 * are set. 0 or -errno, and the caller still has @fd. */
int router_link_open(struct router_link *l, int fd);
void router_link_close(struct router_link *l);

static inline bool router_link_is_open(const struct router_link *l)
{
	return l->loop && daemon_source_is_watched(&l->source);
}

/* Sends a message, sooner or later. False: there is no memory, and it is lost. */
bool router_link_send(struct router_link *l, const struct router_message *m);

/* Likewise a packet, whose payload is elsewhere. */
bool router_link_send_packet(struct router_link *l, const struct router_packet *p,
                             const void *payload);

#endif
