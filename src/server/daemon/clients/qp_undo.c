/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Undoes the unfinished actions of a dead process's queue pair on others: see qp.h.
 */
#include "base/util.h"
#include "daemon/clients/holder.h"
#include "daemon/clients/qp.h"
#include "hca/link/link_roce.h"
#include "shm/connection.h"
#include "shm/ring.h"
#include "shm/packets.h"

/* Releases the lock if the dead process of @qpn held it: a thread of its, by the lower 24 bits. */
static void release_lock(_Atomic uint32_t *lock, uint32_t qpn)
{
	uint32_t holder = atomic_load_explicit(lock, memory_order_relaxed);

	/* release: the dead one's work comes before the next holder's */
	if ((holder & IB_QPN_MASK) == qpn)
		atomic_compare_exchange_strong_explicit(lock, &holder, 0, memory_order_release,
		                                        memory_order_relaxed);
}

/* The daemon looks at the connection soon, in case that nobody else does: then it is mended. */
static void have_mended(struct daemon_qps *all, uint32_t index)
{
	atomic_fetch_or_explicit(&shm_wire_busy_at(all->f->region, index / 64)->bits,
	                         1ull << index % 64, memory_order_seq_cst);
	if (all->is_busy)
		all->is_busy(all->is_busy_arg);
}

/* The same for both halves of a connection that exchanges packets, if it is one. */
static void release_wire(struct daemon_qps *all, uint32_t qpn, uint32_t peer)
{
	struct shm_wire *w = shm_wire_at(all->f->region, SHM_QP_INDEX(peer));
	_Atomic uint32_t *locks[] = {
		&w->lock, &shm_connection_at(all->f->region, SHM_QP_INDEX(peer))->lock
	};
	static const uint8_t halves[] = { SHM_WIRE_RESPONDER, SHM_WIRE_REQUESTER };
	uint32_t egress;
	bool is_open, repeats;

	if (!daemon_qps_have_wires(all))
		return;
	is_open = atomic_load_explicit(&w->open, memory_order_relaxed) % SHM_WIRE_OPENED;
	/* what it had made got lost, or has left: an acknowledgement leaves again, before anything
	 * that others send */
	egress = atomic_load_explicit(&w->egress, memory_order_relaxed);
	repeats = is_open && (egress & IB_QPN_MASK) == qpn &&
	          shm_qp_at(all->f->region, SHM_QP_INDEX(peer))->type == IBV_QPT_RC;
	if (repeats)
		atomic_store_explicit(&w->ack_due, true, memory_order_relaxed);
	shm_wire_release_egress(w, qpn, egress);
	for (unsigned i = 0; i < ARRAY_SIZE(locks); i++) {
		uint32_t holder = atomic_load_explicit(locks[i], memory_order_relaxed);

		if ((holder & IB_QPN_MASK) == qpn && is_open) /* before the lock is free */
			atomic_fetch_or_explicit(&w->broken, halves[i], memory_order_relaxed);
		release_lock(locks[i], qpn);
	}
	if (repeats || atomic_load_explicit(&w->broken, memory_order_relaxed))
		have_mended(all, SHM_QP_INDEX(peer));
}

/* Has queue pair @peer look whether its requests are done: the dead may have told nobody. */
static void wake_requester(struct daemon_qps *all, uint32_t peer)
{
	const struct shm_connection *c = shm_connection_at(all->f->region, SHM_QP_INDEX(peer));

	if (atomic_load_explicit(&c->harvested, memory_order_relaxed) !=
	    atomic_load_explicit(&c->tail, memory_order_relaxed))
		daemon_cq_wake_bereaved(
		        all->cqs,
		        shm_qp_at(all->f->region, SHM_QP_INDEX(peer))->connection.send_cq);
}

/* Releases what the dead process of @qpn held of queue pair @peer: its lock, and those of the
 * memory of its process. */
static void release_connection(struct daemon_qps *all, uint32_t qpn, uint32_t peer)
{
	struct daemon_qp *other = daemon_qp_live_at(all, SHM_QP_INDEX(peer));
	struct shm_keys *keys;

	if (!other || other->qpn != peer || !other->queue_off)
		return;
	release_wire(all, qpn, peer);
	release_lock(&shm_connection_at(all->f->region, SHM_QP_INDEX(peer))->lock, qpn);
	keys = shm_data_at(all->f->region, other->holder->keys_off);
	for (unsigned i = 0; i < SHM_ATOMIC_LOCKS; i++)
		release_lock(&keys->atomics[i], qpn);
	wake_requester(all, peer); /* behind the locks, which it may acquire at once */
}

