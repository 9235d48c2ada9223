/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Our tables against libibmad's, field by field, with random values: we decode what
 * mad_get_field() reads, and encode what mad_set_field() writes. The diagnostic programs read our
 * responses with libibmad.
 */
#include <harness.h>
#include <infiniband/mad.h>

#include "base/util.h"
#include "wire/perf.h"
#include "wire/rmpp.h"
#include "wire/sa_records.h"

#define ROUNDS 100

struct pair {
	enum MAD_FIELDS theirs;
	const char *ours;
};

static const struct wire_field *find(const struct wire_layout *l, const char *name)
{
	for (unsigned i = 0; i < l->n_fields; i++)
		if (l->field[i].name && strcmp(l->field[i].name, name) == 0)
			return &l->field[i];
	fail_msg("%s has no %s", l->name, name);
	return NULL;
}

static uint64_t number(const struct wire_field *f, const uint8_t *host)
{
	uint64_t v = 0;

	memcpy(&v, host + f->offset, f->size); /* little-endian, as all who run this */
	return v;
}

static void compare_field(const struct wire_field *f, enum MAD_FIELDS theirs, uint8_t *wire,
                          const uint8_t *host, uint8_t *rebuilt)
{
	uint8_t array[256];

	if (f->count > 1) {
		assert_int_equal(f->size, 1);
		mad_get_array(wire, 0, theirs, array);
		assert_memory_equal(array, host + f->offset, f->count);
		mad_set_array(rebuilt, 0, theirs, array);
	} else if (f->width == 64) {
		assert_true(mad_get_field64(wire, 0, theirs) == number(f, host));
		mad_set_field64(rebuilt, 0, theirs, number(f, host));
	} else {
		assert_int_equal(mad_get_field(wire, 0, theirs), number(f, host));
		mad_set_field(rebuilt, 0, theirs, number(f, host));
	}
}

/* @whole: libibmad knows all of our fields, so that its encoding must be ours. */
static void compare(const struct wire_layout *l, const struct pair *pair, size_t n, bool whole)
{
	uint8_t wire[MAD_BYTES] = { 0 }, ours[MAD_BYTES], theirs[MAD_BYTES], host[1024];

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < l->bytes; i++)
			wire[i] = rand();
		wire_decode(l, wire, host);
		wire_encode(l, host, ours);
		memset(theirs, 0, sizeof(theirs));
		for (size_t i = 0; i < n; i++) {
			const struct wire_field *f = find(l, pair[i].ours);

			if (round == 0)
				print_message("%s\n", f->name);
			compare_field(f, pair[i].theirs, wire, host, theirs);
		}
		if (whole)
			assert_memory_equal(ours, theirs, l->bytes);
	}
}

#define COMPARE(layout, pairs)      compare(&layout, pairs, ARRAY_SIZE(pairs), true)
#define COMPARE_SOME(layout, pairs) compare(&layout, pairs, ARRAY_SIZE(pairs), false)

CASE(smp_is_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_MAD_BASEVER_F, "mad.base_version" },
		{ IB_MAD_MGMTCLASS_F, "mad.mgmt_class" },
		{ IB_MAD_CLASSVER_F, "mad.class_version" },
		{ IB_DRSMP_DIRECTION_F, "direction" },
		{ IB_DRSMP_STATUS_F, "mad.status" },
		{ IB_DRSMP_HOPPTR_F, "hop_pointer" },
		{ IB_DRSMP_HOPCNT_F, "hop_count" },
		{ IB_MAD_TRID_F, "mad.transaction_id" },
		{ IB_MAD_ATTRID_F, "mad.attribute_id" },
		{ IB_MAD_ATTRMOD_F, "mad.attribute_modifier" },
		{ IB_MAD_MKEY_F, "m_key" },
		{ IB_DRSMP_DRSLID_F, "dr_slid" },
		{ IB_DRSMP_DRDLID_F, "dr_dlid" },
		{ IB_DRSMP_PATH_F, "initial_path" },
		{ IB_DRSMP_RPATH_F, "return_path" },
	};

	COMPARE_SOME(wire_smp_layout, pairs);
}

