/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shared receive queue whose senders die, stop, or give up: each receive has one credit, or a
 * message, whatever becomes of the ring meanwhile. There is no daemon: the ring is this program's
 * own, which also does what the daemon would do.
 */
#include <harness.h>

#include "hca/process/process.h"
#include "hca/queue/cq.h"
#include "hca/queue/qp.h"
#include "hca/queue/rq.h"
#include "hca/queue/srq.h"
#include "shm/ring.h"

#define SHIFT   2
#define SIZE    (1u << SHIFT)
#define MAX_WR  2
#define GEN     9
#define WRITER  7
#define ANOTHER 8

struct lab {
	struct hca_process process;
	struct shm_control control;
	struct hca_context ctx;
	struct hca_srq srq;
	struct shm_ring *ring;
};

/* A receive that a sender holds. */
struct held {
	struct shm_arrival *credit;
	uint32_t pos, receive;
};

static int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));
	struct hca_srq *srq;

	assert_non_null(l);
	l->ring = aligned_alloc(128, shm_ring_bytes(SHIFT));
	assert_non_null(l->ring);
	memset((void *)l->ring, 0, shm_ring_bytes(SHIFT));
	shm_ring_init(l->ring, GEN, 0, false);
	l->process.region.control = &l->control;
	l->ctx.process = &l->process;
	srq = &l->srq;
	srq->ctx = &l->ctx;
	srq->max_wr = srq->room = MAX_WR;
	srq->max_sge = 1;
	srq->ring = l->ring;
	srq->ring_shift = SHIFT;
	srq->ring_gen = GEN;
	srq->receive = calloc(MAX_WR, sizeof(*srq->receive));
	srq->sge = calloc(MAX_WR, sizeof(*srq->sge));
	srq->at_position = calloc(SIZE, sizeof(*srq->at_position));
	assert_true(srq->receive && srq->sge && srq->at_position);
	for (uint32_t i = 0; i < MAX_WR; i++)
		srq->receive[i].next_free = i + 1 < MAX_WR ? i + 2 : 0;
	srq->first_free = 1;
	TAILQ_INIT(&srq->qps);
	*state = l;
	return 0;
}

static int teardown(void **state)
{
	struct lab *l = *state;

	free(l->srq.receive);
	free(l->srq.sge);
	free(l->srq.at_position);
	free(l->ring);
	free(l);
	return 0;
}

static void post(struct lab *l, uint64_t wr_id)
{
	struct ibv_sge sge = { .length = 1 };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(hca_srq_post(&l->srq, &wr, &bad), 0);
}

static bool try_claim(struct lab *l, uint16_t writer, struct held *h)
{
	const struct shm_ring_view v = shm_ring_view(l->ring, SHIFT, GEN, writer);

	h->credit = shm_ring_claim(&v, &h->pos);
	if (h->credit)
		h->receive = h->credit->imm;
	return h->credit;
}

static struct held claim(struct lab *l, uint16_t writer)
{
	struct held h;

	assert_true(try_claim(l, writer, &h));
	return h;
}

/* It has used it up: a message is under way in the ring of some queue pair. */
static void use(struct lab *l, uint16_t writer, const struct held *h)
{
	const struct shm_ring_view v = shm_ring_view(l->ring, SHIFT, GEN, writer);

	assert_true(shm_ring_publish(&v, h->credit, h->pos));
}

/* The daemon, when it has died. */
static void undo(struct held *h, uint16_t writer)
{
	assert_true(shm_ring_void(h->credit, atomic_load(&h->credit->state), writer));
}

/* The message is polled. */
static void expect_taken(struct lab *l, uint32_t receive, uint64_t wr_id)
{
	struct ibv_sge sge;
	uint32_t n_sge;
	uint64_t found;

	assert_true(hca_srq_take(&l->srq, receive, &found, &sge, &n_sge));
	assert_int_equal(found, wr_id);
}

static void expect_message(struct lab *l, uint64_t wr_id)
{
	struct held h = claim(l, ANOTHER);

	use(l, ANOTHER, &h);
	expect_taken(l, h.receive, wr_id);
}

static void expect_no_credit(struct lab *l)
{
	struct held h;

	assert_false(try_claim(l, ANOTHER, &h));
}

/* The sender dies between the claim and the note of which receive the claim holds. */
CASE_WITH(a_dead_sender_need_not_say_what_it_had, setup, teardown)
{
	struct lab *l = *state;
	struct held dead;

	post(l, 1);
	dead = claim(l, WRITER);
	expect_no_credit(l);
	undo(&dead, WRITER);
	hca_srq_return(&l->srq, SHM_NO_RECEIVE);
	expect_message(l, 1);
	expect_no_credit(l);
}

