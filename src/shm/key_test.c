/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keys: who uses one is known to its owner, until there are more than it can say; what is written
 * there next has no users.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>

#include "shm/key.h"

#define KEY    0x1234u
#define ROUNDS 20000

static const struct shm_reach reach = { .iova = 4096, .length = 100, .start = 8192 };

static uint32_t user(const struct shm_key *k, unsigned i)
{
	return atomic_load((_Atomic uint32_t *)&k->users[i]);
}

static void a_user_counts_once(void **state)
{
	struct shm_key k = { 0 };

	(void)state;
	shm_key_write(&k, KEY, 7, &reach);
	assert_int_equal(shm_key_join(&k, 11), 7);
	assert_int_equal(shm_key_join(&k, 12), 7);
	assert_int_equal(shm_key_join(&k, 11), 7);
	assert_int_equal(user(&k, 0), 11);
	assert_int_equal(user(&k, 1), 12);
	assert_int_equal(user(&k, 2), 0);
}

static void one_more_than_there_is_room_for_stands_for_all(void **state)
{
	struct shm_key k = { 0 };

	(void)state;
	shm_key_write(&k, KEY, 1, &reach);
	for (uint32_t i = 0; i < SHM_KEY_USERS; i++)
		shm_key_join(&k, 100 + i);
	assert_int_equal(user(&k, SHM_KEY_USERS - 1), 100 + SHM_KEY_USERS - 1);
	shm_key_join(&k, 200);
	assert_int_equal(user(&k, SHM_KEY_USERS - 1), SHM_KEY_MANY);
	shm_key_join(&k, 201);
	shm_key_join(&k, 100);
	assert_int_equal(user(&k, SHM_KEY_USERS - 1), SHM_KEY_MANY);
	assert_int_equal(user(&k, 0), 100);
}

static void a_new_key_has_no_users(void **state)
{
	struct shm_key k = { 0 };
	struct shm_reach out;

	(void)state;
	shm_key_write(&k, KEY, 1, &reach);
	for (uint32_t i = 0; i <= SHM_KEY_USERS; i++)
		shm_key_join(&k, 100 + i);
	shm_key_write(&k, KEY, 2, &reach);
	for (unsigned i = 0; i < SHM_KEY_USERS; i++)
		assert_int_equal(user(&k, i), 0);
	assert_int_equal(shm_key_join(&k, 100), 2);
	assert_true(shm_key_read_at(&k, KEY, &out));
	assert_int_equal(out.start, 8192);
}

/* ---- the owner takes the key away while a user comes ---- */

struct race {
	struct shm_key k;
	_Atomic uint32_t round, answered;
	_Atomic bool found;
};

/* A peer that has known the key for long. */
static void *join_and_look(void *arg)
{
	struct race *r = arg;
	struct shm_reach out;

	for (uint32_t i = 1; i <= ROUNDS; i++) {
		while (atomic_load(&r->round) != i)
			;
		shm_key_join(&r->k, 5);
		atomic_store(&r->found, shm_key_read_at(&r->k, KEY, &out));
		atomic_store(&r->answered, i);
	}
	return NULL;
}

static void who_finds_a_key_is_seen_when_it_goes(void **state)
{
	struct race r = { 0 };
	unsigned not_found = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, join_and_look, &r), 0);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		uint32_t seen;

		shm_key_write(&r.k, KEY, i, &reach);
		atomic_store(&r.round, i);
		for (volatile unsigned wait = i % 64; wait; wait--)
			;
		/* hca_keys_remove() and read_users() */
		atomic_store_explicit(&r.k.key, 0, memory_order_seq_cst);
		base_fence_behind_seq_cst();
		seen = user(&r.k, 0);
		while (atomic_load(&r.answered) != i)
			;
		if (atomic_load(&r.found))
			assert_int_equal(seen, 5);
		else
			not_found++;
	}
	pthread_join(thread, NULL);
	print_message("%u of %u keys went first\n", not_found, ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_counts_once),
		cmocka_unit_test(one_more_than_there_is_room_for_stands_for_all),
		cmocka_unit_test(a_new_key_has_no_users),
		cmocka_unit_test(who_finds_a_key_is_seen_when_it_goes),
	};

	return cmocka_run_group_tests_name("shm.key", tests, NULL, NULL);
}
