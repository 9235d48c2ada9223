/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of text.c.
 */
#include <harness.h>
#include <infiniband/ib.h>

#include "wire/text.h"

CASE(a_gid_reads_as_an_ipv6_address)
{
	struct ib_gid gid = { { 0xFF, 0x12, 0x40, 0x01, 0xFF, 0xFF, [13] = 0x0F, 1, 1 } };

	assert_string_equal(wire_gid_text(&gid), "ff12:4001:ffff::f:101");
	gid = (struct ib_gid){ { [10] = 0xFF, 0xFF, 239, 1, 2, 3 } };
	assert_string_equal(wire_gid_text(&gid), "::ffff:239.1.2.3");
	memset(gid.raw, 0xFF, sizeof(gid.raw));
	assert_string_equal(wire_gid_text(&gid), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
}

CASE(a_group_has_the_gids_of_its_address_on_each_kind_of_fabric)
{
	static const struct {
		const char *text, *gid[WIRE_GROUP_GIDS];
	} good[] = {
		{ "ff12:401b:ffff::1", { "ff12:401b:ffff::1" } },
		{ "ff12:4001:8001::f01:101", { "ff12:4001:8001::f01:101" } },
		{ "239.1.1.1",
		  { "::ffff:239.1.1.1", "ff12:4001:ffff::f01:101", "ff12:401b:ffff::f01:101" } },
		{ "::ffff:239.1.1.1",
		  { "::ffff:239.1.1.1", "ff12:4001:ffff::f01:101", "ff12:401b:ffff::f01:101" } },
		{ "ff0e::1:5", { "ff0e::1:5", "ff12:6001:ffff::1:5", "ff12:601b:ffff::1:5" } },
	};
	static const char *const bad[] = { "::ffff:10.0.0.1", "fe80::1", "10.0.0.1",
		                           "::ffff",          "239.1.1", "" };
	struct ib_gid gid[WIRE_GROUP_GIDS], mgid;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		const unsigned n = wire_group_gids(good[i].text, gid);

		assert_true(n == WIRE_GROUP_GIDS || n == 1);
		for (unsigned k = 0; k < n; k++)
			assert_string_equal(wire_gid_text(&gid[k]), good[i].gid[k]);
		assert_true(n == WIRE_GROUP_GIDS || !good[i].gid[n]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(wire_group_gids(bad[i], gid), 0);
	assert_false(wire_mgid_parse(good[3].text, &mgid));
}

CASE(an_address_reads_as_its_family_writes_it)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = 7 };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_ib ib = { .sib_family = AF_IB };
	struct sockaddr unknown = { .sa_family = AF_UNIX };

	inet_pton(AF_INET, "239.1.2.3", &in.sin_addr);
	inet_pton(AF_INET6, "ff0e::17", &in6.sin6_addr);
	inet_pton(AF_INET6, "ff12:a01b::1", &ib.sib_addr);
	assert_string_equal(wire_address_text((struct sockaddr *)&in), "239.1.2.3");
	assert_string_equal(wire_address_text((struct sockaddr *)&in6), "ff0e::17");
	assert_string_equal(wire_address_text((struct sockaddr *)&ib), "ff12:a01b::1");
	assert_string_equal(wire_address_text(&unknown), "?");
}
