/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of static rates: see rate.h. Constant.
 */
#include <stddef.h>

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

unsigned wire_link_speed(unsigned width, unsigned speed)
{
	static const unsigned lane[] = { 25, 50, 100, 100, 140, 250, 500, 1000 };
	static const unsigned lanes[] = { 1, 4, 8, 12, 2 };
	unsigned w = width ? (unsigned)__builtin_ctz(width) : ARRAY_SIZE(lanes);
	unsigned s = speed ? (unsigned)__builtin_ctz(speed) : ARRAY_SIZE(lane);

	return w < ARRAY_SIZE(lanes) && s < ARRAY_SIZE(lane) ? lane[s] * lanes[w] : 0;
}
