/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receive queues: see rq.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "hca/process/operation.h"
#include "hca/queue/cq.h"
#include "hca/queue/explain.h"
#include "hca/queue/rq.h"
#include "hca/queue/srq.h"

#define PREFETCH_LINES 8 /* then the processor itself fetches the next ones */

int hca_rq_init(struct hca_rq *rq, struct ibv_pd *pd, uint32_t max_wr, uint32_t max_sge)
{
	size_t n = (size_t)1 << base_log2_up(max_wr);
	size_t requests = n * sizeof(*rq->rwqe), entries = n * (max_sge + 1) * sizeof(*rq->rsge);
	int ret;

	rq->max_wr = max_wr;
	rq->max_sge = max_sge;
	rq->rwqe_mask = (uint32_t)n - 1;
	ret = hca_pd_block_get(pd, requests + entries, HCA_PD_RECEIVE_QUEUE, &rq->memory);
	if (ret)
		return ret;
	rq->rwqe = rq->memory.memory;
	rq->rsge = (struct ibv_sge *)(rq->rwqe + n);
	return 0;
}

void hca_rq_fini(struct hca_rq *rq)
{
	hca_pd_block_put(&rq->memory, HCA_PD_RECEIVE_QUEUE);
	rq->rwqe = NULL;
	rq->rsge = NULL;
}

static void set(_Atomic uint32_t *v, uint32_t to)
{
	atomic_store_explicit(v, to, memory_order_relaxed);
}

/* ---- posting ---- */

/* Requests in the FIFO. */
static uint32_t queued(const struct hca_rq *rq)
{
	return hca_rq_load(&rq->rwqe_tail) - hca_rq_load(&rq->rwqe_head);
}

/* How many requests can be posted. */
static BASE_HOT uint32_t room(const struct hca_rq *rq)
{
	uint32_t in_ring = hca_rq_load(&rq->posted) - hca_rq_load(&rq->consumed);
	uint32_t n = queued(rq), ring;

	if (base_likely(in_ring == n) || hca_rq_is_flushing(rq))
		return rq->max_wr - n; /* the ring has at least as many positions */
	/* after a reset a sender may still hold a position that it claimed before */
	ring = (1u << rq->ring_shift) - in_ring;
	return rq->max_wr - n < ring ? rq->max_wr - n : ring;
}

static BASE_HOT void keep(struct hca_rq *rq, const struct ibv_recv_wr *wr, uint32_t tail)
{
	uint32_t i = tail & rq->rwqe_mask;
	struct ibv_sge *sge = &rq->rsge[i * rq->max_sge];

	rq->rwqe[i].wr_id = wr->wr_id;
	rq->rwqe[i].n_sge = (uint32_t)wr->num_sge;
	if (base_likely(wr->num_sge == 1))
		*sge = *wr->sg_list;
	else if (wr->num_sge)
		memcpy(sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*sge));
}

/* Makes the next @n positions credits. */
static BASE_HOT void post(struct hca_rq *rq, uint32_t n)
{
	uint32_t posted = hca_rq_load(&rq->posted);

	shm_ring_post(rq->ring, rq->ring_shift, rq->ring_gen, posted, n);
	set(&rq->posted, posted + n);
}

/* The same, of one whose receives are shared: no sender has taken one for them yet. */
static BASE_HOT void post_shared(struct hca_rq *rq, uint32_t n)
{
	uint32_t posted = hca_rq_load(&rq->posted);

	for (uint32_t i = 0; i < n; i++)
		shm_ring_slot(rq->ring, rq->ring_shift, posted + i)->class_flow = SHM_NO_RECEIVE;
	post(rq, n);
}

/* Says in the ring where the receive at @pos is. */
static void describe(struct hca_rq *rq, uint32_t pos)
{
	struct shm_arrival *slot = shm_ring_slot(rq->ring, rq->ring_shift, pos);
	uint32_t i = pos & rq->rwqe_mask, n = rq->rwqe[i].n_sge;
	const struct ibv_sge *sge = &rq->rsge[i * rq->max_sge];

	if (base_likely(n == 1)) {
		slot->receive.addr = sge->addr;
		slot->receive.length = sge->length;
		slot->receive.lkey = sge->lkey;
		slot->operation = 1;
		return;
	}
	slot->receive.length = n;
	slot->operation = 0;
	memcpy((void *)(rq->entries + i * rq->max_sge), sge, n * sizeof(*sge));
}

