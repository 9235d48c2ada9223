/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Carrying out a request between connected queue pairs: see exchange.h. Here is the requester's
 * half, and the copy in memory between the two.
 *
 * The order of the checks is that of the specification, volume 1, sections 9.7.4 and 9.9: first the
 * requester's own memory, then whether there is a way, then what the responder checks.
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "hca/link/payload.h"
#include "hca/queue/sender.h"
#include "hca/transport/exchange.h"
#include "hca/transport/place.h"

static struct shm_connection *connection_of(const struct hca_exchange *x, uint32_t qpn)
{
	return shm_connection_at(&x->process->region, SHM_QP_INDEX(qpn));
}

bool hca_exchange_psns_match(const struct hca_exchange *x)
{
	_Atomic uint32_t *sent = &connection_of(x, x->requester.qp.qpn)->sq_psn;
	_Atomic uint32_t *expected = &connection_of(x, x->responder.end.qp.qpn)->rq_psn;
	/* relaxed: RTR comes before the record that says so, RTS before the first request */
	uint32_t first = atomic_load_explicit(sent, memory_order_relaxed);
	uint32_t awaited = atomic_load_explicit(expected, memory_order_relaxed);

	if (x->requester.qp.type == IBV_QPT_UC)
		return true;
	if (first != awaited && first != SHM_PSN_ANY && awaited != SHM_PSN_ANY)
		return false;
	/* from here on, one that begins anew continues where nobody has counted */
	atomic_store_explicit(sent, SHM_PSN_ANY, memory_order_relaxed);
	atomic_store_explicit(expected, SHM_PSN_ANY, memory_order_relaxed);
	return true;
}

bool hca_exchange_leads_back(const struct hca_exchange *x)
{
	const struct shm_qp *to = &x->responder.end.qp;
	const struct shm_port *home = shm_port_at(&x->process->region, x->requester.qp.port);

	/* a port that is not ready may get the LID yet */
	return x->requester.qp.type == IBV_QPT_UC || home->link_layer == IBV_LINK_LAYER_ETHERNET ||
	       home->state != IB_PORT_ACTIVE ||
	       to->connection.dlid >> home->lmc == home->lid >> home->lmc;
}

/* Whether the responder listens to this requester, and both can be reached. */
static bool is_match(const struct hca_exchange *x)
{
	const struct shm_qp *from = &x->requester.qp, *to = &x->responder.end.qp;

	return to->qpn == from->connection.dest_qpn && (to->flags & SHM_QP_RECEIVES) &&
	       to->connection.dest_qpn == from->qpn &&
	       to->type == (x->responder.is_xrc ? (uint8_t)IBV_QPT_XRC_RECV : from->type) &&
	       ib_pkey_match(to->pkey, from->pkey) && x->responder.end.memory &&
	       x->requester.memory && hca_exchange_leads_back(x) && hca_exchange_psns_match(x);
}

/* The smaller path MTU in bytes, if the two ends do not have the same; else 0. */
static uint32_t smaller_mtu(const struct hca_exchange *x)
{
	uint32_t from = atomic_load_explicit(&connection_of(x, x->requester.qp.qpn)->path_mtu,
	                                     memory_order_relaxed);
	uint32_t to = atomic_load_explicit(&connection_of(x, x->responder.end.qp.qpn)->path_mtu,
	                                   memory_order_relaxed);
	uint32_t smaller = from < to ? from : to;

	if (from == to || smaller - 1 >= IBV_MTU_4096)
		return 0;
	return 128u << smaller;
}

void hca_exchange_prepare(struct hca_exchange *x)
{
	struct hca_responder *to = &x->responder;

	/* in the name of the thread that does it: a claim of the responder's thread stays its own
	 * if the requester dies, and a claim of a dead requester is given up */
	hca_responder_prepare(to, x->requester.qp.qpn, to->worker & IB_QPN_MASK);
	x->is_match = is_match(x);
	x->longest = x->is_match ? smaller_mtu(x) : 0;
	x->is_match = x->is_match && !x->longest;
	hca_end_prepare(&x->requester, x->process, x->requester.qp.qpn, to->worker);
	hca_end_prepare(&to->end, x->process, x->requester.qp.connection.dest_qpn, to->worker);
}

/* The requester's memory that @r names. */
static BASE_HOT bool local_parts(struct hca_exchange *x, const struct shm_request *r,
                                 const struct shm_entry *e, uint32_t access,
                                 struct hca_parts *parts)
{
	return hca_parts_of_request(&x->requester, r, e, access, parts);
}

