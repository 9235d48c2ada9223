/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages between a process and the manager: one SOCK_SEQPACKET datagram a
 * request and one a reply, file descriptors beside them. Fixed layouts in host
 * order; addresses and GIDs as their types have them. Every request is answered,
 * with status 0 or a negative errno. A reply that carries data has its own struct.
 *
 * Events (asynchronous verbs events, rdma_cm events) do not come this way: each has
 * a descriptor of its own, which the request that opens it hands over.
 */
#ifndef CONTROL_MESSAGE_H
#define CONTROL_MESSAGE_H

#include <netinet/in.h>
#include <stdint.h>

#include "wire/ib.h"

#define CONTROL_VERSION   1
#define CONTROL_MAX_BYTES 1024
#define CONTROL_MAX_FDS   2

enum control_role { CONTROL_ROLE_CLI, CONTROL_ROLE_VERBS, CONTROL_ROLE_CM, CONTROL_ROLE_UMAD };

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
	CONTROL_OPEN_WIRE,
	CONTROL_WIRE_SOCKET,
	CONTROL_WIRE_MAD,
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
};

struct control_header {
	uint32_t type;   /* of the request; the reply repeats it */
	uint32_t serial; /* likewise */
	int32_t status;  /* reply: 0 or -errno */
	uint32_t bytes;  /* of what follows */
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
};

/* Descriptor with the reply: struct control_event records are read from it. */
struct control_open_hca {
	uint32_t hca;
};
struct control_open_hca_reply {
	uint32_t handle;
};
struct control_handle { /* CLOSE_HCA, DESTROY_CHANNEL, DESTROY_CQ, DESTROY_QP */
	uint32_t handle;
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
struct control_get_channel {
	uint32_t channel;
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
	uint32_t flags; /* enum shm_qp_flags: BLOCK_LOOPBACK, COUNT_ARRIVALS */
	uint32_t ready_bit;
};
struct control_create_qp_reply {
	uint64_t ring_off;
	uint32_t qpn;
	uint16_t ring_gen;
	uint8_t ring_shift;
	uint8_t reserved;
};

/* What senders must know of a QP's state. */
struct control_modify_qp {
	uint32_t qpn;
	uint32_t qkey;
	uint16_t pkey_index; /* in the port's table */
	uint8_t port_num;    /* 0: none yet */
	uint8_t receives;    /* accepts packets */
	uint32_t count_arrivals;
};

struct control_attach { /* ATTACH, DETACH */
	uint32_t qpn;
	uint16_t mlid;
	uint16_t reserved;
	struct ib_gid mgid;
};

struct control_get_flow {
	uint32_t qpn; /* of the sender */
	uint16_t dlid;
	uint8_t path_bits;
	uint8_t is_global;
	struct ib_gid dgid;
};
struct control_get_flow_reply {
	uint32_t flow;
};

struct control_get_payload {
	uint32_t qpn;
	uint32_t bytes;
};
struct control_get_payload_reply {
	uint64_t off;
};

struct control_raise_event { /* CQ overrun seen by a sender, fatal QP error by its owner */
	uint32_t type;
	uint32_t element;
};

/*
 * The hidden queue pair in whose name an HCA's process brings in what comes from the wire; one
 * an HCA that is open. -EOPNOTSUPP: the HCA has no Ethernet port. Body: struct control_handle.
 */
struct control_open_wire_reply {
	uint32_t qpn;
};

enum control_wire_socket_kind {
	CONTROL_WIRE_RECEIVE, /* the port's one */
	CONTROL_WIRE_SEND,    /* a new one */
	CONTROL_WIRE_WAKE,    /* the eventfd by which the manager is called back to the sockets */
};

/* Descriptor with the reply. -ENODEV: the device is gone; -EAFNOSUPPORT. */
struct control_wire_socket {
	uint32_t hca_handle;
	uint16_t kind;
	uint16_t is_ipv6;
	uint32_t source_port; /* SEND: the one wanted */
};
struct control_wire_socket_reply {
	uint32_t source_port; /* SEND: the one there is */
};

/* A MAD for QP1 of an Ethernet port, which a process has brought in from the wire. */
struct control_wire_mad {
	uint32_t hca_handle;
	uint32_t src_qpn, qkey;
	uint16_t pkey;
	uint16_t reserved;
	struct ib_gid sgid, dgid;
	uint8_t data[256];
};

/* Descriptor with the reply: a memfd with JSON text. */
struct control_show {
	char what[32];
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
 * What happens to the embedded subnet manager, or what it does to an HCA port. -EALREADY: it runs
 * already, or does not; -ESRCH: it is not the master; -EBUSY: no port is left for it; -EOPNOTSUPP:
 * RoCE has none. Of a port, errors as for LINK; -ENOTTY: no HCA; -ENETDOWN: it is not ACTIVE.
 * -EINVAL: no such event.
 */
struct control_sm_event {
	uint32_t type;
	struct control_port at; /* LID_CHANGE, CLIENT_REREGISTER */
};

/*
 * Partitions as in the text that comes as the descriptor of a regular file. @name: the file's, for
 * messages. -EINVAL: it cannot be read. What is wrong in the text is in the reply.
 */
struct control_partitions {
	char name[512];
};

struct control_partitions_reply {
	int32_t error;
	char why[512]; /* "NAME:LINE: ..." */
};

#endif
