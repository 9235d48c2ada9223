/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work in slices: none is longer than its budget, and the event loop comes round between two.
 */
#include <harness.h>

#include "base/util.h"
#include "daemon/core/chores.h"

struct task {
	struct daemon_chore chore;
	struct lab *lab;
	uint32_t left, most; /* units: of work; in one slice */
	bool done, again;
};

struct lab {
	struct base_timers timers;
	struct daemon_chores chores;
	struct task task[3];
	unsigned n_done;
};

static uint64_t stopped_clock(void *arg)
{
	(void)arg;
	return 1000;
}

static int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	base_timers_init(&l->timers, &(struct base_clock){ .now_ns = stopped_clock });
	daemon_chores_init(&l->chores, &l->timers);
	for (unsigned i = 0; i < 3; i++)
		l->task[i].lab = l;
	*state = l;
	return 0;
}

static int teardown(void **state)
{
	struct lab *l = *state;

	daemon_chores_fini(&l->chores);
	free(l);
	return 0;
}

static bool work(struct daemon_chore *c, uint32_t *budget)
{
	struct task *t = container_of(c, struct task, chore);
	uint32_t units = 0;

	while (t->left && daemon_chore_spend(budget, 1)) {
		t->left--;
		units++;
	}
	t->most = units > t->most ? units : t->most;
	if (t->left)
		return false;
	t->done = true;
	t->lab->n_done++;
	if (t->again)
		daemon_chore_add(&t->lab->chores, c, work);
	t->again = false;
	return true;
}

static void add(struct lab *l, unsigned i, uint32_t units)
{
	l->task[i].left = units;
	daemon_chore_add(&l->chores, &l->task[i].chore, work);
}

CASE_WITH(a_long_chore_is_done_in_slices, setup, teardown)
{
	struct lab *l = *state;
	unsigned turns = 0;

	add(l, 0, 10 * DAEMON_SLICE);
	assert_int_equal(l->task[0].left, 10 * DAEMON_SLICE); /* nothing before the loop's turn */
	while (base_timers_next(&l->timers) != BASE_TIMER_NEVER) {
		base_timers_run(&l->timers);
		turns++;
	}
	assert_true(l->task[0].done);
	assert_true(l->task[0].most <= DAEMON_SLICE);
	assert_int_equal(turns, 11);
}

CASE_WITH(chores_are_done_in_the_order_in_which_they_were_added, setup, teardown)
{
	struct lab *l = *state;

	add(l, 0, DAEMON_SLICE / 2);
	add(l, 1, 2 * DAEMON_SLICE);
	add(l, 2, 1);
	base_timers_run(&l->timers);
	assert_true(l->task[0].done && !l->task[1].done && !l->task[2].done);
	base_timers_run(&l->timers);
	assert_false(l->task[1].done);
	base_timers_run(&l->timers);
	assert_true(l->task[1].done && l->task[2].done);
	assert_false(daemon_chores_wait(&l->chores));
}

CASE_WITH(what_is_small_is_done_in_the_slice_of_a_request, setup, teardown)
{
	struct lab *l = *state;

	add(l, 0, 10);
	daemon_chores_slice(&l->chores);
	assert_true(l->task[0].done);
	assert_true(base_timers_next(&l->timers) == BASE_TIMER_NEVER);
}

CASE_WITH(a_chore_that_waits_is_not_added_twice, setup, teardown)
{
	struct lab *l = *state;

	add(l, 0, 1);
	add(l, 0, 1);
	daemon_chores_slice(&l->chores);
	assert_int_equal(l->n_done, 1);
	l->task[0].again = true; /* it adds itself when it is done */
	add(l, 0, 1);
	daemon_chores_slice(&l->chores);
	assert_int_equal(l->n_done, 3);
}

CASE_WITH(at_the_end_all_is_done, setup, teardown)
{
	struct lab *l = *state;

	add(l, 0, 3 * DAEMON_SLICE);
	add(l, 1, 3 * DAEMON_SLICE);
	daemon_chores_fini(&l->chores);
	assert_int_equal(l->n_done, 2);
	assert_true(base_timers_next(&l->timers) == BASE_TIMER_NEVER);
}
