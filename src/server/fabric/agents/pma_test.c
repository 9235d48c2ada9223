/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The performance management agent: the counters of one port and of all ports of a node, and Sets
 * of counters.
 */
#include <harness.h>

#include "fabric/agents/link.h"
#include "fabric/agents/pma_samples.h"
#include "fabric/model/lanes.h"
#include "fabric/testing_mads.h"
#include "wire/mad_name.h"
#include "wire/perf.h"

#define MLID    0xC001
#define PACKETS 10
#define BYTES   4000
#define HEADERS 32 /* bytes of a datagram beside its payload */
#define WORDS   ((BYTES + PACKETS * HEADERS) / 4)

static struct wire_perf_mad request(uint8_t method, uint16_t attribute)
{
	return (struct wire_perf_mad){ .mad = { .base_version = MAD_BASE_VERSION,
		                                .mgmt_class = MAD_CLASS_PERF,
		                                .class_version = MAD_VERSION_PERF,
		                                .method = method,
		                                .transaction_id = 7,
		                                .attribute_id = attribute } };
}

/* Host 0 sends the request @p, which becomes the response. Its status. */
static uint16_t ask(struct lab *l, uint16_t lid, struct wire_perf_mad *p)
{
	struct fabric_mad mad = {
		.slid = 1, .dlid = lid, .src_qpn = 1, .dest_qpn = 1, .qkey = IB_QKEY_GSI
	};

	wire_perf_mad_encode(p, mad.data);
	lab_ask(l, lab_host(l, 0), &mad);
	wire_perf_mad_decode(l->got.data, p);
	return p->mad.status;
}

static struct wire_port_counters counters(struct lab *l, uint16_t lid, uint8_t port)
{
	struct wire_port_counters c = { .port_select = port };
	struct wire_perf_mad p = request(MAD_GET, PERF_ATTR_PORT_COUNTERS);

	wire_port_counters_encode(&c, p.data);
	assert_int_equal(ask(l, lid, &p), MAD_STATUS_OK);
	wire_port_counters_decode(p.data, &c);
	assert_int_equal(c.port_select, port);
	return c;
}

static struct wire_port_counters write_counters(struct lab *l, uint16_t lid,
                                                const struct wire_port_counters *want)
{
	struct wire_perf_mad p = request(MAD_SET, PERF_ATTR_PORT_COUNTERS);
	struct wire_port_counters c;

	wire_port_counters_encode(want, p.data);
	assert_int_equal(ask(l, lid, &p), MAD_STATUS_OK);
	wire_port_counters_decode(p.data, &c);
	return c;
}

static struct wire_port_counters_extended extended(struct lab *l, uint16_t lid, uint8_t port)
{
	struct wire_port_counters_extended c = { .port_select = port };
	struct wire_perf_mad p = request(MAD_GET, PERF_ATTR_PORT_COUNTERS_EXTENDED);

	wire_port_counters_extended_encode(&c, p.data);
	assert_int_equal(ask(l, lid, &p), MAD_STATUS_OK);
	wire_port_counters_extended_decode(p.data, &c);
	return c;
}

/* Counts more packets and bytes from host 0 to host 1. */
static void send_packets(struct lab *l, uint64_t packets, uint64_t bytes)
{
	uint32_t qpn = testing_qp(l->f, 10, lab_host(l, 0));
	struct fabric_flow *flow = testing_flow(l->f, lab_host(l, 0), qpn, 2, NULL);
	struct shm_flow_count *c = shm_flow_count_at(l->f->region, flow->id);

	atomic_fetch_add(&c->packets, packets);
	atomic_fetch_add(&c->bytes, bytes);
}

CASE_WITH(every_port_along_the_path_has_counted, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	static const struct {
		uint16_t lid;
		uint8_t out, in;
	} hops[] = { { SW_LID, TO_RIGHT, TO_HOST },
		     { SW_LID + 1, TO_RIGHT, TO_LEFT },
		     { SW_LID + 2, TO_HOST, TO_LEFT } };

	send_packets(l, PACKETS, BYTES);
	assert_int_equal(counters(l, 1, 1).xmit_packets, PACKETS);
	assert_int_equal(counters(l, 1, 1).xmit_data, WORDS);
	assert_int_equal(counters(l, 1, 1).rcv_packets, 0);
	for (size_t i = 0; EACH_ROW(i, hops); i++) {
		assert_int_equal(counters(l, hops[i].lid, hops[i].out).xmit_packets, PACKETS);
		assert_int_equal(counters(l, hops[i].lid, hops[i].out).rcv_packets, 0);
		assert_int_equal(counters(l, hops[i].lid, hops[i].in).rcv_packets, PACKETS);
		assert_int_equal(counters(l, hops[i].lid, hops[i].in).rcv_data, WORDS);
	}
	assert_int_equal(counters(l, 2, 1).rcv_packets, PACKETS);
	assert_int_equal(extended(l, 2, 1).rcv_data, WORDS);
}

