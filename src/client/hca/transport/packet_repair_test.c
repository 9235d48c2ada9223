/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process has died while it worked on a half: what the next holder of the lock makes of the
 * numbers that it left. That real processes die at each place, tests/roce/wire_death.c shows.
 */
#include <harness.h>

#include "base/util.h"
#include "hca/transport/packet_requester.h"
#include "shm/testing.h"

#define HEAD  3 /* position of the first request under way */
#define SHIFT 2 /* of the receives' ring */

static struct shm_wire shm;
static struct shm_connection connection;
static struct hca_process process;
static struct hca_sender sender;
static struct hca_wire w;

static int begin(void **state)
{
	struct lab *l;

	setup(state);
	l = *state;
	start(l, SHIFT);
	if (!process.region.control)
		assert_int_equal(shm_region_create(&process.region, 1, 1), 0);
	memset(&shm, 0, sizeof(shm));
	memset(&w, 0, sizeof(w));
	atomic_store(&connection.head, HEAD);
	w.shm = &shm;
	w.connection = &connection;
	w.sender = &sender;
	w.end.process = &process;
	w.end.qp.type = IBV_QPT_RC;
	w.end.qp.ring_shift = SHIFT;
	w.responder.view = shm_ring_view(l->ring, SHIFT, GEN, ME);
	shm.window = 64;
	return 0;
}

static void mend(uint32_t what)
{
	atomic_store(&shm.broken, SHM_WIRE_RESPONDER | SHM_WIRE_REQUESTER);
	assert_true(hca_wire_is_broken(&w, what));
	hca_wire_mend(&w, what);
	assert_false(hca_wire_is_broken(&w, what));
	/* the other half is looked at by its own lock's holder */
	assert_true(hca_wire_is_broken(&w, what ^ (SHM_WIRE_RECEIVES | SHM_WIRE_SENDS)));
}

/* ---- the requester ---- */

CASE_WITH(the_requester_sends_again_what_is_not_acknowledged, begin, teardown)
{
	static const struct {
		uint32_t first, acked, psn, beyond; /* as they were left */
		uint32_t then_acked, then_beyond;   /* and are then */
		enum shm_wire_recovers recovers;
	} row[] = {
		{ 100, 105, 120, 120, 105, 120, SHM_WIRE_RECOVERS },
		/* all is acknowledged: nothing can have got lost */
		{ 100, 120, 120, 120, 120, 120, SHM_WIRE_GOES_ON },
		/* a packet was counted, and not yet that it is the farthest */
		{ 100, 105, 121, 120, 105, 121, SHM_WIRE_RECOVERS },
		/* a request was done, and its acknowledgement not yet noted */
		{ 110, 105, 120, 120, 110, 120, SHM_WIRE_RECOVERS },
		/* the same where PSNs come around */
		{ 2, WIRE_PSN_MASK, 8, 7, 2, 8, SHM_WIRE_RECOVERS },
		/* it was going back already */
		{ 100, 105, 110, 120, 105, 120, SHM_WIRE_RECOVERS },
	};

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		shm_wire_head(&shm, HEAD)->psn = row[i].first;
		shm.acked = row[i].acked;
		shm.psn = row[i].psn;
		shm.beyond = row[i].beyond;
		shm.probes = shm.has_gap = true;
		shm.recovers = SHM_WIRE_GOES_ON;
		mend(SHM_WIRE_SENDS);
		assert_int_equal(shm.acked, row[i].then_acked);
		assert_int_equal(shm.psn, row[i].then_acked);
		assert_int_equal(shm.beyond, row[i].then_beyond);
		assert_int_equal(shm.offset, wire_psn_add(row[i].then_acked, -row[i].first));
		assert_int_equal(shm.next, HEAD);
		assert_int_equal(shm.recovers, row[i].recovers);
		assert_false(shm.probes || shm.has_gap);
	}
}

/* The dead process may have told nobody that all is done before SQD. */
CASE_WITH(the_end_of_draining_is_told_anew, begin, teardown)
{
	static const uint8_t row[][2] = { { SHM_WIRE_DRAINED, SHM_WIRE_DRAINS },
		                          { SHM_WIRE_DRAINS, SHM_WIRE_DRAINS },
		                          { SHM_WIRE_TELLS_NOBODY, SHM_WIRE_TELLS_NOBODY } };

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		atomic_store(&shm.drains, row[i][0]);
		mend(SHM_WIRE_SENDS);
		assert_int_equal(atomic_load(&shm.drains), row[i][1]);
	}
}

/* ---- the responder ---- */

CASE_WITH(at_rest_nothing_changes, begin, teardown)
{
	shm.in.expected = 5;
	shm.before.expected = 4;
	mend(SHM_WIRE_RECEIVES);
	assert_int_equal(shm.in.expected, 5);
}

/* It is as if the packet had got lost: the peer sends it again. */
CASE_WITH(what_a_packet_has_changed_is_undone, begin, teardown)
{
	shm.before = (struct shm_wire_in){ .expected = 4, .msn = 2, .operation = SHM_WIRE_SEND };
	shm.in = (struct shm_wire_in){ .expected = 5, .msn = 3, .offset = 1024 };
	hca_wire_step(&w, SHM_WIRE_CHANGES);
	mend(SHM_WIRE_RECEIVES);
	assert_int_equal(shm.in.expected, 4);
	assert_int_equal(shm.in.msn, 2);
	assert_int_equal(shm.in.offset, 0);
	assert_int_equal(shm.in.operation, SHM_WIRE_SEND);
	assert_int_equal(atomic_load(&shm.step), SHM_WIRE_AT_REST);
}

/* The packet had claimed a receive for a message that had only begun. */
CASE_WITH(a_receive_that_was_claimed_is_the_next_messages, begin, teardown)
{
	struct lab *l = *state;
	uint32_t pos;

	post(l, 3);
	assert_true(send_as(l, ME, 1)); /* a message that has arrived */
	assert_non_null(claim(l, ME, &pos));
	shm.in = (struct shm_wire_in){ .expected = 5, .operation = SHM_WIRE_SEND };
	hca_wire_step(&w, SHM_WIRE_CHANGES);
	mend(SHM_WIRE_RECEIVES);
	assert_int_equal(shm.in.operation, SHM_WIRE_NONE);
	assert_true(shm.in.keeps);
	assert_int_equal(shm.in.claimed, pos);
}

CASE_WITH(without_a_claim_no_receive_is_kept, begin, teardown)
{
	struct lab *l = *state;
	uint32_t pos;

	post(l, 3);
	assert_true(send_as(l, ME, 1));
	assert_non_null(claim(l, OTHER, &pos)); /* another queue pair's, of a shared ring */
	hca_wire_step(&w, SHM_WIRE_CHANGES);
	mend(SHM_WIRE_RECEIVES);
	assert_false(shm.in.keeps);
}
