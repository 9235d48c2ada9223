/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A responder's help for a requester whose requests wait for it, and the wait of an owner of memory
 * for the threads that use it.
 */
#include <string.h>

#include "base/pause.h"
#include "base/util.h"
#include "hca/queue/cq.h"
#include "hca/transport/connected.h"
#include "shm/connection.h"
#include "shm/packets.h"

/* A queue that nothing can be done for must not keep us. */
#define MOST_ROUNDS 16

/* Whether its record says that the queue pair sends. In RTR it may have moved on to RTS, which only
 * its process knows; if not, it has no requests. */
static bool sends(const struct shm_qp *qp)
{
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_RTR;
}

/* Prepares @x for the requests of @qp's peer, for this thread, which is the responder's. False:
 * nothing can be done for the peer. */
static bool prepare_help(struct hca_qp *qp, uint32_t peer, struct hca_exchange *x)
{
	struct hca_process *p = qp->ctx->process;

	memset((void *)x, 0, sizeof(*x));
	x->process = p;
	x->responder.process = p;
	x->responder.worker =
	        qp->sender.qpn |
	        atomic_fetch_add_explicit(&hca_connected(qp)->helpers, 1, memory_order_relaxed) %
	                        (SHM_ATOMIC_BEGUN >> 24)
	                << 24;
	x->responder.held = &shm_connection_at(&p->region, SHM_QP_INDEX(peer))->lock;
	shm_qp_read(&p->region, qp->sender.qpn, &x->responder.end.qp);
	shm_qp_read(&p->region, peer, &x->requester.qp);
	if (x->requester.qp.qpn != peer || !sends(&x->requester.qp) ||
	    x->requester.qp.connection.dest_qpn != qp->sender.qpn ||
	    !x->requester.qp.connection.requests_off)
		return false;
	x->responder.end.memory = hca_connected(qp)->x.requester.memory;
	x->requester.memory = hca_memory_get(p, &x->requester.qp);
	hca_exchange_prepare(x);
	x->responder.unplaced =
	        true; /* what is known of that is in shared memory, where the lock guards it */
	return x->requester.memory;
}

/* Whether a message from the requester gets here. */
static bool path_leads_here(const struct hca_exchange *x, const struct shm_connection *c)
{
	const struct shm_region *r = &x->process->region;
	uint32_t id = hca_connected_load(&c->flow);
	const struct shm_flow *f = shm_flow_at(r, id);

	if (id >= SHM_MAX_FLOWS)
		return false;
	return shm_port_at(r, x->requester.qp.port)->state == IB_PORT_ACTIVE && f->count &&
	       f->dest_port == x->responder.end.qp.port;
}

/* Whom a thread that helps deals with, as it says in its queue pair's `helps`. */
struct helper {
	struct hca_connected_qp *c; /* of the responder, whose thread it is */
	_Atomic uint32_t *lock;     /* of the requester's queue, which it holds */
	uint32_t worker;
	uint32_t word; /* that it has said last */
};

/* A word that differs from all that were said lately. */
static uint32_t new_word(const struct helper *h, uint32_t peer)
{
	uint32_t n = atomic_fetch_add_explicit(&h->c->words, 1, memory_order_relaxed) + 1;

	return peer | n << 24;
}

/*
 * Says which peer this thread deals with, before it looks at anything of the peer's. False: the
 * thread was stopped, and has lost the lock. Another thread may have the lock, and its word must
 * stay. So this writes only over the word that was there while the lock was still its own.
 */
static bool say_whom(struct helper *h, uint32_t peer)
{
	_Atomic uint32_t *helps = &h->c->shm->helps;
	uint32_t before = hca_connected_load(helps), word = new_word(h, peer);

	do
		if (hca_connected_load(h->lock) != h->worker)
			return false;
	/* seq_cst: before the look at keys; pairs with hca_connections_wait() */
	while (!atomic_compare_exchange_strong_explicit(helps, &before, word, memory_order_seq_cst,
	                                                memory_order_acquire));
	base_fence_behind_seq_cst();
	h->word = word;
	return true;
}

/* All that was done is done. */
static void say_nobody(struct helper *h)
{
	/* release: all that was done comes before "deals with nobody". It is another thread's if
	 * the lock was taken from this one */
	atomic_compare_exchange_strong_explicit(&h->c->shm->helps, &h->word, 0,
	                                        memory_order_release, memory_order_relaxed);
}

