/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why posting a request is refused: see explain.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/reason.h"
#include "hca/process/hearer.h"
#include "hca/process/operation.h"
#include "hca/queue/ah.h"
#include "hca/queue/explain.h"
#include "hca/queue/qp.h"

/* The error in the request itself, whatever the transport. 0: none. */
static int explain_request(const struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t length,
                           int error)
{
	const unsigned op = hca_operation(wr->opcode);
	bool is_ud = qp->transport->type == IBV_QPT_UD;
	bool has = is_ud ? wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM
	                 : (op & HCA_OP_POSTED) &&
	                           !((op & HCA_OP_ANSWERED) && qp->transport->type == IBV_QPT_UC);

	if (!has)
		return base_because(error, "%s queue pairs have no operation '%s' (opcode %u)",
		                    qp->transport->name, hca_opcode_name(wr->opcode),
		                    (unsigned)wr->opcode);
	if ((uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return base_because(error, "num_sge is %d: QP 0x%06x has max_send_sge %u",
		                    wr->num_sge, qp->sender.qpn, qp->cap.max_send_sge);
	if ((wr->send_flags & IBV_SEND_INLINE) && length > qp->cap.max_inline_data)
		return base_because(
		        error, "%" PRIu64 " bytes of inline data: QP 0x%06x has max_inline_data %u",
		        length, qp->sender.qpn, qp->cap.max_inline_data);
	if (!is_ud && length > HCA_MAX_MESSAGE)
		return base_because(error, "the message has %" PRIu64 " bytes: at most %u are one",
		                    length, HCA_MAX_MESSAGE);
	if ((op & HCA_OP_WORD) && length != sizeof(uint64_t))
		return base_because(error, "an operation '%s' has 8 bytes, this one has %" PRIu64,
		                    hca_opcode_name(wr->opcode), length);
	return 0;
}

static int explain_wrong(const struct hca_qp *qp, const struct ibv_send_wr *wr, int error)
{
	bool fits = (uint32_t)wr->num_sge <= qp->cap.max_send_sge;
	const struct hca_ah *ah = (const struct hca_ah *)wr->wr.ud.ah;
	enum ibv_qp_state state = hca_qp_state(qp);

	if (!hca_qp_can_post(state))
		return base_because(error,
		                    "QP 0x%06x is in %s, and takes sends from RTS on: move it "
		                    "there with ibv_modify_qp()",
		                    qp->sender.qpn, hca_state_name(state));
	if (explain_request(qp, wr, fits ? hca_sge_bytes(wr->sg_list, (uint32_t)wr->num_sge) : 0,
	                    error))
		return error;
	if (qp->transport->type != IBV_QPT_UD)
		return error;
	if (!ah)
		return base_because(error, "wr.ud.ah is NULL: make one with ibv_create_ah()");
	if (ah->alive != HCA_AH_ALIVE)
		return base_because(error, "wr.ud.ah is an address handle that was destroyed");
	return error;
}

void hca_explain_full(const struct hca_qp *qp)
{
	const struct hca_hearer *hearer = qp->ctx->process->hearer;
	const uint32_t used = hearer ? hca_qp_sq_used(qp) : 0; /* other threads change it */
	char text[160];

	if (!used || !hca_vain_is_unsignaled(qp))
		return;
	snprintf(text, sizeof(text),
	         "QP 0x%06x has room for %u requests (max_send_wr), and %u are in it already, none "
	         "of them signaled: this one is refused",
	         qp->sender.qpn, qp->cap.max_send_wr, used);
	hearer->never_signaled(text);
}

int hca_explain_send(const struct hca_qp *qp, const struct ibv_send_wr *wr, int error)
{
	if (error == -ENOMEM)
		hca_explain_full(qp);
	if (!base_log_reasons)
		return error;
	if (error == -EIO)
		return base_because(error, "the daemon of the fabric is gone");
	if (error == -ENOMEM && hca_qp_sq_used(qp) >= qp->cap.max_send_wr)
		return base_because(error,
		                    "the send queue of QP 0x%06x is full: it has room for %u "
		                    "requests (max_send_wr), %s",
		                    qp->sender.qpn, qp->cap.max_send_wr,
		                    hca_vain_is_unsignaled(qp)
		                            ? "and none of those there asked for a completion: set "
		                              "IBV_SEND_SIGNALED at least once in so many, and poll"
		                            : "which leave it when a completion of theirs, or of a "
		                              "later signaled one, is polled");
	return error == -EINVAL ? explain_wrong(qp, wr, error) : error;
}

int hca_explain_receive(const struct hca_rq *rq, const struct ibv_recv_wr *wr, int error)
{
	if (error == -EIO)
		return base_because(error, "the daemon of the fabric is gone");
	if (error == -ENOMEM)
		return base_because(error,
		                    "the receive queue of QP 0x%06x is full: it has room for %u "
		                    "requests (max_recv_wr) that are not completed",
		                    rq->qpn, rq->max_wr);
	if (rq->srq)
		return base_because(error,
		                    "the receives of QP 0x%06x are those of its shared receive "
		                    "queue: post them with ibv_post_srq_recv()",
		                    rq->qpn);
	if (hca_rq_mode(rq) == HCA_RQ_CLOSED)
		return base_because(error,
		                    "QP 0x%06x is in RESET, and takes receives from INIT on: move "
		                    "it there with ibv_modify_qp()",
		                    rq->qpn);
	return base_because(error, "num_sge is %d: QP 0x%06x has max_recv_sge %u",
	                    wr ? wr->num_sge : 0, rq->qpn, rq->max_sge);
}
