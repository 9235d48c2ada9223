/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues and channels: ibv_create_cq(3), ibv_create_cq_ex(3),
 * ibv_resize_cq(3), ibv_poll_cq(3), ibv_req_notify_cq(3), ibv_get_cq_event(3).
 *
 * umbel: --set exact_sizes=1
 * Nothing leaks.
 */
#include "lab.h"

static void expect_refused(struct ibv_context *context, int cqe, int vector)
{
	errno = 0;
	assert_null(ibv_create_cq(context, cqe, NULL, NULL, vector));
	assert_int_equal(errno, EINVAL);
}

static int max_cqe(struct ibv_context *context)
{
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(context, &attr), 0);
	return attr.max_cqe;
}

/* A receiver whose CQ, of @cqe entries, has a channel; and its sender. */
static struct lab_end *receiver(int cqe)
{
	return lab_end_with(&(struct lab_options){ .host = 2, .channel = true, .cqe = cqe });
}

/* @from sends one byte to @to, by request @flags. */
static void send_byte(struct lab_end *from, struct lab_end *to, unsigned flags)
{
	struct lab_request r;

	lab_request(from, &r, lab_ah_to(from, to), to->qp->qp_num, "x", 1);
	r.wr.send_flags |= flags;
	lab_send_request(from, &r);
}

static void send_bytes(struct lab_end *from, struct lab_end *to, unsigned n)
{
	while (n--)
		send_byte(from, to, 0);
}

static void receive_all(struct lab_end *e, unsigned n)
{
	while (n--)
		lab_receive(e);
}

static bool has_event(struct ibv_comp_channel *channel)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Takes the channel's next event and acknowledges it. */
static void get_event(struct ibv_comp_channel *channel, struct ibv_cq *expected)
{
	struct ibv_cq *cq;
	void *context;

	lab_await(channel->fd);
	assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	assert_ptr_equal(cq, expected);
}

/* ---- life ---- */

LAB_CASE(a_cq_has_at_least_the_size_asked_for)
{
	struct ibv_context *context = lab_open(1);
	static const int sizes[] = { 1, 2, 3, 100, 65536 };

	for (size_t i = 0; i < LAB_ARRAY(sizes); i++)
		assert_true(lab_cq(context, sizes[i], NULL)->cqe >= sizes[i]);
}

LAB_CASE(a_cq_carries_its_context)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_cq *cq = ibv_create_cq(context, 1, &context, NULL, 0);

	assert_non_null(cq);
	assert_ptr_equal(cq->cq_context, &context);
	assert_ptr_equal(cq->context, context);
	assert_null(cq->channel);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

LAB_CASE(a_cq_without_entries_is_refused)
{
	struct ibv_context *context = lab_open(1);

	expect_refused(context, 0, 0);
	expect_refused(context, -1, 0);
}

LAB_CASE(a_cq_larger_than_the_limit_is_refused)
{
	struct ibv_context *context = lab_open(1);

	expect_refused(context, max_cqe(context) + 1, 0);
	expect_refused(context, INT32_MAX, 0);
}

LAB_CASE(a_completion_vector_that_is_not_there_is_refused)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, context->num_comp_vectors - 1);

	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	expect_refused(context, 1, context->num_comp_vectors);
	expect_refused(context, 1, -1);
}

LAB_CASE(a_cq_in_use_cannot_be_destroyed)
{
	struct lab_end *e = lab_end(1);

	assert_int_equal(ibv_destroy_cq(e->cq), EBUSY);
	assert_int_equal(ibv_destroy_cq(e->send_cq), EBUSY);
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	lab_forget(e->qp);
	assert_int_equal(ibv_destroy_cq(e->cq), 0);
	lab_forget(e->cq);
}

/* ---- resize ---- */

LAB_CASE(a_cq_grows_and_keeps_what_waits)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_send_wr *bad;
	struct lab_request r;
	struct ibv_wc wc[8];

	lab_post(b, 8);
	for (uint64_t i = 0; i < 8; i++) {
		lab_request(a, &r, lab_ah_to(a, b), b->qp->qp_num, "x", 1);
		r.wr.wr_id = i;
		assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), 0);
	}
	assert_int_equal(ibv_resize_cq(a->send_cq, 5000), 0);
	assert_true(a->send_cq->cqe >= 5000);
	assert_int_equal(ibv_resize_cq(b->cq, 5000), 0);
	lab_poll(a->send_cq, 8, wc);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(wc[i].wr_id, i);
	lab_poll(b->cq, 8, wc);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(wc[i].wr_id, i);
}

