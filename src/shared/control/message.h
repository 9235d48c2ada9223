/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages between a process and the daemon: one SOCK_SEQPACKET datagram a
 * request and one a reply, file descriptors beside them. Layouts are fixed, and numbers in host
 * order; addresses and GIDs have the order of their types. Every request gets a reply, with status
 * 0 or a negative errno, unless the sender does not wait for one. A reply that carries data has its
 * own struct.
 *
 * Requests without a reply can precede another request in its datagram, each padded to a multiple
 * of 8 bytes. They are served in order. When one has failed, the later ones are not served, but get
 * its status.
 *
 * Events (asynchronous verbs events, rdma_cm events) come by other descriptors, which the daemon
 * sends with the reply to the request that opens the source of the events.
 */
#ifndef CONTROL_MESSAGE_H
#define CONTROL_MESSAGE_H

#include <assert.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdint.h>

#include "wire/headers.h"
#include "wire/ib.h"

#define CONTROL_VERSION 3
/* Status of STOP: the daemon ends, but could not write the subnet manager's state (--state). Of no
 * connection's errors. */
#define CONTROL_STOPS_UNSAVED (-ESTALE)

/* Status of the reply to a user that may not enter the fabric, before the connection ends. It
 * replies to a first request, which need not have been sent. */
#define CONTROL_REFUSED      EKEYREJECTED
#define CONTROL_FIRST_SERIAL 1

#define CONTROL_MAX_BYTES 1024
#define CONTROL_MAX_FDS   4

enum control_role {
	CONTROL_ROLE_CLI,
	CONTROL_ROLE_VERBS,
	CONTROL_ROLE_UMAD,
	CONTROL_ROLE_SYSFS,
};

enum control_type {
	CONTROL_HELLO = 1,
	/* verbs */
	CONTROL_OPEN_HCA,
	CONTROL_CLOSE_HCA,
	CONTROL_CREATE_CHANNEL,
	CONTROL_DESTROY_CHANNEL,
	CONTROL_GET_CHANNEL,
	CONTROL_CREATE_CQ,
	CONTROL_DESTROY_CQ,
	CONTROL_CREATE_QP,
	CONTROL_MODIFY_QP,
	CONTROL_DESTROY_QP,
	CONTROL_ATTACH,
	CONTROL_DETACH,
	CONTROL_GET_FLOW,
	CONTROL_GET_PAYLOAD,
	CONTROL_RAISE_EVENT,
	CONTROL_OPEN_ROCE,
	CONTROL_ROCE_SOCKET,
	CONTROL_ROCE_MAD,
	CONTROL_PUT_FLOW,
	CONTROL_OPEN_KEYS,
	CONTROL_OFFER_MEMORY,
	CONTROL_ADD_KEYS,
	CONTROL_GET_MEMORY,
	CONTROL_WAIT,
	CONTROL_CREATE_SRQ,
	CONTROL_DESTROY_SRQ,
	CONTROL_MODERATE_CQ,
	CONTROL_COUNT_ARRIVALS,
	CONTROL_OPEN_XRCD,
	CONTROL_OPEN_XRCD_FILE,
	CONTROL_CLOSE_XRCD,
	CONTROL_OPEN_QP,
	CONTROL_GET_TARGET,
	CONTROL_RESIZE_SRQ,
	CONTROL_OPEN_POSTS, /* descriptor with the reply: a ring for posted requests (posts.h) */
	CONTROL_POSTED,     /* there is something in it */
	CONTROL_RESERVE_QPS,
	CONTROL_RING_HCA,
	CONTROL_WAKE,        /* adds an event to a channel */
	CONTROL_OPEN_DETOUR, /* descriptor with the reply: packets are sent by it (detour.h) */
	CONTROL_MEET_FAULT,
	CONTROL_ALLOC_PD, /* both are posted: for showing protection domains */
	CONTROL_FREE_PD,
	CONTROL_FIND_NEIGHBOUR,
	CONTROL_QUERY_MEMBERSHIP,
	/* rdma_cm: see cm_message.h */
	CONTROL_CM_FIRST = 64,
	CONTROL_CM_LAST = 95,
	/* umad: see umad_message.h */
	CONTROL_UMAD_FIRST = 96,
	CONTROL_UMAD_LAST = 103,
	/* command line */
	CONTROL_SHOW = 128,
	CONTROL_SET,
	CONTROL_STOP,
	CONTROL_LINK,
	CONTROL_SWITCH,
	CONTROL_SM_EVENT,
	CONTROL_PARTITIONS,
	CONTROL_ENTER_HOST,
	CONTROL_CAPTURE,
	CONTROL_ADD_FAULT,
	CONTROL_CLEAR_FAULT, /* body: struct control_handle, the number of the rule; 0: all */
	/*
	 * Descriptor with the reply: a socket by which events come from now on, each a line of JSON
	 * (umbel-monitor(1)), up to the end of the fabric. Events for which there is no room
	 * because the reader is slow are lost, and counted. -EUSERS: as many as may read already.
	 */
	CONTROL_MONITOR,
	/* Descriptor with the request: a socket to another fabric's daemon, which gets its other
	 * end. A router's port sends packets on by it. */
	CONTROL_ROUTER,
	CONTROL_END_ROUTER, /* body: struct control_router */
	/* sysfs */
	CONTROL_DESCRIBE_PORT,
	CONTROL_LIST_OBJECTS,
};

