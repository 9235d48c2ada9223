/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: creation, the state machine, destruction. The transitions and their
 * attributes are those of the specification's table (volume 1, section 11.2.5.2,
 * table 91) for UD, as ibv_modify_qp(3) lists them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "hca/hca.h"

static const struct transition {
	enum ibv_qp_state from, to;
	int required, optional;
} transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
};

#define ALWAYS (IBV_QP_STATE | IBV_QP_CUR_STATE)

static int check_transition(enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask & ~ALWAYS ? -EINVAL : 0;
	for (size_t i = 0; i < ARRAY_SIZE(transitions); i++) {
		const struct transition *t = &transitions[i];

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

static int check_type(const struct ibv_qp_init_attr_ex *attr)
{
	switch (attr->qp_type) {
	case IBV_QPT_UD:
		return 0;
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
	case IBV_QPT_DRIVER:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
}

static int check_init(struct hca_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	const struct shm_settings *s = &ctx->process->region.control->settings;
	const struct ibv_qp_cap *cap = &attr->cap;
	int ret = check_type(attr);

	if (ret)
		return ret;
	if (attr->srq)
		return -EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq)
		return -EINVAL;
	if (cap->max_send_wr > s->max_qp_wr || cap->max_recv_wr > s->max_qp_wr ||
	    cap->max_send_sge > s->max_sge || cap->max_recv_sge > s->max_sge ||
	    cap->max_inline_data > HCA_MAX_INLINE)
		return -EINVAL;
	return 0;
}

static int alloc_queues(struct hca_qp *qp)
{
	uint32_t n = 1u << base_log2_up(qp->cap.max_recv_wr);

	qp->rwqe_mask = n - 1;
	qp->rwqe = calloc(n, sizeof(*qp->rwqe));
	qp->rsge = calloc((size_t)n * (qp->cap.max_recv_sge + 1), sizeof(*qp->rsge));
	return qp->rwqe && qp->rsge ? 0 : -ENOMEM;
}

/* The manager gives number and ring. */
static int register_qp(struct hca_qp *qp)
{
	struct hca_cq *recv_cq = hca_cq(qp->ex.qp_base.recv_cq);
	struct control_create_qp req = {
		.hca_handle = qp->ctx->handle,
		.cq = recv_cq->id,
		.max_recv_wr = qp->cap.max_recv_wr,
		.ready_bit = qp->ready_bit,
		.flags = (qp->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB
		                  ? SHM_QP_BLOCK_LOOPBACK
		                  : 0) |
		         (recv_cq->counts_arrivals ? SHM_QP_COUNT_ARRIVALS : 0),
	};
	struct control_create_qp_reply rep;
	int ret = control_call(qp->process->control,
	                       &(struct control_call){ .type = CONTROL_CREATE_QP,
	                                               .request = &req,
	                                               .request_bytes = sizeof(req),
	                                               .reply = &rep,
	                                               .reply_bytes = sizeof(rep) });

	if (ret)
		return ret;
	qp->ex.qp_base.qp_num = qp->ex.qp_base.handle = rep.qpn;
	qp->ring = shm_data_at(&qp->process->region, rep.ring_off);
	qp->ring_shift = rep.ring_shift;
	qp->ring_gen = rep.ring_gen;
	qp->sender = &qp->process->region.senders[SHM_QP_INDEX(rep.qpn)];
	return 0;
}

static void init_public(struct hca_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *base = &qp->ex.qp_base;

	base->context = &qp->ctx->vctx.context;
	base->qp_context = attr->qp_context;
	base->pd = attr->pd;
	base->send_cq = attr->send_cq;
	base->recv_cq = attr->recv_cq;
	base->qp_type = attr->qp_type;
	base->state = IBV_QPS_RESET;
	pthread_mutex_init(&base->mutex, NULL);
	pthread_cond_init(&base->cond, NULL);
	qp->cap = attr->cap;
	if (qp->cap.max_inline_data < SHM_INLINE)
		qp->cap.max_inline_data = SHM_INLINE;
	if (!qp->cap.max_send_sge)
		qp->cap.max_send_sge = 1; /* ibv_wr_set_inline_data() takes one */
	qp->signal_all = attr->sq_sig_all;
	qp->create_flags = attr->create_flags;
	qp->send_ops_flags = attr->send_ops_flags;
	STAILQ_INIT(&qp->deferred);
}

int hca_qp_create(struct hca_context *ctx, const struct ibv_qp_init_attr_ex *attr,
                  struct hca_qp **out)
{
	struct hca_cq *send_cq, *recv_cq;
	struct hca_qp *qp;
	int ret = check_init(ctx, attr);

	if (ret)
		return ret;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->ctx = ctx;
	qp->process = ctx->process;
	init_public(qp, attr);
	send_cq = hca_cq(attr->send_cq);
	recv_cq = hca_cq(attr->recv_cq);
	ret = alloc_queues(qp);
	if (ret)
		goto err_free;
	ret = hca_cq_add_qp(send_cq, qp, false, qp->cap.max_send_wr);
	if (ret)
		goto err_free;
	ret = hca_cq_add_qp(recv_cq, qp, true, qp->cap.max_recv_wr);
	if (ret)
		goto err_send_cq;
	ret = register_qp(qp);
	if (ret)
		goto err_recv_cq;
	hca_wr_api_init(qp);
	pthread_mutex_lock(&ctx->lock);
	ctx->qp_by_index[SHM_QP_INDEX(qp->ex.qp_base.qp_num)] = qp;
	pthread_mutex_unlock(&ctx->lock);
	((struct hca_pd *)attr->pd)->users++;
	*out = qp;
	return 0;
err_recv_cq:
	hca_cq_remove_qp(recv_cq, qp, true, qp->cap.max_recv_wr);
err_send_cq:
	hca_cq_remove_qp(send_cq, qp, false, qp->cap.max_send_wr);
err_free:
	free(qp->rwqe);
	free(qp->rsge);
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
		.count_arrivals = hca_cq(qp->ex.qp_base.recv_cq)->counts_arrivals,
	};

	return hca_request(qp->process, CONTROL_MODIFY_QP, &req, sizeof(req));
}

static void set_state(struct hca_qp *qp, enum ibv_qp_state state)
{
	atomic_store_explicit(&qp->state, (uint8_t)state, memory_order_relaxed);
	qp->ex.qp_base.state = state;
}

void hca_qp_enter_error(struct hca_qp *qp, bool tell)
{
	base_lock(&qp->send_lock);
	set_state(qp, IBV_QPS_ERR);
	if (tell)
		hca_qp_publish(qp);
	hca_send_resume(qp); /* in ERR: they flush */
	base_unlock(&qp->send_lock);
	hca_recv_flush(qp);
}

/* Checks the attributes that @mask names and puts them into @next. */
static int take_attributes(struct hca_qp *next, const struct ibv_qp_attr *attr, int mask)
{
	struct shm_port port;
	unsigned port_num = mask & IBV_QP_PORT ? attr->port_num : next->port_num;

	if (mask & (IBV_QP_PORT | IBV_QP_PKEY_INDEX)) {
		unsigned index = mask & IBV_QP_PKEY_INDEX ? attr->pkey_index : next->pkey_index;

		if (hca_port(next->ctx, port_num, &port) || index >= port.n_pkeys ||
		    !port.pkey[index])
			return -EINVAL;
		next->port_num = (uint8_t)port_num;
		next->port = next->process->region.hcas[next->ctx->hca].first_port + port_num - 1;
		next->pkey_index = (uint16_t)index;
	}
	if (mask & IBV_QP_QKEY)
		next->qkey = attr->qkey;
	if (mask & IBV_QP_SQ_PSN)
		next->sq_psn = attr->sq_psn & 0xFFFFFF;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_SQD) /* for this time only */
		next->en_sqd_async_notify =
		        mask & IBV_QP_EN_SQD_ASYNC_NOTIFY ? attr->en_sqd_async_notify : 0;
	return 0;
}

