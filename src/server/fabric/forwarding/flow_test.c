/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flows: the queue pairs that they list after each change of tables and attachments, compared with
 * a model without lists; and the counters along their path.
 */
#include <harness.h>

#include "fabric/agents/link.h"
#include "fabric/forwarding/change.h"
#include "fabric/forwarding/mcast_path.h"
#include "fabric/model/lanes.h"
#include "fabric/testing.h"

#define MLID 0xC001

struct env {
	struct fabric *f;
	struct fabric_node *sw[2];
	struct ib_gid mgid;
};

/* Hosts 0 and 1 on one switch, 2 and 3 on another, port 4 joins them; all tables are written. */
static int setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	e->f = testing_bare_fabric(4);
	e->mgid = testing_mgid(1);
	for (unsigned s = 0; s < 2; s++) {
		e->sw[s] = testing_switch(e->f, 4);
		for (unsigned i = 0; i < 2; i++)
			testing_plug(e->f->hca_port[2 * s + i], &e->sw[s]->port[i + 1]);
	}
	testing_plug(&e->sw[0]->port[4], &e->sw[1]->port[4]);
	testing_give_lids(e->f);
	testing_activate_all(e->f);
	for (unsigned s = 0; s < 2; s++) {
		testing_row(e->f, e->sw[s], MLID, 1, 2, 4, 0);
		for (unsigned h = 0; h < 4; h++)
			fabric_lft_set(e->sw[s], (uint16_t)(h + 1),
			               h / 2 == s ? (uint8_t)(h % 2 + 1) : 4);
	}
	for (unsigned h = 0; h < 4; h++)
		testing_qp(e->f, 10 + h, e->f->hca_port[h]);
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

static int attach(struct env *e, unsigned host)
{
	return fabric_attach_add(e->f, host, 10 + host, &e->mgid, MLID);
}

static int detach(struct env *e, unsigned host)
{
	return fabric_attach_remove(e->f, host, 10 + host, &e->mgid, MLID);
}

static struct fabric_flow *flow_from(struct env *e, unsigned host)
{
	return testing_flow(e->f, e->f->hca_port[host], 10 + host, MLID, &e->mgid);
}

/* ---- work ---- */

#define MANY 320

/* Bringing up many ports looks at all flows that end there, or begin, and at no others. */
CASE_WITH(looking_at_flows_that_do_not_change_is_work, setup, teardown)
{
	struct env *e = *state;
	uint64_t before;

	for (unsigned i = 0; i < MANY; i++)
		testing_flow(e->f, e->f->hca_port[0], 10, 100, NULL); /* there is no route */
	e->f->hca_port[1]->lid = 100;
	before = e->f->flows->work;
	fabric_flow_note_link(e->f, e->f->hca_port[1]);
	fabric_flow_follow_all(e->f);
	assert_in_range(e->f->flows->work - before, MANY / FABRIC_FLOW_LOOKS, MANY / 4);
	for (unsigned i = 0; i < MANY; i++)
		flow_from(e, 0);
	before = e->f->flows->work;
	fabric_flow_lanes_changed(e->f, e->f->hca_port[0]);
	fabric_flow_follow_all(e->f);
	assert_in_range(e->f->flows->work - before, MANY / FABRIC_FLOW_LOOKS, MANY / 4);
	before = e->f->flows->work;
	fabric_flow_lanes_changed(e->f, e->f->hca_port[1]);
	assert_int_equal(e->f->flows->work, before);
}

/* ---- memory ---- */

static bool no_memory; /* for hops */

/* In place of base_array_reserve_bytes(). */
int __real_base_array_reserve_bytes(void *array, uint32_t *room, size_t want, size_t size);
int __wrap_base_array_reserve_bytes(void *array, uint32_t *room, size_t want, size_t size);
int __wrap_base_array_reserve_bytes(void *array, uint32_t *room, size_t want, size_t size)
{
	if (no_memory && size == sizeof(struct fabric_mcast_path_hop))
		return -ENOMEM;
	return __real_base_array_reserve_bytes(array, room, want, size);
}

/* ---- links ---- */

/* As a subnet manager brings it up. */
static void bring_up(struct env *e, struct fabric_port *p)
{
	assert_int_equal(fabric_link_set(e->f, p, true), 0);
	p->state = p->peer->state = IB_PORT_ACTIVE;
	fabric_flow_note_link(e->f, p);
	fabric_flow_follow_all(e->f);
}

CASE_WITH(without_memory_for_its_links_a_flow_follows_them_still, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *near, *far;

	no_memory = true;
	near = testing_flow(e->f, e->f->hca_port[0], 10, 2, NULL);
	far = testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);
	assert_int_equal(testing_receivers(e->f, far), 1);
	assert_int_equal(fabric_link_set(e->f, &e->sw[0]->port[4], false), 0);
	assert_int_equal(testing_receivers(e->f, near), 1);
	assert_int_equal(testing_receivers(e->f, far), 0);
	no_memory = false;
	bring_up(e, &e->sw[0]->port[4]);
	assert_int_equal(testing_receivers(e->f, far), 1);
	assert_true(LIST_EMPTY(&e->f->flows->lacking)); /* there is memory again */
	no_memory = true;
	fabric_flow_remove(e->f, testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL));
	no_memory = false;
	assert_true(LIST_EMPTY(&e->f->flows->lacking));
}

CASE_WITH(a_link_that_fails_and_returns_concerns_its_own_flows, setup, teardown)
{
	struct env *e = *state;
	struct fabric_port *trunk = &e->sw[0]->port[4], *host = e->f->hca_port[2];
	struct fabric_flow *apart = testing_flow(e->f, e->f->hca_port[0], 10, 2, NULL);
	struct fabric_flow *over = testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);
	struct fabric_flow *back = testing_flow(e->f, host, 12, 1, NULL);
	struct fabric_flow *self = testing_flow(e->f, host, 12, 3, NULL);
	uint32_t seq = testing_record(e->f, apart)->seq;

	assert_int_equal(fabric_link_set(e->f, trunk, false), 0);
	assert_int_equal(testing_receivers(e->f, over), 0);
	assert_int_equal(testing_receivers(e->f, back), 0);
	assert_int_equal(testing_receivers(e->f, self), 1);
	bring_up(e, trunk);
	assert_int_equal(testing_receivers(e->f, over), 1);
	assert_int_equal(testing_receivers(e->f, back), 1);
	assert_int_equal(fabric_link_set(e->f, host, false), 0);
	assert_int_equal(testing_receivers(e->f, over), 0);
	assert_int_equal(testing_receivers(e->f, back), 0);
	assert_int_equal(testing_receivers(e->f, self), 0);
	bring_up(e, host);
	assert_int_equal(testing_receivers(e->f, over), 1);
	assert_int_equal(testing_receivers(e->f, back), 1);
	assert_int_equal(testing_receivers(e->f, self), 1);
	assert_int_equal(testing_record(e->f, apart)->seq, seq);
}

/* They go on as they were until it is their turn, and may end before that. */
CASE_WITH(flows_follow_a_failed_link_in_slices, setup, teardown)
{
	struct env *e = *state;
	struct fabric_port *trunk = &e->sw[0]->port[4];
	struct fabric_flow *flow[8];
	unsigned ended = 0, slices = 1;
	uint32_t budget = 1;

	for (unsigned i = 0; i < ARRAY_SIZE(flow); i++)
		flow[i] = testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);
	assert_int_equal(fabric_link_note(e->f, trunk, false), 0);
	for (unsigned i = 0; EACH_ROW(i, flow); i++)
		assert_int_equal(testing_receivers(e->f, flow[i]), 1);
	assert_false(fabric_flow_follow(e->f, &budget, 1));
	for (unsigned i = 0; i < ARRAY_SIZE(flow); i++)
		ended += !testing_receivers(e->f, flow[i]);
	assert_int_equal(ended, 1);
	fabric_flow_remove(e->f, flow[7]);
	assert_int_equal(fabric_link_note(e->f, trunk, false), -EALREADY);
	for (budget = 1; !fabric_flow_follow(e->f, &budget, 1); budget = 1)
		slices++;
	assert_in_range(slices, 6, 8);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(testing_receivers(e->f, flow[i]), 0);
	bring_up(e, trunk);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(testing_receivers(e->f, flow[i]), 1);
}

/* So do flows that share their path from the second link on, when the first one fails: some of them
 * at a time. A queue pair that begins to send meanwhile knows it at once. */
