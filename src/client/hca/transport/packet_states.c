/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire, its owner's part: it opens and closes with the queue pair's state, and goes on when the
 * program posts or polls. See packet_connection.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/pause.h"
#include "base/util.h"
#include "hca/registration/mw.h"
#include "hca/transport/packet_connection.h"

#define FIRST_WINDOW 64

/* ---- open and closed ---- */

/* The halves that are open in that state. */
static uint32_t what_of(enum ibv_qp_state state)
{
	return state == IBV_QPS_RTS   ? SHM_WIRE_RECEIVES | SHM_WIRE_SENDS
	       : state == IBV_QPS_SQD ? SHM_WIRE_RECEIVES | SHM_WIRE_SENDS | SHM_WIRE_PAUSED
	                              : SHM_WIRE_RECEIVES;
}

static void open_responder(struct hca_connected_qp *c, struct shm_wire *s)
{
	const struct shm_region *r = &c->qp.ctx->process->region;

	s->doubt_since_ns = 0;
	s->turns_lost = (uint32_t)atomic_load_explicit(
	        &shm_roce_port_at(r, c->qp.sender.port)->overtakes, memory_order_relaxed);
	s->in.expected = c->qp.connection.rq_psn;
	s->in.expected_rounds = s->in.msn = 0;
	s->in.nak_sent = s->in.nak_due = s->in.operation = 0;
	atomic_store_explicit(&s->ack_due, false, memory_order_relaxed);
	atomic_store_explicit(&s->ack_waits, false, memory_order_relaxed);
	atomic_store_explicit(&s->credits_due, false, memory_order_relaxed);
	s->in.keeps = false;
	s->in.n_responses = s->in.next_response = s->in.next_saved = 0;
	atomic_store_explicit(&s->egress, 0, memory_order_relaxed);
	memset(s->saved, 0, sizeof(s->saved));
	/* packets of before, if somebody still has some, are passed over */
	atomic_store_explicit(&s->taken_up, atomic_load_explicit(&s->put_off, memory_order_relaxed),
	                      memory_order_relaxed);
	atomic_store_explicit(&s->broken, 0, memory_order_relaxed);
	atomic_store_explicit(&s->step, SHM_WIRE_AT_REST, memory_order_relaxed);
}

static void open_requester(struct hca_connected_qp *c, struct shm_wire *s)
{
	s->next = hca_connected_load(&c->shm->head);
	s->psn = s->acked = s->beyond = c->qp.sender.psn & WIRE_PSN_MASK;
	*shm_wire_head(s, s->next) = (struct shm_wire_head){ .psn = s->psn };
	s->offset = s->answered = s->grown = 0;
	s->window = FIRST_WINDOW;
	s->retries = s->rnr_retries = s->recovers = s->slowed = s->early = 0;
	s->ran_short = s->has_limit = s->limited = s->probes = s->has_gap = s->cuts = false;
	s->in_vain = 0;
	s->acked_rounds = 0;
	s->reader = (struct shm_reader){ 0 };
	atomic_store_explicit(&s->awaits_turn, false, memory_order_relaxed);
	atomic_store_explicit(&s->held_up, false, memory_order_relaxed);
	s->takes = s->credits = 0;
	s->round_ns = s->timed_ns = 0;
	atomic_store_explicit(&s->deadline_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&s->resume_ns, 0, memory_order_relaxed);
}

/* UC has been in SQE: the requests that failed are completed, and the next request is the first
 * one. */
static void resume(struct hca_connected_qp *c, struct shm_wire *s)
{
	if (!hca_connected_load(&c->shm->failed))
		return;
	s->next = hca_connected_load(&c->shm->head);
	s->offset = 0;
	s->acked = shm_wire_head(s, s->next)->psn = s->psn;
	/* release: a thread that sees that it has not failed must not send again what was
	 * flushed */
	atomic_store_explicit(&c->shm->failed, 0, memory_order_release);
}

static struct hca_wire *make(struct hca_connected_qp *c)
{
	c->wire = calloc(1, sizeof(*c->wire));
	if (c->wire) /* else it is as if all that it sends got lost */
		hca_wire_init(c->wire, c->qp.ctx->process, c->qp.sender.qpn, c->qp.sender.qpn,
		              &c->qp.sender);
	return c->wire;
}

