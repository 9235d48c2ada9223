/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each field of RFC 4391's formats at its place: the header, link-layer addresses, ARP, and the
 * options of neighbour discovery; of RFC 4755's: service IDs and private data.
 */
#include <harness.h>

#include "ipoib/arp.h"
#include "ipoib/nd.h"
#include "ipoib/testing.h"

static const struct ipoib_address us = { .gid = { { 0xFE, 0x80, [15] = 0x11 } }, .qpn = 0x123456 };
static const struct ipoib_address them = { .gid = { { 0xFE, 0x80, [15] = 0x22 } },
	                                   .qpn = 0xABCDEF };

CASE(the_header_is_the_type_and_16_zero_bits)
{
	uint8_t out[IPOIB_HEADER_BYTES] = { 1, 1, 1, 1 };

	ipoib_header_encode(IPOIB_TYPE_IPV6, out);
	assert_memory_equal(out, "\x86\xDD\0\0", 4);
}

CASE(an_address_is_flags_queue_pair_and_gid)
{
	uint8_t out[IPOIB_ADDRESS_BYTES];
	struct ipoib_address a = us, back;

	a.flags = 0x80;
	ipoib_address_encode(&a, out);
	assert_memory_equal(out, "\x80\x12\x34\x56\xFE\x80", 6);
	assert_int_equal(out[19], 0x11);
	ipoib_address_decode(out, &back);
	assert_int_equal(back.flags, 0x80);
	assert_true(ipoib_address_equal(&a, &back));
}

CASE(no_interface_has_a_group_or_a_special_queue_pair)
{
	struct ipoib_address a = us;

	assert_true(ipoib_address_valid(&a));
	a.qpn = IB_QPN_GSI;
	assert_false(ipoib_address_valid(&a));
	a.qpn = IB_QPN_MCAST;
	assert_false(ipoib_address_valid(&a));
	a = us;
	a.gid.raw[0] = 0xFF;
	assert_false(ipoib_address_valid(&a));
	a.gid = (struct ib_gid){ { 0 } };
	assert_false(ipoib_address_valid(&a));
}

/* ---- connections ---- */

CASE(a_service_id_ends_with_the_queue_pair)
{
	assert_true(ipoib_service_id(0x123456) == 0x1000000000123456);
	assert_true(ipoib_service_id(0xFF123456) == 0x1000000000123456);
}

CASE(an_offer_is_a_queue_pair_and_a_length)
{
	const struct ipoib_offer offer = { .qpn = 0x123456, .bytes = 65524 };
	uint8_t out[IPOIB_OFFER_BYTES];
	struct ipoib_offer back;

	ipoib_offer_encode(&offer, out);
	assert_memory_equal(out, "\0\x12\x34\x56\0\0\xFF\xF4", 8);
	out[0] = 0x80; /* reserved: it may be anything */
	ipoib_offer_decode(out, &back);
	assert_int_equal(back.qpn, 0x123456);
	assert_int_equal(back.bytes, 65524);
}

CASE(an_offer_has_a_queue_pair_and_what_ipv6_needs)
{
	assert_true(ipoib_offer_valid(&(struct ipoib_offer){ 2, 1284 }));
	assert_true(ipoib_offer_valid(&(struct ipoib_offer){ 2, UINT32_MAX }));
	assert_false(ipoib_offer_valid(&(struct ipoib_offer){ 2, 1283 }));
	assert_false(ipoib_offer_valid(&(struct ipoib_offer){ 2, 0 }));
	assert_false(ipoib_offer_valid(&(struct ipoib_offer){ IB_QPN_GSI, 65524 }));
	assert_false(ipoib_offer_valid(&(struct ipoib_offer){ IB_QPN_MCAST, 65524 }));
}

/* ---- ARP ---- */

