/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire, the responder's half: packets of requests are checked (section 9.7.4 of the
 * specification; section 9.8.2 for UC), carried out by the responder of all connected queue pairs,
 * and answered. See wire.h.
 *
 * READs and atomic operations are answered in order, and an acknowledgement says that all before is
 * done: so responses that wait to be sent come first. Requests that come again are acknowledged
 * again; a READ is carried out again; an atomic operation is answered from what it found, an atomic
 * WRITE and a FLUSH by a READ response without data, as the first time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "hca/transport/wire.h"

/* So many packets of responses are sent at one time; then other queue pairs have their turn. */
#define RESPONSES_MOST 64
/* The syndrome that tells the peer of a gap before its packet. */
#define GAP WIRE_AETH_SYNDROME(WIRE_AETH_NAK, WIRE_NAK_SEQUENCE)

/* Besides what the responder says becomes of a packet: the worker has lost the queue pair. */
#define LOST (-100)

static const uint8_t nak_codes[HCA_NAKS] = {
	[HCA_NAK_INVALID_REQUEST] = WIRE_NAK_INVALID_REQUEST,
	[HCA_NAK_REMOTE_ACCESS] = WIRE_NAK_REMOTE_ACCESS,
	[HCA_NAK_REMOTE_OPERATION] = WIRE_NAK_REMOTE_OPERATION,
};

static bool is_uc(const struct hca_wire *w)
{
	return w->end.qp.type == IBV_QPT_UC;
}

static uint32_t mtu_of(const struct hca_wire *w)
{
	return 1u << w->path.mtu_shift;
}

static void move_expected(struct shm_wire *s, uint32_t n)
{
	const uint32_t before = s->in.expected;

	s->in.expected = wire_psn_add(before, n);
	s->in.expected_rounds += s->in.expected < before;
}

/* ---- credits (section 9.7.7.2) ---- */

static uint32_t load(const _Atomic uint32_t *v)
{
	return atomic_load_explicit((_Atomic uint32_t *)v, memory_order_acquire);
}

/* Receives that the next messages will find. Receives are taken with our lock held, so the tail is
 * no mere hint; only behind a reset it may be of before. Others can write nonsense there. */
static uint32_t count_receives(const struct hca_wire *w)
{
	const struct shm_ring_view *v = &w->responder.view;
	uint32_t tail = load(&v->ring->tail), consumed = load(&v->ring->consumed), n;

	n = load(&v->ring->posted) - ((int32_t)(consumed - tail) > 0 ? consumed : tail);
	return n <= v->mask + 1 ? n : 0;
}

/* The same when the peer hears that there are none: who posts some tells it. */
static uint32_t await_receives(struct hca_wire *w)
{
	/* seq_cst, and a barrier: before the look; pairs with post_connected() in rq.c */
	atomic_store_explicit(&w->responder.view.ring->waited_for, 1, memory_order_seq_cst);
	base_fence_behind_seq_cst();
	return count_receives(w);
}

/* The syndrome of what says that all is well. Receives that are shared have no credits. */
static uint8_t acknowledged(struct hca_wire *w)
{
	uint32_t n;

	if (w->responder.end.qp.connection.srq)
		return WIRE_AETH_SYNDROME(WIRE_AETH_ACK, WIRE_AETH_NO_CREDITS);
	n = count_receives(w);
	return WIRE_AETH_SYNDROME(WIRE_AETH_ACK, wire_credits_encode(n ? n : await_receives(w)));
}

/* ---- receives ---- */

/* The receive that the message under way uses. False: it is not ours any more. */
static bool find_receive(struct hca_wire *w, struct hca_receive *rcv)
{
	struct hca_responder *t = &w->responder;
	const struct shm_qp_connection *c = &t->end.qp.connection;
	uint64_t index, off = c->entries_off;
	uint32_t max_sge = c->max_recv_sge;

	rcv->pos = w->shm->in.claimed;
	rcv->slot = shm_ring_at(&t->view, rcv->pos);
	if (atomic_load_explicit(&rcv->slot->state, memory_order_acquire) !=
	    shm_ring_claimed(&t->view, rcv->pos))
		return false;
	index = rcv->pos & t->view.mask;
	if (c->srq) {
		index = shm_receive_number(rcv->slot->class_flow);
		off = t->srq.entries_off;
		max_sge = t->srq.max_sge;
	}
	hca_responder_read_credit(t, rcv->slot, off + index * max_sge * sizeof(rcv->one), max_sge,
	                          rcv);
	return true;
}

/* ---- answers ---- */

/* A packet without payload. @value: what an atomic operation found. */
static void send_answer(struct hca_wire *w, enum wire_operation operation, uint32_t psn,
                        struct wire_aeth aeth, uint64_t value)
{
	struct wire_headers h = { .bth = hca_wire_bth(w, operation, psn) };

	h.aeth = aeth;
	h.atomic_original = value;
	if (hca_wire_begin(w, 0))
		hca_wire_end(w, &h);
}

static void send_aeth(struct hca_wire *w, uint32_t psn, uint8_t syndrome)
{
	const struct wire_aeth aeth = { .syndrome = syndrome, .msn = w->shm->in.msn };

	send_answer(w, WIRE_ACKNOWLEDGE, psn, aeth, 0);
}