CASE(sa_mad_is_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_SA_MKEY_F, "sm_key" },
		{ IB_SA_COMPMASK_F, "component_mask" },
		{ IB_SA_DATA_F, "data" },
	};

	COMPARE_SOME(wire_sa_mad_layout, pairs);
}

/* libibmad has these in the MAD, we have them in a header of their own. */
CASE(rmpp_is_as_in_libibmad)
{
	uint8_t mad[MAD_BYTES];
	struct wire_rmpp h;

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < sizeof(mad); i++)
			mad[i] = rand();
		wire_rmpp_decode(mad + RMPP_AT, &h);
		assert_int_equal(mad_get_field(mad, 0, IB_SA_RMPP_VERS_F), h.version);
		assert_int_equal(mad_get_field(mad, 0, IB_SA_RMPP_TYPE_F), h.type);
		assert_int_equal(mad_get_field(mad, 0, IB_SA_RMPP_RESP_F), h.resp_time);
		assert_int_equal(mad_get_field(mad, 0, IB_SA_RMPP_FLAGS_F), h.flags);
		assert_int_equal(mad_get_field(mad, 0, IB_SA_RMPP_STATUS_F), h.status);
		assert_int_equal(mad_get_field(mad, 0, IB_SA_RMPP_SEGNUM_F), h.data1);
		assert_int_equal(mad_get_field(mad, 0, IB_SA_RMPP_LEN_F), h.data2);
	}
}

CASE(class_port_info_is_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_CPI_BASEVER_F, "base_version" },
		{ IB_CPI_CLASSVER_F, "class_version" },
		{ IB_CPI_CAPMASK_F, "capability_mask" },
		{ IB_CPI_CAPMASK2_F, "capability_mask2" },
		{ IB_CPI_RESP_TIME_VALUE_F, "resp_time_value" },
		{ IB_CPI_REDIRECT_GID_F, "redirect_gid" },
		{ IB_CPI_REDIRECT_TC_F, "redirect_tc" },
		{ IB_CPI_REDIRECT_SL_F, "redirect_sl" },
		{ IB_CPI_REDIRECT_FL_F, "redirect_fl" },
		{ IB_CPI_REDIRECT_LID_F, "redirect_lid" },
		{ IB_CPI_REDIRECT_PKEY_F, "redirect_pkey" },
		{ IB_CPI_REDIRECT_QP_F, "redirect_qp" },
		{ IB_CPI_REDIRECT_QKEY_F, "redirect_qkey" },
		{ IB_CPI_TRAP_GID_F, "trap_gid" },
		{ IB_CPI_TRAP_TC_F, "trap_tc" },
		{ IB_CPI_TRAP_SL_F, "trap_sl" },
		{ IB_CPI_TRAP_FL_F, "trap_fl" },
		{ IB_CPI_TRAP_LID_F, "trap_lid" },
		{ IB_CPI_TRAP_PKEY_F, "trap_pkey" },
		{ IB_CPI_TRAP_HL_F, "trap_hl" },
		{ IB_CPI_TRAP_QP_F, "trap_qp" },
		{ IB_CPI_TRAP_QKEY_F, "trap_qkey" },
	};

	COMPARE(wire_class_port_info_layout, pairs);
}

CASE(node_info_is_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_NODE_BASE_VERS_F, "base_version" },
		{ IB_NODE_CLASS_VERS_F, "class_version" },
		{ IB_NODE_TYPE_F, "node_type" },
		{ IB_NODE_NPORTS_F, "num_ports" },
		{ IB_NODE_SYSTEM_GUID_F, "system_image_guid" },
		{ IB_NODE_GUID_F, "node_guid" },
		{ IB_NODE_PORT_GUID_F, "port_guid" },
		{ IB_NODE_PARTITION_CAP_F, "partition_cap" },
		{ IB_NODE_DEVID_F, "device_id" },
		{ IB_NODE_REVISION_F, "revision" },
		{ IB_NODE_LOCAL_PORT_F, "local_port_num" },
		{ IB_NODE_VENDORID_F, "vendor_id" },
	};

	COMPARE(wire_node_info_layout, pairs);
}