/* The responder refuses: what the requester is told. If a record changed meanwhile, the keys may be
 * gone for that reason, and there is no responder any more. */
static BASE_COLD int settle_refusal(struct hca_exchange *x)
{
	if (x->responder.end.qp.type != IBV_QPT_UC && !hca_exchange_is_current(x))
		return HCA_WAITS_FOR_PATH;
	return hca_responder_fail(&x->responder);
}

/* ---- SEND ---- */

/* Copies a message of at most SHM_INLINE bytes. 0 or as hca_memory_copy(). */
static BASE_HOT int gather_small(struct hca_exchange *x, const struct shm_request *r,
                                 struct hca_parts *from, uint8_t *to)
{
	if (base_unlikely(!from->here || from->has_null)) {
		struct iovec here = { to, r->length };
		struct hca_span target = { .iov = &here, .n = 1 };
		struct hca_span source = hca_parts_span(&x->requester, from);

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
                           const struct hca_receive *rcv)
{
	struct shm_arrival *slot = rcv->slot;

	hca_responder_fill(&x->responder, r, slot, SHM_OPERATION_SEND);
	/* that of a shared receive queue says so elsewhere */
	slot->receive.addr = rcv->one.addr;
	slot->receive.length = rcv->one.length;
	slot->receive.lkey = rcv->one.lkey;
	if (!rcv->is_one)
		slot->operation |= SHM_OPERATION_MANY;
	hca_place_note(&x->responder, rcv->pos);
}

/* Writes the message to payload memory, from which the responder copies it: twice is faster than
 * by a system call. False: it is too long for that, or there is none, or it is not the requester's
 * thread, whose memory that is, or parts are no memory. */
static bool put_payload(struct hca_exchange *x, const struct shm_request *r, struct hca_parts *from,
                        const struct hca_receive *rcv)
{
	struct hca_payload *p;
	char *to;

	if (!x->sender || r->length > SHM_PAYLOAD_MOST || from->has_null)
		return false;
	p = hca_payload_get_row(x->sender, r->length);
	if (!p)
		return false;
	to = shm_data_at(&x->process->region, p->off);
	for (unsigned i = 0; i < from->n; i++) {
		base_copy_past_cache(to, from->iov[i].iov_base, from->iov[i].iov_len);
		to += from->iov[i].iov_len;
	}
	leave_unplaced(x, r, rcv);
	rcv->slot->flags |= SHM_ARRIVAL_PAYLOAD;
	rcv->slot->payload_off = p->off;
	hca_payload_hold_row(p, r->length,
	                     &(struct hca_payload_hold){ .ring = x->responder.view.ring,
	                                                 .gen = x->responder.end.qp.ring_gen,
	                                                 .pos = rcv->pos });
	return true;
}

/* A message that does not fit into the arrival. */
static int send_large(struct hca_exchange *x, const struct shm_request *r, struct hca_parts *from,
                      const struct hca_receive *rcv)
{
	struct hca_parts to;
	int ret;

	if (!hca_parts_find(&x->responder.end, hca_receive_entries(rcv), rcv->n, r->length,
	                    IBV_ACCESS_LOCAL_WRITE, &to))
		return hca_responder_fail_receive(&x->responder, r, rcv->slot, rcv->pos,
		                                  IBV_WC_LOC_PROT_ERR);
	if (to.here || !put_payload(x, r, from, rcv)) {
		if (base_unlikely(x->responder.unplaced) &&
		    hca_place_until(&x->responder, rcv->pos))
			return hca_responder_give_back(&x->responder, rcv->slot, rcv->pos);
		ret = hca_parts_copy(&x->responder.end, &to, &x->requester, from, r->length);
		if (ret == -ESRCH)
			return hca_responder_give_back(&x->responder, rcv->slot, rcv->pos);
		if (ret)
			return hca_responder_fail_receive(&x->responder, r, rcv->slot, rcv->pos,
			                                  IBV_WC_LOC_PROT_ERR);
		hca_responder_fill(&x->responder, r, rcv->slot, SHM_OPERATION_PLACED);
	}
	return hca_responder_end_send(&x->responder, r, rcv->slot, rcv->pos);
}

/* The message has been copied. */
static BASE_HOT int finish_small(struct hca_exchange *x, const struct shm_request *r,
                                 const struct hca_receive *rcv)
{
	int ret = hca_responder_end_send(&x->responder, r, rcv->slot, rcv->pos);

	hca_exchange_fetch_ahead(x, rcv, r->length);
	return ret;
}

/* Copies the message, of at most SHM_INLINE bytes; @from: NULL for inline data. */
static BASE_HOT int gather(struct hca_exchange *x, const struct shm_request *r,
                           const struct shm_entry *e, struct hca_parts *from, void *to)
{
	if (base_likely(from))
		return gather_small(x, r, from, to);
	hca_exchange_gather(e, r->n_entries, to);
	return 0;
}

/* Whether nothing but system calls leads to the first @length bytes of the receive's memory, as far
 * as that is known. */
static bool is_far(struct hca_exchange *x, const struct hca_receive *rcv, uint32_t length)
{
	const struct hca_known *k = hca_known_of(&x->responder.end, rcv->one.lkey);

	return rcv->is_one && !k->here && !(k->access & SHM_KEY_MAPPABLE) &&
	       hca_known_allows(&x->responder.end, rcv->one.lkey, rcv->one.addr, length,
	                        IBV_ACCESS_LOCAL_WRITE);
}

/* A message that goes to several places, or where none is known. */
static __attribute__((noinline)) int
send_elsewhere(struct hca_exchange *x, const struct shm_request *r, const struct shm_entry *e,
               struct hca_parts *from, const struct hca_receive *rcv)
{
	struct shm_arrival *slot = rcv->slot;
	struct iovec here = { slot->data, r->length };
	struct hca_span source = { .iov = &here, .n = 1 }, target;
	struct hca_parts to; /* large: not cleared */

