/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire: what both halves share, its owner's part, and whose packet it is. See wire.h.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "hca/link/detour.h"
#include "hca/link/flow.h"
#include "hca/link/payload.h"
#include "hca/link/wires.h"
#include "hca/registration/mw.h"
#include "hca/transport/wire.h"

#define FIRST_WINDOW 64
/* Who has a lock has it for a microsecond, unless the scheduler stops it: it is not waited for. */
#define LOCK_SPINS 50
/* So many packets of a queue pair are put off, as its lock was not to be had; more get lost. */
#define MOST_DEFERRED 64
/* So long the queue pairs that have something to send are seen to at once, ns: a thousand of them
 * may have a READ each, of which one turn sends a quarter of a MiB. */
#define FINISH_NS 500000
/* So long packets wait for one that another process has put off: then it counts as lost. */
#define PATIENCE_NS 100000000
/* A port's receiver forgets queue pairs that are closed when it knows twice as many as were left
 * the last time, and so many more. */
#define SWEEP 16
/* Who has answered so many times in a row will do so again. */
#define REPLIES_ENOUGH 4
/* A peer whose packets come marked by congestion is told so once in so many ns. */
#define CNP_NS    50000
#define CNP_BYTES 16 /* reserved */
/* The two bits of ECN in a traffic class: not marked, may be; and marked. */
#define ECN_MASK    3
#define ECN_CAPABLE 2
#define ECN_MARKED  3

/* ---- locks ---- */

static bool try_lock(_Atomic uint32_t *lock, uint32_t worker)
{
	uint32_t nobody = 0;

	/* acquire: pairs with the release in release() */
	return atomic_compare_exchange_strong_explicit(lock, &nobody, worker, memory_order_acquire,
	                                               memory_order_relaxed);
}

/* Acquires a lock in shared memory, unless somebody else keeps it. */
static bool acquire(const struct hca_wire *w, _Atomic uint32_t *lock)
{
	for (unsigned spins = 0; !try_lock(lock, w->worker); spins++) {
		if (spins == LOCK_SPINS)
			return false;
		base_relax();
	}
	return true;
}

static void release(_Atomic uint32_t *lock, uint32_t worker)
{
	/* it may have been taken from a thread that was stopped */
	atomic_compare_exchange_strong_explicit(lock, &worker, 0, memory_order_release,
	                                        memory_order_relaxed);
}

/* Releases the lock of the send queue. What is to be sent leaves behind that, as it may take long,
 * and what comes back wants the lock; then packets of another thread may overtake it. UC, to which
 * nothing comes back, would lose messages by that. */
static void release_queue(const struct hca_wire *w)
{
	if (w->end.qp.type == IBV_QPT_UC)
		hca_sender_finish(w->sender);
	release(&w->connection->lock, w->worker);
}

/* ---- what a thread needs to know ---- */

static uint32_t opened(const struct hca_wire *w)
{
	/* acquire: pairs with the release in hca_wire_open(): the path came before */
	return atomic_load_explicit(&w->shm->open, memory_order_acquire);
}

/* Whether it is open for that, and all that this thread knows is still so. */
static bool is_open(const struct hca_wire *w, uint32_t what)
{
	uint32_t open = opened(w);

	return (open & what) && open == w->open;
}

static void prepare(struct hca_wire *w)
{
	struct hca_process *p = w->end.process;
	uint32_t peer = w->end.qp.connection.dest_qpn;

	w->responder.process = p;
	w->responder.worker = w->worker;
	w->responder.held = &w->shm->lock;
	w->responder.end.qp = w->end.qp;
	w->responder.end.memory = w->end.memory;
	hca_responder_prepare(&w->responder, peer, w->qpn);
	hca_end_prepare(&w->end, p, w->qpn, w->worker);
	hca_end_prepare(&w->responder.end, p, w->qpn, w->worker);
	w->open = opened(w); /* before the path: what changes meanwhile is copied again */
	w->path = w->shm->path;
	w->path.mtu_shift = w->path.mtu_shift < 8    ? 8
	                    : w->path.mtu_shift > 12 ? 12
	                                             : w->path.mtu_shift;
	if (w->path.detours > SHM_WIRE_AWAY)
		w->path.detours = SHM_WIRE_NO_DETOUR;
	if (!w->sender->network && !w->path.detours) /* it knows no other way */
		w->path.detours = SHM_WIRE_HERE;
	w->route = (struct hca_roce_route){ .dgid = w->path.dgid,
		                            .class_flow = w->path.class_flow,
		                            .qpn = w->qpn,
		                            .hop_limit = w->path.hop_limit };
	hca_wire_find_source(w);
	if (p->region.control->settings.roce_ecn && !(w->path.class_flow >> 20 & ECN_MASK))
		w->route.class_flow |= ECN_CAPABLE << 20;
}