CASE(an_arp_request_is_of_hardware_32)
{
	const struct ipoib_solicitation s = { .source = testing_ip("192.0.2.1"),
		                              .target = testing_ip("192.0.2.2"),
		                              .address = us };
	uint8_t out[IPOIB_ARP_BYTES];

	ipoib_arp_encode(&s, NULL, out);
	assert_int_equal(sizeof(out), 56);
	assert_memory_equal(out, "\0\x20\x08\0\x14\x04\0\x01", 8);
	assert_memory_equal(out + 8, "\0\x12\x34\x56\xFE\x80", 6);
	assert_memory_equal(out + 28, "\xC0\0\x02\x01", 4);
	assert_memory_equal(out + 32, (uint8_t[20]){ 0 }, 20);
	assert_memory_equal(out + 52, "\xC0\0\x02\x02", 4);
}

CASE(an_arp_reply_names_both_sides)
{
	const struct ipoib_solicitation s = { .source = testing_ip("192.0.2.1"),
		                              .target = testing_ip("192.0.2.2"),
		                              .address = them,
		                              .is_answer = true };
	uint8_t out[IPOIB_ARP_BYTES];
	struct ipoib_solicitation back;

	ipoib_arp_encode(&s, &us, out);
	assert_memory_equal(out + 6, "\0\x02\0\xAB\xCD\xEF", 6);
	assert_memory_equal(out + 28, "\xC0\0\x02\x02\0\x12\x34\x56", 8);
	assert_memory_equal(out + 52, "\xC0\0\x02\x01", 4);
	assert_true(ipoib_arp_decode(out, sizeof(out), &back));
	assert_true(back.is_answer && ipoib_address_equal(&back.address, &them));
	assert_true(ib_gid_equal(&back.source, &s.source));
	assert_true(ib_gid_equal(&back.target, &s.target));
}

CASE(a_probe_of_arp_has_no_source)
{
	const struct ipoib_solicitation s = { .target = testing_ip("192.0.2.2"), .address = us };
	uint8_t out[IPOIB_ARP_BYTES];
	struct ipoib_solicitation back;

	ipoib_arp_encode(&s, NULL, out);
	assert_memory_equal(out + 28, "\0\0\0\0", 4);
	assert_true(ipoib_arp_decode(out, sizeof(out), &back));
	assert_true(ib_gid_is_zero(&back.source));
}

CASE(arp_of_other_kinds_is_refused)
{
	/* hardware, protocol, both lengths, operation, the sender's GID, the target */
	static const unsigned at[] = { 1, 2, 4, 5, 6, 12 };
	const struct ipoib_solicitation s = { .target = testing_ip("192.0.2.2"), .address = us };
	struct ipoib_solicitation back;
	uint8_t good[IPOIB_ARP_BYTES], bad[IPOIB_ARP_BYTES];

	ipoib_arp_encode(&s, NULL, good);
	assert_true(ipoib_arp_decode(good, sizeof(good), &back));
	assert_false(ipoib_arp_decode(good, sizeof(good) - 1, &back));
	for (size_t i = 0; EACH_ROW(i, at); i++) {
		memcpy(bad, good, sizeof(bad));
		bad[at[i]] = 0xFF;
		assert_false(ipoib_arp_decode(bad, sizeof(bad), &back));
	}
}

/* ---- neighbour discovery ---- */

static const struct ipoib_solicitation *solicitation(void)
{
	static struct ipoib_solicitation s;

	s = (struct ipoib_solicitation){ .source = testing_ip("fe80::1"),
		                         .target = testing_ip("2001:db8::12:3456"),
		                         .address = us,
		                         .has_address = true };
	return &s;
}

static unsigned encode(uint8_t out[static IPOIB_ND_BYTES])
{
	struct ib_gid group = ipoib_nd_solicited_group(&solicitation()->target);

	return ipoib_nd_encode(solicitation(), &group, out);
}

/* The remainder of the checksum: 0, if it is right. */
static uint16_t remainder_of(const uint8_t *p)
{
	unsigned bytes = ipoib_get16(p + 4);
	uint32_t sum = p[6] + bytes;

	for (unsigned i = 8; i < 40; i += 2)
		sum += ipoib_get16(p + i);
	return testing_checksum(p + 40, bytes, sum);
}

