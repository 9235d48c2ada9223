/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ethernet frames with RoCEv2 packets: see frame.h.
 */
#include <string.h>

#include "wire/frame.h"

#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86DD

static uint8_t *put(uint8_t *to, const void *at, size_t bytes)
{
	memcpy(to, at, bytes);
	return to + bytes;
}

static uint8_t *put16(uint8_t *to, unsigned v)
{
	return put(to, (const uint8_t[]){ (uint8_t)(v >> 8), (uint8_t)v }, 2);
}

static uint32_t add16(uint32_t sum, const uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		sum += (uint32_t)at[i] << (i % 2 ? 0 : 8);
	return sum;
}

/* IPv6 wants one (RFC 8200, section 8.1); over IPv4 it is 0, as with HCAs (annex A17). */
static uint16_t udp_checksum(const struct wire_ip *ip, const uint8_t *udp, size_t bytes)
{
	uint32_t sum = IPPROTO_UDP + (uint32_t)bytes;

	if (wire_gid_is_ipv4(&ip->sgid))
		return 0;
	sum = add16(sum, ip->sgid.raw, sizeof(ip->sgid.raw));
	sum = add16(sum, ip->dgid.raw, sizeof(ip->dgid.raw));
	sum = add16(sum, udp, bytes);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return sum == 0xFFFF ? 0xFFFF : (uint16_t)~sum;
}

size_t wire_frame_build(const struct wire_frame *frame, uint8_t out[static WIRE_FRAME_BYTES])
{
	const struct wire_roce_packet *p = &frame->packet;
	const uint16_t payload = wire_roce_udp_payload(p);
	uint8_t *to = out, *udp;
	struct wire_roce_frame ends;

	to = put(to, frame->to, sizeof(frame->to));
	to = put(to, frame->from, sizeof(frame->from));
	to = put16(to, wire_gid_is_ipv4(&p->ip.sgid) ? TYPE_IPV4 : TYPE_IPV6);
	to += wire_ip_encode(&p->ip, payload, to);
	udp = to;
	to = put16(to, p->ip.udp_source);
	to = put16(to, WIRE_ROCE_UDP_PORT);
	to = put16(to, WIRE_UDP_BYTES + payload);
	to = put16(to, 0);
	wire_roce_build(p, &ends);
	to = put(to, ends.head, ends.head_bytes);
	if (p->payload_bytes)
		to = put(to, p->payload, p->payload_bytes);
	to = put(to, ends.trailer, ends.trailer_bytes);
	put16(udp + 6, udp_checksum(&p->ip, udp, (size_t)(to - udp)));
	return (size_t)(to - out);
}

void wire_frame_group(const struct ib_gid *group, uint8_t mac[static WIRE_MAC_BYTES])
{
	if (wire_gid_is_ipv4(group)) {
		memcpy(mac, (const uint8_t[]){ 0x01, 0x00, 0x5E }, 3);
		memcpy(mac + 3, group->raw + 13, 3);
		mac[3] &= 0x7F;
	} else {
		memcpy(mac, (const uint8_t[]){ 0x33, 0x33 }, 2);
		memcpy(mac + 2, group->raw + 12, 4);
	}
}
