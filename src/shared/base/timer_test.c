/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Timers on a clock that stands still unless a test moves it.
 */
#include <harness.h>

#include "base/timer.h"
#include "base/util.h"

#define MANY 500

struct fixture {
	struct base_timers timers;
	uint64_t now, asked; /* asked: what clock.wake() was asked for last */
	unsigned n_asked;
	unsigned n_called;
	int called[MANY]; /* numbers of the timers, in the order of their calls */
};

struct numbered {
	struct base_timer timer;
	struct fixture *f;
	int number;
	struct numbered *other; /* what some functions below set or stop */
};

static uint64_t now_ns(void *arg)
{
	return ((struct fixture *)arg)->now;
}

static void wake(void *arg, uint64_t at_ns)
{
	struct fixture *f = arg;

	f->asked = at_ns;
	f->n_asked++;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct base_clock clock = { .now_ns = now_ns, .wake = wake, .arg = f };

	if (!f)
		return -1;
	base_timers_init(&f->timers, &clock);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static struct numbered *numbered_of(struct base_timer *t)
{
	return container_of(t, struct numbered, timer);
}

static void on_due(struct base_timer *t)
{
	struct numbered *n = numbered_of(t);

	assert_false(base_timer_is_set(t));
	assert_in_range(t->due_ns, 0, n->f->now);
	n->f->called[n->f->n_called++] = n->number;
}

static void run_at(struct fixture *f, uint64_t now)
{
	f->now = now;
	base_timers_run(&f->timers);
}

CASE_WITH(timers_are_called_by_time_then_by_age, setup, teardown)
{
	static const uint64_t at[] = { 50, 10, 30, 10, 20, 10 };
	static const int order[] = { 1, 3, 5, 4, 2, 0 };
	struct numbered n[ARRAY_SIZE(at)] = { 0 };
	struct fixture *f = *state;

	for (int i = 0; i < (int)ARRAY_SIZE(at); i++) {
		n[i] = (struct numbered){ .f = f, .number = i };
		base_timer_set(&f->timers, &n[i].timer, at[i], on_due);
	}
	run_at(f, 9);
	assert_int_equal(f->n_called, 0);
	run_at(f, 10);
	assert_int_equal(f->n_called, 3);
	run_at(f, 100);
	assert_int_equal(f->n_called, ARRAY_SIZE(at));
	assert_memory_equal(f->called, order, sizeof(order));
	assert_int_equal(base_timers_next(&f->timers), BASE_TIMER_NEVER);
}

CASE_WITH(a_stopped_timer_is_not_called, setup, teardown)
{
	struct fixture *f = *state;
	struct numbered a = { .f = f, .number = 1 }, b = { .f = f, .number = 2 };

	base_timer_set(&f->timers, &a.timer, 10, on_due);
	base_timer_set(&f->timers, &b.timer, 20, on_due);
	base_timer_stop(&a.timer);
	base_timer_stop(&a.timer);
	assert_false(base_timer_is_set(&a.timer));
	run_at(f, 20);
	assert_int_equal(f->n_called, 1);
	assert_int_equal(f->called[0], 2);
}

CASE_WITH(a_timer_set_again_is_called_at_the_new_time_only, setup, teardown)
{
	struct fixture *f = *state;
	struct numbered a = { .f = f };

	base_timer_set(&f->timers, &a.timer, 10, on_due);
	base_timer_set(&f->timers, &a.timer, 30, on_due);
	run_at(f, 20);
	assert_int_equal(f->n_called, 0);
	run_at(f, 30);
	run_at(f, 40);
	assert_int_equal(f->n_called, 1);
}

CASE_WITH(set_sooner_never_puts_off, setup, teardown)
{
	struct fixture *f = *state;
	struct numbered a = { .f = f };

	base_timer_set_sooner(&f->timers, &a.timer, 20, on_due);
	base_timer_set_sooner(&f->timers, &a.timer, 30, on_due);
	assert_int_equal(a.timer.due_ns, 20);
	base_timer_set_sooner(&f->timers, &a.timer, 10, on_due);
	assert_int_equal(a.timer.due_ns, 10);
	base_timer_stop(&a.timer);
}

CASE_WITH(a_time_beyond_the_clock_is_its_end, setup, teardown)
{
	struct fixture *f = *state;
	struct numbered a = { .f = f };

	f->now = 1000;
	base_timer_set_in(&f->timers, &a.timer, UINT64_MAX - 10, on_due);
	assert_in_range(a.timer.due_ns, 1000, BASE_TIMER_NEVER - 1);
	base_timer_stop(&a.timer);
}

CASE_WITH(timers_of_one_beat_are_due_together, setup, teardown)
{
	struct fixture *f = *state;
	struct numbered a = { .f = f, .number = 1 }, b = { .f = f, .number = 2 };

	f->now = 1003;
	base_timer_set_beat(&f->timers, &a.timer, 100, on_due);
	f->now = 1099;
	base_timer_set_beat(&f->timers, &b.timer, 50, on_due);
	assert_int_equal(a.timer.due_ns, 1100);
	assert_int_equal(b.timer.due_ns, 1100);
	run_at(f, 1100);
	assert_int_equal(f->n_called, 2);
	base_timer_set_beat(&f->timers, &a.timer, 100, on_due); /* on the beat: the next one */
	assert_int_equal(a.timer.due_ns, 1200);
	base_timer_stop(&a.timer);
}

static void on_due_set_both_at_once(struct base_timer *t)
{
	struct numbered *n = numbered_of(t);

	on_due(t);
	base_timer_set(&n->f->timers, t, 0, on_due);
	base_timer_set(&n->f->timers, &n->other->timer, 0, on_due);
}

CASE_WITH(what_is_set_meanwhile_waits_for_the_next_run, setup, teardown)
{
	struct fixture *f = *state;
	struct numbered b = { .f = f, .number = 2 };
	struct numbered a = { .f = f, .number = 1, .other = &b };

	base_timer_set(&f->timers, &a.timer, 10, on_due_set_both_at_once);
	base_timer_set(&f->timers, &b.timer, 10, on_due);
	run_at(f, 10);
	assert_int_equal(f->n_called, 1);
	run_at(f, 10);
	assert_int_equal(f->n_called, 3);
}

static void on_due_stop_other(struct base_timer *t)
{
	on_due(t);
	base_timer_stop(&numbered_of(t)->other->timer);
}

CASE_WITH(a_timer_that_is_about_to_be_called_can_be_stopped, setup, teardown)
{
	struct fixture *f = *state;
	struct numbered c = { .f = f, .number = 3 };
	struct numbered b = { .f = f, .number = 2 };
	struct numbered a = { .f = f, .number = 1, .other = &b };

	base_timer_set(&f->timers, &a.timer, 10, on_due_stop_other);
	base_timer_set(&f->timers, &b.timer, 10, on_due);
	base_timer_set(&f->timers, &c.timer, 10, on_due);
	run_at(f, 10);
	assert_int_equal(f->n_called, 2);
	assert_int_equal(f->called[1], 3);
}

CASE_WITH(the_earliest_time_is_asked_for_once, setup, teardown)
{
	struct fixture *f = *state;
	struct numbered a = { .f = f }, b = { .f = f }, c = { .f = f };

	base_timer_set(&f->timers, &a.timer, 20, on_due);
	assert_int_equal(f->asked, 20);
	base_timer_set(&f->timers, &b.timer, 30, on_due);
	assert_int_equal(f->n_asked, 1);
	base_timer_set(&f->timers, &c.timer, 10, on_due);
	assert_int_equal(f->asked, 10);
	run_at(f, 10);
	assert_int_equal(f->asked, 20);
	base_timer_stop(&a.timer);
	run_at(f, 20); /* for nothing */
	assert_int_equal(f->asked, 30);
	assert_int_equal(f->n_asked, 4);
	base_timer_stop(&b.timer);
}

static void on_due_takes_time(struct base_timer *t)
{
	numbered_of(t)->f->now += BASE_TIMERS_TURN_NS / 4;
	on_due(t);
}

CASE_WITH(a_run_leaves_to_the_next_one_what_takes_too_long, setup, teardown)
{
	struct fixture *f = *state;
	struct numbered n[10] = { 0 };

	for (int i = 0; i < (int)ARRAY_SIZE(n); i++) {
		n[i] = (struct numbered){ .f = f, .number = i };
		base_timer_set(&f->timers, &n[i].timer, 10 + (uint64_t)i / 5, on_due_takes_time);
	}
	run_at(f, 20);
	assert_int_equal(f->n_called, 4);
	assert_int_equal(f->asked, 10); /* at once */
	base_timers_run(&f->timers);
	assert_int_equal(f->n_called, 8);
	base_timers_run(&f->timers);
	assert_int_equal(f->n_called, 10);
	for (int i = 0; i < (int)ARRAY_SIZE(n); i++)
		assert_int_equal(f->called[i], i);
}

/* Sets and stops many by chance, and holds what is called against a search through all. */
CASE_WITH(many_timers_are_called_in_order, setup, teardown)
{
	struct numbered *n = calloc(MANY, sizeof(*n));
	struct fixture *f = *state;
	uint64_t last = 0;

	srand(1);
	for (int i = 0; i < MANY; i++)
		n[i] = (struct numbered){ .f = f, .number = i };
	for (int step = 0; step < 20 * MANY; step++) {
		struct numbered *one = &n[rand() % MANY];

		if (rand() % 4)
			base_timer_set(&f->timers, &one->timer, 1 + (uint64_t)rand() % 1000,
			               on_due);
		else
			base_timer_stop(&one->timer);
	}
	for (uint64_t now = 1; now <= 1000; now += 7) {
		f->n_called = 0;
		run_at(f, now);
		for (unsigned i = 0; i < f->n_called; i++) {
			assert_in_range(n[f->called[i]].timer.due_ns, last, now);
			last = n[f->called[i]].timer.due_ns;
		}
		for (int i = 0; i < MANY; i++)
			assert_true(!base_timer_is_set(&n[i].timer) || n[i].timer.due_ns > now);
	}
	run_at(f, 1000);
	assert_int_equal(base_timers_next(&f->timers), BASE_TIMER_NEVER);
	free(n);
}
