/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that fail on purpose: see faults.h.
 */
#include "api/verbs/faults.h"
#include "api/verbs/verbs.h"
#include "base/reason.h"

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

int verbs_faults_meet(struct hca_context *ctx, enum control_call_kind kind, uint32_t qpn)
{
	if (!ctx->layer || !ctx->layer->meets_faults)
		return 0;
	return refusal(-(int)consult(ctx, kind, qpn).value);
}

bool verbs_faults_wanted(const struct hca_context *ctx)
{
	return atomic_load_explicit(&ctx->process->region.control->faulty_calls,
	                            memory_order_relaxed);
}

/* ---- completions ---- */

/* As a queue pair whose request or receive has failed: datagrams go on receiving. */
static void fail(struct verbs_layer_qp *q, bool is_receive)
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
static bool is_flushed(struct verbs_layer_qp *q, bool is_receive)
{
	const enum ibv_qp_state state = hca_qp_state(q->qp);

	q->failed = q->failed && (state == IBV_QPS_ERR || state == IBV_QPS_SQE);
	return q->failed && (state == IBV_QPS_ERR || !is_receive);
}

/* Behind the completion comes one more, which no request has asked for. */
static void make(struct hca_cq *cq, struct verbs_layer_qp *q, const struct ibv_wc *wc,
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

void verbs_faults_complete(struct hca_cq *cq, struct verbs_layer_qp *q, struct ibv_wc *wc)
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
