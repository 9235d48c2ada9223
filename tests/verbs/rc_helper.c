/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that has posted a receive carries out the requests of its peer that wait for that, and
 * is killed after any instruction of this: the peer, which sleeps meanwhile, hears what has become
 * of them, and does not wait for the dead one when it destroys what it has.
 */
#include "peer_lab.h"
#include "deadline.h"

#include "base/util.h"

#define DEATHS 24
/* All deaths take about so many instructions together: sanitizers have thirty times as many. */
#define INSTRUCTIONS 1000000
/* Nearly as long as a stopped process is waited for. */
#define STOPPED_NS 900000000ull

static const struct lab_peer_options options = {
	.channel = true, .timeout = 8, .retry_cnt = 1, .rnr_retry = 7
};

/* Sleeps until there is an event, or for too long. */
static void sleep_on(struct lab_peer *p, unsigned steps)
{
	struct ibv_cq *cq;
	void *context;

	if (!deadline_allows(p->here->channel->fd))
		fail_msg("after %u instructions: nobody wakes it", steps);
	assert_int_equal(ibv_get_cq_event(p->here->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
}

static void arm(struct lab_peer *p)
{
	assert_int_equal(ibv_req_notify_cq(p->here->send_cq, 0), 0);
}

/* Returns how many instructions there were, of at most so many; *@status: of the request.
 * *@ended_ns: how long it took to destroy all. */
static unsigned die_after(unsigned steps, enum ibv_wc_status *status, uint64_t *ended_ns)
{
	const struct lab_work receive = { .n = 1, .piece = { { 0, 64, 0 } } };
	struct lab_work message = { .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, 8, 0 } } };
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(&options, (void *[]){ (void *)1 });

	message.to = p[1];
	lab_peer_post(p[0], &message);
	arm(p[0]);
	assert_false(lab_peer_try_sent(p[0], &wc));
	steps = lab_peer_receive_and_die(p[1], &receive, steps);
	for (sleep_on(p[0], steps); !lab_peer_try_sent(p[0], &wc); sleep_on(p[0], steps)) {
		arm(p[0]);
		if (lab_peer_try_sent(p[0], &wc))
			break;
	}
	*status = wc.status;
	if (wc.status && wc.status != IBV_WC_RETRY_EXC_ERR)
		fail_msg("after %u instructions: %s", steps, ibv_wc_status_str(wc.status));
	*ended_ns = base_now_ns();
	lab_clean_up(NULL);
	*ended_ns = base_now_ns() - *ended_ns;
	return steps;
}

LAB_CASE_ELSEWHERE(whoever_it_helps_is_woken)
{
	enum ibv_wc_status status;
	uint64_t ended_ns;
	unsigned steps = die_after(UINT32_MAX, &status, &ended_ns), deaths;

	assert_int_equal(status, IBV_WC_SUCCESS);
	deaths = 2 * INSTRUCTIONS / steps < DEATHS ? 2 * INSTRUCTIONS / steps : DEATHS;
	for (unsigned n = 0; n < steps; n += 1 + steps / (1 + deaths)) {
		die_after(n, &status, &ended_ns);
		if (ended_ns > STOPPED_NS) /* the machine may halt for as long, but not twice */
			die_after(n, &status, &ended_ns);
		if (ended_ns > STOPPED_NS)
			fail_msg("after %u instructions: the dead is waited for", n);
	}
	assert_int_equal(status, IBV_WC_SUCCESS);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
