/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a responder does for the requester whose requests wait for it, and what an owner of memory
 * waits for.
 */
#include <sched.h>
#include <string.h>

#include "base/util.h"
#include "hca/connected.h"

/* A queue that nothing can be done for must not keep us. */
#define MOST_ROUNDS 16

/* Whether its record says that the queue pair sends. In RTR it may have moved on to RTS, which only
 * its process knows; if not, it has no requests. */
static bool sends(const struct shm_qp *qp)
{
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_RTR;
}

/* What the requests of @qp's peer need, for this thread, which is the responder's. False: nothing
 * can be done for it. */
static bool prepare_help(struct hca_qp *qp, uint32_t peer, struct hca_exchange *x)
{
	struct hca_process *p = qp->ctx->process;

	memset((void *)x, 0, sizeof(*x));
	x->process = p;
	x->worker = qp->sender.qpn | (uint32_t)atomic_fetch_add_explicit(
	                                     &hca_connected(qp)->helpers, 1, memory_order_relaxed)
	                                     << 24;
	x->held = &p->region.connections[SHM_QP_INDEX(peer)].lock;
	shm_qp_read(&p->region, qp->sender.qpn, &x->responder.qp);
	shm_qp_read(&p->region, peer, &x->requester.qp);
	if (x->requester.qp.qpn != peer || !sends(&x->requester.qp) ||
	    x->requester.qp.connection.dest_qpn != qp->sender.qpn ||
	    !x->requester.qp.connection.requests_off)
		return false;
	x->responder.memory = hca_connected(qp)->x.requester.memory;
	x->requester.memory = hca_memory_get(p, &x->requester.qp);
	hca_exchange_prepare(x);
	return x->requester.memory;
}

/* Whether a message from the requester gets here. */
static bool path_leads_here(const struct hca_exchange *x, const struct shm_connection *c)
{
	const struct shm_region *r = &x->process->region;
	uint32_t id = hca_connected_load(&c->flow);
	const struct shm_flow *f = &r->flows[id];

	if (id >= SHM_MAX_FLOWS)
		return false;
	return r->ports[x->requester.qp.port].state == IB_PORT_ACTIVE && f->count &&
	       f->dest_port == x->responder.qp.port;
}

/* Carries out requests of the requester. Returns whether its program is waiting for one of them.
 * *@all: it has no more. */
static bool work_for(struct hca_exchange *x, struct shm_connection *c, bool *all)
{
	uint32_t head = hca_connected_load(&c->head);
	struct shm_entry entries[HCA_MAX_SGE];
	/* as many as the queue has: what the requester says about its end is not to be trusted */
	uint32_t left = 1u << x->requester.qp.connection.request_shift;
	struct shm_request r;
	bool tells = false;

	while (head != hca_connected_load(&c->tail) && left && !hca_connected_load(&c->failed) &&
	       path_leads_here(x, c) && hca_connected_take(x, head, &r, entries)) {
		int outcome;

		/* acquire, behind the copy: what was copied is one request, not parts of two */
		atomic_thread_fence(memory_order_acquire);
		if (hca_connected_load(&c->lock) != x->worker)
			break;
		if (r.opcode == IBV_WR_BIND_MW || r.opcode == IBV_WR_LOCAL_INV)
			return true; /* the requester's own business: it is woken */
		outcome = hca_exchange(x, &r, entries);
		if (outcome == HCA_WAITS_FOR_RECEIVE && !hca_connected_park(x))
			continue;
		if (outcome < 0 || hca_connected_load(&c->lock) != x->worker)
			break;
		tells = true;
		if (!hca_connected_settle(c, head, outcome))
			break;
		head++;
		left--;
	}
	*all = head == hca_connected_load(&c->tail);
	return tells;
}

/* Holds the lock of the requester's queue meanwhile. False: somebody else holds it, and goes on
 * with the queue. */
static bool work_locked(struct hca_qp *qp, uint32_t peer, struct hca_exchange *x, bool *tells,
                        bool *all)
{
	struct shm_connection *c = &x->process->region.connections[SHM_QP_INDEX(peer)];
	_Atomic uint32_t *helps = &hca_connected(qp)->shm->helps;
	uint32_t nobody = 0;

	*all = false;
	if (!atomic_compare_exchange_strong_explicit(&c->lock, &nobody, x->worker,
	                                             memory_order_acquire, memory_order_relaxed))
		return false;
	/* seq_cst: before the look at keys; pairs with hca_connections_wait() */
	atomic_store_explicit(helps, peer, memory_order_seq_cst);
	base_fence_behind_seq_cst();
	if (hca_exchange_is_current(x)) /* it may have been reset since the records were copied */
		*tells |= work_for(x, c, all);
	/* release: all that was done comes before "deals with nobody" */
	atomic_store_explicit(helps, 0, memory_order_release);
	hca_connected_unlock(c, x->worker);
	return true;
}