void hca_wire_open(struct hca_connected_qp *c)
{
	struct hca_process *p = c->qp.ctx->process;
	struct shm_wire *s = shm_wire_at(&p->region, SHM_QP_INDEX(c->qp.sender.qpn));
	const enum ibv_qp_state state = hca_qp_state(&c->qp);
	const uint32_t after = what_of(state);
	struct shm_wire_path path = { .detours = SHM_WIRE_NO_DETOUR };
	uint32_t open, before;

	if (c->qp.transport->type != IBV_QPT_RC && c->qp.transport->type != IBV_QPT_UC)
		return;
	/* a queue pair that has had no wire does not look: to look at one that was never used takes
	 * memory */
	if (!hca_wire_choose(c, &path, c->wire && (hca_wire_opened(c->wire) % SHM_WIRE_OPENED)) ||
	    (!c->wire && !make(c)))
		return;
	open = atomic_load_explicit(&s->open, memory_order_relaxed);
	before = open % SHM_WIRE_OPENED;
	if (before && path.sgid_index == s->path.sgid_index)
		path.sgid = s->path.sgid; /* its first one */
	if (state == IBV_QPS_RTS && c->qp.transport->type == IBV_QPT_UC)
		resume(c, s);
	if (before == after && !memcmp(&path, &s->path, sizeof(path)))
		return;
	s->path = path;
	if (!(after & SHM_WIRE_PAUSED))
		atomic_store_explicit(&s->drains, SHM_WIRE_TELLS_NOBODY, memory_order_relaxed);
	if (!(before & SHM_WIRE_RECEIVES))
		open_responder(c, s);
	if (after & ~before & SHM_WIRE_SENDS)
		open_requester(c, s);
	atomic_store_explicit(&shm_roce_port_at(&p->region, c->qp.sender.port)->has_wires, true,
	                      memory_order_relaxed);
	/* release: pairs with the acquire in hca_wire_opened() */
	atomic_store_explicit(&s->open, open - before + SHM_WIRE_OPENED + after,
	                      memory_order_release);
}

/* The holder of the lock may be stopped: then nobody knows, and it is told at once. */
bool hca_wire_drain(struct hca_connected_qp *c)
{
	struct hca_wire *w = c->wire;
	uint64_t began = base_now_ns();
	struct base_pause pause = { 0 };
	bool drains;

	if (!w || !hca_wire_renew(w) || !hca_wire_is_open(w, SHM_WIRE_SENDS))
		return false;
	while (!hca_wire_acquire(w, &c->shm->lock)) {
		if (base_now_ns() - began > HCA_STOPPED_WAIT_NS)
			return false;
		base_pause(&pause);
	}
	drains = hca_wire_may_work(w, SHM_WIRE_SENDS) && hca_wire_drains(w);
	hca_wire_release(&c->shm->lock, w->worker);
	return drains;
}

/* Acquires a lock, also from a holder that has it for longer than a living thread may. */
static void lock_for_good(_Atomic uint32_t *lock, uint32_t worker)
{
	uint64_t began = base_now_ns();
	struct base_pause pause = { 0 };

	while (!hca_wire_try_lock(lock, worker)) {
		if (base_now_ns() - began > HCA_STOPPED_WAIT_NS)
			atomic_store_explicit(lock, 0, memory_order_relaxed);
		base_pause(&pause);
	}
}

/* Others may have packets that are on their way out: for longer than a living thread may, if they
 * were stopped. */
static void wait_for_egress(struct hca_wire *w)
{
	uint64_t began = base_now_ns();
	struct base_pause pause = { 0 };

	while (!hca_wire_acquire_egress(w) && base_now_ns() - began < HCA_STOPPED_WAIT_NS)
		base_pause(&pause);
}

/* The program has perhaps seen messages before they were acknowledged; a part of a message will not
 * become whole. */
static void acknowledge_all(struct hca_connected_qp *c)
{
	struct hca_wire *w = c->wire;

	if (!hca_wire_renew(w) || !hca_wire_is_open(w, SHM_WIRE_RECEIVES))
		return;
	hca_exchange_begin(&c->x, w->qpn);
	hca_wire_may_work(w, SHM_WIRE_RECEIVES);
	if (hca_wire_ack_is_due(w)) {
		wait_for_egress(w);
		hca_wire_respond(w);
	}
	hca_wire_give_back(w);
	hca_wire_leave(w);
	hca_connected_leave(c);
}

void hca_wire_close(struct hca_connected_qp *c)
{
	struct hca_wire *w = c->wire;

	if (!w)
		return;
	lock_for_good(&w->shm->lock, w->worker);
	acknowledge_all(c);
	atomic_store_explicit(&w->shm->open,
	                      hca_wire_opened(w) / SHM_WIRE_OPENED * SHM_WIRE_OPENED +
	                              SHM_WIRE_OPENED,
	                      memory_order_release);
	hca_wire_release(&w->shm->lock, w->worker);
	atomic_store_explicit(&w->shm->drains, SHM_WIRE_TELLS_NOBODY, memory_order_relaxed);
	atomic_store_explicit(&w->shm->deadline_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&w->shm->resume_ns, 0, memory_order_relaxed);
}

void hca_wire_free(struct hca_connected_qp *c)
{
	if (!c->wire)
		return;
	hca_wire_fini(c->wire);
	free(c->wire);
	c->wire = NULL;
}

/* ---- going on ---- */

/* Carries out requests at the head of the queue that are the owner's own business. */
static void carry_out_local(struct hca_connected_qp *c)
{
	struct shm_wire *s = c->wire->shm;
	struct shm_entry entries[HCA_MAX_SGE];
	struct shm_request r;
	int status;

	while (hca_connected_load(&c->shm->head) == s->next &&
	       s->next != hca_connected_load(&c->shm->tail) &&
	       !hca_connected_load(&c->shm->failed) &&
	       hca_connected_take(&c->wire->end, s->next, &r, entries) &&
	       (hca_operation(r.opcode) & HCA_OP_LOCAL)) {
		hca_connected_leave(c); /* it waits for threads that deal with a peer */
		status = hca_mw_carry_out(&c->qp, &r);
		hca_exchange_begin(&c->x, c->wire->qpn);
		*shm_wire_head(s, s->next + 1) = *shm_wire_head(s, s->next); /* it sends nothing */
		if (!hca_connected_settle(c->shm, s->next, status))
			return;
		s->next++;
	}
}