static void set_ack_due(struct hca_wire *w, bool due)
{
	atomic_store_explicit(&w->shm->ack_due, due, memory_order_relaxed);
}

/* The packet is to be acknowledged, if it asks for that. Before its message is published: what the
 * program sends when it has seen that comes behind (hca_wire_acknowledges_first()). */
static void acknowledge_later(struct hca_wire *w, const struct wire_roce_packet *p)
{
	if (p->h.bth.ack_requested && !is_uc(w))
		set_ack_due(w, true);
}

/* The syndrome of which NAK; or HCA_NAKS: it tells the peer to go on later, or from the gap on. */
static unsigned fatal_nak(uint8_t syndrome)
{
	unsigned i = 0;

	while (i < HCA_NAKS && syndrome != WIRE_AETH_SYNDROME(WIRE_AETH_NAK, nak_codes[i]))
		i++;
	return i;
}

/* The receive that the message under way uses fails. As hca_responder_fail_receive(). */
static int fail_receive(struct hca_wire *w, struct hca_receive *rcv, enum ibv_wc_status status)
{
	const struct shm_request r = { .opcode = IBV_WR_SEND };

	return hca_responder_fail_receive(&w->responder, &r, rcv, status);
}

/* The queue pair fails, for that reason. */
static void fail(struct hca_wire *w, enum hca_nak nak)
{
	const enum ibv_wc_status status = (enum ibv_wc_status)w->shm->in.fails_with;
	struct hca_receive rcv;

	w->responder.nak = nak;
	if (status && find_receive(w, &rcv))
		fail_receive(w, &rcv, status);
	else
		hca_responder_fail(&w->responder);
}

/* Tells the peer why its request is not carried out. Responses that it waits for come first, and
 * what others have made: what it is told behind them is what was refused first, as all that comes
 * after that is refused for it. Only then the queue pair fails, if it does: its owner may end it at
 * once, and the peer would hear nothing. False, as the functions below say of a packet that was not
 * carried out. */
static bool refuse(struct hca_wire *w, uint8_t syndrome)
{
	struct shm_wire *s = w->shm;
	unsigned fatal;

	if (is_uc(w) || s->in.nak_sent)
		return false;
	if (s->in.nak_due)
		w->responder.why = "as was found before";
	else
		s->in.nak_due = syndrome;
	if (s->in.n_responses || !hca_wire_acquire_egress(w))
		return false;
	fatal = fatal_nak(s->in.nak_due);
	if (fatal < HCA_NAKS)
		fail(w, (enum hca_nak)fatal);
	send_aeth(w, s->in.expected, s->in.nak_due);
	s->in.nak_due = 0;
	s->in.nak_sent = true;
	return false;
}

/* The same of the packet that was expected: a NAK that was sent before was for an earlier packet.
 * @status: with which its receive fails; or 0. */
static bool refuse_with_receive(struct hca_wire *w, uint8_t syndrome, enum ibv_wc_status status)
{
	w->shm->in.nak_sent = false;
	w->shm->in.nak_due = 0;
	w->shm->in.fails_with = (uint8_t)status;
	return refuse(w, syndrome);
}

static bool refuse_expected(struct hca_wire *w, uint8_t syndrome)
{
	return refuse_with_receive(w, syndrome, IBV_WC_SUCCESS);
}

static bool refuse_sequence(struct hca_wire *w)
{
	return refuse(w, GAP);
}

/* No receive is posted. The peer waits, as it is told, or until it hears of one. */
static bool refuse_for_now(struct hca_wire *w)
{
	refuse_expected(w, WIRE_AETH_SYNDROME(WIRE_AETH_RNR, w->path.min_rnr_timer & 31));
	if (!is_uc(w) && !w->responder.end.qp.connection.srq && await_receives(w))
		set_ack_due(w, true);
	return false;
}

/* The responder says what becomes of the request: @outcome, not IBV_WC_SUCCESS. */
static bool refuse_as(struct hca_wire *w, int outcome)
{
	struct hca_responder *t = &w->responder;
	enum hca_nak nak = HCA_NAK_REMOTE_OPERATION;

	if (!hca_responder_is_there(t))
		return false;
	if (outcome == HCA_WAITS_FOR_RECEIVE)
		return refuse_for_now(w);
	if (w->shm->in.n_responses)
		hca_wire_respond(w);
	if (outcome == HCA_WAITS_FOR_PATH || outcome == HCA_WAITS_FOR_LOCK)
		return false; /* as if the packet had got lost */
	if (outcome == HCA_REFUSED)
		nak = t->nak;
	else if (outcome == IBV_WC_REM_INV_REQ_ERR)
		nak = HCA_NAK_INVALID_REQUEST;
	if (is_uc(w))
		HCA_COUNT(t->process, t->end.qp.port, uc_refused);
	return refuse_expected(w, WIRE_AETH_SYNDROME(WIRE_AETH_NAK, nak_codes[nak]));
}

static bool refuse_invalid(struct hca_wire *w, const char *why)
{
	return refuse_as(w, hca_responder_refuse(&w->responder, HCA_NAK_INVALID_REQUEST, why));
}

