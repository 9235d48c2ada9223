/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receive ring's slow paths: first lap, withdrawal, and what the daemon does for dead
 * processes. See ring.h.
 */
#include "shm/ring.h"

#define CLAIM_TRIES 65536 /* and a few laps: no valid ring makes a sender look more often */

void shm_ring_init(struct shm_ring *ring, uint16_t gen, uint32_t qpn, bool single)
{
	/* the position before the first one */
	uint64_t claim = single ? shm_slot_state(-1u, gen, 0, SHM_SLOT_VOID) : SHM_RING_MAGIC;

	atomic_store_explicit(&ring->claim, claim, memory_order_relaxed);
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

/* ---- claims in the header ---- */

#define SINGLE_TRIES 64 /* others write there only if they are stopped, or hostile */

static uint64_t lap_before(uint64_t state, uint32_t size)
{
	return shm_slot_lap(state - ((uint64_t)size << 34));
}

/* Marks @claim, which the header had. */
static void mark(struct shm_ring *ring, uint32_t size, uint64_t claim)
{
	struct shm_arrival *slot =
	        (struct shm_arrival *)(ring + 1) + (shm_slot_pos(claim) & (size - 1));
	uint64_t s;

	if (shm_slot_kind(claim) != SHM_SLOT_CLAIMED)
		return; /* the slot may never have been used: to read it would cost a page */
	/* acquire: the owner's reads of the last lap, for a process that voids it */
	s = atomic_load_explicit(&slot->state, memory_order_acquire);
	for (unsigned tries = 0; tries < SINGLE_TRIES; tries++)
		if (shm_slot_lap(s) != lap_before(claim, size) ||
		    atomic_compare_exchange_strong_explicit(
		            &slot->state, &s, claim, memory_order_acq_rel, memory_order_acquire))
			break;
}

/*
 * Has the header say @next instead of @claim, which was marked unless it is done with: at each
 * time, a claim is in one of the two. False: somebody was faster.
 */
static bool move_claim(struct shm_ring *ring, uint64_t claim, uint64_t next)
{
	/* acquire: the owner's reads of the last lap come before our writes. Release: a sender that
	 * sees this claim sees the posted that it is below, and the mark of the one before */
	return atomic_compare_exchange_strong_explicit(&ring->claim, &claim, next,
	                                               memory_order_acq_rel, memory_order_relaxed);
}

struct shm_arrival *shm_ring_claim_single_slowly(const struct shm_ring_view *v,
                                                 struct shm_ring_single *single, uint32_t *pos)
{
	struct shm_ring *ring = v->ring;
	const uint32_t size = v->mask + 1;

	for (unsigned tries = 0; tries < SINGLE_TRIES; tries++) {
		/* acquire: before posted, which then is beyond it */
		uint64_t claim = atomic_load_explicit(&ring->claim, memory_order_acquire), claimed;
		/* acquire: pairs with the release in shm_ring_post() */
		uint32_t posted = atomic_load_explicit(&ring->posted, memory_order_acquire);
		uint32_t left = (posted - 1 - shm_slot_pos(claim)) & SHM_POS_MASK;

		if (shm_slot_gen(claim) != shm_slot_gen(v->claim) || !left || left > size)
			return NULL;
		claimed = shm_ring_claimed(v, posted - left);
		if (claim != single->last) /* else it is published, or void */
			mark(ring, size, claim);
		if (!move_claim(ring, claim, claimed))
			continue;
		*pos = posted - left;
		atomic_store_explicit(&ring->tail, *pos + 1, memory_order_relaxed);
		/* release: pairs with the acquire in shm_ring_claim_single() */
		atomic_store_explicit(&ring->posted_seen, posted, memory_order_release);
		single->next = *pos + 1;
		single->last = single->marks ? SHM_RING_NO_CLAIM : claimed;
		if (single->marks)
			mark(ring, size, claimed);
		return shm_ring_at(v, *pos);
	}
	return NULL;
}

bool shm_ring_publish_single_slowly(const struct shm_ring_view *v, struct shm_ring_single *single,
                                    struct shm_arrival *slot, uint32_t pos, uint64_t found)
{
	const uint64_t claimed = shm_ring_claimed(v, pos);
	const uint64_t before = lap_before(claimed, v->mask + 1);
	bool ours = false;

	for (unsigned tries = 0; tries < SINGLE_TRIES && !ours; tries++) {
		if (shm_slot_lap(found) == before)
			single->left = found & ((1u << SHM_STATE_BITS) - 1);
		else if (found != claimed)
			break;
		/* release part: pairs with the acquire in shm_ring_peek() */
		ours = atomic_compare_exchange_strong_explicit(
		        &slot->state, &found, claimed - SHM_SLOT_CLAIMED + SHM_SLOT_DONE,
		        memory_order_seq_cst, memory_order_relaxed);
	}
	base_fence_behind_seq_cst();
	return ours;
}

void shm_ring_give_back_single(const struct shm_ring_view *v, struct shm_arrival *slot,
                               uint32_t pos)
{
	const uint64_t claimed = shm_ring_claimed(v, pos);

	mark(v->ring, v->mask + 1, claimed);
	shm_ring_void(slot, claimed, shm_slot_writer(claimed));
}

/* The credits below @posted that nobody has claimed cannot be claimed any more. */
static void withdraw_claims(struct shm_ring *ring, uint32_t size, uint16_t gen, uint32_t posted)
{
	const uint64_t closed = shm_slot_state(posted - 1, gen, 0, SHM_SLOT_VOID);

	/* each time that it fails a credit was claimed, unless somebody hostile writes there */
	for (uint32_t tries = 0; tries <= size; tries++) {
		uint64_t claim = atomic_load_explicit(&ring->claim, memory_order_acquire);

		if (shm_slot_gen(claim) != gen) /* many senders have it; or it is another ring's */
			return;
		mark(ring, size, claim);
		if (move_claim(ring, claim, closed))
			return;
	}
}

void shm_ring_close_claim(struct shm_ring *ring, unsigned shift)
{
	if (atomic_load_explicit(&ring->claim, memory_order_relaxed) == SHM_RING_MAGIC)
		return;
	/* acquire and release: as shm_ring_close() */
	mark(ring, 1u << shift, atomic_exchange_explicit(&ring->claim, 0, memory_order_acq_rel));
}

/* ---- the owner ---- */

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
	if (consumed == posted)
		return; /* a late owner finds another ring there */
	withdraw_claims(ring, 1u << shift, gen, posted);
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

	mark(ring, size, atomic_load_explicit(&ring->claim, memory_order_acquire));
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
