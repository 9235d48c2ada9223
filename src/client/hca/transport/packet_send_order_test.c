/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two workers on one wire: a worker that has made packets that have not left keeps the other from
 * making any, hears that the other wanted to, and does not keep it for ever.
 */
#include <harness.h>

#include "base/util.h"
#include "hca/transport/packet_connection.h"

#define LONG_NS 200000000 /* longer than a worker that runs may take */

static struct shm_wire shm;
static struct shm_wire_busy *busy;
static struct hca_process process;
static struct hca_sender sender[2];
static struct hca_wire w[2];

static int begin(void **state)
{
	(void)state;
	memset(&shm, 0, sizeof(shm));
	memset(w, 0, sizeof(w));
	if (!process.region.control)
		assert_int_equal(shm_region_create(&process.region, 1, 1), 0);
	busy = shm_wire_busy_at(&process.region, 0);
	atomic_store(&busy->bits, 0);
	atomic_store(&process.region.data->ticking, true);
	for (uint32_t i = 0; i < 2; i++) {
		w[i].shm = &shm;
		w[i].sender = &sender[i];
		w[i].end.process = &process;
		w[i].worker = i + 1;
	}
	return 0;
}

CASE_WITH(the_other_hears_of_it, begin, NULL)
{
	assert_true(hca_wire_acquire_egress(&w[0]));
	assert_true(hca_wire_acquire_egress(&w[0]));
	assert_false(hca_wire_leave(&w[0])); /* nobody has asked */
	assert_false(hca_wire_leave(&w[0]));

	assert_true(hca_wire_acquire_egress(&w[0]));
	assert_int_equal(atomic_load(&busy->bits), 0);
	assert_false(hca_wire_acquire_egress(&w[1]));
	assert_false(hca_wire_acquire_egress(&w[1]));
	assert_int_equal(atomic_load(&busy->bits),
	                 1); /* if the other was stopped, the daemon looks */
	assert_false(hca_wire_leave(&w[1]));
	assert_true(hca_wire_acquire_egress(&w[0]));
	assert_true(hca_wire_leave(&w[0]));
	assert_true(hca_wire_acquire_egress(&w[1]));
	assert_false(hca_wire_leave(&w[1]));
}

CASE_WITH(who_was_stopped_is_not_waited_for, begin, NULL)
{
	assert_true(hca_wire_acquire_egress(&w[0]));
	assert_false(hca_wire_acquire_egress(&w[1]));
	w[1].egress_wait.since_ns -= LONG_NS;
	assert_true(hca_wire_acquire_egress(&w[1]));
	/* it goes on, and takes nothing from the other */
	assert_false(hca_wire_leave(&w[0]));
	assert_false(hca_wire_acquire_egress(&w[0]));
	assert_true(hca_wire_leave(&w[1]));
	/* the next time it is waited for as long again */
	assert_true(hca_wire_acquire_egress(&w[0]));
	assert_false(hca_wire_acquire_egress(&w[1]));
	assert_true(hca_wire_leave(&w[0]));
}

/* A worker that looks seldom meets the holder each time, at another turn. */
CASE_WITH(who_has_many_turns_was_not_stopped, begin, NULL)
{
	for (unsigned i = 0; i < 100; i++) {
		assert_true(hca_wire_acquire_egress(&w[0]));
		assert_false(hca_wire_acquire_egress(&w[1]));
		w[1].egress_wait.since_ns -= LONG_NS;
		assert_true(hca_wire_leave(&w[0]));
	}
}

/* Nor was a worker stopped that is at a turn of the same number, as numbers come around, when
 * another worker looks seldom. */
