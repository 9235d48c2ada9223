/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two loops that measure a link: there and back, and one way as fast as it goes.
 * Both sides of a pair call the same function with their end of the link.
 */
#ifndef BENCH_COMMON_MEASURE_H
#define BENCH_COMMON_MEASURE_H

#include <stdint.h>

#include "common/link.h"
#include "common/pair.h"

#define BENCH_QUANTILES 24

/* Which quantiles, for both sides of a plot. */
extern const double bench_quantile_at[BENCH_QUANTILES];

struct bench_end {
	const struct bench_link_ops *ops;
	void *link;
	struct bench_spec spec;
	unsigned list; /* messages that are sent, and looked for, at once */
	int side;
	struct bench_pair *pair;
};

struct bench_latency {
	double ns, p99; /* one way: half of there and back */
	double quantile[BENCH_QUANTILES];
};

/* Side 0 gets the result; side 1 answers. @exchanges 0: as many as the kind of link wants. */
void bench_measure_latency(struct bench_end *end, unsigned exchanges, struct bench_latency *result);

/* Nanoseconds a message from side 0 to side 1, on both sides; none lost: the sender waits for
 * room, which a line of memory beside the link tells. The median of many short stretches. */
double bench_measure_rate(struct bench_end *end);

/* Nanoseconds to copy @bytes, from one place to one of @places in turn. */
double bench_measure_memcpy(uint32_t bytes, unsigned places);

#endif
