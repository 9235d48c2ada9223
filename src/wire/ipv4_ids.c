/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How sources number their IPv4 datagrams: see ipv4_ids.h.
 */
#include <endian.h>

#include "wire/ipv4_ids.h"

/* What the kernel cuts at one time is numbered below this (UDP_MAX_SEGMENTS of Linux). */
#define LOW 128
/* A source with so many low ones is known for them. Half as many are left when it has another. */
#define KNOWN 16

bool wire_ipv4_ids_believe(struct wire_ipv4_ids *ids, const struct wire_ip *ip)
{
	const in_addr_t address = wire_gid_to_ipv4(&ip->sgid);
	struct wire_ipv4_source *s = &ids->source[be32toh(address) % WIRE_IPV4_SOURCES];

	if (!wire_gid_is_ipv4(&ip->sgid))
		return true;
	if (s->address != address)
		*s = (struct wire_ipv4_source){ .address = address };
	if (ip->ipv4_id < LOW && !ip->ipv4_fragmentable) {
		s->low += s->low < KNOWN;
	} else if (s->low == KNOWN && (uint16_t)(ip->ipv4_id - s->last) > LOW) {
		s->low = KNOWN / 2;
		return false;
	} else { /* it counts on, as it may from 0 */
		s->low = 0;
	}
	s->last = ip->ipv4_id;
	return true;
}