LAB_CASE(a_cq_shrinks_to_what_waits_and_not_below)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_send_wr *bad;
	struct lab_request r;
	struct ibv_wc wc[4];

	lab_post(b, 4);
	lab_request(a, &r, lab_ah_to(a, b), b->qp->qp_num, "x", 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), 0);
	assert_int_equal(ibv_resize_cq(a->send_cq, 3), EINVAL);
	assert_int_equal(ibv_resize_cq(b->cq, 3), EINVAL);
	assert_int_equal(ibv_resize_cq(a->send_cq, 4), 0);
	assert_int_equal(ibv_resize_cq(b->cq, 4), 0);
	lab_poll(a->send_cq, 4, wc);
	lab_poll(b->cq, 4, wc);
}

LAB_CASE(a_refused_size_leaves_the_cq_as_it_was)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_cq *cq = lab_cq(context, 10, NULL);
	int before = cq->cqe;

	assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, -1), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, max_cqe(context) + 1), EINVAL);
	assert_int_equal(cq->cqe, before);
}

/* ---- poll ---- */

LAB_CASE(polling_an_empty_cq_finds_none)
{
	lab_quiet(lab_cq(lab_open(1), 1, NULL));
}

LAB_CASE(polling_takes_no_more_than_asked_for)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_wc wc[8] = { 0 };

	lab_post(b, 5);
	send_bytes(a, b, 5);
	assert_int_equal(ibv_poll_cq(b->cq, 0, wc), 0);
	assert_int_equal(ibv_poll_cq(b->cq, 2, wc), 2);
	assert_int_equal(ibv_poll_cq(b->cq, 8, wc + 2), 3);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(wc[i].wr_id, i);
	lab_quiet(b->cq);
}

LAB_CASE(completions_of_a_queue_come_in_its_order)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_send_wr *bad;
	struct lab_request r;
	struct ibv_wc wc[64];

	lab_post(b, 64);
	lab_request(a, &r, lab_ah_to(a, b), b->qp->qp_num, NULL, 8);
	for (uint64_t i = 0; i < 64; i++) {
		memcpy(a->out, &i, sizeof(i));
		r.wr.wr_id = i;
		assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), 0);
	}
	lab_poll(a->send_cq, 64, wc);
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(wc[i].wr_id, i);
	for (uint64_t i = 0; i < 64; i++)
		lab_expect(b, &i, sizeof(i));
}

/* ---- overrun ---- */

static void expect_cq_error(struct ibv_context *context, struct ibv_cq *cq)
{
	assert_ptr_equal(lab_async_event(context, IBV_EVENT_CQ_ERR).element.cq, cq);
}

static void overrun_sends(struct lab_end *e)
{
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_request(e, &r, lab_ah_to(e, e), e->qp->qp_num, "x", 1);
	for (int i = 0; i <= e->send_cq->cqe; i++)
		assert_int_equal(ibv_post_send(e->qp, &r.wr, &bad), 0);
}

LAB_CASE(too_many_sends_unpolled_kill_the_cq)
{
	struct lab_end *e = lab_end_with(&(struct lab_options){ .cqe = 4 });
	struct ibv_wc wc;

	overrun_sends(e);
	expect_cq_error(e->context, e->send_cq);
	assert_true(ibv_poll_cq(e->send_cq, 1, &wc) < 0);
}

LAB_CASE(a_full_cq_lives_as_long_as_it_is_not_overrun)
{
	struct lab_end *e = lab_end_with(&(struct lab_options){ .cqe = 4 });
	struct ibv_send_wr *bad;
	struct lab_request r;
	struct ibv_wc wc[4];

	lab_request(e, &r, lab_ah_to(e, e), e->qp->qp_num, "x", 1);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++)
			assert_int_equal(ibv_post_send(e->qp, &r.wr, &bad), 0);
		lab_poll(e->send_cq, 4, wc);
	}
}

