/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subnet manager: LIDs, unicast routes between all pairs, the rows of multicast trees, and
 * delayed tables. The test sets the time.
 */
#include <harness.h>

#include "fabric/agents/link.h"
#include "fabric/testing.h"
#include "subnet/sm.h"

#define MLID 0xC003

struct env {
	struct fabric *f;
	struct sm *sm;
	uint64_t now;
	unsigned wakes, last_wake;
};

static void wake(void *arg, unsigned ms)
{
	struct env *e = arg;

	e->wakes++;
	e->last_wake = ms;
}

static uint64_t now_ms(void *arg)
{
	return ((struct env *)arg)->now;
}

/* Makes an SM for @f, which it then owns. */
static struct env *start(struct fabric *f)
{
	struct env *e = calloc(1, sizeof(*e));
	const struct sm_ops ops = { .wake = wake, .now_ms = now_ms, .arg = e };

	e->f = f;
	e->now = 1000;
	assert_int_equal(sm_new(&e->sm, f, &ops), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	return e;
}

static void stop(struct env *e)
{
	sm_free(e->sm);
	fabric_free(e->f);
	free(e);
}

/* ---- the walk ---- */

struct trace {
	unsigned reached[200];
};

static void on_reached(void *arg, struct fabric_port *hca)
{
	((struct trace *)arg)->reached[hca->index]++;
}

static struct trace walk(struct env *e, unsigned from, uint16_t dlid)
{
	struct trace t = { { 0 } };
	struct fabric_walk w = { .hop = testing_no_hop, .reached = on_reached, .arg = &t };

	if (ib_lid_is_mcast(dlid))
		fabric_walk_multicast(e->f, e->f->hca_port[from], dlid, &w);
	else
		fabric_walk_unicast(e->f, e->f->hca_port[from], dlid, &w);
	return t;
}

/* ---- topologies ---- */

/* Four switches in a ring and one across, with a parallel link; a host at port 1 of each. */
static struct fabric *mesh(void)
{
	struct fabric *f = testing_bare_fabric(4);
	struct fabric_node *sw[4];

	for (unsigned i = 0; i < 4; i++) {
		sw[i] = testing_switch(f, 6);
		testing_plug(f->hca_port[i], &sw[i]->port[1]);
	}
	for (unsigned i = 0; i < 4; i++)
		testing_plug(&sw[i]->port[2], &sw[(i + 1) % 4]->port[3]);
	testing_plug(&sw[0]->port[4], &sw[2]->port[4]);
	testing_plug(&sw[0]->port[5], &sw[2]->port[5]);
	return f;
}

/* Two switches that no link joins, two hosts at each. */
static struct fabric *islands(void)
{
	struct fabric *f = testing_bare_fabric(4);

