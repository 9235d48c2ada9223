/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Subnet management packets, directed-route and LID-routed: their format, attribute IDs, and the
 * fields of attribute modifiers (InfiniBand specification volume 1, sections 14.2.1 to 14.2.5).
 * sm_attr.h has the attributes. Pure functions.
 */
#ifndef WIRE_SMP_H
#define WIRE_SMP_H

#include "wire/mad.h"

#define SMP_DATA_BYTES 64
#define SMP_MAX_HOPS   63 /* path[0] is not used: hops count from 1 */
#define SMP_PATH_BYTES 64

/* AttributeID (section 14.2.5). */
enum smp_attr {
	SMP_ATTR_NOTICE = MAD_ATTR_NOTICE,
	SMP_ATTR_NODE_DESCRIPTION = 0x0010,
	SMP_ATTR_NODE_INFO = 0x0011,
	SMP_ATTR_SWITCH_INFO = 0x0012,
	SMP_ATTR_GUID_INFO = 0x0014,
	SMP_ATTR_PORT_INFO = 0x0015,
	SMP_ATTR_PKEY_TABLE = 0x0016,
	SMP_ATTR_SL_TO_VL = 0x0017,
	SMP_ATTR_VL_ARBITRATION = 0x0018,
	SMP_ATTR_LINEAR_FT = 0x0019,
	SMP_ATTR_RANDOM_FT = 0x001A,
	SMP_ATTR_MULTICAST_FT = 0x001B,
	SMP_ATTR_SM_INFO = 0x0020,
	SMP_ATTR_VENDOR_DIAG = 0x0030,
	SMP_ATTR_LED_INFO = 0x0031,
	SMP_ATTR_PORT_INFO_EXTENDED = 0x0033,
	SMP_ATTR_MLNX_EXT_PORT_INFO =
	        0xFF90, /* of Mellanox devices: FDR10, for which PortInfo has no bit */
};

/*
 * Attribute modifiers. PortInfo's is a port, GUIDInfo's and LinearForwardingTable's a
 * block; that of SubnSet(SMInfo) is enum sm_info_control. The others hold two numbers:
 */
static inline uint32_t smp_pkey_modifier(uint8_t switch_port, uint16_t block)
{
	return (uint32_t)switch_port << 16 | block;
}
static inline uint8_t smp_pkey_port(uint32_t modifier)
{
	return modifier >> 16;
}
static inline uint16_t smp_pkey_block(uint32_t modifier)
{
	return modifier;
}

static inline uint32_t smp_sl_to_vl_modifier(uint8_t in_port, uint8_t out_port)
{
	return (uint32_t)in_port << 8 | out_port;
}
static inline uint8_t smp_sl_to_vl_in_port(uint32_t modifier)
{
	return modifier >> 8;
}
static inline uint8_t smp_sl_to_vl_out_port(uint32_t modifier)
{
	return modifier;
}

/* Parts: 1 and 2 are the low priority table, 3 and 4 the high priority one. */
static inline uint32_t smp_vl_arb_modifier(uint16_t part, uint16_t port)
{
	return (uint32_t)part << 16 | port;
}
static inline uint16_t smp_vl_arb_part(uint32_t modifier)
{
	return modifier >> 16;
}
static inline uint16_t smp_vl_arb_port(uint32_t modifier)
{
	return modifier;
}

/* Position: the number of a group of 16 ports. Block: of a group of 32 MLIDs, from 0xC000. */
static inline uint32_t smp_mft_modifier(uint8_t position, uint16_t block)
{
	return (uint32_t)position << 28 | (block & 0x1FF);
}
static inline uint8_t smp_mft_position(uint32_t modifier)
{
	return modifier >> 28;
}
static inline uint16_t smp_mft_block(uint32_t modifier)
{
	return modifier & 0x1FF;
}

#define LAYOUTS "wire/smp.def"
#include "wire/declare.def"

/* Offsets in the packet of the fields that change at every hop. */
enum {
	SMP_AT_STATUS = WIRE_AT(smp, direction), /* high byte, whose high bit is D */
	SMP_AT_HOP_POINTER = WIRE_AT(smp, hop_pointer),
	SMP_AT_HOP_COUNT = WIRE_AT(smp, hop_count),
	SMP_AT_DR_SLID = WIRE_AT(smp, dr_slid),
	SMP_AT_DR_DLID = WIRE_AT(smp, dr_dlid),
	SMP_AT_DATA = WIRE_AT(smp, data),
	SMP_AT_INITIAL_PATH = WIRE_AT(smp, initial_path),
	SMP_AT_RETURN_PATH = WIRE_AT(smp, return_path),
};
#define SMP_STATUS_DIRECTION 0x8000 /* the D bit within status */

#endif
