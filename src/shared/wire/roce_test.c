/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RoCEv2 datagrams, built and parsed: a datagram that is built is accepted, a broken one is refused
 * for the fault that it has.
 */
#include <harness.h>

#include "wire/icrc.h"
#include "wire/roce.h"

#define ROOM     WIRE_ROCE_MAX_BYTES
#define UD_BYTES (WIRE_BTH_BYTES + WIRE_DETH_BYTES) /* of headers */

static const struct wire_roce_packet ipv4_sample = {
	.ip = { .sgid = { { [10] = 0xFF, 0xFF, 10, 0, 0, 1 } },
	        .dgid = { { [10] = 0xFF, 0xFF, 239, 1, 2, 3 } },
	        .udp_source = 0xC1D2,
	        .traffic_class = 0xB9,
	        .hop_limit = 7 },
	.h = { .bth = { .opcode = WIRE_OPCODE_UD_SEND_ONLY_IMM,
	                .solicited = true,
	                .pkey = 0xFFFF,
	                .dest_qpn = 0xFFFFFF,
	                .psn = 0xABCDEF },
	       .deth = { .qkey = 0x01234567, .src_qpn = 0x123 } },
	.payload = "hello, multicast\n",
	.payload_bytes = 17,
};

/* With the addresses of a link. */
static struct wire_roce_packet ipv6_sample(void)
{
	struct wire_roce_packet p = ipv4_sample;

	inet_pton(AF_INET6, "fe80::1234:56ff:fe78:9abc", &p.ip.sgid);
	inet_pton(AF_INET6, "ff0e::1:2345", &p.ip.dgid);
	return p;
}

/* A datagram in one piece, and as a receiver sees it. */
struct datagram {
	uint8_t bytes[ROOM];
	struct wire_roce_datagram seen;
};

static void see(struct datagram *d, uint32_t bytes)
{
	d->seen = (struct wire_roce_datagram){ .at = d->bytes,
		                               .transports = 1 << WIRE_TRANSPORT_UD,
		                               .bytes = bytes };
}

static void build(const struct wire_roce_packet *p, struct datagram *d)
{
	struct wire_roce_frame frame;
	uint8_t *at = d->bytes;

	wire_roce_build(p, &frame);
	memcpy(at, frame.head, frame.head_bytes);
	at += frame.head_bytes;
	memcpy(at, p->payload, p->payload_bytes);
	at += p->payload_bytes;
	memcpy(at, frame.trailer, frame.trailer_bytes);
	at += frame.trailer_bytes;
	assert_int_equal(wire_roce_udp_payload(p), at - d->bytes);
	see(d, (uint32_t)(at - d->bytes));
}

/* Writes the ICRC that the datagram should have. */
static void sign(struct datagram *d, const struct wire_ip *ip)
{
	uint32_t n = d->seen.bytes - WIRE_ICRC_BYTES;
	uint32_t icrc = wire_icrc_begin(ip, (uint16_t)d->seen.bytes, d->bytes, WIRE_BTH_BYTES);

	icrc = htole32(wire_icrc_add(icrc, d->bytes + WIRE_BTH_BYTES, n - WIRE_BTH_BYTES));
	memcpy(d->bytes + n, &icrc, WIRE_ICRC_BYTES);
}

static enum wire_roce_status parse(const struct datagram *d, const struct wire_ip *ip)
{
	struct wire_roce_packet got = { .ip = *ip };

	return wire_roce_parse(&d->seen, &got);
}

CASE(what_is_built_is_what_was_meant)
{
	/* with identification 0xBEEF; made by Scapy */
	static const uint8_t expected[] = { 0x65, 0xB0, 0xFF, 0xFF, 0x00, 0xFF, 0xFF, 0xFF,
		                            0x00, 0xAB, 0xCD, 0xEF, 0x01, 0x23, 0x45, 0x67,
		                            0x00, 0x00, 0x01, 0x23, 0xCA, 0xFE, 0xF0, 0x0D,
		                            0x68, 0x65, 0x6C, 0x6C, 0x6F, 0x2C, 0x20, 0x6D,
		                            0x75, 0x6C, 0x74, 0x69, 0x63, 0x61, 0x73, 0x74,
		                            0x0A, 0x00, 0x00, 0x00, 0xCD, 0x35, 0x87, 0xAE };
	struct wire_roce_packet p = ipv4_sample;
	struct datagram d;

	p.ip.ipv4_id = 0xBEEF;
	p.h.imm_data = htobe32(0xCAFEF00D);
	build(&p, &d);
	assert_int_equal(d.seen.bytes, sizeof(expected));
	assert_memory_equal(d.bytes, expected, sizeof(expected));
}

