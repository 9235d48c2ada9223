/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receive ring: credits are exact, messages keep their order, positions wrap, hints may be
 * wrong, and the daemon's operations.
 */
#include <harness.h>

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
	assert_true(publish(l, OTHER, second, pos[1]));
	expect_empty(l);
	fill(first, ME, 1);
	assert_true(publish(l, ME, first, pos[0]));
	expect_received(l, ME, 1);
	expect_received(l, OTHER, 2);
}

static void a_ring_of_one_slot_works(void **state)
{
	struct lab *l = *state;

	start(l, 0);
	for (uint32_t i = 0; i < 100; i++) {
		post(l, 1);
		assert_true(send_as(l, ME, i));
		assert_false(send_as(l, OTHER, i));
		expect_received(l, ME, i);
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

/* Sends several laps across a point where positions wrap. */
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
			expect_received(l, ME, i * 4 + k);
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

	for (size_t i = 0; EACH_ROW(i, behind); i++) {
		start_at(l, 2, GEN, 0x50000000);
		post(l, 4);
		assert_true(send_as(l, ME, 0));
		l->ring->tail -= behind[i];
		assert_true(send_as(l, ME, 1));
		expect_received(l, ME, 0);
		expect_received(l, ME, 1);
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
		for (unsigned i = 0; i < 8; i++) /* with the right generation */
			shm_ring_slot(l->ring, 3, i)->state =
			        shm_slot_state((uint32_t)random(), GEN, ME, random() % 4);
		claim(l, ME, &pos); /* only has to return */
		void_writer(l, 3, ME);
	}
}

/* ---- the daemon's operations ---- */

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
	assert_int_equal(void_writer(l, 2, ME), 1);
	fill(live, OTHER, 2);
	assert_true(publish(l, OTHER, live, pos));
	expect_received(l, ME, 1);
	expect_received(l, OTHER, 2);
	expect_empty(l);
	/* the void slot has become a credit again; two are in use */
	assert_int_equal(count_credits(l), 2);
}

static void a_writer_declared_dead_cannot_publish(void **state)
{
	struct lab *l = *state;
	struct shm_arrival *slot;
	uint32_t pos = 0;

	start(l, 0);
	post(l, 1);
	slot = claim(l, ME, &pos);
	assert_non_null(slot);
	assert_int_equal(void_writer(l, 0, ME), 1);
	expect_empty(l); /* posted anew */
	assert_true(send_as(l, OTHER, 5));
	assert_false(publish(l, ME, slot, pos));
	expect_received(l, OTHER, 5);
}

static void withdrawal_removes_credits_and_keeps_claimed_slots(void **state)
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
	assert_true(publish(l, OTHER, slot, pos));
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
	assert_int_equal(close_ring(l, 2, other_is_alive), 1);
	assert_false(send_as(l, ME, 1));
	fill(slot, OTHER, 1);
	assert_true(publish(l, OTHER, slot, pos));
	assert_int_equal(close_ring(l, 2, other_is_alive), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_true(shm_ring_slot(l->ring, 2, i)->state == 0);
}

/* How many slots of this kind the daemon's walk finds. */
static unsigned count_walked(struct lab *l, unsigned shift, enum shm_slot_kind kind)
{
	struct shm_ring_walk w;
	unsigned n = 0;
	uint64_t s;

	shm_ring_walk_begin(&w, l->ring, shift);
	while (shm_ring_walk_next(&w, &s))
		n += shm_slot_kind(s) == kind;
	return n;
}

static void a_walk_costs_what_waits_in_the_ring(void **state)
{
	struct lab *l = *state;
	struct shm_ring_walk w;
	uint64_t s;

	start(l, LARGE);
	post(l, 1u << LARGE);
	for (unsigned i = 0; i < 3; i++)
		assert_true(send_as(l, ME, i));
	shm_ring_walk_begin(&w, l->ring, LARGE);
	while (shm_ring_walk_next(&w, &s))
		;
	assert_int_equal((2u << LARGE) - w.left, 4);
}

