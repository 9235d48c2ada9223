/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receive ring: credits and arrivals in one place.
 *
 * Positions count up without end; position p uses slot p mod size. The owner posts a receive by
 * moving `posted` past a position, which makes the position a credit. A sender claims the oldest
 * credit by a compare-and-swap on the slot's state word, from the state of the position one lap
 * earlier to "claimed by me"; fills the slot; and publishes it. The owner consumes published slots
 * in order and moves `consumed`. So:
 *
 *  - a packet is accepted exactly if a receive was posted; there is no counter beside the slot that
 *    could disagree;
 *  - the ring cannot overflow: an accepted packet has the slot of a posted receive;
 *  - a sender that dies leaves its QP index in its claim; the daemon voids the slot, and the owner
 *    posts the credit again;
 *  - senders write to ring memory only between claim and publish, apart from hints, and the daemon
 *    frees no ring in which a live sender has a claim, or had one that the owner has taken from it
 *    because it was stopped (`taken`);
 *  - between connected queue pairs, the message of an arrival may still have to be copied to its
 *    receive. Either the owner of the ring takes the arrival, copies the message and consumes the
 *    arrival, or the sender takes it, copies the message and puts the arrival back.
 *
 * A queue pair of RC or UC has one sender, so its ring needs no claim in the slot, which the owner
 * polls: a locked instruction waits for each store to a line that another processor reads. There
 * `claim`, in the header, is the newest position that was claimed, and a compare-and-swap there
 * claims the next one; the slot is published from its state of the lap before. A process that must
 * find a claim in its slot marks it: copies it there, unless the slot is published or void by then.
 * These processes are: the daemon, when it looks for the claims of dead senders; the owner that
 * withdraws credits; a sender under another QP index (the requester's thread and the responder's
 * may take turns); and a sender that keeps a claim for longer. A marked claim is like any other
 * claim.
 *
 * Complications: `tail` and `posted_seen` are hints; several senders write them in any order. They
 * may lag (then a sender walks forward over claimed slots) but never lead.
 *
 * The memory of a freed ring is used for new rings, of any size: a slot may become a header, or the
 * other way round. A sender that slept meanwhile reads its hints from the new contents, and so may
 * look at any slot of the old ring. But all rings begin at multiples of 128 bytes. So the word that
 * the sender reads as a state, or as the claim of its ring, is one of these: a state of a new ring
 * or the claim in its header, which have another generation; SHM_RING_MAGIC; or zero. The last two
 * have generation 0, which no ring has. So the sender gives up, and it writes nothing before its
 * compare-and-swap has succeeded. Only if it sleeps while 65,535 rings are made, or a multiple of
 * that, can it mistake one ring for another.
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
#define SHM_RING_MAGIC 0x52494e4400000000ull /* as a state: kind CLOSED, generation 0 */
#define SHM_STATE_BITS 18 /* of a state, below position and generation: writer and kind */