CASE_WITH(first_links_are_followed_in_slices, setup, teardown)
{
	struct env *e = *state;
	struct fabric_port *host = e->f->hca_port[0];
	struct fabric_flow *flow[MANY];
	unsigned ended = 0, slices = 0;
	uint32_t budget = 1;

	attach(e, 3);
	for (unsigned i = 0; i < MANY; i++)
		flow[i] = flow_from(e, 0);
	assert_int_equal(fabric_link_note(e->f, host, false), 0);
	assert_false(fabric_flow_follow(e->f, &budget, 1));
	for (unsigned i = 0; i < MANY; i++)
		ended += !testing_receivers(e->f, flow[i]);
	assert_in_range(ended, 1, FABRIC_FLOW_LOOKS);
	for (unsigned i = 0; i < MANY; i += 2)
		fabric_flow_remove(e->f, flow[i]);
	flow[0] = flow_from(e, 0);
	assert_int_equal(testing_receivers(e->f, flow[0]), 0);
	for (budget = 1; !fabric_flow_follow(e->f, &budget, 1); budget = 1)
		slices++;
	assert_in_range(slices, MANY / 2 / FABRIC_FLOW_LOOKS - 1, MANY);
	for (unsigned i = 1; i < MANY; i += 2)
		assert_int_equal(testing_receivers(e->f, flow[i]), 0);
	bring_up(e, host);
	for (unsigned i = 1; i < MANY; i += 2)
		assert_int_equal(testing_receivers(e->f, flow[i]), 1);
	assert_int_equal(testing_receivers(e->f, flow[0]), 1);
}

/* A link returns, and fails again, before flows have followed its failure. */
CASE_WITH(a_link_that_changes_again_before_flows_follow, setup, teardown)
{
	struct env *e = *state;
	struct fabric_port *trunk = &e->sw[0]->port[4];
	struct fabric_flow *flow[8];
	uint32_t budget = 1;

	for (unsigned i = 0; i < ARRAY_SIZE(flow); i++)
		flow[i] = testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);
	for (unsigned n = 0; n < 5; n++) {
		assert_int_equal(fabric_link_note(e->f, trunk, n & 1), 0);
		if (n & 1) {
			trunk->state = trunk->peer->state = IB_PORT_ACTIVE;
			fabric_flow_note_link(e->f, trunk);
		}
		budget = 2;
		assert_false(fabric_flow_follow(e->f, &budget, 1));
	}
	fabric_flow_follow_all(e->f);
	for (unsigned i = 0; EACH_ROW(i, flow); i++)
		assert_int_equal(testing_receivers(e->f, flow[i]), 0);
	bring_up(e, trunk);
	for (unsigned i = 0; EACH_ROW(i, flow); i++)
		assert_int_equal(testing_receivers(e->f, flow[i]), 1);
}

/* Nor does it take longer if many have, and those that end meanwhile may be in either list. */
CASE_WITH(a_link_that_changes_again_when_most_flows_have_followed, setup, teardown)
{
	struct env *e = *state;
	struct fabric_port *trunk = &e->sw[0]->port[4];
	struct fabric_flow *flow[MANY];

	for (unsigned i = 0; i < MANY; i++)
		flow[i] = testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);
	for (unsigned n = 0; n < 20; n++) {
		uint32_t budget = MANY / 2 + n;
		uint64_t before;

		fabric_flow_note_link(e->f, trunk);
		assert_false(fabric_flow_follow(e->f, &budget, 1));
		before = e->f->flows->work;
		fabric_flow_note_link(e->f, trunk);
		fabric_flow_lanes_changed(e->f, e->f->hca_port[0]);
		assert_int_equal(e->f->flows->work, before);
		for (unsigned i = 0; i < MANY; i += n + 2) {
			fabric_flow_remove(e->f, flow[i]);
			flow[i] = testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);
		}
	}
	assert_int_equal(fabric_link_note(e->f, trunk, false), 0);
	fabric_flow_follow_all(e->f);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(testing_receivers(e->f, flow[i]), 0);
	for (unsigned i = 0; i < MANY; i++)
		fabric_flow_remove(e->f, flow[i]);
	assert_true(TAILQ_EMPTY(&e->f->hca_port[0]->flows));
	assert_true(TAILQ_EMPTY(&trunk->hops));
}

/* Flows to a LID as well, and flows that end before their turn. */
CASE_WITH(flows_follow_a_lid_in_slices, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow[8];
	unsigned slices = 0;
	uint32_t budget;

	for (unsigned i = 0; i < ARRAY_SIZE(flow); i++)
		flow[i] = testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);
	fabric_lft_set(e->sw[0], 3, FABRIC_LFT_NONE);
	fabric_flow_note_lid(e->f, 3);
	fabric_flow_note_lid(e->f, 3);
	fabric_flow_remove(e->f, flow[0]);
	for (budget = 1; !fabric_flow_follow(e->f, &budget, 1); budget = 1)
		slices++;
	assert_int_equal(slices, 6);
	for (unsigned i = 1; i < ARRAY_SIZE(flow); i++)
		assert_int_equal(testing_receivers(e->f, flow[i]), 0);
}

/* Each has its turn, though all change again before all have had theirs. */
CASE_WITH(all_flows_follow_however_often_they_change, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow[MANY];
	unsigned left = MANY, slices = 0;

	for (unsigned i = 0; i < MANY; i++)
		flow[i] = testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);
	fabric_lft_set(e->sw[0], 3, FABRIC_LFT_NONE);
	for (; left && slices < MANY; slices++) {
		uint32_t budget = 16;
		uint64_t before = e->f->flows->work;

		fabric_flow_mark_all(e->f);
		assert_false(fabric_flow_follow(e->f, &budget, 1));
		assert_in_range(e->f->flows->work - before, 16, 16 + 8);
		left = 0;
		for (unsigned i = 0; i < MANY; i++)
			left += testing_receivers(e->f, flow[i]);
	}
	assert_in_range(slices, MANY / 16, MANY - 1);
	assert_int_equal(left, 0);
	/* and is compiled no more often than it has to be */
	fabric_flow_follow_all(e->f);
	fabric_flow_mark_all(e->f);
	left = (unsigned)e->f->flows->work;
	fabric_flow_follow_all(e->f);
	assert_in_range((unsigned)e->f->flows->work - left, MANY, 4 * MANY);
}

/* The first numbers come last, and the table grows before that. */
CASE_WITH(all_flows_follow_though_more_begin, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow[MANY];
	uint32_t budget = 16;

	for (unsigned i = 0; i < MANY; i++)
		flow[i] = testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);
	fabric_flow_mark_all(e->f);
	assert_false(fabric_flow_follow(e->f, &budget, 1));
	fabric_lft_set(e->sw[0], 3, FABRIC_LFT_NONE);
	fabric_flow_mark_all(e->f);
	for (uint32_t size = e->f->flows->ids.size; e->f->flows->ids.size == size;)
		testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);
	fabric_flow_follow_all(e->f);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(testing_receivers(e->f, flow[i]), 0);
}

/* A flow whose number has had its turn joins one that ends before its own. */
CASE_WITH(who_joins_a_path_that_has_not_followed_follows, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow[MANY], *late;
	uint32_t budget = 16;

	attach(e, 3);
	for (unsigned i = 0; i < MANY - 1; i++)
		flow[i] = testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);
	flow[MANY - 1] = flow_from(e, 0);
	while (e->f->flows->ids.used < e->f->flows->ids.size)
		testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);
	testing_row(e->f, e->sw[0], MLID, 0);
	fabric_flow_mark_all(e->f);
	assert_false(fabric_flow_follow(e->f, &budget, 1));
	assert_int_equal(testing_receivers(e->f, flow[MANY - 1]), 1);
	fabric_flow_remove(e->f, flow[0]);
	late = flow_from(e, 1);
	assert_int_equal(late->id, 0);
	fabric_flow_remove(e->f, flow[MANY - 1]);
	fabric_flow_follow_all(e->f);
	assert_int_equal(testing_receivers(e->f, late), 0);
}

CASE_WITH(flows_follow_marked_lids_in_slices, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow[8];
	unsigned slices = 0;
	uint32_t budget;

	for (unsigned i = 0; i < ARRAY_SIZE(flow); i++)
		flow[i] = testing_flow(e->f, e->f->hca_port[0], 10, (uint16_t)(3 + i % 2), NULL);
	fabric_lft_set(e->sw[0], 3, FABRIC_LFT_NONE);
	fabric_lft_set(e->sw[0], 4, FABRIC_LFT_NONE);
	fabric_flow_mark_lid(e->f, 4);
	fabric_flow_mark_lid(e->f, 3);
	fabric_flow_mark_lid(e->f, 0xBFFF); /* nobody sends there */
	fabric_flow_mark_lid(e->f, 3);
	for (budget = 1; !fabric_flow_follow(e->f, &budget, 1); budget = 1)
		slices++;
	assert_in_range(slices, 7, 8);
	for (unsigned i = 0; EACH_ROW(i, flow); i++)
		assert_int_equal(testing_receivers(e->f, flow[i]), 0);
}

static void set_member(struct env *e, unsigned sw, uint8_t port, bool is_member)
{
	struct fabric_mft_row row = *fabric_mft_get(e->sw[sw], MLID);

	row.ports[0] &= ~(1ull << port);
	row.ports[0] |= (uint64_t)is_member << port;
	assert_int_equal(fabric_mft_set(e->f, e->sw[sw], MLID, &row), 0);
	fabric_flow_edge_changed(e->f, &e->sw[sw]->port[port], MLID, e->f->flows->compiled);
}