bool hca_wire_renew(struct hca_wire *w)
{
	struct hca_process *p = w->end.process;
	struct hca_memory *old = w->end.memory;

	/* acquire: pairs with the release in shm_write_end() */
	if (old && atomic_load_explicit(w->end.seq, memory_order_acquire) == w->end.qp.seq &&
	    opened(w) == w->open)
		return true;
	shm_qp_read(&p->region, w->qpn, &w->end.qp);
	w->end.memory = NULL;
	if (w->end.qp.qpn == w->qpn && w->end.qp.connection.keys_off)
		w->end.memory = hca_memory_get(p, &w->end.qp);
	if (old)
		hca_memory_put(p, old);
	if (!w->end.memory)
		return false;
	prepare(w);
	return true;
}

static void init(struct hca_wire *w, struct hca_process *p, uint32_t qpn, uint32_t worker,
                 struct hca_sender *sender)
{
	w->qpn = qpn;
	w->worker = worker;
	w->sender = sender;
	w->shm = &p->region.wires[SHM_QP_INDEX(qpn)];
	w->connection = &p->region.connections[SHM_QP_INDEX(qpn)];
	TAILQ_INIT(&w->deferred);
	for (unsigned half = 0; half < HCA_WIRE_HALVES; half++)
		TAILQ_INIT(&w->ahead[half]);
	w->end.process = p;
	w->end.seq = &p->region.qps[SHM_QP_INDEX(qpn)].seq;
}

static void fini(struct hca_wire *w)
{
	struct hca_wire_copy *d;

	while ((d = TAILQ_FIRST(&w->deferred)) != NULL) {
		TAILQ_REMOVE(&w->deferred, d, entry);
		free(d);
	}
	hca_wire_forget_ahead(w);
	if (w->end.memory)
		hca_memory_put(w->end.process, w->end.memory);
	free(w->payload);
}

static void watch(struct hca_process *p, uint32_t qpn, const struct hca_sender *sender,
                  bool detours)
{
	uint32_t index = SHM_QP_INDEX(qpn);
	struct shm_wire_busy *busy = &p->region.wire_busy[index / 64];

	/* seq_cst: what it waits for is written before the look, and read after the bit is taken */
	atomic_thread_fence(memory_order_seq_cst);
	if (!(atomic_load_explicit(&busy->bits, memory_order_relaxed) >> index % 64 & 1))
		atomic_fetch_or_explicit(&busy->bits, 1ull << index % 64, memory_order_seq_cst);
	/* seq_cst: first the bit, then the look; the daemon says that it does not look any more,
	 * and then looks for bits */
	if (atomic_load_explicit(&p->region.data->ticking, memory_order_seq_cst))
		return;
	if (detours)
		hca_detour_call(p);
	else if (sender->network)
		hca_roce_call_daemon(hca_roce(sender->network));
}

void hca_wire_watch(struct hca_wire *w)
{
	watch(w->end.process, w->qpn, w->sender, w->path.detours);
}

/* ---- its owner ---- */

/* What is open in that state. */
static uint32_t what_of(enum ibv_qp_state state)
{
	return state == IBV_QPS_RTS   ? SHM_WIRE_RECEIVES | SHM_WIRE_SENDS
	       : state == IBV_QPS_SQD ? SHM_WIRE_RECEIVES | SHM_WIRE_SENDS | SHM_WIRE_PAUSED
	                              : SHM_WIRE_RECEIVES;
}

static void open_responder(struct hca_connected_qp *c, struct shm_wire *s)
{
	s->expected = c->qp.connection.rq_psn;
	s->expected_rounds = s->msn = 0;
	s->nak_sent = s->operation = s->ack_due = 0;
	atomic_store_explicit(&s->credits_due, false, memory_order_relaxed);
	s->keeps = false;
	s->n_responses = s->next_response = s->next_saved = 0;
	memset(s->saved, 0, sizeof(s->saved));
	/* packets of before, if somebody still has some, are passed over */
	atomic_store_explicit(&s->taken_up, atomic_load_explicit(&s->put_off, memory_order_relaxed),
	                      memory_order_relaxed);
	atomic_store_explicit(&s->broken, false, memory_order_relaxed);
}