#define CONTROL_FOLLOWED 1 /* by another request in its datagram */

struct control_header {
	uint32_t type;   /* of the request; the reply repeats it */
	uint32_t serial; /* likewise; 0: nobody waits for a reply, and none is sent */
	int32_t status;  /* reply: 0 or -errno; request: 0, or CONTROL_FOLLOWED */
	uint32_t bytes;  /* of what follows; with -errno: text, why (base/reason.h), or nothing */
};

/* Descriptors with the reply: control part, data part (all roles but the command line). */
struct control_hello {
	uint32_t version;
	uint32_t role;
	char host[32]; /* empty: all hosts */
};
struct control_hello_reply {
	uint32_t client;
	int32_t host_index; /* -1: all hosts */
	/* ROLE_VERBS: so many processes of this host, or of all hosts, had said hello before */
	uint32_t number;
	uint32_t reserved;
};

/* Descriptor with the reply: struct control_event records are read from it. */
struct control_open_hca {
	uint32_t hca;
};
struct control_open_hca_reply {
	uint32_t handle;
	uint32_t reserved;
	uint64_t gid_users_off; /* struct shm_gid_users, in the data part; 0: of InfiniBand */
};
/* CLOSE_HCA, DESTROY_CHANNEL, DESTROY_CQ, DESTROY_QP, DESTROY_SRQ, CLOSE_XRCD; COUNT_ARRIVALS:
 * senders count from now on what arrives for the CQ, as it may overrun */
struct control_handle {
	uint32_t handle;
};
/* DESTROY_CQ, DESTROY_QP, DESTROY_SRQ: asynchronous events that there were of it. */
struct control_destroy_reply {
	uint32_t events;
};

/* RING_HCA: @n datagrams of one byte beside the events of the HCA, CONTROL_MAX_RING at most. */
#define CONTROL_MAX_RING 1024
struct control_ring_hca {
	uint32_t hca_handle;
	uint32_t n;
};

/* An asynchronous verbs event: its element is named by the number that verbs made it by. */
struct control_event {
	uint32_t type;    /* enum ibv_event_type */
	uint32_t element; /* CQ index, QP number or port number */
};

/* Descriptor with both replies: the eventfd. */
struct control_channel_reply {
	uint32_t channel;
};
struct control_get_channel { /* GET_CHANNEL, WAKE */
	uint32_t channel;
};

struct control_pd { /* ALLOC_PD, FREE_PD */
	uint32_t hca_handle;
	uint32_t domain; /* its number in the process */
};

struct control_create_cq {
	uint32_t hca_handle;
	uint32_t cqe;
};
struct control_create_cq_reply {
	uint32_t cq;
};

