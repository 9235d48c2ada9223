/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whole InfiniBand packets: see packet.h.
 */
#include <string.h>

#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/packet.h"

/* LRH: what follows it */
#define NEXT_BTH 2
#define NEXT_GRH 3

/* x^16 + x^12 + x^3 + x + 1, the coefficient of x^0 in the top bit */
#define CRC16_POLYNOMIAL 0xD008u

static void put16(uint8_t *to, uint16_t v)
{
	to[0] = (uint8_t)(v >> 8);
	to[1] = (uint8_t)v;
}

/* Fields that may change on the way count as ones: the lane; if routers may forward it, all of the
 * LRH, and of the GRH traffic class, flow label and hop limit; FECN, BECN and the bits beside
 * them. */
uint32_t wire_packet_icrc(const uint8_t *packet, size_t bytes)
{
	uint8_t head[WIRE_LRH_BYTES + IB_GRH_BYTES + WIRE_BTH_BYTES];
	bool is_global = (packet[1] & 3) == NEXT_GRH;
	size_t bth = WIRE_LRH_BYTES + (is_global ? IB_GRH_BYTES : 0);

	memcpy(head, packet, bth + WIRE_BTH_BYTES);
	head[0] |= 0xF0;
	head[bth + 4] = 0xFF;
	if (is_global) {
		uint8_t *grh = head + WIRE_LRH_BYTES;

		memset(head, 0xFF, WIRE_LRH_BYTES);
		grh[0] |= 0x0F;
		memset(grh + 1, 0xFF, 3);
		grh[7] = 0xFF;
	}
	return wire_icrc_add(wire_icrc_add(0, head, bth + WIRE_BTH_BYTES),
	                     packet + bth + WIRE_BTH_BYTES, bytes - bth - WIRE_BTH_BYTES);
}

uint16_t wire_packet_vcrc(const uint8_t *packet, size_t bytes)
{
	uint32_t crc = 0xFFFF;

	for (size_t i = 0; i < bytes; i++) {
		crc ^= packet[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (CRC16_POLYNOMIAL & -(crc & 1));
	}
	return (uint16_t)~crc;
}

/* The LRH counts words up to the VCRC. */
static void put_lrh(const struct wire_packet *p, size_t bytes, uint8_t *out)
{
	out[0] = (uint8_t)(p->vl << 4);
	out[1] = (uint8_t)(p->sl << 4 | (p->grh ? NEXT_GRH : NEXT_BTH));
	put16(out + 2, p->dlid);
	put16(out + 4, (uint16_t)(bytes / 4));
	put16(out + 6, p->slid);
}

size_t wire_packet_build(const struct wire_packet *p, uint8_t *out)
{
	const uint32_t bytes = wire_opcodes[p->h.bth.opcode].header_bytes,
	               padded = (p->payload_bytes + 3) & ~3u;
	struct wire_headers h = p->h;
	size_t at = WIRE_LRH_BYTES;
	uint32_t icrc;
	uint16_t vcrc;

	if (p->grh) {
		struct wire_grh grh = *p->grh;

		grh.payload_bytes = (uint16_t)(bytes + padded + WIRE_ICRC_BYTES);
		wire_grh_encode(&grh, out + at);
		at += IB_GRH_BYTES;
	}
	h.bth.pad = (uint8_t)(padded - p->payload_bytes);
	at += wire_headers_encode(&h, out + at);
	if (p->payload_bytes)
		memcpy(out + at, p->payload, p->payload_bytes);
	memset(out + at + p->payload_bytes, 0, h.bth.pad);
	at += padded;
	put_lrh(p, at + WIRE_ICRC_BYTES, out);
	icrc = htole32(wire_packet_icrc(out, at));
	memcpy(out + at, &icrc, WIRE_ICRC_BYTES);
	at += WIRE_ICRC_BYTES;
	vcrc = htole16(wire_packet_vcrc(out, at));
	memcpy(out + at, &vcrc, WIRE_VCRC_BYTES);
	return at + WIRE_VCRC_BYTES;
}
