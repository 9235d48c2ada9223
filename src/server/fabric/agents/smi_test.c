/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How MADs travel: directed routes out and back, LIDs on the management lane and off it,
 * P_Keys, and MADs that are dropped or that nobody wants.
 */
#include <harness.h>

#include "fabric/agents/link.h"
#include "fabric/testing_mads.h"
#include "wire/perf.h"

static uint64_t guid_at(struct lab *l, const uint8_t *path)
{
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
	struct fabric_mad mad = lab_directed(&smp, path);
	struct wire_node_info info;

	smp = lab_ask(l, lab_host(l, 0), &mad);
	assert_int_equal(smp.mad.status, MAD_STATUS_OK);
	assert_int_equal(smp.direction, 1);
	assert_int_equal(smp.hop_pointer, 0);
	wire_node_info_decode(smp.data, &info);
	return info.node_guid;
}

#define PATH(...) ((const uint8_t[]){ __VA_ARGS__, 0 })

static struct fabric_mad node_info(const uint8_t *path)
{
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);

	return lab_directed(&smp, path);
}

/* ---- directed routes ---- */

CASE_WITH(no_hop_is_the_port_that_it_is_sent_from, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	assert_true(guid_at(l, PATH(0)) == lab_host(l, 0)->node->guid);
}

CASE_WITH(each_hop_leads_one_switch_on, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	assert_true(guid_at(l, PATH(1)) == l->sw[0]->guid);
	assert_true(guid_at(l, PATH(1, TO_RIGHT)) == l->sw[1]->guid);
	assert_true(guid_at(l, PATH(1, TO_RIGHT, TO_RIGHT)) == l->sw[2]->guid);
	assert_true(guid_at(l, PATH(1, TO_RIGHT, TO_RIGHT, TO_HOST)) == lab_host(l, 1)->node->guid);
}

CASE_WITH(a_route_may_turn_back, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	assert_true(guid_at(l, PATH(1, TO_RIGHT, TO_LEFT)) == l->sw[0]->guid);
	assert_true(guid_at(l, PATH(1, TO_HOST)) == lab_host(l, 0)->node->guid);
}

CASE_WITH(a_response_lists_the_ports_that_the_request_came_in_by, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = node_info(PATH(1, TO_RIGHT, TO_RIGHT, TO_HOST));
	struct wire_smp smp = lab_ask(l, lab_host(l, 0), &mad);
	const uint8_t want[] = { 0, TO_HOST, TO_LEFT, TO_LEFT, 1 };

	assert_memory_equal(smp.return_path, want, sizeof(want));
}

CASE_WITH(a_response_says_by_which_port_the_request_arrived, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = node_info(PATH(1, TO_RIGHT));
	struct wire_smp smp = lab_ask(l, lab_host(l, 0), &mad);
	struct wire_node_info info;

	wire_node_info_decode(smp.data, &info);
	assert_int_equal(info.local_port_num, TO_LEFT);
}

CASE_WITH(ports_that_lead_nowhere_swallow_it, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	const uint8_t bad[] = { 4, SW_PORTS, SW_PORTS + 1, 255 };

	for (size_t i = 0; i < sizeof(bad); i++) {
		struct fabric_mad mad = node_info(PATH(1, bad[i]));

		lab_lost(l, lab_host(l, 0), &mad);
	}
	assert_int_equal(l->f->mads->stats.no_route, sizeof(bad));
}

CASE_WITH(a_link_that_is_down_swallows_it, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = node_info(PATH(1, TO_RIGHT));

	assert_int_equal(fabric_link_set(l->f, &l->sw[0]->port[TO_RIGHT], false), 0);
	lab_lost(l, lab_host(l, 0), &mad);
	assert_int_equal(l->f->mads->stats.no_route, 1);
	assert_int_equal(fabric_link_set(l->f, &l->sw[0]->port[TO_RIGHT], true), 0);
	lab_ask(l, lab_host(l, 0), &mad);
}

