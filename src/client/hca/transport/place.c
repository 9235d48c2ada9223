/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Placing SENDs before they are polled: see place.h.
 */
#include "base/pause.h"
#include "hca/transport/place.h"
#include "shm/connection.h"

/* How often to look whether the receiver has placed a message that it has taken; then the request
 * waits. */
#define TRIES 1000

/* The outcome for a position. */
enum outcome { DONE, END, NOT_NOW };

static struct shm_connection *connection_of(const struct hca_responder *t)
{
	return shm_connection_at(&t->process->region, SHM_QP_INDEX(t->requester));
}

/* Positions are written and read by the thread that carries out requests: relaxed, as the lock of
 * the queue orders them, or it is one thread. */
static uint32_t load(const _Atomic uint32_t *v)
{
	return atomic_load_explicit((_Atomic uint32_t *)v, memory_order_relaxed);
}

static void store(_Atomic uint32_t *v, uint32_t to)
{
	atomic_store_explicit(v, to, memory_order_relaxed);
}

void hca_place_note(struct hca_responder *t, uint32_t pos)
{
	struct shm_connection *c = connection_of(t);

	t->unplaced = true;
	if (load(&c->unplaced))
		return;
	store(&c->unplaced_from, pos);
	store(&c->unplaced, 1);
}

void hca_place_forget(struct hca_responder *t)
{
	t->unplaced = false;
	store(&connection_of(t)->unplaced, 0);
}

/* The index of the queue pair whose ring it is. */
static uint16_t owner_of(const struct hca_responder *t)
{
	return (uint16_t)SHM_QP_INDEX(t->is_xrc ? t->srqn : t->end.qp.qpn);
}

/* In whose name this thread takes an arrival: the requester's, whose process it is, or else the
 * responder's, so that nobody undoes what it does when the requester dies. */
static uint16_t taker_of(const struct hca_responder *t)
{
	return t->held ? owner_of(t) : (uint16_t)SHM_QP_INDEX(t->requester);
}

/* Where a receive of the responder's is: its entries, which are @one or in shared memory; and the
 * memory that they name. */
struct receive {
	struct shm_entry one;
	const struct shm_entry *entries;
	unsigned n;
	struct hca_parts parts;
};

/* Where the message is, and where it goes. False: it is nonsense, or a key is gone: the responder
 * is deregistering that memory, and will have polled the message soon. */
static bool find(struct hca_responder *t, const struct shm_arrival *slot, struct iovec *from,
                 struct receive *to)
{
	const struct shm_region *r = &t->process->region;
	/* once: others may write there meanwhile */
	const uint32_t length = *(const volatile uint32_t *)&slot->length;

	from->iov_len = length;
	from->iov_base = (void *)(uintptr_t)slot->data;
	if (slot->flags & SHM_ARRIVAL_PAYLOAD)
		from->iov_base = shm_payload_at(r, slot->payload_off, length);
	else if (length > SHM_INLINE)
		from->iov_base = NULL;
	to->one = (struct shm_entry){ .addr = slot->receive.addr,
		                      .length = slot->receive.length,
		                      .lkey = slot->receive.lkey };
	to->entries = &to->one;
	to->n = 1;
	if (slot->operation & SHM_OPERATION_MANY) {
		to->n = to->one.length;
		to->entries = to->n > HCA_MAX_SGE
		                      ? NULL
		                      : shm_payload_at(r, to->one.addr, to->n * sizeof(to->one));
	}
	return from->iov_base && to->entries &&
	       hca_parts_find(&t->end, to->entries, to->n, length, IBV_ACCESS_LOCAL_WRITE,
	                      &to->parts);
}

/* It was taken: copies the message. Memory that is not there any more was when the message came, so
 * that is no error. */
static int copy(struct hca_responder *t, struct shm_arrival *slot, struct iovec *from,
                struct receive *to)
{
	struct hca_span target = hca_parts_span(&t->end, &to->parts);
	struct hca_span source = { .iov = from, .n = 1 };

	if (hca_memory_copy(&target, &source, from->iov_len) == -ESRCH)
		return NOT_NOW;
	slot->operation = (slot->operation & SHM_OPERATION_INVALIDATE) | SHM_OPERATION_PLACED;
	return DONE;
}

/* The arrival is there again: for a program that has polled meanwhile it has just come. */
static void tell(struct hca_responder *t, const struct shm_arrival *slot)
{
	hca_cq_announce(t->cq, t->end.qp.ready_bit);
	hca_cq_notify(t->process, t->cq, slot->flags & SHM_ARRIVAL_SOLICITED);
}

