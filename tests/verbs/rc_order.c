/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Over RC: fences, which wait for READs and atomic operations; solicited events; and the largest
 * message.
 */
#include "peer_lab.h"

#define MOST   (1u << 31) /* bytes of a message */
#define PERIOD (1u << 20)
#ifdef __SANITIZE_THREAD__
#define LARGE (16 * PERIOD) /* its runtime remembers each byte, eight times */
#else
#define LARGE MOST
#endif

static struct lab_work work_of(struct lab_peer *to, enum ibv_wr_opcode opcode, uint64_t at,
                               uint64_t remote, uint32_t length)
{
	return (struct lab_work){ .opcode = opcode,
		                  .wr_id = 1,
		                  .n = 1,
		                  .piece = { { at, length, 0 } },
		                  .to = to,
		                  .remote = remote };
}

/* ---- fences ---- */

/* The fenced SEND behind a READ and an atomic has the bytes that these fetch. @waits: all of that
 * waits for a receive, and is carried out by the responder's thread. */
static void expect_fenced(void *const *state, bool waits)
{
	struct lab_work w;
	uint64_t word = 41;
	struct lab_peer **p = lab_peers(NULL, state);

	for (unsigned i = 0; i < 20; i++) {
		lab_peer_fill(p[0], 0, 4096, 99);
		lab_peer_fill(p[1], 8192, 4096, i);
		lab_peer_put(p[1], 16384, &word, sizeof(word));
		if (waits) {
			w = work_of(p[1], IBV_WR_SEND, 0, 0, 0);
			lab_peer_post(p[0], &w);
		}
		w = work_of(p[1], IBV_WR_RDMA_READ, 0, 8192, 3000);
		w.unsignalled = !waits;
		if (!waits)
			lab_peer_receive(p[1], 1, 20480, 4096);
		lab_peer_post(p[0], &w);
		w = work_of(p[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 3000, 16384, 8);
		w.compare_add = 1;
		lab_peer_post(p[0], &w);
		w = work_of(p[1], IBV_WR_SEND, 0, 0, 3008);
		w.flags = IBV_SEND_FENCE;
		lab_peer_post(p[0], &w);
		if (waits) {
			lab_peer_receive(p[1], 0, 0, 0);
			lab_peer_receive(p[1], 1, 20480, 4096);
			lab_peer_received(p[1], IBV_WC_SUCCESS);
			lab_peer_sent(p[0], IBV_WC_SUCCESS);
			lab_peer_sent(p[0], IBV_WC_SUCCESS);
		}
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
		assert_int_equal(lab_peer_received(p[1], IBV_WC_SUCCESS).byte_len, 3008);
		lab_peer_expect(p[1], 20480, 3000, i);
		lab_peer_get(p[1], 20480 + 3000, &word, sizeof(word));
		assert_int_equal(word, 41);
	}
}

LAB_CASE_BOTH(a_fenced_send_has_what_was_fetched_before)
{
	expect_fenced(state, false);
}

LAB_CASE_BOTH(a_fenced_send_that_waits_has_what_was_fetched_before)
{
	expect_fenced(state, true);
}

/* ---- solicited events ---- */

/* The receiver is p[0], here, whose CQ of receives has a channel. */
static struct lab_peer **make(void *const *state)
{
	const struct lab_peer_options o = {
		.timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .channel = true
	};
	struct lab_peer **p = lab_peers(&o, state);

	lab_set_nonblocking(p[0]->here->channel->fd);
	return p;
}

static void arm(struct lab_peer *p, int solicited_only)
{
	assert_int_equal(ibv_req_notify_cq(p->here->recv_cq, solicited_only), 0);
}

static bool has_event(struct lab_peer *p)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(p->here->channel, &cq, &context))
		return false;
	assert_ptr_equal(cq, p->here->recv_cq);
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* p[1] sends, and that has completed: the event, if there is one, was raised before. */
static void message(struct lab_peer *p[2], enum ibv_wr_opcode opcode, unsigned flags)
{
	struct lab_work w = work_of(p[0], opcode, 0, 512, 100);

	w.flags = flags;
	w.imm = htobe32(5);
	lab_peer_receive(p[0], 1, 0, 100);
	lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
}

