/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Carrying out a request between connected queue pairs: see exchange.h.
 *
 * The order of the checks is that of the specification, volume 1, sections 9.7.4 and 9.9: first the
 * requester's own memory, then whether there is a way, then what the responder checks.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/log.h"
#include "base/reason.h"
#include "base/util.h"
#include "hca/cq.h"
#include "hca/exchange.h"
#include "hca/known.h"
#include "hca/operation.h"
#include "hca/payload.h"
#include "hca/place.h"
#include "hca/qp.h"
#include "hca/sender.h"
#include "hca/srq.h"

/* How often to try for the lock of atomic operations; then the request waits. */
#define ATOMICS_TRIES 1000
/* Longer messages go to their place at once; shorter ones are copied twice, without a system call.
 */
#define PAYLOAD_MAX 4096

/* What becomes of a request beside those in exchange.h: UC's responder refuses it. For the
 * requester it is a success (section 9.8.2.2.3). */
enum { DROPPED = -4 };

/* Parts of one end's memory, found by its keys. */
struct parts {
	struct iovec iov[HCA_MAX_SGE];
	unsigned n;
	bool has_null; /* one of them is HCA_MEMORY_NULL */
	bool here;     /* the addresses are this process's: its own, or where it has mapped them */
};

/* Whether that responder is told what was done. */
static int wants_to_know(const struct shm_qp *qp)
{
	return qp->state == IBV_QPS_RTR || (qp->flags & SHM_QP_COUNTS_REMOTE);
}

/* Whether the responder listens to this requester, and both can be reached. */
static bool is_match(const struct hca_exchange *x)
{
	const struct shm_qp *from = &x->requester.qp, *to = &x->responder.qp;

	return to->qpn == from->connection.dest_qpn && (to->flags & SHM_QP_RECEIVES) &&
	       to->connection.dest_qpn == from->qpn &&
	       to->type == (x->is_xrc ? (uint8_t)IBV_QPT_XRC_RECV : from->type) &&
	       ib_pkey_match(to->pkey, from->pkey) && x->responder.memory && x->requester.memory;
}

static void prepare_end(const struct hca_exchange *x, struct hca_end *end, uint32_t qpn)
{
	end->seq = &x->process->region.qps[SHM_QP_INDEX(qpn)].seq;
	memset(end->known, 0, sizeof(end->known));
	end->is_own = end->memory && end->memory->way == HCA_MEMORY_OWN;
}

void hca_exchange_prepare(struct hca_exchange *x)
{
	const struct shm_region *r = &x->process->region;
	uint32_t srq = x->responder.qp.connection.srq;

	x->credits = shm_data_at(r, x->responder.qp.ring_off);
	x->view = shm_ring_view(x->credits, x->responder.qp.ring_shift, x->responder.qp.ring_gen,
	                        (uint16_t)SHM_QP_INDEX(x->requester.qp.qpn));
	if (srq && srq <= SHM_MAX_SRQS) {
		shm_srq_read(r, srq - 1, &x->srq);
		x->credits = shm_data_at(r, x->srq.ring_off);
	}
	x->cq = &r->cqs[x->responder.qp.cq];
	x->error = &r->connections[SHM_QP_INDEX(x->responder.qp.qpn)].error;
	x->is_match = is_match(x);
	x->tells = wants_to_know(&x->responder.qp);
	prepare_end(x, &x->requester, x->requester.qp.qpn);
	prepare_end(x, &x->responder, x->requester.qp.connection.dest_qpn);
}

/* ---- memory ---- */

static BASE_HOT bool is_within(uint64_t at, uint64_t length, uint64_t from, uint64_t to)
{
	return at >= from && at <= to && length <= to - at;
}

static BASE_COLD void join_key(const struct hca_exchange *x, struct hca_known *k)
{
	k->joined = shm_key_join(k->at, x->worker & IB_QPN_MASK);
	k->length = 0; /* it was that of another serial */
}

/* shm_key_read() of a key of @end. Where it stands is looked up once if it is used again, and its
 * owner hears of a user once. */
static BASE_HOT bool read_key(struct hca_exchange *x, struct hca_end *end, uint32_t key,
                              struct shm_reach *reach)
{
	struct hca_known *k = hca_known_of(end, key);

	if (base_unlikely(k->key != key || !k->at)) {
		k->key = key;
		k->joined = 0;
		k->length = 0;
		k->at = shm_key_at(&x->process->region, end->qp.connection.keys_off, key);
	}
	/* who has just become a user of the key reads it again */
	for (int tries = 0; tries < 2 && shm_key_read_at(k->at, key, reach); tries++) {
		if (base_likely(atomic_load_explicit(&k->at->serial, memory_order_relaxed) ==
		                k->joined))
			return true;
		join_key(x, k);
	}
	return false;
}

/* Where this process has mapped memory of @end, @length bytes from @at on, which @reach gives
 * access to, that is the key @k; NULL: nowhere. */
static BASE_HOT void *mapped_at(const struct hca_end *end, struct hca_known *k,
                                const struct shm_reach *reach, uint64_t at, uint64_t length)
{
	uint64_t from = reach->start, to = reach->start + reach->length;
	const struct hca_mapping *m;

	if (!(reach->access & SHM_KEY_MAPPABLE) || !end->memory)
		return NULL;
	m = hca_memory_map(end->memory, shm_key_object(reach->access));
	/* the other process wrote these: none may wrap */
	if (!m || !is_within(at, length, m->from, m->to))
		return NULL;
	from = from > m->from ? from : m->from;
	to = to < m->to ? to : m->to;
	if (is_within(at, length, from, to))
		hca_known_place(k, from - reach->start, to - from, m->here + (from - m->from));
	return m->here + (at - m->from);
}

/* The address of that memory for this process, if parts->here, which becomes false if it has none;
 * or else for the other one. */
static BASE_HOT void *place_at(const struct hca_end *end, struct hca_known *k,
                               const struct shm_reach *reach, uint64_t at, uint64_t length,
                               struct parts *parts)
{
	void *here;

	if (end->is_own) {
		if (base_unlikely(reach->access & IBV_ACCESS_ON_DEMAND))
			parts->here = false; /* nobody knows whether its pages are there */
		else
			hca_known_place(k, 0, reach->length, (char *)(uintptr_t)reach->start);
		return (void *)(uintptr_t)at;
	}
	if (!parts->here)
		return (void *)(uintptr_t)at;
	here = mapped_at(end, k, reach, at, length);
	parts->here = here;
	return here ? here : (void *)(uintptr_t)at;
}