/* Places the message in an arrival of state @state. False: somebody has taken it meanwhile. */
static bool place(struct hca_responder *t, struct shm_arrival *slot, uint64_t state,
                  enum outcome *out)
{
	struct shm_connection *c = connection_of(t);
	const uint16_t taker = taker_of(t);
	struct receive to;
	struct iovec from;
	bool taken;

	*out = NOT_NOW;
	/* the keys first: their owner waits for threads that have found them */
	if (!find(t, slot, &from, &to))
		return atomic_load_explicit(&slot->state, memory_order_acquire) == state;
	if (!t->held) /* before it is taken: the daemon puts it back if this process dies */
		store(&c->placing, 1 + shm_slot_pos(state));
	taken = shm_ring_take(slot, state, taker);
	if (taken) {
		*out = shm_arrival_is_unplaced(slot) ? copy(t, slot, &from, &to) : DONE;
		shm_ring_put_back(slot, state, taker);
		tell(t, slot);
	}
	if (!t->held)
		atomic_store_explicit(&c->placing, 0, memory_order_release);
	return taken;
}

/* Whether a claim is that of somebody who is about to place a message that has come. */
static bool is_taken(const struct hca_responder *t, uint64_t state)
{
	return shm_slot_kind(state) == SHM_SLOT_CLAIMED && shm_slot_writer(state) == owner_of(t);
}

/* Whether the requester has sent what is there, itself or by the responder's thread, and it is to
 * be placed. */
static bool is_own(const struct hca_responder *t, const struct shm_arrival *slot, uint64_t state)
{
	const uint16_t writer = shm_slot_writer(state);

	return shm_slot_kind(state) == SHM_SLOT_DONE &&
	       (writer == (uint16_t)SHM_QP_INDEX(t->requester) || writer == owner_of(t)) &&
	       shm_arrival_is_unplaced(slot);
}

/* Sees to it that what has come to the position is placed. */
static enum outcome see_to(struct hca_responder *t, uint32_t pos)
{
	struct shm_arrival *slot = shm_ring_at(&t->view, pos);
	struct base_pause pause = { 0 };
	enum outcome out;

	for (; pause.looks < TRIES; base_pause(&pause)) {
		/* acquire: pairs with the release in shm_ring_put_back() and _publish() */
		uint64_t s = atomic_load_explicit(&slot->state, memory_order_acquire);

		if (shm_slot_pos(s) != (pos & SHM_POS_MASK) ||
		    shm_slot_gen(s) != shm_slot_gen(t->view.claim))
			/* acquire: what was polled has been placed before */
			return (int32_t)(atomic_load_explicit(&t->view.ring->consumed,
			                                      memory_order_acquire) -
			                 pos) > 0
			               ? DONE
			               : END;
		if (is_own(t, slot, s)) {
			if (place(t, slot, s, &out))
				return out;
			continue;
		}
		/* acquire: as above */
		if (!is_taken(t, s) ||
		    (int32_t)(atomic_load_explicit(&t->view.ring->consumed, memory_order_acquire) -
		              pos) > 0)
			return DONE;
	}
	return NOT_NOW;
}

/* The first position that is to be looked at, of those before @end. Others can write to what says
 * so.
 */
static uint32_t first_of(const struct hca_responder *t, const struct shm_connection *c,
                         uint32_t end)
{
	const struct shm_ring *ring = t->view.ring;
	/* acquire: what was polled has been placed before */
	uint32_t consumed =
	        atomic_load_explicit((_Atomic uint32_t *)&ring->consumed, memory_order_acquire);
	uint32_t from = load(&c->unplaced_from);

	if ((int32_t)(from - consumed) < 0)
		from = consumed;
	if ((int32_t)(end - from) <= 0)
		return end;
	return end - from > t->view.mask + 1 ? end - t->view.mask - 1 : from;
}

int hca_place_until(struct hca_responder *t, uint32_t end)
{
	struct shm_connection *c = connection_of(t);
	enum outcome out = DONE;
	uint32_t pos;

	if (load(&c->unplaced)) {
		for (pos = first_of(t, c, end); pos != end && out == DONE; pos += out == DONE)
			out = see_to(t, pos);
		if (out == NOT_NOW) {
			store(&c->unplaced_from, pos);
			return HCA_WAITS_FOR_PATH;
		}
	}
	hca_place_forget(t);
	return 0;
}

int hca_place_sends(struct hca_responder *t)
{
	return hca_place_until(t, load(&t->view.ring->posted));
}
