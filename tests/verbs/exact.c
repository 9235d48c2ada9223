/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The manual pages' words on completions and on posting by several threads, to the letter:
 * ibv_wr_post(3), ibv_create_cq_ex(3), ibv_req_notify_cq(3).
 */
#include "lab.h"
#include "base/pause.h"

#define THREAD_SENDS 2000

/* ---- ibv_wr_start() to ibv_wr_complete() ---- */

static struct lab_end *wr_end(int host)
{
	struct lab_options o = { .host = host,
		                 .send_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM };

	return lab_end_with(&o);
}

LAB_CASE(one_wrong_request_keeps_the_whole_list_from_being_sent)
{
	struct lab_end *from = wr_end(1), *to = lab_end(2);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(from->qp);
	struct ibv_ah *ah = lab_ah_to(from, to);

	lab_post(to, 2);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, to->qp->qp_num, LAB_QKEY);
	ibv_wr_set_inline_data(ex, "right", 5);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, "no address", 10);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	lab_quiet(from->send_cq);
	lab_send_text(from, ah, to->qp->qp_num, "the first to arrive");
	lab_expect_text(to, "the first to arrive");
}

struct poster {
	pthread_t thread;
	struct lab_end *from;
	struct ibv_ah *ah;
	uint32_t qpn;
	uint64_t tag;
	unsigned failed;
};

/* Lists of three, of which the thread's tag is in each request. */
static void *post_lists(void *arg)
{
	struct poster *p = arg;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p->from->qp);
	struct base_pause pause = { 0 };

	for (uint64_t i = 0; i < THREAD_SENDS;) {
		ibv_wr_start(ex);
		for (int k = 0; k < 3; k++) {
			ex->wr_id = p->tag | i;
			ex->wr_flags = IBV_SEND_SIGNALED;
			ibv_wr_send(ex);
			ibv_wr_set_ud_addr(ex, p->ah, p->qpn, LAB_QKEY);
			ibv_wr_set_inline_data(ex, &p->tag, sizeof(p->tag));
		}
		if (!ibv_wr_complete(ex)) {
			i++;
			pause.looks = 0;
		} else {
			p->failed++; /* the queue is full */
			base_pause(&pause);
		}
	}
	return NULL;
}

