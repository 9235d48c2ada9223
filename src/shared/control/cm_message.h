/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The requests of librdmacm to the daemon's cm/, by the process's connection of role VERBS.
 *
 * For each event that a process has not got, its channel's descriptor has one datagram, so that
 * poll() and O_NONBLOCK work as with the original's device file. The datagram is the event (struct
 * control_cm_got), or one byte (enum control_cm_byte). CONTROL_CM_ASK: the event waits in the
 * daemon, and the process that receives the byte asks for it with GET_EVENT: so it is with events
 * of joins, and with any event that could not be sent whole. CONTROL_CM_KEPT: the process itself
 * keeps the event, as below.
 *
 * Connection requests that the process has not got count against a listener's backlog. So it says
 * how many it has got so far, by READ, though not at once where the backlog is long; and by
 * DESTROY_ID and MIGRATE_ID, as what it has not got is nobody's then. To use the identifier that a
 * request brings says the same of that one.
 *
 * A process that has got all events that were sent of an identifier does not wait for DESTROY_ID's
 * reply. It knows by memory that it shares with the daemon, and the daemon knows by it that no more
 * are to be sent: shm/events.h.
 *
 * DESTROY_ID, LEAVE and MIGRATE_ID withdraw the events that the process has not got. The reply says
 * how many events have been sent whole, of which the process knows how many it has got, and how
 * many that wait in the daemon are withdrawn. The process receives datagrams until it has those. It
 * keeps other events that it comes across, in order, and asks for as many CONTROL_CM_KEPT (RING).
 * An event that it has no memory for it has sent again (RETURN; RING with CONTROL_CM_ASK): its turn
 * comes later then.
 *
 * RESOLVE_ADDR, RESOLVE_ROUTE, CONNECT and ACCEPT may be requests that nobody waits for: if one
 * fails, there is an ADDR_ERROR, ROUTE_ERROR or CONNECT_ERROR event with its status, unless there
 * is no memory for that, or for the identifier. So may ESTABLISH: each of its failures has an event
 * in any case.
 *
 * A uid is the process's own name for a thing, handed back with its events.
 */
#ifndef CONTROL_CM_MESSAGE_H
#define CONTROL_CM_MESSAGE_H

#include <assert.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include "control/message.h"
#include "shm/events.h"

enum control_cm_type {
	CONTROL_CM_CREATE_CHANNEL = CONTROL_CM_FIRST, /* no body; descriptor with the reply */
	CONTROL_CM_DESTROY_CHANNEL,
	CONTROL_CM_GET_EVENT, /* -EAGAIN: none */
	CONTROL_CM_READ,      /* of a listener; 0, whatever is wrong with it */
	CONTROL_CM_CREATE_ID,
	CONTROL_CM_DESTROY_ID,
	CONTROL_CM_MIGRATE_ID,
	CONTROL_CM_QUERY_ID,
	CONTROL_CM_QUERY_QP,
	CONTROL_CM_SET_OPTION,
	CONTROL_CM_BIND_ADDR,
	CONTROL_CM_RESOLVE_ADDR,
	CONTROL_CM_RESOLVE_ROUTE,
	CONTROL_CM_LISTEN,
	CONTROL_CM_CONNECT,
	CONTROL_CM_ACCEPT,
	CONTROL_CM_REJECT,
	CONTROL_CM_DISCONNECT,
	CONTROL_CM_ESTABLISH, /* the requester's: the connection can be used */
	CONTROL_CM_NOTIFY,
	CONTROL_CM_JOIN,
	CONTROL_CM_LEAVE,
	CONTROL_CM_SERVE,
	CONTROL_CM_RING,
	CONTROL_CM_RETURN,
	CONTROL_CM_END,
};
static_assert(CONTROL_CM_END - 1 <= CONTROL_CM_LAST, "types of role cm");

/* An address as the program gave it; family 0: none. */
union control_cm_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_ib ib;
	uint64_t word[6];
};
static_assert(sizeof(union control_cm_addr) == 48, "layout");

struct control_cm_channel { /* DESTROY_CHANNEL, GET_EVENT */
	uint32_t channel;
};