/* Whether this thread is still the one that works on the requester's queue: a thread that takes the
 * lock from one that seems to be dead goes on in its place. */
static bool is_worker(const struct hca_exchange *x, const struct shm_connection *c)
{
	return hca_connected_load(&c->lock) == x->responder.worker;
}

/* Copies the request at @head. False: there is none, or it cannot be carried out now. */
static bool next_request(const struct hca_exchange *x, const struct shm_connection *c,
                         uint32_t head, struct shm_request *r, struct shm_entry *entries)
{
	if (head == hca_connected_load(&c->tail) || hca_connected_load(&c->failed) ||
	    !path_leads_here(x, c) || !hca_connected_take(&x->requester, head, r, entries))
		return false;
	/* acquire, behind the copy: what was copied is one request, not parts of two */
	atomic_thread_fence(memory_order_acquire);
	return is_worker(x, c);
}

/* Whether the next request may be begun behind @r, which is done. A program that waits for a long
 * request does not wait for the next one. And if the requester has died meanwhile, this thread must
 * not say anew that it deals with it. */
static bool may_go_on(struct helper *h, const struct hca_exchange *x, const struct shm_request *r)
{
	return r->length <= HCA_CONNECTED_SHORT ||
	       (say_whom(h, x->requester.qp.qpn) && hca_exchange_is_current(x));
}

/* News that the requester's program is waiting for. */
enum news {
	NO_NEWS,
	SOME_ARE_DONE = 1,
	OWN_IS_NEXT = 2, /* a request that it carries out itself */
};

/* Carries out requests of the requester. *@all: it has no more. */
static enum news work_for(struct helper *h, struct hca_exchange *x, struct shm_connection *c,
                          bool *all)
{
	uint32_t head = hca_connected_load(&c->head);
	struct shm_entry entries[HCA_MAX_SGE];
	/* as many as the queue has: the end that the requester tells is not to be trusted */
	uint32_t left = 1u << x->requester.qp.connection.request_shift;
	struct shm_request r;
	enum news news = NO_NEWS;
	int outcome;

	while (left && next_request(x, c, head, &r, entries)) {
		if (hca_operation(r.opcode) & HCA_OP_LOCAL)
			return OWN_IS_NEXT;
		outcome = hca_exchange(x, &r, entries);
		if (outcome == HCA_WAITS_FOR_RECEIVE && !hca_connected_park(x))
			continue; /* there is a receive by now */
		if (outcome < 0 || !is_worker(x, c))
			break;
		if (outcome || !r.quiet)
			news = SOME_ARE_DONE;
		if (!hca_connected_settle(c, head, outcome))
			break;
		head++;
		left--;
		if (!may_go_on(h, x, &r))
			break;
	}
	*all = head == hca_connected_load(&c->tail);
	return news;
}

/* Holds the lock of the requester's queue meanwhile. False: somebody else holds it, and goes on
 * with the queue. */
static bool work_locked(struct hca_qp *qp, uint32_t peer, struct hca_exchange *x, enum news *news,
                        bool *all)
{
	struct shm_connection *c = shm_connection_at(&x->process->region, SHM_QP_INDEX(peer));
	struct helper h = { .c = hca_connected(qp),
		            .lock = &c->lock,
		            .worker = x->responder.worker };
	uint32_t nobody = 0;

	*all = false;
	if (!atomic_compare_exchange_strong_explicit(&c->lock, &nobody, x->responder.worker,
	                                             memory_order_acquire, memory_order_relaxed))
		return false;
	if (!say_whom(&h, peer))
		return false;
	if (hca_exchange_is_current(x)) /* it may have been reset since the records were copied */
		*news |= work_for(&h, x, c, all);
	say_nobody(&h);
	hca_connected_unlock(c, x->responder.worker);
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
	       (all ||
	        !atomic_load_explicit(&x->responder.credits->waited_for, memory_order_relaxed));
}

