/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SA's responses on a fabric that the embedded subnet manager has brought up: every kind of
 * record, component masks and selectors, and access rights.
 */
#include <harness.h>

#include "fabric/model/lanes.h"
#include "fabric/agents/link.h"
#include "subnet/partitions.h"
#include "subnet/sa_groups.h"
#include "subnet/testing_sa.h"
#include "wire/mgid.h"

/* ---- nodes ---- */

CASE_WITH(every_node_has_a_record, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(TABLE(e, SA_ATTR_NODE, node_record, 0, 0), HOSTS + 1);
	assert_int_equal(e->response.record_bytes, 112);
	assert_int_equal(e->response.bytes, (HOSTS + 1) * 112);
	assert_int_equal(TABLE(e, SA_ATTR_NODE, node_record, SA_NR(info.node_type),
	                       .info.node_type = NODE_TYPE_SWITCH),
	                 1);
	assert_true(RECORD(e, node_record, 0).info.node_guid == e->sw->guid);
	assert_int_equal(RECORD(e, node_record, 0).lid, e->sw->port[0].lid);
}

CASE_WITH(a_node_is_found_by_lid_guid_and_description, setup, teardown)
{
	struct env *e = *state;
	const struct fabric_port *p = e->f->hca_port[2];
	struct wire_node_record r;

	assert_int_equal(GET(e, SA_ATTR_NODE, node_record, SA_NR(lid), .lid = p->lid), SA_OK);
	r = RECORD(e, node_record, 0);
	assert_true(r.info.node_guid == p->node->guid && r.info.port_guid == p->guid);
	assert_int_equal(
	        GET(e, SA_ATTR_NODE, node_record, SA_NR(info.port_guid), .info.port_guid = p->guid),
	        SA_OK);
	assert_int_equal(RECORD(e, node_record, 0).lid, p->lid);
	prepare(e, MAD_GET, SA_ATTR_NODE);
	e->mad.component_mask = SA_NR(description);
	wire_node_record_encode(&r, e->mad.data);
	assert_int_equal(serve(e), SA_OK);
	assert_int_equal(e->response.n, 1);
}

CASE_WITH(a_get_wants_exactly_one_record, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(GET(e, SA_ATTR_NODE, node_record, 0, 0), SA_TOO_MANY_RECORDS);
	assert_int_equal(e->response.n, 0);
	assert_null(e->response.records);
	assert_int_equal(GET(e, SA_ATTR_NODE, node_record, SA_NR(lid), .lid = 0xABC),
	                 SA_NO_RECORDS);
	assert_int_equal(e->response.method, MAD_GET_RESP);
}

CASE_WITH(a_table_may_be_empty, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(TABLE(e, SA_ATTR_NODE, node_record, SA_NR(lid), .lid = 0xABC), 0);
}

CASE_WITH(every_port_has_a_port_info, setup, teardown)
{
	struct env *e = *state;
	struct wire_port_info_record r;

	assert_int_equal(TABLE(e, SA_ATTR_PORT_INFO, port_info_record, 0, 0),
	                 HOSTS + e->sw->n_ports + 1);
	assert_int_equal(GET(e, SA_ATTR_PORT_INFO, port_info_record, SA_PIR(lid) | SA_PIR(port_num),
	                     .lid = e->sw->port[0].lid, .port_num = 2),
	                 SA_OK);
	r = RECORD(e, port_info_record, 0);
	assert_int_equal(r.port_num, 2);
	assert_int_equal(r.info.port_state, IB_PORT_ACTIVE);
	assert_int_equal(GET(e, SA_ATTR_PORT_INFO, port_info_record, SA_PIR(info.lid),
	                     .info.lid = lid(e, 1)),
	                 SA_OK);
	assert_int_equal(RECORD(e, port_info_record, 0).lid, lid(e, 1));
}

CASE_WITH(the_port_of_the_subnet_manager_is_found_by_its_capability, setup, teardown)
{
	struct env *e = *state;

	prepare(e, MAD_GET_TABLE, SA_ATTR_PORT_INFO);
	e->mad.mad.attribute_modifier = 1u << 31; /* some of the bits, not all */
	assert_int_equal(ASK(e, port_info_record, SA_PIR(info.capability_mask),
	                     .info.capability_mask = PORT_CAP_SM),
	                 SA_OK);
	assert_int_equal(e->response.n, 1);
	assert_int_equal(RECORD(e, port_info_record, 0).lid, lid(e, 0));
	assert_int_equal(TABLE(e, SA_ATTR_PORT_INFO, port_info_record, SA_PIR(info.capability_mask),
	                       .info.capability_mask = PORT_CAP_SM),
	                 0);
}

CASE_WITH(capability_mask2_matches_bit_by_bit, setup, teardown)
{
	struct env *e = *state;

	e->f->hca_port[1]->width_built = FABRIC_WIDTH_2X;
	prepare(e, MAD_GET_TABLE, SA_ATTR_PORT_INFO);
	e->mad.mad.attribute_modifier = 1u << 31;
	assert_int_equal(
	        ASK(e, port_info_record, SA_PIR(info.capability_mask2) | SA_PIR(info.lid),
	            .info = { .capability_mask2 = PORT_CAP2_LINK_WIDTH_2X, .lid = lid(e, 1) }),
	        SA_OK);
	assert_int_equal(e->response.n, 1);
	assert_int_equal(RECORD(e, port_info_record, 0).lid, lid(e, 1));
	assert_int_equal(TABLE(e, SA_ATTR_PORT_INFO, port_info_record,
	                       SA_PIR(info.capability_mask2),
	                       .info.capability_mask2 = PORT_CAP2_LINK_WIDTH_2X),
	                 0);
}

CASE_WITH(only_trusted_requests_see_the_m_key, setup, teardown)
{
	struct env *e = *state;

	e->f->hca_port[1]->m_key = 0x1234;
	for (uint64_t key = 0; key <= SA_KEY; key++) {
		prepare(e, MAD_GET, SA_ATTR_PORT_INFO);
		e->mad.sm_key = key;
		assert_int_equal(ASK(e, port_info_record, SA_PIR(lid), .lid = lid(e, 1)), SA_OK);
		assert_true(RECORD(e, port_info_record, 0).info.m_key == (key ? 0x1234 : 0));
	}
}

CASE_WITH(switches_have_switch_infos_and_tables, setup, teardown)
{
	struct env *e = *state;
	struct wire_linear_ft_record lft;
	struct wire_switch_info_record r;

	assert_int_equal(GET(e, SA_ATTR_SWITCH_INFO, switch_info_record, 0, 0), SA_OK);
	r = RECORD(e, switch_info_record, 0);
	assert_int_equal(r.lid, e->sw->port[0].lid);
	assert_int_equal(r.info.linear_fdb_top, HOSTS + 1);
	assert_int_equal(GET(e, SA_ATTR_LINEAR_FT, linear_ft_record, SA_LFTR(lid) | SA_LFTR(block),
	                     .lid = r.lid, .block = 0),
	                 SA_OK);
	lft = RECORD(e, linear_ft_record, 0);
	for (unsigned i = 0; i < HOSTS; i++)
		assert_int_equal(lft.table.port[lid(e, i)], e->f->hca_port[i]->peer->num);
	assert_int_equal(lft.table.port[r.lid], 0);
}