/* A place for one more response. NULL: the peer asks for more than there is room for. */
static struct shm_wire_response *new_response(struct hca_wire *w, enum shm_wire_answer answer,
                                              uint32_t psn, uint32_t packets)
{
	struct shm_wire_response *r;

	if (w->shm->in.n_responses >= SHM_WIRE_RESPONSES)
		return NULL;
	r = &w->shm->response[w->shm->in.next_response % SHM_WIRE_RESPONSES];
	*r = (struct shm_wire_response){ .psn = psn, .packets = packets, .answer = answer };
	return r;
}

static void add_response(struct hca_wire *w, struct shm_wire_response *r)
{
	r->msn = w->shm->in.msn;
	w->shm->in.next_response++;
	w->shm->in.n_responses++;
	hca_wire_watch(w);
}

static enum wire_operation response_of(uint32_t i, uint32_t n)
{
	return n == 1       ? WIRE_READ_RESPONSE_ONLY
	       : !i         ? WIRE_READ_RESPONSE_FIRST
	       : i + 1 == n ? WIRE_READ_RESPONSE_LAST
	                    : WIRE_READ_RESPONSE_MIDDLE;
}

/* Sends up to @most packets of what a READ asked for. 0; -EFAULT: its memory is not there any more;
 * -ESRCH: its process is not. */
static int send_read(struct hca_wire *w, struct shm_wire_response *r, uint32_t most)
{
	const struct shm_request request = { .rkey = r->rkey, .remote_addr = r->addr };
	const uint8_t syndrome = acknowledged(w);
	struct hca_parts from;

	if (hca_responder_begin_rdma(&w->responder, &request, r->length, IBV_ACCESS_REMOTE_READ,
	                             &from))
		return -EFAULT;
	for (; r->sent < r->packets && most; r->sent++, most--) {
		uint32_t bytes = hca_wire_packet_bytes(w, r->length, r->sent);
		uint32_t psn = wire_psn_add(r->psn, r->sent);
		struct wire_headers h = { .bth = hca_wire_bth(w, response_of(r->sent, r->packets),
			                                      psn) };
		uint8_t *room = hca_wire_begin(w, bytes);
		int ret;

		if (!room)
			continue;
		ret = hca_wire_gather(&w->responder.end, &from,
		                      (uint64_t)r->sent << w->path.mtu_shift, bytes, room);
		if (!hca_wire_keeps(w, &w->shm->lock))
			return -ESRCH;
		if (ret)
			return ret;
		h.aeth = (struct wire_aeth){ syndrome, r->msn };
		hca_wire_end(w, &h);
	}
	return 0;
}

/* Sends up to @most packets of a response. As send_read(). */
static int send_response(struct hca_wire *w, struct shm_wire_response *r, uint32_t most)
{
	const bool is_word = r->answer == SHM_WIRE_WORD;

	if (!is_word && r->answer != SHM_WIRE_DONE)
		return send_read(w, r, most);
	send_answer(w, is_word ? WIRE_ATOMIC_ACKNOWLEDGE : WIRE_READ_RESPONSE_ONLY, r->psn,
	            (struct wire_aeth){ acknowledged(w), r->msn }, r->value);
	r->sent = r->packets;
	return 0;
}

/* What is left of the first response cannot be sent. Of a process that has ended nobody tells the
 * peer: it finds out by its timeout, as of any that is gone. */
static void fail_response(struct hca_wire *w, const struct shm_wire_response *r, int error)
{
	w->shm->in.n_responses = 0;
	set_ack_due(w, false); /* it would be of what came behind */
	w->shm->in.nak_sent = w->shm->in.nak_due = false;
	if (error == -ESRCH || !hca_responder_is_there(&w->responder))
		return;
	hca_responder_refuse(&w->responder, HCA_NAK_REMOTE_ACCESS,
	                     "the memory is not there any more");
	hca_responder_fail(&w->responder);
	send_aeth(w, wire_psn_add(r->psn, r->sent),
	          WIRE_AETH_SYNDROME(WIRE_AETH_NAK, WIRE_NAK_REMOTE_ACCESS));
}

/* The oldest response that is yet to be sent. */
static struct shm_wire_response *first_response(struct hca_wire *w)
{
	const struct shm_wire *s = w->shm;

	return &w->shm->response[(s->in.next_response - s->in.n_responses) % SHM_WIRE_RESPONSES];
}

void hca_wire_acknowledge(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;

	if (s->in.n_responses || !hca_wire_owes(w) || !hca_wire_acquire_egress(w))
		return;
	atomic_store_explicit(&s->ack_waits, false, memory_order_relaxed);
	/* before the count: receives that are posted from now on are told again */
	atomic_store_explicit(&s->credits_due, false, memory_order_seq_cst);
	send_aeth(w, wire_psn_add(s->in.expected, -1), acknowledged(w));
	set_ack_due(w, false);
}