struct control_create_qp {
	uint32_t hca_handle;
	uint32_t cq; /* of the receive queue */
	uint32_t max_recv_wr;
	uint32_t flags; /* enum shm_qp_flags: BLOCK_LOOPBACK, STAMPS */
	uint32_t ready_bit;
	uint32_t type;   /* enum ibv_qp_type or SHM_QPT_XRC_SRQ */
	uint32_t domain; /* its number in the process */
	/* connected types: */
	uint32_t send_cq;
	uint32_t max_send_wr;
	uint32_t request_bytes; /* of one request of the send queue, a multiple of 64 */
	uint32_t max_recv_sge;
	uint32_t srq;  /* 1 + its index; 0: none */
	uint32_t xrcd; /* XRC targets and shared receive queues: their domain */
	/* a number that lies reserved for such a queue pair, and is used up by this; 0: none. With
	 * it the request does not fail if it is right, so nobody needs to wait for the reply. */
	uint32_t reserved;
};
struct control_create_qp_reply { /* CREATE_QP, OPEN_QP */
	uint64_t ring_off;
	uint64_t requests_off, entries_off;
	uint32_t qpn;
	uint16_t ring_gen;
	uint8_t ring_shift;
	uint8_t reserved;
};

/*
 * Reserves all that queue pairs may lack, for so many that the process is likely to make: UD, RC
 * or UC, of the same attributes. They are no queue pairs yet, and the daemon takes them back if
 * others lack it (struct shm_sender.ticket). It may reserve fewer, or none.
 */
struct control_qp_shape {
	/* as in struct control_create_qp */
	uint32_t max_recv_wr, max_send_wr, request_bytes, max_recv_sge;
	uint32_t has_one_sender; /* flag: RC, UC */
};
static inline struct control_qp_shape control_qp_shape(const struct control_create_qp *want)
{
	return (struct control_qp_shape){ .max_recv_wr = want->max_recv_wr,
		                          .max_send_wr = want->max_send_wr,
		                          .request_bytes = want->request_bytes,
		                          .max_recv_sge = want->max_recv_sge,
		                          .has_one_sender = want->type == IBV_QPT_RC ||
		                                            want->type == IBV_QPT_UC };
}

#define CONTROL_MAX_RESERVED 16
struct control_reserve_qps {
	struct control_qp_shape shape;
	uint32_t n;
};
struct control_reserved_qp {
	uint64_t ticket;
	struct control_create_qp_reply qp;
};
struct control_reserve_qps_reply {
	uint32_t n, padding;
	struct control_reserved_qp of[CONTROL_MAX_RESERVED];
};
_Static_assert(sizeof(struct control_reserve_qps_reply) <= CONTROL_MAX_BYTES, "it fits");

/*
 * An XRC domain of the HCA: a new one (OPEN_XRCD), or the one that the file stands for whose
 * descriptor comes with the request (OPEN_XRCD_FILE). -EAGAIN: the file has no domain yet, and
 * @create is not set; -EINVAL: the file has a domain already, and @exclusive is set.
 */
struct control_open_xrcd {
	uint32_t hca_handle;
	uint8_t create, exclusive;
	uint16_t reserved;
};
struct control_open_xrcd_reply {
	uint32_t xrcd;
};

/* A target of the XRC domain, which lives until all who have it open destroy it. -EINVAL: the
 * domain has none with this number. */
struct control_open_qp {
	uint32_t hca_handle;
	uint32_t xrcd;
	uint32_t qpn;
};

struct control_create_srq {
	uint32_t hca_handle;
	uint32_t max_wr, max_sge;
	uint32_t domain; /* its number in the process */
};
/* Another ring for more receives, where the queue's will be from now on; struct shm_ring.moving is
 * set. The process moves the receives that are left in the ring before it. Reply as to
 * CREATE_SRQ. */
struct control_resize_srq {
	uint32_t srq;
	uint32_t max_wr;
};
struct control_create_srq_reply { /* CREATE_SRQ, RESIZE_SRQ */
	uint64_t ring_off, entries_off;
	uint32_t srq; /* index */
	uint16_t ring_gen;
	uint8_t ring_shift;
	uint8_t reserved;
};

/*
 * Attributes of an XRC target that only processes with the target open need, as in struct
 * ibv_qp_attr and its ibv_ah_attr. One of these processes sets them; the others get them by
 * GET_TARGET.
 */
