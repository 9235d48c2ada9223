/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers that one seed determines, on every machine (splitmix64). Not thread-safe.
 */
#ifndef SIMULATE_RANDOM_H
#define SIMULATE_RANDOM_H

#include <stdint.h>

struct simulate_random {
	uint64_t state; /* the seed at first */
};

/* A number below @n, which is not 0. */
static inline uint32_t simulate_random_below(struct simulate_random *r, uint32_t n)
{
	uint64_t z = r->state += 0x9E3779B97F4A7C15ull;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	z ^= z >> 31;
	return (uint32_t)((z >> 32) * n >> 32);
}

#endif
