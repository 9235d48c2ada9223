/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ARP with hardware type 32 and link-layer addresses of 20 bytes (RFC 826; RFC 4391, section 9.2).
 * Pure functions.
 */
#ifndef IPOIB_ARP_H
#define IPOIB_ARP_H

#include "ipoib/encapsulation.h"

#define IPOIB_ARP_BYTES (8 + 2 * (IPOIB_ADDRESS_BYTES + 4))

/*
 * Writes an ARP packet, without encapsulation. @s: IPv4; its address is the sender's, in a reply,
 * too, whose target becomes the packet's sender. @to: the receiver of a reply, or an interface that
 * is asked whether it is still there; NULL: any interface that has the target.
 */
void ipoib_arp_encode(const struct ipoib_solicitation *s, const struct ipoib_address *to,
                      uint8_t out[static IPOIB_ARP_BYTES]);

/*
 * Reads a request or reply: source and target as ipoib_arp_encode() has them. False: it is none, or
 * not of this hardware, or it lacks an address.
 */
bool ipoib_arp_decode(const uint8_t *in, size_t bytes, struct ipoib_solicitation *s);

#endif