CASE_WITH(an_hca_sends_by_the_port_that_it_sends_from, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = node_info(PATH(2));

	lab_lost(l, lab_host(l, 0), &mad);
}

CASE_WITH(an_hca_passes_nothing_on, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = node_info(PATH(1, TO_HOST, 1));

	lab_lost(l, lab_host(l, 0), &mad);
	assert_int_equal(l->f->mads->stats.no_route, 1);
}

CASE_WITH(hop_counts_and_pointers_that_no_path_has_are_dropped, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	unsigned n = 0;

	for (unsigned count = 0; count < 256; count++) {
		for (unsigned pointer = 0; pointer < 256; pointer++) {
			struct fabric_mad mad = node_info(PATH(1, TO_RIGHT));

			if (count <= SMP_MAX_HOPS && pointer <= count + 1)
				continue;
			mad.data[SMP_AT_HOP_COUNT] = (uint8_t)count;
			mad.data[SMP_AT_HOP_POINTER] = (uint8_t)pointer;
			lab_lost(l, lab_host(l, 0), &mad);
			n++;
		}
	}
	assert_int_equal(l->f->mads->stats.bad_path, n);
}

CASE_WITH(an_smp_that_claims_to_be_on_a_path_is_dropped, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = node_info(PATH(1, TO_RIGHT, TO_RIGHT));

	mad.data[SMP_AT_HOP_POINTER] = 1;
	lab_lost(l, lab_host(l, 0), &mad);
	mad.data[SMP_AT_STATUS] |= 0x80;
	mad.data[SMP_AT_HOP_POINTER] = 2;
	lab_lost(l, lab_host(l, 0), &mad);
	assert_int_equal(l->f->mads->stats.bad_path, 2);
}

CASE_WITH(the_longest_path_has_63_hops, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	uint8_t path[SMP_MAX_HOPS + 1] = { 1 };

	/* to and fro between the first two switches */
	for (int i = 1; i < SMP_MAX_HOPS; i++)
		path[i] = i % 2 ? TO_RIGHT : TO_LEFT;
	assert_true(guid_at(l, path) == l->sw[0]->guid);
}

CASE_WITH(an_unsolicited_response_is_forwarded, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_GET_RESP, SMP_ATTR_SM_INFO, 0);
	struct fabric_mad mad = lab_directed(&smp, PATH(1, TO_RIGHT, TO_RIGHT, TO_HOST));

	/* as host 1 responds to a request that came by that path */
	mad.data[SMP_AT_STATUS] |= 0x80;
	mad.data[SMP_AT_HOP_POINTER] = 5;
	memcpy(mad.data + SMP_AT_RETURN_PATH, PATH(0, TO_HOST, TO_LEFT, TO_LEFT, 1), 5);
	fabric_mad_send(l->f, lab_host(l, 1), &mad);
	assert_int_equal(l->n_got, 1);
	assert_ptr_equal(l->at, lab_host(l, 0));
	assert_int_equal(l->got.data[SMP_AT_HOP_POINTER], 0);
}

/* ---- routes that begin or end by LID ---- */

CASE_WITH(a_route_may_begin_at_the_switch_of_a_lid, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
	struct fabric_mad mad = lab_directed(&smp, PATH(TO_RIGHT));
	struct wire_node_info info;

	/* as ibportstate looks at the far end of a switch's port */
	mad.slid = 1;
	mad.dlid = SW_LID + 1;
	mad.data[SMP_AT_DR_SLID] = 0;
	mad.data[SMP_AT_DR_SLID + 1] = 1;
	smp = lab_ask(l, lab_host(l, 0), &mad);
	wire_node_info_decode(smp.data, &info);
	assert_true(info.node_guid == l->sw[2]->guid);
	assert_int_equal(smp.hop_pointer, 0);
}

CASE_WITH(a_route_may_end_by_a_lid, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
	struct fabric_mad mad = lab_directed(&smp, PATH(1, TO_RIGHT));
	struct wire_node_info info;

	mad.slid = 1;
	mad.data[SMP_AT_DR_DLID] = 0;
	mad.data[SMP_AT_DR_DLID + 1] = 2;
	smp = lab_ask(l, lab_host(l, 0), &mad);
	wire_node_info_decode(smp.data, &info);
	assert_true(info.node_guid == lab_host(l, 1)->node->guid);
}

