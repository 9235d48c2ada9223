/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A responder's work for requests: see responder.h. The inline functions there are those that
 * nearly every request needs.
 */
#include <errno.h>

#include "base/log.h"
#include "base/pause.h"
#include "base/reason.h"
#include "hca/queue/explain.h"
#include "hca/transport/responder.h"

/* How often to try for the lock of atomic operations; then the request waits. The daemon tries,
 * too: it sleeps once, for 10 us. */
#define ATOMICS_TRIES (2 * BASE_PAUSE_LOOKS - 1)

static struct shm_connection *connection_of(const struct hca_responder *t)
{
	return shm_connection_at(&t->process->region, SHM_QP_INDEX(t->end.qp.qpn));
}

/* Whether it is told what was done. */
static int wants_to_know(const struct shm_qp *qp)
{
	return qp->state == IBV_QPS_RTR || (qp->flags & SHM_QP_COUNTS_REMOTE);
}

/* The record whose memory and receives are used: the queue pair's own, or that of XRC's shared
 * receive queue, which is copied to *@srq. */
static const struct shm_qp *owner_of(struct hca_responder *t, struct shm_qp *srq)
{
	const struct shm_qp *own = &t->end.qp;

	if (!t->is_xrc)
		return own;
	shm_qp_read(&t->process->region, t->srqn, srq);
	t->srq_seq = srq->seq;
	t->has_srq = srq->qpn == t->srqn && srq->type == SHM_QPT_XRC_SRQ && own->connection.xrcd &&
	             srq->connection.xrcd == own->connection.xrcd;
	return t->has_srq ? srq : own;
}

/* The receives of XRC's shared receive queue stand for the target's own. */
static void take_over(struct shm_qp *target, const struct shm_qp *srq)
{
	const uint8_t of_cq = SHM_QP_STAMPS | SHM_QP_COUNT_ARRIVALS;

	target->flags = (uint8_t)((target->flags & ~of_cq) | (srq->flags & of_cq));
	target->cq = srq->cq;
	target->ready_bit = srq->ready_bit;
	target->ring_off = srq->ring_off;
	target->ring_gen = srq->ring_gen;
	target->ring_shift = srq->ring_shift;
	target->connection.keys_off = srq->connection.keys_off;
	target->connection.domain = srq->connection.domain;
	target->connection.entries_off = srq->connection.entries_off;
	target->connection.max_recv_sge = srq->connection.max_recv_sge;
}

void hca_responder_read(struct hca_responder *t, uint32_t qpn)
{
	struct hca_memory *old = t->end.memory;
	const struct shm_qp *owner;
	struct shm_qp srq;

	shm_qp_read(&t->process->region, qpn, &t->end.qp);
	owner = owner_of(t, &srq);
	t->end.memory = NULL;
	if (owner->qpn && owner->connection.keys_off)
		t->end.memory = hca_memory_get(t->process, owner);
	if (owner == &srq)
		take_over(&t->end.qp, &srq);
	if (old)
		hca_memory_put(t->process, old);
}

void hca_responder_prepare(struct hca_responder *t, uint32_t requester, uint32_t claimant)
{
	const struct shm_region *r = &t->process->region;
	uint32_t srq = t->end.qp.connection.srq;

	t->requester = requester;
	t->single = shm_ring_single(t->held != NULL);
	t->self = shm_sender_at(r, SHM_QP_INDEX(claimant));
	t->credits = shm_data_map(r, t->end.qp.ring_off, shm_ring_bytes(t->end.qp.ring_shift));
	t->view = shm_ring_view(t->credits, t->end.qp.ring_shift, t->end.qp.ring_gen,
	                        (uint16_t)SHM_QP_INDEX(claimant));
	if (srq && srq <= SHM_MAX_SRQS) {
		shm_srq_read(r, srq - 1, &t->srq);
		if (t->credits)
			t->credits =
			        shm_data_map(r, t->srq.ring_off, shm_ring_bytes(t->srq.ring_shift));
		t->shared = shm_ring_view(t->credits, t->srq.ring_shift, t->srq.ring_gen,
		                          (uint16_t)SHM_QP_INDEX(claimant));
	}
	if (!t->credits) /* it cannot be mapped, so nothing can be delivered there */
		t->end.qp.flags &= ~(uint8_t)SHM_QP_RECEIVES;
	t->cq = shm_cq_at(r, t->end.qp.cq);
	t->error = &connection_of(t)->error;
	t->tells = wants_to_know(&t->end.qp);
}

