/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: creation, the state machine, destruction. What differs between transports is
 * in their tables (transport.h).
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "base/reason.h"
#include "hca/payload.h"
#include "hca/comp_counter.h"
#include "hca/explain.h"
#include "hca/flow.h"
#include "hca/link.h"
#include "hca/qp.h"
#include "hca/reserve.h"
#include "hca/srq.h"
#include "hca/xrc.h"
#include "shm/connection.h"

#define ALWAYS (IBV_QP_STATE | IBV_QP_CUR_STATE)
/* How often hca_qp_enter_error() tries to acquire the send lock. */
#define LOCK_TRIES 1000
#define MAX_SHARED 4096

static int check_transition(const struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to,
                            int mask)
{
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask & ~ALWAYS ? -EINVAL : 0;
	for (const struct hca_transition *t = qp->transport->transitions; t->to != IBV_QPS_RESET;
	     t++) {
		if (t->from != from || t->to != to)
			continue;
		if ((mask & t->required) != t->required ||
		    (mask & ~(ALWAYS | t->required | t->optional)))
			return -EINVAL;
		return 0;
	}
	return -EINVAL;
}

/* ---- creation ---- */

/* Checks the attributes of a queue pair of transport @t. */
static int check_init(struct hca_context *ctx, const struct ibv_qp_init_attr_ex *attr,
                      const struct hca_transport *t)
{
	const struct shm_settings *s = &ctx->process->region.control->settings;
	const struct ibv_qp_cap *cap = &attr->cap;

	if ((attr->send_ops_flags & ~t->send_ops))
		return base_because(-EOPNOTSUPP,
		                    "%s queue pairs have no operations 0x%llx of "
		                    "send_ops_flags",
		                    t->name,
		                    (unsigned long long)(attr->send_ops_flags & ~t->send_ops));
	if (!attr->send_cq || !attr->recv_cq)
		return base_because(-EINVAL, "send_cq or recv_cq is missing");
	if (cap->max_send_wr > s->max_qp_wr || cap->max_recv_wr > s->max_qp_wr)
		return base_because(-EINVAL,
		                    "max_send_wr is %u and max_recv_wr %u: the device has at most "
		                    "%u (max_qp_wr)",
		                    cap->max_send_wr, cap->max_recv_wr, s->max_qp_wr);
	if (cap->max_send_sge > s->max_sge || cap->max_recv_sge > s->max_sge)
		return base_because(-EINVAL,
		                    "max_send_sge is %u and max_recv_sge %u: the device has at "
		                    "most %u (max_sge)",
		                    cap->max_send_sge, cap->max_recv_sge, s->max_sge);
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
		.flags = (qp->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB
		                  ? SHM_QP_BLOCK_LOOPBACK
		                  : 0) |
		         (recv_cq->stamps ? SHM_QP_STAMPS : 0),
	};

	req.srq = qp->rq->srq ? 1 + qp->rq->srq->index : 0;
	req.xrcd = qp->xrcd ? qp->xrcd->number : 0;
	if (qp->transport->set_path) {
		req.send_cq = qp->send_cq->id;
		req.domain = qp->domain->number;
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

/* The daemon gives the QP a number and a ring. */
static int register_qp(struct hca_qp *qp, uint32_t opened)
{
	struct control_create_qp_reply rep = { 0 };
	int ret = opened ? ask_opened(qp, opened, &rep) : ask_new(qp, &rep);

	if (ret)
		return ret;
	qp->ex.qp_base.qp_num = qp->ex.qp_base.handle = rep.qpn;
	qp->rq->qpn = qp->sender.qpn = rep.qpn;
	qp->rq->ring = shm_data_at(&qp->ctx->process->region, rep.ring_off);
	qp->rq->ring_shift = rep.ring_shift;
	qp->rq->ring_gen = rep.ring_gen;
	qp->sender.shm = &qp->ctx->process->region.senders[SHM_QP_INDEX(rep.qpn)];
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

	return ret ? ret : hca_qp_create_as(ctx, transport, attr, 0, out);
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

/* ---- states ---- */

static bool receives(enum ibv_qp_state state)
{
	return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
	       state == IBV_QPS_SQE;
}

int hca_qp_publish(struct hca_qp *qp)
{
	struct control_modify_qp req = {
		.qpn = qp->ex.qp_base.qp_num,
		.qkey = qp->qkey,
		.pkey_index = qp->pkey_index,
		.port_num = qp->port_num,
		.receives = receives(hca_qp_state(qp)),
		.dest_qpn = qp->connection.dest_qpn,
		.access = qp->connection.access,
		.state = (uint8_t)hca_qp_state(qp),
		.min_rnr_timer = qp->connection.min_rnr_timer,
		.max_dest_rd_atomic = qp->connection.max_dest_rd_atomic,
		.counts_remote = qp->counts_remote,
	};

	int ret;

	if (qp->transport == &hca_xrc_recv)
		hca_xrc_tell_others(qp, &req.target);
	ret = hca_request(qp->ctx->process, CONTROL_MODIFY_QP, &req, sizeof(req));
	if (!ret)
		qp->told_state = req.state;
	return ret;
}

static void set_state(struct hca_qp *qp, enum ibv_qp_state state)
{
	atomic_store_explicit(&qp->state, (uint8_t)state, memory_order_relaxed);
	if (state == IBV_QPS_ERR && qp->transport->end)
		qp->transport->end(qp);
	if (state == IBV_QPS_RESET)
		hca_rq_set_mode(qp->rq, HCA_RQ_CLOSED);
	else if (hca_rq_mode(qp->rq) == HCA_RQ_CLOSED)
		hca_rq_set_mode(qp->rq,
		                qp->rq->connected || qp->rq->srq ? HCA_RQ_CONNECTED : HCA_RQ_OPEN);
	if (qp->rq->srq && state != IBV_QPS_RESET && state != IBV_QPS_ERR)
		hca_rq_refill(qp->rq);
}

/* In ERR a queue pair takes no more receives of its shared queue (section 11.6.3.2, o11-5.2.5). */
static void tell_last(struct hca_qp *qp)
{
	struct control_raise_event last = { .type = IBV_EVENT_QP_LAST_WQE_REACHED,
		                            .element = qp->ex.qp_base.qp_num };

	if (qp->rq->srq)
		hca_request(qp->ctx->process, CONTROL_RAISE_EVENT, &last, sizeof(last));
}

bool hca_qp_enter_error(struct hca_qp *qp, bool tell)
{
	/* The thread that holds the lock may be this one, between ibv_wr_start() and
	 * ibv_wr_complete(). */
	for (unsigned tries = 0; !base_trylock(&qp->send_lock); tries++) {
		if (tries == LOCK_TRIES)
			return false;
		sched_yield();
	}
	set_state(qp, IBV_QPS_ERR);
	if (tell) {
		hca_qp_publish(qp);
		tell_last(qp);
	}
	qp->transport->progress(qp); /* in ERR: requests that the send queue kept are flushed */
	base_unlock(&qp->send_lock);
	hca_rq_flush(qp->rq);
	return true;
}

void hca_qp_fail(struct hca_qp *qp)
{
	set_state(qp, IBV_QPS_ERR);
	hca_qp_publish(qp);
	hca_rq_flush(qp->rq);
	tell_last(qp);
}

int hca_qp_start(struct hca_qp *qp)
{
	qp->port_num = 1;
	set_state(qp, IBV_QPS_RTR);
	return hca_qp_publish(qp);
}

/* ---- attributes ---- */

static bool path_mtu_fits(const struct hca_qp *qp, enum ibv_mtu mtu)
{
	struct shm_port port;

	return mtu >= IBV_MTU_256 && !hca_port(qp->ctx, qp->port_num, &port) &&
	       mtu <= port.active_mtu;
}

/* Whether the attributes of a connection that @mask names are possible. */
static bool connection_is_valid(const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	return (!(mask & IBV_QP_PATH_MTU) || path_mtu_fits(qp, a->path_mtu)) &&
	       (!(mask & IBV_QP_DEST_QPN) || a->dest_qp_num <= IB_QPN_MASK) &&
	       (!(mask & IBV_QP_TIMEOUT) || a->timeout < 32) &&
	       (!(mask & IBV_QP_RETRY_CNT) || a->retry_cnt < 8) &&
	       (!(mask & IBV_QP_RNR_RETRY) || a->rnr_retry < 8) &&
	       (!(mask & IBV_QP_MIN_RNR_TIMER) || a->min_rnr_timer < 32) &&
	       (!(mask & IBV_QP_MAX_QP_RD_ATOMIC) || a->max_rd_atomic <= HCA_MAX_RD_ATOMIC) &&
	       (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC) || a->max_dest_rd_atomic <= HCA_MAX_RD_ATOMIC);
}

/* Puts the attributes of a connection into @next. */
static int set_connection(struct hca_qp *next, const struct ibv_qp_attr *a, int mask)
{
	struct hca_connection *c = &next->connection;

#define SET(flag, to, from) \
	if (mask & (flag))  \
	(to) = (from)
	if (mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE))
		return base_because(-EOPNOTSUPP, "alternate paths are not supported");
	if (!connection_is_valid(next, a, mask))
		return -EINVAL;
	if (mask & IBV_QP_AV) {
		int ret = next->transport->set_path(next, &a->ah_attr);

		if (ret)
			return ret;
		c->path = a->ah_attr;
	}
	SET(IBV_QP_ACCESS_FLAGS, c->access, a->qp_access_flags);
	SET(IBV_QP_PATH_MTU, c->path_mtu, (uint8_t)a->path_mtu);
	SET(IBV_QP_DEST_QPN, c->dest_qpn, a->dest_qp_num);
	SET(IBV_QP_RQ_PSN, c->rq_psn, a->rq_psn & 0xFFFFFF);
	SET(IBV_QP_TIMEOUT, c->timeout, a->timeout);
	SET(IBV_QP_RETRY_CNT, c->retry_cnt, a->retry_cnt);
	SET(IBV_QP_RNR_RETRY, c->rnr_retry, a->rnr_retry);
	SET(IBV_QP_MIN_RNR_TIMER, c->min_rnr_timer, a->min_rnr_timer);
	SET(IBV_QP_MAX_QP_RD_ATOMIC, c->max_rd_atomic, a->max_rd_atomic);
	SET(IBV_QP_MAX_DEST_RD_ATOMIC, c->max_dest_rd_atomic, a->max_dest_rd_atomic);
#undef SET
	return 0;
}