CASE_WITH(the_multicast_tables_show_who_joined, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = { .port_gid = gid(e, 2), .join_state = IB_JOIN_FULL };
	struct wire_multicast_ft_record mft;

	wire_mgid_broadcast(&rec.mgid, IB_PKEY_DEFAULT);
	assert_int_equal(sa_mcmember_set(e->sa, JOIN, &rec), SA_OK);
	assert_int_equal(GET(e, SA_ATTR_MULTICAST_FT, multicast_ft_record,
	                     SA_MFTR(lid) | SA_MFTR(position) | SA_MFTR(block),
	                     .lid = e->sw->port[0].lid,
	                     .block = (uint16_t)((rec.mlid - IB_LID_MCAST_FIRST) / MFT_BLOCK)),
	                 SA_OK);
	mft = RECORD(e, multicast_ft_record, 0);
	assert_int_equal(mft.table.port_mask[(rec.mlid - IB_LID_MCAST_FIRST) % MFT_BLOCK],
	                 1 << e->f->hca_port[2]->peer->num);
}

CASE_WITH(links_are_listed_from_both_ends, setup, teardown)
{
	struct env *e = *state;
	struct wire_link_record r;

	assert_int_equal(TABLE(e, SA_ATTR_LINK, link_record, 0, 0), 2 * HOSTS);
	assert_int_equal(GET(e, SA_ATTR_LINK, link_record, SA_LR(from_lid), .from_lid = lid(e, 1)),
	                 SA_OK);
	r = RECORD(e, link_record, 0);
	assert_int_equal(r.from_port, 1);
	assert_int_equal(r.to_lid, e->sw->port[0].lid);
	assert_int_equal(r.to_port, e->f->hca_port[1]->peer->num);
	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[1], false), 0);
	assert_int_equal(TABLE(e, SA_ATTR_LINK, link_record, 0, 0), 2 * HOSTS - 2);
}

CASE_WITH(guids_and_lanes_are_listed_by_port, setup, teardown)
{
	struct env *e = *state;
	unsigned n = e->sw->n_ports + 1;

	assert_int_equal(TABLE(e, SA_ATTR_GUID_INFO, guid_info_record, 0, 0),
	                 HOSTS * SHM_IB_GIDS / GUID_BLOCK + 1);
	assert_int_equal(TABLE(e, SA_ATTR_SL_TO_VL, sl_to_vl_record, 0, 0), HOSTS + n * n);
	assert_int_equal(TABLE(e, SA_ATTR_VL_ARBITRATION, vl_arb_record, 0, 0), 4 * (HOSTS + n));
	assert_int_equal(GET(e, SA_ATTR_GUID_INFO, guid_info_record, SA_GIR(lid) | SA_GIR(block),
	                     .lid = lid(e, 3)),
	                 SA_OK);
	assert_true(RECORD(e, guid_info_record, 0).table.guid[0] == e->f->hca_port[3]->guid);
	assert_int_equal(TABLE(e, SA_ATTR_VL_ARBITRATION, vl_arb_record,
	                       SA_VLAR(lid) | SA_VLAR(block), .lid = lid(e, 3), .block = 2),
	                 1);
	assert_int_equal(TABLE(e, SA_ATTR_SL_TO_VL, sl_to_vl_record,
	                       SA_SLVL(lid) | SA_SLVL(in_port) | SA_SLVL(out_port),
	                       .lid = e->sw->port[0].lid, .in_port = 2, .out_port = 3),
	                 1);
	assert_int_equal(TABLE(e, SA_ATTR_SL_TO_VL, sl_to_vl_record,
	                       SA_SLVL(lid) | SA_SLVL(in_port) | SA_SLVL(out_port),
	                       .lid = e->sw->port[0].lid, .in_port = 2, .out_port = (uint8_t)n),
	                 0);
	assert_int_equal(
	        TABLE(e, SA_ATTR_SL_TO_VL, sl_to_vl_record, SA_SLVL(in_port), .in_port = 0x81),
	        HOSTS); /* a channel adapter's has no port numbers */
}

/* ---- GUIDs that ports ask for ---- */

/* Host @asker asks for the GUIDs of host 1's block that the mask names; the status. */
static uint16_t ask_guids(struct env *e, uint8_t method, unsigned asker, uint64_t guids,
                          const struct wire_guid_info_record *r)
{
	prepare(e, method, SA_ATTR_GUID_INFO);
	e->request.slid = lid(e, asker);
	e->mad.component_mask = SA_GIR(lid) | SA_GIR(block) | guids;
	wire_guid_info_record_encode(r, e->mad.data);
	return serve(e);
}

static struct fabric_port *who_has(struct env *e, uint64_t guid)
{
	struct ib_gid g;

	fabric_gid_make(e->f, guid, &g);
	return fabric_port_by_gid(e->f, &g);
}

CASE_WITH(a_port_gets_the_guids_that_it_asks_for, setup, teardown)
{
	struct env *e = *state;
	struct wire_guid_info_record r = { .lid = lid(e, 1), .table = { { 0, 0x1234, 0x5678 } } };

	assert_int_equal(ask_guids(e, MAD_SET, 1, SA_GIR(table.guid[1]), &r), SA_OK);
	assert_true(RECORD(e, guid_info_record, 0).table.guid[0] == e->f->hca_port[1]->guid);
	assert_true(RECORD(e, guid_info_record, 0).table.guid[1] == 0x1234);
	assert_true(RECORD(e, guid_info_record, 0).table.guid[2] == 0); /* not in the mask */
	assert_ptr_equal(who_has(e, 0x1234), e->f->hca_port[1]);
	assert_int_equal(ask_guids(e, MAD_DELETE, 1, SA_GIR(table.guid[1]), &r), SA_OK);
	assert_int_equal(e->response.method, MAD_DELETE_RESP);
	assert_true(RECORD(e, guid_info_record, 0).table.guid[1] == 0);
	assert_null(who_has(e, 0x1234));
}

CASE_WITH(for_a_guid_of_0_one_is_chosen, setup, teardown)
{
	struct env *e = *state;
	struct wire_guid_info_record r = { .lid = lid(e, 1), .block = 1 };
	uint64_t first, second;

	assert_int_equal(
	        ask_guids(e, MAD_SET, 1, SA_GIR(table.guid[0]) | SA_GIR(table.guid[7]), &r), SA_OK);
	first = RECORD(e, guid_info_record, 0).table.guid[0];
	second = RECORD(e, guid_info_record, 0).table.guid[7];
	assert_true(first && second && first != second);
	assert_ptr_equal(who_has(e, first), e->f->hca_port[1]);
	/* once more: it keeps what it has */
	assert_int_equal(ask_guids(e, MAD_SET, 1, SA_GIR(table.guid[0]), &r), SA_OK);
	assert_true(RECORD(e, guid_info_record, 0).table.guid[0] == first);
}