CASE(a_solicitation_has_an_option_of_three_units)
{
	uint8_t out[IPOIB_ND_BYTES];
	struct ib_gid group = testing_ip("ff02::1:ff12:3456");

	assert_int_equal(encode(out), 40 + 24 + 24);
	assert_int_equal(out[7], 255);
	assert_memory_equal(out + 24, group.raw, 16);
	assert_int_equal(out[40], 135);
	assert_memory_equal(out + 48, solicitation()->target.raw, 16);
	assert_memory_equal(out + 64, "\x01\x03\0\0\0\x12\x34\x56\xFE\x80", 10);
	assert_int_equal(remainder_of(out), 0);
}

CASE(an_advertisement_has_its_flags_and_the_target_s_option)
{
	struct ipoib_solicitation s = *solicitation(), back;
	uint8_t out[IPOIB_ND_BYTES];
	struct ipoib_ip ip;

	s.is_answer = s.solicited = s.override = true;
	ipoib_nd_encode(&s, &s.source, out);
	assert_int_equal(out[40], 136);
	assert_int_equal(out[44], 0x60);
	assert_memory_equal(out + 8, s.target.raw, 16);
	assert_int_equal(out[64], 2);
	assert_true(ipoib_ip_parse(out, sizeof(out), &ip) && ipoib_nd_is_one(&ip, out));
	assert_true(ipoib_nd_decode(&ip, out, &back));
	assert_true(back.is_answer && back.solicited && back.override && back.has_address);
	assert_true(ipoib_address_equal(&back.address, &us));
}

/* Whether the packet is accepted, once its checksum has been made right. */
static bool accepts(uint8_t *packet)
{
	struct ipoib_solicitation s;
	struct ipoib_ip ip;

	ipoib_put16(packet + 42, 0);
	ipoib_put16(packet + 42, remainder_of(packet));
	return ipoib_ip_parse(packet, IPOIB_ND_BYTES, &ip) && ipoib_nd_is_one(&ip, packet) &&
	       ipoib_nd_decode(&ip, packet, &s);
}

CASE(what_a_router_forwarded_is_refused)
{
	uint8_t packet[IPOIB_ND_BYTES];

	encode(packet);
	assert_true(accepts(packet));
	packet[7] = 254;
	assert_false(accepts(packet));
}

CASE(options_must_have_a_length_and_end_in_the_packet)
{
	uint8_t packet[IPOIB_ND_BYTES];

	encode(packet);
	packet[65] = 0;
	assert_false(accepts(packet));
	packet[65] = 4;
	assert_false(accepts(packet));
	packet[65] = 1; /* the rest reads as options without length */
	assert_false(accepts(packet));
}

CASE(a_wrong_checksum_is_refused)
{
	uint8_t packet[IPOIB_ND_BYTES];
	struct ipoib_solicitation s;
	struct ipoib_ip ip;

	encode(packet);
	packet[43] ^= 1;
	assert_true(ipoib_ip_parse(packet, sizeof(packet), &ip));
	assert_false(ipoib_nd_decode(&ip, packet, &s));
}

CASE(a_group_is_no_target)
{
	uint8_t packet[IPOIB_ND_BYTES];

	encode(packet);
	packet[48] = 0xFF;
	assert_false(accepts(packet));
}

CASE(who_has_no_address_yet_asks_the_group_and_tells_none)
{
	struct ipoib_solicitation s = *solicitation();
	struct ib_gid group = ipoib_nd_solicited_group(&s.target);
	uint8_t packet[IPOIB_ND_BYTES] = { 0 };

	s.source = (struct ib_gid){ { 0 } };
	ipoib_nd_encode(&s, &group, packet);
	assert_false(accepts(packet));
	s.has_address = false;
	assert_int_equal(ipoib_nd_encode(&s, &group, packet), 40 + 24);
	assert_true(accepts(packet));
	ipoib_nd_encode(&s, &s.target, packet);
	assert_false(accepts(packet));
}
