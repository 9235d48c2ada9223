/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Small things that every folder needs: array sizes, container_of, powers of two, a monotonic
 * clock, parsing of whole numbers. No state; safe in any thread.
 */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a)                   (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define BASE_CACHE_LINE                 64

/* Rounds @v up to a multiple of @to, a power of two. */
static inline uint64_t base_align_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) & ~(to - 1);
}

/* The smallest n with (1 << n) >= @v; 0 for 0 and 1. */
static inline unsigned base_log2_up(uint64_t v)
{
	return v <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(v - 1);
}

static inline int base_min(int a, int b)
{
	return a < b ? a : b;
}

/* Monotonic time in nanoseconds; and nanoseconds since 1970. */
uint64_t base_now_ns(void);
uint64_t base_real_ns(void);

/*
 * Parses all of @text as a whole number, decimal, or hex with 0x. Returns 0; -EINVAL if it is no
 * number, or @text is NULL; -ERANGE if it is not in [@min, @max].
 */
int base_parse_number(const char *text, long min, long max, long *value);

#endif