struct control_target {
	struct ib_gid dgid;
	uint32_t rq_psn, flow_label;
	uint16_t dlid;
	uint8_t path_mtu, timeout;
	uint8_t sgid_index, hop_limit, traffic_class;
	uint8_t sl, src_path_bits, static_rate, is_global, path_port;
};
struct control_get_target {
	uint32_t qpn;
};

/* The part of a QP's state that senders must know. */
struct control_modify_qp {
	uint32_t qpn;
	uint32_t qkey;
	uint16_t pkey_index; /* in the port's table */
	uint8_t port_num;    /* 0: none yet */
	uint8_t receives;    /* accepts packets */
	uint32_t dest_qpn;
	uint32_t access; /* enum ibv_access_flags: what a peer may do */
	uint8_t state;   /* enum ibv_qp_state */
	uint8_t min_rnr_timer, max_dest_rd_atomic;
	uint8_t counts_remote; /* SHM_QP_COUNTS_REMOTE */
	uint16_t dlid;         /* of its path; for those who ask why nothing arrives */
	uint16_t reserved;
	struct control_target target;
};

/*
 * Before a process has connected queue pairs: memory for its keys (struct shm_keys), to which
 * it can add chunks. OFFER_MEMORY comes with a descriptor of its memory, which the processes of
 * other queue pairs can ask for by GET_MEMORY. -ENODATA: it offers none; -ENOTCONN: it is another
 * user's, and none of its queue pairs is connected to one of the asker's.
 */
enum control_memory_kind {
	CONTROL_MEMORY_ALL,     /* /proc/self/mem */
	CONTROL_MEMORY_ADOPTED, /* the file of adopted memory (hca/memory/adopt.h) */
	CONTROL_MEMORY_KINDS,
};
struct control_offset_reply { /* OPEN_KEYS, ADD_KEYS, GET_PAYLOAD */
	uint64_t off;
};
struct control_add_keys {
	uint32_t chunk; /* its index; -EEXIST: it is there */
};
struct control_offer_memory {
	uint32_t kind; /* enum control_memory_kind */
	uint32_t reserved;
};
struct control_get_memory {
	uint32_t qpn; /* of a queue pair of that process */
	uint32_t kind;
};

/* Requests of the queue pair wait: fires the event of the CQ, if that is armed, in @ns nanoseconds;
 * 0: never. */
struct control_wait {
	uint64_t ns;
	uint32_t qpn;
	uint32_t cq;
};

/* A completion is held back: fires the CQ's event, if it is still due, when the period of the CQ's
 * moderation is over. Any process may ask that. */
struct control_moderate_cq {
	uint32_t cq;
	uint32_t reserved;
};

struct control_attach { /* ATTACH, DETACH */
	uint32_t qpn;
	uint16_t mlid;
	uint16_t reserved;
	struct ib_gid mgid;
};

/* -ENOSPC: the sender has as many flows as it may have, and gives one back first. */
struct control_get_flow {
	uint32_t qpn; /* of the sender */
	uint16_t dlid;
	uint8_t path_bits;
	uint8_t is_global;
	struct ib_gid dgid;
	uint32_t sl;
};
struct control_get_flow_reply {
	uint32_t flow;
};

/* Gives flows of the sender back. -EINVAL: one is not the sender's; those before it are gone. */
#define CONTROL_MAX_PUT_FLOWS 64
struct control_put_flow {
	uint32_t qpn; /* of the sender */
	uint32_t n;
	uint32_t flow[CONTROL_MAX_PUT_FLOWS];
};

struct control_get_payload {
	uint32_t qpn;
	uint32_t bytes;
};

struct control_raise_event { /* CQ overrun seen by a sender, fatal QP error by its owner */
	uint32_t type;
	uint32_t element;
};

/*
 * The hidden queue pair that delivers, in an HCA's process, what was received from the network. An
 * open HCA has one. -EOPNOTSUPP: the HCA has no Ethernet port. Body: struct control_handle.
 */
struct control_open_roce_reply {
	uint32_t qpn;
};

enum control_roce_socket_kind {
	CONTROL_ROCE_RECEIVE, /* the port's one */
	CONTROL_ROCE_SEND,    /* a new one */
	CONTROL_ROCE_WAKE,    /* the eventfd that tells the daemon to receive again */
};

