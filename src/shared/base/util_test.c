/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Small arithmetic and the reading of numbers.
 */
#include <harness.h>

#include "base/util.h"

CASE(numbers_are_read)
{
	static const struct {
		const char *text;
		long value;
	} row[] = {
		{ "0", 0 },
		{ "7", 7 },
		{ "-7", -7 },
		{ "+7", 7 },
		{ "0x1f", 31 },
		{ "0X1F", 31 },
		{ "-0x10", -16 },
		{ "010", 10 }, /* not octal */
		{ "2147483647", 2147483647 },
	};
	long v;

	for (size_t i = 0; EACH_NAMED(i, row, text); i++) {
		assert_int_equal(base_parse_number(row[i].text, LONG_MIN, LONG_MAX, &v), 0);
		assert_int_equal(v, row[i].value);
	}
}

CASE(what_is_no_number_is_refused)
{
	static const char *const bad[] = { "",   " ",   "x",    "1x",  " 1",
		                           "1 ", "0x",  "--1",  "+-1", "f",
		                           "-",  "1.5", "0x-1", "1\n", "9999999999999999999z" };
	long v = 77;

	assert_int_equal(base_parse_number(NULL, 0, 10, &v), -EINVAL);
	for (size_t i = 0; EACH_ROW(i, bad); i++)
		assert_int_equal(base_parse_number(bad[i], LONG_MIN, LONG_MAX, &v), -EINVAL);
	assert_int_equal(v, 77);
}

CASE(a_number_outside_the_range_is_refused)
{
	static const char *const bad[] = { "0", "11", "-5", "99999999999999999999",
		                           "0xFFFFFFFFFFFFFFFFFF" };
	long v = 77;

	for (size_t i = 0; EACH_ROW(i, bad); i++)
		assert_int_equal(base_parse_number(bad[i], 1, 10, &v), -ERANGE);
	assert_int_equal(v, 77);
	assert_int_equal(base_parse_number("1", 1, 10, &v), 0);
	assert_int_equal(base_parse_number("10", 1, 10, &v), 0);
}

CASE(log2_rounds_up)
{
	static const struct {
		uint64_t v;
		unsigned log2;
	} row[] = { { 0, 0 }, { 1, 0 }, { 2, 1 },     { 3, 2 },
		    { 4, 2 }, { 5, 3 }, { 1025, 11 }, { 1ull << 63, 63 } };

	for (size_t i = 0; EACH_ROW(i, row); i++)
		assert_int_equal(base_log2_up(row[i].v), row[i].log2);
}

CASE(align_up_rounds_to_a_multiple)
{
	assert_int_equal(base_align_up(0, 64), 0);
	assert_int_equal(base_align_up(1, 64), 64);
	assert_int_equal(base_align_up(64, 64), 64);
	assert_int_equal(base_align_up(65, 64), 128);
}

CASE(the_clock_does_not_go_back)
{
	uint64_t before = base_now_ns();

	for (int i = 0; i < 1000; i++) {
		uint64_t now = base_now_ns();

		assert_true(now >= before);
		before = now;
	}
}