static void open_requester(struct hca_connected_qp *c, struct shm_wire *s)
{
	s->psn = s->acked = s->head_psn = s->beyond = c->qp.sender.psn & WIRE_PSN_MASK;
	s->next = hca_connected_load(&c->shm->head);
	s->offset = s->answered = s->grown = 0;
	s->window = FIRST_WINDOW;
	s->retries = s->rnr_retries = s->recovers = s->slowed = s->early = 0;
	s->ran_short = s->has_limit = s->limited = s->probes = s->has_gap = false;
	s->in_vain = 0;
	s->acked_rounds = 0;
	s->reader = (struct shm_reader){ 0 };
	atomic_store_explicit(&s->awaits_turn, false, memory_order_relaxed);
	s->head_ssn = s->head_takes = s->takes = s->credits = 0;
	s->round_ns = s->timed_ns = 0;
	atomic_store_explicit(&s->deadline_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&s->resume_ns, 0, memory_order_relaxed);
}

/* UC has been in SQE: what failed is completed, and the next request is the first one. */
static void resume(struct hca_connected_qp *c, struct shm_wire *s)
{
	if (!hca_connected_load(&c->shm->failed))
		return;
	atomic_store_explicit(&c->shm->failed, 0, memory_order_relaxed);
	s->next = hca_connected_load(&c->shm->head);
	s->offset = 0;
	s->acked = s->head_psn = s->psn;
}

static struct hca_wire *make(struct hca_connected_qp *c)
{
	c->wire = calloc(1, sizeof(*c->wire));
	if (c->wire) /* else it is as if all that it sends got lost */
		init(c->wire, c->qp.ctx->process, c->qp.sender.qpn, c->qp.sender.qpn,
		     &c->qp.sender);
	return c->wire;
}

void hca_wire_open(struct hca_connected_qp *c)
{
	struct hca_process *p = c->qp.ctx->process;
	struct shm_wire *s = &p->region.wires[SHM_QP_INDEX(c->qp.sender.qpn)];
	const enum ibv_qp_state state = hca_qp_state(&c->qp);
	uint32_t open = atomic_load_explicit(&s->open, memory_order_relaxed);
	const uint32_t before = open % SHM_WIRE_OPENED, after = what_of(state);
	struct shm_wire_path path = { .detours = SHM_WIRE_NO_DETOUR };

	if (c->qp.transport->type != IBV_QPT_RC && c->qp.transport->type != IBV_QPT_UC)
		return;
	if (!hca_wire_choose(c, &path, before) || (!c->wire && !make(c)))
		return;
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
	atomic_store_explicit(&p->region.roce_ports[c->qp.sender.port].has_wires, true,
	                      memory_order_relaxed);
	/* release: pairs with the acquire in opened() */
	atomic_store_explicit(&s->open, open - before + SHM_WIRE_OPENED + after,
	                      memory_order_release);
}

/* Who has the lock may be stopped: then nobody knows, and it is told at once. */
bool hca_wire_drain(struct hca_connected_qp *c)
{
	struct hca_wire *w = c->wire;
	uint64_t began = base_now_ns();
	bool drains;

	if (!w || !hca_wire_renew(w) || !is_open(w, SHM_WIRE_SENDS))
		return false;
	while (!acquire(w, &c->shm->lock)) {
		if (base_now_ns() - began > HCA_STOPPED_WAIT_NS)
			return false;
		sched_yield();
	}
	drains = hca_wire_drains(w);
	release(&c->shm->lock, w->worker);
	return drains;
}

/* Acquires a lock from whoever has it for longer than a living thread may. */
static void lock_for_good(_Atomic uint32_t *lock, uint32_t worker)
{
	uint64_t began = base_now_ns();

	while (!try_lock(lock, worker)) {
		if (base_now_ns() - began > HCA_STOPPED_WAIT_NS)
			atomic_store_explicit(lock, 0, memory_order_relaxed);
		sched_yield();
	}
}

/* What has come was perhaps seen before it was acknowledged; a part of a message will not be whole.
 */
