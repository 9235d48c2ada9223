/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receive ring: credits and arrivals in one place.
 *
 * Positions count up for ever; position p lives in slot p mod size. The owner
 * posts a receive by moving `posted` past a position, which makes it a credit. A
 * sender takes the oldest credit by a compare-and-swap on the slot's state word,
 * from what the position one lap earlier left there to "claimed by me"; fills the
 * slot; and publishes it. The owner takes published slots out in order and moves
 * `consumed`. So:
 *
 *  - a packet is accepted exactly if a receive was posted, and no counter beside
 *    the slot can disagree with that;
 *  - the ring cannot overflow: an accepted packet has the slot that was posted;
 *  - a sender that dies leaves its QP index in the slot; the manager voids it and
 *    the owner posts the credit anew;
 *  - senders write to ring memory only between claim and publish, and nobody frees
 *    a ring that has a slot claimed by a live sender.
 *
 * Complications: `tail` and `posted_seen` are hints that several senders write
 * without agreement. They may lag (then the sender walks forward over taken slots)
 * and never lead. Memory of a ring that was freed is used again for rings only,
 * and states carry the ring's generation, so a sender that slept through all of
 * that finds a state it does not expect and gives up.
 *
 * State word: kind (2 bits), writer's QP index (16), generation (16), position
 * (30).
 *
 * Thread safety: any number of senders in any process; one owner thread at a time.
 */
#ifndef SHM_RING_H
#define SHM_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fast.h"
#include "shm/layout.h"

#define SHM_POS_MASK   0x3FFFFFFFu
#define SHM_RING_MAGIC 0x52494e4700000000ull /* kind bits 0: never a free slot */

static inline uint64_t shm_slot_state(uint32_t pos, uint16_t gen, uint16_t writer,
                                      enum shm_slot_kind kind)
{
	return (uint64_t)(pos & SHM_POS_MASK) << 34 | (uint64_t)gen << 18 | (uint64_t)writer << 2 |
	       kind;
}

static inline uint32_t shm_slot_pos(uint64_t s)
{
	return (uint32_t)(s >> 34);
}

static inline uint16_t shm_slot_gen(uint64_t s)
{
	return (uint16_t)(s >> 18);
}

static inline uint16_t shm_slot_writer(uint64_t s)
{
	return (uint16_t)(s >> 2);
}

static inline enum shm_slot_kind shm_slot_kind(uint64_t s)
{
	return (enum shm_slot_kind)(s & 3);
}

static inline struct shm_arrival *shm_ring_slot(struct shm_ring *ring, unsigned shift, uint32_t pos)
{
	return (struct shm_arrival *)(ring + 1) + (pos & ((1u << shift) - 1));
}

/* ---- senders ---- */

/* What a slot's state says of position and generation, in one piece. */
static inline uint64_t shm_slot_lap(uint64_t s)
{
	return s >> 18;
}

/* shm_ring_claim() where others send too, the hints are old or there is no credit. */
struct shm_arrival *shm_ring_claim_slowly(struct shm_ring *ring, unsigned shift, uint16_t gen,
                                          uint16_t writer, uint32_t *pos);

/*
 * Takes the oldest credit of @ring in the name of QP index @writer. The slot, with
 * its position in *@pos; or NULL: no receive is posted, or the ring is not of
 * generation @gen any more.
 */
static inline struct shm_arrival *shm_ring_claim(struct shm_ring *ring, unsigned shift,
                                                 uint16_t gen, uint16_t writer, uint32_t *pos)
{
	/* acquire: whoever raised posted_seen had acquired posted below */
	uint32_t seen = atomic_load_explicit(&ring->posted_seen, memory_order_acquire);
	uint32_t t = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	struct shm_arrival *slot = shm_ring_slot(ring, shift, t);
	uint64_t s = atomic_load_explicit(&slot->state, memory_order_acquire);
	uint64_t free_lap =
	        shm_slot_lap(shm_slot_state(t - (1u << shift), gen, 0, SHM_SLOT_CLOSED));

	/* acquire: the owner's reads of the last lap come before our writes */
	if (base_unlikely((int32_t)(seen - t) <= 0) || base_unlikely(shm_slot_lap(s) != free_lap) ||
	    base_unlikely(!atomic_compare_exchange_strong_explicit(
	            &slot->state, &s, shm_slot_state(t, gen, writer, SHM_SLOT_CLAIMED),
	            memory_order_acquire, memory_order_relaxed)))
		return shm_ring_claim_slowly(ring, shift, gen, writer, pos);
	atomic_store_explicit(&ring->tail, t + 1, memory_order_relaxed);
	*pos = t;
	return slot;
}