BASE_COLD void hca_connected_help(struct hca_qp *qp)
{
	struct hca_process *p = qp->ctx->process;
	uint32_t peer = qp->connection.dest_qpn;
	struct shm_connection *c = shm_connection_at(&p->region, SHM_QP_INDEX(peer));
	struct hca_exchange x;
	unsigned rounds = 0;
	enum news news = NO_NEWS;
	bool all;

	/* the caller has taken back waited_for: before the look whether the lock is free; pairs
	 * with must_look_again() of the lock's holder */
	base_fence_behind_seq_cst();
	if (qp->xrcd || hca_connected_detours(hca_connected(qp)->shm) || hca_connected_is_weak(c) ||
	    hca_connected_load(&c->head) == hca_connected_load(&c->tail) ||
	    !prepare_help(qp, peer, &x))
		return; /* XRC's requesters go on by themselves */
	while (work_locked(qp, peer, &x, &news, &all) && must_look_again(&x, c, all) &&
	       ++rounds < MOST_ROUNDS)
		;
	if (news)
		hca_connected_tell_owner(p, c, x.requester.qp.connection.send_cq,
		                         news & OWN_IS_NEXT);
	hca_memory_put(p, x.requester.memory);
}

/* All words together are waited for HCA_STOPPED_WAIT_NS. When that is over, as one of a stopped
 * process stays, each further word still gets LATER_NS, so that a copy under way can end, until
 * LATER_TIMES that time has passed. */
#define LATER_NS    10000000ull
#define LATER_TIMES 2

/* Whether enough was waited for a word that is looked at since @since. @began: for the first one.
 */
static bool is_over(uint64_t since, uint64_t began)
{
	uint64_t now = base_now_ns();

	return now - began > HCA_STOPPED_WAIT_NS &&
	       (now - since > LATER_NS || now - began > LATER_TIMES * HCA_STOPPED_WAIT_NS);
}

/*
 * Waits while a thread says in @word that it deals with queue pair @qpn, or, if that is 0, with
 * any. The word is different each time, and a copy that begins now sees that the key is gone: so
 * there is only one copy to wait for, however busy the thread is. *@began: since when this waits,
 * or 0.
 */
static void wait_until_done(const _Atomic uint32_t *word, uint32_t qpn, uint64_t *began)
{
	/* seq_cst: after the key is gone; pairs with hca_exchange_begin() and say_whom(). Also
	 * acquire: what the thread has copied comes before */
	uint32_t first = atomic_load_explicit((_Atomic uint32_t *)word, memory_order_seq_cst);
	struct base_pause pause = { 0 };
	uint64_t since;

	if (!first || (qpn && (first & IB_QPN_MASK) != qpn))
		return;
	since = base_now_ns();
	if (!*began)
		*began = since;
	while (atomic_load_explicit((_Atomic uint32_t *)word, memory_order_seq_cst) == first &&
	       !is_over(since, *began))
		base_pause(&pause);
}

/* Waits for threads of the process of @peer that may be using memory that @qpn gives access to; 0:
 * that anybody gives. */
static void wait_for(const struct hca_process *p, uint32_t peer, uint32_t qpn, uint64_t *began)
{
	if (!peer)
		return;
	wait_until_done(&shm_sender_at(&p->region, SHM_QP_INDEX(peer))->target_qpn, qpn, began);
	wait_until_done(&shm_connection_at(&p->region, SHM_QP_INDEX(peer))->helps, qpn, began);
}

/* Waits for all that deal with an XRC shared receive queue of this process, or with a queue pair
 * whose peer is outside of the fabric: anybody may. */
static void wait_for_all(const struct hca_process *p, uint64_t *began)
{
	for (uint32_t i = 0; i < SHM_MAX_QPS; i++) {
		uint32_t to = IB_QPN_MASK &
		              atomic_load_explicit(&shm_sender_at(&p->region, i)->target_qpn,
		                                   memory_order_seq_cst);
		const struct shm_qp *q = shm_qp_at(&p->region, SHM_QP_INDEX(to));

		bool may_be_anybodys =
		        q->type == SHM_QPT_XRC_SRQ ||
		        (shm_wire_at(&p->region, SHM_QP_INDEX(to))->open & SHM_WIRE_RECEIVES);

		if (to && may_be_anybodys && q->connection.keys_off == p->mrs.keys_off)
			wait_for(p, i, to, began);
	}
}

