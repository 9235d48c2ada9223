/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subnet management agent: Get and Set of each attribute, as subnet managers and diagnostic
 * programs send them, and what a Set does to the fabric.
 */
#include <harness.h>

#include "fabric/agents/link.h"
#include "fabric/model/lanes.h"
#include "fabric/testing_mads.h"
#include "wire/mad_name.h"
#include "wire/notice.h"

#define MLID    0xC005
#define SW      SW_LID
#define KEY     0x1122334455667788
#define CAP_END (PORT_CAP_TRAP | PORT_CAP_SYSTEM_IMAGE_GUID | PORT_CAP_CLIENT_REREGISTER)

static uint8_t data[SMP_DATA_BYTES];

static const uint8_t *zeroes(void)
{
	static const uint8_t none[SMP_DATA_BYTES];

	return none;
}

/* ---- nodes ---- */

CASE_WITH(a_node_tells_its_description_and_nobody_changes_it, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	assert_int_equal(lab_get(l, SW + 1, SMP_ATTR_NODE_DESCRIPTION, 0, data), MAD_STATUS_OK);
	assert_string_equal((char *)data, "switch 1");
	assert_int_equal(lab_set(l, SW + 1, SMP_ATTR_NODE_DESCRIPTION, 0, data),
	                 MAD_STATUS_BAD_METHOD_ATTRIBUTE);
}

CASE_WITH(node_info_tells_of_switches, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_node_info i;

	assert_int_equal(lab_get(l, SW, SMP_ATTR_NODE_INFO, 0, data), MAD_STATUS_OK);
	wire_node_info_decode(data, &i);
	assert_int_equal(i.base_version, 1);
	assert_int_equal(i.class_version, 1);
	assert_int_equal(i.node_type, NODE_TYPE_SWITCH);
	assert_int_equal(i.num_ports, SW_PORTS);
	assert_true(i.node_guid == l->sw[0]->guid && i.port_guid == l->sw[0]->guid);
	assert_int_equal(i.local_port_num, TO_HOST);
	assert_int_equal(i.partition_cap, SHM_PKEYS);
}

CASE_WITH(node_info_tells_of_hcas, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_node_info i;

	assert_int_equal(lab_get(l, 2, SMP_ATTR_NODE_INFO, 0, data), MAD_STATUS_OK);
	wire_node_info_decode(data, &i);
	assert_int_equal(i.node_type, NODE_TYPE_CA);
	assert_true(i.node_guid == lab_host(l, 1)->node->guid);
	assert_true(i.port_guid == lab_host(l, 1)->guid);
	assert_int_equal(i.local_port_num, 1);
	assert_int_equal(lab_set(l, 2, SMP_ATTR_NODE_INFO, 0, data),
	                 MAD_STATUS_BAD_METHOD_ATTRIBUTE);
}

CASE_WITH(guid_info_has_the_guid_of_the_port, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_guid_info g;

	assert_int_equal(lab_get(l, 2, SMP_ATTR_GUID_INFO, 0, data), MAD_STATUS_OK);
	wire_guid_info_decode(data, &g);
	assert_true(g.guid[0] == lab_host(l, 1)->guid);
	for (unsigned i = 1; i < GUID_BLOCK; i++)
		assert_true(g.guid[i] == 0);
}

static uint64_t guid_at(struct lab *l, uint16_t lid, unsigned i)
{
	struct wire_guid_info g;

	assert_int_equal(lab_get(l, lid, SMP_ATTR_GUID_INFO, i / GUID_BLOCK, data), MAD_STATUS_OK);
	wire_guid_info_decode(data, &g);
	return g.guid[i % GUID_BLOCK];
}

static void set_guid_block(struct lab *l, uint16_t lid, unsigned block,
                           const struct wire_guid_info *g)
{
	wire_guid_info_encode(g, data);
	assert_int_equal(lab_set(l, lid, SMP_ATTR_GUID_INFO, block, data), MAD_STATUS_OK);
}

CASE_WITH(guids_that_are_given_to_a_port_become_its_gids, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_port *p = lab_host(l, 1);
	struct ib_gid gid;

	set_guid_block(l, 2, 0, &(struct wire_guid_info){ { 99, 0x1111, 0, 0x3333 } });
	set_guid_block(l, 2, 1, &(struct wire_guid_info){ { [7] = 0xFFFF } });
	assert_int_equal(l->changes, FABRIC_PORT_ALIAS);
	assert_true(guid_at(l, 2, 0) == p->guid); /* which nobody can change */
	assert_true(guid_at(l, 2, 1) == 0x1111);
	assert_true(guid_at(l, 2, 2) == 0);
	assert_true(guid_at(l, 2, 3) == 0x3333);
	assert_true(guid_at(l, 2, 15) == 0xFFFF);
	for (unsigned i = 1; i < SHM_IB_GIDS; i++) {
		if (!guid_at(l, 2, i))
			continue;
		fabric_gid_make(l->f, guid_at(l, 2, i), &gid);
		assert_memory_equal(&shm_port_at(l->f->region, 1)->gid[i], &gid, sizeof(gid));
		assert_ptr_equal(fabric_port_by_gid(l->f, &gid), p);
	}
}

CASE_WITH(a_removed_guid_is_no_gid, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	const struct ib_gid none = { { 0 } };
	struct ib_gid gid;

	fabric_gid_make(l->f, 0x1111, &gid);
	set_guid_block(l, 2, 0, &(struct wire_guid_info){ { 0, 0x1111 } });
	set_guid_block(l, 2, 0, &(struct wire_guid_info){ { 0, 0 } });
	assert_null(fabric_port_by_gid(l->f, &gid));
	assert_memory_equal(&shm_port_at(l->f->region, 1)->gid[1], &none, sizeof(none));
	assert_null(fabric_port_by_gid(l->f, &none));
}

CASE_WITH(a_flow_to_an_alias_begins_and_ends_with_it, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_flow *flow;
	struct ib_gid gid;

	testing_activate_all(l->f);
	fabric_gid_make(l->f, 0x1111, &gid);
	flow = testing_flow(l->f, lab_host(l, 0), 10, 2, &gid);
	assert_int_equal(testing_receivers(l->f, flow), 0);
	set_guid_block(l, 2, 0, &(struct wire_guid_info){ { 0, 0x1111 } });
	fabric_flow_follow_all(l->f);
	assert_int_equal(testing_receivers(l->f, flow), 1);
	set_guid_block(l, 2, 0, &(struct wire_guid_info){ { 0, 0x2222 } });
	fabric_flow_follow_all(l->f);
	assert_int_equal(testing_receivers(l->f, flow), 0);
}

CASE_WITH(a_switch_has_but_its_own_guid, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	set_guid_block(l, SW, 0, &(struct wire_guid_info){ { 1, 2, 3 } });
	assert_true(guid_at(l, SW, 0) == l->sw[0]->guid);
	assert_true(guid_at(l, SW, 1) == 0);
	assert_int_equal(lab_get(l, SW, SMP_ATTR_GUID_INFO, 1, data), MAD_STATUS_BAD_FIELD);
	assert_int_equal(lab_get(l, 2, SMP_ATTR_GUID_INFO, 2, data), MAD_STATUS_BAD_FIELD);
}

static struct wire_switch_info switch_info(struct lab *l)
{
	struct wire_switch_info i;

	assert_int_equal(lab_get(l, SW, SMP_ATTR_SWITCH_INFO, 0, data), MAD_STATUS_OK);
	wire_switch_info_decode(data, &i);
	return i;
}

static uint16_t set_switch_info(struct lab *l, const struct wire_switch_info *i)
{
	wire_switch_info_encode(i, data);
	return lab_set(l, SW, SMP_ATTR_SWITCH_INFO, 0, data);
}

CASE_WITH(switch_info_tells_how_much_the_tables_hold, lab_setup, lab_teardown)
{
	struct wire_switch_info i = switch_info(*state);

	assert_int_equal(i.linear_fdb_cap, IB_LID_MCAST_FIRST);
	assert_int_equal(i.multicast_fdb_cap, 16383);
	assert_int_equal(i.random_fdb_cap, 0);
	assert_int_equal(i.filter_raw_inbound_cap, 1);
	assert_int_equal(i.filter_raw_outbound_cap, 1);
}

CASE_WITH(switch_info_reads_back_what_was_set, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_switch_info i = switch_info(l);

	i.linear_fdb_top = 1000;
	i.multicast_fdb_top = 0xC0FF;
	i.life_time_value = 18;
	assert_int_equal(set_switch_info(l, &i), MAD_STATUS_OK);
	i = switch_info(l);
	assert_int_equal(i.linear_fdb_top, 1000);
	assert_int_equal(i.multicast_fdb_top, 0xC0FF);
	assert_int_equal(i.life_time_value, 18);
	i.linear_fdb_top = IB_LID_MCAST_FIRST;
	assert_int_equal(set_switch_info(l, &i), MAD_STATUS_BAD_FIELD);
	assert_int_equal(switch_info(l).linear_fdb_top, 1000);
}

