/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The message by which a host learns that nobody on the link has an address: ICMP's "host
 * unreachable", ICMPv6's "address unreachable" (RFC 792; RFC 4443). Pure functions.
 */
#ifndef IPOIB_UNREACHABLE_H
#define IPOIB_UNREACHABLE_H

#include <stddef.h>
#include <stdint.h>

#define IPOIB_UNREACHABLE_BYTES 1280

/* Writes the message about the packet of @bytes bytes at @packet, to its sender. It is from the
 * address that cannot be reached: from an address of its own a kernel receives nothing. Returns its
 * bytes; 0: there must be none about this packet. */
size_t ipoib_unreachable(const uint8_t *packet, size_t bytes,
                         uint8_t out[static IPOIB_UNREACHABLE_BYTES]);

#endif
