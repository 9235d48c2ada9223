/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages that begin one after the other, by an offered load, instead of all at once; and how long
 * they were in the network. For `umbel simulate --load`. Not thread-safe.
 */
#ifndef SIMULATE_ARRIVALS_H
#define SIMULATE_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "simulate/credits.h"
#include "simulate/random.h"

struct simulate_arrivals {
	double load;       /* the share of its link's rate that each sender offers, headers too */
	bool even;         /* at equal gaps, the first one after any part of one; else Poisson */
	uint32_t messages; /* of all senders */
	struct simulate_random random;
};

/* Of messages, the first tenth comes into a network that is emptier than later: it is not counted.
 */
static inline uint32_t simulate_arrivals_first_counted(const struct simulate_arrivals *a)
{
	return a->messages / 10;
}

/*
 * The messages of @c are one of each kind; they are replaced by ->messages of @a, by the times at
 * which they begin. Each sender has its own sequence, in which the kinds that it has are equally
 * frequent: chosen by chance, or, if ->even, in turn. Number i of the links is that of host i to
 * its switch; a host without a link sends nothing. The gaps have such a mean that the sender's
 * kinds fill the share of its link. 0; -ERANGE: a message begins after more than 50 days; -ENOMEM.
 */
int simulate_arrivals_draw(struct credits *c, struct simulate_arrivals *a);

/* Of messages that were counted and have arrived, from the beginning to the last byte. */
struct simulate_times {
	uint32_t n;
	uint64_t p99_ps, most_ps; /* 99 of 100 took no longer; the longest */
	double mean_ps;
	double sum_ps; /* exact below 2^53 */
	double queue;  /* messages in the network in the mean, until the last one has arrived */
};

/* After credits_run(). 0 or -ENOMEM. */
int simulate_times(const struct credits *c, struct simulate_times *t);

#endif