bool hca_wire_respond(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;
	uint32_t most = RESPONSES_MOST, n;
	uint8_t due;

	if (s->in.n_responses > SHM_WIRE_RESPONSES)
		s->in.n_responses = 0; /* others can write there */
	if (!hca_wire_acquire_egress(w))
		return true;
	while (s->in.n_responses && most) {
		struct shm_wire_response *r = first_response(w);
		uint32_t before = r->sent;
		int ret = send_response(w, r, most);

		if (ret) {
			fail_response(w, r, ret);
			return false;
		}
		n = r->sent > before ? r->sent - before : 1;
		most -= n < most ? n : most;
		if (r->sent >= r->packets)
			s->in.n_responses--;
	}
	if (base_unlikely(s->in.nak_due) && !s->in.n_responses) {
		due = s->in.nak_due;
		set_ack_due(w, false);
		if (due >> 5 == WIRE_AETH_RNR)
			refuse_for_now(w);
		else
			refuse(w, due);
		s->in.nak_due = 0;
	}
	hca_wire_acknowledge(w);
	return s->in.n_responses;
}

/* ---- SEND ---- */

/* A part of the message under way is missing. The rest of it is dropped, and the next one has its
 * receive (UC: section 9.8.2.2.1). */
static void drop_message(struct hca_wire *w)
{
	if (w->shm->in.operation == SHM_WIRE_SEND)
		w->shm->in.keeps = true;
	w->shm->in.operation = SHM_WIRE_NONE;
}

/* The credit itself is gone, of a shared receive queue: what it said is where the message will
 * arrive. */
static void keep_credit(const struct hca_receive *rcv)
{
	rcv->slot->operation = rcv->entries == &rcv->one;
	rcv->slot->receive.addr = rcv->one.addr;
	rcv->slot->receive.length = rcv->one.length;
	rcv->slot->receive.lkey = rcv->one.lkey;
}

/* Takes a receive for a message, which the following packets of it find again. As
 * hca_responder_take(). */
static int take_receive(struct hca_wire *w, struct hca_receive *rcv)
{
	const bool keeps = w->shm->in.keeps, is_shared = w->responder.end.qp.connection.srq;
	int ret;

	w->shm->in.keeps = false;
	if (keeps && find_receive(w, rcv))
		return 0;
	if (is_shared) /* it claims two slots */
		hca_wire_step(w, SHM_WIRE_ONCE);
	ret = hca_responder_take(&w->responder, rcv);
	if (!ret)
		w->shm->in.claimed = rcv->pos;
	if (is_shared) {
		if (!ret)
			keep_credit(rcv);
		hca_wire_step(w, SHM_WIRE_CHANGES);
	}
	return ret;
}

/* The entries of a receive from @offset on. */
static unsigned skip(const struct hca_receive *rcv, uint64_t offset, struct shm_entry *out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < rcv->n; i++) {
		struct shm_entry e = rcv->entries[i];
		uint32_t part = offset < e.length ? (uint32_t)offset : e.length;

		offset -= part;
		e.addr += part;
		e.length -= part;
		if (e.length)
			out[n++] = e;
	}
	return n;
}

/* Places bytes of a message. An enum ibv_wc_status, of the receive; or HCA_WAITS_FOR_PATH, or LOST.
 */
static int place_send(struct hca_wire *w, const struct hca_receive *rcv, const void *from,
                      uint32_t bytes)
{
	struct hca_end *end = &w->responder.end;
	struct shm_entry entries[HCA_MAX_SGE];
	const uint64_t end_in = w->shm->in.offset + (uint64_t)bytes;
	struct hca_parts to;
	unsigned n;
	int ret;

	if (end_in > HCA_MAX_MESSAGE || end_in > hca_receive_bytes(rcv))
		return IBV_WC_LOC_LEN_ERR;
	if (!bytes)
		return IBV_WC_SUCCESS;
	n = skip(rcv, w->shm->in.offset, entries);
	if (!hca_parts_find(end, entries, n, bytes, IBV_ACCESS_LOCAL_WRITE, &to))
		return IBV_WC_LOC_PROT_ERR;
	ret = hca_wire_scatter(end, &to, 0, from, bytes);
	if (!hca_wire_keeps(w, &w->shm->lock))
		return LOST;
	return ret == -ESRCH ? HCA_WAITS_FOR_PATH : ret ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
}

/* The request that a packet ends, as the responder knows it. */
static struct shm_request describe(const struct wire_roce_packet *p, uint32_t length)
{
	const unsigned headers = wire_opcodes[p->h.bth.opcode].headers;
	bool is_write = (p->h.bth.opcode & 31) >= WIRE_WRITE_FIRST &&
	                (p->h.bth.opcode & 31) <= WIRE_WRITE_ONLY_IMM;
	uint8_t opcode = is_write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;

	if (headers & WIRE_IMMDT)
		opcode = is_write ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM;
	else if (headers & WIRE_IETH)
		opcode = IBV_WR_SEND_WITH_INV;
	return (struct shm_request){ .opcode = opcode,
		                     .length = length,
		                     .imm = p->h.imm_data,
		                     .flags = p->h.bth.solicited ? IBV_SEND_SOLICITED : 0 };
}

/* From here on the message arrives, also if this process dies. */
static void begin_to_publish(struct hca_wire *w, const struct shm_request *r)
{
	w->shm->publishes = r->opcode;
	hca_wire_step(w, SHM_WIRE_PUBLISHES);
}

