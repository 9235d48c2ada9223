/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DFSSSP routing: paths are shortest, and free of deadlock with the lanes that they have, on random
 * topologies with failures, tori, rings, fat trees; links are used more evenly than with minhop.
 * Deadlock is looked for in the graph of links that wait for each other, of each lane.
 */
#include <harness.h>

#include "fabric/model/lanes.h"
#include "subnet/testing_routes.h"

/* ---- the graphs ---- */

/* Of one lane. */
struct graph {
	uint8_t *edge;          /* CHANNELS x ports: from a channel to the next switch's out port */
	uint8_t seen[CHANNELS]; /* 1: being looked at, 2: done */
};

static unsigned channel(const struct fabric_port *out)
{
	return out->node->index * 256 + out->num;
}

/* Adds the path of packets from @from to a LID. */
static void add_path(struct graph *g, struct fabric_node *from, uint16_t lid)
{
	struct fabric_node *at = from, *next;

	for (unsigned n = 0; (next = next_switch(at, lid)) && next_switch(next, lid); n++) {
		assert_in_range(n, 0, MAX_SWITCH);
		g->edge[channel(out_port(at, lid)) * 256 + out_port(next, lid)->num] = 1;
		at = next;
	}
}

static bool has_loop_from(struct graph *g, const struct fabric_port *out)
{
	unsigned c = channel(out);

	if (g->seen[c])
		return g->seen[c] == 1;
	g->seen[c] = 1;
	for (unsigned k = 1; k <= out->peer->node->n_ports; k++)
		if (g->edge[c * 256 + k] && has_loop_from(g, &out->peer->node->port[k]))
			return true;
	g->seen[c] = 2;
	return false;
}

/* The SL of packets from a host to a LID; 0 if any will do. It is the lane at each port. */
static unsigned sl_of(const struct env *e, const struct fabric_port *from, uint16_t lid)
{
	int sl = sm_path_sl(e->sm, from, lid);

	assert_in_range(sl + 1, 0, FABRIC_LANES);
	return sl < 0 ? 0 : (unsigned)sl;
}

/* The paths that hosts use to hosts and switches, and switches to hosts, with SL @sl; or of all. */
static bool has_credit_loop(const struct env *e, unsigned sl, bool all)
{
	struct graph *g = calloc(1, sizeof(*g));
	bool found = false;

	assert_non_null(g);
	g->edge = calloc(CHANNELS, 256);
	assert_non_null(g->edge);
	for (unsigned i = 0; i < e->f->n_hca_ports; i++) {
		const struct fabric_port *hca = e->f->hca_port[i];

		for (unsigned k = 0; k < e->f->n_hca_ports; k++)
			for (unsigned n = 0; n < 1u << hca->lmc; n++) {
				uint16_t lid = (uint16_t)(e->f->hca_port[k]->lid + n);

				if (all || sl_of(e, hca, lid) == sl)
					add_path(g, hca->peer->node, lid);
			}
		for (unsigned s = 0; s < e->f->n_switches; s++) {
			struct fabric_port *own = &sm_switch(e->sm, s)->port[0];

			if (all || sl_of(e, hca, own->lid) == sl)
				add_path(g, hca->peer->node, own->lid);
			if (all || sl_of(e, own, hca->lid) == sl)
				add_path(g, own->node, hca->lid);
		}
	}
	for (unsigned s = 0; s < e->f->n_switches && !found; s++) {
		const struct fabric_node *sw = sm_switch(e->sm, s);

		for (unsigned k = 1; k <= sw->n_ports && !found; k++)
			found = sw->port[k].peer && has_loop_from(g, &sw->port[k]);
	}
	free(g->edge);
	free(g);
	return found;
}

static unsigned lanes_used(const struct env *e)
{
	unsigned most = 0;

	for (unsigned i = 0; i < e->f->n_hca_ports; i++)
		for (unsigned k = 0; k < e->f->n_hca_ports; k++) {
			unsigned sl = sl_of(e, e->f->hca_port[i], e->f->hca_port[k]->lid);

			most = sl > most ? sl : most;
		}
	return most + 1;
}

