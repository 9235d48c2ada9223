/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers that one seed determines, on every machine (splitmix64). Not thread-safe.
 */
#ifndef SIMULATE_RANDOM_H
#define SIMULATE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct simulate_random {
	uint64_t state; /* the seed at first */
};

static inline uint64_t simulate_random_next(struct simulate_random *r)
{
	uint64_t z = r->state += 0x9E3779B97F4A7C15ull;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return z ^ z >> 31;
}

/* A number below @n, which is not 0. */
static inline uint32_t simulate_random_below(struct simulate_random *r, uint32_t n)
{
	return (uint32_t)((simulate_random_next(r) >> 32) * n >> 32);
}

/* From 0 to below 1, in steps of 2^-53. */
static inline double simulate_random_share(struct simulate_random *r)
{
	return (double)(simulate_random_next(r) >> 11) * 0x1p-53;
}

/*
 * Exponential, with mean 1, by von Neumann's method, which compares and adds: log() is not the same
 * to the last bit on every machine. Numbers are drawn for as long as each is less than the one
 * before it; a first number x is as often followed by an even number of these as exp(-x) says.
 */
static inline double simulate_random_exponential(struct simulate_random *r)
{
	for (double whole = 0;; whole++) {
		double first = simulate_random_share(r), last = first, next;
		bool even = true;

		for (; (next = simulate_random_share(r)) < last; last = next)
			even = !even;
		if (even)
			return whole + first;
	}
}

#endif