/* ---- refusing ---- */

/* The requester's completion for a NAK, and the event of the responder's queue pair. */
static const struct {
	enum ibv_wc_status status;
	enum ibv_event_type event;
} naks[] = {
	[HCA_NAK_INVALID_REQUEST] = { IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR },
	[HCA_NAK_REMOTE_ACCESS] = { IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	[HCA_NAK_REMOTE_OPERATION] = { IBV_WC_REM_OP_ERR, IBV_EVENT_QP_ACCESS_ERR },
};

/* Marks why the queue pair must move to ERR. False: it must already. */
static BASE_COLD bool mark_failed(struct hca_responder *t, uint32_t why)
{
	uint32_t none = 0;

	/* another queue pair may be there, if this thread was stopped */
	if (!hca_responder_is_ours(t) || !hca_responder_is_there(t))
		return false;
	/* release: pairs with the acquire in daemon_qp_peer_event() */
	return atomic_compare_exchange_strong_explicit(&connection_of(t)->error, &none, why,
	                                               memory_order_release, memory_order_relaxed);
}

/* Requests of its own may wait: they will be flushed. */
static BASE_COLD void wake_sends(struct hca_responder *t)
{
	hca_cq_alert(t->process, shm_cq_at(&t->process->region, t->end.qp.connection.send_cq));
}

/* Moves to ERR: marks why, wakes the program that polls, and has the event sent. */
static BASE_COLD void move_to_error(struct hca_responder *t, enum ibv_event_type type)
{
	const struct shm_qp *q = &t->end.qp;
	struct control_raise_event req = { .type = type, .element = q->qpn };

	if (!mark_failed(t, type))
		return;
	hca_cq_set_ready(t->cq, q->ready_bit);
	atomic_thread_fence(memory_order_seq_cst);
	hca_cq_alert(t->process, t->cq);
	wake_sends(t);
	hca_request(t->process, CONTROL_RAISE_EVENT, &req, sizeof(req));
}

static bool is_record_of(const struct hca_responder *t, uint32_t qpn)
{
	struct shm_qp now;

	shm_qp_read(&t->process->region, qpn, &now);
	return now.qpn == qpn;
}

BASE_COLD bool hca_responder_is_there(const struct hca_responder *t)
{
	/* behind the look that has found something wrong: the daemon clears the record first */
	atomic_thread_fence(memory_order_acquire);
	return is_record_of(t, t->end.qp.qpn) && (!t->has_srq || is_record_of(t, t->srqn));
}

BASE_COLD int hca_responder_refuse(struct hca_responder *t, enum hca_nak nak, const char *why)
{
	base_log_debug(packet, "QP 0x%06x: refuses a request of QP 0x%06x: %s", t->end.qp.qpn,
	               t->requester, why);
	t->nak = nak;
	t->why = why;
	return HCA_REFUSED;
}

/* Its requester is not told: of UC, or by a packet that says less. */
BASE_COLD void hca_responder_log(const struct hca_responder *t)
{
	const struct base_failure f = { .part = BASE_LOG_PART_verbs,
		                        .error = (int)naks[t->nak].status,
		                        .otherwise = hca_status_name(naks[t->nak].status),
		                        .again = (uint64_t)t->end.qp.qpn << 32 | t->requester };
	char text[BASE_REASON_MAX];

	if (!base_log_on(verbs, BASE_LOG_WARNING))
		return;
	base_because(f.error, "%s", hca_responder_explain(t, text));
	base_failure_log(&f, "QP 0x%06x, the responder, %s a request of QP 0x%06x", t->end.qp.qpn,
	                 t->end.qp.type == IBV_QPT_UC ? "drops" : "refuses", t->requester);
}

BASE_COLD int hca_responder_fail(struct hca_responder *t)
{
	char text[BASE_REASON_MAX];

	if (t->end.qp.type == IBV_QPT_UC) {
		hca_responder_log(t);
		return HCA_DROPPED;
	}
	move_to_error(t, naks[t->nak].event);
	return base_because((int)naks[t->nak].status, "QP 0x%06x, the responder, refuses: %s",
	                    t->end.qp.qpn, hca_responder_explain(t, text));
}

BASE_COLD int hca_responder_copy_failed(struct hca_responder *t, int error)
{
	if (error == -ESRCH)
		return HCA_WAITS_FOR_PATH;
	return hca_responder_refuse(t, HCA_NAK_REMOTE_OPERATION,
	                            "the memory is not there any more");
}

BASE_COLD int hca_responder_refuse_operation(struct hca_responder *t)
{
	return hca_responder_refuse(t, HCA_NAK_INVALID_REQUEST,
	                            "its qp_access_flags do not allow the operation");
}

static BASE_COLD int refuse_access(struct hca_responder *t, const struct shm_request *r,
                                   uint64_t length, uint32_t access)
{
	t->wanted = (struct hca_wanted){
		.addr = r->remote_addr, .key = r->rkey, .length = length, .access = access
	};
	hca_responder_refuse(t, HCA_NAK_REMOTE_ACCESS, "no key allows the access");
	t->why = NULL;
	return HCA_REFUSED;
}

/* ---- receives ---- */

BASE_COLD int hca_responder_give_back(struct hca_responder *t, struct shm_arrival *slot,
                                      uint32_t pos)
{
	const uint64_t claimed = shm_ring_claimed(&t->view, pos);

	if (t->is_xrc)
		shm_ring_void(slot, claimed, shm_slot_writer(claimed));
	else
		shm_ring_give_back_single(&t->view, slot, pos);
	hca_cq_set_ready(t->cq, t->end.qp.ready_bit);
	return HCA_WAITS_FOR_PATH;
}

/* Whether its program is taking it to RESET: its receives are going, and nobody answers there. */
static bool has_left(struct hca_responder *t)
{
	/* seq_cst: behind the look for a receive; pairs with modify() in qp_modify.c */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&connection_of(t)->state, memory_order_relaxed) ==
	       1 + (uint32_t)IBV_QPS_RESET;
}