CASE_WITH(a_guid_that_somebody_has_is_not_given, setup, teardown)
{
	struct env *e = *state;
	struct wire_guid_info_record r = { .lid = lid(e, 1),
		                           .table = { { 0, e->f->hca_port[2]->guid } } };

	assert_int_equal(ask_guids(e, MAD_SET, 1, SA_GIR(table.guid[1]), &r), SA_OK);
	assert_true(RECORD(e, guid_info_record, 0).table.guid[1] == 0);
	assert_ptr_equal(who_has(e, e->f->hca_port[2]->guid), e->f->hca_port[2]);
}

CASE_WITH(what_cannot_be_done_to_guids_says_why, setup, teardown)
{
	struct env *e = *state;
	struct wire_guid_info_record r = { .lid = lid(e, 1), .table = { { 0, 0x1234 } } };

	assert_int_equal(ask_guids(e, MAD_SET, 2, SA_GIR(table.guid[1]), &r), SA_REQ_DENIED);
	e->mad.sm_key = SA_KEY;
	assert_int_equal(serve(e), SA_OK);
	assert_int_equal(ask_guids(e, MAD_SET, 1, SA_GIR(table.guid[0]), &r), SA_REQ_INVALID);
	assert_int_equal(ask_guids(e, MAD_DELETE, 1, SA_GIR(table.guid[0]), &r), SA_REQ_INVALID);
	e->mad.component_mask = SA_GIR(lid);
	assert_int_equal(serve(e), SA_INSUFFICIENT_COMPONENTS);
	r.block = SHM_GIDS / GUID_BLOCK;
	assert_int_equal(ask_guids(e, MAD_SET, 1, SA_GIR(table.guid[1]), &r), SA_NO_RECORDS);
	r = (struct wire_guid_info_record){ .lid = 0xBFFF };
	assert_int_equal(ask_guids(e, MAD_SET, 1, SA_GIR(table.guid[1]), &r), SA_NO_RECORDS);
}

CASE_WITH(only_trusted_requests_see_pkeys, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(
	        GET(e, SA_ATTR_PKEY_TABLE, pkey_table_record, SA_PKTR(lid), .lid = lid(e, 3)),
	        SA_REQ_INVALID);
	e->mad.sm_key = SA_KEY;
	assert_int_equal(serve(e), SA_OK);
	assert_int_equal(RECORD(e, pkey_table_record, 0).table.pkey[0], IB_PKEY_DEFAULT);
	assert_int_equal(RECORD(e, pkey_table_record, 0).port_num, 1);
	GET(e, SA_ATTR_PKEY_TABLE, pkey_table_record, SA_PKTR(lid) | SA_PKTR(port_num),
	    .lid = lid(e, 3), .port_num = 17); /* port numbers are a switch's only */
	e->mad.sm_key = SA_KEY;
	assert_int_equal(serve(e), SA_OK);
	prepare(e, MAD_GET_TABLE, SA_ATTR_PKEY_TABLE);
	e->mad.sm_key = SA_KEY;
	assert_int_equal(serve(e), SA_OK);
	assert_int_equal(e->response.n, HOSTS + e->sw->n_ports + 1);
}

CASE_WITH(there_is_one_subnet_manager_where_it_is, setup, teardown)
{
	struct env *e = *state;

	sm_move(e->sm);
	assert_int_equal(GET(e, SA_ATTR_SM_INFO, sm_info_record, 0, 0), SA_OK);
	assert_int_equal(RECORD(e, sm_info_record, 0).lid, lid(e, 1));
	assert_true(RECORD(e, sm_info_record, 0).info.guid == e->f->hca_port[1]->guid);
	assert_int_equal(RECORD(e, sm_info_record, 0).info.sm_state, SM_MASTER);
}

CASE_WITH(it_says_what_it_can, setup, teardown)
{
	struct env *e = *state;
	struct wire_class_port_info c;

	assert_int_equal(GET(e, SA_ATTR_CLASS_PORT_INFO, class_port_info, 0, 0), SA_OK);
	c = RECORD(e, class_port_info, 0);
	assert_int_equal(c.class_version, MAD_VERSION_SUBN_ADM);
	assert_true(c.capability_mask & SA_CAP_UD_MULTICAST);
	assert_true(c.capability_mask2 & SA_CAP2_SEND_ONLY_FULL);
	prepare(e, MAD_GET_TABLE, SA_ATTR_CLASS_PORT_INFO);
	assert_int_equal(serve(e), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
}

/* ---- paths ---- */

CASE_WITH(between_all_ports_there_are_paths, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(TABLE(e, SA_ATTR_PATH, path_record, 0, 0), (HOSTS + 1) * (HOSTS + 1));
	for (unsigned a = 0; a < HOSTS; a++) {
		assert_int_equal(
		        TABLE(e, SA_ATTR_PATH, path_record, SA_PR(slid), .slid = lid(e, a)),
		        HOSTS + 1);
		for (unsigned b = 0; b < HOSTS; b++) {
			struct wire_path_record r;

			assert_int_equal(GET(e, SA_ATTR_PATH, path_record,
			                     SA_PR(sgid) | SA_PR(dgid), .sgid = gid(e, a),
			                     .dgid = gid(e, b)),
			                 SA_OK);
			r = RECORD(e, path_record, 0);
			assert_int_equal(r.slid, lid(e, a));
			assert_int_equal(r.dlid, lid(e, b));
			assert_int_equal(r.pkey, IB_PKEY_DEFAULT);
			assert_int_equal(r.mtu, IBV_MTU_4096);
			assert_int_equal(r.rate, IBV_RATE_100_GBPS);
			assert_int_equal(r.mtu_selector, SA_EXACTLY);
			assert_int_equal(r.reversible, 1);
			assert_memory_equal(&r.sgid, &shm_port_at(e->f->region, a)->gid[0], 16);
			assert_memory_equal(&r.dgid, &shm_port_at(e->f->region, b)->gid[0], 16);
		}
	}
}

CASE_WITH(a_get_without_a_source_has_the_first_path, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(dlid), .dlid = lid(e, 2)), SA_OK);
	assert_int_equal(e->response.n, 1);
	assert_int_equal(RECORD(e, path_record, 0).dlid, lid(e, 2));
}

