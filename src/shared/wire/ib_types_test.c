/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Our tables against OpenSM's packed structs (ib_types.h), with which OpenSM, osmtest and saquery
 * read our MADs: sizes, offsets, and the numbers of components. Fields smaller than a byte are
 * compared with OpenSM's accessors here, or with libibmad in ibmad_test.c.
 */
#include <harness.h>
#include <iba/ib_types.h>
#undef IB_PKEY_BASE_MASK /* ours is host order */

#include "base/util.h"
#include "wire/perf.h"
#include "wire/sa_records.h"

static unsigned place_of(const struct wire_layout *l, const char *name)
{
	for (unsigned i = 0; i < l->n_fields; i++)
		if (l->field[i].name && strcmp(l->field[i].name, name) == 0)
			return l->field[i].bit;
	fail_msg("%s has no %s", l->name, name);
	return 0;
}

#define SIZE(ours, theirs) assert_int_equal(wire_##ours##_layout.bytes, sizeof(theirs))
#define PLACE(ours, m, theirs, n) \
	assert_int_equal(place_of(&wire_##ours##_layout, #m), 8 * offsetof(theirs, n))

CASE(headers_are_as_in_opensm)
{
	SIZE(mad, ib_mad_t);
	PLACE(mad, status, ib_mad_t, status);
	PLACE(mad, class_specific, ib_mad_t, class_spec);
	PLACE(mad, transaction_id, ib_mad_t, trans_id);
	PLACE(mad, attribute_id, ib_mad_t, attr_id);
	PLACE(mad, attribute_modifier, ib_mad_t, attr_mod);

	SIZE(smp, ib_smp_t);
	PLACE(smp, m_key, ib_smp_t, m_key);
	PLACE(smp, dr_slid, ib_smp_t, dr_slid);
	PLACE(smp, data, ib_smp_t, data);
	PLACE(smp, initial_path, ib_smp_t, initial_path);
	PLACE(smp, return_path, ib_smp_t, return_path);

	SIZE(sa_mad, ib_sa_mad_t);
	PLACE(sa_mad, rmpp, ib_sa_mad_t, rmpp_version);
	PLACE(sa_mad, sm_key, ib_sa_mad_t, sm_key);
	PLACE(sa_mad, attribute_offset, ib_sa_mad_t, attr_offset);
	PLACE(sa_mad, component_mask, ib_sa_mad_t, comp_mask);
	PLACE(sa_mad, data, ib_sa_mad_t, data);

	SIZE(perf_mad, ib_perfmgt_mad_t);
	PLACE(perf_mad, data, ib_perfmgt_mad_t, data);
}

CASE(attributes_are_as_in_opensm)
{
	SIZE(node_description, ib_node_desc_t);
	SIZE(node_info, ib_node_info_t);
	SIZE(switch_info, ib_switch_info_t);
	SIZE(guid_info, ib_guid_info_t);
	SIZE(port_info, ib_port_info_t);
	SIZE(pkey_table, ib_pkey_table_t);
	SIZE(sl_to_vl, ib_slvl_table_t);
	SIZE(vl_arb_entry, ib_vl_arb_element_t);
	SIZE(vl_arb, ib_vl_arb_table_t);
	SIZE(sm_info, ib_sm_info_t);
	SIZE(class_port_info, ib_class_port_info_t);
	SIZE(port_counters, ib_port_counters_t);
	PLACE(port_counters, qp1_dropped, ib_port_counters_t, qp1_dropped);
	PLACE(port_counters, vl15_dropped, ib_port_counters_t, vl15_dropped);
	SIZE(port_counters_extended, ib_port_counters_ext_t);
}

CASE(sl_to_vl_is_as_in_opensm)
{
	struct wire_sl_to_vl map;
	ib_slvl_table_t table;

	for (unsigned sl = 0; sl < 16; sl++)
		map.vl[sl] = (sl * 7 + 3) % 16;
	wire_sl_to_vl_encode(&map, (uint8_t *)&table);
	for (unsigned sl = 0; sl < 16; sl++)
		assert_int_equal(ib_slvl_table_get(&table, sl), map.vl[sl]);
}

CASE(notices_are_as_in_opensm)
{
	SIZE(notice, ib_mad_notice_attr_t);
	PLACE(notice, producer_type, ib_mad_notice_attr_t, g_or_v.generic.prod_type_msb);
	PLACE(notice, trap_number, ib_mad_notice_attr_t, g_or_v.generic.trap_num);
	PLACE(notice, issuer_lid, ib_mad_notice_attr_t, issuer_lid);
	PLACE(notice, toggle, ib_mad_notice_attr_t, toggle_count);
	PLACE(notice, details, ib_mad_notice_attr_t, data_details);
	PLACE(notice, issuer_gid, ib_mad_notice_attr_t, issuer_gid);
}

/* The details are at byte 10 of a notice. */
#define DETAIL(ours, m, theirs)                                                     \
	assert_int_equal(place_of(&wire_##ours##_layout, #m),                       \
	                 8 * (offsetof(ib_mad_notice_attr_t, data_details.theirs) - \
	                      offsetof(ib_mad_notice_attr_t, data_details)))

CASE(data_details_are_as_in_opensm)
{
	DETAIL(trap_gid, gid, ntc_64_67.gid);
	DETAIL(trap_link_state, lid, ntc_128.sw_lid);

	DETAIL(trap_local_changes, lid, ntc_144.lid);
	DETAIL(trap_local_changes, capability_mask, ntc_144.new_cap_mask);
	DETAIL(trap_local_changes, capability_mask2, ntc_144.cap_mask2);

	DETAIL(trap_bad_mkey, lid, ntc_256.lid);
	DETAIL(trap_bad_mkey, dr_slid, ntc_256.dr_slid);
	DETAIL(trap_bad_mkey, method, ntc_256.method);
	DETAIL(trap_bad_mkey, attribute_id, ntc_256.attr_id);
	DETAIL(trap_bad_mkey, attribute_modifier, ntc_256.attr_mod);
	DETAIL(trap_bad_mkey, m_key, ntc_256.mkey);
	DETAIL(trap_bad_mkey, dr_notice, ntc_256.dr_trunc_hop);
	DETAIL(trap_bad_mkey, dr_return_path, ntc_256.dr_rtn_path);

	DETAIL(trap_bad_key, lid1, ntc_257_258.lid1);
	DETAIL(trap_bad_key, lid2, ntc_257_258.lid2);
	DETAIL(trap_bad_key, key, ntc_257_258.key);
	DETAIL(trap_bad_key, sl, ntc_257_258.qp1);
	DETAIL(trap_bad_key, gid1, ntc_257_258.gid1);
	DETAIL(trap_bad_key, gid2, ntc_257_258.gid2);

	DETAIL(trap_bad_switch_pkey, data_valid, ntc_259.data_valid);
	DETAIL(trap_bad_switch_pkey, lid1, ntc_259.lid1);
	DETAIL(trap_bad_switch_pkey, lid2, ntc_259.lid2);
	DETAIL(trap_bad_switch_pkey, pkey, ntc_259.pkey);
	DETAIL(trap_bad_switch_pkey, sl, ntc_259.sl_qp1);
	DETAIL(trap_bad_switch_pkey, gid1, ntc_259.gid1);
	DETAIL(trap_bad_switch_pkey, gid2, ntc_259.gid2);
	DETAIL(trap_bad_switch_pkey, switch_lid, ntc_259.sw_lid);
	DETAIL(trap_bad_switch_pkey, port, ntc_259.port_no);
}

CASE(the_flags_of_trap_144_are_as_in_opensm)
{
	struct wire_trap_local_changes trap = { .other_local_changes = 1,
		                                .change_flags = LOCAL_CHANGE_SM_PRIORITY };
	struct wire_notice notice = { 0 };
	ib_mad_notice_attr_t theirs;

	wire_trap_local_changes_encode(&trap, notice.details);
	wire_notice_encode(&notice, (uint8_t *)&theirs);
	assert_int_equal(theirs.data_details.ntc_144.local_changes,
	                 TRAP_144_MASK_OTHER_LOCAL_CHANGES);
	assert_int_equal(theirs.data_details.ntc_144.change_flgs, TRAP_144_MASK_SM_PRIORITY_CHANGE);
}

CASE(inform_info_is_as_in_opensm)
{
	struct wire_inform_info info = { .qpn = 0x123456,
		                         .resp_time_value = 0x13,
		                         .producer_type = NOTICE_FROM_SWITCH };
	ib_inform_info_t theirs;
	uint8_t resp_time;
	ib_net32_t qpn;

	SIZE(inform_info, ib_inform_info_t);
	PLACE(inform_info, lid_range_begin, ib_inform_info_t, lid_range_begin);
	PLACE(inform_info, lid_range_end, ib_inform_info_t, lid_range_end);
	PLACE(inform_info, is_generic, ib_inform_info_t, is_generic);
	PLACE(inform_info, subscribe, ib_inform_info_t, subscribe);
	PLACE(inform_info, type, ib_inform_info_t, trap_type);
	PLACE(inform_info, trap_number, ib_inform_info_t, g_or_v.generic.trap_num);
	wire_inform_info_encode(&info, (uint8_t *)&theirs);
	ib_inform_info_get_qpn_resp_time(theirs.g_or_v.generic.qpn_resp_time_val, &qpn, &resp_time);
	assert_int_equal(cl_ntoh32(qpn), info.qpn);
	assert_int_equal(resp_time, info.resp_time_value);
	assert_int_equal(cl_ntoh32(ib_inform_info_get_prod_type(&theirs)), info.producer_type);
}

CASE(records_are_as_in_opensm)
{
	SIZE(node_record, ib_node_record_t);
	PLACE(node_record, info, ib_node_record_t, node_info);
	PLACE(node_record, description, ib_node_record_t, node_desc);
	SIZE(port_info_record, ib_portinfo_record_t);
	PLACE(port_info_record, port_num, ib_portinfo_record_t, port_num);
	PLACE(port_info_record, info, ib_portinfo_record_t, port_info);
	SIZE(sl_to_vl_record, ib_slvl_table_record_t);
	PLACE(sl_to_vl_record, in_port, ib_slvl_table_record_t, in_port_num);
	PLACE(sl_to_vl_record, out_port, ib_slvl_table_record_t, out_port_num);
	PLACE(sl_to_vl_record, table, ib_slvl_table_record_t, slvl_tbl);
	SIZE(switch_info_record, ib_switch_info_record_t);
	PLACE(switch_info_record, info, ib_switch_info_record_t, switch_info);
	SIZE(linear_ft_record, ib_lft_record_t);
	PLACE(linear_ft_record, block, ib_lft_record_t, block_num);
	PLACE(linear_ft_record, table, ib_lft_record_t, lft);
	SIZE(multicast_ft_record, ib_mft_record_t);
	PLACE(multicast_ft_record, position, ib_mft_record_t, position_block_num);
	PLACE(multicast_ft_record, table, ib_mft_record_t, mft);
	SIZE(vl_arb_record, ib_vl_arb_table_record_t);
	PLACE(vl_arb_record, out_port, ib_vl_arb_table_record_t, port_num);
	PLACE(vl_arb_record, block, ib_vl_arb_table_record_t, block_num);
	PLACE(vl_arb_record, table, ib_vl_arb_table_record_t, vl_arb_tbl);
	SIZE(sm_info_record, ib_sminfo_record_t);
	PLACE(sm_info_record, info, ib_sminfo_record_t, sm_info);
	SIZE(pkey_table_record, ib_pkey_table_record_t);
	PLACE(pkey_table_record, block, ib_pkey_table_record_t, block_num);
	PLACE(pkey_table_record, port_num, ib_pkey_table_record_t, port_num);
	PLACE(pkey_table_record, table, ib_pkey_table_record_t, pkey_tbl);
	SIZE(inform_info_record, ib_inform_info_record_t);
	PLACE(inform_info_record, enumerator, ib_inform_info_record_t, subscriber_enum);
	PLACE(inform_info_record, info, ib_inform_info_record_t, inform_info);
	SIZE(link_record, ib_link_record_t);
	PLACE(link_record, from_port, ib_link_record_t, from_port_num);
	PLACE(link_record, to_port, ib_link_record_t, to_port_num);
	PLACE(link_record, to_lid, ib_link_record_t, to_lid);
	SIZE(guid_info_record, ib_guidinfo_record_t);
	PLACE(guid_info_record, block, ib_guidinfo_record_t, block_num);
	PLACE(guid_info_record, table, ib_guidinfo_record_t, guid_info);
}

CASE(what_shares_a_number_is_as_in_opensm)
{
	static const struct wire_multicast_ft_record mft = { .position = 0xA, .block = 0x123 };
	static const struct wire_vl_arb arb = { .entry = { [1] = { .vl = 5, .weight = 200 } } };
	ib_vl_arb_table_t arb_theirs;
	ib_mft_record_t mft_theirs;
	uint16_t number;

	wire_multicast_ft_record_encode(&mft, (uint8_t *)&mft_theirs);
	number = cl_ntoh16(mft_theirs.position_block_num);
	assert_int_equal(number & IB_MCAST_BLOCK_ID_MASK_HO, mft.block);
	assert_int_equal(number >> 12, mft.position);
	wire_vl_arb_encode(&arb, (uint8_t *)&arb_theirs);
	assert_int_equal(arb_theirs.vl_entry[1].vl, arb.entry[1].vl);
	assert_int_equal(arb_theirs.vl_entry[1].weight, arb.entry[1].weight);
}

CASE(service_record_is_as_in_opensm)
{
	SIZE(service_record, ib_service_record_t);
	PLACE(service_record, gid, ib_service_record_t, service_gid);
	PLACE(service_record, pkey, ib_service_record_t, service_pkey);
	PLACE(service_record, lease, ib_service_record_t, service_lease);
	PLACE(service_record, key, ib_service_record_t, service_key);
	PLACE(service_record, name, ib_service_record_t, service_name);
	PLACE(service_record, data8, ib_service_record_t, service_data8);
	PLACE(service_record, data16, ib_service_record_t, service_data16);
	PLACE(service_record, data32, ib_service_record_t, service_data32);
	PLACE(service_record, data64, ib_service_record_t, service_data64);
}

CASE(mcmember_is_as_in_opensm)
{
	SIZE(mcmember, ib_member_rec_t);
	PLACE(mcmember, port_gid, ib_member_rec_t, port_gid);
	PLACE(mcmember, qkey, ib_member_rec_t, qkey);
	PLACE(mcmember, mlid, ib_member_rec_t, mlid);
	PLACE(mcmember, mtu_selector, ib_member_rec_t, mtu);
	PLACE(mcmember, tclass, ib_member_rec_t, tclass);
	PLACE(mcmember, pkey, ib_member_rec_t, pkey);
	PLACE(mcmember, rate_selector, ib_member_rec_t, rate);
	PLACE(mcmember, life_selector, ib_member_rec_t, pkt_life);
	PLACE(mcmember, sl, ib_member_rec_t, sl_flow_hop);
	PLACE(mcmember, scope, ib_member_rec_t, scope_state);
}

CASE(path_record_is_as_in_opensm)
{
	struct wire_path_record path = { .flow_label = 0xABCDE,
		                         .hop_limit = 0x12,
		                         .reversible = 1,
		                         .numb_path = 5,
		                         .qos_class = 0x987,
		                         .sl = 6,
		                         .mtu_selector = SA_EXACTLY,
		                         .mtu = 4,
		                         .rate_selector = SA_LESS,
		                         .rate = 16,
		                         .life_selector = SA_LARGEST,
		                         .life = 18,
		                         .preference = 9 };
	ib_path_rec_t theirs;

	SIZE(path_record, ib_path_rec_t);
	PLACE(path_record, dgid, ib_path_rec_t, dgid);
	PLACE(path_record, sgid, ib_path_rec_t, sgid);
	PLACE(path_record, dlid, ib_path_rec_t, dlid);
	PLACE(path_record, slid, ib_path_rec_t, slid);
	PLACE(path_record, raw_traffic, ib_path_rec_t, hop_flow_raw);
	PLACE(path_record, tclass, ib_path_rec_t, tclass);
	PLACE(path_record, pkey, ib_path_rec_t, pkey);
	wire_path_record_encode(&path, (uint8_t *)&theirs);
	assert_int_equal(ib_path_rec_flow_lbl(&theirs), path.flow_label);
	assert_int_equal(ib_path_rec_hop_limit(&theirs), path.hop_limit);
	assert_int_equal(ib_path_rec_num_path(&theirs), path.numb_path);
	assert_int_equal(ib_path_rec_qos_class(&theirs), path.qos_class);
	assert_int_equal(ib_path_rec_sl(&theirs), path.sl);
	assert_int_equal(ib_path_rec_mtu_sel(&theirs), path.mtu_selector);
	assert_int_equal(ib_path_rec_mtu(&theirs), path.mtu);
	assert_int_equal(ib_path_rec_rate_sel(&theirs), path.rate_selector);
	assert_int_equal(ib_path_rec_rate(&theirs), path.rate);
	assert_int_equal(ib_path_rec_pkt_life_sel(&theirs), path.life_selector);
	assert_int_equal(ib_path_rec_pkt_life(&theirs), path.life);
	assert_int_equal(theirs.preference, path.preference);
}

CASE(multipath_record_is_as_in_opensm)
{
	assert_int_equal(wire_multipath_record_bytes, offsetof(ib_multipath_rec_t, gids));
	PLACE(multipath_record, tclass, ib_multipath_rec_t, tclass);
	PLACE(multipath_record, pkey, ib_multipath_rec_t, pkey);
	PLACE(multipath_record, qos_class, ib_multipath_rec_t, qos_class_sl);
	PLACE(multipath_record, mtu_selector, ib_multipath_rec_t, mtu);
	PLACE(multipath_record, rate_selector, ib_multipath_rec_t, rate);
	PLACE(multipath_record, life_selector, ib_multipath_rec_t, pkt_life);
	PLACE(multipath_record, service_id_msb, ib_multipath_rec_t, service_id_8msb);
	PLACE(multipath_record, independence_selector, ib_multipath_rec_t, independence);
	PLACE(multipath_record, sgid_count, ib_multipath_rec_t, sgid_count);
	PLACE(multipath_record, dgid_count, ib_multipath_rec_t, dgid_count);
	PLACE(multipath_record, service_id_lsb, ib_multipath_rec_t, service_id_56lsb);
}

/* Our components have their numbers, and wire_match() compares that member. */
#define COMPONENTS(record, ours, m, theirs)                                        \
	do {                                                                       \
		struct wire_##record a = { 0 }, b = { 0 };                         \
                                                                                   \
		memset(&b.m, 0x7F, sizeof(b.m));                                   \
		assert_true((ours) == cl_ntoh64(theirs));                          \
		assert_false(wire_match(&wire_##record##_layout, ours, &a, &b));   \
		assert_true(wire_match(&wire_##record##_layout, ~(ours), &a, &b)); \
	} while (0)

#define COMPONENT(record, m, theirs) COMPONENTS(record, WIRE_COMPONENTS(record, m), m, theirs)

CASE(components_of_node_record_are_as_in_opensm)
{
	COMPONENT(node_record, lid, IB_NR_COMPMASK_LID);
	COMPONENT(node_record, info.base_version, IB_NR_COMPMASK_BASEVERSION);
	COMPONENT(node_record, info.class_version, IB_NR_COMPMASK_CLASSVERSION);
	COMPONENT(node_record, info.node_type, IB_NR_COMPMASK_NODETYPE);
	COMPONENT(node_record, info.num_ports, IB_NR_COMPMASK_NUMPORTS);
	COMPONENT(node_record, info.system_image_guid, IB_NR_COMPMASK_SYSIMAGEGUID);
	COMPONENT(node_record, info.node_guid, IB_NR_COMPMASK_NODEGUID);
	COMPONENT(node_record, info.port_guid, IB_NR_COMPMASK_PORTGUID);
	COMPONENT(node_record, info.partition_cap, IB_NR_COMPMASK_PARTCAP);
	COMPONENT(node_record, info.device_id, IB_NR_COMPMASK_DEVID);
	COMPONENT(node_record, info.revision, IB_NR_COMPMASK_REV);
	COMPONENT(node_record, info.local_port_num, IB_NR_COMPMASK_PORTNUM);
	COMPONENT(node_record, info.vendor_id, IB_NR_COMPMASK_VENDID);
	COMPONENT(node_record, description, IB_NR_COMPMASK_NODEDESC);
}

#define PORT(m, theirs) COMPONENT(port_info_record, m, IB_PIR_COMPMASK_##theirs)

CASE(components_of_port_info_record_are_as_in_opensm)
{
	PORT(lid, LID);
	PORT(port_num, PORTNUM);
	PORT(options, OPTIONS);
	PORT(info.m_key, MKEY);
	PORT(info.gid_prefix, GIDPRE);
	PORT(info.lid, BASELID);
	PORT(info.master_sm_lid, SMLID);
	PORT(info.capability_mask, CAPMASK);
	PORT(info.link_width_enabled, LINKWIDTHENABLED);
	PORT(info.port_state, PORTSTATE);
	PORT(info.port_physical_state, PORTPHYSTATE);
	PORT(info.m_key_protect_bits, MKEYPROTBITS);
	PORT(info.lmc, LMC);
	PORT(info.neighbor_mtu, NEIGHBORMTU);
	PORT(info.vl_cap, VLCAP);
	PORT(info.mtu_cap, MTUCAP);
	PORT(info.operational_vls, OPVLS);
	PORT(info.guid_cap, GUIDCAP);
	PORT(info.subnet_timeout, SUBNTO);
	PORT(info.resp_time_value, RESPTIME);
	PORT(info.capability_mask2, CAPMASK2);
	PORT(info.link_speed_ext_enabled, LINKSPDEXTENAB);
}

CASE(components_of_tables_are_as_in_opensm)
{
	COMPONENT(sl_to_vl_record, lid, IB_SLVL_COMPMASK_LID);
	COMPONENT(sl_to_vl_record, in_port, IB_SLVL_COMPMASK_IN_PORT);
	COMPONENT(sl_to_vl_record, out_port, IB_SLVL_COMPMASK_OUT_PORT);
	COMPONENT(switch_info_record, lid, IB_SWIR_COMPMASK_LID);
	COMPONENT(linear_ft_record, lid, IB_LFTR_COMPMASK_LID);
	COMPONENT(linear_ft_record, block, IB_LFTR_COMPMASK_BLOCK);
	COMPONENT(multicast_ft_record, lid, IB_MFTR_COMPMASK_LID);
	COMPONENT(multicast_ft_record, position, IB_MFTR_COMPMASK_POSITION);
	COMPONENT(multicast_ft_record, block, IB_MFTR_COMPMASK_BLOCK);
	COMPONENT(vl_arb_record, lid, IB_VLA_COMPMASK_LID);
	COMPONENT(vl_arb_record, out_port, IB_VLA_COMPMASK_OUT_PORT);
	COMPONENT(vl_arb_record, block, IB_VLA_COMPMASK_BLOCK);
	COMPONENT(pkey_table_record, lid, IB_PKEY_COMPMASK_LID);
	COMPONENT(pkey_table_record, block, IB_PKEY_COMPMASK_BLOCK);
	COMPONENT(pkey_table_record, port_num, IB_PKEY_COMPMASK_PORT);
	COMPONENT(guid_info_record, lid, IB_GIR_COMPMASK_LID);
	COMPONENT(guid_info_record, block, IB_GIR_COMPMASK_BLOCKNUM);
	COMPONENT(guid_info_record, table.guid[0], IB_GIR_COMPMASK_GID0);
	COMPONENT(guid_info_record, table.guid[7], IB_GIR_COMPMASK_GID7);
}

CASE(components_of_other_records_are_as_in_opensm)
{
	COMPONENT(sm_info_record, lid, IB_SMIR_COMPMASK_LID);
	COMPONENT(sm_info_record, info.guid, IB_SMIR_COMPMASK_GUID);
	COMPONENT(sm_info_record, info.sm_key, IB_SMIR_COMPMASK_SMKEY);
	COMPONENT(sm_info_record, info.act_count, IB_SMIR_COMPMASK_ACTCOUNT);
	COMPONENT(sm_info_record, info.priority, IB_SMIR_COMPMASK_PRIORITY);
	COMPONENT(sm_info_record, info.sm_state, IB_SMIR_COMPMASK_SMSTATE);
	COMPONENT(link_record, from_lid, IB_LR_COMPMASK_FROM_LID);
	COMPONENT(link_record, from_port, IB_LR_COMPMASK_FROM_PORT);
	COMPONENT(link_record, to_port, IB_LR_COMPMASK_TO_PORT);
	COMPONENT(link_record, to_lid, IB_LR_COMPMASK_TO_LID);
	COMPONENT(service_record, id, IB_SR_COMPMASK_SID);
	COMPONENT(service_record, gid, IB_SR_COMPMASK_SGID);
	COMPONENT(service_record, pkey, IB_SR_COMPMASK_SPKEY);
	COMPONENT(service_record, lease, IB_SR_COMPMASK_SLEASE);
	COMPONENT(service_record, key, IB_SR_COMPMASK_SKEY);
	COMPONENT(service_record, name, IB_SR_COMPMASK_SNAME);
	COMPONENT(service_record, data8[0], IB_SR_COMPMASK_SDATA8_0);
	COMPONENT(service_record, data8[15], IB_SR_COMPMASK_SDATA8_15);
	COMPONENT(service_record, data16[7], IB_SR_COMPMASK_SDATA16_7);
	COMPONENT(service_record, data32[3], IB_SR_COMPMASK_SDATA32_3);
	COMPONENT(service_record, data64[1], IB_SR_COMPMASK_SDATA64_1);
}

#define INFORM(m, theirs) COMPONENT(inform_info_record, m, IB_IIR_COMPMASK_##theirs)

CASE(components_of_inform_info_record_are_as_in_opensm)
{
	INFORM(subscriber_gid, SUBSCRIBERGID);
	INFORM(enumerator, ENUM);
	INFORM(info.gid, GID);
	INFORM(info.lid_range_begin, LIDRANGEBEGIN);
	INFORM(info.lid_range_end, LIDRANGEEND);
	INFORM(info.is_generic, ISGENERIC);
	INFORM(info.subscribe, SUBSCRIBE);
	INFORM(info.type, TYPE);
	INFORM(info.trap_number, TRAPNUMB);
	INFORM(info.qpn, QPN);
	INFORM(info.resp_time_value, RESPTIME);
	INFORM(info.producer_type, PRODTYPE);
}

#define PATH(m, theirs) COMPONENT(path_record, m, IB_PR_COMPMASK_##theirs)

CASE(components_of_path_record_are_as_in_opensm)
{
	PATH(service_id, SERVICEID);
	PATH(dgid, DGID);
	PATH(sgid, SGID);
	PATH(dlid, DLID);
	PATH(slid, SLID);
	PATH(raw_traffic, RAWTRAFFIC);
	PATH(flow_label, FLOWLABEL);
	PATH(hop_limit, HOPLIMIT);
	PATH(tclass, TCLASS);
	PATH(reversible, REVERSIBLE);
	PATH(numb_path, NUMBPATH);
	PATH(pkey, PKEY);
	PATH(qos_class, QOS_CLASS);
	PATH(sl, SL);
	PATH(mtu_selector, MTUSELEC);
	PATH(mtu, MTU);
	PATH(rate_selector, RATESELEC);
	PATH(rate, RATE);
	PATH(life_selector, PKTLIFETIMESELEC);
	PATH(life, PKTLIFETIME);
}

#define MULTI(m, theirs) COMPONENT(multipath_record, m, IB_MPR_COMPMASK_##theirs)

CASE(components_of_multipath_record_are_as_in_opensm)
{
	MULTI(raw_traffic, RAWTRAFFIC);
	MULTI(flow_label, FLOWLABEL);
	MULTI(hop_limit, HOPLIMIT);
	MULTI(tclass, TCLASS);
	MULTI(reversible, REVERSIBLE);
	MULTI(numb_path, NUMBPATH);
	MULTI(pkey, PKEY);
	MULTI(qos_class, QOS_CLASS);
	MULTI(sl, SL);
	MULTI(mtu_selector, MTUSELEC);
	MULTI(mtu, MTU);
	MULTI(rate_selector, RATESELEC);
	MULTI(rate, RATE);
	MULTI(life_selector, PKTLIFETIMESELEC);
	MULTI(life, PKTLIFETIME);
	COMPONENTS(multipath_record, SA_MPR_SERVICE_ID, service_id_msb, IB_MPR_COMPMASK_SERVICEID);
	COMPONENTS(multipath_record, SA_MPR_SERVICE_ID, service_id_lsb, IB_MPR_COMPMASK_SERVICEID);
	MULTI(independence_selector, INDEPSELEC);
	MULTI(sgid_count, SGIDCOUNT);
	MULTI(dgid_count, DGIDCOUNT);
}

#define MEMBER(ours, m, theirs) COMPONENTS(mcmember, (uint64_t)ours, m, IB_MCR_COMPMASK_##theirs)

CASE(components_of_mcmember_are_as_in_opensm)
{
	MEMBER(SA_MCM_MGID, mgid, MGID);
	MEMBER(SA_MCM_PORT_GID, port_gid, PORT_GID);
	MEMBER(SA_MCM_QKEY, qkey, QKEY);
	MEMBER(SA_MCM_MLID, mlid, MLID);
	MEMBER(SA_MCM_MTU_SELECTOR, mtu_selector, MTU_SEL);
	MEMBER(SA_MCM_MTU, mtu, MTU);
	MEMBER(SA_MCM_TCLASS, tclass, TCLASS);
	MEMBER(SA_MCM_PKEY, pkey, PKEY);
	MEMBER(SA_MCM_RATE_SELECTOR, rate_selector, RATE_SEL);
	MEMBER(SA_MCM_RATE, rate, RATE);
	MEMBER(SA_MCM_LIFE_SELECTOR, life_selector, LIFE_SEL);
	MEMBER(SA_MCM_LIFE, life, LIFE);
	MEMBER(SA_MCM_SL, sl, SL);
	MEMBER(SA_MCM_FLOW_LABEL, flow_label, FLOW);
	MEMBER(SA_MCM_HOP_LIMIT, hop_limit, HOP);
	MEMBER(SA_MCM_SCOPE, scope, SCOPE);
	MEMBER(SA_MCM_JOIN_STATE, join_state, JOIN_STATE);
	MEMBER(SA_MCM_PROXY_JOIN, proxy_join, PROXY);
}