static void assert_free_of_deadlock(const struct env *e)
{
	for (unsigned sl = 0; sl < FABRIC_LANES; sl++)
		assert_false(has_credit_loop(e, sl, false));
}

/* The most messages that cross a link between switches when each host sends to each other one. */
static unsigned most_load(const struct env *e)
{
	unsigned(*load)[256] = calloc(MAX_SWITCH, sizeof(*load)), most = 0;

	assert_non_null(load);
	for (unsigned i = 0; i < e->f->n_hca_ports; i++)
		for (unsigned k = 0; k < e->f->n_hca_ports; k++) {
			uint16_t lid = e->f->hca_port[k]->lid;
			struct fabric_node *at = e->f->hca_port[i]->peer->node, *next;

			for (; (next = next_switch(at, lid)); at = next) {
				unsigned *l = &load[at->index][out_port(at, lid)->num];

				most = ++*l > most ? *l : most;
			}
		}
	free(load);
	return most;
}

/* ---- tests ---- */

CASE(lanes_free_paths_of_deadlock_on_random_topologies_with_failures)
{
	unsigned lanes = 0;

	for (unsigned seed = 1; seed <= 60; seed++) {
		struct env *e = start_random(seed, "dfsssp");
		unsigned chance = seed;

		for (unsigned i = 0; i < 4; i++) {
			unsigned used = lanes_used(e);

			assert_shortest(e);
			assert_free_of_deadlock(e);
			lanes = used > lanes ? used : lanes;
			if (i % 2)
				fabric_switch_set(
				        e->f,
				        sm_switch(e->sm, next_random(&chance) % e->f->n_switches),
				        false);
			else
				fabric_link_set(e->f, nth_link(e, next_random(&chance)), false);
			assert_int_equal(sm_sweep(e->sm), 0);
		}
		stop(e);
	}
	assert_true(lanes > 1);
}

CASE(rings_need_two_lanes)
{
	for (unsigned n = 5; n <= 20; n++) {
		struct env *e = start_ring(n, "dfsssp");

		assert_shortest(e);
		assert_true(has_credit_loop(e, 0, true)); /* so the checks here can fail */
		assert_free_of_deadlock(e);
		assert_int_equal(lanes_used(e), 2);
		stop(e);
	}
}

/* The lanes that Debian's OpenSM 3.3.23 needs, and the most that a link carries then, with its
 * dfsssp. For the second and the third torus OpenSM needs nine lanes, and has minhop route them.
 * tests/system/opensm_dfsssp.sh measures one. */
CASE(tori_need_fewer_lanes_and_are_used_more_evenly_than_with_opensm)
{
	static const struct {
		unsigned x, y, z, opensm_lanes, opensm_most;
	} torus[] = { { 5, 5, 1, 5, 84 }, { 8, 8, 1, 8, 466 }, { 4, 4, 4, 8, 290 } };

	for (unsigned i = 0; EACH_ROW(i, torus); i++) {
		struct env *e = start_torus(torus[i].x, torus[i].y, torus[i].z, "dfsssp");

		assert_shortest(e);
		assert_free_of_deadlock(e);
		assert_in_range(lanes_used(e), 2, torus[i].opensm_lanes);
		assert_in_range(most_load(e), 1, torus[i].opensm_most);
		stop(e);
	}
}

CASE(fat_trees_need_one_lane_and_are_used_evenly)
{
	for (unsigned levels = 2; levels <= 3; levels++) {
		struct env *e = start_fat_tree(levels, 8, "dfsssp");

		assert_shortest(e);
		assert_false(has_credit_loop(e, 0, true));
		assert_int_equal(sm_path_sl(e->sm, e->f->hca_port[0], e->f->hca_port[9]->lid), -1);
		/* a link up of a leaf has a fourth of the hosts, of those there and those elsewhere
		 */
		assert_int_equal(most_load(e), e->f->n_hca_ports - 4);
		stop(e);
	}
}