LAB_CASE(two_threads_may_build_lists_on_one_queue_pair)
{
	struct lab_end *from = wr_end(1), *to = lab_end(2);
	struct poster p[2] = { { .tag = 1ull << 32 }, { .tag = 2ull << 32 } };
	struct ibv_wc wc, last = { 0 };
	unsigned in_row = 0;

	for (int i = 0; i < 2; i++) {
		p[i].from = from;
		p[i].ah = lab_ah_to(from, to);
		p[i].qpn = to->qp->qp_num;
		assert_int_equal(pthread_create(&p[i].thread, NULL, post_lists, &p[i]), 0);
	}
	for (unsigned n = 0; n < 2 * 3 * THREAD_SENDS; n++) {
		lab_poll(from->send_cq, 1, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		/* the three of one list come one after the other */
		if (in_row)
			assert_int_equal(wc.wr_id, last.wr_id);
		in_row = (in_row + 1) % 3;
		last = wc;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(p[i].thread, NULL);
}

/* A thread that waits until it may end: the locks are in use then. */
static void *wait_for_end(void *ends)
{
	struct base_pause pause = { 0 };

	while (!atomic_load((_Atomic bool *)ends))
		base_pause(&pause);
	return NULL;
}

static void start_list(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn)
{
	ibv_wr_start(ex);
	ex->wr_id = 7;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, qpn, LAB_QKEY);
	ibv_wr_set_inline_data(ex, "data", 4);
}

/* On hardware the kernel changes the state, whatever lock the program's library holds. */
LAB_CASE(the_state_may_change_while_a_list_is_built)
{
	struct lab_end *from = wr_end(1), *to = lab_end(2);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(from->qp);
	struct ibv_ah *ah = lab_ah_to(from, to);
	const uint32_t qpn = to->qp->qp_num;
	_Atomic bool ends = false;
	pthread_t other;

	assert_int_equal(pthread_create(&other, NULL, wait_for_end, &ends), 0);
	lab_post(to, 2);
	start_list(ex, ah, qpn);
	lab_to(from->qp, IBV_QPS_SQD);
	assert_int_equal(ibv_wr_complete(ex), 0);
	lab_quiet(from->send_cq);
	start_list(ex, ah, qpn);
	lab_to(from->qp, IBV_QPS_RTS); /* what waited is sent, and then the list */
	lab_expect_text(to, "data");
	assert_int_equal(ibv_wr_complete(ex), 0);
	lab_expect_text(to, "data");
	for (int i = 0; i < 2; i++)
		assert_int_equal(lab_complete(from->send_cq, IBV_WC_SUCCESS).wr_id, 7);
	start_list(ex, ah, qpn);
	lab_to(from->qp, IBV_QPS_ERR);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(lab_complete(from->send_cq, IBV_WC_WR_FLUSH_ERR).wr_id, 7);
	start_list(ex, ah, qpn);
	lab_to(from->qp, IBV_QPS_RESET);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	lab_quiet(from->send_cq);
	lab_to_init(from->qp, LAB_QKEY); /* nobody has kept the lock */
	atomic_store(&ends, true);
	pthread_join(other, NULL);
}

/* ---- extended CQs ---- */

static struct ibv_cq_ex *cq_ex(struct ibv_context *context, int cqe, uint64_t wc_flags,
                               uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = (uint32_t)cqe,
		                            .wc_flags = wc_flags,
		                            .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		                            .flags = flags };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &attr);

	assert_non_null(cq);
	return cq;
}

/* A queue pair of @e's that receives into slots of @e and completes on @cq. */
static struct ibv_qp *qp_on(struct lab_end *e, struct ibv_cq_ex *cq, uint32_t depth)
{
	struct ibv_qp_init_attr init = { .send_cq = ibv_cq_ex_to_cq(cq),
		                         .recv_cq = ibv_cq_ex_to_cq(cq),
		                         .qp_type = IBV_QPT_UD,
		                         .cap = { .max_send_wr = depth,
		                                  .max_recv_wr = depth,
		                                  .max_send_sge = 1,
		                                  .max_recv_sge = 1 } };
	struct ibv_qp *qp = lab_qp(e->pd, &init);

	lab_start(qp, LAB_QKEY);
	return qp;
}

static void post_slot(struct lab_end *e, struct ibv_qp *qp, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)e->slot, bytes, e->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void check_times(struct ibv_cq_ex *cq, const uint64_t before[2], const uint64_t after[2])
{
	uint64_t raw = ibv_wc_read_completion_ts(cq);

	assert_in_range(raw, before[0], after[0]);
	assert_in_range(ibv_wc_read_completion_wallclock_ns(cq), before[1] - 1000000,
	                after[1] + 1000000);
	assert_int_equal(ibv_wc_read_completion_ts(cq), raw);
}

