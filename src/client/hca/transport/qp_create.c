/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: how they are made and destroyed. The differences between transports are in their
 * tables (transport.h).
 */
#include <errno.h>
#include <stdlib.h>

#include "base/ack_wait.h"
#include "base/pause.h"
#include "base/reason.h"
#include "base/util.h"
#include "hca/link/flow.h"
#include "hca/link/link_roce.h"
#include "hca/link/payload.h"
#include "hca/process/hearer.h"
#include "hca/process/link.h"
#include "hca/process/reserve.h"
#include "hca/process/weak.h"
#include "hca/queue/comp_counter.h"
#include "hca/queue/qp.h"
#include "hca/queue/srq.h"
#include "hca/transport/ud.h"
#include "hca/transport/xrc.h"
#include "shm/connection.h"

/* Messages that may have arrived for a queue pair with a shared receive queue, at most. */
#define MAX_SHARED 4096

/* ---- creation ---- */

/* Whether all that the queue pair is to use is of its device. */
static bool are_of(const struct hca_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	return hca_context_shares(ctx, attr->pd->context) &&
	       hca_context_shares(ctx, attr->send_cq->context) &&
	       hca_context_shares(ctx, attr->recv_cq->context) &&
	       (!attr->srq || hca_context_shares(ctx, attr->srq->context));
}

/* Checks the attributes of a queue pair of transport @t. */
static int check_init(struct hca_context *ctx, const struct ibv_qp_init_attr_ex *attr,
                      const struct hca_transport *t)
{
	const struct shm_settings *s = &ctx->process->region.control->settings;
	const struct ibv_qp_cap *cap = &attr->cap;
	/* which are ignored if the receives are shared */
	const uint32_t recv_wr = attr->srq ? 0 : cap->max_recv_wr;
	const uint32_t recv_sge = attr->srq ? 0 : cap->max_recv_sge;

	if ((attr->send_ops_flags & ~t->send_ops))
		return base_because(
		        -EOPNOTSUPP, "%s queue pairs have no operations 0x%llx of send_ops_flags",
		        t->name, (unsigned long long)(attr->send_ops_flags & ~t->send_ops));
	if (!attr->send_cq || !attr->recv_cq)
		return base_because(-EINVAL, "send_cq or recv_cq is missing");
	if (!are_of(ctx, attr))
		return base_because(-EINVAL,
		                    "the PD, a completion queue or the shared receive queue is of "
		                    "another device, or of this one as it was opened elsewhere");
	if (cap->max_send_wr > s->max_qp_wr || recv_wr > s->max_qp_wr)
		return base_because(-EINVAL,
		                    "max_send_wr is %u and max_recv_wr %u: the device has at most "
		                    "%u (max_qp_wr)",
		                    cap->max_send_wr, recv_wr, s->max_qp_wr);
	if (cap->max_send_sge > s->max_sge || recv_sge > s->max_sge)
		return base_because(-EINVAL,
		                    "max_send_sge is %u and max_recv_sge %u: the device has at "
		                    "most %u (max_sge)",
		                    cap->max_send_sge, recv_sge, s->max_sge);
	if (cap->max_inline_data > HCA_MAX_INLINE)
		return base_because(-EINVAL, "max_inline_data is %u: at most %u is possible",
		                    cap->max_inline_data, HCA_MAX_INLINE);
	return 0;
}

/* Of a request that waits in shared memory (shm/connection.h). */
static uint32_t request_bytes(const struct hca_qp *qp)
{
	uint32_t entries = qp->cap.max_send_sge * (uint32_t)sizeof(struct ibv_sge);
	uint32_t data = qp->cap.max_inline_data;

	return (uint32_t)base_align_up(
	        sizeof(struct shm_request) + (entries > data ? entries : data), BASE_CACHE_LINE);
}

/* How many messages may have arrived for a queue pair that are not polled, if its receives are
 * shared. */
static uint32_t ring_of_shared(const struct hca_srq *srq)
{
	return srq->max_wr < MAX_SHARED ? srq->max_wr : MAX_SHARED;
}

/* By what lies reserved, of which @rep then is: the daemon need not be waited for. XRC's are made
 * in no numbers. */
static bool get_reserved(struct hca_qp *qp, const struct control_create_qp *req,
                         struct control_create_qp_reply *rep)
{
	const struct control_qp_shape shape = control_qp_shape(req);

	/* the daemon would take them back from itself */
	return !qp->xrcd && req->type != IBV_QPT_XRC_SEND && !qp->ctx->process->must_not_block &&
	       hca_reserve_get(&qp->ctx->process->reserve, &shape, rep);
}

