/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Payload memory of a sending queue pair: slots of one message, written once and
 * read by every receiver that the message reaches.
 *
 * A slot is free again when all of them have copied it out. Nobody counts that
 * down, as a count could not survive a death in between: the arrival in the
 * receiver's ring is the reference itself, and the sender looks whether the ring
 * has moved past it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "hca/hca.h"

#define SLOT_BYTES  IB_MTU_BYTES(IBV_MTU_4096)
#define FIRST_SLOTS 16
#define MAX_SLOTS   16384 /* 64 MiB a queue pair */
#define LOOK_AHEAD  4
#define SEEN        64 /* receivers whose progress is remembered; a power of two */

/* How far a receiver's ring was when we looked last: it does not go back. */
struct hca_payload_seen {
	const struct shm_ring *ring;
	uint32_t gen, consumed;
};

/*
 * Whether the receiver has yet to copy the message. Its ring's line is its own, and costs us
 * a trip between caches: so only when what we saw there last does not tell.
 */
static bool held(struct hca_payloads *all, const struct hca_payload_hold *h)
{
	struct hca_payload_seen *s = &all->seen[(uintptr_t)h->ring / sizeof(*h->ring) % SEEN];

	if (s->ring == h->ring && s->gen == h->gen && (int32_t)(s->consumed - h->pos) > 0)
		return false;
	s->ring = h->ring;
	s->gen = h->ring->gen;
	/* acquire: pairs with the release in shm_ring_consume(): the copy is done */
	s->consumed = atomic_load_explicit(&h->ring->consumed, memory_order_acquire);
	return s->gen == h->gen && (int32_t)(s->consumed - h->pos) <= 0;
}

static bool in_use(struct hca_payloads *all, struct hca_payload *p)
{
	while (p->n && !held(all, &p->hold[p->n - 1]))
		p->n--;
	return p->n != 0;
}

static int grow(struct hca_qp *qp)
{
	struct hca_payloads *all = &qp->payloads;
	uint32_t more = all->n ? all->n : FIRST_SLOTS;
	struct control_get_payload req = { .qpn = qp->ex.qp_base.qp_num,
		                           .bytes = more * SLOT_BYTES };
	struct control_get_payload_reply rep;
	struct hca_payload *slot;
	int ret;

	if (all->n + more > MAX_SLOTS)
		return -ENOMEM;
	ret = control_call(qp->process->control,
	                   &(struct control_call){ .type = CONTROL_GET_PAYLOAD,
	                                           .request = &req,
	                                           .request_bytes = sizeof(req),
	                                           .reply = &rep,
	                                           .reply_bytes = sizeof(rep) });
	if (ret)
		return ret;
	if (!all->seen)
		all->seen = calloc(SEEN, sizeof(*all->seen));
	if (!all->seen)
		return -ENOMEM;
	slot = realloc(all->slot, (all->n + more) * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	all->slot = slot;
	for (uint32_t i = 0; i < more; i++)
		slot[all->n + i] = (struct hca_payload){ .off = rep.off + i * SLOT_BYTES };
	all->n += more;
	return 0;
}

/*
 * Each slot of the window has its turn; a window as large as receivers lag behind, so that
 * its memory stays in the cache. After a round without a busy slot it is halved, unless that
 * could leave it no slot but pinned ones.
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

/* A free one of the next @n slots, or NULL. What the wire has in hand does not count: no receiver
 * lags behind because of it. */
static struct hca_payload *search(struct hca_payloads *all, uint32_t n)
{
	for (uint32_t i = 0, looked = 0; looked < n && i < all->window; i++) {
		struct hca_payload *p = next_slot(all);

		if (p->pinned)
			continue;
		if (!in_use(all, p))
			return p;
		all->crowded = true;
		looked++;
	}
	return NULL;
}

/* A larger window, of slots that are there or new ones. */
static int widen(struct hca_qp *qp)
{
	struct hca_payloads *all = &qp->payloads;
	int ret = 0;

	if (all->window == all->n)
		ret = grow(qp);
	if (all->window < all->n) {
		all->cursor = all->window; /* begin with the slots just added */
		all->window = all->window ? all->window * 2 : FIRST_SLOTS;
		if (all->window > all->n)
			all->window = all->n;
	}
	return ret;
}

struct hca_payload *hca_payload_get(struct hca_qp *qp)
{
	struct hca_payloads *all = &qp->payloads;
	struct hca_payload *p = search(all, LOOK_AHEAD);

	while (!p) {
		int ret = widen(qp);

		p = search(all, ret ? all->window : LOOK_AHEAD);
		if (ret)
			break; /* no more memory: any slot will do */
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

void hca_payload_fini(struct hca_payloads *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		free(all->slot[i].hold);
	free(all->slot);
	free(all->seen);
	*all = (struct hca_payloads){ 0 };
}