/*
 * While credits are moved to a larger ring, there may be some: it is no RNR, and is tried again. If
 * they are not being moved now, they may have been when we looked. So we look once more. It is RNR
 * if that finds none, and they were not being moved before that look, nor behind it.
 */
BASE_COLD int hca_responder_without_receive(struct hca_responder *t, struct hca_receive *out)
{
	if (hca_responder_is_moving(t))
		return HCA_WAITS_FOR_PATH;
	if (t->end.qp.connection.srq) {
		int ret = hca_responder_try_shared(t, out);

		if (ret != HCA_WAITS_FOR_RECEIVE)
			return ret;
		/* positions of its ring that were given back: it is not the program that lacks them
		 */
		if (hca_responder_has_credits(t->credits) && shm_ring_has_void(&t->view))
			return HCA_WAITS_FOR_PATH;
	}
	return hca_responder_is_moving(t) || has_left(t) ? HCA_WAITS_FOR_PATH
	                                                 : HCA_WAITS_FOR_RECEIVE;
}

BASE_COLD int hca_responder_fail_receive(struct hca_responder *t, const struct shm_request *r,
                                         struct shm_arrival *slot, uint32_t pos,
                                         enum ibv_wc_status status)
{
	hca_responder_fill(t, r, slot, SHM_OPERATION_PLACED);
	slot->status = (uint8_t)status;
	/* nor is it a receive that fails if its process has ended, and its keys with it */
	if (!hca_responder_is_ours(t) || !hca_responder_is_there(t))
		return hca_responder_give_back(t, slot, pos);
	mark_failed(t, SHM_ERROR_RECEIVE); /* before the arrival is published: the owner may reset
	                                      the queue pair when it sees that */
	hca_responder_publish(t, slot, pos);
	wake_sends(t);
	if (t->end.qp.type == IBV_QPT_UC)
		return HCA_DROPPED;
	return status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR;
}

/* ---- SEND with Invalidate ---- */

int hca_responder_check_key(struct hca_responder *t, uint32_t key)
{
	const struct shm_qp_connection *c = &t->end.qp.connection;
	struct shm_reach reach;

	if (!shm_key_read(&t->process->region, c->keys_off, key, &reach) ||
	    reach.domain != c->domain || reach.qpn != t->end.qp.qpn)
		return hca_responder_refuse(t, HCA_NAK_REMOTE_ACCESS,
		                            "it has no key that can be invalidated so");
	return IBV_WC_SUCCESS;
}

