/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ARP: see arp.h.
 */
#include "ipoib/arp.h"

#define HARDWARE_INFINIBAND 32
#define REQUEST             1
#define REPLY               2
#define IPV4_BYTES          4

/* Where things are in a packet. */
enum {
	AT_HARDWARE = 0,
	AT_PROTOCOL = 2,
	AT_HARDWARE_BYTES = 4,
	AT_PROTOCOL_BYTES = 5,
	AT_OPERATION = 6,
	AT_SENDER = 8,
	AT_SENDER_IP = AT_SENDER + IPOIB_ADDRESS_BYTES,
	AT_TARGET = AT_SENDER_IP + IPV4_BYTES,
	AT_TARGET_IP = AT_TARGET + IPOIB_ADDRESS_BYTES,
};

static void put_ip(uint8_t *at, const struct ib_gid *ip)
{
	if (wire_gid_is_ipv4(ip))
		memcpy(at, ip->raw + 12, IPV4_BYTES);
	else /* none */
		memset(at, 0, IPV4_BYTES);
}

static struct ib_gid get_ip(const uint8_t *at)
{
	in_addr_t addr;

	memcpy(&addr, at, sizeof(addr));
	return addr ? wire_gid_from_ipv4(addr) : (struct ib_gid){ { 0 } };
}

void ipoib_arp_encode(const struct ipoib_solicitation *s, const struct ipoib_address *to,
                      uint8_t out[static IPOIB_ARP_BYTES])
{
	memset(out, 0, IPOIB_ARP_BYTES);
	ipoib_put16(out + AT_HARDWARE, HARDWARE_INFINIBAND);
	ipoib_put16(out + AT_PROTOCOL, IPOIB_TYPE_IPV4);
	out[AT_HARDWARE_BYTES] = IPOIB_ADDRESS_BYTES;
	out[AT_PROTOCOL_BYTES] = IPV4_BYTES;
	ipoib_put16(out + AT_OPERATION, s->is_answer ? REPLY : REQUEST);
	ipoib_address_encode(&s->address, out + AT_SENDER);
	put_ip(out + AT_SENDER_IP, s->is_answer ? &s->target : &s->source);
	if (to)
		ipoib_address_encode(to, out + AT_TARGET);
	put_ip(out + AT_TARGET_IP, s->is_answer ? &s->source : &s->target);
}

bool ipoib_arp_decode(const uint8_t *in, size_t bytes, struct ipoib_solicitation *s)
{
	unsigned operation;
	struct ib_gid sender, target;

	if (bytes < IPOIB_ARP_BYTES || ipoib_get16(in + AT_HARDWARE) != HARDWARE_INFINIBAND ||
	    ipoib_get16(in + AT_PROTOCOL) != IPOIB_TYPE_IPV4 ||
	    in[AT_HARDWARE_BYTES] != IPOIB_ADDRESS_BYTES || in[AT_PROTOCOL_BYTES] != IPV4_BYTES)
		return false;
	operation = ipoib_get16(in + AT_OPERATION);
	if (operation != REQUEST && operation != REPLY)
		return false;
	memset(s, 0, sizeof(*s));
	ipoib_address_decode(in + AT_SENDER, &s->address);
	sender = get_ip(in + AT_SENDER_IP);
	target = get_ip(in + AT_TARGET_IP);
	s->is_answer = operation == REPLY;
	s->source = s->is_answer ? target : sender;
	s->target = s->is_answer ? sender : target;
	s->has_address = true;
	s->solicited = s->override = s->is_answer;
	return ipoib_address_valid(&s->address) && !ib_gid_is_zero(&s->target);
}
