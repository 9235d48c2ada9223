/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arrivals at connected queue pairs. Most of the work was done by the thread that carried out the
 * request (exchange.c); a short message to memory that it had not mapped has yet to be copied.
 */
#include <string.h>

#include "hca/queue/cq.h"
#include "hca/queue/explain.h"
#include "hca/queue/srq.h"
#include "hca/registration/mw.h"
#include "hca/transport/connected.h"

/* Whether memory may have been unmapped though its region is there. */
static BASE_HOT bool may_be_gone(const struct hca_rq *rq, const struct ibv_sge *sge)
{
	const struct hca_mr *mr = hca_mr_find(&rq->process->mrs, sge->lkey);

	return base_unlikely(rq->known.doubts || (mr && mr->is_doubtful));
}

/* Copies to memory of the region of @sge. */
static void copy(const struct hca_rq *rq, const struct ibv_sge *sge, char *to, const char *from,
                 uint32_t bytes)
{
	if (to == HCA_MR_DISCARD)
		return; /* a null region */
	if (may_be_gone(rq, sge) && !hca_mr_is_there(to, bytes))
		return; /* it was there when the message came */
	if (bytes <= BASE_COPY_SHORT)
		base_copy_short(to, from, bytes);
	else
		memcpy(to, from, bytes);
}

/* Copies the message to the entries. As far as it reaches, they were checked when it was sent, and
 * may be gone now. */