/* Descriptor with the reply. -ENODEV: the device is gone; -EAFNOSUPPORT. */
struct control_roce_socket {
	uint32_t hca_handle;
	uint16_t kind;
	uint16_t is_ipv6;
	uint32_t source_port; /* SEND: the one wanted */
};
struct control_roce_socket_reply {
	uint32_t source_port; /* SEND: the one there is */
};

#define CONTROL_RULE_BYTES 200 /* of the longest rule, with the end */

/* A rule of faults, as text. -EINVAL, with what is wrong; -ENOSPC: there are too many. */
struct control_router {
	char node[32]; /* the router: its host or HCA; empty: one that is free */
	char peer[32]; /* the other fabric, for those who are shown the router */
};

struct control_router_reply {
	uint64_t prefix; /* the subnet's, host order */
	char node[32];   /* the router's host */
};

struct control_fault {
	char rule[CONTROL_RULE_BYTES];
};
struct control_fault_reply {
	uint32_t number;
};

/* Calls that a rule of faults may be about. */
enum control_call_kind {
	CONTROL_CALL_POST,
	CONTROL_CALL_RECEIVE,
	CONTROL_CALL_COMPLETION,
	CONTROL_CALL_REGISTER,
	CONTROL_CALL_MADE, /* for rules: nobody asks for it but by COMPLETION */
};

/* A call is about to be made: whether a rule is about it. Counts it. */
struct control_meet_fault {
	uint32_t hca; /* index */
	uint32_t kind;
	uint32_t qpn; /* 0: of no queue pair */
};
struct control_meet_fault_reply {
	int32_t value; /* 0: nothing happens; errno, or of COMPLETION an enum ibv_wc_status */
	/* of COMPLETION: not 0: behind it comes one that is made up; 1 + its enum ibv_wc_status */
	uint32_t made;
	uint32_t has_wr_id; /* that one has the wr_id below; else the same as this one */
	uint32_t reserved;
	uint64_t wr_id;
};

/* Whether somebody has an address, or the gateway on the way there from an Ethernet port. Status 0:
 * yes, or it needs nobody; -EINPROGRESS: nobody has answered yet, ask again; -ENETUNREACH and the
 * like: there is no route. */
struct control_find_neighbour {
	uint32_t hca_handle;
	struct ib_gid sgid, dgid;
};

/*
 * A port's membership in a group, for checked programs (src/client/checked/watcher.h). The daemon
 * sees the joins of all programs, whichever subnet administrator they ask. It has the record of a
 * group if the port is a member, or if the administrator is its own. -EINVAL: there is no such
 * port.
 */
struct control_query_membership {
	uint32_t hca_handle;
	uint16_t mlid; /* that the program uses; 0: it has none, as on Ethernet */
	uint8_t port_num, reserved;
	struct ib_gid mgid;
};
struct control_query_membership_reply {
	/* since the port lost its memberships, as it went down, got another LID or was to register
	 * again; UINT64_MAX: that has not been */
	uint64_t reset_age_ns;
	uint32_t qkey; /* this and what follows: of the record */
	uint32_t flow_label;
	uint16_t mlid, pkey;
	uint8_t mtu, rate, sl, tclass;
	uint8_t has_record;
	uint8_t is_known;   /* whether the port is a member, in which states: */
	uint8_t join_state; /* enum ib_join_state, ORed; 0: it is none */
	uint8_t reserved[5];
};

/* A MAD for QP1 of an Ethernet port, which a process has received from the network. */
struct control_roce_mad {
	uint32_t hca_handle;
	uint32_t src_qpn, qkey;
	uint16_t pkey;
	uint16_t reserved;
	struct ib_gid sgid, dgid;
	uint8_t data[256];
};

/*
 * Descriptor with the reply: a socket by which JSON text comes, up to its end. One view at a time:
 * the next request ends it. -EINVAL: no such view; -ENOENT: no such switch.
 */
struct control_show {
	char what[32];
	/* "routes": of this switch alone; empty: of all. "key": which, a number */
	char of[32];
};

struct control_set {
	char key[32];
	char value[64];
};

