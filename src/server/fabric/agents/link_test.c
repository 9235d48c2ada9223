/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links and switches that fail and return, without a subnet manager: states of ports,
 * what processes see of them, tables, and the flows across.
 */
#include <harness.h>

#include "fabric/agents/link.h"
#include "fabric/testing.h"

#define MLID         0xC001
#define PHYS_POLLING 2
#define PHYS_LINK_UP 5

struct env {
	struct fabric *f;
	struct fabric_node *sw[2];
	struct ib_gid mgid;
};

/* Host 0 on one switch, host 1 on another; port 2 joins them, port 3 is a second link. */
static int setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	e->f = testing_bare_fabric(2);
	e->mgid = testing_mgid(1);
	for (unsigned s = 0; s < 2; s++) {
		e->sw[s] = testing_switch(e->f, 4);
		snprintf(e->sw[s]->name, sizeof(e->sw[s]->name), "leaf%u", s);
		testing_plug(e->f->hca_port[s], &e->sw[s]->port[1]);
	}
	for (unsigned k = 2; k <= 3; k++)
		testing_plug(&e->sw[0]->port[k], &e->sw[1]->port[k]);
	testing_give_lids(e->f);
	testing_activate_all(e->f);
	for (unsigned s = 0; s < 2; s++) {
		testing_row(e->f, e->sw[s], MLID, 1, 2, 0);
		for (unsigned h = 0; h < 2; h++) {
			fabric_lft_set(e->sw[s], (uint16_t)(h + 1), h == s ? 1 : 2);
			if (s == 0)
				testing_qp(e->f, 10 + h, e->f->hca_port[h]);
		}
	}
	for (unsigned i = 0; i < 2; i++)
		fabric_port_publish(e->f, e->f->hca_port[i]);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	fabric_free(e->f);
	free(e);
	return 0;
}

static void assert_link(const struct fabric_port *p, enum ib_port_state state)
{
	assert_int_equal(p->state, state);
	assert_int_equal(p->peer->state, state);
}

CASE_WITH(nodes_are_found_by_name, setup, teardown)
{
	struct env *e = *state;

	assert_ptr_equal(fabric_node_find(e->f, "leaf1"), e->sw[1]);
	assert_ptr_equal(fabric_node_find(e->f, "umbel_h2_0"), e->f->hca_port[1]->node);
	assert_null(fabric_node_find(e->f, "leaf"));
}

CASE_WITH(both_ends_of_a_link_go_down_and_return_to_init, setup, teardown)
{
	struct env *e = *state;
	struct fabric_port *p = &e->sw[0]->port[2];

	assert_int_equal(fabric_link_set(e->f, p, false), 0);
	assert_link(p, IB_PORT_DOWN);
	assert_int_equal(fabric_link_set(e->f, p->peer, true), 0);
	assert_link(p, IB_PORT_INIT);
	assert_link(&e->sw[0]->port[3], IB_PORT_ACTIVE);
}

CASE_WITH(processes_see_the_state_of_their_port, setup, teardown)
{
	struct env *e = *state;
	struct shm_port s;

	fabric_link_set(e->f, &e->sw[0]->port[1], false);
	shm_port_read(e->f->region, 0, &s);
	assert_int_equal(s.state, IB_PORT_DOWN);
	assert_int_equal(s.phys_state, PHYS_POLLING);
	assert_int_equal(s.lid, 1);
	fabric_link_set(e->f, &e->sw[0]->port[1], true);
	shm_port_read(e->f->region, 0, &s);
	assert_int_equal(s.state, IB_PORT_INIT);
	assert_int_equal(s.phys_state, PHYS_LINK_UP);
}

CASE_WITH(impossible_changes_name_their_reason, setup, teardown)
{
	struct env *e = *state;
	struct fabric_port *p = &e->sw[0]->port[2];

	assert_int_equal(fabric_link_set(e->f, &e->sw[0]->port[4], false), -ENOTCONN);
	assert_int_equal(fabric_link_set(e->f, p, true), -EALREADY);
	fabric_link_set(e->f, p, false);
	assert_int_equal(fabric_link_set(e->f, p, false), -EALREADY);
	assert_int_equal(fabric_link_set(e->f, p->peer, false), -EALREADY);
	assert_int_equal(fabric_switch_set(e->f, e->sw[1], true), -EALREADY);
	fabric_switch_set(e->f, e->sw[1], false);
	assert_int_equal(fabric_switch_set(e->f, e->sw[1], false), -EALREADY);
	assert_int_equal(fabric_link_set(e->f, p, true), -EHOSTDOWN);
}

