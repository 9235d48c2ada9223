/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of XRC for tests: see xrc_lab.h.
 */
#include "xrc_lab.h"

void xrc_lab_close(void *o)
{
	assert_int_equal(ibv_close_xrcd(o), 0);
}

static void undo_srq(void *o)
{
	assert_int_equal(ibv_destroy_srq(o), 0);
}

void xrc_lab_destroy(void *o)
{
	assert_int_equal(ibv_destroy_qp(o), 0);
}

static void undo_mr(void *o)
{
	ibv_dereg_mr(o);
}

struct ibv_xrcd *xrc_lab_open(struct ibv_context *context, int fd, int flags)
{
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
		                                        IBV_XRCD_INIT_ATTR_OFLAGS,
		                           .fd = fd,
		                           .oflags = flags };

	errno = 0;
	return ibv_open_xrcd(context, &init);
}

struct ibv_xrcd *xrc_lab_domain(struct ibv_context *context, int fd)
{
	struct ibv_xrcd *xrcd = xrc_lab_open(context, fd, O_CREAT);

	assert_non_null(xrcd);
	lab_undo(xrc_lab_close, xrcd);
	return xrcd;
}

void *xrc_lab_memory(struct ibv_pd *pd, struct ibv_mr **mr)
{
	void *memory = calloc(1, XRC_LAB_BYTES);

	assert_non_null(memory);
	lab_undo(free, memory);
	assert_non_null(*mr = ibv_reg_mr(pd, memory, XRC_LAB_BYTES, XRC_LAB_ACCESS));
	lab_undo(undo_mr, *mr);
	return memory;
}

void xrc_lab_queue(struct xrc_lab_queue *q, struct ibv_context *context, struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex init = { .attr = { .max_wr = XRC_LAB_WR, .max_sge = 2 },
		                             .comp_mask =
		                                     IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
		                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		                             .srq_type = IBV_SRQT_XRC,
		                             .xrcd = xrcd };

	q->pd = init.pd = lab_pd(context);
	q->cq = init.cq = lab_cq(context, 64, NULL);
	assert_non_null(q->srq = ibv_create_srq_ex(context, &init));
	lab_undo(undo_srq, q->srq);
	assert_int_equal(ibv_get_srq_num(q->srq, &q->number), 0);
	q->memory = xrc_lab_memory(q->pd, &q->mr);
}

struct ibv_qp *xrc_lab_target(struct ibv_context *context, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV,
		                            .comp_mask = IBV_QP_INIT_ATTR_XRCD,
		                            .xrcd = xrcd };
	struct ibv_qp *qp = ibv_create_qp_ex(context, &init);

	assert_non_null(qp);
	lab_undo(xrc_lab_destroy, qp);
	return qp;
}

struct ibv_qp *xrc_lab_sender(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = cq,
		.cap = { .max_send_wr = XRC_LAB_WR, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE
	};
	struct ibv_qp *qp = ibv_create_qp_ex(pd->context, &init);

	assert_non_null(qp);
	lab_undo(xrc_lab_destroy, qp);
	return qp;
}

int xrc_lab_receive(struct xrc_lab_queue *q, uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)q->memory, length, q->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(q->srq, &wr, &bad);
}