static void assert_same(const struct wire_roce_packet *got, const struct wire_roce_packet *sent)
{
	assert_int_equal(got->h.bth.opcode, sent->h.bth.opcode);
	assert_int_equal(got->h.bth.solicited, sent->h.bth.solicited);
	assert_int_equal(got->h.bth.pkey, sent->h.bth.pkey);
	assert_int_equal(got->h.bth.dest_qpn, sent->h.bth.dest_qpn);
	assert_int_equal(got->h.bth.psn, sent->h.bth.psn);
	assert_int_equal(got->h.deth.qkey, sent->h.deth.qkey);
	assert_int_equal(got->h.deth.src_qpn, sent->h.deth.src_qpn);
	assert_int_equal(got->h.imm_data, sent->h.imm_data);
	assert_int_equal(got->payload_bytes, sent->payload_bytes);
	assert_memory_equal(got->payload, sent->payload, sent->payload_bytes);
}

CASE(what_is_built_parses_at_every_length)
{
	static uint8_t payload[WIRE_ROCE_MAX_PAYLOAD];
	struct wire_roce_packet sample[] = { ipv4_sample, ipv6_sample() };
	struct datagram d;

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)rand();
	for (unsigned n = 0; n <= sizeof(payload); n++) {
		struct wire_roce_packet p = sample[n / 4 & 1], got = { .ip = p.ip };

		p.payload = payload;
		p.payload_bytes = n;
		p.h.bth.opcode =
		        rand() & 1 ? WIRE_OPCODE_UD_SEND_ONLY : WIRE_OPCODE_UD_SEND_ONLY_IMM;
		p.h.imm_data =
		        p.h.bth.opcode == WIRE_OPCODE_UD_SEND_ONLY_IMM ? (uint32_t)rand() : 0;
		build(&p, &d);
		assert_int_equal(wire_roce_parse(&d.seen, &got), WIRE_ROCE_OK);
		assert_same(&got, &p);
	}
}

CASE(the_payload_stays_where_it_was_received)
{
	struct wire_roce_packet got = { .ip = ipv4_sample.ip };
	struct datagram d;

	build(&ipv4_sample, &d);
	assert_int_equal(wire_roce_parse(&d.seen, &got), WIRE_ROCE_OK);
	assert_ptr_equal(got.payload, d.bytes + UD_BYTES + WIRE_IMMDT_BYTES);
}

CASE(a_peer_may_set_any_identification)
{
	struct wire_roce_packet p = ipv4_sample, got = { .ip = p.ip };
	struct datagram d;

	p.ip.ipv4_id = 0x1234;
	p.ip.ipv4_fragmentable = true;
	build(&p, &d);
	assert_int_equal(wire_roce_parse(&d.seen, &got), WIRE_ROCE_OK);
	assert_int_equal(got.ip.ipv4_id, 0x1234);
	assert_true(got.ip.ipv4_fragmentable);
}

CASE(over_ipv6_the_icrc_must_be_exact)
{
	struct wire_roce_packet p = ipv6_sample(), v4 = ipv4_sample;
	uint32_t difference[2];
	struct datagram d;

	/* what an identification of 1 would change */
	for (unsigned i = 0; i < 2; i++) {
		v4.ip.ipv4_id = (uint16_t)i;
		build(&v4, &d);
		memcpy(&difference[i], d.bytes + d.seen.bytes - WIRE_ICRC_BYTES, WIRE_ICRC_BYTES);
	}
	build(&p, &d);
	for (unsigned i = 0; i < WIRE_ICRC_BYTES; i++)
		d.bytes[d.seen.bytes - WIRE_ICRC_BYTES + i] ^=
		        ((uint8_t *)&difference[0])[i] ^ ((uint8_t *)&difference[1])[i];
	assert_int_equal(parse(&d, &p.ip), WIRE_ROCE_ICRC);
}

CASE(each_flipped_bit_of_an_ipv6_datagram_is_noticed)
{
	struct wire_roce_packet p = ipv6_sample();
	struct datagram d;

	build(&p, &d);
	for (unsigned bit = 0; bit < d.seen.bytes * 8; bit++) {
		if (bit / 8 == 4) /* reserved, and no part of the ICRC */
			continue;
		d.bytes[bit / 8] ^= 1u << bit % 8;
		assert_int_not_equal(parse(&d, &p.ip), WIRE_ROCE_OK);
		d.bytes[bit / 8] ^= 1u << bit % 8;
	}
}

/* One in 2^15 passes: of 2^18, 8. They are the same in every run. */
CASE(an_ipv4_datagram_that_was_corrupted_is_refused)
{
	unsigned accepted = 0;
	struct datagram d;

	build(&ipv4_sample, &d);
	for (unsigned i = 0; i < 1u << 18; i++) {
		uint32_t noise = (uint32_t)rand() ^ (uint32_t)rand() << 16;
		unsigned at = WIRE_BTH_BYTES + (unsigned)rand() % (d.seen.bytes - 16);
		struct datagram broken = d;

		see(&broken, d.seen.bytes);
		noise |= 1;
		for (unsigned k = 0; k < 4; k++)
			broken.bytes[at + k] ^= (uint8_t)(noise >> 8 * k);
		accepted += parse(&broken, &ipv4_sample.ip) == WIRE_ROCE_OK;
	}
	assert_in_range(accepted, 0, 40);
}