/* It dies with it, and says so; by then another message has had the receive. */
CASE_WITH(a_receive_comes_back_once, setup, teardown)
{
	struct lab *l = *state;
	struct held dead, other;

	post(l, 1);
	dead = claim(l, WRITER);
	undo(&dead, WRITER);
	hca_srq_return(&l->srq, SHM_NO_RECEIVE);
	other = claim(l, ANOTHER);
	use(l, ANOTHER, &other);
	hca_srq_return(&l->srq, dead.receive);
	expect_no_credit(l);
	expect_taken(l, other.receive, 1);
}

/* The same, of an arrival that names the dead one's credit. */
CASE_WITH(what_has_another_credit_is_not_taken, setup, teardown)
{
	struct lab *l = *state;
	struct ibv_sge sge;
	struct held dead;
	uint32_t n_sge;
	uint64_t wr_id;

	post(l, 1);
	dead = claim(l, WRITER);
	undo(&dead, WRITER);
	hca_srq_return(&l->srq, SHM_NO_RECEIVE);
	assert_false(hca_srq_take(&l->srq, dead.receive, &wr_id, &sge, &n_sge));
	assert_false(hca_srq_take(&l->srq, SHM_NO_RECEIVE, &wr_id, &sge, &n_sge));
	expect_message(l, 1);
}

/* The slow sender's credit was used up a whole turn of the ring ago; its slot holds newer credits.
 */
CASE_WITH(a_receive_comes_back_when_the_ring_has_gone_round, setup, teardown)
{
	struct lab *l = *state;
	struct held slow;

	post(l, 1);
	slow = claim(l, WRITER);
	use(l, WRITER, &slow);
	for (uint64_t i = 0; i < 3 * SIZE; i++) {
		post(l, 10 + i);
		expect_message(l, 10 + i);
	}
	expect_no_credit(l);
	hca_srq_return(&l->srq, slow.receive);
	expect_message(l, 1);
	expect_no_credit(l);
}

/* Another sender holds the oldest position, and the ring is full behind it. */
CASE_WITH(a_receive_comes_back_when_there_is_room_again, setup, teardown)
{
	struct lab *l = *state;
	struct held stopped, other;

	post(l, 1);
	post(l, 2);
	stopped = claim(l, WRITER);
	other = claim(l, ANOTHER);
	use(l, ANOTHER, &other);
	for (uint32_t i = 0; i + 2 < SIZE; i++) {
		hca_srq_return(&l->srq, other.receive);
		other = claim(l, ANOTHER);
		use(l, ANOTHER, &other);
	}
	hca_srq_return(&l->srq, other.receive);
	expect_no_credit(l);
	use(l, WRITER, &stopped);
	expect_taken(l, stopped.receive, 1);
	post(l, 3);
	expect_message(l, 2);
	expect_message(l, 3);
	expect_no_credit(l);
}

/* The same, if no receive is posted any more: the message that was late is polled. */
CASE_WITH(a_receive_comes_back_though_nothing_is_posted, setup, teardown)
{
	struct lab *l = *state;
	struct held stopped, other;

	post(l, 1);
	post(l, 2);
	stopped = claim(l, WRITER);
	for (uint32_t i = 0; i + 1 < SIZE; i++) {
		other = claim(l, ANOTHER);
		use(l, ANOTHER, &other);
		hca_srq_return(&l->srq, other.receive);
	}
	expect_no_credit(l);
	atomic_store(&l->ring->waited_for, 1);
	use(l, WRITER, &stopped);
	expect_taken(l, stopped.receive, 1);
	assert_true(atomic_load(&l->srq.must_help));
	expect_message(l, 2);
	expect_no_credit(l);
}

/* The queue has room for it, whatever a sender holds of the ring. */
CASE_WITH(a_receive_is_posted_though_the_ring_is_full, setup, teardown)
{
	struct lab *l = *state;
	struct held stopped;

	post(l, 1);
	stopped = claim(l, WRITER);
	for (uint32_t i = 0; i + 1 < SIZE; i++) {
		post(l, 10 + i);
		expect_message(l, 10 + i);
	}
	post(l, 2); /* nothing is behind it: it waits */
	expect_no_credit(l);
	use(l, WRITER, &stopped);
	expect_taken(l, stopped.receive, 1);
	expect_message(l, 2);
	expect_no_credit(l);
	post(l, 3);
	post(l, 4);
	expect_message(l, 3);
	expect_message(l, 4);
}

