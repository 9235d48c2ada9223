/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps IP multicast addresses to multicast GIDs on InfiniBand (RFC 4391, section 4; RFC 4392), also
 * in the variant that rdma_cm uses for its UDP port space. Pure functions.
 */
#ifndef WIRE_MGID_H
#define WIRE_MGID_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/ib.h"
#include "wire/ip.h"

#define WIRE_SIGNATURE_IPV4 0x401B
#define WIRE_SIGNATURE_IPV6 0x601B
/* as rdma_cm's UDP port space has them */
#define WIRE_SIGNATURE_IPV4_UDP 0x4001
#define WIRE_SIGNATURE_IPV6_UDP 0x6001
#define WIRE_SIGNATURE_CM       0xA01B /* groups that the SA creates for a zero address */
#define WIRE_SCOPE_LINK         2

/* The MGID of IPv4 group @addr (network order) in partition @pkey. @udp: rdma_cm's UDP port space.
 */
void wire_mgid_from_ipv4(struct ib_gid *mgid, in_addr_t addr, uint16_t pkey, bool udp);

/* The same of an IPv6 group; an address that begins with FF1x:A01B is an MGID and not mapped. */
void wire_mgid_from_ipv6(struct ib_gid *mgid, const struct in6_addr *addr, uint16_t pkey, bool udp);

/* The IPoIB broadcast group of @pkey: MTU, rate, SL and Q_Key of all IPoIB groups follow it. */
void wire_mgid_broadcast(struct ib_gid *mgid, uint16_t pkey);

/* The LID of a destination on Ethernet, which has none: the same for all groups; 0 for hosts. */
static inline uint16_t wire_mgid_ethernet_lid(const struct ib_gid *dgid)
{
	return wire_gid_is_ip_mcast(dgid) ? IB_LID_MCAST_FIRST : 0;
}

#endif
