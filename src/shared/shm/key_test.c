/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keys: a key's owner knows its users, until there are more than it can say; the next key in that
 * place has no users.
 */
#include <harness.h>

#include "base/pause.h"
#include "base/util.h"
#include "shm/key.h"

#define KEY 0x1234u

static const struct shm_reach reach = { .iova = 4096, .length = 100, .start = 8192 };

static uint32_t user(const struct shm_key *k, unsigned i)
{
	return atomic_load((_Atomic uint32_t *)&k->users[i]);
}

CASE(a_user_counts_once)
{
	struct shm_key k = { 0 };

	shm_key_write(&k, KEY, 7, &reach);
	assert_int_equal(shm_key_join(&k, 11), 7);
	assert_int_equal(shm_key_join(&k, 12), 7);
	assert_int_equal(shm_key_join(&k, 11), 7);
	assert_int_equal(user(&k, 0), 11);
	assert_int_equal(user(&k, 1), 12);
	assert_int_equal(user(&k, 2), 0);
}

CASE(one_more_than_there_is_room_for_stands_for_all)
{
	struct shm_key k = { 0 };

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

CASE(a_new_key_has_no_users)
{
	struct shm_key k = { 0 };
	struct shm_reach out;

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

#define ROUNDS    20000 /* unless they take longer than BUDGET_NS */
#define BUDGET_NS 1000000000ull
#define OVER      UINT32_MAX
#define USER      5

/* In what order the user's steps (join, look) and the owner's (remove) come: of CYCLE rounds in one
 * of each that is certain, in the others as it happens. */
#define CYCLE 16
enum order { USER_FIRST, USER_ON_BOTH_SIDES, ANY };

struct race {
	struct shm_key k;
	_Atomic uint32_t round, joined, removed, looked; /* the rounds in which that was last */
	_Atomic bool found;
};

static enum order order_of(uint32_t round)
{
	return round % CYCLE < ANY ? (enum order)(round % CYCLE) : ANY;
}

static void wait_for(const _Atomic uint32_t *last, uint32_t round)
{
	struct base_pause pause = { 0 };

	while (atomic_load((_Atomic uint32_t *)last) != round)
		base_pause(&pause);
}

/* Has the calling thread run on the processor number @n of those that it may run on, modulo how
 * many they are: two that wait for each other could stay on one. */
static void run_on(int n)
{
	cpu_set_t all, one;
	int cpu = -1;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (n %= CPU_COUNT(&all); n >= 0; n -= !!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static uint32_t next_round(const struct race *r, uint32_t last)
{
	struct base_pause pause = { 0 };
	uint32_t round;

	while ((round = atomic_load(&r->round)) == last)
		base_pause(&pause);
	return round;
}

/* A peer that has known the key for long. */
static void *join_and_look(void *arg)
{
	struct race *r = arg;
	struct shm_reach out;

	run_on(1);
	for (uint32_t i = 0; (i = next_round(r, i)) != OVER; atomic_store(&r->looked, i)) {
		shm_key_join(&r->k, USER);
		atomic_store(&r->joined, i);
		if (order_of(i) == USER_ON_BOTH_SIDES)
			wait_for(&r->removed, i);
		atomic_store(&r->found, shm_key_read_at(&r->k, KEY, &out));
	}
	return NULL;
}

/* Whether the user has found the key. */
static bool play(struct race *r, uint32_t round)
{
	const enum order order = order_of(round);
	uint32_t users[SHM_KEY_USERS];

	shm_key_write(&r->k, KEY, round, &reach);
	atomic_store(&r->round, round);
	if (order == USER_FIRST)
		wait_for(&r->looked, round);
	if (order == USER_ON_BOTH_SIDES)
		wait_for(&r->joined, round);
	for (volatile unsigned wait = round * 7 % 1024; wait && order == ANY; wait--)
		;
	shm_key_remove(&r->k, KEY, users);
	atomic_store(&r->removed, round);
	wait_for(&r->looked, round);
	if (order == USER_ON_BOTH_SIDES || atomic_load(&r->found))
		assert_int_equal(users[0], USER);
	if (order != ANY)
		assert_int_equal(atomic_load(&r->found), order == USER_FIRST);
	return atomic_load(&r->found);
}

CASE(who_finds_a_key_is_seen_when_it_goes)
{
	const uint64_t end_ns = base_now_ns() + BUDGET_NS;
	static struct race r; /* should this fail, the thread runs on */
	uint32_t round = 0, n_found = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, join_and_look, &r), 0);
	run_on(0);
	do
		n_found += play(&r, ++round);
	while (round < CYCLE || (round < ROUNDS && base_now_ns() < end_ns));
	atomic_store(&r.round, OVER);
	pthread_join(thread, NULL);
	print_message("in %u of %u rounds the key was found\n", n_found, round);
}

CASE(a_key_that_is_gone_already_has_users)
{
	struct shm_key k = { 0 };
	uint32_t users[SHM_KEY_USERS];

	shm_key_write(&k, KEY, 1, &reach);
	shm_key_join(&k, 11);
	shm_key_join(&k, 12);
	atomic_store(&k.key, 0); /* a peer has invalidated it */
	shm_key_remove(&k, KEY, users);
	assert_int_equal(users[0], 11);
	assert_int_equal(users[1], 12);
	assert_int_equal(users[2], 0);
}
