/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A whole InfiniBand packet as it is on a link, of any opcode:
 *
 *     LRH 8  [GRH 40]  BTH 12  [other headers]  payload  pad 0 to 3  ICRC 4  VCRC 2
 *
 * (InfiniBand specification volume 1, sections 5.2, 7.7 and 7.8). Nothing sends such packets: they
 * are for captures. Pure functions.
 */
#ifndef WIRE_PACKET_H
#define WIRE_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include "wire/grh.h"
#include "wire/headers.h"

#define WIRE_LRH_BYTES  8
#define WIRE_VCRC_BYTES 2

/* All that is before and behind the payload. */
#define WIRE_PACKET_MAX_OVERHEAD                                                        \
	(WIRE_LRH_BYTES + IB_GRH_BYTES + WIRE_HEADERS_MAX_BYTES + 3 + WIRE_ICRC_BYTES + \
	 WIRE_VCRC_BYTES)

struct wire_packet {
	uint8_t vl, sl; /* 4 bits */
	uint16_t slid, dlid;
	const struct wire_grh *grh; /* its payload_bytes is filled in; NULL: none */
	struct wire_headers h;      /* the pad is filled in */
	const void *payload;
	uint32_t payload_bytes;
};

/* Writes the packet to @out, WIRE_PACKET_MAX_OVERHEAD bytes and those of the payload at most.
 * Returns how many. */
size_t wire_packet_build(const struct wire_packet *packet, uint8_t *out);

/*
 * The CRCs of a packet of @bytes bytes before its ICRC, which begins with its LRH: the invariant
 * one, which goes out with its low byte first, and the variant one of packet and ICRC, likewise.
 */
uint32_t wire_packet_icrc(const uint8_t *packet, size_t bytes);
uint16_t wire_packet_vcrc(const uint8_t *packet, size_t bytes);

#endif