/* The message has come as a whole: as hca_responder_end_send(). */
static int end_send(struct hca_wire *w, const struct wire_roce_packet *p,
                    const struct hca_receive *rcv)
{
	struct shm_request r = describe(p, w->shm->in.offset);
	int ret;

	acknowledge_later(w, p);
	hca_responder_fill(&w->responder, &r, rcv->slot, SHM_OPERATION_PLACED);
	begin_to_publish(w, &r);
	ret = hca_responder_end_send(&w->responder, &r, rcv);
	if (!ret && w->responder.tells)
		hca_responder_tell(&w->responder, &r, ret);
	return ret;
}

/* The message does not go to its receive, which fails with @status. */
static bool refuse_send(struct hca_wire *w, struct hca_receive *rcv, enum ibv_wc_status status)
{
	const enum hca_nak nak =
	        status == IBV_WC_LOC_LEN_ERR ? HCA_NAK_INVALID_REQUEST : HCA_NAK_REMOTE_OPERATION;

	if (is_uc(w)) {
		w->shm->in.operation = SHM_WIRE_NONE;
		return refuse_as(w, fail_receive(w, rcv, status));
	}
	if (!hca_responder_is_there(&w->responder))
		return false;
	if (w->shm->in.n_responses)
		hca_wire_respond(w);
	return refuse_with_receive(w, WIRE_AETH_SYNDROME(WIRE_AETH_NAK, nak_codes[nak]), status);
}

/* The packet has become LOST, behind which its receive, if it has one, is to go on. */
static BASE_COLD bool give_up(struct hca_wire *w, const struct hca_receive *rcv)
{
	if (rcv)
		hca_responder_give_back(&w->responder, rcv);
	return false;
}

static bool take_send(struct hca_wire *w, const struct wire_roce_packet *p, unsigned flags)
{
	struct shm_wire *s = w->shm;
	struct hca_receive rcv;
	int ret = 0;

	if (wire_opcodes[p->h.bth.opcode].headers & WIRE_IETH)
		ret = hca_responder_check_key(&w->responder, p->h.invalidate_rkey);
	if (ret)
		return refuse_as(w, ret);
	if (flags & WIRE_OPCODE_FIRST) {
		ret = take_receive(w, &rcv);
		if (ret)
			return refuse_as(w, ret);
		s->in.operation = SHM_WIRE_SEND;
		s->in.offset = 0;
	} else if (!find_receive(w, &rcv)) {
		return false;
	}
	ret = place_send(w, &rcv, p->payload, p->payload_bytes);
	if (base_unlikely(ret == LOST))
		return give_up(w, &rcv);
	if (ret && !is_uc(w) && (flags & WIRE_OPCODE_FIRST))
		drop_message(w);       /* its packet may come again, and finds the receive */
	if (ret == HCA_WAITS_FOR_PATH) /* as if the packet had got lost */
		return false;
	if (ret)
		return refuse_send(w, &rcv, (enum ibv_wc_status)ret);
	s->in.offset += p->payload_bytes;
	if (flags & WIRE_OPCODE_LAST) {
		s->in.operation = SHM_WIRE_NONE;
		ret = end_send(w, p, &rcv);
	}
	return !ret;
}

/* ---- RDMA WRITE ---- */

/* As hca_responder_begin_rdma(), or LOST. */
static int place_write(struct hca_wire *w, const struct wire_roce_packet *p, uint32_t check)
{
	const struct shm_request r = { .opcode = IBV_WR_RDMA_WRITE,
		                       .rkey = w->shm->in.rkey,
		                       .remote_addr = w->shm->in.addr + w->shm->in.offset };
	struct hca_responder *t = &w->responder;
	struct hca_parts to;
	int ret = hca_responder_begin_rdma(t, &r, check, IBV_ACCESS_REMOTE_WRITE, &to);

	if (ret || !p->payload_bytes)
		return ret;
	ret = hca_wire_scatter(&t->end, &to, 0, p->payload, p->payload_bytes);
	if (!hca_wire_keeps(w, &w->shm->lock))
		return LOST;
	return ret ? hca_responder_copy_failed(t, ret) : 0;
}

static int end_write(struct hca_wire *w, const struct wire_roce_packet *p, struct hca_receive *rcv)
{
	struct hca_responder *t = &w->responder;
	struct shm_request r = describe(p, w->shm->in.length);
	int ret = 0;

	if (r.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		acknowledge_later(w, p);
		hca_responder_fill(t, &r, rcv->slot, SHM_OPERATION_WRITE);
		begin_to_publish(w, &r);
		ret = hca_responder_publish(t, rcv);
	}
	if (!ret && t->tells)
		hca_responder_tell(t, &r, ret);
	return ret;
}