/* Both messages have arrived before the first poll: their times are those of their arrivals. */
LAB_CASE(a_timestamp_is_that_of_the_arrival)
{
	struct lab_end *e = lab_end(1), *from = lab_end(2);
	struct ibv_cq_ex *cq = cq_ex(e->context, 16,
	                             IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
	                                     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	                             0);
	struct ibv_qp *qp = qp_on(e, cq, 8);
	struct ibv_ah *ah = lab_ah_to(from, e);
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t time[3][2];

	post_slot(e, qp, LAB_SLOT);
	post_slot(e, qp, LAB_SLOT);
	for (int i = 0; i < 3; i++) {
		time[i][0] = now_ns(CLOCK_MONOTONIC);
		time[i][1] = now_ns(CLOCK_REALTIME);
		if (i < 2) /* a message that lies in the arrival, one that does not */
			lab_send(from, ah, qp->qp_num, NULL, i ? 1000 : 8);
	}
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	check_times(cq, time[0], time[1]);
	assert_int_equal(ibv_next_poll(cq), 0);
	check_times(cq, time[1], time[2]);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	lab_forget(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

LAB_CASE(a_cq_that_ignores_overrun_goes_on)
{
	struct lab_end *e = lab_end(1);
	struct ibv_cq_ex *cq =
	        cq_ex(e->context, 4, IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	struct ibv_qp *qp = qp_on(e, cq, 32);
	struct ibv_ah *ah = lab_ah_to(e, e);
	struct ibv_wc wc[32];
	int cqe = ibv_cq_ex_to_cq(cq)->cqe, n;

	for (int i = 0; i < 20; i++) {
		struct lab_request r;
		struct ibv_send_wr *bad;

		lab_request(e, &r, ah, 0xABCDE, "x", 1);
		r.wr.wr_id = (uint64_t)i;
		assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
	}
	n = ibv_poll_cq(ibv_cq_ex_to_cq(cq), 32, wc);
	assert_int_equal(n, cqe);
	assert_int_equal(wc[n - 1].wr_id, 19); /* the oldest are lost */
	lab_forget(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

struct poller {
	pthread_t thread;
	struct ibv_cq_ex *cq;
	_Atomic unsigned *left;
	_Atomic unsigned char *seen;
};

static void *poll_all(void *arg)
{
	struct poller *p = arg;
	struct ibv_poll_cq_attr attr = { 0 };
	struct base_pause pause = { 0 };

	while (atomic_load(p->left)) {
		if (ibv_start_poll(p->cq, &attr)) {
			base_pause(&pause);
			continue;
		}
		pause.looks = 0;
		do {
			uint64_t id = p->cq->wr_id;

			/* another thread's poll between the two would show another one */
			if (ibv_wc_read_opcode(p->cq) == IBV_WC_SEND && id == p->cq->wr_id)
				atomic_fetch_add(&p->seen[id], 1);
			atomic_fetch_sub(p->left, 1);
		} while (!ibv_next_poll(p->cq));
		ibv_end_poll(p->cq);
	}
	return NULL;
}

LAB_CASE(two_threads_may_poll_one_extended_cq)
{
	static _Atomic unsigned char seen[THREAD_SENDS];
	_Atomic unsigned left = THREAD_SENDS;
	struct lab_end *e = lab_end(1);
	struct ibv_cq_ex *cq = cq_ex(e->context, 64, IBV_WC_STANDARD_FLAGS, 0);
	struct ibv_qp *qp = qp_on(e, cq, 32);
	struct ibv_ah *ah = lab_ah_to(e, e);
	struct poller p[2];

	for (int i = 0; i < 2; i++) {
		p[i] = (struct poller){ .cq = cq, .left = &left, .seen = seen };
		assert_int_equal(pthread_create(&p[i].thread, NULL, poll_all, &p[i]), 0);
	}
	for (unsigned i = 0; i < THREAD_SENDS;) {
		struct lab_request r;
		struct ibv_send_wr *bad;

		lab_request(e, &r, ah, 0xABCDE, "x", 1);
		r.wr.wr_id = i;
		i += !ibv_post_send(qp, &r.wr, &bad);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(p[i].thread, NULL);
	for (unsigned i = 0; i < THREAD_SENDS; i++)
		assert_int_equal(seen[i], 1);
	lab_forget(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* ---- receives that fail ---- */

static bool has_event(struct lab_end *e)
{
	struct pollfd p = { .fd = e->channel->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* A receiver whose CQ has a channel, and which has posted a receive with room for @bytes. */
static struct lab_end *receiver(uint32_t bytes)
{
	struct lab_end *e = lab_end_with(&(struct lab_options){ .host = 1, .channel = true });

	post_slot(e, e->qp, bytes);
	return e;
}

LAB_CASE(solicited_only_fires_for_a_message_that_fails_its_receive)
{
	struct lab_end *from = lab_end(2), *e = receiver(LAB_GRH + 10);
	struct ibv_ah *ah = lab_ah_to(from, e);

	assert_int_equal(ibv_req_notify_cq(e->cq, 1), 0);
	lab_send(from, ah, e->qp->qp_num, NULL, 10); /* fits */
	assert_false(has_event(e));
	post_slot(e, e->qp, LAB_GRH + 10);
	lab_send(from, ah, e->qp->qp_num, NULL, 11);
	assert_true(has_event(e));
}

LAB_CASE(a_receive_posted_after_arming_counts_too)
{
	struct lab_end *from = lab_end(2), *e = receiver(LAB_SLOT);
	struct ibv_ah *ah = lab_ah_to(from, e);

	assert_int_equal(ibv_req_notify_cq(e->cq, 1), 0);
	lab_send(from, ah, e->qp->qp_num, NULL, 1000);
	assert_false(has_event(e));
	post_slot(e, e->qp, LAB_GRH + 10);
	lab_send(from, ah, e->qp->qp_num, NULL, 1000);
	assert_true(has_event(e));
}

/* Wherever a posted receive lies, an ordinary message that fits does not fire. */
LAB_CASE(solicited_only_ignores_what_fits_into_any_region)
{
	struct lab_end *from = lab_end(2), *e = receiver(LAB_SLOT);
	struct ibv_ah *ah = lab_ah_to(from, e);
	struct ibv_mr *null = ibv_alloc_null_mr(e->pd);
	struct ibv_mr *on_demand =
	        ibv_reg_mr(e->pd, e->slot, LAB_SLOT, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	const struct ibv_sge sge[][2] = {
		{ { .length = LAB_SLOT, .lkey = null->lkey } },
		{ { 0 }, { .addr = (uintptr_t)e->slot, .length = 1000, .lkey = e->mr->lkey } },
		{ { .addr = (uintptr_t)e->slot, .length = 1000, .lkey = e->mr->lkey }, { 0 } },
		{ { .addr = (uintptr_t)e->slot, .length = 1000, .lkey = on_demand->lkey } },
	};

	lab_send(from, ah, e->qp->qp_num, NULL, 10);
	lab_complete(e->cq, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < LAB_ARRAY(sge); i++) {
		struct ibv_recv_wr wr = { .sg_list = (struct ibv_sge *)sge[i], .num_sge = 2 }, *bad;

		assert_int_equal(ibv_req_notify_cq(e->cq, 1), 0);
		assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
		lab_send(from, ah, e->qp->qp_num, NULL, 900);
		assert_false(has_event(e));
		lab_complete(e->cq, IBV_WC_SUCCESS);
	}
	assert_int_equal(ibv_dereg_mr(on_demand), 0);
	assert_int_equal(ibv_dereg_mr(null), 0);
}

LAB_CASE(nothing_succeeds_behind_a_receive_that_failed)
{
	struct lab_end *from = lab_end(2), *e = lab_end(1);
	struct ibv_ah *ah = lab_ah_to(from, e);

	post_slot(e, e->qp, LAB_GRH + 10);
	post_slot(e, e->qp, LAB_SLOT);
	post_slot(e, e->qp, LAB_SLOT);
	lab_send(from, ah, e->qp->qp_num, NULL, 11);
	lab_send(from, ah, e->qp->qp_num, NULL, 11);
	lab_complete(e->cq, IBV_WC_LOC_LEN_ERR);
	lab_complete(e->cq, IBV_WC_WR_FLUSH_ERR);
	lab_complete(e->cq, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(lab_state(e->qp), IBV_QPS_ERR);
	lab_quiet(e->cq);
}
