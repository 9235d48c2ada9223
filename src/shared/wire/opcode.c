/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of opcodes: see opcode.h.
 */
#include "wire/opcode.h"

#define HEADER_BYTES(headers)                                                                      \
	(((headers)&WIRE_BTH ? WIRE_BTH_BYTES : 0) + ((headers)&WIRE_DETH ? WIRE_DETH_BYTES : 0) + \
	 ((headers)&WIRE_XRCETH ? WIRE_XRCETH_BYTES : 0) +                                         \
	 ((headers)&WIRE_FETH ? WIRE_FETH_BYTES : 0) +                                             \
	 ((headers)&WIRE_RETH ? WIRE_RETH_BYTES : 0) +                                             \
	 ((headers)&WIRE_ATOMICETH ? WIRE_ATOMICETH_BYTES : 0) +                                   \
	 ((headers)&WIRE_AETH ? WIRE_AETH_BYTES : 0) +                                             \
	 ((headers)&WIRE_ATOMICACK ? WIRE_ATOMICACK_BYTES : 0) +                                   \
	 ((headers)&WIRE_IMMDT ? WIRE_IMMDT_BYTES : 0) +                                           \
	 ((headers)&WIRE_IETH ? WIRE_IETH_BYTES : 0))

#define FIRST    WIRE_OPCODE_FIRST
#define LAST     WIRE_OPCODE_LAST
#define ONLY     (WIRE_OPCODE_FIRST | WIRE_OPCODE_LAST)
#define REQUEST  WIRE_OPCODE_REQUEST
#define RESPONSE WIRE_OPCODE_RESPONSE
#define PAYLOAD  WIRE_OPCODE_PAYLOAD
#define RECEIVES WIRE_OPCODE_RECEIVES
#define ANSWERED WIRE_OPCODE_ANSWERED

/* clang-format off */
#define ROW(transport, operation, more, what) \
	[WIRE_OPCODE(WIRE_TRANSPORT_##transport, WIRE_##operation)] = { \
		.name = #transport "_" #operation, \
		.headers = WIRE_BTH | (more), \
		.flags = (what), \
		.header_bytes = HEADER_BYTES(WIRE_BTH | (more)), \
	}

/* The opcodes of RC, UC and XRC. @own: the header that requests of the transport have besides. */
#define CONNECTED(t, own) \
	ROW(t, SEND_FIRST, own, REQUEST | PAYLOAD | FIRST), \
	ROW(t, SEND_MIDDLE, own, REQUEST | PAYLOAD), \
	ROW(t, SEND_LAST, own, REQUEST | PAYLOAD | LAST | RECEIVES), \
	ROW(t, SEND_LAST_IMM, own | WIRE_IMMDT, REQUEST | PAYLOAD | LAST | RECEIVES), \
	ROW(t, SEND_ONLY, own, REQUEST | PAYLOAD | ONLY | RECEIVES), \
	ROW(t, SEND_ONLY_IMM, own | WIRE_IMMDT, REQUEST | PAYLOAD | ONLY | RECEIVES), \
	ROW(t, WRITE_FIRST, own | WIRE_RETH, REQUEST | PAYLOAD | FIRST), \
	ROW(t, WRITE_MIDDLE, own, REQUEST | PAYLOAD), \
	ROW(t, WRITE_LAST, own, REQUEST | PAYLOAD | LAST), \
	ROW(t, WRITE_LAST_IMM, own | WIRE_IMMDT, REQUEST | PAYLOAD | LAST | RECEIVES), \
	ROW(t, WRITE_ONLY, own | WIRE_RETH, REQUEST | PAYLOAD | ONLY), \
	ROW(t, WRITE_ONLY_IMM, own | WIRE_RETH | WIRE_IMMDT, \
	    REQUEST | PAYLOAD | ONLY | RECEIVES)

/* The opcodes that RC and XRC have besides. Responses go to a queue pair, as all of RC: no
 * XRCETH. */
#define RELIABLE(t, own) \
	ROW(t, READ_REQUEST, own | WIRE_RETH, REQUEST | ANSWERED | ONLY), \
	ROW(t, READ_RESPONSE_FIRST, WIRE_AETH, RESPONSE | PAYLOAD | FIRST), \
	ROW(t, READ_RESPONSE_MIDDLE, 0, RESPONSE | PAYLOAD), \
	ROW(t, READ_RESPONSE_LAST, WIRE_AETH, RESPONSE | PAYLOAD | LAST), \
	ROW(t, READ_RESPONSE_ONLY, WIRE_AETH, RESPONSE | PAYLOAD | ONLY), \
	ROW(t, ACKNOWLEDGE, WIRE_AETH, RESPONSE | ONLY), \
	ROW(t, ATOMIC_ACKNOWLEDGE, WIRE_AETH | WIRE_ATOMICACK, RESPONSE | ONLY), \
	ROW(t, COMPARE_SWAP, own | WIRE_ATOMICETH, REQUEST | ANSWERED | ONLY), \
	ROW(t, FETCH_ADD, own | WIRE_ATOMICETH, REQUEST | ANSWERED | ONLY), \
	ROW(t, SEND_LAST_INVALIDATE, own | WIRE_IETH, REQUEST | PAYLOAD | LAST | RECEIVES), \
	ROW(t, SEND_ONLY_INVALIDATE, own | WIRE_IETH, REQUEST | PAYLOAD | ONLY | RECEIVES)

const struct wire_opcode wire_opcodes[256] = {
	CONNECTED(RC, 0),
	RELIABLE(RC, 0),
	ROW(RC, FLUSH, WIRE_FETH | WIRE_RETH, REQUEST | ANSWERED | ONLY),
	ROW(RC, ATOMIC_WRITE, WIRE_RETH, REQUEST | ANSWERED | PAYLOAD | ONLY),
	CONNECTED(UC, 0),
	ROW(UD, SEND_ONLY, WIRE_DETH, REQUEST | PAYLOAD | ONLY | RECEIVES),
	ROW(UD, SEND_ONLY_IMM, WIRE_DETH | WIRE_IMMDT, REQUEST | PAYLOAD | ONLY | RECEIVES),
	CONNECTED(XRC, WIRE_XRCETH),
	RELIABLE(XRC, WIRE_XRCETH),
	/* 16 reserved bytes follow, which count as payload here */
	[WIRE_OPCODE_CNP] = { .name = "CNP",
	                      .headers = WIRE_BTH,
	                      .flags = PAYLOAD | ONLY,
	                      .header_bytes = WIRE_BTH_BYTES },
};
/* clang-format on */
