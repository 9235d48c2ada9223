/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ICRCs of datagrams that others made, and IPv4's identification found from them.
 */
#include <harness.h>

#include "base/util.h"
#include "wire/icrc.h"

#define MAX_BYTES 65504 /* of UDP payload, whole words */

/* A datagram from its IP header on, as a capture has it. */
struct capture {
	const char *name;
	uint8_t bytes[128];
	unsigned n;
};

static const struct capture capture[] = {
	{ "ConnectX-4 Lx: a congestion notification",
	  { 0x45, 0xC2, 0x00, 0x3C, 0x71, 0x8C, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61,
	    0x0A, 0x00, 0x11, 0x01, 0x0A, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xB7,
	    0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xFF, 0xFF, 0x40, 0x00, 0x01, 0x18,
	    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xFD, 0x00, 0x2A },
	  60 },
	{ "mlx5: UC SEND Only",
	  { 0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11, 0xB4, 0xD5, 0xC0,
	    0xA8, 0x00, 0x07, 0xC0, 0xA8, 0x00, 0x07, 0xC0, 0x00, 0x12, 0xB7, 0x00, 0x2C,
	    0xAC, 0xA2, 0x24, 0x60, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0xD3, 0x00, 0xCF, 0x17,
	    0x10, 0x46, 0x30, 0x81, 0x8B, 0xE2, 0x89, 0x35, 0xD9, 0x0E, 0x9A, 0x95, 0x50,
	    0x54, 0x01, 0xBE, 0x88, 0x5E, 0x50, 0x00, 0x00, 0x78, 0xF3, 0x53, 0xF3 },
	  64 },
	{ "made by Scapy: UD SEND Only with Immediate",
	  { 0x45, 0xB9, 0x00, 0x4C, 0xBE, 0xEF, 0x40, 0x00, 0x07, 0x11, 0xB8, 0xF3, 0x0A,
	    0x00, 0x00, 0x01, 0xEF, 0x01, 0x02, 0x03, 0xC1, 0xD2, 0x12, 0xB7, 0x00, 0x38,
	    0x73, 0xEF, 0x65, 0xB0, 0xFF, 0xFF, 0x00, 0xFF, 0xFF, 0xFF, 0x00, 0xAB, 0xCD,
	    0xEF, 0x01, 0x23, 0x45, 0x67, 0x00, 0x00, 0x01, 0x23, 0xCA, 0xFE, 0xF0, 0x0D,
	    0x68, 0x65, 0x6C, 0x6C, 0x6F, 0x2C, 0x20, 0x6D, 0x75, 0x6C, 0x74, 0x69, 0x63,
	    0x61, 0x73, 0x74, 0x0A, 0x00, 0x00, 0x00, 0xCD, 0x35, 0x87, 0xAE },
	  76 },
	{ "zlib's crc32() over what rdma_rxe counts: UD over IPv6",
	  { 0x6B, 0x95, 0x43, 0x21, 0x00, 0x38, 0x11, 0x07, 0xFE, 0x80, 0x00, 0x00, 0x00, 0x00,
	    0x00, 0x00, 0x12, 0x34, 0x56, 0xFF, 0xFE, 0x78, 0x9A, 0xBC, 0xFF, 0x0E, 0x00, 0x00,
	    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x23, 0x45, 0xC1, 0xD2,
	    0x12, 0xB7, 0x00, 0x38, 0xA0, 0x9A, 0x65, 0xB0, 0xFF, 0xFF, 0x00, 0xFF, 0xFF, 0xFF,
	    0x00, 0xAB, 0xCD, 0xEF, 0x01, 0x23, 0x45, 0x67, 0x00, 0x00, 0x01, 0x23, 0xCA, 0xFE,
	    0xF0, 0x0D, 0x68, 0x65, 0x6C, 0x6C, 0x6F, 0x2C, 0x20, 0x6D, 0x75, 0x6C, 0x74, 0x69,
	    0x63, 0x61, 0x73, 0x74, 0x0A, 0x00, 0x00, 0x00, 0xEB, 0xC8, 0x0E, 0xE1 },
	  96 },
};

