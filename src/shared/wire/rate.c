/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of static rates: see rate.h. Constant.
 */
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "wire/rate.h"

const struct wire_rate wire_rates[WIRE_RATES] = {
	{ IBV_RATE_2_5_GBPS, 1, 2500 },       { IBV_RATE_5_GBPS, 2, 5000 },
	{ IBV_RATE_10_GBPS, 4, 10000 },       { IBV_RATE_20_GBPS, 8, 20000 },
	{ IBV_RATE_30_GBPS, 12, 30000 },      { IBV_RATE_40_GBPS, 16, 40000 },
	{ IBV_RATE_60_GBPS, 24, 60000 },      { IBV_RATE_80_GBPS, 32, 80000 },
	{ IBV_RATE_120_GBPS, 48, 120000 },    { IBV_RATE_14_GBPS, 0, 14062 },
	{ IBV_RATE_56_GBPS, 0, 56250 },       { IBV_RATE_112_GBPS, 0, 112500 },
	{ IBV_RATE_168_GBPS, 0, 168750 },     { IBV_RATE_25_GBPS, 0, 25781 },
	{ IBV_RATE_100_GBPS, 0, 103125 },     { IBV_RATE_200_GBPS, 0, 206250 },
	{ IBV_RATE_300_GBPS, 0, 309375 },     { IBV_RATE_28_GBPS, 11, 28125 },
	{ IBV_RATE_50_GBPS, 20, 53125 },      { IBV_RATE_400_GBPS, 160, 425000 },
	{ IBV_RATE_600_GBPS, 240, 637500 },   { IBV_RATE_800_GBPS, 320, 850000 },
	{ IBV_RATE_1200_GBPS, 480, 1275000 },
};

const struct wire_rate *wire_rate_find(unsigned rate)
{
	for (size_t i = 0; i < WIRE_RATES; i++)
		if (wire_rates[i].rate == rate)
			return &wire_rates[i];
	return NULL;
}

unsigned wire_rate_to_mbps(unsigned rate)
{
	const struct wire_rate *r = wire_rate_find(rate);

	return r ? (unsigned)r->mbps : 0;
}

/* ---- widths and speeds of links: bit i is row i ---- */

static const unsigned lanes_of[] = { 1, 4, 8, 12, 2 };

static const struct {
	const char *name;
	unsigned lane; /* in units of 100 Mbit/s */
} speeds[] = { { "SDR", 25 },  { "DDR", 50 },  { "QDR", 100 }, { "FDR10", 100 },
	       { "FDR", 140 }, { "EDR", 250 }, { "HDR", 500 }, { "NDR", 1000 } };

/* The row of the lowest bit; of no bit, none. */
static unsigned row_of(unsigned bits)
{
	return bits ? (unsigned)__builtin_ctz(bits) : UINT_MAX;
}

unsigned wire_link_lanes(unsigned width)
{
	return row_of(width) < ARRAY_SIZE(lanes_of) ? lanes_of[row_of(width)] : 0;
}

unsigned wire_link_speed(unsigned width, unsigned speed)
{
	return row_of(speed) < ARRAY_SIZE(speeds)
	               ? speeds[row_of(speed)].lane * wire_link_lanes(width)
	               : 0;
}

unsigned wire_link_width(uint64_t lanes)
{
	for (unsigned i = 0; i < ARRAY_SIZE(lanes_of); i++)
		if (lanes_of[i] == lanes)
			return 1u << i;
	return 0;
}

unsigned wire_link_speed_named(const char *name, size_t len)
{
	for (unsigned i = 0; i < ARRAY_SIZE(speeds); i++)
		if (strlen(speeds[i].name) == len && !memcmp(speeds[i].name, name, len))
			return 1u << i;
	return 0;
}

const char *wire_link_speed_name(unsigned speed)
{
	return row_of(speed) < ARRAY_SIZE(speeds) ? speeds[row_of(speed)].name : "?";
}
