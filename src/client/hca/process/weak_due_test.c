/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How often the thread of a weak fabric looks at objects that wait, counted with a stopped clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <harness.h>

#include "base/util.h"
#include "hca/process/weak_due.h"

#define MANY    10000
#define TICK_NS 1000000ull

static struct hca_weak_wait all[MANY], one;
static struct base_timers timers;
static uint64_t now_ns;

static void begin(void)
{
	base_timers_init(&timers, &(struct base_clock){ 0 });
	now_ns = 1000 * TICK_NS;
	memset((void *)all, 0, sizeof(all));
	memset((void *)&one, 0, sizeof(one));
}

static void post(struct hca_weak_wait *w)
{
	hca_weak_due_moved(w, now_ns);
	hca_weak_due_add(&timers, w, now_ns);
}

/* The thread's looks of one millisecond, all in vain. How many; *@at_one: whether that was among
 * them. */
static unsigned tick(bool *at_one)
{
	struct hca_weak_wait *w;
	unsigned n = 0;

	now_ns += TICK_NS;
	*at_one = false;
	while ((w = hca_weak_due_take(&timers, now_ns))) {
		*at_one |= w == &one;
		hca_weak_due_add(&timers, w, now_ns);
		n++;
	}
	return n;
}

CASE(nothing_is_due_while_the_program_is_at_work)
{
	bool at_one;

	begin();
	for (unsigned i = 0; i < 100; i++) {
		post(&one);
		assert_int_equal(tick(&at_one), 0);
	}
	assert_int_equal(tick(&at_one), 1);
}

CASE(ten_thousand_that_wait_in_vain_cost_little)
{
	unsigned looks = 0;
	bool at_one;

	begin();
	for (unsigned i = 0; i < MANY; i++) {
		now_ns += TICK_NS / 1000;
		post(&all[i]);
	}
	for (unsigned ms = 0; ms < 10000; ms++)
		looks += tick(&at_one);
	/* each: 8 of the first half second, and then one in a quarter of a second */
	assert_in_range(looks, MANY * 40, MANY * 50);
}

/* However many others are late. */
CASE(what_moves_is_looked_at_in_time)
{
	bool at_one;

	begin();
	for (unsigned i = 0; i < MANY; i++)
		post(&all[i]);
	for (unsigned ms = 0; ms < 300; ms++)
		tick(&at_one);
	for (unsigned i = 0; i < 100; i++) {
		post(&one);
		tick(&at_one);
		assert_false(at_one);
		tick(&at_one);
		assert_true(at_one);
		for (unsigned ms = 0; ms < 50; ms++) /* in vain, later and later */
			tick(&at_one);
	}
}

CASE(what_somebody_else_has_is_not_due)
{
	bool at_one;

	begin();
	post(&one);
	hca_weak_due_drop(&one);
	for (unsigned ms = 0; ms < 10; ms++)
		assert_int_equal(tick(&at_one), 0);
}
