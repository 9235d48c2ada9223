/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Notice, with the details of the traps of subnet management and subnet administration; and
 * InformInfo, which subscribes to them (InfiniBand specification volume 1, sections 13.4.8.2,
 * 13.4.8.3 and 14.2.5.1). Fields are in host order; GIDs are bytes. Pure functions.
 */
#ifndef WIRE_NOTICE_H
#define WIRE_NOTICE_H

#include "wire/mad.h"

#define NOTICE_DETAILS_BYTES 54

enum notice_type {
	NOTICE_FATAL,
	NOTICE_URGENT,
	NOTICE_SECURITY,
	NOTICE_SUBNET_MANAGEMENT,
	NOTICE_INFORMATIONAL,
	NOTICE_EMPTY = 0x7F,
};

/* ProducerType of a generic notice; of another it is the vendor's ID. */
enum notice_producer {
	NOTICE_FROM_CA = 1,
	NOTICE_FROM_SWITCH,
	NOTICE_FROM_ROUTER,
	NOTICE_FROM_CLASS_MANAGER,
	NOTICE_FROM_ANYBODY = 0xFFFFFF, /* in InformInfo */
};

/* TrapNumber of a generic notice; of another it is the vendor's DeviceID. */
enum notice_trap {
	TRAP_GID_IN_SERVICE = 64, /* 64 to 67: struct wire_trap_gid */
	TRAP_GID_OUT_OF_SERVICE = 65,
	TRAP_MGID_CREATED = 66,
	TRAP_MGID_DELETED = 67,
	TRAP_LINK_STATE_CHANGED = 128,
	TRAP_LOCAL_CHANGES = 144,
	TRAP_BAD_MKEY = 256,
	TRAP_BAD_PKEY = 257, /* 257, 258: struct wire_trap_bad_key */
	TRAP_BAD_QKEY = 258,
	TRAP_BAD_SWITCH_PKEY = 259,
	TRAP_ANY = 0xFFFF, /* in InformInfo */
};

struct wire_notice {
	uint8_t is_generic;
	uint8_t type; /* enum notice_type */
	uint32_t producer_type;
	uint16_t trap_number;
	uint16_t issuer_lid;
	uint8_t toggle;
	uint16_t count;                        /* 15 bits */
	uint8_t details[NOTICE_DETAILS_BYTES]; /* a struct wire_trap_X, encoded */
	struct ib_gid issuer_gid;              /* not in SMPs */
};
WIRE_LAYOUT(notice, 80);
/* In an SMP it ends with the details: issuer_gid is not sent, and decodes as 0. */
WIRE_LAYOUT_OF(smp_notice, notice, 64);

/* Traps 64 to 67: the GID of a port, or of a group. */
struct wire_trap_gid {
	struct ib_gid gid;
};
WIRE_LAYOUT(trap_gid, NOTICE_DETAILS_BYTES);

/* Trap 128: the link state of a switch's port changed. */
struct wire_trap_link_state {
	uint16_t lid; /* of the switch */
};
WIRE_LAYOUT(trap_link_state, NOTICE_DETAILS_BYTES);

/* Trap 144: a port's CapabilityMask, or something else of the node, changed. */
struct wire_trap_local_changes {
	uint16_t lid;
	uint8_t other_local_changes; /* 1: change_flags name the change; 0: CapabilityMask has
	                                changed */
	uint32_t capability_mask;
	uint8_t change_flags; /* LOCAL_CHANGE_X, 6 bits */
	uint16_t capability_mask2;
};
WIRE_LAYOUT(trap_local_changes, NOTICE_DETAILS_BYTES);

enum {
	LOCAL_CHANGE_NODE_DESCRIPTION = 1 << 0,
	LOCAL_CHANGE_LINK_WIDTH_ENABLED = 1 << 1,
	LOCAL_CHANGE_LINK_SPEED_ENABLED = 1 << 2,
	LOCAL_CHANGE_SM_PRIORITY = 1 << 3,
	LOCAL_CHANGE_HIERARCHY_INFO = 1 << 4,
	LOCAL_CHANGE_CAPABILITY_MASK2 = 1 << 5,
};

/* Trap 256: an SMP with a wrong M_Key. */
struct wire_trap_bad_mkey {
	uint16_t lid; /* of the sender */
	uint16_t dr_slid;
	uint8_t method;
	uint16_t attribute_id;
	uint32_t attribute_modifier;
	uint64_t m_key;
	uint8_t dr_notice; /* it was a directed-route SMP, and the return path follows */
	uint8_t dr_path_truncated;
	uint8_t dr_hop_count;
	uint8_t dr_return_path[30];
};
WIRE_LAYOUT(trap_bad_mkey, NOTICE_DETAILS_BYTES);

/* Traps 257 and 258: a packet with a wrong P_Key or Q_Key, from port 1 to port 2. */
struct wire_trap_bad_key {
	uint16_t lid1, lid2;
	uint32_t key;
	uint8_t sl;
	uint32_t qp1, qp2;
	struct ib_gid gid1, gid2;
};
WIRE_LAYOUT(trap_bad_key, NOTICE_DETAILS_BYTES);

/* Trap 259: a switch's port received a packet with a wrong P_Key, from port 1 to port 2. */
struct wire_trap_bad_switch_pkey {
	uint16_t data_valid; /* BAD_SWITCH_PKEY_X: the fields that are valid */
	uint16_t lid1, lid2;
	uint16_t pkey;
	uint8_t sl;
	uint32_t qp1, qp2;
	struct ib_gid gid1, gid2;
	uint16_t switch_lid;
	uint8_t port;
};
WIRE_LAYOUT(trap_bad_switch_pkey, NOTICE_DETAILS_BYTES);

/* Its data_valid. */
enum {
	BAD_SWITCH_PKEY_LIDS = 3 << 0,
	BAD_SWITCH_PKEY_PKEY = 1 << 2,
	BAD_SWITCH_PKEY_SL = 1 << 3,
	BAD_SWITCH_PKEY_QP1 = 1 << 4,
	BAD_SWITCH_PKEY_QP2 = 1 << 5,
	BAD_SWITCH_PKEY_GIDS = 3 << 6,
};

/* InformInfo (section 13.4.8.3). */
struct wire_inform_info {
	struct ib_gid gid;        /* the producer; 0: the range of LIDs names the producers */
	uint16_t lid_range_begin; /* INFORM_ALL: all producers */
	uint16_t lid_range_end;
	uint8_t is_generic;
	uint8_t subscribe;
	uint16_t type;        /* enum notice_type; INFORM_ALL: all */
	uint16_t trap_number; /* enum notice_trap, or the vendor's DeviceID */
	uint32_t qpn;
	uint8_t resp_time_value;
	uint32_t producer_type; /* enum notice_producer, or the vendor's ID */
};
WIRE_LAYOUT(inform_info, 36);

#define INFORM_ALL 0xFFFF

#endif
