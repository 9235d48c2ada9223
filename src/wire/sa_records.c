/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of subnet administration's records: see sa_records.h.
 */
#include "wire/sa_records.h"

/* clang-format off */

#define THIS struct wire_node_record
static const struct wire_field node_record[] = {
	WIRE_INT(0, 16, lid),
	WIRE_RESERVED(16, 16),
	WIRE_NESTED(32, info, node_info),
	WIRE_NESTED(352, description, node_description),
	WIRE_RESERVED(864, 32),
};
WIRE_LAYOUT_DEFINE(node_record, node_record);
#undef THIS

#define THIS struct wire_port_info_record
static const struct wire_field port_info_record[] = {
	WIRE_INT(0, 16, lid),
	WIRE_INT(16, 8, port_num),
	WIRE_INT(24, 8, options),
	WIRE_NESTED(32, info, port_info),
	WIRE_RESERVED(544, 32),
};
WIRE_LAYOUT_DEFINE(port_info_record, port_info_record);
#undef THIS

#define THIS struct wire_sl_to_vl_record
static const struct wire_field sl_to_vl_record[] = {
	WIRE_INT(0, 16, lid),
	WIRE_INT(16, 8, in_port),
	WIRE_INT(24, 8, out_port),
	WIRE_RESERVED(32, 32),
	WIRE_NESTED(64, table, sl_to_vl),
};
WIRE_LAYOUT_DEFINE(sl_to_vl_record, sl_to_vl_record);
#undef THIS

#define THIS struct wire_switch_info_record
static const struct wire_field switch_info_record[] = {
	WIRE_INT(0, 16, lid),
	WIRE_RESERVED(16, 16),
	WIRE_NESTED(32, info, switch_info),
};
WIRE_LAYOUT_DEFINE(switch_info_record, switch_info_record);
#undef THIS

#define THIS struct wire_linear_ft_record
static const struct wire_field linear_ft_record[] = {
	WIRE_INT(0, 16, lid),
	WIRE_INT(16, 16, block),
	WIRE_RESERVED(32, 32),
	WIRE_NESTED(64, table, linear_ft),
};
WIRE_LAYOUT_DEFINE(linear_ft_record, linear_ft_record);
#undef THIS

#define THIS struct wire_multicast_ft_record
static const struct wire_field multicast_ft_record[] = {
	WIRE_INT(0, 16, lid),
	WIRE_INT(16, 4, position),
	WIRE_RESERVED(20, 3),
	WIRE_INT(23, 9, block),
	WIRE_RESERVED(32, 32),
	WIRE_NESTED(64, table, multicast_ft),
};
WIRE_LAYOUT_DEFINE(multicast_ft_record, multicast_ft_record);
#undef THIS

#define THIS struct wire_vl_arb_record
static const struct wire_field vl_arb_record[] = {
	WIRE_INT(0, 16, lid),
	WIRE_INT(16, 8, out_port),
	WIRE_INT(24, 8, block),
	WIRE_RESERVED(32, 32),
	WIRE_NESTED(64, table, vl_arb),
};
WIRE_LAYOUT_DEFINE(vl_arb_record, vl_arb_record);
#undef THIS

#define THIS struct wire_sm_info_record
static const struct wire_field sm_info_record[] = {
	WIRE_INT(0, 16, lid),
	WIRE_RESERVED(16, 16),
	WIRE_NESTED(32, info, sm_info),
	WIRE_RESERVED(200, 56),
};
WIRE_LAYOUT_DEFINE(sm_info_record, sm_info_record);
#undef THIS

#define THIS struct wire_pkey_table_record
static const struct wire_field pkey_table_record[] = {
	WIRE_INT(0, 16, lid),
	WIRE_INT(16, 16, block),
	WIRE_INT(32, 8, port_num),
	WIRE_RESERVED(40, 24),
	WIRE_NESTED(64, table, pkey_table),
};
WIRE_LAYOUT_DEFINE(pkey_table_record, pkey_table_record);
#undef THIS

#define THIS struct wire_inform_info_record
static const struct wire_field inform_info_record[] = {
	WIRE_BYTES(0, subscriber_gid),
	WIRE_INT(128, 16, enumerator),
	WIRE_RESERVED(144, 48),
	WIRE_NESTED(192, info, inform_info),
	WIRE_RESERVED(480, 32),
};
WIRE_LAYOUT_DEFINE(inform_info_record, inform_info_record);
#undef THIS

