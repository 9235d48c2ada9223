/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The attributes of subnet management (InfiniBand specification volume 1, section 14.2.5), as in
 * the 64 data bytes of an SMP (struct wire_smp) and in the SA's records (sa_records.h). The bytes
 * after a shorter attribute are 0. Notice is in notice.h. Fields are in host order. Pure functions.
 */
#ifndef WIRE_SM_ATTR_H
#define WIRE_SM_ATTR_H

#include "wire/smp.h"

#define NODE_DESCRIPTION_BYTES 64
#define GUID_BLOCK             8
#define PKEY_BLOCK             32
#define LFT_BLOCK              64 /* LIDs */
#define LFT_NO_PORT            255
#define MFT_BLOCK              32 /* MLIDs */
#define MFT_POSITION           16 /* ports */
#define VL_ARB_PART            32
#define VL_ARB_PARTS           4 /* two of the table of low priority, then two of the other */

enum node_type { NODE_TYPE_CA = 1, NODE_TYPE_SWITCH, NODE_TYPE_ROUTER };

enum port_physical_state {
	PORT_PHYS_NO_CHANGE,
	PORT_PHYS_SLEEP,
	PORT_PHYS_POLLING,
	PORT_PHYS_DISABLED,
	PORT_PHYS_TRAINING,
	PORT_PHYS_LINK_UP,
	PORT_PHYS_ERROR_RECOVERY,
	PORT_PHYS_TEST,
};

enum {
	LINK_WIDTH_1X = 1,
	LINK_WIDTH_4X = 2,
	LINK_WIDTH_8X = 4,
	LINK_WIDTH_12X = 8,
	LINK_WIDTH_2X = 16
};
enum { LINK_SPEED_SDR = 1, LINK_SPEED_DDR = 2, LINK_SPEED_QDR = 4 };
enum {
	LINK_SPEED_EXT_FDR = 1,
	LINK_SPEED_EXT_EDR = 2,
	LINK_SPEED_EXT_HDR = 4,
	LINK_SPEED_EXT_NDR = 8
};
#define LINK_WIDTH_SET_SUPPORTED     255 /* LinkWidthEnabled := LinkWidthSupported */
#define LINK_SPEED_SET_SUPPORTED     15
#define LINK_SPEED_EXT_SET_SUPPORTED 31
#define LINK_SPEED_EXT_DISABLE       30

/* VLCap and OperationalVLs. */
enum vl_cap { VL_CAP_VL0 = 1, VL_CAP_VL0_1, VL_CAP_VL0_3, VL_CAP_VL0_7, VL_CAP_VL0_14 };

/* PortInfo:CapabilityMask. */
#define PORT_CAP_SM                   (1u << 1)
#define PORT_CAP_NOTICE               (1u << 2)
#define PORT_CAP_TRAP                 (1u << 3)
#define PORT_CAP_OPTIONAL_IPD         (1u << 4)
#define PORT_CAP_AUTO_MIGRATION       (1u << 5)
#define PORT_CAP_SL_MAPPING           (1u << 6)
#define PORT_CAP_MKEY_NVRAM           (1u << 7)
#define PORT_CAP_PKEY_NVRAM           (1u << 8)
#define PORT_CAP_LED_INFO             (1u << 9)
#define PORT_CAP_SM_DISABLED          (1u << 10)
#define PORT_CAP_SYSTEM_IMAGE_GUID    (1u << 11)
#define PORT_CAP_PKEY_SWITCH_TRAP     (1u << 12)
#define PORT_CAP_EXTENDED_SPEEDS      (1u << 14)
#define PORT_CAP_CAPABILITY_MASK2     (1u << 15)
#define PORT_CAP_CM                   (1u << 16)
#define PORT_CAP_SNMP                 (1u << 17)
#define PORT_CAP_REINIT               (1u << 18)
#define PORT_CAP_DEVICE_MANAGEMENT    (1u << 19)
#define PORT_CAP_VENDOR_CLASS         (1u << 20)
#define PORT_CAP_DR_NOTICE            (1u << 21)
#define PORT_CAP_CAP_MASK_NOTICE      (1u << 22)
#define PORT_CAP_BOOT_MANAGEMENT      (1u << 23)
#define PORT_CAP_LINK_ROUND_TRIP      (1u << 24)
#define PORT_CAP_CLIENT_REREGISTER    (1u << 25)
#define PORT_CAP_OTHER_LOCAL_CHANGES  (1u << 26)
#define PORT_CAP_MCAST_PKEY_TRAP_SUPP (1u << 29)
#define PORT_CAP_MULTICAST_FDB_TOP    (1u << 30)

/* PortInfo:CapabilityMask2. */
#define PORT_CAP2_SET_NODE_DESCRIPTION (1u << 0)
#define PORT_CAP2_PORT_INFO_EXTENDED   (1u << 1)
#define PORT_CAP2_LINK_WIDTH_2X        (1u << 4)
#define PORT_CAP2_LINK_SPEED_HDR       (1u << 5)
#define PORT_CAP2_LINK_SPEED_NDR       (1u << 10)

enum sm_state { SM_NOT_ACTIVE, SM_DISCOVERING, SM_STANDBY, SM_MASTER };

/* The attribute modifier of SubnSet(SMInfo): what it requests (section 14.4.1). */
enum sm_info_control {
	SM_CONTROL_HANDOVER = 1,
	SM_CONTROL_ACKNOWLEDGE,
	SM_CONTROL_DISABLE,
	SM_CONTROL_STANDBY,
	SM_CONTROL_DISCOVER,
};

#define LAYOUTS "wire/sm_attr.def"
#include "wire/declare.def"

#endif
