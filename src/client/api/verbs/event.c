/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asynchronous events. They arrive on the context's descriptor, which programs poll
 * themselves; its end of file says that the daemon has gone, which is the one
 * event that we make up: the device is dead. Safe from any thread.
 */
#include <unistd.h>

#include "api/verbs/layer.h"
#include "api/verbs/verbs.h"
#include "base/reason.h"
#include "hca/queue/srq.h"

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

/* -1 and errno; EIO once the device is dead and that has been told. ibv_get_async_event(3) */
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int ret = hca_async_get(&hca_context(context)->async, event);

	if (!ret && verbs_watcher(context))
		verbs_watcher(context)->async_event();
	if (!ret)
		return 0;
	if (ret == -EIO)
		return verbs_minus_one(base_because(-EIO, "the daemon of the fabric is gone"));
	errno = -ret;
	return -1;
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
