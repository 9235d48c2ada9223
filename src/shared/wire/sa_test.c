/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The MAD of subnet administration, MCMemberRecord and their numbers against libibumad's;
 * and the GIDs of a MultiPathRecord, however many it claims.
 */
#include <harness.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_sa_mcm.h>

#include "base/util.h"
#include "wire/sa_records.h"

CASE(the_mad_is_as_in_libibumad)
{
	static const struct wire_sa_mad mad = { .rmpp = { .version = 1,
		                                          .type = 2,
		                                          .resp_time = 0x1F,
		                                          .flags = UMAD_RMPP_FLAG_ACTIVE,
		                                          .status = 3,
		                                          .data1 = 0x12345678,
		                                          .data2 = 0x9ABCDEF0 },
		                                .sm_key = 0x0102030405060708,
		                                .attribute_offset = 14,
		                                .component_mask = 0x1122334455667788,
		                                .data = { 7, [SA_DATA_BYTES - 1] = 8 } };
	struct umad_sa_packet theirs;
	uint64_t sm_key;

	assert_int_equal(wire_sa_mad_bytes, sizeof(theirs));
	assert_int_equal(SA_DATA_AT, offsetof(struct umad_sa_packet, data));
	wire_sa_mad_encode(&mad, (uint8_t *)&theirs);
	memcpy(&sm_key, theirs.sm_key, sizeof(sm_key));
	assert_int_equal(theirs.rmpp_hdr.rmpp_version, mad.rmpp.version);
	assert_int_equal(theirs.rmpp_hdr.rmpp_type, mad.rmpp.type);
	assert_int_equal(theirs.rmpp_hdr.rmpp_rtime_flags, 0x1F << 3 | UMAD_RMPP_FLAG_ACTIVE);
	assert_int_equal(theirs.rmpp_hdr.rmpp_status, mad.rmpp.status);
	assert_int_equal(be32toh(theirs.rmpp_hdr.seg_num), mad.rmpp.data1);
	assert_int_equal(be32toh(theirs.rmpp_hdr.paylen_newwin), mad.rmpp.data2);
	assert_true(be64toh(sm_key) == mad.sm_key);
	assert_int_equal(be16toh(theirs.attr_offset), mad.attribute_offset);
	assert_true(be64toh(theirs.comp_mask) == mad.component_mask);
	assert_memory_equal(theirs.data, mad.data, SA_DATA_BYTES);
}

CASE(mcmember_is_as_in_libibumad)
{
	static const struct wire_mcmember rec = { .mgid = { { 0xFF, 0x12, [15] = 1 } },
		                                  .port_gid = { { 0xFE, 0x80, [15] = 2 } },
		                                  .qkey = 0x0B1B,
		                                  .mlid = 0xC001,
		                                  .mtu_selector = SA_EXACTLY,
		                                  .mtu = 4,
		                                  .tclass = 5,
		                                  .pkey = 0xFFFF,
		                                  .rate_selector = SA_LESS,
		                                  .rate = 3,
		                                  .life_selector = SA_LARGEST,
		                                  .life = 18,
		                                  .sl = 6,
		                                  .flow_label = 0xABCDE,
		                                  .hop_limit = 64,
		                                  .scope = UMAD_SA_MCM_ADDR_SCOPE_LINK_LOCAL,
		                                  .join_state = IB_JOIN_SEND_ONLY_FULL,
		                                  .proxy_join = 1 };
	struct umad_sa_mcmember_record theirs;
	uint8_t sl, hop, scope, join_state;
	uint32_t flow;

	assert_int_equal(wire_mcmember_bytes, sizeof(theirs));
	wire_mcmember_encode(&rec, (uint8_t *)&theirs);
	assert_memory_equal(theirs.mgid, rec.mgid.raw, 16);
	assert_memory_equal(theirs.portgid, rec.port_gid.raw, 16);
	assert_int_equal(be32toh(theirs.qkey), rec.qkey);
	assert_int_equal(be16toh(theirs.mlid), rec.mlid);
	assert_int_equal(theirs.mtu, umad_sa_set_rate_mtu_or_life(UMAD_SA_SELECTOR_EXACTLY, 4));
	assert_int_equal(theirs.tclass, rec.tclass);
	assert_int_equal(be16toh(theirs.pkey), rec.pkey);
	assert_int_equal(theirs.rate, umad_sa_set_rate_mtu_or_life(UMAD_SA_SELECTOR_LESS_THAN, 3));
	assert_int_equal(theirs.pkt_life,
	                 umad_sa_set_rate_mtu_or_life(UMAD_SA_SELECTOR_SMALLEST_AVAIL, 18));
	umad_sa_mcm_get_sl_flow_hop(theirs.sl_flow_hop, &sl, &flow, &hop);
	assert_int_equal(sl, rec.sl);
	assert_int_equal(flow, rec.flow_label);
	assert_int_equal(hop, rec.hop_limit);
	umad_sa_mcm_get_scope_state(theirs.scope_state, &scope, &join_state);
	assert_int_equal(scope, rec.scope);
	assert_int_equal(join_state, UMAD_SA_MCM_JOIN_STATE_SEND_ONLY_FULL_MEMBER);
	assert_true(umad_sa_mcm_get_proxy_join(&theirs));
}