/* Whether @reach may be used of @end: peers could have written to this process's keys, too. */
static BASE_HOT bool is_sound(const struct hca_exchange *x, const struct hca_end *end, uint32_t key,
                              const struct shm_reach *reach)
{
	return !end->is_own || base_likely(hca_mr_reaches(&x->process->mrs, key, reach));
}

/* What the entry's key gives access to: *@reach, and *@at, where the entry begins in that memory,
 * unless it is a null region's. False: @end may not have it so. */
static BASE_HOT bool read_entry(struct hca_exchange *x, struct hca_end *end,
                                const struct shm_entry *e, uint32_t access, struct shm_reach *reach,
                                uint64_t *at)
{
	if (base_unlikely(!read_key(x, end, e->lkey, reach) ||
	                  reach->domain != end->qp.connection.domain ||
	                  (reach->access & access) != access || reach->qpn))
		return false;
	if (base_unlikely(reach->access & SHM_KEY_NULL))
		return true;
	if (base_unlikely(!is_sound(x, end, e->lkey, reach)))
		return false;
	hca_known_keep(hca_known_of(end, e->lkey), reach);
	return base_likely(shm_reach_addr(reach, e->addr, e->length, at));
}

/* Adds the first @length bytes of the entry. False: @end may not have it so. */
static BASE_HOT bool add_entry(struct hca_exchange *x, struct hca_end *end,
                               const struct shm_entry *e, uint32_t length, uint32_t access,
                               struct parts *parts)
{
	void *here = hca_known_at(end, e->lkey, e->addr, e->length, access);
	struct shm_reach reach;
	uint64_t at;

	if (base_likely(here && parts->here)) {
		parts->iov[parts->n++] = (struct iovec){ here, length };
		return true;
	}
	if (base_unlikely(!read_entry(x, end, e, access, &reach, &at)))
		return false;
	if (base_unlikely(reach.access & SHM_KEY_NULL)) {
		parts->has_null = true;
		parts->iov[parts->n++] = (struct iovec){ HCA_MEMORY_NULL, length };
		return true;
	}
	parts->iov[parts->n++] = (struct iovec){
		place_at(end, hca_known_of(end, e->lkey), &reach, at, length, parts), length
	};
	return true;
}

/* The first @length bytes of @n entries of @end; entries behind them do not matter. False: @end may
 * not have them so. */
static BASE_HOT bool add_entries(struct hca_exchange *x, struct hca_end *end,
                                 const struct shm_entry *e, unsigned n, uint32_t length,
                                 uint32_t access, struct parts *parts)
{
	parts->n = 0;
	parts->has_null = false;
	for (unsigned i = 0; i < n && length; i++) {
		uint32_t part = e[i].length < length ? e[i].length : length;

		if (part && !add_entry(x, end, &e[i], part, access, parts))
			return false;
		length -= part;
	}
	return true;
}

/* The same, at addresses of one kind: in this process if all of it is mapped here. */
static BASE_HOT bool find_parts(struct hca_exchange *x, struct hca_end *end,
                                const struct shm_entry *e, unsigned n, uint32_t length,
                                uint32_t access, struct parts *parts)
{
	parts->here = true;
	if (!add_entries(x, end, e, n, length, access, parts))
		return false;
	/* an address of each kind could be among them */
	return base_likely(parts->here || parts->n == 1) ||
	       add_entries(x, end, e, n, length, access, parts);
}

/* The requester's memory that @r names. */
static BASE_HOT bool local_parts(struct hca_exchange *x, const struct shm_request *r,
                                 const struct shm_entry *e, uint32_t access, struct parts *parts)
{
	if (!(r->flags & IBV_SEND_INLINE))
		return find_parts(x, &x->requester, e, r->n_entries, r->length, access, parts);
	/* inline data lies in this process in any case */
	parts->has_null = false;
	parts->here = true;
	parts->n = r->n_entries;
	for (unsigned i = 0; i < r->n_entries; i++)
		parts->iov[i] = (struct iovec){ (void *)(uintptr_t)e[i].addr, e[i].length };
	return true;
}

static struct hca_span span_of(const struct hca_end *end, struct parts *parts)
{
	return (struct hca_span){ .memory = parts->here ? NULL : end->memory,
		                  .iov = parts->iov,
		                  .n = parts->n };
}

/* Whether it is one piece of this process. Its length is looked at: entries that others wrote may
 * name less than the request does. */
static BASE_HOT bool is_one_here(const struct parts *parts, uint32_t length)
{
	return base_likely(parts->here && parts->n == 1 && !parts->has_null &&
	                   parts->iov[0].iov_len >= length);
}

/* Copies @length bytes between the two ends. 0 or as hca_memory_copy(). */
static BASE_HOT int copy_parts(const struct hca_end *to_end, struct parts *to,
                               const struct hca_end *from_end, struct parts *from, uint32_t length)
{
	struct hca_span target, source;

	if (is_one_here(to, length) && is_one_here(from, length)) {
		hca_memory_copy_here(to->iov[0].iov_base, from->iov[0].iov_base, length);
		return 0;
	}
	target = span_of(to_end, to);
	source = span_of(from_end, from);
	return hca_memory_copy(&target, &source, length);
}

/* ---- the responder's errors ---- */

/* Marks why the responder must move to ERR. False: it must already. */
static BASE_COLD bool mark_failed(struct hca_exchange *x, uint32_t why)
{
	struct shm_connection *c =
	        &x->process->region.connections[SHM_QP_INDEX(x->responder.qp.qpn)];
	uint32_t none = 0;

	/* release: pairs with the acquire in daemon_qp_peer_event() */
	return atomic_compare_exchange_strong_explicit(&c->error, &none, why, memory_order_release,
	                                               memory_order_relaxed);
}

/* Requests of the responder itself may wait: they will be flushed. */
static BASE_COLD void wake_sends(struct hca_exchange *x)
{
	const struct shm_region *r = &x->process->region;

	hca_cq_alert(x->process, &r->cqs[x->responder.qp.connection.send_cq]);
}