/* A member is taken out, or added, while its link is down: senders are told when it is up. */
CASE_WITH(members_change_while_their_links_are_down, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = flow_from(e, 0);
	struct fabric_port *host = e->f->hca_port[3];

	attach(e, 3);
	assert_int_equal(testing_copies(e->f, flow, 13), 1);
	for (unsigned n = 0; n < 4; n++) {
		bool is_member = n == 0 || n == 2;

		assert_int_equal(fabric_link_set(e->f, host, false), 0);
		assert_int_equal(testing_copies(e->f, flow, 13), 0);
		set_member(e, 1, 2, false);
		assert_int_equal(flow->path->n_losses, 0);
		if (is_member)
			set_member(e, 1, 2, true);
		assert_int_equal(flow->path->n_losses, is_member);
		bring_up(e, host);
		assert_int_equal(flow->path->n_losses, 0);
		assert_int_equal(testing_copies(e->f, flow, 13), is_member);
	}
}

/* ---- multicast ---- */

CASE_WITH(a_flow_lists_the_attached_qps_that_it_reaches, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow;

	attach(e, 1);
	attach(e, 3);
	flow = flow_from(e, 0);
	assert_int_equal(testing_receivers(e->f, flow), 2);
	assert_int_equal(testing_copies(e->f, flow, 11), 1);
	assert_int_equal(testing_copies(e->f, flow, 13), 1);
}

CASE_WITH(attaching_and_detaching_change_the_flows_to_that_group, setup, teardown)
{
	struct env *e = *state;
	struct ib_gid other = testing_mgid(2);
	struct fabric_flow *flow = flow_from(e, 0);
	struct fabric_flow *apart = testing_flow(e->f, e->f->hca_port[0], 10, MLID, &other);
	uint32_t seq = testing_record(e->f, apart)->seq;

	assert_int_equal(testing_receivers(e->f, flow), 0);
	attach(e, 2);
	assert_int_equal(testing_copies(e->f, flow, 12), 1);
	detach(e, 2);
	assert_int_equal(testing_receivers(e->f, flow), 0);
	assert_int_equal(testing_record(e->f, apart)->seq, seq);
}

CASE_WITH(every_change_moves_the_sequence_number, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = flow_from(e, 0);
	uint32_t seq = testing_record(e->f, flow)->seq;

	attach(e, 2);
	assert_true(testing_record(e->f, flow)->seq != seq);
	seq = testing_record(e->f, flow)->seq;
	detach(e, 2);
	assert_true(testing_record(e->f, flow)->seq != seq);
}

CASE_WITH(a_qp_attached_by_two_mlids_gets_one_copy, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = flow_from(e, 0);

	attach(e, 2);
	fabric_attach_add(e->f, 2, 12, &e->mgid, MLID + 1);
	assert_int_equal(testing_copies(e->f, flow, 12), 1);
	detach(e, 2);
	assert_int_equal(testing_copies(e->f, flow, 12), 1);
	fabric_attach_remove(e->f, 2, 12, &e->mgid, MLID + 1);
	assert_int_equal(testing_copies(e->f, flow, 12), 0);
}

CASE_WITH(changed_tables_count_once_the_lid_is_named, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow;

	for (unsigned h = 0; h < 4; h++)
		attach(e, h);
	flow = flow_from(e, 0);
	assert_int_equal(testing_receivers(e->f, flow), 4);
	testing_row(e->f, e->sw[1], MLID, 2, 4, 0);
	fabric_flow_lid_changed(e->f, MLID + 1);
	assert_int_equal(testing_receivers(e->f, flow), 4);
	fabric_flow_lid_changed(e->f, MLID);
	assert_int_equal(testing_copies(e->f, flow, 12), 0);
	assert_int_equal(testing_receivers(e->f, flow), 3);
}

/* Writes the row of the far switch, in which port @changed was added or removed. */
static void change_edge(struct env *e, unsigned changed, bool gained)
{
	if (gained)
		testing_row(e->f, e->sw[1], MLID, 1, 2, 4, 0);
	else
		testing_row(e->f, e->sw[1], MLID, 3 - changed, 4, 0);
	fabric_flow_edge_changed(e->f, &e->sw[1]->port[changed], MLID, e->f->flows->compiled);
}

CASE_WITH(an_edge_that_comes_or_goes_changes_the_lists_in_place, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *near = flow_from(e, 0), *own = flow_from(e, 2);

	for (unsigned h = 0; h < 4; h++)
		attach(e, h);
	change_edge(e, 1, false);
	assert_int_equal(testing_receivers(e->f, near), 3);
	assert_int_equal(testing_copies(e->f, near, 12), 0);
	assert_int_equal(testing_receivers(e->f, own), 3); /* its own copy comes by an edge, too */
	assert_int_equal(testing_copies(e->f, own, 12), 0);
	change_edge(e, 1, true);
	assert_int_equal(testing_receivers(e->f, near), 4);
	assert_int_equal(testing_copies(e->f, near, 12), 1);
	assert_int_equal(testing_copies(e->f, own, 12), 1);
}

CASE_WITH(an_edge_counts_what_was_sent_while_it_was_there, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = flow_from(e, 0);
	struct shm_flow_count *sent = shm_flow_count_at(e->f->region, flow->id);

	atomic_store(&sent->packets, 3);
	change_edge(e, 2, false);
	atomic_store(&sent->packets, 5);
	change_edge(e, 2, true);
	atomic_store(&sent->packets, 12);
	fabric_flow_collect(e->f);
	assert_int_equal(e->f->hca_port[3]->stats.recv_packets, 3 + 7);
	assert_int_equal(e->f->hca_port[2]->stats.recv_packets, 12);
}

/* The first one may have the path compiled, as there is no room in its list: that is both. */
CASE_WITH(two_edges_of_one_row_are_added_once, setup, teardown)
{
	struct env *e = *state;
	const uint64_t since = e->f->flows->compiled + 1; /* with the flow */
	struct fabric_flow *flow;

	attach(e, 2);
	attach(e, 3);
	testing_row(e->f, e->sw[1], MLID, 4, 0);
	flow = flow_from(e, 0);
	assert_int_equal(testing_receivers(e->f, flow), 0);
	testing_row(e->f, e->sw[1], MLID, 1, 2, 4, 0);
	for (unsigned k = 1; k <= 2; k++)
		fabric_flow_edge_changed(e->f, &e->sw[1]->port[k], MLID, since);
	assert_int_equal(testing_copies(e->f, flow, 12), 1);
	assert_int_equal(testing_copies(e->f, flow, 13), 1);
}

CASE_WITH(an_edge_with_a_smaller_mtu_is_the_paths, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow;

	e->sw[1]->port[2].mtu = e->f->hca_port[3]->mtu = IBV_MTU_1024;
	testing_row(e->f, e->sw[1], MLID, 1, 4, 0);
	flow = flow_from(e, 0);
	assert_int_equal(testing_record(e->f, flow)->mtu, 4096);
	change_edge(e, 2, true);
	assert_int_equal(testing_record(e->f, flow)->mtu, 1024);
	change_edge(e, 2, false);
	assert_int_equal(testing_record(e->f, flow)->mtu, 4096);
}

CASE_WITH(an_edge_does_not_change_flows_through_other_switches, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow;
	uint32_t seq;

	for (unsigned h = 0; h < 4; h++)
		attach(e, h);
	testing_row(e->f, e->sw[0], MLID, 1, 2, 0); /* nothing leads to the far switch */
	flow = flow_from(e, 0);
	seq = testing_record(e->f, flow)->seq;
	change_edge(e, 1, false);
	change_edge(e, 1, true);
	assert_int_equal(testing_record(e->f, flow)->seq, seq);
	assert_int_equal(testing_receivers(e->f, flow), 2);
}

CASE_WITH(all_flows_follow_a_port_that_goes_down, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow, *unicast;

	attach(e, 1);
	attach(e, 3);
	flow = flow_from(e, 0);
	unicast = testing_flow(e->f, e->f->hca_port[0], 10, 4, NULL);
	e->sw[0]->port[4].state = IB_PORT_DOWN;
	fabric_flow_all_changed(e->f);
	assert_int_equal(testing_receivers(e->f, flow), 1);
	assert_int_equal(testing_copies(e->f, flow, 11), 1);
	assert_int_equal(testing_record(e->f, unicast)->count, 0);
}

CASE_WITH(a_qp_without_a_port_gets_nothing_until_it_has_one, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = flow_from(e, 0);

	shm_qp_at(e->f->region, 12)->port_num = 0;
	attach(e, 2);
	assert_int_equal(testing_copies(e->f, flow, 12), 0);
	shm_qp_at(e->f->region, 12)->port_num = 1;
	fabric_attach_qp_moved(e->f, 12);
	assert_int_equal(testing_copies(e->f, flow, 12), 1);
}