/* Its queue pair is gone, so nobody says so, and nothing is posted or comes. */
CASE_WITH(a_receive_is_posted_once_the_dead_gives_room, setup, teardown)
{
	struct lab *l = *state;
	struct held dead;

	post(l, 1);
	dead = claim(l, WRITER);
	for (uint32_t i = 0; i + 1 < SIZE; i++) {
		post(l, 10 + i);
		expect_message(l, 10 + i);
	}
	assert_false(hca_srq_retry(&l->srq));
	post(l, 2); /* it waits */
	expect_no_credit(l);
	assert_true(hca_srq_retry(&l->srq));
	atomic_store(&l->ring->waited_for, 1);
	undo(&dead, WRITER);
	assert_false(hca_srq_retry(&l->srq));
	assert_true(atomic_load(&l->srq.must_help));
	expect_message(l, 1);
	expect_message(l, 2);
	expect_no_credit(l);
}

/* Another sender is about to use the older one, and nothing is posted. */
CASE_WITH(a_receive_of_the_dead_does_not_wait_for_an_older_one, setup, teardown)
{
	struct lab *l = *state;
	struct held slow, dead;

	post(l, 1);
	post(l, 2);
	slow = claim(l, ANOTHER);
	dead = claim(l, WRITER);
	undo(&dead, WRITER);
	hca_srq_return(&l->srq, dead.receive);
	expect_message(l, 2);
	use(l, ANOTHER, &slow);
	expect_taken(l, slow.receive, 1);
	expect_no_credit(l);
	post(l, 3);
	expect_message(l, 3);
	expect_no_credit(l);
}

/* The sender does not come: its queue pair flushes. It goes on later, and uses its credit up. */
CASE_WITH(what_is_given_up_comes_back_later, setup, teardown)
{
	struct lab *l = *state;
	struct held stopped;

	post(l, 1);
	stopped = claim(l, WRITER);
	hca_srq_return(&l->srq, stopped.receive);
	expect_no_credit(l);
	use(l, WRITER, &stopped);
	hca_srq_return(&l->srq, SHM_NO_RECEIVE); /* of anybody */
	expect_message(l, 1);
	expect_no_credit(l);
}

/* Requests wait for what comes back. */
CASE_WITH(who_waits_is_helped, setup, teardown)
{
	struct lab *l = *state;
	struct held dead;

	post(l, 1);
	dead = claim(l, WRITER);
	atomic_store(&l->ring->waited_for, 1);
	assert_false(hca_srq_return(&l->srq, SHM_NO_RECEIVE)); /* nothing has come back */
	undo(&dead, WRITER);
	assert_true(hca_srq_return(&l->srq, SHM_NO_RECEIVE));
	assert_true(atomic_load(&l->srq.must_help));
	hca_srq_help_if_due(&l->srq);
	assert_false(atomic_load(&l->srq.must_help));
	assert_int_equal(atomic_load(&l->ring->waited_for), 0);
}

/* A look at the shared queue costs its length. A queue pair that ends has a whole ring of positions
 * that no sender has had: these are no reason for one. */
CASE_WITH(what_no_sender_had_is_not_looked_for, setup, teardown)
{
	struct lab *l = *state;
	struct shm_ring *ring = aligned_alloc(128, shm_ring_bytes(SHIFT));
	struct hca_qp *qp = calloc(1, sizeof(*qp));
	struct hca_cq cq = { 0 };
	struct hca_rq rq = { .process = &l->process,
		             .cq = &cq,
		             .ring = ring,
		             .ring_shift = SHIFT,
		             .ring_gen = GEN,
		             .srq = &l->srq,
		             .connected = qp };
	const struct shm_ring_view v = shm_ring_view(ring, SHIFT, GEN, WRITER);
	struct held dead, own;

	assert_true(ring && qp);
	memset((void *)ring, 0, shm_ring_bytes(SHIFT));
	shm_ring_init(ring, GEN, 0, false);
	post(l, 1);
	dead = claim(l, WRITER);
	undo(&dead, WRITER); /* a look would find it */
	hca_rq_set_mode(&rq, HCA_RQ_OPEN);
	hca_rq_refill(&rq);
	hca_rq_reset(&rq);
	expect_no_credit(l);
	hca_rq_set_mode(&rq, HCA_RQ_OPEN);
	hca_rq_refill(&rq);
	own.credit = shm_ring_claim(&v, &own.pos);
	assert_non_null(own.credit);
	undo(&own, WRITER);
	hca_rq_reset(&rq);
	expect_message(l, 1);
	free(qp);
	free(ring);
}