CASE(a_source_that_is_not_the_sender_is_noticed)
{
	struct wire_roce_packet p = ipv6_sample();
	struct datagram d;

	build(&p, &d);
	p.ip.sgid.raw[15] ^= 1;
	assert_int_equal(parse(&d, &p.ip), WIRE_ROCE_ICRC);
}

/* A datagram that is right but for byte @at being @value. */
static enum wire_roce_status parse_with(unsigned at, uint8_t value)
{
	struct datagram d;

	build(&ipv4_sample, &d);
	d.bytes[at] = value;
	sign(&d, &ipv4_sample.ip);
	return parse(&d, &ipv4_sample.ip);
}

/* A FLUSH that rdma_rxe of Linux 6.12 has sent, with identification 0xBE05. */
CASE(a_flush_of_rxe_has_an_icrc_of_its_own)
{
	static const uint8_t sent[] = { 0x1C, 0x00, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x04, 0x80,
		                        0xFF, 0xFF, 0xFC, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
		                        0x7F, 0xC1, 0x17, 0x7A, 0xB0, 0x10, 0x00, 0x00, 0x01,
		                        0x00, 0x00, 0x00, 0x13, 0x88, 0x3F, 0x70, 0xA5, 0x9D };
	const struct wire_roce_packet p = {
		.ip = { .sgid = wire_gid_from_ipv4(htonl(0xC000020B)),
		        .dgid = wire_gid_from_ipv4(htonl(0xC0000201)),
		        .udp_source = 0xC044,
		        .ipv4_id = 0xBE05,
		        .hop_limit = 64 },
		.h = { .bth = { .opcode = WIRE_OPCODE_FLUSH,
		                .pkey = 0xFFFF,
		                .dest_qpn = 4,
		                .ack_requested = true,
		                .psn = 0xFFFFFC },
		       .reth = { .va = 0x7FC1177AB010, .rkey = 0x100, .dma_length = 5000 },
		       .feth = { .placement = 1, .rxe_icrc = true } },
		.payload = "",
	};
	struct wire_roce_packet right = p, got = { .ip = p.ip };
	struct datagram d;

	build(&p, &d);
	assert_int_equal(d.seen.bytes, sizeof(sent));
	assert_memory_equal(d.bytes, sent, sizeof(sent));
	d.seen.transports = 1 << WIRE_TRANSPORT_RC;
	assert_int_equal(parse(&d, &p.ip), WIRE_ROCE_ICRC);
	d.seen.rxe_flush = true;
	for (unsigned id = 0; id <= 0xBE05; id += 0xBE05) {
		got.ip.ipv4_id = (uint16_t)id;
		assert_int_equal(wire_roce_parse(&d.seen, &got), WIRE_ROCE_OK);
		assert_int_equal(got.ip.ipv4_id, 0xBE05);
		assert_int_equal(got.h.feth.placement, 1);
		assert_int_equal(got.h.feth.rxe_icrc, false);
	}
	d.bytes[20] ^= 1;
	assert_int_equal(parse(&d, &p.ip), WIRE_ROCE_ICRC);
	right.h.feth.rxe_icrc = false; /* as the specification has it: taken as well */
	build(&right, &d);
	d.seen.transports = 1 << WIRE_TRANSPORT_RC;
	assert_int_equal(parse(&d, &p.ip), WIRE_ROCE_OK);
	d.seen.rxe_flush = true;
	assert_int_equal(parse(&d, &p.ip), WIRE_ROCE_OK);
}

CASE(another_version_is_named)
{
	assert_int_equal(parse_with(1, 0xB0), WIRE_ROCE_OK);
	assert_int_equal(parse_with(1, 0xB1), WIRE_ROCE_VERSION);
	assert_int_equal(parse_with(1, 0xB8), WIRE_ROCE_VERSION);
}

CASE(an_opcode_that_is_not_ud_is_named)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		bool ud = opcode == WIRE_OPCODE_UD_SEND_ONLY ||
		          opcode == WIRE_OPCODE_UD_SEND_ONLY_IMM;

		assert_int_equal(parse_with(0, (uint8_t)opcode),
		                 ud ? WIRE_ROCE_OK : WIRE_ROCE_OPCODE);
	}
}