static bool take_write(struct hca_wire *w, const struct wire_roce_packet *p, unsigned flags)
{
	const bool has_imm = wire_opcodes[p->h.bth.opcode].headers & WIRE_IMMDT;
	const uint32_t bytes = p->payload_bytes;
	struct shm_wire *s = w->shm;
	struct hca_receive rcv;
	int ret;

	if (flags & WIRE_OPCODE_FIRST) {
		s->in.addr = p->h.reth.va;
		s->in.rkey = p->h.reth.rkey;
		s->in.length = p->h.reth.dma_length;
		s->in.offset = 0;
	}
	if (s->in.length > HCA_MAX_MESSAGE || bytes > s->in.length - s->in.offset ||
	    ((flags & WIRE_OPCODE_LAST) && bytes != s->in.length - s->in.offset))
		return refuse_invalid(w, "a WRITE is not as long as it says");
	ret = has_imm ? take_receive(w, &rcv) : 0;
	if (ret)
		return refuse_as(w, ret);
	/* the first packet: whether all of it is allowed */
	ret = place_write(w, p, flags & WIRE_OPCODE_FIRST ? s->in.length : bytes);
	if (base_unlikely(ret == LOST))
		return give_up(w, has_imm ? &rcv : NULL);
	if (ret && has_imm)
		s->in.keeps = true; /* for this one when it comes again, or the next one */
	if (ret)
		return refuse_as(w, ret);
	s->in.operation = SHM_WIRE_WRITE;
	s->in.offset += bytes;
	if (flags & WIRE_OPCODE_LAST) {
		s->in.operation = SHM_WIRE_NONE;
		ret = end_write(w, p, &rcv);
	}
	return !ret;
}

/* ---- READ, atomic operations, atomic WRITE and FLUSH ---- */

/* @again: it has come before. */
static bool take_read(struct hca_wire *w, const struct wire_roce_packet *p, bool again)
{
	const struct shm_request r = { .opcode = IBV_WR_RDMA_READ,
		                       .rkey = p->h.reth.rkey,
		                       .length = p->h.reth.dma_length,
		                       .remote_addr = p->h.reth.va };
	uint32_t packets = hca_wire_packets(w, r.length);
	struct shm_wire_response *response =
	        new_response(w, SHM_WIRE_MEMORY, p->h.bth.psn, packets);
	struct hca_parts from;
	int ret;

	if (!response)
		return false;
	/* what comes again is what was there before, or the rest of it */
	if (again && wire_psn_diff(wire_psn_add(p->h.bth.psn, packets), w->shm->in.expected) > 0)
		return false;
	if (r.length > HCA_MAX_MESSAGE)
		return !again && refuse_invalid(w, "a READ is longer than messages are");
	ret = hca_responder_begin_read(&w->responder, &r, &from);
	if (ret)
		return !again && refuse_as(w, ret);
	response->rkey = r.rkey;
	response->addr = r.remote_addr;
	response->length = r.length;
	if (!again) {
		w->shm->in.msn = wire_psn_add(w->shm->in.msn, 1);
		move_expected(w->shm, packets);
		if (w->responder.tells)
			hca_responder_tell(&w->responder, &r, IBV_WC_SUCCESS);
	}
	add_response(w, response);
	return true;
}

static void save(struct hca_wire *w, const struct shm_wire_response *r)
{
	w->shm->saved[w->shm->in.next_saved++ % SHM_WIRE_RESPONSES] =
	        (struct shm_wire_saved){ .value = r->value, .psn = r->psn, .answer = r->answer };
}

/* These carry out the request of a packet, as hca_responder_change(), and describe it as *@r. */

static int change_word(struct hca_wire *w, const struct wire_roce_packet *p, struct shm_request *r,
                       uint64_t *old)
{
	const bool adds = (p->h.bth.opcode & 31) == WIRE_FETCH_ADD;
	struct hca_parts word;
	int ret;

	*r = (struct shm_request){
		.opcode = adds ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP,
		.rkey = p->h.atomic.rkey,
		.length = sizeof(uint64_t),
		.remote_addr = p->h.atomic.va,
		.compare_add = adds ? p->h.atomic.swap_or_add : p->h.atomic.compare,
		.swap = p->h.atomic.swap_or_add,
	};
	ret = hca_responder_begin_word(&w->responder, r, IBV_ACCESS_REMOTE_ATOMIC, &word);
	if (ret)
		return ret;
	hca_wire_step(w, SHM_WIRE_ONCE);
	return hca_responder_change(&w->responder, r, &word, old);
}

static int write_word(struct hca_wire *w, const struct wire_roce_packet *p, struct shm_request *r)
{
	struct hca_parts word;
	uint64_t value;
	int ret;

	*r = (struct shm_request){ .opcode = HCA_WR_ATOMIC_WRITE,
		                   .rkey = p->h.reth.rkey,
		                   .length = sizeof(value),
		                   .remote_addr = p->h.reth.va };
	if (p->payload_bytes != sizeof(value) || p->h.reth.dma_length != sizeof(value))
		return hca_responder_refuse(&w->responder, HCA_NAK_INVALID_REQUEST,
		                            "an atomic WRITE is not of 8 bytes");
	memcpy(&value, p->payload, sizeof(value));
	ret = hca_responder_begin_word(&w->responder, r, IBV_ACCESS_REMOTE_WRITE, &word);
	return ret ? ret : hca_responder_store(&w->responder, &word, value);
}

