/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns to READ: how many there are, which queue pairs get them, and that none keeps its turn for
 * good. tests/roce/many_reads.sh shows the purpose.
 */
#include <harness.h>

#include "base/util.h"
#include "shm/readers.h"

#define QPS   100
#define FIRST 4 /* of readers.c */

static struct shm_readers r;
static struct shm_reader reader[QPS];

static int begin(void **state)
{
	(void)state;
	memset(&r, 0, sizeof(r));
	memset(reader, 0, sizeof(reader));
	return 0;
}

static bool ask(uint32_t i, uint32_t ms)
{
	return shm_readers_ask(&r, &reader[i], i + 1, ms);
}

static void leave(uint32_t i)
{
	shm_readers_leave(&r, &reader[i], i + 1);
}

/* So many may read, and no more for the next few parts. */
static void hold(uint32_t most)
{
	atomic_store(&r.most, most);
	atomic_store(&r.shrank, 1);
	atomic_store(&r.grew, atomic_load(&r.parts));
}

/* How many queue pairs get a turn if all ask at once. Then all leave. */
static unsigned places(uint32_t ms)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < QPS; i++)
		n += ask(i, ms);
	for (uint32_t i = 0; i < QPS; i++)
		leave(i);
	return n;
}

CASE_WITH(few_begin_and_more_follow_while_nothing_is_lost, begin, NULL)
{
	unsigned before = 0, now;

	for (uint32_t i = 0; i < FIRST; i++)
		assert_true(ask(i, 0));
	assert_int_equal(atomic_load(&r.most), 2 * FIRST);
	for (unsigned round = 0; round < 8; round++, before = now) {
		now = places(1000);
		assert_true(now > before || now == SHM_READERS);
	}
	assert_int_equal(before, SHM_READERS);
}

CASE_WITH(a_loss_halves_them_once, begin, NULL)
{
	while (places(0) < SHM_READERS)
		;
	shm_readers_lose(&r);
	for (unsigned i = 0; i < 100; i++)
		shm_readers_lose(&r); /* what had been asked for before */
	assert_int_equal(places(0), SHM_READERS / 2);
	for (unsigned i = 0; i < 100; i++) {
		shm_readers_lose(&r);
		places(0);
	}
	shm_readers_lose(&r);
	assert_int_equal(places(0), SHM_READERS_LEAST);
	for (unsigned i = 0; i < 10000; i++)
		places(0);
	assert_int_equal(places(0), SHM_READERS); /* one by one */
}

CASE_WITH(who_waits_gets_the_place_of_who_leaves, begin, NULL)
{
	for (uint32_t i = 0; i < 2 * FIRST; i++)
		assert_true(ask(i, 0));
	assert_false(shm_readers_have_room(&r, 0));
	assert_false(ask(20, 0));
	leave(3);
	leave(3); /* has none */
	assert_true(shm_readers_have_room(&r, 0));
	assert_true(ask(20, 0));
	assert_false(ask(3, 0));
	leave(3);
	assert_false(shm_readers_have_room(&r, 0));
}

CASE_WITH(a_turn_ends_while_others_wait, begin, NULL)
{
	for (unsigned i = 0; i < 1000; i++)
		assert_true(ask(0, i)); /* alone */
	leave(0);
	hold(2);
	assert_true(ask(0, 0) && ask(1, 0));
	assert_false(ask(2, 0));
	for (unsigned i = 1; i < SHM_READERS_PARTS; i++) {
		hold(2);
		assert_true(ask(0, 0));
	}
	assert_false(ask(0, 0));
	assert_true(ask(2, 0));
	assert_int_equal(reader[0].place, 0);
}

/* Its peer is dead, or its process. */
CASE_WITH(who_asks_no_more_loses_its_place, begin, NULL)
{
	hold(2);
	assert_true(ask(0, 0) && ask(1, 0));
	assert_false(ask(2, SHM_READERS_MS - 1));
	assert_false(shm_readers_have_room(&r, SHM_READERS_MS - 1));
	assert_true(ask(1, SHM_READERS_MS - 1));
	assert_true(shm_readers_have_room(&r, SHM_READERS_MS));
	assert_true(ask(2, SHM_READERS_MS));
	assert_false(ask(0, SHM_READERS_MS)); /* another one has it */
	leave(0);
	assert_false(ask(3, SHM_READERS_MS)); /* which took nothing from that one */
}

CASE_WITH(a_place_that_was_taken_away_is_not_kept, begin, NULL)
{
	hold(8);
	for (uint32_t i = 0; i < 8; i++)
		assert_true(ask(i, 0));
	hold(2);
	assert_false(ask(7, 0));
	assert_true(ask(1, 0));
}

CASE_WITH(times_come_around, begin, NULL)
{
	hold(2);
	assert_true(ask(0, UINT32_MAX) && ask(1, UINT32_MAX));
	assert_false(ask(2, SHM_READERS_MS - 2));
	assert_true(ask(2, SHM_READERS_MS));
}

/* Others can write to the record. */
CASE_WITH(what_a_program_writes_there_leads_nowhere, begin, NULL)
{
	for (unsigned i = 0; i < 64; i++) {
		const uint32_t wild = i % 2 ? UINT32_MAX >> i % 32 : 1u << i % 32;

		atomic_store(&r.most, wild);
		atomic_store(&r.parts, wild * 3);
		atomic_store(&r.grew, wild * 5);
		atomic_store(&r.shrank, wild * 7);
		reader[0] = (struct shm_reader){ wild, wild, wild };
		ask(0, i);
		leave(0);
		shm_readers_lose(&r);
		assert_in_range(places(1000 * i), SHM_READERS_LEAST, SHM_READERS);
	}
}