/* ---- by LID ---- */

CASE_WITH(smps_by_lid_cross_links_that_are_init, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_node_info info;
	uint8_t data[SMP_DATA_BYTES];

	for (unsigned i = 0; i < CHAIN; i++) {
		assert_int_equal(lab_get(l, (uint16_t)(SW_LID + i), SMP_ATTR_NODE_INFO, 0, data),
		                 0);
		wire_node_info_decode(data, &info);
		assert_true(info.node_guid == l->sw[i]->guid);
		assert_int_equal(info.local_port_num, i ? TO_LEFT : TO_HOST);
	}
	assert_int_equal(lab_get(l, 2, SMP_ATTR_NODE_INFO, 0, data), 0);
	wire_node_info_decode(data, &info);
	assert_true(info.node_guid == lab_host(l, 1)->node->guid);
}

CASE_WITH(a_response_comes_from_where_the_request_went, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
	struct fabric_mad mad = lab_to_lid(lab_host(l, 0), SW_LID + 2, &smp);

	mad.src_qpn = 0;
	mad.sl = 3;
	lab_ask(l, lab_host(l, 0), &mad);
	assert_int_equal(l->got.slid, SW_LID + 2);
	assert_int_equal(l->got.dlid, 1);
	assert_int_equal(l->got.sl, 3);
}

CASE_WITH(every_lid_of_a_port_leads_to_it, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	uint8_t data[SMP_DATA_BYTES];

	lab_host(l, 1)->lid = 4;
	lab_host(l, 1)->lmc = 2;
	for (unsigned i = 0; i < CHAIN; i++)
		for (uint16_t lid = 4; lid < 10; lid++)
			fabric_lft_set(l->sw[i], lid, i == CHAIN - 1 ? TO_HOST : TO_RIGHT);
	for (uint16_t lid = 4; lid < 8; lid++)
		assert_int_equal(lab_get(l, lid, SMP_ATTR_NODE_INFO, 0, data), MAD_STATUS_OK);
	for (uint16_t lid = 8; lid < 10; lid++) {
		struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
		struct fabric_mad mad = lab_to_lid(lab_host(l, 0), lid, &smp);

		lab_lost(l, lab_host(l, 0), &mad);
	}
}

CASE_WITH(lids_that_lead_nowhere_swallow_it, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	const uint16_t bad[] = { 0, 77, 0xBFFF, 0xC000, 0xFFFE };
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct fabric_mad mad = lab_to_lid(lab_host(l, 0), bad[i], &smp);

		lab_lost(l, lab_host(l, 0), &mad);
	}
	assert_int_equal(l->f->mads->stats.no_route, ARRAY_SIZE(bad));
}

CASE_WITH(a_loop_in_the_tables_ends, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
	struct fabric_mad mad = lab_to_lid(lab_host(l, 0), 50, &smp);

	fabric_lft_set(l->sw[0], 50, TO_RIGHT);
	fabric_lft_set(l->sw[1], 50, TO_LEFT);
	lab_lost(l, lab_host(l, 0), &mad);
	assert_int_equal(l->f->mads->stats.no_route, 1);
}

CASE_WITH(a_switch_accepts_only_its_own_smps, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
	struct fabric_mad mad = lab_to_lid(lab_host(l, 0), 50, &smp);

	fabric_lft_set(l->sw[0], 50, 0);
	lab_lost(l, lab_host(l, 0), &mad);
}

CASE_WITH(the_permissive_lid_is_whoever_gets_the_smp, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
	struct fabric_mad mad = lab_to_lid(lab_host(l, 0), IB_LID_PERMISSIVE, &smp);
	struct wire_node_info info;

	smp = lab_ask(l, lab_host(l, 0), &mad);
	wire_node_info_decode(smp.data, &info);
	assert_true(info.node_guid == lab_host(l, 0)->node->guid);
	assert_int_equal(l->got.slid, 1);
}

