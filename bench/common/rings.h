/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The floor for a message to many: a bare ring for each receiver, in memory that two processes
 * share. A slot is claimed and published by a compare-and-swap each, as any number of senders
 * could do that, and each could die in between; the slots ahead are fetched. A message of at most
 * 64 bytes lies in each slot, two lines; a longer one is written once, and a slot is one line. No
 * check, no credit that can be missing, nobody to be woken.
 *
 * Thread safety: one process sends, one takes, in turns.
 */
#ifndef BENCH_COMMON_RINGS_H
#define BENCH_COMMON_RINGS_H

#include <stdint.h>

struct bench_rings;

/* Before the fork. @depth: slots of each ring, a power of two. */
struct bench_rings *bench_rings_new(unsigned n, uint32_t bytes, uint32_t depth);

/* Sends @messages to all rings: no more than have room. */
void bench_rings_send(struct bench_rings *r, unsigned messages);

/* Takes @messages from all rings, which are there. */
void bench_rings_take(struct bench_rings *r, unsigned messages);

#endif