CASE(more_pad_than_payload_is_named)
{
	struct wire_roce_packet p = ipv4_sample;
	struct datagram d;

	p.payload_bytes = 0;
	build(&p, &d);
	d.bytes[1] |= 1 << 4;
	sign(&d, &p.ip);
	assert_int_equal(parse(&d, &p.ip), WIRE_ROCE_PAD);
}

CASE(a_length_that_is_no_whole_words_is_named)
{
	struct datagram d;

	build(&ipv4_sample, &d);
	for (unsigned i = 1; i < 4; i++) {
		see(&d, d.seen.bytes + 1);
		sign(&d, &ipv4_sample.ip);
		assert_int_equal(parse(&d, &ipv4_sample.ip), WIRE_ROCE_PAD);
	}
}

CASE(one_too_short_for_its_headers_is_named)
{
	struct datagram d;

	for (uint32_t n = 0; n < UD_BYTES + WIRE_IMMDT_BYTES + WIRE_ICRC_BYTES; n++) {
		build(&ipv4_sample, &d);
		see(&d, n);
		if (n >= UD_BYTES)
			sign(&d, &ipv4_sample.ip);
		assert_int_equal(parse(&d, &ipv4_sample.ip), WIRE_ROCE_SHORT);
	}
}

/* A packet of RC is a packet to receivers that serve RC, and none to others. */
CASE(a_packet_of_a_transport_that_is_not_served_is_named)
{
	struct wire_roce_packet p = ipv4_sample, got = { .ip = p.ip };
	struct datagram d;

	p.h.bth.opcode = WIRE_OPCODE(WIRE_TRANSPORT_RC, WIRE_WRITE_ONLY);
	p.h.reth = (struct wire_reth){ .va = 0x1000, .rkey = 7, .dma_length = p.payload_bytes };
	build(&p, &d);
	assert_int_equal(parse(&d, &p.ip), WIRE_ROCE_OPCODE);
	d.seen.transports |= 1 << WIRE_TRANSPORT_RC;
	assert_int_equal(wire_roce_parse(&d.seen, &got), WIRE_ROCE_OK);
	assert_int_equal(got.h.reth.va, 0x1000);
	assert_int_equal(got.payload_bytes, p.payload_bytes);
	d.bytes[0] = 0x15; /* no opcode at all */
	assert_int_equal(parse(&d, &p.ip), WIRE_ROCE_OPCODE);
}

/* As @bytes of a datagram with @opcode, for a receiver that serves all transports, and refuses
 * reserved opcodes. */
static enum wire_roce_status parse_reserved(struct datagram *d, uint8_t opcode, uint32_t bytes,
                                            struct wire_roce_packet *got)
{
	see(d, bytes);
	d->seen.transports = 0xFF;
	d->seen.reserved = true;
	d->bytes[0] = opcode;
	d->bytes[1] &= 0xCF; /* no pad */
	if (bytes > WIRE_BTH_BYTES + WIRE_ICRC_BYTES)
		sign(d, &ipv4_sample.ip);
	*got = (struct wire_roce_packet){ .ip = ipv4_sample.ip };
	return wire_roce_parse(&d->seen, got);
}

/* RC's alone. */
CASE(reserved_opcodes_are_packets_to_who_refuses_them)
{
	const uint32_t headers = WIRE_BTH_BYTES + WIRE_ICRC_BYTES;
	struct wire_roce_packet got;
	struct datagram d;

	build(&ipv4_sample, &d);
	assert_int_equal(parse_reserved(&d, 0x15, headers + 8, &got), WIRE_ROCE_OK);
	assert_ptr_equal(got.payload, d.bytes + WIRE_BTH_BYTES);
	assert_int_equal(got.payload_bytes, 8);
	assert_int_equal(parse_reserved(&d, 0x1F, headers + 4, &got), WIRE_ROCE_OK);
	assert_int_equal(got.payload_bytes, 4);
	assert_int_equal(parse_reserved(&d, 0x1F, headers - 4, &got), WIRE_ROCE_SHORT);
	assert_int_equal(parse_reserved(&d, 0x3F, headers + 8, &got), WIRE_ROCE_OPCODE);
	assert_int_equal(parse_reserved(&d, 0x15, headers + 8, &got), WIRE_ROCE_OK);
	d.seen.reserved = false;
	assert_int_equal(wire_roce_parse(&d.seen, &got), WIRE_ROCE_OPCODE);
}

CASE(one_that_was_cut_off_is_named)
{
	struct datagram d;

	build(&ipv4_sample, &d);
	d.seen.truncated = true;
	assert_int_equal(parse(&d, &ipv4_sample.ip), WIRE_ROCE_TRUNCATED);
}

CASE(every_status_has_a_name_of_its_own)
{
	for (unsigned i = 0; i < WIRE_ROCE_STATUSES; i++) {
		assert_non_null(wire_roce_status_name(i));
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(wire_roce_status_name(i), wire_roce_status_name(k));
	}
}
