/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How sources number their IPv4 datagrams: see ipv4_ids.h.
 */
#include "wire/ipv4_ids.h"

/* The pieces that the kernel cuts at one time are numbered below this (UDP_MAX_SEGMENTS of
 * Linux). */
#define LOW 128
/* A source with so many low ones is known for them. Half as many are left when it has another. */
#define KNOWN 16

static struct wire_ipv4_source *source_of(struct wire_ipv4_ids *ids, in_addr_t address)
{
	/* all bits of the address count in the uppermost ones of the product */
	struct wire_ipv4_source *set = ids->source[address * 0x9E3779B1u >> 24], other = set[0];

	if (other.address == address)
		return &set[0];
	if (set[1].address == address)
		set[0] = set[1];
	else
		set[0] = (struct wire_ipv4_source){ .address = address };
	set[1] = other;
	return &set[0];
}

bool wire_ipv4_ids_believe(struct wire_ipv4_ids *ids, const struct wire_ip *ip)
{
	struct wire_ipv4_source *s;

	if (!wire_gid_is_ipv4(&ip->sgid))
		return true;
	s = source_of(ids, wire_gid_to_ipv4(&ip->sgid));
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