static void a_walk_that_pauses_misses_nothing_that_still_waits(void **state)
{
	struct lab *l = *state;
	struct shm_ring_walk w;
	struct received t;
	uint64_t s;

	start_at(l, 2, GEN, -2u);
	post(l, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_true(send_as(l, ME, i));
	shm_ring_walk_begin(&w, l->ring, 2);
	assert_ptr_equal(shm_ring_walk_next(&w, &s), shm_ring_slot(l->ring, 2, -2u));
	for (unsigned i = 0; i < 3; i++)
		assert_true(receive(l, &t));
	post(l, 3);
	for (unsigned i = 4; i < 7; i++) /* these were not there when the walk began */
		assert_true(send_as(l, ME, i));
	assert_ptr_equal(shm_ring_walk_next(&w, &s), shm_ring_slot(l->ring, 2, 1));
	assert_null(shm_ring_walk_next(&w, &s));
}

static void an_arrival_refers_to_its_payload_until_it_is_consumed(void **state)
{
	struct lab *l = *state;
	struct shm_arrival *slot;
	struct received t;
	uint32_t pos = 0;

	start_at(l, 2, GEN, -2u);
	post(l, 4);
	assert_true(send_as(l, ME, 1));
	slot = claim(l, ME, &pos);
	fill(slot, ME, 2);
	assert_int_equal(count_walked(l, 2, SHM_SLOT_DONE), 1);
	assert_int_equal(count_walked(l, 2, SHM_SLOT_CLAIMED), 1);
	assert_true(publish(l, ME, slot, pos));
	assert_int_equal(count_walked(l, 2, SHM_SLOT_DONE), 2);
	assert_true(receive(l, &t));
	assert_int_equal(count_walked(l, 2, SHM_SLOT_DONE), 1);
	assert_true(receive(l, &t));
	assert_int_equal(count_walked(l, 2, SHM_SLOT_DONE), 0);
}

static void memory_of_a_freed_ring_gives_an_old_sender_nothing(void **state)
{
	struct lab *l = *state;
	struct lab old;
	uint64_t seen;
	uint32_t pos = 0;

	start(l, 2);
	post(l, 4);
	/* the sender has read the slot and sleeps before it claims it */
	seen = shm_ring_slot(l->ring, 2, 0)->state;
	assert_int_equal(close_ring(l, 2, other_is_alive), 0);
	assert_null(claim(l, ME, &pos));
	start_at(l, 2, GEN + 1, 0);
	post(l, 4);
	assert_false(atomic_compare_exchange_strong(&shm_ring_slot(l->ring, 2, 0)->state, &seen,
	                                            shm_slot_state(0, GEN, ME, SHM_SLOT_CLAIMED)));
	old = *l;
	old.gen = GEN;
	assert_null(claim(&old, ME, &pos));
	assert_int_equal(count_credits(l), 4);
}

static void an_old_sender_harms_no_rings_of_other_sizes(void **state)
{
	struct lab *l = *state;
	struct shm_ring *old = l->ring;
	struct lab before_all;
	const size_t bytes = shm_ring_bytes(3);
	const unsigned shift[] = { 1, 0, 1 }; /* as large as one of shift 3 */
	char *before = malloc(bytes);
	uint32_t pos;

	start(l, 3);
	before_all = *l;
	for (unsigned i = 0; i < 3; i++) {
		start_at(l, shift[i], (uint16_t)(GEN + 1 + i), 0);
		post(l, 1u << shift[i]);
		send_as(l, OTHER, 0);
		l->ring = (struct shm_ring *)((char *)l->ring + shm_ring_bytes(shift[i]));
	}
	l->ring = old;
	srandom(1);
	for (unsigned i = 0; i < 10000; i++) {
		/* where the old ring had its hints, which new rings use as they like */
		old->tail = (uint32_t)random();
		old->posted_seen = (uint32_t)random() << i % 2;
		memcpy(before, old, bytes);
		assert_null(claim(&before_all, ME, &pos));
		assert_memory_equal(before, old, bytes);
	}
	free(before);
}

/* An owner that withdraws late, when its queue pair is destroyed, has nothing to withdraw any
 * more. */
static void a_late_withdrawal_leaves_the_next_ring_alone(void **state)
{
	struct lab *l = *state;
	const uint32_t consumed = 4;

	start_at(l, 2, GEN + 1, 0);
	post(l, 4);
	shm_ring_withdraw(l->ring, 2, GEN, consumed, consumed);
	assert_true(shm_ring_is(l->ring, GEN + 1));
	assert_int_equal(count_credits(l), 4);
}

/* The pages of @ring that there are. */
static unsigned count_pages(struct shm_ring *ring)
{
	unsigned char there[64];
	unsigned n = 0;
	size_t pages = (shm_ring_bytes(LARGE) + 4095) / 4096;

	assert_true(pages <= sizeof(there));
	assert_int_equal(mincore(ring, shm_ring_bytes(LARGE), there), 0);
	for (size_t i = 0; i < pages; i++)
		n += there[i] & 1;
	return n;
}

static void a_ring_that_nobody_uses_has_no_pages(void **state)
{
	struct lab *l = *state;
	struct shm_ring *ring = mmap(NULL, shm_ring_bytes(LARGE), PROT_READ | PROT_WRITE,
	                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct shm_ring_walk w;
	uint64_t s;

	assert_ptr_not_equal(ring, MAP_FAILED);
	shm_ring_init(ring, GEN, 0, l->single);
	shm_ring_walk_begin(&w, ring, LARGE);
	assert_null(shm_ring_walk_next(&w, &s));
	shm_ring_withdraw(ring, LARGE, GEN, 0, 0);
	shm_ring_close_claim(ring, LARGE);
	assert_int_equal(count_pages(ring), 1);
	munmap(ring, shm_ring_bytes(LARGE));
}

/* ---- arrivals that are taken ---- */

static struct shm_arrival *arrival_at(struct lab *l, uint32_t pos, uint64_t *state)
{
	struct shm_arrival *slot = shm_ring_slot(l->ring, l->shift, pos);

	*state = atomic_load(&slot->state);
	return slot;
}

static void an_arrival_that_is_taken_has_not_come_until_it_is_put_back(void **state)
{
	struct lab *l = *state;
	struct shm_arrival *slot;
	uint64_t s;

	start(l, 2);
	post(l, 4);
	assert_true(send_as(l, ME, 1));
	assert_true(send_as(l, ME, 2));
	slot = arrival_at(l, 0, &s);
	assert_true(shm_ring_take(slot, s, OTHER));
	assert_false(shm_ring_take(slot, s, ME));
	expect_empty(l);
	shm_ring_put_back(slot, s, OTHER);
	expect_received(l, ME, 1);
	expect_received(l, ME, 2);
	expect_empty(l);
}

static void an_arrival_that_was_consumed_cannot_be_taken(void **state)
{
	struct lab *l = *state;
	struct shm_arrival *slot;
	uint64_t s;

	start(l, 0);
	for (uint32_t i = 0; i < 3; i++) {
		post(l, 1);
		assert_true(send_as(l, ME, i));
		slot = arrival_at(l, 0, &s);
		assert_true(shm_ring_take(slot, s, OTHER)); /* the owner, to consume it */
		shm_ring_consume(l->ring, ++l->consumed);
		assert_false(shm_ring_take(slot, s, ME));
	}
	post(l, 1);
	assert_true(send_as(l, ME, 3)); /* also after the lap of another taker */
	assert_false(shm_ring_take(slot, s, ME));
	expect_received(l, ME, 3);
}

static void what_the_dead_had_taken_has_come_all_the_same(void **state)
{
	struct lab *l = *state;
	struct shm_arrival *slot;
	uint64_t s, taken;

	start(l, 2);
	post(l, 4);
	assert_true(send_as(l, ME, 1));
	slot = arrival_at(l, 0, &s);
	assert_true(shm_ring_take(slot, s, ME));
	arrival_at(l, 0, &taken);
	assert_false(shm_ring_restore(slot, taken, OTHER));
	assert_true(shm_ring_restore(slot, taken, ME));
	shm_ring_put_back(slot, s, ME); /* it was not dead */
	expect_received(l, ME, 1);
	post(l, 1);
	assert_int_equal(count_credits(l), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(a_ring_without_receives_accepts_nothing),
		TEST_BOTH(each_posted_receive_accepts_one_message),
		TEST_BOTH(messages_come_out_in_the_order_in_which_slots_were_claimed),
		TEST_BOTH(a_ring_of_one_slot_works),
		TEST_BOTH(a_first_lap_posted_in_parts_touches_only_what_was_posted),
		TEST_BOTH(positions_wrap_at_30_bits),
		TEST_BOTH(positions_wrap_at_31_bits),
		TEST_BOTH(counters_wrap_at_32_bits),
		TEST(a_tail_that_lags_behind_costs_nothing_but_time),
		TEST_BOTH(a_posted_seen_that_lags_behind_hides_no_credit),
		TEST_BOTH(hints_that_lag_make_no_credit),
		TEST_BOTH(a_ring_full_of_nonsense_does_not_keep_a_sender),
		TEST_BOTH(only_the_dead_writers_slots_are_voided),
		TEST_BOTH(a_writer_declared_dead_cannot_publish),
		TEST_BOTH(withdrawal_removes_credits_and_keeps_claimed_slots),
		TEST_BOTH(a_ring_goes_on_after_a_withdrawal),
		TEST_BOTH(a_ring_is_closed_when_no_live_writer_is_in_it),
		TEST_BOTH(an_arrival_refers_to_its_payload_until_it_is_consumed),
		TEST_BOTH(a_walk_costs_what_waits_in_the_ring),
		TEST_BOTH(a_walk_that_pauses_misses_nothing_that_still_waits),
		TEST_BOTH(memory_of_a_freed_ring_gives_an_old_sender_nothing),
		TEST_BOTH(an_old_sender_harms_no_rings_of_other_sizes),
		TEST_BOTH(a_late_withdrawal_leaves_the_next_ring_alone),
		TEST_BOTH(a_ring_that_nobody_uses_has_no_pages),
		TEST_BOTH(an_arrival_that_is_taken_has_not_come_until_it_is_put_back),
		TEST_BOTH(an_arrival_that_was_consumed_cannot_be_taken),
		TEST_BOTH(what_the_dead_had_taken_has_come_all_the_same),
	};

	return cmocka_run_group_tests_name("shm.ring", tests, NULL, NULL);
}
