/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receive ring: credits are exact, messages keep their order, positions wrap, hints
 * may be wrong, and what the manager does to a ring does what it says.
 */
#include "shm/testing.h"
#include "base/util.h"

/* ---- credits and order ---- */

static void a_ring_without_receives_accepts_nothing(void **state)
{
	struct lab *l = *state;

	start(l, 3);
	assert_false(send_as(l, ME, 1));
	expect_empty(l);
}

static void each_posted_receive_accepts_one_message(void **state)
{
	struct lab *l = *state;

	start(l, 3);
	for (uint32_t n = 0; n <= 8; n++) {
		post(l, n);
		assert_int_equal(count_credits(l), n);
	}
}

static void messages_come_out_in_the_order_in_which_slots_were_claimed(void **state)
{
	struct lab *l = *state;
	struct shm_arrival *first, *second;
	uint32_t pos[2] = { 0 };

	start(l, 2);
	post(l, 4);
	first = claim(l, ME, &pos[0]);
	second = claim(l, OTHER, &pos[1]);
	assert_non_null(first);
	assert_non_null(second);
	fill(second, OTHER, 2);
	assert_true(shm_ring_publish(second, pos[1], GEN, OTHER));
	expect_empty(l);
	fill(first, ME, 1);
	assert_true(shm_ring_publish(first, pos[0], GEN, ME));
	expect_taken(l, ME, 1);
	expect_taken(l, OTHER, 2);
}

static void a_ring_of_one_slot_works(void **state)
{
	struct lab *l = *state;

	start(l, 0);
	for (uint32_t i = 0; i < 100; i++) {
		post(l, 1);
		assert_true(send_as(l, ME, i));
		assert_false(send_as(l, OTHER, i));
		expect_taken(l, ME, i);
	}
}

static void a_first_lap_posted_in_parts_touches_only_what_was_posted(void **state)
{
	struct lab *l = *state;

	start(l, 4);
	post(l, 3);
	assert_true(shm_ring_slot(l->ring, 4, 2)->state != 0);
	assert_true(shm_ring_slot(l->ring, 4, 3)->state == 0);
	assert_int_equal(count_credits(l), 3);
}

/* Several laps over a point where positions wrap. */
static void cross(struct lab *l, uint32_t first)
{
	start_at(l, 2, GEN, first);
	for (uint32_t i = 0; i < 40; i++) {
		uint32_t n = i % 4 + 1;

		post(l, n);
		for (uint32_t k = 0; k < n; k++)
			assert_true(send_as(l, ME, i * 4 + k));
		assert_false(send_as(l, ME, 0));
		for (uint32_t k = 0; k < n; k++)
			expect_taken(l, ME, i * 4 + k);
		expect_empty(l);
	}
}

static void positions_wrap_at_30_bits(void **state)
{
	cross(*state, (1u << 30) - 50);
}

static void positions_wrap_at_31_bits(void **state)
{
	cross(*state, (1u << 31) - 50);
}

static void counters_wrap_at_32_bits(void **state)
{
	cross(*state, -50u);
}

/* ---- hints ---- */

static void a_tail_that_lags_behind_costs_nothing_but_time(void **state)
{
	static const uint32_t behind[] = { 1, 3, 4, 5, 8, 1000, 1u << 20 };
	struct lab *l = *state;

	for (size_t i = 0; i < ARRAY_SIZE(behind); i++) {
		start_at(l, 2, GEN, 0x50000000);
		post(l, 4);
		assert_true(send_as(l, ME, 0));
		l->ring->tail -= behind[i];
		assert_true(send_as(l, ME, 1));
		expect_taken(l, ME, 0);
		expect_taken(l, ME, 1);
		assert_int_equal(count_credits(l), 2);
	}
}

static void a_posted_seen_that_lags_behind_hides_no_credit(void **state)
{
	struct lab *l = *state;

	start_at(l, 2, GEN, 5000);
	post(l, 4);
	l->ring->posted_seen -= 1000;
	assert_int_equal(count_credits(l), 4);
}

static void hints_that_lag_make_no_credit(void **state)
{
	struct lab *l = *state;

	start_at(l, 2, GEN, 5000);
	l->ring->posted_seen = l->ring->tail = 4000;
	assert_false(send_as(l, ME, 0));
	post(l, 1);
	assert_true(send_as(l, ME, 0));
	l->ring->posted_seen = l->ring->tail = 4000;
	assert_false(send_as(l, ME, 0));
}