CASE_WITH(the_sender_gets_its_own_unless_it_blocks_it, setup, teardown)
{
	struct env *e = *state;

	testing_qp(e->f, 20, e->f->hca_port[0]);
	attach(e, 0);
	fabric_attach_add(e->f, 0, 20, &e->mgid, MLID);
	assert_int_equal(testing_receivers(e->f, flow_from(e, 0)), 2);
	shm_qp_at(e->f->region, 10)->flags |= SHM_QP_BLOCK_LOOPBACK;
	assert_int_equal(testing_copies(e->f, flow_from(e, 0), 10), 0);
	assert_int_equal(testing_copies(e->f, flow_from(e, 0), 20), 1);
	assert_int_equal(testing_copies(e->f, flow_from(e, 1), 10), 1); /* not loopback */
}

CASE_WITH(blocking_can_cover_the_whole_host, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow;

	e->f->settings.block_loopback_host = 1;
	testing_qp(e->f, 20, e->f->hca_port[0]);
	shm_qp_at(e->f->region, 10)->flags |= SHM_QP_BLOCK_LOOPBACK;
	flow = flow_from(e, 0);
	attach(e, 0);
	attach(e, 1);
	fabric_attach_add(e->f, 0, 20, &e->mgid, MLID);
	assert_int_equal(testing_receivers(e->f, flow), 1);
	assert_int_equal(testing_copies(e->f, flow, 11), 1);
}

CASE_WITH(a_list_grows_and_shrinks_with_thousands_of_receivers, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = flow_from(e, 0);
	const uint32_t n = 3000, first = 1000;

	e->f->settings.max_mcast_qp_attach = n;
	for (uint32_t i = 0; i < n; i++) {
		testing_qp(e->f, first + i, e->f->hca_port[i % 4]);
		assert_int_equal(fabric_attach_add(e->f, i % 4, first + i, &e->mgid, MLID), 0);
		assert_int_equal(testing_receivers(e->f, flow), i + 1);
	}
	for (uint32_t i = 0; i < n; i += 97)
		assert_int_equal(testing_copies(e->f, flow, first + i), 1);
	for (uint32_t i = 0; i < n; i++)
		fabric_attach_remove(e->f, i % 4, first + i, &e->mgid, MLID);
	assert_int_equal(testing_receivers(e->f, flow), 0);
}

/* The queue pair ends. */
static void end_qp(struct env *e, uint32_t qpn)
{
	shm_qp_at(e->f->region, qpn)->qpn = 0;
	while (fabric_attach_count(e->f, qpn))
		fabric_attach_drop(e->f, qpn);
}

static void prune(struct env *e)
{
	uint32_t budget = UINT32_MAX;

	assert_true(fabric_flow_prune(e->f, &budget));
}

/* However many there are, each list is gone through once. */
CASE_WITH(thousands_of_receivers_end_at_the_cost_of_one_look_at_each_list, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow[4];
	const uint32_t n = 3000, first = 1000;
	uint64_t before;

	e->f->settings.max_mcast_qp_attach = n;
	for (unsigned h = 0; h < 4; h++)
		flow[h] = flow_from(e, h);
	for (uint32_t i = 0; i < n; i++) {
		testing_qp(e->f, first + i, e->f->hca_port[i % 4]);
		assert_int_equal(fabric_attach_add(e->f, i % 4, first + i, &e->mgid, MLID), 0);
	}
	before = e->f->flows->work;
	for (uint32_t i = 1; i < n; i++)
		end_qp(e, first + i);
	prune(e);
	assert_true(e->f->flows->work - before < 4 * n);
	for (unsigned h = 0; h < 4; h++) {
		assert_int_equal(testing_receivers(e->f, flow[h]), 1);
		assert_int_equal(testing_copies(e->f, flow[h], first), 1);
	}
	assert_null(TAILQ_FIRST(&e->f->flows->unpruned));
}

CASE_WITH(a_flow_that_ends_is_not_pruned, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = flow_from(e, 0), *other = flow_from(e, 2);

	attach(e, 1);
	end_qp(e, 11);
	fabric_flow_remove(e->f, flow);
	prune(e);
	assert_int_equal(testing_receivers(e->f, other), 0);
}

/* ---- groups of very many flows ---- */

#define CROWD (FABRIC_CHANGE_AT_ONCE + 1)

/* Works as the daemon does, in turns. Returns the cost of the dearest turn; *@turns: how many. */
static uint64_t follow_in_turns(struct env *e, unsigned *turns)
{
	uint64_t most = 0;
	bool done;

	*turns = 0;
	do {
		uint64_t before = e->f->flows->work;
		uint32_t budget = 100;

		done = fabric_flow_follow(e->f, &budget, 1);
		++*turns;
		most = e->f->flows->work - before > most ? e->f->flows->work - before : most;
	} while (!done);
	return most;
}

static void assert_follows_in_turns(struct env *e)
{
	unsigned turns;

	assert_true(fabric_changes_wait(e->f));
	assert_in_range(follow_in_turns(e, &turns), 1, 200);
	assert_true(turns >= CROWD / 200);
	assert_int_equal(e->f->flows->changes.done, e->f->flows->changes.added);
}

/* Flows of host 0 that share one path; or each has one of its own. */
static void make_crowd(struct env *e, struct fabric_flow **flow, bool share)
{
	if (!share)
		shm_qp_at(e->f->region, 10)->flags |= SHM_QP_BLOCK_LOOPBACK;
	for (unsigned i = 0; i < CROWD; i++)
		flow[i] = flow_from(e, 0);
}

static void assert_copies(struct env *e, struct fabric_flow **flow, uint32_t qpn, unsigned copies)
{
	for (unsigned i = 0; i < CROWD; i++)
		if (flow[i])
			assert_int_equal(testing_copies(e->f, flow[i], qpn), copies);
}

/* No turn is long, the request itself neither; and until its turn a flow is what it was. */
CASE_WITH(a_crowd_follows_in_slices, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow **flow = calloc(CROWD, sizeof(*flow));
	uint64_t before;

	for (unsigned share = 0; share < 2; share++) {
		make_crowd(e, flow, share);
		before = e->f->flows->work;
		assert_int_equal(attach(e, 3), 0);
		assert_int_equal(e->f->flows->work, before);
		assert_copies(e, flow, 13, 0);
		assert_follows_in_turns(e);
		assert_copies(e, flow, 13, 1);
		attach(e, 2);
		assert_follows_in_turns(e);
		before = e->f->flows->work;
		assert_int_equal(detach(e, 3), 0);
		assert_int_equal(e->f->flows->work, before);
		assert_copies(e, flow, 13, 1);
		assert_follows_in_turns(e);
		assert_copies(e, flow, 13, 0);
		assert_copies(e, flow, 12, 1);
		assert_int_equal(detach(e, 3), -EINVAL);
		end_qp(e, 12);
		assert_follows_in_turns(e);
		assert_copies(e, flow, 12, 0);
		testing_qp(e->f, 12, e->f->hca_port[2]);
		for (unsigned i = 0; i < CROWD; i++)
			fabric_flow_remove(e->f, flow[i]);
		assert_int_equal(e->f->flows->lists.in_use, 0);
	}
	free(flow);
}

/* Flows that are gone when it comes to them, as their process ends; and flows that begin. */
CASE_WITH(a_crowd_may_change_while_it_follows, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow **flow = calloc(CROWD, sizeof(*flow));
	unsigned seed = 5;

	for (unsigned share = 0; share < 2; share++) {
		make_crowd(e, flow, share);
		for (unsigned step = 0; step < 60; step++) {
			uint32_t budget = (uint32_t)rand_r(&seed) % 3000;

			step % 3 ? (void)attach(e, 1 + step % 2)
			         : (void)detach(e, 1 + step / 3 % 2);
			fabric_flow_follow(e->f, &budget, 1);
			for (unsigned n = 0; n < 500; n++) {
				unsigned i = (unsigned)rand_r(&seed) % CROWD;

				fabric_flow_remove(e->f, flow[i]);
				flow[i] = flow_from(e, 0);
			}
			if (step % 20 == 7)
				fabric_flow_lid_changed(e->f, MLID);
			if (step % 20 == 17) {
				testing_row(e->f, e->sw[0], MLID, 1, step % 40 == 17 ? 0 : 2, 4, 0);
				fabric_flow_edge_changed(e->f, &e->sw[0]->port[2], MLID,
				                         e->f->flows->compiled);
			}
		}
		testing_row(e->f, e->sw[0], MLID, 1, 2, 4, 0);
		fabric_flow_edge_changed(e->f, &e->sw[0]->port[2], MLID, e->f->flows->compiled);
		fabric_flow_follow_all(e->f);
		for (unsigned h = 1; h < 3; h++)
			assert_copies(e, flow, 10 + h, !!fabric_attach_find(e->f, h, &e->mgid));
		for (unsigned i = 0; i < CROWD; i++)
			fabric_flow_remove(e->f, flow[i]);
		assert_int_equal(e->f->flows->lists.in_use, 0);
	}
	free(flow);
}

