/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that fail on purpose: see faults.h.
 */
#include <pthread.h>
#include <stdlib.h>

#include "api/verbs/faults.h"
#include "api/verbs/verbs.h"
#include "base/hash.h"
#include "base/reason.h"
#include "base/util.h"

/* A queue pair of a context that meets faults. */
struct faulty_qp {
	struct base_hash_node node; /* by number */
	struct hca_qp *qp;
	bool failed; /* a completion of it was made an error: later ones are flushed */
	int (*wr_complete)(struct ibv_qp_ex *ex); /* its own */
	struct hca_qp maker; /* whose completions are made up: it has the number, and its send queue
	                        is nobody's */
};

struct hca_faults {
	pthread_mutex_t lock;
	struct base_hash qps;
	/* what extended completion queues have of their own: all the same. Set with the first one
	 */
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
};

/* A call that is refused for the sake of a rule says so. */
static int refusal(int ret)
{
	return ret ? base_because(ret, "a rule of faults says so (umbel fault show)") : 0;
}

/* The verdict of the rules on the call; without a daemon there is none. */
static struct control_meet_fault_reply consult(struct hca_context *ctx, enum control_call_kind kind,
                                               uint32_t qpn)
{
	struct control_meet_fault req = { .hca = ctx->hca, .kind = kind, .qpn = qpn };
	struct control_meet_fault_reply rep = { 0 };
	int ret =
	        control_call(ctx->process->control, &CONTROL_CALL(CONTROL_MEET_FAULT, &req, &rep));

	if (ret)
		rep = (struct control_meet_fault_reply){ 0 };
	return rep;
}

/* With what error the call fails; 0: it does not. */
static int ask(struct hca_context *ctx, enum control_call_kind kind, uint32_t qpn)
{
	return consult(ctx, kind, qpn).value;
}

int verbs_faults_meet(struct hca_context *ctx, enum control_call_kind kind)
{
	return ctx->faults ? refusal(-ask(ctx, kind, 0)) : 0;
}

/* With the lock held. NULL: it is none of the context's, or has gone. */
static struct faulty_qp *find(const struct hca_faults *f, uint32_t qpn)
{
	struct base_hash_node *node = base_hash_first(&f->qps, qpn);

	while (node && container_of(node, struct faulty_qp, node)->qp->ex.qp_base.qp_num != qpn)
		node = base_hash_next(node);
	return node ? container_of(node, struct faulty_qp, node) : NULL;
}

/* ---- posting ---- */

/* One by one: a rule may refuse any request of a list. */

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (; wr; wr = wr->next) {
		struct ibv_send_wr one = *wr, *failed;
		int ret = ask(hca_context(qp->context), CONTROL_CALL_POST, qp->qp_num);

		one.next = NULL;
		if (ret)
			verbs_error("ibv_post_send", refusal(-ret));
		else
			ret = verbs_post_send(qp, &one, &failed);
		*bad = wr;
		if (ret)
			return ret;
	}
	return 0;
}

/* To a queue pair, or to a shared receive queue; the other one is NULL. */
static int post_receives(struct ibv_context *context, struct ibv_qp *qp, struct ibv_srq *srq,
                         struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	for (; wr; wr = wr->next) {
		struct ibv_recv_wr one = *wr, *failed;
		int ret = ask(hca_context(context), CONTROL_CALL_RECEIVE, qp ? qp->qp_num : 0);

		one.next = NULL;
		if (ret)
			verbs_error(qp ? "ibv_post_recv" : "ibv_post_srq_recv", refusal(-ret));
		else
			ret = qp ? verbs_post_recv(qp, &one, &failed)
			         : verbs_post_srq_recv(srq, &one, &failed);
		*bad = wr;
		if (ret)
			return ret;
	}
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return post_receives(qp->context, qp, NULL, wr, bad);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return post_receives(srq->context, NULL, srq, wr, bad);
}

