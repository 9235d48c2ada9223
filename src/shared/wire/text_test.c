/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of text.c.
 */
#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "wire/text.h"

static void a_gid_reads_as_an_ipv6_address(void **state)
{
	struct ib_gid gid = { { 0xFF, 0x12, 0x40, 0x01, 0xFF, 0xFF, [13] = 0x0F, 1, 1 } };

	(void)state;
	assert_string_equal(wire_gid_text(&gid), "ff12:4001:ffff::f:101");
	gid = (struct ib_gid){ { [10] = 0xFF, 0xFF, 239, 1, 2, 3 } };
	assert_string_equal(wire_gid_text(&gid), "::ffff:239.1.2.3");
	memset(gid.raw, 0xFF, sizeof(gid.raw));
	assert_string_equal(wire_gid_text(&gid), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
}

static void a_group_is_read_from_what_was_written(void **state)
{
	static const char *const good[] = { "ff12:401b:ffff::1", "::ffff:239.1.1.1" };
	static const char *const bad[] = { "::ffff:10.0.0.1", "fe80::1", "239.1.1.1", "::ffff",
		                           "" };
	struct ib_gid group;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_true(wire_group_parse(good[i], &group));
		assert_string_equal(wire_gid_text(&group), good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(wire_group_parse(bad[i], &group));
	assert_false(wire_mgid_parse(good[1], &group));
}

static void an_address_reads_as_its_family_writes_it(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = 7 };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_ib ib = { .sib_family = AF_IB };
	struct sockaddr unknown = { .sa_family = AF_UNIX };

	(void)state;
	inet_pton(AF_INET, "239.1.2.3", &in.sin_addr);
	inet_pton(AF_INET6, "ff0e::17", &in6.sin6_addr);
	inet_pton(AF_INET6, "ff12:a01b::1", &ib.sib_addr);
	assert_string_equal(wire_address_text((struct sockaddr *)&in), "239.1.2.3");
	assert_string_equal(wire_address_text((struct sockaddr *)&in6), "ff0e::17");
	assert_string_equal(wire_address_text((struct sockaddr *)&ib), "ff12:a01b::1");
	assert_string_equal(wire_address_text(&unknown), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gid_reads_as_an_ipv6_address),
		cmocka_unit_test(a_group_is_read_from_what_was_written),
		cmocka_unit_test(an_address_reads_as_its_family_writes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
