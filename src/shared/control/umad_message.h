/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages of role CONTROL_ROLE_UMAD: libibumad's requests to the daemon, which is to it what
 * the kernel's user_mad is to the original.
 *
 * The reply to OPEN_PORT brings a socket, the port. It carries MADs in both directions, one a
 * datagram: struct ib_user_mad and the MAD behind it, as read() and write() have it on the
 * original's device file; its length is that of both. If the message is longer than
 * CONTROL_UMAD_DATAGRAM, the datagram has the first MAD only, and beside it a memfd with all that
 * follows struct ib_user_mad.
 *
 * A port lives until its socket is closed by all who have it; it is named by a number that
 * any process with that role may use, as a child of the one that opened it does.
 */
#ifndef CONTROL_UMAD_MESSAGE_H
#define CONTROL_UMAD_MESSAGE_H

#include <assert.h>
#include <infiniband/umad.h>
#include <stdint.h>

#include "control/message.h"

#define CONTROL_UMAD_DATAGRAM  16384      /* the longest that has no memfd */
#define CONTROL_UMAD_MAX_BYTES (64 << 20) /* of a message without struct ib_user_mad */
#define CONTROL_UMAD_ISSM_LEAF "issm%u"   /* the index of the port */

enum control_umad_type {
	CONTROL_UMAD_OPEN_PORT = CONTROL_UMAD_FIRST, /* descriptor with the reply */
	CONTROL_UMAD_REGISTER,
	CONTROL_UMAD_UNREGISTER,
	CONTROL_UMAD_CLOSED, /* the process has closed its socket: if that was the last one, what
	                      * others send from now on comes after the end of the port */
	CONTROL_UMAD_ISSM,   /* makes the FIFO issmINDEX in the fabric's directory, if it is not
	                      * there; else looks whether it is open */
	CONTROL_UMAD_END,
};
static_assert(CONTROL_UMAD_END - 1 <= CONTROL_UMAD_LAST, "types of role umad");

struct control_umad_at { /* OPEN_PORT, ISSM */
	uint32_t index;  /* in the port table */
};

struct control_umad_port { /* CLOSED; OPEN_PORT's reply */
	uint32_t port;
};

/* -EINVAL: the specification has no such class, or another agent has one of these methods;
 * -ENOMEM: UMAD_CA_MAX_AGENTS are registered. */
struct control_umad_register {
	uint64_t method_mask[2]; /* of the requests that it gets */
	uint32_t port;
	uint32_t flags; /* UMAD_USER_RMPP, MAD_AGENT_LEAVES (wire/mad.h) */
	uint32_t oui;
	uint8_t qpn;        /* 0 or 1 */
	uint8_t mgmt_class; /* 0: it gets nothing but responses to its requests */
	uint8_t mgmt_class_version;
	uint8_t rmpp_version;
};
static_assert(sizeof(struct control_umad_register) == 32, "layout");

struct control_umad_agent { /* UNREGISTER; REGISTER's reply */
	uint32_t port;
	uint32_t agent;
};

#endif