void hca_connected_wait_for(const struct hca_qp *qp, uint32_t peer)
{
	uint64_t began = 0;

	if (qp->transport == &hca_xrc_srq)
		wait_for_all(qp->ctx->process, &began);
	else /* a request to an XRC target names its shared receive queue */
		wait_for(qp->ctx->process, peer, qp->xrcd ? 0 : qp->sender.qpn, &began);
}

/* Waits for threads of others that use memory by queue pair @c. */
static void wait_for_peers(const struct hca_process *p, const struct hca_connected_qp *c,
                           uint64_t *began)
{
	uint32_t qpn = c->qp.sender.qpn;
	/* what others see: another thread may be changing our own */
	const struct shm_qp *q = shm_qp_at(&p->region, SHM_QP_INDEX(qpn));

	/* acquire: a queue pair that is not the peer any more was made last_peer before */
	wait_for(p,
	         atomic_load_explicit((_Atomic uint32_t *)&q->connection.dest_qpn,
	                              memory_order_acquire),
	         qpn, began);
	wait_for(p, atomic_load_explicit(&c->last_peer, memory_order_relaxed), qpn, began);
}

/* With the list of connected queue pairs locked. */
static void wait_for_connections(struct hca_process *p)
{
	const struct hca_connected_qp *c;
	uint64_t began = 0, own_began = 0;
	bool is_anybodys = false;

	/* this process's own threads first: no other process's keeps this from waiting for them */
	LIST_FOREACH(c, &p->connected, entry)
	{
		is_anybodys |= c->qp.transport == &hca_xrc_srq || c->wire;
		wait_for(p, c->qp.sender.qpn, 0, &own_began);
	}
	LIST_FOREACH(c, &p->connected, entry)
	wait_for_peers(p, c, &began);
	if (is_anybodys)
		wait_for_all(p, &began);
}

/* Whether queue pair @qpn is another process's. One that is just made or reset may be ours. */
static bool is_elsewhere(const struct hca_process *p, uint32_t qpn)
{
	const struct shm_qp *q = shm_qp_at(&p->region, SHM_QP_INDEX(qpn));

	return q->qpn == qpn && q->connection.keys_off && q->connection.keys_off != p->mrs.keys_off;
}

/* Waits for threads of another process, that of @user, which may be using this one's memory; not
 * for those that deal with somebody else's. */
static void wait_for_user(const struct hca_process *p, uint32_t user, uint64_t *began)
{
	const _Atomic uint32_t *words[] = {
		&shm_sender_at(&p->region, SHM_QP_INDEX(user))->target_qpn,
		&shm_connection_at(&p->region, SHM_QP_INDEX(user))->helps
	};

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
		uint32_t qpn = IB_QPN_MASK & atomic_load_explicit((_Atomic uint32_t *)words[i],
		                                                  memory_order_seq_cst);

		if (qpn && !is_elsewhere(p, qpn))
			wait_until_done(words[i], qpn, began);
	}
}

/* Waits for the users of a key that is gone. False: there are more than it says. With the lock of
 * the table of regions released. */
static bool wait_for_users(struct hca_process *p, const uint32_t *users)
{
	uint64_t began[2] = { 0 };

	if (users[SHM_KEY_USERS - 1] == SHM_KEY_MANY)
		return false;
	for (unsigned own = 2; own--;) /* this process's own threads first, as below */
		for (unsigned i = 0; i < SHM_KEY_USERS; i++) {
			const struct shm_qp *q = shm_qp_at(&p->region, SHM_QP_INDEX(users[i]));

			if (!users[i] || (q->connection.keys_off == p->mrs.keys_off) != own)
				continue;
			if (own) /* whoever it deals with, it may use its own memory */
				wait_for(p, users[i], 0, &began[own]);
			else
				wait_for_user(p, users[i], &began[own]);
		}
	return true;
}

void hca_connections_wait(struct hca_process *p, const uint32_t users[SHM_KEY_USERS])
{
	if (!p->mrs.keys_off) /* it has no peers */
		return;
	pthread_mutex_unlock(&p->mrs.lock);
	if (!wait_for_users(p, users)) {
		base_lock(&p->connected_lock);
		wait_for_connections(p);
		base_unlock(&p->connected_lock);
	}
	pthread_mutex_lock(&p->mrs.lock);
}
