/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The internet checksum, beside one that adds 16 bits after the other.
 */
#include <harness.h>

#include "ipoib/testing.h"

#define MOST  65535
#define PLACE 64 /* a block's places in memory */

static uint8_t data[PLACE + MOST];

static uint16_t checksum_by(uint64_t (*sum)(const uint8_t *, size_t, uint64_t), const uint8_t *at,
                            size_t bytes, uint64_t before)
{
	uint16_t folded = (uint16_t)~ipoib_fold(sum(at, bytes, before));

	return ntohs(folded);
}

static void both_ways_give(const uint8_t *at, size_t bytes)
{
	uint16_t plain = testing_checksum(at, bytes, 0);

	assert_int_equal(checksum_by(ipoib_sum, at, bytes, 0), plain);
	assert_int_equal(checksum_by(ipoib_sum_plainly, at, bytes, 0), plain);
	/* in two pieces, of which the first has an even number of bytes */
	for (size_t first = 0; first <= bytes; first += bytes / 8 * 2 + 2) {
		uint64_t before = ipoib_sum(at, first, 0);

		assert_int_equal(checksum_by(ipoib_sum, at + first, bytes - first, before), plain);
		assert_int_equal(checksum_by(ipoib_sum_plainly, at + first, bytes - first, before),
		                 plain);
	}
}

static void fill_random(void)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 2654435761u >> 13);
}

CASE(all_lengths_have_their_checksum)
{
	fill_random();
	for (size_t bytes = 0; bytes < 400; bytes++)
		both_ways_give(data, bytes);
	for (size_t bytes = MOST - 140; bytes <= MOST; bytes++)
		both_ways_give(data, bytes);
}

CASE(all_places_have_their_checksum)
{
	fill_random();
	for (size_t at = 0; at < PLACE; at++) {
		both_ways_give(data + at, 63);
		both_ways_give(data + at, 1480);
	}
}

CASE(carries_are_kept)
{
	memset(data, 0xFF, sizeof(data));
	both_ways_give(data, MOST);
	both_ways_give(data, MOST - 1);
	/* each bit in its place */
	memset(data, 0, sizeof(data));
	for (unsigned bit = 0; bit < 160 * 8; bit++) {
		data[bit / 8] = (uint8_t)(1 << bit % 8);
		both_ways_give(data, 160);
		data[bit / 8] = 0;
	}
}