/* A path can be used with a smaller MTU than it has. */
CASE_WITH(an_mtu_is_as_it_is_asked_for, setup, teardown)
{
	static const struct {
		uint8_t selector, mtu, got;
	} cases[] = {
		{ SA_GREATER, IBV_MTU_2048, IBV_MTU_4096 },
		{ SA_GREATER, IBV_MTU_4096, 0 },
		{ SA_LESS, IBV_MTU_4096, IBV_MTU_2048 },
		{ SA_LESS, IBV_MTU_512, IBV_MTU_256 },
		{ SA_LESS, IBV_MTU_256, 0 },
		{ SA_EXACTLY, IBV_MTU_4096, IBV_MTU_4096 },
		{ SA_EXACTLY, IBV_MTU_2048, IBV_MTU_2048 },
		{ SA_EXACTLY, IBV_MTU_256, IBV_MTU_256 },
		{ SA_EXACTLY, 6, 0 },
		{ SA_EXACTLY, 0, 0 },
		{ SA_LARGEST, IBV_MTU_256, IBV_MTU_4096 },
	};
	struct env *e = *state;

	for (size_t i = 0; EACH_ROW(i, cases); i++) {
		assert_int_equal(GET(e, SA_ATTR_PATH, path_record,
		                     SA_PR(slid) | SA_PR(dlid) | SA_PR(mtu) | SA_PR(mtu_selector),
		                     .slid = lid(e, 0), .dlid = lid(e, 1),
		                     .mtu_selector = cases[i].selector, .mtu = cases[i].mtu),
		                 cases[i].got ? SA_OK : SA_NO_RECORDS);
		if (cases[i].got)
			assert_int_equal(RECORD(e, path_record, 0).mtu, cases[i].got);
	}
	/* one of the pair says nothing */
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(slid) | SA_PR(dlid) | SA_PR(mtu),
	                     .slid = lid(e, 0), .dlid = lid(e, 1), .mtu = IBV_MTU_256),
	                 SA_OK);
	assert_int_equal(RECORD(e, path_record, 0).mtu, IBV_MTU_4096);
}

CASE_WITH(a_rate_is_as_it_is_asked_for, setup, teardown)
{
	static const struct {
		uint8_t selector, rate, got;
	} cases[] = {
		{ SA_EXACTLY, IBV_RATE_100_GBPS, IBV_RATE_100_GBPS },
		{ SA_EXACTLY, IBV_RATE_10_GBPS, IBV_RATE_10_GBPS },
		{ SA_EXACTLY, IBV_RATE_200_GBPS, 0 },
		{ SA_EXACTLY, 63, 0 },
		{ SA_LESS, IBV_RATE_2_5_GBPS, 0 },
		{ SA_LESS, IBV_RATE_5_GBPS, IBV_RATE_2_5_GBPS },
		{ SA_LESS, IBV_RATE_120_GBPS, IBV_RATE_100_GBPS },
	};
	struct env *e = *state;

	for (size_t i = 0; EACH_ROW(i, cases); i++) {
		assert_int_equal(GET(e, SA_ATTR_PATH, path_record,
		                     SA_PR(slid) | SA_PR(dlid) | SA_PR(rate) | SA_PR(rate_selector),
		                     .slid = lid(e, 0), .dlid = lid(e, 1),
		                     .rate_selector = cases[i].selector, .rate = cases[i].rate),
		                 cases[i].got ? SA_OK : SA_NO_RECORDS);
		if (cases[i].got)
			assert_int_equal(RECORD(e, path_record, 0).rate, cases[i].got);
	}
}

CASE_WITH(rates_are_compared_by_what_they_are, setup, teardown)
{
	struct env *e = *state;

	/* 14 Gbit/s has a greater number than 100, and 120 a smaller one */
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record,
	                     SA_PR(slid) | SA_PR(dlid) | SA_PR(rate) | SA_PR(rate_selector),
	                     .slid = lid(e, 0), .dlid = lid(e, 1), .rate_selector = SA_GREATER,
	                     .rate = IBV_RATE_120_GBPS),
	                 SA_NO_RECORDS);
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record,
	                     SA_PR(slid) | SA_PR(dlid) | SA_PR(rate) | SA_PR(rate_selector),
	                     .slid = lid(e, 0), .dlid = lid(e, 1), .rate_selector = SA_GREATER,
	                     .rate = IBV_RATE_56_GBPS),
	                 SA_OK);
}

CASE_WITH(a_path_is_as_fast_as_its_slowest_link, setup, teardown)
{
	static const struct {
		uint8_t width, speed, rate;
	} links[] = {
		{ FABRIC_WIDTH_1X, FABRIC_SPEED_SDR, IBV_RATE_2_5_GBPS },
		{ FABRIC_WIDTH_4X, FABRIC_SPEED_SDR, IBV_RATE_10_GBPS },
		{ FABRIC_WIDTH_4X, FABRIC_SPEED_DDR, IBV_RATE_20_GBPS },
		{ FABRIC_WIDTH_4X, FABRIC_SPEED_QDR, IBV_RATE_40_GBPS },
		{ FABRIC_WIDTH_4X, FABRIC_SPEED_FDR10, IBV_RATE_40_GBPS },
		{ FABRIC_WIDTH_4X, FABRIC_SPEED_FDR, IBV_RATE_56_GBPS },
		{ FABRIC_WIDTH_2X, FABRIC_SPEED_HDR, IBV_RATE_100_GBPS },
		{ FABRIC_WIDTH_4X, FABRIC_SPEED_HDR, IBV_RATE_100_GBPS }, /* the other link */
	};
	struct env *e = *state;

	for (size_t i = 0; EACH_ROW(i, links); i++) {
		struct fabric_port *p = e->f->hca_port[1]->peer;

		p->width = links[i].width;
		p->speed = links[i].speed;
		assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(slid) | SA_PR(dlid),
		                     .slid = lid(e, 0), .dlid = lid(e, 1)),
		                 SA_OK);
		assert_int_equal(RECORD(e, path_record, 0).rate, links[i].rate);
	}
}

CASE_WITH(switches_are_ends_of_paths, setup, teardown)
{
	struct env *e = *state;
	struct ib_gid sw;

	fabric_gid_make(e->f, e->sw->port[0].guid, &sw);
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(sgid) | SA_PR(dgid),
	                     .sgid = gid(e, 1), .dgid = sw),
	                 SA_OK);
	assert_int_equal(RECORD(e, path_record, 0).dlid, e->sw->port[0].lid);
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(slid) | SA_PR(dlid),
	                     .slid = e->sw->port[0].lid, .dlid = lid(e, 1)),
	                 SA_OK);
	assert_memory_equal(RECORD(e, path_record, 0).sgid.raw, sw.raw, 16);
}

CASE_WITH(unknown_ends_have_different_statuses, setup, teardown)
{
	struct env *e = *state;
	struct ib_gid none = { { 0xFE, 0x80, 1 } };

	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(dgid), .dgid = none),
	                 SA_REQ_INVALID_GID);
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(dlid), .dlid = 999),
	                 SA_NO_RECORDS);
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(dgid) | SA_PR(dlid),
	                     .dgid = gid(e, 1), .dlid = lid(e, 2)),
	                 SA_NO_RECORDS);
}

