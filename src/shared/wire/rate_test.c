/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of static rates against the known results of ibv_rate_to_mbps(3) and
 * ibv_rate_to_mult(3).
 */
#include <harness.h>
#include <infiniband/verbs.h>

#include "base/util.h"
#include "wire/rate.h"

CASE(known_rates)
{
	static const struct wire_rate row[] = {
		{ IBV_RATE_2_5_GBPS, 1, 2500 },  { IBV_RATE_10_GBPS, 4, 10000 },
		{ IBV_RATE_40_GBPS, 16, 40000 }, { IBV_RATE_14_GBPS, 0, 14062 },
		{ IBV_RATE_56_GBPS, 0, 56250 },  { IBV_RATE_100_GBPS, 0, 103125 },
		{ IBV_RATE_50_GBPS, 20, 53125 }, { IBV_RATE_1200_GBPS, 480, 1275000 },
	};

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		const struct wire_rate *r = wire_rate_find(row[i].rate);

		assert_non_null(r);
		assert_int_equal(r->mult, row[i].mult);
		assert_int_equal(r->mbps, row[i].mbps);
		assert_int_equal(wire_rate_to_mbps(row[i].rate), row[i].mbps);
	}
}

CASE(each_rate_is_listed_once)
{
	for (unsigned i = 0; i < WIRE_RATES; i++)
		assert_ptr_equal(wire_rate_find(wire_rates[i].rate), &wire_rates[i]);
}

CASE(an_unknown_rate_is_zero)
{
	static const unsigned bad[] = { IBV_RATE_MAX, 1, 25, 63, 255, 0x80000002 };

	for (size_t i = 0; EACH_ROW(i, bad); i++) {
		assert_null(wire_rate_find(bad[i]));
		assert_int_equal(wire_rate_to_mbps(bad[i]), 0);
	}
}

CASE(widths_and_speeds_have_names)
{
	static const unsigned lanes[] = { 1, 4, 8, 12, 2 };
	static const char *const speeds[] = { "SDR", "DDR", "QDR", "FDR10",
		                              "FDR", "EDR", "HDR", "NDR" };

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

CASE(what_is_no_width_or_speed_is_zero)
{
	static const uint64_t lanes[] = { 0, 3, 16, (1ull << 32) + 1 };
	static const char *const speeds[] = { "", "EDRR", "FD", "edr" };

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
