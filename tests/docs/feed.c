/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program of docs/checked.md: it writes its next quote over the last one, which has not
 * completed.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>

static char quote[64];
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct ibv_ah *ah;

static void send_quote(void)
{
	struct ibv_sge sge = { (uintptr_t)quote, sizeof(quote), mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = 7,
		                        .sg_list = &sge,
		                        .num_sge = 1,
		                        .opcode = IBV_WR_SEND,
		                        .send_flags = IBV_SEND_SIGNALED,
		                        .wr.ud = { ah, qp->qp_num, 1 } };

	if (ibv_post_send(qp, &wr, &bad))
		exit(1);
}

static void wait_for_completion(void)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(cq, 1, &wc))
		;
}

static void start(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };

	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		exit(1);
	a.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE))
		exit(1);
	a.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN))
		exit(1);
}

/* A queue pair that sends to itself. */
static void set_up(void)
{
	struct ibv_context *context = ibv_open_device(*ibv_get_device_list(NULL));
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1 } };
	struct ibv_ah_attr to = { .port_num = 1 };
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_port_attr port;

	ibv_query_port(context, 1, &port);
	cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	mr = ibv_reg_mr(pd, quote, sizeof(quote), 0);
	to.dlid = port.lid;
	ah = ibv_create_ah(pd, &to);
	start();
}

int main(void)
{
	set_up();
	send_quote();
	quote[63]++;
	wait_for_completion();
	return 0;
}
