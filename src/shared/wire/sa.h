/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The MAD of subnet administration, its status values and attribute IDs, and the MCMemberRecord
 * with its component mask (InfiniBand specification volume 1, sections 15.2 and 13.4.7).
 * sa_records.h has the other records. Fields are in host order; GIDs are bytes. Pure functions.
 */
#ifndef WIRE_SA_H
#define WIRE_SA_H

#include <stdint.h>

#include "wire/ib.h"
#include "wire/mad.h"

#define SA_DATA_BYTES 200

/* AttributeID (section 15.2.5). */
enum sa_attr {
	SA_ATTR_CLASS_PORT_INFO = MAD_ATTR_CLASS_PORT_INFO,
	SA_ATTR_NOTICE = MAD_ATTR_NOTICE,
	SA_ATTR_INFORM_INFO = MAD_ATTR_INFORM_INFO,
	SA_ATTR_NODE = 0x0011,
	SA_ATTR_PORT_INFO = 0x0012,
	SA_ATTR_SL_TO_VL = 0x0013,
	SA_ATTR_SWITCH_INFO = 0x0014,
	SA_ATTR_LINEAR_FT = 0x0015,
	SA_ATTR_RANDOM_FT = 0x0016,
	SA_ATTR_MULTICAST_FT = 0x0017,
	SA_ATTR_SM_INFO = 0x0018,
	SA_ATTR_LINK = 0x0020,
	SA_ATTR_GUID_INFO = 0x0030,
	SA_ATTR_SERVICE = 0x0031,
	SA_ATTR_PKEY_TABLE = 0x0033,
	SA_ATTR_PATH = 0x0035,
	SA_ATTR_VL_ARBITRATION = 0x0036,
	SA_ATTR_MCMEMBER = 0x0038,
	SA_ATTR_TRACE = 0x0039,
	SA_ATTR_MULTIPATH = 0x003A,
	SA_ATTR_SERVICE_ASSOCIATION = 0x003B,
	SA_ATTR_INFORM_INFO_RECORD = 0x00F3,
};

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
	SA_PRIORITY_SUGGESTED = 0x0800,
};

/* ClassPortInfo:CapabilityMask of this class. */
#define SA_CAP_OPTIONAL_RECORDS     (1u << 8)
#define SA_CAP_UD_MULTICAST         (1u << 9)
#define SA_CAP_MULTIPATH            (1u << 10)
#define SA_CAP_REINIT               (1u << 11)
#define SA_CAP_GID_SCOPED_MULTIPATH (1u << 12)
#define SA_CAP_PORT_INFO_CAPMASK    (1u << 13) /* PortInfoRecord:CapabilityMask matches bit by bit */

/* ClassPortInfo:CapabilityMask2. */
#define SA_CAP2_QOS                (1u << 1)
#define SA_CAP2_REVERSE_PATH_PKEY  (1u << 2)
#define SA_CAP2_MULTICAST_FDB_TOP  (1u << 3)
#define SA_CAP2_ALIAS_GUIDS        (1u << 5)
#define SA_CAP2_FULL_PORT_INFO     (1u << 6)
#define SA_CAP2_EXTENDED_SPEEDS    (1u << 7)
#define SA_CAP2_PORT_INFO_CAPMASK2 (1u << 10)
#define SA_CAP2_SEND_ONLY_FULL     (1u << 12)
#define SA_CAP2_LINK_WIDTH_2X      (1u << 13)
#define SA_CAP2_LINK_SPEED_HDR     (1u << 15)

enum sa_selector { SA_GREATER, SA_LESS, SA_EXACTLY, SA_LARGEST };

#define LAYOUTS "wire/sa.def"
#include "wire/declare.def"

/* Offsets in the MAD. */
enum { RMPP_AT = WIRE_AT(sa_mad, rmpp), SA_DATA_AT = WIRE_AT(sa_mad, data) };

/* Bits of component masks. */
enum {
	SA_MCM_MGID = WIRE_COMPONENTS(mcmember, mgid),
	SA_MCM_PORT_GID = WIRE_COMPONENTS(mcmember, port_gid),
	SA_MCM_QKEY = WIRE_COMPONENTS(mcmember, qkey),
	SA_MCM_MLID = WIRE_COMPONENTS(mcmember, mlid),
	SA_MCM_MTU_SELECTOR = WIRE_COMPONENTS(mcmember, mtu_selector),
	SA_MCM_MTU = WIRE_COMPONENTS(mcmember, mtu),
	SA_MCM_TCLASS = WIRE_COMPONENTS(mcmember, tclass),
	SA_MCM_PKEY = WIRE_COMPONENTS(mcmember, pkey),
	SA_MCM_RATE_SELECTOR = WIRE_COMPONENTS(mcmember, rate_selector),
	SA_MCM_RATE = WIRE_COMPONENTS(mcmember, rate),
	SA_MCM_LIFE_SELECTOR = WIRE_COMPONENTS(mcmember, life_selector),
	SA_MCM_LIFE = WIRE_COMPONENTS(mcmember, life),
	SA_MCM_SL = WIRE_COMPONENTS(mcmember, sl),
	SA_MCM_FLOW_LABEL = WIRE_COMPONENTS(mcmember, flow_label),
	SA_MCM_HOP_LIMIT = WIRE_COMPONENTS(mcmember, hop_limit),
	SA_MCM_SCOPE = WIRE_COMPONENTS(mcmember, scope),
	SA_MCM_JOIN_STATE = WIRE_COMPONENTS(mcmember, join_state),
	SA_MCM_PROXY_JOIN = WIRE_COMPONENTS(mcmember, proxy_join),
};

#endif
