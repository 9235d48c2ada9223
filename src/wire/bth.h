/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The transport headers of a UD message: Base Transport Header, Datagram Extended Transport
 * Header (InfiniBand specification volume 1, sections 9.2 and 9.3.2). Every datagram passes
 * here, so these are plain functions and no tables. Fields are host order.
 */
#ifndef WIRE_BTH_H
#define WIRE_BTH_H

#include <stdbool.h>
#include <stdint.h>

#define WIRE_BTH_BYTES  12
#define WIRE_DETH_BYTES 8
#define WIRE_IMM_BYTES  4
#define WIRE_ICRC_BYTES 4

/* OpCode: of transport UD (section 9.2.1). */
enum wire_opcode {
	WIRE_OPCODE_UD_SEND_ONLY = 0x64,
	WIRE_OPCODE_UD_SEND_ONLY_IMM = 0x65,
};

#define WIRE_BTH_VERSION 0 /* TVer */

struct wire_bth {
	uint8_t opcode;
	uint8_t pad;     /* bytes after the payload, 0 to 3 */
	uint8_t version; /* 4 bits */
	bool solicited, migrated;
	bool fecn, becn; /* RoCEv2 says these in the IP header; no part of the ICRC */
	bool ack_requested;
	uint16_t pkey;
	uint32_t dest_qpn; /* 24 bits */
	uint32_t psn;      /* 24 bits */
};

struct wire_deth {
	uint32_t qkey;
	uint32_t src_qpn; /* 24 bits */
};

/* Of a number that is too large for its field the low bits are taken. */
void wire_bth_encode(const struct wire_bth *bth, uint8_t out[static WIRE_BTH_BYTES]);
void wire_bth_decode(const uint8_t in[static WIRE_BTH_BYTES], struct wire_bth *bth);
void wire_deth_encode(const struct wire_deth *deth, uint8_t out[static WIRE_DETH_BYTES]);
void wire_deth_decode(const uint8_t in[static WIRE_DETH_BYTES], struct wire_deth *deth);

#endif