static enum ibv_wc_status scatter(struct hca_rq *rq, const struct ibv_sge *sge, uint32_t n,
                                  const char *from, uint32_t bytes)
{
	for (uint32_t i = 0; i < n && bytes; i++) {
		const uint32_t part = sge[i].length < bytes ? sge[i].length : bytes;
		const struct ibv_sge used = { sge[i].addr, part, sge[i].lkey };
		char *to = hca_mr_resolve(&rq->process->mrs, rq->domain, &used,
		                          IBV_ACCESS_LOCAL_WRITE);

		if (base_unlikely(!to && part))
			to = hca_mr_fault(&rq->process->mrs, rq->domain, &used,
			                  IBV_ACCESS_LOCAL_WRITE);
		if (base_unlikely(!to && part))
			return IBV_WC_LOC_PROT_ERR;
		copy(rq, &used, to, from, part);
		from += part;
		bytes -= part;
	}
	return bytes ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

/* The common case: a short message to one entry. Its region is looked up once. */
static BASE_HOT enum ibv_wc_status scatter_short(struct hca_rq *rq, const struct ibv_sge *sge,
                                                 uint32_t n, const char *from, uint32_t bytes)
{
	char *to;

	if (base_unlikely(n != 1 || bytes > BASE_COPY_SHORT || sge->length < bytes ||
	                  may_be_gone(rq, sge)))
		return scatter(rq, sge, n, from, bytes);
	to = hca_mr_resolve(&rq->process->mrs, rq->domain, sge, IBV_ACCESS_LOCAL_WRITE);
	if (base_unlikely(!to || to == HCA_MR_DISCARD))
		return scatter(rq, sge, n, from, bytes);
	base_copy_short(to, from, bytes);
	return IBV_WC_SUCCESS;
}

/* @a: a copy of what is in @slot. */
static BASE_HOT enum ibv_wc_status place(struct hca_rq *rq, const struct shm_arrival *a,
                                         struct shm_arrival *slot, const struct ibv_sge *sge,
                                         uint32_t n_sge)
{
	const void *message = slot->data;
	enum ibv_wc_status status;

	if (a->status)
		return (enum ibv_wc_status)a->status;
	if (base_likely(!shm_arrival_is_unplaced(a)))
		return IBV_WC_SUCCESS;
	if (a->flags & SHM_ARRIVAL_PAYLOAD)
		message = shm_payload_at(&rq->process->region, a->payload_off, a->length);
	else if (a->length > SHM_INLINE)
		message = NULL;
	status = message ? scatter_short(rq, sge, n_sge, message, a->length) : IBV_WC_GENERAL_ERR;
	if (base_likely(message == slot->data))
		shm_ring_take_data(slot);
	return status;
}

static unsigned wc_flags(const struct shm_arrival *a)
{
	if (a->operation & SHM_OPERATION_INVALIDATE)
		return IBV_WC_WITH_INV;
	return a->flags & SHM_ARRIVAL_IMM ? IBV_WC_WITH_IMM : 0;
}

/* Fills in @wc for the arrival in @slot, except for what the receive says. @a: a copy of it. */
static BASE_HOT void read_arrival(struct hca_rq *rq, const struct shm_arrival *slot,
                                  struct shm_arrival *a, struct ibv_wc *wc)
{
	/* other processes can write to the slot, so we check and use a copy */
	memcpy((void *)a, (const void *)slot, offsetof(struct shm_arrival, data));
	if (base_unlikely(a->flags & SHM_ARRIVAL_STAMPED)) {
		memcpy(a->data, slot->data, sizeof(a->data));
		rq->cq->arrived_ns = *shm_arrival_time(a);
	}
	atomic_signal_fence(memory_order_acq_rel);
	rq->announced = a->more;
	if (base_unlikely(a->operation & SHM_OPERATION_INVALIDATE))
		hca_mw_invalidated(rq->process, a->imm);
	wc->opcode = (a->operation & ~SHM_OPERATION_INVALIDATE) == SHM_OPERATION_WRITE
	                     ? IBV_WC_RECV_RDMA_WITH_IMM
	                     : IBV_WC_RECV;
	wc->vendor_err = 0;
	wc->byte_len = a->length;
	/* by itself: the copy was made in pieces, one of which ends between the two, and a
	 * processor would wait until both are there to read across */
	wc->imm_data = *(const volatile uint32_t *)&a->imm;
	wc->qp_num = rq->qpn;
	wc->src_qp = a->src_qpn;
	wc->wc_flags = wc_flags(a);
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = 0;
	wc->dlid_path_bits = 0;
}

/* A receive has failed: so does the queue pair. */
static BASE_COLD void fail(struct hca_rq *rq, const struct ibv_wc *wc, const struct ibv_sge *sge,
                           uint32_t n_sge)
{
	hca_explain_failed_receive(rq, wc, sge, n_sge);
	hca_rq_fail(rq);
	rq->cq->failed = true;
}

/* Whether the arrival is the receiver's: a message that is yet to be placed could also be its
 * sender's. It may be placed afterwards. */
static BASE_HOT bool is_ours(struct hca_rq *rq, struct shm_arrival *slot)
{
	if (base_likely(!shm_arrival_is_unplaced(slot)))
		return true;
	base_prefetch_write(slot->data); /* it comes meanwhile */
	return hca_rq_take(rq, slot);
}

/* A function of type hca_rq_complete. */
static BASE_HOT enum hca_rq_outcome complete(struct hca_rq *rq, struct shm_arrival *slot,
                                             struct ibv_wc *wc)
{
	const struct ibv_sge *sge;
	struct hca_rwqe *rwqe;
	struct shm_arrival a;

	if (base_unlikely(!is_ours(rq, slot)))
		return HCA_RQ_LATER;
	rwqe = hca_rq_next(rq, &sge);
	__builtin_prefetch((const void *)(uintptr_t)sge->addr); /* a program reads it soon */
	read_arrival(rq, slot, &a, wc);
	wc->wr_id = rwqe->wr_id;
	wc->status = place(rq, &a, slot, sge, rwqe->n_sge);
	if (base_unlikely(wc->status != IBV_WC_SUCCESS))
		fail(rq, wc, sge, rwqe->n_sge);
	return HCA_RQ_DONE;
}

/* The same for a receive of a shared receive queue. */
static BASE_HOT enum hca_rq_outcome complete_shared(struct hca_rq *rq, struct shm_arrival *slot,
                                                    struct ibv_wc *wc)
{
	struct ibv_sge sge[HCA_MAX_SGE], *wanted = sge;
	struct shm_arrival a;
	uint32_t n_sge = 0;

	if (base_unlikely(!is_ours(rq, slot)))
		return HCA_RQ_LATER;
	read_arrival(rq, slot, &a, wc);
	wc->status = IBV_WC_GENERAL_ERR;
	wc->wr_id = 0;
	if (base_likely(!a.status && !shm_arrival_is_unplaced(&a)))
		wanted = NULL;
	if (hca_srq_take(rq->srq, a.class_flow, &wc->wr_id, wanted, &n_sge))
		wc->status = place(rq, &a, slot, sge, n_sge);
	if (hca_srq_must_help(rq->srq))
		rq->cq->failed = true; /* the poll helps once it holds no lock */
	if (base_unlikely(wc->status != IBV_WC_SUCCESS))
		fail(rq, wc, sge, n_sge);
	return HCA_RQ_DONE;
}

/* The same for an XRC shared receive queue, where messages to many targets arrive. A message that
 * fails moves its target to ERR, not the queue. */
static enum hca_rq_outcome complete_xrc(struct hca_rq *rq, struct shm_arrival *slot,
                                        struct ibv_wc *wc)
{
	const struct ibv_sge *sge;
	struct hca_rwqe *rwqe;
	struct shm_arrival a;

	if (!is_ours(rq, slot))
		return HCA_RQ_LATER;
	rwqe = hca_rq_next(rq, &sge);
	read_arrival(rq, slot, &a, wc);
	wc->wr_id = rwqe->wr_id;
	wc->status = place(rq, &a, slot, sge, rwqe->n_sge);
	wc->qp_num = a.class_flow & IB_QPN_MASK;
	if (base_unlikely(wc->status != IBV_WC_SUCCESS))
		hca_explain_failed_receive(rq, wc, sge, rwqe->n_sge);
	return HCA_RQ_DONE;
}

static BASE_HOT void look_for_error(struct hca_rq *rq, int done)
{
	if (done || base_likely(!hca_rq_is_refused(rq)))
		return;
	hca_rq_fail(rq);
	rq->cq->failed = true;
}

int hca_connected_receive(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals)
{
	int done = hca_rq_poll(rq, n, wc, arrivals, complete);

	rq->cq->first = 0; /* messages have had a turn */
	look_for_error(rq, done);
	return done;
}

int hca_connected_receive_xrc(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals)
{
	rq->cq->first = 0;
	return hca_rq_poll(rq, n, wc, arrivals, complete_xrc);
}

int hca_connected_receive_shared(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals)
{
	int done;

	base_lock(&rq->lock);
	done = hca_rq_poll_locked(rq, n, wc, arrivals, complete_shared);
	hca_rq_refill_locked(rq);
	base_unlock(&rq->lock);
	rq->cq->first = 0;
	look_for_error(rq, done);
	return done;
}
