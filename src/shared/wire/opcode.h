/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The opcodes of the transport layer, in one table: the name of each, which headers follow the BTH,
 * how long these are, and what the packet is to its message (InfiniBand specification volume 1,
 * section 9.2.1, tables 38 and 39; annex A14 for XRC; annex A17.9 for the CNP of RoCEv2; annex A19
 * for FLUSH and atomic WRITE).
 * headers.h encodes and decodes by it. Reliable Datagram (RD) is not in it: no HCA has it.
 * Constant data, safe from any thread.
 */
#ifndef WIRE_OPCODE_H
#define WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

/* The top three bits of an opcode. */
enum wire_transport {
	WIRE_TRANSPORT_RC = 0,
	WIRE_TRANSPORT_UC = 1,
	WIRE_TRANSPORT_RD = 2,
	WIRE_TRANSPORT_UD = 3,
	WIRE_TRANSPORT_CNP = 4,
	WIRE_TRANSPORT_XRC = 5,
};

#define WIRE_OPCODE(transport, operation) ((transport) << 5 | (operation))

/* The low five bits: what all transports that have the operation call by one number. */
enum wire_operation {
	WIRE_SEND_FIRST,
	WIRE_SEND_MIDDLE,
	WIRE_SEND_LAST,
	WIRE_SEND_LAST_IMM,
	WIRE_SEND_ONLY,
	WIRE_SEND_ONLY_IMM,
	WIRE_WRITE_FIRST,
	WIRE_WRITE_MIDDLE,
	WIRE_WRITE_LAST,
	WIRE_WRITE_LAST_IMM,
	WIRE_WRITE_ONLY,
	WIRE_WRITE_ONLY_IMM,
	WIRE_READ_REQUEST,
	WIRE_READ_RESPONSE_FIRST,
	WIRE_READ_RESPONSE_MIDDLE,
	WIRE_READ_RESPONSE_LAST,
	WIRE_READ_RESPONSE_ONLY,
	WIRE_ACKNOWLEDGE,
	WIRE_ATOMIC_ACKNOWLEDGE,
	WIRE_COMPARE_SWAP,
	WIRE_FETCH_ADD,
	WIRE_SEND_LAST_INVALIDATE = 0x16,
	WIRE_SEND_ONLY_INVALIDATE = 0x17,
	WIRE_FLUSH = 0x1C,
	WIRE_ATOMIC_WRITE = 0x1D,
};

#define WIRE_OPCODE_UD_SEND_ONLY     WIRE_OPCODE(WIRE_TRANSPORT_UD, WIRE_SEND_ONLY)
#define WIRE_OPCODE_UD_SEND_ONLY_IMM WIRE_OPCODE(WIRE_TRANSPORT_UD, WIRE_SEND_ONLY_IMM)
#define WIRE_OPCODE_CNP              0x81
#define WIRE_OPCODE_FLUSH            WIRE_OPCODE(WIRE_TRANSPORT_RC, WIRE_FLUSH)

/* Headers, as bits in the order in which a packet has them. */
enum wire_header {
	WIRE_BTH = 1 << 0,       /* Base Transport Header */
	WIRE_DETH = 1 << 1,      /* Datagram Extended Transport Header */
	WIRE_XRCETH = 1 << 2,    /* XRC Extended Transport Header */
	WIRE_FETH = 1 << 3,      /* FLUSH Extended Transport Header */
	WIRE_RETH = 1 << 4,      /* RDMA Extended Transport Header */
	WIRE_ATOMICETH = 1 << 5, /* Atomic Extended Transport Header */
	WIRE_AETH = 1 << 6,      /* ACK Extended Transport Header */
	WIRE_ATOMICACK = 1 << 7, /* Atomic ACK Extended Transport Header */
	WIRE_IMMDT = 1 << 8,     /* Immediate Data */
	WIRE_IETH = 1 << 9,      /* Invalidate Extended Transport Header */
	WIRE_HEADER_KINDS = 10,
};

#define WIRE_BTH_BYTES       12
#define WIRE_DETH_BYTES      8
#define WIRE_XRCETH_BYTES    4
#define WIRE_FETH_BYTES      4
#define WIRE_RETH_BYTES      16
#define WIRE_ATOMICETH_BYTES 28
#define WIRE_AETH_BYTES      4
#define WIRE_ATOMICACK_BYTES 8
#define WIRE_IMMDT_BYTES     4
#define WIRE_IETH_BYTES      4

enum wire_opcode_flag {
	WIRE_OPCODE_FIRST = 1, /* begins a message */
	WIRE_OPCODE_LAST = 2,  /* ends one; a packet that is the only one does both */
	WIRE_OPCODE_REQUEST = 4,
	WIRE_OPCODE_RESPONSE = 8,
	WIRE_OPCODE_PAYLOAD = 16,  /* may have payload */
	WIRE_OPCODE_RECEIVES = 32, /* uses up a posted receive when it ends the message */
	WIRE_OPCODE_ANSWERED = 64, /* has a response of its own; all such are one packet */
};

struct wire_opcode {
	const char *name;     /* "RC_SEND_FIRST"; NULL: no such opcode */
	uint16_t headers;     /* enum wire_header */
	uint8_t flags;        /* enum wire_opcode_flag */
	uint8_t header_bytes; /* of all headers together */
};

extern const struct wire_opcode wire_opcodes[256];

static inline enum wire_transport wire_opcode_transport(uint8_t opcode)
{
	return (enum wire_transport)(opcode >> 5);
}

/* Whether a packet with @opcode goes on with the message that one with @before is of, and has no
 * header that says anything new. */
static inline bool wire_opcode_continues(uint8_t before, uint8_t opcode)
{
	const struct wire_opcode *now = &wire_opcodes[opcode];

	/* FIRST, MIDDLE and LAST of an operation are three numbers in a row */
	return !(wire_opcodes[before].flags & WIRE_OPCODE_LAST) &&
	       (uint8_t)(opcode - before) <= 2 &&
	       (now->flags & (WIRE_OPCODE_FIRST | WIRE_OPCODE_PAYLOAD)) == WIRE_OPCODE_PAYLOAD &&
	       !(now->headers & (WIRE_IMMDT | WIRE_IETH));
}

/* One of RC's that are reserved: neither a request that there is, nor a response. */
static inline bool wire_opcode_is_reserved(uint8_t opcode)
{
	return wire_opcode_transport(opcode) == WIRE_TRANSPORT_RC && !wire_opcodes[opcode].name;
}

#endif
