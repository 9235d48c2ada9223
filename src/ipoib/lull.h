/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether to look for packets once more, or to sleep. Who answers a packet answers soon, and to be
 * woken takes longer than the answer: so, after a lull that was short, the next one is sat out, 50
 * us at most. After one that was longer nothing is: packets that come seldom cost no more than
 * their work. Nor is one sat out while others want the processor, which shows when it was left to
 * them and they kept it: who has slept is let in sooner.
 */
#ifndef IPOIB_LULL_H
#define IPOIB_LULL_H

#include <stdbool.h>
#include <stdint.h>

#define IPOIB_LULL_NS    50000
#define IPOIB_AWAY_NS    200000   /* who runs so long has more to do than to take a packet */
#define IPOIB_CROWDED_NS 20000000 /* so long it is taken to go on */

/* All zero at first. */
struct ipoib_lull {
	uint64_t began_ns;         /* 0: packets move */
	bool sit_out;              /* the last one was short */
	uint64_t crowded_until_ns; /* others want the processor */
};

/* Packets have moved. */
static inline void ipoib_lull_ends(struct ipoib_lull *l, uint64_t now_ns)
{
	if (l->began_ns)
		l->sit_out = now_ns - l->began_ns < IPOIB_LULL_NS;
	l->began_ns = 0;
}

/* None have. Whether to look again at once. */
static inline bool ipoib_lull_goes_on(struct ipoib_lull *l, uint64_t now_ns)
{
	if (!l->began_ns)
		l->began_ns = now_ns;
	return l->sit_out && now_ns >= l->crowded_until_ns && now_ns - l->began_ns < IPOIB_LULL_NS;
}

/* The processor was left to others at @from_ns, and got back at @now_ns. */
static inline void ipoib_lull_was_left(struct ipoib_lull *l, uint64_t from_ns, uint64_t now_ns)
{
	if (now_ns - from_ns > IPOIB_AWAY_NS)
		l->crowded_until_ns = now_ns + IPOIB_CROWDED_NS;
}

#endif