/* Checks the attributes that @mask names and puts them into @next. */
static int set_attributes(struct hca_qp *next, const struct ibv_qp_attr *attr, int mask)
{
	struct shm_port port;
	unsigned port_num = mask & IBV_QP_PORT ? attr->port_num : next->port_num;

	if (mask & (IBV_QP_PORT | IBV_QP_PKEY_INDEX)) {
		unsigned index = mask & IBV_QP_PKEY_INDEX ? attr->pkey_index : next->pkey_index;

		if (hca_port(next->ctx, port_num, &port) || index >= port.n_pkeys ||
		    !port.pkey[index])
			return -EINVAL;
		next->port_num = (uint8_t)port_num;
		next->sender.port =
		        next->ctx->process->region.hcas[next->ctx->hca].first_port + port_num - 1;
		next->pkey_index = (uint16_t)index;
	}
	if (mask & IBV_QP_QKEY)
		next->qkey = attr->qkey;
	if (mask & IBV_QP_SQ_PSN)
		next->sender.psn = attr->sq_psn & 0xFFFFFF;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_SQD) /* for this time only */
		next->en_sqd_async_notify =
		        mask & IBV_QP_EN_SQD_ASYNC_NOTIFY ? attr->en_sqd_async_notify : 0;
	return next->transport->set_path ? set_connection(next, attr, mask) : 0;
}