	to.here = false;
	if (!is_far(x, rcv, r->length) &&
	    !hca_parts_find(&x->responder.end, hca_receive_entries(rcv), rcv->n, r->length,
	                    IBV_ACCESS_LOCAL_WRITE, &to))
		return hca_responder_fail_receive(&x->responder, r, rcv->slot, rcv->pos,
		                                  IBV_WC_LOC_PROT_ERR);
	if (base_unlikely(gather(x, r, e, from, slot->data)))
		return hca_responder_give_back(&x->responder, rcv->slot,
		                               rcv->pos); /* the requester is gone */
	if (!to.here) {
		leave_unplaced(x, r, rcv);
		return finish_small(x, r, rcv);
	}
	if (x->responder.unplaced &&
	    hca_place_until(&x->responder, rcv->pos)) /* where it goes they may go, too */
		return hca_responder_give_back(&x->responder, rcv->slot, rcv->pos);
	target = hca_parts_span(&x->responder.end, &to);
	hca_memory_copy(&target, &source, r->length);
	hca_responder_fill(&x->responder, r, slot, SHM_OPERATION_PLACED);
	return finish_small(x, r, rcv);
}

/*
 * A message that fits into the arrival; @from: NULL for inline data. It goes to its place at once
 * if that is in this process: later requests find it there, and so does any later use of the
 * memory.
 */
static BASE_HOT int send_small(struct hca_exchange *x, const struct shm_request *r,
                               const struct shm_entry *e, struct hca_parts *from,
                               const struct hca_receive *rcv)
{
	void *to = hca_exchange_place_of(&x->responder, rcv, r->length);

	if (base_unlikely(!to))
		return send_elsewhere(x, r, e, from, rcv);
	atomic_thread_fence(memory_order_acq_rel); /* as hca_memory_copy_here() */
	if (base_unlikely(gather(x, r, e, from, to)))
		return hca_responder_give_back(&x->responder, rcv->slot,
		                               rcv->pos); /* the requester is gone */
	hca_responder_fill(&x->responder, r, rcv->slot, SHM_OPERATION_PLACED);
	return finish_small(x, r, rcv);
}

static BASE_HOT int send_message(struct hca_exchange *x, const struct shm_request *r,
                                 const struct shm_entry *e)
{
	const bool is_small = r->length <= SHM_INLINE;
	struct hca_parts found, *from = &found;
	struct hca_receive rcv;
	int ret;

	if (is_small && (r->flags & IBV_SEND_INLINE))
		from = NULL;
	else if (base_unlikely(!local_parts(x, r, e, 0, from)))
		return IBV_WC_LOC_PROT_ERR;
	ret = hca_responder_begin_send(&x->responder, r, &rcv);
	if (base_unlikely(ret))
		return ret;
	return base_likely(is_small) ? send_small(x, r, e, from, &rcv)
	                             : send_large(x, r, from, &rcv);
}

/* ---- RDMA WRITE, READ and atomics ---- */

/* Copies a request's data to or from the responder. */
static BASE_HOT int copy(struct hca_exchange *x, const struct hca_end *to_end, struct hca_parts *to,
                         const struct hca_end *from_end, struct hca_parts *from, uint32_t length)
{
	int ret = length ? hca_parts_copy(to_end, to, from_end, from, length) : 0;

	return base_likely(!ret) ? IBV_WC_SUCCESS : hca_responder_copy_failed(&x->responder, ret);
}

/* An RDMA WRITE with immediate data. */
static int write_with_imm(struct hca_exchange *x, const struct shm_request *r,
                          struct hca_parts *from, struct hca_parts *to)
{
	struct hca_responder *t = &x->responder;
	struct hca_receive rcv;
	int ret = hca_responder_take(t, &rcv);

