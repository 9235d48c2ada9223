/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shared receive queue whose requesters are killed, at any instruction of a SEND: each receive
 * that was posted is still used, once.
 */
#include "peer_lab.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

#define MAX_WR 16
#define MOST   4096
#define ROUNDS 12
#define BYTES  65536u

/* On h2, here. */
struct responder {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	char *memory;
	unsigned size;     /* of the queue */
	bool posted[MOST]; /* by wr_id */
	unsigned n;        /* of these */
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
	struct ibv_srq_init_attr init = { .attr = { .max_wr = MAX_WR, .max_sge = 1 } };

	memset(r, 0, sizeof(*r));
	r->size = MAX_WR;
	r->context = lab_open(2);
	r->pd = lab_pd(r->context);
	r->cq = lab_cq(r->context, 1024, NULL);
	r->memory = malloc(BYTES);
	lab_undo(free, r->memory);
	r->mr = lab_mr(r->pd, r->memory, BYTES);
	r->srq = ibv_create_srq(r->pd, &init);
	assert_non_null(r->srq);
	lab_undo(undo_srq, r->srq);
}

/* Posts all receives that are not. */
static void post_all(struct responder *r)
{
	for (unsigned i = 0; i < r->size; i++) {
		struct ibv_sge sge = { .addr = (uintptr_t)r->memory,
			               .length = BYTES,
			               .lkey = r->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		if (r->posted[i])
			continue;
		assert_int_equal(ibv_post_srq_recv(r->srq, &wr, &bad), 0);
		r->posted[i] = true;
		r->n++;
	}
}

/* A completion, if there is one: of a receive that is posted. */
static bool poll(struct responder *r)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(r->cq, 1, &wc);

	assert_true(n >= 0);
	if (!n)
		return false;
	/* the requesters are killed; none fails, nor does what was posted */
	if (wc.status != IBV_WC_SUCCESS)
		fail_msg("receive %llu ends with '%s'", (unsigned long long)wc.wr_id,
		         ibv_wc_status_str(wc.status));
	assert_true(wc.wr_id < r->size && r->posted[wc.wr_id]);
	r->posted[wc.wr_id] = false;
	r->n--;
	return true;
}

/* A requester elsewhere or here, connected to a queue pair of the responder. */
static struct lab_peer *requester(struct responder *r, bool elsewhere)
{
	const struct lab_peer_options o = {
		.elsewhere = elsewhere, .bytes = BYTES, .rnr_retry = 7, .retry_cnt = 7
	};
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
	return p;
}

/* All receives that are posted are used: by what the dead had sent, or by another one's messages.
 */
static void expect_all_used(struct responder *r)
{
	const struct lab_work w = { .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, 100, 0 } } };
	struct lab_peer *p = requester(r, false);
	time_t deadline = time(NULL) + LAB_SECONDS;
	struct ibv_wc wc;

	for (unsigned left = r->n; r->n;) {
		if (left && !lab_peer_try_post(p, &w)) /* or its send queue is full */
			left--;
		if (lab_peer_try_sent(p, &wc)) {
			if (wc.status != IBV_WC_SUCCESS)
				fail_msg("a SEND ends with '%s'", ibv_wc_status_str(wc.status));
		} else if (!poll(r)) {
			sched_yield();
		}
		if (time(NULL) > deadline)
			fail_msg("%u receives are lost; %u SENDs are not posted", r->n, left);
	}
}

static void grow(struct responder *r)
{
	struct ibv_srq_attr attr = { .max_wr = r->size + r->size / 2 };

	if (attr.max_wr > MOST)
		return;
	assert_int_equal(ibv_modify_srq(r->srq, &attr, IBV_SRQ_MAX_WR), 0);
	r->size = attr.max_wr;
}

static void expect_receives_survive(bool grows)
{
	static const uint32_t sizes[] = { 8, 3000, BYTES };
	struct responder r;

	make(&r);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct lab_work w = { .opcode = IBV_WR_SEND, .n = 1 };
		struct lab_peer *p = requester(&r, true);

		w.piece[0].length = sizes[i % 3];
		lab_peer_flood(p, &w);
		for (unsigned k = 0; k < 20 + 7 * i;) {
			post_all(&r);
			k += poll(&r);
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
	post_all(&r);
	expect_all_used(&r);
}

static void receives_survive_requesters_that_are_killed(void **state)
{
	(void)state;
	expect_receives_survive(false);
}

/* While the queue gets larger, too. */
static void receives_survive_when_the_queue_grows(void **state)
{
	(void)state;
	expect_receives_survive(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(receives_survive_requesters_that_are_killed),
		LAB_TEST(receives_survive_when_the_queue_grows),
	};

	lab_peers_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
