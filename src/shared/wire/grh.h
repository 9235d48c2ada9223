/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Global Route Header, the first 40 bytes of a UD receive buffer (InfiniBand specification
 * volume 1, section 8.3). Fields are in host order. Pure functions.
 */
#ifndef WIRE_GRH_H
#define WIRE_GRH_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "wire/headers.h"
#include "wire/ib.h"

struct wire_grh {
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint32_t flow_label; /* 20 bits */
	uint16_t payload_bytes;
	struct ib_gid sgid, dgid;
};

/* All but the GIDs. @class_flow: the traffic class, and 20 bits of flow label below it. On the
 * receiver's fast path: inline. */
static inline void wire_grh_begin(uint32_t class_flow, uint16_t payload_bytes, uint8_t hop_limit,
                                  uint8_t out[static IB_GRH_BYTES])
{
	uint32_t word = htobe32((uint32_t)IB_GRH_VERSION << 28 | class_flow);
	uint16_t len = htobe16(payload_bytes);

	memcpy(out, &word, 4);
	memcpy(out + 4, &len, 2);
	out[6] = IB_GRH_NEXT_IBA;
	out[7] = hop_limit;
}

static inline void wire_grh_encode(const struct wire_grh *grh, uint8_t out[static IB_GRH_BYTES])
{
	wire_grh_begin((uint32_t)grh->traffic_class << 20 | (grh->flow_label & 0xFFFFF),
	               grh->payload_bytes, grh->hop_limit, out);
	memcpy(out + 8, grh->sgid.raw, 16);
	memcpy(out + 24, grh->dgid.raw, 16);
}

void wire_grh_decode(const uint8_t in[static IB_GRH_BYTES], struct wire_grh *grh);

/* The payload length, bytes, in the GRH of a UD message: BTH, DETH, immediate, pad and ICRC too. */
static inline uint16_t wire_grh_ud_payload(uint32_t message_bytes, int with_immediate)
{
	return (uint16_t)(WIRE_BTH_BYTES + WIRE_DETH_BYTES +
	                  (with_immediate ? WIRE_IMMDT_BYTES : 0) + ((message_bytes + 3) & ~3u) +
	                  WIRE_ICRC_BYTES);
}

#endif