CASE_WITH(port_state_change_is_set_until_it_is_cleared, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_switch_info i = switch_info(l);

	i.port_state_change = 1;
	for (int up = 0; up <= 1; up++) {
		assert_int_equal(fabric_link_set(l->f, &l->sw[0]->port[TO_RIGHT], up), 0);
		assert_int_equal(switch_info(l).port_state_change, 1);
		assert_int_equal(set_switch_info(l, &i), MAD_STATUS_OK);
		assert_int_equal(switch_info(l).port_state_change, 0);
	}
	i.port_state_change = 0; /* no change */
	l->sw[0]->state_change = 1;
	set_switch_info(l, &i);
	assert_int_equal(switch_info(l).port_state_change, 1);
}

CASE_WITH(changes_by_a_subnet_manager_do_not_set_port_state_change, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i;

	l->sw[0]->state_change = 0;
	assert_int_equal(lab_get(l, SW, SMP_ATTR_PORT_INFO, TO_RIGHT, data), MAD_STATUS_OK);
	wire_port_info_decode(data, &i);
	i.port_physical_state = 0;
	i.port_state = IB_PORT_ARMED;
	wire_port_info_encode(&i, data);
	assert_int_equal(lab_set(l, SW, SMP_ATTR_PORT_INFO, TO_RIGHT, data), MAD_STATUS_OK);
	assert_int_equal(switch_info(l).port_state_change, 0);
}

/* A sender that has the response need not wait. */
CASE_WITH(tables_hold_when_the_set_is_answered, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_flow *flow;
	struct wire_linear_ft t;

	testing_activate_all(l->f);
	flow = testing_flow(l->f, lab_host(l, 0), 10, 2, NULL);
	assert_int_equal(testing_receivers(l->f, flow), 1);
	assert_int_equal(lab_get(l, SW, SMP_ATTR_LINEAR_FT, 0, data), MAD_STATUS_OK);
	wire_linear_ft_decode(data, &t);
	t.port[2] = FABRIC_LFT_NONE;
	wire_linear_ft_encode(&t, data);
	assert_int_equal(lab_set(l, SW, SMP_ATTR_LINEAR_FT, 0, data), MAD_STATUS_OK);
	assert_int_equal(testing_receivers(l->f, flow), 0);
}

CASE_WITH(hcas_have_no_switch_info, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	assert_int_equal(lab_get(l, 2, SMP_ATTR_SWITCH_INFO, 0, data),
	                 MAD_STATUS_BAD_METHOD_ATTRIBUTE);
}

/* ---- PortInfo ---- */

static struct wire_port_info port_info(struct lab *l, uint16_t lid, unsigned port)
{
	struct wire_port_info i;

	assert_int_equal(lab_get(l, lid, SMP_ATTR_PORT_INFO, port, data), MAD_STATUS_OK);
	wire_port_info_decode(data, &i);
	return i;
}

/* The PortInfo that a subnet manager reads first, with no change of state. */
static struct wire_port_info to_set(struct lab *l, uint16_t lid, unsigned port)
{
	struct wire_port_info i = port_info(l, lid, port);

	i.port_state = 0;
	i.port_physical_state = 0;
	return i;
}

static uint16_t set_port_info(struct lab *l, uint16_t lid, unsigned port,
                              const struct wire_port_info *i)
{
	wire_port_info_encode(i, data);
	return lab_set(l, lid, SMP_ATTR_PORT_INFO, port, data);
}

static uint16_t set_state(struct lab *l, uint16_t lid, unsigned port, unsigned state,
                          unsigned physical)
{
	struct wire_port_info i = to_set(l, lid, port);

	i.port_state = (uint8_t)state;
	i.port_physical_state = (uint8_t)physical;
	return set_port_info(l, lid, port, &i);
}

CASE_WITH(port_info_tells_of_an_hca_port, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = port_info(l, 2, 1);

	assert_int_equal(i.lid, 2);
	assert_true(i.gid_prefix == IB_SUBNET_PREFIX_DEFAULT);
	assert_int_equal(i.local_port_num, 1);
	assert_int_equal(i.port_state, IB_PORT_INIT);
	assert_int_equal(i.port_physical_state, PORT_PHYS_LINK_UP);
	assert_int_equal(i.link_down_default_state, PORT_PHYS_POLLING);
	assert_int_equal(i.mtu_cap, IBV_MTU_4096);
	assert_int_equal(i.vl_cap, VL_CAP_VL0_7);
	assert_int_equal(i.operational_vls, VL_CAP_VL0_7);
	assert_int_equal(i.vl_arbitration_low_cap, 64);
	assert_int_equal(i.guid_cap, SHM_IB_GIDS);
	assert_int_equal(i.capability_mask & CAP_END, CAP_END);
	assert_int_equal(i.capability_mask & PORT_CAP_SM, 0);
}

CASE_WITH(port_0_of_an_hca_is_the_one_that_is_asked, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	assert_int_equal(port_info(l, 2, 0).lid, 2);
}

CASE_WITH(port_0_of_a_switch_has_its_lid_and_is_active, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = port_info(l, SW + 1, 0);

	assert_int_equal(i.lid, SW + 1);
	assert_int_equal(i.port_state, IB_PORT_ACTIVE);
	assert_int_equal(i.port_physical_state, PORT_PHYS_LINK_UP);
	assert_int_equal(i.capability_mask & CAP_END, CAP_END);
}

CASE_WITH(other_ports_of_a_switch_are_nobodys_address, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = port_info(l, SW + 1, TO_RIGHT);

	assert_int_equal(i.lid, 0);
	assert_int_equal(i.capability_mask, 0);
	assert_int_equal(i.guid_cap, 0);
	assert_int_equal(i.port_state, IB_PORT_INIT);
}

CASE_WITH(the_local_port_is_where_the_request_came_in, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	for (unsigned k = 0; k <= SW_PORTS; k++) {
		assert_int_equal(port_info(l, SW, k).local_port_num, TO_HOST);
		assert_int_equal(port_info(l, SW + 1, k).local_port_num, TO_LEFT);
	}
}

CASE_WITH(a_port_without_a_cable_is_down_and_polls, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = port_info(l, SW, 5);

	assert_int_equal(i.port_state, IB_PORT_DOWN);
	assert_int_equal(i.port_physical_state, PORT_PHYS_POLLING);
	assert_int_equal(i.link_speed_active, 0);
	assert_int_equal(i.link_speed_ext_active, 0);
}

CASE_WITH(width_and_speed_are_those_of_the_link, lab_setup, lab_teardown)
{
	static const struct {
		uint8_t width, speed, widths, speeds, speed_active, exts, ext_active;
		uint16_t mask2;
	} links[] = {
		{ FABRIC_WIDTH_4X, FABRIC_SPEED_SDR, 3, 1, 1, 0, 0, 0x2 },
		{ FABRIC_WIDTH_1X, FABRIC_SPEED_DDR, 1, 3, 2, 0, 0, 0x2 },
		{ FABRIC_WIDTH_4X, FABRIC_SPEED_QDR, 3, 7, 4, 0, 0, 0x2 },
		{ FABRIC_WIDTH_4X, FABRIC_SPEED_FDR, 3, 7, 4, 1, 1, 0x2 },
		{ FABRIC_WIDTH_2X, FABRIC_SPEED_HDR, 17, 7, 4, 7, 4, 0x32 },
		{ FABRIC_WIDTH_12X, FABRIC_SPEED_NDR, 15, 7, 4, 15, 8, 0x422 },
	};
	struct lab *l = *state;

	for (size_t k = 0; EACH_ROW(k, links); k++) {
		struct wire_port_info i;

		lab_host(l, 1)->width = lab_host(l, 1)->width_built = links[k].width;
		lab_host(l, 1)->speed = lab_host(l, 1)->speed_built = links[k].speed;
		i = port_info(l, 2, 1);
		assert_int_equal(i.link_width_active, links[k].width);
		assert_int_equal(i.link_width_supported, links[k].widths);
		assert_int_equal(i.link_width_enabled, links[k].widths);
		assert_int_equal(i.link_speed_supported, links[k].speeds);
		assert_int_equal(i.link_speed_active, links[k].speed_active);
		assert_int_equal(i.link_speed_ext_supported, links[k].exts);
		assert_int_equal(i.link_speed_ext_active, links[k].ext_active);
		assert_int_equal(i.capability_mask2, links[k].mask2);
		assert_true(i.capability_mask & PORT_CAP_CAPABILITY_MASK2);
	}
}