static void acknowledge_all(struct hca_connected_qp *c)
{
	struct hca_wire *w = c->wire;

	if (!hca_wire_renew(w) || !is_open(w, SHM_WIRE_RECEIVES))
		return;
	hca_exchange_begin(&c->x, w->qpn);
	if (w->shm->ack_due)
		hca_wire_respond(w);
	hca_wire_give_back(w);
	hca_sender_finish(w->sender);
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
	                      opened(w) / SHM_WIRE_OPENED * SHM_WIRE_OPENED + SHM_WIRE_OPENED,
	                      memory_order_release);
	release(&w->shm->lock, w->worker);
	atomic_store_explicit(&w->shm->drains, SHM_WIRE_TELLS_NOBODY, memory_order_relaxed);
	atomic_store_explicit(&w->shm->deadline_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&w->shm->resume_ns, 0, memory_order_relaxed);
}

void hca_wire_free(struct hca_connected_qp *c)
{
	if (!c->wire)
		return;
	fini(c->wire);
	free(c->wire);
	c->wire = NULL;
}

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
		hca_connected_leave(c); /* that one waits for all that deal with anybody */
		status = hca_mw_carry_out(&c->qp, &r);
		hca_exchange_begin(&c->x, c->wire->qpn);
		if (!hca_connected_settle(c->shm, s->next, status))
			return;
		s->next++;
	}
}

/* A process died while it worked on the queue pair, or was stopped for long: nobody knows how far
 * it was, so that what it did must not be done again. */
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
	const struct shm_sender *senders = c->qp.ctx->process->region.senders;

	if (!holder)
		return 0;
	return (uint64_t)holder << 32 |
	       atomic_load_explicit(&senders[SHM_QP_INDEX(holder)].target_qpn,
	                            memory_order_relaxed);
}

/* Somebody else has the lock: goes on without it, if that one must have been stopped. An owner that
 * looks seldom may meet others each time, who work on it one after the other. */
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
	hca_wire_watch(w); /* who has the lock may have seen the queue before */
}

/* The lock is held: whether there is anything to do. If a process died while it held it, the queue
 * pair fails. */
static bool may_work(struct hca_wire *w, uint32_t what)
{
	if (!is_open(w, what))
		return false;
	if (!atomic_load_explicit(&w->shm->broken, memory_order_relaxed))
		return true;
	if (hca_responder_is_well(&w->responder)) {
		hca_responder_refuse(&w->responder, HCA_NAK_REMOTE_OPERATION,
		                     "a process died while it received for the queue pair");
		hca_responder_fail(&w->responder);
	}
	return false;
}

/*
 * Acknowledgements wait for replies. An acknowledgement by itself costs as much as a message: a
 * system call here, and one at the peer. A program that answers what comes sends it along, in one
 * piece with the answer. So if the owner has posted a request after each of the last messages, the
 * thread that polls puts it off until it comes back, or the owner posts; and the daemon sends it if
 * neither happens for a tick.
 */
static bool reply_is_likely(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;
	bool answered = !atomic_load_explicit(&s->unanswered, memory_order_relaxed);

	if (answered)
		atomic_store_explicit(&s->unanswered, true, memory_order_relaxed);
	else
		atomic_store_explicit(&s->replies, 0, memory_order_relaxed);
	return answered &&
	       atomic_load_explicit(&s->replies, memory_order_relaxed) >= REPLIES_ENOUGH;
}

/* Unless somebody else works on it, who may do it. */
static void acknowledge(struct hca_wire *w)
{
	if (!acquire(w, &w->shm->lock))
		return;
	if (may_work(w, SHM_WIRE_RECEIVES))
		hca_wire_acknowledge(w);
	release(&w->shm->lock, w->worker);
}

/* The owner has sent something: perhaps the reply. */
static void acknowledge_by_reply(struct hca_wire *w)
{
	struct shm_wire *s = w->shm;
	uint8_t replies = atomic_load_explicit(&s->replies, memory_order_relaxed);

	if (!atomic_load_explicit(&s->unanswered, memory_order_relaxed))
		return;
	atomic_store_explicit(&s->unanswered, false, memory_order_relaxed);
	if (replies < REPLIES_ENOUGH)
		atomic_store_explicit(&s->replies, replies + 1, memory_order_relaxed);
	acknowledge(w);
}

void hca_wire_go_on(struct hca_connected_qp *c)
{
	struct hca_wire *w = c->wire;
	uint32_t before = w->shm->psn;
	bool more = true;

	if (!hca_wire_renew(w) || !is_open(w, SHM_WIRE_SENDS) ||
	    hca_qp_state(&c->qp) != IBV_QPS_RTS)
		return;
	if (atomic_load_explicit(&w->shm->broken, memory_order_relaxed))
		give_up(c);
	hca_exchange_begin(&c->x, w->qpn);
	while (more && acquire(w, &c->shm->lock)) {
		w->barred_since_ns = 0;
		hca_wire_look_at_time(w, base_now_ns());
		carry_out_local(c);
		more = hca_wire_send(w);
		carry_out_local(c);
		release_queue(w);
		if (!more && w->shm->psn != before)
			acknowledge_by_reply(w);
		hca_sender_finish(w->sender);
	}
	hca_connected_leave(c);
	if (more)
		bear(c);
}