static void a_ring_full_of_nonsense_does_not_keep_a_sender(void **state)
{
	struct lab *l = *state;
	uint32_t pos = 0;

	start(l, 3);
	for (unsigned seed = 1; seed < 200; seed++) {
		uint32_t *word = (uint32_t *)l->ring;

		srandom(seed);
		for (size_t i = 0; i < shm_ring_bytes(3) / sizeof(*word); i++)
			word[i] = (uint32_t)random() << 1 ^ (uint32_t)random();
		for (unsigned i = 0; i < 8; i++) /* of the right generation, at least */
			shm_ring_slot(l->ring, 3, i)->state =
			        shm_slot_state((uint32_t)random(), GEN, ME, random() % 4);
		claim(l, ME, &pos); /* returns, that is all */
		shm_ring_refers(l->ring, 3, 0, 1);
		shm_ring_void_writer(l->ring, 3, ME);
	}
}

/* ---- the manager's work ---- */

static void only_the_dead_writers_slots_are_voided(void **state)
{
	struct lab *l = *state;
	struct shm_arrival *live;
	uint32_t pos = 0;

	start(l, 2);
	post(l, 4);
	assert_true(send_as(l, ME, 1));
	live = claim(l, OTHER, &pos);
	assert_non_null(live);
	assert_non_null(claim(l, ME, &(uint32_t){ 0 }));
	assert_int_equal(shm_ring_void_writer(l->ring, 2, ME), 1);
	fill(live, OTHER, 2);
	assert_true(shm_ring_publish(live, pos, GEN, OTHER));
	expect_taken(l, ME, 1);
	expect_taken(l, OTHER, 2);
	expect_empty(l);
	/* the void one has become a credit again; two have been used */
	assert_int_equal(count_credits(l), 2);
}

static void a_writer_taken_for_dead_cannot_publish_any_more(void **state)
{
	struct lab *l = *state;
	struct shm_arrival *slot;
	uint32_t pos = 0;

	start(l, 0);
	post(l, 1);
	slot = claim(l, ME, &pos);
	assert_non_null(slot);
	assert_int_equal(shm_ring_void_writer(l->ring, 0, ME), 1);
	expect_empty(l); /* posted anew */
	assert_true(send_as(l, OTHER, 5));
	assert_false(shm_ring_publish(slot, pos, GEN, ME));
	expect_taken(l, OTHER, 5);
}

static void withdrawal_takes_credits_and_leaves_what_was_claimed(void **state)
{
	struct lab *l = *state;
	struct shm_arrival *slot;
	uint32_t pos = 0;

	start(l, 2);
	post(l, 4);
	assert_true(send_as(l, ME, 1));
	slot = claim(l, OTHER, &pos);
	assert_non_null(slot);
	shm_ring_withdraw(l->ring, 2, GEN, l->consumed, l->posted);
	assert_false(send_as(l, ME, 3));
	fill(slot, OTHER, 2);
	assert_true(shm_ring_publish(slot, pos, GEN, OTHER));
	assert_int_equal(shm_ring_peek(l->ring, 2, 0), SHM_SLOT_DONE);
	assert_int_equal(shm_ring_peek(l->ring, 2, 1), SHM_SLOT_DONE);
	assert_int_equal(shm_ring_peek(l->ring, 2, 2), SHM_SLOT_VOID);
	assert_int_equal(shm_ring_peek(l->ring, 2, 3), SHM_SLOT_VOID);
}

static void a_ring_goes_on_after_a_withdrawal(void **state)
{
	struct lab *l = *state;

	start(l, 2);
	for (unsigned lap = 0; lap < 10; lap++) {
		post(l, 4);
		shm_ring_withdraw(l->ring, 2, GEN, l->consumed, l->posted);
		l->consumed = l->posted;
		shm_ring_consume(l->ring, l->consumed);
	}
	post(l, 3);
	assert_int_equal(count_credits(l), 3);
}

static bool other_is_alive(void *arg, uint16_t writer)
{
	(void)arg;
	return writer == OTHER;
}