/* Counts that host 0 has sent this many more packets on @flow. */
static void send_on(struct lab *l, struct fabric_flow *flow, uint64_t packets)
{
	atomic_fetch_add(&shm_flow_count_at(l->f->region, flow->id)->packets, packets);
}

static struct fabric_flow *flow_to(struct lab *l, uint16_t dlid, uint16_t pkey)
{
	uint32_t qpn = testing_qp(l->f, 10, lab_host(l, 0));
	struct ib_gid mgid = testing_mgid(1);

	shm_qp_at(l->f->region, qpn)->pkey = pkey;
	return testing_flow(l->f, lab_host(l, 0), qpn, dlid, ib_lid_is_mcast(dlid) ? &mgid : NULL);
}

CASE_WITH(packets_to_groups_are_counted_apart, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_counters_extended c;

	testing_row(l->f, l->sw[0], MLID, TO_HOST, TO_RIGHT, 0);
	send_on(l, flow_to(l, MLID, 0), PACKETS);
	send_packets(l, 1, 4);
	c = extended(l, 1, 1);
	assert_int_equal(c.xmit_packets, PACKETS + 1);
	assert_int_equal(c.multicast_xmit_packets, PACKETS);
	assert_int_equal(c.unicast_xmit_packets, 1);
	c = extended(l, SW_LID, TO_HOST);
	assert_int_equal(c.multicast_rcv_packets, PACKETS);
	assert_int_equal(c.unicast_rcv_packets, 1);
}

CASE_WITH(a_packet_without_a_route_is_a_relay_error_at_the_port_it_came_in_by, lab_setup_active,
          lab_teardown)
{
	struct lab *l = *state;

	fabric_lft_set(l->sw[1], 2, FABRIC_LFT_NONE);
	send_on(l, flow_to(l, 2, 0), PACKETS);
	assert_int_equal(counters(l, SW_LID + 1, TO_LEFT).rcv_switch_relay_errors, PACKETS);
	assert_int_equal(counters(l, SW_LID + 1, TO_LEFT).rcv_packets, PACKETS);
	send_on(l, flow_to(l, MLID, 0), PACKETS); /* there is no row for it */
	assert_int_equal(counters(l, SW_LID, TO_HOST).rcv_switch_relay_errors, PACKETS);
}

CASE_WITH(a_port_discards_what_it_cannot_send, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;

	l->sw[0]->port[TO_RIGHT].state = IB_PORT_INIT;
	send_on(l, flow_to(l, 2, 0), PACKETS);
	assert_int_equal(counters(l, SW_LID, TO_RIGHT).xmit_discards, PACKETS);
	assert_int_equal(counters(l, SW_LID, TO_RIGHT).xmit_packets, 0);
}

CASE_WITH(losses_are_counted_where_a_row_ends, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_flow *flow = flow_to(l, MLID, 0);

	send_on(l, flow, 1);
	testing_row(l->f, l->sw[0], MLID, TO_HOST, 0);
	fabric_flow_edge_changed(l->f, &l->sw[0]->port[TO_HOST], MLID, l->f->flows->compiled);
	send_on(l, flow, 1);
	assert_int_equal(counters(l, SW_LID, TO_HOST).rcv_switch_relay_errors, 1);
	testing_row(l->f, l->sw[0], MLID, 0);
	fabric_flow_edge_changed(l->f, &l->sw[0]->port[TO_HOST], MLID, l->f->flows->compiled);
	send_on(l, flow, 1);
	assert_int_equal(counters(l, SW_LID, TO_HOST).rcv_switch_relay_errors, 2);
}

CASE_WITH(a_port_holds_back_partitions_that_it_is_not_in, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_port *out = &l->sw[0]->port[TO_RIGHT], *in = out->peer;
	struct fabric_flow *flow = flow_to(l, 2, 0x8001);

	assert_int_equal(testing_receivers(l->f, flow), 1); /* nobody enforces it */
	out->link.partition_outbound = true;
	fabric_flow_all_changed(l->f);
	assert_int_equal(testing_receivers(l->f, flow), 0);
	send_on(l, flow, 3);
	assert_int_equal(counters(l, SW_LID, TO_RIGHT).xmit_constraint_errors, 3);
	out->pkey[1] = 0x8001;
	in->link.partition_inbound = true;
	fabric_flow_all_changed(l->f);
	assert_int_equal(testing_receivers(l->f, flow), 0);
	send_on(l, flow, 4);
	assert_int_equal(counters(l, SW_LID, TO_RIGHT).xmit_constraint_errors, 3);
	assert_int_equal(counters(l, SW_LID + 1, TO_LEFT).rcv_constraint_errors, 4);
	in->pkey[1] = 0x8001;
	fabric_flow_all_changed(l->f);
	assert_int_equal(testing_receivers(l->f, flow), 1);
}