/* A port of a switch or an HCA by its name there, or of a host, if that has but one HCA. */
struct control_port {
	char node[32];
	uint32_t port;
};

/*
 * -ENOENT no such node; -EMLINK a host with several HCAs; -ERANGE no such port; -ENOTCONN
 * nothing is plugged in; -EALREADY; -EHOSTDOWN a dead switch keeps the link down.
 */
struct control_link {
	struct control_port at;
	uint32_t up;
};

/* -ENOENT no such node; -ENOTTY no switch; -EALREADY. */
struct control_switch {
	char name[32];
	uint32_t alive;
};

enum control_sm_event_type {
	CONTROL_SM_LID_CHANGE,
	CONTROL_SM_CHANGE,
	CONTROL_SM_CLIENT_REREGISTER,
	CONTROL_SM_START,
	CONTROL_SM_STOP,
};

/*
 * An event that happens to the embedded subnet manager, or that it causes at an HCA port.
 * -EALREADY: it runs already, or does not; -ESRCH: it is not the master; -EBUSY: no port is left
 * for it; -EOPNOTSUPP: RoCE has none. Of a port, errors as for LINK; -ENOTTY: no HCA; -ENETDOWN: it
 * is not ACTIVE. -EINVAL: no such event.
 */
struct control_sm_event {
	uint32_t type;
	struct control_port at; /* LID_CHANGE, CLIENT_REREGISTER */
};

/*
 * Partitions as in the text in the memfd that comes with the request. @name: the file's, for
 * messages. -EINVAL: it cannot be read. The reply names the error in the text.
 */
struct control_partitions {
	char name[512];
};

struct control_partitions_reply {
	int32_t error;
	char why[512]; /* "NAME:LINE: ..." */
};

/*
 * ENTER_HOST, of a process that said hello on a host: descriptors of its namespaces come with the
 * reply, of network, host name and mounts, and of the user namespace that they are in, if they are
 * in one. -EOPNOTSUPP: the host has none.
 */
struct control_enter_host_reply {
	uint32_t host; /* its number */
	uint32_t cpus; /* processors that it may use; 0: all */
};

/*
 * Descriptor with the reply: a socket by which a struct control_captured, with its payload behind
 * it, comes for each MAD from now on, and if @data, for each message and packet of queue pairs. A
 * reader that shuts down its side gets the rest, then a struct control_captured whose @end is set,
 * and the end. Structures for which there is no room because the reader is slow are lost, and
 * counted. -ENOENT, -EMLINK, -ERANGE as for LINK; -EUSERS: as many as may be capture already;
 * -EOPNOTSUPP: all ports are on Ethernet, and it is not for @data; -ESRCH: there is no such host of
 * a queue pair.
 */
#define CONTROL_CAPTURE_MANY   8
#define CONTROL_CAPTURE_GROUPS (3 * CONTROL_CAPTURE_MANY) /* GIDs: a group may have several */
struct control_capture {
	struct control_port at; /* what sends or receives; port 0: all; no node: all */
	uint32_t data;          /* bool */
	uint32_t no_mads;       /* bool */
	/* of @data, what is sent to one of these groups, and what one of these queue pairs sends or
	 * receives; none: all */
	uint32_t n_groups, n_qps;
	struct ib_gid group[CONTROL_CAPTURE_GROUPS];
	struct control_capture_qp {
		char host[32];
		uint32_t qpn;
	} qp[CONTROL_CAPTURE_MANY];
	uint64_t classes[4]; /* of MADs, by bits; none: all */
};
static_assert(sizeof(struct control_capture) <= CONTROL_MAX_BYTES, "one packet");

/* A packet: of a MAD when its way has ended, of a message when rules of faults have judged it. */
struct control_captured {
	uint64_t time_ns;       /* since 1970 */
	uint32_t lost;          /* so many before it */
	uint32_t payload_bytes; /* that follow, and as many zeros as make it a multiple of 8 */
	uint16_t slid, dlid;
	uint8_t sl, vl;
	uint8_t has_grh, end;
	uint32_t class_flow; /* traffic class << 20 | flow label */
	uint8_t hop_limit;
	uint8_t is_ethernet; /* it has no LRH and GRH, but these: */
	uint8_t mac_from[6];
	uint8_t mac_to[6]; /* zeros: not known */
	uint16_t udp_source;
	struct control_port from;
	char note[60]; /* what has become of it, if that is unusual */
	struct ib_gid sgid, dgid;
	struct wire_headers h;
};