static void forget_everything(struct hca_qp *qp)
{
	struct hca_cq *recv_cq = qp->rq->cq;

	base_lock(&recv_cq->lock);
	hca_counted_update(qp); /* what has arrived is done */
	base_unlock(&recv_cq->lock);
	hca_rq_reset(qp->rq);
	qp->transport->flush(qp);
	hca_flow_drop_all(&qp->sender);
	atomic_store_explicit(&qp->sq_done, qp->sq_posted, memory_order_relaxed);
	hca_cq_purge(qp->send_cq, qp);
	hca_cq_purge(recv_cq, qp);
	qp->port_num = 0;
	qp->qkey = 0;
	qp->connection = (struct hca_connection){ 0 };
}

/* Does what follows from a change of state, after the daemon was told, or will be by a batch: then
 * hca_qp_has_moved() follows. With send_lock held. */
static void follow_state(struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
	struct control_raise_event drained = { .type = IBV_EVENT_SQ_DRAINED,
		                               .element = qp->ex.qp_base.qp_num };

	if (to == IBV_QPS_SQD && from == IBV_QPS_RTS && qp->en_sqd_async_notify)
		hca_request(qp->ctx->process, CONTROL_RAISE_EVENT, &drained, sizeof(drained));
	if (to == IBV_QPS_ERR && from != to)
		tell_last(qp);
	if (to != from && (to == IBV_QPS_RTR || to == IBV_QPS_RTS || to == IBV_QPS_ERR))
		qp->transport->progress(qp);
	if (to == IBV_QPS_RESET && qp->transport->set_path)
		qp->transport->progress(qp); /* waits for who deals with it */
}

