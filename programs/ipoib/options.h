/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line of umbel-ipoib. Pure functions.
 */
#ifndef IPOIB_OPTIONS_H
#define IPOIB_OPTIONS_H

#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>

#include "netdev/netdev.h"
#include "wire/ip.h"

#define IPOIB_MAX_ADDRESSES 16

struct ipoib_options {
	unsigned port; /* the port's number among the host's, from 1 */
	uint16_t pkey; /* with the membership bit */
	char interface[IFNAMSIZ];
	struct netdev_address address[IPOIB_MAX_ADDRESSES];
	unsigned n_addresses;
	bool is_new;               /* nobody knows its addresses */
	bool connected;            /* connected mode (RFC 4755) */
	bool multicast;            /* with a route for IPv4 groups */
	bool await;                /* the port may not be in the partition yet */
	int status_fd, control_fd; /* -1: none */
	bool help, version;
};

/* Reads "192.0.2.1/24" or "2001:db8::1/64". False: it is none. */
bool ipoib_parse_address(const char *text, struct netdev_address *address);

/* 0; -EINVAL: @why, of @len bytes, says what is wrong. */
int ipoib_options_parse(struct ipoib_options *o, int argc, char **argv, char *why, size_t len);

void ipoib_options_help(FILE *to);

#endif
