/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of static rates against the known results of ibv_rate_to_mbps(3) and
 * ibv_rate_to_mult(3).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>
#include <harness.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "wire/rate.h"

static void known_rates(void **state)
{
	static const struct wire_rate row[] = {
		{ IBV_RATE_2_5_GBPS, 1, 2500 },  { IBV_RATE_10_GBPS, 4, 10000 },
		{ IBV_RATE_40_GBPS, 16, 40000 }, { IBV_RATE_14_GBPS, 0, 14062 },
		{ IBV_RATE_56_GBPS, 0, 56250 },  { IBV_RATE_100_GBPS, 0, 103125 },
		{ IBV_RATE_50_GBPS, 20, 53125 }, { IBV_RATE_1200_GBPS, 480, 1275000 },
	};

	(void)state;
	for (size_t i = 0; EACH_ROW(i, row); i++) {
		const struct wire_rate *r = wire_rate_find(row[i].rate);

		assert_non_null(r);
		assert_int_equal(r->mult, row[i].mult);
		assert_int_equal(r->mbps, row[i].mbps);
		assert_int_equal(wire_rate_to_mbps(row[i].rate), row[i].mbps);
	}
}

static void each_rate_is_listed_once(void **state)
{
	(void)state;
	for (unsigned i = 0; i < WIRE_RATES; i++)
		assert_ptr_equal(wire_rate_find(wire_rates[i].rate), &wire_rates[i]);
}

static void an_unknown_rate_is_zero(void **state)
{
	static const unsigned bad[] = { IBV_RATE_MAX, 1, 25, 63, 255, 0x80000002 };

	(void)state;
	for (size_t i = 0; EACH_ROW(i, bad); i++) {
		assert_null(wire_rate_find(bad[i]));
		assert_int_equal(wire_rate_to_mbps(bad[i]), 0);
	}
}

static void widths_and_speeds_have_names(void **state)
{
	static const unsigned lanes[] = { 1, 4, 8, 12, 2 };
	static const char *const speeds[] = { "SDR", "DDR", "QDR", "FDR10",
		                              "FDR", "EDR", "HDR", "NDR" };

	(void)state;
	for (unsigned i = 0; EACH_ROW(i, lanes); i++) {
		assert_int_equal(wire_link_width(lanes[i]), 1 << i);
		assert_int_equal(wire_link_lanes(1 << i), lanes[i]);
	}
	for (unsigned i = 0; EACH_ROW(i, speeds); i++) {
		assert_int_equal(wire_link_speed_named(speeds[i], strlen(speeds[i])), 1 << i);
		assert_string_equal(wire_link_speed_name(1 << i), speeds[i]);
	}
	assert_int_equal(wire_link_speed(1 << 1, 1 << 5), 1000);
	assert_int_equal(wire_link_speed_named("FDR100", 3), 16);
}

static void what_is_no_width_or_speed_is_zero(void **state)
{
	static const uint64_t lanes[] = { 0, 3, 16, (1ull << 32) + 1 };
	static const char *const speeds[] = { "", "EDRR", "FD", "edr" };

	(void)state;
	for (size_t i = 0; EACH_ROW(i, lanes); i++)
		assert_int_equal(wire_link_width(lanes[i]), 0);
	for (size_t i = 0; EACH_ROW(i, speeds); i++)
		assert_int_equal(wire_link_speed_named(speeds[i], strlen(speeds[i])), 0);
	assert_int_equal(wire_link_lanes(0), 0);
	assert_int_equal(wire_link_lanes(1 << 5), 0);
	assert_int_equal(wire_link_speed(1, 0), 0);
	assert_int_equal(wire_link_speed(0, 1), 0);
	assert_int_equal(wire_link_speed(1, 1 << 8), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_rates),
		cmocka_unit_test(each_rate_is_listed_once),
		cmocka_unit_test(an_unknown_rate_is_zero),
		cmocka_unit_test(widths_and_speeds_have_names),
		cmocka_unit_test(what_is_no_width_or_speed_is_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