CASE_WITH(a_queue_pair_that_changes_its_partition_gets_through, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_flow *flow = flow_to(l, 2, 0x8001);

	l->sw[0]->port[TO_HOST].link.partition_inbound = true;
	fabric_flow_all_changed(l->f);
	assert_int_equal(testing_receivers(l->f, flow), 0);
	shm_qp_at(l->f->region, 10)->pkey = IB_PKEY_DEFAULT;
	fabric_flow_pkey_changed(l->f, flow);
	assert_int_equal(testing_receivers(l->f, flow), 1);
}

CASE_WITH(all_ports_are_the_sum, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;

	send_packets(l, PACKETS, BYTES);
	assert_int_equal(counters(l, SW_LID, 255).xmit_packets, PACKETS);
	assert_int_equal(counters(l, SW_LID, 255).rcv_packets, PACKETS);
	assert_int_equal(extended(l, SW_LID, 255).xmit_packets, PACKETS);
	assert_int_equal(counters(l, 1, 255).xmit_packets, PACKETS);
}

CASE_WITH(a_set_writes_the_counters_that_it_selects, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_counters c = { .port_select = 1,
		                        .counter_select = PERF_SELECT_XMIT_PACKETS };

	send_packets(l, PACKETS, BYTES);
	c = write_counters(l, 1, &c);
	assert_int_equal(c.xmit_packets, 0);
	assert_int_equal(c.xmit_data, WORDS);
	send_packets(l, 3, 40);
	assert_int_equal(counters(l, 1, 1).xmit_packets, 3);
	assert_int_equal(counters(l, 1, 1).xmit_data, WORDS + (40 + 3 * HEADERS) / 4);
}

CASE_WITH(a_set_that_selects_none_writes_none, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_counters c = { .port_select = 1 };

	send_packets(l, PACKETS, BYTES);
	write_counters(l, 1, &c);
	assert_int_equal(counters(l, 1, 1).xmit_packets, PACKETS);
}

CASE_WITH(a_set_may_write_other_than_zero, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_counters c = { .port_select = 1,
		                        .counter_select = 0xFFFF,
		                        .xmit_packets = 100,
		                        .xmit_data = 200,
		                        .link_downed = 5 };

	c = write_counters(l, 1, &c);
	assert_int_equal(c.xmit_packets, 100);
	send_packets(l, PACKETS, BYTES);
	c = counters(l, 1, 1);
	assert_int_equal(c.xmit_packets, 100 + PACKETS);
	assert_int_equal(c.xmit_data, 200 + WORDS);
	assert_int_equal(c.link_downed, 5);
}

CASE_WITH(to_clear_all_ports_clears_each, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_counters c = { .port_select = 255, .counter_select = 0xFFFF };

	send_packets(l, PACKETS, BYTES);
	c = write_counters(l, SW_LID, &c);
	assert_int_equal(c.xmit_packets, 0);
	assert_int_equal(counters(l, SW_LID, TO_RIGHT).xmit_packets, 0);
	assert_int_equal(counters(l, SW_LID, TO_HOST).rcv_packets, 0);
	assert_int_equal(counters(l, SW_LID + 1, TO_LEFT).rcv_packets, PACKETS);
}

CASE_WITH(the_two_attributes_are_cleared_apart, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_counters c = { .port_select = 1, .counter_select = 0xFFFF };
	struct wire_port_counters_extended e = { .port_select = 1, .counter_select = 0xFF };
	struct wire_perf_mad p = request(MAD_SET, PERF_ATTR_PORT_COUNTERS_EXTENDED);

	send_packets(l, PACKETS, BYTES);
	write_counters(l, 1, &c);
	assert_int_equal(extended(l, 1, 1).xmit_packets, PACKETS);
	send_packets(l, 5, 100);
	wire_port_counters_extended_encode(&e, p.data);
	assert_int_equal(ask(l, 1, &p), MAD_STATUS_OK);
	wire_port_counters_extended_decode(p.data, &e);
	assert_int_equal(e.xmit_packets, 0);
	assert_int_equal(counters(l, 1, 1).xmit_packets, 5);
}

CASE_WITH(short_counters_stop_at_their_largest_value, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;

	send_packets(l, 1ull << 40, 1ull << 50);
	assert_int_equal(counters(l, 1, 1).xmit_packets, UINT32_MAX);
	assert_int_equal(counters(l, 1, 1).xmit_data, UINT32_MAX);
	assert_true(extended(l, 1, 1).xmit_packets == 1ull << 40);
	assert_true(extended(l, 1, 1).xmit_data == (1ull << 48) + (1ull << 40) * HEADERS / 4);
	atomic_store(&shm_port_count_at(l->f->region, 0)->xmit_discards, 70000);
	assert_int_equal(counters(l, 1, 1).xmit_discards, UINT16_MAX);
}