LAB_CASE(too_many_messages_unpolled_kill_the_cq)
{
	struct lab_end *a = lab_end(1),
	               *b = lab_end_with(&(struct lab_options){ .host = 2, .cqe = 4 });
	struct ibv_wc wc;

	lab_post(b, 5);
	send_bytes(a, b, 5);
	expect_cq_error(b->context, b->cq);
	assert_true(ibv_poll_cq(b->cq, 1, &wc) < 0);
}

LAB_CASE(messages_that_are_polled_in_time_never_overrun)
{
	struct lab_end *a = lab_end(1),
	               *b = lab_end_with(&(struct lab_options){ .host = 2, .cqe = 4 });

	for (int round = 0; round < 20; round++) {
		lab_post(b, 4);
		send_bytes(a, b, 4);
		receive_all(b, 4);
	}
}

/* Messages that a reset throws away no longer take room in the CQ. */
LAB_CASE(messages_forgotten_by_a_reset_do_not_overrun_later)
{
	struct lab_end *a = lab_end(1),
	               *b = lab_end_with(&(struct lab_options){ .host = 2, .cqe = 4 });

	for (int round = 0; round < 5; round++) {
		lab_post(b, 3);
		send_bytes(a, b, 3);
		lab_to(b->qp, IBV_QPS_RESET);
		lab_start(b->qp, LAB_QKEY);
	}
	lab_post(b, 4);
	send_bytes(a, b, 4);
	receive_all(b, 4);
}

LAB_CASE(messages_of_a_destroyed_qp_do_not_overrun_later)
{
	struct lab_end *a = lab_end(1),
	               *b = lab_end_with(&(struct lab_options){ .host = 2, .cqe = 4 });

	for (int round = 0; round < 5; round++) {
		struct lab_end *c = lab_end_with(&(struct lab_options){ .neighbour = b });

		lab_post(c, 3);
		send_bytes(a, c, 3);
		assert_int_equal(ibv_destroy_qp(c->qp), 0);
		lab_forget(c->qp);
	}
	lab_post(b, 4);
	send_bytes(a, b, 4);
	receive_all(b, 4);
}

/* Flushed receives are no arrivals: they must not hide the overrun of another queue. */
LAB_CASE(flushed_receives_do_not_hide_an_overrun)
{
	struct lab_options o = { .host = 2, .cqe = 4 };
	struct lab_end *a = lab_end(1), *b = lab_end_with(&o);
	struct lab_end *c = lab_end_with(&(struct lab_options){ .neighbour = b });
	struct ibv_wc wc[4];

	lab_post(b, 4);
	lab_to(b->qp, IBV_QPS_ERR);
	lab_poll(b->cq, 4, wc);
	lab_post(c, 5);
	send_bytes(a, c, 5);
	expect_cq_error(b->context, b->cq);
}

LAB_CASE(too_many_flushed_receives_kill_the_cq)
{
	struct lab_options o = { .host = 2, .cqe = 4 };
	struct lab_end *a = lab_end(1), *b = lab_end_with(&o), *c = lab_end_with(&o);
	struct ibv_wc wc;

	lab_post(b, 5);
	lab_to(b->qp, IBV_QPS_ERR);
	expect_cq_error(b->context, b->cq);
	assert_true(ibv_poll_cq(b->cq, 1, &wc) < 0);
	lab_post(c, 5);
	send_bytes(a, c, 2);
	lab_receive(c);
	lab_to(c->qp, IBV_QPS_ERR); /* one message waits, and three receives */
	lab_set_nonblocking(c->context->async_fd);
	assert_int_equal(ibv_get_async_event(c->context, &(struct ibv_async_event){ 0 }), -1);
	lab_post(c, 1);
	expect_cq_error(c->context, c->cq);
}

LAB_CASE(flushed_receives_that_fit_do_not)
{
	struct lab_options o = { .host = 2, .cqe = 4 };
	struct lab_end *a = lab_end(1), *b = lab_end_with(&o);
	struct ibv_wc wc[4];

	for (int round = 0; round < 5; round++) {
		lab_post(b, 4);
		send_byte(a, b, 0);
		send_byte(a, b, 0);
		lab_to(b->qp, IBV_QPS_ERR);
		lab_to(b->qp, IBV_QPS_ERR);
		if (round % 2)
			lab_poll(b->cq, 4, wc);
		lab_to(b->qp, IBV_QPS_RESET);
		lab_start(b->qp, LAB_QKEY);
	}
	lab_post(b, 4);
	send_bytes(a, b, 4);
	receive_all(b, 4);
	lab_post(b, 4);
	lab_to(b->qp, IBV_QPS_ERR);
	for (int i = 0; i < 20; i++) {
		lab_poll(b->cq, 1, wc);
		lab_post(b, 1);
	}
}

