/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * IP multicast addresses on InfiniBand: the mapping of RFC 4391 and RFC 4392, and
 * rdma_cm's variant of it.
 */
#include <harness.h>

#include "wire/mgid.h"

static void assert_gid(const struct ib_gid *gid, const char *text)
{
	char is[INET6_ADDRSTRLEN];

	assert_non_null(inet_ntop(AF_INET6, gid->raw, is, sizeof(is)));
	assert_string_equal(is, text);
}

static void assert_ipv4(const char *addr, uint16_t pkey, bool udp, const char *mgid)
{
	struct ib_gid gid;

	wire_mgid_from_ipv4(&gid, inet_addr(addr), pkey, udp);
	assert_gid(&gid, mgid);
}

static void assert_ipv6(const char *addr, uint16_t pkey, bool udp, const char *mgid)
{
	struct in6_addr in6;
	struct ib_gid gid;

	assert_int_equal(inet_pton(AF_INET6, addr, &in6), 1);
	wire_mgid_from_ipv6(&gid, &in6, pkey, udp);
	assert_gid(&gid, mgid);
}

CASE(ipv4_groups_map_as_in_rfc4391)
{
	assert_ipv4("224.0.0.1", 0xFFFF, false, "ff12:401b:ffff::1");
	assert_ipv4("224.0.0.22", 0x8001, false, "ff12:401b:8001::16");
	assert_ipv4("239.1.1.1", 0xFFFF, false, "ff12:401b:ffff::f01:101");
}

CASE(of_an_ipv4_group_28_bits_are_kept)
{
	assert_ipv4("239.255.255.255", 0xFFFF, false, "ff12:401b:ffff::fff:ffff");
	assert_ipv4("255.255.255.255", 0xFFFF, false, "ff12:401b:ffff::fff:ffff");
}

CASE(ipv6_groups_map_as_in_rfc4391)
{
	assert_ipv6("ff02::1", 0xFFFF, false, "ff12:601b:ffff::1");
	assert_ipv6("ff02::1:ff00:1", 0x8001, false, "ff12:601b:8001::1:ff00:1");
}

CASE(of_an_ipv6_group_80_bits_are_kept)
{
	assert_ipv6("ff1e:1111:2222:3333:4444:5555:6666:7777", 0xFFFF, false,
	            "ff12:601b:ffff:3333:4444:5555:6666:7777");
}

CASE(the_udp_port_space_has_a_signature_of_its_own)
{
	assert_ipv4("239.1.1.1", 0xFFFF, true, "ff12:4001:ffff::f01:101");
	assert_ipv6("ff02::1", 0xFFFF, true, "ff12:6001:ffff::1");
}

CASE(an_mgid_that_the_sa_made_is_used_unchanged)
{
	assert_ipv6("ff12:a01b::5", 0xFFFF, true, "ff12:a01b::5");
	assert_ipv6("ff1e:a01b:1:2:3:4:5:6", 0x8001, false, "ff1e:a01b:1:2:3:4:5:6");
}

CASE(an_address_that_only_resembles_an_sa_mgid_is_mapped)
{
	assert_ipv6("ff02:a01b::5", 0xFFFF, false, "ff12:601b:ffff::5"); /* not transient */
	assert_ipv6("ff12:a01c::5", 0xFFFF, false, "ff12:601b:ffff::5");
	assert_ipv6("ff12:b01b::5", 0xFFFF, false, "ff12:601b:ffff::5");
}

CASE(the_broadcast_group_has_all_32_bits)
{
	struct ib_gid gid;

	wire_mgid_broadcast(&gid, 0xFFFF);
	assert_gid(&gid, "ff12:401b:ffff::ffff:ffff");
	wire_mgid_broadcast(&gid, 0x8001);
	assert_gid(&gid, "ff12:401b:8001::ffff:ffff");
}
