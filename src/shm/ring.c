/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receive ring's slow paths: first lap, withdrawal, and what the daemon does for dead
 * processes. See ring.h.
 */
#include "shm/ring.h"

#define CLAIM_TRIES 65536 /* and a few laps: no valid ring makes a sender look more often */

void shm_ring_init(struct shm_ring *ring, uint16_t gen, uint32_t qpn)
{
	ring->magic = SHM_RING_MAGIC;
	ring->gen = gen;
	ring->qpn = qpn;
	atomic_store_explicit(&ring->posted, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->consumed, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->posted_seen, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->waited_for, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->limit, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->limit_reached, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->moving, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->taken, 0, memory_order_relaxed);
}

bool shm_ring_has_void(const struct shm_ring_view *v)
{
	/* acquire: the slots are those of this lap */
	uint32_t pos = atomic_load_explicit(&v->ring->consumed, memory_order_acquire);
	uint32_t end = atomic_load_explicit(&v->ring->posted, memory_order_acquire);

	if (end - pos > v->mask + 1) /* they were read at different times, or are nonsense */
		pos = end - v->mask - 1;
	for (; pos != end; pos++)
		if (shm_slot_peek(shm_ring_at(v, pos), pos) == SHM_SLOT_VOID)
			return true;
	return false;
}

struct shm_arrival *shm_ring_claim_slowly(const struct shm_ring_view *v, uint32_t *pos)
{
	const uint16_t gen = shm_slot_gen(v->claim);
	struct shm_ring *ring = v->ring;
	/* acquire: in this order, as in shm_ring_claim() */
	uint32_t t = atomic_load_explicit(&ring->tail, memory_order_acquire);
	/* acquire: the sender that raised posted_seen had acquired posted below */
	uint32_t seen = atomic_load_explicit(&ring->posted_seen, memory_order_acquire);
	uint32_t size = v->mask + 1;

	for (uint32_t tries = 0; tries < 4 * size + CLAIM_TRIES; tries++) {
		struct shm_arrival *slot = shm_ring_at(v, t);
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
			/* the hint is more than a lap old; positions below consumed are used */
			uint32_t c = atomic_load_explicit(&ring->consumed, memory_order_relaxed);

			if ((int32_t)(c - t) > 0)
				seen = t = c; /* so far on, what we saw of posted may be old */
			else
				t++;
			continue;
		}
		/* acquire: the owner's reads of the last lap come before our writes */
		if (!atomic_compare_exchange_strong_explicit(
		            &slot->state, &s, shm_ring_claimed(v, t), memory_order_acquire,
		            memory_order_relaxed))
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

/* ---- the daemon ---- */

void shm_ring_walk_begin(struct shm_ring_walk *w, struct shm_ring *ring, unsigned shift)
{
	uint32_t size = 1u << shift;

	w->ring = ring;
	w->shift = shift;
	/* acquire: pairs with the release in shm_ring_consume(), the copies were made */
	w->pos = atomic_load_explicit(&ring->consumed, memory_order_acquire);
	w->end = atomic_load_explicit(&ring->posted, memory_order_acquire);
	if (w->end - w->pos > size)
		w->pos = w->end - size; /* only a broken or hostile owner writes that */
	w->left = 2 * size;
}

struct shm_arrival *shm_ring_walk_next(struct shm_ring_walk *w, uint64_t *state)
{
	const uint32_t size = 1u << w->shift;

	while (w->pos != w->end && w->left) {
		struct shm_arrival *slot = shm_ring_slot(w->ring, w->shift, w->pos);
		/* acquire: pairs with the release in shm_ring_publish() */
		uint64_t s = atomic_load_explicit(&slot->state, memory_order_acquire);
		uint32_t c;

		w->left--;
		if (shm_slot_pos(s) == (w->pos & SHM_POS_MASK)) {
			w->pos++;
			*state = s;
			return slot;
		}
		if (shm_slot_pos(s) == ((w->pos - size) & SHM_POS_MASK))
			return NULL;
		/* of a later lap: the owner has consumed it while the walker paused */
		c = atomic_load_explicit(&w->ring->consumed, memory_order_acquire);
		if ((int32_t)(c - w->end) >= 0)
			return NULL;
		w->pos = (int32_t)(c - w->pos) > 0 ? c : w->pos + 1;
	}
	return NULL;
}

/* Ends a claim of @writer's. */
static bool end_claim(struct shm_arrival *slot, uint64_t state, uint16_t writer,
                      enum shm_slot_kind next)
{
	if (shm_slot_kind(state) != SHM_SLOT_CLAIMED || shm_slot_writer(state) != writer)
		return false;
	/* release: pairs with the acquire in shm_ring_peek(). The writer may be stopped, not dead
	 */
	return atomic_compare_exchange_strong_explicit(&slot->state, &state,
	                                               state - SHM_SLOT_CLAIMED + next,
	                                               memory_order_release, memory_order_relaxed);
}

bool shm_ring_void(struct shm_arrival *slot, uint64_t state, uint16_t writer)
{
	return end_claim(slot, state, writer, SHM_SLOT_VOID);
}

bool shm_ring_restore(struct shm_arrival *slot, uint64_t state, uint16_t writer)
{
	return end_claim(slot, state, writer, SHM_SLOT_DONE);
}

unsigned shm_ring_close(struct shm_ring *ring, uint32_t from, uint32_t n,
                        const struct shm_ring_writers *writers)
{
	struct shm_arrival *slot = (struct shm_arrival *)(ring + 1) + from;
	unsigned waiting = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t s = atomic_load_explicit(&slot[i].state, memory_order_acquire);

		while (s) {
			if (shm_slot_kind(s) == SHM_SLOT_CLAIMED &&
			    writers->is_alive(writers->arg, shm_slot_writer(s))) {
				waiting++;
				break;
			}
			if (atomic_compare_exchange_weak_explicit(&slot[i].state, &s, 0,
			                                          memory_order_acq_rel,
			                                          memory_order_acquire))
				break;
		}
	}
	return waiting;
}