/* A process was stopped for long while it worked on the queue pair: nobody knows how far it was, so
 * its work must not be done again. */
static void give_up(struct hca_connected_qp *c)
{
	struct shm_connection *s = c->shm;

	base_log_debug(packet, "QP 0x%06x: whoever worked on it was stopped", c->wire->qpn);
	atomic_store_explicit(&s->failed,
	                      shm_failed(hca_connected_load(&s->head), IBV_WC_RETRY_EXC_ERR),
	                      memory_order_release);
}

/* Which thread has the lock, and at which turn: a thread names its peer anew at each turn. 0: none
 * has it. */
static uint64_t barred_by(const struct hca_connected_qp *c)
{
	uint32_t holder = atomic_load_explicit(&c->shm->lock, memory_order_relaxed);

	if (!holder)
		return 0;
	return (uint64_t)holder << 32 |
	       atomic_load_explicit(
	               &shm_sender_at(&c->qp.ctx->process->region, SHM_QP_INDEX(holder))
	                        ->target_qpn,
	               memory_order_relaxed);
}

/* Somebody else has the lock: goes on without it, if that one must have been stopped. An owner that
 * looks seldom may meet another thread each time, as they work on it one after the other. */
static void bear(struct hca_connected_qp *c)
{
	struct hca_wire *w = c->wire;
	uint64_t now = base_now_ns(), by = barred_by(c);

	if (!w->barred_since_ns || !by || w->barred_by != by) {
		w->barred_since_ns = now;
		w->barred_by = by;
	} else if (now - w->barred_since_ns > HCA_STOPPED_WAIT_NS) {
		give_up(c);
	}
	hca_wire_watch(w); /* the holder may have seen the queue before */
}

void hca_wire_go_on(struct hca_connected_qp *c)
{
	struct hca_wire *w = c->wire;
	uint32_t before = w->shm->psn;
	unsigned for_others = 0;
	bool more = true, wanted = false;

	if (!hca_wire_renew(w) || !hca_wire_is_open(w, SHM_WIRE_SENDS) ||
	    hca_qp_state(&c->qp) != IBV_QPS_RTS)
		return;
	hca_exchange_begin(&c->x, w->qpn);
	while (more && hca_wire_acquire(w, &c->shm->lock)) {
		w->barred_since_ns = 0;
		hca_wire_may_work(w, SHM_WIRE_SENDS); /* it may, but first this may mend it */
		hca_wire_look_at_time(w, base_now_ns());
		carry_out_local(c);
		more = hca_wire_send(w);
		carry_out_local(c);
		hca_wire_release_requests(w);
		if (!more && w->shm->psn != before)
			hca_wire_replied(w);
		if (wanted)
			hca_wire_try_respond(w);
		wanted = hca_wire_leave(w);
		more |= wanted && for_others++ < HCA_WIRE_BATCHES_MOST;
	}
	hca_connected_leave(c);
	if (more || wanted)
		bear(c);
}

/* Whether the program may sleep on a completion queue. */
static bool may_sleep(const struct hca_connected_qp *c)
{
	const struct hca_cq *receives = c->qp.rq->cq;

	return hca_connected_sleeps_on(c) != UINT32_MAX ||
	       atomic_load_explicit(&receives->shm->arm, memory_order_relaxed) != SHM_CQ_IDLE;
}

void hca_wire_look_at_network(const struct hca_connected_qp *c)
{
	struct hca_link *network = c->qp.sender.network;

	if (network && network->ops->attention(network, base_now_ns()) == HCA_NEGLECTED &&
	    !may_sleep(c))
		network->ops->progress(network, true);
}

/* The lock of sends may be this thread's own, by ibv_wr_start(): it is not waited for. */
void hca_wire_tell_credits(struct hca_connected_qp *c)
{
	struct hca_process *p = c->qp.ctx->process;
	const uint32_t qpn = c->qp.sender.qpn;
	struct shm_wire *s = shm_wire_at(&p->region, SHM_QP_INDEX(qpn));
	struct hca_wire *w;

	atomic_store_explicit(&s->credits_due, true, memory_order_seq_cst);
	if (base_trylock(&c->qp.send_lock)) {
		w = c->wire;
		if (w && hca_wire_renew(w)) {
			hca_exchange_begin(&c->x, qpn);
			hca_wire_try_acknowledge(w);
			if (hca_wire_leave(w))
				hca_wire_watch(w);
			hca_connected_leave(c);
		}
		base_unlock(&c->qp.send_lock);
	}
	if (atomic_load_explicit(&s->credits_due, memory_order_relaxed))
		hca_wire_watch_queue(p, qpn, &c->qp.sender, hca_connected_detours(c->shm));
}
