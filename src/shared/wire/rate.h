/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Static rates: the encoding that PathRecord, MCMemberRecord and verbs share (enum ibv_rate), with
 * the rate in units of 2.5 Gbit/s and in Mbit/s. A constant table; pure functions.
 */
#ifndef WIRE_RATE_H
#define WIRE_RATE_H

#include <stddef.h>
#include <stdint.h>

#define WIRE_RATES 23

/* mult: the rate / 2.5 Gbit/s; 0: ibv_rate_to_mult(3) defines none. */
struct wire_rate {
	unsigned rate;
	int mult;
	int mbps;
};

extern const struct wire_rate wire_rates[WIRE_RATES];

/* The row of an encoded rate; NULL: there is no such rate. */
const struct wire_rate *wire_rate_find(unsigned rate);

/* Mbit/s of an encoded rate; 0 if there is none. */
unsigned wire_rate_to_mbps(unsigned rate);

/*
 * The nominal rate of a link in units of 100 Mbit/s: 1000 for four lanes of EDR. @width and @speed:
 * as in struct ibv_port_attr (ibv_query_port(3)). 0: one of them is unknown.
 */
unsigned wire_link_speed(unsigned width, unsigned speed);

/* A width by its number of lanes, and the other way round. 0: there is none. */
unsigned wire_link_width(uint64_t lanes);
unsigned wire_link_lanes(unsigned width);

/* A speed by its name, as "EDR", which is @len bytes long; 0: there is none. The name of a speed.
 */
unsigned wire_link_speed_named(const char *name, size_t len);
const char *wire_link_speed_name(unsigned speed);

#endif