CASE_WITH(ports_that_there_are_not_are_a_bad_field, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	assert_int_equal(lab_get(l, SW, SMP_ATTR_PORT_INFO, SW_PORTS + 1, data),
	                 MAD_STATUS_BAD_FIELD);
	assert_int_equal(lab_get(l, SW, SMP_ATTR_PORT_INFO, 255, data), MAD_STATUS_BAD_FIELD);
	assert_int_equal(lab_get(l, SW, SMP_ATTR_PORT_INFO, 0x101, data), MAD_STATUS_BAD_FIELD);
	assert_int_equal(lab_get(l, 2, SMP_ATTR_PORT_INFO, 2, data), MAD_STATUS_BAD_FIELD);
	/* a manager that knows extended speeds says so */
	assert_int_equal(lab_get(l, SW, SMP_ATTR_PORT_INFO, 0x80000001, data), MAD_STATUS_OK);
}

CASE_WITH(a_subnet_manager_brings_a_port_up_step_by_step, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	assert_int_equal(set_state(l, 2, 1, IB_PORT_ARMED, 0), MAD_STATUS_OK);
	assert_int_equal(port_info(l, 2, 1).port_state, IB_PORT_ARMED);
	assert_int_equal(set_state(l, 2, 1, IB_PORT_ACTIVE, 0), MAD_STATUS_OK);
	assert_int_equal(port_info(l, 2, 1).port_state, IB_PORT_ACTIVE);
	assert_int_equal(shm_port_at(l->f->region, 1)->state, IB_PORT_ACTIVE);
	assert_int_equal(lab_host(l, 1)->peer->state, IB_PORT_INIT); /* the other end is another */
	assert_int_equal(l->changes, FABRIC_PORT_STATE);
	assert_int_equal(l->n_changes, 2);
	assert_ptr_equal(l->changed, lab_host(l, 1));
}

CASE_WITH(setting_the_present_state_changes_nothing, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	set_state(l, 2, 1, IB_PORT_ARMED, 0);
	l->n_changes = 0;
	assert_int_equal(set_state(l, 2, 1, IB_PORT_ARMED, 0), MAD_STATUS_OK);
	assert_int_equal(set_state(l, 2, 1, 0, 0), MAD_STATUS_OK);
	assert_int_equal(l->n_changes, 0);
}

CASE_WITH(steps_that_the_state_machine_has_not_are_a_bad_field, lab_setup, lab_teardown)
{
	static const struct {
		uint8_t from, to;
	} bad[] = {
		{ IB_PORT_INIT, IB_PORT_ACTIVE },
		{ IB_PORT_ACTIVE, IB_PORT_ARMED },
		{ IB_PORT_ARMED, IB_PORT_INIT },
		{ IB_PORT_INIT, IB_PORT_INIT },
		{ IB_PORT_INIT, 5 },
		{ IB_PORT_ACTIVE, 15 },
	};
	struct lab *l = *state;

	for (size_t i = 0; EACH_ROW(i, bad); i++) {
		lab_host(l, 1)->state = bad[i].from;
		assert_int_equal(set_state(l, 2, 1, bad[i].to, 0), MAD_STATUS_BAD_FIELD);
		assert_int_equal(lab_host(l, 1)->state, bad[i].from);
	}
	assert_int_equal(set_state(l, SW, 5, IB_PORT_ARMED, 0), MAD_STATUS_BAD_FIELD);
}

CASE_WITH(a_set_that_is_wrong_changes_nothing_at_all, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = to_set(l, 2, 1);

	i.lid = 99;
	i.m_key = KEY;
	i.port_state = IB_PORT_ACTIVE;
	assert_int_equal(set_port_info(l, 2, 1, &i), MAD_STATUS_BAD_FIELD);
	assert_int_equal(lab_host(l, 1)->lid, 2);
	assert_true(lab_host(l, 1)->m_key == 0);
	assert_int_equal(l->n_changes, 0);
}

CASE_WITH(a_link_set_down_trains_anew, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_port *near = &l->sw[1]->port[TO_RIGHT], *far = near->peer;

	l->sw[1]->state_change = l->sw[2]->state_change = 0;
	assert_int_equal(set_state(l, SW + 1, TO_RIGHT, IB_PORT_DOWN, 0), MAD_STATUS_OK);
	assert_int_equal(near->state, IB_PORT_INIT);
	assert_int_equal(far->state, IB_PORT_INIT);
	assert_int_equal(l->sw[1]->state_change, 1);
	assert_int_equal(l->sw[2]->state_change, 1);
}

CASE_WITH(the_host_at_the_far_end_of_a_retrained_link_is_told, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;

	assert_int_equal(set_state(l, SW + 2, TO_HOST, IB_PORT_DOWN, 0), MAD_STATUS_OK);
	assert_ptr_equal(l->changed, lab_host(l, 1));
	assert_int_equal(l->changes, FABRIC_PORT_STATE);
	assert_int_equal(shm_port_at(l->f->region, 1)->state, IB_PORT_INIT);
}

CASE_WITH(a_disabled_port_stays_down_until_it_is_enabled, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_port *p = &l->sw[1]->port[TO_RIGHT];

	assert_int_equal(set_state(l, SW + 1, TO_RIGHT, IB_PORT_DOWN, PORT_PHYS_DISABLED),
	                 MAD_STATUS_OK);
	assert_int_equal(p->state, IB_PORT_DOWN);
	assert_int_equal(p->peer->state, IB_PORT_DOWN);
	assert_int_equal(port_info(l, SW + 1, TO_RIGHT).port_physical_state, PORT_PHYS_DISABLED);
	assert_int_equal(fabric_link_set(l->f, p, false), 0);
	assert_int_equal(fabric_link_set(l->f, p, true), 0);
	assert_int_equal(p->state, IB_PORT_DOWN);
	assert_int_equal(set_state(l, SW + 1, TO_RIGHT, 0, PORT_PHYS_POLLING), MAD_STATUS_OK);
	assert_int_equal(p->state, IB_PORT_INIT);
	assert_int_equal(p->peer->state, IB_PORT_INIT);
	assert_int_equal(port_info(l, SW + 1, TO_RIGHT).port_physical_state, PORT_PHYS_LINK_UP);
}

static void set_down_default(struct lab *l, unsigned sw, unsigned port, uint8_t state)
{
	struct wire_port_info i = port_info(l, SW + sw, port);

	i.port_state = i.port_physical_state = 0;
	i.link_down_default_state = state;
	wire_port_info_encode(&i, data);
	assert_int_equal(lab_set(l, SW + sw, SMP_ATTR_PORT_INFO, port, data), MAD_STATUS_OK);
	if (state)
		assert_int_equal(port_info(l, SW + sw, port).link_down_default_state, state);
}

/* A port that polls wakes one that sleeps. */
CASE_WITH(a_link_whose_ends_sleep_stays_down_until_one_polls, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_port *p = &l->sw[1]->port[TO_RIGHT];

	assert_int_equal(set_state(l, SW + 1, TO_RIGHT, 0, PORT_PHYS_SLEEP), MAD_STATUS_OK);
	assert_int_equal(p->state, IB_PORT_INIT);
	set_down_default(l, 1, TO_RIGHT, PORT_PHYS_SLEEP);
	set_down_default(l, 1, TO_RIGHT, 0); /* no change */
	assert_int_equal(set_state(l, SW + 1, TO_RIGHT, IB_PORT_DOWN, 0), MAD_STATUS_OK);
	assert_int_equal(p->state, IB_PORT_INIT);
	set_down_default(l, 2, TO_LEFT, PORT_PHYS_SLEEP);
	assert_int_equal(set_state(l, SW + 1, TO_RIGHT, IB_PORT_DOWN, 0), MAD_STATUS_OK);
	assert_int_equal(p->state, IB_PORT_DOWN);
	assert_int_equal(p->peer->state, IB_PORT_DOWN);
	assert_int_equal(port_info(l, SW + 1, TO_RIGHT).port_physical_state, PORT_PHYS_SLEEP);
	assert_int_equal(fabric_link_set(l->f, p, false), 0);
	assert_int_equal(fabric_link_set(l->f, p, true), 0);
	assert_int_equal(p->state, IB_PORT_DOWN);
	assert_int_equal(set_state(l, SW + 1, TO_RIGHT, 0, PORT_PHYS_POLLING), MAD_STATUS_OK);
	assert_int_equal(p->state, IB_PORT_INIT);
	assert_int_equal(p->peer->state, IB_PORT_INIT);
	set_down_default(l, 1, TO_RIGHT, PORT_PHYS_POLLING);
	assert_int_equal(fabric_link_set(l->f, p, false), 0);
	assert_int_equal(fabric_link_set(l->f, p, true), 0);
	assert_int_equal(p->state, IB_PORT_INIT);
}