/* The lock of sends may be this thread's own, by ibv_wr_start(): it is not waited for. */
void hca_wire_tell_credits(struct hca_connected_qp *c)
{
	struct hca_process *p = c->qp.ctx->process;
	const uint32_t qpn = c->qp.sender.qpn;
	struct shm_wire *s = &p->region.wires[SHM_QP_INDEX(qpn)];
	struct hca_wire *w;

	atomic_store_explicit(&s->credits_due, true, memory_order_seq_cst);
	if (base_trylock(&c->qp.send_lock)) {
		w = c->wire;
		if (w && hca_wire_renew(w)) {
			hca_exchange_begin(&c->x, qpn);
			acknowledge(w);
			hca_sender_finish(w->sender);
			hca_connected_leave(c);
		}
		base_unlock(&c->qp.send_lock);
	}
	if (atomic_load_explicit(&s->credits_due, memory_order_relaxed))
		watch(p, qpn, &c->qp.sender, hca_connected_detours(c->shm));
}

/* ---- whoever receives ---- */

/* Says whom this thread deals with, before it looks at anything of theirs. */
static void begin(struct hca_wire *w)
{
	w->turn += IB_QPN_MASK + 1;
	/* seq_cst: before the look at keys; pairs with hca_connections_wait() */
	atomic_store_explicit(&w->sender->shm->target_qpn, w->qpn | w->turn, memory_order_seq_cst);
	base_fence_behind_seq_cst();
}

static void end(struct hca_wire *w)
{
	if (w->sender->unfinished)
		hca_sender_finish(w->sender);
	/* release: all that was done comes before "deals with nobody" */
	atomic_store_explicit(&w->sender->shm->target_qpn, 0, memory_order_release);
}

/* Says so and acquires the lock. That order: if this process dies, the daemon looks for the lock at
 * whom it dealt with. False: the lock is not to be had. */
static bool enter(struct hca_wire *w, _Atomic uint32_t *lock)
{
	begin(w);
	if (acquire(w, lock))
		return true;
	end(w);
	return false;
}

static void forget(struct hca_wires *wires, struct hca_wire *w)
{
	if (w->is_due)
		TAILQ_REMOVE(&wires->due, w, entry);
	base_hash_remove(&wires->all, &w->node);
	fini(w);
	free(w);
}

/* Forgets those that are closed, and with them the memory of processes that may be gone. */
static void sweep(struct hca_wires *wires)
{
	struct base_hash_node *node = base_hash_walk(&wires->all, NULL), *next;

	for (; node; node = next) {
		struct hca_wire *w = container_of(node, struct hca_wire, node);

		next = base_hash_walk(&wires->all, node);
		if (!(opened(w) & SHM_WIRE_RECEIVES) || !hca_wire_renew(w))
			forget(wires, w);
	}
	wires->sweep_at = SWEEP + 2 * wires->all.n;
}

/* What this port's receiver knows of queue pair @qpn. NULL: it has no wire, or there is no memory.
 */
static struct hca_wire *wire_of(struct hca_wires *wires, uint32_t qpn)
{
	struct base_hash_node *node = base_hash_first(&wires->all, qpn);
	struct hca_wire *w;

	for (; node; node = base_hash_next(node)) {
		w = container_of(node, struct hca_wire, node);
		if (w->qpn == qpn)
			return w;
	}
	if (!(atomic_load_explicit(&wires->process->region.wires[SHM_QP_INDEX(qpn)].open,
	                           memory_order_relaxed) &
	      SHM_WIRE_RECEIVES))
		return NULL;
	if (wires->all.n >= wires->sweep_at)
		sweep(wires);
	w = calloc(1, sizeof(*w));
	if (!w || base_hash_add(&wires->all, &w->node, qpn)) {
		free(w);
		return NULL;
	}
	init(w, wires->process, qpn, wires->sender->qpn, wires->sender);
	w->wires = wires;
	return w;
}

