/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which completion queues of a channel have events, and in which order.
 */
#include <harness.h>

#include "base/util.h"
#include "hca/queue/cq.h"
#include "hca/queue/due.h"

#define CQS 1000

static struct shm_region region;
static struct shm_cq *queues;
static struct shm_cq_events *events;
static struct hca_cq cqs[CQS];
static struct hca_due due;

/* Queue @i of the channel, which has that number. */
static void enter(unsigned i, uint32_t id)
{
	cqs[i] = (struct hca_cq){ .id = id, .shm = &queues[id] };
	assert_int_equal(hca_due_enter(&due, &cqs[i]), 0);
}

static void expect(const struct hca_cq *cq)
{
	assert_ptr_equal(hca_due_first(&due), cq);
	if (cq)
		hca_due_take(&due);
}

static int begin(void **state)
{
	const struct shm_control *c;

	(void)state;
	assert_int_equal(shm_region_create(&region, 1, 1), 0);
	c = region.control;
	queues = shm_data_map(&region, c->cqs_off, SHM_MAX_CQS * sizeof(*queues));
	events = shm_data_map(&region, c->cq_events_off, SHM_MAX_CQS / 64 * sizeof(*events));
	assert_non_null(queues);
	assert_non_null(events);
	due = (struct hca_due){ .events = events };
	return 0;
}

static int end(void **state)
{
	(void)state;
	hca_due_fini(&due);
	shm_region_unmap(&region);
	return 0;
}

CASE_WITH(they_come_in_their_order, begin, end)
{
	static const uint32_t ids[] = { 700, 3, 64, 65535, 63, 0, 701 };

	for (unsigned i = 0; i < ARRAY_SIZE(ids); i++)
		enter(i, ids[i]);
	expect(NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(ids); i++)
		shm_cq_add_event(&region, ids[i], 10 + i);
	expect(&cqs[0]);
	/* one that came before those, and is seen now */
	shm_cq_add_event(&region, ids[0], 5);
	expect(&cqs[0]);
	for (unsigned i = 1; i < ARRAY_SIZE(ids); i++)
		expect(&cqs[i]);
	expect(NULL);
}

CASE_WITH(who_has_more_comes_behind_the_others, begin, end)
{
	enter(0, 1);
	enter(1, 2);
	for (unsigned i = 0; i < 3; i++)
		shm_cq_add_event(&region, 1, 1);
	shm_cq_add_event(&region, 2, 2);
	expect(&cqs[0]);
	expect(&cqs[1]);
	expect(&cqs[0]);
	expect(&cqs[0]);
	expect(NULL);
}

CASE_WITH(those_of_others_are_not_seen, begin, end)
{
	enter(0, 130);
	for (uint32_t id = 64; id < 256; id++)
		if (id != 130)
			shm_cq_add_event(&region, id, 1);
	expect(NULL);
	shm_cq_add_event(&region, 130, 2);
	expect(&cqs[0]);
	expect(NULL);
	assert_int_equal(events[2].bits, ~(1ull << 2));
}

CASE_WITH(an_event_that_was_taken_back_is_none, begin, end)
{
	enter(0, 7);
	shm_cq_add_event(&region, 7, 1);
	queues[7].notified--; /* as the daemon does, if the eventfd is full */
	expect(NULL);
	shm_cq_add_event(&region, 7, 2);
	expect(&cqs[0]);
	expect(NULL);
}

CASE_WITH(who_leaves_takes_its_events_along, begin, end)
{
	for (unsigned i = 0; i < 5; i++) {
		enter(i, 60 + i);
		shm_cq_add_event(&region, 60 + i, 5 - i);
	}
	assert_ptr_equal(hca_due_first(&due), &cqs[4]);
	hca_due_leave(&due, &cqs[4]);
	hca_due_leave(&due, &cqs[2]);
	expect(&cqs[3]);
	expect(&cqs[1]);
	expect(&cqs[0]);
	expect(NULL);
	/* another queue gets the number of queue 2, but no event of queue 2 */
	queues[62] = (struct shm_cq){ .gen = 1 };
	enter(2, 62);
	expect(NULL);
	shm_cq_add_event(&region, 62, 9);
	expect(&cqs[2]);
}

/* Beside a list that is sorted by hand. */
CASE_WITH(many_at_random, begin, end)
{
	uint64_t since[CQS] = { 0 };

	srand(1);
	for (unsigned i = 0; i < CQS; i++)
		enter(i, i * 7);
	for (unsigned turn = 1; turn < 20000; turn++) {
		unsigned first = CQS, some = (unsigned)rand() % CQS;

		if (rand() % 2 && !since[some]) {
			since[some] = (uint64_t)rand() % 1000 << 32 | turn;
			shm_cq_add_event(&region, some * 7, since[some]);
			continue;
		}
		if (since[some] && !(rand() % 8)) {
			hca_due_leave(&due, &cqs[some]);
			queues[some * 7] = (struct shm_cq){ .gen = turn };
			enter(some, some * 7);
			since[some] = 0;
			continue;
		}
		for (unsigned i = 0; i < CQS; i++)
			if (since[i] && (first == CQS || since[i] < since[first]))
				first = i;
		expect(first < CQS ? &cqs[first] : NULL);
		if (first < CQS)
			since[first] = 0;
	}
}

int main(void)
{

	return harness_run(NULL, NULL);
}
