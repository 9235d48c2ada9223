/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Static rates: the encoding that PathRecord, MCMemberRecord and verbs share (enum
 * ibv_rate), what it is in units of 2.5 Gbit/s and in Mbit/s. A constant table.
 */
#ifndef WIRE_RATE_H
#define WIRE_RATE_H

#define WIRE_RATES 23

/* mult: 0 where the interface gives a rate none, though mbps would divide. */
struct wire_rate {
	unsigned rate;
	int mult;
	int mbps;
};

extern const struct wire_rate wire_rates[WIRE_RATES];

/* The row of an encoded rate, or NULL. */
const struct wire_rate *wire_rate_find(unsigned rate);

/* Mbit/s of an encoded rate; 0 if there is none. */
unsigned wire_rate_to_mbps(unsigned rate);

#endif
