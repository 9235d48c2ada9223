/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Management datagrams: the header that all classes share, its numbers, and ClassPortInfo, an
 * attribute of all classes except subnet management (InfiniBand specification volume 1, sections
 * 13.4 and 13.5). smp.h, sa.h, perf.h and cm_mad.h have the formats after the header. Fields are in
 * host order; GIDs are bytes. Pure functions.
 */
#ifndef WIRE_MAD_H
#define WIRE_MAD_H

#include "wire/field.h"
#include "wire/ib.h"

#define MAD_BYTES        256 /* the length of every MAD */
#define MAD_TID_AT       8   /* the transaction ID's offset */
#define MAD_BASE_VERSION 1

/*
 * A flag of struct umad_reg_attr that only our libibumad has, for programs that do what on Linux a
 * driver does: memberships that the port has joined by the program's MADs end with the program.
 * Memberships by other programs' MADs stay, as with hardware.
 */
#define MAD_AGENT_LEAVES (1u << 31)

/* MgmtClass (section 13.4.4). */
enum mad_class {
	MAD_CLASS_SUBN_LID = 0x01,
	MAD_CLASS_SUBN_ADM = 0x03,
	MAD_CLASS_PERF = 0x04,
	MAD_CLASS_BM = 0x05,
	MAD_CLASS_DEV_MGT = 0x06,
	MAD_CLASS_COM_MGT = 0x07,
	MAD_CLASS_SNMP = 0x08,
	MAD_CLASS_VENDOR_FIRST = 0x09, /* to 0F */
	MAD_CLASS_VENDOR_LAST = 0x0F,
	MAD_CLASS_DEV_ADM = 0x10,
	MAD_CLASS_BIS = 0x12,
	MAD_CLASS_VENDOR2_FIRST = 0x30, /* with OUI and RMPP, to 4F */
	MAD_CLASS_VENDOR2_LAST = 0x4F,
	MAD_CLASS_SUBN_DIRECTED = 0x81,
};

/* ClassVersion. */
#define MAD_VERSION_SUBN     1
#define MAD_VERSION_SUBN_ADM 2
#define MAD_VERSION_PERF     1

/* Method (section 13.4.5; of subnet administration, section 15.2.2). */
#define MAD_METHOD_RESPONSE 0x80 /* the R bit */
enum mad_method {
	MAD_GET = 0x01,
	MAD_SET = 0x02,
	MAD_SEND = 0x03,
	MAD_TRAP = 0x05,
	MAD_REPORT = 0x06,
	MAD_TRAP_REPRESS = 0x07,
	MAD_GET_TABLE = 0x12,
	MAD_GET_TRACE_TABLE = 0x13,
	MAD_GET_MULTI = 0x14,
	MAD_DELETE = 0x15,
	MAD_GET_RESP = 0x81,
	MAD_REPORT_RESP = 0x86,
	MAD_GET_TABLE_RESP = 0x92,
	MAD_GET_MULTI_RESP = 0x94,
	MAD_DELETE_RESP = 0x95,
};

/* Status (section 13.4.7): two flags, a code, and eight bits that each class defines. */
enum mad_status {
	MAD_STATUS_OK = 0,
	MAD_STATUS_BUSY = 0x01,
	MAD_STATUS_REDIRECT = 0x02,
	MAD_STATUS_BAD_VERSION = 1 << 2, /* of base or class */
	MAD_STATUS_BAD_METHOD = 2 << 2,
	MAD_STATUS_BAD_METHOD_ATTRIBUTE = 3 << 2, /* no such attribute, or not by this method */
	MAD_STATUS_BAD_FIELD = 7 << 2,            /* in attribute or modifier */
};
#define MAD_STATUS_CODE_MASK  0x001C
#define MAD_STATUS_CLASS_MASK 0xFF00

/* AttributeID (section 13.4.8): these are the same in all classes. */
enum mad_attr {
	MAD_ATTR_CLASS_PORT_INFO = 0x0001,
	MAD_ATTR_NOTICE = 0x0002,
	MAD_ATTR_INFORM_INFO = 0x0003,
};

#define LAYOUTS "wire/mad.def"
#include "wire/declare.def"

/* Its MgmtClass alone, for a caller that looks at all MADs to find its own. */
static inline uint8_t wire_mad_class(const uint8_t *mad)
{
	return mad[1];
}

/*
 * The method of the response to @method; that to a Trap is TrapRepress. 0: there is none, as
 * @method is a response itself, or Send, or unknown.
 */
uint8_t wire_mad_response_method(uint8_t method);

/* ClassPortInfo:CapabilityMask, the bits that all classes share. */
enum {
	CLASS_CAP_TRAP = 1 << 0,
	CLASS_CAP_GET_NOTICE = 1 << 1,
	CLASS_CAP_MASK2 = 1 << 2,
};

#endif
