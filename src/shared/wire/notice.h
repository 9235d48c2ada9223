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

/* Of trap 144: wire_trap_local_changes.change_flags. */
enum {
	LOCAL_CHANGE_NODE_DESCRIPTION = 1 << 0,
	LOCAL_CHANGE_LINK_WIDTH_ENABLED = 1 << 1,
	LOCAL_CHANGE_LINK_SPEED_ENABLED = 1 << 2,
	LOCAL_CHANGE_SM_PRIORITY = 1 << 3,
	LOCAL_CHANGE_HIERARCHY_INFO = 1 << 4,
	LOCAL_CHANGE_CAPABILITY_MASK2 = 1 << 5,
};

/* Of trap 259: wire_trap_bad_switch_pkey.data_valid. */
enum {
	BAD_SWITCH_PKEY_LIDS = 3 << 0,
	BAD_SWITCH_PKEY_PKEY = 1 << 2,
	BAD_SWITCH_PKEY_SL = 1 << 3,
	BAD_SWITCH_PKEY_QP1 = 1 << 4,
	BAD_SWITCH_PKEY_QP2 = 1 << 5,
	BAD_SWITCH_PKEY_GIDS = 3 << 6,
};

#define INFORM_ALL 0xFFFF

#define LAYOUTS "wire/notice.def"
#include "wire/declare.def"

/* In an SMP a notice ends with the details: issuer_gid is not sent, and decodes as 0. */
enum { wire_smp_notice_bytes = WIRE_AT(notice, issuer_gid) };
WIRE_DECLARE(wire_smp_notice, wire_notice)

#endif