/* Makes the next @n positions credits of a connected queue pair. Returns whether a request waits
 * for one. */
static bool post_connected(struct hca_rq *rq, uint32_t n)
{
	uint32_t posted = hca_rq_load(&rq->posted);

	for (uint32_t i = 0; i < n; i++)
		describe(rq, posted + i);
	post(rq, n);
	atomic_thread_fence(memory_order_seq_cst); /* the credits before the look */
	return atomic_load_explicit(&rq->ring->waited_for, memory_order_relaxed) &&
	       atomic_exchange_explicit(&rq->ring->waited_for, 0, memory_order_seq_cst);
}

/* Adds the list to the FIFO, up to the first request that is wrong or has no room: *@n requests. */
static BASE_HOT int keep_list(struct hca_rq *rq, struct ibv_recv_wr **wr, uint32_t *n)
{
	uint32_t left = room(rq), tail = hca_rq_load(&rq->rwqe_tail), end = tail + left;
	int ret = 0;

	for (; *wr; *wr = (*wr)->next) {
		if (base_unlikely((uint32_t)(*wr)->num_sge > rq->max_sge)) /* negative ones too */
			ret = -EINVAL;
		else if (base_unlikely(tail == end))
			ret = -ENOMEM;
		if (base_unlikely(ret))
			break;
		keep(rq, *wr, tail++);
	}
	*n = tail - hca_rq_load(&rq->rwqe_tail);
	set(&rq->rwqe_tail, tail);
	return ret;
}

/* Whether a message can be put there. An entry of no bytes is not looked at. */
static bool takes_bytes(struct hca_rq *rq, const struct ibv_sge *sge)
{
	struct hca_mr_table *mrs = &rq->process->mrs;

	return !sge->length || hca_mr_resolve(mrs, rq->domain, sge, IBV_ACCESS_LOCAL_WRITE) ||
	       hca_mr_is_special(mrs, rq->domain, sge, IBV_ACCESS_LOCAL_WRITE);
}

/* Bytes that a message with its GRH may have to fit into request @i; 0: it fails any. */
static uint32_t capacity(struct hca_rq *rq, uint32_t i)
{
	const struct hca_rwqe *rwqe = &rq->rwqe[i & rq->rwqe_mask];
	const struct ibv_sge *sge = &rq->rsge[(i & rq->rwqe_mask) * rq->max_sge];
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < rwqe->n_sge; k++) {
		if (!takes_bytes(rq, &sge[k]))
			return 0;
		bytes += sge[k].length;
	}
	return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

/* Brings least_capacity up to date. Each request is looked at once; the least of those that were
 * looked at counts until all of them are used. */
static void look_at_capacities(struct hca_rq *rq)
{
	uint32_t head = hca_rq_load(&rq->rwqe_head), tail = hca_rq_load(&rq->rwqe_tail);

	if ((int32_t)(rq->capacity_upto - head) <= 0) {
		rq->capacity_upto = head;
		rq->least_capacity = UINT32_MAX;
	}
	for (; rq->capacity_upto != tail; rq->capacity_upto++) {
		uint32_t c = capacity(rq, rq->capacity_upto);

		if (c < rq->least_capacity)
			rq->least_capacity = c;
	}
}

/* Lowers the CQ's limit if the requests that are being posted have less room. */
static void lower_limit(struct hca_rq *rq)
{
	_Atomic uint32_t *limit = &rq->cq->shm->fails_above;
	uint32_t old = atomic_load_explicit(limit, memory_order_relaxed);

	look_at_capacities(rq);
	while (rq->least_capacity < old &&
	       !atomic_compare_exchange_weak_explicit(limit, &old, rq->least_capacity,
	                                              memory_order_relaxed, memory_order_relaxed))
		;
}

