/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rates of links as the subnet administrator tells them. Pure functions.
 */
#ifndef SUBNET_SA_RATES_H
#define SUBNET_SA_RATES_H

#include "fabric/model/fabric.h"

/* The rate of the port's link, Mbit/s; and the fastest encoded rate that is not above @mbps. */
unsigned sa_port_mbps(const struct fabric_port *p);
uint8_t sa_rate_of(unsigned mbps);

/* The fastest rate below @mbps; 0: there is none. */
uint8_t sa_rate_below(unsigned mbps);

#endif