/* Creates the QP in the daemon. */
static int ask_new(struct hca_qp *qp, struct control_create_qp_reply *rep)
{
	struct hca_cq *recv_cq = qp->rq->cq;
	struct control_create_qp req = {
		.hca_handle = qp->ctx->handle,
		.cq = recv_cq->id,
		.max_recv_wr = qp->rq->srq ? ring_of_shared(qp->rq->srq) : qp->cap.max_recv_wr,
		.ready_bit = qp->rq->ready_bit,
		.type = qp->transport->type,
		.domain = qp->domain->number,
		.flags = (qp->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB
		                  ? SHM_QP_BLOCK_LOOPBACK
		                  : 0) |
		         (recv_cq->stamps ? SHM_QP_STAMPS : 0),
	};

	req.srq = qp->rq->srq ? 1 + qp->rq->srq->index : 0;
	req.xrcd = qp->xrcd ? qp->xrcd->number : 0;
	if (qp->transport->set_path) {
		req.send_cq = qp->send_cq->id;
		req.max_send_wr = qp->cap.max_send_wr;
		req.max_recv_sge = qp->cap.max_recv_sge;
		req.request_bytes = request_bytes(qp);
	}
	if (!get_reserved(qp, &req, rep))
		return hca_ask_memory(qp->ctx->process,
		                      &CONTROL_CALL(CONTROL_CREATE_QP, &req, rep));
	req.reserved = rep->qpn;
	return hca_post(qp->ctx->process, CONTROL_CREATE_QP, &req, sizeof(req));
}

/* Opens another process's XRC target there. */
static int ask_opened(struct hca_qp *qp, uint32_t qpn, struct control_create_qp_reply *rep)
{
	struct control_open_qp req = { .hca_handle = qp->ctx->handle,
		                       .xrcd = qp->xrcd->number,
		                       .qpn = qpn };

	return control_ask(qp->ctx->process->control, CONTROL_OPEN_QP, &req, rep);
}

/* Maps its ring, the requests that may wait, and the entries of its receives. 0 or -ENOMEM. */
static int map_memory(const struct hca_qp *qp, const struct control_create_qp_reply *rep)
{
	struct hca_process *p = qp->ctx->process;
	const struct shm_qp_connection *c =
	        &shm_qp_at(&p->region, SHM_QP_INDEX(rep->qpn))->connection;
	uint64_t end = c->entries_off +
	               (uint64_t)c->max_recv_sge * qp->cap.max_recv_wr * sizeof(struct shm_entry);

	if (!hca_take_memory(p, rep->ring_off, shm_ring_bytes(rep->ring_shift)) ||
	    (c->requests_off && !hca_take_memory(p, c->requests_off, end - c->requests_off)))
		return -ENOMEM;
	return 0;
}

/* The daemon gives the QP a number and a ring. */
static int register_qp(struct hca_qp *qp, uint32_t opened)
{
	struct control_create_qp_reply rep = { 0 };
	int ret = opened ? ask_opened(qp, opened, &rep) : ask_new(qp, &rep);

	if (ret)
		return ret;
	ret = map_memory(qp, &rep);
	if (ret) {
		hca_request(qp->ctx->process, CONTROL_DESTROY_QP,
		            &(struct control_handle){ .handle = rep.qpn },
		            sizeof(struct control_handle));
		return ret;
	}
	qp->ex.qp_base.qp_num = qp->ex.qp_base.handle = rep.qpn;
	qp->rq->qpn = qp->sender.qpn = rep.qpn;
	qp->rq->ring = shm_data_at(&qp->ctx->process->region, rep.ring_off);
	qp->rq->ring_shift = rep.ring_shift;
	qp->rq->ring_gen = rep.ring_gen;
	qp->sender.shm = shm_sender_at(&qp->ctx->process->region, SHM_QP_INDEX(rep.qpn));
	return 0;
}

/* hca_async_object.notice: the event may say that the peer has found an error. */
static void notice_error(void *element)
{
	hca_qp_notice_error(hca_qp(element));
}

