/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * IP headers of a RoCEv2 datagram: see ip.h.
 */
#include <endian.h>

#include "wire/ip.h"

#define FLOW_LABEL_MASK 0xFFFFF
#define DONT_FRAGMENT   0x4000

static void put16(uint8_t *to, uint16_t v)
{
	v = htobe16(v);
	memcpy(to, &v, 2);
}

/*
 * The checksum (RFC 1071), host order, of the 20 bytes at @header, whose checksum field is 0. Words
 * are added in the host's byte order; swapping the bytes of the sum gives the right result.
 */
static uint16_t checksum(const uint8_t *header)
{
	uint16_t word[WIRE_IPV4_BYTES / 2];
	uint32_t sum = 0;

	memcpy(word, header, sizeof(word));
	for (unsigned i = 0; i < WIRE_IPV4_BYTES / 2; i++)
		sum += word[i];
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return be16toh((uint16_t)~sum);
}

static void encode_ipv4(const struct wire_ip *ip, uint16_t udp_payload, uint8_t *out)
{
	out[0] = 0x45; /* version 4; a header of five words */
	out[1] = ip->traffic_class;
	put16(out + 2, WIRE_IPV4_BYTES + WIRE_UDP_BYTES + udp_payload);
	put16(out + 4, ip->ipv4_id);
	put16(out + 6, ip->ipv4_fragmentable ? 0 : DONT_FRAGMENT);
	out[8] = ip->hop_limit;
	out[9] = IPPROTO_UDP;
	put16(out + 10, 0);
	memcpy(out + 12, ip->sgid.raw + 12, 4);
	memcpy(out + 16, ip->dgid.raw + 12, 4);
}

static void encode_ipv6(const struct wire_ip *ip, uint16_t udp_payload, uint8_t *out)
{
	uint32_t word = htobe32(UINT32_C(6) << 28 | (uint32_t)ip->traffic_class << 20 |
	                        (ip->flow_label & FLOW_LABEL_MASK));

	memcpy(out, &word, 4);
	put16(out + 4, WIRE_UDP_BYTES + udp_payload);
	out[6] = IPPROTO_UDP;
	out[7] = ip->hop_limit;
	memcpy(out + 8, ip->sgid.raw, 16);
	memcpy(out + 24, ip->dgid.raw, 16);
}

unsigned wire_ip_encode(const struct wire_ip *ip, uint16_t udp_payload,
                        uint8_t out[static WIRE_IPV6_BYTES])
{
	if (!wire_gid_is_ipv4(&ip->sgid)) {
		encode_ipv6(ip, udp_payload, out);
		return WIRE_IPV6_BYTES;
	}
	encode_ipv4(ip, udp_payload, out);
	put16(out + 10, checksum(out));
	return WIRE_IPV4_BYTES;
}

unsigned wire_ip_encode_masked(const struct wire_ip *ip, uint16_t udp_payload,
                               uint8_t out[static WIRE_IPV6_BYTES])
{
	if (!wire_gid_is_ipv4(&ip->sgid)) {
		encode_ipv6(ip, udp_payload, out);
		out[0] |= 0x0F;
		memset(out + 1, 0xFF, 3);
		out[7] = 0xFF;
		return WIRE_IPV6_BYTES;
	}
	encode_ipv4(ip, udp_payload, out);
	out[1] = 0xFF;
	out[8] = 0xFF;
	put16(out + 10, 0xFFFF);
	return WIRE_IPV4_BYTES;
}

void wire_ip_grh(const struct wire_ip *ip, uint16_t udp_payload, uint8_t out[static IB_GRH_BYTES])
{
	uint8_t header[WIRE_IPV6_BYTES];
	unsigned bytes = wire_ip_encode(ip, udp_payload, header);

	memset(out, 0, IB_GRH_BYTES - bytes);
	memcpy(out + IB_GRH_BYTES - bytes, header, bytes);
}