LAB_CASE(an_overrun_is_reported_once)
{
	struct lab_end *e = lab_end_with(&(struct lab_options){ .cqe = 2 });
	struct ibv_async_event event;

	overrun_sends(e);
	overrun_sends(e);
	lab_set_nonblocking(e->context->async_fd);
	expect_cq_error(e->context, e->send_cq);
	assert_int_equal(ibv_get_async_event(e->context, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

LAB_CASE(a_dead_cq_can_be_destroyed)
{
	struct lab_end *e = lab_end_with(&(struct lab_options){ .cqe = 2 });

	overrun_sends(e);
	expect_cq_error(e->context, e->send_cq);
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	lab_forget(e->qp);
	assert_int_equal(ibv_destroy_cq(e->send_cq), 0);
	lab_forget(e->send_cq);
}

/* ---- the extended CQ ---- */

static void undo_cq(void *cq)
{
	ibv_destroy_cq(cq);
}

static struct ibv_cq_ex *extended(struct ibv_context *context, uint32_t cqe)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe, .wc_flags = IBV_CREATE_CQ_SUP_WC_FLAGS /* all that there are */
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &attr);

	assert_non_null(cq);
	lab_undo(undo_cq, cq);
	return cq;
}

/* A QP on @host that completes in @cq, both ways. */
static struct ibv_qp *qp_on(struct ibv_pd *pd, struct ibv_cq_ex *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct ibv_qp *qp = lab_qp(pd, &init);

	lab_start(qp, LAB_QKEY);
	return qp;
}

LAB_CASE(an_extended_cq_that_is_empty_says_enoent)
{
	struct ibv_cq_ex *cq = extended(lab_open(1), 4);

	assert_int_equal(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){ 0 }), ENOENT);
}

LAB_CASE(an_extended_cq_reads_the_fields_of_a_message)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_cq_ex *cq = extended(b->context, 16);
	struct ibv_qp *qp = qp_on(b->pd, cq);
	struct ibv_sge sge = { (uintptr_t)b->slot, LAB_SLOT, b->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 77, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_ah_attr attr = lab_attr_global(b);
	struct ibv_wc_tm_info tags = { .tag = 1 };
	struct lab_request r;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	attr.sl = 5;
	lab_request(a, &r, lab_ah(a->pd, &attr), qp->qp_num, "abc", 3);
	r.wr.opcode = IBV_WR_SEND_WITH_IMM;
	r.wr.imm_data = htobe32(0x01020304);
	lab_send_request(a, &r);
	assert_int_equal(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){ 0 }), 0);
	assert_int_equal(cq->status, IBV_WC_SUCCESS);
	assert_int_equal(cq->wr_id, 77);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(cq), LAB_GRH + 3);
	assert_int_equal(ibv_wc_read_imm_data(cq), htobe32(0x01020304));
	assert_int_equal(ibv_wc_read_qp_num(cq), qp->qp_num);
	assert_int_equal(ibv_wc_read_src_qp(cq), a->qp->qp_num);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_slid(cq), lab_attr_to(a).dlid);
	assert_int_equal(ibv_wc_read_sl(cq), 5);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 0);
	assert_int_equal(ibv_wc_read_vendor_err(cq), 0);
	assert_int_not_equal(ibv_wc_read_completion_ts(cq), 0);
	assert_int_equal(ibv_wc_read_cvlan(cq), 0);
	assert_int_equal(ibv_wc_read_flow_tag(cq), 0);
	ibv_wc_read_tm_info(cq, &tags);
	assert_int_equal(tags.tag, 0);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
}

LAB_CASE(an_extended_cq_takes_one_completion_after_the_other)
{
	struct lab_end *a = lab_end(1);
	struct ibv_cq_ex *cq = extended(a->context, 16);
	struct ibv_qp *qp = qp_on(a->pd, cq);
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_request(a, &r, lab_ah_to(a, a), a->qp->qp_num, "x", 1);
	for (r.wr.wr_id = 0; r.wr.wr_id < 3; r.wr.wr_id++)
		assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
	assert_int_equal(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){ 0 }), 0);
	assert_int_equal(cq->wr_id, 0);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 1);
	ibv_end_poll(cq);
	assert_int_equal(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){ 0 }), 0);
	assert_int_equal(cq->wr_id, 2);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
}

