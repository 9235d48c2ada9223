/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Unit tests of whole InfiniBand packets. */
#include <harness.h>

#include "wire/packet.h"

/* A packet without a GRH: LRH, BTH and 32 bytes of payload. */
static const uint8_t local[] = {
	0x70, 0x12, 0x37, 0x5C, 0x00, 0x0E, 0x17, 0xD2, 0x0A, 0x20, 0x24, 0x87, 0x00,
	0x87, 0xB1, 0xB3, 0x00, 0x0D, 0xEC, 0x2A, 0x01, 0x71, 0x0A, 0x1C, 0x01, 0x5D,
	0x40, 0x02, 0x38, 0xF2, 0x7A, 0x05, 0x00, 0x00, 0x00, 0x0E, 0xBB, 0x88, 0x4D,
	0x85, 0xFD, 0x5C, 0xFB, 0xA4, 0x72, 0x8B, 0xC0, 0x69, 0x0E, 0xD4, 0x00, 0x00,
};

CASE(icrc_is_that_of_the_specifications_packet)
{
	assert_int_equal(wire_packet_icrc(local, sizeof(local)), 0x5AB72596);
}

CASE(icrc_ignores_what_changes_on_the_way)
{
	uint8_t packet[sizeof(local)];

	memcpy(packet, local, sizeof(local));
	packet[0] ^= 0xF0;  /* the lane */
	packet[12] ^= 0xC0; /* FECN, BECN */
	assert_int_equal(wire_packet_icrc(packet, sizeof(packet)), 0x5AB72596);
	packet[3] ^= 1; /* the DLID */
	assert_int_not_equal(wire_packet_icrc(packet, sizeof(packet)), 0x5AB72596);
}

/* All bits that routers may change of a packet with a GRH, a bit at a time. */
CASE(icrc_of_a_global_packet_ignores_what_routers_change)
{
	static const struct {
		size_t at;
		uint8_t bits; /* those that do not count; the others do */
	} rows[] = { { 0, 0xFF }, { 1, 0xFC }, { 2, 0xFF },  { 6, 0xFF },
		     { 8, 0x0F }, { 9, 0xFF }, { 10, 0xFF }, { 11, 0xFF },
		     { 12, 0 },   { 14, 0 },   { 15, 0xFF }, { 16, 0 },
		     { 47, 0 },   { 48, 0 },   { 52, 0xFF }, { 53, 0 } };
	static const uint8_t payload[8] = { 1, 2, 3 };
	const struct wire_grh grh = { .hop_limit = 7, .sgid.raw = { 0xFE, 0x80 } };
	const struct wire_packet p = { .h.bth = { .opcode = WIRE_OPCODE_UD_SEND_ONLY },
		                       .grh = &grh,
		                       .payload = payload,
		                       .payload_bytes = sizeof(payload) };
	uint8_t out[WIRE_PACKET_MAX_OVERHEAD + sizeof(payload)];
	const size_t bytes = wire_packet_build(&p, out) - 4 - WIRE_VCRC_BYTES;
	const uint32_t icrc = wire_packet_icrc(out, bytes);

	for (size_t i = 0; EACH_ROW(i, rows); i++)
		for (unsigned bit = 1; bit < 0x100; bit <<= 1) {
			if (rows[i].at == 1 && bit < 4)
				continue; /* they say that there is a GRH */
			out[rows[i].at] ^= (uint8_t)bit;
			assert_int_equal(wire_packet_icrc(out, bytes) == icrc,
			                 (rows[i].bits & bit) != 0);
			out[rows[i].at] ^= (uint8_t)bit;
		}
}

/* The remainder of a packet and its own CRC is the same for all. */
CASE(vcrc_covers_packet_and_icrc)
{
	uint8_t packet[sizeof(local) + WIRE_VCRC_BYTES];
	uint16_t vcrc = wire_packet_vcrc(local, sizeof(local)), residue;

	memcpy(packet, local, sizeof(local));
	packet[sizeof(local)] = (uint8_t)vcrc;
	packet[sizeof(local) + 1] = (uint8_t)(vcrc >> 8);
	residue = wire_packet_vcrc(packet, sizeof(packet));
	packet[0] ^= 0x10;
	vcrc = wire_packet_vcrc(packet, sizeof(local));
	packet[sizeof(local)] = (uint8_t)vcrc;
	packet[sizeof(local) + 1] = (uint8_t)(vcrc >> 8);
	assert_int_equal(wire_packet_vcrc(packet, sizeof(packet)), residue);
	packet[9] ^= 0x10;
	assert_int_not_equal(wire_packet_vcrc(packet, sizeof(packet)), residue);
}

CASE(packet_has_its_headers_in_order)
{
	static const uint8_t payload[256] = { 1, 7, 2, 3 };
	const struct wire_grh grh = { .hop_limit = 1, .sgid.raw = { 0xFE, 0x80 } };
	struct wire_packet p = {
		.vl = 3,
		.sl = 5,
		.slid = 0x1234,
		.dlid = 0x5678,
		.h.bth = { .opcode = WIRE_OPCODE_UD_SEND_ONLY, .pkey = 0xFFFF, .dest_qpn = 1 },
		.h.deth = { .qkey = 0x80010000, .src_qpn = 1 },
		.payload = payload,
		.payload_bytes = sizeof(payload)
	};
	uint8_t out[WIRE_PACKET_MAX_OVERHEAD + sizeof(payload)];

	assert_int_equal(wire_packet_build(&p, out), 290);
	assert_memory_equal(out, ((uint8_t[]){ 0x30, 0x52, 0x56, 0x78, 0, 72, 0x12, 0x34 }), 8);
	assert_int_equal(out[8], 0x64);
	assert_memory_equal(out + 28, payload, sizeof(payload));
	p.grh = &grh;
	assert_int_equal(wire_packet_build(&p, out), 330);
	assert_memory_equal(out, ((uint8_t[]){ 0x30, 0x53, 0x56, 0x78, 0, 82, 0x12, 0x34 }), 8);
	assert_memory_equal(out + 8, ((uint8_t[]){ 0x60, 0, 0, 0, 1, 0x18, 0x1B, 1 }), 8);
	assert_memory_equal(out + 68, payload, sizeof(payload));
}

CASE(a_payload_is_padded_to_words)
{
	static const uint8_t payload[5] = { 1, 2, 3, 4, 5 };
	struct wire_packet p = { .h.bth = { .opcode = WIRE_OPCODE(WIRE_TRANSPORT_RC,
		                                                  WIRE_SEND_LAST) },
		                 .payload = payload,
		                 .payload_bytes = sizeof(payload) };
	uint8_t out[WIRE_PACKET_MAX_OVERHEAD + sizeof(payload)];

	assert_int_equal(wire_packet_build(&p, out), 8 + 12 + 8 + 6);
	assert_int_equal(out[9] >> 4 & 3, 3); /* PadCnt */
	assert_memory_equal(out + 20, ((uint8_t[]){ 1, 2, 3, 4, 5, 0, 0, 0 }), 8);
	p.payload_bytes = 0;
	p.h.bth.opcode = WIRE_OPCODE(WIRE_TRANSPORT_RC, WIRE_ACKNOWLEDGE);
	assert_int_equal(wire_packet_build(&p, out), 8 + 12 + 4 + 6);
}
