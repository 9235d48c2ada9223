/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared receive queues: see srq.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/pause.h"
#include "base/reason.h"
#include "base/util.h"
#include "hca/queue/srq.h"

/* For @asked receives; one that asks for too many is refused by the daemon. */
uint32_t hca_srq_size(const struct hca_context *ctx, uint32_t asked)
{
	const uint32_t most = ctx->process->region.control->settings.max_qp_wr;

	return asked > most ? asked : hca_queue_size(ctx->process, asked, most);
}

int hca_srq_map(const struct hca_srq *srq, uint32_t max_wr,
                const struct control_create_srq_reply *made)
{
	struct hca_process *p = srq->ctx->process;
	uint64_t entries = (uint64_t)max_wr * srq->max_sge * sizeof(*srq->entries);

	return hca_take_memory(p, made->ring_off, shm_ring_bytes(made->ring_shift)) &&
	                       hca_take_memory(p, made->entries_off, entries)
	               ? 0
	               : -ENOMEM;
}

void hca_srq_use_ring(struct hca_srq *srq, const struct control_create_srq_reply *made)
{
	srq->ring = shm_data_at(&srq->ctx->process->region, made->ring_off);
	srq->entries = shm_data_at(&srq->ctx->process->region, made->entries_off);
	srq->ring_shift = made->ring_shift;
	srq->ring_gen = made->ring_gen;
	srq->posted = srq->consumed = 0;
	srq->awaited = UINT32_MAX;
}

void hca_srq_compare_limit(struct hca_process *p, struct shm_ring *ring, uint32_t index,
                           uint32_t next, uint32_t limit)
{
	struct control_raise_event req = { .type = IBV_EVENT_SRQ_LIMIT_REACHED, .element = index };
	int32_t left = (int32_t)(atomic_load_explicit(&ring->posted, memory_order_relaxed) - next);

	if (left >= (int32_t)limit ||
	    !atomic_compare_exchange_strong_explicit(&ring->limit, &limit, 0, memory_order_acq_rel,
	                                             memory_order_relaxed))
		return;
	/* release: pairs with the acquire in daemon_srq_limit() */
	atomic_store_explicit(&ring->limit_reached, 1, memory_order_release);
	hca_request(p, CONTROL_RAISE_EVENT, &req, sizeof(req));
}

static void check_limit(struct hca_srq *srq)
{
	hca_srq_check_limit(srq->ctx->process, srq->ring, srq->index,
	                    atomic_load_explicit(&srq->ring->tail, memory_order_relaxed));
}

void hca_srq_query(struct hca_srq *srq, struct ibv_srq_attr *attr)
{
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = atomic_load_explicit(&srq->ring->limit, memory_order_relaxed);
}

/* ---- posting ---- */

/* In at_position: the receive of the position has another credit, though the position is only
 * void. */
#define NO_NUMBER UINT32_MAX

/* One of the things that say that the receive is to have another credit, or a first one. */
static void set_due(struct hca_srq *srq, bool *which)
{
	srq->n_due += !*which;
	*which = true;
}

/* Nothing is to be done about it any more: it has another credit, or was used. */
static void forget_due(struct hca_srq *srq, struct hca_srq_receive *r)
{
	srq->n_due -= (uint32_t)r->is_left + r->is_back + r->is_late;
	r->is_left = r->is_back = r->is_late = false;
}

static uint32_t *number_at(const struct hca_srq *srq, uint32_t pos)
{
	return &srq->at_position[pos & ((1u << srq->ring_shift) - 1)];
}