LAB_CASE(an_extended_cq_that_is_dead_says_so)
{
	struct lab_end *a = lab_end(1);
	struct ibv_cq_ex *cq = extended(a->context, 2);
	struct ibv_qp *qp = qp_on(a->pd, cq);
	struct ibv_send_wr *bad;
	struct lab_request r;
	int ret;

	lab_request(a, &r, lab_ah_to(a, a), a->qp->qp_num, "x", 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
	expect_cq_error(a->context, ibv_cq_ex_to_cq(cq));
	ret = ibv_start_poll(cq, &(struct ibv_poll_cq_attr){ 0 });
	assert_true(ret > 0 && ret != ENOENT);
}

LAB_CASE(an_unknown_poll_attribute_is_refused)
{
	struct ibv_cq_ex *cq = extended(lab_open(1), 4);

	assert_int_equal(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){ .comp_mask = 1 }), EINVAL);
}

LAB_CASE(an_extended_cq_that_cannot_be_is_refused)
{
	struct ibv_context *context = lab_open(1);
	struct {
		struct ibv_cq_init_attr_ex attr;
		int error;
	} bad[] = {
		{ { .cqe = 0 }, EINVAL },
		{ { .cqe = (uint32_t)max_cqe(context) + 1 }, EINVAL },
		{ { .cqe = UINT32_MAX }, EINVAL },
		{ { .cqe = 1, .comp_vector = (uint32_t)context->num_comp_vectors }, EINVAL },
		{ { .cqe = 1, .wc_flags = 1ull << 63 }, EOPNOTSUPP },
		{ { .cqe = 1, .comp_mask = 1u << 31 }, EOPNOTSUPP },
		{ { .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 1u << 31 },
		  EOPNOTSUPP },
	};

	for (size_t i = 0; i < LAB_ARRAY(bad); i++) {
		errno = 0;
		assert_null(ibv_create_cq_ex(context, &bad[i].attr));
		if (errno != bad[i].error)
			fail_msg("case %zu: %s", i, strerror(errno));
	}
}

/* ---- events ---- */

LAB_CASE(an_armed_cq_gives_one_event)
{
	struct lab_end *a = lab_end(1), *b = receiver(0);

	lab_post(b, 3);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	assert_false(has_event(b->channel));
	send_bytes(a, b, 3);
	assert_true(has_event(b->channel));
	get_event(b->channel, b->cq);
	assert_false(has_event(b->channel));
}

LAB_CASE(a_cq_that_is_not_armed_gives_none)
{
	struct lab_end *a = lab_end(1), *b = receiver(0);

	lab_post(b, 1);
	send_byte(a, b, 0);
	lab_receive(b);
	assert_false(has_event(b->channel));
}

LAB_CASE(armed_again_it_gives_the_next_event)
{
	struct lab_end *a = lab_end(1), *b = receiver(0);

	lab_post(b, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
		send_byte(a, b, 0);
		get_event(b->channel, b->cq);
		lab_receive(b);
		assert_false(has_event(b->channel));
	}
}

/* Only what completes after the request counts. */
/* A send, whose lkey is wrong by so much, gives an event; with @solicited_only a good one before it
 * gives none. */
static void expect_send_event(int solicited_only, uint32_t lkey_error)
{
	struct lab_end *a = lab_end(1);
	struct ibv_comp_channel *channel = lab_channel(a->context);
	struct ibv_cq *cq = lab_cq(a->context, 8, channel);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
		                         .send_cq = cq,
		                         .recv_cq = a->cq,
		                         .cap = { .max_send_wr = 8, .max_send_sge = 1 } };
	struct ibv_qp *qp = lab_qp(a->pd, &init);
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_start(qp, LAB_QKEY);
	assert_int_equal(ibv_req_notify_cq(cq, solicited_only), 0);
	lab_request(a, &r, lab_ah_to(a, a), a->qp->qp_num, "x", 1);
	if (solicited_only) {
		assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
		assert_false(has_event(channel));
	}
	r.sge.lkey += lkey_error;
	assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
	get_event(channel, cq);
}

LAB_CASE(a_send_completion_gives_an_event)
{
	expect_send_event(0, 0);
}