/* Moves the responder to ERR: marks why, wakes who polls it, and has the event sent. */
static BASE_COLD void fail_responder(struct hca_exchange *x, enum ibv_event_type type)
{
	const struct shm_qp *q = &x->responder.qp;
	struct control_raise_event req = { .type = type, .element = q->qpn };

	if (!mark_failed(x, type))
		return;
	hca_cq_set_ready(x->cq, q->ready_bit);
	atomic_thread_fence(memory_order_seq_cst);
	hca_cq_alert(x->process, x->cq);
	wake_sends(x);
	hca_request(x->process, CONTROL_RAISE_EVENT, &req, sizeof(req));
}

static BASE_COLD int refuse(struct hca_exchange *x, enum ibv_event_type type,
                            enum ibv_wc_status status, const char *why)
{
	base_log_debug(packet, "QP 0x%06x: refuses a request of QP 0x%06x: %s", x->responder.qp.qpn,
	               x->requester.qp.qpn, why);
	if (x->responder.qp.type == IBV_QPT_UC)
		return DROPPED;
	/* if it is gone by now, its keys were, too */
	if (!hca_exchange_is_current(x))
		return HCA_WAITS_FOR_PATH;
	fail_responder(x, type);
	return base_because((int)status, "QP 0x%06x, the responder, refuses: %s",
	                    x->responder.qp.qpn, why);
}

/* What a failed copy means. */
static int copy_failed(struct hca_exchange *x, int error)
{
	if (error == -ESRCH)
		return HCA_WAITS_FOR_PATH;
	return refuse(x, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_OP_ERR,
	              "the memory is not there any more");
}

/* ---- receives ---- */

/* A receive of the responder that a request uses. */
struct receive {
	struct shm_arrival *slot; /* claimed, of its ring */
	uint32_t pos;
	const struct shm_entry *entries;
	unsigned n;
	struct shm_entry one;
};

/* Fills in the entries of the receive that @slot stands for, one of a credit. They are checked, as
 * its owner wrote them. @many_off: where they are if there are several. */
static BASE_HOT void read_credit(struct hca_exchange *x, const struct shm_arrival *slot,
                                 uint64_t many_off, uint32_t max_sge, struct receive *out)
{
	out->one = (struct shm_entry){ .addr = slot->receive.addr,
		                       .length = slot->receive.length,
		                       .lkey = slot->receive.lkey };
	out->entries = &out->one;
	out->n = 1;
	if (base_likely(slot->operation == 1))
		return;
	out->n = out->one.length;
	out->one.addr = many_off; /* for who places the message later */
	out->entries = shm_payload_at(&x->process->region, many_off, max_sge * sizeof(out->one));
	if (out->n > max_sge || out->n > HCA_MAX_SGE || !out->entries)
		out->n = 0;
}

/* The receive stays what it was: the request that had claimed it is not carried out. */
static BASE_COLD int give_back(struct hca_exchange *x, struct shm_arrival *slot, uint32_t pos)
{
	const struct shm_qp *q = &x->responder.qp;
	uint16_t writer = (uint16_t)SHM_QP_INDEX(x->requester.qp.qpn);

	shm_ring_void(slot, shm_slot_state(pos, q->ring_gen, writer, SHM_SLOT_CLAIMED), writer);
	hca_cq_set_ready(x->cq, q->ready_bit);
	return HCA_WAITS_FOR_PATH;
}

/* Whether credits are left, as far as hints tell. */
static bool has_credits(const struct shm_ring *ring)
{
	uint32_t tail = atomic_load_explicit((_Atomic uint32_t *)&ring->tail, memory_order_relaxed);

	return (int32_t)(atomic_load_explicit((_Atomic uint32_t *)&ring->posted,
	                                      memory_order_acquire) -
	                 tail) > 0;
}

static bool is_moving(const struct hca_exchange *x)
{
	/* acquire: pairs with the release in hca_srq's move(): credits came before it was 0 */
	return atomic_load_explicit(&x->credits->moving, memory_order_acquire);
}

/*
 * Takes a receive of the shared receive queue, for a message that will arrive in the responder's
 * own ring. Its slot there says which receive that is before the credit is used up: if the message
 * does not come, the owner finds a void slot with that number, and has its receive back.
 */
static bool take_shared(struct hca_exchange *x, struct receive *out)
{
	const struct shm_srq *s = &x->srq;
	const struct shm_ring_view v = shm_ring_view(x->credits, s->ring_shift, s->ring_gen,
	                                             (uint16_t)SHM_QP_INDEX(x->requester.qp.qpn));
	struct shm_arrival *credit;
	uint64_t many_off;
	uint32_t pos;

	/* while the queue moves to another ring, withdrawn credits still look usable: each try to
	 * claim one would waste a position */
	if (!has_credits(x->credits) || is_moving(x))
		return false;
	out->slot = shm_ring_claim(&x->view, &out->pos);
	if (!out->slot)
		return false;
	credit = shm_ring_claim(&v, &pos);
	if (!credit) {
		give_back(x, out->slot, out->pos);
		return false;
	}
	many_off = s->entries_off + (uint64_t)credit->imm * s->max_sge * sizeof(out->one);
	read_credit(x, credit, many_off, s->max_sge, out);
	out->slot->class_flow = credit->imm;
	shm_ring_publish(&v, credit, pos);
	hca_srq_check_limit(x->process, x->credits, x->responder.qp.connection.srq - 1, pos + 1);
	return true;
}

/*
 * What becomes of a request for which no receive was found; 0: now there is one. While credits are
 * moved to a larger ring, there may be some: it is no RNR, and is tried again. If they are not
 * being moved now, they may have been when we looked. So we look once more. It is RNR if that finds
 * none, and they were not being moved before that look, nor behind it.
 */
static BASE_COLD int without_receive(struct hca_exchange *x, struct receive *out)
{
	if (is_moving(x))
		return HCA_WAITS_FOR_PATH;
	if (x->responder.qp.connection.srq) {
		if (take_shared(x, out))
			return 0;
		/* positions of its ring that were given back: it is not the program that lacks them
		 */
		if (has_credits(x->credits) && shm_ring_has_void(&x->view))
			return HCA_WAITS_FOR_PATH;
	}
	return is_moving(x) ? HCA_WAITS_FOR_PATH : HCA_WAITS_FOR_RECEIVE;
}