static uint16_t get16(const uint8_t *from)
{
	return (uint16_t)(from[0] << 8 | from[1]);
}

/* Takes a capture's IP and UDP headers apart. Returns where the UDP payload begins. */
static unsigned dissect(const struct capture *c, struct wire_ip *ip)
{
	const uint8_t *b = c->bytes;

	*ip = (struct wire_ip){ 0 };
	if (b[0] >> 4 == 6) {
		ip->traffic_class = (uint8_t)(b[0] << 4 | b[1] >> 4);
		ip->flow_label = (uint32_t)(b[1] & 0xF) << 16 | get16(b + 2);
		ip->hop_limit = b[7];
		memcpy(&ip->sgid, b + 8, 16);
		memcpy(&ip->dgid, b + 24, 16);
		b += WIRE_IPV6_BYTES;
	} else {
		ip->traffic_class = b[1];
		ip->ipv4_id = get16(b + 4);
		ip->ipv4_fragmentable = !(b[6] & 0x40);
		ip->hop_limit = b[8];
		memset(ip->sgid.raw + 10, 0xFF, 2);
		memset(ip->dgid.raw + 10, 0xFF, 2);
		memcpy(ip->sgid.raw + 12, b + 12, 4);
		memcpy(ip->dgid.raw + 12, b + 16, 4);
		b += WIRE_IPV4_BYTES;
	}
	ip->udp_source = get16(b);
	return (unsigned)(b + WIRE_UDP_BYTES - c->bytes);
}

static uint32_t icrc_of(const struct wire_ip *ip, const uint8_t *payload, uint16_t bytes)
{
	uint32_t icrc = wire_icrc_begin(ip, bytes, payload, WIRE_BTH_BYTES);

	return wire_icrc_add(icrc, payload + WIRE_BTH_BYTES,
	                     bytes - WIRE_BTH_BYTES - WIRE_ICRC_BYTES);
}

static uint32_t icrc_in(const struct capture *c)
{
	uint32_t icrc;

	memcpy(&icrc, c->bytes + c->n - WIRE_ICRC_BYTES, WIRE_ICRC_BYTES);
	return le32toh(icrc);
}

CASE(it_is_that_of_others)
{
	for (size_t i = 0; i < ARRAY_SIZE(capture); i++) {
		const struct capture *c = &capture[i];
		struct wire_ip ip;
		unsigned at = dissect(c, &ip);
		uint32_t icrc = icrc_of(&ip, c->bytes + at, (uint16_t)(c->n - at));

		if (icrc != icrc_in(c))
			fail_msg("%s: %08x, not %08x", c->name, icrc, icrc_in(c));
	}
}

CASE(the_identification_is_found_from_it)
{
	for (size_t i = 0; EACH_NAMED(i, capture, name); i++) {
		const struct capture *c = &capture[i];
		struct wire_ip ip, blind;
		unsigned at = dissect(c, &ip);
		uint16_t bytes = (uint16_t)(c->n - at);

		if (!wire_gid_is_ipv4(&ip.sgid))
			continue;
		blind = ip;
		blind.ipv4_id = 0;
		assert_true(wire_icrc_find_id(icrc_of(&blind, c->bytes + at, bytes) ^ icrc_in(c),
		                              bytes, &blind));
		assert_int_equal(blind.ipv4_id, ip.ipv4_id);
		assert_false(blind.ipv4_fragmentable);
	}
}

CASE(what_routers_may_change_does_not_count)
{
	for (size_t i = 0; EACH_NAMED(i, capture, name); i++) {
		const struct capture *c = &capture[i];
		uint8_t payload[128];
		struct wire_ip ip;
		unsigned at = dissect(c, &ip);

		ip.traffic_class ^= 3;
		ip.hop_limit--;
		ip.flow_label ^= 0xFFFFF;
		memcpy(payload, c->bytes + at, c->n - at);
		payload[4] ^= 0xFF;
		assert_int_equal(icrc_of(&ip, payload, (uint16_t)(c->n - at)), icrc_in(c));
	}
}

