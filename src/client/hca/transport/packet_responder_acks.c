/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire, the responder's half: what it answers. See packet_responder.h.
 *
 * READs and atomic operations are answered in order, and an acknowledgement says that all before is
 * done: so responses that wait to be sent come first.
 */
#include <errno.h>

#include "base/util.h"
#include "hca/transport/packet_responder.h"

/* So many packets of responses are sent at one time; then other queue pairs have their turn. */
#define RESPONSES_MOST 64
/* The syndrome that tells the peer of a gap before its packet. */
#define GAP WIRE_AETH_SYNDROME(WIRE_AETH_NAK, WIRE_NAK_SEQUENCE)

static const uint8_t nak_codes[HCA_NAKS] = {
	[HCA_NAK_INVALID_REQUEST] = WIRE_NAK_INVALID_REQUEST,
	[HCA_NAK_REMOTE_ACCESS] = WIRE_NAK_REMOTE_ACCESS,
	[HCA_NAK_REMOTE_OPERATION] = WIRE_NAK_REMOTE_OPERATION,
};

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

/* The same when the peer hears that there are none: the thread that posts some tells it. */
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

/* ---- answers ---- */

/* A packet without payload. @value: the word that an atomic operation found. */
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

void hca_wire_set_ack_due(struct hca_wire *w, bool due)
{
	atomic_store_explicit(&w->shm->ack_due, due, memory_order_relaxed);
}

void hca_wire_acknowledge_later(struct hca_wire *w, const struct hca_wire_run *run)
{
	if (run->wants_ack && !hca_wire_is_uc(w))
		hca_wire_set_ack_due(w, true);
}

/* The syndrome of which NAK; or HCA_NAKS: it tells the peer to go on later, or from the gap on. */
static unsigned fatal_nak(uint8_t syndrome)
{
	unsigned i = 0;

	while (i < HCA_NAKS && syndrome != WIRE_AETH_SYNDROME(WIRE_AETH_NAK, nak_codes[i]))
		i++;
	return i;
}

/* The queue pair fails, for that reason. */
static void fail(struct hca_wire *w, enum hca_nak nak)
{
	const enum ibv_wc_status status = (enum ibv_wc_status)w->shm->in.fails_with;
	struct hca_receive rcv;

	w->responder.nak = nak;
	if (status && hca_wire_find_receive(w, &rcv)) {
		hca_wire_fail_receive(w, &rcv, status);
		return;
	}
	hca_responder_log(&w->responder);
	hca_responder_fail(&w->responder);
}

/* Tells the peer why its request is not carried out. The responses that it waits for leave first,
 * and the packets that other workers have made. Behind them the peer is told of the request that
 * was refused first: all later ones are refused because of it. Only then the queue pair fails, if
 * it does: its owner may end it at once, and the peer would hear nothing. False, as the functions
 * below say of a packet that was not carried out. */
static bool refuse(struct hca_wire *w, uint8_t syndrome)
{
	struct shm_wire *s = w->shm;
	unsigned fatal;

	if (hca_wire_is_uc(w) || s->in.nak_sent)
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

bool hca_wire_refuse_receive(struct hca_wire *w, enum hca_nak nak, enum ibv_wc_status status)
{
	return refuse_with_receive(w, WIRE_AETH_SYNDROME(WIRE_AETH_NAK, nak_codes[nak]), status);
}

static bool refuse_expected(struct hca_wire *w, uint8_t syndrome)
{
	return refuse_with_receive(w, syndrome, IBV_WC_SUCCESS);
}

bool hca_wire_refuse_sequence(struct hca_wire *w)
{
	return refuse(w, GAP);
}

/* No receive is posted. The peer waits, as it is told, or until it hears of one. */
static bool refuse_for_now(struct hca_wire *w)
{
	refuse_expected(w, WIRE_AETH_SYNDROME(WIRE_AETH_RNR, w->path.min_rnr_timer & 31));
	if (!hca_wire_is_uc(w) && !w->responder.end.qp.connection.srq && await_receives(w))
		hca_wire_set_ack_due(w, true);
	return false;
}

bool hca_wire_refuse_as(struct hca_wire *w, int outcome)
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
	if (hca_wire_is_uc(w)) {
		HCA_COUNT(t->process, t->end.qp.port, uc_refused);
		if (outcome == HCA_REFUSED)
			hca_responder_log(t);
	}
	return refuse_expected(w, WIRE_AETH_SYNDROME(WIRE_AETH_NAK, nak_codes[nak]));
}

bool hca_wire_refuse_invalid(struct hca_wire *w, const char *why)
{
	return hca_wire_refuse_as(
	        w, hca_responder_refuse(&w->responder, HCA_NAK_INVALID_REQUEST, why));
}

struct shm_wire_response *hca_wire_new_response(struct hca_wire *w, enum shm_wire_answer answer,
                                                uint32_t psn, uint32_t packets)
{
	struct shm_wire_response *r;

	if (w->shm->in.n_responses >= SHM_WIRE_RESPONSES)
		return NULL;
	r = &w->shm->response[w->shm->in.next_response % SHM_WIRE_RESPONSES];
	*r = (struct shm_wire_response){ .psn = psn, .packets = packets, .answer = answer };
	return r;
}

void hca_wire_add_response(struct hca_wire *w, struct shm_wire_response *r)
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
	struct hca_wire_gathering gathering = { .end = &w->responder.end,
		                                .parts = &from,
		                                .length = r->length };

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
		gathering.packets = most;
		ret = hca_wire_gather_next(w, &gathering, (uint64_t)r->sent << w->path.mtu_shift,
		                           bytes, room);
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

/* The rest of the first response cannot be sent. If the process has ended, nobody tells the peer:
 * it finds out by its timeout, as of any process that is gone. */
static void fail_response(struct hca_wire *w, const struct shm_wire_response *r, int error)
{
	w->shm->in.n_responses = 0;
	hca_wire_set_ack_due(w, false); /* it would be of what came behind */
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
	hca_wire_set_ack_due(w, false);
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
		hca_wire_set_ack_due(w, false);
		if (due >> 5 == WIRE_AETH_RNR)
			refuse_for_now(w);
		else
			refuse(w, due);
		s->in.nak_due = 0;
	}
	hca_wire_acknowledge(w);
	return s->in.n_responses;
}