	for (unsigned s = 0; s < 2; s++) {
		struct fabric_node *sw = testing_switch(f, 3);

		for (unsigned i = 0; i < 2; i++)
			testing_plug(f->hca_port[2 * s + i], &sw->port[i + 1]);
	}
	return f;
}

static const struct fabric_node *nth_switch(const struct fabric *f, unsigned n)
{
	for (unsigned i = 0; i < f->n_nodes; i++)
		if (f->node[i]->type == FABRIC_SWITCH && f->node[i]->index == n)
			return f->node[i];
	fail();
	return NULL;
}

/* Bits of the row of switch @n. */
static uint64_t row_of(const struct env *e, unsigned n)
{
	const struct fabric_mft_row *row = fabric_mft_get(nth_switch(e->f, n), MLID);

	return row ? row->ports[0] : 0;
}

/* Routes MLID for members written as "3r 0s": host 3 receives, host 0 only sends. */
static int route(struct env *e, const char *members)
{
	struct sm_member m[16];
	unsigned n = 0;

	for (; *members; members += members[2] ? 3 : 2, n++)
		m[n] = (struct sm_member){ .port = e->f->hca_port[members[0] - '0'],
			                   .receives = members[1] == 'r' };
	return sm_route_mcast(e->sm, MLID, m, n);
}

/* @want: one digit for each host: how many copies it gets. */
static void assert_reached(struct env *e, unsigned from, const char *want)
{
	struct trace t = walk(e, from, MLID);

	for (unsigned i = 0; want[i]; i++)
		assert_int_equal(t.reached[i], want[i] - '0');
}

/* ---- sweep ---- */

CASE(every_port_gets_a_lid_of_its_own_and_comes_up)
{
	struct env *e = start(testing_fabric(80));
	bool used[300] = { false };

	for (unsigned i = 0; i < e->f->n_nodes; i++) {
		const struct fabric_node *node = e->f->node[i];
		const struct fabric_port *p = &node->port[node->type == FABRIC_HCA];

		assert_in_range(p->lid, 1, 299);
		assert_false(used[p->lid]);
		used[p->lid] = true;
		for (unsigned k = 1; k <= node->n_ports; k++)
			assert_int_equal(node->port[k].state,
			                 node->port[k].peer ? IB_PORT_ACTIVE : IB_PORT_DOWN);
	}
	stop(e);
}

CASE(processes_see_lid_state_and_sm)
{
	struct env *e = start(testing_fabric(3));

	for (uint32_t i = 0; i < 3; i++) {
		struct shm_port p;

		shm_port_read(e->f->region, i, &p);
		assert_int_equal(p.lid, e->f->hca_port[i]->lid);
		assert_int_equal(p.state, IB_PORT_ACTIVE);
		assert_int_equal(p.sm_lid, e->f->hca_port[0]->lid);
	}
	stop(e);
}

static void assert_all_pairs(struct env *e)
{
	for (unsigned from = 0; from < e->f->n_hca_ports; from++)
		for (unsigned to = 0; to < e->f->n_hca_ports; to++) {
			struct trace t = walk(e, from, e->f->hca_port[to]->lid);

			for (unsigned i = 0; i < e->f->n_hca_ports; i++)
				assert_int_equal(t.reached[i], i == to);
		}
}

CASE(all_pairs_are_reachable)
{
	static const unsigned sizes[] = { 1, 2, 36, 37, 110 };
	struct env *e;

	for (size_t i = 0; EACH_ROW(i, sizes); i++) {
		e = start(testing_fabric(sizes[i]));
		assert_all_pairs(e);
		stop(e);
	}
	e = start(mesh());
	assert_all_pairs(e);
	stop(e);
}

CASE(a_subnet_that_has_come_apart_is_routed_in_its_parts)
{
	struct env *e = start(islands());
	struct trace t = walk(e, 0, e->f->hca_port[1]->lid);

	assert_int_equal(t.reached[1], 1);
	t = walk(e, 0, e->f->hca_port[2]->lid);
	assert_int_equal(t.reached[2], 0);
	stop(e);
}

CASE(a_second_sweep_keeps_the_lids)
{
	struct env *e = start(testing_fabric(5));
	uint16_t lid = e->f->hca_port[3]->lid;

	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(e->f->hca_port[3]->lid, lid);
	assert_all_pairs(e);
	stop(e);
}

CASE(a_link_that_is_down_stays_down_and_is_not_used)
{
	struct fabric *f = mesh();
	struct env *e;

	nth_switch(f, 0)->port[2].state = IB_PORT_DOWN;
	e = start(f);
	assert_int_equal(nth_switch(f, 0)->port[2].state, IB_PORT_DOWN);
	assert_all_pairs(e);
	assert_int_equal(route(e, "0r 1r 2r 3r"), 0);
	assert_reached(e, 0, "1111");
	stop(e);
}

/* ---- what fails and returns ---- */

CASE(a_sweep_routes_around_a_link_that_has_failed)
{
	struct env *e = start(mesh());
	struct fabric_port *p = &e->f->hca_port[0]->peer->node->port[2];

	assert_int_equal(fabric_link_set(e->f, p, false), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(p->state, IB_PORT_DOWN);
	assert_all_pairs(e);
	assert_int_equal(fabric_link_set(e->f, p, true), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(p->state, IB_PORT_ACTIVE);
	assert_int_equal(p->peer->state, IB_PORT_ACTIVE);
	assert_all_pairs(e);
	stop(e);
}

CASE(no_switch_has_a_route_to_what_cannot_be_reached)
{
	struct env *e = start(mesh());
	uint16_t lid = e->f->hca_port[1]->lid, sw_lid = nth_switch(e->f, 1)->port[0].lid;
	struct fabric_node *sw = e->f->hca_port[1]->peer->node;

	assert_int_equal(fabric_switch_set(e->f, sw, false), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	for (unsigned s = 0; s < 4; s++) {
		assert_int_equal(fabric_lft_get(nth_switch(e->f, s), lid), FABRIC_LFT_NONE);
		assert_int_equal(fabric_lft_get(nth_switch(e->f, s), sw_lid), FABRIC_LFT_NONE);
	}
	assert_int_equal(fabric_switch_set(e->f, sw, true), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(e->f->hca_port[1]->lid, lid);
	assert_int_equal(sw->port[0].lid, sw_lid);
	assert_all_pairs(e);
	stop(e);
}

static void change_lid(struct env *e, struct fabric_port *p)
{
	assert_int_equal(sm_give_other_lid(e->sm, p), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
}

CASE(routes_to_a_replaced_lid_are_removed)
{
	struct env *e = start(mesh());
	uint16_t old = e->f->hca_port[2]->lid;
	struct shm_port s;

	change_lid(e, e->f->hca_port[2]);
	assert_int_not_equal(e->f->hca_port[2]->lid, old);
	assert_all_pairs(e);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fabric_lft_get(nth_switch(e->f, i), old), FABRIC_LFT_NONE);
	shm_port_read(e->f->region, 2, &s);
	assert_int_equal(s.lid, e->f->hca_port[2]->lid);
	stop(e);
}

/* A program has given the port more LIDs than are its due, and a route to one of them. */
CASE(a_flow_to_a_lid_that_a_sweep_takes_away_ends)
{
	struct env *e = start(testing_fabric(3));
	struct fabric_port *from = e->f->hca_port[0], *to = e->f->hca_port[1];
	struct fabric_flow *flow;

	to->lid = 0x40;
	to->lmc = 1;
	assert_int_equal(fabric_lft_set(to->peer->node, to->lid + 1, to->peer->num), 0);
	fabric_lft_set_top(to->peer->node, to->lid + 1);
	testing_qp(e->f, 10, from);
	flow = testing_flow(e->f, from, 10, to->lid + 1, NULL);
	assert_int_equal(testing_receivers(e->f, flow), 1);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(to->lid, 0x40);
	assert_int_equal(to->lmc, 0);
	assert_int_equal(testing_receivers(e->f, flow), 0);
	stop(e);
}

/* Another subnet manager has set the top, and forgotten some LIDs. */
CASE(a_sweep_raises_a_top_that_is_too_low)
{
	struct env *e = start(mesh());
	struct fabric_port *from = e->f->hca_port[0], *to = e->f->hca_port[e->f->n_hca_ports - 1];
	struct fabric_flow *flow;

	testing_qp(e->f, 10, from);
	flow = testing_flow(e->f, from, 10, to->lid, NULL);
	assert_int_equal(testing_receivers(e->f, flow), 1);
	fabric_flow_set_lft_top(e->f, to->peer->node, to->lid - 1);
	fabric_flow_follow_all(e->f);
	assert_int_equal(testing_receivers(e->f, flow), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(testing_receivers(e->f, flow), 1);
	change_lid(e, to);
	assert_int_equal(sm_sweep(e->sm), 0);
	flow = testing_flow(e->f, from, 10, to->lid, NULL);
	assert_int_equal(testing_receivers(e->f, flow), 1);
	stop(e);
}

CASE(lids_are_given_out_again_but_never_to_two)
{
	struct env *e = start(testing_fabric(3));

	for (unsigned n = 0; n < 60000; n++) {
		struct fabric_port *p = e->f->hca_port[n % 2];

		change_lid(e, p);
		assert_in_range(p->lid, 1, IB_LID_MCAST_FIRST - 1);
		assert_int_not_equal(p->lid, e->f->hca_port[!(n % 2)]->lid);
		assert_int_not_equal(p->lid, e->f->hca_port[2]->lid);
		assert_int_not_equal(p->lid, nth_switch(e->f, 0)->port[0].lid);
	}
	assert_all_pairs(e);
	stop(e);
}

static struct env *start_lmc(unsigned hosts, uint32_t lmc)
{
	struct fabric *f = testing_fabric(hosts);

	f->settings.lmc = lmc;
	return start(f);
}

static void assert_lids_apart(const struct env *e, uint8_t lmc)
{
	uint8_t *used = calloc(1, IB_LID_MCAST_FIRST);

	assert_non_null(used);
	for (unsigned i = 0; i < e->f->n_nodes; i++) {
		const struct fabric_node *node = e->f->node[i];
		bool is_hca = node->type == FABRIC_HCA;
		const struct fabric_port *p = &node->port[is_hca];

		assert_int_equal(p->lmc, is_hca ? lmc : 0);
		assert_int_equal(p->lid % (1 << p->lmc), 0);
		for (unsigned k = 0; k < 1u << p->lmc; k++) {
			assert_in_range(p->lid + k, 1, IB_LID_MCAST_FIRST - 1);
			assert_int_equal(used[p->lid + k]++, 0);
		}
	}
	free(used);
}

CASE(with_an_lmc_hca_ports_have_several_lids_and_switches_one)
{
	for (uint8_t lmc = 0; lmc <= SM_MAX_LMC; lmc++) {
		struct env *e = start_lmc(50, lmc);

		assert_lids_apart(e, lmc);
		assert_all_pairs(e);
		stop(e);
	}
}

CASE(each_of_the_lids_leads_there)
{
	struct env *e = start_lmc(5, 3);
	const struct fabric_port *p = e->f->hca_port[4];

	for (uint16_t i = 0; i < 8; i++)
		assert_int_equal(walk(e, 0, p->lid + i).reached[4], 1);
	stop(e);
}

CASE(other_lids_are_as_many)
{
	struct env *e = start_lmc(5, 2);
	uint16_t old = e->f->hca_port[2]->lid;

	for (unsigned n = 0; n < 20000; n++)
		change_lid(e, e->f->hca_port[n % 3]);
	assert_lids_apart(e, 2);
	assert_all_pairs(e);
	change_lid(e, e->f->hca_port[2]);
	assert_int_not_equal(old, e->f->hca_port[2]->lid);
	stop(e);
}

CASE(lids_that_do_not_suffice_are_an_error)
{
	const struct sm_ops ops = { .wake = wake };
	struct fabric *f = testing_fabric(400);
	struct sm *sm;

	f->settings.lmc = 7;
	assert_int_equal(sm_new(&sm, f, &ops), 0);
	assert_int_equal(sm_sweep(sm), -ENOSPC);
	sm_free(sm);
	fabric_free(f);
}

/* Two that have the same LID, as another subnet manager may have left them. */
CASE(lids_that_two_have_are_given_anew)
{
	struct fabric *f = testing_fabric(4);
	struct env *e;

	f->hca_port[1]->lid = f->hca_port[3]->lid = 2;
	e = start(f);
	assert_int_equal(f->hca_port[1]->lid, 2);
	assert_lids_apart(e, 0);
	assert_all_pairs(e);
	stop(e);
}

CASE(the_sm_moves_to_the_next_port_that_is_active)
{
	static const unsigned homes[] = { 2, 3, 0, 2 };
	struct env *e = start(testing_fabric(4));

	fabric_link_set(e->f, e->f->hca_port[1], false);
	for (size_t i = 0; EACH_ROW(i, homes); i++) {
		struct shm_port s;

		sm_move(e->sm);
		shm_port_read(e->f->region, 1, &s);
		assert_int_equal(s.sm_lid, e->f->hca_port[homes[i]]->lid);
	}
	stop(e);
}

/* ---- multicast trees ---- */

CASE(on_one_switch_the_row_is_the_receivers)
{
	struct env *e = start(testing_fabric(4));

	assert_int_equal(route(e, "0r 2r 3s"), 0);
	assert_int_equal(row_of(e, 0), 1 << 1 | 1 << 3);
	stop(e);
}

CASE(each_member_reaches_every_receiver_once)
{
	struct env *e = start(mesh());

	assert_int_equal(route(e, "1r 3r 0r"), 0);
	for (unsigned from = 0; from < 4; from++)
		if (from != 2)
			assert_reached(e, from, "1101");
	stop(e);
}

CASE(a_send_only_member_leads_in_and_receives_nothing)
{
	struct env *e = start(mesh());

	assert_int_equal(route(e, "1r 2s 3r"), 0);
	assert_reached(e, 2, "0101");
	assert_reached(e, 1, "0101");
	stop(e);
}

CASE(a_send_only_member_may_come_first)
{
	struct env *e = start(mesh());

	assert_int_equal(route(e, "0s 2r"), 0);
	assert_reached(e, 0, "0010");
	stop(e);
}

CASE(towards_send_only_members_no_link_leads)
{
	struct env *e = start(mesh());
	unsigned ports = 0;

	assert_int_equal(route(e, "0r 1s"), 0);
	for (unsigned s = 0; s < 4; s++)
		ports += (unsigned)__builtin_popcountll(row_of(e, s));
	assert_int_equal(ports, 2); /* the receiver, and the path from 1 to it */
	stop(e);
}

CASE(only_send_only_members_make_no_receiver)
{
	struct env *e = start(mesh());

	assert_int_equal(route(e, "0s 1s 2s 3s"), 0);
	for (unsigned from = 0; from < 4; from++)
		assert_reached(e, from, "0000");
	stop(e);
}

CASE(switches_off_the_tree_have_no_row)
{
	struct env *e = start(mesh());

	assert_int_equal(route(e, "0r 1r"), 0);
	assert_true(row_of(e, 0) && row_of(e, 1));
	assert_int_equal(row_of(e, 2) | row_of(e, 3), 0);
	stop(e);
}

CASE(a_new_tree_leaves_nothing_of_the_old_one)
{
	struct env *e = start(mesh());

	assert_int_equal(route(e, "0r 1r 2r 3r"), 0);
	assert_int_equal(route(e, "2r"), 0);
	assert_reached(e, 0, "0000");
	assert_reached(e, 2, "0010");
	assert_int_equal(row_of(e, 0) | row_of(e, 1) | row_of(e, 3), 0);
	stop(e);
}

CASE(without_members_all_rows_are_empty)
{
	struct env *e = start(mesh());

	assert_int_equal(route(e, "0r 1r 2r 3r"), 0);
	assert_int_equal(route(e, ""), 0);
	for (unsigned s = 0; s < 4; s++)
		assert_int_equal(row_of(e, s), 0);
	stop(e);
}

CASE(a_member_that_is_not_plugged_in_keeps_nobody_out)
{
	struct fabric *f = mesh();
	struct env *e;

	testing_unplug(f->hca_port[1]);
	e = start(f);
	assert_int_equal(route(e, "1r 0r 2r"), 0);
	assert_reached(e, 0, "1010");
	stop(e);
}

CASE(members_on_two_islands_get_a_tree_each)
{
	struct env *e = start(islands());

	assert_int_equal(route(e, "0r 2r 3r 1s"), 0);
	assert_reached(e, 1, "1000");
	assert_reached(e, 2, "0011");
	stop(e);
}

CASE(flows_follow_the_trees)
{
	struct env *e = start(mesh());
	struct ib_gid mgid = testing_mgid(1);
	struct fabric_flow *flow;

	testing_qp(e->f, 10, e->f->hca_port[2]);
	assert_int_equal(fabric_attach_add(e->f, 2, 10, &mgid, MLID), 0);
	flow = testing_flow(e->f, e->f->hca_port[0], 11, MLID, &mgid);
	assert_int_equal(testing_receivers(e->f, flow), 0);
	assert_int_equal(route(e, "0s 2r"), 0);
	assert_int_equal(testing_copies(e->f, flow, 10), 1);
	assert_int_equal(route(e, ""), 0);
	assert_int_equal(testing_receivers(e->f, flow), 0);
	stop(e);
}

CASE(an_mlid_beyond_the_capacity_is_refused)
{
	struct fabric *f = testing_fabric(2);
	struct env *e;
	struct sm_member m;

	f->settings.mft_capacity = 4;
	e = start(f);
	m = (struct sm_member){ .port = f->hca_port[0], .receives = true };
	assert_int_equal(sm_route_mcast(e->sm, 0xC003, &m, 1), 0);
	assert_int_equal(sm_route_mcast(e->sm, 0xC004, &m, 1), -ENOSPC);
	assert_int_equal(sm_route_mcast(e->sm, 0xFFFF, &m, 1), -ENOSPC);
	assert_int_equal(sm_route_mcast(e->sm, 0x0003, &m, 1), -ENOSPC);
	stop(e);
}

/* ---- trees that stand ---- */

static struct fabric_port *link_of(const struct env *e, unsigned sw, unsigned port)
{
	return &e->f->hca_port[sw]->peer->node->port[port];
}

static void set_link(struct env *e, struct fabric_port *p, bool up)
{
	assert_int_equal(fabric_link_set(e->f, p, up), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
}

CASE(a_link_that_fails_makes_stale_the_trees_that_it_is_on)
{
	struct env *e = start(mesh());

	assert_int_equal(route(e, "0r 1r"), 0); /* by port 2 of switch 0 */
	set_link(e, link_of(e, 2, 2), false);
	assert_false(sm_mcast_is_stale(e->sm, MLID));
	set_link(e, e->f->hca_port[3], false);
	assert_false(sm_mcast_is_stale(e->sm, MLID));
	set_link(e, link_of(e, 0, 2), false);
	assert_true(sm_mcast_is_stale(e->sm, MLID));
	assert_int_equal(route(e, "0r 1r"), 0);
	assert_reached(e, 0, "1100");
	stop(e);
}

CASE(a_link_that_returns_makes_all_trees_stale)
{
	struct env *e = start(mesh());

	assert_int_equal(route(e, "0r 1r"), 0);
	set_link(e, link_of(e, 2, 2), false);
	set_link(e, link_of(e, 2, 2), true);
	assert_true(sm_mcast_is_stale(e->sm, MLID));
	stop(e);
}

CASE(a_sweep_for_no_reason_looks_at_all_trees)
{
	struct env *e = start(mesh());

	assert_int_equal(route(e, "0r 1r"), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_true(sm_mcast_is_stale(e->sm, MLID));
	stop(e);
}

/* ---- delay ---- */

static struct env *start_late(unsigned ms)
{
	struct fabric *f = testing_fabric(4);

	f->settings.mft_delay_ms = ms;
	return start(f);
}

static void run(struct env *e, uint64_t now)
{
	e->now = now;
	sm_run_due(e->sm, now);
}

CASE(with_a_delay_tables_follow_when_the_clock_says_so)
{
	struct env *e = start_late(50);

	assert_int_equal(route(e, "0r 1r"), 0);
	assert_int_equal(e->last_wake, 50);
	assert_reached(e, 0, "0000");
	run(e, 1049);
	assert_reached(e, 0, "0000");
	run(e, 1050);
	assert_reached(e, 0, "1100");
	stop(e);
}

CASE(each_change_has_a_delay_of_its_own)
{
	struct env *e = start_late(50);

	route(e, "0r");
	run(e, 1030);
	route(e, "0r 1r");
	run(e, 1050);
	assert_reached(e, 0, "1000"); /* the first is not put off by the second */
	assert_int_equal(e->last_wake, 30);
	run(e, 1079);
	assert_reached(e, 0, "1000");
	run(e, 1080);
	assert_reached(e, 0, "1100");
	stop(e);
}

CASE(a_late_clock_writes_all_that_is_due_in_order)
{
	struct env *e = start_late(50);

	route(e, "0r 3r");
	run(e, 1010);
	route(e, "0r 1r");
	run(e, 5000);
	assert_reached(e, 0, "1100");
	stop(e);
}

CASE(a_group_that_ends_is_gone_at_once_and_for_good)
{
	struct env *e = start_late(50);

	route(e, "0r 1r");
	run(e, 1050);
	route(e, "0r 1r 2r");
	route(e, "");
	assert_reached(e, 0, "0000");
	run(e, 5000);
	assert_reached(e, 0, "0000");
	stop(e);
}

CASE(a_delay_set_back_to_zero_discards_pending_tables)
{
	struct env *e = start_late(50);

	route(e, "0r 1r 2r 3r");
	e->f->settings.mft_delay_ms = 0;
	route(e, "0r 1r");
	assert_reached(e, 0, "1100");
	run(e, 5000);
	assert_reached(e, 0, "1100");
	stop(e);
}

CASE(a_shorter_delay_overtakes_without_harm)
{
	struct env *e = start_late(500);

	route(e, "0r 1r 2r 3r");
	e->f->settings.mft_delay_ms = 50;
	route(e, "0r 1r");
	run(e, 1050);
	assert_reached(e, 0, "1100");
	run(e, 5000);
	assert_reached(e, 0, "1100");
	stop(e);
}

CASE(what_still_waits_at_the_end_is_freed)
{
	struct env *e = start_late(50);

	route(e, "0r 1r");
	stop(e);
}