CASE_WITH(turns_that_come_around_are_others, begin, NULL)
{
	const unsigned turns = (SHM_WIRE_WANTED - 1) / IB_QPN_MASK;

	for (unsigned i = 0; i < 3; i++) {
		assert_true(hca_wire_acquire_egress(&w[0]));
		assert_false(hca_wire_acquire_egress(&w[1]));
		assert_true(hca_wire_leave(&w[0]));
		for (unsigned n = 1; n < turns; n++) {
			assert_true(hca_wire_acquire_egress(&w[0]));
			assert_false(hca_wire_leave(&w[0]));
		}
		w[1].egress_wait.since_ns -= LONG_NS;
		w[1].egress_wait.seen_ns -= LONG_NS;
	}
}

/* The daemon releases it for a worker that has died. */
CASE_WITH(who_is_gone_has_it_no_more, begin, NULL)
{
	assert_true(hca_wire_acquire_egress(&w[0]));
	assert_false(hca_wire_acquire_egress(&w[1]));
	shm_wire_release_egress(&shm, w[0].worker, atomic_load(&shm.egress));
	assert_true(hca_wire_acquire_egress(&w[1]));
	/* the other one's it is not */
	shm_wire_release_egress(&shm, w[0].worker, atomic_load(&shm.egress));
	assert_false(hca_wire_leave(&w[0]));
	assert_false(hca_wire_acquire_egress(&w[0]));
	assert_true(hca_wire_leave(&w[1]));
}

/* Also if it is wanted just as the daemon does that. */
CASE_WITH(who_is_gone_may_be_asked, begin, NULL)
{
	uint32_t before;

	assert_true(hca_wire_acquire_egress(&w[0]));
	before = atomic_load(&shm.egress);
	assert_false(hca_wire_acquire_egress(&w[1]));
	shm_wire_release_egress(&shm, w[0].worker, before);
	assert_true(hca_wire_acquire_egress(&w[1]));
	/* or if another one has it by then */
	shm_wire_release_egress(&shm, w[0].worker, before);
	assert_false(hca_wire_leave(&w[0]));
	assert_false(hca_wire_acquire_egress(&w[0]));
}

CASE_WITH(detours_do_not_wait, begin, NULL)
{
	w[0].path.detours = w[1].path.detours = SHM_WIRE_HERE;
	assert_true(hca_wire_acquire_egress(&w[0]));
	assert_true(hca_wire_acquire_egress(&w[1]));
	assert_false(hca_wire_leave(&w[0]));
	assert_false(hca_wire_leave(&w[1]));
}

/* ---- two threads, of which each sends what is there, or leaves it to the other ---- */

#define MESSAGES 100000

static struct {
	_Atomic uint32_t posted, inside;
	_Atomic bool overlaps, was_stopped;
	uint32_t sent; /* with the egress */
} crowd;

static bool send_all(struct hca_wire *x)
{
	uint64_t began = base_now_ns();
	bool wanted;

	if (!hca_wire_acquire_egress(x))
		return false;
	if (atomic_fetch_add(&crowd.inside, 1))
		atomic_store(&crowd.overlaps, true);
	crowd.sent = atomic_load(&crowd.posted);
	atomic_fetch_sub(&crowd.inside, 1);
	wanted = hca_wire_leave(x);
	if (base_now_ns() - began > LONG_NS / 8)
		atomic_store(&crowd.was_stopped, true);
	return wanted;
}

static void *post(void *arg)
{
	for (unsigned i = 0; i < MESSAGES; i++) {
		atomic_fetch_add(&crowd.posted, 1);
		while (send_all(arg))
			;
	}
	return NULL;
}

CASE_WITH(nothing_is_left_behind, begin, NULL)
{
	pthread_t thread[2];

	do { /* a busy machine may stop a thread for as long as nobody is waited for */
		begin(state);
		memset(&crowd, 0, sizeof(crowd));
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, post, &w[i]), 0);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(pthread_join(thread[i], NULL), 0);
	} while (atomic_load(&crowd.was_stopped));
	assert_false(atomic_load(&crowd.overlaps));
	assert_int_equal(crowd.sent, 2 * MESSAGES);
	assert_int_equal(atomic_load(&shm.egress), 0);
}