/*
 * Begins to fetch the slot that shm_ring_claim() will take, or that @ahead positions behind it;
 * @data: with its second line. Not if that may be one that the owner has yet to read.
 */
static inline void shm_ring_prefetch(struct shm_ring *ring, unsigned shift, uint32_t ahead,
                                     bool data)
{
	uint32_t t = atomic_load_explicit(&ring->tail, memory_order_relaxed) + ahead;
	struct shm_arrival *slot = shm_ring_slot(ring, shift, t);

	if ((int32_t)(atomic_load_explicit(&ring->posted_seen, memory_order_relaxed) - t) <= 0)
		return;
	base_prefetch_write(slot);
	if (data)
		base_prefetch_write(slot->data);
}

/*
 * Publishes a claimed slot. False: it is not ours any more, as the manager took us for
 * dead. A full barrier: what the caller then reads (is the owner's completion queue
 * armed?) is read after the owner can see the arrival.
 */
static inline bool shm_ring_publish(struct shm_arrival *slot, uint32_t pos, uint16_t gen,
                                    uint16_t writer)
{
	uint64_t s = shm_slot_state(pos, gen, writer, SHM_SLOT_CLAIMED);

	/* release part: pairs with the acquire in shm_ring_peek() */
	return atomic_compare_exchange_strong_explicit(
	        &slot->state, &s, shm_slot_state(pos, gen, writer, SHM_SLOT_DONE),
	        memory_order_seq_cst, memory_order_relaxed);
}

/* ---- the owner ---- */

/* Credits that the owner may still add at @posted. */
static inline uint32_t shm_ring_room(uint32_t posted, uint32_t consumed, unsigned shift)
{
	return (1u << shift) - (posted - consumed);
}

/*
 * Makes @n further positions from @posted on credits. The caller has room for them.
 * Slots of the first lap get their state here, so that a ring touches no memory
 * before it is used.
 */
void shm_ring_post_first_lap(struct shm_ring *ring, unsigned shift, uint16_t gen, uint32_t from,
                             uint32_t n);

static inline void shm_ring_post(struct shm_ring *ring, unsigned shift, uint16_t gen,
                                 uint32_t posted, uint32_t n)
{
	if (__builtin_expect(posted < (1u << shift), 0))
		shm_ring_post_first_lap(ring, shift, gen, posted, n);
	/* release: pairs with the acquire in shm_ring_claim() */
	atomic_store_explicit(&ring->posted, posted + n, memory_order_release);
}

/* What lies at position @pos: SHM_SLOT_DONE or _VOID if it can be taken out, else _CLOSED. */
static inline enum shm_slot_kind shm_ring_peek(struct shm_ring *ring, unsigned shift, uint32_t pos)
{
	/* acquire: pairs with the release in shm_ring_publish() */
	uint64_t s =
	        atomic_load_explicit(&shm_ring_slot(ring, shift, pos)->state, memory_order_acquire);
	enum shm_slot_kind kind = shm_slot_kind(s);

	if (shm_slot_pos(s) != (pos & SHM_POS_MASK) || kind == SHM_SLOT_CLAIMED)
		return SHM_SLOT_CLOSED;
	return kind;
}

static inline void shm_ring_consume(struct shm_ring *ring, uint32_t consumed)
{
	/* release: our reads of slot and payload come before a sender's next writes */
	atomic_store_explicit(&ring->consumed, consumed, memory_order_release);
}

/*
 * Takes all credits below @posted that no sender has taken, as void slots. What was
 * claimed before stays and is published or voided in its time.
 */
void shm_ring_withdraw(struct shm_ring *ring, unsigned shift, uint16_t gen, uint32_t consumed,
                       uint32_t posted);

/* ---- the manager ---- */

void shm_ring_init(struct shm_ring *ring, uint16_t gen, uint32_t qpn);

/* Voids what @writer, who is dead, has claimed in @ring and not published. How many. */
unsigned shm_ring_void_writer(struct shm_ring *ring, unsigned shift, uint16_t writer);

/*
 * Closes every slot that is not claimed; then nothing can be claimed either.
 * @writer_alive says of a claim whether its writer lives: the dead one's are closed
 * too. The number of slots that still wait for a live writer.
 */
unsigned shm_ring_close(struct shm_ring *ring, unsigned shift,
                        bool (*writer_alive)(void *arg, uint16_t writer), void *arg);

/* Whether an arrival that waits in @ring has its payload in [@from, @from + @bytes). */
bool shm_ring_refers(struct shm_ring *ring, unsigned shift, uint64_t from, uint64_t bytes);

#endif