CASE(switch_info_is_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_SW_LINEAR_FDB_CAP_F, "linear_fdb_cap" },
		{ IB_SW_RANDOM_FDB_CAP_F, "random_fdb_cap" },
		{ IB_SW_MCAST_FDB_CAP_F, "multicast_fdb_cap" },
		{ IB_SW_LINEAR_FDB_TOP_F, "linear_fdb_top" },
		{ IB_SW_DEF_PORT_F, "default_port" },
		{ IB_SW_DEF_MCAST_PRIM_F, "default_multicast_primary_port" },
		{ IB_SW_DEF_MCAST_NOT_PRIM_F, "default_multicast_not_primary_port" },
		{ IB_SW_LIFE_TIME_F, "life_time_value" },
		{ IB_SW_STATE_CHANGE_F, "port_state_change" },
		{ IB_SW_OPT_SLTOVL_MAPPING_F, "optimized_sl_to_vl" },
		{ IB_SW_LIDS_PER_PORT_F, "lids_per_port" },
		{ IB_SW_PARTITION_ENFORCE_CAP_F, "partition_enforcement_cap" },
		{ IB_SW_PARTITION_ENF_INB_F, "inbound_enforcement_cap" },
		{ IB_SW_PARTITION_ENF_OUTB_F, "outbound_enforcement_cap" },
		{ IB_SW_FILTER_RAW_INB_F, "filter_raw_inbound_cap" },
		{ IB_SW_FILTER_RAW_OUTB_F, "filter_raw_outbound_cap" },
		{ IB_SW_ENHANCED_PORT0_F, "enhanced_port0" },
		{ IB_SW_MCAST_FDB_TOP_F, "multicast_fdb_top" },
	};

	COMPARE(wire_switch_info_layout, pairs);
}

CASE(port_info_is_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_PORT_MKEY_F, "m_key" },
		{ IB_PORT_GID_PREFIX_F, "gid_prefix" },
		{ IB_PORT_LID_F, "lid" },
		{ IB_PORT_SMLID_F, "master_sm_lid" },
		{ IB_PORT_CAPMASK_F, "capability_mask" },
		{ IB_PORT_DIAG_F, "diag_code" },
		{ IB_PORT_MKEY_LEASE_F, "m_key_lease_period" },
		{ IB_PORT_LOCAL_PORT_F, "local_port_num" },
		{ IB_PORT_LINK_WIDTH_ENABLED_F, "link_width_enabled" },
		{ IB_PORT_LINK_WIDTH_SUPPORTED_F, "link_width_supported" },
		{ IB_PORT_LINK_WIDTH_ACTIVE_F, "link_width_active" },
		{ IB_PORT_LINK_SPEED_SUPPORTED_F, "link_speed_supported" },
		{ IB_PORT_STATE_F, "port_state" },
		{ IB_PORT_PHYS_STATE_F, "port_physical_state" },
		{ IB_PORT_LINK_DOWN_DEF_F, "link_down_default_state" },
		{ IB_PORT_MKEY_PROT_BITS_F, "m_key_protect_bits" },
		{ IB_PORT_LMC_F, "lmc" },
		{ IB_PORT_LINK_SPEED_ACTIVE_F, "link_speed_active" },
		{ IB_PORT_LINK_SPEED_ENABLED_F, "link_speed_enabled" },
		{ IB_PORT_NEIGHBOR_MTU_F, "neighbor_mtu" },
		{ IB_PORT_SMSL_F, "master_sm_sl" },
		{ IB_PORT_VL_CAP_F, "vl_cap" },
		{ IB_PORT_INIT_TYPE_F, "init_type" },
		{ IB_PORT_VL_HIGH_LIMIT_F, "vl_high_limit" },
		{ IB_PORT_VL_ARBITRATION_HIGH_CAP_F, "vl_arbitration_high_cap" },
		{ IB_PORT_VL_ARBITRATION_LOW_CAP_F, "vl_arbitration_low_cap" },
		{ IB_PORT_INIT_TYPE_REPLY_F, "init_type_reply" },
		{ IB_PORT_MTU_CAP_F, "mtu_cap" },
		{ IB_PORT_VL_STALL_COUNT_F, "vl_stall_count" },
		{ IB_PORT_HOQ_LIFE_F, "hoq_life" },
		{ IB_PORT_OPER_VLS_F, "operational_vls" },
		{ IB_PORT_PART_EN_INB_F, "partition_enforcement_inbound" },
		{ IB_PORT_PART_EN_OUTB_F, "partition_enforcement_outbound" },
		{ IB_PORT_FILTER_RAW_INB_F, "filter_raw_inbound" },
		{ IB_PORT_FILTER_RAW_OUTB_F, "filter_raw_outbound" },
		{ IB_PORT_MKEY_VIOL_F, "m_key_violations" },
		{ IB_PORT_PKEY_VIOL_F, "p_key_violations" },
		{ IB_PORT_QKEY_VIOL_F, "q_key_violations" },
		{ IB_PORT_GUID_CAP_F, "guid_cap" },
		{ IB_PORT_CLIENT_REREG_F, "client_reregister" },
		{ IB_PORT_MCAST_PKEY_SUPR_ENAB_F, "multicast_pkey_trap_suppression" },
		{ IB_PORT_SUBN_TIMEOUT_F, "subnet_timeout" },
		{ IB_PORT_RESP_TIME_VAL_F, "resp_time_value" },
		{ IB_PORT_LOCAL_PHYS_ERR_F, "local_phy_errors" },
		{ IB_PORT_OVERRUN_ERR_F, "overrun_errors" },
		{ IB_PORT_MAX_CREDIT_HINT_F, "max_credit_hint" },
		{ IB_PORT_LINK_ROUND_TRIP_F, "link_round_trip_latency" },
		{ IB_PORT_CAPMASK2_F, "capability_mask2" },
		{ IB_PORT_LINK_SPEED_EXT_ACTIVE_F, "link_speed_ext_active" },
		{ IB_PORT_LINK_SPEED_EXT_SUPPORTED_F, "link_speed_ext_supported" },
		{ IB_PORT_LINK_SPEED_EXT_ENABLED_F, "link_speed_ext_enabled" },
	};

	COMPARE(wire_port_info_layout, pairs);
}