LAB_CASE_BOTH(only_what_is_solicited_wakes_who_asked_for_that)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
		                                      IBV_WR_RDMA_WRITE_WITH_IMM };
	struct lab_peer **p = make(state);

	for (unsigned i = 0; i < LAB_ARRAY(opcodes); i++) {
		arm(p[0], 1);
		message(p, opcodes[i], 0);
		assert_false(has_event(p[0]));
		message(p, opcodes[i], IBV_SEND_SOLICITED);
		assert_true(has_event(p[0]));
		message(p, opcodes[i], IBV_SEND_SOLICITED);
		assert_false(has_event(p[0])); /* only one event was asked for */
		arm(p[0], 0);
		message(p, opcodes[i], 0);
		assert_true(has_event(p[0]));
		for (int k = 0; k < 4; k++)
			lab_peer_received(p[0], IBV_WC_SUCCESS);
	}
}

/* RDMA without immediate data is none of the receiver's business. */
LAB_CASE_BOTH(a_solicited_write_wakes_nobody)
{
	struct lab_work w;
	struct lab_peer **p = make(state);

	arm(p[0], 0);
	w = work_of(p[0], IBV_WR_RDMA_WRITE, 0, 512, 100);
	w.flags = IBV_SEND_SOLICITED;
	lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
	assert_false(has_event(p[0]));
}

LAB_CASE_BOTH(a_receive_that_fails_counts_as_solicited)
{
	struct lab_work w;
	struct lab_peer **p = make(state);

	arm(p[0], 1);
	lab_peer_receive(p[0], 1, 0, 10);
	w = work_of(p[0], IBV_WR_SEND, 0, 0, 100);
	lab_peer_do(p[1], &w, IBV_WC_REM_INV_REQ_ERR);
	lab_await(p[0]->here->channel->fd);
	assert_true(has_event(p[0]));
	lab_peer_received(p[0], IBV_WC_LOC_LEN_ERR);
}

/* ---- completions ---- */

#define ROUNDS 50

/* Of a thread that posts by ibv_wr_start(). */
struct list {
	struct ibv_qp_ex *qp;
	pthread_barrier_t begun, ends;
};

/* With one completion queue a message's completion comes before the reply to the message. */
LAB_CASE_BOTH(a_send_completes_before_its_reply)
{
	const struct lab_peer_options o = { .one_cq = true, .timeout = 14, .rnr_retry = 7 };
	struct lab_work w = { .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, 8 } } };
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(&o, state);

	for (int i = 0; i < ROUNDS; i++) {
		/* completions of sends alone, each polled by itself */
		for (int k = 0; k < i; k++) {
			lab_peer_receive(p[1], 2, 0, 64);
			lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
			assert_int_equal(lab_peer_sent(p[1], IBV_WC_SUCCESS).opcode, IBV_WC_RECV);
		}
		/* from here on nothing waits that could claim its turn */
		assert_int_equal(lab_peer_try_sent(p[0], &wc), 0);
		lab_peer_receive(p[0], 3, 0, 64);
		lab_peer_receive(p[1], 2, 0, 64);
		lab_peer_post(p[0], &w);
		assert_int_equal(lab_peer_sent(p[1], IBV_WC_SUCCESS).opcode, IBV_WC_RECV);
		lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).opcode, IBV_WC_RECV);
	}
}

/* A request that the peer has carried out, by posting a receive, brings one event; a program that
 * arms before it polls gets no second one. */
LAB_CASE_BOTH(what_others_complete_has_one_event)
{
	const struct lab_work w = { .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, 8 } } };
	struct ibv_cq *cq;
	void *context;
	struct lab_peer **p = make(state);

	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(ibv_req_notify_cq(p[0]->here->send_cq, 0), 0);
		lab_peer_post(p[0], &w);
		lab_peer_receive(p[1], 2, 0, 64);
		lab_await(p[0]->here->channel->fd);
		assert_int_equal(ibv_get_cq_event(p[0]->here->channel, &cq, &context), 0);
		assert_ptr_equal(cq, p[0]->here->send_cq);
		ibv_ack_cq_events(cq, 1);
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
		assert_int_equal(ibv_get_cq_event(p[0]->here->channel, &cq, &context), -1);
		lab_peer_received(p[1], IBV_WC_SUCCESS);
	}
}

