/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Moderation of completion queues (ibv_modify_cq(3)): an event for several completions, or when
 * time has passed since the first of them.
 */
#include "lab.h"
#include "base/util.h"

#define FOREVER_US UINT16_MAX /* as long as a period can be; no test waits for that */

static struct lab_end *receiver(uint16_t count, uint16_t us)
{
	struct lab_end *b = lab_end_with(&(struct lab_options){ .host = 2, .channel = true });
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
		                           .moderate = { count, us } };

	assert_int_equal(ibv_modify_cq(b->cq, &attr), 0);
	lab_post(b, 8);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	return b;
}

static void send_bytes(struct lab_end *from, struct lab_end *to, unsigned n)
{
	struct lab_request r;

	while (n--) {
		lab_request(from, &r, lab_ah_to(from, to), to->qp->qp_num, "x", 1);
		lab_send_request(from, &r);
	}
}

static bool has_event(const struct lab_end *e)
{
	struct pollfd p = { .fd = e->channel->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void get_event(struct lab_end *e)
{
	struct ibv_cq *cq;
	void *context;

	lab_await(e->channel->fd);
	assert_int_equal(ibv_get_cq_event(e->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	assert_ptr_equal(cq, e->cq);
}

LAB_CASE(the_event_comes_with_the_last_of_the_count)
{
	struct lab_end *a = lab_end(1), *b = receiver(3, 0);

	send_bytes(a, b, 2);
	assert_false(has_event(b));
	send_bytes(a, b, 1);
	get_event(b);
	assert_false(has_event(b));
}

LAB_CASE(each_time_it_is_armed_it_counts_anew)
{
	struct lab_end *a = lab_end(1), *b = receiver(2, 0);

	send_bytes(a, b, 3);
	get_event(b);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	send_bytes(a, b, 1);
	assert_false(has_event(b));
	send_bytes(a, b, 1);
	get_event(b);
}

LAB_CASE(arming_what_is_armed_forgets_nothing)
{
	struct lab_end *a = lab_end(1), *b = receiver(2, 0);

	send_bytes(a, b, 1);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	send_bytes(a, b, 1);
	get_event(b);
}

LAB_CASE(the_period_begins_with_the_first_completion)
{
	const uint16_t us = 30000;
	struct lab_end *a = lab_end(1), *b = receiver(8, us);
	uint64_t began;

	for (int i = 0; i < 3; i++) {
		began = base_now_ns() / 1000;
		send_bytes(a, b, 1);
		get_event(b);
		assert_true(base_now_ns() / 1000 - began >= us);
		assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	}
}

LAB_CASE(a_period_without_a_count_is_enough)
{
	struct lab_end *a = lab_end(1), *b = receiver(0, 1000);

	send_bytes(a, b, 4);
	get_event(b);
}

LAB_CASE(a_count_that_is_reached_ends_the_period)
{
	struct lab_end *a = lab_end(1), *b = receiver(2, FOREVER_US);

	send_bytes(a, b, 2);
	get_event(b);
	assert_false(has_event(b));
}

LAB_CASE(it_can_be_ended)
{
	struct lab_end *a = lab_end(1), *b = receiver(5, FOREVER_US);
	struct ibv_modify_cq_attr none = { .attr_mask = IBV_CQ_ATTR_MODERATE };

	assert_int_equal(ibv_modify_cq(b->cq, &none), 0);
	send_bytes(a, b, 1);
	get_event(b);
}

LAB_CASE(what_is_flushed_waits_for_nobody)
{
	struct lab_end *b = receiver(100, 0);

	lab_to(b->qp, IBV_QPS_ERR);
	get_event(b);
}

LAB_CASE(other_attributes_are_refused)
{
	struct lab_end *e = lab_end(1);
	struct ibv_modify_cq_attr attr = { .attr_mask = 0 };

	assert_int_equal(ibv_modify_cq(e->cq, &attr), EINVAL);
	attr.attr_mask = IBV_CQ_ATTR_RESERVED;
	assert_int_equal(ibv_modify_cq(e->cq, &attr), EINVAL);
	attr.attr_mask = IBV_CQ_ATTR_MODERATE | IBV_CQ_ATTR_RESERVED;
	assert_int_equal(ibv_modify_cq(e->cq, &attr), EINVAL);
}