CASE_WITH(what_cannot_be_reached_has_no_path, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[2], false), 0);
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(slid) | SA_PR(dlid),
	                     .slid = lid(e, 0), .dlid = lid(e, 2)),
	                 SA_NO_RECORDS);
	assert_int_equal(TABLE(e, SA_ATTR_PATH, path_record, 0, 0), HOSTS * HOSTS);
}

CASE_WITH(each_lid_of_a_port_has_its_path, setup, teardown)
{
	struct env *e = *state;
	uint16_t base = 0x100;

	e->f->hca_port[2]->lid = base;
	e->f->hca_port[2]->lmc = 2;
	for (uint16_t i = 0; i < 4; i++)
		fabric_lft_set(e->sw, base + i, e->f->hca_port[2]->peer->num);
	fabric_lft_set_top(e->sw, base + 3);
	for (uint16_t i = 0; i < 4; i++) {
		assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(slid) | SA_PR(dlid),
		                     .slid = lid(e, 0), .dlid = base + i),
		                 SA_OK);
		assert_int_equal(RECORD(e, path_record, 0).dlid, base + i);
	}
}

/* Ports 0 and 2 have two LIDs each. */
static void give_two_lids(struct env *e)
{
	e->f->settings.lmc = 1;
	assert_int_equal(sm_sweep(e->sm), 0);
}

CASE_WITH(all_pairs_of_lids_have_paths_and_the_most_distinct_come_first, setup, teardown)
{
	static const struct {
		uint16_t slid, dlid;
		uint8_t preference;
	} want[] = { { 0, 0, 0 }, { 1, 1, 0 }, { 0, 1, 2 }, { 1, 0, 2 } };
	struct env *e = *state;
	struct ib_gid from = gid(e, 0), to = gid(e, 2);

	give_two_lids(e);
	assert_int_equal(TABLE(e, SA_ATTR_PATH, path_record, SA_PR(sgid) | SA_PR(dgid),
	                       .sgid = from, .dgid = to),
	                 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(RECORD(e, path_record, i).slid, lid(e, 0) + want[i].slid);
		assert_int_equal(RECORD(e, path_record, i).dlid, lid(e, 2) + want[i].dlid);
		assert_int_equal(RECORD(e, path_record, i).preference, want[i].preference);
	}
	assert_int_equal(TABLE(e, SA_ATTR_PATH, path_record, SA_PR(sgid) | SA_PR(dlid),
	                       .sgid = from, .dlid = lid(e, 2) + 1),
	                 2);
	assert_int_equal(TABLE(e, SA_ATTR_PATH, path_record,
	                       SA_PR(slid) | SA_PR(dgid) | SA_PR(sgid), .sgid = from,
	                       .slid = lid(e, 0) + 1, .dgid = to),
	                 2);
}

CASE_WITH(no_more_paths_are_returned_than_requested, setup, teardown)
{
	struct env *e = *state;
	struct ib_gid from = gid(e, 0), to = gid(e, 2);

	give_two_lids(e);
	assert_int_equal(TABLE(e, SA_ATTR_PATH, path_record,
	                       SA_PR(sgid) | SA_PR(dgid) | SA_PR(numb_path), .sgid = from,
	                       .dgid = to, .numb_path = 3),
	                 3);
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(sgid) | SA_PR(dgid), .sgid = from,
	                     .dgid = to),
	                 SA_OK);
	assert_int_equal(e->response.n, 1);
	assert_int_equal(RECORD(e, path_record, 0).dlid, lid(e, 2));
}

CASE_WITH(records_of_a_port_are_found_by_any_of_its_lids, setup, teardown)
{
	struct env *e = *state;

	give_two_lids(e);
	assert_int_equal(TABLE(e, SA_ATTR_NODE, node_record, SA_NR(lid), .lid = lid(e, 2) + 1), 1);
	assert_int_equal(RECORD(e, node_record, 0).lid, lid(e, 2));
	assert_int_equal(
	        TABLE(e, SA_ATTR_PORT_INFO, port_info_record, SA_PIR(lid), .lid = lid(e, 1) + 1),
	        1);
	assert_int_equal(RECORD(e, port_info_record, 0).info.lmc, 1);
}

CASE_WITH(partitions_have_paths_of_their_own, setup, teardown)
{
	struct env *e = *state;

	e->f->hca_port[0]->pkey[1] = 0x8005;
	e->f->hca_port[1]->pkey[1] = 0x0005;
	e->f->hca_port[2]->pkey[0] = 0x8007;
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(slid) | SA_PR(dlid) | SA_PR(pkey),
	                     .slid = lid(e, 0), .dlid = lid(e, 1), .pkey = 0x8005),
	                 SA_OK);
	assert_int_equal(RECORD(e, path_record, 0).pkey, 0x8005);
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(slid) | SA_PR(dlid) | SA_PR(pkey),
	                     .slid = lid(e, 0), .dlid = lid(e, 3), .pkey = 0x8005),
	                 SA_NO_RECORDS);
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(slid) | SA_PR(dlid),
	                     .slid = lid(e, 0), .dlid = lid(e, 2)),
	                 SA_NO_RECORDS);
}

/* The service level is the one that is asked for, else the partition's; it has to have lanes. */
CASE_WITH(paths_have_a_service_level, setup, teardown)
{
	struct partition partition[] = { { .pkey = 0x7FFF, .sl = 1 }, { .pkey = 5, .sl = 3 } };
	const struct partitions partitions = { .partition = partition, .n = 2 };
	const struct wire_sl_to_vl none = { { 0, 0, 0, FABRIC_LANE_NONE, 4 } };
	struct env *e = *state;

	sm_set_partitions(e->sm, &partitions);
	e->f->hca_port[0]->pkey[1] = e->f->hca_port[1]->pkey[1] = 0x8005;
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(slid) | SA_PR(dlid),
	                     .slid = lid(e, 0), .dlid = lid(e, 1)),
	                 SA_OK);
	assert_int_equal(RECORD(e, path_record, 0).sl, 1);
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(slid) | SA_PR(dlid) | SA_PR(pkey),
	                     .slid = lid(e, 0), .dlid = lid(e, 1), .pkey = 0x8005),
	                 SA_OK);
	assert_int_equal(RECORD(e, path_record, 0).sl, 3);
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(slid) | SA_PR(dlid) | SA_PR(sl),
	                     .slid = lid(e, 0), .dlid = lid(e, 1), .sl = 4),
	                 SA_OK);
	assert_int_equal(RECORD(e, path_record, 0).sl, 4);
	assert_int_equal(fabric_lanes_map_write(e->f->hca_port[0], 0, &none), 0);
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(slid) | SA_PR(dlid) | SA_PR(pkey),
	                     .slid = lid(e, 0), .dlid = lid(e, 1), .pkey = 0x8005),
	                 SA_NO_RECORDS);
	sm_set_partitions(e->sm, NULL);
}