CASE(sm_info_is_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_SMINFO_GUID_F, "guid" },      { IB_SMINFO_KEY_F, "sm_key" },
		{ IB_SMINFO_ACT_F, "act_count" },  { IB_SMINFO_PRIO_F, "priority" },
		{ IB_SMINFO_STATE_F, "sm_state" },
	};

	COMPARE(wire_sm_info_layout, pairs);
}

CASE(guid_info_is_as_in_libibmad)
{
	uint8_t wire[wire_guid_info_bytes];
	struct wire_guid_info info;

	for (unsigned i = 0; i < sizeof(wire); i++)
		wire[i] = rand();
	wire_guid_info_decode(wire, &info);
	for (unsigned i = 0; i < GUID_BLOCK; i++)
		assert_true(mad_get_field64(wire, 0, IB_GI_GUID0_F + i) == info.guid[i]);
}

CASE(notice_is_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_NOTICE_IS_GENERIC_F, "is_generic" },
		{ IB_NOTICE_TYPE_F, "type" },
		{ IB_NOTICE_PRODUCER_F, "producer_type" },
		{ IB_NOTICE_TRAP_NUMBER_F, "trap_number" },
		{ IB_NOTICE_ISSUER_LID_F, "issuer_lid" },
		{ IB_NOTICE_TOGGLE_F, "toggle" },
		{ IB_NOTICE_COUNT_F, "count" },
		{ IB_NOTICE_DATA_DETAILS_F, "details" },
	};

	COMPARE(wire_smp_notice_layout, pairs);
	COMPARE_SOME(wire_notice_layout, pairs);
}

CASE(notice_details_are_as_in_libibmad)
{
	struct wire_trap_link_state link = { .lid = 0x1234 };
	struct wire_trap_local_changes local = { .lid = 0x4321, .capability_mask = 0x89ABCDEF };
	struct wire_notice notice = { 0 };
	uint8_t wire[wire_smp_notice_bytes];

	wire_trap_link_state_encode(&link, notice.details);
	wire_smp_notice_encode(&notice, wire);
	assert_int_equal(mad_get_field(wire, 0, IB_NOTICE_DATA_LID_F), link.lid);

	wire_trap_local_changes_encode(&local, notice.details);
	wire_smp_notice_encode(&notice, wire);
	assert_int_equal(mad_get_field(wire, 0, IB_NOTICE_DATA_144_LID_F), local.lid);
	assert_int_equal(mad_get_field(wire, 0, IB_NOTICE_DATA_144_CAPMASK_F),
	                 local.capability_mask);
}