/* Takes the responder's oldest receive. False: there is none. */
static BASE_HOT bool take_receive(struct hca_exchange *x, struct receive *out)
{
	const struct shm_qp *q = &x->responder.qp;
	const struct shm_qp_connection *c = &q->connection;
	uint64_t index;

	if (base_unlikely(c->srq))
		return take_shared(x, out);
	out->slot = shm_ring_claim(&x->view, &out->pos);
	if (base_unlikely(!out->slot))
		return false;
	index = (uint64_t)(out->pos & ((1u << q->ring_shift) - 1)) * c->max_recv_sge;
	read_credit(x, out->slot, c->entries_off + index * sizeof(out->one), c->max_recv_sge, out);
	if (base_unlikely(x->is_xrc))
		out->slot->class_flow = q->qpn; /* the completion says which target received it */
	return true;
}

bool hca_exchange_find_receive(struct hca_exchange *x, struct hca_receive_memory *m,
                               uint32_t length)
{
	struct parts parts;

	if (!find_parts(x, &x->responder, m->entries, m->n, length, IBV_ACCESS_LOCAL_WRITE, &parts))
		return false;
	m->span = span_of(&x->responder, &parts);
	memcpy(m->iov, parts.iov, parts.n * sizeof(*m->iov));
	m->span.iov = m->iov;
	return true;
}

static BASE_HOT uint64_t bytes_of(const struct receive *rcv)
{
	uint64_t bytes = 0;

	if (base_likely(rcv->entries == &rcv->one))
		return rcv->one.length;
	for (unsigned i = 0; i < rcv->n; i++)
		bytes += rcv->entries[i].length;
	return bytes;
}

/* Fills in what all arrivals have. */
static BASE_HOT void fill(struct hca_exchange *x, const struct shm_request *r,
                          struct shm_arrival *slot, enum shm_operation operation)
{
	bool has_imm = hca_operation(r->opcode) & HCA_OP_IMM;

	slot->src_qpn = x->requester.qp.qpn;
	slot->length = r->length;
	slot->imm = has_imm ? r->imm : 0;
	slot->flags = (uint8_t)((has_imm ? SHM_ARRIVAL_IMM : 0) |
	                        (r->flags & IBV_SEND_SOLICITED ? SHM_ARRIVAL_SOLICITED : 0));
	slot->more = x->more;
	slot->operation = (uint8_t)operation;
	slot->status = IBV_WC_SUCCESS;
}

/* Whether the request is still this thread's: a requester whose peer was stopped gives it up. */
static BASE_HOT bool is_ours(const struct hca_exchange *x)
{
	if (base_likely(!x->held))
		return true;
	/* the copy before the look: who takes the lock, by an acquire in try_lock(), goes on to
	 * use its buffers for other things */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(x->held, memory_order_relaxed) == x->worker;
}

static BASE_HOT int publish(struct hca_exchange *x, struct shm_arrival *slot, uint32_t pos)
{
	const struct shm_qp *q = &x->responder.qp;
	bool solicited = (slot->flags & SHM_ARRIVAL_SOLICITED) || slot->status;

	if (base_unlikely(!is_ours(x)))
		return give_back(x, slot, pos);
	if (base_unlikely(q->flags & (SHM_QP_STAMPS | SHM_QP_COUNT_ARRIVALS)))
		hca_cq_note_arrival(x->process, x->cq, q->flags, slot);
	shm_ring_publish(&x->view, slot, pos);
	if (base_unlikely(x->is_xrc)) /* behind the barrier; pairs with hca_srq_modify() */
		hca_srq_check_limit(x->process, x->view.ring, SHM_XRC_SRQ | x->srqn, pos + 1);
	hca_cq_announce(x->cq, q->ready_bit);
	hca_cq_notify(x->process, x->cq, solicited);
	return IBV_WC_SUCCESS;
}

/* The receive fails with @status. Returns the status of the request. */
static BASE_COLD int fail_receive(struct hca_exchange *x, const struct shm_request *r,
                                  struct shm_arrival *slot, uint32_t pos, enum ibv_wc_status status)
{
	fill(x, r, slot, SHM_OPERATION_PLACED);
	slot->status = (uint8_t)status;
	if (!is_ours(x))
		return give_back(x, slot, pos);
	mark_failed(x, SHM_ERROR_RECEIVE); /* before the arrival is published: the owner may reset
	                                      the queue pair when it sees that */
	publish(x, slot, pos);
	wake_sends(x);
	if (x->responder.qp.type == IBV_QPT_UC)
		return DROPPED;
	return status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR;
}

/* ---- SEND ---- */

/* Copies inline data of at most SHM_INLINE bytes. */
static BASE_HOT void gather_inline(const struct shm_request *r, const struct shm_entry *e,
                                   uint8_t *to)
{
	for (const struct shm_entry *end = e + r->n_entries; e < end; e++) {
		base_copy_short(to, (const void *)(uintptr_t)e->addr, e->length);
		to += e->length;
	}
}

/* Copies a message of at most SHM_INLINE bytes. 0 or as hca_memory_copy(). */
static BASE_HOT int gather_small(struct hca_exchange *x, const struct shm_request *r,
                                 struct parts *from, uint8_t *to)
{
	if (base_unlikely(!from->here || from->has_null)) {
		struct iovec here = { to, r->length };
		struct hca_span target = { .iov = &here, .n = 1 };
		struct hca_span source = span_of(&x->requester, from);

		return hca_memory_copy(&target, &source, r->length);
	}
	for (const struct iovec *v = from->iov, *end = v + from->n; v < end; v++) {
		base_copy_short(to, v->iov_base, v->iov_len);
		to += v->iov_len;
	}
	return 0;
}

/* The message lies in the arrival, or in payload memory, until it is polled or placed. */
static void leave_unplaced(struct hca_exchange *x, const struct shm_request *r,
                           const struct receive *rcv)
{
	struct shm_arrival *slot = rcv->slot;

	fill(x, r, slot, SHM_OPERATION_SEND);
	/* that of a shared receive queue says so elsewhere */
	slot->receive.addr = rcv->one.addr;
	slot->receive.length = rcv->one.length;
	slot->receive.lkey = rcv->one.lkey;
	if (rcv->entries != &rcv->one)
		slot->operation |= SHM_OPERATION_MANY;
	hca_place_note(x, rcv->pos);
}

/* Writes the message to payload memory, from which the responder copies it. False: there is none,
 * or it is not the requester's thread, whose memory that is, or parts are no memory. */