/* A send that succeeds is none that was solicited; one that fails counts as such. */
LAB_CASE(solicited_only_fires_on_a_failed_send_alone)
{
	expect_send_event(1, 1);
}

LAB_CASE(solicited_only_ignores_an_unsolicited_message)
{
	struct lab_end *a = lab_end(1), *b = receiver(0);

	lab_post(b, 2);
	assert_int_equal(ibv_req_notify_cq(b->cq, 1), 0);
	send_byte(a, b, 0);
	assert_false(has_event(b->channel));
	send_byte(a, b, IBV_SEND_SOLICITED);
	get_event(b->channel, b->cq);
}

LAB_CASE(solicited_only_fires_on_a_failed_completion)
{
	struct lab_end *b = receiver(0);

	lab_post(b, 1);
	assert_int_equal(ibv_req_notify_cq(b->cq, 1), 0);
	lab_to(b->qp, IBV_QPS_ERR);
	get_event(b->channel, b->cq);
	lab_complete(b->cq, IBV_WC_WR_FLUSH_ERR);
}

LAB_CASE(solicited_only_does_not_weaken_a_request_for_any)
{
	struct lab_end *a = lab_end(1), *b = receiver(0);

	lab_post(b, 1);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(b->cq, 1), 0);
	send_byte(a, b, 0);
	get_event(b->channel, b->cq);
}

LAB_CASE(a_request_for_any_widens_solicited_only)
{
	struct lab_end *a = lab_end(1), *b = receiver(0);

	lab_post(b, 1);
	assert_int_equal(ibv_req_notify_cq(b->cq, 1), 0);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	send_byte(a, b, 0);
	get_event(b->channel, b->cq);
}

LAB_CASE(cqs_of_a_channel_are_told_apart)
{
	static const int turns[] = { 0, 1, 1, 0, 0, 1, 0, 1 };
	struct lab_options o = { .host = 2, .channel = true };
	struct lab_end *a = lab_end(1), *b[2];

	b[0] = lab_end_with(&o);
	b[1] = lab_end_with(&(struct lab_options){ .neighbour = b[0] });
	/* the neighbour again, with a CQ of its own */
	assert_int_equal(ibv_destroy_qp(b[1]->qp), 0);
	lab_forget(b[1]->qp);
	b[1]->cq = lab_cq(b[0]->context, 16, b[0]->channel);
	b[1]->qp = lab_qp(b[0]->pd, &(struct ibv_qp_init_attr){
	                                    .qp_type = IBV_QPT_UD,
	                                    .send_cq = b[1]->send_cq,
	                                    .recv_cq = b[1]->cq,
	                                    .cap = { .max_recv_wr = 16, .max_recv_sge = 1 } });
	lab_start(b[1]->qp, LAB_QKEY);
	for (size_t i = 0; i < LAB_ARRAY(turns); i++) {
		struct lab_end *e = b[turns[i]];

		lab_post(e, 1);
		assert_int_equal(ibv_req_notify_cq(b[0]->cq, 0), 0);
		assert_int_equal(ibv_req_notify_cq(b[1]->cq, 0), 0);
		send_byte(a, e, 0);
		get_event(b[0]->channel, e->cq);
		lab_receive(e);
	}
}

LAB_CASE(an_event_carries_the_context_of_its_cq)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = lab_pd(context);
	struct ibv_comp_channel *channel = lab_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, &channel, channel, 0), *got;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq, .cap = { .max_recv_wr = 1 }
	};
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_qp *qp;
	void *its;

	assert_non_null(cq);
	lab_undo(undo_cq, cq);
	qp = lab_qp(pd, &init);
	lab_to_init(qp, 1);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	lab_to(qp, IBV_QPS_ERR);
	lab_await(channel->fd);
	assert_int_equal(ibv_get_cq_event(channel, &got, &its), 0);
	assert_ptr_equal(got, cq);
	assert_ptr_equal(its, &channel);
	ibv_ack_cq_events(got, 1);
}