/* A process may die while its request waits. */
CASE_WITH(who_ends_while_a_crowd_follows_is_left_out, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow **flow = calloc(CROWD, sizeof(*flow));
	uint32_t budget = 1000;

	make_crowd(e, flow, true);
	attach(e, 1);
	fabric_flow_follow(e->f, &budget, 1);
	end_qp(e, 11);
	attach(e, 2);
	fabric_flow_follow_all(e->f);
	assert_copies(e, flow, 11, 0);
	detach(e, 2);
	end_qp(e, 12);
	fabric_flow_follow_all(e->f);
	assert_copies(e, flow, 12, 0);
	attach(e, 3); /* and all flows, while it follows */
	for (unsigned i = 0; i < CROWD; i++)
		fabric_flow_remove(e->f, flow[i]);
	fabric_flow_follow_all(e->f);
	assert_int_equal(e->f->flows->changes.done, e->f->flows->changes.added);
	free(flow);
}

/* A packet that is sent to a crowd's group before its last receiver on an HCA has left did not come
 * in vain. */
CASE_WITH(a_crowd_is_counted_before_a_receiver_leaves, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow **flow = calloc(CROWD, sizeof(*flow));

	attach(e, 1);
	make_crowd(e, flow, true);
	for (unsigned i = 0; i < CROWD; i++)
		shm_flow_count_at(e->f->region, flow[i]->id)->packets = 1;
	detach(e, 1);
	fabric_flow_follow_all(e->f);
	shm_flow_count_at(e->f->region, flow[7]->id)->packets = 3;
	fabric_flow_collect(e->f);
	assert_int_equal(e->f->hca_port[1]->stats.mcast_unattached, 2);
	free(flow);
}

/* ---- what flows share ---- */

static uint64_t list_of(struct env *e, const struct fabric_flow *flow)
{
	return testing_record(e->f, flow)->list_off;
}

CASE_WITH(senders_behind_one_switch_share_a_list, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow[5];
	uint64_t before;

	for (unsigned h = 0; h < 4; h++) {
		attach(e, h);
		flow[h] = flow_from(e, h);
	}
	before = e->f->flows->lists.in_use;
	testing_qp(e->f, 20, e->f->hca_port[0]);
	flow[4] = testing_flow(e->f, e->f->hca_port[0], 20, MLID, &e->mgid);
	assert_int_equal(list_of(e, flow[0]), list_of(e, flow[1]));
	assert_int_equal(list_of(e, flow[0]), list_of(e, flow[4]));
	assert_int_equal(list_of(e, flow[2]), list_of(e, flow[3]));
	assert_int_not_equal(list_of(e, flow[0]), list_of(e, flow[2]));
	assert_int_equal(e->f->flows->lists.in_use, before);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(testing_receivers(e->f, flow[i]), 4);
	detach(e, 2);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(testing_receivers(e->f, flow[i]), 3);
	fabric_flow_remove(e->f, flow[0]);
	attach(e, 2);
	assert_int_equal(testing_receivers(e->f, flow[1]), 4);
}

CASE_WITH(a_qp_that_blocks_its_own_copies_has_a_list_of_its_own, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *other, *flow;

	for (unsigned h = 0; h < 4; h++)
		attach(e, h);
	shm_qp_at(e->f->region, 10)->flags |= SHM_QP_BLOCK_LOOPBACK;
	other = flow_from(e, 1);
	flow = flow_from(e, 0);
	assert_int_not_equal(list_of(e, flow), list_of(e, other));
	assert_int_equal(testing_receivers(e->f, flow), 3);
	assert_int_equal(testing_receivers(e->f, other), 4);
}

CASE_WITH(other_groups_and_partitions_share_nothing, setup, teardown)
{
	struct env *e = *state;
	struct ib_gid mgid = testing_mgid(2);
	struct fabric_flow *flow, *group, *partition;

	attach(e, 2);
	fabric_attach_add(e->f, 2, 12, &mgid, MLID);
	shm_qp_at(e->f->region, 11)->pkey = 0x8001;
	flow = flow_from(e, 0);
	group = testing_flow(e->f, e->f->hca_port[0], 10, MLID, &mgid);
	partition = flow_from(e, 1);
	assert_int_not_equal(list_of(e, flow), list_of(e, group));
	assert_int_not_equal(list_of(e, flow), list_of(e, partition));
	/* and if the P_Key becomes the same, they do */
	shm_qp_at(e->f->region, 11)->pkey = 0;
	fabric_flow_pkey_changed(e->f, partition);
	assert_int_equal(list_of(e, flow), list_of(e, partition));
	assert_int_equal(testing_receivers(e->f, partition), 1);
}

CASE_WITH(a_sender_whose_link_fails_reaches_nobody_and_the_others_still_do, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *cut, *other;

	attach(e, 2);
	cut = flow_from(e, 0);
	other = flow_from(e, 1);
	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[0], false), 0);
	assert_int_equal(testing_receivers(e->f, cut), 0);
	assert_int_equal(testing_receivers(e->f, other), 1);
	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[0], true), 0);
	testing_activate_all(e->f);
	fabric_flow_all_changed(e->f);
	assert_int_equal(testing_receivers(e->f, cut), 1);
}

static void count(struct env *e, const struct fabric_flow *flow, uint64_t packets)
{
	atomic_fetch_add(&shm_flow_count_at(e->f->region, flow->id)->packets, packets);
}

/* Each sender's packets are counted on its own link, and not on the link back to it. */
CASE_WITH(what_senders_share_is_counted_for_each, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow[2];

	for (unsigned h = 0; h < 4; h++)
		attach(e, h);
	for (unsigned h = 0; h < 2; h++)
		flow[h] = flow_from(e, h);
	count(e, flow[0], 3);
	count(e, flow[1], 5);
	fabric_flow_collect(e->f);
	assert_int_equal(e->f->hca_port[0]->stats.xmit_packets, 3);
	assert_int_equal(e->f->hca_port[1]->stats.xmit_packets, 5);
	assert_int_equal(e->f->hca_port[0]->stats.recv_packets, 5);
	assert_int_equal(e->f->hca_port[1]->stats.recv_packets, 3);
	assert_int_equal(e->f->hca_port[2]->stats.recv_packets, 8);
	assert_int_equal(e->sw[0]->port[4].stats.xmit_packets, 8);
	/* they were sent over the link that has failed since */
	count(e, flow[0], 2);
	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[0], false), 0);
	fabric_flow_collect(e->f);
	assert_int_equal(e->f->hca_port[0]->stats.xmit_packets, 5);
	assert_int_equal(e->f->hca_port[2]->stats.recv_packets, 10);
}

CASE_WITH(lists_come_back_when_flows_end, setup, teardown)
{
	struct env *e = *state;
	uint64_t before = e->f->flows->lists.in_use;

	for (unsigned h = 0; h < 4; h++)
		attach(e, h);
	for (int i = 0; i < 1000; i++) {
		struct fabric_flow *flow = flow_from(e, i % 4);

		assert_int_equal(testing_receivers(e->f, flow), 4);
		fabric_flow_remove(e->f, flow);
	}
	assert_int_equal(e->f->flows->lists.in_use, before);
	assert_int_equal(e->f->flows->ids.used, 0);
}

/* Allocates all that is free, as @n extents at @off. */
static void exhaust(struct shm_extents *lists, uint64_t off[64], unsigned *n)
{
	*n = 0;
	for (uint64_t bytes = 1ull << 40; bytes >= lists->unit; bytes /= 2)
		while (*n < 64 && (off[*n] = shm_extent_get(lists, bytes)))
			++*n;
}

CASE_WITH(without_room_for_a_list_nobody_is_reached, setup, teardown)
{
	struct env *e = *state;
	struct shm_extents *lists = &e->f->flows->lists;
	struct fabric_flow *flow;
	uint64_t off[64];
	unsigned n;

	attach(e, 1);
	exhaust(lists, off, &n);
	flow = flow_from(e, 0);
	assert_int_equal(testing_receivers(e->f, flow), 0);
	attach(e, 2);
	assert_int_equal(testing_receivers(e->f, flow), 0);
	detach(e, 2);
	while (n)
		shm_extent_put(lists, off[--n]);
	attach(e, 3); /* there is room again */
	assert_int_equal(testing_receivers(e->f, flow), 2);
}

CASE_WITH(without_a_free_number_a_flow_is_refused, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow_key key = { .qpn = 10, .dlid = MLID, .is_global = true };
	struct fabric_flow *flow;

	key.dgid = e->mgid;
	e->f->flows->ids.limit = 1;
	assert_int_equal(fabric_flow_add(e->f, e->f->hca_port[0], &key, &flow), 0);
	assert_int_equal(fabric_flow_add(e->f, e->f->hca_port[0], &key, &flow), -ENOSPC);
	assert_int_equal(e->f->flows->by_gid.n, 1);
	assert_int_equal(e->f->flows->by_lid.n, 1);
}

