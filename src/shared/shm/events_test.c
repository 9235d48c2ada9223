/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The words by which identifiers end: of all that two threads do, nothing is sent that is not
 * waited for.
 */
#include <harness.h>

#include "base/pause.h"
#include "shm/events.h"

#define ROUNDS 20000
#define EVENTS 5

CASE(a_word_is_of_one_identifier)
{
	static struct shm_events e;

	assert_ptr_equal(shm_events_word(&e, 0, 7), &e.word[0][7]);
	assert_ptr_not_equal(shm_events_word(&e, 0, 7), shm_events_word(&e, 1, 7));
	assert_non_null(shm_events_word(&e, 1, SHM_EVENT_NUMBERS - 1));
	assert_null(shm_events_word(&e, 0, SHM_EVENT_NUMBERS));
	assert_null(shm_events_word(NULL, 0, 0));
}

CASE(who_has_got_all_ends_it)
{
	_Atomic uint32_t word = 0;

	assert_true(shm_events_send(&word));
	assert_true(shm_events_send(&word));
	assert_false(shm_events_end(&word, 1));
	assert_true(shm_events_send(&word));
	assert_true(shm_events_end(&word, 3));
	assert_false(shm_events_end(&word, 3)); /* once */
	assert_false(shm_events_send(&word));
	shm_events_clear(&word);
	assert_true(shm_events_end(&word, 0));
}

/* Of a listener there are more events than can be counted: that must not look like its end. */
CASE(the_count_may_wrap)
{
	_Atomic uint32_t word = 0xFFFFFFFC;

	assert_true(shm_events_send(&word));
	assert_true(shm_events_send(&word));
	assert_true(shm_events_send(&word));
	assert_false(shm_events_end(&word, 0x80000000));
	assert_true(shm_events_end(&word, 0x80000001));
}

struct shared {
	_Atomic uint32_t word, sent, round;
};

static void *send_some(void *arg)
{
	struct shared *s = arg;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		struct base_pause pause = { 0 };

		while (atomic_load(&s->round) != round)
			base_pause(&pause);
		for (unsigned i = 0; i < EVENTS && shm_events_send(&s->word); i++)
			atomic_fetch_add(&s->sent, 1);
		atomic_store(&s->round, 0);
	}
	return NULL;
}

/* One thread sends, the other one gets some and ends: either it fails, or nothing more comes. */
CASE(nothing_is_sent_behind_the_end)
{
	struct shared s = { 0 };
	unsigned ended = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, send_some, &s), 0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		const uint32_t wanted = round % EVENTS;
		struct base_pause pause = { 0 };
		bool end;

		shm_events_clear(&s.word);
		atomic_store(&s.sent, 0);
		atomic_store(&s.round, round);
		while (atomic_load(&s.sent) < wanted)
			base_pause(&pause);
		end = shm_events_end(&s.word, wanted);
		pause.looks = 0;
		while (atomic_load(&s.round))
			base_pause(&pause);
		assert_int_equal(atomic_load(&s.sent), end ? wanted : EVENTS);
		ended += end;
	}
	pthread_join(thread, NULL);
	assert_true(ended > 0);
}
