/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Payload memory of a sender: see payload.h.
 *
 * A slot has no count of the receivers that have yet to copy its message: a receiver that dies
 * would never count down. The arrival in the receiver's ring is the reference itself, and the
 * sender looks whether the ring has moved past it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/fast.h"
#include "hca/link/payload.h"
#include "hca/process/link.h"
#include "hca/queue/sender.h"
#include "shm/ring.h"

#define FIRST_SLOTS 16
#define MAX_SLOTS   16384 /* 64 MiB a queue pair */
#define LOOK_AHEAD  4
#define ROW_WINDOW  1024 /* no larger window for rows: 4 MiB */
#define ROW_TRIES   3
#define SEEN        128 /* receivers whose progress is remembered; a power of two */
#define PAGE        4096

/* How far a receiver's ring was when we last looked. It only moves forward. */
struct hca_payload_seen {
	const struct shm_ring *ring;
	uint32_t gen, consumed;
	uint64_t look; /* the number of that look */
};

/* Where the progress of a ring is remembered. No two rings begin in one page, and those of queue
 * pairs that were made one after the other lie an odd number of pages apart, or two. */
static struct hca_payload_seen *seen_of(struct hca_payloads *all, const struct shm_ring *ring)
{
	return &all->seen[(uintptr_t)ring / PAGE % SEEN];
}

/*
 * Whether the receiver has yet to copy the message in @p. To read how far its ring is costs a cache
 * miss, so we do not read it if the position that we remember suffices and was read since @p was
 * handed out. An older position may be of another ring, or positions may have wrapped since.
 */
static bool held(struct hca_payloads *all, const struct hca_payload *p,
                 const struct hca_payload_hold *h)
{
	struct hca_payload_seen *seen = seen_of(all, h->ring);

	if (seen->ring == h->ring && seen->gen == h->gen && seen->look > p->handed_out &&
	    (int32_t)(seen->consumed - h->pos) > 0)
		return false;
	seen->ring = h->ring;
	seen->gen = h->ring->gen;
	/* acquire: pairs with the release in shm_ring_consume(): the copy is done */
	seen->consumed = atomic_load_explicit(&h->ring->consumed, memory_order_acquire);
	seen->look = ++all->looks;
	/* a ring that is gone may have become a slot of another, where anything looks like gen */
	return seen->gen == h->gen && shm_ring_is(h->ring, (uint16_t)h->gen) &&
	       (int32_t)(seen->consumed - h->pos) <= 0;
}

static bool in_use(struct hca_payloads *all, struct hca_payload *p)
{
	while (p->n && !held(all, p, &p->hold[p->n - 1]))
		p->n--;
	return p->n != 0;
}

