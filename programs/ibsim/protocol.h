/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The protocol of ibsim and its client library, libumad2sim: datagrams between sockets in the
 * abstract namespace, on one machine, so numbers are in the machine's order unless a comment says
 * otherwise.
 *
 * The server has the socket BASE:ctl, and for each client one more, BASE:outID. A client has
 * BASE:ctlPID, from which it sends struct ibsim_ctl and gets the answer in the same form, and
 * BASE:inPID, connected with the server's BASE:outID: MADs go between these, in both directions, as
 * struct ibsim_mad. The zero byte that ends such a name in C is part of it.
 */
#ifndef IBSIM_PROTOCOL_H
#define IBSIM_PROTOCOL_H

#include <assert.h>
#include <stdint.h>

#include "wire/mad.h"

#define IBSIM_MAGIC          0xDEADBEEF
#define IBSIM_CTL_DATA_BYTES 64
#define IBSIM_NODE_BYTES     32 /* of a node's name, with the zero byte */

enum ibsim_ctl_type {
	IBSIM_CTL_ERROR, /* of an answer: it was refused */
	IBSIM_CTL_CONNECT,
	IBSIM_CTL_DISCONNECT,
	IBSIM_CTL_GET_PORT,
	IBSIM_CTL_GET_VENDOR,
	IBSIM_CTL_GET_GID,
	IBSIM_CTL_GET_GUID,
	IBSIM_CTL_GET_NODE_INFO,
	IBSIM_CTL_GET_PORT_INFO,
	IBSIM_CTL_SET_IS_SM,
	IBSIM_CTL_GET_PKEYS,
};

/* A question, and its answer: the same with other data, or with another type. */
struct ibsim_ctl {
	uint32_t magic;
	uint32_t client; /* the number that CONNECT's answer had */
	uint32_t type;   /* enum ibsim_ctl_type */
	uint32_t bytes;  /* of data that counts */
	uint8_t data[IBSIM_CTL_DATA_BYTES];
};
static_assert(sizeof(struct ibsim_ctl) == 80, "layout");

/* CONNECT, and its answer. */
struct ibsim_connect {
	uint32_t id; /* the client's PID; of the answer: its number */
	uint32_t qpn;
	uint32_t is_sm;
	char node[IBSIM_NODE_BYTES]; /* empty: any */
};
static_assert(sizeof(struct ibsim_connect) == 44, "layout");

/* GET_PORT's answer. */
struct ibsim_port {
	uint16_t lid;
	uint8_t state;
};

/* GET_VENDOR's answer. */
struct ibsim_vendor {
	uint32_t vendor_id, part_id, hw_version, unused;
	uint64_t fw_version;
};
static_assert(sizeof(struct ibsim_vendor) == 24, "layout");

/* A MAD. */
struct ibsim_mad {
	uint32_t dlid, slid;        /* a LID in network order, and two bytes of 0 behind it */
	uint32_t dest_qpn, src_qpn; /* in network order */
	uint32_t status;            /* likewise; to a client: why what it sent comes back, or 0 */
	uint32_t unused;
	uint64_t bytes; /* likewise; of @data that count */
	uint8_t data[MAD_BYTES];
};
static_assert(sizeof(struct ibsim_mad) == 288, "layout");

#endif
