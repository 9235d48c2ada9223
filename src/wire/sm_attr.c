/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of subnet management's attributes: see sm_attr.h.
 */
#include "wire/sm_attr.h"

/* clang-format off */

#define THIS struct wire_node_description
static const struct wire_field node_description[] = {
	WIRE_BYTES(0, text),
};
WIRE_LAYOUT_DEFINE(node_description, node_description);
#undef THIS

#define THIS struct wire_node_info
static const struct wire_field node_info[] = {
	WIRE_INT(0, 8, base_version),
	WIRE_INT(8, 8, class_version),
	WIRE_INT(16, 8, node_type),
	WIRE_INT(24, 8, num_ports),
	WIRE_INT(32, 64, system_image_guid),
	WIRE_INT(96, 64, node_guid),
	WIRE_INT(160, 64, port_guid),
	WIRE_INT(224, 16, partition_cap),
	WIRE_INT(240, 16, device_id),
	WIRE_INT(256, 32, revision),
	WIRE_INT(288, 8, local_port_num),
	WIRE_INT(296, 24, vendor_id),
};
WIRE_LAYOUT_DEFINE(node_info, node_info);
#undef THIS

#define THIS struct wire_switch_info
static const struct wire_field switch_info[] = {
	WIRE_INT(0, 16, linear_fdb_cap),
	WIRE_INT(16, 16, random_fdb_cap),
	WIRE_INT(32, 16, multicast_fdb_cap),
	WIRE_INT(48, 16, linear_fdb_top),
	WIRE_INT(64, 8, default_port),
	WIRE_INT(72, 8, default_multicast_primary_port),
	WIRE_INT(80, 8, default_multicast_not_primary_port),
	WIRE_INT(88, 5, life_time_value),
	WIRE_INT(93, 1, port_state_change),
	WIRE_INT(94, 2, optimized_sl_to_vl),
	WIRE_INT(96, 16, lids_per_port),
	WIRE_INT(112, 16, partition_enforcement_cap),
	WIRE_INT(128, 1, inbound_enforcement_cap),
	WIRE_INT(129, 1, outbound_enforcement_cap),
	WIRE_INT(130, 1, filter_raw_inbound_cap),
	WIRE_INT(131, 1, filter_raw_outbound_cap),
	WIRE_INT(132, 1, enhanced_port0),
	WIRE_RESERVED(133, 11),
	WIRE_INT(144, 16, multicast_fdb_top),
};
WIRE_LAYOUT_DEFINE(switch_info, switch_info);
#undef THIS

#define THIS struct wire_guid_info
static const struct wire_field guid_info[] = {
	WIRE_ARRAY_EACH(0, 64, guid),
};
WIRE_LAYOUT_DEFINE(guid_info, guid_info);
#undef THIS