/* add_credit() for one that was just posted. */
static BASE_HOT void add_first_credit(struct hca_srq *srq, uint32_t n)
{
	struct shm_arrival *slot = shm_ring_slot(srq->ring, srq->ring_shift, srq->posted);
	const struct ibv_sge *sge = &srq->sge[(size_t)n * srq->max_sge];
	struct hca_srq_receive *r = &srq->receive[n];
	const uint32_t n_sge = r->n_sge;

	*number_at(srq, srq->posted) = n;
	if (base_unlikely(srq->n_due))
		forget_due(srq, r);
	r->use = base_likely(r->use + 1 < SHM_RECEIVE_USES) ? r->use + 1 : 0;
	r->credit = slot;
	r->position = srq->posted;
	slot->imm = shm_receive(n, r->use);
	slot->operation = n_sge == 1;
	slot->receive.length = n_sge;
	if (n_sge == 1) {
		slot->receive.addr = sge->addr;
		slot->receive.length = sge->length;
		slot->receive.lkey = sge->lkey;
	} else {
		memcpy((void *)(srq->entries + (size_t)n * srq->max_sge), sge,
		       n_sge * sizeof(*sge));
	}
	shm_ring_post(srq->ring, srq->ring_shift, srq->ring_gen, srq->posted, 1);
	srq->posted++;
}

/* Makes the next position a credit for receive @n. */
static void add_credit(struct hca_srq *srq, uint32_t n)
{
	add_first_credit(srq, n);
}

static bool is_full(const struct hca_srq *srq)
{
	return srq->posted - srq->consumed == 1u << srq->ring_shift;
}

/* The state of its credit. The ring may have gone round since the credit was used up; a void
 * position would not be its credit any more. */
static enum shm_slot_kind kind_of(const struct hca_srq_receive *r)
{
	/* acquire: pairs with the release in shm_ring_publish() and end_claim() */
	uint64_t s = atomic_load_explicit(&r->credit->state, memory_order_acquire);
	uint32_t laps = (shm_slot_pos(s) - r->position) & SHM_POS_MASK;

	return laps && laps <= SHM_POS_MASK / 2 ? SHM_SLOT_DONE
	                                        : shm_slot_peek(r->credit, r->position);
}

/* Whether the receive is to have another credit, which the ring's positions do not say: its own was
 * used up, or a dead sender held it in a ring that is not used any more; or it has none. */
static bool must_be_posted(struct hca_srq *srq, struct hca_srq_receive *r)
{
	enum shm_slot_kind kind;

	if (r->is_late || !(r->is_left || r->is_back))
		return r->is_late;
	kind = kind_of(r);
	if (kind == SHM_SLOT_DONE && !r->is_back)
		forget_due(srq, r);
	return (kind == SHM_SLOT_DONE && r->is_back) || (kind == SHM_SLOT_VOID && r->is_left);
}

static void post_due(struct hca_srq *srq)
{
	for (uint32_t n = 0; n < srq->room && srq->n_due && !is_full(srq); n++)
		if (must_be_posted(srq, &srq->receive[n]))
			add_credit(srq, n);
}

/* Posts what dead processes had claimed and not used behind a position that another sender still
 * holds. */
static void post_void(struct hca_srq *srq)
{
	const uint32_t end = srq->posted;

	srq->has_void = false;
	for (uint32_t pos = srq->consumed; pos != end; pos++) {
		uint32_t n = *number_at(srq, pos);

		if (n == NO_NUMBER ||
		    shm_ring_peek(srq->ring, srq->ring_shift, pos) != SHM_SLOT_VOID)
			continue;
		if (is_full(srq)) {
			srq->has_void = true;
			break;
		}
		*number_at(srq, pos) = NO_NUMBER;
		add_credit(srq, n);
	}
}

/* Goes past positions that were claimed and given up. A receive that a dead process had claimed and
 * not used is posted again. */
static void reclaim(struct hca_srq *srq)
{
	uint32_t end = srq->posted;

	while (srq->consumed != end) {
		enum shm_slot_kind kind = shm_ring_peek(srq->ring, srq->ring_shift, srq->consumed);
		uint32_t n = *number_at(srq, srq->consumed);

		if (kind == SHM_SLOT_CLOSED)
			break;
		shm_ring_consume(srq->ring, ++srq->consumed);
		if (kind == SHM_SLOT_VOID && n != NO_NUMBER)
			add_credit(srq, n);
	}
	if (srq->has_void)
		post_void(srq);
	if (srq->n_due)
		post_due(srq);
}

