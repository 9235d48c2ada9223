/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of the InfiniBand specification that several folders share: LID ranges, P_Keys, Q_Keys,
 * port states; and GIDs. Numbers are in host order. Pure functions.
 */
#ifndef WIRE_IB_H
#define WIRE_IB_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define IB_LID_MCAST_FIRST 0xC000
#define IB_LID_MCAST_LAST  0xFFFE
#define IB_LID_PERMISSIVE  0xFFFF

#define IB_QPN_SMI   0
#define IB_QPN_GSI   1
#define IB_QPN_MCAST 0xFFFFFF
#define IB_QPN_MASK  0xFFFFFF

#define IB_PKEY_DEFAULT     0xFFFF
#define IB_PKEY_FULL_MEMBER 0x8000
#define IB_PKEY_BASE_MASK   0x7FFF

#define IPOIB_QKEY         0x0B1B     /* of IPoIB's groups, if the partition has no other */
#define IB_QKEY_CONTROLLED 0x80000000 /* in a WQE: use the Q_Key of the sending QP */
#define IB_QKEY_GSI        0x80010000
#define IB_QKEY_RDMACM_UDP 0x01234567

#define IB_SUBNET_PREFIX_DEFAULT 0xFE80000000000000ull

#define IB_SLS 16 /* service levels */

#define IB_GRH_BYTES      40
#define IB_GRH_VERSION    6
#define IB_GRH_NEXT_IBA   0x1B
#define IB_MTU_BYTES(mtu) (128u << (mtu)) /* of enum ibv_mtu */

/* A GID: 16 bytes, as in packets. On Ethernet it is an IP address (ip.h). */
struct ib_gid {
	uint8_t raw[16];
};

enum ib_port_state { IB_PORT_DOWN = 1, IB_PORT_INIT, IB_PORT_ARMED, IB_PORT_ACTIVE };

/* JoinState of MCMemberRecord. */
enum ib_join_state {
	IB_JOIN_FULL = 1,
	IB_JOIN_NON = 2,
	IB_JOIN_SEND_ONLY_NON = 4,
	IB_JOIN_SEND_ONLY_FULL = 8,
};

static inline bool ib_lid_is_mcast(uint16_t lid)
{
	return lid >= IB_LID_MCAST_FIRST && lid <= IB_LID_MCAST_LAST;
}

static inline bool ib_gid_equal(const struct ib_gid *a, const struct ib_gid *b)
{
	return memcmp(a->raw, b->raw, sizeof(a->raw)) == 0;
}

/* The zero GID stands for "none". */
static inline bool ib_gid_is_zero(const struct ib_gid *gid)
{
	static const struct ib_gid zero;

	return ib_gid_equal(gid, &zero);
}

static inline bool ib_gid_is_mcast(const struct ib_gid *gid)
{
	return gid->raw[0] == 0xFF;
}

/* Whether two P_Keys match: same partition, and at least one is a full member (section 10.9.3). */
static inline bool ib_pkey_match(uint16_t a, uint16_t b)
{
	return ((a ^ b) & IB_PKEY_BASE_MASK) == 0 && ((a | b) & IB_PKEY_FULL_MEMBER);
}

#endif