/* CREATE_CHANNEL's reply. @events: where the process's struct shm_events is, in the data part of
 * the shared memory; 0: there is none. Each of its channels says the same. */
struct control_cm_channel_reply {
	uint32_t channel;
	uint32_t reserved;
	uint64_t events;
};

/* Identifiers have numbers below this. The process chooses them, but for those that requests bring,
 * whose numbers are CONTROL_CM_ANNOUNCED beside. */
#define CONTROL_CM_MAX_IDS   65536
#define CONTROL_CM_ANNOUNCED 0x80000000

/* The word of the identifier with that number; NULL: it has none. */
static inline _Atomic uint32_t *control_cm_word(struct shm_events *e, uint32_t id)
{
	return shm_events_word(e, id & CONTROL_CM_ANNOUNCED ? 1 : 0, id & ~CONTROL_CM_ANNOUNCED);
}

/* It may go ahead of the first request about the identifier, as often as that fails: it does
 * nothing if there is the identifier already. */
struct control_cm_create_id {
	uint64_t uid;
	uint32_t id;
	uint32_t channel;
	uint16_t ps;      /* enum rdma_port_space */
	uint16_t qp_type; /* enum ibv_qp_type; for RDMA_PS_IB only */
	uint32_t reserved;
};

/* QUERY_ID, QUERY_QP, DISCONNECT, ESTABLISH */
struct control_cm_id {
	uint32_t id;
};

/* READ, DESTROY_ID */
struct control_cm_read {
	uint32_t id;
	uint32_t requests; /* connection requests that the process has got of it so far */
};

/* DESTROY_ID, LEAVE, MIGRATE_ID: of the events that wait in the daemon how many the process has got
 * so far, and how many are withdrawn now; how many have been sent whole (LEAVE: 0). */
struct control_cm_events_reply {
	uint32_t reported;
	uint32_t withdrawn;
	uint32_t sent;
	uint32_t reserved;
};

enum control_cm_byte { CONTROL_CM_ASK, CONTROL_CM_KEPT, CONTROL_CM_BYTES };

#define CONTROL_CM_MAX_RING 1024

/* RING: @n datagrams of @byte on the channel, CONTROL_CM_MAX_RING at most. */
struct control_cm_ring {
	uint32_t channel;
	uint32_t n;
	uint32_t byte; /* enum control_cm_byte */
};

struct control_cm_migrate_id {
	uint32_t id;
	uint32_t requests; /* as above */
	uint32_t channel;
};

struct control_cm_path {
	struct ib_gid sgid, dgid;
	uint16_t slid, dlid;
	uint16_t pkey;
	uint8_t sl;
	uint8_t mtu;  /* enum ibv_mtu */
	uint8_t rate; /* enum ibv_rate */
	uint8_t life; /* packet life time: 4.096 us << life */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint32_t flow_label;
};

/* BIND_ADDR, LISTEN, SERVE, QUERY_ID: the state of an identifier. */
struct control_cm_id_reply {
	union control_cm_addr src, dst;
	char hca[32]; /* as its program calls it; empty: not bound to one */
	struct ib_gid sgid, dgid;
	uint16_t pkey;
	uint8_t port_num;
	uint8_t num_paths;
	struct control_cm_path path;
};

struct control_cm_ah {
	struct ib_gid dgid;
	uint32_t flow_label;
	uint16_t dlid;
	uint8_t sl;
	uint8_t rate;
	uint8_t is_global;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t port_num;
	uint8_t sgid_index;
	uint8_t reserved[3];
};

/* QUERY_QP: the attributes of a QP. The attributes from dest_qp_num on are known of a connection,
 * as soon as the peer's side of it is known. */
struct control_cm_qp_reply {
	uint32_t qkey;
	uint16_t pkey_index;
	uint8_t port_num;
	uint8_t is_ud;
	uint8_t has_connection, has_peer, is_over;
	uint8_t access; /* enum ibv_access_flags */
	uint8_t path_mtu;
	uint32_t dest_qp_num, rq_psn, sq_psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t timeout, retry_count, rnr_retry_count;
	uint8_t reserved[3];
	struct control_cm_ah ah;
};

