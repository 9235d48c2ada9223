/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Global Route Header, 40 bytes, as a UD receive buffer begins with
 * (InfiniBand specification volume 1, section 8.3). Pure functions.
 */
#ifndef WIRE_GRH_H
#define WIRE_GRH_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "wire/ib.h"

struct wire_grh {
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint32_t flow_label; /* 20 bits */
	uint16_t payload_bytes;
	struct ib_gid sgid, dgid;
};

/* On the receiver's fast path: inline. */
static inline void wire_grh_encode(const struct wire_grh *grh, uint8_t out[static IB_GRH_BYTES])
{
	uint32_t word = htobe32((uint32_t)IB_GRH_VERSION << 28 |
	                        (uint32_t)grh->traffic_class << 20 | (grh->flow_label & 0xFFFFF));
	uint16_t len = htobe16(grh->payload_bytes);

	memcpy(out, &word, 4);
	memcpy(out + 4, &len, 2);
	out[6] = IB_GRH_NEXT_IBA;
	out[7] = grh->hop_limit;
	memcpy(out + 8, grh->sgid.raw, 16);
	memcpy(out + 24, grh->dgid.raw, 16);
}

void wire_grh_decode(const uint8_t in[static IB_GRH_BYTES], struct wire_grh *grh);

/* What payload length a GRH states for a UD message: BTH, DETH, immediate, pad, ICRC. */
static inline uint16_t wire_grh_ud_payload(uint32_t message_bytes, int with_immediate)
{
	const unsigned bth = 12, deth = 8, imm = 4, icrc = 4;

	return (uint16_t)(bth + deth + (with_immediate ? imm : 0) + ((message_bytes + 3) & ~3u) +
	                  icrc);
}

#endif