/* Bytes of its record. */
static inline uint32_t control_captured_bytes(uint32_t payload_bytes)
{
	return (uint32_t)sizeof(struct control_captured) + ((payload_bytes + 7) & ~7u);
}

/*
 * The facts of an HCA's port that sysfs shows and the shared memory lacks: the description of its
 * node, and the PMA's counters, as wide as PortCounters and PortCountersExtended have them.
 * -ENODEV: the process sees no such port.
 */
struct control_describe_port {
	uint32_t port; /* index in the port table */
};

struct control_describe_port_reply {
	uint64_t xmit_data, rcv_data, xmit_packets, rcv_packets; /* data: in 32-bit words */
	uint64_t unicast_xmit_packets, unicast_rcv_packets;
	uint64_t multicast_xmit_packets, multicast_rcv_packets;
	uint64_t symbol_errors, rcv_errors;
	uint64_t link_downed, link_error_recovery, rcv_switch_relay_errors, xmit_discards;
	uint64_t xmit_constraint_errors, rcv_constraint_errors;
	char node_desc[64]; /* without an end, if it is that long */
};

/*
 * Objects of an HCA, for tools that show them: those behind position @from and @at, a page at a
 * time. -ENODEV: the process sees no such HCA; -EINVAL: no such kind.
 */
enum control_object_kind {
	CONTROL_PDS,
	CONTROL_CQS,
	CONTROL_QPS,
	CONTROL_CM_IDS,
	CONTROL_MRS, /* of processes that have connected queue pairs: others publish none */
	CONTROL_CONTEXTS,
	CONTROL_SRQS,
	CONTROL_OBJECT_KINDS,
};

struct control_list_objects {
	uint32_t hca;      /* index in its table */
	uint32_t kind;     /* enum control_object_kind */
	uint32_t from, at; /* 0, then what the reply says */
};

/* Of an identifier of rdma_cm; in network byte order, IPv4 in the first bytes. */
struct control_object_address {
	uint16_t family; /* AF_INET, AF_INET6; 0: none, or another one */
	uint16_t port;
	uint8_t addr[16];
};

struct control_object {
	uint32_t number;  /* of a queue pair its QPN */
	uint32_t pid;     /* of its process, as the daemon sees it; 0: it is not known */
	uint32_t context; /* of a CQ and a PD: the number of the context */
	uint32_t pd;      /* 1 + the number of what it is in; 0: none is known */
	uint8_t port_num; /* of a queue pair or an identifier; 0: none yet */
	uint8_t type;     /* likewise: enum ibv_qp_type */
	uint8_t state;    /* enum ibv_qp_state; of an identifier, enum rdma_cm_state of Linux */
	uint8_t reserved[5];
	union {
		struct {
			uint32_t srq;  /* 1 + the number of what it receives by; 0: none */
			uint32_t peer; /* of a connected queue pair: QPN; 0: none */
			uint32_t next_psn, expected_psn; /* of its packets; 0: it sends none */
		} qp;
		struct {
			uint32_t size;  /* completions that it holds */
			uint32_t users; /* queue pairs that receive by it */
		} cq;
		struct {
			uint64_t length;
			uint32_t key;
		} mr;
		struct {
			uint32_t qpn;   /* 0: not known */
			uint32_t space; /* enum rdma_port_space */
			struct control_object_address src, dst;
		} cm_id;
	};
};
_Static_assert(sizeof(struct control_object) == 72, "layout");

#define CONTROL_OBJECTS_PAGE 14

struct control_list_objects_reply {
	uint32_t n;
	uint32_t more;     /* 0: that was the last page */
	uint32_t from, at; /* where to go on */
	struct control_object object[CONTROL_OBJECTS_PAGE];
};
_Static_assert(sizeof(struct control_list_objects_reply) <= CONTROL_MAX_BYTES, "it fits");

#endif