CASE_WITH(a_dead_switch_has_no_links_and_no_tables, setup, teardown)
{
	struct env *e = *state;

	assert_int_equal(fabric_switch_set(e->f, e->sw[0], false), 0);
	for (unsigned k = 1; k <= 3; k++)
		assert_link(&e->sw[0]->port[k], IB_PORT_DOWN);
	assert_int_equal(e->f->hca_port[1]->state, IB_PORT_ACTIVE);
	assert_int_equal(fabric_switch_set(e->f, e->sw[0], true), 0);
	for (unsigned k = 1; k <= 3; k++)
		assert_link(&e->sw[0]->port[k], IB_PORT_INIT);
	assert_int_equal(fabric_lft_get(e->sw[0], 1), FABRIC_LFT_NONE);
	assert_null(fabric_mft_get(e->sw[0], MLID));
	assert_int_equal(fabric_lft_get(e->sw[1], 1), 2);
}

CASE_WITH(a_link_set_down_stays_down_when_its_switch_is_revived, setup, teardown)
{
	struct env *e = *state;

	fabric_link_set(e->f, &e->sw[0]->port[2], false);
	fabric_switch_set(e->f, e->sw[0], false);
	fabric_switch_set(e->f, e->sw[0], true);
	assert_link(&e->sw[0]->port[2], IB_PORT_DOWN);
	assert_link(&e->sw[0]->port[3], IB_PORT_INIT);
}

CASE_WITH(a_link_between_two_dead_switches_needs_both, setup, teardown)
{
	struct env *e = *state;

	fabric_switch_set(e->f, e->sw[0], false);
	fabric_switch_set(e->f, e->sw[1], false);
	fabric_switch_set(e->f, e->sw[0], true);
	assert_link(&e->sw[0]->port[2], IB_PORT_DOWN);
	fabric_switch_set(e->f, e->sw[1], true);
	assert_link(&e->sw[0]->port[2], IB_PORT_INIT);
}

CASE_WITH(flows_across_a_failed_link_end_before_a_sweep, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *unicast = testing_flow(e->f, e->f->hca_port[0], 10, 2, NULL);
	struct fabric_flow *group = testing_flow(e->f, e->f->hca_port[0], 10, MLID, &e->mgid);

	fabric_attach_add(e->f, 1, 11, &e->mgid, MLID);
	assert_int_equal(testing_receivers(e->f, unicast), 1);
	assert_int_equal(testing_receivers(e->f, group), 1);
	fabric_link_set(e->f, &e->sw[1]->port[3], false); /* the other one */
	assert_int_equal(testing_receivers(e->f, unicast), 1);
	fabric_link_set(e->f, &e->sw[1]->port[2], false);
	assert_int_equal(testing_receivers(e->f, unicast), 0);
	assert_int_equal(testing_receivers(e->f, group), 0);
}

CASE_WITH(a_port_that_is_down_reaches_not_even_itself, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = testing_flow(e->f, e->f->hca_port[0], 10, 1, NULL);

	assert_int_equal(testing_receivers(e->f, flow), 1);
	fabric_link_set(e->f, e->f->hca_port[0], false);
	assert_int_equal(testing_receivers(e->f, flow), 0);
}

CASE_WITH(counters_of_a_link_keep_what_crossed_it, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = testing_flow(e->f, e->f->hca_port[0], 10, 2, NULL);
	struct shm_flow_count *sent = shm_flow_count_at(e->f->region, flow->id);

	atomic_store(&sent->packets, 5);
	fabric_link_set(e->f, &e->sw[0]->port[2], false);
	atomic_store(&sent->packets, 7); /* these get no further than the switch */
	fabric_flow_collect(e->f);
	assert_int_equal(e->f->hca_port[0]->stats.xmit_packets, 7);
	assert_int_equal(e->sw[0]->port[2].stats.xmit_packets, 5);
	assert_int_equal(e->f->hca_port[1]->stats.recv_packets, 5);
}
