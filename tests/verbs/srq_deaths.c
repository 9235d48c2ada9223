/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shared receive queue whose requesters are killed, at any instruction of a SEND: each receive
 * that was posted is still used, once.
 */
#include "srq_lab.h"

#include "base/pause.h"

#define MAX_WR 16
#define ROUNDS 12
#define BYTES  65536u

/* All receives that are posted are used: by what the dead had sent, or by another one's messages.
 */
static void expect_all_used(struct srq_lab *r)
{
	const struct lab_work w = { .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, 100, 0 } } };
	struct lab_peer *p = srq_lab_requester(r, false);
	time_t deadline = time(NULL) + LAB_SECONDS;
	struct base_pause pause = { 0 };
	struct ibv_wc wc;

	for (unsigned left = r->n; r->n;) {
		if (left && !lab_peer_try_post(p, &w)) /* or its send queue is full */
			left--;
		if (lab_peer_try_sent(p, &wc)) {
			if (wc.status != IBV_WC_SUCCESS)
				fail_msg("a SEND ends with '%s'", ibv_wc_status_str(wc.status));
			pause.looks = 0;
		} else if (!srq_lab_poll(r)) {
			base_pause_sleep(&pause);
		}
		if (time(NULL) > deadline)
			fail_msg("%u receives are lost; %u SENDs are not posted", r->n, left);
	}
}

static void grow(struct srq_lab *r)
{
	struct ibv_srq_attr attr = { .max_wr = r->size + r->size / 2 };

	if (attr.max_wr > SRQ_LAB_MOST)
		return;
	assert_int_equal(ibv_modify_srq(r->srq, &attr, IBV_SRQ_MAX_WR), 0);
	r->size = attr.max_wr;
}

static void expect_receives_survive(bool grows)
{
	static const uint32_t sizes[] = { 8, 3000, BYTES };
	struct srq_lab r;

	srq_lab_make(&r, MAX_WR, BYTES);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct lab_work w = { .opcode = IBV_WR_SEND, .n = 1 };
		struct lab_peer *p = srq_lab_requester(&r, true);

		w.piece[0].length = sizes[i % 3];
		lab_peer_flood(p, &w);
		for (unsigned k = 0; k < 20 + 7 * i;) {
			srq_lab_post_all(&r);
			k += srq_lab_poll(&r);
			if (grows && k == 10 + i)
				grow(&r);
		}
		if (grows) {
			kill(p->pid, SIGKILL);
			grow(&r); /* while it dies */
		} else {
			lab_peer_signal(p, SIGKILL);
		}
	}
	srq_lab_post_all(&r);
	expect_all_used(&r);
}

LAB_CASE(receives_survive_requesters_that_are_killed)
{
	expect_receives_survive(false);
}

/* While the queue gets larger, too. */
LAB_CASE(receives_survive_when_the_queue_grows)
{
	expect_receives_survive(true);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