void hca_rq_watch_capacity(struct hca_rq *rq)
{
	if (rq->connected || rq->srq)
		return; /* the thread that carries out a request knows if it fails */
	base_lock(&rq->lock);
	if (hca_rq_mode(rq) == HCA_RQ_OPEN)
		hca_rq_set_mode(rq, HCA_RQ_WATCHED);
	lower_limit(rq);
	base_unlock(&rq->lock);
}

/* The work that remains once the lock is released. */
enum remains { NOTHING, KICK, HELP };

/* hca_rq_post() in any mode but HCA_RQ_OPEN. */
static BASE_COLD int post_otherwise(struct hca_rq *rq, struct ibv_recv_wr **wr,
                                    enum remains *remains)
{
	enum hca_rq_mode mode = hca_rq_mode(rq);
	uint32_t n;
	int ret;

	if (mode == HCA_RQ_CLOSED || rq->srq)
		return -EINVAL;
	if (hca_process_gone(rq->process))
		return -EIO;
	ret = keep_list(rq, wr, &n);
	if (mode == HCA_RQ_FLUSHING) {
		*remains = n ? KICK : NOTHING;
	} else if (mode == HCA_RQ_CONNECTED) {
		*remains = n && post_connected(rq, n) ? HELP : NOTHING;
	} else if (n) {
		lower_limit(rq);
		post(rq, n);
	}
	return ret;
}

static BASE_HOT int post_open(struct hca_rq *rq, struct ibv_recv_wr **wr)
{
	uint32_t n;
	int ret;

	if (hca_process_gone(rq->process))
		return -EIO;
	ret = keep_list(rq, wr, &n);
	if (base_likely(n))
		post(rq, n);
	return ret;
}

static BASE_COLD void see_to(struct hca_rq *rq, enum remains remains)
{
	if (remains == KICK)
		hca_cq_kick(rq->cq, rq);
	else
		rq->help(rq->connected);
}

int hca_rq_post(struct hca_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	enum remains remains = NOTHING;
	int ret;

	base_lock(&rq->lock);
	if (base_likely(hca_rq_mode(rq) == HCA_RQ_OPEN))
		ret = post_open(rq, &wr);
	else
		ret = post_otherwise(rq, &wr, &remains);
	base_unlock(&rq->lock);
	if (base_unlikely(remains))
		see_to(rq, remains);
	if (base_unlikely(ret)) {
		*bad = wr;
		hca_explain_receive(rq, wr, ret);
	}
	return ret;
}

/* ---- polling: what is rare ---- */

/* Connected: the oldest request, whose position is void, becomes the newest. */
static void move_to_end(struct hca_rq *rq)
{
	const struct ibv_sge *sge;
	const struct hca_rwqe *rwqe = hca_rq_next(rq, &sge);
	uint32_t tail = hca_rq_load(&rq->rwqe_tail), i = tail & rq->rwqe_mask;

	rq->rwqe[i] = *rwqe;
	memmove(&rq->rsge[i * rq->max_sge], sge, rwqe->n_sge * sizeof(*sge));
	set(&rq->rwqe_tail, tail + 1);
}

/* Makes the position void if a process has held it for too long: it must be stopped. */
static bool take_from_stopped(struct hca_rq *rq, uint32_t pos)
{
	struct shm_arrival *slot = shm_ring_slot(rq->ring, rq->ring_shift, pos);
	uint64_t s = atomic_load_explicit(&slot->state, memory_order_acquire);
	const uint16_t writer = shm_slot_writer(s);

	if (base_now_ns() - rq->flushed_ns <= HCA_STOPPED_WAIT_NS)
		return false;
	/* it may go on, and write: the daemon gives the ring to nobody before (close_rings()) */
	atomic_store_explicit(&rq->ring->taken, 1, memory_order_relaxed);
	if (!shm_ring_void(slot, s, writer))
		return false;
	/* acquire: a receive that it may take now is of no message of ours. A thread of ours marks:
	 * it says so in the slot */
	atomic_thread_fence(memory_order_acquire);
	if (rq->srq && writer != SHM_QP_INDEX(rq->qpn))
		shm_slot_name_receive(slot, s, shm_sender_at(&rq->process->region, writer));
	return true;
}

/* The position is void. If a sender had taken a receive of the shared queue for it, that comes back
 * (hca_responder_try_shared()); one that died may have had no time to say so. A position that we
 * have withdrawn was no sender's. As hca_srq_return(). */
