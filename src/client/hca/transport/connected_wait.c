/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of connected queue pairs that wait, because no receive is posted or the responder cannot
 * be reached. They lie in shared memory. The thread that comes first goes on with them:
 *
 *  - the requester, when it polls or posts;
 *  - the responder, when it has posted receives, or has moved to RTR (connected_help.c).
 *
 * Where the responder is outside of the fabric all requests lie there. packet_connection.h says who
 * goes on with those; the rest of this comment is not about them.
 *
 * An atomic operation waits as well while another requester is in the middle of one; for ever, as
 * that one may be stopped.
 *
 * Retries are time here: a request that waits for a receive fails once rnr_retry times the
 * responder's min_rnr_timer have passed, one that gets lost once retry_cnt + 1 times the timeout
 * have. The requester looks whether that is so when it polls. A program that sleeps instead is
 * woken by the daemon.
 */
#include <string.h>

#include "base/log.h"
#include "base/pause.h"
#include "base/util.h"
#include "hca/queue/explain.h"
#include "hca/transport/connected.h"
#include "hca/transport/packet_connection.h"
#include "hca/transport/weak_requests.h"

#define NS_PER_MS  1000000ull
#define RETRY_NS   (20 * NS_PER_MS)
#define INFINITELY 7 /* rnr_retry */
#define PATIENT_NS (1000 * NS_PER_MS)

/* Where request @position of the requester @end is. NULL: its record is wrong, which our own never
 * is. */
static struct shm_request *slot_of(const struct hca_end *end, uint32_t position)
{
	const struct shm_qp_connection *c = &end->qp.connection;
	uint64_t index = position & ((1u << c->request_shift) - 1);

	return shm_payload_at(&end->process->region, c->requests_off + index * c->request_bytes,
	                      c->request_bytes);
}

struct shm_request *hca_connected_request_at(const struct hca_connected_qp *c, uint32_t position)
{
	return slot_of(&c->x.requester, position);
}

/* Positions of the requests that wait are completed to this. Others can write to shm->tail. */
static uint32_t tail_of(const struct hca_connected_qp *c)
{
	return c->completed + c->qp.sq_kept;
}

/* Puts the request into the queue. */
BASE_COLD void hca_connected_keep(struct hca_connected_qp *c, const struct shm_request *r,
                                  const struct ibv_sge *sge)
{
	uint32_t tail = tail_of(c);
	struct shm_request *to = hca_connected_request_at(c, tail);
	char *data = (char *)(to + 1);

	*to = *r;
	to->quiet = !(r->flags & IBV_SEND_SIGNALED) && !c->qp.push_all;
	if (r->flags & IBV_SEND_INLINE) {
		for (unsigned i = 0; i < r->n_entries; i++) {
			if (sge[i].length) /* else it may be nowhere */
				memcpy(data, (const void *)(uintptr_t)sge[i].addr, sge[i].length);
			data += sge[i].length;
		}
		to->n_entries = 1;
	} else if (r->n_entries) {
		memcpy(data, sge, r->n_entries * sizeof(*sge));
	}
	hca_connected_publish_flow(c); /* it may never have sent anything */
	/* release: pairs with the acquire of the thread that works on the queue */
	atomic_store_explicit(&c->shm->tail, tail + 1, memory_order_release);
	/* before the look whether the lock is free; pairs with must_look_again() of its holder. On
	 * the wire a thread that finds it held has the daemon look later: bear() in packet_states.c
	 */
	if (!c->wire)
		atomic_thread_fence(memory_order_seq_cst);
	c->qp.sq_kept++;
	c->x.responder.unplaced =
	        true; /* the responder's thread may leave SENDs so (connected_help.c) */
	hca_cq_add_waiting(c->qp.send_cq, &c->qp);
}

bool hca_connected_take(const struct hca_end *end, uint32_t position, struct shm_request *r,
                        struct shm_entry *entries)
{
	const struct shm_request *from = slot_of(end, position);
	uint64_t room = end->qp.connection.request_bytes - sizeof(*r);

	if (!from)
		return false;
	*r = *from;
	if (r->length > HCA_MAX_MESSAGE)
		return false;
	if (r->flags & IBV_SEND_INLINE) {
		*entries = (struct shm_entry){ .addr = (uintptr_t)(from + 1), .length = r->length };
		return r->length <= room && r->n_entries == 1;
	}
	if (r->n_entries > HCA_MAX_SGE || r->n_entries * sizeof(*entries) > room)
		return false;
	memcpy(entries, from + 1, r->n_entries * sizeof(*entries));
	return true;
}