CASE_WITH(a_switch_responds_to_itself, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
	struct fabric_mad mad = lab_to_lid(&l->sw[1]->port[0], SW_LID + 1, &smp);

	lab_ask(l, &l->sw[1]->port[0], &mad);
	mad = lab_to_lid(&l->sw[1]->port[0], SW_LID + 2, &smp);
	lab_ask(l, &l->sw[1]->port[0], &mad);
}

/* ---- others than SMPs ---- */

static struct fabric_mad gmp(const struct fabric_port *from, uint16_t dlid, uint8_t mgmt_class,
                             uint8_t method)
{
	struct fabric_mad mad = { .slid = from->lid,
		                  .dlid = dlid,
		                  .src_qpn = IB_QPN_GSI,
		                  .dest_qpn = IB_QPN_GSI,
		                  .qkey = IB_QKEY_GSI };
	struct wire_mad h = { .base_version = MAD_BASE_VERSION,
		              .mgmt_class = mgmt_class,
		              .class_version = 1,
		              .method = method,
		              .attribute_id = MAD_ATTR_CLASS_PORT_INFO };

	wire_mad_encode(&h, mad.data);
	return mad;
}

CASE_WITH(gmps_cross_active_links_alone, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = gmp(lab_host(l, 0), 2, MAD_CLASS_COM_MGT, MAD_SEND);

	lab_lost(l, lab_host(l, 0), &mad);
	testing_activate_all(l->f);
	l->sw[1]->port[TO_RIGHT].state = IB_PORT_ARMED;
	lab_lost(l, lab_host(l, 0), &mad);
	l->sw[1]->port[TO_RIGHT].state = IB_PORT_ACTIVE;
	fabric_mad_send(l->f, lab_host(l, 0), &mad);
	assert_int_equal(l->n_got, 1);
	assert_ptr_equal(l->at, lab_host(l, 1));
	assert_int_equal(l->f->mads->stats.no_route, 2);
}

CASE_WITH(gmps_have_no_permissive_lid, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = gmp(lab_host(l, 0), IB_LID_PERMISSIVE, MAD_CLASS_PERF, MAD_GET);

	lab_lost(l, lab_host(l, 0), &mad);
}

CASE_WITH(a_port_sends_gmps_to_itself_when_it_is_active, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = gmp(lab_host(l, 0), 1, MAD_CLASS_PERF, MAD_GET);

	lab_lost(l, lab_host(l, 0), &mad);
	lab_host(l, 0)->state = IB_PORT_ACTIVE;
	lab_ask(l, lab_host(l, 0), &mad);
}

CASE_WITH(qp0_accepts_only_smps_and_qp1_none, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
	struct fabric_mad mad = gmp(lab_host(l, 0), 2, MAD_CLASS_PERF, MAD_GET);

	l->refuses = true;
	mad.dest_qpn = IB_QPN_SMI;
	lab_lost(l, lab_host(l, 0), &mad);
	assert_int_equal(l->f->mads->stats.no_route, 1);
	mad = lab_to_lid(lab_host(l, 0), 2, &smp);
	mad.dest_qpn = IB_QPN_GSI;
	lab_lost(l, lab_host(l, 0), &mad);
	assert_int_equal(l->f->mads->stats.unwanted,
	                 2); /* the request, and the response that refuses it */
}

CASE_WITH(partitions_keep_gmps_apart, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = gmp(lab_host(l, 0), 2, MAD_CLASS_COM_MGT, MAD_SEND);

	lab_host(l, 0)->pkey[1] = 0x8001;
	lab_host(l, 1)->pkey[0] = 0x8001;
	lab_lost(l, lab_host(l, 0), &mad);
	assert_int_equal(l->f->mads->stats.bad_p_key, 1);
	mad.pkey_index = 1;
	fabric_mad_send(l->f, lab_host(l, 0), &mad);
	assert_int_equal(l->n_got, 1);
	assert_int_equal(l->got.pkey_index, 0); /* where the receiver has it */
}