CASE_WITH(a_link_that_went_down_is_counted_at_both_ends, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_port *p = &l->sw[1]->port[4];

	testing_plug(p, &l->sw[0]->port[4]);
	assert_int_equal(fabric_link_set(l->f, p, false), 0);
	assert_int_equal(fabric_link_set(l->f, p, true), 0);
	assert_int_equal(counters(l, SW_LID, 4).link_downed, 1);
	assert_int_equal(counters(l, SW_LID + 1, 4).link_downed, 1);
	assert_int_equal(counters(l, SW_LID, TO_HOST).link_downed, 0);
}

CASE_WITH(links_that_recover_and_links_that_go_down_are_cleared_apart, lab_setup_active,
          lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_counters c = { .port_select = 1,
		                        .counter_select = PERF_SELECT_LINK_ERROR_RECOVERY };

	l->f->hca_port[0]->stats.link_recovered = 300;
	l->f->hca_port[0]->stats.link_downed = 2;
	assert_int_equal(counters(l, 1, 1).link_error_recovery, UINT8_MAX);
	c = write_counters(l, 1, &c);
	assert_int_equal(c.link_error_recovery, 0);
	assert_int_equal(c.link_downed, 2);
	l->f->hca_port[0]->stats.link_recovered++;
	assert_int_equal(counters(l, 1, 1).link_error_recovery, 1);
}

CASE_WITH(errors_of_symbols_and_of_packets_are_cleared_apart, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_counters c = { .port_select = 1,
		                        .counter_select = PERF_SELECT_SYMBOL_ERRORS };

	l->f->hca_port[0]->stats.damaged = 3;
	l->f->hca_port[0]->stats.symbol_errors = 4;
	assert_int_equal(counters(l, 1, 1).symbol_errors, 7);
	assert_int_equal(counters(l, 1, 1).rcv_errors, 3);
	c = write_counters(l, 1, &c);
	assert_int_equal(c.symbol_errors, 0);
	assert_int_equal(c.rcv_errors, 3);
	c.counter_select = PERF_SELECT_RCV_ERRORS;
	c.rcv_errors = 0;
	write_counters(l, 1, &c);
	l->f->hca_port[0]->stats.symbol_errors += 70000;
	assert_int_equal(counters(l, 1, 1).symbol_errors, UINT16_MAX);
	assert_int_equal(counters(l, 1, 1).rcv_errors, 0);
}

CASE_WITH(ports_that_there_are_not_are_a_bad_field, lab_setup_active, lab_teardown)
{
	static const struct {
		uint16_t lid;
		uint8_t port;
	} bad[] = { { SW_LID, SW_PORTS + 1 }, { SW_LID, 254 }, { 2, 0 }, { 2, 2 } };
	static const uint16_t attributes[] = { PERF_ATTR_PORT_COUNTERS,
		                               PERF_ATTR_PORT_COUNTERS_EXTENDED };
	struct lab *l = *state;

	for (size_t i = 0; EACH_ROW(i, bad); i++) {
		for (size_t k = 0; EACH_ROW(k, attributes); k++) {
			struct wire_perf_mad p = request(MAD_GET, attributes[k]);

			p.data[1] = bad[i].port;
			assert_int_equal(ask(l, bad[i].lid, &p), MAD_STATUS_BAD_FIELD);
			p = request(MAD_SET, attributes[k]);
			p.data[1] = bad[i].port;
			assert_int_equal(ask(l, bad[i].lid, &p), MAD_STATUS_BAD_FIELD);
		}
	}
}

/* ---- optional counters ---- */

static uint16_t ask_details(struct lab *l, uint16_t lid, uint8_t method, uint16_t attribute,
                            struct wire_perf_details_32 *d, const struct wire_layout *layout)
{
	struct wire_perf_mad p = request(method, attribute);
	uint16_t status;

	wire_encode(layout, d, p.data);
	status = ask(l, lid, &p);
	wire_decode(layout, p.data, d);
	return status;
}

