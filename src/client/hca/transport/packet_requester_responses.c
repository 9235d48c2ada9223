/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire, the requester's half: packets that come back complete requests. See packet_requester.h.
 */
#include <stdlib.h>

#include "base/util.h"
#include "hca/transport/packet_requester.h"

#define INFINITELY 7 /* rnr_retry */

/* ---- acknowledgements and credits ---- */

/*
 * PSNs before @psn are acknowledged, by a response to a later one, or to the last one of them.
 * Completes requests. False: the first one lacks a response of its own, which must have got lost.
 */
static bool acknowledge(struct hca_wire *w, uint32_t psn)
{
	struct shm_entry entries[HCA_MAX_SGE];
	struct shm_request r;

	for (unsigned i = 0; i <= HCA_WIRE_WINDOW_MOST && hca_wire_first_request(w, &r, entries);
	     i++) {
		uint32_t n = hca_wire_packets_of(w, &r),
		         end = wire_psn_add(hca_wire_first(w)->psn, n);

		if (hca_operation(r.opcode) & HCA_OP_LOCAL)
			break;
		if (hca_operation(r.opcode) & HCA_OP_ANSWERED)
			return wire_psn_diff(psn, w->shm->acked) <= 0;
		if (wire_psn_diff(psn, end) < 0)
			break;
		hca_wire_complete(w, &r, n);
		if (wire_psn_diff(w->shm->acked, end) < 0)
			hca_wire_move_acked(w, end);
	}
	hca_wire_move_acked(w, psn);
	return true;
}

/*
 * An acknowledgement tells the receives for messages behind its MSN, which may be an old one. The
 * MSN may also be ahead of the messages that are done here; then the receives that it tells do not
 * include those of the messages in between. Acknowledgements may overtake each other: so the most
 * that was ever told holds.
 */
static void take_credits(struct hca_wire *w, const struct wire_aeth *aeth)
{
	int32_t ahead = wire_psn_diff(aeth->msn, hca_wire_first(w)->ssn);
	struct shm_entry entries[HCA_MAX_SGE];
	struct shm_wire *s = w->shm;
	struct shm_request r;
	uint32_t credits;

	if ((aeth->syndrome & 31) == WIRE_AETH_NO_CREDITS) {
		s->has_limit = false;
		return;
	}
	credits = hca_wire_first(w)->takes + wire_credits_decode(aeth->syndrome & 31) +
	          (uint32_t)(ahead < 0 ? ahead : 0);
	if (s->has_limit && (int32_t)(credits - s->credits) <= 0)
		return;
	/* it waits for a receive: there is one now */
	if (atomic_load_explicit(&s->resume_ns, memory_order_relaxed) &&
	    (int32_t)(credits - s->credits) > 0 && hca_wire_first_request(w, &r, entries) &&
	    hca_wire_takes_receive(&r))
		atomic_store_explicit(&s->resume_ns, 1, memory_order_relaxed);
	s->has_limit = s->ran_short;
	s->credits = credits;
}

/* ---- what comes back ---- */

/* Waits as the peer wants, which has no receive; then all is sent again. @is_first: for the first
 * request, of which that is a retry. */