/* Whether a request waits though it need not: while we held the lock, another thread that posted a
 * receive could not help, nor could a requester go on that posted a request when we had done all.
 */
static bool must_look_again(const struct hca_exchange *x, const struct shm_connection *c, bool all)
{
	atomic_thread_fence(memory_order_seq_cst); /* the lock is free before the look */
	return hca_connected_load(&c->head) != hca_connected_load(&c->tail) &&
	       !hca_connected_load(&c->failed) &&
	       (all || !atomic_load_explicit(&x->credits->waited_for, memory_order_relaxed));
}

BASE_COLD void hca_connected_help(struct hca_qp *qp)
{
	struct hca_process *p = qp->ctx->process;
	uint32_t peer = qp->connection.dest_qpn;
	struct shm_connection *c = &p->region.connections[SHM_QP_INDEX(peer)];
	struct hca_exchange x;
	unsigned rounds = 0;
	bool tells = false, all;

	/* what the caller has taken back, waited_for, before the look whether the lock is free; pairs
	 * with must_look_again() of who has it */
	base_fence_behind_seq_cst();
	if (qp->xrcd || hca_connected_load(&c->head) == hca_connected_load(&c->tail) ||
	    !prepare_help(qp, peer, &x))
		return; /* XRC's requesters go on by themselves */
	while (work_locked(qp, peer, &x, &tells, &all) && must_look_again(&x, c, all) &&
	       ++rounds < MOST_ROUNDS)
		;
	if (tells) {
		atomic_thread_fence(memory_order_seq_cst); /* head before the look at arm */
		hca_cq_alert(p, &p->region.cqs[x.requester.qp.connection.send_cq]);
	}
	hca_memory_put(p, x.requester.memory);
}

/* Whether a thread of the process of @peer may be using memory that @qpn gives access to; 0: that
 * anybody gives. */
static bool deals_with(const struct hca_process *p, uint32_t peer, uint32_t qpn)
{
	const struct shm_sender *s = &p->region.senders[SHM_QP_INDEX(peer)];
	const struct shm_connection *c = &p->region.connections[SHM_QP_INDEX(peer)];
	/* seq_cst: after the key is gone; pairs with hca_exchange_begin() */
	uint32_t target =
	        atomic_load_explicit((_Atomic uint32_t *)&s->target_qpn, memory_order_seq_cst);

	if (!qpn)
		return target;
	return target == qpn ||
	       atomic_load_explicit((_Atomic uint32_t *)&c->helps, memory_order_seq_cst) == qpn;
}

/* Waits as long as that. *@began: since when, or 0. */
static void wait_for(struct hca_process *p, uint32_t peer, uint32_t qpn, uint64_t *began)
{
	while (peer && deals_with(p, peer, qpn)) {
		if (!*began)
			*began = base_now_ns();
		if (base_now_ns() - *began > HCA_CONNECTED_WAIT_NS || hca_process_gone(p))
			break;
		sched_yield();
	}
}

/* Waits for all that deal with an XRC shared receive queue of this process: anybody may. */
static void wait_for_all(struct hca_process *p, uint64_t *began)
{
	for (uint32_t i = 0; i < SHM_MAX_QPS; i++) {
		uint32_t to = atomic_load_explicit(&p->region.senders[i].target_qpn,
		                                   memory_order_seq_cst);
		const struct shm_qp *q = &p->region.qps[SHM_QP_INDEX(to)];

		if (to && q->type == SHM_QPT_XRC_SRQ && q->connection.keys_off == p->mrs.keys_off)
			wait_for(p, i, to, began);
	}
}

void hca_connected_wait_for(const struct hca_qp *qp, uint32_t peer)
{
	uint64_t began = 0;

	if (qp->transport == &hca_xrc_srq)
		wait_for_all(qp->ctx->process, &began);
	else /* what is sent to an XRC target names its shared receive queue */
		wait_for(qp->ctx->process, peer, qp->xrcd ? 0 : qp->sender.qpn, &began);
}

void hca_connections_wait(struct hca_process *p)
{
	const struct hca_connected_qp *c;
	uint64_t began = 0;
	bool has_xrc = false;

	base_lock(&p->connected_lock);
	LIST_FOREACH(c, &p->connected, entry)
	{
		/* what others see: another thread may be changing our own */
		const struct shm_qp *q = &p->region.qps[SHM_QP_INDEX(c->qp.sender.qpn)];

		has_xrc |= c->qp.transport == &hca_xrc_srq;
		wait_for(p,
		         atomic_load_explicit((_Atomic uint32_t *)&q->connection.dest_qpn,
		                              memory_order_relaxed),
		         c->qp.sender.qpn, &began);
	}
	base_unlock(&p->connected_lock);
	if (has_xrc)
		wait_for_all(p, &began);
}
