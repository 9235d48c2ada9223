/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which identifications of IPv4 are believed: those of real sources, and none that only damage
 * explains.
 */
#include <harness.h>

#include "wire/icrc.h"
#include "wire/ipv4_ids.h"
#include "wire/roce.h"

#define MANY 200000

static struct wire_ipv4_ids ids;

static int forget(void **state)
{
	(void)state;
	memset(&ids, 0, sizeof(ids));
	return 0;
}

static struct wire_ip source(uint8_t host, uint32_t id)
{
	return (struct wire_ip){ .sgid = { { [10] = 0xFF, 0xFF, 192, 0, 2, host } },
		                 .dgid = { { [10] = 0xFF, 0xFF, 192, 0, 2, 99 } },
		                 .udp_source = 0xC000,
		                 .hop_limit = 64,
		                 .ipv4_id = (uint16_t)id };
}

static bool believed(uint8_t host, uint32_t id)
{
	struct wire_ip ip = source(host, id);

	return wire_ipv4_ids_believe(&ids, &ip);
}

CASE_WITH(who_counts_is_believed, forget, NULL)
{
	for (uint32_t i = 0; i < MANY; i++)
		assert_true(believed(1, i)); /* from 0, twice around */
	for (uint32_t i = 0; i < MANY; i++)
		assert_true(believed(2, i * 3 + 7)); /* others of its host have some, too */
	for (uint32_t i = 0; i < MANY; i++)
		assert_true(believed(3, i * i * 40503)); /* random */
	for (uint32_t i = 0; i < MANY; i++)
		assert_true(believed(4, 0xBEEF)); /* always the same */
	for (uint32_t i = 0; i < MANY; i++)
		assert_true(believed(5, i % 64)); /* Umbel's */
}

CASE_WITH(who_is_known_for_low_ones_is_not_believed_others, forget, NULL)
{
	for (uint32_t round = 0; round < MANY; round++) {
		for (uint32_t i = 0; i < 16; i++)
			assert_true(believed(1, i % 5));
		assert_false(believed(1, round % 0xFE00 + 0x180));
	}
}

/* Another implementation, at an address that Umbel had. */
CASE_WITH(who_begins_to_count_loses_one, forget, NULL)
{
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(believed(1, 0));
	assert_false(believed(1, 40000));
	for (uint32_t i = 40001; i < MANY; i++)
		assert_true(believed(1, i));
}

CASE_WITH(many_sources_are_told_apart_or_believed, forget, NULL)
{
	for (uint32_t i = 0; i < MANY; i++) {
		struct wire_ip ip = source((uint8_t)i, i % 2 ? 0x4000 + i / 2 : 0);

		ip.sgid.raw[14] = (uint8_t)(i >> 8 & 3);
		assert_true(wire_ipv4_ids_believe(&ids, &ip));
	}
}

/* The last bytes of their addresses are the same. */
CASE_WITH(sources_that_take_turns_are_known, forget, NULL)
{
	struct wire_ip ip = source(1, 0);
	unsigned known = 0;

	for (uint32_t round = 0; round < 16; round++)
		for (uint32_t i = 0; i < 100; i++) {
			ip.sgid.raw[14] = (uint8_t)i;
			assert_true(wire_ipv4_ids_believe(&ids, &ip));
		}
	ip.ipv4_id = 0x4000;
	for (uint32_t i = 0; i < 100; i++) {
		ip.sgid.raw[14] = (uint8_t)i;
		known += !wire_ipv4_ids_believe(&ids, &ip);
	}
	assert_true(known > 90); /* where three share a set one is forgotten */
}

CASE_WITH(ipv6_has_none, forget, NULL)
{
	struct wire_ip ip = { .sgid = { { 0xFE, 0x80, [15] = 1 } } };

	for (uint32_t i = 0; i < 100; i++) {
		ip.ipv4_id = (uint16_t)(i * 1000);
		assert_true(wire_ipv4_ids_believe(&ids, &ip));
	}
}

/* Of each length, each single bit turned around: the difference of the two ICRCs alone tells. */
CASE_WITH(a_damaged_packet_is_not_explained, forget, NULL)
{
	static const uint8_t nothing[4096];
	static uint8_t damage[4096];
	unsigned explained = 0;

	for (uint32_t i = 0; i < 16; i++)
		assert_true(believed(1, 0));
	for (unsigned n = 256; n <= sizeof(damage); n += 256) {
		const uint32_t plain = wire_icrc_add(0, nothing, n);

		for (unsigned bit = 0; bit < n * 8; bit++) {
			struct wire_ip ip = source(1, 0);

			damage[bit / 8] = (uint8_t)(1 << bit % 8);
			if (wire_icrc_find_id(plain ^ wire_icrc_add(0, damage, n),
			                      (uint16_t)(n + WIRE_ICRC_BYTES), &ip)) {
				explained++;
				assert_false(wire_ipv4_ids_believe(&ids, &ip));
				for (uint32_t i = 0; i < 8; i++)
					assert_true(believed(1, i));
			}
			damage[bit / 8] = 0;
		}
	}
	assert_true(explained > 0);
}