#define CONTROL_CM_OPTION 288 /* four struct ibv_path_data */

struct control_cm_set_option {
	uint32_t id;
	int32_t level, name;
	uint32_t bytes;
	uint8_t value[CONTROL_CM_OPTION];
};

struct control_cm_bind_addr {
	uint32_t id;
	uint32_t reserved;
	union control_cm_addr addr;
};

struct control_cm_resolve_addr {
	uint32_t id;
	uint32_t timeout_ms;
	union control_cm_addr src, dst; /* src may be none */
};

struct control_cm_resolve_route {
	uint32_t id;
	uint32_t timeout_ms;
};

/* 0: as many as may be, as with more than that. */
#define CONTROL_CM_MAX_BACKLOG 4096

struct control_cm_listen {
	uint32_t id;
	int32_t backlog;
};

/*
 * SERVE: makes the identifier a listener if it is none, and has the daemon itself respond to the
 * requests that come to the port of the queue pair. Once for each port; the reply is LISTEN's.
 */
struct control_cm_serve {
	uint32_t id;
	uint32_t qp_num;
};

#define CONTROL_CM_PRIVATE     216 /* of a SIDR_REQ, the longest */
#define CONTROL_CM_REQ_PRIVATE 56  /* of a REQ with IP addresses, the shortest */
#define CONTROL_CM_REP_PRIVATE 196 /* of a REP */

/* The parameters that both ends of a connection tell each other; as in struct rdma_conn_param. */
struct control_cm_param {
	uint8_t responder_resources, initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count, rnr_retry_count;
	uint8_t srq;
	uint8_t reserved[2];
	uint32_t ece_vendor, ece_options;
};

struct control_cm_connect { /* CONNECT, ACCEPT, REJECT */
	uint64_t uid;       /* ACCEPT: of the new identifier */
	uint32_t id;
	uint32_t qp_num; /* CONNECT of a connection, ACCEPT */
	uint32_t bytes;
	uint8_t private_data[CONTROL_CM_PRIVATE];
	uint32_t reason; /* REJECT of a connection: enum cm_reason; 0: the usual one */
	struct control_cm_param param;
};

struct control_cm_notify {
	uint32_t id;
	uint32_t event; /* enum ibv_event_type */
};

struct control_cm_join {
	uint64_t uid; /* of the join */
	uint32_t id;
	uint32_t flags; /* enum rdma_cm_mc_join_flags */
	union control_cm_addr addr;
};

struct control_cm_handle { /* JOIN's reply; LEAVE */
	uint32_t join;
};

struct control_cm_event {
	uint64_t uid;  /* the identifier's (the listener's); the join's for multicast events */
	uint32_t type; /* enum rdma_cm_event_type */
	int32_t status;
	uint32_t new_id; /* of a connection request */
	uint32_t qp_num, qkey;
	struct control_cm_ah ah;       /* UD */
	struct control_cm_param param; /* connections */
	uint32_t bytes;
	uint8_t private_data[CONTROL_CM_PRIVATE];
};

/*
 * GET_EVENT's reply, or a datagram of the channel: the event, and what the process would ask for
 * next, by QUERY_ID and QUERY_QP. Of a connection request it is about the new identifier.
 */
struct control_cm_got {
	struct control_cm_event event;
	struct control_cm_id_reply id;
	struct control_cm_qp_reply qp;
	uint32_t has_qp; /* of connected QPs, if there are any attributes */
	uint32_t reserved;
};

/* RETURN: an event that was sent whole, on the channel again; @id: whose it is. If there is no
 * room, it is lost, and a connection request refused. */
struct control_cm_return {
	uint32_t channel;
	uint32_t id;
	struct control_cm_got got;
};
static_assert(sizeof(struct control_cm_return) <= CONTROL_MAX_BYTES, "one packet");
static_assert(sizeof(struct control_cm_set_option) <= CONTROL_MAX_BYTES, "one packet");

#endif