static bool put_payload(struct hca_exchange *x, const struct shm_request *r, struct parts *from,
                        const struct receive *rcv)
{
	struct hca_payload *p;
	char *to;

	if (!x->sender || r->length > PAYLOAD_MAX || from->has_null)
		return false;
	p = hca_payload_get(x->sender);
	if (!p || hca_payload_reserve(p, 1))
		return false;
	to = shm_data_at(&x->process->region, p->off);
	for (unsigned i = 0; i < from->n; i++) {
		memcpy(to, from->iov[i].iov_base, from->iov[i].iov_len);
		to += from->iov[i].iov_len;
	}
	leave_unplaced(x, r, rcv);
	rcv->slot->flags |= SHM_ARRIVAL_PAYLOAD;
	rcv->slot->payload_off = p->off;
	p->hold[p->n++] = (struct hca_payload_hold){ .ring = x->view.ring,
		                                     .gen = x->responder.qp.ring_gen,
		                                     .pos = rcv->pos };
	return true;
}

static BASE_HOT int invalidate(struct hca_exchange *x, const struct shm_request *r)
{
	struct shm_reach reach;

	if (base_likely(r->opcode != IBV_WR_SEND_WITH_INV))
		return IBV_WC_SUCCESS;
	if (!shm_key_read(&x->process->region, x->responder.qp.connection.keys_off, r->imm,
	                  &reach) ||
	    reach.domain != x->responder.qp.connection.domain || reach.qpn != x->responder.qp.qpn)
		return refuse(x, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR,
		              "it has no key that can be invalidated so");
	return IBV_WC_SUCCESS;
}

/* Has the key that the request names, which was checked, name nothing. */
static void do_invalidate(struct hca_exchange *x, const struct shm_request *r,
                          struct shm_arrival *slot)
{
	uint32_t key = r->imm;
	struct shm_key *k =
	        shm_key_at(&x->process->region, x->responder.qp.connection.keys_off, key);

	if (k)
		atomic_compare_exchange_strong_explicit(&k->key, &key, 0, memory_order_seq_cst,
		                                        memory_order_relaxed);
	slot->operation |= SHM_OPERATION_INVALIDATE;
}

/* A message that does not fit into the arrival. */
static int send_large(struct hca_exchange *x, const struct shm_request *r, struct parts *from,
                      const struct receive *rcv)
{
	struct parts to;
	int ret;

	if (!find_parts(x, &x->responder, rcv->entries, rcv->n, r->length, IBV_ACCESS_LOCAL_WRITE,
	                &to))
		return fail_receive(x, r, rcv->slot, rcv->pos, IBV_WC_LOC_PROT_ERR);
	if (to.here || !put_payload(x, r, from, rcv)) {
		if (base_unlikely(x->unplaced) && hca_place_until(x, rcv->pos))
			return give_back(x, rcv->slot, rcv->pos);
		ret = copy_parts(&x->responder, &to, &x->requester, from, r->length);
		if (ret == -ESRCH)
			return give_back(x, rcv->slot, rcv->pos);
		if (ret)
			return fail_receive(x, r, rcv->slot, rcv->pos, IBV_WC_LOC_PROT_ERR);
		fill(x, r, rcv->slot, SHM_OPERATION_PLACED);
	}
	if (base_unlikely(r->opcode == IBV_WR_SEND_WITH_INV))
		do_invalidate(x, r, rcv->slot);
	return publish(x, rcv->slot, rcv->pos);
}

/* The message has been copied. */
static BASE_HOT int finish_small(struct hca_exchange *x, const struct shm_request *r,
                                 const struct receive *rcv)
{
	int ret;

	if (base_unlikely(r->opcode == IBV_WR_SEND_WITH_INV))
		do_invalidate(x, r, rcv->slot);
	ret = publish(x, rcv->slot, rcv->pos);
	if (x->more)
		shm_ring_prefetch_list(&x->view, rcv->pos + 1, x->more, x->in_list);
	else
		shm_ring_prefetch_next(&x->view, SHM_RING_LIST_AHEAD - 1);
	return ret;
}

/* Copies the message, of at most SHM_INLINE bytes; @from: NULL for inline data. */
static BASE_HOT int gather(struct hca_exchange *x, const struct shm_request *r,
                           const struct shm_entry *e, struct parts *from, void *to)
{
	if (base_likely(from))
		return gather_small(x, r, from, to);
	gather_inline(r, e, to);
	return 0;
}

/* Whether nothing but system calls leads to the receive's memory, as far as that is known. */
static bool is_far(struct hca_exchange *x, const struct receive *rcv)
{
	const struct hca_known *k = hca_known_of(&x->responder, rcv->one.lkey);

	return rcv->entries == &rcv->one && !k->here && !(k->access & SHM_KEY_MAPPABLE) &&
	       hca_known_allows(&x->responder, rcv->one.lkey, rcv->one.addr, rcv->one.length,
	                        IBV_ACCESS_LOCAL_WRITE);
}

/* A message that goes to several places, or where none is known. */
static __attribute__((noinline)) int send_elsewhere(struct hca_exchange *x,
                                                    const struct shm_request *r,
                                                    const struct shm_entry *e, struct parts *from,
                                                    const struct receive *rcv)
{
	struct shm_arrival *slot = rcv->slot;
	struct iovec here = { slot->data, r->length };
	struct hca_span source = { .iov = &here, .n = 1 }, target;
	struct parts to = { .here = false };

	if (!is_far(x, rcv) && !find_parts(x, &x->responder, rcv->entries, rcv->n, r->length,
	                                   IBV_ACCESS_LOCAL_WRITE, &to))
		return fail_receive(x, r, slot, rcv->pos, IBV_WC_LOC_PROT_ERR);
	if (base_unlikely(gather(x, r, e, from, slot->data)))
		return give_back(x, slot, rcv->pos); /* the requester is gone */
	if (!to.here) {
		leave_unplaced(x, r, rcv);
		return finish_small(x, r, rcv);
	}
	if (x->unplaced && hca_place_until(x, rcv->pos)) /* where it goes they may go, too */
		return give_back(x, slot, rcv->pos);
	target = span_of(&x->responder, &to);
	hca_memory_copy(&target, &source, r->length);
	fill(x, r, slot, SHM_OPERATION_PLACED);
	return finish_small(x, r, rcv);
}

/*
 * A message that fits into the arrival; @from: NULL for inline data. It goes to its place at once
 * if that is in this process: what comes later, or what becomes of the memory, finds it there.
 */
