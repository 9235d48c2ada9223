/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program whose request fails its peer's queue pair is killed after any instruction of that: if
 * the queue pair has failed, its program is woken, and hears why.
 */
#include "peer_lab.h"
#include "deadline.h"

#define DEATHS 16
/* All deaths take about so many instructions together: sanitizers have thirty times as many. */
#define INSTRUCTIONS 1000000

static const struct lab_peer_options options = {
	.channel = true, .timeout = 8, .retry_cnt = 1, .rnr_retry = 7
};

static void expect_told(struct lab_peer *p, unsigned steps)
{
	if (!deadline_allows(p->here->channel->fd))
		fail_msg("after %u instructions: nobody wakes it", steps);
	if (!deadline_allows(p->here->context->async_fd))
		fail_msg("after %u instructions: it does not hear why it has failed", steps);
	lab_peer_event(p, IBV_EVENT_QP_ACCESS_ERR);
}

/* Returns how many instructions there were, of at most so many; *@failed: its peer has. */
static unsigned die_after(unsigned steps, bool *failed)
{
	struct lab_work write = {
		.opcode = IBV_WR_RDMA_WRITE, .n = 1, .piece = { { 0, 8, 0 } }, .rkey_xor = 1
	};
	struct ibv_cq *cq;
	void *context;
	struct lab_peer **p = lab_peers(&options, (void *[]){ (void *)1 });

	write.to = p[0];
	assert_int_equal(ibv_req_notify_cq(p[0]->here->recv_cq, 0), 0);
	steps = lab_peer_post_and_die(p[1], &write, steps);
	*failed = lab_peer_state(p[0]) == IBV_QPS_ERR;
	if (*failed) {
		expect_told(p[0], steps);
		assert_int_equal(ibv_get_cq_event(p[0]->here->channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
	}
	lab_clean_up(NULL);
	return steps;
}

/* Behind this instruction, of @steps, the peer is about to fail. */
static unsigned before_it_fails(unsigned steps)
{
	unsigned below = 0, above = steps;
	bool failed;

	while (above - below > 1 + steps / 64) {
		unsigned middle = below + (above - below) / 2;

		die_after(middle, &failed);
		if (failed)
			above = middle;
		else
			below = middle;
	}
	return below;
}

LAB_CASE_ELSEWHERE(whoever_fails_hears_why)
{
	bool failed;
	unsigned steps = die_after(UINT32_MAX, &failed), first, deaths;

	assert_true(failed);
	first = before_it_fails(steps);
	deaths = INSTRUCTIONS / steps < DEATHS ? INSTRUCTIONS / steps : DEATHS;
	for (unsigned n = first; n < steps; n += 1 + (steps - first) / (1 + deaths))
		die_after(n, &failed);
	assert_true(failed);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
