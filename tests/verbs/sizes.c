/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How large queues are, as a program is told and as it finds. Tests of exact sizes have the
 * setting exact_sizes.
 *
 * umbel: --set max_qp_wr=200 --set max_cqe=1000
 */
#include "lab.h"

static unsigned rounded(unsigned asked, unsigned least, unsigned most)
{
	unsigned size = least;

	while (size < asked)
		size *= 2;
	return size < most ? size : most;
}

LAB_CASE(a_completion_queue_says_how_large_it_is)
{
	static const int sizes[] = { 1, 2, 15, 16, 17, 100, 128, 129, 512, 513, 1000 };
	struct ibv_context *context = lab_open(1);

	for (size_t i = 0; i < LAB_ARRAY(sizes); i++) {
		struct ibv_cq *cq = lab_cq(context, sizes[i], NULL);
		struct ibv_cq *other = lab_cq(context, 1, NULL);

		assert_int_equal(cq->cqe, rounded((unsigned)sizes[i], 16, 1000));
		assert_int_equal(ibv_resize_cq(other, sizes[i]), 0);
		assert_int_equal(other->cqe, cq->cqe);
	}
	assert_null(ibv_create_cq(context, 1001, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
}

/* Where hardware refuses to shrink one, programs expect it, though the smallest here is larger. */
LAB_CASE(a_completion_queue_does_not_shrink_below_what_waits)
{
	struct lab_end *a = lab_end(1);
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_request(a, &r, lab_ah_to(a, a), a->qp->qp_num, "x", 1);
	for (int i = 0; i < 5; i++)
		assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), 0);
	assert_int_equal(ibv_resize_cq(a->send_cq, 4), EINVAL);
	assert_int_equal(ibv_resize_cq(a->send_cq, 5), 0); /* rounded up to 8 at least */
	for (int i = 0; i < 5; i++)
		lab_complete(a->send_cq, IBV_WC_SUCCESS);
	assert_int_equal(ibv_resize_cq(a->send_cq, 1), 0);
}

/* The queue takes as many as it says, and holds their completions. */
LAB_CASE(a_queue_pair_takes_as_many_as_it_says)
{
	static const unsigned sizes[] = { 1, 3, 10, 64, 65, 129 };
	struct lab_end *a = lab_end_with(&(struct lab_options){ .cqe = 256 });

	for (size_t i = 0; i < LAB_ARRAY(sizes); i++) {
		struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
			                         .send_cq = a->send_cq,
			                         .recv_cq = a->cq,
			                         .sq_sig_all = 1,
			                         .cap = { .max_send_wr = sizes[i],
			                                  .max_recv_wr = sizes[i],
			                                  .max_send_sge = 1,
			                                  .max_recv_sge = 1 } };
		struct ibv_qp *qp = ibv_create_qp(a->pd, &init);
		struct ibv_recv_wr receive = { 0 }, *bad_receive;
		struct ibv_qp_init_attr asked;
		struct ibv_qp_attr attr;
		struct ibv_send_wr *bad;
		struct lab_request r;
		unsigned n = rounded(sizes[i], 1, 200);

		assert_non_null(qp);
		assert_int_equal(init.cap.max_send_wr, n);
		assert_int_equal(init.cap.max_recv_wr, n);
		assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &asked), 0);
		assert_int_equal(attr.cap.max_send_wr, n);
		lab_start(qp, LAB_QKEY);
		lab_request(a, &r, lab_ah_to(a, a), a->qp->qp_num, "x", 1);
		for (unsigned k = 0; k < n; k++) {
			assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
			assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), 0);
		}
		assert_int_equal(ibv_post_send(qp, &r.wr, &bad), ENOMEM);
		assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), ENOMEM);
		for (unsigned k = 0; k < n; k++)
			lab_complete(a->send_cq, IBV_WC_SUCCESS);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

LAB_CASE(without_requests_a_queue_has_none)
{
	struct lab_end *a = lab_end(1);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		                         .send_cq = a->send_cq,
		                         .recv_cq = a->cq,
		                         .cap = { .max_send_wr = 5, .max_send_sge = 1 } };
	struct ibv_qp *qp = ibv_create_qp(a->pd, &init);

	assert_non_null(qp);
	assert_int_equal(init.cap.max_send_wr, 8);
	assert_int_equal(init.cap.max_recv_wr, 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

LAB_CASE(a_shared_queue_takes_as_many_as_it_says)
{
	struct lab_end *a = lab_end(1);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 9, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(a->pd, &init);
	struct ibv_srq_attr attr = { .max_wr = 33 };
	struct ibv_recv_wr wr = { 0 }, *bad;

	assert_non_null(srq);
	assert_int_equal(init.attr.max_wr, 16);
	for (int i = 0; i < 16; i++)
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 64);
	for (int i = 16; i < 64; i++)
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

LAB_CASE(an_overrun_queue_is_in_error)
{
	struct lab_end *a = lab_end_with(&(struct lab_options){ .cqe = 2 });
	struct ibv_async_event event;
	struct ibv_send_wr *bad;
	struct lab_request r;
	struct ibv_wc wc;

	lab_request(a, &r, lab_ah_to(a, a), a->qp->qp_num, "x", 1);
	for (int i = 0; i < 17; i++)
		assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), 0);
	event = lab_async_event(a->context, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, a->send_cq);
	assert_true(ibv_poll_cq(a->send_cq, 1, &wc) < 0);
}