CASE_WITH(two_limited_members_do_not_talk, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = gmp(lab_host(l, 0), 2, MAD_CLASS_COM_MGT, MAD_SEND);

	lab_host(l, 0)->pkey[0] = lab_host(l, 1)->pkey[0] = 0x7FFF;
	lab_lost(l, lab_host(l, 0), &mad);
	lab_host(l, 1)->pkey[0] = 0xFFFF;
	fabric_mad_send(l->f, lab_host(l, 0), &mad);
	assert_int_equal(l->n_got, 1);
}

CASE_WITH(a_pkey_index_that_there_is_not_is_dropped, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = gmp(lab_host(l, 0), 2, MAD_CLASS_COM_MGT, MAD_SEND);

	for (unsigned i = 1; i <= UINT16_MAX; i = i * 2 + 1) {
		mad.pkey_index = (uint16_t)i;
		lab_lost(l, lab_host(l, 0), &mad);
	}
}

CASE_WITH(a_response_goes_back_to_the_gid_of_the_request, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = gmp(lab_host(l, 0), 2, MAD_CLASS_PERF, MAD_GET);

	mad.has_grh = true;
	fabric_gid_make(l->f, lab_host(l, 0)->guid, &mad.sgid);
	fabric_gid_make(l->f, lab_host(l, 1)->guid, &mad.dgid);
	lab_ask(l, lab_host(l, 0), &mad);
	assert_memory_equal(&l->got.sgid, &mad.dgid, 16);
	assert_memory_equal(&l->got.dgid, &mad.sgid, 16);
	assert_int_equal(l->got.dest_qpn, IB_QPN_GSI);
}

static bool only_host_0(void *arg, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct lab *l = arg;

	return at == lab_host(l, 0) && lab_deliver(arg, at, mad);
}

