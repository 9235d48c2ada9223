/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages about packets that cannot be sent: see icmp.h.
 */
#include "ipoib/icmp.h"
#include "ipoib/ip_packet.h"

#define ICMP             1
#define ICMPV6           58
#define ICMP_HEADER      8
#define HOP_LIMIT        64
#define QUOTED_IPV4      (576 - IPOIB_IPV4_MIN - ICMP_HEADER)
#define ICMP_ECHO        8
#define ICMPV6_ERRORS_TO 127

/* The reason that a message gives, in both families. */
struct reason {
	uint8_t type, code, type6, code6;
	uint32_t rest; /* of the header of 8 bytes */
};

/* Errors are not told about errors. */
static bool is_error(const struct ipoib_ip *ip, const uint8_t *packet)
{
	uint8_t type = ip->header < ip->length ? packet[ip->header] : 0;

	if (ip->type == IPOIB_TYPE_IPV4)
		return ip->protocol == ICMP && type && type != ICMP_ECHO;
	return ip->protocol == ICMPV6 && type <= ICMPV6_ERRORS_TO;
}

/* The source address of the message. */
static struct ib_gid source_of(const struct ipoib_ip *ip)
{
	struct ib_gid other = ip->source;

	if (!wire_gid_is_ip_mcast(&ip->destination))
		return ip->destination;
	other.raw[15] ^= 1;
	if (!other.raw[15] || other.raw[15] == 255) /* maybe the network's, or for broadcasts */
		other.raw[15] ^= 3;
	return other;
}

static size_t write_ipv4(const struct ipoib_ip *ip, const uint8_t *packet, const struct reason *why,
                         uint8_t *out)
{
	unsigned quoted = ip->length < QUOTED_IPV4 ? ip->length : QUOTED_IPV4;
	unsigned length = IPOIB_IPV4_MIN + ICMP_HEADER + quoted;
	uint8_t *icmp = out + IPOIB_IPV4_MIN;
	struct ib_gid source = source_of(ip);
	uint16_t sum;

	memset(out, 0, IPOIB_IPV4_MIN + ICMP_HEADER);
	out[0] = 4 << 4 | IPOIB_IPV4_MIN / 4;
	ipoib_put16(out + 2, length);
	out[8] = HOP_LIMIT;
	out[9] = ICMP;
	memcpy(out + 12, source.raw + 12, 4);
	memcpy(out + 16, ip->source.raw + 12, 4);
	ipoib_ipv4_checksum(out, IPOIB_IPV4_MIN);
	icmp[0] = why->type;
	icmp[1] = why->code;
	ipoib_put32(icmp + 4, why->rest);
	memcpy(icmp + ICMP_HEADER, packet, quoted);
	sum = (uint16_t)~ipoib_fold(ipoib_sum(icmp, ICMP_HEADER + quoted, 0));
	memcpy(icmp + 2, &sum, sizeof(sum));
	return length;
}

static size_t write_ipv6(const struct ipoib_ip *ip, const uint8_t *packet, const struct reason *why,
                         uint8_t *out)
{
	unsigned room = IPOIB_ICMP_BYTES - IPOIB_IPV6_MIN - ICMP_HEADER;
	unsigned quoted = ip->length < room ? ip->length : room;
	uint8_t *icmp = out + IPOIB_IPV6_MIN;
	struct ipoib_ip reply = { .type = IPOIB_TYPE_IPV6,
		                  .source = source_of(ip),
		                  .destination = ip->source };
	uint64_t sum;
	uint16_t folded;

	memset(out, 0, IPOIB_IPV6_MIN + ICMP_HEADER);
	out[0] = 6 << 4;
	ipoib_put16(out + 4, ICMP_HEADER + quoted);
	out[6] = ICMPV6;
	out[7] = HOP_LIMIT;
	memcpy(out + 8, reply.source.raw, 16);
	memcpy(out + 24, ip->source.raw, 16);
	icmp[0] = why->type6;
	icmp[1] = why->code6;
	ipoib_put32(icmp + 4, why->rest);
	memcpy(icmp + ICMP_HEADER, packet, quoted);
	sum = ipoib_pseudo_sum(&reply, ICMPV6, ICMP_HEADER + quoted);
	folded = (uint16_t)~ipoib_fold(ipoib_sum(icmp, ICMP_HEADER + quoted, sum));
	memcpy(icmp + 2, &folded, sizeof(folded));
	return IPOIB_IPV6_MIN + ICMP_HEADER + quoted;
}

static size_t write_about(const uint8_t *packet, size_t bytes, const struct reason *why,
                          uint8_t *out)
{
	struct ipoib_ip ip;

	if (!ipoib_ip_parse(packet, bytes, &ip) || is_error(&ip, packet))
		return 0;
	return ip.type == IPOIB_TYPE_IPV4 ? write_ipv4(&ip, packet, why, out)
	                                  : write_ipv6(&ip, packet, why, out);
}

size_t ipoib_icmp_unreachable(const uint8_t *packet, size_t bytes,
                              uint8_t out[static IPOIB_ICMP_BYTES])
{
	static const struct reason why = { .type = 3, .code = 1, .type6 = 1, .code6 = 3 };

	return write_about(packet, bytes, &why, out);
}

size_t ipoib_icmp_too_large(const uint8_t *packet, size_t bytes, unsigned mtu,
                            uint8_t out[static IPOIB_ICMP_BYTES])
{
	const struct reason why = { .type = 3, .code = 4, .type6 = 2, .code6 = 0, .rest = mtu };

	return write_about(packet, bytes, &why, out);
}