/* Whether the packet was sent where its peer is. */
static bool comes_from_peer(const struct hca_wire *w, const struct hca_wires *wires,
                            const struct wire_roce_packet *p)
{
	if (w->path.detours == SHM_WIRE_HERE)
		return w->path.flow < SHM_MAX_FLOWS &&
		       wires->process->region.flows[w->path.flow].dest_port == wires->from;
	return ib_gid_equal(&p->ip.sgid, &w->path.dgid);
}

/* Whether the packet is its peer's. */
static bool is_peers(const struct hca_wire *w, const struct hca_wires *wires,
                     const struct wire_roce_packet *p)
{
	unsigned transport = w->end.qp.type == IBV_QPT_UC ? WIRE_TRANSPORT_UC : WIRE_TRANSPORT_RC;

	return w->end.qp.port == wires->port &&
	       (wire_opcode_transport(p->h.bth.opcode) == transport ||
	        p->h.bth.opcode == WIRE_OPCODE_CNP) &&
	       comes_from_peer(w, wires, p) && ib_pkey_match(w->end.qp.pkey, p->h.bth.pkey);
}

static void set_due(struct hca_wires *wires, struct hca_wire *w)
{
	if (w->is_due)
		return;
	w->is_due = true;
	TAILQ_INSERT_TAIL(&wires->due, w, entry);
}

/* Sends all that may be sent, after something has come. */
static void go_on(struct hca_wire *w)
{
	bool more = true;

	while (more && acquire(w, &w->connection->lock)) {
		more = may_work(w, SHM_WIRE_SENDS) && hca_wire_send(w);
		release_queue(w);
		hca_sender_finish(w->sender);
	}
	if (more)
		hca_wire_watch(w);
}

/* Sends responses and acknowledgements that are due. Whether some are left. */
static bool respond(struct hca_wire *w)
{
	bool more = false;

	if (!enter(w, &w->shm->lock))
		return true;
	if (may_work(w, SHM_WIRE_RECEIVES))
		more = hca_wire_respond(w);
	release(&w->shm->lock, w->worker);
	end(w);
	return more;
}

/* Works on one half, with its lock held, for a packet. False: the lock is not to be had. */
static bool work(struct hca_wire *w, const struct wire_roce_packet *p)
{
	const unsigned flags = wire_opcodes[p->h.bth.opcode].flags;
	/* what is reserved the responder refuses */
	bool is_request = (flags & WIRE_OPCODE_REQUEST) || wire_opcode_is_reserved(p->h.bth.opcode);
	_Atomic uint32_t *lock = is_request ? &w->shm->lock : &w->connection->lock;
	uint32_t what = is_request ? SHM_WIRE_RECEIVES : SHM_WIRE_SENDS;
	bool more = false;

	/* who sees a message may send one: it must not overtake what was asked for before */
	if ((flags & WIRE_OPCODE_RECEIVES) && w->shm->n_responses)
		respond(w);
	if (!enter(w, lock))
		return false;
	/* it has moved to RTS just now: UC's peer would not send it again */
	if (opened(w) != w->open && !hca_wire_renew(w))
		what = 0;
	if (may_work(w, what)) {
		if (is_request)
			hca_wire_request(w, p);
		else
			more = hca_wire_response(w, p);
	}
	release(lock, w->worker);
	if (more)
		go_on(w);
	end(w);
	return true;
}

/*
 * Packets that are put off. A queue pair's packets are worked on in the order in which they came,
 * also when others receive meanwhile: programs rely on it that what a peer sends does not overtake
 * what it has answered before. So a packet that comes while any is put off is put off as well. Each
 * has a number, and is worked on when its turn comes, by the process that has it.
 */

/* Whether it is the turn of the packet with this number. Whoever has those before it may have gone:
 * after a while they are passed over. */
static bool is_turn(struct hca_wire *w, uint32_t number)
{
	/* acquire: pairs with the release in took_up() */
	uint32_t next = atomic_load_explicit(&w->shm->taken_up, memory_order_acquire);
	uint64_t now;

	if (next == number) {
		w->awaited_since_ns = 0;
		return true;
	}
	now = base_now_ns();
	if (!w->awaited_since_ns || w->awaited != next) {
		w->awaited = next;
		w->awaited_since_ns = now;
	}
	if (now - w->awaited_since_ns < PATIENCE_NS)
		return false;
	base_log_debug(packet, "QP 0x%06x: %u packets that were put off get lost", w->qpn,
	               number - next);
	w->awaited_since_ns = 0;
	return atomic_compare_exchange_strong_explicit(&w->shm->taken_up, &next, number,
	                                               memory_order_acquire, memory_order_relaxed);
}