static BASE_HOT int send_small(struct hca_exchange *x, const struct shm_request *r,
                               const struct shm_entry *e, struct parts *from,
                               const struct receive *rcv)
{
	void *to = NULL;

	if (base_likely(rcv->entries == &rcv->one))
		to = hca_known_at(&x->responder, rcv->one.lkey, rcv->one.addr, rcv->one.length,
		                  IBV_ACCESS_LOCAL_WRITE);
	if (base_unlikely(!to || x->unplaced))
		return send_elsewhere(x, r, e, from, rcv);
	atomic_thread_fence(memory_order_acq_rel); /* as hca_memory_copy_here() */
	if (base_unlikely(gather(x, r, e, from, to)))
		return give_back(x, rcv->slot, rcv->pos); /* the requester is gone */
	fill(x, r, rcv->slot, SHM_OPERATION_PLACED);
	return finish_small(x, r, rcv);
}

static BASE_HOT int send_message(struct hca_exchange *x, const struct shm_request *r,
                                 const struct shm_entry *e)
{
	const bool is_small = r->length <= SHM_INLINE;
	struct parts found, *from = &found;
	struct receive rcv;
	int ret;

	if (is_small && (r->flags & IBV_SEND_INLINE))
		from = NULL;
	else if (base_unlikely(!local_parts(x, r, e, 0, from)))
		return IBV_WC_LOC_PROT_ERR;
	ret = invalidate(x, r);
	if (base_unlikely(ret))
		return ret;
	if (base_unlikely(!take_receive(x, &rcv))) {
		ret = without_receive(x, &rcv);
		if (ret)
			return ret;
	}
	if (base_unlikely(bytes_of(&rcv) < r->length))
		return fail_receive(x, r, rcv.slot, rcv.pos, IBV_WC_LOC_LEN_ERR);
	return base_likely(is_small) ? send_small(x, r, e, from, &rcv)
	                             : send_large(x, r, from, &rcv);
}

/* ---- RDMA WRITE, READ and atomics ---- */

static BASE_COLD int refuse_operation(struct hca_exchange *x)
{
	return refuse(x, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR,
	              "the queue pair does not allow the operation");
}

static BASE_COLD int refuse_access(struct hca_exchange *x)
{
	return refuse(x, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR,
	              "no region with this key allows the access");
}

/* *@reach: what the request's key gives access to, if that is @access. */
static BASE_HOT bool find_remote(struct hca_exchange *x, const struct shm_request *r,
                                 uint32_t access, struct shm_reach *reach)
{
	const struct shm_qp_connection *c = &x->responder.qp.connection;

	if (base_unlikely(!read_key(x, &x->responder, r->rkey, reach) ||
	                  reach->domain != c->domain || (reach->access & access) != access ||
	                  !is_sound(x, &x->responder, r->rkey, reach)))
		return false;
	if (reach->qpn) /* a window that is one queue pair's: receives may not have it */
		return reach->qpn == x->responder.qp.qpn;
	hca_known_keep(hca_known_of(&x->responder, r->rkey), reach);
	return true;
}

/* Where in the responder's memory the request goes; IBV_WC_SUCCESS, or how it is refused. */
static BASE_HOT int remote_part(struct hca_exchange *x, const struct shm_request *r,
                                uint32_t length, uint32_t access, struct parts *to)
{
	struct shm_reach reach;
	uint64_t at = 0;
	void *here;

	if (base_unlikely(!(x->responder.qp.connection.access & access)))
		return refuse_operation(x);
	to->n = 0;
	to->has_null = false;
	to->here = true;
	if (!length) /* the key means nothing: o9-33 */
		return IBV_WC_SUCCESS;
	here = hca_known_at(&x->responder, r->rkey, r->remote_addr, length, access);
	if (base_likely(here)) {
		to->iov[to->n++] = (struct iovec){ here, length };
		return IBV_WC_SUCCESS;
	}
	if (base_unlikely(!find_remote(x, r, access, &reach) ||
	                  !shm_reach_addr(&reach, r->remote_addr, length, &at)))
		return refuse_access(x);
	to->iov[to->n++] =
	        (struct iovec){ place_at(&x->responder, hca_known_of(&x->responder, r->rkey),
		                         &reach, at, length, to),
		                length };
	return IBV_WC_SUCCESS;
}

/* Copies a request's data to or from the responder. */
static BASE_HOT int copy(struct hca_exchange *x, const struct hca_end *to_end, struct parts *to,
                         const struct hca_end *from_end, struct parts *from, uint32_t length)
{
	int ret = length ? copy_parts(to_end, to, from_end, from, length) : 0;

	return base_likely(!ret) ? IBV_WC_SUCCESS : copy_failed(x, ret);
}

/* An RDMA WRITE with immediate data. */
static int write_with_imm(struct hca_exchange *x, const struct shm_request *r, struct parts *from,
                          struct parts *to)
{
	struct receive rcv;
	int ret;

	if (!take_receive(x, &rcv)) {
		ret = without_receive(x, &rcv);
		if (ret)
			return ret;
	}
	ret = copy(x, &x->responder, to, &x->requester, from, r->length);
	if (ret)
		return ret == HCA_WAITS_FOR_PATH
		               ? give_back(x, rcv.slot, rcv.pos)
		               : fail_receive(x, r, rcv.slot, rcv.pos, IBV_WC_LOC_PROT_ERR);
	fill(x, r, rcv.slot, SHM_OPERATION_WRITE);
	return publish(x, rcv.slot, rcv.pos);
}

static BASE_HOT int write_memory(struct hca_exchange *x, const struct shm_request *r,
                                 const struct shm_entry *e)
{
	struct parts from, to;
	int ret;

	if (!local_parts(x, r, e, 0, &from))
		return IBV_WC_LOC_PROT_ERR;
	ret = remote_part(x, r, r->length, IBV_ACCESS_REMOTE_WRITE, &to);
	if (base_unlikely(ret))
		return ret;
	if (base_unlikely(r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM))
		return write_with_imm(x, r, &from, &to);
	return copy(x, &x->responder, &to, &x->requester, &from, r->length);
}

/* Whether the responder has resources for READs and atomic operations. */
static int has_resource(struct hca_exchange *x)
{
	if (base_likely(x->responder.qp.connection.max_dest_rd_atomic))
		return IBV_WC_SUCCESS;
	return refuse(x, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR, "max_dest_rd_atomic is 0");
}

