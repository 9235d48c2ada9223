/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A whole Ethernet frame with a RoCEv2 packet, without its frame check sequence:
 *
 *     Ethernet 14  IP 20 or 40  UDP 8  RoCEv2 packet (roce.h)
 *
 * Our sockets leave all but the last to the kernel. This is for captures. Pure functions.
 */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include "wire/roce.h"

#define WIRE_MAC_BYTES   6
#define WIRE_FRAME_BYTES (14 + WIRE_IPV6_BYTES + WIRE_UDP_BYTES + WIRE_ROCE_MAX_BYTES + 3)

struct wire_frame {
	uint8_t to[WIRE_MAC_BYTES], from[WIRE_MAC_BYTES];
	struct wire_roce_packet packet;
};

/* Writes the frame, whose packet wire_roce_build() takes. Returns how many bytes. */
size_t wire_frame_build(const struct wire_frame *frame, uint8_t out[static WIRE_FRAME_BYTES]);

/* The Ethernet address of a group by its IP address (RFC 1112 and 2464). */
void wire_frame_group(const struct ib_gid *group, uint8_t mac[static WIRE_MAC_BYTES]);

#endif