/* The shared queue by which @qpn receives, or did: a sender that claims a receive of it may die
 * later than that QP. NULL: there is none. */
static const struct daemon_srq *srq_of(const struct daemon_qps *all, uint32_t qpn)
{
	const struct daemon_received *gone = &all->received[SHM_QP_INDEX(qpn)];
	const struct daemon_qp *qp = daemon_qp_live_at(all, SHM_QP_INDEX(qpn));

	if (qp && qp->qpn == qpn)
		return qp->srq;
	return gone->qpn == qpn ? daemon_srq_find(all->srqs, gone->srq) : NULL;
}

/* Its @n-th ring, the present one first. */
static const struct daemon_srq_ring *srq_ring(const struct daemon_srq *srq, unsigned n)
{
	return n ? &srq->old[n - 1] : &srq->ring;
}

/* Begins with the next ring: those of the shared queue by which the target receives, then its own.
 * The order makes sure that a claim which the owner finds void in its own ring is undone in the
 * shared ones too. False: all are done. */
static bool begin_undo_ring(struct daemon_qps *all, struct daemon_qp *qp)
{
	const struct daemon_qp *target = daemon_qp_live_at(all, SHM_QP_INDEX(qp->undo.qpn));
	const struct daemon_srq *srq = srq_of(all, qp->undo.qpn);

	if (srq && qp->undo.srq <= srq->n_old) {
		const struct daemon_srq_ring *r = srq_ring(srq, qp->undo.srq++);

		shm_ring_walk_begin(&qp->undo.walk, daemon_memory_ring_at(all->memory, r->off),
		                    r->shift);
		return true;
	}
	if (qp->undo.own || !target || target->qpn != qp->undo.qpn)
		return false;
	qp->undo.own = true;
	shm_ring_walk_begin(&qp->undo.walk, daemon_qp_ring(all, target), target->ring_shift);
	return true;
}

/* Whether the ring that it was at is there still: queues may go while this pauses. */
static bool can_go_on(struct daemon_qps *all, const struct daemon_qp *qp)
{
	const struct daemon_srq *srq;

	if (qp->undo.own)
		return daemon_qp_number_of(all, SHM_QP_INDEX(qp->undo.qpn)) == qp->undo.qpn;
	srq = srq_of(all, qp->undo.qpn);
	for (unsigned n = 0; srq && n <= srq->n_old; n++)
		if (daemon_memory_ring_at(all->memory, srq_ring(srq, n)->off) == qp->undo.walk.ring)
			return true;
	return false;
}

/* The program of @qpn is to hear of events that the dead process had found, and may not have asked
 * the daemon to tell. Nothing is told twice. */
static void tell_program(struct daemon_qps *all, uint32_t qpn)
{
	const struct daemon_srq *srq = srq_of(all, qpn);
	uint32_t index = SHM_QP_INDEX(qpn), error;

	if (daemon_qp_number_of(all, index) != qpn)
		return;
	error = atomic_load_explicit(&shm_connection_at(all->f->region, index)->error,
	                             memory_order_relaxed);
	if (error == IBV_EVENT_QP_REQ_ERR || error == IBV_EVENT_QP_ACCESS_ERR)
		daemon_qp_peer_event(all, qpn, error);
	daemon_cq_overrun(all->cqs, shm_qp_at(all->f->region, index)->cq);
	daemon_qp_limit(all, qpn);
	if (srq)
		daemon_srq_limit(all->srqs, srq->index);
}

/* The program that destroys the completion queues of @qpn is not to wait for the dead process,
 * which may have been about to fire their events: hca_cq_await_wakers(). The queue pair itself may
 * be gone before. */
static void forget_wakers(struct daemon_qps *all, uint32_t qpn)
{
	struct shm_region *region = all->f->region;
	const struct shm_qp *q = shm_qp_at(region, SHM_QP_INDEX(qpn));

	if (!qpn)
		return;
	shm_cq_forget_wakers(shm_cq_at(region, q->cq));
	shm_cq_forget_wakers(shm_cq_at(region, q->connection.send_cq));
}