CASE_WITH(a_removed_flow_reaches_nobody_and_is_not_compiled_again, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = flow_from(e, 0);
	uint32_t id = flow->id, seq = testing_record(e->f, flow)->seq;

	attach(e, 1);
	fabric_flow_remove(e->f, flow);
	attach(e, 2);
	assert_int_equal(shm_flow_at(e->f->region, id)->count, 0);
	assert_true(shm_flow_at(e->f->region, id)->seq != seq);
}

/* ---- unicast ---- */

CASE_WITH(a_unicast_flow_names_its_port, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = testing_flow(e->f, e->f->hca_port[0], 10, 4, NULL);

	assert_int_equal(testing_record(e->f, flow)->count, 1);
	assert_int_equal(testing_record(e->f, flow)->dest_port, 3);
	assert_int_equal(testing_record(e->f, flow)->mtu, 4096);
}

CASE_WITH(a_unicast_flow_with_a_grh_must_name_the_ports_gid, setup, teardown)
{
	struct env *e = *state;
	const struct ib_gid *gid = &shm_port_at(e->f->region, 3)->gid[0];
	const struct ib_gid *wrong = &shm_port_at(e->f->region, 2)->gid[0];

	assert_int_equal(
	        testing_record(e->f, testing_flow(e->f, e->f->hca_port[0], 10, 4, gid))->count, 1);
	assert_int_equal(
	        testing_record(e->f, testing_flow(e->f, e->f->hca_port[0], 10, 4, wrong))->count,
	        0);
}

CASE_WITH(a_multicast_gid_on_a_unicast_lid_reaches_no_attached_qp, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = testing_flow(e->f, e->f->hca_port[0], 10, 4, &e->mgid);

	attach(e, 3);
	assert_int_equal(testing_record(e->f, flow)->count, 0);
	detach(e, 3);
	assert_int_equal(testing_record(e->f, flow)->count, 0);
}

CASE_WITH(unicast_without_a_route_reaches_nobody, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = testing_flow(e->f, e->f->hca_port[0], 10, 99, NULL);

	assert_int_equal(testing_record(e->f, flow)->count, 0);
	fabric_lft_set(e->sw[0], 99, 2);
	e->f->hca_port[1]->lid = 99;
	fabric_flow_lid_changed(e->f, 99);
	assert_int_equal(testing_record(e->f, flow)->count, 1);
	assert_int_equal(testing_record(e->f, flow)->dest_port, 1);
}

CASE_WITH(what_is_for_a_lid_above_the_top_is_discarded, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *to2 = testing_flow(e->f, e->f->hca_port[0], 10, 2, NULL);
	struct fabric_flow *to3 = testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);
	uint32_t slice = 1;

	fabric_flow_set_lft_top(e->f, e->sw[0], 2);
	fabric_flow_set_lft_top(e->f, e->sw[1], 2); /* an entry that it would not come to */
	fabric_flow_follow_all(e->f);
	assert_int_equal(testing_receivers(e->f, to2), 1);
	assert_int_equal(testing_receivers(e->f, to3), 0);
	/* the table is longer now, and has no more entries that count */
	fabric_lft_set(e->sw[0], 200, 1);
	assert_int_equal(fabric_lft_get(e->sw[0], 200), 1);
	assert_int_equal(fabric_lft_out(e->sw[0], 200), FABRIC_LFT_NONE);
	assert_int_equal(fabric_lft_out(e->sw[0], 3), FABRIC_LFT_NONE);
	for (unsigned s = 0; s < 2; s++)
		fabric_flow_set_lft_top(e->f, e->sw[s], IB_LID_MCAST_FIRST - 1);
	assert_false(fabric_flow_follow(e->f, &slice, 1));
	fabric_flow_follow_all(e->f);
	assert_int_equal(testing_receivers(e->f, to3), 1);
	assert_int_equal(fabric_lft_out(e->sw[0], 200), 1);
}

CASE_WITH(the_mtu_of_the_path_is_in_the_record, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *near = testing_flow(e->f, e->f->hca_port[0], 10, 2, NULL);
	struct fabric_flow *far = testing_flow(e->f, e->f->hca_port[0], 10, 3, NULL);

	e->sw[0]->port[4].mtu = IBV_MTU_1024;
	fabric_flow_all_changed(e->f);
	assert_int_equal(testing_record(e->f, near)->mtu, 4096);
	assert_int_equal(testing_record(e->f, far)->mtu, 1024);
}

/* ---- lanes ---- */

/* As a subnet manager does it: one entry of a table. */
static void map_lanes(struct env *e, struct fabric_port *out, unsigned in, unsigned sl, uint8_t vl)
{
	struct wire_sl_to_vl map;

	fabric_lanes_map_read(out, in, &map);
	map.vl[sl] = vl;
	assert_int_equal(fabric_lanes_map_write(out, in, &map), 0);
	fabric_flow_lanes_changed(e->f, out);
	fabric_flow_follow_all(e->f);
}

CASE_WITH(a_packet_without_a_lane_is_dropped, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *one = testing_flow_sl(e->f, e->f->hca_port[0], 10, 3, 1);
	struct fabric_flow *two = testing_flow_sl(e->f, e->f->hca_port[0], 10, 3, 2);

	assert_int_equal(testing_receivers(e->f, one), 1);
	map_lanes(e, &e->sw[0]->port[4], 1, 1, FABRIC_LANE_NONE);
	assert_int_equal(testing_receivers(e->f, one), 0);
	assert_int_equal(testing_receivers(e->f, two), 1);
	map_lanes(e, &e->sw[0]->port[4], 1, 1, 0);
	assert_int_equal(testing_receivers(e->f, one), 1);
	/* nor by a lane that the port does not use; an HCA's own port, too */
	map_lanes(e, &e->sw[1]->port[1], 4, 2, 2);
	e->sw[1]->port[1].link.operational_vls = VL_CAP_VL0_1;
	fabric_flow_lanes_changed(e->f, &e->sw[1]->port[1]);
	fabric_flow_follow_all(e->f);
	assert_int_equal(testing_receivers(e->f, two), 0);
	map_lanes(e, &e->sw[1]->port[1], 4, 2, 1);
	assert_int_equal(testing_receivers(e->f, two), 1);
	map_lanes(e, e->f->hca_port[0], 0, 2, FABRIC_LANE_NONE);
	assert_int_equal(testing_receivers(e->f, two), 0);
	map_lanes(e, e->f->hca_port[0], 0, 2, 7);
	assert_int_equal(testing_receivers(e->f, two), 1);
}

/* Senders on one switch share a path to a group; not if their ports have different lanes. */
CASE_WITH(a_group_is_reached_by_the_lanes_of_each_sender, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *a, *b;

	for (unsigned h = 0; h < 4; h++)
		attach(e, h);
	a = flow_from(e, 0);
	b = flow_from(e, 1);
	assert_ptr_equal(a->path, b->path);
	map_lanes(e, &e->sw[0]->port[4], 2, 0, FABRIC_LANE_NONE);
	assert_int_equal(testing_receivers(e->f, a), 4);
	assert_int_equal(testing_receivers(e->f, b), 2);
	/* also while they join and leave */
	detach(e, 3);
	assert_int_equal(testing_receivers(e->f, a), 3);
	assert_int_equal(testing_receivers(e->f, b), 2);
	map_lanes(e, e->f->hca_port[1], 0, 0, FABRIC_LANE_NONE);
	assert_int_equal(testing_receivers(e->f, b), 0);
	assert_int_equal(testing_receivers(e->f, a), 3);
	map_lanes(e, e->f->hca_port[1], 0, 0, 3);
	assert_int_equal(testing_receivers(e->f, b), 2);
}

/* Which lane each link of the path has, as one number. */
static uint64_t lanes_of(const struct fabric_flow *flow)
{
	const struct fabric_mcast_path *s = flow->path;
	uint64_t sum = s->ingress ? (uint64_t)flow->vl << 60 : 0;

	for (uint32_t i = 0; i < s->n_hops; i++) {
		const struct fabric_port *out = s->hop[i].out;
		unsigned node = out->node->type == FABRIC_SWITCH ? 1 + out->node->index : 0;

		sum += (uint64_t)(s->hop[i].vl + 1) << (4 * (5 * node + out->num));
	}
	return sum;
}

/* A table of other ports, or of another SL, costs a flow nothing; its own one costs its sender
 * nothing. */