static void init_public(struct hca_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t most = qp->ctx->process->region.control->settings.max_qp_wr;
	struct ibv_qp *base = &qp->ex.qp_base;

	base->context = &qp->ctx->vctx.context;
	base->qp_context = attr->qp_context;
	base->pd = qp->pd = attr->pd;
	qp->domain = hca_pd(attr->pd)->domain;
	qp->send_cq = hca_cq(attr->send_cq);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)
		qp->xrcd = hca_xrcd(attr->xrcd);
	base->send_cq = attr->send_cq;
	base->recv_cq = attr->recv_cq;
	base->srq = attr->srq;
	base->qp_type = attr->qp_type;
	base->state = IBV_QPS_RESET;
	hca_async_object_init(&qp->events, HCA_ASYNC_QP, base);
	qp->events.notice = notice_error;
	pthread_mutex_init(&base->mutex, NULL);
	pthread_cond_init(&base->cond, NULL);
	qp->cap = attr->cap;
	if (attr->srq)
		qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
	qp->cap.max_send_wr = hca_queue_size(qp->ctx->process, qp->cap.max_send_wr, most);
	qp->cap.max_recv_wr = hca_queue_size(qp->ctx->process, qp->cap.max_recv_wr, most);
	if (qp->cap.max_inline_data < SHM_INLINE)
		qp->cap.max_inline_data = SHM_INLINE;
	if (!qp->cap.max_send_sge)
		qp->cap.max_send_sge = 1; /* ibv_wr_set_inline_data() needs one */
	qp->signal_all = qp->push_all = attr->sq_sig_all;
	qp->push = hca_qp_push;
	qp->create_flags = attr->create_flags;
	qp->send_ops_flags = attr->send_ops_flags;
}

/* Prepares its own receive queue and its sender, except for what the daemon gives. 0 or -ENOMEM. */
static int init_queues(struct hca_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	struct hca_rq *rq = &qp->own_rq;

	qp->sender.process = qp->ctx->process;
	qp->sender.network = qp->ctx->network;
	qp->rq = rq;
	rq->receive = attr->srq ? qp->transport->receive_shared : qp->transport->receive;
	rq->process = qp->ctx->process;
	rq->cq = hca_cq(attr->recv_cq);
	rq->domain = qp->domain;
	rq->srq = attr->srq ? hca_srq(attr->srq) : NULL;
	return hca_rq_init(rq, attr->pd, qp->cap.max_recv_wr, qp->cap.max_recv_sge);
}

/* Adds it to its CQs and to the daemon. */
static int enter(struct hca_qp *qp, uint32_t opened)
{
	struct hca_cq *send_cq = qp->send_cq, *recv_cq = qp->rq->cq;
	int ret = hca_cq_add_qp(send_cq, qp, false, qp->cap.max_send_wr);

	if (ret)
		return ret;
	ret = hca_cq_add_qp(recv_cq, qp, true, qp->cap.max_recv_wr);
	if (ret)
		goto err_send_cq;
	ret = register_qp(qp, opened);
	if (ret)
		goto err_recv_cq;
	return 0;
err_recv_cq:
	hca_cq_remove_qp(recv_cq, qp, true, qp->cap.max_recv_wr);
err_send_cq:
	hca_cq_remove_qp(send_cq, qp, false, qp->cap.max_send_wr);
	return ret;
}

int hca_qp_create(struct hca_context *ctx, const struct ibv_qp_init_attr_ex *attr,
                  struct hca_qp **out)
{
	const struct hca_transport *transport;
	int ret = hca_transport_get(attr->qp_type, &transport);

	if (ret)
		return ret;
	if (ctx->process->weak &&
	    hca_weak_start(ctx->process->weak, hca_cq_serve_due, ctx->process) &&
	    transport == &hca_ud)
		transport = &hca_ud_weak;
	return hca_qp_create_as(ctx, transport, attr, 0, out);
}

int hca_qp_create_as(struct hca_context *ctx, const struct hca_transport *transport,
                     const struct ibv_qp_init_attr_ex *attr, uint32_t opened, struct hca_qp **out)
{
	struct hca_qp *qp;
	int ret = check_init(ctx, attr, transport);

	if (ret)
		return ret;
	qp = calloc(1, transport->qp_bytes);
	if (!qp)
		return -ENOMEM;
	qp->transport = transport;
	qp->ctx = ctx;
	init_public(qp, attr);
	ret = init_queues(qp, attr);
	if (ret)
		goto err_free;
	if (ctx->process->weak)
		qp->weak_object = hca_weak_object(ctx->process->weak);
	ret = transport->init(qp);
	if (ret)
		goto err_queues;
	ret = enter(qp, opened);
	if (ret)
		goto err_transport;
	if (transport->made)
		transport->made(qp);
	if (attr->srq)
		hca_srq_add_qp(hca_srq(attr->srq), qp);
	hca_wr_api_init(qp);
	hca_async_enter(&ctx->async, &qp->events, qp->ex.qp_base.qp_num);
	hca_pd_use(attr->pd);
	if (qp->xrcd)
		atomic_fetch_add_explicit(&qp->xrcd->users, 1, memory_order_relaxed);
	*out = qp;
	return 0;
err_transport:
	transport->fini(qp);
err_queues:
	hca_rq_fini(&qp->own_rq);
err_free:
	free(qp);
	return ret;
}

