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

/* Likewise, or of a group on Ethernet that has an IPv4 address: "::ffff:239.1.1.1". */
bool wire_group_parse(const char *text, struct ib_gid *group);

/* Likewise, or of the IPv4 address itself: "239.1.1.1". */
bool wire_group_parse_ipv4(const char *text, struct ib_gid *group);

/* Of AF_INET, AF_INET6 or AF_IB, without the port; "?" for others. */
const char *wire_address_format(const struct sockaddr *addr, char text[static WIRE_TEXT]);

#define wire_gid_text(gid)      wire_gid_format(gid, (char[WIRE_TEXT]){ 0 })
#define wire_address_text(addr) wire_address_format(addr, (char[WIRE_TEXT]){ 0 })

#endif