/* Whether a request waits for a receive: somebody helps it now. */
static bool is_waited_for(struct shm_ring *ring)
{
	atomic_thread_fence(memory_order_seq_cst); /* the credits before the look */
	return base_unlikely(atomic_load_explicit(&ring->waited_for, memory_order_relaxed)) &&
	       atomic_exchange_explicit(&ring->waited_for, 0, memory_order_seq_cst);
}

/* Receives may come back, as a message has come, or does not. Whether requests wait for what has.
 */
static bool look_for_returned(struct hca_srq *srq)
{
	const uint32_t posted = srq->posted;

	reclaim(srq);
	if (srq->posted == posted || !is_waited_for(srq->ring))
		return false;
	atomic_store_explicit(&srq->must_help, true, memory_order_relaxed);
	return true;
}

/* Waits until the sender that holds the position has used it, or the daemon has freed it: the
 * sender may be dead. A sender that is stopped has it longer. */
static void await_sender(const struct hca_srq *srq, uint32_t pos, uint64_t began)
{
	struct base_pause pause = { 0 };

	while (shm_ring_peek(srq->ring, srq->ring_shift, pos) == SHM_SLOT_CLOSED &&
	       base_now_ns() - began <= HCA_STOPPED_WAIT_NS && !hca_process_gone(srq->ctx->process))
		base_pause(&pause);
}

/* Whether the ring has room for a credit. Nobody has to poll for what is posted to be there, so it
 * is waited for, once for each position that is held. */
static BASE_HOT bool has_room(struct hca_srq *srq)
{
	if (is_full(srq))
		reclaim(srq);
	if (base_unlikely(is_full(srq)) && srq->awaited != srq->consumed) {
		srq->awaited = srq->consumed;
		await_sender(srq, srq->consumed, base_now_ns());
		reclaim(srq);
	}
	return !is_full(srq);
}

static BASE_HOT int post_one(struct hca_srq *srq, const struct ibv_recv_wr *wr)
{
	struct hca_srq_receive *r;
	uint32_t n;

	if ((uint32_t)wr->num_sge > srq->max_sge) /* negative ones too */
		return base_because(-EINVAL, "num_sge is %d: the queue has max_sge %u", wr->num_sge,
		                    srq->max_sge);
	if (srq->n_used >= srq->max_wr)
		return base_because(-ENOMEM,
		                    "the shared receive queue is full: it has room for %u requests "
		                    "(max_wr) that are not completed",
		                    srq->max_wr);
	n = srq->first_free - 1;
	r = &srq->receive[n];
	srq->first_free = r->next_free;
	r->wr_id = wr->wr_id;
	r->n_sge = (uint32_t)wr->num_sge;
	r->in_use = true;
	srq->n_used++;
	if (base_likely(wr->num_sge == 1))
		srq->sge[(size_t)n * srq->max_sge] = *wr->sg_list;
	else if (wr->num_sge)
		memcpy(&srq->sge[(size_t)n * srq->max_sge], wr->sg_list,
		       r->n_sge * sizeof(*wr->sg_list));
	if (base_likely(has_room(srq)))
		add_first_credit(srq, n);
	else /* a sender that is stopped holds the oldest position */
		set_due(srq, &r->is_late);
	return 0;
}

/* Whether receives wait for room in the ring, whose oldest position a sender holds. It may be dead
 * and its queue pair gone, so that no message will tell when the position is free. */
static bool has_late(const struct hca_srq *srq)
{
	return srq->n_due && is_full(srq);
}

bool hca_srq_retry(struct hca_srq *srq)
{
	bool late;

	base_lock(&srq->lock);
	if (has_late(srq))
		look_for_returned(srq);
	late = has_late(srq);
	base_unlock(&srq->lock);
	return late;
}

int hca_srq_post(struct hca_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int ret = hca_process_gone(srq->ctx->process) ? -EIO : 0;
	struct shm_ring *ring;
	bool late;

	base_lock(&srq->lock);
	for (; !ret && wr; wr = wr->next) {
		ret = post_one(srq, wr);
		if (ret)
			break;
	}
	ring = srq->ring; /* another one after the lock is left, once it has grown */
	late = has_late(srq);
	base_unlock(&srq->lock);
	if (ret)
		*bad = wr;
	if (base_unlikely(late))
		hca_srq_watch(srq);
	if (is_waited_for(ring))
		hca_srq_help(srq);
	return ret;
}