CASE_WITH(a_path_to_a_group_is_to_its_mlid, setup, teardown)
{
	struct env *e = *state;
	struct ib_gid mgid;

	wire_mgid_broadcast(&mgid, IB_PKEY_DEFAULT);
	assert_int_equal(GET(e, SA_ATTR_PATH, path_record, SA_PR(sgid) | SA_PR(dgid),
	                     .sgid = gid(e, 0), .dgid = mgid),
	                 SA_OK);
	assert_int_equal(RECORD(e, path_record, 0).dlid, sa_group_find(e->sa, &mgid)->rec.mlid);
	assert_int_equal(RECORD(e, path_record, 0).slid, lid(e, 0));
}

CASE_WITH(multipaths_lead_from_each_source_to_each_target, setup, teardown)
{
	struct env *e = *state;
	struct wire_multipath_record m = { .sgid_count = 2, .dgid_count = 2 };
	struct ib_gid gids[4] = { gid(e, 0), gid(e, 1), gid(e, 2), gid(e, 3) };

	prepare(e, MAD_GET_MULTI, SA_ATTR_MULTIPATH);
	e->mad.component_mask = SA_MPR(sgid_count) | SA_MPR(dgid_count);
	wire_multipath_record_encode(&m, e->mad.data);
	memcpy(e->mad.data + wire_multipath_record_bytes, gids, sizeof(gids));
	assert_int_equal(serve(e), SA_OK);
	assert_int_equal(e->response.method, MAD_GET_MULTI_RESP);
	assert_int_equal(e->response.attribute, SA_ATTR_PATH);
	assert_int_equal(e->response.n, 4);
	assert_int_equal(e->response.record_bytes, wire_path_record_bytes);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(RECORD(e, path_record, i).slid, lid(e, i / 2));
		assert_int_equal(RECORD(e, path_record, i).dlid, lid(e, 2 + i % 2));
	}
	m.numb_path = 3;
	e->mad.component_mask |= SA_MPR(numb_path);
	wire_multipath_record_encode(&m, e->mad.data);
	assert_int_equal(serve(e), SA_OK);
	assert_int_equal(e->response.n, 3);
}