static void wait_for_receive(struct hca_wire *w, unsigned timer, bool is_first)
{
	struct shm_wire *s = w->shm;

	if (atomic_load_explicit(&s->resume_ns, memory_order_relaxed))
		return; /* it waits already */
	HCA_WIRE_COUNT(w, rnr_nak_retry_err);
	if (is_first && w->path.rnr_retry != INFINITELY && s->rnr_retries++ >= w->path.rnr_retry) {
		hca_wire_fail(w, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	hca_wire_go_back(w);
	s->probes = s->has_gap = false;
	s->early = 0;
	s->ran_short = true;
	s->credits = hca_wire_first(w)->takes;
	atomic_store_explicit(&s->deadline_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&s->resume_ns, base_now_ns() + hca_rnr_ns(timer),
	                      memory_order_relaxed);
	hca_wire_watch(w);
}

static void take_nak(struct hca_wire *w, unsigned code)
{
	static const enum ibv_wc_status status[] = {
		[WIRE_NAK_INVALID_REQUEST] = IBV_WC_REM_INV_REQ_ERR,
		[WIRE_NAK_REMOTE_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[WIRE_NAK_REMOTE_OPERATION] = IBV_WC_REM_OP_ERR,
		[WIRE_NAK_INVALID_RD_REQUEST] = IBV_WC_REM_INV_RD_REQ_ERR,
	};

	if (!code) {
		HCA_WIRE_COUNT(w, packet_seq_err);
		hca_wire_take_loss(w, "the peer has seen a gap");
	} else if (code < ARRAY_SIZE(status)) {
		hca_wire_fail(w, status[code]);
	}
}

static void take_aeth(struct hca_wire *w, uint32_t psn, const struct wire_aeth *aeth)
{
	const unsigned kind = aeth->syndrome >> 5 & 3;
	const uint32_t acked = w->shm->acked;
	bool complete_before;

	if (kind && wire_psn_diff(psn, w->shm->acked) < 0)
		return; /* it was told twice */
	complete_before = acknowledge(w, kind ? psn : wire_psn_add(psn, 1));
	hca_wire_end_probe(w, acked);

	/* a NAK is of a later request then, not of the first one */
	if (!complete_before && (w->shm->recovers != SHM_WIRE_RECOVERS || kind == WIRE_AETH_NAK)) {
		hca_wire_miss_response(w);
		return;
	}
	if (kind == WIRE_AETH_ACK)
		take_credits(w, aeth);
	else if (kind == WIRE_AETH_RNR)
		wait_for_receive(w, aeth->syndrome & 31, complete_before);
	else if (kind == WIRE_AETH_NAK)
		take_nak(w, aeth->syndrome & 31);
}

/* Copies what has come to the memory of the request. An enum ibv_wc_status. */
static int place(struct hca_wire *w, const struct shm_request *r, const struct shm_entry *e,
                 uint64_t offset, struct hca_span *from, uint32_t bytes)
{
	struct hca_parts to;
	int ret;

	if (!hca_parts_of_request(&w->end, r, e, IBV_ACCESS_LOCAL_WRITE, &to))
		return IBV_WC_LOC_PROT_ERR;
	ret = hca_wire_scatter(&w->end, &to, offset, from, bytes);
	hca_wire_keeps(w, &w->connection->lock);
	return ret ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
}

/* Whether a packet is what must come as packet @i of the @n that answer request @r. */
static bool answers(const struct hca_wire *w, const struct shm_request *r,
                    const struct wire_roce_packet *p, uint32_t i, uint32_t n)
{
	const struct wire_opcode *opcode = &wire_opcodes[p->h.bth.opcode];
	const unsigned op = hca_operation(r->opcode);
	const bool is_word = opcode->headers & WIRE_ATOMICACK,
	           brings_word = (op & HCA_OP_WORD) && (op & HCA_OP_BACK);
	const bool ends = opcode->flags & WIRE_OPCODE_LAST;
	/* as ask() has asked for it; asked for again, it may begin anywhere, and end before what
	 * was kept */
	bool must_begin = i % HCA_WIRE_READ_MOST == 0,
	     must_end = i + 1 == n || (i + 1) % HCA_WIRE_READ_MOST == 0;

	if (!(op & HCA_OP_ANSWERED) || is_word != brings_word)
		return false;
	if ((opcode->headers & WIRE_AETH) && (p->h.aeth.syndrome >> 5 & 3) != WIRE_AETH_ACK)
		return false;
	if (is_word)
		return !p->payload_bytes;
	if (!(op & HCA_OP_BACK))
		return !p->payload_bytes && (opcode->flags & WIRE_OPCODE_FIRST) && must_end && ends;
	return p->payload_bytes == hca_wire_packet_bytes(w, r->length, i) &&
	       (must_end == ends || (ends && w->shm->cuts)) &&
	       (!must_begin || (opcode->flags & WIRE_OPCODE_FIRST));
}

/* Responses got lost. Those behind them may have come. */
static void ask_again(struct hca_wire *w)
{
	const struct hca_wire_copy *first = hca_wire_first_ahead(w, HCA_WIRE_REQUESTER);

	w->shm->has_gap = first != NULL;
	if (first)
		w->shm->gap_end = first->packet.h.bth.psn;
	hca_wire_miss_response(w);
}

/* A response has come, and one before it is missing. */
static BASE_COLD void take_early(struct hca_wire *w, const struct wire_roce_packet *p)
{
	if (hca_wire_is_selective(w))
		hca_wire_keep_ahead(w, HCA_WIRE_REQUESTER, p);
	if (w->shm->recovers != SHM_WIRE_RECOVERS)
		ask_again(w);
}

/* The same, of packet @i on of what answers request @r. */
static int place_data(struct hca_wire *w, const struct shm_request *r, const struct shm_entry *e,
                      uint32_t i, const struct hca_wire_run *run)
{
	const uint64_t *word = &run->packets->h.atomic_original;
	struct iovec iov[HCA_WIRES_RUN_MOST] = { { (void *)word, sizeof(*word) } };
	struct hca_span from = { .iov = iov, .n = 1 };

	if (!(hca_operation(r->opcode) & HCA_OP_BACK))
		return IBV_WC_SUCCESS;
	if (wire_opcodes[run->packets->h.bth.opcode].headers & WIRE_ATOMICACK)
		return place(w, r, e, 0, &from, sizeof(*word));
	from = hca_wire_payloads(run, iov);
	return place(w, r, e, (uint64_t)i << w->path.mtu_shift, &from, run->bytes);
}

/* Whether all of them are what must come from packet @i on. */
static bool all_answer(const struct hca_wire *w, const struct shm_request *r,
                       const struct hca_wire_run *run, uint32_t i, uint32_t n)
{
	for (unsigned k = 0; k < run->n; k++)
		if (i + k >= n || !answers(w, r, &run->packets[k], i + k, n))
			return false;
	return true;
}

/* Parts of what a READ asked for, what an atomic operation found, or that it is done. */
static void take_data(struct hca_wire *w, const struct hca_wire_run *run)
{
	const struct wire_roce_packet *p = run->packets;
	struct shm_entry entries[HCA_MAX_SGE];
	uint32_t psn = p->h.bth.psn, n, i;
	struct shm_request r;
	int status;

	/* it came twice. Before the first request, it would be behind the longest one */
	if (wire_psn_diff(psn, w->shm->acked) < 0)
		return;
	if (!acknowledge(w, psn)) {
		take_early(w, p);
		return;
	}
	if (psn != w->shm->acked || !hca_wire_first_request(w, &r, entries) ||
	    (hca_operation(r.opcode) & HCA_OP_LOCAL))
		return; /* nobody asked for it */
	n = hca_wire_packets_of(w, &r);
	i = wire_psn_add(psn, -hca_wire_first(w)->psn);
	if (i >= n)
		return;
	if (!all_answer(w, &r, run, i, n)) {
		hca_wire_fail(w, IBV_WC_BAD_RESP_ERR);
		return;
	}
	status = place_data(w, &r, entries, i, run);
	if (status) {
		hca_wire_fail(w, (enum ibv_wc_status)status);
		return;
	}
	if ((run->flags & WIRE_OPCODE_LAST) && w->shm->answered)
		w->shm->answered--;
	if (i + run->n == n) /* before the move: what is acknowledged is not behind the first
	                        request */
		hca_wire_complete(w, &r, n);
	hca_wire_move_acked(w, wire_psn_add(psn, run->n));
	for (i = 0; i < run->n; i++)
		if (wire_opcodes[p[i].h.bth.opcode].headers & WIRE_AETH)
			take_credits(w, &p[i].h.aeth);
}

/* Takes the responses that are kept behind the one that has come just now, up to the next gap.
 * @acked: before it. */
static BASE_COLD void take_ahead(struct hca_wire *w, uint32_t acked)
{
	struct hca_wire_copy *c;
	struct hca_wire_run run;

	while (!hca_wire_has_failed(w) &&
	       (c = hca_wire_take_ahead(w, HCA_WIRE_REQUESTER)) != NULL) {
		run = hca_wire_run_of(&c->packet, 1);
		take_data(w, &run);
		free(c);
	}
	hca_wire_end_probe(w, acked);
	if (w->shm->acked != acked && !w->shm->probes &&
	    hca_wire_first_ahead(w, HCA_WIRE_REQUESTER))
		ask_again(w);
}

/* A CNP (annex A17.9): the packets that this sends meet congestion. Packets that were sent before
 * this slowed down say nothing new. */
static void slow_down(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;

	if (s->slowed || !w->end.process->region.control->settings.roce_ecn ||
	    w->end.qp.type == IBV_QPT_UC) {
		HCA_WIRE_COUNT(w, rp_cnp_ignored);
		return;
	}
	HCA_WIRE_COUNT(w, rp_cnp_handled);
	s->slowed = s->psn != s->acked;
	s->slowed_until = s->psn;
	hca_wire_shrink(w);
}

static void take(struct hca_wire *w, const struct hca_wire_run *run)
{
	const uint32_t acked = w->shm->acked, psn = run->packets->h.bth.psn;

	/* what was never sent, or was acknowledged long ago, nobody asked for */
	if (hca_wire_has_failed(w) || wire_psn_diff(psn, w->shm->beyond) >= 0 ||
	    wire_psn_diff(psn, wire_psn_add(w->shm->acked, -1)) < 0)
		return;
	switch (run->packets->h.bth.opcode & 31) {
	case WIRE_ACKNOWLEDGE:
		take_aeth(w, psn, &run->packets->h.aeth);
		break;
	default:
		take_data(w, run);
		if (base_unlikely(!TAILQ_EMPTY(&w->ahead[HCA_WIRE_REQUESTER])))
			take_ahead(w, acked);
		else
			hca_wire_end_probe(w, acked);
	}
}

/* Packets that are not the next ones: some of them may be. */
static BASE_COLD void take_each(struct hca_wire *w, const struct hca_wire_run *run)
{
	for (unsigned i = 0; i < run->n; i++) {
		const struct hca_wire_run one = hca_wire_run_of(&run->packets[i], 1);

		take(w, &one);
	}
}

bool hca_wire_response(struct hca_wire *w, const struct hca_wire_run *run)
{
	const uint32_t head = hca_wire_head(w), psn = run->packets->h.bth.psn;

	if (run->packets->h.bth.opcode == WIRE_OPCODE_CNP) {
		slow_down(w);
		return false;
	}
	if (run->n == 1 ||
	    (psn == w->shm->acked && wire_psn_diff(w->shm->beyond, psn) >= (int32_t)run->n))
		take(w, run);
	else
		take_each(w, run);
	if (hca_wire_head(w) != head)
		hca_wire_look_for_owner(w);
	return hca_wire_send(w);
}
