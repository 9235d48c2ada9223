/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * IP and UDP for RoCEv2: the addresses and header fields of a datagram that a UDP socket can set
 * and read, and the IP headers made from them (RFC 791, RFC 8200, InfiniBand specification volume
 * 1, annex A17). Addresses are GIDs; an IPv4 address is ::ffff:a.b.c.d. Pure functions.
 */
#ifndef WIRE_IP_H
#define WIRE_IP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/ib.h"

#define WIRE_ROCE_UDP_PORT 4791 /* the destination port */
#define WIRE_IPV4_BYTES    20   /* without options: our sockets send none */
#define WIRE_IPV6_BYTES    40
#define WIRE_UDP_BYTES     8

/* Fields are host order. */
struct wire_ip {
	struct ib_gid sgid, dgid;
	uint32_t flow_label;    /* IPv6; 20 bits */
	uint16_t udp_source;    /* port */
	uint16_t ipv4_id;       /* 0 in our own datagrams; see wire_icrc_find_id() */
	bool ipv4_fragmentable; /* DF is clear; ours have it set */
	uint8_t traffic_class;  /* DSCP and ECN; IPv4: type of service */
	uint8_t hop_limit;      /* IPv4: time to live */
};

/* Whether @gid is an IPv4 address, ::ffff:a.b.c.d. */
static inline bool wire_gid_is_ipv4(const struct ib_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xFF, [11] = 0xFF };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

/* Whether @gid is a group on Ethernet: ff00::/8, or an IPv4 address in 224.0.0.0/4. */
static inline bool wire_gid_is_ip_mcast(const struct ib_gid *gid)
{
	return gid->raw[0] == 0xFF || (wire_gid_is_ipv4(gid) && gid->raw[12] >> 4 == 0xE);
}

/* The IPv4 address of @gid, network order. */
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
 * Writes the IP header of a datagram with @udp_payload bytes of UDP payload: IPv4, with its
 * checksum, if the source is an IPv4 address; else IPv6. Returns its bytes: 20 or 40.
 */
unsigned wire_ip_encode(const struct wire_ip *ip, uint16_t udp_payload,
                        uint8_t out[static WIRE_IPV6_BYTES]);

/* The same as the ICRC covers it: all bits that routers may change are 1. */
unsigned wire_ip_encode_masked(const struct wire_ip *ip, uint16_t udp_payload,
                               uint8_t out[static WIRE_IPV6_BYTES]);

/*
 * Writes the first 40 bytes of a UD receive on an Ethernet port (annex A17.4.5): the IPv6 header,
 * or 20 zero bytes and the IPv4 header, as they were in the datagram.
 */
void wire_ip_grh(const struct wire_ip *ip, uint16_t udp_payload, uint8_t out[static IB_GRH_BYTES]);

#endif