void hca_responder_invalidate(struct hca_responder *t, uint32_t key, struct shm_arrival *slot)
{
	struct shm_key *k = shm_key_at(&t->process->region, t->end.qp.connection.keys_off, key);

	if (k)
		atomic_compare_exchange_strong_explicit(&k->key, &key, 0, memory_order_seq_cst,
		                                        memory_order_relaxed);
	slot->operation |= SHM_OPERATION_INVALIDATE;
}

/* ---- RDMA WRITE and READ ---- */

/* *@reach: what the request's key gives access to, if that is @access. */
static bool find_remote(struct hca_responder *t, const struct shm_request *r, uint32_t access,
                        struct shm_reach *reach)
{
	struct hca_end *end = &t->end;

	if (base_unlikely(!hca_parts_read_key(end, r->rkey, reach) ||
	                  reach->domain != end->qp.connection.domain ||
	                  (reach->access & access) != access ||
	                  !hca_parts_is_sound(end, r->rkey, reach)))
		return false;
	if (reach->qpn) /* a window that is one queue pair's: receives may not have it */
		return reach->qpn == end->qp.qpn;
	hca_known_keep(hca_known_of(end, r->rkey), reach);
	return true;
}

bool hca_responder_find(struct hca_responder *t, const struct shm_request *r, uint32_t length,
                        uint32_t access, struct hca_parts *parts)
{
	struct shm_reach reach;
	uint64_t at = 0;

	if (base_unlikely(!find_remote(t, r, access, &reach) ||
	                  !shm_reach_addr(&reach, r->remote_addr, length, &at)))
		return false;
	hca_parts_add(&t->end, r->rkey, &reach, at, length, parts);
	return true;
}

int hca_responder_look_up(struct hca_responder *t, const struct shm_request *r, uint32_t length,
                          uint32_t access, struct hca_parts *parts)
{
	return base_likely(hca_responder_find(t, r, length, access, parts))
	               ? IBV_WC_SUCCESS
	               : refuse_access(t, r, length, access);
}

/* Whether it has resources for READs and atomic operations. */
static int has_resource(struct hca_responder *t)
{
	if (base_likely(t->end.qp.connection.max_dest_rd_atomic))
		return IBV_WC_SUCCESS;
	return hca_responder_refuse(t, HCA_NAK_INVALID_REQUEST, "max_dest_rd_atomic is 0");
}

int hca_responder_begin_read(struct hca_responder *t, const struct shm_request *r,
                             struct hca_parts *parts)
{
	int ret = has_resource(t);

	return ret ? ret : hca_responder_begin_rdma(t, r, r->length, IBV_ACCESS_REMOTE_READ, parts);
}

/* ---- atomic operations, atomic WRITE and FLUSH: the last two are in annex A19 ---- */

int hca_responder_begin_word(struct hca_responder *t, const struct shm_request *r, uint32_t access,
                             struct hca_parts *word)
{
	int ret;

	if (r->remote_addr % sizeof(uint64_t))
		return hca_responder_refuse(t, HCA_NAK_INVALID_REQUEST,
		                            "the address is no multiple of 8");
	ret = has_resource(t);
	return ret ? ret : hca_responder_begin_rdma(t, r, sizeof(uint64_t), access, word);
}

/* Whether the queue pair that a lock names is gone: nobody else will release it. */
static bool is_gone(const struct hca_responder *t, uint32_t holder)
{
	uint32_t qpn = holder & IB_QPN_MASK;
	const struct shm_qp *qp = shm_qp_at(&t->process->region, SHM_QP_INDEX(qpn));

	return holder &&
	       atomic_load_explicit((_Atomic uint32_t *)&qp->qpn, memory_order_relaxed) != qpn;
}

static bool has_only_begun(uint32_t holder)
{
	return holder >= SHM_ATOMIC_BEGUN;
}

/* Puts @value, this thread's, in the place of @holder. */
static bool try_atomics(_Atomic uint32_t *lock, uint32_t holder, uint32_t value)
{
	/* acquire: pairs with the release in unlock_atomics() */
	return atomic_compare_exchange_strong_explicit(lock, &holder, value, memory_order_acquire,
	                                               memory_order_relaxed);
}

