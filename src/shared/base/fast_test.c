/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies: every byte that is meant, none beside it, wherever it begins.
 */
#include <harness.h>

#include "base/fast.h"

#define MOST  5000
#define ROOM  64 /* beside it */
#define NEVER 0xEE

static uint8_t from[ROOM + MOST], to[ROOM + MOST + ROOM];

static void copy(size_t at, size_t from_at, size_t n)
{
	memset(to, NEVER, sizeof(to));
	base_copy_past_cache(to + at, from + from_at, n);
	assert_memory_equal(to + at, from + from_at, n);
	for (size_t i = 0; i < at; i++)
		assert_int_equal(to[i], NEVER);
	for (size_t i = at + n; i < sizeof(to); i++)
		assert_int_equal(to[i], NEVER);
}

CASE(past_the_caches)
{
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + i / 256);
	for (size_t n = 0; n <= MOST; n += n < 200 || (n > 2000 && n < 2200) ? 1 : 61)
		copy(n % ROOM, n % 19, n);
	for (size_t at = 0; at < ROOM; at++)
		copy(at, at * 5 % ROOM, BASE_COPY_PAST_CACHE + at * 3);
}
