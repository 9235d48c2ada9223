/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A completion queue that is armed while it holds completions, as the specification has it.
 *
 * umbel: --set arm_fires=0
 */
#include "lab.h"

static bool has_event(const struct lab_end *e)
{
	struct pollfd p = { .fd = e->channel->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

LAB_CASE(what_came_before_gives_no_event)
{
	struct lab_end *a = lab_end(1);
	struct lab_end *b = lab_end_with(&(struct lab_options){ .host = 2, .channel = true });
	struct lab_request r;
	struct ibv_cq *cq;
	void *context;

	lab_post(b, 2);
	lab_request(a, &r, lab_ah_to(a, b), b->qp->qp_num, "x", 1);
	lab_send_request(a, &r);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	assert_false(has_event(b));
	lab_send_request(a, &r);
	assert_true(has_event(b));
	assert_int_equal(ibv_get_cq_event(b->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
}