/* The lock of atomic operations on this word. The place of a word in its page is the same wherever
 * the page is mapped. NULL: there is none any more. */
static _Atomic uint32_t *lock_of(struct hca_responder *t, const struct hca_parts *word)
{
	struct shm_keys *keys =
	        shm_payload_at(&t->process->region, t->end.qp.connection.keys_off, sizeof(*keys));
	uintptr_t at = (uintptr_t)word->iov[0].iov_base;

	return keys ? &keys->atomics[at / 8 % SHM_ATOMIC_LOCKS] : NULL;
}

/*
 * Acquires it. False: it is not to be had now. Its holder may be stopped: that is no failure of
 * this request, which waits.
 */
static bool lock_atomics(struct hca_responder *t, _Atomic uint32_t *lock)
{
	struct base_pause pause = { 0 };
	uint32_t holder;

	while (lock && pause.looks < ATOMICS_TRIES) {
		holder = atomic_load_explicit(lock, memory_order_relaxed);
		if ((!holder || has_only_begun(holder)) && try_atomics(lock, holder, t->worker))
			return true;
		base_pause(&pause);
	}
	holder = lock ? atomic_load_explicit(lock, memory_order_relaxed) : 0;
	return is_gone(t, holder) && try_atomics(lock, holder, t->worker);
}

static void unlock_atomics(const struct hca_responder *t, _Atomic uint32_t *lock)
{
	uint32_t worker = t->worker;

	/* release: pairs with the acquire in try_atomics() */
	atomic_compare_exchange_strong_explicit(lock, &worker, 0, memory_order_release,
	                                        memory_order_relaxed);
}

static uint64_t result_of(const struct shm_request *r, uint64_t old)
{
	if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return old + r->compare_add;
	return old == r->compare_add ? r->swap : old;
}

/* The word, if it can be read and written at once by this process; or NULL. */
static _Atomic uint64_t *word_here(const struct hca_parts *at)
{
	void *word = at->iov[0].iov_base;

	return base_likely(at->here && (uintptr_t)word % sizeof(uint64_t) == 0) ? word : NULL;
}

static int read_word(struct hca_responder *t, struct hca_parts *at, uint64_t *word)
{
	struct iovec here = { word, sizeof(*word) }, there = at->iov[0];
	struct hca_span target = { .iov = &here, .n = 1 }, source;

	if (word_here(at)) {
		*word = atomic_load_explicit(word_here(at), memory_order_acquire);
		return 0;
	}
	source = hca_parts_span(&t->end, at);
	source.iov = &there; /* which the copy moves */
	return hca_memory_copy(&target, &source, sizeof(*word));
}

/* Stores the word at once, if this process can. */
static int store_word(struct hca_responder *t, struct hca_parts *at, uint64_t word)
{
	struct hca_span source, target = hca_parts_span(&t->end, at);
	struct iovec here = { &word, sizeof(word) };

	if (word_here(at)) {
		/* release: a reader of the word sees what was written before */
		atomic_store_explicit(word_here(at), word, memory_order_release);
		return 0;
	}
	source = (struct hca_span){ .iov = &here, .n = 1 };
	return hca_memory_copy(&target, &source, sizeof(word));
}

bool hca_responder_begin_change(struct hca_responder *t, const struct shm_request *r, uint64_t *old)
{
	const uint32_t begun = t->worker | SHM_ATOMIC_BEGUN;
	struct hca_parts word = { .here = true };
	_Atomic uint32_t *lock;

	if (r->remote_addr % sizeof(uint64_t) ||
	    !hca_responder_find(t, r, sizeof(*old), IBV_ACCESS_REMOTE_ATOMIC, &word))
		return false;
	lock = lock_of(t, &word);
	/* the word is read behind that: whatever changes it later takes the lock */
	return lock && (try_atomics(lock, 0, begun) || try_atomics(lock, begun, begun)) &&
	       !read_word(t, &word, old);
}

int hca_responder_change(struct hca_responder *t, const struct shm_request *r,
                         struct hca_parts *word, uint64_t *old)
{
	_Atomic uint32_t *lock = lock_of(t, word);
	const bool is_begun = base_unlikely(t->begun) && lock &&
	                      try_atomics(lock, t->worker | SHM_ATOMIC_BEGUN, t->worker);
	uint64_t next;
	int ret = 0;