/* Shortest paths around a ring need two lanes; for those that go up and then down any will do. */
CASE(where_lanes_are_too_few_paths_are_up_down)
{
	struct env *e = start_ring(8, "dfsssp");

	e->f->settings.routing_lanes = 1;
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_all_reached(e);
	assert_false(has_credit_loop(e, 0, true));
	assert_int_equal(sm_path_sl(e->sm, e->f->hca_port[0], e->f->hca_port[2]->lid), -1);
	e->f->settings.routing_lanes = 2;
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_shortest(e);
	assert_free_of_deadlock(e);
	assert_int_equal(lanes_used(e), 2);
	stop(e);
}

CASE(the_same_cables_make_the_same_tables)
{
	struct env *e = start_torus(4, 4, 1, "dfsssp");
	struct tables *t = remember(e);
	struct fabric_port *p = nth_link(e, 5);

	assert_int_equal(sm_sweep(e->sm), 0);
	assert_same_tables(e, t);
	assert_int_equal(fabric_link_set(e->f, p, false), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_shortest(e);
	assert_int_equal(fabric_link_set(e->f, p, true), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_same_tables(e, t);
	free(t);
	stop(e);
}

CASE(a_link_of_a_host_moves_no_other_path)
{
	struct env *e = start_torus(4, 4, 1, "dfsssp");
	struct fabric_port *hca = e->f->hca_port[5];
	struct tables *t = remember(e);
	unsigned lanes = lanes_used(e);

	assert_int_equal(fabric_link_set(e->f, hca, false), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(fabric_lft_get(hca->peer->node, hca->lid), FABRIC_LFT_NONE);
	assert_int_equal(fabric_link_set(e->f, nth_link(e, 3), false), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(fabric_link_set(e->f, nth_link(e, 3), true), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	for (unsigned s = 0; s < e->f->n_switches; s++)
		for (uint16_t lid = 1; lid < 1024; lid++)
			if (lid != hca->lid)
				assert_int_equal(fabric_lft_get(sm_switch(e->sm, s), lid),
				                 t->out[s][lid]);
	assert_int_equal(fabric_link_set(e->f, hca, true), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_same_tables(e, t);
	assert_int_equal(lanes_used(e), lanes);
	free(t);
	stop(e);
}

CASE(several_lids_of_a_port_have_lanes)
{
	struct net net;
	struct env *e;

	net_init(&net, 7, 2);
	for (unsigned i = 0; i < 7; i++)
		net_link(&net, i, (i + 1) % 7);
	e = start_lmc(&net.plan, "dfsssp", "2");
	assert_shortest(e);
	assert_free_of_deadlock(e);
	stop(e);
}

/* Another subnet manager has left its maps, and a port that uses one lane. */
CASE(ports_give_each_service_level_its_lane)
{
	const struct wire_sl_to_vl zero = { { 0 } };
	struct env *e = start_torus(4, 4, 1, "dfsssp");
	struct fabric_port *p = nth_link(e, 3), *q = nth_link(e, 9), *hca = e->f->hca_port[0];

	for (unsigned in = 0; in <= p->node->n_ports; in++)
		assert_int_equal(fabric_lanes_map_write(p, in, &zero), 0);
	assert_int_equal(fabric_lanes_map_write(hca, 0, &zero), 0);
	q->link.operational_vls = VL_CAP_VL0;
	e->f->foreign++; /* by SMPs */
	assert_int_equal(sm_sweep(e->sm), 0);
	for (unsigned sl = 0; sl < lanes_used(e); sl++) {
		assert_int_equal(fabric_lane_of(p, 1, (uint8_t)sl), sl);
		assert_int_equal(fabric_lane_of(q, 1, (uint8_t)sl), sl);
		assert_int_equal(fabric_lane_of(hca, 0, (uint8_t)sl), sl);
	}
	stop(e);
}