/*
 * ---- size ----
 *
 * A queue that grows has another ring, to which its credits move. Other processes see these states,
 * in this order:
 *
 *               old ring        new ring       who finds no credit
 *  it stays     credits                        there is none: RNR
 *  it leaves    credits, moving                tries again
 *  between      fewer, moving   none, moving   tries again; the record names the new ring by now
 *  it is there  none, moving    credits        in the new one there is none: RNR
 *
 * A credit is in one ring only: a receive that is posted in the new one was withdrawn from the old
 * one before. A thread that posts, polls or resizes waits for the lock meanwhile.
 */

/* It leaves: seq_cst, before the daemon's record names another ring. */
static void begin_move(struct shm_ring *old)
{
	atomic_store_explicit(&old->moving, 1, memory_order_seq_cst);
}

/* It stays where it is, or is there: all credits are posted in @ring. */
static void end_move(struct shm_ring *ring)
{
	/* release: pairs with the acquire in is_moving() in responder.c */
	atomic_store_explicit(&ring->moving, 0, memory_order_release);
}

/* Enlarges the memory to @room receives, and keeps the present ones. -ENOMEM. */
static int make_room(struct hca_srq *srq, uint32_t room)
{
	struct hca_srq_receive *receive = realloc(srq->receive, room * sizeof(*srq->receive));
	struct ibv_sge *sge;
	uint32_t *at;

	if (receive)
		srq->receive = receive;
	sge = realloc(srq->sge, (size_t)room * srq->max_sge * sizeof(*srq->sge));
	if (sge)
		srq->sge = sge;
	at = realloc(srq->at_position, 4 * (size_t)room * sizeof(*srq->at_position));
	if (at)
		srq->at_position = at;
	return receive && sge && at ? 0 : -ENOMEM;
}

/* Adds free receives behind the present ones, up to @room. */
static void add_room(struct hca_srq *srq, uint32_t room)
{
	for (uint32_t i = srq->room; i < room; i++)
		srq->receive[i] =
		        (struct hca_srq_receive){ .next_free =
			                                  i + 1 < room ? i + 2 : srq->first_free };
	srq->first_free = srq->room + 1;
	srq->room = room;
}

/* No credit is left in the ring: waits for those that senders are about to use. A sender that is
 * stopped meanwhile uses its credit later: the ring and the entries stay. */
static void wait_for_senders(struct hca_srq *srq)
{
	uint64_t began = base_now_ns();

	for (uint32_t pos = srq->consumed; pos != srq->posted; pos++)
		await_sender(srq, pos, began);
}

/* A sender that is stopped, or dead, holds the credit of receive @n, and it stays behind. */
static void leave_behind(struct hca_srq *srq, uint32_t n)
{
	set_due(srq, &srq->receive[n].is_left);
}

/* Takes all credits out of the ring. Returns how many: *@moved has the numbers of their receives.
 */
static uint32_t withdraw(struct hca_srq *srq, uint32_t *moved)
{
	uint32_t n = 0;

	shm_ring_withdraw(srq->ring, srq->ring_shift, srq->ring_gen, srq->consumed, srq->posted);
	wait_for_senders(srq);
	for (uint32_t pos = srq->consumed; pos != srq->posted; pos++) {
		enum shm_slot_kind kind = shm_ring_peek(srq->ring, srq->ring_shift, pos);
		uint32_t i = *number_at(srq, pos);

		if (kind == SHM_SLOT_VOID && i != NO_NUMBER)
			moved[n++] = i;
		else if (kind == SHM_SLOT_CLOSED)
			leave_behind(srq, i);
	}
	return n;
}

/* The event is due for the credits of the new ring from now on. */
static void move_limit(struct shm_ring *old, struct shm_ring *next)
{
	atomic_store_explicit(&next->limit,
	                      atomic_exchange_explicit(&old->limit, 0, memory_order_acq_rel),
	                      memory_order_seq_cst);
}