static bool was_passed_over(const struct hca_wire *w, uint32_t number)
{
	uint32_t next = atomic_load_explicit(&w->shm->taken_up, memory_order_relaxed);

	return (int32_t)(number - next) < 0;
}

/* The packet with this number was worked on: it is the next one's turn. */
static void took_up(struct hca_wire *w, uint32_t number)
{
	/* it may have been passed over meanwhile */
	atomic_compare_exchange_strong_explicit(&w->shm->taken_up, &number, number + 1,
	                                        memory_order_release, memory_order_relaxed);
}

/* Keeps a copy of the packet until its turn comes, and the lock is to be had. */
static void defer(struct hca_wire *w, const struct wire_roce_packet *p)
{
	struct hca_wire_copy *d = NULL;

	if (w->n_deferred < MOST_DEFERRED)
		d = hca_wire_copy(p);
	if (!d) {
		base_log_debug(packet, "QP 0x%06x: is not to be had: PSN %u gets lost", w->qpn,
		               p->h.bth.psn);
		return;
	}
	d->number = atomic_fetch_add_explicit(&w->shm->put_off, 1, memory_order_relaxed);
	TAILQ_INSERT_TAIL(&w->deferred, d, entry);
	w->n_deferred++;
	hca_wire_watch(w);
}

/* Works on what was put off. Whether some still is. */
static bool work_deferred(struct hca_wire *w)
{
	struct hca_wire_copy *d;

	while ((d = TAILQ_FIRST(&w->deferred)) != NULL) {
		if (!was_passed_over(w, d->number)) {
			if (!is_turn(w, d->number) || !work(w, &d->packet))
				return true;
			took_up(w, d->number);
		}
		TAILQ_REMOVE(&w->deferred, d, entry);
		w->n_deferred--;
		free(d);
	}
	return false;
}

/* Whether other processes have put off packets that came before. */
static bool is_behind(struct hca_wire *w)
{
	return !is_turn(w, atomic_load_explicit(&w->shm->put_off, memory_order_relaxed));
}

/* Tells the peer that its packets come marked by congestion (annex A17.9). */
static void notify(struct hca_wire *w)
{
	const struct wire_headers h = { .bth = { .opcode = WIRE_OPCODE_CNP,
		                                 .migrated = true,
		                                 .becn = true,
		                                 .pkey = w->end.qp.pkey,
		                                 .dest_qpn = w->end.qp.connection.dest_qpn } };
	uint64_t now = base_now_ns();
	uint8_t *room;

	HCA_WIRE_COUNT(w, np_ecn_marked_roce_packets);
	if (now - w->notified_ns < CNP_NS)
		return;
	room = hca_wire_begin(w, CNP_BYTES);
	if (!room)
		return;
	memset(room, 0, CNP_BYTES);
	hca_wire_end(w, &h);
	w->notified_ns = now;
	HCA_WIRE_COUNT(w, np_cnp_sent);
}

bool hca_wires_receive(struct hca_wires *wires, const struct wire_roce_packet *p)
{
	struct hca_wire *w = wire_of(wires, p->h.bth.dest_qpn);
	const bool is_cnp = p->h.bth.opcode == WIRE_OPCODE_CNP;

	if (!w || !hca_wire_renew(w) || !is_peers(w, wires, p) ||
	    (is_cnp && !is_open(w, SHM_WIRE_SENDS))) {
		if (is_cnp)
			atomic_fetch_add_explicit(
			        &wires->process->region.roce_ports[wires->port].rp_cnp_ignored, 1,
			        memory_order_relaxed);
		else
			HCA_COUNT(wires->process, wires->port, no_qp);
		if (w && w->end.qp.qpn != w->qpn)
			forget(wires, w);
		return false;
	}
	if (base_unlikely((p->ip.traffic_class & ECN_MASK) == ECN_MARKED))
		notify(w);
	if (work_deferred(w) || is_behind(w) || !work(w, p))
		defer(w, p);
	if (hca_wire_owes(w) || w->shm->n_responses || w->n_deferred)
		set_due(wires, w);
	return true;
}

/* Does what is due of one queue pair. @later: its acknowledgement may wait for a reply. Whether
 * some is left. */
static bool do_due(struct hca_wire *w, bool later)
{
	bool more = work_deferred(w), waited = w->waits_for_reply;

	w->waits_for_reply = false;
	if (!is_open(w, SHM_WIRE_RECEIVES) || (!hca_wire_owes(w) && !w->shm->n_responses))
		return more;
	if (!waited && w->shm->ack_due && reply_is_likely(w) && later && !w->shm->n_responses) {
		w->waits_for_reply = true;
		return true;
	}
	return respond(w) || more;
}