CASE_WITH(a_port_that_is_set_to_poll_trains_anew, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_port *p = &l->sw[1]->port[TO_RIGHT];

	p->link.width_enabled = LINK_WIDTH_1X;
	assert_int_equal(set_state(l, SW + 1, TO_RIGHT, 0, PORT_PHYS_POLLING), MAD_STATUS_OK);
	assert_int_equal(p->state, IB_PORT_INIT);
	assert_int_equal(p->peer->state, IB_PORT_INIT);
	assert_int_equal(p->stats.link_downed, 1);
	assert_int_equal(port_info(l, SW + 1, TO_RIGHT).link_width_active, LINK_WIDTH_1X);
	assert_int_equal(port_info(l, SW + 2, TO_LEFT).link_width_active, LINK_WIDTH_1X);
}

CASE_WITH(a_port_cannot_be_disabled_and_armed, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	assert_int_equal(set_state(l, SW, TO_RIGHT, IB_PORT_ARMED, PORT_PHYS_DISABLED),
	                 MAD_STATUS_BAD_FIELD);
	assert_int_equal(set_state(l, SW, TO_RIGHT, IB_PORT_DOWN, PORT_PHYS_TRAINING),
	                 MAD_STATUS_BAD_FIELD);
}

CASE_WITH(a_lid_and_its_mask_are_set_and_published, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = to_set(l, 2, 1);

	i.lid = 0x40;
	i.lmc = 3;
	i.master_sm_lid = 1;
	i.master_sm_sl = 5;
	i.subnet_timeout = 20;
	assert_int_equal(set_port_info(l, 2, 1, &i), MAD_STATUS_OK);
	wire_port_info_decode(data, &i);
	assert_int_equal(i.lid, 0x40);
	assert_int_equal(i.lmc, 3);
	assert_int_equal(shm_port_at(l->f->region, 1)->lid, 0x40);
	assert_int_equal(shm_port_at(l->f->region, 1)->lmc, 3);
	assert_int_equal(shm_port_at(l->f->region, 1)->sm_lid, 1);
	assert_int_equal(shm_port_at(l->f->region, 1)->sm_sl, 5);
	assert_int_equal(shm_port_at(l->f->region, 1)->subnet_timeout, 20);
	assert_int_equal(l->changes, FABRIC_PORT_LID | FABRIC_PORT_SM | FABRIC_PORT_OTHER);
}

CASE_WITH(lids_that_no_port_may_have_are_a_bad_field, lab_setup, lab_teardown)
{
	static const struct {
		uint16_t lid;
		uint8_t lmc;
	} bad[] = {
		{ 0xC000, 0 }, { 0xFFFF, 0 }, { 0xFFFE, 0 }, { 0xBFFF, 1 }, { 3, 1 }, { 4, 3 }
	};
	struct lab *l = *state;

	for (size_t k = 0; EACH_ROW(k, bad); k++) {
		struct wire_port_info i = to_set(l, 2, 1);

		i.lid = bad[k].lid;
		i.lmc = bad[k].lmc;
		assert_int_equal(set_port_info(l, 2, 1, &i), MAD_STATUS_BAD_FIELD);
	}
	assert_int_equal(lab_host(l, 1)->lid, 2);
}

CASE_WITH(the_lid_of_a_switch_is_port_0s, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = to_set(l, SW, 0);

	i.lid = 0x30;
	assert_int_equal(set_port_info(l, SW, 0, &i), MAD_STATUS_OK);
	assert_int_equal(l->sw[0]->port[0].lid, 0x30);
	fabric_lft_set(l->sw[0], 0x30, 0);
	i = to_set(l, 0x30, 1);
	i.lid = 0x31; /* no such thing at port 1 */
	assert_int_equal(set_port_info(l, 0x30, 1, &i), MAD_STATUS_OK);
	assert_int_equal(port_info(l, 0x30, 1).lid, 0);
}

CASE_WITH(the_mtu_is_that_of_the_neighbours, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = to_set(l, 2, 1);

	i.neighbor_mtu = IBV_MTU_1024;
	assert_int_equal(set_port_info(l, 2, 1, &i), MAD_STATUS_OK);
	assert_int_equal(port_info(l, 2, 1).neighbor_mtu, IBV_MTU_1024);
	assert_int_equal(shm_port_at(l->f->region, 1)->active_mtu, IBV_MTU_1024);
	i.neighbor_mtu = 0;
	assert_int_equal(set_port_info(l, 2, 1, &i), MAD_STATUS_OK);
	assert_int_equal(port_info(l, 2, 1).neighbor_mtu, IBV_MTU_1024);
	i.neighbor_mtu = 6;
	assert_int_equal(set_port_info(l, 2, 1, &i), MAD_STATUS_BAD_FIELD);
}

CASE_WITH(an_mtu_above_what_the_links_can_is_a_bad_field, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i;

	l->f->settings.mtu = IBV_MTU_2048;
	i = to_set(l, 2, 1);
	assert_int_equal(i.mtu_cap, IBV_MTU_2048);
	i.neighbor_mtu = IBV_MTU_4096;
	assert_int_equal(set_port_info(l, 2, 1, &i), MAD_STATUS_BAD_FIELD);
}

CASE_WITH(settings_without_effect_read_back, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = to_set(l, SW, TO_RIGHT);

	i.vl_high_limit = 4;
	i.vl_stall_count = 7;
	i.hoq_life = 0x12;
	i.local_phy_errors = 8;
	i.overrun_errors = 9;
	i.partition_enforcement_inbound = 1;
	i.filter_raw_outbound = 1;
	i.link_width_enabled = 1;
	i.link_speed_enabled = 1;
	assert_int_equal(set_port_info(l, SW, TO_RIGHT, &i), MAD_STATUS_OK);
	i = port_info(l, SW, TO_RIGHT);
	assert_int_equal(i.vl_high_limit, 4);
	assert_int_equal(i.vl_stall_count, 7);
	assert_int_equal(i.hoq_life, 0x12);
	assert_int_equal(i.local_phy_errors, 8);
	assert_int_equal(i.overrun_errors, 9);
	assert_int_equal(i.partition_enforcement_inbound, 1);
	assert_int_equal(i.partition_enforcement_outbound, 0);
	assert_int_equal(i.filter_raw_outbound, 1);
	assert_int_equal(i.link_width_enabled, 1);
	assert_int_equal(i.link_speed_enabled, 1);
	assert_int_equal(l->n_changes, 0);
}

CASE_WITH(widths_and_speeds_are_of_those_supported, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = to_set(l, SW, TO_RIGHT);
	uint8_t supported = i.link_width_supported;

	i.link_width_enabled = LINK_WIDTH_12X;
	assert_int_equal(set_port_info(l, SW, TO_RIGHT, &i), MAD_STATUS_BAD_FIELD);
	i.link_width_enabled = LINK_WIDTH_1X;
	assert_int_equal(set_port_info(l, SW, TO_RIGHT, &i), MAD_STATUS_OK);
	i.link_width_enabled = LINK_WIDTH_SET_SUPPORTED;
	i.link_speed_enabled = LINK_SPEED_SET_SUPPORTED;
	i.link_speed_ext_enabled = LINK_SPEED_EXT_SET_SUPPORTED;
	assert_int_equal(set_port_info(l, SW, TO_RIGHT, &i), MAD_STATUS_OK);
	assert_int_equal(port_info(l, SW, TO_RIGHT).link_width_enabled, supported);
	i.link_speed_ext_enabled = LINK_SPEED_EXT_DISABLE;
	assert_int_equal(set_port_info(l, SW, TO_RIGHT, &i), MAD_STATUS_OK);
	assert_int_equal(port_info(l, SW, TO_RIGHT).link_speed_ext_enabled, LINK_SPEED_EXT_DISABLE);
}

CASE_WITH(a_subnet_has_the_prefix_that_its_subnet_manager_sets, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = to_set(l, 2, 1);
	struct ib_gid gid;

	i.gid_prefix = 0xFEC0000000000001;
	assert_int_equal(set_port_info(l, 2, 1, &i), MAD_STATUS_OK);
	fabric_gid_make(l->f, lab_host(l, 0)->guid, &gid);
	assert_int_equal(gid.raw[1], 0xC0);
	assert_ptr_equal(fabric_port_by_gid(l->f, &gid), lab_host(l, 0));
	assert_int_equal(l->changes, FABRIC_PORT_GIDS);
}