/* From between to there. @moved has room for all positions of the old ring. */
static void move(struct hca_srq *srq, const struct control_create_srq_reply *next, uint32_t room,
                 uint32_t *moved)
{
	struct shm_ring *old = srq->ring;
	const uint32_t n = withdraw(srq, moved);

	hca_srq_use_ring(srq, next);
	add_room(srq, room);
	for (uint32_t i = 0; i < n; i++)
		add_credit(srq, moved[i]);
	srq->has_void = false;
	post_due(srq);
	move_limit(old, srq->ring);
	end_move(srq->ring);
	/* a sender that has found no credit there, and holds its queue's lock, is to look again */
	atomic_store_explicit(&old->waited_for, 0, memory_order_seq_cst);
	check_limit(srq);
}

/* With the lock held. */
static int grow(struct hca_srq *srq, uint32_t max_wr)
{
	const uint32_t most = srq->ctx->process->region.control->settings.max_qp_wr;
	uint32_t room = max_wr > 2 * srq->room ? max_wr : 2 * srq->room;
	struct control_resize_srq req = { .srq = srq->index, .max_wr = room < most ? room : most };
	uint32_t *moved = malloc(sizeof(*moved) << srq->ring_shift);
	struct control_create_srq_reply rep;
	int ret = moved ? make_room(srq, req.max_wr) : -ENOMEM;

	if (ret)
		goto out;
	reclaim(srq);
	begin_move(srq->ring);
	ret = hca_ask_memory(srq->ctx->process, &CONTROL_CALL(CONTROL_RESIZE_SRQ, &req, &rep));
	if (!ret)
		ret = hca_srq_map(srq, req.max_wr, &rep);
	if (ret)
		end_move(srq->ring);
	else
		move(srq, &rep, req.max_wr, moved);
out:
	free(moved);
	return ret;
}

/* With the lock held. */
static int resize(struct hca_srq *srq, uint32_t max_wr)
{
	int ret = 0;

	if (max_wr < srq->n_used)
		return base_because(-EINVAL, "max_wr is %u: %u receives are posted", max_wr,
		                    srq->n_used);
	if (max_wr > srq->room)
		ret = grow(srq, max_wr);
	if (!ret)
		srq->max_wr = max_wr;
	return ret;
}

static int check_modify(const struct hca_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	const struct shm_settings *s = &srq->ctx->process->region.control->settings;
	uint32_t max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->max_wr;
	uint32_t limit = mask & IBV_SRQ_LIMIT
	                         ? attr->srq_limit
	                         : atomic_load_explicit(&srq->ring->limit, memory_order_relaxed);

	if (mask & IBV_SRQ_MAX_WR && srq->xrc)
		return base_because(-EINVAL, "the size of an XRC queue cannot be modified");
	if (!max_wr || max_wr > s->max_qp_wr || limit > max_wr)
		return base_because(-EINVAL,
		                    "max_wr is %u, srq_limit %u: the limit is at most max_wr, and "
		                    "that at most %u",
		                    max_wr, limit, s->max_qp_wr);
	return 0;
}

int hca_srq_modify(struct hca_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	int ret;

	base_lock(&srq->lock);
	ret = check_modify(srq, attr, mask);
	if (!ret && (mask & IBV_SRQ_MAX_WR))
		ret = resize(srq, hca_srq_size(srq->ctx, attr->max_wr));
	if (!ret && (mask & IBV_SRQ_LIMIT)) {
		/* seq_cst: before the look at the credits; pairs with hca_responder_try_shared()
		 */
		atomic_store_explicit(&srq->ring->limit, attr->srq_limit, memory_order_seq_cst);
		check_limit(srq);
	}
	base_unlock(&srq->lock);
	if (!ret && (mask & IBV_SRQ_MAX_WR)) {
		hca_srq_has_size(srq);
		hca_srq_help(srq);
	}
	return ret;
}