/* Finds out in whose ring the QP may have claimed something. */
static void begin_undo(struct daemon_qps *all, struct daemon_qp *qp)
{
	struct shm_region *region = all->f->region;
	uint16_t index = (uint16_t)SHM_QP_INDEX(qp->qpn);
	struct shm_sender *sender = shm_sender_at(region, index);
	uint32_t qpn =
	        IB_QPN_MASK & atomic_load_explicit(&sender->target_qpn, memory_order_acquire);
	uint32_t peer = shm_qp_at(region, index)->connection.dest_qpn;

	forget_wakers(all, peer);
	forget_wakers(all, qpn);
	release_connection(all, qp->qpn, peer);
	release_connection(all, qp->qpn, qpn); /* an XRC shared receive queue has other memory */
	if (qpn)
		tell_program(all, qpn);
	/* nobody is to wait for the dead: hca_connections_wait() */
	atomic_store_explicit(&sender->target_qpn, 0, memory_order_relaxed);
	atomic_store_explicit(&shm_connection_at(region, index)->helps, 0, memory_order_relaxed);
	if (qp->is_roce_sender)
		hca_roce_release(
		        shm_roce_port_at(region, shm_hca_at(region, qp->hca_index)->first_port),
		        index);
	qp->undo.qpn = qpn;
	qp->undo.srq = qp->undo.own = 0;
	if (!qpn || !begin_undo_ring(all, qp))
		qp->undo.qpn = 0;
}

#define MOST_LOOKED_AT 64

/* A queue pair that is gone received by this queue: a thread that sleeps for another queue pair of
 * it is to look whether there is room for receives that were late. */
static void wake_user(struct daemon_qps *all, const struct daemon_srq *srq)
{
	const struct shm_region *region = all->f->region;
	const struct daemon_qp *qp;
	unsigned n = 0;

	LIST_FOREACH(qp, &srq->qps, of_srq)
	{
		uint32_t cq = shm_qp_at(region, SHM_QP_INDEX(qp->qpn))->cq;

		if (atomic_load_explicit(&shm_cq_at(region, cq)->arm, memory_order_relaxed) !=
		    SHM_CQ_IDLE) {
			daemon_cq_wake_bereaved(all->cqs, cq);
			break;
		}
		if (++n == MOST_LOOKED_AT)
			break;
	}
}

/* The owner of the queue that the dead one sent to is to look at its rings. */
static void wake_target(struct daemon_qps *all, uint32_t qpn)
{
	const struct shm_qp *s = shm_qp_at(all->f->region, SHM_QP_INDEX(qpn));
	const struct daemon_srq *srq = srq_of(all, qpn);

	if (daemon_qp_number_of(all, SHM_QP_INDEX(qpn)) != qpn) {
		if (srq)
			wake_user(all, srq);
		return;
	}
	if (s->ready_bit < SHM_CQ_READY_BITS)
		atomic_fetch_or_explicit(
		        &shm_cq_at(all->f->region, s->cq)->ready[s->ready_bit / 64],
		        1ull << (s->ready_bit % 64), memory_order_release);
	daemon_cq_wake_bereaved(all->cqs, s->cq);
}

/* Undoes what the dead queue pair with index @writer had begun with the slot; @own: of the ring
 * in which messages arrive. */
static void undo_slot(struct daemon_qps *all, struct shm_arrival *slot, uint64_t state,
                      uint16_t writer, bool own)
{
	const struct shm_connection *c = shm_connection_at(all->f->region, writer);

	/* of a message that it has sent, and was placing, nothing is lost */
	if (atomic_load_explicit(&c->placing, memory_order_relaxed) == 1 + shm_slot_pos(state)) {
		shm_ring_restore(slot, state, writer);
		return;
	}
	if (own && shm_slot_writer(state) == writer)
		shm_slot_name_receive(slot, state, shm_sender_at(all->f->region, writer));
	shm_ring_void(slot, state, writer);
}

bool daemon_qp_undo_sending(struct daemon_qps *all, struct daemon_qp *qp, uint32_t *budget)
{
	const uint16_t writer = (uint16_t)SHM_QP_INDEX(qp->qpn);
	struct shm_arrival *slot;
	uint64_t state;
	bool more;

	if (!qp->undo.qpn)
		begin_undo(all, qp);
	for (more = qp->undo.qpn && (can_go_on(all, qp) || begin_undo_ring(all, qp)); more;) {
		if (!daemon_chore_spend(budget, 1))
			return false;
		slot = shm_ring_walk_next(&qp->undo.walk, &state);
		if (slot)
			undo_slot(all, slot, state, writer, qp->undo.own);
		else
			more = begin_undo_ring(all, qp);
	}
	if (qp->undo.qpn)
		wake_target(all, qp->undo.qpn);
	qp->undo.qpn = 0;
	return true;
}
