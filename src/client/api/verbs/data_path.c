/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls of the data path, as contexts without a layer (layer.h) have them. Safe from any
 * thread.
 */
#include "api/verbs/verbs.h"
#include "hca/queue/cq.h"
#include "hca/queue/srq.h"

int verbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return verbs_result(hca_qp(qp)->transport->post(hca_qp(qp), wr, bad));
}

int verbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return verbs_result(hca_rq_post(hca_qp(qp)->rq, wr, bad));
}

int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct hca_srq *s = hca_srq(srq);

	return verbs_result(s->xrc ? hca_rq_post(s->xrc->rq, wr, bad) : hca_srq_post(s, wr, bad));
}

int verbs_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return hca_cq_poll(hca_cq(cq), n, wc);
}

int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	if (hca_process_gone(hca_cq(cq)->ctx->process))
		return verbs_result(-EIO);
	hca_cq_arm(hca_cq(cq), solicited_only);
	return 0;
}