static int flush(struct hca_wire *w, const struct wire_roce_packet *p, struct shm_request *r)
{
	const struct wire_feth *feth = &p->h.feth;

	*r = (struct shm_request){ .opcode = HCA_WR_FLUSH,
		                   .rkey = p->h.reth.rkey,
		                   .remote_addr = p->h.reth.va,
		                   .compare_add = p->h.reth.dma_length,
		                   .swap = hca_flush_what(feth->placement, feth->selectivity) };
	if (!hca_flush_is_known(feth->placement, feth->selectivity) ||
	    r->compare_add > HCA_MAX_MESSAGE)
		return hca_responder_refuse(&w->responder, HCA_NAK_INVALID_REQUEST,
		                            "a FLUSH asks for what there is not");
	return hca_responder_flush(&w->responder, r);
}

static enum shm_wire_answer answer_of(uint8_t opcode)
{
	return wire_opcodes[opcode].headers & WIRE_ATOMICETH ? SHM_WIRE_WORD : SHM_WIRE_DONE;
}

/* What is carried out once, however often it comes. */
static bool take_once(struct hca_wire *w, const struct wire_roce_packet *p)
{
	struct shm_wire_response *response =
	        new_response(w, answer_of(p->h.bth.opcode), p->h.bth.psn, 1);
	struct shm_request r;
	uint64_t found = 0;
	int ret;

	if (!response)
		return false;
	switch (p->h.bth.opcode & 31) {
	case WIRE_ATOMIC_WRITE:
		ret = write_word(w, p, &r);
		break;
	case WIRE_FLUSH:
		ret = flush(w, p, &r);
		break;
	default:
		ret = change_word(w, p, &r, &found);
	}
	if (!hca_wire_keeps(w, &w->shm->lock))
		return false;
	if (ret)
		return refuse_as(w, ret);
	response->value = found;
	save(w, response);
	w->shm->in.msn = wire_psn_add(w->shm->in.msn, 1);
	move_expected(w->shm, 1);
	add_response(w, response);
	if (w->responder.tells)
		hca_responder_tell(&w->responder, &r, IBV_WC_SUCCESS);
	return true;
}

/* ---- what comes again ---- */

/* Whether a response that is yet to be sent has this PSN. It goes on from there, if it was further.
 */
static bool is_pending(struct hca_wire *w, uint32_t psn)
{
	const uint32_t next = w->shm->in.next_response, n = w->shm->in.n_responses;

	for (uint32_t i = 0; i < n && i < SHM_WIRE_RESPONSES; i++) {
		struct shm_wire_response *r =
		        &w->shm->response[(next - n + i) % SHM_WIRE_RESPONSES];
		uint32_t at = wire_psn_add(psn, -r->psn);

		if (at >= r->packets)
			continue;
		if (at < r->sent)
			r->sent = at;
		return true;
	}
	return false;
}

static void answer_again(struct hca_wire *w, uint32_t psn, enum shm_wire_answer answer)
{
	/* the last one first: PSNs come around */
	for (unsigned i = 1; i <= SHM_WIRE_RESPONSES; i++) {
		const struct shm_wire_saved *s =
		        &w->shm->saved[(w->shm->in.next_saved - i) % SHM_WIRE_RESPONSES];
		struct shm_wire_response *r;

		if (s->answer != answer || s->psn != psn)
			continue;
		r = new_response(w, answer, psn, 1);
		if (!r)
			return;
		r->value = s->value;
		add_response(w, r);
		return;
	}
}

static void take_duplicate(struct hca_wire *w, const struct wire_roce_packet *p)
{
	const unsigned flags = wire_opcodes[p->h.bth.opcode].flags;

	HCA_WIRE_COUNT(w, duplicate_request);
	if (is_uc(w) || wire_opcode_is_reserved(p->h.bth.opcode) ||
	    (!(flags & WIRE_OPCODE_PAYLOAD) && p->payload_bytes) || is_pending(w, p->h.bth.psn))
		return;
	if ((p->h.bth.opcode & 31) == WIRE_READ_REQUEST)
		take_read(w, p, true);
	else if (flags & WIRE_OPCODE_ANSWERED)
		answer_again(w, p->h.bth.psn, answer_of(p->h.bth.opcode));
	else
		set_ack_due(w, true);
}

/* ---- all ---- */

/* Whether a packet of these flags can come now, and is as long as it must be. */
static bool fits(const struct hca_wire *w, const struct wire_roce_packet *p, unsigned flags,
                 enum shm_wire_operation operation)
{
	const uint32_t mtu = mtu_of(w), bytes = p->payload_bytes;
	enum shm_wire_operation now = w->shm->in.operation;

	if (flags & WIRE_OPCODE_FIRST ? now != SHM_WIRE_NONE : now != operation)
		return false;
	if (!(flags & WIRE_OPCODE_LAST))
		return bytes == mtu;
	return bytes <= mtu && (bytes || (flags & WIRE_OPCODE_FIRST));
}

void hca_wire_give_back(struct hca_wire *w)
{
	struct hca_receive rcv;

	if ((w->shm->in.operation == SHM_WIRE_SEND || w->shm->in.keeps) && find_receive(w, &rcv))
		hca_responder_give_back(&w->responder, &rcv);
	w->shm->in.operation = SHM_WIRE_NONE;
	w->shm->in.keeps = false;
}

