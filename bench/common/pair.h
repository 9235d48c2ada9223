/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two processes on two processors that measure together, in lockstep: side 0 is the
 * process that called, side 1 its child. One function has the work of both sides; both call the
 * same steps in the same order.
 *
 * The floor belongs to it: how long a cache line takes between these two right now.
 */
#ifndef BENCH_COMMON_PAIR_H
#define BENCH_COMMON_PAIR_H

#include <stdatomic.h>
#include <stdint.h>

#define BENCH_RESULTS 128
#define BENCH_LINES   64

struct bench_pair {
	_Alignas(64) _Atomic uint32_t met[2]; /* how often each side came to bench_pair_meet() */
	struct {
		_Alignas(64) _Atomic uint32_t turn; /* whose: the low bit */
	} line[BENCH_LINES];
	_Alignas(64) _Atomic uint32_t credit;      /* messages that side 1 has done with */
	_Alignas(64) double result[BENCH_RESULTS]; /* from side 1 to side 0 */
};

/* Makes what the two share. Before the fork: links are prepared in between. */
struct bench_pair *bench_pair_new(void);

/* Forks; runs @run on both sides, each on its processor; waits for the other. 0, or 1: there is
 * only one processor (said on standard output, as a sample). */
int bench_pair_run(struct bench_pair *pair, void (*run)(struct bench_pair *, int side, void *),
                   void *arg);

/* Returns on each side when the other has come here too. Polls. */
void bench_pair_meet(struct bench_pair *pair, int side);

/* Nanoseconds that a cache line takes one way: the median of a ping-pong of half a millisecond. */
double bench_pair_line(struct bench_pair *pair, int side);

/* How often another program took the processor from this side until now. */
uint64_t bench_interrupted(void);

#endif
