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

/* NodeDescription (section 14.2.5.2). No terminator if all 64 bytes are used. */
struct wire_node_description {
	char text[NODE_DESCRIPTION_BYTES];
};
WIRE_LAYOUT(node_description, 64);

enum node_type { NODE_TYPE_CA = 1, NODE_TYPE_SWITCH, NODE_TYPE_ROUTER };

/* NodeInfo (section 14.2.5.3). */
struct wire_node_info {
	uint8_t base_version, class_version;
	uint8_t node_type; /* enum node_type */
	uint8_t num_ports;
	uint64_t system_image_guid, node_guid, port_guid;
	uint16_t partition_cap, device_id;
	uint32_t revision;
	uint8_t local_port_num;
	uint32_t vendor_id; /* 24 bits */
};
WIRE_LAYOUT(node_info, 40);

/* SwitchInfo (section 14.2.5.4). */
struct wire_switch_info {
	uint16_t linear_fdb_cap, random_fdb_cap, multicast_fdb_cap, linear_fdb_top;
	uint8_t default_port, default_multicast_primary_port, default_multicast_not_primary_port;
	uint8_t life_time_value;
	uint8_t port_state_change;
	uint8_t optimized_sl_to_vl; /* 2 bits */
	uint16_t lids_per_port, partition_enforcement_cap;
	uint8_t inbound_enforcement_cap, outbound_enforcement_cap;
	uint8_t filter_raw_inbound_cap, filter_raw_outbound_cap;
	uint8_t enhanced_port0;
	uint16_t multicast_fdb_top; /* an MLID */
};
WIRE_LAYOUT(switch_info, 20);

/* GUIDInfo (section 14.2.5.5): a block. */
struct wire_guid_info {
	uint64_t guid[GUID_BLOCK];
};
WIRE_LAYOUT(guid_info, 64);

/* PortInfo (section 14.2.5.6); PortState is enum ib_port_state of ib.h. */
struct wire_port_info {
	uint64_t m_key, gid_prefix;
	uint16_t lid, master_sm_lid;
	uint32_t capability_mask; /* PORT_CAP_X */
	uint16_t diag_code, m_key_lease_period;
	uint8_t local_port_num;
	uint8_t link_width_enabled, link_width_supported, link_width_active; /* LINK_WIDTH_X */
	uint8_t link_speed_supported;                                        /* LINK_SPEED_X */
	uint8_t port_state;
	uint8_t port_physical_state; /* enum port_physical_state */
	uint8_t link_down_default_state;
	uint8_t m_key_protect_bits;
	uint8_t lmc;
	uint8_t link_speed_active, link_speed_enabled;
	uint8_t neighbor_mtu; /* enum ibv_mtu */
	uint8_t master_sm_sl;
	uint8_t vl_cap; /* enum vl_cap */
	uint8_t init_type;
	uint8_t vl_high_limit, vl_arbitration_high_cap, vl_arbitration_low_cap;
	uint8_t init_type_reply;
	uint8_t mtu_cap; /* enum ibv_mtu */
	uint8_t vl_stall_count, hoq_life;
	uint8_t operational_vls; /* enum vl_cap */
	uint8_t partition_enforcement_inbound, partition_enforcement_outbound;
	uint8_t filter_raw_inbound, filter_raw_outbound;
	uint16_t m_key_violations, p_key_violations, q_key_violations;
	uint8_t guid_cap; /* GUIDInfo entries, in blocks of 8 */
	uint8_t client_reregister;
	uint8_t multicast_pkey_trap_suppression;
	uint8_t subnet_timeout, resp_time_value;
	uint8_t local_phy_errors, overrun_errors;
	uint16_t max_credit_hint;
	uint32_t link_round_trip_latency;
	uint16_t capability_mask2;
	uint8_t link_speed_ext_active, link_speed_ext_supported; /* LINK_SPEED_EXT_X */
	uint8_t link_speed_ext_enabled;
};
WIRE_LAYOUT(port_info, 64);

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
#define PORT_CAP2_LINK_WIDTH_2X        (1u << 4)
#define PORT_CAP2_LINK_SPEED_HDR       (1u << 5)

/* P_KeyTable (section 14.2.5.7): a block. */
struct wire_pkey_table {
	uint16_t pkey[PKEY_BLOCK];
};
WIRE_LAYOUT(pkey_table, 64);

/* SLtoVLMappingTable (section 14.2.5.8). VL 15: dropped. */
struct wire_sl_to_vl {
	uint8_t vl[16];
};
WIRE_LAYOUT(sl_to_vl, 8);

/* VLArbitrationTable (section 14.2.5.9): a part. */
struct wire_vl_arb_entry {
	uint8_t vl, weight;
};
WIRE_LAYOUT(vl_arb_entry, 2);

struct wire_vl_arb {
	struct wire_vl_arb_entry entry[VL_ARB_PART];
};
WIRE_LAYOUT(vl_arb, 64);

/* LinearForwardingTable (section 14.2.5.10): a block. LFT_NO_PORT: dropped. */
struct wire_linear_ft {
	uint8_t port[LFT_BLOCK];
};
WIRE_LAYOUT(linear_ft, 64);

/* MulticastForwardingTable (section 14.2.5.12): masks of 16 ports for 32 MLIDs. */
struct wire_multicast_ft {
	uint16_t port_mask[MFT_BLOCK];
};
WIRE_LAYOUT(multicast_ft, 64);

/* SMInfo (section 14.2.5.13). */
struct wire_sm_info {
	uint64_t guid, sm_key;
	uint32_t act_count;
	uint8_t priority; /* 4 bits */
	uint8_t sm_state; /* enum sm_state */
};
WIRE_LAYOUT(sm_info, 21);

enum sm_state { SM_NOT_ACTIVE, SM_DISCOVERING, SM_STANDBY, SM_MASTER };

/* The attribute modifier of SubnSet(SMInfo): what it requests (section 14.4.1). */
enum sm_info_control {
	SM_CONTROL_HANDOVER = 1,
	SM_CONTROL_ACKNOWLEDGE,
	SM_CONTROL_DISABLE,
	SM_CONTROL_STANDBY,
	SM_CONTROL_DISCOVER,
};

#endif