/* A thread that posts, and has looked already at what is complete. */
static void *begin_list(void *arg)
{
	struct list *l = arg;

	ibv_wr_start(l->qp);
	pthread_barrier_wait(&l->begun);
	pthread_barrier_wait(&l->ends);
	ibv_wr_abort(l->qp);
	return NULL;
}

/* The peer has carried out a request before the queue was armed, while another thread posts: nobody
 * looks at it when that is done, so the sleeper must be woken. */
LAB_CASE_BOTH(what_others_complete_wakes_who_arms_later)
{
	const struct lab_work w = { .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, 8 } } };
	struct ibv_cq *cq;
	pthread_t thread;
	struct list l;
	void *context;
	struct lab_peer **p = make(state);

	assert_non_null(l.qp = ibv_qp_to_qp_ex(p[0]->here->qp));
	pthread_barrier_init(&l.begun, NULL, 2);
	pthread_barrier_init(&l.ends, NULL, 2);
	for (int i = 0; i < 3; i++) {
		lab_peer_post(p[0], &w);
		assert_int_equal(pthread_create(&thread, NULL, begin_list, &l), 0);
		pthread_barrier_wait(&l.begun);
		lab_peer_receive(p[1], 2, 0, 64);
		lab_peer_received(p[1], IBV_WC_SUCCESS);
		assert_int_equal(ibv_req_notify_cq(p[0]->here->send_cq, 0), 0);
		pthread_barrier_wait(&l.ends);
		assert_int_equal(pthread_join(thread, NULL), 0);
		lab_await(p[0]->here->channel->fd);
		assert_int_equal(ibv_get_cq_event(p[0]->here->channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
	}
	pthread_barrier_destroy(&l.begun);
	pthread_barrier_destroy(&l.ends);
}

/* ---- size ---- */

/* Memory of 2 GiB is one of 1 MiB, mapped 2,048 times. */
static struct lab_peer **make_large(void *const *state)
{
	const struct lab_peer_options o = { .timeout = 14,
		                            .retry_cnt = 7,
		                            .rnr_retry = 7,
		                            .bytes = (size_t)MOST + PERIOD,
		                            .period = PERIOD };
	struct lab_peer **p = lab_peers(&o, state);

	return p;
}

static void expect_large(struct lab_peer *p[2], enum ibv_wr_opcode opcode, unsigned seed)
{
	struct lab_peer *from = p[opcode == IBV_WR_RDMA_READ], *to = p[from == p[0]];
	struct lab_work w = work_of(p[1], opcode, 0, 0, LARGE);

	lab_peer_fill(from, 0, PERIOD, seed);
	lab_peer_fill(to, 0, PERIOD, 99);
	if (opcode == IBV_WR_SEND)
		lab_peer_receive(p[1], 1, 0, LARGE);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	if (opcode == IBV_WR_SEND)
		assert_int_equal(lab_peer_received(p[1], IBV_WC_SUCCESS).byte_len, LARGE);
	lab_peer_expect(to, 0, PERIOD, seed);
}

LAB_CASE_BOTH(the_largest_message_is_of_2_gib)
{
	struct lab_peer **p = make_large(state);

	expect_large(p, *state ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 1);
	if (*state)
		expect_large(p, IBV_WR_SEND, 2);
}

/* Nor as the sum of its entries, which is more than 32 bits have. */
LAB_CASE(a_larger_message_is_not_posted)
{
	struct lab_peer **p = make_large(state);
	struct lab_work w = work_of(p[1], IBV_WR_RDMA_WRITE, 0, 0, MOST + 1);

	assert_int_equal(lab_peer_try_post(p[0], &w), EINVAL);
	w.n = 2;
	w.piece[0].length = w.piece[1].length = MOST;
	assert_int_equal(lab_peer_try_post(p[0], &w), EINVAL);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