#define THIS struct wire_link_record
static const struct wire_field link_record[] = {
	WIRE_INT(0, 16, from_lid),
	WIRE_INT(16, 8, from_port),
	WIRE_INT(24, 8, to_port),
	WIRE_INT(32, 16, to_lid),
	WIRE_RESERVED(48, 16),
};
WIRE_LAYOUT_DEFINE(link_record, link_record);
#undef THIS

#define THIS struct wire_service_record
static const struct wire_field service_record[] = {
	WIRE_INT(0, 64, id),
	WIRE_BYTES(64, gid),
	WIRE_INT(192, 16, pkey),
	WIRE_RESERVED(208, 16),
	WIRE_INT(224, 32, lease),
	WIRE_BYTES(256, key),
	WIRE_BYTES(384, name),
	WIRE_ARRAY_EACH(896, 8, data8),
	WIRE_ARRAY_EACH(1024, 16, data16),
	WIRE_ARRAY_EACH(1152, 32, data32),
	WIRE_ARRAY_EACH(1280, 64, data64),
};
WIRE_LAYOUT_DEFINE(service_record, service_record);
#undef THIS

#define THIS struct wire_path_record
static const struct wire_field path_record[] = {
	WIRE_INT_COMPONENTS(0, 64, service_id, 2),
	WIRE_BYTES(64, dgid),
	WIRE_BYTES(192, sgid),
	WIRE_INT(320, 16, dlid),
	WIRE_INT(336, 16, slid),
	WIRE_INT(352, 1, raw_traffic),
	WIRE_RESERVED(353, 3),
	WIRE_INT(356, 20, flow_label),
	WIRE_INT(376, 8, hop_limit),
	WIRE_INT(384, 8, tclass),
	WIRE_INT(392, 1, reversible),
	WIRE_INT(393, 7, numb_path),
	WIRE_INT(400, 16, pkey),
	WIRE_INT(416, 12, qos_class),
	WIRE_INT(428, 4, sl),
	WIRE_INT(432, 2, mtu_selector),
	WIRE_INT(434, 6, mtu),
	WIRE_INT(440, 2, rate_selector),
	WIRE_INT(442, 6, rate),
	WIRE_INT(448, 2, life_selector),
	WIRE_INT(450, 6, life),
	WIRE_INT(456, 8, preference),
	WIRE_RESERVED(464, 48),
};
WIRE_LAYOUT_DEFINE(path_record, path_record);
#undef THIS

#define THIS struct wire_guid_info_record
static const struct wire_field guid_info_record[] = {
	WIRE_INT(0, 16, lid),
	WIRE_INT(16, 8, block),
	WIRE_RESERVED(24, 8),
	WIRE_RESERVED(32, 32),
	WIRE_NESTED(64, table, guid_info),
};
WIRE_LAYOUT_DEFINE(guid_info_record, guid_info_record);
#undef THIS

#define THIS struct wire_multipath_record
static const struct wire_field multipath_record[] = {
	WIRE_INT(0, 1, raw_traffic),
	WIRE_RESERVED(1, 3),
	WIRE_INT(4, 20, flow_label),
	WIRE_INT(24, 8, hop_limit),
	WIRE_INT(32, 8, tclass),
	WIRE_INT(40, 1, reversible),
	WIRE_INT(41, 7, numb_path),
	WIRE_INT(48, 16, pkey),
	WIRE_INT(64, 12, qos_class),
	WIRE_INT(76, 4, sl),
	WIRE_INT(80, 2, mtu_selector),
	WIRE_INT(82, 6, mtu),
	WIRE_INT(88, 2, rate_selector),
	WIRE_INT(90, 6, rate),
	WIRE_INT(96, 2, life_selector),
	WIRE_INT(98, 6, life),
	WIRE_INT(104, 8, service_id_msb),
	WIRE_INT(112, 2, independence_selector),
	WIRE_RESERVED(114, 6),
	WIRE_INT(120, 8, sgid_count),
	WIRE_INT(128, 8, dgid_count),
	WIRE_INT(136, 56, service_id_lsb),
};
WIRE_LAYOUT_DEFINE(multipath_record, multipath_record);
#undef THIS

/* clang-format on */

const struct ib_gid *wire_multipath_gids(const uint8_t *in, size_t bytes)
{
	struct wire_multipath_record record;
	size_t gids;

	if (bytes < wire_multipath_record_bytes)
		return NULL;
	wire_multipath_record_decode(in, &record);
	gids = (size_t)record.sgid_count + record.dgid_count;
	if (bytes - wire_multipath_record_bytes < gids * sizeof(struct ib_gid))
		return NULL;
	return (const struct ib_gid *)(in + wire_multipath_record_bytes);
}