#define THIS struct wire_port_info
static const struct wire_field port_info[] = {
	WIRE_INT(0, 64, m_key),
	WIRE_INT(64, 64, gid_prefix),
	WIRE_INT(128, 16, lid),
	WIRE_INT(144, 16, master_sm_lid),
	WIRE_INT(160, 32, capability_mask),
	WIRE_INT(192, 16, diag_code),
	WIRE_INT(208, 16, m_key_lease_period),
	WIRE_INT(224, 8, local_port_num),
	WIRE_INT(232, 8, link_width_enabled),
	WIRE_INT(240, 8, link_width_supported),
	WIRE_INT(248, 8, link_width_active),
	WIRE_INT(256, 4, link_speed_supported),
	WIRE_INT(260, 4, port_state),
	WIRE_INT(264, 4, port_physical_state),
	WIRE_INT(268, 4, link_down_default_state),
	WIRE_INT(272, 2, m_key_protect_bits),
	WIRE_RESERVED(274, 3),
	WIRE_INT(277, 3, lmc),
	WIRE_INT(280, 4, link_speed_active),
	WIRE_INT(284, 4, link_speed_enabled),
	WIRE_INT(288, 4, neighbor_mtu),
	WIRE_INT(292, 4, master_sm_sl),
	WIRE_INT(296, 4, vl_cap),
	WIRE_INT(300, 4, init_type),
	WIRE_INT(304, 8, vl_high_limit),
	WIRE_INT(312, 8, vl_arbitration_high_cap),
	WIRE_INT(320, 8, vl_arbitration_low_cap),
	WIRE_INT(328, 4, init_type_reply),
	WIRE_INT(332, 4, mtu_cap),
	WIRE_INT(336, 3, vl_stall_count),
	WIRE_INT(339, 5, hoq_life),
	WIRE_INT(344, 4, operational_vls),
	WIRE_INT(348, 1, partition_enforcement_inbound),
	WIRE_INT(349, 1, partition_enforcement_outbound),
	WIRE_INT(350, 1, filter_raw_inbound),
	WIRE_INT(351, 1, filter_raw_outbound),
	WIRE_INT(352, 16, m_key_violations),
	WIRE_INT(368, 16, p_key_violations),
	WIRE_INT(384, 16, q_key_violations),
	WIRE_INT(400, 8, guid_cap),
	WIRE_INT(408, 1, client_reregister),
	WIRE_INT(409, 2, multicast_pkey_trap_suppression),
	WIRE_INT(411, 5, subnet_timeout),
	WIRE_RESERVED(416, 3),
	WIRE_INT(419, 5, resp_time_value),
	WIRE_INT(424, 4, local_phy_errors),
	WIRE_INT(428, 4, overrun_errors),
	WIRE_INT(432, 16, max_credit_hint),
	WIRE_RESERVED(448, 8),
	WIRE_INT(456, 24, link_round_trip_latency),
	WIRE_INT(480, 16, capability_mask2),
	WIRE_INT(496, 4, link_speed_ext_active),
	WIRE_INT(500, 4, link_speed_ext_supported),
	WIRE_RESERVED(504, 3),
	WIRE_INT(507, 5, link_speed_ext_enabled),
};
WIRE_LAYOUT_DEFINE(port_info, port_info);
#undef THIS

#define THIS struct wire_pkey_table
static const struct wire_field pkey_table[] = {
	WIRE_ARRAY(0, 16, pkey),
};
WIRE_LAYOUT_DEFINE(pkey_table, pkey_table);
#undef THIS

#define THIS struct wire_sl_to_vl
static const struct wire_field sl_to_vl[] = {
	WIRE_ARRAY(0, 4, vl),
};
WIRE_LAYOUT_DEFINE(sl_to_vl, sl_to_vl);
#undef THIS

#define THIS struct wire_vl_arb_entry
static const struct wire_field vl_arb_entry[] = {
	WIRE_RESERVED(0, 4),
	WIRE_INT(4, 4, vl),
	WIRE_INT(8, 8, weight),
};
WIRE_LAYOUT_DEFINE(vl_arb_entry, vl_arb_entry);
#undef THIS

#define THIS struct wire_vl_arb
static const struct wire_field vl_arb[] = {
	WIRE_NESTED_ARRAY(0, entry, VL_ARB_PART, vl_arb_entry),
};
WIRE_LAYOUT_DEFINE(vl_arb, vl_arb);
#undef THIS

#define THIS struct wire_linear_ft
static const struct wire_field linear_ft[] = {
	WIRE_BYTES(0, port),
};
WIRE_LAYOUT_DEFINE(linear_ft, linear_ft);
#undef THIS

#define THIS struct wire_multicast_ft
static const struct wire_field multicast_ft[] = {
	WIRE_ARRAY(0, 16, port_mask),
};
WIRE_LAYOUT_DEFINE(multicast_ft, multicast_ft);
#undef THIS

#define THIS struct wire_sm_info
static const struct wire_field sm_info[] = {
	WIRE_INT(0, 64, guid),
	WIRE_INT(64, 64, sm_key),
	WIRE_INT(128, 32, act_count),
	WIRE_INT(160, 4, priority),
	WIRE_INT(164, 4, sm_state),
};
WIRE_LAYOUT_DEFINE(sm_info, sm_info);
#undef THIS

/* clang-format on */
