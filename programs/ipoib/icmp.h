/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages by which our own kernel learns why a packet of its was not sent (RFC 792, 1191; RFC
 * 4443). They are from the address that the packet was for, or, if that is a group's, from another
 * of the sender's network: from an address of its own a kernel receives nothing. Pure functions.
 */
#ifndef IPOIB_ICMP_H
#define IPOIB_ICMP_H

#include <stddef.h>
#include <stdint.h>

#define IPOIB_ICMP_BYTES 1280

/* Each writes the message about the packet of @bytes bytes at @packet, to its sender. Returns its
 * bytes; 0: there must be none about this packet. */

/* Nobody on the link has the address: "host unreachable", "address unreachable". */
size_t ipoib_icmp_unreachable(const uint8_t *packet, size_t bytes,
                              uint8_t out[static IPOIB_ICMP_BYTES]);

/* More than @mtu bytes cannot be sent there: "fragmentation needed", "packet too big". */
size_t ipoib_icmp_too_large(const uint8_t *packet, size_t bytes, unsigned mtu,
                            uint8_t out[static IPOIB_ICMP_BYTES]);

#endif
