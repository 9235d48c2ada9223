/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shared receive queue, and a requester that dies at each instruction of a SEND: all receives
 * that were posted before are used afterwards, each once, though nothing more is posted. Or the
 * queue pair that it sends to goes first: the queue is used on. Or it stands still.
 */
#include "srq_lab.h"

#include "base/pause.h"

#define RECEIVES    3
#define BYTES       4096
#define SHARED      64
#define LATE_DEATHS 40
#define STILL       48
#define HELD        8   /* of these at most: so many are in the middle of a claim */
#define QUIET       1   /* seconds: what is left then does not come back by itself */
#define DEATHS      200 /* steps between them are fewer than a receive is held for */

static const struct lab_work message = { .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, 8, 0 } } };

/* The requester that sends when all others are dead. */
struct other {
	struct lab_peer *p;
	bool is_sending;
};

/* All receives but @held that are posted are used by its messages, or have been. One of these at a
 * time is under way: it may find that the last receive is used, and wait for the next one. Returns
 * how many are left after so long: @held at most if all goes well. */
static unsigned use_all_but(struct srq_lab *r, struct other *o, unsigned held, unsigned seconds)
{
	const time_t deadline = time(NULL) + seconds;
	struct ibv_wc wc;

	while (r->n > held && time(NULL) <= deadline) {
		struct base_pause pause = { 0 };

		if (!o->is_sending)
			lab_peer_post(o->p, &message);
		o->is_sending = !lab_peer_try_sent(o->p, &wc);
		if (!o->is_sending)
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (!srq_lab_poll(r) && o->is_sending)
			base_pause_sleep(&pause);
	}
	return r->n;
}

static void expect_all_used(struct srq_lab *r, struct other *o, unsigned steps)
{
	unsigned lost = use_all_but(r, o, 0, LAB_SECONDS);

	if (lost)
		fail_msg("%u receives are lost after %u instructions", lost, steps);
}

/* A requester sends a message, and dies after @steps instructions of the next one. Returns how many
 * these were. */
static unsigned send_and_die(struct srq_lab *r, unsigned steps)
{
	struct lab_peer *p = srq_lab_requester(r, true);

	srq_lab_post_all(r);
	lab_peer_do(p, &message, IBV_WC_SUCCESS);
	while (!srq_lab_poll(r))
		;
	srq_lab_post_all(r);
	return lab_peer_post_and_die(p, &message, steps);
}

LAB_CASE(receives_survive_a_death_at_each_step)
{
	static struct srq_lab r;
	struct other other = { 0 };
	unsigned steps;

	srq_lab_make(&r, RECEIVES, BYTES);
	other.p = srq_lab_requester(&r, false);
	steps = send_and_die(&r, UINT32_MAX);
	expect_all_used(&r, &other, steps);
	for (unsigned n = 0; n < steps; n += 1 + steps / DEATHS) {
		send_and_die(&r, n);
		expect_all_used(&r, &other, n);
	}
}

/* As many messages as the queue's ring has positions, twice: nothing keeps it from being used on.
 */
static void expect_in_use(struct srq_lab *r, struct lab_peer *p, unsigned steps)
{
	time_t deadline = time(NULL) + LAB_SECONDS;

	for (unsigned i = 0; i < 4 * SHARED; i++) {
		unsigned n;

		while (!srq_lab_try_post_all(r))
			if (time(NULL) > deadline)
				fail_msg("full for ever after %u instructions", steps);
		n = r->n;
		lab_peer_do(p, &message, IBV_WC_SUCCESS);
		while (!srq_lab_poll(r))
			;
		assert_int_equal(r->n, n - 1);
	}
}

/* The requester dies when the queue pair that it was sending to has gone already. Nobody gets the
 * messages that this queue pair had received: a receive may be gone, but no more than that. */
LAB_CASE(the_queue_survives_who_dies_after_its_queue_pair)
{
	static struct srq_lab r;
	struct lab_peer *other;
	unsigned steps;

	srq_lab_make(&r, SHARED, BYTES);
	other = srq_lab_requester(&r, false);
	steps = send_and_die(&r, UINT32_MAX);
	while (!srq_lab_poll(&r))
		;
	for (unsigned i = 0; i < LATE_DEATHS; i++) {
		struct lab_peer *p = srq_lab_requester(&r, true);
		unsigned n = i * steps / LATE_DEATHS;

		srq_lab_post_all(&r);
		lab_peer_do(p, &message, IBV_WC_SUCCESS);
		while (!srq_lab_poll(&r))
			;
		lab_peer_post_steps(p, &message, n);
		lab_forget(r.last);
		assert_int_equal(ibv_destroy_qp(r.last), 0);
		lab_peer_die(p);
		expect_in_use(&r, other, n);
	}
}

/* Posts the first receive that is not. */
static void post_one(struct srq_lab *r)
{
	struct ibv_sge sge = { (uintptr_t)r->memory, r->bytes, r->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	while (r->posted[wr.wr_id])
		wr.wr_id++;
	assert_int_equal(ibv_post_srq_recv(r->srq, &wr, &bad), 0);
	r->posted[wr.wr_id] = true;
	r->n++;
}

/*
 * Many requesters stand still, each somewhere else in a SEND, when the queue pairs that they send
 * to go to ERR. The receives that they have taken come back, though they live. Only a requester
 * that is about to use a credit up keeps that, until it dies, and then it comes back with the next
 * receive.
 */
LAB_CASE(receives_come_back_from_who_stands_still)
{
	static struct srq_lab r;
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct lab_peer *p[STILL];
	struct ibv_qp *qp[STILL];
	struct other other = { 0 };
	unsigned steps, held;

	srq_lab_make(&r, SHARED, BYTES);
	other.p = srq_lab_requester(&r, false);
	steps = send_and_die(&r, UINT32_MAX);
	while (!srq_lab_poll(&r))
		;
	for (unsigned i = 0; i < STILL; i++) {
		p[i] = srq_lab_requester(&r, true);
		qp[i] = r.last;
		srq_lab_post_all(&r);
		lab_peer_do(p[i], &message, IBV_WC_SUCCESS);
		while (!srq_lab_poll(&r))
			;
	}
	srq_lab_post_all(&r);
	for (unsigned i = 0; i < STILL; i++)
		lab_peer_post_steps(p[i], &message, i * steps / STILL);
	for (unsigned i = 0; i < STILL; i++)
		assert_int_equal(ibv_modify_qp(qp[i], &error, IBV_QP_STATE), 0);
	held = use_all_but(&r, &other, HELD, LAB_SECONDS);
	for (unsigned i = 0; i < STILL; i++)
		lab_peer_die(p[i]);
	assert_in_range(held, 0, HELD);
	for (unsigned i = 0; i < 2 * HELD && use_all_but(&r, &other, 0, QUIET); i++)
		post_one(&r);
	assert_int_equal(r.n, 0);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