#define DETAILS(l, lid, port, attribute, bits, i) \
	details(l, lid, port, attribute, &wire_perf_details_##bits##_layout)[i]

static const uint32_t *details(struct lab *l, uint16_t lid, uint8_t port, uint16_t attribute,
                               const struct wire_layout *layout)
{
	static struct wire_perf_details_32 d;

	d = (struct wire_perf_details_32){ .port_select = port };
	assert_int_equal(ask_details(l, lid, MAD_GET, attribute, &d, layout), MAD_STATUS_OK);
	assert_int_equal(d.port_select, port);
	return d.counter;
}

/* Counts packets of @sl from host 0 to host 1, with 100 bytes each. */
static void send_sl(struct lab *l, uint8_t sl, uint64_t packets)
{
	uint32_t qpn = testing_qp(l->f, 10, lab_host(l, 0));
	struct fabric_flow *flow = testing_flow_sl(l->f, lab_host(l, 0), qpn, 2, sl);

	shm_flow_count_at(l->f->region, flow->id)->packets += packets;
	shm_flow_count_at(l->f->region, flow->id)->bytes += 100 * packets;
}

CASE_WITH(data_is_counted_by_service_level, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;

	send_sl(l, 0, 4);
	send_sl(l, 3, 5);
	send_sl(l, 15, 6);
	assert_int_equal(DETAILS(l, 1, 1, PERF_ATTR_XMIT_DATA_SL, 32, 0), 4 * 33);
	assert_int_equal(DETAILS(l, 1, 1, PERF_ATTR_XMIT_DATA_SL, 32, 3), 5 * 33);
	assert_int_equal(DETAILS(l, 1, 1, PERF_ATTR_XMIT_DATA_SL, 32, 15), 6 * 33);
	assert_int_equal(DETAILS(l, 1, 1, PERF_ATTR_RCV_DATA_SL, 32, 3), 0);
	assert_int_equal(DETAILS(l, 2, 1, PERF_ATTR_RCV_DATA_SL, 32, 0), 4 * 33);
	assert_int_equal(DETAILS(l, 2, 1, PERF_ATTR_RCV_DATA_SL, 32, 15), 6 * 33);
	assert_int_equal(DETAILS(l, SW_LID + 1, TO_LEFT, PERF_ATTR_RCV_DATA_SL, 32, 3), 5 * 33);
}

/* SL n uses lane n modulo 8 until somebody says otherwise. */
CASE_WITH(datagrams_are_counted_by_lane, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;

	send_sl(l, 0, 4);
	send_sl(l, 3, 5);
	send_sl(l, 11, 6);
	assert_int_equal(DETAILS(l, 2, 1, PERF_ATTR_OP_RCV_COUNTERS, 32, PERF_OP_RCV_PACKETS), 15);
	assert_int_equal(DETAILS(l, 2, 1, PERF_ATTR_OP_RCV_COUNTERS, 32, PERF_OP_RCV_DATA),
	                 15 * 33);
	assert_int_equal(DETAILS(l, 2, 1, PERF_ATTR_VL_OP_PACKETS, 16, 0), 4);
	assert_int_equal(DETAILS(l, 2, 1, PERF_ATTR_VL_OP_PACKETS, 16, 3), 11);
	assert_int_equal(DETAILS(l, 2, 1, PERF_ATTR_VL_OP_DATA, 32, 3), 11 * 33);
	assert_int_equal(DETAILS(l, 2, 1, PERF_ATTR_VL_OP_DATA, 32, 11), 0);
	send_sl(l, 3, 70000); /* stops at the largest value */
	assert_int_equal(DETAILS(l, 2, 1, PERF_ATTR_VL_OP_PACKETS, 16, 3), UINT16_MAX);
	assert_int_equal(DETAILS(l, SW_LID, 255, PERF_ATTR_VL_OP_PACKETS, 16, 3), UINT16_MAX);
}

CASE_WITH(losses_are_counted_by_reason, lab_setup_active, lab_teardown)
{
	const struct wire_sl_to_vl none = { { [0 ... 15] = FABRIC_LANE_NONE } };
	struct lab *l = *state;

	fabric_lft_set(l->sw[1], 2, FABRIC_LFT_NONE);
	send_sl(l, 0, 4);
	assert_int_equal(DETAILS(l, SW_LID + 1, TO_LEFT, PERF_ATTR_RCV_ERROR_DETAILS, 16,
	                         PERF_RCV_DLID_MAPPING),
	                 4);
	fabric_lanes_map_write(&l->sw[0]->port[TO_RIGHT], TO_HOST, &none);
	send_sl(l, 0, 5);
	assert_int_equal(
	        DETAILS(l, SW_LID, TO_HOST, PERF_ATTR_RCV_ERROR_DETAILS, 16, PERF_RCV_VL_MAPPING),
	        5);
	assert_int_equal(counters(l, SW_LID, TO_HOST).rcv_switch_relay_errors, 5);
	l->sw[0]->port[TO_RIGHT].state = IB_PORT_INIT;
	send_sl(l, 0, 6);
	assert_int_equal(DETAILS(l, SW_LID, TO_RIGHT, PERF_ATTR_XMIT_DISCARD_DETAILS, 16,
	                         PERF_XMIT_INACTIVE),
	                 6);
	shm_port_count_at(l->f->region, 0)->xmit_discards = 9;
	shm_port_count_at(l->f->region, 0)->xmit_mtu = 7;
	assert_int_equal(DETAILS(l, 1, 1, PERF_ATTR_XMIT_DISCARD_DETAILS, 16, PERF_XMIT_INACTIVE),
	                 2);
	assert_int_equal(
	        DETAILS(l, 1, 1, PERF_ATTR_XMIT_DISCARD_DETAILS, 16, PERF_XMIT_NEIGHBOR_MTU), 7);
	l->f->hca_port[0]->stats.damaged = 8;
	assert_int_equal(DETAILS(l, 1, 1, PERF_ATTR_RCV_ERROR_DETAILS, 16, PERF_RCV_LOCAL_PHYSICAL),
	                 8);
}

CASE_WITH(optional_counters_are_written_apart, lab_setup_active, lab_teardown)
{
	struct wire_perf_details_32 d = { .port_select = 1, .counter_select = 1 << 3 };
	struct lab *l = *state;

	d.counter[3] = 100;
	send_sl(l, 0, 4);
	send_sl(l, 3, 5);
	assert_int_equal(ask_details(l, 2, MAD_SET, PERF_ATTR_VL_OP_PACKETS, &d,
	                             &wire_perf_details_16_layout),
	                 MAD_STATUS_OK);
	assert_int_equal(d.counter[3], 100);
	send_sl(l, 3, 2);
	assert_int_equal(DETAILS(l, 2, 1, PERF_ATTR_VL_OP_PACKETS, 16, 3), 102);
	assert_int_equal(DETAILS(l, 2, 1, PERF_ATTR_VL_OP_PACKETS, 16, 0), 4);
	assert_int_equal(DETAILS(l, 2, 1, PERF_ATTR_VL_OP_DATA, 32, 3), 7 * 33);
	d.op_code = 0x04; /* RC's SEND Only */
	assert_int_equal(ask_details(l, 2, MAD_SET, PERF_ATTR_VL_OP_PACKETS, &d,
	                             &wire_perf_details_16_layout),
	                 MAD_STATUS_BAD_FIELD);
}

CASE_WITH(what_never_happens_is_counted_as_zero, lab_setup_active, lab_teardown)
{
	static const uint16_t zeros[] = {
		PERF_ATTR_FLOW_CTL_COUNTERS,     PERF_ATTR_VL_XMIT_FLOW_CTL_UPDATE_ERRORS,
		PERF_ATTR_VL_XMIT_WAIT_COUNTERS, PERF_ATTR_SW_PORT_VL_CONGESTION,
		PERF_ATTR_RCV_CON_CTRL,          PERF_ATTR_SL_RCV_FECN,
		PERF_ATTR_SL_RCV_BECN,           PERF_ATTR_XMIT_CON_CTRL,
		PERF_ATTR_VL_XMIT_TIME_CONG
	};
	struct wire_perf_details_32 d = { .port_select = 1 };
	struct lab *l = *state;

	send_sl(l, 3, 5);
	for (size_t i = 0; i < ARRAY_SIZE(zeros); i++)
		for (unsigned k = 0; k < PERF_DETAILS; k++)
			assert_int_equal(DETAILS(l, SW_LID, TO_HOST, zeros[i], 32, k), 0);
	/* not of an HCA, and of no port that there is not */
	assert_int_equal(ask_details(l, 2, MAD_GET, PERF_ATTR_SW_PORT_VL_CONGESTION, &d,
	                             &wire_perf_details_16_layout),
	                 MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	d.port_select = 9;
	assert_int_equal(
	        ask_details(l, 2, MAD_GET, PERF_ATTR_VL_OP_DATA, &d, &wire_perf_details_32_layout),
	        MAD_STATUS_BAD_FIELD);
}

CASE_WITH(it_says_what_it_can, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_perf_mad p = request(MAD_GET, MAD_ATTR_CLASS_PORT_INFO);
	struct wire_class_port_info c;

	assert_int_equal(ask(l, SW_LID, &p), MAD_STATUS_OK);
	wire_class_port_info_decode(p.data, &c);
	assert_int_equal(c.base_version, 1);
	assert_int_equal(c.class_version, 1);
	assert_true(c.capability_mask & PERF_CAP_ALL_PORT_SELECT);
	assert_true(c.capability_mask & PERF_CAP_EXTENDED_WIDTH);
	assert_false(c.capability_mask & PERF_CAP_EXTENDED_WIDTH_NO_IETF);
	p.mad.method = MAD_SET;
	assert_int_equal(ask(l, SW_LID, &p), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
}

CASE_WITH(what_it_does_not_know_gets_a_status, lab_setup_active, lab_teardown)
{
	static const uint16_t bad[] = { 0, 0x13, 0x1E, 0x38, 0xFF00 };
	struct lab *l = *state;
	struct wire_perf_mad p;

	for (size_t i = 0; EACH_ROW(i, bad); i++) {
		p = request(MAD_GET, bad[i]);
		assert_int_equal(ask(l, SW_LID, &p), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	}
	p = request(MAD_GET, PERF_ATTR_PORT_COUNTERS);
	p.mad.class_version = 2;
	assert_int_equal(ask(l, SW_LID, &p), MAD_STATUS_BAD_VERSION);
	p = request(MAD_GET, PERF_ATTR_PORT_COUNTERS);
	p.mad.base_version = 0x80;
	assert_int_equal(ask(l, SW_LID, &p), MAD_STATUS_BAD_VERSION);
}

/* ---- readers that wait ---- */

static void note_wake(void *arg)
{
	++*(unsigned *)arg;
}

/* Sends a Get of PortCounters of host 0's port from there. */
static void send_get(struct lab *l)
{
	const struct wire_port_counters c = { .port_select = 1 };
	struct wire_perf_mad p = request(MAD_GET, PERF_ATTR_PORT_COUNTERS);
	struct fabric_mad mad = {
		.slid = 1, .dlid = 1, .src_qpn = 1, .dest_qpn = 1, .qkey = IB_QKEY_GSI
	};

	wire_port_counters_encode(&c, p.data);
	wire_perf_mad_encode(&p, mad.data);
	fabric_mad_send(l->f, lab_host(l, 0), &mad);
}

static uint32_t packets_got(const struct lab *l)
{
	struct wire_port_counters c;
	struct wire_perf_mad p;

	wire_perf_mad_decode(l->got.data, &p);
	assert_int_equal(p.mad.method, MAD_GET_RESP);
	assert_int_equal(p.mad.status, MAD_STATUS_OK);
	wire_port_counters_decode(p.data, &c);
	return c.xmit_packets;
}

/* The attributes of all classes have names elsewhere. */
CASE_WITH(each_attribute_that_is_answered_has_a_name, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;

	for (unsigned id = PERF_ATTR_PORT_SAMPLES_CONTROL; id <= UINT8_MAX; id++) {
		struct wire_perf_mad p = request(MAD_GET, (uint16_t)id);

		if (ask(l, SW_LID, &p) != MAD_STATUS_BAD_METHOD_ATTRIBUTE &&
		    !wire_mad_attribute_name(MAD_CLASS_PERF, (uint16_t)id))
			fail_msg("attribute 0x%04x has no name in mad_name.c", id);
	}
}

CASE_WITH(without_time_a_request_waits_for_the_next_pass, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_flow *flow = flow_to(l, 2, IB_PKEY_DEFAULT);
	struct fabric_collect *c = &l->f->flows->collect;
	struct fabric_mad_stats *stats = &l->f->mads->stats;
	unsigned wakes = 0;

	c->wake = note_wake;
	c->arg = &wakes;
	send_get(l); /* nobody has given it time to collect at once */
	assert_int_equal(l->n_got, 0);
	assert_int_equal(wakes, 1);
	send_on(l, flow, PACKETS);
	c->begun++; /* the first slice of a pass was done, so the next request has missed its flow
	             */
	c->at = flow->id + 1;
	send_get(l);
	fabric_collect_run(l->f);
	assert_int_equal(l->n_got, 2);
	assert_int_equal(packets_got(l), PACKETS);
	assert_int_equal(stats->sent, stats->delivered);
	assert_int_equal(stats->delivered, stats->answered + stats->accepted);
	fabric_collect_turn(l->f);
	send_on(l, flow, 1);
	send_get(l); /* there is time again */
	assert_int_equal(l->n_got, 3);
	assert_int_equal(packets_got(l), PACKETS + 1);
}

CASE_WITH(many_flows_are_looked_at_in_slices, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_flow *flow = NULL;
	const unsigned n = 2 * FABRIC_COLLECT_SLICE;
	unsigned wakes = 0;

	for (unsigned i = 0; i < n; i++)
		flow = flow_to(l, 2, IB_PKEY_DEFAULT);
	send_on(l, flow, PACKETS);
	l->f->flows->collect.wake = note_wake;
	l->f->flows->collect.arg = &wakes;
	fabric_collect_turn(l->f);
	send_get(l);
	while (!l->n_got)
		fabric_collect_run(l->f);
	assert_int_equal(packets_got(l), PACKETS);
	assert_in_range(wakes, 2, 5);
}

CASE_WITH(requests_end_with_the_fabric, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	unsigned wakes = 0;

	flow_to(l, 2, IB_PKEY_DEFAULT);
	l->f->flows->collect.wake = note_wake;
	l->f->flows->collect.arg = &wakes;
	for (unsigned i = 0; i < 5000; i++)
		send_get(l);
	assert_in_range(wakes, 4000, 4999); /* there are limits */
	assert_int_equal(l->f->mads->stats.unwanted, 5000 - wakes);
}

/* ---- samples ---- */

static uint64_t now, woken_at;

static uint64_t clock_now(void *arg)
{
	(void)arg;
	return now;
}

static void clock_wake(void *arg, uint64_t at_ns)
{
	(void)arg;
	woken_at = at_ns;
}

/* The time that the daemon was asked for comes. */
static void pass_until(struct lab *l, uint64_t due)
{
	assert_int_equal(woken_at, due);
	now = due;
	woken_at = fabric_pma_samples_run(l->f, now);
}

static struct wire_port_samples_control control(struct lab *l, uint8_t method,
                                                struct wire_port_samples_control c)
{
	struct wire_perf_mad p = request(method, PERF_ATTR_PORT_SAMPLES_CONTROL);

	wire_port_samples_control_encode(&c, p.data);
	assert_int_equal(ask(l, SW_LID, &p), MAD_STATUS_OK);
	wire_port_samples_control_decode(p.data, &c);
	return c;
}

static struct wire_port_samples_result result(struct lab *l)
{
	struct wire_perf_mad p = request(MAD_GET, PERF_ATTR_PORT_SAMPLES_RESULT);
	struct wire_port_samples_result r;

	assert_int_equal(ask(l, SW_LID, &p), MAD_STATUS_OK);
	wire_port_samples_result_decode(p.data, &r);
	return r;
}

/* 5 us of the port to the right, 3 us from now on. */
static const struct wire_port_samples_control wanted = {
	.port_select = TO_RIGHT,
	.sample_start = 3,
	.sample_interval = 5,
	.tag = 77,
	.counter_select = { 3, 1, 0, 4, 5, 99 },
};

CASE_WITH(a_sample_counts_between_its_begin_and_its_end, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_samples_control c;

	now = 1000000;
	l->f->mads->clock = (struct fabric_clock){ clock_now, clock_wake, NULL };
	assert_int_equal(result(l).sample_status, PERF_SAMPLE_DONE);
	c = control(l, MAD_SET, wanted);
	assert_int_equal(c.sample_status, PERF_SAMPLE_STARTED);
	assert_int_equal((c.tick + 1) * 4, 1000);
	send_packets(l, 7, 7);
	pass_until(l, 1003000);
	assert_int_equal(result(l).sample_status, PERF_SAMPLE_RUNNING);
	send_packets(l, PACKETS, BYTES);
	/* a Set meanwhile changes nothing */
	c = wanted;
	c.tag = 78;
	c = control(l, MAD_SET, c);
	assert_int_equal(c.tag, 77);
	assert_int_equal(result(l).counter[0], 0);
	pass_until(l, 1008000);
	assert_true(woken_at == UINT64_MAX);
	send_packets(l, 7, 7);
	assert_int_equal(result(l).sample_status, PERF_SAMPLE_DONE);
	assert_int_equal(result(l).tag, 77);
	assert_int_equal(result(l).counter[0], PACKETS);
	assert_int_equal(result(l).counter[1], WORDS);
	for (unsigned i = 2; i < PERF_SAMPLES; i++)
		assert_int_equal(result(l).counter[i], 0);
}

CASE_WITH(a_sample_that_runs_ends_with_the_fabric, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_perf_mad p = request(MAD_SET, PERF_ATTR_PORT_SAMPLES_CONTROL);

	l->f->mads->clock = (struct fabric_clock){ clock_now, clock_wake, NULL };
	control(l, MAD_SET, wanted);
	/* there is one mechanism, and each sample is of one port that there is */
	p.mad.attribute_modifier = 1;
	wire_port_samples_control_encode(&wanted, p.data);
	assert_int_equal(ask(l, SW_LID, &p), MAD_STATUS_BAD_FIELD);
	p = request(MAD_SET, PERF_ATTR_PORT_SAMPLES_CONTROL);
	assert_int_equal(ask(l, 1, &p), MAD_STATUS_BAD_FIELD); /* a host has no port 0 */
	p = request(MAD_SET, PERF_ATTR_PORT_SAMPLES_CONTROL);
	p.data[PERF_AT_PORT_SELECT] = PERF_PORT_SELECT_ALL;
	assert_int_equal(ask(l, SW_LID, &p), MAD_STATUS_BAD_FIELD);
	p = request(MAD_SET, PERF_ATTR_PORT_SAMPLES_RESULT);
	assert_int_equal(ask(l, SW_LID, &p), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
}