CASE(every_address_and_the_source_port_count)
{
	struct wire_ip ip, other;
	unsigned at = dissect(&capture[3], &ip);
	uint16_t bytes = (uint16_t)(capture[3].n - at);
	const uint8_t *payload = capture[3].bytes + at;
	uint32_t icrc = icrc_of(&ip, payload, bytes);

	for (unsigned i = 0; i < 16; i++) {
		other = ip;
		other.sgid.raw[i] ^= 1;
		assert_int_not_equal(icrc_of(&other, payload, bytes), icrc);
		other = ip;
		other.dgid.raw[i] ^= 1;
		assert_int_not_equal(icrc_of(&other, payload, bytes), icrc);
		other = ip;
		other.udp_source ^= 1u << i;
		assert_int_not_equal(icrc_of(&other, payload, bytes), icrc);
	}
}

CASE(its_parts_may_be_of_any_length)
{
	uint8_t bytes[300];
	uint32_t whole;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rand();
	whole = wire_icrc_add(0x12345678, bytes, sizeof(bytes));
	for (size_t i = 0; i <= sizeof(bytes); i++)
		assert_int_equal(wire_icrc_add(wire_icrc_add(0x12345678, bytes, i), bytes + i,
		                               sizeof(bytes) - i),
		                 whole);
}

static const struct wire_ip ipv4_sample = {
	.sgid = { { [10] = 0xFF, 0xFF, 10, 0, 0, 1 } },
	.dgid = { { [10] = 0xFF, 0xFF, 239, 1, 2, 3 } },
	.udp_source = 0xC123,
};

/* Whether the identification and DF of @sent are found in a datagram of @bytes. */
static bool found(const struct wire_ip *sent, uint16_t bytes, uint32_t blind)
{
	static const uint8_t payload[MAX_BYTES];
	struct wire_ip got = { 0 };

	return wire_icrc_find_id(icrc_of(sent, payload, bytes) ^ blind, bytes, &got) &&
	       got.ipv4_id == sent->ipv4_id && got.ipv4_fragmentable == sent->ipv4_fragmentable;
}

CASE(every_identification_is_found)
{
	static const uint8_t payload[MAX_BYTES];
	const uint16_t bytes = WIRE_BTH_BYTES + WIRE_DETH_BYTES + 64 + WIRE_ICRC_BYTES;
	struct wire_ip ip = ipv4_sample;
	uint32_t blind = icrc_of(&ip, payload, bytes);

	for (uint32_t id = 0; id <= UINT16_MAX; id++) {
		ip.ipv4_id = (uint16_t)id;
		ip.ipv4_fragmentable = false;
		assert_true(found(&ip, bytes, blind));
		ip.ipv4_fragmentable = true;
		assert_true(found(&ip, bytes, blind));
	}
}

CASE(at_every_length)
{
	static const uint8_t payload[MAX_BYTES];
	struct wire_ip ip = ipv4_sample;

	for (uint32_t bytes = 24; bytes <= MAX_BYTES; bytes += bytes < 4200 ? 4 : 1020) {
		uint32_t blind;

		ip.ipv4_id = 0;
		ip.ipv4_fragmentable = false;
		blind = icrc_of(&ip, payload, (uint16_t)bytes);
		for (unsigned i = 0; i < 8; i++) {
			ip.ipv4_id = (uint16_t)rand();
			ip.ipv4_fragmentable = rand() & 1;
			assert_true(found(&ip, (uint16_t)bytes, blind));
		}
	}
}

/* One in 2^15 is some identification's: of 2^18, 8. They are the same in every run. */
CASE(other_differences_are_not)
{
	unsigned accepted = 0;

	for (uint32_t i = 0; i < 1u << 18; i++) {
		struct wire_ip ip;

		accepted += wire_icrc_find_id(0x5A5C0000 + i * 0x9E3779B1u, 88, &ip);
	}
	assert_in_range(accepted, 1, 40);
}