CASE_WITH(a_gmp_that_nobody_wants_is_refused_if_it_asks, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = gmp(lab_host(l, 0), 2, MAD_CLASS_DEV_MGT, MAD_GET);
	struct wire_mad h;

	l->f->mads->sink.deliver = only_host_0;
	lab_ask(l, lab_host(l, 0), &mad);
	wire_mad_decode(l->got.data, &h);
	assert_int_equal(h.status, MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	mad = gmp(lab_host(l, 0), 2, MAD_CLASS_DEV_MGT, MAD_SEND);
	lab_lost(l, lab_host(l, 0), &mad);
	assert_int_equal(l->f->mads->stats.unwanted, 2);
}

CASE_WITH(an_unknown_method_is_refused_if_it_asks, lab_setup_active, lab_teardown)
{
	static const struct {
		uint8_t class, method;
		bool is_refused;
	} rows[] = {
		{ MAD_CLASS_PERF, 0x0F, true },
		{ MAD_CLASS_PERF, MAD_GET_TABLE, true },
		{ MAD_CLASS_PERF, MAD_REPORT, true },
		{ MAD_CLASS_PERF, MAD_SEND, false },
		{ MAD_CLASS_PERF, MAD_TRAP, false },
		{ MAD_CLASS_PERF, MAD_TRAP_REPRESS, false },
		{ MAD_CLASS_PERF, 0x0F | MAD_METHOD_RESPONSE, false },
		{ MAD_CLASS_DEV_MGT, 0x0F, false }, /* its agents, if any, are programs */
	};
	struct lab *l = *state;
	struct wire_mad h;

	l->f->mads->sink.deliver = only_host_0;
	for (size_t i = 0; EACH_ROW(i, rows); i++) {
		struct fabric_mad mad = gmp(lab_host(l, 0), 2, rows[i].class, rows[i].method);

		if (!rows[i].is_refused) {
			lab_lost(l, lab_host(l, 0), &mad);
			continue;
		}
		lab_ask(l, lab_host(l, 0), &mad);
		wire_mad_decode(l->got.data, &h);
		assert_int_equal(h.status, MAD_STATUS_BAD_METHOD);
		assert_int_equal(h.method, rows[i].method | MAD_METHOD_RESPONSE);
	}
}

CASE_WITH(an_smp_with_an_unknown_method_is_refused_along_its_path, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(0x0F, SMP_ATTR_NODE_INFO, 0);
	struct fabric_mad mad = lab_directed(&smp, PATH(1, TO_RIGHT, TO_RIGHT));

	l->f->mads->sink.deliver = only_host_0;
	smp = lab_ask(l, lab_host(l, 0), &mad);
	assert_int_equal(smp.mad.status, MAD_STATUS_BAD_METHOD);
	assert_int_equal(smp.mad.method, 0x8F);
	assert_int_equal(smp.direction, 1);
}

CASE_WITH(an_smp_that_nobody_wants_is_refused_along_its_path, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_SM_INFO, 0);
	struct fabric_mad mad = lab_directed(&smp, PATH(1, TO_RIGHT, TO_RIGHT, TO_HOST));

	l->f->mads->sink.deliver = only_host_0;
	smp = lab_ask(l, lab_host(l, 0), &mad);
	assert_int_equal(smp.mad.status, MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	assert_int_equal(smp.mad.attribute_id, SMP_ATTR_SM_INFO);
}

/* ---- who looks ---- */

struct looker {
	unsigned n;
	struct fabric_mad_seen seen[8];
	struct fabric_mad mad[8];
};

static void look(void *arg, const struct fabric_mad_seen *seen)
{
	struct looker *k = arg;

	assert_true(k->n < ARRAY_SIZE(k->seen));
	k->mad[k->n] = *seen->mad;
	k->seen[k->n++] = *seen;
}

CASE_WITH(request_and_response_are_seen_as_they_arrive, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct looker k = { .n = 0 };
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
	struct fabric_mad mad = lab_directed(&smp, PATH(1, TO_RIGHT));

	l->f->mads->tap = (struct fabric_mad_tap){ look, &k };
	lab_ask(l, lab_host(l, 0), &mad);
	assert_int_equal(k.n, 2);
	assert_ptr_equal(k.seen[0].from, lab_host(l, 0));
	assert_ptr_equal(k.seen[0].at, &l->sw[1]->port[TO_LEFT]);
	assert_ptr_equal(k.seen[1].from, k.seen[0].at);
	assert_ptr_equal(k.seen[1].at, lab_host(l, 0));
	assert_int_equal(k.mad[0].data[SMP_AT_HOP_POINTER], 3);
	assert_memory_equal(k.mad[1].data, l->got.data, MAD_BYTES);
	for (unsigned i = 0; i < k.n; i++) {
		assert_int_equal(k.seen[i].fate, FABRIC_MAD_DELIVERED);
		assert_int_equal(k.seen[i].pkey, 0);
	}
}

static enum fabric_mad_fate fate_of_one(struct lab *l, const struct fabric_mad *mad)
{
	struct looker k = { .n = 0 };

	l->f->mads->tap = (struct fabric_mad_tap){ look, &k };
	fabric_mad_send(l->f, lab_host(l, 0), mad);
	l->f->mads->tap = (struct fabric_mad_tap){ 0 };
	/* a trap comes before what it is about */
	assert_ptr_equal(k.seen[k.n - 1].from, lab_host(l, 0));
	return k.seen[k.n - 1].fate;
}

CASE_WITH(what_becomes_of_a_mad_is_seen, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_GET, SMP_ATTR_NODE_INFO, 0);
	struct fabric_mad mad = gmp(lab_host(l, 0), 2, MAD_CLASS_DEV_MGT, MAD_SEND);

	assert_int_equal(fate_of_one(l, &mad), FABRIC_MAD_DELIVERED);
	l->refuses = true;
	assert_int_equal(fate_of_one(l, &mad), FABRIC_MAD_UNWANTED);
	mad.dlid = 99;
	assert_int_equal(fate_of_one(l, &mad), FABRIC_MAD_NO_ROUTE);
	mad.pkey_index = 7;
	assert_int_equal(fate_of_one(l, &mad), FABRIC_MAD_BAD_P_KEY);
	mad = lab_directed(&smp, PATH(1, TO_RIGHT));
	mad.data[SMP_AT_HOP_COUNT] = 64;
	assert_int_equal(fate_of_one(l, &mad), FABRIC_MAD_BAD_PATH);
	smp = lab_smp(MAD_SET, SMP_ATTR_PORT_INFO, 1);
	mad = lab_to_lid(lab_host(l, 0), 2, &smp);
	lab_host(l, 1)->m_key = 1;
	assert_int_equal(fate_of_one(l, &mad), FABRIC_MAD_BAD_M_KEY);
}

