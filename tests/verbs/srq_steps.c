/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shared receive queue, and a requester that dies at each instruction of a SEND: all receives
 * that were posted before are used afterwards, each once, though nothing more is posted.
 */
#include "peer_lab.h"

#include <sched.h>
#include <time.h>

#define RECEIVES 3
#define DEATHS   200 /* steps between them are fewer than a receive is held for */

static const struct lab_work message = { .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, 8, 0 } } };

struct responder {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	char memory[4096];
	bool posted[RECEIVES]; /* by wr_id */
	unsigned n;            /* of these */
	bool is_sending;       /* expect_all_used() */
};

static void undo_srq(void *srq)
{
	ibv_destroy_srq(srq);
}

static void undo_qp(void *qp)
{
	ibv_destroy_qp(qp);
}

static void make(struct responder *r)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = RECEIVES, .max_sge = 1 } };

	memset(r, 0, sizeof(*r));
	r->context = lab_open(2);
	r->pd = lab_pd(r->context);
	r->cq = lab_cq(r->context, 256, NULL);
	r->mr = lab_mr(r->pd, r->memory, sizeof(r->memory));
	r->srq = ibv_create_srq(r->pd, &init);
	assert_non_null(r->srq);
	lab_undo(undo_srq, r->srq);
}

static void post_all(struct responder *r)
{
	for (unsigned i = 0; i < RECEIVES; i++) {
		struct ibv_sge sge = { .addr = (uintptr_t)r->memory,
			               .length = sizeof(r->memory),
			               .lkey = r->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		if (r->posted[i])
			continue;
		assert_int_equal(ibv_post_srq_recv(r->srq, &wr, &bad), 0);
		r->posted[i] = true;
		r->n++;
	}
}

static bool poll(struct responder *r)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(r->cq, 1, &wc);

	assert_true(n >= 0);
	if (!n)
		return false;
	if (wc.status)
		fail_msg("a receive ends with '%s'", ibv_wc_status_str(wc.status));
	assert_true(wc.wr_id < RECEIVES && r->posted[wc.wr_id]);
	r->posted[wc.wr_id] = false;
	r->n--;
	return true;
}

/* A requester, connected to a new queue pair of the responder: *@qp. */
static struct lab_peer *requester(struct responder *r, bool elsewhere, struct ibv_qp **qp)
{
	const struct lab_peer_options o = { .elsewhere = elsewhere,
		                            .rnr_retry = 7,
		                            .retry_cnt = 7 };
	struct ibv_qp_init_attr init = { .send_cq = r->cq,
		                         .recv_cq = r->cq,
		                         .srq = r->srq,
		                         .qp_type = IBV_QPT_RC,
		                         .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	struct lab_peer *p = lab_peer(&o),
	                responder = { .o = { .type = IBV_QPT_RC, .min_rnr_timer = 1 } };
	struct lab_peer_objects here = { .qp = ibv_create_qp(r->pd, &init) };

	assert_non_null(here.qp);
	lab_undo(undo_qp, here.qp);
	responder.here = &here;
	responder.address =
	        (struct lab_peer_address){ .qpn = here.qp->qp_num, .path = lab_path(r->context) };
	lab_peer_connect(&responder, p);
	lab_peer_connect(p, &responder);
	*qp = here.qp;
	return p;
}

/* All receives that are posted are used by the messages of @p, or have been. One of these at a time
 * is under way: it may find that the last receive is used, and wait for the next one. */
static void expect_all_used(struct responder *r, struct lab_peer *p, unsigned steps)
{
	time_t deadline = time(NULL) + LAB_SECONDS;
	struct ibv_wc wc;

	while (r->n) {
		if (!r->is_sending)
			lab_peer_post(p, &message);
		r->is_sending = !lab_peer_try_sent(p, &wc);
		if (!r->is_sending)
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (!poll(r) && r->is_sending)
			sched_yield();
		if (time(NULL) > deadline)
			fail_msg("%u receives are lost after %u instructions", r->n, steps);
	}
}

/* A requester sends a message, and dies after @steps instructions of the next one. Returns how many
 * these were. */
static unsigned send_and_die(struct responder *r, unsigned steps)
{
	struct ibv_qp *qp;
	struct lab_peer *p = requester(r, true, &qp);

	post_all(r);
	lab_peer_do(p, &message, IBV_WC_SUCCESS);
	while (!poll(r))
		;
	post_all(r);
	return lab_peer_post_and_die(p, &message, steps);
}

static void receives_survive_a_death_at_each_step(void **state)
{
	static struct responder r;
	struct lab_peer *other;
	struct ibv_qp *qp;
	unsigned steps;

	(void)state;
	make(&r);
	other = requester(&r, false, &qp);
	steps = send_and_die(&r, UINT32_MAX);
	expect_all_used(&r, other, steps);
	for (unsigned n = 0; n < steps; n += 1 + steps / DEATHS) {
		send_and_die(&r, n);
		expect_all_used(&r, other, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(receives_survive_a_death_at_each_step),
	};

	lab_peers_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
