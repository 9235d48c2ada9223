/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rates of links as the subnet administrator tells them: see sa_rates.h.
 */
#include <infiniband/verbs.h>

#include "subnet/sa_rates.h"
#include "wire/rate.h"

static unsigned lane_mbps(uint8_t speed)
{
	switch (speed) {
	case FABRIC_SPEED_SDR:
		return 2500;
	case FABRIC_SPEED_DDR:
		return 5000;
	case FABRIC_SPEED_QDR:
	case FABRIC_SPEED_FDR10:
		return 10000;
	case FABRIC_SPEED_FDR:
		return 14062;
	case FABRIC_SPEED_HDR:
		return 53125;
	case FABRIC_SPEED_NDR:
		return 106250;
	default:
		return 25781;
	}
}

unsigned sa_port_mbps(const struct fabric_port *p)
{
	return lane_mbps(p->speed) * wire_link_lanes(p->width);
}

uint8_t sa_rate_of(unsigned mbps)
{
	const struct wire_rate *best = NULL;

	for (unsigned i = 0; i < WIRE_RATES; i++)
		if ((unsigned)wire_rates[i].mbps <= mbps + mbps / 1000 &&
		    (!best || wire_rates[i].mbps > best->mbps))
			best = &wire_rates[i];
	return best ? (uint8_t)best->rate : IBV_RATE_2_5_GBPS;
}

uint8_t sa_rate_below(unsigned mbps)
{
	const struct wire_rate *best = NULL;

	for (unsigned i = 0; i < WIRE_RATES; i++)
		if ((unsigned)wire_rates[i].mbps < mbps &&
		    (!best || wire_rates[i].mbps > best->mbps))
			best = &wire_rates[i];
	return best ? (uint8_t)best->rate : 0;
}