/* Without QP1Dropped: libibmad reads VL15Dropped for it. ib_types_test.c checks it. */
CASE(port_counters_are_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_PC_PORT_SELECT_F, "port_select" },
		{ IB_PC_COUNTER_SELECT_F, "counter_select" },
		{ IB_PC_ERR_SYM_F, "symbol_errors" },
		{ IB_PC_LINK_RECOVERS_F, "link_error_recovery" },
		{ IB_PC_LINK_DOWNED_F, "link_downed" },
		{ IB_PC_ERR_RCV_F, "rcv_errors" },
		{ IB_PC_ERR_PHYSRCV_F, "rcv_remote_physical_errors" },
		{ IB_PC_ERR_SWITCH_REL_F, "rcv_switch_relay_errors" },
		{ IB_PC_XMT_DISCARDS_F, "xmit_discards" },
		{ IB_PC_ERR_XMTCONSTR_F, "xmit_constraint_errors" },
		{ IB_PC_ERR_RCVCONSTR_F, "rcv_constraint_errors" },
		{ IB_PC_COUNTER_SELECT2_F, "counter_select2" },
		{ IB_PC_ERR_LOCALINTEG_F, "local_link_integrity_errors" },
		{ IB_PC_ERR_EXCESS_OVR_F, "excessive_buffer_overrun_errors" },
		{ IB_PC_VL15_DROPPED_F, "vl15_dropped" },
		{ IB_PC_XMT_BYTES_F, "xmit_data" },
		{ IB_PC_RCV_BYTES_F, "rcv_data" },
		{ IB_PC_XMT_PKTS_F, "xmit_packets" },
		{ IB_PC_RCV_PKTS_F, "rcv_packets" },
		{ IB_PC_XMT_WAIT_F, "xmit_wait" },
	};

	COMPARE_SOME(wire_port_counters_layout, pairs);
}

CASE(port_counters_extended_are_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_PC_EXT_PORT_SELECT_F, "port_select" },
		{ IB_PC_EXT_COUNTER_SELECT_F, "counter_select" },
		{ IB_PC_EXT_COUNTER_SELECT2_F, "counter_select2" },
		{ IB_PC_EXT_XMT_BYTES_F, "xmit_data" },
		{ IB_PC_EXT_RCV_BYTES_F, "rcv_data" },
		{ IB_PC_EXT_XMT_PKTS_F, "xmit_packets" },
		{ IB_PC_EXT_RCV_PKTS_F, "rcv_packets" },
		{ IB_PC_EXT_XMT_UPKTS_F, "unicast_xmit_packets" },
		{ IB_PC_EXT_RCV_UPKTS_F, "unicast_rcv_packets" },
		{ IB_PC_EXT_XMT_MPKTS_F, "multicast_xmit_packets" },
		{ IB_PC_EXT_RCV_MPKTS_F, "multicast_rcv_packets" },
		{ IB_PC_EXT_ERR_SYM_F, "symbol_errors" },
		{ IB_PC_EXT_LINK_RECOVERS_F, "link_error_recovery" },
		{ IB_PC_EXT_LINK_DOWNED_F, "link_downed" },
		{ IB_PC_EXT_ERR_RCV_F, "rcv_errors" },
		{ IB_PC_EXT_ERR_PHYSRCV_F, "rcv_remote_physical_errors" },
		{ IB_PC_EXT_ERR_SWITCH_REL_F, "rcv_switch_relay_errors" },
		{ IB_PC_EXT_XMT_DISCARDS_F, "xmit_discards" },
		{ IB_PC_EXT_ERR_XMTCONSTR_F, "xmit_constraint_errors" },
		{ IB_PC_EXT_ERR_RCVCONSTR_F, "rcv_constraint_errors" },
		{ IB_PC_EXT_ERR_LOCALINTEG_F, "local_link_integrity_errors" },
		{ IB_PC_EXT_ERR_EXCESS_OVR_F, "excessive_buffer_overrun_errors" },
		{ IB_PC_EXT_VL15_DROPPED_F, "vl15_dropped" },
		{ IB_PC_EXT_XMT_WAIT_F, "xmit_wait" },
		{ IB_PC_EXT_QP1_DROP_F, "qp1_dropped" },
	};

	COMPARE(wire_port_counters_extended_layout, pairs);
}

