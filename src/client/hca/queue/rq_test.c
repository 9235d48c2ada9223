/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A receive queue that has been used for so long that its positions go round, and one that was
 * reset while a sender had claimed a receive. There is no daemon: the ring is this program's own.
 */
#include <harness.h>

#include "hca/queue/cq.h"
#include "hca/queue/qp.h"
#include "hca/queue/rq.h"
#include "shm/ring.h"

#define SHIFT 2
#define SIZE  (1u << SHIFT)
#define GEN   9

struct lab {
	struct hca_process process;
	struct shm_control control;
	struct hca_pd pd;
	struct hca_cq cq;
	struct hca_rq rq;
	struct shm_ring *ring;
	struct shm_ring_view view; /* a sender's */
	uint64_t wr_id;            /* of the next receive */
	uint32_t arrivals;
};

/* A queue that has consumed @pos messages. */
static struct lab *lab_at(void **state, uint32_t pos)
{
	struct lab *l = *state;

	for (uint32_t p = pos - SIZE; p != pos; p++)
		atomic_store(&shm_ring_slot(l->ring, SHIFT, p)->state,
		             shm_slot_state(p & SHM_POS_MASK, GEN, 0, SHM_SLOT_DONE));
	atomic_store(&l->ring->tail, pos);
	atomic_store(&l->ring->posted_seen, pos);
	atomic_store(&l->ring->posted, pos);
	atomic_store(&l->ring->consumed, pos);
	atomic_store(&l->rq.posted, pos);
	atomic_store(&l->rq.consumed, pos);
	return l;
}

static int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->ring = aligned_alloc(128, shm_ring_bytes(SHIFT));
	assert_non_null(l->ring);
	memset((void *)l->ring, 0, shm_ring_bytes(SHIFT));
	shm_ring_init(l->ring, GEN, 5, false);
	l->view = shm_ring_view(l->ring, SHIFT, GEN, 7);
	l->rq = (struct hca_rq){
		.process = &l->process,
		.cq = &l->cq,
		.ring = l->ring,
		.ring_shift = SHIFT,
		.ring_gen = GEN,
	};
	l->process.region.control = &l->control;
	assert_int_equal(hca_rq_init(&l->rq, &l->pd.pd, SIZE, 1), 0);
	hca_rq_set_mode(&l->rq, HCA_RQ_OPEN);
	*state = l;
	return 0;
}

static int teardown(void **state)
{
	struct lab *l = *state;

	hca_rq_fini(&l->rq);
	free(l->ring);
	free(l);
	return 0;
}

static void post(struct lab *l, unsigned n)
{
	struct ibv_recv_wr wr = { 0 }, *bad;

	while (n--) {
		wr.wr_id = l->wr_id++;
		assert_int_equal(hca_rq_post(&l->rq, &wr, &bad), 0);
	}
}

static void deliver(struct lab *l)
{
	uint32_t pos;
	struct shm_arrival *slot = shm_ring_claim(&l->view, &pos);

	assert_non_null(slot);
	assert_true(shm_ring_publish(&l->view, slot, pos));
}

static enum hca_rq_outcome complete(struct hca_rq *rq, struct shm_arrival *slot, struct ibv_wc *wc)
{
	const struct ibv_sge *sge;

	(void)slot;
	wc->wr_id = hca_rq_next(rq, &sge)->wr_id;
	return HCA_RQ_DONE;
}

/* Polls @n completions, of the receives from @wr_id on, and finds no more. */
static void expect(struct lab *l, int n, uint64_t wr_id)
{
	struct ibv_wc wc[SIZE + 1];

	assert_int_equal(hca_rq_poll(&l->rq, SIZE + 1, wc, &l->arrivals, complete), n);
	for (int i = 0; i < n; i++)
		assert_int_equal(wc[i].wr_id, wr_id + (uint64_t)i);
}

/* Positions are numbers of 32 bits: half of them are "before" any other one. */
static const uint32_t long_after[] = { 0x7FFFFFFE, 0x80000000, 0x80000005, 0xC0000000, 0xFFFFFFFE };

CASE_WITH(messages_arrive_however_many_came_before, setup, teardown)
{
	for (size_t i = 0; i < sizeof(long_after) / sizeof(*long_after); i++) {
		struct lab *l = lab_at(state, long_after[i]);

		for (unsigned turn = 0; turn < 3; turn++) {
			uint64_t first = l->wr_id;

			post(l, SIZE);
			for (unsigned m = 0; m < SIZE; m++)
				deliver(l);
			expect(l, SIZE, first);
		}
	}
}

CASE_WITH(a_dead_sender_costs_no_receive_however_late, setup, teardown)
{
	for (size_t i = 0; i < sizeof(long_after) / sizeof(*long_after); i++) {
		struct lab *l = lab_at(state, long_after[i]);
		uint64_t first = l->wr_id;
		struct shm_arrival *slot;
		uint32_t pos;

		post(l, SIZE);
		slot = shm_ring_claim(&l->view, &pos);
		assert_non_null(slot);
		assert_true(shm_ring_void(slot, atomic_load(&slot->state), 7));
		for (unsigned m = 1; m < SIZE; m++)
			deliver(l);
		expect(l, SIZE - 1, first);
		deliver(l);
		expect(l, 1, first + SIZE - 1);
	}
}

/* It is published after the reset, and behind it others were before. */
CASE_WITH(what_was_claimed_before_a_reset_is_discarded, setup, teardown)
{
	struct lab *l = lab_at(state, 0xFFFFFFFE);
	struct shm_arrival *slot;
	uint64_t first;
	uint32_t pos;

	post(l, SIZE);
	slot = shm_ring_claim(&l->view, &pos);
	assert_non_null(slot);
	deliver(l);
	hca_rq_reset(&l->rq);
	hca_rq_set_mode(&l->rq, HCA_RQ_OPEN);
	expect(l, 0, 0);
	assert_true(shm_ring_publish(&l->view, slot, pos));
	expect(l, 0, 0);
	assert_int_equal(l->arrivals, 2);
	first = l->wr_id;
	post(l, SIZE);
	for (unsigned m = 0; m < SIZE; m++)
		deliver(l);
	expect(l, SIZE, first);
	assert_int_equal(l->arrivals, 2 + SIZE);
}

/* One that is stopped before it publishes does not keep what others send after the reset. */
CASE_WITH(a_claim_of_before_a_reset_is_not_waited_for_long, setup, teardown)
{
	struct lab *l = lab_at(state, 0);
	struct shm_arrival *slot;
	struct hca_qp *qp = calloc(1, sizeof(*qp));
	uint64_t first;
	uint32_t pos;

	assert_non_null(qp);
	l->rq.connected = qp;
	post(l, 1);
	slot = shm_ring_claim(&l->view, &pos);
	assert_non_null(slot);
	hca_rq_reset(&l->rq);
	hca_rq_set_mode(&l->rq, HCA_RQ_OPEN);
	first = l->wr_id;
	post(l, SIZE - 1);
	for (unsigned m = 1; m < SIZE; m++)
		deliver(l);
	expect(l, 0, 0);
	assert_int_equal(l->ring->taken, 0);
	l->rq.flushed_ns -= 2 * HCA_STOPPED_WAIT_NS;
	expect(l, SIZE - 1, first);
	assert_int_equal(l->ring->taken, 1);
	assert_false(shm_ring_publish(&l->view, slot, pos));
	free(qp);
}

int main(void)
{

	return harness_run(NULL, NULL);
}