CASE_WITH(only_what_crosses_the_link_follows_its_lanes, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *far = testing_flow_sl(e->f, e->f->hca_port[0], 10, 3, 1);
	struct fabric_flow *near = testing_flow_sl(e->f, e->f->hca_port[0], 10, 2, 1);
	uint32_t far_seq = testing_record(e->f, far)->seq;
	uint32_t near_seq = testing_record(e->f, near)->seq;
	uint64_t near_lanes = lanes_of(near), far_lanes = lanes_of(far);

	map_lanes(e, &e->sw[0]->port[4], 2, 1, 5);
	map_lanes(e, &e->sw[0]->port[4], 1, 2, 5);
	assert_int_equal(lanes_of(far), far_lanes);
	map_lanes(e, &e->sw[0]->port[4], 1, 1, 5);
	assert_true(lanes_of(far) != far_lanes);
	assert_int_equal(lanes_of(near), near_lanes);
	assert_int_equal(testing_record(e->f, far)->seq, far_seq);
	assert_int_equal(testing_record(e->f, near)->seq, near_seq);
}

/* Packets that were sent before a table was written count by the old lane, later packets by the new
 * one. */
CASE_WITH(lanes_count_from_the_table_on, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = testing_flow_sl(e->f, e->f->hca_port[0], 10, 3, 1);
	struct fabric_port *far = &e->sw[1]->port[4];
	struct shm_flow_count *c = shm_flow_count_at(e->f->region, flow->id);

	c->packets += 3;
	c->bytes += 300;
	map_lanes(e, &e->sw[0]->port[4], 1, 1, 6);
	c->packets += 4;
	c->bytes += 400;
	fabric_flow_collect(e->f);
	assert_int_equal(far->lanes->counts.recv_ud_packets[1], 3);
	assert_int_equal(far->lanes->counts.recv_ud_packets[6], 4);
}

/* An HCA's port that joined after its switch's path was compiled: its lane is known all the same.
 */
CASE_WITH(a_new_edge_follows_its_lanes, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow;

	for (unsigned h = 0; h < 4; h++)
		attach(e, h);
	testing_row(e->f, e->sw[1], MLID, 1, 4, 0);
	flow = flow_from(e, 0);
	assert_int_equal(testing_receivers(e->f, flow), 3);
	testing_row(e->f, e->sw[1], MLID, 1, 2, 4, 0);
	fabric_flow_edge_changed(e->f, &e->sw[1]->port[2], MLID, e->f->flows->compiled);
	assert_int_equal(testing_receivers(e->f, flow), 4);
	map_lanes(e, &e->sw[1]->port[2], 4, 0, FABRIC_LANE_NONE);
	assert_int_equal(testing_receivers(e->f, flow), 3);
	map_lanes(e, &e->sw[1]->port[2], 4, 0, 2);
	assert_int_equal(testing_receivers(e->f, flow), 4);
}

#define N_LANE_FLOWS 24

/* With any tables, and any joins: flows are as if all were compiled anew. */
CASE_WITH(lanes_are_those_of_a_fresh_walk, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow[N_LANE_FLOWS];
	uint32_t reached[N_LANE_FLOWS], losses[N_LANE_FLOWS];
	uint64_t lanes[N_LANE_FLOWS];
	unsigned seed = 1;

	for (unsigned h = 0; h < 4; h++)
		attach(e, h);
	for (unsigned i = 0; i < N_LANE_FLOWS; i++) {
		struct fabric_port *from = e->f->hca_port[i % 4];

		flow[i] = i % 3 ? testing_flow_sl(e->f, from, 10 + i % 4, (uint16_t)(1 + i / 4 % 4),
		                                  i % 2)
		                : flow_from(e, i % 4);
	}
	for (unsigned step = 0; step < 2000; step++) {
		unsigned r = (unsigned)rand_r(&seed);
		struct fabric_port *out = &e->sw[r % 2]->port[(unsigned[]){ 1, 2, 4 }[r / 2 % 3]];
		unsigned in = (unsigned[]){ 1, 2, 4 }[r / 6 % 3], sl = r / 18 % 2;

		if (r / 36 % 4 == 0) {
			out = e->f->hca_port[r / 144 % 4];
			in = 0;
		}
		map_lanes(e, out, in, sl,
		          r / 1024 % 4 ? (uint8_t)(r / 4096 % 8) : FABRIC_LANE_NONE);
		if (r / 65536 % 8 == 0) {
			out->link.operational_vls = (uint8_t)(1 + r / 524288 % 4);
			fabric_flow_lanes_changed(e->f, out);
			fabric_flow_follow_all(e->f);
		}
		for (unsigned i = 0; i < N_LANE_FLOWS; i++) {
			reached[i] = testing_receivers(e->f, flow[i]);
			losses[i] = flow[i]->path->n_losses;
			lanes[i] = lanes_of(flow[i]);
		}
		fabric_flow_all_changed(e->f);
		for (unsigned i = 0; i < N_LANE_FLOWS; i++) {
			assert_int_equal(testing_receivers(e->f, flow[i]), reached[i]);
			assert_int_equal(flow[i]->path->n_losses, losses[i]);
			assert_int_equal(lanes_of(flow[i]), lanes[i]);
		}
	}
}

/* ---- counters ---- */

static void count_sent(struct env *e, const struct fabric_flow *flow, uint64_t packets,
                       uint64_t bytes)
{
	shm_flow_count_at(e->f->region, flow->id)->packets += packets;
	shm_flow_count_at(e->f->region, flow->id)->bytes += bytes;
}

static void assert_stats(const struct fabric_port *p, uint64_t xmit, uint64_t recv)
{
	assert_int_equal(p->stats.xmit_packets, xmit);
	assert_int_equal(p->stats.recv_packets, recv);
	assert_int_equal(p->stats.xmit_bytes, xmit * 100);
	assert_int_equal(p->stats.recv_bytes, recv * 100);
}

CASE_WITH(what_was_sent_counts_at_every_port_along_the_tree, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = flow_from(e, 0);

	count_sent(e, flow, 7, 700);
	fabric_flow_collect(e->f);
	fabric_flow_collect(e->f); /* counts nothing twice */
	assert_stats(e->f->hca_port[0], 7, 0);
	assert_stats(&e->sw[0]->port[1], 0, 7);
	assert_stats(&e->sw[0]->port[2], 7, 0);
	assert_stats(&e->sw[0]->port[4], 7, 0);
	assert_stats(&e->sw[1]->port[4], 0, 7);
	assert_stats(&e->sw[1]->port[1], 7, 0);
	for (unsigned h = 1; h < 4; h++)
		assert_stats(e->f->hca_port[h], 0, 7);
}

CASE_WITH(what_was_sent_to_a_group_is_the_sum_of_its_senders, setup, teardown)
{
	struct env *e = *state;
	const struct ib_gid other = testing_mgid(2);
	struct fabric_flow_sent sent;
	struct fabric_flow *third;

	count_sent(e, flow_from(e, 0), 7, 700);
	count_sent(e, flow_from(e, 1), 5, 600);
	third = flow_from(e, 3);
	count_sent(e, third, 1, 10);
	sent = fabric_flow_group_sent(e->f, &e->mgid);
	assert_int_equal(sent.packets, 0); /* not collected yet */
	fabric_flow_collect(e->f);
	sent = fabric_flow_group_sent(e->f, &e->mgid);
	assert_int_equal(sent.packets, 13);
	assert_int_equal(sent.bytes, 1310);
	assert_int_equal(fabric_flow_group_sent(e->f, &other).packets, 0);
	fabric_flow_remove(e->f, third); /* its path goes with it */
	sent = fabric_flow_group_sent(e->f, &e->mgid);
	assert_int_equal(sent.packets, 12);
	assert_int_equal(sent.bytes, 1300);
}

static uint64_t in_vain(const struct env *e, unsigned host)
{
	return e->f->hca_port[host]->stats.mcast_unattached;
}

/* A later collection asks which queue pairs are attached then. */
CASE_WITH(what_came_while_a_qp_was_attached_did_not_come_in_vain, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow;

	attach(e, 1);
	attach(e, 2);
	flow = flow_from(e, 0);
	count_sent(e, flow, 7, 700);
	detach(e, 1);
	count_sent(e, flow, 5, 500);
	fabric_attach_drop(e->f, 12);
	count_sent(e, flow, 3, 300);
	fabric_flow_collect(e->f);
	assert_int_equal(in_vain(e, 1), 5 + 3);
	assert_int_equal(in_vain(e, 2), 3);
	assert_int_equal(in_vain(e, 3), 7 + 5 + 3);
	assert_stats(e->f->hca_port[1], 0, 15);
}

/* A crowd that goes at once looks at its senders once in a turn, not each time. */
CASE_WITH(many_that_go_at_once_are_counted_once, setup, teardown)
{
	struct env *e = *state;
	uint64_t before, first, second;

	attach(e, 1);
	attach(e, 2);
	attach(e, 3);
	for (unsigned i = 0; i < 100 * FABRIC_FLOW_LOOKS; i++)
		flow_from(e, 0);
	before = e->f->flows->work;
	fabric_attach_drop(e->f, 11);
	first = e->f->flows->work - before;
	fabric_attach_drop(e->f, 12);
	second = e->f->flows->work - before - first;
	assert_true(first >= 100);
	assert_true(second < 10);
	fabric_collect_turn(e->f);
	before = e->f->flows->work;
	fabric_attach_drop(e->f, 13);
	assert_true(e->f->flows->work - before >= 100);
}

