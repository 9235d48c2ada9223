/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Neighbour solicitations and advertisements (RFC 4861) with link-layer addresses of 20 bytes (RFC
 * 4391, section 9.3). Pure functions.
 */
#ifndef IPOIB_ND_H
#define IPOIB_ND_H

#include "ipoib/ip_packet.h"

#define IPOIB_ND_BYTES (IPOIB_IPV6_MIN + 24 + 24)

/* Whether it is a message of neighbour discovery that hosts exchange about addresses. */
bool ipoib_nd_is_one(const struct ipoib_ip *ip, const uint8_t *packet);

/*
 * Writes the IPv6 packet. @to: the destination; an advertisement's source is the target. Returns
 * its bytes: without a link-layer address (@s->has_address), which goes with a source that is zero,
 * there are fewer.
 */
unsigned ipoib_nd_encode(const struct ipoib_solicitation *s, const struct ib_gid *to,
                         uint8_t out[static IPOIB_ND_BYTES]);

/* Reads a packet for which ipoib_nd_is_one(). False: it breaks a rule of RFC 4861, section 7.1. */
bool ipoib_nd_decode(const struct ipoib_ip *ip, const uint8_t *packet,
                     struct ipoib_solicitation *s);

/* The group that solicitations for @ip are sent to, ff02::1:ffxx:xxxx. */
struct ib_gid ipoib_nd_solicited_group(const struct ib_gid *ip);

#endif
