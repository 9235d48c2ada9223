/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire, the responder's half: packets of requests are checked (section 9.7.4 of the
 * specification; section 9.8.2 for UC) and carried out by the responder of all connected queue
 * pairs. See packet_responder.h.
 *
 * Requests that come again are acknowledged again; a READ is carried out again; an atomic operation
 * is answered from what it found, an atomic WRITE and a FLUSH by a READ response without data, as
 * the first time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "hca/transport/packet_responder.h"

/* Besides what the responder says becomes of a packet: the worker has lost the queue pair. */
#define LOST (-100)

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

/* ---- receives ---- */

bool hca_wire_find_receive(struct hca_wire *w, struct hca_receive *rcv)
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

int hca_wire_fail_receive(struct hca_wire *w, struct hca_receive *rcv, enum ibv_wc_status status)
{
	const struct shm_request r = { .opcode = IBV_WR_SEND };

	return hca_responder_fail_receive(&w->responder, &r, rcv->slot, rcv->pos, status);
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

/* The credit itself, of a shared receive queue, is gone: its contents are where the message will
 * arrive. */
static void keep_credit(const struct hca_receive *rcv)
{
	rcv->slot->operation = rcv->is_one;
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
	if (keeps && hca_wire_find_receive(w, rcv))
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
	const struct shm_entry *entries = hca_receive_entries(rcv);
	unsigned n = 0;

	for (unsigned i = 0; i < rcv->n; i++) {
		struct shm_entry e = entries[i];
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
static int place_send(struct hca_wire *w, const struct hca_receive *rcv,
                      const struct hca_wire_run *run)
{
	struct hca_end *end = &w->responder.end;
	struct shm_entry entries[HCA_MAX_SGE];
	const uint32_t bytes = run->bytes;
	const uint64_t end_in = w->shm->in.offset + (uint64_t)bytes;
	struct iovec payloads[HCA_WIRES_RUN_MOST];
	struct hca_span from = hca_wire_payloads(run, payloads);
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
	ret = hca_wire_scatter(end, &to, 0, &from, bytes);
	if (!hca_wire_keeps(w, &w->shm->lock))
		return LOST;
	return ret == -ESRCH ? HCA_WAITS_FOR_PATH : ret ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
}

/* The request that packets end, as the responder knows it. */
static struct shm_request describe(const struct hca_wire_run *run, uint32_t length)
{
	const struct wire_roce_packet *p = &run->packets[run->n - 1];
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
static void begin_to_publish(struct hca_wire *w, const struct hca_wire_run *run,
                             const struct shm_request *r)
{
	w->shm->publishes = r->opcode;
	w->shm->publishes_packets = (uint8_t)run->n;
	hca_wire_step(w, SHM_WIRE_PUBLISHES);
}

/* The message has come as a whole: as hca_responder_end_send(). */
static int end_send(struct hca_wire *w, const struct hca_wire_run *run,
                    const struct hca_receive *rcv)
{
	struct shm_request r = describe(run, w->shm->in.offset);
	int ret;

	hca_wire_acknowledge_later(w, run);
	hca_responder_fill(&w->responder, &r, rcv->slot, SHM_OPERATION_PLACED);
	begin_to_publish(w, run, &r);
	ret = hca_responder_end_send(&w->responder, &r, rcv->slot, rcv->pos);
	if (!ret && w->responder.tells)
		hca_responder_tell(&w->responder, &r, ret);
	return ret;
}

/* The message does not go to its receive, which fails with @status. */
static bool refuse_send(struct hca_wire *w, struct hca_receive *rcv, enum ibv_wc_status status)
{
	const enum hca_nak nak =
	        status == IBV_WC_LOC_LEN_ERR ? HCA_NAK_INVALID_REQUEST : HCA_NAK_REMOTE_OPERATION;

	if (hca_wire_is_uc(w)) {
		w->shm->in.operation = SHM_WIRE_NONE;
		return hca_wire_refuse_as(w, hca_wire_fail_receive(w, rcv, status));
	}
	if (!hca_responder_is_there(&w->responder))
		return false;
	if (w->shm->in.n_responses)
		hca_wire_respond(w);
	return hca_wire_refuse_receive(w, nak, status);
}

/* The packet has become LOST, behind which its receive, if it has one, is to go on. */
static BASE_COLD bool give_up(struct hca_wire *w, const struct hca_receive *rcv)
{
	if (rcv)
		hca_responder_give_back(&w->responder, rcv->slot, rcv->pos);
	return false;
}

static bool take_send(struct hca_wire *w, const struct hca_wire_run *run)
{
	const struct wire_roce_packet *p = run->packets;
	const unsigned flags = run->flags;
	struct shm_wire *s = w->shm;
	struct hca_receive rcv;
	int ret = 0;

	if (wire_opcodes[p->h.bth.opcode].headers & WIRE_IETH)
		ret = hca_responder_check_key(&w->responder, p->h.invalidate_rkey);
	if (ret)
		return hca_wire_refuse_as(w, ret);
	if (flags & WIRE_OPCODE_FIRST) {
		ret = take_receive(w, &rcv);
		if (ret)
			return hca_wire_refuse_as(w, ret);
		s->in.operation = SHM_WIRE_SEND;
		s->in.offset = 0;
	} else if (!hca_wire_find_receive(w, &rcv)) {
		return false;
	}
	ret = place_send(w, &rcv, run);
	if (base_unlikely(ret == LOST))
		return give_up(w, &rcv);
	if (ret && !hca_wire_is_uc(w) && (flags & WIRE_OPCODE_FIRST))
		drop_message(w);       /* its packet may come again, and finds the receive */
	if (ret == HCA_WAITS_FOR_PATH) /* as if the packet had got lost */
		return false;
	if (ret)
		return refuse_send(w, &rcv, (enum ibv_wc_status)ret);
	s->in.offset += run->bytes;
	if (flags & WIRE_OPCODE_LAST) {
		s->in.operation = SHM_WIRE_NONE;
		ret = end_send(w, run, &rcv);
	}
	return !ret;
}

/* ---- RDMA WRITE ---- */

/* As hca_responder_begin_rdma(), or LOST. */
static int place_write(struct hca_wire *w, const struct hca_wire_run *run, uint32_t check)
{
	struct iovec payloads[HCA_WIRES_RUN_MOST];
	struct hca_span from = hca_wire_payloads(run, payloads);
	const struct shm_request r = { .opcode = IBV_WR_RDMA_WRITE,
		                       .rkey = w->shm->in.rkey,
		                       .remote_addr = w->shm->in.addr + w->shm->in.offset };
	struct hca_responder *t = &w->responder;
	struct hca_parts to;
	int ret = hca_responder_begin_rdma(t, &r, check, IBV_ACCESS_REMOTE_WRITE, &to);

	if (ret || !run->bytes)
		return ret;
	ret = hca_wire_scatter(&t->end, &to, 0, &from, run->bytes);
	if (!hca_wire_keeps(w, &w->shm->lock))
		return LOST;
	return ret ? hca_responder_copy_failed(t, ret) : 0;
}

static int end_write(struct hca_wire *w, const struct hca_wire_run *run, struct hca_receive *rcv)
{
	struct hca_responder *t = &w->responder;
	struct shm_request r = describe(run, w->shm->in.length);
	int ret = 0;

	if (r.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		hca_wire_acknowledge_later(w, run);
		hca_responder_fill(t, &r, rcv->slot, SHM_OPERATION_WRITE);
		begin_to_publish(w, run, &r);
		ret = hca_responder_publish(t, rcv->slot, rcv->pos);
	}
	if (!ret && t->tells)
		hca_responder_tell(t, &r, ret);
	return ret;
}

static bool take_write(struct hca_wire *w, const struct hca_wire_run *run)
{
	const struct wire_roce_packet *p = run->packets;
	const bool has_imm = wire_opcodes[p->h.bth.opcode].headers & WIRE_IMMDT;
	const unsigned flags = run->flags;
	const uint32_t bytes = run->bytes;
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
		return hca_wire_refuse_invalid(w, "a WRITE is not as long as it says");
	ret = has_imm ? take_receive(w, &rcv) : 0;
	if (ret)
		return hca_wire_refuse_as(w, ret);
	/* the first packet: whether all of it is allowed */
	ret = place_write(w, run, flags & WIRE_OPCODE_FIRST ? s->in.length : bytes);
	if (base_unlikely(ret == LOST))
		return give_up(w, has_imm ? &rcv : NULL);
	if (ret && has_imm)
		s->in.keeps = true; /* for this message when it comes again, or for the next one */
	if (ret)
		return hca_wire_refuse_as(w, ret);
	s->in.operation = SHM_WIRE_WRITE;
	s->in.offset += bytes;
	if (flags & WIRE_OPCODE_LAST) {
		s->in.operation = SHM_WIRE_NONE;
		ret = end_write(w, run, &rcv);
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
	        hca_wire_new_response(w, SHM_WIRE_MEMORY, p->h.bth.psn, packets);
	struct hca_parts from;
	int ret;

	if (!response)
		return false;
	/* a repeated request is the one that was there before, or the rest of it */
	if (again && wire_psn_diff(wire_psn_add(p->h.bth.psn, packets), w->shm->in.expected) > 0)
		return false;
	if (r.length > HCA_MAX_MESSAGE)
		return !again && hca_wire_refuse_invalid(w, "a READ is longer than messages are");
	ret = hca_responder_begin_read(&w->responder, &r, &from);
	if (ret)
		return !again && hca_wire_refuse_as(w, ret);
	response->rkey = r.rkey;
	response->addr = r.remote_addr;
	response->length = r.length;
	if (!again) {
		w->shm->in.msn = wire_psn_add(w->shm->in.msn, 1);
		move_expected(w->shm, packets);
		if (w->responder.tells)
			hca_responder_tell(&w->responder, &r, IBV_WC_SUCCESS);
	}
	hca_wire_add_response(w, response);
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

/* A request that is carried out once, however often it comes. */
static bool take_once(struct hca_wire *w, const struct wire_roce_packet *p)
{
	struct shm_wire_response *response =
	        hca_wire_new_response(w, answer_of(p->h.bth.opcode), p->h.bth.psn, 1);
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
		return hca_wire_refuse_as(w, ret);
	response->value = found;
	save(w, response);
	w->shm->in.msn = wire_psn_add(w->shm->in.msn, 1);
	move_expected(w->shm, 1);
	hca_wire_add_response(w, response);
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
		r = hca_wire_new_response(w, answer, psn, 1);
		if (!r)
			return;
		r->value = s->value;
		hca_wire_add_response(w, r);
		return;
	}
}

static void take_duplicate(struct hca_wire *w, const struct wire_roce_packet *p)
{
	const unsigned flags = wire_opcodes[p->h.bth.opcode].flags;

	HCA_WIRE_COUNT(w, duplicate_request);
	if (hca_wire_is_uc(w) || wire_opcode_is_reserved(p->h.bth.opcode) ||
	    (!(flags & WIRE_OPCODE_PAYLOAD) && p->payload_bytes) || is_pending(w, p->h.bth.psn))
		return;
	if ((p->h.bth.opcode & 31) == WIRE_READ_REQUEST)
		take_read(w, p, true);
	else if (flags & WIRE_OPCODE_ANSWERED)
		answer_again(w, p->h.bth.psn, answer_of(p->h.bth.opcode));
	else
		hca_wire_set_ack_due(w, true);
}

/* ---- all ---- */

/* Whether packets of that operation can come now, and are as long as they must be. */
static bool fits(const struct hca_wire *w, const struct hca_wire_run *run,
                 enum shm_wire_operation operation)
{
	const uint32_t mtu = mtu_of(w), last = run->packets[run->n - 1].payload_bytes;
	enum shm_wire_operation now = w->shm->in.operation;

	if (run->flags & WIRE_OPCODE_FIRST ? now != SHM_WIRE_NONE : now != operation)
		return false;
	for (unsigned i = 0; i + 1 < run->n; i++)
		if (run->packets[i].payload_bytes != mtu)
			return false;
	if (!(run->flags & WIRE_OPCODE_LAST))
		return last == mtu;
	return last <= mtu && (last || (run->n == 1 && (run->flags & WIRE_OPCODE_FIRST)));
}

void hca_wire_give_back(struct hca_wire *w)
{
	struct hca_receive rcv;

	if ((w->shm->in.operation == SHM_WIRE_SEND || w->shm->in.keeps) &&
	    hca_wire_find_receive(w, &rcv))
		hca_responder_give_back(&w->responder, rcv.slot, rcv.pos);
	w->shm->in.operation = SHM_WIRE_NONE;
	w->shm->in.keeps = false;
}

static bool carry_out(struct hca_wire *w, const struct hca_wire_run *run)
{
	const struct wire_roce_packet *p = run->packets;
	const unsigned flags = run->flags;
	const unsigned op = p->h.bth.opcode & 31;
	bool is_write = op >= WIRE_WRITE_FIRST && op <= WIRE_WRITE_ONLY_IMM;

	if (wire_opcode_is_reserved(p->h.bth.opcode)) /* section 9.9.3 */
		return hca_wire_refuse_invalid(w, "an opcode is reserved");
	if (flags & WIRE_OPCODE_ANSWERED) {
		if (w->shm->in.operation != SHM_WIRE_NONE)
			return hca_wire_refuse_invalid(w, "a message is not whole");
		if (!(flags & WIRE_OPCODE_PAYLOAD) && p->payload_bytes)
			return hca_wire_refuse_invalid(w, "a packet has data that must have none");
		return op == WIRE_READ_REQUEST ? take_read(w, p, false) : take_once(w, p);
	}
	if (!fits(w, run, is_write ? SHM_WIRE_WRITE : SHM_WIRE_SEND))
		return hca_wire_refuse_invalid(w, "a packet does not fit its message");
	return is_write ? take_write(w, run) : take_send(w, run);
}

void hca_wire_count_packets(struct hca_wire *w, uint32_t n, bool is_last)
{
	move_expected(w->shm, n);
	if (is_last)
		w->shm->in.msn = wire_psn_add(w->shm->in.msn, 1);
}

/* A packet's changes between these two calls can be undone, unless a step says otherwise (enum
 * shm_wire_step). */

static void begin_packet(struct hca_wire *w)
{
	w->shm->before = w->shm->in;
	hca_wire_step(w, SHM_WIRE_CHANGES);
}

static void end_packet(struct hca_wire *w)
{
	hca_wire_step(w, SHM_WIRE_AT_REST);
}

/* The packets that were to come next. */
static void take_expected(struct hca_wire *w, const struct hca_wire_run *run)
{
	const bool is_answered = run->flags & WIRE_OPCODE_ANSWERED;
	bool done = carry_out(w, run);

	if (done)
		w->shm->in.nak_sent = w->shm->in.nak_due = false;
	if (done && !is_answered) {
		hca_wire_count_packets(w, run->n, run->flags & WIRE_OPCODE_LAST);
		hca_wire_acknowledge_later(w, run);
	}
	if (!done && hca_wire_is_uc(w)) { /* nobody sends it again */
		drop_message(w);
		w->shm->in.expected = wire_psn_add(run->packets->h.bth.psn, run->n);
	}
}

/* Carries out the packets that waited behind the one that has been carried out just now. The peer
 * does not know that they were kept, so they are acknowledged; a refusal does that, too. */
static BASE_COLD void take_ahead(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;
	struct hca_wire_copy *c;
	struct hca_wire_run run;
	bool done = true;

	while (done && (c = hca_wire_first_ahead(w, HCA_WIRE_RESPONDER)) != NULL) {
		const unsigned flags = wire_opcodes[c->packet.h.bth.opcode].flags;
		const uint32_t psn = s->in.expected;

		/* as work() in packet_receiver.c */
		if ((flags & WIRE_OPCODE_RECEIVES) && s->in.n_responses && hca_wire_respond(w))
			return;
		c = hca_wire_take_ahead(w, HCA_WIRE_RESPONDER);
		if (!c)
			break;
		begin_packet(w);
		run = hca_wire_run_of(&c->packet, 1);
		take_expected(w, &run);
		end_packet(w);
		done = s->in.expected != psn;
		if (done && !(flags & WIRE_OPCODE_ANSWERED))
			hca_wire_set_ack_due(w, true);
		free(c);
	}
	if (!hca_responder_is_well(&w->responder)) {
		hca_wire_set_ack_due(w, false);
	} else if (done && !s->in.n_responses && hca_wire_first_ahead(w, HCA_WIRE_RESPONDER)) {
		hca_wire_refuse_sequence(w); /* the next gap */
		hca_wire_set_ack_due(w, false);
	}
}

/* A packet has come behind a gap, of which the peer is told. */
static BASE_COLD void take_early(struct hca_wire *w, const struct wire_roce_packet *p)
{
	HCA_WIRE_COUNT(w, out_of_sequence);
	hca_wire_refuse_sequence(w);
	if (hca_wire_is_selective(w))
		hca_wire_keep_ahead(w, HCA_WIRE_RESPONDER, p);
}

/* Packets that are not the next ones: some of them may be. */
static void take_each(struct hca_wire *w, const struct hca_wire_run *run)
{
	for (unsigned i = 0; i < run->n; i++) {
		const struct hca_wire_run one = hca_wire_run_of(&run->packets[i], 1);

		hca_wire_request(w, &one);
	}
}

void hca_wire_request(struct hca_wire *w, const struct hca_wire_run *run)
{
	const struct wire_roce_packet *p = run->packets;
	const uint32_t expected = w->shm->in.expected;
	int32_t diff = wire_psn_diff(p->h.bth.psn, expected);

	if (w->shm->in.n_responses > SHM_WIRE_RESPONSES || !hca_responder_is_well(&w->responder))
		return;
	/* UC: a packet that begins a message ends the one before, whole or not (class D1) */
	if (hca_wire_is_uc(w) &&
	    (diff || ((run->flags & WIRE_OPCODE_FIRST) && w->shm->in.operation != SHM_WIRE_NONE))) {
		drop_message(w);
		w->shm->in.expected = p->h.bth.psn;
		diff = 0;
		if (!(run->flags & WIRE_OPCODE_FIRST)) {
			w->shm->in.expected = wire_psn_add(p->h.bth.psn, run->n);
			return;
		}
	}
	if (base_unlikely(diff && run->n > 1)) {
		take_each(w, run);
		return;
	}
	begin_packet(w);
	if (diff < 0)
		take_duplicate(w, p);
	else if (diff > 0)
		take_early(w, p);
	else
		take_expected(w, run);
	end_packet(w);
	if (base_unlikely(!TAILQ_EMPTY(&w->ahead[HCA_WIRE_RESPONDER])) &&
	    w->shm->in.expected != expected)
		take_ahead(w);
}