CASE_WITH(members_are_asked_to_register_again, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = to_set(l, 2, 1);

	i.client_reregister = 1;
	assert_int_equal(set_port_info(l, 2, 1, &i), MAD_STATUS_OK);
	assert_int_equal(l->changes, FABRIC_PORT_REREGISTER);
	assert_int_equal(port_info(l, 2, 1).client_reregister, 0);
}

CASE_WITH(a_capability_that_comes_is_seen_and_told, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_trap_local_changes details;
	struct wire_notice notice;
	struct wire_smp smp;

	lab_host(l, 1)->sm_lid = 1;
	fabric_sma_set_capabilities(l->f, lab_host(l, 1), PORT_CAP_SM, 0);
	assert_ptr_equal(l->at, lab_host(l, 0));
	wire_smp_decode(l->got.data, &smp);
	assert_int_equal(smp.mad.method, MAD_TRAP);
	wire_smp_notice_decode(smp.data, &notice);
	assert_int_equal(notice.trap_number, TRAP_LOCAL_CHANGES);
	assert_int_equal(notice.issuer_lid, 2);
	wire_trap_local_changes_decode(notice.details, &details);
	assert_int_equal(details.lid, 2);
	assert_true(details.capability_mask & PORT_CAP_SM);
	assert_true(port_info(l, 2, 1).capability_mask & PORT_CAP_SM);
	assert_true(shm_port_at(l->f->region, 1)->cap_flags == port_info(l, 2, 1).capability_mask);
	fabric_sma_set_capabilities(l->f, lab_host(l, 1), 0, PORT_CAP_SM);
	assert_false(port_info(l, 2, 1).capability_mask & PORT_CAP_SM);
}

/* ---- M_Key ---- */

static void protect(struct lab *l, uint8_t level)
{
	lab_host(l, 1)->m_key = KEY;
	lab_host(l, 1)->m_key_protect = level;
}

static struct fabric_mad with_key(struct lab *l, uint8_t method, uint64_t key)
{
	struct wire_smp smp = lab_smp(method, SMP_ATTR_PORT_INFO, 1);
	struct wire_port_info i;

	fabric_sma_get(l->f, lab_host(l, 1), SMP_ATTR_PORT_INFO, 1, smp.data);
	wire_port_info_decode(smp.data, &i);
	i.port_state = i.port_physical_state = 0;
	wire_port_info_encode(&i, smp.data);
	smp.m_key = key;
	return lab_to_lid(lab_host(l, 0), 2, &smp);
}

static uint64_t key_told(struct lab *l, uint64_t key)
{
	struct fabric_mad mad = with_key(l, MAD_GET, key);
	struct wire_smp smp = lab_ask(l, lab_host(l, 0), &mad);
	struct wire_port_info i;

	assert_int_equal(smp.mad.status, MAD_STATUS_OK);
	wire_port_info_decode(smp.data, &i);
	return i.m_key;
}

CASE_WITH(without_a_key_everybody_may_do_anything, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad = with_key(l, MAD_SET, 77);

	lab_host(l, 1)->m_key_protect = 3;
	lab_ask(l, lab_host(l, 0), &mad);
}

CASE_WITH(the_key_gives_access_at_every_level, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	for (uint8_t level = 0; level <= 3; level++) {
		struct fabric_mad mad;

		protect(l, level);
		assert_true(key_told(l, KEY) == KEY);
		mad = with_key(l, MAD_SET, KEY);
		lab_ask(l, lab_host(l, 0), &mad);
	}
}

CASE_WITH(at_level_0_everybody_may_read_even_the_key, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	protect(l, 0);
	assert_true(key_told(l, 0) == KEY);
}

CASE_WITH(at_level_1_everybody_may_read_all_but_the_key, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	protect(l, 1);
	assert_true(key_told(l, 0) == 0);
	assert_int_equal(l->f->mads->stats.bad_m_key, 0);
}

CASE_WITH(at_levels_2_and_3_nobody_may_read, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	for (uint8_t level = 2; level <= 3; level++) {
		struct fabric_mad mad;

		protect(l, level);
		mad = with_key(l, MAD_GET, KEY + 1);
		lab_lost(l, lab_host(l, 0), &mad);
	}
	assert_int_equal(l->f->mads->stats.bad_m_key, 2);
}

CASE_WITH(without_the_key_nobody_may_write, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	for (uint8_t level = 0; level <= 3; level++) {
		struct fabric_mad mad;

		protect(l, level);
		mad = with_key(l, MAD_SET, 0);
		lab_lost(l, lab_host(l, 0), &mad);
	}
	assert_int_equal(lab_host(l, 1)->m_key_violations, 4);
	protect(l, 0);
	assert_int_equal(port_info(l, 2, 1).m_key_violations, 4);
}

CASE_WITH(the_key_of_a_switch_is_port_0s, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_SET, SMP_ATTR_LINEAR_FT, 0);
	struct fabric_mad mad = lab_to_lid(lab_host(l, 0), SW + 1, &smp);

	l->sw[1]->port[0].m_key = KEY;
	lab_lost(l, lab_host(l, 0), &mad);
	smp.m_key = KEY;
	mad = lab_to_lid(lab_host(l, 0), SW + 1, &smp);
	/* the table that it writes leads nowhere */
	fabric_mad_send(l->f, lab_host(l, 0), &mad);
	assert_int_equal(fabric_lft_get(l->sw[1], 1), 0);
}

CASE_WITH(a_wrong_key_is_reported_by_a_trap, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_mad mad;
	struct wire_trap_bad_mkey details;
	struct wire_notice notice;
	struct wire_smp smp;

	lab_host(l, 1)->sm_lid = 1;
	protect(l, 2);
	mad = with_key(l, MAD_GET, 99);
	fabric_mad_send(l->f, lab_host(l, 0), &mad);
	wire_smp_decode(l->got.data, &smp);
	assert_int_equal(smp.mad.method, MAD_TRAP);
	wire_smp_notice_decode(smp.data, &notice);
	assert_int_equal(notice.trap_number, TRAP_BAD_MKEY);
	assert_int_equal(notice.type, NOTICE_SECURITY);
	wire_trap_bad_mkey_decode(notice.details, &details);
	assert_int_equal(details.lid, 1);
	assert_int_equal(details.method, MAD_GET);
	assert_int_equal(details.attribute_id, SMP_ATTR_PORT_INFO);
	assert_true(details.m_key == 99);
	assert_int_equal(details.dr_notice, 0);
}

/* ---- traps ---- */

CASE_WITH(switches_report_links_by_a_trap, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_trap_link_state details;
	struct wire_notice notice;
	struct wire_smp smp;

	for (unsigned i = 0; i < CHAIN; i++)
		l->sw[i]->port[0].sm_lid = 1;
	assert_int_equal(fabric_link_set(l->f, &l->sw[1]->port[TO_RIGHT], false), 0);
	assert_int_equal(l->n_got, 1); /* the trap of the third switch is lost at the link */
	wire_smp_decode(l->got.data, &smp);
	assert_int_equal(smp.mad.mgmt_class, MAD_CLASS_SUBN_LID);
	assert_int_equal(smp.mad.method, MAD_TRAP);
	wire_smp_notice_decode(smp.data, &notice);
	assert_int_equal(notice.is_generic, 1);
	assert_int_equal(notice.producer_type, NOTICE_FROM_SWITCH);
	assert_int_equal(notice.trap_number, TRAP_LINK_STATE_CHANGED);
	assert_int_equal(notice.issuer_lid, SW + 1);
	wire_trap_link_state_decode(notice.details, &details);
	assert_int_equal(details.lid, SW + 1);
	assert_int_equal(fabric_link_set(l->f, &l->sw[1]->port[TO_RIGHT], true), 0);
	assert_int_equal(l->n_got, 3);
}

CASE_WITH(without_a_subnet_manager_no_trap_is_sent, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	assert_int_equal(fabric_link_set(l->f, &l->sw[1]->port[TO_RIGHT], false), 0);
	assert_int_equal(l->n_got, 0);
}

/* ---- tables ---- */

CASE_WITH(pkeys_are_set_and_published, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_pkey_table t = { { 0x7FFF, 0x8001, 0x0002 } };

	t.pkey[SHM_PKEYS] = 0x1234; /* there is no such entry */
	wire_pkey_table_encode(&t, data);
	assert_int_equal(lab_set(l, 2, SMP_ATTR_PKEY_TABLE, 0, data), MAD_STATUS_OK);
	assert_int_equal(l->changes, FABRIC_PORT_PKEYS);
	assert_int_equal(lab_get(l, 2, SMP_ATTR_PKEY_TABLE, 0, data), MAD_STATUS_OK);
	t.pkey[SHM_PKEYS] = 0;
	{
		struct wire_pkey_table got;

		wire_pkey_table_decode(data, &got);
		assert_memory_equal(&got, &t, sizeof(t));
	}
	assert_int_equal(shm_port_at(l->f->region, 1)->pkey[1], 0x8001);
	assert_int_equal(lab_get(l, 2, SMP_ATTR_PKEY_TABLE, 1, data), MAD_STATUS_BAD_FIELD);
}