CASE(samples_are_as_in_libibmad)
{
	static const struct pair control[] = {
		{ IB_PSC_OPCODE_F, "op_code" },
		{ IB_PSC_PORT_SELECT_F, "port_select" },
		{ IB_PSC_TICK_F, "tick" },
		{ IB_PSC_COUNTER_WIDTH_F, "counter_width" },
		{ IB_PSC_COUNTER_MASK0_F, "counter_mask_0" },
		{ IB_PSC_COUNTER_MASKS1TO9_F, "counter_masks_1_9" },
		{ IB_PSC_COUNTER_MASKS10TO14_F, "counter_masks_10_14" },
		{ IB_PSC_SAMPLE_MECHS_F, "sample_mechanisms" },
		{ IB_PSC_SAMPLE_STATUS_F, "sample_status" },
		{ IB_PSC_OPTION_MASK_F, "option_mask" },
		{ IB_PSC_VENDOR_MASK_F, "vendor_mask" },
		{ IB_PSC_SAMPLE_START_F, "sample_start" },
		{ IB_PSC_SAMPLE_INTVL_F, "sample_interval" },
		{ IB_PSC_TAG_F, "tag" },
		{ IB_PSC_SAMPLES_ONLY_OPT_MASK_F, "samples_only_option_mask" },
	};
	static const struct pair result[] = {
		{ IB_PSR_TAG_F, "tag" },
		{ IB_PSR_SAMPLE_STATUS_F, "sample_status" },
	};

	COMPARE_SOME(wire_port_samples_control_layout, control);
	COMPARE_SOME(wire_port_samples_result_layout, result);
}

CASE(mcmember_is_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_SA_MCM_MGID_F, "mgid" },
		{ IB_SA_MCM_PORTGID_F, "port_gid" },
		{ IB_SA_MCM_QKEY_F, "qkey" },
		{ IB_SA_MCM_MLID_F, "mlid" },
		{ IB_SA_MCM_SL_F, "sl" },
		{ IB_SA_MCM_MTU_F, "mtu" },
		{ IB_SA_MCM_RATE_F, "rate" },
		{ IB_SA_MCM_TCLASS_F, "tclass" },
		{ IB_SA_MCM_PKEY_F, "pkey" },
		{ IB_SA_MCM_FLOW_LABEL_F, "flow_label" },
		{ IB_SA_MCM_JOIN_STATE_F, "join_state" },
		{ IB_SA_MCM_PROXY_JOIN_F, "proxy_join" },
	};

	COMPARE_SOME(wire_mcmember_layout, pairs);
}

CASE(path_record_is_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_SA_PR_DGID_F, "dgid" }, { IB_SA_PR_SGID_F, "sgid" },
		{ IB_SA_PR_DLID_F, "dlid" }, { IB_SA_PR_SLID_F, "slid" },
		{ IB_SA_PR_SL_F, "sl" },     { IB_SA_PR_NPATH_F, "numb_path" },
	};

	COMPARE_SOME(wire_path_record_layout, pairs);
}

CASE(multipath_record_is_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_SA_MP_NPATH_F, "numb_path" },
		{ IB_SA_MP_NSRC_F, "sgid_count" },
		{ IB_SA_MP_NDEST_F, "dgid_count" },
	};

	COMPARE_SOME(wire_multipath_record_layout, pairs);
}

CASE(service_record_is_as_in_libibmad)
{
	static const struct pair pairs[] = {
		{ IB_SA_SR_ID_F, "id" },     { IB_SA_SR_GID_F, "gid" },
		{ IB_SA_SR_PKEY_F, "pkey" }, { IB_SA_SR_LEASE_F, "lease" },
		{ IB_SA_SR_KEY_F, "key" },   { IB_SA_SR_NAME_F, "name" },
	};

	COMPARE_SOME(wire_service_record_layout, pairs);
}