CASE_WITH(multipaths_need_to_know_from_where_to_where, setup, teardown)
{
	struct env *e = *state;
	struct wire_multipath_record m = { .sgid_count = 1, .dgid_count = 1 };
	struct ib_gid gids[2] = { gid(e, 0), { { 1 } } };

	prepare(e, MAD_GET_MULTI, SA_ATTR_MULTIPATH);
	wire_multipath_record_encode(&m, e->mad.data);
	memcpy(e->mad.data + wire_multipath_record_bytes, gids, sizeof(gids));
	assert_int_equal(serve(e), SA_INSUFFICIENT_COMPONENTS);
	e->mad.component_mask = SA_MPR(sgid_count) | SA_MPR(dgid_count);
	assert_int_equal(serve(e), SA_REQ_INVALID_GID);
	m.dgid_count = 200; /* more than there are */
	wire_multipath_record_encode(&m, e->mad.data);
	assert_int_equal(serve(e), SA_REQ_INVALID);
	e->request.bytes = 10;
	assert_int_equal(serve(e), SA_REQ_INVALID);
	prepare(e, MAD_GET_TABLE, SA_ATTR_MULTIPATH);
	assert_int_equal(serve(e), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
}

/* ---- groups ---- */

static struct wire_mcmember member(const struct env *e, unsigned host, unsigned group)
{
	return (struct wire_mcmember){ .mgid = testing_mgid(group),
		                       .port_gid = gid(e, host),
		                       .qkey = 0x1234,
		                       .pkey = IB_PKEY_DEFAULT,
		                       .join_state = IB_JOIN_FULL };
}

static uint16_t change(struct env *e, uint8_t method, unsigned asker, uint64_t mask,
                       const struct wire_mcmember *rec)
{
	prepare(e, method, SA_ATTR_MCMEMBER);
	e->request.slid = lid(e, asker);
	e->mad.component_mask = mask;
	wire_mcmember_encode(rec, e->mad.data);
	return serve(e);
}

static void join(struct env *e, unsigned host, unsigned group)
{
	struct wire_mcmember rec = member(e, host, group);

	assert_int_equal(change(e, MAD_SET, host, CREATE, &rec), SA_OK);
}

CASE_WITH(the_response_to_a_join_is_the_whole_record, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember r;

	join(e, 1, 7);
	assert_int_equal(e->response.method, MAD_GET_RESP);
	r = RECORD(e, mcmember, 0);
	assert_true(ib_lid_is_mcast(r.mlid));
	assert_int_equal(r.qkey, 0x1234);
	assert_int_equal(r.mtu, IBV_MTU_4096);
	assert_int_equal(r.join_state, IB_JOIN_FULL);
	assert_int_equal(sa_group_find(e->sa, &r.mgid)->n_members, 1);
}

CASE_WITH(a_leave_gets_a_response_and_ends_the_group, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = member(e, 1, 7);

	join(e, 1, 7);
	assert_int_equal(change(e, MAD_DELETE, 1, JOIN, &rec), SA_OK);
	assert_int_equal(e->response.method, MAD_DELETE_RESP);
	assert_int_equal(e->response.n, 1);
	assert_null(sa_group_find(e->sa, &rec.mgid));
	assert_int_equal(change(e, MAD_DELETE, 1, JOIN, &rec), SA_REQ_INVALID);
}

CASE_WITH(a_join_that_says_too_little_creates_nothing, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = member(e, 1, 7);

	assert_int_equal(change(e, MAD_SET, 1, SA_MCM_MGID, &rec), SA_INSUFFICIENT_COMPONENTS);
	assert_int_equal(change(e, MAD_SET, 1, JOIN, &rec), SA_INSUFFICIENT_COMPONENTS);
	assert_int_equal(change(e, MAD_DELETE, 1, SA_MCM_MGID, &rec), SA_INSUFFICIENT_COMPONENTS);
	assert_int_equal(e->response.n, 0);
}

CASE_WITH(a_request_from_an_unknown_port_is_refused, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = member(e, 1, 7);

	change(e, MAD_DELETE, 1, CREATE, &rec);
	e->mad.mad.method = MAD_SET;
	e->request.slid = 999;
	assert_int_equal(serve(e), SA_REQ_INVALID);
}

CASE_WITH(a_port_joined_by_proxy_is_removed_by_any_of_its_partition, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = member(e, 1, 7);

	assert_int_equal(change(e, MAD_SET, 0, CREATE, &rec), SA_OK);
	assert_int_equal(RECORD(e, mcmember, 0).proxy_join, 1);
	assert_ptr_equal(sa_group_find(e->sa, &rec.mgid)->member[0].port, e->f->hca_port[1]);
	assert_int_equal(change(e, MAD_DELETE, 2, JOIN, &rec), SA_OK);
}

CASE_WITH(a_port_that_joined_itself_is_not_removed_by_others, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = member(e, 1, 7);

	join(e, 1, 7);
	assert_int_equal(RECORD(e, mcmember, 0).proxy_join, 0);
	rec.proxy_join = 1; /* says nothing */
	assert_int_equal(change(e, MAD_DELETE, 0, JOIN | SA_MCM_PROXY_JOIN, &rec), SA_REQ_INVALID);
	rec.join_state = IB_JOIN_NON;
	assert_int_equal(change(e, MAD_SET, 0, JOIN | SA_MCM_PROXY_JOIN, &rec), SA_REQ_INVALID);
}

CASE_WITH(a_port_that_joins_again_itself_ends_the_proxy_join, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = member(e, 1, 7);

	assert_int_equal(change(e, MAD_SET, 0, CREATE, &rec), SA_OK);
	join(e, 1, 7);
	assert_int_equal(change(e, MAD_DELETE, 0, JOIN, &rec), SA_REQ_INVALID);
}

CASE_WITH(a_proxy_must_share_a_partition, setup, teardown)
{
	struct env *e = *state;
	struct wire_mcmember rec = member(e, 1, 7);

	e->f->hca_port[0]->pkey[0] = 0x8009;
	assert_int_equal(change(e, MAD_SET, 0, CREATE, &rec), SA_REQ_INVALID);
	e->f->hca_port[1]->pkey[1] = 0x8009;
	assert_int_equal(change(e, MAD_SET, 0, CREATE, &rec), SA_OK);
	/* it is not in the group's, though */
	assert_int_equal(change(e, MAD_DELETE, 0, JOIN, &rec), SA_REQ_INVALID);
}

CASE_WITH(groups_are_listed_without_their_members, setup, teardown)
{
	struct env *e = *state;
	static const struct ib_gid none;
	struct wire_mcmember r;

	for (unsigned i = 0; i < 3; i++)
		join(e, i, 7);
	join(e, 0, 8);
	assert_int_equal(TABLE(e, SA_ATTR_MCMEMBER, mcmember, 0, 0), 3); /* and IPoIB's */
	assert_int_equal(GET(e, SA_ATTR_MCMEMBER, mcmember, SA_MCM_MGID, .mgid = testing_mgid(7)),
	                 SA_OK);
	r = RECORD(e, mcmember, 0);
	assert_memory_equal(&r.port_gid, &none, sizeof(none));
	assert_int_equal(r.join_state, 0);
	assert_int_equal(r.mtu_selector, SA_EXACTLY);
}

CASE_WITH(trusted_requests_see_the_members, setup, teardown)
{
	struct env *e = *state;

	for (unsigned i = 0; i < 3; i++)
		join(e, i, 7);
	prepare(e, MAD_GET_TABLE, SA_ATTR_MCMEMBER);
	e->mad.sm_key = SA_KEY;
	assert_int_equal(ASK(e, mcmember, SA_MCM_MGID, .mgid = testing_mgid(7)), SA_OK);
	assert_int_equal(e->response.n, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(RECORD(e, mcmember, i).join_state, IB_JOIN_FULL);
		assert_memory_equal(RECORD(e, mcmember, i).port_gid.raw,
		                    shm_port_at(e->f->region, i)->gid[0].raw, 16);
	}
	assert_int_equal(ASK(e, mcmember, SA_MCM_JOIN_STATE, .join_state = IB_JOIN_NON), SA_OK);
	assert_int_equal(e->response.n, 0);
}

CASE_WITH(a_member_is_found_by_its_port, setup, teardown)
{
	struct env *e = *state;

	join(e, 1, 7);
	join(e, 2, 8);
	assert_int_equal(GET(e, SA_ATTR_MCMEMBER, mcmember, SA_MCM_PORT_GID, .port_gid = gid(e, 2)),
	                 SA_OK);
	assert_int_equal(RECORD(e, mcmember, 0).mgid.raw[15], 8);
	assert_int_equal(GET(e, SA_ATTR_MCMEMBER, mcmember, SA_MCM_PORT_GID, .port_gid = gid(e, 3)),
	                 SA_NO_RECORDS);
}

CASE_WITH(a_wrong_key_gets_no_response, setup, teardown)
{
	struct env *e = *state;

	prepare(e, MAD_GET_TABLE, SA_ATTR_MCMEMBER);
	e->mad.sm_key = 0x77;
	serve(e);
	assert_int_equal(e->response.method, 0);
	assert_null(e->response.records);
}

CASE_WITH(selectors_of_groups_are_not_numbers, setup, teardown)
{
	struct env *e = *state;

	join(e, 1, 7);
	assert_int_equal(
	        GET(e, SA_ATTR_MCMEMBER, mcmember, SA_MCM_MGID | SA_MCM_MTU | SA_MCM_MTU_SELECTOR,
	            .mgid = testing_mgid(7), .mtu_selector = SA_GREATER, .mtu = IBV_MTU_1024),
	        SA_OK);
	assert_int_equal(GET(e, SA_ATTR_MCMEMBER, mcmember,
	                     SA_MCM_MGID | SA_MCM_MTU | SA_MCM_MTU_SELECTOR,
	                     .mgid = testing_mgid(7), .mtu_selector = SA_LESS, .mtu = IBV_MTU_1024),
	                 SA_NO_RECORDS);
	assert_int_equal(
	        GET(e, SA_ATTR_MCMEMBER, mcmember, SA_MCM_MGID | SA_MCM_RATE | SA_MCM_RATE_SELECTOR,
	            .mgid = testing_mgid(7), .rate_selector = SA_LESS, .rate = IBV_RATE_120_GBPS),
	        SA_OK);
	assert_int_equal(GET(e, SA_ATTR_MCMEMBER, mcmember,
	                     SA_MCM_MGID | SA_MCM_LIFE | SA_MCM_LIFE_SELECTOR,
	                     .mgid = testing_mgid(7), .life_selector = SA_GREATER, .life = 30),
	                 SA_NO_RECORDS);
}

CASE_WITH(groups_of_other_partitions_are_not_seen, setup, teardown)
{
	struct env *e = *state;

	join(e, 1, 7);
	e->f->hca_port[0]->pkey[0] = 0x8009;
	assert_int_equal(TABLE(e, SA_ATTR_MCMEMBER, mcmember, 0, 0), 0);
}

/* ---- what is wrong ---- */

CASE_WITH(versions_that_nobody_knows_get_a_status, setup, teardown)
{
	struct env *e = *state;

	prepare(e, MAD_GET_TABLE, SA_ATTR_NODE);
	e->mad.mad.class_version = 1;
	assert_int_equal(serve(e), MAD_STATUS_BAD_VERSION);
	assert_int_equal(e->response.method, MAD_GET_TABLE_RESP);
	prepare(e, MAD_GET_TABLE, SA_ATTR_NODE);
	e->mad.mad.base_version = 0;
	assert_int_equal(serve(e), MAD_STATUS_BAD_VERSION);
}

CASE_WITH(methods_that_a_record_has_not_get_a_status, setup, teardown)
{
	struct env *e = *state;

	prepare(e, MAD_SET, SA_ATTR_NODE);
	assert_int_equal(serve(e), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	prepare(e, MAD_DELETE, SA_ATTR_PATH);
	assert_int_equal(serve(e), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	prepare(e, MAD_GET, SA_ATTR_INFORM_INFO);
	assert_int_equal(serve(e), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	prepare(e, MAD_GET_TRACE_TABLE, SA_ATTR_TRACE);
	assert_int_equal(serve(e), MAD_STATUS_BAD_METHOD);
	prepare(e, MAD_GET, SA_ATTR_TRACE);
	assert_int_equal(serve(e), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
}

CASE_WITH(responses_get_no_response, setup, teardown)
{
	static const uint8_t methods[] = {
		MAD_GET_RESP, MAD_GET_TABLE_RESP, MAD_REPORT_RESP, MAD_SEND, 0, 0x7F, 0xFF
	};
	struct env *e = *state;

	for (size_t i = 0; i < sizeof(methods); i++) {
		prepare(e, methods[i], SA_ATTR_NODE);
		serve(e);
		assert_int_equal(e->response.method, 0);
		assert_null(e->response.records);
	}
}

/* ---- in slices ---- */

CASE_WITH(a_table_in_slices_has_the_same_records, setup, teardown)
{
	static const uint16_t attributes[] = {
		SA_ATTR_NODE,    SA_ATTR_PORT_INFO, SA_ATTR_SWITCH_INFO, SA_ATTR_LINEAR_FT,
		SA_ATTR_LINK,    SA_ATTR_GUID_INFO, SA_ATTR_SL_TO_VL,    SA_ATTR_VL_ARBITRATION,
		SA_ATTR_SM_INFO, SA_ATTR_PATH,      SA_ATTR_PKEY_TABLE,  SA_ATTR_MCMEMBER,
	};
	struct env *e = *state;

	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
		for (uint32_t budget = 1; budget < 100; budget = 3 * budget + 1) {
			prepare(e, MAD_GET_TABLE, attributes[i]);
			e->mad.sm_key = SA_KEY;
			assert_same_in_slices(e, budget, attributes[i] == SA_ATTR_PATH);
			prepare(e, MAD_GET_TABLE, attributes[i]);
			e->mad.sm_key = SA_KEY;
			e->mad.component_mask = SA_NR(lid);
			e->mad.data[1] = (uint8_t)lid(e, 1);
			if (attributes[i] != SA_ATTR_PATH && attributes[i] != SA_ATTR_MCMEMBER)
				assert_same_in_slices(e, budget, false);
		}
}

/* From one port to all, from all to one, and a few of each. */
CASE_WITH(paths_in_slices_are_the_same, setup, teardown)
{
	struct env *e = *state;
	struct wire_path_record r = { .sgid = gid(e, 1), .dgid = gid(e, 2), .numb_path = 2 };
	static const uint64_t masks[] = { SA_PR(sgid), SA_PR(dgid), SA_PR(numb_path),
		                          SA_PR(sgid) | SA_PR(dgid) };

	for (size_t i = 0; i < ARRAY_SIZE(masks); i++)
		for (uint32_t budget = 1; budget < 100; budget = 3 * budget + 1) {
			prepare(e, MAD_GET_TABLE, SA_ATTR_PATH);
			e->mad.component_mask = masks[i];
			wire_path_record_encode(&r, e->mad.data);
			assert_same_in_slices(e, budget, false);
		}
}

/* From three ports to two, of all and of three paths; one GID is that of the switch. */
CASE_WITH(multipaths_in_slices_are_the_same, setup, teardown)
{
	struct env *e = *state;
	struct wire_multipath_record m = { .sgid_count = 3, .dgid_count = 2, .numb_path = 3 };
	struct ib_gid gids[5] = { gid(e, 0), gid(e, 1), gid(e, 2), gid(e, 3) };
	static const uint64_t masks[] = { 0, SA_MPR(numb_path),
		                          SA_MPR(mtu) | SA_MPR(mtu_selector) };

	give_two_lids(e);
	fabric_gid_make(e->f, e->sw->port[0].guid, &gids[4]);
	for (size_t i = 0; i < ARRAY_SIZE(masks); i++)
		for (uint32_t budget = 1; budget < 100; budget = 3 * budget + 1) {
			prepare(e, MAD_GET_MULTI, SA_ATTR_MULTIPATH);
			e->mad.component_mask = SA_MPR(sgid_count) | SA_MPR(dgid_count) | masks[i];
			wire_multipath_record_encode(&m, e->mad.data);
			memcpy(e->mad.data + wire_multipath_record_bytes, gids, sizeof(gids));
			assert_same_in_slices(e, budget, !i);
			assert_int_equal(e->response.n, i == 1 ? 3 : 3 * (4 + 2));
		}
}

/* A slice looks at so many LIDs of pairs of ports, whether a path is found or not. */
CASE_WITH(a_multipath_that_nothing_meets_is_served_in_slices, setup, teardown)
{
	struct env *e = *state;
	struct wire_multipath_record m = {
		.sgid_count = 2, .dgid_count = 2, .mtu_selector = SA_GREATER, .mtu = 5
	};
	struct ib_gid gids[4] = { gid(e, 0), gid(e, 1), gid(e, 2), gid(e, 3) };
	struct sa_response out;
	struct sa_job *job;
	unsigned slices = 1;

	e->f->settings.lmc = 4;
	assert_int_equal(sm_sweep(e->sm), 0);
	prepare(e, MAD_GET_MULTI, SA_ATTR_MULTIPATH);
	e->mad.component_mask =
	        SA_MPR(sgid_count) | SA_MPR(dgid_count) | SA_MPR(mtu_selector) | SA_MPR(mtu);
	wire_multipath_record_encode(&m, e->mad.data);
	memcpy(e->mad.data + wire_multipath_record_bytes, gids, sizeof(gids));
	job = sa_job_new(e->sa, &e->request);
	assert_non_null(job);
	for (; !sa_job_run(job, 100, &out); slices++)
		;
	assert_int_equal(out.status, SA_OK);
	assert_int_equal(out.n, 0);
	assert_true(slices >= 4 * 16 * 16 / 100);
	sa_job_free(job);
}

/* It ends at once, however many paths there may be. */
CASE_WITH(a_job_that_is_stopped_has_no_resources, setup, teardown)
{
	struct env *e = *state;
	struct sa_response out = { 0 };
	struct sa_job *job;

	prepare(e, MAD_GET_TABLE, SA_ATTR_PATH);
	job = sa_job_new(e->sa, &e->request);
	assert_non_null(job);
	assert_false(sa_job_run(job, 10, &out));
	assert_true(sa_job_bytes(job) > 0);
	sa_job_stop(job);
	assert_true(sa_job_run(job, 10, &out));
	assert_int_equal(out.status, SA_NO_RESOURCES);
	assert_int_equal(out.n, 0);
	assert_null(out.records);
	sa_job_free(job);
}
