/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ethernet frames: a receiver finds the packet, and all sums right.
 */
#include <harness.h>

#include "base/util.h"
#include "wire/frame.h"
#include "wire/opcode.h"

static const struct ib_gid ipv4_a = { { [10] = 0xFF, [11] = 0xFF, 172, 16, 0, 1 } };
static const struct ib_gid ipv4_b = { { [10] = 0xFF, [11] = 0xFF, 172, 16, 0, 2 } };
static const struct ib_gid ipv6_a = { { 0xFE, 0x80, [15] = 1 } },
                           ipv6_b = { { 0xFE, 0x80, [15] = 2 } };

static unsigned get16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

/* The sum of RFC 1071 over the datagram and its pseudo header: 0xFFFF if the checksum is right. */
static unsigned sum_of(const struct wire_ip *ip, const uint8_t *udp, size_t bytes)
{
	uint32_t sum = IPPROTO_UDP + (uint32_t)bytes;

	for (unsigned i = 0; i < 16; i += 2)
		sum += get16(ip->sgid.raw + i) + get16(ip->dgid.raw + i);
	for (size_t i = 0; i < bytes; i++)
		sum += i % 2 ? udp[i] : (unsigned)udp[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return sum;
}

/* A frame with a payload of @bytes. */
static void expect_sound(const struct ib_gid *from, const struct ib_gid *to, uint32_t bytes)
{
	static uint8_t payload[WIRE_ROCE_MAX_PAYLOAD], out[WIRE_FRAME_BYTES];
	const bool is_ipv4 = wire_gid_is_ipv4(from);
	const size_t udp = 14 + (is_ipv4 ? WIRE_IPV4_BYTES : WIRE_IPV6_BYTES);
	struct wire_frame frame = {
		.to = { 1, 2, 3, 4, 5, 6 },
		.from = { 7, 8, 9, 10, 11, 12 },
		.packet = { .ip = { .sgid = *from,
		                    .dgid = *to,
		                    .udp_source = 0xC007,
		                    .hop_limit = 64 },
		            .h.bth = { .opcode = WIRE_OPCODE_UD_SEND_ONLY, .dest_qpn = 0x123 },
		            .h.deth = { .qkey = 5, .src_qpn = 0x456 },
		            .payload = payload,
		            .payload_bytes = bytes },
	};
	struct wire_roce_packet got = { .ip = frame.packet.ip };
	size_t n;

	memset(payload, 0xA5, sizeof(payload));
	n = wire_frame_build(&frame, out);
	assert_in_range(n, udp + WIRE_UDP_BYTES + bytes, sizeof(out));
	assert_memory_equal(out, "\1\2\3\4\5\6\7\10\11\12\13\14", 12);
	assert_int_equal(get16(out + 12), is_ipv4 ? 0x0800 : 0x86DD);
	assert_int_equal(get16(out + udp), 0xC007);
	assert_int_equal(get16(out + udp + 2), WIRE_ROCE_UDP_PORT);
	assert_int_equal(get16(out + udp + 4), n - udp);
	if (is_ipv4)
		assert_int_equal(get16(out + udp + 6), 0);
	else
		assert_int_equal(sum_of(&frame.packet.ip, out + udp, n - udp), 0xFFFF);
	assert_int_equal(
	        wire_roce_parse(
	                &(struct wire_roce_datagram){ .at = out + udp + WIRE_UDP_BYTES,
	                                              .bytes = (uint32_t)(n - udp - WIRE_UDP_BYTES),
	                                              .transports = 1 << WIRE_TRANSPORT_UD },
	                &got),
	        WIRE_ROCE_OK);
	assert_int_equal(got.h.deth.src_qpn, 0x456);
	assert_int_equal(got.payload_bytes, bytes);
	assert_int_equal(got.ip.ipv4_id, 0);
}

CASE(a_receiver_takes_it)
{
	static const uint32_t sizes[] = { 0, 1, 2, 3, 4, 255, 4095, WIRE_ROCE_MAX_PAYLOAD };

	for (size_t i = 0; EACH_ROW(i, sizes); i++) {
		expect_sound(&ipv4_a, &ipv4_b, sizes[i]);
		expect_sound(&ipv6_a, &ipv6_b, sizes[i]);
	}
}

CASE(groups_have_addresses)
{
	const struct ib_gid ipv4 = { { [10] = 0xFF, [11] = 0xFF, 239, 129, 2, 3 } };
	const struct ib_gid ipv6 = { { 0xFF, 0x0E, [12] = 9, 8, 7, 6 } };
	uint8_t mac[WIRE_MAC_BYTES];

	wire_frame_group(&ipv4, mac);
	assert_memory_equal(mac, "\x01\x00\x5E\x01\x02\x03", sizeof(mac));
	wire_frame_group(&ipv6, mac);
	assert_memory_equal(mac, "\x33\x33\x09\x08\x07\x06", sizeof(mac));
}