static bool return_shared(struct hca_rq *rq, uint32_t pos)
{
	struct shm_arrival *slot = shm_ring_slot(rq->ring, rq->ring_shift, pos);
	uint32_t receive = slot->class_flow;

	if (!rq->srq || !rq->connected || shm_slot_is_withdrawn(slot))
		return false;
	slot->class_flow = SHM_NO_RECEIVE; /* once */
	return hca_srq_return(rq->srq, receive);
}

/* The message at the position is forgotten. If it had a receive of the shared queue, so is that. */
static void forget_shared(struct hca_rq *rq, uint32_t pos)
{
	struct shm_arrival *slot = shm_ring_slot(rq->ring, rq->ring_shift, pos);
	struct ibv_sge sge[HCA_MAX_SGE];
	uint32_t n = slot->class_flow, n_sge;
	uint64_t wr_id;

	if (!rq->srq || !rq->connected || n == SHM_NO_RECEIVE)
		return;
	slot->class_flow = SHM_NO_RECEIVE; /* once */
	hca_srq_take(rq->srq, n, &wr_id, sge, &n_sge);
}

static void set_discard(struct hca_rq *rq, uint32_t n)
{
	rq->n_discard = n;
	if (n)
		atomic_fetch_or_explicit(&rq->stops, HCA_RQ_DISCARDS, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(&rq->stops, (uint8_t)~HCA_RQ_DISCARDS,
		                          memory_order_relaxed);
}

/*
 * Whether a claim of the position counts as void: while a queue flushes and the daemon is gone, as
 * a dead sender may have claimed it, and no daemon makes it void; or if the peer of a connected
 * queue pair, or the one of before a reset, is stopped for long.
 */
static bool is_lost(struct hca_rq *rq, uint32_t pos)
{
	if (hca_rq_is_flushing(rq) && hca_process_gone(rq->process))
		return true;
	return rq->connected && (hca_rq_is_flushing(rq) || rq->n_discard) &&
	       take_from_stopped(rq, pos);
}

/* Whether polling can skip the position, which holds no arrival: because it is void. */
BASE_COLD bool hca_rq_pass(struct hca_rq *rq, uint32_t pos)
{
	if (shm_ring_peek(rq->ring, rq->ring_shift, pos) != SHM_SLOT_VOID && !is_lost(rq, pos)) {
		if (rq->connected && rq->cq->ch)
			hca_cq_found_less(rq->cq);
		return false;
	}
	if (return_shared(rq, pos))
		rq->cq->failed = true; /* the poll helps whom it waits for once it holds no lock */
	/* we have withdrawn it, or its receive is forgotten */
	if (hca_rq_discard(rq, pos) || hca_rq_is_flushing(rq))
		return true;
	rq->n_void++;
	if (rq->connected && !rq->srq)
		move_to_end(rq);
	return true;
}

bool hca_rq_take(struct hca_rq *rq, struct shm_arrival *slot)
{
	/* acquire: pairs with the release in shm_ring_put_back() */
	uint64_t s = atomic_load_explicit(&slot->state, memory_order_acquire);

	return shm_slot_kind(s) == SHM_SLOT_DONE &&
	       shm_ring_take(slot, s, (uint16_t)SHM_QP_INDEX(rq->qpn));
}

/* Whether what is at the position can be forgotten: no sender is placing it, or will. */
static bool may_forget(struct hca_rq *rq, uint32_t pos)
{
	struct shm_arrival *slot = shm_ring_slot(rq->ring, rq->ring_shift, pos);

	return shm_slot_peek(slot, pos) != SHM_SLOT_DONE || !rq->connected ||
	       !shm_arrival_is_unplaced(slot) || hca_rq_take(rq, slot);
}

/* Whether the arrival at @pos, the next position, is passed over: it came before a reset. */
BASE_COLD bool hca_rq_discard(struct hca_rq *rq, uint32_t pos)
{
	if (!rq->n_discard || !may_forget(rq, pos))
		return false;
	forget_shared(rq, pos);
	if (rq->srq && hca_srq_must_help(rq->srq))
		rq->cq->failed = true; /* as in hca_rq_pass() */
	set_discard(rq, rq->n_discard - 1);
	return true;
}

BASE_COLD void hca_rq_repost(struct hca_rq *rq)
{
	if (rq->connected && !rq->srq)
		post_connected(rq, rq->n_void);
	else if (rq->srq)
		post_shared(rq, rq->n_void);
	else
		post(rq, rq->n_void);
	rq->n_void = 0;
}

static void complete_flushed(struct hca_rq *rq, struct ibv_wc *wc)
{
	const struct ibv_sge *sge;

	memset(wc, 0, sizeof(*wc));
	wc->wr_id = hca_rq_next(rq, &sge)->wr_id;
	wc->status = IBV_WC_WR_FLUSH_ERR;
	wc->opcode = IBV_WC_RECV;
	wc->qp_num = rq->qpn;
}

/* Completes requests in error once all that has arrived, below @pos, has been consumed. */
BASE_COLD int hca_rq_poll_flushed(struct hca_rq *rq, uint32_t pos, int n, struct ibv_wc *wc)
{
	int done = 0, due;

	if (pos != hca_rq_load(&rq->posted))
		return 0;
	for (; done < n && queued(rq); done++) {
		complete_flushed(rq, &wc[done]);
		hca_explain_failed_receive(rq, &wc[done], NULL, 0);
	}
	rq->cq->uncounted_polled += (uint32_t)done;
	due = base_min(done, (int)rq->flushes_due);
	rq->flushes_due -= (uint32_t)due;
	rq->cq->flushes_due -= (uint32_t)due;
	return done;
}

/* Begins to fetch the payload of the arrival at @pos, if it has one, before the previous one is
 * copied. */
void hca_rq_prefetch(struct hca_rq *rq, uint32_t pos)
{
	const struct shm_arrival *a = shm_ring_slot(rq->ring, rq->ring_shift, pos);
	const char *payload;

	if (shm_ring_peek(rq->ring, rq->ring_shift, pos) != SHM_SLOT_DONE ||
	    !(a->flags & SHM_ARRIVAL_PAYLOAD))
		return;
	payload = shm_payload_at(&rq->process->region, a->payload_off, a->length);
	for (int i = 0; payload && i < PREFETCH_LINES; i++)
		__builtin_prefetch(payload + BASE_CACHE_LINE * i);
}

void hca_rq_refill_locked(struct hca_rq *rq)
{
	uint32_t room =
	        shm_ring_room(hca_rq_load(&rq->posted), hca_rq_load(&rq->consumed), rq->ring_shift);

	if (room && !hca_rq_is_flushing(rq) && hca_rq_mode(rq) != HCA_RQ_CLOSED)
		post_shared(rq, room);
}

void hca_rq_refill(struct hca_rq *rq)
{
	base_lock(&rq->lock);
	hca_rq_refill_locked(rq);
	base_unlock(&rq->lock);
}

/* ---- counting ---- */

uint32_t hca_rq_arrived(struct hca_rq *rq)
{
	uint32_t n = hca_rq_load(&rq->aside), posted;

	base_lock(&rq->lock);
	posted = hca_rq_load(&rq->posted);
	for (uint32_t pos = hca_rq_load(&rq->consumed); pos != posted; pos++)
		n += shm_ring_peek(rq->ring, rq->ring_shift, pos) == SHM_SLOT_DONE;
	base_unlock(&rq->lock);
	return n;
}

uint32_t hca_rq_waiting(struct hca_rq *rq)
{
	uint32_t n = hca_rq_arrived(rq);

	base_lock(&rq->lock);
	if (hca_rq_is_flushing(rq))
		n = hca_rq_load(&rq->aside) + queued(rq);
	base_unlock(&rq->lock);
	return n;
}

/* With the lock held. */
static uint32_t held_by_messages(struct hca_rq *rq)
{
	uint32_t n = 0, posted = hca_rq_load(&rq->posted);

	for (uint32_t pos = hca_rq_load(&rq->consumed); pos != posted; pos++)
		n += shm_ring_peek(rq->ring, rq->ring_shift, pos) != SHM_SLOT_VOID;
	return n;
}

uint32_t hca_rq_flushes(struct hca_rq *rq)
{
	uint32_t n = 0;

	base_lock(&rq->lock);
	if (hca_rq_is_flushing(rq)) {
		uint32_t held = held_by_messages(rq);

		n = queued(rq) > held ? queued(rq) - held : 0;
	}
	base_unlock(&rq->lock);
	return n;
}

/* ---- states ---- */

/* Withdraws all credits that no sender has claimed. */
static void withdraw(struct hca_rq *rq)
{
	uint32_t posted = hca_rq_load(&rq->posted), consumed = hca_rq_load(&rq->consumed);

	if (atomic_fetch_and_explicit(&rq->stops, (uint8_t)~HCA_RQ_FAILED, memory_order_relaxed) &
	    HCA_RQ_FAILED)
		set_discard(rq, posted - consumed); /* nothing succeeds behind such a receive */
	shm_ring_withdraw(rq->ring, rq->ring_shift, rq->ring_gen, consumed, posted);
}

void hca_rq_flush(struct hca_rq *rq)
{
	base_lock(&rq->lock);
	if (!hca_rq_is_flushing(rq))
		rq->flushed_ns = base_now_ns();
	hca_rq_set_mode(rq, HCA_RQ_FLUSHING);
	withdraw(rq);
	base_unlock(&rq->lock);
	hca_cq_kick(rq->cq, rq);
}

/* Gives the receives back that unread messages have of the shared queue. */
static void give_back_shared(struct hca_rq *rq)
{
	for (uint32_t pos = hca_rq_load(&rq->consumed); pos != hca_rq_load(&rq->posted); pos++) {
		enum shm_slot_kind kind = shm_ring_peek(rq->ring, rq->ring_shift, pos);

		if (kind == SHM_SLOT_DONE)
			forget_shared(rq, pos);
		if (kind == SHM_SLOT_VOID)
			return_shared(rq, pos);
	}
}

void hca_rq_reset(struct hca_rq *rq)
{
	uint32_t posted, consumed;

	base_lock(&rq->lock);
	if (!hca_rq_is_flushing(rq))
		rq->flushed_ns = base_now_ns();
	hca_rq_set_mode(rq, HCA_RQ_CLOSED);
	withdraw(rq);
	if (rq->srq && rq->connected)
		give_back_shared(rq);
	posted = hca_rq_load(&rq->posted);
	if (rq->connected || rq->srq)
		set(&rq->rwqe_tail, posted);
	set(&rq->rwqe_head, hca_rq_load(&rq->rwqe_tail));
	consumed = hca_rq_load(&rq->consumed);
	while (consumed != posted &&
	       shm_ring_peek(rq->ring, rq->ring_shift, consumed) != SHM_SLOT_CLOSED &&
	       may_forget(rq, consumed))
		consumed++;
	set(&rq->consumed, consumed);
	shm_ring_consume(rq->ring, consumed);
	set_discard(rq, posted - consumed);
	base_unlock(&rq->lock);
}

void hca_rq_close(struct hca_rq *rq)
{
	base_lock(&rq->lock);
	set(&rq->consumed, hca_rq_load(&rq->posted));
	set(&rq->rwqe_head, hca_rq_load(&rq->rwqe_tail));
	set_discard(rq, 0);
	hca_rq_set_mode(rq, HCA_RQ_CLOSED); /* a poll that still finds it posts nothing */
	base_unlock(&rq->lock);
}

bool hca_rq_has_solicited(struct hca_rq *rq, uint32_t room)
{
	uint32_t end = hca_rq_load(&rq->posted);

	for (uint32_t pos = hca_rq_load(&rq->consumed); pos != end; pos++) {
		const struct shm_arrival *a = shm_ring_slot(rq->ring, rq->ring_shift, pos);
		enum shm_slot_kind kind = shm_ring_peek(rq->ring, rq->ring_shift, pos);

		if (kind == SHM_SLOT_CLOSED)
			break;
		if (kind == SHM_SLOT_DONE &&
		    ((a->flags & SHM_ARRIVAL_SOLICITED) || a->length + IB_GRH_BYTES > room))
			return true;
	}
	return hca_rq_is_flushing(rq) && hca_rq_pending(rq);
}