static inline uint64_t shm_slot_state(uint32_t pos, uint16_t gen, uint16_t writer,
                                      enum shm_slot_kind kind)
{
	return (uint64_t)pos << 34 | (uint64_t)gen << 18 | (uint64_t)writer << 2 | kind;
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

/* The position and generation of a slot's state, in one number. */
static inline uint64_t shm_slot_lap(uint64_t s)
{
	return s >> 18;
}

/* The state that follows @state if @taker takes the arrival. */
static inline uint64_t shm_slot_taken(uint64_t state, uint16_t taker)
{
	return shm_slot_lap(state) << 18 | (uint64_t)taker << 2 | SHM_SLOT_CLAIMED;
}

static inline struct shm_arrival *shm_ring_slot(struct shm_ring *ring, unsigned shift, uint32_t pos)
{
	return (struct shm_arrival *)(ring + 1) + (pos & ((1u << shift) - 1));
}

/* ---- senders ---- */

static inline bool shm_slot_same_lap(uint64_t a, uint64_t b)
{
	return !shm_slot_lap(a ^ b);
}

/* A sender's view of a ring. */
struct shm_ring_view {
	struct shm_ring *ring;
	uint32_t mask;  /* its size less 1 */
	uint64_t claim; /* the state of position 0 when the sender has claimed it */
};

/* The view of QP index @writer, of the ring of generation @gen. */
static inline struct shm_ring_view shm_ring_view(struct shm_ring *ring, unsigned shift,
                                                 uint16_t gen, uint16_t writer)
{
	return (struct shm_ring_view){ .ring = ring,
		                       .mask = (1u << shift) - 1,
		                       .claim = shm_slot_state(0, gen, writer, SHM_SLOT_CLAIMED) };
}

/* The state of position @pos when it is claimed. */
static inline uint64_t shm_ring_claimed(const struct shm_ring_view *v, uint32_t pos)
{
	return (uint64_t)pos << 34 | v->claim;
}

static inline struct shm_arrival *shm_ring_at(const struct shm_ring_view *v, uint32_t pos)
{
	return (struct shm_arrival *)(v->ring + 1) + (pos & v->mask);
}

/* The slow path of shm_ring_claim(): other senders, old hints, or no credit. */
struct shm_arrival *shm_ring_claim_slowly(const struct shm_ring_view *v, uint32_t *pos);

/* Whether positions that were given back wait for the owner, which posts them anew. A look at all
 * that are posted. */
bool shm_ring_has_void(const struct shm_ring_view *v);

/*
 * Claims the oldest credit of the ring. Returns the slot, and its position in *@pos; NULL: no
 * receive is posted, or the ring is of another generation by now.
 */
static inline struct shm_arrival *shm_ring_claim(const struct shm_ring_view *v, uint32_t *pos)
{
	const struct shm_ring_view r = *v; /* what is read once need not be read again */
	/* acquire: before posted_seen, or a sender that sleeps in between for 2^31 positions takes
	 * the tail for posted */
	uint32_t t = atomic_load_explicit(&r.ring->tail, memory_order_acquire);
	/* acquire: the sender that raised posted_seen had acquired posted below */
	uint32_t seen = atomic_load_explicit(&r.ring->posted_seen, memory_order_acquire);
	struct shm_arrival *slot = shm_ring_at(&r, t);
	uint64_t s = atomic_load_explicit(&slot->state, memory_order_acquire);
	uint64_t claimed = shm_ring_claimed(&r, t);
	uint64_t free = claimed - (((uint64_t)r.mask + 1) << 34);

	/* acquire: the owner's reads of the last lap come before our writes */
	if (base_unlikely((int32_t)(seen - t) <= 0) || base_unlikely(!shm_slot_same_lap(s, free)) ||
	    base_unlikely(!atomic_compare_exchange_strong_explicit(
	            &slot->state, &s, claimed, memory_order_acquire, memory_order_relaxed))) {
		uint32_t slowly = t; /* not *pos, which then need not be in memory */

		slot = shm_ring_claim_slowly(v, &slowly);
		*pos = slowly;
		return slot;
	}
	atomic_store_explicit(&r.ring->tail, t + 1, memory_order_relaxed);
	*pos = t;
	return slot;
}

/* Whether @pos is known to be a credit, or was one. */
static inline bool shm_ring_has(const struct shm_ring_view *v, uint32_t pos)
{
	uint32_t seen = atomic_load_explicit(&v->ring->posted_seen, memory_order_relaxed);

	return (int32_t)(seen - pos) > 0;
}

/*
 * Begins to fetch the slot of position @pos, which a sender will claim; @data: with its second
 * line. Fetches nothing if the owner may still have to read that slot.
 */
static inline void shm_ring_prefetch_at(const struct shm_ring_view *v, uint32_t pos, bool data)
{
	struct shm_arrival *slot = shm_ring_at(v, pos);

	if (!shm_ring_has(v, pos))
		return;
	base_prefetch_write(slot);
	if (data)
		base_prefetch_write(slot->data);
}

/* The slot that shm_ring_claim() will claim next. */
static inline void shm_ring_prefetch(const struct shm_ring_view *v, bool data)
{
	shm_ring_prefetch_at(v, atomic_load_explicit(&v->ring->tail, memory_order_relaxed), data);
}

/*
 * The same after a small message that is alone, or the last of a list, for a ring whose owner says
 * in each slot where the receive is. The first line is fetched for reading: the owner of a line
 * that it has written to gives it up then, too, but need not fetch it again to look for an arrival.
 * @data: with its second line.
 */
static inline void shm_ring_prefetch_next(const struct shm_ring_view *v, uint32_t ahead, bool data)
{
	uint32_t t = atomic_load_explicit(&v->ring->tail, memory_order_relaxed) + ahead;
	struct shm_arrival *slot = shm_ring_at(v, t);

	if (!shm_ring_has(v, t))
		return;
	__builtin_prefetch(slot);
	if (data)
		base_prefetch_write(slot->data);
}

#define SHM_RING_LIST_AHEAD 3 /* so far ahead most fetch slots */

/*
 * A sender has written one small message of a list, and @more follow to the same ring, the first
 * of them at position @next: begins to fetch the slots of later ones. After the first of the list
 * those of the next @ahead messages, after each other one (@in_list) the slot that is so many
 * positions ahead. @data: with their second lines.
 */
static inline void shm_ring_prefetch_list(const struct shm_ring_view *v, uint32_t next,
                                          uint32_t more, bool in_list, uint32_t ahead, bool data)
{
	if (base_likely(in_list)) {
		if (base_likely(more >= ahead))
			shm_ring_prefetch_at(v, next + ahead - 1, data);
		return;
	}
	for (uint32_t i = 0; i < ahead && i < more; i++)
		shm_ring_prefetch_at(v, next + i, data);
}

/* ---- the sender of a queue pair of RC or UC ---- */

/* The state that it remembers. */
struct shm_ring_single {
	uint64_t last; /* the claim that it has made last; or SHM_RING_NO_CLAIM */
	uint32_t next; /* the position behind that */
	uint32_t left; /* the lower bits of the state that it found in the last slot */
	bool marks;    /* it marks each claim */
};

#define SHM_RING_NO_CLAIM UINT64_MAX /* no header has this: only slots are void by a writer */

static inline struct shm_ring_single shm_ring_single(bool marks)
{
	return (struct shm_ring_single){ .last = SHM_RING_NO_CLAIM, .marks = marks };
}

/* The slow path of shm_ring_claim_single(): another sender's claim, unknown credits, or none. */
struct shm_arrival *shm_ring_claim_single_slowly(const struct shm_ring_view *v,
                                                 struct shm_ring_single *single, uint32_t *pos);

/* Claims the oldest credit, as shm_ring_claim(). The earlier claims of this sender are published or
 * void. */
static inline struct shm_arrival *
shm_ring_claim_single(const struct shm_ring_view *v, struct shm_ring_single *single, uint32_t *pos)
{
	/* acquire: the sender that raised posted_seen had acquired posted */
	uint32_t seen = atomic_load_explicit(&v->ring->posted_seen, memory_order_acquire);
	uint64_t last = single->last;
	uint64_t claimed = last + (1ull << 34);
	uint32_t next = single->next;

	/* acquire and release: as in move_claim(), ring.c */
	if (base_unlikely((int32_t)(seen - next) <= 0) ||
	    base_unlikely(!atomic_compare_exchange_strong_explicit(
	            &v->ring->claim, &last, claimed, memory_order_acq_rel, memory_order_relaxed)))
		return shm_ring_claim_single_slowly(v, single, pos);
	atomic_store_explicit(&v->ring->tail, next + 1, memory_order_relaxed);
	single->last = claimed;
	single->next = next + 1;
	*pos = next;
	return shm_ring_at(v, next);
}

/* The slow path of shm_ring_publish_single(): the slot's state is @found. */
bool shm_ring_publish_single_slowly(const struct shm_ring_view *v, struct shm_ring_single *single,
                                    struct shm_arrival *slot, uint32_t pos, uint64_t found);

/* Publishes it, as shm_ring_publish(). */
static inline bool shm_ring_publish_single(const struct shm_ring_view *v,
                                           struct shm_ring_single *single, struct shm_arrival *slot,
                                           uint32_t pos)
{
	uint64_t claimed = shm_ring_claimed(v, pos);
	uint64_t free = claimed - (((uint64_t)v->mask + 1) << 34);
	uint64_t s = shm_slot_lap(free) << SHM_STATE_BITS | single->left;

	/* release part: pairs with the acquire in shm_ring_peek() */
	if (base_unlikely(!atomic_compare_exchange_strong_explicit(
	            &slot->state, &s, claimed - SHM_SLOT_CLAIMED + SHM_SLOT_DONE,
	            memory_order_seq_cst, memory_order_relaxed)))
		return shm_ring_publish_single_slowly(v, single, slot, pos, s);
	base_fence_behind_seq_cst();
	return true;
}

/* Voids a claim of its own: the receive stays what it was. */
void shm_ring_give_back_single(const struct shm_ring_view *v, struct shm_arrival *slot,
                               uint32_t pos);

/* ---- senders of all other rings ---- */

/*
 * Publishes the slot that was claimed at @pos. False: it is no longer ours, as the daemon declared
 * us dead. A full barrier: what the caller reads next (is the owner's completion queue armed?) is
 * read after the owner can see the arrival.
 */
static inline bool shm_ring_publish(const struct shm_ring_view *v, struct shm_arrival *slot,
                                    uint32_t pos)
{
	uint64_t s = shm_ring_claimed(v, pos);
	/* release part: pairs with the acquire in shm_ring_peek() */
	bool ours = atomic_compare_exchange_strong_explicit(
	        &slot->state, &s, s - SHM_SLOT_CLAIMED + SHM_SLOT_DONE, memory_order_seq_cst,
	        memory_order_relaxed);

	base_fence_behind_seq_cst();
	return ours;
}

/*
 * Takes an arrival that was published, whose state is @state: it belongs to @taker, the owner's QP
 * index or its sender's, as if that one had just claimed it. False: somebody else was faster. It is
 * the same arrival in between, or has become one that is placed.
 */
static inline bool shm_ring_take(struct shm_arrival *slot, uint64_t state, uint16_t taker)
{
	/* acquire: its last holder has written to it */
	return atomic_compare_exchange_strong_explicit(&slot->state, &state,
	                                               shm_slot_taken(state, taker),
	                                               memory_order_acquire, memory_order_relaxed);
}

/* Puts it back. A full barrier, as shm_ring_publish(). */
static inline void shm_ring_put_back(struct shm_arrival *slot, uint64_t state, uint16_t taker)
{
	uint64_t taken = shm_slot_taken(state, taker);

	/* release part: pairs with the acquire in shm_ring_peek() */
	atomic_compare_exchange_strong_explicit(&slot->state, &taken, state, memory_order_seq_cst,
	                                        memory_order_relaxed);
	base_fence_behind_seq_cst();
}

/* ---- the owner ---- */

/* How many more credits the owner may post. */
static inline uint32_t shm_ring_room(uint32_t posted, uint32_t consumed, unsigned shift)
{
	return (1u << shift) - (posted - consumed);
}

/*
 * Posts @n receives: makes positions @posted to @posted + @n - 1 credits. The caller knows that
 * there is room. The slots of the first lap get their state here, so that a ring uses no memory
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

/* The state of position @pos, whose slot it is: SHM_SLOT_DONE or _VOID: it can be consumed;
 * _CLOSED: not yet. */
static inline enum shm_slot_kind shm_slot_peek(const struct shm_arrival *slot, uint32_t pos)
{
	/* acquire: pairs with the release in shm_ring_publish() */
	uint64_t s = atomic_load_explicit(&slot->state, memory_order_acquire);
	enum shm_slot_kind kind = shm_slot_kind(s);

	if (shm_slot_pos(s) != (pos & SHM_POS_MASK) || kind == SHM_SLOT_CLAIMED)
		return SHM_SLOT_CLOSED;
	return kind;
}

/*
 * Writes to the first line of a slot that has been read, so that no other cache has a copy of it.
 * The next sender fetches it before it needs it, for writing (shm_ring_prefetch()); AMD's
 * processors ignore that where the sender's cache still has a copy for reading, as it has of what
 * we have only read. Then it waits for a line twice a message.
 */
static inline void shm_ring_take_line(struct shm_arrival *slot)
{
	*(volatile uint8_t *)&slot->status = 0;
}

/* The same for the second line, if the message was there, or its sender has fetched the line. */
static inline void shm_ring_take_data(struct shm_arrival *slot)
{
	*(volatile uint8_t *)&slot->data[SHM_INLINE - 1] = 0;
}

static inline enum shm_slot_kind shm_ring_peek(struct shm_ring *ring, unsigned shift, uint32_t pos)
{
	return shm_slot_peek(shm_ring_slot(ring, shift, pos), pos);
}

/* Gives all positions below @consumed back to senders. */
static inline void shm_ring_consume(struct shm_ring *ring, uint32_t consumed)
{
	/* release: our reads of slot and payload come before a sender's next writes */
	atomic_store_explicit(&ring->consumed, consumed, memory_order_release);
}

/*
 * Withdraws all credits from @consumed to @posted that no sender has claimed: makes them void
 * slots, of writer 0, which is no sender's index. Claimed slots stay; they are published, or voided
 * by the daemon.
 */
void shm_ring_withdraw(struct shm_ring *ring, unsigned shift, uint16_t gen, uint32_t consumed,
                       uint32_t posted);

/*
 * The slot has a claim, @state, and will be void. If @sender, whose claim that is, has taken a
 * receive of a shared receive queue for it, it may have said so in its record only.
 */
static inline void shm_slot_name_receive(struct shm_arrival *slot, uint64_t state,
                                         const struct shm_sender *sender)
{
	uint64_t taking =
	        atomic_load_explicit((_Atomic uint64_t *)&sender->taking, memory_order_relaxed);

	if (((uint32_t)taking & SHM_POS_MASK) == shm_slot_pos(state) &&
	    shm_slot_kind(state) == SHM_SLOT_CLAIMED)
		slot->class_flow = (uint32_t)(taking >> 32);
}

/* Whether a void slot is that because its owner has withdrawn it: no sender had claimed it. */
static inline bool shm_slot_is_withdrawn(const struct shm_arrival *slot)
{
	uint64_t s = atomic_load_explicit(&slot->state, memory_order_relaxed);

	return shm_slot_kind(s) == SHM_SLOT_VOID && !shm_slot_writer(s);
}

/* ---- the daemon ---- */

/* Makes the header of a new ring, whose slots are zero. @single: it has one sender at a time. */
void shm_ring_init(struct shm_ring *ring, uint16_t gen, uint32_t qpn, bool single);

/* Whether the memory still is the header of the ring of generation @gen. */
static inline bool shm_ring_is(const struct shm_ring *ring, uint16_t gen)
{
	uint64_t claim =
	        atomic_load_explicit((_Atomic uint64_t *)&ring->claim, memory_order_relaxed);

	return ring->gen == gen && (claim == SHM_RING_MAGIC || shm_slot_gen(claim) == gen);
}

/*
 * A walk over the positions that a sender has claimed and the owner has not consumed, the oldest
 * first. It sees all that were claimed before it began. Senders claim in order, so it ends at the
 * first position that nobody has claimed: it costs what waits in the ring. The walker may pause
 * between two steps.
 */
struct shm_ring_walk {
	struct shm_ring *ring;
	unsigned shift;
	uint32_t pos, end;
	uint32_t left; /* steps: nonsense in a ring must not keep the walker for ever */
};

void shm_ring_walk_begin(struct shm_ring_walk *w, struct shm_ring *ring, unsigned shift);

/* The next slot, and its state in *@state; NULL: there is none. */
struct shm_arrival *shm_ring_walk_next(struct shm_ring_walk *w, uint64_t *state);

/* Voids the slot, which the walk found with @state, if @writer, which is dead, has claimed it and
 * not published it. Whether it did. */
bool shm_ring_void(struct shm_arrival *slot, uint64_t state, uint16_t writer);

/* The same for an arrival that @writer had taken to place it: it is as before. */
bool shm_ring_restore(struct shm_arrival *slot, uint64_t state, uint16_t writer);

struct shm_ring_writers {
	bool (*is_alive)(void *arg, uint16_t writer);
	void *arg;
};

/* Closes the header of a ring with one sender, which claims nothing more. The newest claim is
 * marked in its slot. Other rings have no claim in their header. */
void shm_ring_close_claim(struct shm_ring *ring, unsigned shift);

/*
 * Closes @n slots from number @from on, so that they cannot be claimed, except those claimed by a
 * live writer, as @writers says. Returns the number of these.
 */
unsigned shm_ring_close(struct shm_ring *ring, uint32_t from, uint32_t n,
                        const struct shm_ring_writers *writers);

#endif
