/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Subnet administration as data: status values and the MCMemberRecord with its
 * component mask (InfiniBand specification volume 1, sections 15.2.5.17 and
 * 13.4.7). Fields are host order; GIDs are bytes.
 */
#ifndef WIRE_SA_H
#define WIRE_SA_H

#include <stdint.h>

#include "wire/ib.h"

/* Status of a SubnAdm response, as in the MAD header. */
enum sa_status {
	SA_OK = 0,
	SA_NO_RESOURCES = 0x0100,
	SA_REQ_INVALID = 0x0200,
	SA_NO_RECORDS = 0x0300,
	SA_TOO_MANY_RECORDS = 0x0400,
	SA_REQ_INVALID_GID = 0x0500,
	SA_INSUFFICIENT_COMPONENTS = 0x0600,
	SA_REQ_DENIED = 0x0700,
};

#define SA_CAP2_SEND_ONLY_FULL (1u << 12) /* of ClassPortInfo:CapabilityMask2 */

/* Component mask bits of MCMemberRecord, in the order of its fields. */
enum {
	SA_MCM_MGID = 1 << 0,
	SA_MCM_PORT_GID = 1 << 1,
	SA_MCM_QKEY = 1 << 2,
	SA_MCM_MLID = 1 << 3,
	SA_MCM_MTU_SELECTOR = 1 << 4,
	SA_MCM_MTU = 1 << 5,
	SA_MCM_TCLASS = 1 << 6,
	SA_MCM_PKEY = 1 << 7,
	SA_MCM_RATE_SELECTOR = 1 << 8,
	SA_MCM_RATE = 1 << 9,
	SA_MCM_LIFE_SELECTOR = 1 << 10,
	SA_MCM_LIFE = 1 << 11,
	SA_MCM_SL = 1 << 12,
	SA_MCM_FLOW_LABEL = 1 << 13,
	SA_MCM_HOP_LIMIT = 1 << 14,
	SA_MCM_SCOPE = 1 << 15,
	SA_MCM_JOIN_STATE = 1 << 16,
	SA_MCM_PROXY_JOIN = 1 << 17,
};

enum sa_selector { SA_GREATER, SA_LESS, SA_EXACTLY, SA_LARGEST };

struct wire_mcmember {
	struct ib_gid mgid, port_gid;
	uint32_t qkey;
	uint16_t mlid;
	uint8_t mtu_selector, mtu; /* enum ibv_mtu */
	uint8_t tclass;
	uint16_t pkey;
	uint8_t rate_selector, rate; /* enum ibv_rate */
	uint8_t life_selector, life; /* packet life time: 4.096 us << life */
	uint8_t sl;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t scope;
	uint8_t join_state; /* enum ib_join_state, ORed */
	uint8_t proxy_join;
};

#endif
