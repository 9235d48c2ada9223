/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BTH and DETH to and from bytes: see bth.h.
 */
#include <endian.h>
#include <string.h>

#include "wire/bth.h"

#define MASK_24 0xFFFFFFu

static void put32(uint8_t *to, uint32_t v)
{
	v = htobe32(v);
	memcpy(to, &v, 4);
}

static uint32_t get32(const uint8_t *from)
{
	uint32_t v;

	memcpy(&v, from, 4);
	return be32toh(v);
}

void wire_bth_encode(const struct wire_bth *bth, uint8_t out[static WIRE_BTH_BYTES])
{
	out[0] = bth->opcode;
	out[1] = (uint8_t)(bth->solicited << 7 | bth->migrated << 6 | (bth->pad & 3) << 4 |
	                   (bth->version & 0xF));
	out[2] = bth->pkey >> 8;
	out[3] = bth->pkey & 0xFF;
	put32(out + 4,
	      (uint32_t)bth->fecn << 31 | (uint32_t)bth->becn << 30 | (bth->dest_qpn & MASK_24));
	put32(out + 8, (uint32_t)bth->ack_requested << 31 | (bth->psn & MASK_24));
}

void wire_bth_decode(const uint8_t in[static WIRE_BTH_BYTES], struct wire_bth *bth)
{
	uint32_t qpn = get32(in + 4), psn = get32(in + 8);

	*bth = (struct wire_bth){
		.opcode = in[0],
		.solicited = in[1] >> 7,
		.migrated = in[1] >> 6 & 1,
		.pad = in[1] >> 4 & 3,
		.version = in[1] & 0xF,
		.pkey = (uint16_t)(in[2] << 8 | in[3]),
		.fecn = qpn >> 31,
		.becn = qpn >> 30 & 1,
		.dest_qpn = qpn & MASK_24,
		.ack_requested = psn >> 31,
		.psn = psn & MASK_24,
	};
}

void wire_deth_encode(const struct wire_deth *deth, uint8_t out[static WIRE_DETH_BYTES])
{
	put32(out, deth->qkey);
	put32(out + 4, deth->src_qpn & MASK_24);
}

void wire_deth_decode(const uint8_t in[static WIRE_DETH_BYTES], struct wire_deth *deth)
{
	*deth = (struct wire_deth){ .qkey = get32(in), .src_qpn = get32(in + 4) & MASK_24 };
}