	if (ret)
		return ret;
	ret = copy(x, &t->end, to, &x->requester, from, r->length);
	if (ret == HCA_REFUSED)
		ret = settle_refusal(x);
	if (ret)
		return ret == HCA_WAITS_FOR_PATH
		               ? hca_responder_give_back(t, rcv.slot, rcv.pos)
		               : hca_responder_fail_receive(t, r, rcv.slot, rcv.pos,
		                                            IBV_WC_LOC_PROT_ERR);
	hca_responder_fill(t, r, rcv.slot, SHM_OPERATION_WRITE);
	return hca_responder_publish(t, rcv.slot, rcv.pos);
}

static int write_memory(struct hca_exchange *x, const struct shm_request *r,
                        const struct shm_entry *e)
{
	struct hca_parts from, to;
	int ret;

	if (!local_parts(x, r, e, 0, &from))
		return IBV_WC_LOC_PROT_ERR;
	ret = hca_responder_begin_rdma(&x->responder, r, r->length, IBV_ACCESS_REMOTE_WRITE, &to);
	if (base_unlikely(ret))
		return ret;
	if (base_unlikely(r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM))
		return write_with_imm(x, r, &from, &to);
	return copy(x, &x->responder.end, &to, &x->requester, &from, r->length);
}

static int read_memory(struct hca_exchange *x, const struct shm_request *r,
                       const struct shm_entry *e)
{
	struct hca_parts from, to;
	int ret;

	if (!local_parts(x, r, e, IBV_ACCESS_LOCAL_WRITE, &to))
		return IBV_WC_LOC_PROT_ERR;
	ret = hca_responder_begin_read(&x->responder, r, &from);
	if (ret)
		return ret;
	return copy(x, &x->requester, &to, &x->responder.end, &from, r->length);
}

static int change_memory(struct hca_exchange *x, const struct shm_request *r,
                         const struct shm_entry *e)
{
	struct hca_parts word, from, to;
	uint64_t old;
	int ret;

	if (!local_parts(x, r, e, IBV_ACCESS_LOCAL_WRITE, &to))
		return IBV_WC_LOC_PROT_ERR;
	ret = hca_responder_begin_word(&x->responder, r, IBV_ACCESS_REMOTE_ATOMIC, &word);
	if (!ret)
		ret = hca_responder_change(&x->responder, r, &word, &old);
	if (ret)
		return ret;
	hca_parts_here(&from, &old, sizeof(old));
	ret = hca_parts_copy(&x->requester, &to, &x->requester, &from, sizeof(old));
	return ret ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
}

/* Atomic WRITE. */
static int write_word(struct hca_exchange *x, const struct shm_request *r,
                      const struct shm_entry *e)
{
	uint64_t value = r->swap;
	struct iovec here = { &value, sizeof(value) };
	struct hca_span target = { .iov = &here, .n = 1 }, source;
	struct hca_parts from, word;
	int ret;

	if (!local_parts(x, r, e, 0, &from))
		return IBV_WC_LOC_PROT_ERR;
	ret = hca_responder_begin_word(&x->responder, r, IBV_ACCESS_REMOTE_WRITE, &word);
	if (ret)
		return ret;
	source = hca_parts_span(&x->requester, &from);
	ret = r->n_entries ? hca_memory_copy(&target, &source, sizeof(value)) : 0;
	if (ret)
		return ret == -ESRCH ? HCA_WAITS_FOR_PATH : IBV_WC_LOC_PROT_ERR;
	return hca_responder_store(&x->responder, &word, value);
}

/* ---- all ---- */

static int flush(struct hca_exchange *x, const struct shm_request *r, const struct shm_entry *e)
{
	(void)e;
	return hca_responder_flush(&x->responder, r);
}

/* Carries out an operation that is no SEND. */
static BASE_HOT int carry_out(struct hca_exchange *x, const struct shm_request *r,
                              const struct shm_entry *entries)
{
#define OPERATION(opcode, name, completion, calls, carry_out, properties) [opcode] = carry_out,
	static int (*const table[])(struct hca_exchange * x, const struct shm_request *r,
	                            const struct shm_entry *entries) = {
#include "hca/process/operation.def"
	};
#undef OPERATION

	if (base_unlikely(r->opcode >= ARRAY_SIZE(table) || !table[r->opcode]))
		return IBV_WC_LOC_QP_OP_ERR;
	return table[r->opcode](x, r, entries);
}

static BASE_HOT int dispatch(struct hca_exchange *x, const struct shm_request *r,
                             const struct shm_entry *entries)
{
	if (base_likely(hca_operation(r->opcode) & HCA_OP_SEND))
		return send_message(x, r, entries);
	if (base_unlikely(x->responder.unplaced) && hca_place_sends(&x->responder))
		return HCA_WAITS_FOR_PATH;
	return carry_out(x, r, entries);
}

int hca_exchange_check_local(struct hca_exchange *x, const struct shm_request *r,
                             const struct shm_entry *entries)
{
	bool written = hca_operation(r->opcode) & HCA_OP_BACK;
	struct hca_parts parts;

	return local_parts(x, r, entries, written ? IBV_ACCESS_LOCAL_WRITE : 0, &parts)
	               ? IBV_WC_SUCCESS
	               : IBV_WC_LOC_PROT_ERR;
}

/* The rare consequences of a request. Returns the requester's outcome. */
static BASE_COLD int see_to(struct hca_exchange *x, const struct shm_request *r, int outcome)
{
	if (outcome == HCA_REFUSED)
		outcome = settle_refusal(x);
	if (x->responder.tells)
		hca_responder_tell(&x->responder, r, outcome);
	if (outcome != HCA_DROPPED)
		return outcome;
	HCA_COUNT(x->process, x->responder.end.qp.port, uc_refused);
	return IBV_WC_SUCCESS;
}

/* The request names no shared receive queue of the target's domain. */
static BASE_COLD int refuse_srq(struct hca_exchange *x, const struct shm_request *r,
                                const struct shm_entry *entries)
{
	int outcome = hca_exchange_check_local(x, r, entries);

	return outcome ? outcome
	               : hca_responder_refuse(&x->responder, HCA_NAK_INVALID_REQUEST,
	                                      "its domain has no such shared receive queue");
}

/* The responder is not there, or takes short requests only, as which this one may pass: 0. */
static BASE_COLD int stop(struct hca_exchange *x, const struct shm_request *r,
                          const struct shm_entry *entries)
{
	int outcome = hca_exchange_check_local(x, r, entries);

	if (outcome)
		return outcome;
	if (!x->longest || !hca_responder_is_well(&x->responder))
		return HCA_WAITS_FOR_PATH;
	if (r->length <= x->longest)
		return 0;
	if (hca_operation(r->opcode) & HCA_OP_READ)
		return IBV_WC_BAD_RESP_ERR;
	return hca_responder_refuse(&x->responder, HCA_NAK_INVALID_REQUEST,
	                            "path_mtu of the two ends differs, and the message is longer "
	                            "than the smaller one");
}

int hca_exchange_send_taken(struct hca_exchange *x, const struct shm_request *r,
                            const struct shm_entry *entries, const struct hca_receive *rcv)
{
	int outcome = base_unlikely(hca_receive_bytes(rcv) < r->length)
	                      ? hca_responder_fail_receive(&x->responder, r, rcv->slot, rcv->pos,
	                                                   IBV_WC_LOC_LEN_ERR)
	                      : send_elsewhere(x, r, entries, NULL, rcv);

	return base_likely(!outcome) ? IBV_WC_SUCCESS : see_to(x, r, outcome);
}

int hca_exchange(struct hca_exchange *x, const struct shm_request *r,
                 const struct shm_entry *entries)
{
	int outcome;

	if (base_unlikely(!hca_exchange_is_there(x))) {
		outcome = stop(x, r, entries);
		if (outcome)
			return outcome == HCA_REFUSED ? see_to(x, r, outcome) : outcome;
	}
	outcome = base_unlikely(x->responder.is_xrc && !x->responder.has_srq)
	                  ? refuse_srq(x, r, entries)
	                  : dispatch(x, r, entries);
	return base_likely(!(outcome | x->responder.tells)) ? IBV_WC_SUCCESS
	                                                    : see_to(x, r, outcome);
}