static int read_memory(struct hca_exchange *x, const struct shm_request *r,
                       const struct shm_entry *e)
{
	struct parts from, to;
	int ret;

	if (!local_parts(x, r, e, IBV_ACCESS_LOCAL_WRITE, &to))
		return IBV_WC_LOC_PROT_ERR;
	ret = has_resource(x);
	if (!ret)
		ret = remote_part(x, r, r->length, IBV_ACCESS_REMOTE_READ, &from);
	if (ret)
		return ret;
	return copy(x, &x->requester, &to, &x->responder, &from, r->length);
}

/* Whether the queue pair that a lock names is gone: nobody else will release it. */
static bool is_gone(const struct hca_exchange *x, uint32_t holder)
{
	uint32_t qpn = holder & IB_QPN_MASK;
	const struct shm_qp *qp = &x->process->region.qps[SHM_QP_INDEX(qpn)];

	return holder &&
	       atomic_load_explicit((_Atomic uint32_t *)&qp->qpn, memory_order_relaxed) != qpn;
}

static bool try_atomics(const struct hca_exchange *x, _Atomic uint32_t *lock, uint32_t holder)
{
	/* acquire: pairs with the release in unlock_atomics() */
	return atomic_compare_exchange_strong_explicit(lock, &holder, x->worker,
	                                               memory_order_acquire, memory_order_relaxed);
}

/*
 * The lock of atomic operations on this word of the responder's. The place of a word in its page is
 * the same wherever the page is mapped. NULL: it is not to be had now. Who has it may be stopped:
 * that is no failure of this request, which waits.
 */
static _Atomic uint32_t *lock_atomics(struct hca_exchange *x, const struct parts *word)
{
	struct shm_keys *keys = shm_payload_at(&x->process->region,
	                                       x->responder.qp.connection.keys_off, sizeof(*keys));
	uintptr_t at = (uintptr_t)word->iov[0].iov_base;
	_Atomic uint32_t *lock = keys ? &keys->atomics[at / 8 % SHM_ATOMIC_LOCKS] : NULL;
	uint32_t holder;

	for (unsigned tries = 0; lock && tries < ATOMICS_TRIES; tries++) {
		if (try_atomics(x, lock, 0))
			return lock;
		if (tries % 64)
			base_relax();
		else
			sched_yield();
	}
	holder = lock ? atomic_load_explicit(lock, memory_order_relaxed) : 0;
	return is_gone(x, holder) && try_atomics(x, lock, holder) ? lock : NULL;
}