static void a_ring_is_closed_when_no_live_writer_is_in_it(void **state)
{
	struct lab *l = *state;
	struct shm_arrival *slot;
	uint32_t pos = 0;

	start(l, 2);
	post(l, 4);
	assert_non_null(claim(l, ME, &pos));
	slot = claim(l, OTHER, &pos);
	assert_non_null(slot);
	assert_int_equal(shm_ring_close(l->ring, 2, other_is_alive, NULL), 1);
	assert_false(send_as(l, ME, 1));
	fill(slot, OTHER, 1);
	assert_true(shm_ring_publish(slot, pos, GEN, OTHER));
	assert_int_equal(shm_ring_close(l->ring, 2, other_is_alive, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_true(shm_ring_slot(l->ring, 2, i)->state == 0);
}

static void an_arrival_that_waits_refers_to_its_payload_until_it_is_taken(void **state)
{
	struct lab *l = *state;
	struct shm_arrival *slot;
	struct taken t;
	uint32_t pos = 0;

	start_at(l, 2, GEN, -2u);
	post(l, 4);
	assert_true(send_as(l, ME, 1));
	slot = claim(l, ME, &pos);
	fill(slot, ME, 2);
	slot->flags = SHM_ARRIVAL_PAYLOAD;
	slot->payload_off = 0x3000;
	assert_false(shm_ring_refers(l->ring, 2, 0x3000, 0x1000)); /* no arrival yet */
	assert_true(shm_ring_publish(slot, pos, GEN, ME));
	assert_true(shm_ring_refers(l->ring, 2, 0x3000, 0x1000));
	assert_true(shm_ring_refers(l->ring, 2, 0x1000, 0x2001));
	assert_false(shm_ring_refers(l->ring, 2, 0x1000, 0x2000));
	assert_false(shm_ring_refers(l->ring, 2, 0x3001, 0x1000));
	assert_true(take(l, &t) && take(l, &t));
	assert_false(shm_ring_refers(l->ring, 2, 0x3000, 0x1000));
}

static void memory_of_a_freed_ring_gives_an_old_sender_nothing(void **state)
{
	struct lab *l = *state;
	uint64_t seen;
	uint32_t pos = 0;

	start(l, 2);
	post(l, 4);
	/* it has looked at the slot and falls asleep before it takes it */
	seen = shm_ring_slot(l->ring, 2, 0)->state;
	assert_int_equal(shm_ring_close(l->ring, 2, other_is_alive, NULL), 0);
	assert_null(claim(l, ME, &pos));
	start_at(l, 2, GEN + 1, 0);
	post(l, 4);
	assert_false(atomic_compare_exchange_strong(&shm_ring_slot(l->ring, 2, 0)->state, &seen,
	                                            shm_slot_state(0, GEN, ME, SHM_SLOT_CLAIMED)));
	assert_null(shm_ring_claim(l->ring, 2, GEN, ME, &pos));
	assert_int_equal(count_credits(l), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_ring_without_receives_accepts_nothing),
		TEST(each_posted_receive_accepts_one_message),
		TEST(messages_come_out_in_the_order_in_which_slots_were_claimed),
		TEST(a_ring_of_one_slot_works),
		TEST(a_first_lap_posted_in_parts_touches_only_what_was_posted),
		TEST(positions_wrap_at_30_bits),
		TEST(positions_wrap_at_31_bits),
		TEST(counters_wrap_at_32_bits),
		TEST(a_tail_that_lags_behind_costs_nothing_but_time),
		TEST(a_posted_seen_that_lags_behind_hides_no_credit),
		TEST(hints_that_lag_make_no_credit),
		TEST(a_ring_full_of_nonsense_does_not_keep_a_sender),
		TEST(only_the_dead_writers_slots_are_voided),
		TEST(a_writer_taken_for_dead_cannot_publish_any_more),
		TEST(withdrawal_takes_credits_and_leaves_what_was_claimed),
		TEST(a_ring_goes_on_after_a_withdrawal),
		TEST(a_ring_is_closed_when_no_live_writer_is_in_it),
		TEST(an_arrival_that_waits_refers_to_its_payload_until_it_is_taken),
		TEST(memory_of_a_freed_ring_gives_an_old_sender_nothing),
	};

	return cmocka_run_group_tests_name("shm.ring", tests, NULL, NULL);
}
