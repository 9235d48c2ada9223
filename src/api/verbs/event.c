/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asynchronous events. They arrive on the context's descriptor, which programs poll
 * themselves; its end of file says that the daemon has gone, which is the one
 * event that we make up: the device is dead. Safe from any thread.
 */
#include <unistd.h>

#include "api/verbs/verbs.h"
#include "base/reason.h"
#include "hca/srq.h"

enum element { ELEMENT_CQ, ELEMENT_QP, ELEMENT_SRQ, ELEMENT_PORT, ELEMENT_NONE };

static enum element element_of(uint32_t type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return ELEMENT_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return ELEMENT_QP;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
	case IBV_EVENT_SRQ_ERR:
		return ELEMENT_SRQ;
	case IBV_EVENT_DEVICE_FATAL:
		return ELEMENT_NONE;
	default:
		return ELEMENT_PORT;
	}
}

/* Names the object; false if it has been destroyed meanwhile. */
static bool resolve(struct hca_context *ctx, const struct control_event *e,
                    struct ibv_async_event *event)
{
	struct hca_cq *cq = NULL;
	struct hca_qp *qp = NULL;
	struct hca_srq *srq = NULL;

	event->event_type = (enum ibv_event_type)e->type;
	pthread_mutex_lock(&ctx->lock);
	switch (element_of(e->type)) {
	case ELEMENT_CQ:
		cq = e->element < SHM_MAX_CQS ? ctx->cq_by_id[e->element] : NULL;
		if (cq)
			cq->async_events_got++;
		event->element.cq = (struct ibv_cq *)cq;
		break;
	case ELEMENT_QP:
		qp = ctx->qp_by_index[SHM_QP_INDEX(e->element)];
		if (qp && qp->ex.qp_base.qp_num != e->element)
			qp = NULL;
		if (qp)
			qp->async_events_got++;
		event->element.qp = (struct ibv_qp *)qp;
		break;
	case ELEMENT_SRQ:
		LIST_FOREACH(srq, &ctx->srqs, entry)
		if (srq->index == e->element)
			break;
		if (srq)
			srq->async_events_got++;
		event->element.srq = (struct ibv_srq *)srq;
		break;
	default:
		event->element.port_num = (int)e->element;
		break;
	}
	pthread_mutex_unlock(&ctx->lock);
	if (qp)
		hca_qp_notice_error(qp); /* its event is not acknowledged: it cannot go */
	return cq || qp || srq || element_of(e->type) >= ELEMENT_PORT;
}

/* -1 and errno; EIO once the device is dead and that has been told. ibv_get_async_event(3) */
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct hca_context *ctx = hca_context(context);
	struct control_event e;
	ssize_t n;

	do {
		n = read(context->async_fd, &e, sizeof(e));
		if (n < 0 && errno != ECONNRESET)
			return -1;
		if (n < (ssize_t)sizeof(e)) {
			if (ctx->fatal_told) {
				return verbs_minus_one(
				        base_because(-EIO, "the daemon of the fabric is gone"));
			}
			ctx->fatal_told = true;
			e = (struct control_event){ .type = IBV_EVENT_DEVICE_FATAL };
		}
	} while (!resolve(ctx, &e, event));
	return 0;
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (element_of(event->event_type)) {
	case ELEMENT_CQ:
		acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case ELEMENT_QP:
		acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	case ELEMENT_SRQ:
		acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	default:
		break;
	}
}
