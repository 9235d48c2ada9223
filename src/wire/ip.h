/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What RoCEv2 has of IP and UDP: a datagram's addresses and the header fields that a UDP
 * socket can set and show, and the headers that they stood in (RFC 791, RFC 8200, InfiniBand
 * specification volume 1, annex A17). Addresses are GIDs: IPv4's as ::ffff:a.b.c.d. Pure
 * functions.
 */
#ifndef WIRE_IP_H
#define WIRE_IP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/ib.h"

#define WIRE_ROCE_UDP_PORT 4791 /* the destination */
#define WIRE_IPV4_BYTES    20   /* there are no options: a UDP socket sends none */
#define WIRE_IPV6_BYTES    40
#define WIRE_UDP_BYTES     8

/* Fields are host order. */
struct wire_ip {
	struct ib_gid sgid, dgid;
	uint32_t flow_label;    /* IPv6; 20 bits */
	uint16_t udp_source;    /* port */
	uint16_t ipv4_id;       /* of the socket's own datagrams 0; see wire_icrc_find_id() */
	bool ipv4_fragmentable; /* DF is clear; ours have it set */
	uint8_t traffic_class;  /* DSCP and ECN; IPv4: type of service */
	uint8_t hop_limit;      /* IPv4: time to live */
};

/* Does @gid stand for an IPv4 address, ::ffff:a.b.c.d? */
static inline bool wire_gid_is_ipv4(const struct ib_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xFF, [11] = 0xFF };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

/* Is @gid a group on Ethernet: ff00::/8, or an IPv4-mapped address in 224.0.0.0/4? */
static inline bool wire_gid_is_ip_mcast(const struct ib_gid *gid)
{
	return gid->raw[0] == 0xFF || (wire_gid_is_ipv4(gid) && gid->raw[12] >> 4 == 0xE);
}

/* The IPv4 address, network order, that @gid stands for. */
static inline in_addr_t wire_gid_to_ipv4(const struct ib_gid *gid)
{
	in_addr_t addr;

	memcpy(&addr, gid->raw + 12, 4);
	return addr;
}

static inline struct ib_gid wire_gid_from_ipv4(in_addr_t addr)
{
	struct ib_gid gid = { { [10] = 0xFF, [11] = 0xFF } };

	memcpy(gid.raw + 12, &addr, 4);
	return gid;
}

/*
 * Writes the IP header, IPv4 by its source address, else IPv6, of a datagram with @udp_payload
 * bytes of UDP payload; IPv4's with its checksum. Returns its bytes: 20 or 40.
 */
unsigned wire_ip_encode(const struct wire_ip *ip, uint16_t udp_payload,
                        uint8_t out[static WIRE_IPV6_BYTES]);

/* The same as the ICRC sees it: ones in what routers may change. */
unsigned wire_ip_encode_masked(const struct wire_ip *ip, uint16_t udp_payload,
                               uint8_t out[static WIRE_IPV6_BYTES]);

/*
 * Writes the 40 bytes that a UD receive begins with on an Ethernet port (annex A17.4.5): the
 * IPv6 header, or 20 zero bytes and the IPv4 header, as they were on the wire.
 */
void wire_ip_grh(const struct wire_ip *ip, uint16_t udp_payload, uint8_t out[static IB_GRH_BYTES]);

#endif
