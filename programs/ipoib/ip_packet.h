/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * IP packets as far as a link looks into them: addresses, lengths, and the internet checksum (RFC
 * 1071). Pure functions.
 */
#ifndef IPOIB_IP_PACKET_H
#define IPOIB_IP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipoib/encapsulation.h"

#define IPOIB_IPV4_MIN 20
#define IPOIB_IPV6_MIN 40

struct ipoib_ip {
	struct ib_gid source, destination;
	enum ipoib_type type;
	unsigned header;  /* bytes up to what @protocol says: of IPv6 without extension headers */
	unsigned length;  /* of the packet, as its header has it; never more than is there */
	uint8_t protocol; /* 44, or any in a fragment of IPv4: @fragment */
	bool fragment;
};

/* Returns whether the @bytes bytes at @data begin with a sound header and a whole packet. */
bool ipoib_ip_parse(const uint8_t *data, size_t bytes, struct ipoib_ip *ip);

/* The destination alone, of a packet of our own kernel. False: it is too short for one. */
bool ipoib_ip_destination(const uint8_t *data, size_t bytes, struct ib_gid *destination);

/* ---- checksums ---- */

/* The sum of @bytes bytes, which begin at an even offset, and of @sum. Not folded. */
uint64_t ipoib_sum(const uint8_t *data, size_t bytes, uint64_t sum);
/* The same, on any processor. */
uint64_t ipoib_sum_plainly(const uint8_t *data, size_t bytes, uint64_t sum);

/* The sum of what TCP, UDP and ICMPv6 put in front: addresses, protocol, @bytes of payload. */
uint64_t ipoib_pseudo_sum(const struct ipoib_ip *ip, uint8_t protocol, uint32_t bytes);

/* The sum, folded to 16 bits, as it stands in memory (not swapped). */
uint16_t ipoib_fold(uint64_t sum);

/* Writes the checksum of the IPv4 header at @header. */
void ipoib_ipv4_checksum(uint8_t *header, unsigned bytes);

/* Whether the checksum of the @bytes bytes at @data, with the pseudo header, is right. */
bool ipoib_transport_is_sound(const struct ipoib_ip *ip, const uint8_t *data, uint32_t bytes);

#endif