/* All requests since ibv_wr_start() count as one request. */
static int wr_complete(struct ibv_qp_ex *ex)
{
	struct hca_context *ctx = hca_context(ex->qp_base.context);
	int ret = ask(ctx, CONTROL_CALL_POST, ex->qp_base.qp_num);
	int (*own)(struct ibv_qp_ex * ex);

	if (ret) {
		verbs_error("ibv_wr_complete", refusal(-ret));
		ex->wr_abort(ex);
		return ret;
	}
	pthread_mutex_lock(&ctx->faults->lock);
	own = find(ctx->faults, ex->qp_base.qp_num)->wr_complete;
	pthread_mutex_unlock(&ctx->faults->lock);
	return own(ex);
}

/* ---- completions ---- */

/* As a queue pair whose request or receive has failed: datagrams go on receiving. */
static void fail(struct faulty_qp *q, bool is_receive)
{
	struct ibv_qp *qp = &q->qp->ex.qp_base;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	q->failed = true;
	if (!is_receive && qp->qp_type != IBV_QPT_RC && qp->qp_type != IBV_QPT_XRC_SEND)
		atomic_store_explicit(&q->qp->state, IBV_QPS_SQE, memory_order_relaxed);
	else
		hca_qp_modify(q->qp, &attr, IBV_QP_STATE);
}

/* Whether what completes now comes behind a failure that has not been seen to. */
static bool is_flushed(struct faulty_qp *q, bool is_receive)
{
	const enum ibv_qp_state state = hca_qp_state(q->qp);

	q->failed = q->failed && (state == IBV_QPS_ERR || state == IBV_QPS_SQE);
	return q->failed && (state == IBV_QPS_ERR || !is_receive);
}

/* Behind the completion comes one more, which no request has asked for. */
static void make(struct hca_cq *cq, struct faulty_qp *q, const struct ibv_wc *wc,
                 const struct control_meet_fault_reply *says)
{
	const struct hca_cqe made = { .wr_id = says->has_wr_id ? says->wr_id : wc->wr_id,
		                      .qp = &q->maker,
		                      .byte_len = wc->byte_len,
		                      .status = (uint8_t)(says->made - 1),
		                      .opcode = (uint8_t)(wc->opcode | HCA_CQE_MADE),
		                      .is_first = true };

	hca_cq_push_surplus(cq, &made);
}

/* Applies the rules to a success of that queue pair. */
static void meet_success(struct hca_cq *cq, struct faulty_qp *q, struct ibv_wc *wc)
{
	const bool is_receive = wc->opcode & IBV_WC_RECV;
	struct control_meet_fault_reply says;

	if (is_flushed(q, is_receive)) {
		wc->status = IBV_WC_WR_FLUSH_ERR;
		return;
	}
	says = consult(cq->ctx, CONTROL_CALL_COMPLETION, wc->qp_num);
	wc->status = (enum ibv_wc_status)says.value;
	if (wc->status != IBV_WC_SUCCESS && wc->status != IBV_WC_WR_FLUSH_ERR)
		fail(q, is_receive);
	if (says.made)
		make(cq, q, wc, &says);
}

/* Applies the rules to a completion that was polled. No rule sees a completion that is made up. */
static void meet(struct hca_cq *cq, struct ibv_wc *wc)
{
	struct hca_faults *f = cq->ctx->faults;
	struct faulty_qp *q;

	if (wc->opcode & HCA_CQE_MADE) {
		wc->opcode = (enum ibv_wc_opcode)(wc->opcode & ~HCA_CQE_MADE);
		return;
	}
	if (wc->status != IBV_WC_SUCCESS)
		return;
	pthread_mutex_lock(&f->lock);
	q = find(f, wc->qp_num);
	if (q)
		meet_success(cq, q, wc);
	pthread_mutex_unlock(&f->lock);
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	n = verbs_poll_cq(cq, n, wc);
	for (int i = 0; i < n; i++)
		meet(hca_cq(cq), &wc[i]);
	return n;
}