/* Whether requests of the peer wait. */
static bool peer_waits(const struct hca_qp *qp)
{
	const struct shm_connection *all = qp->ctx->process->region.connections;
	const struct shm_connection *peer = &all[SHM_QP_INDEX(qp->connection.dest_qpn)];

	return qp->rq->connected && atomic_load_explicit(&peer->head, memory_order_acquire) !=
	                                    atomic_load_explicit(&peer->tail, memory_order_acquire);
}

void hca_qp_has_moved(struct hca_qp *qp)
{
	base_lock(&qp->send_lock);
	if (peer_waits(qp))
		hca_qp_publish(qp); /* when that is done, so is the batch */
	qp->transport->progress(qp);
	base_unlock(&qp->send_lock);
}

/* The attributes that a change of state sets, to be restored if the daemon refuses it. */
struct attributes {
	uint32_t qkey, port, psn;
	uint16_t pkey_index;
	uint8_t port_num, en_sqd_async_notify;
	struct hca_connection connection;
};

static struct attributes save_attributes(const struct hca_qp *qp)
{
	return (struct attributes){ .qkey = qp->qkey,
		                    .port = qp->sender.port,
		                    .psn = qp->sender.psn,
		                    .pkey_index = qp->pkey_index,
		                    .port_num = qp->port_num,
		                    .en_sqd_async_notify = qp->en_sqd_async_notify,
		                    .connection = qp->connection };
}

static void restore_attributes(struct hca_qp *qp, const struct attributes *a)
{
	qp->qkey = a->qkey;
	qp->sender.port = a->port;
	qp->sender.psn = a->psn;
	qp->pkey_index = a->pkey_index;
	qp->port_num = a->port_num;
	qp->en_sqd_async_notify = a->en_sqd_async_notify;
	qp->connection = a->connection;
}

/*
 * Whether the daemon, and by it others, have to know of the change. Nobody sees a connected queue
 * pair before it receives; that it may send as well is its process's affair.
 */
static bool is_seen(const struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to,
                    const struct hca_connection *old)
{
	const struct hca_connection *c = &qp->connection;

	if (!qp->transport->set_path || qp->xrcd) /* an XRC target may be others', too */
		return true;
	if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
		return c->access != old->access || c->min_rnr_timer != old->min_rnr_timer;
	return to != IBV_QPS_INIT;
}

static int modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from = hca_qp_state(qp);
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
	const struct attributes old = save_attributes(qp);
	int ret;

	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
		return -EINVAL;
	ret = check_transition(qp, from, to, mask);
	if (ret)
		return ret;
	ret = set_attributes(qp, attr, mask);
	if (ret) {
		restore_attributes(qp, &old);
		return ret;
	}
	if (qp->port_num != old.port_num)
		hca_flow_drop_all(&qp->sender);
	if (to == IBV_QPS_RESET)
		forget_everything(qp);
	set_state(qp, to);
	ret = is_seen(qp, from, to, &old.connection) ? hca_qp_publish(qp) : 0;
	if (ret && to != IBV_QPS_RESET && to != IBV_QPS_ERR) {
		restore_attributes(qp, &old);
		set_state(qp, from);
		return ret;
	}
	follow_state(qp, from, to);
	return 0;
}

int hca_qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	int ret;

	base_lock(&qp->send_lock);
	if (qp->transport == &hca_xrc_recv)
		hca_xrc_follow_others(qp);
	ret = modify(qp, attr, mask & ~qp->transport->ignored);
	if (ret)
		hca_explain_modify(qp, attr, mask, ret);
	base_unlock(&qp->send_lock);
	if (!ret && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR)
		hca_rq_flush(qp->rq);
	return ret;
}

void hca_qp_notice_error(struct hca_qp *qp)
{
	enum ibv_qp_state state = hca_qp_state(qp);
	uint32_t error;

	if (!qp->rq->connected || state == IBV_QPS_RESET || state == IBV_QPS_ERR)
		return;
	error = atomic_load_explicit(&qp->rq->connection->error, memory_order_acquire);
	if (error && error != SHM_ERROR_ENDED)
		hca_qp_enter_error(qp, true);
}

static void query_connection(const struct hca_qp *qp, struct ibv_qp_attr *attr)
{
	const struct hca_connection *c = &qp->connection;

	attr->dest_qp_num = c->dest_qpn;
	attr->rq_psn = c->rq_psn;
	attr->qp_access_flags = c->access;
	attr->path_mtu = (enum ibv_mtu)c->path_mtu;
	attr->timeout = c->timeout;
	attr->retry_cnt = c->retry_cnt;
	attr->rnr_retry = c->rnr_retry;
	attr->min_rnr_timer = c->min_rnr_timer;
	attr->max_rd_atomic = c->max_rd_atomic;
	attr->max_dest_rd_atomic = c->max_dest_rd_atomic;
	attr->ah_attr = c->path;
}

void hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	const struct ibv_qp *base = &qp->ex.qp_base;

	if (qp->transport == &hca_xrc_recv)
		hca_xrc_follow_others(qp);
	hca_qp_notice_error(qp);
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	attr->qp_state = attr->cur_qp_state = hca_qp_state(qp);
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->qkey = qp->qkey;
	attr->sq_psn = qp->sender.psn & 0xFFFFFF;
	attr->cap = qp->cap;
	attr->pkey_index = qp->pkey_index;
	attr->en_sqd_async_notify = qp->en_sqd_async_notify;
	attr->port_num = qp->port_num;
	if (qp->transport->set_path)
		query_connection(qp, attr);
	init->qp_context = base->qp_context;
	init->send_cq = base->send_cq;
	init->recv_cq = base->recv_cq;
	init->cap = qp->cap;
	init->qp_type = base->qp_type;
	init->sq_sig_all = qp->signal_all;
	init->srq = base->srq;
}

/* ---- completion ---- */

/* enum ibv_wc_opcode of a request's completion, by enum ibv_wr_opcode. */
#define OPERATION(opcode, name, completion, calls, carry_out, properties) [opcode] = completion,
static const uint8_t completion_opcodes[] = {
#include "hca/operation.def"
};
#undef OPERATION

void hca_qp_push(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
                 enum ibv_wc_status status)
{
	/* that of a request which has waited in shared memory may be anything */
	uint8_t opcode = (unsigned)wr->opcode < ARRAY_SIZE(completion_opcodes)
	                         ? completion_opcodes[wr->opcode]
	                         : IBV_WC_SEND;
	struct hca_cqe e = { .wr_id = wr->wr_id,
		             .qp = qp,
		             .sq_after = qp->sq_posted,
		             .byte_len = bytes,
		             .status = (uint8_t)status,
		             .opcode = opcode,
		             .is_first = qp->rq->connected };

	hca_cq_push(qp->send_cq, &e);
}

/* ---- destruction ---- */

static void wait_acked(struct hca_qp *qp)
{
	struct ibv_qp *base = &qp->ex.qp_base;

	pthread_mutex_lock(&base->mutex);
	while (base->events_completed != qp->events.n_got)
		pthread_cond_wait(&base->cond, &base->mutex);
	pthread_mutex_unlock(&base->mutex);
}

static void free_qp(struct hca_qp *qp)
{
	qp->transport->fini(qp);
	hca_flow_drop_all(&qp->sender);
	hca_payload_fini(&qp->sender.payloads);
	free(qp->sender.batch);
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
		word = &qp->ctx->process->region.connections[SHM_QP_INDEX(qp->sender.qpn)].events;
	return hca_async_end(&qp->ctx->async, qp->events.source, CONTROL_DESTROY_QP,
	                     qp->ex.qp_base.qp_num, word);
}

int hca_qp_destroy(struct hca_qp *qp)
{
	struct hca_cq *send_cq = qp->send_cq, *recv_cq = qp->rq->cq;
	struct hca_xrcd *xrcd = qp->xrcd;
	struct ibv_pd *pd = qp->pd;
	int ret;

	if (qp->transport->set_path && qp->transport != &hca_xrc_recv) {
		base_lock(&qp->send_lock);
		qp->transport->flush(qp); /* nobody goes on with what waits */
		base_unlock(&qp->send_lock);
	}
	/* no thread may poll the ring after the daemon has freed it */
	base_lock(&recv_cq->lock);
	hca_counted_update(qp);
	if (qp->rq->srq)
		hca_rq_reset(qp->rq); /* gives its receives back */
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
	if (qp->rq->srq)
		hca_srq_remove_qp(qp->rq->srq, qp);
	/* acquire: pairs with the release in fail_qps(). No other thread can find it on the CQ now
	 */
	while (atomic_load_explicit(&qp->in_use, memory_order_acquire))
		sched_yield();
	hca_async_leave(&qp->ctx->async, &qp->events);
	wait_acked(qp);
	free_qp(qp);
	hca_pd_unuse(pd); /* its allocators' memory is freed now */
	if (xrcd)
		/* release: pairs with the acquire in hca_xrcd_close() */
		atomic_fetch_sub_explicit(&xrcd->users, 1, memory_order_release);
	return 0;
}
