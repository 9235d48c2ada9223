/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ipoib/lull.h"

#define SHORT (IPOIB_LULL_NS / 5)
#define LONG  (IPOIB_LULL_NS * 20)

/* Packets have moved at @now; the next ones do after @ns. Returns how long the lull was sat out, by
 * looks that are a tenth of the most apart. */
static uint64_t lull(struct ipoib_lull *l, uint64_t *now, uint64_t ns)
{
	const uint64_t began = *now, end = began + ns;

	while (*now < end && ipoib_lull_goes_on(l, *now))
		*now += IPOIB_LULL_NS / 10;
	ipoib_lull_ends(l, end);
	ns = *now - began;
	*now = end;
	return ns;
}

static void the_first_one_is_not_sat_out(void **state)
{
	struct ipoib_lull l = { 0 };
	uint64_t now = 1;

	(void)state;
	assert_int_equal(lull(&l, &now, SHORT), 0);
}

static void after_a_short_one_the_next_is(void **state)
{
	struct ipoib_lull l = { 0 };
	uint64_t now = 1;

	(void)state;
	lull(&l, &now, SHORT);
	for (int i = 0; i < 10; i++)
		assert_int_equal(lull(&l, &now, SHORT), SHORT);
}

static void one_that_is_long_is_sat_out_for_a_moment_and_the_next_not_at_all(void **state)
{
	struct ipoib_lull l = { 0 };
	uint64_t now = 1;

	(void)state;
	lull(&l, &now, SHORT);
	assert_int_equal(lull(&l, &now, LONG), IPOIB_LULL_NS);
	assert_int_equal(lull(&l, &now, LONG), 0);
	assert_int_equal(lull(&l, &now, SHORT), 0);
	assert_int_equal(lull(&l, &now, SHORT), SHORT);
}

/* As while a burst goes on: turn by turn. */
static void packets_that_move_are_no_lull(void **state)
{
	struct ipoib_lull l = { 0 };

	(void)state;
	ipoib_lull_goes_on(&l, 1);
	for (uint64_t now = 2; now < 1000; now++)
		ipoib_lull_ends(&l, now * LONG);
	assert_false(ipoib_lull_goes_on(&l, 1000 * LONG));
}

static void while_others_want_the_processor_none_is(void **state)
{
	struct ipoib_lull l = { 0 };
	uint64_t now = 1;

	(void)state;
	lull(&l, &now, SHORT);
	ipoib_lull_was_left(&l, now, now + IPOIB_AWAY_NS);
	assert_int_equal(lull(&l, &now, SHORT), SHORT);
	ipoib_lull_was_left(&l, now - IPOIB_AWAY_NS - 1, now);
	for (uint64_t end = now + IPOIB_CROWDED_NS; now < end;)
		assert_int_equal(lull(&l, &now, SHORT), 0);
	assert_int_equal(lull(&l, &now, SHORT), SHORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_one_is_not_sat_out),
		cmocka_unit_test(after_a_short_one_the_next_is),
		cmocka_unit_test(one_that_is_long_is_sat_out_for_a_moment_and_the_next_not_at_all),
		cmocka_unit_test(packets_that_move_are_no_lull),
		cmocka_unit_test(while_others_want_the_processor_none_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
