/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * GIDs and addresses as text, for messages. The macros give text that is valid until the
 * enclosing block ends, so that a message of the log can be written in one line. Pure functions.
 */
#ifndef WIRE_TEXT_H
#define WIRE_TEXT_H

#include <sys/socket.h>

#include "wire/ib.h"

#define WIRE_TEXT 48 /* bytes of the longest text */

/* As an IPv6 address: "ff12:4001:ffff::f01:101". @gid: 16 bytes. */
const char *wire_gid_format(const void *gid, char text[static WIRE_TEXT]);

/* The other way round, of a multicast GID. False: the text is none. */
bool wire_mgid_parse(const char *text, struct ib_gid *mgid);

#define WIRE_GROUP_GIDS 3

/*
 * The GIDs that a group has which a user names: the GID itself, or an IP address. One of them is
 * the group's on any fabric: "239.1.1.1" is ::ffff:239.1.1.1 on Ethernet, and on InfiniBand, in the
 * default partition, ff12:4001:ffff::f01:101 as programs join it by rdma_cm's UDP port space,
 * ff12:401b:ffff::f01:101 as IPoIB does. "ff0e::5" is itself, or likewise an address. Returns how
 * many; 0: the text is no group.
 */
unsigned wire_group_gids(const char *text, struct ib_gid gid[static WIRE_GROUP_GIDS]);

/* Of AF_INET, AF_INET6 or AF_IB, without the port; "?" for others. */
const char *wire_address_format(const struct sockaddr *addr, char text[static WIRE_TEXT]);

#define wire_gid_text(gid)      wire_gid_format(gid, (char[WIRE_TEXT]){ 0 })
#define wire_address_text(addr) wire_address_format(addr, (char[WIRE_TEXT]){ 0 })

#endif
