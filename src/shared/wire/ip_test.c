/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * IP headers, byte by byte; and GIDs.
 */
#include <harness.h>

#include "base/util.h"
#include "wire/ip.h"

static struct ib_gid gid(const char *text)
{
	struct ib_gid g;

	assert_int_equal(inet_pton(AF_INET6, text, &g), 1);
	return g;
}

/* A header that ConnectX-4 Lx sent, without options. */
CASE(an_ipv4_header_has_its_checksum)
{
	static const uint8_t expected[] = { 0x45, 0xC2, 0x00, 0x3C, 0x71, 0x8C, 0x40,
		                            0x00, 0x40, 0x11, 0x91, 0x61, 0x0A, 0x00,
		                            0x11, 0x01, 0x0A, 0x00, 0x12, 0x01 };
	const struct wire_ip ip = { .sgid = gid("::ffff:10.0.17.1"),
		                    .dgid = gid("::ffff:10.0.18.1"),
		                    .ipv4_id = 0x718C,
		                    .traffic_class = 0xC2,
		                    .hop_limit = 64 };
	uint8_t out[WIRE_IPV6_BYTES];

	assert_int_equal(wire_ip_encode(&ip, 32, out), sizeof(expected));
	assert_memory_equal(out, expected, sizeof(expected));
}

CASE(an_ipv4_header_says_whether_it_may_be_fragmented)
{
	struct wire_ip ip = { .sgid = gid("::ffff:10.0.0.1") };
	uint8_t out[WIRE_IPV6_BYTES];

	wire_ip_encode(&ip, 0, out);
	assert_int_equal(out[6], 0x40);
	ip.ipv4_fragmentable = true;
	wire_ip_encode(&ip, 0, out);
	assert_int_equal(out[6], 0);
}

static const struct wire_ip ipv6_sample = {
	.sgid = { { 0xFE, 0x80, [15] = 1 } },
	.dgid = { { 0xFF, 0x0E, [15] = 2 } },
	.flow_label = 0xFFF54321, /* the upper bits must be ignored */
	.traffic_class = 0xB9,
	.hop_limit = 7,
};

CASE(an_ipv6_header_is_where_the_standard_has_it)
{
	static const uint8_t head[] = { 0x6B, 0x95, 0x43, 0x21, 0x00, 0x38, 0x11, 0x07 };
	uint8_t out[WIRE_IPV6_BYTES];

	assert_int_equal(wire_ip_encode(&ipv6_sample, 48, out), WIRE_IPV6_BYTES);
	assert_memory_equal(out, head, sizeof(head));
	assert_memory_equal(out + 8, &ipv6_sample.sgid, 16);
	assert_memory_equal(out + 24, &ipv6_sample.dgid, 16);
}

CASE(the_40_bytes_of_ipv6_are_its_header)
{
	uint8_t header[WIRE_IPV6_BYTES], grh[IB_GRH_BYTES];

	wire_ip_encode(&ipv6_sample, 48, header);
	wire_ip_grh(&ipv6_sample, 48, grh);
	assert_memory_equal(grh, header, sizeof(header));
}

CASE(the_40_bytes_of_ipv4_are_20_zeros_and_its_header)
{
	static const uint8_t zeros[20];
	const struct wire_ip ip = { .sgid = gid("::ffff:10.0.0.1"),
		                    .dgid = gid("::ffff:239.1.2.3"),
		                    .hop_limit = 1 };
	uint8_t header[WIRE_IPV6_BYTES], grh[IB_GRH_BYTES];

	memset(grh, 0xEE, sizeof(grh));
	wire_ip_encode(&ip, 24, header);
	wire_ip_grh(&ip, 24, grh);
	assert_memory_equal(grh, zeros, sizeof(zeros));
	assert_memory_equal(grh + 20, header, WIRE_IPV4_BYTES);
}

CASE(groups_are_told_from_other_addresses)
{
	static const struct {
		const char *text;
		bool ipv4, group;
	} row[] = { { "::ffff:224.0.0.1", true, true },
		    { "::ffff:239.255.255.255", true, true },
		    { "::ffff:223.255.255.255", true, false },
		    { "::ffff:240.0.0.0", true, false },
		    { "ff02::1", false, true },
		    { "ff00::", false, true },
		    { "fe80::ff00:1", false, false },
		    { "::239.1.1.1", false, false } };

	for (size_t i = 0; EACH_NAMED(i, row, text); i++) {
		struct ib_gid g = gid(row[i].text);

		assert_int_equal(wire_gid_is_ipv4(&g), row[i].ipv4);
		assert_int_equal(wire_gid_is_ip_mcast(&g), row[i].group);
	}
}

CASE(ipv4_addresses_are_mapped_and_back)
{
	struct ib_gid mapped = gid("::ffff:10.1.2.3"), made;

	made = wire_gid_from_ipv4(inet_addr("10.1.2.3"));
	assert_memory_equal(&made, &mapped, sizeof(made));
	assert_int_equal(wire_gid_to_ipv4(&made), inet_addr("10.1.2.3"));
}

CASE(gids_are_equal_if_all_16_bytes_are)
{
	struct ib_gid a = gid("fe80::1"), b = gid("fe80::1");

	assert_true(ib_gid_equal(&a, &b));
	for (unsigned i = 0; i < sizeof(b.raw); i++) {
		b.raw[i] ^= 0x80;
		assert_false(ib_gid_equal(&a, &b));
		b.raw[i] ^= 0x80;
	}
}

CASE(a_gid_is_zero_if_all_16_bytes_are)
{
	struct ib_gid g = gid("::");

	assert_true(ib_gid_is_zero(&g));
	for (unsigned i = 0; i < sizeof(g.raw); i++) {
		g = gid("::");
		g.raw[i] = 1;
		assert_false(ib_gid_is_zero(&g));
	}
}