CASE(the_numbers_are_as_in_libibumad)
{
	static const struct {
		unsigned ours, theirs;
	} row[] = {
		{ SA_ATTR_NODE, UMAD_SA_ATTR_NODE_REC },
		{ SA_ATTR_PORT_INFO, UMAD_SA_ATTR_PORT_INFO_REC },
		{ SA_ATTR_SL_TO_VL, UMAD_SA_ATTR_SLVL_REC },
		{ SA_ATTR_SWITCH_INFO, UMAD_SA_ATTR_SWITCH_INFO_REC },
		{ SA_ATTR_LINEAR_FT, UMAD_SA_ATTR_LINEAR_FT_REC },
		{ SA_ATTR_RANDOM_FT, UMAD_SA_ATTR_RANDOM_FT_REC },
		{ SA_ATTR_MULTICAST_FT, UMAD_SA_ATTR_MCAST_FT_REC },
		{ SA_ATTR_SM_INFO, UMAD_SA_ATTR_SM_INFO_REC },
		{ SA_ATTR_LINK, UMAD_SA_ATTR_LINK_REC },
		{ SA_ATTR_GUID_INFO, UMAD_SA_ATTR_GUID_INFO_REC },
		{ SA_ATTR_SERVICE, UMAD_SA_ATTR_SERVICE_REC },
		{ SA_ATTR_PKEY_TABLE, UMAD_SA_ATTR_PKEY_TABLE_REC },
		{ SA_ATTR_PATH, UMAD_SA_ATTR_PATH_REC },
		{ SA_ATTR_VL_ARBITRATION, UMAD_SA_ATTR_VL_ARB_REC },
		{ SA_ATTR_MCMEMBER, UMAD_SA_ATTR_MCMEMBER_REC },
		{ SA_ATTR_TRACE, UMAD_SA_ATTR_TRACE_REC },
		{ SA_ATTR_MULTIPATH, UMAD_SA_ATTR_MULTI_PATH_REC },
		{ SA_ATTR_SERVICE_ASSOCIATION, UMAD_SA_ATTR_SERVICE_ASSOC_REC },
		{ SA_ATTR_INFORM_INFO_RECORD, UMAD_SA_ATTR_INFORM_INFO_REC },
		{ SA_NO_RESOURCES, UMAD_SA_STATUS_NO_RESOURCES << 8 },
		{ SA_REQ_INVALID, UMAD_SA_STATUS_REQ_INVALID << 8 },
		{ SA_NO_RECORDS, UMAD_SA_STATUS_NO_RECORDS << 8 },
		{ SA_TOO_MANY_RECORDS, UMAD_SA_STATUS_TOO_MANY_RECORDS << 8 },
		{ SA_REQ_INVALID_GID, UMAD_SA_STATUS_INVALID_GID << 8 },
		{ SA_INSUFFICIENT_COMPONENTS, UMAD_SA_STATUS_INSUF_COMPS << 8 },
		{ SA_REQ_DENIED, UMAD_SA_STATUS_REQ_DENIED << 8 },
		{ SA_PRIORITY_SUGGESTED, UMAD_SA_STATUS_PRI_SUGGESTED << 8 },
		{ SA_CAP_OPTIONAL_RECORDS, UMAD_SA_CAP_MASK_IS_SUBNET_OPT_REC_SUP },
		{ SA_CAP_UD_MULTICAST, UMAD_SA_CAP_MASK_IS_UD_MCAST_SUP },
		{ SA_CAP_MULTIPATH, UMAD_SA_CAP_MASK_IS_MULTIPATH_SUP },
		{ SA_CAP_REINIT, UMAD_SA_CAP_MASK_IS_REINIT_SUP },
		{ SA_CAP_GID_SCOPED_MULTIPATH, UMAD_SA_CAP_MASK_IS_GID_SCOPED_MULTIPATH_SUP },
		{ SA_CAP_PORT_INFO_CAPMASK, UMAD_SA_CAP_MASK_IS_PORTINFO_CAP_MASK_MATCH_SUP },
		{ SA_CAP2_QOS, UMAD_SA_CAP_MASK2_IS_QOS_SUP },
		{ SA_CAP2_REVERSE_PATH_PKEY, UMAD_SA_CAP_MASK2_IS_REV_PATH_PKEY_MEM_BIT_SUP },
		{ SA_CAP2_MULTICAST_FDB_TOP, UMAD_SA_CAP_MASK2_IS_MCAST_TOP_SUP },
		{ SA_CAP2_FULL_PORT_INFO, UMAD_SA_CAP_MASK2_IS_FULL_PORTINFO_REC_SUP },
		{ SA_CAP2_EXTENDED_SPEEDS, UMAD_SA_CAP_MASK2_IS_EXT_SPEEDS_SUP },
		{ SA_CAP2_PORT_INFO_CAPMASK2, UMAD_SA_CAP_MASK2_IS_PORT_INFO_CAPMASK2_MATCH_SUP },
	};

	for (size_t i = 0; EACH_ROW(i, row); i++)
		assert_int_equal(row[i].ours, row[i].theirs);
}

CASE(a_multipath_record_has_its_gids_behind_it)
{
	struct wire_multipath_record record = { .sgid_count = 2, .dgid_count = 1 };
	uint8_t in[wire_multipath_record_bytes + 3 * 16];

	wire_multipath_record_encode(&record, in);
	assert_ptr_equal(wire_multipath_gids(in, sizeof(in)), in + wire_multipath_record_bytes);
}

CASE(a_multipath_record_that_claims_more_gids_than_came_has_none)
{
	struct wire_multipath_record record = { .sgid_count = 255, .dgid_count = 255 };
	uint8_t in[SA_DATA_BYTES] = { 0 };

	wire_multipath_record_encode(&record, in);
	assert_null(wire_multipath_gids(in, sizeof(in)));
	record = (struct wire_multipath_record){ .sgid_count = 11 };
	wire_multipath_record_encode(&record, in);
	assert_non_null(wire_multipath_gids(in, sizeof(in)));
	assert_null(wire_multipath_gids(in, sizeof(in) - 1));
	assert_null(wire_multipath_gids(in, wire_multipath_record_bytes - 1));
}