static bool carry_out(struct hca_wire *w, const struct wire_roce_packet *p, unsigned flags)
{
	const unsigned op = p->h.bth.opcode & 31;
	bool is_write = op >= WIRE_WRITE_FIRST && op <= WIRE_WRITE_ONLY_IMM;

	if (wire_opcode_is_reserved(p->h.bth.opcode)) /* section 9.9.3 */
		return refuse_invalid(w, "an opcode is reserved");
	if (flags & WIRE_OPCODE_ANSWERED) {
		if (w->shm->in.operation != SHM_WIRE_NONE)
			return refuse_invalid(w, "a message is not whole");
		if (!(flags & WIRE_OPCODE_PAYLOAD) && p->payload_bytes)
			return refuse_invalid(w, "a packet has data that must have none");
		return op == WIRE_READ_REQUEST ? take_read(w, p, false) : take_once(w, p);
	}
	if (!fits(w, p, flags, is_write ? SHM_WIRE_WRITE : SHM_WIRE_SEND))
		return refuse_invalid(w, "a packet does not fit its message");
	return is_write ? take_write(w, p, flags) : take_send(w, p, flags);
}

void hca_wire_count_packet(struct hca_wire *w, bool is_last)
{
	move_expected(w->shm, 1);
	if (is_last)
		w->shm->in.msn = wire_psn_add(w->shm->in.msn, 1);
}

/* What a packet changes between these can be undone, but where it says so. */

static void begin_packet(struct hca_wire *w)
{
	w->shm->before = w->shm->in;
	hca_wire_step(w, SHM_WIRE_CHANGES);
}

static void end_packet(struct hca_wire *w)
{
	hca_wire_step(w, SHM_WIRE_AT_REST);
}

/* The packet that was to come next. */
static void take_expected(struct hca_wire *w, const struct wire_roce_packet *p, unsigned flags)
{
	const bool is_answered = flags & WIRE_OPCODE_ANSWERED;
	bool done = carry_out(w, p, flags);

	if (done)
		w->shm->in.nak_sent = w->shm->in.nak_due = false;
	if (done && !is_answered) {
		hca_wire_count_packet(w, flags & WIRE_OPCODE_LAST);
		acknowledge_later(w, p);
	}
	if (!done && is_uc(w)) { /* nobody sends it again */
		drop_message(w);
		w->shm->in.expected = wire_psn_add(p->h.bth.psn, 1);
	}
}

/* What waited behind the packet that has been carried out just now. The peer does not know that it
 * was kept, so it is acknowledged; a refusal does that, too. */
static BASE_COLD void take_ahead(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;
	struct hca_wire_copy *c;
	bool done = true;

	while (done && (c = hca_wire_first_ahead(w, HCA_WIRE_RESPONDER)) != NULL) {
		const unsigned flags = wire_opcodes[c->packet.h.bth.opcode].flags;
		const uint32_t psn = s->in.expected;

		/* as work() in wires.c */
		if ((flags & WIRE_OPCODE_RECEIVES) && s->in.n_responses && hca_wire_respond(w))
			return;
		c = hca_wire_take_ahead(w, HCA_WIRE_RESPONDER);
		if (!c)
			break;
		begin_packet(w);
		take_expected(w, &c->packet, flags);
		end_packet(w);
		done = s->in.expected != psn;
		if (done && !(flags & WIRE_OPCODE_ANSWERED))
			set_ack_due(w, true);
		free(c);
	}
	if (!hca_responder_is_well(&w->responder)) {
		set_ack_due(w, false);
	} else if (done && !s->in.n_responses && hca_wire_first_ahead(w, HCA_WIRE_RESPONDER)) {
		refuse_sequence(w); /* the next gap */
		set_ack_due(w, false);
	}
}

/* A packet has come behind a gap, of which the peer is told. */
static BASE_COLD void take_early(struct hca_wire *w, const struct wire_roce_packet *p)
{
	HCA_WIRE_COUNT(w, out_of_sequence);
	refuse_sequence(w);
	if (hca_wire_is_selective(w))
		hca_wire_keep_ahead(w, HCA_WIRE_RESPONDER, p);
}

void hca_wire_request(struct hca_wire *w, const struct wire_roce_packet *p)
{
	const unsigned flags = wire_opcodes[p->h.bth.opcode].flags;
	const uint32_t expected = w->shm->in.expected;
	int32_t diff = wire_psn_diff(p->h.bth.psn, expected);

	if (w->shm->in.n_responses > SHM_WIRE_RESPONSES || !hca_responder_is_well(&w->responder))
		return;
	/* UC: what begins a message ends the one before, whole or not (class D1) */
	if (is_uc(w) &&
	    (diff || ((flags & WIRE_OPCODE_FIRST) && w->shm->in.operation != SHM_WIRE_NONE))) {
		drop_message(w);
		w->shm->in.expected = p->h.bth.psn;
		diff = 0;
		if (!(flags & WIRE_OPCODE_FIRST)) {
			w->shm->in.expected = wire_psn_add(p->h.bth.psn, 1);
			return;
		}
	}
	begin_packet(w);
	if (diff < 0)
		take_duplicate(w, p);
	else if (diff > 0)
		take_early(w, p);
	else
		take_expected(w, p, flags);
	end_packet(w);
	if (base_unlikely(!TAILQ_EMPTY(&w->ahead[HCA_WIRE_RESPONDER])) &&
	    w->shm->in.expected != expected)
		take_ahead(w);
}