CASE_WITH(each_port_of_a_switch_has_pkeys, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_pkey_table t = { { 0x8005 } };

	wire_pkey_table_encode(&t, data);
	assert_int_equal(lab_set(l, SW, SMP_ATTR_PKEY_TABLE, smp_pkey_modifier(3, 0), data),
	                 MAD_STATUS_OK);
	assert_int_equal(l->sw[0]->port[3].pkey[0], 0x8005);
	assert_int_equal(l->sw[0]->port[0].pkey[0], IB_PKEY_DEFAULT);
	assert_int_equal(lab_get(l, SW, SMP_ATTR_PKEY_TABLE, smp_pkey_modifier(9, 0), data),
	                 MAD_STATUS_BAD_FIELD);
}

CASE_WITH(an_sl_uses_the_lane_of_its_number_by_default, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = to_set(l, SW, 2);
	struct wire_sl_to_vl map;

	assert_int_equal(lab_get(l, SW, SMP_ATTR_SL_TO_VL, smp_sl_to_vl_modifier(1, 2), data),
	                 MAD_STATUS_OK);
	wire_sl_to_vl_decode(data, &map);
	assert_int_equal(map.vl[5], 5);
	assert_int_equal(map.vl[13], 5);
	i.operational_vls = VL_CAP_VL0_1;
	assert_int_equal(set_port_info(l, SW, 2, &i), MAD_STATUS_OK);
	assert_int_equal(port_info(l, SW, 2).operational_vls, VL_CAP_VL0_1);
	lab_get(l, SW, SMP_ATTR_SL_TO_VL, smp_sl_to_vl_modifier(1, 2), data);
	wire_sl_to_vl_decode(data, &map);
	assert_int_equal(map.vl[5], 1);
	i.operational_vls = VL_CAP_VL0_14;
	assert_int_equal(set_port_info(l, SW, 2, &i), MAD_STATUS_BAD_FIELD);
}

CASE_WITH(lanes_are_mapped_by_the_ports_in_and_out, lab_setup, lab_teardown)
{
	struct wire_sl_to_vl map = { { 7, 6, 5, 4, 3, 2, 1, 0, 15, 15 } }, got;
	struct lab *l = *state;

	wire_sl_to_vl_encode(&map, data);
	assert_int_equal(lab_set(l, SW, SMP_ATTR_SL_TO_VL, smp_sl_to_vl_modifier(1, 2), data),
	                 MAD_STATUS_OK);
	assert_int_equal(lab_get(l, SW, SMP_ATTR_SL_TO_VL, smp_sl_to_vl_modifier(1, 2), data),
	                 MAD_STATUS_OK);
	wire_sl_to_vl_decode(data, &got);
	assert_memory_equal(&got, &map, sizeof(map));
	lab_get(l, SW, SMP_ATTR_SL_TO_VL, smp_sl_to_vl_modifier(3, 2), data);
	wire_sl_to_vl_decode(data, &got);
	assert_int_equal(got.vl[0], 0);
	assert_int_equal(fabric_lane_of(&l->sw[0]->port[2], 1, 0), 7);
	assert_int_equal(fabric_lane_of(&l->sw[0]->port[2], 1, 8), FABRIC_LANE_NONE);
	assert_int_equal(fabric_lane_of(&l->sw[0]->port[2], 3, 8), 0);
	assert_int_equal(lab_get(l, SW, SMP_ATTR_SL_TO_VL, smp_sl_to_vl_modifier(9, 1), data),
	                 MAD_STATUS_BAD_FIELD);
	assert_int_equal(lab_get(l, SW, SMP_ATTR_SL_TO_VL, smp_sl_to_vl_modifier(1, 9), data),
	                 MAD_STATUS_BAD_FIELD);
	/* an HCA has one */
	wire_sl_to_vl_encode(&map, data);
	assert_int_equal(lab_set(l, 2, SMP_ATTR_SL_TO_VL, 0, data), MAD_STATUS_OK);
	assert_int_equal(fabric_lane_of(lab_host(l, 1), 0, 1), 6);
}

CASE_WITH(arbitration_tables_are_kept, lab_setup, lab_teardown)
{
	struct wire_vl_arb arb = { { { 3, 200 } } }, got;
	struct lab *l = *state;

	lab_get(l, SW, SMP_ATTR_VL_ARBITRATION, smp_vl_arb_modifier(1, 2), data);
	wire_vl_arb_decode(data, &got);
	assert_int_equal(got.entry[7].vl, 7);
	assert_true(got.entry[7].weight);
	for (uint16_t part = 1; part <= 4; part++) {
		arb.entry[31].weight = (uint8_t)part;
		wire_vl_arb_encode(&arb, data);
		assert_int_equal(
		        lab_set(l, SW, SMP_ATTR_VL_ARBITRATION, smp_vl_arb_modifier(part, 2), data),
		        MAD_STATUS_OK);
	}
	for (uint16_t part = 1; part <= 4; part++) {
		lab_get(l, SW, SMP_ATTR_VL_ARBITRATION, smp_vl_arb_modifier(part, 2), data);
		wire_vl_arb_decode(data, &got);
		assert_int_equal(got.entry[0].vl, 3);
		assert_int_equal(got.entry[31].weight, part);
	}
	for (unsigned part = 0; part <= 5; part += 5)
		assert_int_equal(lab_get(l, SW, SMP_ATTR_VL_ARBITRATION,
		                         smp_vl_arb_modifier((uint16_t)part, 1), data),
		                 MAD_STATUS_BAD_FIELD);
}