	/* other atomic operations are kept out: between reading and writing, or since it began */
	if (!is_begun && !lock_atomics(t, lock))
		return HCA_WAITS_FOR_LOCK;
	if (is_begun)
		*old = *t->begun;
	else
		ret = read_word(t, word, old);
	next = result_of(r, *old);
	if (!ret && next != *old)
		ret = store_word(t, word, next);
	unlock_atomics(t, lock);
	return ret ? hca_responder_copy_failed(t, ret) : IBV_WC_SUCCESS;
}

int hca_responder_store(struct hca_responder *t, struct hca_parts *word, uint64_t value)
{
	/* no other atomic operation may write between our read of the word and our write */
	_Atomic uint32_t *lock = lock_of(t, word);
	int ret;

	if (!lock_atomics(t, lock))
		return HCA_WAITS_FOR_LOCK;
	ret = store_word(t, word, value);
	unlock_atomics(t, lock);
	return ret ? hca_responder_copy_failed(t, ret) : IBV_WC_SUCCESS;
}

/* The bytes that were written before lie in memory already, for all to see. So nothing is left to
 * do but to check whether the requester may ask for the flush. */
int hca_responder_flush(struct hca_responder *t, const struct shm_request *r)
{
	uint8_t type = hca_flush_type(r->swap);
	uint32_t access = (type & HCA_FLUSH_GLOBAL ? HCA_ACCESS_FLUSH_GLOBAL : 0) |
	                  (type & HCA_FLUSH_PERSISTENT ? HCA_ACCESS_FLUSH_PERSISTENT : 0);
	struct shm_reach reach;
	uint64_t at;
	int ret = has_resource(t);

	if (ret)
		return ret;
	if ((t->end.qp.connection.access & access) != access)
		return hca_responder_refuse_operation(t);
	if (!find_remote(t, r, access, &reach) ||
	    (hca_flush_level(r->swap) == HCA_FLUSH_RANGE &&
	     !shm_reach_addr(&reach, r->remote_addr, r->compare_add, &at)))
		return refuse_access(t, r, r->compare_add, access);
	atomic_thread_fence(memory_order_seq_cst);
	return IBV_WC_SUCCESS;
}

/* ---- all ---- */

/* If the first message came before the queue pair moved to RTS, it is told, once. Whether it is in
 * RTS by now is in the mark, not in its record. */
static BASE_COLD void establish(struct hca_responder *t)
{
	struct control_raise_event req = { .type = IBV_EVENT_COMM_EST, .element = t->end.qp.qpn };

	if (!atomic_exchange_explicit(&connection_of(t)->established, 1, memory_order_acq_rel))
		hca_request(t->process, CONTROL_RAISE_EVENT, &req, sizeof(req));
	t->end.qp.state = IBV_QPS_RTS; /* our copy: it need not be asked again */
	t->tells = wants_to_know(&t->end.qp);
}

/* Counts the READ or WRITE. */
static void count_remote(struct hca_responder *t, uint8_t opcode, uint32_t bytes, int outcome)
{
	const unsigned op = hca_operation(opcode);
	struct shm_connection *c = connection_of(t);
	struct shm_remote *n = op & HCA_OP_READ ? &c->remote_reads : &c->remote_writes;

	if (!(op & (HCA_OP_READ | HCA_OP_WRITE)))
		return;
	/* release: all that was done comes before; pairs with count_remote() in comp_counter.c */
	if (outcome == IBV_WC_SUCCESS) {
		atomic_fetch_add_explicit(&n->bytes, bytes, memory_order_relaxed);
		atomic_fetch_add_explicit(&n->requests, 1, memory_order_release);
	} else if (outcome == HCA_DROPPED || outcome == IBV_WC_REM_INV_REQ_ERR ||
	           outcome == IBV_WC_REM_ACCESS_ERR || outcome == IBV_WC_REM_OP_ERR) {
		atomic_fetch_add_explicit(&n->errors, 1, memory_order_release);
	}
}

BASE_COLD void hca_responder_tell(struct hca_responder *t, const struct shm_request *r, int outcome)
{
	if (t->end.qp.state == IBV_QPS_RTR && outcome == IBV_WC_SUCCESS)
		establish(t);
	if (t->end.qp.flags & SHM_QP_COUNTS_REMOTE)
		count_remote(t, r->opcode, r->length, outcome);
}
