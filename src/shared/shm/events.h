/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a process ends an identifier of rdma_cm without asking how many events the daemon has sent
 * of it: a word for each identifier, which both have. It counts events, and says whether the
 * identifier is gone. The daemon counts an event before it sends it, and sends none of what is
 * gone. The process says that it is gone if it has got as many as are counted: then nothing of it
 * is on its way, nor will be. If one is, the process asks the daemon, and waits.
 *
 * Each decision is one read-modify-write of one word, of which one comes before the other: no
 * order against other accesses is needed. tests/models/events.pml has the protocol.
 *
 * A word is zero as long as nothing has been done with its identifier, also while its number is
 * nobody's. The daemon clears it when it has destroyed the identifier: then no event of this one
 * can follow, nor has the next one of this number any yet. Until it has, the process finds that the
 * word is not what it expects of a new identifier, and asks.
 */
#ifndef SHM_EVENTS_H
#define SHM_EVENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The words of one process. Identifiers that the process makes have one if their number is below
 * this, and so have identifiers that connect requests bring. For all other identifiers the process
 * asks the daemon.
 */
#define SHM_EVENT_NUMBERS 16384u

struct shm_events {
	_Atomic uint32_t word[2][SHM_EVENT_NUMBERS];
};

/* The count stands above it. */
#define SHM_EVENTS_GONE 1u
#define SHM_EVENTS_ONE  2u

/* The word of an identifier; NULL: it has none. */
static inline _Atomic uint32_t *shm_events_word(struct shm_events *e, unsigned kind,
                                                uint32_t number)
{
	return e && number < SHM_EVENT_NUMBERS ? &e->word[kind][number] : 0;
}

/* The daemon is about to send an event. False: it must not. */
static inline bool shm_events_send(_Atomic uint32_t *word)
{
	return !(atomic_fetch_add_explicit(word, SHM_EVENTS_ONE, memory_order_relaxed) &
	         SHM_EVENTS_GONE);
}

/* The process, which has got @n events, wants no more. True: nor will there be any. */
static inline bool shm_events_end(_Atomic uint32_t *word, uint32_t n)
{
	uint32_t expected = n * SHM_EVENTS_ONE;

	return atomic_compare_exchange_strong_explicit(word, &expected, SHM_EVENTS_GONE,
	                                               memory_order_relaxed, memory_order_relaxed);
}

/* The daemon has destroyed the identifier. */
static inline void shm_events_clear(_Atomic uint32_t *word)
{
	atomic_store_explicit(word, 0, memory_order_relaxed);
}

#endif