bool hca_connected_settle(struct shm_connection *shm, uint32_t position, int outcome)
{
	uint32_t none = 0;

	if (outcome) {
		atomic_compare_exchange_strong_explicit(&shm->failed, &none,
		                                        shm_failed(position, (uint32_t)outcome),
		                                        memory_order_release, memory_order_relaxed);
		return false;
	}
	/* release: pairs with hca_connected_load() in harvest(). It has moved if the requester did
	 * not want to wait any longer */
	return atomic_compare_exchange_strong_explicit(&shm->head, &position, position + 1,
	                                               memory_order_release, memory_order_relaxed);
}

uint64_t hca_rnr_ns(unsigned timer)
{
	/* section 9.7.5.2.8, table 45: in units of 10 microseconds, the first one is the largest */
	static const uint32_t rnr_timer[32] = {
		65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
		48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return 10000ull * rnr_timer[timer % 32];
}

/* How long the first request may wait for what it waits for, ns; 0: for ever. */
static uint64_t patience(const struct hca_connected_qp *c)
{
	const struct hca_connection *a = &c->qp.connection;

	if (c->waits_for == HCA_WAITS_FOR_RECEIVE) {
		if (a->rnr_retry == INFINITELY)
			return 0;
		return 1 +
		       a->rnr_retry * hca_rnr_ns(c->x.responder.end.qp.connection.min_rnr_timer);
	}
	if (c->waits_for == HCA_WAITS_FOR_LOCK)
		return 0;
	/* section 9.7.6.1.3: 4.096 microseconds times a power of two; 0: for ever */
	return a->timeout ? (4096ull << a->timeout) * (a->retry_cnt + 1u) : 0;
}

/* @wr lacks the entries, which are behind @r if it is one of our own; all can write there. */
static BASE_COLD void explain_failed(struct hca_connected_qp *c, const struct shm_request *r,
                                     struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	struct ibv_sge sge[HCA_MAX_SGE];
	uint32_t n = r->n_entries;

	if (n <= c->qp.cap.max_send_sge && n <= HCA_MAX_SGE && !(r->flags & IBV_SEND_INLINE)) {
		memcpy(sge, r + 1, n * sizeof(*sge));
		wr->sg_list = sge;
		wr->num_sge = (int)n;
	}
	hca_explain_failed_send(&c->qp, wr, status);
	wr->num_sge = 0;
}

/* Adds the completion of a request that waited. */
static void complete(struct hca_connected_qp *c, const struct shm_request *r,
                     enum ibv_wc_status status)
{
	struct ibv_send_wr wr = { .wr_id = r->wr_id,
		                  .opcode = (enum ibv_wr_opcode)r->opcode,
		                  .send_flags = r->flags };

	c->qp.sq_kept--;
	if (base_unlikely(status != IBV_WC_SUCCESS))
		explain_failed(c, r, &wr, status);
	hca_qp_complete(&c->qp, &wr, r->length, status);
}

/* Completes all that wait: they are flushed. */
void hca_connected_flush(struct hca_connected_qp *c)
{
	while (c->qp.sq_kept) {
		complete(c, hca_connected_request_at(c, c->completed++), IBV_WC_WR_FLUSH_ERR);
		if (hca_weak_stops_flush(c))
			break;
	}
	hca_connected_publish_completed(c);
}

/* Acquires the queue's lock, which another thread holds. @steal: whichever thread that is. */
static bool try_lock(struct hca_connected_qp *c, bool steal)
{
	uint32_t holder = steal ? atomic_load_explicit(&c->shm->lock, memory_order_relaxed) : 0;

	/* acquire: pairs with the release in hca_connected_unlock() */
	return atomic_compare_exchange_strong_explicit(&c->shm->lock, &holder, c->qp.sender.qpn,
	                                               memory_order_acquire, memory_order_relaxed);
}

void hca_connected_lock(struct hca_connected_qp *c)
{
	struct base_pause pause = { 0 };
	uint64_t began = 0;

	while (!try_lock(c, false)) {
		if (!began)
			began = base_now_ns();
		if (base_now_ns() - began > HCA_STOPPED_WAIT_NS && try_lock(c, true))
			return;
		base_pause(&pause);
	}
}

/* The queue pair fails. With the send lock held. */
BASE_COLD void hca_connected_fail(struct hca_connected_qp *c)
{
	if (c->qp.transport->type == IBV_QPT_UC) {
		atomic_store_explicit(&c->qp.state, IBV_QPS_SQE, memory_order_relaxed);
		hca_connected_flush(c);
		return;
	}
	hca_wire_close(c);
	hca_qp_fail(&c->qp);
	hca_connected_flush(c);
}

BASE_COLD void hca_connected_notice_error(struct hca_connected_qp *c)
{
	enum ibv_qp_state state = hca_qp_state(&c->qp);

	if (state == IBV_QPS_RESET || state == IBV_QPS_ERR)
		return;
	hca_connected_lock(c);
	hca_connected_harvest(c);
	hca_wire_close(c);
	hca_qp_fail(&c->qp);
	hca_connected_flush(c);
	hca_connected_unlock(c->shm, c->qp.sender.qpn);
}

/* The first request fails. */
static void fail_first(struct hca_connected_qp *c, enum ibv_wc_status status)
{
	complete(c, hca_connected_request_at(c, c->completed++), status);
	hca_connected_fail(c);
}

BASE_COLD void hca_connected_tell_owner(struct hca_process *p, const struct shm_connection *shm,
                                        uint32_t cq, bool needs_owner)
{
	uint32_t arm;

	atomic_thread_fence(memory_order_seq_cst); /* head before the look at arm */
	/* seq_cst: before the look what the owner knows. If it harvests meanwhile and arms the
	 * queue anew, the word is another one by then */
	arm = atomic_load_explicit(&shm_cq_at(&p->region, cq)->arm, memory_order_seq_cst);
	if (arm == SHM_CQ_IDLE)
		return;
	if (needs_owner || hca_connected_load(&shm->failed) ||
	    hca_connected_load(&shm->head) != hca_connected_load(&shm->harvested))
		hca_cq_fire(p, shm_cq_at(&p->region, cq), arm);
}

/* Completes requests that are done, by whichever thread. */
void hca_connected_harvest(struct hca_connected_qp *c)
{
	uint32_t head = hca_connected_load(&c->shm->head), before = c->completed, failed;

	/* nonsense must not keep us here for long */
	while (c->completed != head && c->qp.sq_kept) {
		hca_connected_count(c, hca_connected_request_at(c, c->completed));
		complete(c, hca_connected_request_at(c, c->completed++), IBV_WC_SUCCESS);
	}
	/* seldom, as the peer's process writes to the same line. Behind their events, as a thread
	 * that sees this may fire that of an answer next, and before the queue is armed again;
	 * pairs with hca_connected_tell_owner() */
	if (c->completed != before)
		atomic_store_explicit(&c->shm->harvested, c->completed, memory_order_release);
	failed = hca_connected_load(&c->shm->failed);
	if (failed && failed == shm_failed(c->completed, failed) && c->qp.sq_kept)
		fail_first(c, (enum ibv_wc_status)(failed & 0xFF));
}

void hca_connected_note_wait(struct hca_connected_qp *c, uint32_t position, int what)
{
	if (c->waits_position != position || c->waits_for != what || !c->waits_since_ns)
		c->waits_since_ns = base_now_ns();
	c->waits_position = position;
	c->waits_for = what;
}

/* Carries out what can be. With the queue's lock held. */
static void work_off(struct hca_connected_qp *c)
{
	uint32_t head = hca_connected_load(&c->shm->head);
	struct shm_entry entries[HCA_MAX_SGE];
	struct shm_request r;

	while (head != tail_of(c) && !hca_connected_load(&c->shm->failed)) {
		int outcome = IBV_WC_LOC_QP_OP_ERR;

		if (hca_connected_take(&c->x.requester, head, &r, entries))
			outcome = hca_connected_carry_out(c, &r, entries);
		if (outcome == HCA_WAITS_FOR_RECEIVE) {
			if (!hca_connected_park(&c->x))
				continue;
		}
		if (outcome < 0) {
			hca_connected_note_wait(c, head, outcome);
			return;
		}
		c->waits_since_ns = 0;
		if (!hca_connected_settle(c->shm, head, outcome))
			return;
		head++;
	}
}

/* It waits for ever (rnr_retry): after a second the program is told. */
static void tell_patient(struct hca_connected_qp *c)
{
	if (!hca_connected_waits(c) || !c->waits_since_ns ||
	    c->told_since_ns == c->waits_since_ns || base_now_ns() - c->waits_since_ns < PATIENT_NS)
		return;
	c->told_since_ns = c->waits_since_ns;
	base_log_warning(verbs,
	                 "QP 0x%06x: a request waits for a second, and on (rnr_retry is 7): QP "
	                 "0x%06x, the responder, has no receive posted",
	                 c->qp.sender.qpn, c->x.responder.end.qp.qpn);
}

/* Fails the first request if it has waited for too long. With the queue's lock held. */
static void lose_patience(struct hca_connected_qp *c)
{
	bool for_receive = c->waits_for == HCA_WAITS_FOR_RECEIVE;
	uint64_t most = patience(c);

	hca_connected_harvest(c);
	if (for_receive && !most)
		tell_patient(c);
	if (!hca_connected_waits(c) || !c->waits_since_ns || !most ||
	    c->waits_position != c->completed || base_now_ns() - c->waits_since_ns < most)
		return;
	base_log_debug(packet, "QP 0x%06x: gives a request up: %s", c->qp.sender.qpn,
	               for_receive ? "the responder has posted no receive"
	                           : "the responder cannot be reached, or is not ready");
	fail_first(c, for_receive ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR);
}

/*
 * The responder is at work on the queue. If it has been for so long that it must be stopped, the
 * first request fails: it may be done or not, so nobody may do it again.
 */
static void bear_helper(struct hca_connected_qp *c)
{
	uint64_t most, waited;

	hca_connected_note_wait(c, hca_connected_load(&c->shm->head), HCA_WAITS_FOR_PATH);
	most = patience(c);
	waited = base_now_ns() - c->waits_since_ns;
	if (!most || waited < most || waited < HCA_STOPPED_WAIT_NS || !try_lock(c, true))
		return;
	hca_connected_harvest(c);
	if (hca_connected_waits(c))
		fail_first(c, IBV_WC_RETRY_EXC_ERR);
	hca_connected_unlock(c->shm, c->qp.sender.qpn);
}

uint32_t hca_connected_sleeps_on(const struct hca_connected_qp *c)
{
	struct hca_process *p = c->qp.ctx->process;
	uint32_t last = atomic_load_explicit(&p->armed_cq, memory_order_relaxed);

	if (atomic_load_explicit(&c->qp.send_cq->shm->arm, memory_order_relaxed) != SHM_CQ_IDLE)
		return c->qp.send_cq->id;
	return atomic_load_explicit(&shm_cq_at(&p->region, last)->arm, memory_order_relaxed) !=
	                       SHM_CQ_IDLE
	               ? last
	               : UINT32_MAX;
}

/*
 * Has the daemon wake a program that sleeps: when the first request has waited for too long, and,
 * if it gets lost or waits for a lock, now and then, as the way may be free. A program that waits
 * for a receive is woken by the responder, or when the responder is gone; but no process goes on
 * with the requests that an XRC target was sent.
 */
static void sleep_no_longer(struct hca_connected_qp *c)
{
	struct control_wait req = { .qpn = c->qp.sender.qpn, .cq = hca_connected_sleeps_on(c) };
	uint64_t most = c->waits_since_ns ? patience(c) : 0, waited;

	if (req.cq == UINT32_MAX)
		return;
	waited = base_now_ns() - c->waits_since_ns;
	if (most)
		req.ns = waited < most ? most - waited + NS_PER_MS : 1;
	if ((c->waits_for != HCA_WAITS_FOR_RECEIVE || c->x.responder.is_xrc) &&
	    (!req.ns || req.ns > RETRY_NS))
		req.ns = RETRY_NS;
	if (req.ns)
		hca_request(c->qp.ctx->process, CONTROL_WAIT, &req, sizeof(req));
}

/* Whether the responder posted a receive while we held the lock: it could not help then. */
static bool must_look_again(const struct hca_connected_qp *c)
{
	atomic_thread_fence(memory_order_seq_cst); /* the lock is free before the look */
	return hca_connected_waits(c) && c->waits_since_ns &&
	       c->waits_for == HCA_WAITS_FOR_RECEIVE &&
	       !atomic_load_explicit(&c->x.responder.credits->waited_for, memory_order_relaxed);
}

/* Goes on with what waits. */
BASE_COLD void hca_connected_go_on(struct hca_connected_qp *c)
{
	hca_connected_harvest(c);
	if (hca_connected_load(&c->shm->error))
		hca_connected_notice_error(c);
	if (hca_connected_waits(c) && hca_process_gone(c->qp.ctx->process))
		hca_connected_flush(c);
	if (c->wire) {
		hca_wire_go_on(c);
		hca_connected_harvest(c);
		return;
	}
	while (hca_connected_waits(c) && hca_qp_state(&c->qp) == IBV_QPS_RTS) {
		if (!try_lock(c, false)) {
			bear_helper(c);
			break;
		}
		if (c->weak)
			hca_weak_work_off(c);
		else
			work_off(c);
		hca_connected_leave(c);
		lose_patience(c);
		hca_connected_publish_flow(c);
		hca_connected_unlock(c->shm, c->qp.sender.qpn);
		/* on a weak fabric the responder does not help: the next poll looks again */
		if (c->weak || !must_look_again(c))
			break;
	}
	if (hca_connected_waits(c) && !c->weak)
		sleep_no_longer(c);
}
