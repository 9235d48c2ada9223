/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Neighbour discovery: see nd.h.
 */
#include "ipoib/nd.h"

#define ICMPV6        58
#define SOLICITATION  135
#define ADVERTISEMENT 136
#define MESSAGE_BYTES 24 /* without options */
#define HOP_LIMIT     255

#define FLAG_SOLICITED 0x40
#define FLAG_OVERRIDE  0x20

#define OPTION_SOURCE 1
#define OPTION_TARGET 2
#define OPTION_UNIT   8
#define OPTION_BYTES  24 /* type, length, 16 reserved bits, the address */
#define ADDRESS_AT    4

bool ipoib_nd_is_one(const struct ipoib_ip *ip, const uint8_t *packet)
{
	const uint8_t *icmp = packet + IPOIB_IPV6_MIN;

	return ip->type == IPOIB_TYPE_IPV6 && ip->protocol == ICMPV6 &&
	       ip->length > IPOIB_IPV6_MIN && (icmp[0] == SOLICITATION || icmp[0] == ADVERTISEMENT);
}

struct ib_gid ipoib_nd_solicited_group(const struct ib_gid *ip)
{
	struct ib_gid group = { { 0xFF, 0x02, [11] = 0x01, [12] = 0xFF } };

	memcpy(group.raw + 13, ip->raw + 13, 3);
	return group;
}

static void put_option(uint8_t *at, uint8_t type, const struct ipoib_address *a)
{
	memset(at, 0, OPTION_BYTES);
	at[0] = type;
	at[1] = OPTION_BYTES / OPTION_UNIT;
	ipoib_address_encode(a, at + ADDRESS_AT);
}

unsigned ipoib_nd_encode(const struct ipoib_solicitation *s, const struct ib_gid *to,
                         uint8_t out[static IPOIB_ND_BYTES])
{
	unsigned bytes = MESSAGE_BYTES + (s->has_address ? OPTION_BYTES : 0);
	uint8_t *icmp = out + IPOIB_IPV6_MIN;
	struct ipoib_ip ip = { .type = IPOIB_TYPE_IPV6,
		               .source = s->is_answer ? s->target : s->source,
		               .destination = *to };
	uint16_t sum;

	memset(out, 0, IPOIB_IPV6_MIN + MESSAGE_BYTES);
	out[0] = 6 << 4;
	ipoib_put16(out + 4, bytes);
	out[6] = ICMPV6;
	out[7] = HOP_LIMIT;
	memcpy(out + 8, ip.source.raw, 16);
	memcpy(out + 24, to->raw, 16);
	icmp[0] = s->is_answer ? ADVERTISEMENT : SOLICITATION;
	icmp[4] = (s->solicited ? FLAG_SOLICITED : 0) | (s->override ? FLAG_OVERRIDE : 0);
	memcpy(icmp + 8, s->target.raw, 16);
	if (s->has_address)
		put_option(icmp + MESSAGE_BYTES, s->is_answer ? OPTION_TARGET : OPTION_SOURCE,
		           &s->address);
	sum = (uint16_t)~ipoib_fold(ipoib_sum(icmp, bytes, ipoib_pseudo_sum(&ip, ICMPV6, bytes)));
	memcpy(icmp + 2, &sum, sizeof(sum));
	return IPOIB_IPV6_MIN + bytes;
}

/* Looks for the option with the link-layer address. False: an option has no length, or ends beyond
 * the packet, or the address is none. */
static bool read_options(const uint8_t *at, unsigned bytes, uint8_t type,
                         struct ipoib_solicitation *s)
{
	while (bytes) {
		unsigned length = bytes < 2 ? 0 : at[1] * OPTION_UNIT;

		if (!length || length > bytes)
			return false;
		if (at[0] == type && length == OPTION_BYTES) {
			ipoib_address_decode(at + ADDRESS_AT, &s->address);
			s->has_address = true;
		}
		at += length;
		bytes -= length;
	}
	return !s->has_address || ipoib_address_valid(&s->address);
}

bool ipoib_nd_decode(const struct ipoib_ip *ip, const uint8_t *packet, struct ipoib_solicitation *s)
{
	const uint8_t *icmp = packet + IPOIB_IPV6_MIN;
	unsigned bytes = ip->length - IPOIB_IPV6_MIN;
	struct ib_gid group;

	if (bytes < MESSAGE_BYTES || packet[7] != HOP_LIMIT || icmp[1] ||
	    !ipoib_transport_is_sound(ip, icmp, bytes))
		return false;
	memset(s, 0, sizeof(*s));
	s->is_answer = icmp[0] == ADVERTISEMENT;
	s->source = s->is_answer ? ip->destination : ip->source;
	memcpy(s->target.raw, icmp + 8, 16);
	if (ib_gid_is_mcast(&s->target) ||
	    !read_options(icmp + MESSAGE_BYTES, bytes - MESSAGE_BYTES,
	                  s->is_answer ? OPTION_TARGET : OPTION_SOURCE, s))
		return false;
	if (s->is_answer) {
		s->solicited = icmp[4] & FLAG_SOLICITED;
		s->override = icmp[4] & FLAG_OVERRIDE;
		return !(s->solicited && ib_gid_is_mcast(&ip->destination));
	}
	group = ipoib_nd_solicited_group(&s->target);
	return !ib_gid_is_zero(&s->source) ||
	       (!s->has_address && ib_gid_equal(&ip->destination, &group));
}
