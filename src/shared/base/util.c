/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clock and number parsing. Called from everywhere; no state.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/util.h"

static inline uint64_t ns_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t base_now_ns(void)
{
	return ns_of(CLOCK_MONOTONIC);
}

uint64_t base_real_ns(void)
{
	return ns_of(CLOCK_REALTIME);
}

int base_parse_number(const char *text, long min, long max, long *value)
{
	const char *digits = text;
	char *end;
	long v;
	int base = 10;

	if (!text)
		return -EINVAL;
	if (*digits == '-' || *digits == '+')
		digits++;
	if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
		base = 16;
		digits += 2;
	}
	if (!isxdigit((unsigned char)*digits)) /* strtol() accepts blanks and a second sign here */
		return -EINVAL;
	errno = 0;
	v = strtol(text, &end, base);
	if (*end)
		return -EINVAL;
	if (errno || v < min || v > max)
		return -ERANGE;
	*value = v;
	return 0;
}