/* As the tables lead to the LID of the requester. */
CASE_WITH(what_comes_back_counts_along_the_way_back, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = testing_flow(e->f, e->f->hca_port[0], 10, 4, NULL);
	struct shm_flow_count *c = shm_flow_count_at(e->f->region, flow->id);

	shm_qp_at(e->f->region, SHM_QP_INDEX(10))->type = IBV_QPT_RC; /* others have no responses */
	count_sent(e, flow, 2, 200);
	c->back_packets = 7;
	c->back_bytes = 700;
	fabric_flow_all_changed(e->f); /* a walk over all paths */
	fabric_flow_collect(e->f);
	fabric_flow_collect(e->f); /* counts nothing twice */
	assert_stats(e->f->hca_port[0], 2, 7);
	assert_stats(&e->sw[0]->port[1], 7, 2);
	assert_stats(&e->sw[0]->port[4], 2, 7);
	assert_stats(e->f->hca_port[3], 7, 2);
	assert_stats(e->f->hca_port[1], 0, 0);
	fabric_flow_all_changed(e->f);
	c->back_packets = 8;
	c->back_bytes = 800;
	fabric_flow_remove(e->f, flow); /* is counted at its end */
	assert_stats(e->f->hca_port[3], 8, 2);
	assert_stats(e->f->hca_port[0], 2, 8);
}

CASE_WITH(what_comes_back_from_nowhere_is_not_counted, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *to_group = flow_from(e, 0);
	struct fabric_flow *nowhere = testing_flow(e->f, e->f->hca_port[0], 10, 99, NULL);

	shm_flow_count_at(e->f->region, to_group->id)->back_packets = 7;
	shm_flow_count_at(e->f->region, nowhere->id)->back_packets = 7;
	fabric_flow_collect(e->f);
	for (unsigned h = 0; h < 4; h++)
		assert_stats(e->f->hca_port[h], 0, 0);
	fabric_flow_remove(e->f, nowhere);
}

CASE_WITH(a_changed_path_keeps_what_the_old_one_carried, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = flow_from(e, 0);

	count_sent(e, flow, 3, 300);
	testing_row(e->f, e->sw[0], MLID, 2, 0); /* the other switch is cut off */
	fabric_flow_lid_changed(e->f, MLID);
	count_sent(e, flow, 4, 400);
	fabric_flow_collect(e->f);
	assert_stats(e->f->hca_port[1], 0, 7);
	assert_stats(e->f->hca_port[2], 0, 3);
}

CASE_WITH(a_flow_that_ends_leaves_its_counts, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow = testing_flow(e->f, e->f->hca_port[0], 10, 4, NULL);

	count_sent(e, flow, 5, 500);
	fabric_flow_remove(e->f, flow);
	fabric_flow_collect(e->f);
	assert_stats(e->f->hca_port[3], 0, 5);
}

CASE_WITH(a_new_flow_does_not_count_what_its_predecessor_sent, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow;

	e->f->flows->ids.limit = 1;
	flow = flow_from(e, 0);
	count_sent(e, flow, 5, 500);
	fabric_flow_remove(e->f, flow);
	flow = testing_flow(e->f, e->f->hca_port[0], 10, 2, NULL);
	fabric_flow_collect(e->f);
	assert_stats(e->f->hca_port[1], 0, 5);
	count_sent(e, flow, 1, 100);
	fabric_flow_collect(e->f);
	assert_stats(e->f->hca_port[1], 0, 6);
}

CASE_WITH(random_sending_adds_up_on_every_link, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow[4];
	uint64_t sent[4] = { 0 }, all = 0;
	unsigned seed = 5;

	for (unsigned h = 0; h < 4; h++)
		flow[h] = flow_from(e, h);
	for (int step = 0; step < 500; step++) {
		unsigned h = rand_r(&seed) % 4, n = rand_r(&seed) % 10;

		count_sent(e, flow[h], n, n * 100);
		sent[h] += n;
		all += n;
		if (rand_r(&seed) % 8 == 0)
			fabric_flow_all_changed(e->f);
		if (rand_r(&seed) % 8 == 0)
			fabric_flow_collect(e->f);
	}
	fabric_flow_collect(e->f);
	for (unsigned h = 0; h < 4; h++) /* the own copy crosses no link */
		assert_stats(e->f->hca_port[h], sent[h], all - sent[h]);
	assert_stats(&e->sw[0]->port[4], sent[0] + sent[1], sent[2] + sent[3]);
}

/* ---- random operations ---- */

#define N_QPS    12
#define N_GROUPS 3
#define N_MLIDS  2

/* The receivers that a list must hold, computed without the code under test. */
struct model {
	bool attached[N_QPS][N_GROUPS][N_MLIDS];
	bool member[N_MLIDS][4]; /* the host's port is in the table */
	bool has_port[N_QPS];
};

static unsigned host_of(uint32_t i)
{
	return i % 4;
}

static unsigned want_copies(const struct model *m, uint32_t i, unsigned group, unsigned mlid)
{
	bool attached = false;

	for (unsigned k = 0; k < N_MLIDS; k++)
		attached |= m->attached[i][group][k];
	return attached && m->has_port[i] && m->member[mlid][host_of(i)];
}

static void write_members(struct env *e, const struct model *m, unsigned mlid)
{
	for (unsigned s = 0; s < 2; s++) {
		struct fabric_mft_row row = { { 1 << 4 } };

		for (unsigned i = 0; i < 2; i++)
			if (m->member[mlid][2 * s + i])
				fabric_row_add(&row, i + 1);
		assert_int_equal(fabric_mft_set(e->f, e->sw[s], (uint16_t)(MLID + mlid), &row), 0);
	}
	fabric_flow_lid_changed(e->f, (uint16_t)(MLID + mlid));
}

static void random_change(struct env *e, struct model *m, unsigned *seed)
{
	uint32_t i = rand_r(seed) % N_QPS, qpn = 100 + i;
	unsigned group = rand_r(seed) % N_GROUPS, mlid = rand_r(seed) % N_MLIDS;
	struct ib_gid mgid = testing_mgid(group);
	bool *attached = &m->attached[i][group][mlid];

	switch (rand_r(seed) % 5) {
	case 0:
	case 1:
		assert_int_equal(
		        fabric_attach_add(e->f, host_of(i), qpn, &mgid, (uint16_t)(MLID + mlid)),
		        0);
		*attached = true;
		return;
	case 2:
		assert_int_equal(
		        fabric_attach_remove(e->f, host_of(i), qpn, &mgid, (uint16_t)(MLID + mlid)),
		        *attached ? 0 : -EINVAL);
		*attached = false;
		return;
	case 3:
		m->member[mlid][host_of(i)] ^= true;
		write_members(e, m, mlid);
		return;
	default:
		if (rand_r(seed) % 4) {
			m->has_port[i] ^= true;
			shm_qp_at(e->f->region, qpn)->port_num = m->has_port[i];
			fabric_attach_qp_moved(e->f, qpn);
			return;
		}
		memset(m->attached[i], 0, sizeof(m->attached[i]));
		end_qp(e, qpn);
		prune(e);
		shm_qp_at(e->f->region, qpn)->qpn = qpn; /* another one of this number begins */
	}
}

CASE_WITH(random_changes_keep_every_list_right, setup, teardown)
{
	struct env *e = *state;
	struct fabric_flow *flow[4][N_GROUPS][N_MLIDS];
	struct model m = { 0 };
	unsigned seed = 11;

	for (uint32_t i = 0; i < N_QPS; i++) {
		testing_qp(e->f, 100 + i, e->f->hca_port[host_of(i)]);
		m.has_port[i] = true;
	}
	for (unsigned k = 0; k < N_MLIDS; k++)
		write_members(e, &m, k);
	for (unsigned h = 0; h < 4; h++)
		for (unsigned g = 0; g < N_GROUPS; g++)
			for (unsigned k = 0; k < N_MLIDS; k++) {
				struct ib_gid mgid = testing_mgid(g);

				flow[h][g][k] = testing_flow(e->f, e->f->hca_port[h], 100 + h,
				                             (uint16_t)(MLID + k), &mgid);
			}
	for (int step = 0; step < 3000; step++) {
		random_change(e, &m, &seed);
		for (unsigned x = 0; x < 4 * N_GROUPS * N_MLIDS; x++) {
			unsigned h = x % 4, g = x / 4 % N_GROUPS, k = x / 4 / N_GROUPS;
			unsigned all = 0;

			for (uint32_t i = 0; i < N_QPS; i++) {
				unsigned want = want_copies(&m, i, g, k);

				assert_int_equal(testing_copies(e->f, flow[h][g][k], 100 + i),
				                 want);
				all += want;
			}
			assert_int_equal(testing_receivers(e->f, flow[h][g][k]), all);
		}
	}
}