/* ---- destruction ---- */

static void wait_acked(struct hca_qp *qp)
{
	struct ibv_qp *base = &qp->ex.qp_base;
	const struct hca_hearer *h = qp->ctx->process->hearer;
	struct base_ack_wait w = { .part = BASE_LOG_PART_verbs,
		                   .call = "ibv_destroy_qp",
		                   .acknowledge = "ibv_ack_async_event",
		                   .hear = h ? h->async_events_kept : NULL,
		                   .of = qp };

	pthread_mutex_lock(&base->mutex);
	while ((w.missing = (int)(qp->events.n_got - base->events_completed)))
		base_ack_wait(&w, &base->cond, &base->mutex);
	pthread_mutex_unlock(&base->mutex);
}

static void free_qp(struct hca_qp *qp)
{
	qp->transport->fini(qp);
	hca_flow_drop_all(&qp->sender);
	hca_payload_fini(&qp->sender.payloads);
	hca_roce_free_path(&qp->sender);
	hca_wr_api_fini(qp);
	pthread_mutex_destroy(&qp->ex.qp_base.mutex);
	pthread_cond_destroy(&qp->ex.qp_base.cond);
	hca_counted_free(qp);
	hca_rq_fini(&qp->own_rq);
	free(qp);
}

/* Tells the daemon. A connection that has ended is nothing to wait for: nobody delivers to it any
 * more. */
static int unregister_qp(struct hca_qp *qp)
{
	_Atomic uint32_t *word = NULL;

	if (qp->transport->end && hca_qp_state(qp) == IBV_QPS_ERR && qp->told_state == IBV_QPS_ERR)
		word = &shm_connection_at(&qp->ctx->process->region, SHM_QP_INDEX(qp->sender.qpn))
		                ->events;
	return hca_async_end(&qp->ctx->async, qp->events.source, CONTROL_DESTROY_QP,
	                     qp->ex.qp_base.qp_num, word);
}

int hca_qp_destroy(struct hca_qp *qp)
{
	struct hca_cq *send_cq = qp->send_cq, *recv_cq = qp->rq->cq;
	struct hca_xrcd *xrcd = qp->xrcd;
	struct ibv_pd *pd = qp->pd;
	struct base_pause pause = { 0 };
	int ret;

	if (qp->transport->set_path && qp->transport != &hca_xrc_recv) {
		const bool locked = hca_wr_lock(qp);

		qp->transport->flush(qp); /* nobody goes on with what waits */
		if (locked)
			base_unlock(&qp->send_lock);
	}
	/* no thread may poll the ring after the daemon has freed it */
	base_lock(&recv_cq->lock);
	hca_counted_update(qp);
	/* gives its receives back. One of UD has taken none, and may be refused to go, if it is
	 * attached to a group: it receives on then */
	if (qp->rq->srq && qp->rq->connected)
		hca_rq_reset(qp->rq);
	ret = unregister_qp(qp);
	if (ret == -EBUSY) {
		base_unlock(&recv_cq->lock);
		return ret;
	}
	hca_rq_close(qp->rq);
	hca_counted_close(qp);
	base_unlock(&recv_cq->lock);
	hca_cq_remove_qp(recv_cq, qp, true, qp->cap.max_recv_wr);
	hca_cq_remove_qp(send_cq, qp, false, qp->cap.max_send_wr);
	if (qp->rq->srq) {
		hca_srq_remove_qp(qp->rq->srq, qp);
		hca_srq_help_if_due(qp->rq->srq);
	}
	/* acquire: pairs with the release in fail_qps(). No other thread can find it on the CQ now
	 */
	while (atomic_load_explicit(&qp->in_use, memory_order_acquire))
		base_pause(&pause);
	hca_async_leave(&qp->ctx->async, &qp->events);
	wait_acked(qp);
	free_qp(qp);
	hca_pd_unuse(pd); /* its allocators' memory is freed now */
	if (xrcd)
		/* release: pairs with the acquire in hca_xrcd_close() */
		atomic_fetch_sub_explicit(&xrcd->users, 1, memory_order_release);
	return 0;
}
