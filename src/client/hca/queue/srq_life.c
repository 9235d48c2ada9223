/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared receive queues: how they are made and destroyed, and the queue pairs that have them. See
 * srq.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/ack_wait.h"
#include "base/reason.h"
#include "hca/process/hearer.h"
#include "hca/process/domain.h"
#include "hca/queue/qp.h"
#include "hca/queue/srq.h"

/* ---- life ---- */

static int allocate(struct hca_srq *srq)
{
	size_t positions = (size_t)1 << srq->ring_shift;

	srq->room = srq->max_wr;
	srq->receive = calloc(srq->max_wr, sizeof(*srq->receive));
	srq->sge = calloc((size_t)srq->max_wr * srq->max_sge, sizeof(*srq->sge));
	srq->at_position = calloc(positions, sizeof(*srq->at_position));
	if (!srq->receive || !srq->sge || !srq->at_position)
		return -ENOMEM;
	for (uint32_t i = 0; i < srq->max_wr; i++)
		srq->receive[i].next_free = i + 1 < srq->max_wr ? i + 2 : 0;
	srq->first_free = 1;
	return 0;
}

static void free_srq(struct hca_srq *srq)
{
	free(srq->receive);
	free(srq->sge);
	free(srq->at_position);
	free(srq);
}

static void init_public(struct hca_srq *srq, struct ibv_pd *pd, void *srq_context)
{
	srq->srq.context = pd->context;
	srq->srq.srq_context = srq_context;
	srq->srq.pd = pd;
	srq->srq.handle = srq->index;
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
}

/* Now the program knows it. */
static void enter(struct hca_srq *srq, struct ibv_pd *pd, void *srq_context)
{
	init_public(srq, pd, srq_context);
	hca_async_object_init(&srq->events, srq->xrc ? HCA_ASYNC_XRC_SRQ : HCA_ASYNC_SRQ,
	                      &srq->srq);
	if (srq->xrc)
		srq->xrc->events.source = srq->events.source;
	hca_async_enter(&srq->ctx->async, &srq->events, srq->index);
	hca_context_count(srq->ctx, 1);
	hca_pd_use(pd);
}

int hca_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct hca_srq **out)
{
	struct hca_context *ctx = hca_context(pd->context);
	struct control_create_srq req = { .hca_handle = ctx->handle,
		                          .max_wr = hca_srq_size(ctx, attr->attr.max_wr),
		                          .max_sge = attr->attr.max_sge ? attr->attr.max_sge : 1,
		                          .domain = hca_pd(pd)->domain->number };
	struct control_create_srq_reply rep;
	struct hca_srq *srq;
	int ret;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	ret = hca_ask_memory(ctx->process, &CONTROL_CALL(CONTROL_CREATE_SRQ, &req, &rep));
	if (ret)
		goto err_free;
	srq->ctx = ctx;
	srq->domain = hca_pd(pd)->domain;
	srq->index = rep.srq;
	srq->max_wr = req.max_wr;
	srq->max_sge = req.max_sge;
	hca_srq_use_ring(srq, &rep);
	TAILQ_INIT(&srq->qps);
	ret = hca_srq_map(srq, srq->max_wr, &rep);
	if (!ret)
		ret = allocate(srq);
	if (ret)
		goto err_destroy;
	enter(srq, pd, attr->srq_context);
	attr->attr.max_sge = srq->max_sge;
	attr->attr.max_wr = srq->max_wr;
	*out = srq;
	return 0;
err_destroy:
	hca_post(ctx->process, CONTROL_DESTROY_SRQ, &(struct control_handle){ .handle = rep.srq },
	         sizeof(struct control_handle));
err_free:
	free_srq(srq);
	return ret;
}

