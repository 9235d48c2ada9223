/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Small programs that need more than a card has, each with a twin that the card serves: for
 * cards.sh, see mistakes.c.
 */
#include "checked/mistakes.h"

static char memory[8192] __attribute__((aligned(4096)));

/* ---- pieces ---- */

struct pair {
	struct lab_end *e[2];
	struct ibv_qp *qp[2];
	struct ibv_mr *mr[2];
};

/* Connected queue pairs of hosts 1 and 2, as @init says; all of @memory is open to peers. */
static void connect_two(struct pair *p, enum ibv_qp_type type)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
	                   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = { .qp_type = type, .cap = { 8, 8, 1, 1, 0 } };

		p->e[i] = lab_end(1 + i);
		init.send_cq = p->e[i]->send_cq;
		init.recv_cq = p->e[i]->cq;
		p->qp[i] = lab_qp(p->e[i]->pd, &init);
		assert_non_null(p->mr[i] = ibv_reg_mr(p->e[i]->pd, memory, sizeof(memory), access));
	}
	for (int i = 0; i < 2; i++)
		lab_connect(p->qp[i], p->qp[!i]->qp_num, p->e[!i]->context,
		            type == IBV_QPT_RC ? (unsigned)access : IBV_ACCESS_REMOTE_WRITE);
}

static void deregister(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		lab_to(p->qp[i], IBV_QPS_RESET);
		ibv_dereg_mr(p->mr[i]);
	}
}

static void post(struct pair *p, struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, p->mr[0]->lkey };
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(p->qp[0], wr, &bad), 0);
	lab_complete(p->e[0]->send_cq, status);
}

static void add(struct pair *p, char *at, enum ibv_wc_status status)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD };

	wr.wr.atomic.remote_addr = (uintptr_t)at;
	wr.wr.atomic.rkey = p->mr[1]->rkey;
	wr.wr.atomic.compare_add = 1;
	post(p, &wr, status);
}

static void read_word(struct pair *p)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ };

	wr.wr.rdma.remote_addr = (uintptr_t)memory + 4096;
	wr.wr.rdma.rkey = p->mr[1]->rkey;
	post(p, &wr, IBV_WC_SUCCESS);
}

/* ---- any card ---- */

/* A WRITE may go to any address. */
static void write_byte(struct pair *p)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };

	wr.wr.rdma.remote_addr = (uintptr_t)memory + 4097;
	wr.wr.rdma.rkey = p->mr[1]->rkey;
	post(p, &wr, IBV_WC_SUCCESS);
}

/* The completion of the second WRITE is that of the first one, too. */
static void unsignaled_write_changed(bool wrong)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .num_sge = 1 }, *bad;
	struct ibv_sge sge = { .addr = (uintptr_t)memory + 64, .length = 8 };
	struct pair p;

	connect_two(&p, IBV_QPT_RC);
	sge.lkey = p.mr[0]->lkey;
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = (uintptr_t)memory + 4096 + 64;
	wr.wr.rdma.rkey = p.mr[1]->rkey;
	assert_int_equal(ibv_post_send(p.qp[0], &wr, &bad), 0);
	if (wrong)
		memory[64]++;
	write_byte(&p);
	memory[64]++;
	deregister(&p);
}

static void unaligned(bool wrong)
{
	struct pair p;

	connect_two(&p, IBV_QPT_RC);
	if (!wrong)
		write_byte(&p);
	add(&p, memory + 4096 + (wrong ? 4 : 8), wrong ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS);
	deregister(&p);
}

/* In SQD a queue pair may be given another depth. */
static void reads_not_allowed(bool wrong)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .max_rd_atomic = wrong ? 0 : 1 };
	struct pair p;

	connect_two(&p, IBV_QPT_RC);
	assert_int_equal(ibv_modify_qp(p.qp[0], &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_modify_qp(p.qp[0], &attr, IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(p.qp[0], &attr, IBV_QP_STATE), 0);
	read_word(&p);
	deregister(&p);
}

/* ---- E810 ---- */

static void deep_queue(bool wrong)
{
	struct ibv_qp_cap cap = { .max_send_wr = wrong ? 4064 : 4063 };

	lab_end_with(&(struct lab_options){ .cap = cap });
}

static void many_ranges(bool wrong)
{
	struct ibv_qp_cap cap = { .max_recv_sge = wrong ? 14 : 13 };

	lab_end_with(&(struct lab_options){ .cap = cap });
}

static void long_inline(bool wrong)
{
	struct ibv_qp_cap cap = { .max_inline_data = wrong ? 102 : 101 };

	lab_end_with(&(struct lab_options){ .cap = cap });
}

static void unreliable(bool wrong)
{
	struct pair p;

	connect_two(&p, wrong ? IBV_QPT_UC : IBV_QPT_RC);
	deregister(&p);
}

static void atomic(bool wrong)
{
	struct pair p;

	connect_two(&p, IBV_QPT_RC);
	if (wrong)
		add(&p, memory + 4096, IBV_WC_SUCCESS);
	else
		read_word(&p);
	deregister(&p);
}

static void shared_receives(bool wrong)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_srq *srq = wrong ? ibv_create_srq(pd, &init) : NULL;

	assert_true(!wrong || srq);
	if (srq)
		ibv_destroy_srq(srq);
}

static void on_demand(bool wrong)
{
	struct ibv_mr *mr = ibv_reg_mr(lab_pd(lab_open(1)), memory, sizeof(memory),
	                               IBV_ACCESS_LOCAL_WRITE | (wrong ? IBV_ACCESS_ON_DEMAND : 0));

	assert_non_null(mr);
	ibv_dereg_mr(mr);
}

static void device_memory(bool wrong)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = wrong ? ibv_alloc_dm(lab_open(1), &attr) : NULL;

	assert_true(!wrong || dm);
	if (dm)
		ibv_free_dm(dm);
}

static void wr_api(bool wrong)
{
	lab_end_with(&(struct lab_options){ .send_ops = wrong ? IBV_QP_EX_WITH_SEND : 0 });
}

static void timestamps(bool wrong)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16 };
	struct ibv_cq_ex *cq;

	attr.wc_flags = wrong ? IBV_WC_EX_WITH_COMPLETION_TIMESTAMP : IBV_WC_EX_WITH_SRC_QP;
	assert_non_null(cq = ibv_create_cq_ex(lab_open(1), &attr));
	ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
}

const struct mistake card_mistakes[] = {
	{ "unaligned-atomic", "unaligned-atomic", unaligned },
	{ "reads-not-allowed", "reads-not-allowed", reads_not_allowed },
	{ "unsignaled-write", "send-buffer-changed", unsignaled_write_changed },
	{ "deep-queue", NULL, deep_queue },
	{ "many-ranges", NULL, many_ranges },
	{ "long-inline", NULL, long_inline },
	{ "unreliable", NULL, unreliable },
	{ "atomic", NULL, atomic },
	{ "shared-receives", NULL, shared_receives },
	{ "on-demand", NULL, on_demand },
	{ "device-memory", NULL, device_memory },
	{ "wr-api", NULL, wr_api },
	{ "timestamps", NULL, timestamps },
	{ .name = NULL },
};