/* ---- a gate ---- */

struct gate {
	enum fabric_mad_fate says;
	unsigned n; /* judged */
	struct fabric_port *from, *at;
	struct fabric_mad mad;
};

static enum fabric_mad_fate judge(void *arg, struct fabric_port *from, struct fabric_port *at,
                                  const struct fabric_mad *mad)
{
	struct gate *g = arg;

	g->n++;
	g->from = from;
	g->at = at;
	g->mad = *mad;
	return g->says;
}

/* Each MAD that was sent is one of these: mads.h. */
static void assert_none_is_missing(const struct lab *l)
{
	const struct fabric_mad_stats *s = &l->f->mads->stats;

	assert_int_equal(s->sent, s->delivered + s->roce + s->no_route + s->bad_path +
	                                  s->bad_p_key + s->faulty);
}

CASE_WITH(a_gate_may_lose_a_mad, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct gate g = { .says = FABRIC_MAD_FAULTY };
	struct fabric_mad mad = gmp(lab_host(l, 0), 2, MAD_CLASS_DEV_MGT, MAD_SEND);

	l->f->mads->gate = (struct fabric_mad_gate){ judge, &g };
	assert_int_equal(fate_of_one(l, &mad), FABRIC_MAD_FAULTY);
	assert_int_equal(g.n, 1);
	assert_ptr_equal(g.from, lab_host(l, 0));
	assert_ptr_equal(g.at, lab_host(l, 1));
	assert_int_equal(l->n_got, 0);
	assert_none_is_missing(l);
	g.says = FABRIC_MAD_DELIVERED;
	assert_int_equal(fate_of_one(l, &mad), FABRIC_MAD_DELIVERED);
	assert_int_equal(l->n_got, 1);
	assert_none_is_missing(l);
}

CASE_WITH(a_request_that_was_held_gets_its_response, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct gate g = { .says = FABRIC_MAD_HELD };
	struct fabric_mad mad = node_info(PATH(1, TO_RIGHT, TO_RIGHT, TO_HOST)), held;

	l->f->mads->gate = (struct fabric_mad_gate){ judge, &g };
	assert_int_equal(fate_of_one(l, &mad), FABRIC_MAD_HELD);
	assert_int_equal(l->n_got, 0);
	assert_none_is_missing(l);
	held = g.mad;
	g.says = FABRIC_MAD_DELIVERED;
	fabric_mad_land(l->f, g.from, g.at, &held);
	assert_int_equal(g.n, 2); /* the response is another MAD */
	assert_int_equal(l->n_got, 1);
	assert_ptr_equal(l->at, lab_host(l, 0));
	assert_none_is_missing(l);
}

CASE_WITH(a_mad_is_held_longer_than_its_link_is_up, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct gate g = { .says = FABRIC_MAD_HELD };
	struct fabric_mad mad = node_info(PATH(1, TO_RIGHT, TO_RIGHT, TO_HOST));

	l->f->mads->gate = (struct fabric_mad_gate){ judge, &g };
	fabric_mad_send(l->f, lab_host(l, 0), &mad);
	assert_int_equal(fabric_link_set(l->f, lab_host(l, 1), false), 0);
	fabric_mad_land(l->f, g.from, g.at, &g.mad);
	assert_int_equal(l->n_got, 0);
	assert_int_equal(l->f->mads->stats.no_route, 1);
	assert_none_is_missing(l);
}
