/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How sources number their IPv4 datagrams. The ICRC covers the identification, which a UDP socket
 * does not show: where the ICRC is that of another one than was guessed, the packet may be of a
 * source that numbers its datagrams, or damaged (wire_icrc_find_id()). So it is remembered which
 * sources number from 0 in each piece that their kernel cuts, as Umbel's do; of these nothing else
 * is believed.
 */
#ifndef WIRE_IPV4_IDS_H
#define WIRE_IPV4_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/ip.h"

#define WIRE_IPV4_SETS 256 /* as many as eight bits tell apart */

/* Sources whose addresses lead to one set: the two that were heard last, the last one first. */
struct wire_ipv4_ids {
	struct wire_ipv4_source {
		in_addr_t address;
		uint16_t last; /* identification */
		uint8_t low;   /* how many low ones there were: see ipv4_ids.c */
	} source[WIRE_IPV4_SETS][2];
};

/*
 * Whether the identification of @ip, found by the ICRC of a packet, is one that the source may have
 * chosen; remembers it. Of a source that begins to number anew one packet is lost. Always true of
 * IPv6, whose ICRC has no such field.
 */
bool wire_ipv4_ids_believe(struct wire_ipv4_ids *ids, const struct wire_ip *ip);

#endif
