/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The invariant CRC at the end of a RoCEv2 datagram: CRC-32 as Ethernet's, over 64 bits of
 * ones (where InfiniBand has the LRH), the IP and UDP headers, the transport headers and the
 * padded payload. Fields that may change on the way count as ones: IPv4's type of service, time to
 * live and checksum, IPv6's traffic class, flow label and hop limit, the UDP checksum, BTH's
 * FECN, BECN and reserved bits beside them (InfiniBand specification volume 1, section 7.8.1
 * and annex A17.3.3). It goes out with its low byte first.
 *
 * One field of IPv4 counts that a UDP socket shows to nobody: the identification. So a
 * receiver computes the ICRC as if it were 0, say, and looks whether the difference to the one that
 * came is what some identification makes: CRCs are linear, the difference of two is that of
 * their messages at its distance from the end, and running it backwards over that distance
 * gives the field back. The same goes for the flag Don't Fragment. Of 2^32 differences 2^17
 * pass so, at any given length: a corrupted datagram is taken for a good one with
 * probability 2^-15, where a known identification would make it 2^-32; and not even every
 * error of a single bit is sure to be seen. The UDP checksum, where the sender fills it in,
 * and Ethernet's own CRC are there as well. Over IPv6 the check is exact.
 *
 * Pure functions.
 */
#ifndef WIRE_ICRC_H
#define WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/headers.h"
#include "wire/ip.h"

#define WIRE_ICRC_MAX_BEGIN WIRE_HEADERS_MAX_BYTES

/*
 * Begins an ICRC: the IP and UDP headers of a datagram with @udp_payload bytes of UDP payload,
 * and the first @bytes of that, from WIRE_BTH_BYTES to WIRE_ICRC_MAX_BEGIN, at @payload.
 */
uint32_t wire_icrc_begin(const struct wire_ip *ip, uint16_t udp_payload, const uint8_t *payload,
                         unsigned bytes);

/* Continues @icrc with @bytes bytes. After the last it is the ICRC. */
uint32_t wire_icrc_add(uint32_t icrc, const void *at, size_t bytes);

/*
 * Two ICRCs of a datagram with @udp_payload bytes of UDP payload differ by (exclusive or)
 * @difference: the one that came, and one computed with @ip's identification and DF set. Is
 * there an identification, and a DF, that explain it? Then fills them in.
 */
bool wire_icrc_find_id(uint32_t difference, uint16_t udp_payload, struct wire_ip *ip);

#endif
