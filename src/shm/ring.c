/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receive ring's slow paths: first lap, withdrawal, and what the manager does
 * for the dead. See ring.h for the idea.
 */
#include "shm/ring.h"

#define CLAIM_TRIES 65536 /* beyond a few laps: no honest ring makes a sender look so often */

void shm_ring_init(struct shm_ring *ring, uint16_t gen, uint32_t qpn)
{
	ring->magic = SHM_RING_MAGIC;
	ring->gen = gen;
	ring->qpn = qpn;
	atomic_store_explicit(&ring->posted, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->consumed, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->posted_seen, 0, memory_order_relaxed);
}

struct shm_arrival *shm_ring_claim_slowly(struct shm_ring *ring, unsigned shift, uint16_t gen,
                                          uint16_t writer, uint32_t *pos)
{
	/* acquire: whoever raised posted_seen had acquired posted below */
	uint32_t seen = atomic_load_explicit(&ring->posted_seen, memory_order_acquire);
	uint32_t t = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint32_t size = 1u << shift;

	for (uint32_t tries = 0; tries < 4 * size + CLAIM_TRIES; tries++) {
		struct shm_arrival *slot = shm_ring_slot(ring, shift, t);
		uint64_t s;

		if ((int32_t)(seen - t) <= 0) {
			/* acquire: pairs with the release in shm_ring_post() */
			seen = atomic_load_explicit(&ring->posted, memory_order_acquire);
			if ((int32_t)(seen - t) <= 0)
				return NULL;
		}
		s = atomic_load_explicit(&slot->state, memory_order_acquire);
		if (shm_slot_gen(s) != gen)
			return NULL;
		if (shm_slot_pos(s) == (t & SHM_POS_MASK)) {
			t++;
			continue;
		}
		if (shm_slot_pos(s) != ((t - size) & SHM_POS_MASK)) {
			/* the hint is more than a lap old; all below consumed is taken */
			uint32_t c = atomic_load_explicit(&ring->consumed, memory_order_relaxed);

			t = (int32_t)(c - t) > 0 ? c : t + 1;
			continue;
		}
		/* acquire: the owner's reads of the last lap come before our writes */
		if (!atomic_compare_exchange_strong_explicit(
		            &slot->state, &s, shm_slot_state(t, gen, writer, SHM_SLOT_CLAIMED),
		            memory_order_acquire, memory_order_relaxed))
			continue;
		atomic_store_explicit(&ring->tail, t + 1, memory_order_relaxed);
		/* release: pairs with the acquire at the top */
		atomic_store_explicit(&ring->posted_seen, seen, memory_order_release);
		*pos = t;
		return slot;
	}
	return NULL;
}

void shm_ring_post_first_lap(struct shm_ring *ring, unsigned shift, uint16_t gen, uint32_t from,
                             uint32_t n)
{
	uint32_t size = 1u << shift;

	for (uint32_t pos = from; pos < from + n && pos < size; pos++)
		atomic_store_explicit(&shm_ring_slot(ring, shift, pos)->state,
		                      shm_slot_state(pos - size, gen, 0, SHM_SLOT_DONE),
		                      memory_order_relaxed);
}

void shm_ring_withdraw(struct shm_ring *ring, unsigned shift, uint16_t gen, uint32_t consumed,
                       uint32_t posted)
{
	for (uint32_t pos = consumed; pos != posted; pos++) {
		struct shm_arrival *slot = shm_ring_slot(ring, shift, pos);
		uint64_t s = atomic_load_explicit(&slot->state, memory_order_acquire);

		while (shm_slot_pos(s) != (pos & SHM_POS_MASK) &&
		       !atomic_compare_exchange_weak_explicit(
		               &slot->state, &s, shm_slot_state(pos, gen, 0, SHM_SLOT_VOID),
		               memory_order_acq_rel, memory_order_acquire))
			;
	}
}

unsigned shm_ring_void_writer(struct shm_ring *ring, unsigned shift, uint16_t writer)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < 1u << shift; i++) {
		struct shm_arrival *slot = shm_ring_slot(ring, shift, i);
		uint64_t s = atomic_load_explicit(&slot->state, memory_order_acquire);

		if (shm_slot_kind(s) != SHM_SLOT_CLAIMED || shm_slot_writer(s) != writer)
			continue;
		atomic_store_explicit(&slot->state, s - SHM_SLOT_CLAIMED + SHM_SLOT_VOID,
		                      memory_order_release);
		n++;
	}
	return n;
}

unsigned shm_ring_close(struct shm_ring *ring, unsigned shift,
                        bool (*writer_alive)(void *arg, uint16_t writer), void *arg)
{
	unsigned waiting = 0;

	for (uint32_t i = 0; i < 1u << shift; i++) {
		struct shm_arrival *slot = shm_ring_slot(ring, shift, i);
		uint64_t s = atomic_load_explicit(&slot->state, memory_order_acquire);

		while (s) {
			if (shm_slot_kind(s) == SHM_SLOT_CLAIMED &&
			    writer_alive(arg, shm_slot_writer(s))) {
				waiting++;
				break;
			}
			if (atomic_compare_exchange_weak_explicit(&slot->state, &s, 0,
			                                          memory_order_acq_rel,
			                                          memory_order_acquire))
				break;
		}
	}
	return waiting;
}

bool shm_ring_refers(struct shm_ring *ring, unsigned shift, uint64_t from, uint64_t bytes)
{
	uint32_t pos = atomic_load_explicit(&ring->consumed, memory_order_acquire);
	uint32_t posted = atomic_load_explicit(&ring->posted, memory_order_acquire);
	uint32_t size = 1u << shift;

	if (posted - pos > size)
		pos = posted - size; /* no honest owner writes that */
	for (; pos != posted; pos++) {
		struct shm_arrival *slot = shm_ring_slot(ring, shift, pos);

		if (shm_ring_peek(ring, shift, pos) == SHM_SLOT_DONE &&
		    (slot->flags & SHM_ARRIVAL_PAYLOAD) && slot->payload_off - from < bytes)
			return true;
	}
	return false;
}