static int grow(struct hca_sender *s)
{
	struct hca_payloads *all = &s->payloads;
	uint32_t more = all->n ? all->n : FIRST_SLOTS;
	struct control_get_payload req = { .qpn = s->qpn };
	struct control_offset_reply rep;
	struct hca_payload *slot;
	int ret;

	if (all->n + more > MAX_SLOTS)
		return -ENOMEM;
	/* a smaller piece may be left */
	do {
		req.bytes = more * SHM_PAYLOAD_SLOT;
		ret = hca_memory_is_left(s->process, req.bytes)
		              ? hca_ask_memory(s->process,
		                               &CONTROL_CALL(CONTROL_GET_PAYLOAD, &req, &rep))
		              : -ENOMEM;
	} while (ret == -ENOMEM && more > FIRST_SLOTS && (more /= 2));
	if (ret)
		return ret;
	if (!hca_take_memory(s->process, rep.off, req.bytes))
		return -ENOMEM;
	if (!all->seen)
		all->seen = calloc(SEEN, sizeof(*all->seen));
	if (!all->seen)
		return -ENOMEM;
	slot = realloc(all->slot, (all->n + more) * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	all->slot = slot;
	for (uint32_t i = 0; i < more; i++)
		slot[all->n + i] = (struct hca_payload){ .off = rep.off + i * SHM_PAYLOAD_SLOT };
	all->n += more;
	return 0;
}

/*
 * Slots of the window are used in turn. The window is only as large as the number of messages by
 * which receivers lag behind, so that its memory stays in the cache. After a round without a busy
 * slot it is halved, unless all slots that remain could be pinned.
 */
static struct hca_payload *next_slot(struct hca_payloads *all)
{
	if (all->cursor >= all->window) {
		if (!all->crowded && all->window > FIRST_SLOTS + 2 * all->max_pinned)
			all->window /= 2;
		all->crowded = false;
		all->cursor = 0;
	}
	return &all->slot[all->cursor++];
}

/* A free slot among the next @n, or NULL. Pinned slots do not count, as they do not show how far
 * receivers lag behind. */
static struct hca_payload *search(struct hca_payloads *all, uint32_t n)
{
	for (uint32_t i = 0, looked = 0; looked < n && i < all->window; i++) {
		struct hca_payload *p = next_slot(all);

		if (p->pinned)
			continue;
		if (!in_use(all, p)) {
			p->handed_out = all->looks;
			return p;
		}
		all->crowded = true;
		looked++;
	}
	return NULL;
}

/* Makes the window larger; allocates slots if all are in it. 0 or -errno. */
static int widen(struct hca_sender *s)
{
	struct hca_payloads *all = &s->payloads;
	int ret = 0;

	if (all->window == all->n)
		ret = grow(s);
	if (all->window < all->n) {
		all->cursor = all->window; /* begin with the slots just added */
		all->window = all->window ? all->window * 2 : FIRST_SLOTS;
		if (all->window > all->n)
			all->window = all->n;
	}
	return ret;
}

/*
 * From now on, until hca_payload_end(), the daemon cannot revoke the memory. If it has, the sender
 * begins anew.
 *
 * Orders: this and the daemon's swap are read-modify-writes of one word, so one of them fails. The
 * slots are written only where this one has succeeded, and no earlier: acquire, and on ARM nothing
 * that follows a store-exclusive by a branch on its result is seen before it succeeds.
 */
static BASE_COLD void begin(struct hca_sender *s)
{
	struct hca_payloads *all = &s->payloads;
	uint32_t lease = SHM_LEASE_FREE;

	if (!atomic_compare_exchange_strong_explicit(&s->shm->payload_lease, &lease,
	                                             SHM_LEASE_IN_USE, memory_order_acquire,
	                                             memory_order_relaxed)) {
		uint32_t max_pinned = all->max_pinned;

		hca_payload_fini(all);
		all->max_pinned = max_pinned;
		/* relaxed: the daemon looks at FREE only, and has nothing of this sender's */
		atomic_store_explicit(&s->shm->payload_lease, SHM_LEASE_IN_USE,
		                      memory_order_relaxed);
	}
	all->leased = true;
	s->unfinished = true;
}

void hca_payload_end(struct hca_sender *s)
{
	if (!s->payloads.leased)
		return;
	s->payloads.leased = false;
	/* release: pairs with the acquire in daemon_qp_revoke(), which then finds all arrivals
	 * that lie in this memory */
	atomic_store_explicit(&s->shm->payload_lease, SHM_LEASE_FREE, memory_order_release);
}

struct hca_payload *hca_payload_get(struct hca_sender *s)
{
	struct hca_payloads *all = &s->payloads;
	struct hca_payload *p;

	if (!all->leased)
		begin(s);
	p = search(all, LOOK_AHEAD);
	while (!p) {
		int ret = widen(s);

		p = search(all, ret ? all->window : LOOK_AHEAD);
		if (ret)
			break; /* no more memory: the search covered all slots */
	}
	return p;
}

int hca_payload_reserve(struct hca_payload *p, uint32_t holders)
{
	struct hca_payload_hold *hold;

	if (holders <= p->room)
		return 0;
	hold = realloc(p->hold, holders * sizeof(*hold));
	if (!hold)
		return -ENOMEM;
	p->hold = hold;
	p->room = holders;
	return 0;
}

static uint32_t slots_of(uint32_t bytes)
{
	return (bytes + SHM_PAYLOAD_SLOT - 1) / SHM_PAYLOAD_SLOT;
}

/* How many from @p on, up to @n, lie in a row, are free, and have room for a hold. */
static uint32_t row_at(struct hca_payloads *all, struct hca_payload *p, uint32_t n)
{
	const struct hca_payload *end = all->slot + all->window;
	uint32_t i = 0;

	for (; i < n && p + i < end; i++) {
		if (p[i].off != p->off + i * SHM_PAYLOAD_SLOT || p[i].pinned)
			break;
		if (in_use(all, &p[i])) {
			all->crowded = true;
			break;
		}
		if (hca_payload_reserve(&p[i], 1))
			break;
	}
	return i;
}

/* A row of @n slots of the window, or NULL: none was found in a few tries. */
static struct hca_payload *search_row(struct hca_sender *s, uint32_t n)
{
	struct hca_payloads *all = &s->payloads;

	for (unsigned i = 0; i < ROW_TRIES; i++) {
		struct hca_payload *p;
		uint32_t free;

		if (all->window >= ROW_WINDOW && n > 1)
			p = search(all, LOOK_AHEAD);
		else
			p = hca_payload_get(s);
		if (!p)
			return NULL;
		free = row_at(all, p, n);
		if (free)
			all->cursor += free - 1; /* the next try begins behind them */
		if (free == n)
			return p;
	}
	return NULL;
}

struct hca_payload *hca_payload_get_row(struct hca_sender *s, uint32_t bytes)
{
	struct hca_payloads *all = &s->payloads;
	const uint32_t n = slots_of(bytes);
	struct hca_payload *p;

	if (!all->leased)
		begin(s);
	p = search_row(s, n);
	/* rows of several lengths leave gaps */
	if (!p && n > 1 && all->window < ROW_WINDOW && !widen(s))
		p = search_row(s, n);
	for (uint32_t k = 1; p && k < n; k++)
		p[k].handed_out = all->looks;
	return p;
}

void hca_payload_hold_row(struct hca_payload *p, uint32_t bytes,
                          const struct hca_payload_hold *hold)
{
	for (uint32_t i = 0; i < slots_of(bytes); i++)
		p[i].hold[p[i].n++] = *hold;
}

void hca_payload_fini(struct hca_payloads *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		free(all->slot[i].hold);
	free(all->slot);
	free(all->seen);
	*all = (struct hca_payloads){ 0 };
}

void hca_sender_finish(struct hca_sender *s)
{
	if (s->batch)
		s->network->ops->flush(s);
	hca_payload_end(s);
	s->unfinished = false;
}
