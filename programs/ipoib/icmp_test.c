/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages to the kernel about packets that cannot be sent.
 */
#include <harness.h>

#include "ipoib/icmp.h"
#include "ipoib/testing.h"

static uint8_t packet[4096], out[IPOIB_ICMP_BYTES];

static unsigned make(const char *source, const char *destination)
{
	const struct testing_tcp t = { .source = source,
		                       .destination = destination,
		                       .payload = 3000 };

	return testing_tcp_packet(&t, packet);
}

CASE(a_large_packet_of_ipv4_needs_fragmentation)
{
	unsigned bytes = make("192.0.2.1", "192.0.2.2");

	assert_int_equal(ipoib_icmp_too_large(packet, bytes, 2044, out), 576);
	assert_int_equal(ipoib_get16(out + 2), 576);
	assert_int_equal(testing_checksum(out, 20, 0), 0);
	assert_memory_equal(out + 12, "\xC0\0\2\2\xC0\0\2\1", 8);
	assert_memory_equal(out + 20, "\3\4", 2);
	assert_memory_equal(out + 24, "\0\0\x07\xFC", 4);
	assert_int_equal(testing_checksum(out + 20, 556, 0), 0);
	assert_memory_equal(out + 28, packet, 548);
}

CASE(a_large_packet_of_ipv6_is_too_big)
{
	unsigned bytes = make("2001:db8::1", "2001:db8::2");

	assert_int_equal(ipoib_icmp_too_large(packet, bytes, 4092, out), 1280);
	assert_memory_equal(out + 8, packet + 24, 16);
	assert_memory_equal(out + 24, packet + 8, 16);
	assert_memory_equal(out + 40, "\2\0", 2);
	assert_memory_equal(out + 44, "\0\0\x0F\xFC", 4);
}

CASE(a_group_says_nothing_but_a_neighbour_does)
{
	ipoib_icmp_too_large(packet, make("192.0.2.7", "239.1.2.3"), 2044, out);
	assert_memory_equal(out + 12, "\xC0\0\2\6\xC0\0\2\7", 8);
	ipoib_icmp_too_large(packet, make("192.0.2.1", "239.1.2.3"), 2044, out);
	assert_memory_equal(out + 12, "\xC0\0\2\3\xC0\0\2\1", 8);
	ipoib_icmp_too_large(packet, make("192.0.2.254", "239.1.2.3"), 2044, out);
	assert_memory_equal(out + 12, "\xC0\0\2\xFC\xC0\0\2\xFE", 8);
}

CASE(errors_are_not_told_about_errors)
{
	unsigned bytes = make("192.0.2.1", "192.0.2.2");

	packet[9] = 1;
	packet[20] = 3;
	assert_int_equal(ipoib_icmp_too_large(packet, bytes, 2044, out), 0);
	assert_int_equal(ipoib_icmp_unreachable(packet, bytes, out), 0);
}
