/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A message that its sender places, because it was not polled before the next RDMA request, cannot
 * be polled meanwhile. A program that has got the event, and found nothing, arms the completion
 * queue anew: then the message brings an event, though one has been told of it already.
 */
#include "peer_lab.h"

#define STRIDE 16 /* instructions: it is being placed for more */

static const struct lab_peer_options options = { .channel = true, .far = true };
static const struct lab_work message = { .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, 8, 0 } } };

static void arm(struct lab_peer *p)
{
	assert_int_equal(ibv_req_notify_cq(p->here->recv_cq, 0), 0);
}

static bool has_event(struct lab_peer *p)
{
	struct pollfd event = { .fd = p->here->channel->fd, .events = POLLIN };

	return poll(&event, 1, 0) == 1;
}

static void get_event(struct lab_peer *p)
{
	struct ibv_cq *cq;
	void *context;

	assert_true(has_event(p));
	assert_int_equal(ibv_get_cq_event(p->here->channel, &cq, &context), 0);
	assert_ptr_equal(cq, p->here->recv_cq);
	ibv_ack_cq_events(cq, 1);
}

/* A message comes, and the receiver polls once after so many instructions of the next request.
 * Returns how many there were; *@in_vain: it found nothing. */
static unsigned poll_within(struct lab_peer *p[2], unsigned steps, bool *in_vain)
{
	const struct lab_work write = { .opcode = IBV_WR_RDMA_WRITE,
		                        .n = 1,
		                        .piece = { { 0, 8, 0 } },
		                        .to = p[0],
		                        .remote = 256 };
	struct ibv_wc wc;

	lab_peer_receive(p[0], 1, 0, 64);
	arm(p[0]);
	lab_peer_do(p[1], &message, IBV_WC_SUCCESS);
	steps = lab_peer_post_steps(p[1], &write, steps);
	*in_vain = !lab_peer_try_received(p[0], &wc);
	lab_peer_post_end(p[1]);
	lab_peer_sent(p[1], IBV_WC_SUCCESS);
	get_event(p[0]);
	return steps;
}

LAB_CASE_ELSEWHERE(what_could_not_be_polled_brings_an_event)
{
	unsigned steps, n_in_vain = 0;
	bool in_vain;
	struct lab_peer **p = lab_peers(&options, state);

	steps = poll_within(p, UINT32_MAX, &in_vain);
	assert_false(in_vain);
	for (unsigned n = 0; n < steps; n += STRIDE) {
		poll_within(p, n, &in_vain);
		if (!in_vain && n_in_vain)
			break; /* it has been placed */
		if (!in_vain)
			continue;
		n_in_vain++;
		arm(p[0]);
		if (!has_event(p[0]))
			fail_msg("polled after %u instructions of %u: no event", n, steps);
		get_event(p[0]);
		lab_peer_received(p[0], IBV_WC_SUCCESS);
	}
	assert_true(n_in_vain);
}

/* A program that arms before it polls gets no second event. */
LAB_CASE_ELSEWHERE(what_was_not_polled_brings_none)
{
	struct lab_peer **p = lab_peers(&options, state);

	lab_peer_receive(p[0], 1, 0, 64);
	arm(p[0]);
	lab_peer_do(p[1], &message, IBV_WC_SUCCESS);
	get_event(p[0]);
	arm(p[0]);
	assert_false(has_event(p[0]));
	lab_peer_received(p[0], IBV_WC_SUCCESS);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
