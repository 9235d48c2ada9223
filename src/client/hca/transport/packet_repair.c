/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire: a process died while it had the lock of a half, in the middle of something. The daemon
 * says so when it releases the lock (daemon/clients/qp_undo.c), and the next holder makes the half
 * whole. If that holder dies before it is done, the one after it does the same again.
 *
 * The responder: what a packet has changed is undone, as if it had got lost, so its peer sends it
 * again. If its message was about to arrive, it does. Of an atomic operation, and of a receive that
 * is taken out of a shared queue, nobody can tell whether they are done: the queue pair fails.
 *
 * The requester goes back to what is acknowledged, as if all that was sent since had got lost. UC,
 * whose packets nobody acknowledges, fails.
 */
#include "base/log.h"
#include "hca/transport/packet_requester.h"

/* ---- responder ---- */

/* Finds the receive that is claimed for no message: its position. False: there is none. */
static bool find_claimed(const struct hca_wire *w, uint32_t *pos)
{
	const struct shm_ring_view *v = &w->responder.view;
	struct shm_ring_walk walk;
	uint64_t state;

	shm_ring_walk_begin(&walk, v->ring, w->end.qp.ring_shift);
	do {
		if (!shm_ring_walk_next(&walk, &state))
			return false;
		*pos = walk.pos - 1;
	} while (state != shm_ring_claimed(v, *pos));
	return true;
}

/* All is as before the packet came; the next message uses a receive that the packet has claimed. */
static void undo(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;

	s->in = s->before;
	if (s->in.operation != SHM_WIRE_SEND && !s->in.keeps)
		s->in.keeps = find_claimed(w, &s->in.claimed);
}

/* Its message arrives, unless it has; a program that waits for it hears of it, perhaps once
 * more. */
static void publish(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;
	struct hca_responder *t = &w->responder;
	const uint32_t pos = s->in.claimed;
	struct shm_arrival *slot = shm_ring_at(&t->view, pos);
	const struct shm_request r = { .opcode = s->publishes,
		                       .imm = slot->imm,
		                       .length = slot->length };

	if (atomic_load_explicit(&slot->state, memory_order_acquire) ==
	    shm_ring_claimed(&t->view, pos))
		hca_responder_end_send(t, &r, slot, pos);
	hca_cq_set_ready(t->cq, t->end.qp.ready_bit);
	atomic_thread_fence(memory_order_seq_cst); /* that before the look at arm */
	hca_cq_alert(t->process, t->cq);
	if (t->tells)
		hca_responder_tell(t, &r, IBV_WC_SUCCESS);

	s->in = s->before;
	s->in.operation = SHM_WIRE_NONE;
	s->in.keeps = s->in.nak_sent = s->in.nak_due = false;
	hca_wire_count_packets(w, s->publishes_packets, true);
}

static void mend_responder(struct hca_wire *w)
{
	switch (atomic_load_explicit(&w->shm->step, memory_order_relaxed)) {
	case SHM_WIRE_CHANGES:
		undo(w);
		break;
	case SHM_WIRE_PUBLISHES:
		publish(w);
		break;
	case SHM_WIRE_ONCE:
		hca_responder_refuse(&w->responder, HCA_NAK_REMOTE_OPERATION,
		                     "a process died while it received for the queue pair");
		hca_responder_fail(&w->responder);
	}
	hca_wire_step(w, SHM_WIRE_AT_REST);
}

/* ---- requester ---- */

/* It may have moved one of these, and not yet the other one. */
static void go_back(struct hca_wire *w)
{
	const uint32_t first = hca_wire_first(w)->psn;
	struct shm_wire *s = w->shm;

	if (wire_psn_diff(s->psn, s->beyond) > 0)
		s->beyond = s->psn;
	if (wire_psn_diff(s->acked, first) < 0)
		s->acked = first;
	hca_wire_go_back(w);
	s->probes = s->has_gap = false;
	if (s->acked == s->beyond) /* nothing can have got lost */
		s->recovers = SHM_WIRE_GOES_ON;
}

/* It has marked that all is done before SQD, and may have told nobody: it is told anew. */
static void drain_again(struct hca_wire *w)
{
	uint8_t drained = SHM_WIRE_DRAINED;

	atomic_compare_exchange_strong_explicit(&w->shm->drains, &drained, SHM_WIRE_DRAINS,
	                                        memory_order_relaxed, memory_order_relaxed);
}

static void mend_requester(struct hca_wire *w)
{
	if (hca_wire_has_failed(w))
		hca_wire_tell_of_failure(w);
	else if (w->end.qp.type == IBV_QPT_UC)
		hca_wire_fail(w, IBV_WC_RETRY_EXC_ERR);
	else
		go_back(w);
	drain_again(w);
}

BASE_COLD void hca_wire_mend(struct hca_wire *w, uint32_t what)
{
	const enum shm_wire_broken half = hca_wire_broken_bit(what);

	base_log_debug(packet, "QP 0x%06x: a process died while it worked on its %s", w->qpn,
	               half == SHM_WIRE_RESPONDER ? "responses" : "requests");
	if (half == SHM_WIRE_RESPONDER)
		mend_responder(w);
	else
		mend_requester(w);
	atomic_fetch_and_explicit(&w->shm->broken, (uint8_t)~half, memory_order_relaxed);
}