/* FDR10 links are shown and set by Mellanox's attribute, on Mellanox's devices. */
CASE_WITH(fdr10_has_an_attribute_of_its_own, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_node *sw = l->sw[0];
	struct fabric_port *p = &sw->port[2];

	assert_int_equal(lab_get(l, SW, SMP_ATTR_MLNX_EXT_PORT_INFO, 2, data),
	                 MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	sw->vendor_id = 0x2C9;
	assert_int_equal(lab_get(l, SW, SMP_ATTR_MLNX_EXT_PORT_INFO, 2, data), MAD_STATUS_OK);
	assert_memory_equal(data, zeroes(), sizeof(data));
	p->state = IB_PORT_INIT;
	p->speed = p->speed_built = FABRIC_SPEED_FDR10;
	assert_int_equal(lab_get(l, SW, SMP_ATTR_MLNX_EXT_PORT_INFO, 2, data), MAD_STATUS_OK);
	assert_int_equal(data[7] << 16 | data[11] << 8 | data[15], 0x10101);
	memset(data, 0, sizeof(data));
	assert_int_equal(lab_set(l, SW, SMP_ATTR_MLNX_EXT_PORT_INFO, 2, data), MAD_STATUS_OK);
	assert_int_equal(data[7] << 16 | data[11] << 8 | data[15], 0x10001);
	assert_true(p->link.fdr10_off);
	assert_int_equal(lab_get(l, SW, SMP_ATTR_MLNX_EXT_PORT_INFO, 99, data),
	                 MAD_STATUS_BAD_FIELD);
}

/* ---- where packets go ---- */

static void nothing(void *arg, struct fabric_port *p, uint8_t in, uint8_t vl)
{
	(void)in;
	(void)vl;
	(void)arg;
	(void)p;
}

static void note(void *arg, struct fabric_port *p)
{
	*(struct fabric_port **)arg = p;
}

static struct fabric_port *reached(struct lab *l, uint16_t dlid)
{
	struct fabric_port *p = NULL;
	struct fabric_walk w = { .hop = nothing, .reached = note, .arg = &p };

	fabric_walk_unicast(l->f, lab_host(l, 0), dlid, &w);
	return p;
}

CASE_WITH(a_forwarding_block_reads_back_and_sends_packets_elsewhere, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_linear_ft t;
	uint32_t qpn = testing_qp(l->f, 10, lab_host(l, 0));
	struct fabric_flow *flow = testing_flow(l->f, lab_host(l, 0), qpn, 2, NULL);

	assert_ptr_equal(reached(l, 2), lab_host(l, 1));
	assert_int_equal(testing_receivers(l->f, flow), 1);
	assert_int_equal(lab_get(l, SW + 1, SMP_ATTR_LINEAR_FT, 0, data), MAD_STATUS_OK);
	wire_linear_ft_decode(data, &t);
	assert_int_equal(t.port[2], TO_RIGHT);
	assert_int_equal(t.port[SW + 1], 0);
	assert_int_equal(t.port[40], LFT_NO_PORT);
	t.port[2] = LFT_NO_PORT;
	t.port[40] = 7;
	wire_linear_ft_encode(&t, data);
	assert_int_equal(lab_set(l, SW + 1, SMP_ATTR_LINEAR_FT, 0, data), MAD_STATUS_OK);
	fabric_flow_follow_all(l->f);
	assert_null(reached(l, 2));
	assert_int_equal(testing_receivers(l->f, flow), 0);
	assert_int_equal(fabric_lft_get(l->sw[1], 40), 7);
	t.port[2] = TO_RIGHT;
	wire_linear_ft_encode(&t, data);
	assert_int_equal(lab_set(l, SW + 1, SMP_ATTR_LINEAR_FT, 0, data), MAD_STATUS_OK);
	fabric_flow_follow_all(l->f);
	assert_int_equal(testing_receivers(l->f, flow), 1);
}

/* When the response is sent, packets use the lane that the map says; other flows are let be. */
CASE_WITH(a_map_of_lanes_holds_when_its_set_is_answered, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	uint32_t qpn = testing_qp(l->f, 10, lab_host(l, 0));
	struct fabric_flow *flow = testing_flow_sl(l->f, lab_host(l, 0), qpn, 2, 0);
	struct fabric_flow *other = testing_flow_sl(l->f, lab_host(l, 0), qpn, 2, 1);
	uint32_t modifier = smp_sl_to_vl_modifier(TO_HOST, TO_RIGHT);
	uint32_t seq = testing_record(l->f, other)->seq;
	struct wire_sl_to_vl map = { { 15, 3 } };

	assert_int_equal(testing_receivers(l->f, flow), 1);
	wire_sl_to_vl_encode(&map, data);
	assert_int_equal(lab_set(l, SW, SMP_ATTR_SL_TO_VL, modifier, data), MAD_STATUS_OK);
	assert_int_equal(testing_receivers(l->f, flow), 0);
	map.vl[0] = 4;
	wire_sl_to_vl_encode(&map, data);
	assert_int_equal(lab_set(l, SW, SMP_ATTR_SL_TO_VL, modifier, data), MAD_STATUS_OK);
	assert_int_equal(testing_receivers(l->f, flow), 1);
	fabric_flow_follow_all(l->f);
	assert_int_equal(testing_record(l->f, other)->seq, seq);
}

CASE_WITH(each_forwarding_block_is_64_lids, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_linear_ft t;
	const uint32_t last = IB_LID_MCAST_FIRST / LFT_BLOCK - 1;

	for (unsigned i = 0; i < LFT_BLOCK; i++)
		t.port[i] = (uint8_t)(i % 9);
	wire_linear_ft_encode(&t, data);
	assert_int_equal(lab_set(l, SW, SMP_ATTR_LINEAR_FT, last, data), MAD_STATUS_OK);
	for (unsigned i = 0; i < LFT_BLOCK; i++)
		assert_int_equal(fabric_lft_get(l->sw[0], (uint16_t)(last * LFT_BLOCK + i)), i % 9);
	assert_int_equal(lab_set(l, SW, SMP_ATTR_LINEAR_FT, last + 1, data), MAD_STATUS_BAD_FIELD);
	assert_int_equal(lab_get(l, SW, SMP_ATTR_LINEAR_FT, UINT32_MAX, data),
	                 MAD_STATUS_BAD_FIELD);
	assert_int_equal(lab_get(l, 2, SMP_ATTR_LINEAR_FT, 0, data),
	                 MAD_STATUS_BAD_METHOD_ATTRIBUTE);
}

static uint16_t set_masks(struct lab *l, unsigned sw, unsigned position, uint16_t mlid,
                          uint16_t mask)
{
	unsigned index = mlid - IB_LID_MCAST_FIRST;
	uint32_t modifier = smp_mft_modifier((uint8_t)position, (uint16_t)(index / MFT_BLOCK));
	struct wire_multicast_ft t;

	assert_int_equal(lab_get(l, (uint16_t)(SW + sw), SMP_ATTR_MULTICAST_FT, modifier, data),
	                 MAD_STATUS_OK);
	wire_multicast_ft_decode(data, &t);
	t.port_mask[index % MFT_BLOCK] = mask;
	wire_multicast_ft_encode(&t, data);
	return lab_set(l, (uint16_t)(SW + sw), SMP_ATTR_MULTICAST_FT, modifier, data);
}

CASE_WITH(a_multicast_block_reads_back_and_makes_a_tree, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct ib_gid mgid = testing_mgid(1);
	uint32_t sender = testing_qp(l->f, 10, lab_host(l, 0));
	uint32_t member = testing_qp(l->f, 11, lab_host(l, 1));
	struct fabric_flow *flow;
	struct wire_multicast_ft t;

	assert_int_equal(fabric_attach_add(l->f, 1, member, &mgid, MLID), 0);
	flow = testing_flow(l->f, lab_host(l, 0), sender, MLID, &mgid);
	assert_int_equal(testing_receivers(l->f, flow), 0);
	for (unsigned i = 0; i < CHAIN; i++)
		assert_int_equal(
		        set_masks(l, i, 0, MLID, i == CHAIN - 1 ? 1 << TO_HOST : 1 << TO_RIGHT),
		        MAD_STATUS_OK);
	wire_multicast_ft_decode(data, &t);
	assert_int_equal(t.port_mask[MLID % MFT_BLOCK], 1 << TO_HOST);
	fabric_flow_follow_all(l->f);
	assert_int_equal(testing_copies(l->f, flow, member), 1);
	assert_int_equal(set_masks(l, 1, 0, MLID, 0), MAD_STATUS_OK);
	fabric_flow_follow_all(l->f);
	assert_int_equal(testing_copies(l->f, flow, member), 0);
}

CASE_WITH(a_position_is_16_ports, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_node *big = testing_switch(l->f, 200);
	const struct fabric_mft_row *row;

	big->port[0].lid = 0x50;
	testing_plug(&big->port[1], &l->sw[0]->port[4]);
	fabric_lft_set(l->sw[0], 0x50, 4);
	fabric_lft_set(big, 0x50, 0);
	fabric_lft_set(big, 1, 1);
	for (unsigned position = 0; position <= 12; position++)
		assert_int_equal(
		        set_masks(l, 0x50 - SW, position, MLID, (uint16_t)(0x8001 + position * 2)),
		        MAD_STATUS_OK);
	row = fabric_mft_get(big, MLID);
	for (unsigned port = 0; port <= 200; port++) {
		unsigned mask = 0x8001 + port / 16 * 2;

		assert_int_equal(fabric_row_has(row, port), mask >> port % 16 & 1);
	}
	assert_int_equal(lab_get(l, 0x50, SMP_ATTR_MULTICAST_FT, smp_mft_modifier(13, 0), data),
	                 MAD_STATUS_BAD_FIELD);
}

CASE_WITH(multicast_blocks_end_where_the_table_does, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_multicast_ft t = { { 0 } };

	l->f->settings.mft_capacity = 40;
	t.port_mask[7] = 2;
	wire_multicast_ft_encode(&t, data);
	assert_int_equal(lab_set(l, SW, SMP_ATTR_MULTICAST_FT, smp_mft_modifier(0, 1), data),
	                 MAD_STATUS_OK);
	t.port_mask[8] = 2; /* the 41st */
	wire_multicast_ft_encode(&t, data);
	assert_int_equal(lab_set(l, SW, SMP_ATTR_MULTICAST_FT, smp_mft_modifier(0, 1), data),
	                 MAD_STATUS_BAD_FIELD);
	assert_int_equal(lab_get(l, SW, SMP_ATTR_MULTICAST_FT, smp_mft_modifier(0, 2), data),
	                 MAD_STATUS_BAD_FIELD);
	assert_int_equal(lab_get(l, SW, SMP_ATTR_MULTICAST_FT, smp_mft_modifier(1, 0), data),
	                 MAD_STATUS_BAD_FIELD);
	assert_int_equal(lab_get(l, SW, SMP_ATTR_MULTICAST_FT, 0x200, data), MAD_STATUS_BAD_FIELD);
	assert_int_equal(lab_get(l, 2, SMP_ATTR_MULTICAST_FT, 0, data),
	                 MAD_STATUS_BAD_METHOD_ATTRIBUTE);
}

#define MOST_AT_ONCE 4096
#define OF_A_FLOW    64 /* more than any here */

CASE_WITH(flows_follow_port_states, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	uint32_t qpn = testing_qp(l->f, 10, lab_host(l, 0));
	struct fabric_flow *flow = testing_flow(l->f, lab_host(l, 0), qpn, 2, NULL);
	static const struct {
		uint16_t lid;
		uint8_t port;
	} ports[] = { { SW, 1 },     { SW, 3 },     { SW + 1, 2 }, { SW + 1, 3 },
		      { SW + 2, 2 }, { SW + 2, 1 }, { 2, 1 },      { 1, 1 } };

	for (unsigned s = IB_PORT_ARMED; s <= IB_PORT_ACTIVE; s++)
		for (size_t i = 0; EACH_ROW(i, ports); i++) {
			assert_int_equal(testing_receivers(l->f, flow), 0);
			assert_int_equal(set_state(l, ports[i].lid, ports[i].port, s, 0),
			                 MAD_STATUS_OK);
		}
	assert_int_equal(testing_receivers(l->f, flow), 1);
	assert_int_equal(set_state(l, SW + 1, 3, IB_PORT_DOWN, 0), MAD_STATUS_OK);
	assert_int_equal(testing_receivers(l->f, flow), 0);
}

/* By the work that is done, which is all that others wait for. */
static void assert_followed_in_slices(struct fabric *f)
{
	const uint32_t slice = 1000;
	uint32_t budget = 0;
	uint64_t before;

	assert_false(fabric_flow_follow(f, &budget, 1));
	do {
		budget = slice;
		before = f->flows->work;
		(void)fabric_flow_follow(f, &budget, 1);
		assert_in_range(f->flows->work - before, 1, slice + OF_A_FLOW);
	} while (!budget);
}

CASE_WITH(thousands_of_flows_follow_a_port_in_slices, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = to_set(l, SW, TO_RIGHT);
	static struct fabric_flow *flow[4000];
	unsigned left = 0, small = 0;
	uint64_t before;

	testing_qp(l->f, 10, lab_host(l, 0));
	for (size_t k = 0; k < ARRAY_SIZE(flow); k++)
		flow[k] = testing_flow(l->f, lab_host(l, 0), 10, 2, NULL);
	before = l->f->flows->work;
	i.neighbor_mtu = IBV_MTU_512; /* of any flow, as far as the agent knows */
	assert_int_equal(set_port_info(l, SW, TO_RIGHT, &i), MAD_STATUS_OK);
	assert_in_range(l->f->flows->work - before, 0, MOST_AT_ONCE + OF_A_FLOW);
	assert_followed_in_slices(l->f);
	for (size_t k = 0; k < ARRAY_SIZE(flow); k++)
		small += testing_record(l->f, flow[k])->mtu == 512;
	assert_int_equal(small, ARRAY_SIZE(flow));
	before = l->f->flows->work;
	assert_int_equal(set_state(l, SW + 1, TO_RIGHT, IB_PORT_DOWN, 0), MAD_STATUS_OK);
	assert_in_range(l->f->flows->work - before, 1, MOST_AT_ONCE + OF_A_FLOW);
	assert_followed_in_slices(l->f);
	for (size_t k = 0; k < ARRAY_SIZE(flow); k++)
		left += testing_receivers(l->f, flow[k]);
	assert_int_equal(left, 0);
}

CASE_WITH(a_set_that_changes_no_path_compiles_no_flow, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct fabric_flow *flow;
	uint32_t seq;

	testing_qp(l->f, 10, lab_host(l, 0));
	flow = testing_flow(l->f, lab_host(l, 0), 10, 2, NULL);
	seq = testing_record(l->f, flow)->seq;
	assert_int_equal(set_state(l, SW, TO_RIGHT, IB_PORT_ARMED, 0), MAD_STATUS_OK);
	assert_int_equal(set_state(l, SW, TO_RIGHT, IB_PORT_ACTIVE, 0), MAD_STATUS_OK);
	fabric_flow_follow_all(l->f);
	assert_int_equal(testing_record(l->f, flow)->seq, seq);
}

CASE_WITH(a_smaller_mtu_is_known_to_flows, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	uint32_t qpn = testing_qp(l->f, 10, lab_host(l, 0));
	struct fabric_flow *flow = testing_flow(l->f, lab_host(l, 0), qpn, 2, NULL);
	struct wire_port_info i = to_set(l, SW + 1, TO_RIGHT);

	assert_int_equal(testing_record(l->f, flow)->mtu, 4096);
	i.neighbor_mtu = IBV_MTU_512;
	assert_int_equal(set_port_info(l, SW + 1, TO_RIGHT, &i), MAD_STATUS_OK);
	fabric_flow_follow_all(l->f);
	assert_int_equal(testing_record(l->f, flow)->mtu, 512);
}

CASE_WITH(a_new_lid_is_known_to_flows, lab_setup_active, lab_teardown)
{
	struct lab *l = *state;
	struct wire_port_info i = to_set(l, 2, 1);
	struct fabric_flow *flow;

	testing_qp(l->f, 10, lab_host(l, 0));
	flow = testing_flow(l->f, lab_host(l, 0), 10, 2, NULL);
	assert_int_equal(testing_receivers(l->f, flow), 1);
	i.lid = 8;
	assert_int_equal(set_port_info(l, 2, 1, &i), MAD_STATUS_OK);
	fabric_flow_follow_all(l->f);
	assert_int_equal(testing_receivers(l->f, flow), 0);
}

/* ---- what is wrong ---- */

CASE_WITH(versions_that_nobody_knows_get_a_status, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	struct wire_smp smp = lab_smp(MAD_SET, SMP_ATTR_PORT_INFO, 1);

	smp.mad.base_version = 2;
	assert_int_equal(lab_smp_to(l, 2, &smp, data), MAD_STATUS_BAD_VERSION);
	smp.mad.base_version = 1;
	smp.mad.class_version = 2;
	assert_int_equal(lab_smp_to(l, 2, &smp, data), MAD_STATUS_BAD_VERSION);
	assert_int_equal(l->n_changes, 0);
}

CASE_WITH(attributes_that_there_are_not_get_a_status, lab_setup, lab_teardown)
{
	static const uint16_t bad[] = { 0, 1, 2, 0x13, 0x1A, 0x1C, 0x30, 0x31, 0xFF90, 0xFFFF };
	struct lab *l = *state;

	for (size_t i = 0; EACH_ROW(i, bad); i++) {
		assert_int_equal(lab_get(l, SW, bad[i], 0, data), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
		assert_int_equal(lab_set(l, 2, bad[i], 0, data), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	}
}

/* Up to Mellanox's attribute, which the specification does not have. SMInfo is the subnet
 * manager's. */
CASE_WITH(each_attribute_that_is_answered_has_a_name, lab_setup, lab_teardown)
{
	struct lab *l = *state;

	for (uint32_t id = 0; id < SMP_ATTR_MLNX_EXT_PORT_INFO; id++)
		if (id != SMP_ATTR_SM_INFO &&
		    lab_get(l, SW, (uint16_t)id, 0, data) != MAD_STATUS_BAD_METHOD_ATTRIBUTE &&
		    !wire_mad_attribute_name(MAD_CLASS_SUBN_LID, (uint16_t)id))
			fail_msg("attribute 0x%04x has no name in mad_name.c", id);
}

CASE_WITH(modifiers_of_what_there_is_one_of_are_0, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	const uint16_t one[] = { SMP_ATTR_NODE_DESCRIPTION, SMP_ATTR_NODE_INFO,
		                 SMP_ATTR_SWITCH_INFO };

	for (size_t i = 0; EACH_ROW(i, one); i++)
		assert_int_equal(lab_get(l, SW, one[i], 1, data), MAD_STATUS_BAD_FIELD);
}

CASE_WITH(the_agent_in_the_same_process_says_the_same, lab_setup, lab_teardown)
{
	struct lab *l = *state;
	uint8_t here[SMP_DATA_BYTES];
	static const struct {
		uint16_t id;
		uint32_t modifier;
	} ask[] = { { SMP_ATTR_NODE_INFO, 0 },   { SMP_ATTR_PORT_INFO, 3 },
		    { SMP_ATTR_SWITCH_INFO, 0 }, { SMP_ATTR_LINEAR_FT, 0 },
		    { SMP_ATTR_GUID_INFO, 0 },   { SMP_ATTR_PKEY_TABLE, 0 } };

	for (size_t i = 0; EACH_ROW(i, ask); i++) {
		memset(here, 0, sizeof(here));
		assert_int_equal(fabric_sma_get(l->f, &l->sw[0]->port[TO_HOST], ask[i].id,
		                                ask[i].modifier, here),
		                 MAD_STATUS_OK);
		assert_int_equal(lab_get(l, SW, ask[i].id, ask[i].modifier, data), MAD_STATUS_OK);
		assert_memory_equal(here, data, sizeof(here));
	}
}