static void forget_everything(struct hca_qp *qp)
{
	hca_recv_reset(qp);
	hca_send_discard(qp);
	hca_flow_drop_all(qp);
	atomic_store_explicit(&qp->sq_done, qp->sq_posted, memory_order_relaxed);
	hca_cq_purge(hca_cq(qp->ex.qp_base.send_cq), qp);
	hca_cq_purge(hca_cq(qp->ex.qp_base.recv_cq), qp);
	qp->port_num = 0;
	qp->qkey = 0;
}

/* What a change of state brings with it. The manager knows of it already. With send_lock held. */
static void follow_state(struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
	struct control_raise_event drained = { .type = IBV_EVENT_SQ_DRAINED,
		                               .element = qp->ex.qp_base.qp_num };

	if (to == IBV_QPS_SQD && from == IBV_QPS_RTS && qp->en_sqd_async_notify)
		hca_request(qp->process, CONTROL_RAISE_EVENT, &drained, sizeof(drained));
	if (from == IBV_QPS_SQD && (to == IBV_QPS_RTS || to == IBV_QPS_ERR))
		hca_send_resume(qp);
}

static int modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from = hca_qp_state(qp);
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
	uint32_t old_qkey = qp->qkey;
	uint16_t old_pkey_index = qp->pkey_index;
	uint8_t old_port = qp->port_num;
	int ret;

	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
		return -EINVAL;
	ret = check_transition(from, to, mask);
	if (ret)
		return ret;
	ret = take_attributes(qp, attr, mask);
	if (ret)
		return ret;
	if (qp->port_num != old_port)
		hca_flow_drop_all(qp);
	if (to == IBV_QPS_RESET)
		forget_everything(qp);
	set_state(qp, to);
	ret = hca_qp_publish(qp);
	if (ret && to != IBV_QPS_RESET && to != IBV_QPS_ERR) {
		qp->qkey = old_qkey;
		qp->pkey_index = old_pkey_index;
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
	ret = modify(qp, attr, mask);
	base_unlock(&qp->send_lock);
	if (!ret && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR)
		hca_recv_flush(qp);
	return ret;
}

void hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	const struct ibv_qp *base = &qp->ex.qp_base;

	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	attr->qp_state = attr->cur_qp_state = hca_qp_state(qp);
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->qkey = qp->qkey;
	attr->sq_psn = qp->sq_psn;
	attr->cap = qp->cap;
	attr->pkey_index = qp->pkey_index;
	attr->en_sqd_async_notify = qp->en_sqd_async_notify;
	attr->port_num = qp->port_num;
	init->qp_context = base->qp_context;
	init->send_cq = base->send_cq;
	init->recv_cq = base->recv_cq;
	init->cap = qp->cap;
	init->qp_type = base->qp_type;
	init->sq_sig_all = qp->signal_all;
}

/* ---- destruction ---- */

static void wait_acked(struct hca_qp *qp)
{
	struct ibv_qp *base = &qp->ex.qp_base;

	pthread_mutex_lock(&base->mutex);
	while (base->events_completed != qp->async_events_got)
		pthread_cond_wait(&base->cond, &base->mutex);
	pthread_mutex_unlock(&base->mutex);
}

int hca_qp_destroy(struct hca_qp *qp)
{
	struct control_handle req = { .handle = qp->ex.qp_base.qp_num };
	struct hca_cq *send_cq = hca_cq(qp->ex.qp_base.send_cq);
	struct hca_cq *recv_cq = hca_cq(qp->ex.qp_base.recv_cq);
	int ret;

	/* nobody may look at the ring once it is not ours any more */
	base_lock(&recv_cq->lock);
	ret = hca_request(qp->process, CONTROL_DESTROY_QP, &req, sizeof(req));
	if (ret == -EBUSY) {
		base_unlock(&recv_cq->lock);
		return ret;
	}
	qp->consumed = qp->posted;
	qp->rwqe_head = qp->rwqe_tail;
	base_unlock(&recv_cq->lock);
	hca_cq_remove_qp(recv_cq, qp, true, qp->cap.max_recv_wr);
	hca_cq_remove_qp(send_cq, qp, false, qp->cap.max_send_wr);
	pthread_mutex_lock(&qp->ctx->lock);
	qp->ctx->qp_by_index[SHM_QP_INDEX(qp->ex.qp_base.qp_num)] = NULL;
	pthread_mutex_unlock(&qp->ctx->lock);
	wait_acked(qp);
	((struct hca_pd *)qp->ex.qp_base.pd)->users--;
	hca_send_discard(qp);
	hca_flow_drop_all(qp);
	hca_payload_fini(&qp->payloads);
	hca_wr_api_fini(qp);
	free(qp->out);
	pthread_mutex_destroy(&qp->ex.qp_base.mutex);
	pthread_cond_destroy(&qp->ex.qp_base.cond);
	free(qp->rwqe);
	free(qp->rsge);
	free(qp);
	return 0;
}