/* The queue pair that an XRC one is. */
static int make_xrc(struct hca_context *ctx, struct ibv_pd *pd,
                    const struct ibv_srq_init_attr_ex *init, struct hca_qp **out)
{
	const struct ibv_qp_init_attr_ex attr = {
		.send_cq = init->cq,
		.recv_cq = init->cq,
		.cap = { .max_recv_wr = init->attr.max_wr,
		         .max_recv_sge = init->attr.max_sge ? init->attr.max_sge : 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD,
		.pd = pd,
		.xrcd = init->xrcd,
	};
	int ret = hca_qp_create_as(ctx, &hca_xrc_srq, &attr, 0, out);

	if (ret)
		return ret;
	ret = hca_qp_start(*out);
	if (ret)
		hca_qp_destroy(*out);
	return ret;
}

int hca_srq_create_xrc(struct ibv_pd *pd, struct ibv_srq_init_attr_ex *init, struct hca_srq **out)
{
	struct hca_context *ctx = hca_context(pd->context);
	struct hca_srq *srq;
	int ret;

	if (!init->attr.max_wr)
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	ret = make_xrc(ctx, pd, init, &srq->xrc);
	if (ret) {
		free_srq(srq);
		return ret;
	}
	srq->ctx = ctx;
	srq->domain = hca_pd(pd)->domain;
	srq->index = SHM_XRC_SRQ | srq->xrc->sender.qpn;
	srq->max_wr = srq->xrc->cap.max_recv_wr;
	srq->max_sge = srq->xrc->cap.max_recv_sge;
	srq->ring = srq->xrc->rq->ring;
	TAILQ_INIT(&srq->qps);
	enter(srq, pd, init->srq_context);
	init->attr.max_sge = srq->max_sge;
	init->attr.max_wr = srq->max_wr;
	*out = srq;
	return 0;
}

static void wait_acked(struct hca_srq *srq)
{
	const struct hca_hearer *h = srq->ctx->process->hearer;
	struct base_ack_wait w = { .part = BASE_LOG_PART_verbs,
		                   .call = "ibv_destroy_srq",
		                   .acknowledge = "ibv_ack_async_event",
		                   .hear = h ? h->async_events_kept : NULL,
		                   .of = srq };

	pthread_mutex_lock(&srq->srq.mutex);
	while ((w.missing = (int)(srq->events.n_got - srq->srq.events_completed)))
		base_ack_wait(&w, &srq->srq.cond, &srq->srq.mutex);
	pthread_mutex_unlock(&srq->srq.mutex);
}

int hca_srq_destroy(struct hca_srq *srq)
{
	struct hca_context *ctx = srq->ctx;
	bool used;

	base_lock(&srq->lock);
	used = !TAILQ_EMPTY(&srq->qps);
	base_unlock(&srq->lock);
	if (used)
		return base_because(-EBUSY, "queue pairs still use it: destroy them first");
	if (srq->xrc)
		hca_qp_destroy(srq->xrc);
	else
		hca_async_end(&ctx->async, srq->events.source, CONTROL_DESTROY_SRQ, srq->index,
		              NULL);
	hca_async_leave(&ctx->async, &srq->events);
	hca_context_count(ctx, -1);
	wait_acked(srq);
	hca_pd_unuse(srq->srq.pd);
	pthread_mutex_destroy(&srq->srq.mutex);
	pthread_cond_destroy(&srq->srq.cond);
	free_srq(srq);
	return 0;
}

/* Each of the queue pairs has its turn. Not with the lock of a CQ held. */
static BASE_COLD void each_qp(struct hca_srq *srq, void (*f)(struct hca_srq *, struct hca_qp *))
{
	struct hca_qp *qp;
	unsigned n = 0;

	base_lock(&srq->lock);
	TAILQ_FOREACH(qp, &srq->qps, srq_entry)
	n++;
	for (; n && (qp = TAILQ_FIRST(&srq->qps)); n--) {
		TAILQ_REMOVE(&srq->qps, qp, srq_entry);
		TAILQ_INSERT_TAIL(&srq->qps, qp, srq_entry);
		atomic_fetch_add_explicit(&qp->in_use, 1, memory_order_relaxed);
		base_unlock(&srq->lock);
		f(srq, qp);
		/* release: pairs with the acquire in hca_qp_destroy() */
		atomic_fetch_sub_explicit(&qp->in_use, 1, memory_order_release);
		base_lock(&srq->lock);
	}
	base_unlock(&srq->lock);
}

static void help(struct hca_srq *srq, struct hca_qp *qp)
{
	(void)srq;
	if (qp->rq->connected) /* UD's senders do not wait */
		qp->rq->help(qp);
}

BASE_COLD void hca_srq_help(struct hca_srq *srq)
{
	each_qp(srq, help);
}

static void fit(struct hca_srq *srq, struct hca_qp *qp)
{
	hca_cq_fit_shared(qp->rq->cq, srq);
}

void hca_srq_has_size(struct hca_srq *srq)
{
	each_qp(srq, fit);
}

static void watch(struct hca_srq *srq, struct hca_qp *qp)
{
	(void)srq;
	hca_cq_attend(qp->rq->cq);
}

BASE_COLD void hca_srq_watch(struct hca_srq *srq)
{
	each_qp(srq, watch);
}

void hca_srq_help_if_due(struct hca_srq *srq)
{
	if (atomic_load_explicit(&srq->must_help, memory_order_relaxed) &&
	    atomic_exchange_explicit(&srq->must_help, false, memory_order_relaxed))
		hca_srq_help(srq);
}

/* ---- queue pairs ---- */

void hca_srq_add_qp(struct hca_srq *srq, struct hca_qp *qp)
{
	base_lock(&srq->lock);
	TAILQ_INSERT_TAIL(&srq->qps, qp, srq_entry);
	base_unlock(&srq->lock);
	fit(srq, qp);
}

void hca_srq_remove_qp(struct hca_srq *srq, struct hca_qp *qp)
{
	base_lock(&srq->lock);
	TAILQ_REMOVE(&srq->qps, qp, srq_entry);
	base_unlock(&srq->lock);
}
