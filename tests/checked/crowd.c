/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Crowds under the checker: what a program does with @N requests or objects costs each the same,
 * however many there are. counted() says what is counted. For crowd.sh.
 *
 * checked.crowd NAME N
 */
#include "verbs/lab.h"
#include "attributes.h"

#define BYTES 64
#define SLOT  (BYTES + LAB_GRH)

#define UNREAD 1600 /* messages that are not polled: the fabric has room for some thousand */

static unsigned n;
static char *memory; /* N slots */

static struct ibv_sge slot(unsigned i, const struct ibv_mr *mr)
{
	return (struct ibv_sge){ (uintptr_t)memory + (uint64_t)i * SLOT, SLOT, mr->lkey };
}

static struct ibv_qp *connected(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq,
                                uint32_t room)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		                         .send_cq = cq,
		                         .recv_cq = cq,
		                         .srq = srq,
		                         .cap = { room, 1, 1, 1, 0 } };

	return lab_qp(pd, &init);
}

static void connect_both(struct ibv_qp *qp, struct ibv_qp *to)
{
	lab_connect(qp, to->qp_num, to->context, IBV_ACCESS_LOCAL_WRITE);
	lab_connect(to, qp->qp_num, qp->context, IBV_ACCESS_LOCAL_WRITE);
}

/* ---- receives of a shared queue, whose completions are polled in another order ---- */

static struct {
	struct ibv_cq *sent, *cq[2];
	struct ibv_mr *out, *in;
	struct ibv_qp *from[2], *to[2];
	struct ibv_srq *srq;
} shared;

static void undo_srq(void *srq)
{
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void begin_shared(void)
{
	struct ibv_pd *from = lab_pd(lab_open(1)), *to = lab_pd(lab_open(2));
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = n, .max_sge = 1 } };

	shared.out = lab_mr(from, memory, SLOT);
	shared.in = lab_mr(to, memory + SLOT, (size_t)n * SLOT);
	shared.sent = lab_cq(from->context, 1, NULL);
	assert_non_null(shared.srq = ibv_create_srq(to, &attr));
	lab_undo(undo_srq, shared.srq);
	for (unsigned i = 0; i < 2; i++) {
		shared.cq[i] = lab_cq(to->context, (int)n, NULL);
		shared.from[i] = connected(from, shared.sent, NULL, 1);
		shared.to[i] = connected(to, shared.cq[i], shared.srq, 1);
		connect_both(shared.from[i], shared.to[i]);
	}
}

static void send_by(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)memory, 4, shared.out->lkey };
	struct ibv_send_wr wr = request_of(&sge, IBV_WR_SEND, IBV_SEND_SIGNALED), *bad;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	lab_complete(shared.sent, IBV_WC_SUCCESS);
}

/* Some have a wr_id that others have, too: of these the first that was posted is the first. */
static void do_shared(void)
{
	const unsigned sent = n < UNREAD ? n : UNREAD;
	struct ibv_recv_wr *bad;
	struct ibv_wc wc;

	for (unsigned i = 0; i < n; i++) {
		struct ibv_sge sge = slot(i + 1, shared.in);
		struct ibv_recv_wr wr = { .wr_id = i % 4 ? i : 0, .sg_list = &sge, .num_sge = 1 };

		assert_int_equal(ibv_post_srq_recv(shared.srq, &wr, &bad), 0);
	}
	for (unsigned i = 0; i < sent; i++)
		send_by(shared.from[i < sent / 2]);
	for (unsigned i = 0; i < sent; i++) {
		const unsigned number = (i + sent / 2) % sent;

		lab_poll(shared.cq[i >= sent / 2], 1, &wc);
		assert_int_equal(wc.wr_id, number % 4 ? number : 0);
	}
}

/* ---- regions, each of a receive, and a domain that they keep busy ---- */

static struct {
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	struct ibv_mr **mr;
} regions;

static void begin_regions(void)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_cq *cq = lab_cq(context, (int)n, NULL);
	struct ibv_qp_init_attr init = init_of(IBV_QPT_UD, cq, 1, n);

	regions.pd = lab_pd(context);
	regions.qp = lab_qp(regions.pd, &init);
	lab_start(regions.qp, LAB_QKEY);
	regions.mr = calloc(n, sizeof(struct ibv_mr *));
	lab_undo(free, regions.mr);
}

static void do_regions(void)
{
	struct ibv_recv_wr *bad;

	for (unsigned i = 0; i < n; i++) {
		struct ibv_sge sge;
		struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

		assert_non_null(regions.mr[i] = ibv_reg_mr(regions.pd, memory + (size_t)i * SLOT,
		                                           SLOT, IBV_ACCESS_LOCAL_WRITE));
		sge = slot(i, regions.mr[i]);
		assert_int_equal(ibv_post_recv(regions.qp, &wr, &bad), 0);
		assert_int_equal(ibv_dealloc_pd(regions.pd), EBUSY);
	}
	lab_to(regions.qp, IBV_QPS_RESET);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(ibv_dereg_mr(regions.mr[i]), 0);
}

/* ---- sends of one buffer, which wait for receives ---- */

static struct {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
} sends;

static void begin_sends(void)
{
	struct ibv_pd *from = lab_pd(lab_open(1)), *to = lab_pd(lab_open(2));

	sends.cq = lab_cq(from->context, (int)n, NULL);
	sends.qp = connected(from, sends.cq, NULL, n);
	connect_both(sends.qp, connected(to, lab_cq(to->context, 1, NULL), NULL, 1));
	sends.mr = lab_mr(from, memory, SLOT);
}

static void do_sends(void)
{
	struct ibv_sge sge = slot(0, sends.mr);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	for (unsigned i = 0; i < n; i++) {
		wr.send_flags = i % 8 == 7 ? IBV_SEND_SIGNALED : 0;
		assert_int_equal(ibv_post_send(sends.qp, &wr, &bad), 0);
	}
	lab_to(sends.qp, IBV_QPS_ERR);
	for (unsigned i = 0; i < n; i++)
		lab_complete(sends.cq, IBV_WC_WR_FLUSH_ERR);
}

static const struct {
	const char *name;
	void (*begin)(void), (*run)(void);
} crowds[] = {
	{ "shared-receives", begin_shared, do_shared },
	{ "regions", begin_regions, do_regions },
	{ "sends", begin_sends, do_sends },
};

void counted(void (*run)(void));

__attribute__((noinline)) void counted(void (*run)(void))
{
	run();
}

int main(int argc, char **argv)
{
	n = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
	memory = n ? calloc(n + 1, SLOT) : NULL;
	assert_non_null(memory);
	for (unsigned i = 0; i < LAB_ARRAY(crowds); i++) {
		if (strcmp(argv[1], crowds[i].name))
			continue;
		crowds[i].begin();
		counted(crowds[i].run);
		lab_clean_up(NULL);
		free(memory);
		return 0;
	}
	return 2;
}