/* The one that is posted, and has this credit, or NULL. */
static BASE_HOT struct hca_srq_receive *find(struct hca_srq *srq, uint32_t receive)
{
	uint32_t n = shm_receive_number(receive);
	struct hca_srq_receive *r = &srq->receive[n];

	return n < srq->room && r->in_use && receive == shm_receive(n, r->use) ? r : NULL;
}

/*
 * A queue may be too large for the caches: begins to fetch the record of the second receive behind
 * the one at @pos, and, if the owner copies the messages, the memory of the next one.
 */
static BASE_HOT void prefetch_behind(const struct hca_srq *srq, uint32_t pos, bool copies)
{
	uint32_t next, second;

	if (base_unlikely((int32_t)(srq->posted - pos) <= 2))
		return;
	next = *number_at(srq, pos + 1);
	second = *number_at(srq, pos + 2);
	if (base_unlikely(next >= srq->room || second >= srq->room)) /* NO_NUMBER */
		return;
	if (copies)
		base_prefetch_write(
		        (const void *)(uintptr_t)srq->sge[(size_t)next * srq->max_sge].addr);
	base_prefetch_write(&srq->receive[second]);
	__builtin_prefetch(&srq->sge[(size_t)second * srq->max_sge]);
}

/* With the lock held. */
static BASE_HOT bool take(struct hca_srq *srq, uint32_t receive, uint64_t *wr_id,
                          struct ibv_sge *sge, uint32_t *n_sge)
{
	struct hca_srq_receive *r = find(srq, receive);
	uint32_t n = shm_receive_number(receive);

	if (!r)
		return false;
	*wr_id = r->wr_id;
	*n_sge = r->n_sge;
	if (sge && base_likely(r->n_sge == 1))
		*sge = srq->sge[(size_t)n * srq->max_sge];
	else if (sge)
		memcpy(sge, &srq->sge[(size_t)n * srq->max_sge], r->n_sge * sizeof(*sge));
	else /* the message is there, and a program reads it soon */
		__builtin_prefetch(
		        (const void *)(uintptr_t)srq->sge[(size_t)n * srq->max_sge].addr);
	r->in_use = false;
	srq->n_used--;
	r->next_free = srq->first_free;
	srq->first_free = n + 1;
	prefetch_behind(srq, r->position, sge);
	if (base_unlikely(srq->n_due || srq->has_void)) {
		forget_due(srq, r);
		look_for_returned(srq);
	}
	return true;
}

bool hca_srq_take(struct hca_srq *srq, uint32_t receive, uint64_t *wr_id, struct ibv_sge *sge,
                  uint32_t *n_sge)
{
	bool found;

	base_lock(&srq->lock);
	found = take(srq, receive, wr_id, sge, n_sge);
	base_unlock(&srq->lock);
	return found;
}

bool hca_srq_return(struct hca_srq *srq, uint32_t receive)
{
	struct hca_srq_receive *r;
	bool helps;

	base_lock(&srq->lock);
	r = find(srq, receive);
	if (r)
		set_due(srq, &r->is_back);
	srq->has_void = true;
	helps = look_for_returned(srq);
	base_unlock(&srq->lock);
	return helps;
}

/* With the lock held. */
static bool take_next(struct hca_srq *srq, uint16_t writer, uint64_t *wr_id, struct ibv_sge *sge,
                      uint32_t *n_sge)
{
	const struct shm_ring_view v =
	        shm_ring_view(srq->ring, srq->ring_shift, srq->ring_gen, writer);
	uint32_t pos;
	struct shm_arrival *slot = shm_ring_claim(&v, &pos);
	bool found;

	if (!slot)
		return false;
	found = take(srq, slot->imm, wr_id, sge, n_sge);
	shm_ring_publish(&v, slot, pos);
	check_limit(srq);
	return found;
}

bool hca_srq_take_next(struct hca_srq *srq, uint16_t writer, uint64_t *wr_id, struct ibv_sge *sge,
                       uint32_t *n_sge)
{
	bool found;

	/* before the ring is looked at: it may be about to become a larger one */
	base_lock(&srq->lock);
	found = take_next(srq, writer, wr_id, sge, n_sge);
	base_unlock(&srq->lock);
	return found;
}