static int polled(struct ibv_cq_ex *ex, int ret)
{
	struct hca_cq *cq = (struct hca_cq *)ex;

	if (!ret) {
		meet(cq, &cq->wc);
		ex->status = cq->wc.status;
	}
	return ret;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	return polled(cq, hca_context(cq->context)->faults->start_poll(cq, attr));
}

static int next_poll(struct ibv_cq_ex *cq)
{
	return polled(cq, hca_context(cq->context)->faults->next_poll(cq));
}

void verbs_faults_add_cq_ex(struct hca_cq *cq)
{
	struct hca_faults *f = cq->ctx->faults;

	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	if (!f->start_poll) {
		f->start_poll = cq->cq.start_poll;
		f->next_poll = cq->cq.next_poll;
	}
	pthread_mutex_unlock(&f->lock);
	cq->cq.start_poll = start_poll;
	cq->cq.next_poll = next_poll;
}

/* ---- queue pairs and contexts ---- */

int verbs_faults_add_qp(struct hca_qp *qp)
{
	struct hca_faults *f = qp->ctx->faults;
	struct faulty_qp *q;
	int ret;

	if (!f)
		return 0;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->qp = qp;
	q->wr_complete = qp->ex.wr_complete;
	q->maker.ex.qp_base.qp_num = qp->ex.qp_base.qp_num;
	pthread_mutex_lock(&f->lock);
	ret = base_hash_add(&f->qps, &q->node, qp->ex.qp_base.qp_num);
	pthread_mutex_unlock(&f->lock);
	if (ret)
		free(q);
	else if (q->wr_complete)
		qp->ex.wr_complete = wr_complete;
	return ret;
}

/* The queue pair is not found meanwhile, as a new one may get its number once it has gone. Made-up
 * completions stay in the CQ until then, and refer to @q. */
static int destroy(struct hca_faults *f, struct faulty_qp *q)
{
	int ret;

	pthread_mutex_lock(&f->lock);
	base_hash_remove(&f->qps, &q->node);
	if (q->wr_complete)
		q->qp->ex.wr_complete = q->wr_complete;
	pthread_mutex_unlock(&f->lock);
	ret = hca_qp_destroy(q->qp);
	if (!ret) {
		free(q);
		return 0;
	}
	pthread_mutex_lock(&f->lock);
	base_hash_add(&f->qps, &q->node,
	              q->qp->ex.qp_base.qp_num); /* there is room: it was there */
	if (q->wr_complete)
		q->qp->ex.wr_complete = wr_complete;
	pthread_mutex_unlock(&f->lock);
	return ret;
}

int verbs_faults_destroy_qp(struct hca_qp *qp)
{
	struct hca_faults *f = qp->ctx->faults;
	struct faulty_qp *q = NULL;

	if (f) {
		pthread_mutex_lock(&f->lock);
		q = find(f, qp->ex.qp_base.qp_num);
		pthread_mutex_unlock(&f->lock);
	}
	return q ? destroy(f, q) : hca_qp_destroy(qp);
}

int verbs_faults_open(struct hca_context *ctx)
{
	struct ibv_context_ops *ops = &ctx->vctx.context.ops;

	if (!atomic_load_explicit(&ctx->process->region.control->faulty_calls,
	                          memory_order_relaxed))
		return 0;
	ctx->faults = calloc(1, sizeof(*ctx->faults));
	if (!ctx->faults)
		return -ENOMEM;
	pthread_mutex_init(&ctx->faults->lock, NULL);
	ops->post_send = post_send;
	ops->post_recv = post_recv;
	ops->post_srq_recv = post_srq_recv;
	ops->poll_cq = poll_cq;
	return 0;
}

void verbs_faults_close(struct hca_context *ctx)
{
	if (!ctx->faults)
		return;
	pthread_mutex_destroy(&ctx->faults->lock);
	base_hash_fini(&ctx->faults->qps);
	free(ctx->faults);
}