/* Whether the time for one turn is over; the first look begins it. */
static bool is_over(uint64_t *until)
{
	uint64_t now = base_now_ns();

	if (!*until)
		*until = now + FINISH_NS;
	return now >= *until;
}

/* Those whose turn has not come are the first the next time. */
static void leave_due(struct hca_wires *wires, struct hca_wire_list *left)
{
	struct hca_wire *w;

	TAILQ_FOREACH(w, left, entry)
	hca_wire_watch(w);
	TAILQ_CONCAT(left, &wires->due, entry);
	TAILQ_CONCAT(&wires->due, left, entry);
}

bool hca_wires_finish(struct hca_wires *wires, bool later)
{
	struct hca_wire_list now = TAILQ_HEAD_INITIALIZER(now);
	uint64_t until = 0; /* one is seen to without a look at the clock */
	struct hca_wire *w;

	TAILQ_CONCAT(&now, &wires->due, entry);
	for (unsigned n = 0; (w = TAILQ_FIRST(&now)) != NULL; n++) {
		if (n && is_over(&until)) {
			leave_due(wires, &now);
			break;
		}
		TAILQ_REMOVE(&now, w, entry);
		w->is_due = false;
		if (!hca_wire_renew(w) || !do_due(w, later))
			continue;
		set_due(wires, w);
		hca_wire_watch(w); /* if this process does not come back for it */
	}
	return !TAILQ_EMPTY(&wires->due);
}

/* Whether it is time to look at what it sends: a time is over, or nobody has sent what was posted.
 * *@waits: there is a time to wait for. */
static bool is_time(const struct hca_wire *w, uint64_t now, bool *waits)
{
	const struct shm_wire *s = w->shm;
	uint64_t resume = atomic_load_explicit(&s->resume_ns, memory_order_relaxed);
	uint64_t deadline = atomic_load_explicit(&s->deadline_ns, memory_order_relaxed);
	bool idle = s->psn == s->acked && !resume && !hca_connected_load(&w->connection->failed) &&
	            s->next != hca_connected_load(&w->connection->tail);

	*waits = resume || deadline;
	return idle || (resume && resume <= now) || (deadline && deadline <= now);
}

/* Whether it can only wait for its turn to READ. */
static bool must_wait(const struct hca_wire *w, uint64_t now)
{
	const struct shm_wire *s = w->shm;

	return atomic_load_explicit(&s->awaits_turn, memory_order_relaxed) &&
	       !atomic_load_explicit(&s->deadline_ns, memory_order_relaxed) &&
	       !atomic_load_explicit(&s->resume_ns, memory_order_relaxed) &&
	       !shm_readers_have_room(hca_wire_readers(w), hca_wire_ms(now));
}

/* Sees to the times of what it sends. Whether it has to wait for one. */
static bool look_at_time(struct hca_wire *w, uint64_t now)
{
	bool waits;

	if (!is_open(w, SHM_WIRE_SENDS))
		return false;
	if (must_wait(w, now))
		return true;
	if (!is_time(w, now, &waits))
		return waits;
	if (!enter(w, &w->connection->lock))
		return true;
	if (may_work(w, SHM_WIRE_SENDS))
		hca_wire_look_at_time(w, now);
	release(&w->connection->lock, w->worker);
	go_on(w);
	end(w);
	is_time(w, now, &waits);
	return waits;
}

bool hca_wires_tick(struct hca_wires *wires, uint32_t index, uint64_t now)
{
	struct hca_wire *w = wire_of(wires, wires->process->region.qps[index].qpn);
	bool more;

	if (!w || !hca_wire_renew(w))
		return false;
	more = do_due(w, false);
	return look_at_time(w, now) || more;
}

void hca_wires_init(struct hca_wires *wires, struct hca_process *p, struct hca_sender *sender,
                    uint32_t port)
{
	*wires = (struct hca_wires){
		.process = p, .sender = sender, .port = port, .from = UINT32_MAX
	};
	TAILQ_INIT(&wires->due);
	TAILQ_INIT(&wires->ahead);
}

void hca_wires_fini(struct hca_wires *wires)
{
	struct base_hash_node *node;

	while ((node = base_hash_walk(&wires->all, NULL)) != NULL)
		forget(wires, container_of(node, struct hca_wire, node));
	base_hash_fini(&wires->all);
}