static void unlock_atomics(const struct hca_exchange *x, _Atomic uint32_t *lock)
{
	uint32_t worker = x->worker;

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

/* Reads the word, and writes what it becomes. Other requests are kept out. */
static int change_word(struct hca_exchange *x, const struct shm_request *r, struct parts *at,
                       uint64_t *old)
{
	uint64_t next;
	struct iovec here = { old, sizeof(*old) }, there = at->iov[0];
	struct hca_span mine = { .iov = &here, .n = 1 };
	struct hca_span word = span_of(&x->responder, at);
	int ret;

	word.iov = &there;
	ret = hca_memory_copy(&mine, &word, sizeof(*old));
	if (ret)
		return ret;
	next = result_of(r, *old);
	here = (struct iovec){ &next, sizeof(next) };
	mine = (struct hca_span){ .iov = &here, .n = 1 };
	word = span_of(&x->responder, at);
	return next == *old ? 0 : hca_memory_copy(&word, &mine, sizeof(next));
}

static int change_memory(struct hca_exchange *x, const struct shm_request *r,
                         const struct shm_entry *e)
{
	struct hca_span source, target;
	_Atomic uint32_t *lock;
	struct parts word, to;
	struct iovec here;
	uint64_t old;
	int ret;

	if (!local_parts(x, r, e, IBV_ACCESS_LOCAL_WRITE, &to))
		return IBV_WC_LOC_PROT_ERR;
	if (r->remote_addr % sizeof(old))
		return refuse(x, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR,
		              "the address is no multiple of 8");
	ret = has_resource(x);
	if (!ret)
		ret = remote_part(x, r, sizeof(old), IBV_ACCESS_REMOTE_ATOMIC, &word);
	if (ret)
		return ret;
	lock = lock_atomics(x, &word);
	if (!lock)
		return HCA_WAITS_FOR_LOCK;
	ret = change_word(x, r, &word, &old);
	unlock_atomics(x, lock);
	if (ret)
		return copy_failed(x, ret);
	here = (struct iovec){ &old, sizeof(old) };
	source = (struct hca_span){ .iov = &here, .n = 1 };
	target = span_of(&x->requester, &to);
	return hca_memory_copy(&target, &source, sizeof(old)) ? IBV_WC_LOC_PROT_ERR
	                                                      : IBV_WC_SUCCESS;
}

/* ---- atomic WRITE and FLUSH: annex A19 ---- */

/* Stores the word at once, if this process can: then nobody sees a part of it. */
static int store_word(struct hca_exchange *x, struct parts *at, uint64_t word)
{
	struct hca_span source, target = span_of(&x->responder, at);
	struct iovec here = { &word, sizeof(word) };

	if (at->here && (uintptr_t)at->iov[0].iov_base % sizeof(word) == 0) {
		/* release: what was written before is seen by who reads the word */
		atomic_store_explicit((_Atomic uint64_t *)at->iov[0].iov_base, word,
		                      memory_order_release);
		return 0;
	}
	source = (struct hca_span){ .iov = &here, .n = 1 };
	return hca_memory_copy(&target, &source, sizeof(word));
}

static int write_word(struct hca_exchange *x, const struct shm_request *r,
                      const struct shm_entry *e)
{
	uint64_t word = r->swap;
	struct iovec here = { &word, sizeof(word) };
	struct hca_span target = { .iov = &here, .n = 1 }, source;
	struct parts from, to;
	_Atomic uint32_t *lock;
	int ret;

	if (!local_parts(x, r, e, 0, &from))
		return IBV_WC_LOC_PROT_ERR;
	if (r->remote_addr % sizeof(word))
		return refuse(x, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR,
		              "the address is no multiple of 8");
	ret = has_resource(x);
	if (!ret)
		ret = remote_part(x, r, sizeof(word), IBV_ACCESS_REMOTE_WRITE, &to);
	if (ret)
		return ret;
	source = span_of(&x->requester, &from);
	ret = r->n_entries ? hca_memory_copy(&target, &source, sizeof(word)) : 0;
	if (ret)
		return ret == -ESRCH ? HCA_WAITS_FOR_PATH : IBV_WC_LOC_PROT_ERR;
	/* no other atomic operation may write between our read of the word and our write */
	lock = lock_atomics(x, &to);
	if (!lock)
		return HCA_WAITS_FOR_LOCK;
	ret = store_word(x, &to, word);
	unlock_atomics(x, lock);
	return ret ? copy_failed(x, ret) : IBV_WC_SUCCESS;
}

/* What was written before lies in memory already, for all to see. So nothing is left to do but to
 * check whether the requester may ask for it. */
static int flush(struct hca_exchange *x, const struct shm_request *r)
{
	uint8_t type = hca_flush_type(r->swap);
	uint32_t access = (type & HCA_FLUSH_GLOBAL ? HCA_ACCESS_FLUSH_GLOBAL : 0) |
	                  (type & HCA_FLUSH_PERSISTENT ? HCA_ACCESS_FLUSH_PERSISTENT : 0);
	struct shm_reach reach;
	uint64_t at;
	int ret = has_resource(x);

	if (ret)
		return ret;
	if ((x->responder.qp.connection.access & access) != access)
		return refuse_operation(x);
	if (!find_remote(x, r, access, &reach) ||
	    (hca_flush_level(r->swap) == HCA_FLUSH_RANGE &&
	     !shm_reach_addr(&reach, r->remote_addr, r->compare_add, &at)))
		return refuse_access(x);
	atomic_thread_fence(memory_order_seq_cst);
	return IBV_WC_SUCCESS;
}

/* ---- all ---- */

static BASE_HOT bool is_send(const struct shm_request *r)
{
	return r->opcode == IBV_WR_SEND || r->opcode == IBV_WR_SEND_WITH_IMM ||
	       r->opcode == IBV_WR_SEND_WITH_INV;
}

static BASE_HOT int dispatch(struct hca_exchange *x, const struct shm_request *r,
                             const struct shm_entry *entries)
{
	if (base_likely(is_send(r)))
		return send_message(x, r, entries);
	if (base_unlikely(x->unplaced) && hca_place_sends(x))
		return HCA_WAITS_FOR_PATH;
	switch (r->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return write_memory(x, r, entries);
	case IBV_WR_RDMA_READ:
		return read_memory(x, r, entries);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return change_memory(x, r, entries);
	case HCA_WR_ATOMIC_WRITE:
		return write_word(x, r, entries);
	case HCA_WR_FLUSH:
		return flush(x, r);
	default:
		return IBV_WC_LOC_QP_OP_ERR;
	}
}

int hca_exchange_check_local(struct hca_exchange *x, const struct shm_request *r,
                             const struct shm_entry *entries)
{
	bool written = hca_operation(r->opcode) & HCA_OP_BACK;
	struct parts parts;

	return local_parts(x, r, entries, written ? IBV_ACCESS_LOCAL_WRITE : 0, &parts)
	               ? IBV_WC_SUCCESS
	               : IBV_WC_LOC_PROT_ERR;
}

/* If the first message came before the responder moved to RTS, it is told, once. Whether it is in
 * RTS by now is in the mark, not in its record. */
static BASE_COLD void establish(struct hca_exchange *x)
{
	uint32_t qpn = x->responder.qp.qpn;
	struct shm_connection *c = &x->process->region.connections[SHM_QP_INDEX(qpn)];
	struct control_raise_event req = { .type = IBV_EVENT_COMM_EST, .element = qpn };

	if (!atomic_exchange_explicit(&c->established, 1, memory_order_acq_rel))
		hca_request(x->process, CONTROL_RAISE_EVENT, &req, sizeof(req));
	x->responder.qp.state = IBV_QPS_RTS; /* our copy: it need not be asked again */
	x->tells = wants_to_know(&x->responder.qp);
}

/* Counts the READ or WRITE for the responder. */
static void count_remote(struct hca_exchange *x, uint8_t opcode, uint32_t bytes, int outcome)
{
	struct shm_connection *c =
	        &x->process->region.connections[SHM_QP_INDEX(x->responder.qp.qpn)];
	struct shm_remote *n = &c->remote_writes;

	if (opcode == IBV_WR_RDMA_READ)
		n = &c->remote_reads;
	else if (opcode != IBV_WR_RDMA_WRITE && opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
		return;
	/* release: all that was done comes before; pairs with count_remote() in comp_counter.c */
	if (outcome == IBV_WC_SUCCESS) {
		atomic_fetch_add_explicit(&n->bytes, bytes, memory_order_relaxed);
		atomic_fetch_add_explicit(&n->requests, 1, memory_order_release);
	} else if (outcome == DROPPED || outcome == IBV_WC_REM_INV_REQ_ERR ||
	           outcome == IBV_WC_REM_ACCESS_ERR || outcome == IBV_WC_REM_OP_ERR) {
		atomic_fetch_add_explicit(&n->errors, 1, memory_order_release);
	}
}

/* What rarely follows from what was done. Returns the requester's outcome. */
static BASE_COLD int see_to(struct hca_exchange *x, const struct shm_request *r, int outcome)
{
	if (x->responder.qp.state == IBV_QPS_RTR && outcome == IBV_WC_SUCCESS)
		establish(x);
	if (x->responder.qp.flags & SHM_QP_COUNTS_REMOTE)
		count_remote(x, r->opcode, r->length, outcome);
	if (outcome != DROPPED)
		return outcome;
	HCA_COUNT(x->process, x->responder.qp.port, uc_refused);
	return IBV_WC_SUCCESS;
}

/* The request names no shared receive queue of the target's domain. */
static BASE_COLD int refuse_srq(struct hca_exchange *x, const struct shm_request *r,
                                const struct shm_entry *entries)
{
	int outcome = hca_exchange_check_local(x, r, entries);

	return outcome ? outcome
	               : refuse(x, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR,
	                        "its domain has no such shared receive queue");
}

int hca_exchange(struct hca_exchange *x, const struct shm_request *r,
                 const struct shm_entry *entries)
{
	int outcome;

	if (base_unlikely(!hca_exchange_is_there(x))) {
		outcome = hca_exchange_check_local(x, r, entries);
		return outcome ? outcome : HCA_WAITS_FOR_PATH;
	}
	outcome = base_unlikely(x->is_xrc && !x->has_srq) ? refuse_srq(x, r, entries)
	                                                  : dispatch(x, r, entries);
	return base_likely(!(outcome | x->tells)) ? IBV_WC_SUCCESS : see_to(x, r, outcome);
}