LAB_CASE(a_nonblocking_channel_without_event_says_eagain)
{
	struct lab_end *b = receiver(0);
	struct ibv_cq *cq;
	void *context;

	lab_set_nonblocking(b->channel->fd);
	assert_int_equal(ibv_get_cq_event(b->channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
}

LAB_CASE(a_nonblocking_channel_gives_the_event_that_is_there)
{
	struct lab_end *a = lab_end(1), *b = receiver(0);

	lab_set_nonblocking(b->channel->fd);
	lab_post(b, 1);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	send_byte(a, b, 0);
	get_event(b->channel, b->cq);
}

struct waiter {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	_Atomic pid_t tid;
	int ret;
};

static void *wait_for_event(void *arg)
{
	struct waiter *w = arg;
	void *context;

	atomic_store(&w->tid, gettid());
	w->ret = ibv_get_cq_event(w->channel, &w->cq, &context);
	if (!w->ret)
		ibv_ack_cq_events(w->cq, 1);
	return NULL;
}

LAB_CASE(a_blocked_thread_is_woken)
{
	struct lab_end *a = lab_end(1), *b = receiver(0);
	struct waiter w = { .channel = b->channel };
	pthread_t thread;

	lab_post(b, 1);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_event, &w), 0);
	lab_await_sleep(&w.tid);
	send_byte(a, b, 0);
	pthread_join(thread, NULL);
	assert_int_equal(w.ret, 0);
	assert_ptr_equal(w.cq, b->cq);
	lab_receive(b);
}

LAB_CASE(a_channel_in_use_cannot_be_destroyed)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq;

	assert_non_null(channel);
	assert_non_null(cq = ibv_create_cq(context, 1, NULL, channel, 0));
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* The event of a CQ that has gone is not delivered to anybody. */
LAB_CASE(a_destroyed_cq_takes_its_events_along)
{
	struct lab_end *a = lab_end(1), *b = receiver(0);
	struct ibv_cq *cq;
	void *context;

	lab_post(b, 1);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	send_byte(a, b, 0);
	assert_int_equal(ibv_destroy_qp(b->qp), 0);
	lab_forget(b->qp);
	assert_int_equal(ibv_destroy_cq(b->cq), 0);
	lab_forget(b->cq);
	lab_set_nonblocking(b->channel->fd);
	assert_int_equal(ibv_get_cq_event(b->channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
}

struct destroyer {
	struct ibv_cq *cq;
	_Atomic bool acked;
	bool was_acked;
	int ret;
};

static void *destroy_cq(void *arg)
{
	struct destroyer *d = arg;

	d->ret = ibv_destroy_cq(d->cq);
	d->was_acked = atomic_load(&d->acked);
	return NULL;
}

LAB_CASE(destroying_waits_until_events_are_acknowledged)
{
	struct lab_end *a = lab_end(1), *b = receiver(0);
	struct destroyer d = { .cq = b->cq };
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;

	lab_post(b, 1);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	send_byte(a, b, 0);
	lab_await(b->channel->fd);
	assert_int_equal(ibv_get_cq_event(b->channel, &cq, &context), 0);
	assert_int_equal(ibv_destroy_qp(b->qp), 0);
	lab_forget(b->qp);
	lab_forget(b->cq);
	assert_int_equal(pthread_create(&thread, NULL, destroy_cq, &d), 0);
	atomic_store(&d.acked, true);
	ibv_ack_cq_events(cq, 1);
	pthread_join(thread, NULL);
	assert_int_equal(d.ret, 0);
	assert_true(d.was_acked);
}

#define SHARERS 40

/* A program goes to sleep on a poll that finds nothing: so one poll must find a message of any
 * queue. */
LAB_CASE(one_poll_finds_a_message_of_any_queue)
{
	struct lab_end *from = lab_end(2), *to[SHARERS];
	struct ibv_ah *ah;
	struct ibv_wc wc;

	to[0] = lab_end_with(&(struct lab_options){ .cqe = 4096 });
	for (int i = 1; i < SHARERS; i++)
		to[i] = lab_end_with(&(struct lab_options){ .neighbour = to[0] });
	ah = lab_ah_to(from, to[0]);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < SHARERS; i++) {
			int n = (i * 7 + round) % SHARERS; /* not in the order of their making */

			lab_post(to[n], 1);
			lab_send_text(from, ah, to[n]->qp->qp_num, "here");
			assert_int_equal(ibv_poll_cq(to[0]->cq, 1, &wc), 1);
			assert_int_equal(wc.qp_num, to[n]->qp->qp_num);
			assert_int_equal(ibv_poll_cq(to[0]->cq, 1, &wc), 0);
		}
	}
}
