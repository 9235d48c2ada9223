/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unicast routing on whole topologies: paths are shortest, evenly shared, and kept as long as
 * possible; up/down routing has no credit loops, shown by the graph of links that wait for each
 * other.
 */
#include <harness.h>

#include "fabric/agents/mads.h"
#include "subnet/sm_state.h"
#include "subnet/testing_routes.h"
#include "wire/sm_attr.h"

/* Of switch @s, the paths to hosts by ports to switches of these numbers differ by at most one. */
static void assert_even(const struct env *e, struct fabric_node *sw, const bool *port)
{
	unsigned load[256] = { 0 }, least = UINT32_MAX, most = 0;

	for (unsigned i = 0; i < e->f->n_hca_ports; i++)
		load[fabric_lft_get(sw, e->f->hca_port[i]->lid)]++;
	for (unsigned k = 1; k <= sw->n_ports; k++) {
		if (!port[k])
			continue;
		least = load[k] < least ? load[k] : least;
		most = load[k] > most ? load[k] : most;
	}
	assert_true(most > 0 && most - least <= 1);
}

/* ---- the graph of links that wait for each other ---- */

struct graph {
	uint8_t *
	        edge; /* bitmap of CHANNELS x ports: from a channel to the next switch's out port */
	uint8_t seen[CHANNELS]; /* 1: being looked at, 2: done */
};

static unsigned channel(const struct fabric_port *out)
{
	return out->node->index * 256 + out->num;
}

static void add_edges(struct env *e, struct graph *g, uint16_t lid)
{
	for (unsigned s = 0; s < e->f->n_switches; s++) {
		struct fabric_node *sw = sm_switch(e->sm, s), *next = next_switch(sw, lid);

		if (next && next_switch(next, lid))
			g->edge[channel(out_port(sw, lid)) * 256 + out_port(next, lid)->num] = 1;
	}
}

static bool has_loop_from(struct env *e, struct graph *g, struct fabric_port *out)
{
	unsigned c = channel(out);

	if (g->seen[c])
		return g->seen[c] == 1;
	g->seen[c] = 1;
	for (unsigned k = 1; k <= out->peer->node->n_ports; k++)
		if (g->edge[c * 256 + k] && has_loop_from(e, g, &out->peer->node->port[k]))
			return true;
	g->seen[c] = 2;
	return false;
}

static bool has_credit_loop(struct env *e)
{
	struct graph *g = calloc(1, sizeof(*g));
	bool found = false;

	assert_non_null(g);
	g->edge = calloc(CHANNELS, 256);
	assert_non_null(g->edge);
	for (unsigned i = 0; i < e->f->n_hca_ports; i++)
		add_edges(e, g, e->f->hca_port[i]->lid);
	for (unsigned s = 0; s < e->f->n_switches; s++)
		add_edges(e, g, sm_switch(e->sm, s)->port[0].lid);
	for (unsigned s = 0; s < e->f->n_switches && !found; s++) {
		struct fabric_node *sw = sm_switch(e->sm, s);

		for (unsigned k = 1; k <= sw->n_ports && !found; k++)
			found = sw->port[k].peer && has_loop_from(e, g, &sw->port[k]);
	}
	free(g->edge);
	free(g);
	return found;
}

/* ---- shortest paths, evenly shared ---- */

CASE(all_paths_are_shortest)
{
	struct env *e;

	for (unsigned seed = 1; seed <= 20; seed++) {
		e = start_random(seed, "minhop");
		assert_shortest(e);
		stop(e);
	}
	e = start_torus(4, 4, 3, "minhop");
	assert_shortest(e);
	stop(e);
}

CASE(parallel_links_carry_equal_shares)
{
	bool port[256] = { false };
	struct net net;
	struct env *e;

	net_init(&net, 2, 9);
	for (unsigned i = 0; i < 4; i++) {
		net_link(&net, 0, 1);
		port[10 + i] = true;
	}
	e = start(&net.plan, "minhop");
	assert_even(e, sm_switch(e->sm, 0), port);
	assert_even(e, sm_switch(e->sm, 1), port);
	stop(e);
}

/* More links than a word has bits, and more switches than are measured at a time. */
CASE(switches_with_many_links_share_them_as_well)
{
	bool port[256] = { false };
	struct net net;
	struct env *e;

	net_init(&net, 100, 3);
	for (unsigned h = 0; h < 4; h++)
		net.sw[net.n + h] = (unsigned)fabric_plan_add_switch(&net.plan, NULL, 210);
	for (unsigned h = 0; h < 4; h++)
		net.used[net.n + h] = 0;
	for (unsigned i = 0; i < net.n; i++)
		for (unsigned h = 0; h < 8; h++)
			net_link(&net, i, net.n + h % 4);
	e = start(&net.plan, "minhop");
	assert_shortest(e);
	for (unsigned k = 4; k < 12; k++)
		port[k] = true;
	for (unsigned i = 0; i < e->f->n_switches; i++)
		if (sm_switch(e->sm, i)->n_ports == 36)
			assert_even(e, sm_switch(e->sm, i), port);
	/* all tables anew, with a host that is away */
	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[4], false), 0);
	assert_int_equal(fabric_link_set(e->f, &sm_switch(e->sm, 50)->port[5], false), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(fabric_link_set(e->f, &sm_switch(e->sm, 50)->port[5], true), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	for (unsigned i = 0; i < e->f->n_switches; i++)
		assert_int_equal(fabric_lft_get(sm_switch(e->sm, i), e->f->hca_port[4]->lid),
		                 FABRIC_LFT_NONE);
	assert_int_equal(fabric_link_set(e->f, e->f->hca_port[4], true), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_shortest(e);
	stop(e);
}

/* Up from a leaf of a fat tree all paths are equal. */
static void assert_fat_tree_even(unsigned levels, const char *routing)
{
	struct env *e = start_fat_tree(levels, 8, routing);
	unsigned leaves = 0;

	for (unsigned s = 0; s < e->f->n_switches; s++) {
		struct fabric_node *sw = sm_switch(e->sm, s);
		bool port[256] = { false };

		if (strncmp(sw->name, "leaf", 4))
			continue;
		leaves++;
		for (unsigned k = 1; k <= sw->n_ports; k++)
			port[k] = sw->port[k].peer && sw->port[k].peer->node->type == FABRIC_SWITCH;
		assert_even(e, sw, port);
	}
	assert_true(leaves >= 8);
	stop(e);
}

CASE(equal_paths_carry_equal_shares)
{
	assert_fat_tree_even(2, "minhop");
	assert_fat_tree_even(3, "minhop");
	assert_fat_tree_even(2, "updn");
	assert_fat_tree_even(3, "updn");
}

/* ---- several LIDs a port ---- */

/* By how many of its ports switch @sw sends what is for the LIDs of @p. */
static unsigned count_paths(const struct fabric_node *sw, const struct fabric_port *p)
{
	bool seen[256] = { false };
	unsigned n = 0;

	for (unsigned i = 0; i < 1u << p->lmc; i++) {
		uint8_t out = fabric_lft_get(sw, (uint16_t)(p->lid + i));

		n += !seen[out];
		seen[out] = true;
	}
	return n;
}

/* Eight leaves with two links to each of three spines, four LIDs a port. */
static struct env *start_wide(const char *routing)
{
	struct net net;

	net_init(&net, 8, 4);
	for (unsigned i = 0; i < 3; i++) {
		net.sw[net.n++] = (unsigned)fabric_plan_add_switch(&net.plan, NULL, 36);
		for (unsigned leaf = 0; leaf < 8; leaf++) {
			net_link(&net, leaf, net.n - 1);
			net_link(&net, leaf, net.n - 1);
		}
	}
	return start_lmc(&net.plan, routing, "2");
}

/* Four LIDs go by three spines, and none by the same link. */
static void assert_distinct(const struct env *e)
{
	for (unsigned s = 0; s < 8; s++) {
		struct fabric_node *leaf = sm_switch(e->sm, s);

		for (unsigned i = 0; i < e->f->n_hca_ports; i++) {
			const struct fabric_port *p = e->f->hca_port[i];
			unsigned spines = 0;

			if (p->peer->node == leaf)
				continue;
			assert_int_equal(count_paths(leaf, p), 4);
			for (uint16_t k = 0; k < 4; k++)
				spines |= 1u << next_switch(leaf, p->lid + k)->index;
			assert_int_equal(__builtin_popcount(spines), 3);
		}
	}
}

CASE(the_lids_of_a_port_use_different_paths)
{
	static const char *const routings[] = { "minhop", "updn" };

	for (unsigned i = 0; i < 2; i++) {
		struct env *e = start_wide(routings[i]);
		struct fabric_port *p = &sm_switch(e->sm, 2)->port[6];

		assert_distinct(e);
		assert_int_equal(fabric_link_set(e->f, p, false), 0);
		assert_int_equal(sm_sweep(e->sm), 0);
		assert_distinct(e);
		stop(e);
	}
}

CASE(all_lids_share_the_only_path)
{
	struct net net;
	struct env *e;

	net_init(&net, 2, 2);
	net_link(&net, 0, 1);
	e = start_lmc(&net.plan, "minhop", "7");
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(count_paths(sm_switch(e->sm, 0), e->f->hca_port[i]), 1);
	stop(e);
}

/* ---- what stays ---- */

CASE(the_same_cables_make_the_same_tables)
{
	struct env *e = start_random(7, "minhop");
	struct tables *t = remember(e);

	stop(e);
	e = start_random(7, "minhop");
	assert_same_tables(e, t);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_same_tables(e, t);
	free(t);
	stop(e);
}

/* Whether what was for @lid crossed the link of @failed by the tables of then. */
static bool crossed(const struct env *e, const struct tables *t, struct fabric_node *sw,
                    uint16_t lid, const struct fabric_port *failed)
{
	for (unsigned n = 0; n < MAX_SWITCH; n++) {
		uint8_t out = t->out[sw->index][lid];

		if (!out || out > sw->n_ports)
			return false;
		if (&sw->port[out] == failed || &sw->port[out] == failed->peer)
			return true;
		if (sw->port[out].peer->node->type != FABRIC_SWITCH)
			return false;
		sw = sw->port[out].peer->node;
	}
	fail_msg("a loop in the tables of '%s' for LID %u", sm_switch(e->sm, 0)->name, lid);
	return false;
}

static void assert_little_moves(struct env *e, unsigned n)
{
	struct fabric_port *p = nth_link(e, n);
	struct tables *t = remember(e);

	assert_int_equal(fabric_link_set(e->f, p, false), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_shortest(e);
	for (unsigned s = 0; s < e->f->n_switches; s++)
		for (uint16_t lid = 1; lid < 1024; lid++)
			if (fabric_lft_get(sm_switch(e->sm, s), lid) != t->out[s][lid])
				assert_true(crossed(e, t, sm_switch(e->sm, s), lid, p));
	assert_int_equal(fabric_link_set(e->f, p, true), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_same_tables(e, t);
	free(t);
}

CASE(a_link_that_fails_moves_what_crossed_it_and_returns_it)
{
	struct env *e = start_fat_tree(3, 4, "minhop");

	for (unsigned n = 0; n < 60; n += 7)
		assert_little_moves(e, n);
	stop(e);
	for (unsigned seed = 1; seed <= 20; seed++) {
		e = start_random(seed, "minhop");
		assert_little_moves(e, seed * 3);
		stop(e);
	}
}

/* From every switch every other one is as near as the links allow. */
static void assert_switches_shortest(const struct env *e)
{
	unsigned hops[MAX_SWITCH];

	for (unsigned to = 0; to < e->f->n_switches; to++) {
		const struct fabric_node *root = sm_switch(e->sm, to);

		distances(e, root, hops);
		for (unsigned s = 0; s < e->f->n_switches; s++)
			assert_int_equal(path_length(sm_switch(e->sm, s), root, root->port[0].lid),
			                 hops[s]);
	}
}

/* After failures one by one the tables are as good as new ones, though not the same. */
CASE(after_many_failures_paths_are_still_shortest)
{
	unsigned seed = 3;

	for (unsigned radix = 4; radix <= 8;
	     radix += 4) { /* of 8: the last 16 of 80 have no hosts */
		struct env *e = start_fat_tree(3, radix, "minhop");

		for (unsigned i = 0; i < 12; i++) {
			int ret = fabric_link_set(e->f, nth_link(e, next_random(&seed)), false);

			assert_true(!ret || ret == -EALREADY);
			assert_int_equal(sm_sweep(e->sm), 0);
			assert_shortest(e);
			assert_switches_shortest(e);
		}
		stop(e);
	}
}

/* Several at once, and switches. */
CASE(many_failures_between_two_sweeps_are_one_to_it)
{
	unsigned seed = 5;

	for (unsigned round = 0; round < 20; round++) {
		struct env *e =
		        round % 2 ? start_random(round, "minhop") : start_fat_tree(3, 4, "minhop");

		for (unsigned i = 0; i < 4; i++) {
			for (unsigned k = 0; k < 3; k++)
				fabric_link_set(e->f, nth_link(e, next_random(&seed)), false);
			fabric_switch_set(e->f,
			                  sm_switch(e->sm, next_random(&seed) % e->f->n_switches),
			                  i % 2);
			assert_int_equal(sm_sweep(e->sm), 0);
			assert_shortest(e);
		}
		stop(e);
	}
}

CASE(a_link_of_a_host_changes_only_the_paths_to_it)
{
	struct env *e = start_fat_tree(2, 8, "minhop");
	struct fabric_port *hca = e->f->hca_port[5];
	struct tables *t = remember(e);

	assert_int_equal(fabric_link_set(e->f, hca, false), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	for (unsigned s = 0; s < e->f->n_switches; s++)
		for (uint16_t lid = 1; lid < 1024; lid++)
			assert_int_equal(fabric_lft_get(sm_switch(e->sm, s), lid),
			                 lid == hca->lid ? FABRIC_LFT_NONE : t->out[s][lid]);
	assert_int_equal(fabric_link_set(e->f, hca, true), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_same_tables(e, t);
	free(t);
	stop(e);
}

/* As a program does it. */
static void write_by_smp(const struct env *e, struct fabric_node *sw, uint16_t lid, uint8_t port)
{
	uint8_t data[SMP_DATA_BYTES];

	assert_int_equal(
	        fabric_sma_get(e->f, &sw->port[0], SMP_ATTR_LINEAR_FT, lid / LFT_BLOCK, data),
	        MAD_STATUS_OK);
	data[lid % LFT_BLOCK] = port;
	assert_int_equal(
	        fabric_sma_set(e->f, &sw->port[0], SMP_ATTR_LINEAR_FT, lid / LFT_BLOCK, data),
	        MAD_STATUS_OK);
}

CASE(a_sweep_for_no_reason_mends_what_somebody_else_wrote)
{
	struct env *e = start_fat_tree(2, 8, "minhop");
	unsigned seed = 9;

	for (unsigned i = 0; i < 100; i++)
		write_by_smp(e, sm_switch(e->sm, next_random(&seed) % e->f->n_switches),
		             e->f->hca_port[next_random(&seed) % e->f->n_hca_ports]->lid,
		             (uint8_t)next_random(&seed));
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_shortest(e);
	stop(e);
}

CASE(where_nothing_has_changed_nothing_is_routed)
{
	static const char *const routing[] = { "minhop", "updn", "ftree", "dfsssp" };

	for (unsigned i = 0; EACH_ROW(i, routing); i++) {
		struct env *e = start_fat_tree(2, 8, routing[i]);
		struct fabric_node *sw = sm_switch(e->sm, 0);
		uint16_t lid = e->f->hca_port[e->f->n_hca_ports - 1]->lid;
		uint8_t out = fabric_lft_get(sw, lid);

		/* nobody can do that, so no sweep that does not write all tables sees it */
		assert_int_equal(fabric_lft_set(sw, lid, FABRIC_LFT_NONE), 0);
		assert_int_equal(sm_sweep(e->sm), 0);
		assert_int_equal(fabric_lft_get(sw, lid), FABRIC_LFT_NONE);
		write_by_smp(e, sw, (uint16_t)(lid - 1), out);
		assert_int_equal(sm_sweep(e->sm), 0);
		assert_int_not_equal(fabric_lft_get(sw, lid), FABRIC_LFT_NONE);
		assert_shortest(e);
		/* a switch that was dead between two sweeps has lost its tables */
		assert_int_equal(fabric_switch_set(e->f, sw, false), 0);
		assert_int_equal(fabric_switch_set(e->f, sw, true), 0);
		assert_int_equal(sm_sweep(e->sm), 0);
		assert_shortest(e);
		stop(e);
	}
}

/* An entry on the way to another host. */
CASE(where_a_link_of_a_host_has_changed_too_it_is_mended)
{
	static const char *const routing[] = { "minhop", "updn", "ftree", "dfsssp" };

	for (unsigned i = 0; EACH_ROW(i, routing); i++) {
		struct env *e = start_fat_tree(2, 8, routing[i]);
		struct fabric_node *sw = sm_switch(e->sm, 0);
		uint16_t lid = e->f->hca_port[e->f->n_hca_ports - 1]->lid;
		uint8_t out = fabric_lft_get(sw, lid);

		write_by_smp(e, sw, lid, FABRIC_LFT_NONE);
		assert_int_equal(fabric_link_set(e->f, e->f->hca_port[0], false), 0);
		assert_int_equal(sm_sweep(e->sm), 0);
		assert_int_not_equal(fabric_lft_get(sw, lid), FABRIC_LFT_NONE);
		/* a switch that was dead between two sweeps */
		assert_int_equal(fabric_switch_set(e->f, sw, false), 0);
		assert_int_equal(fabric_switch_set(e->f, sw, true), 0);
		assert_int_equal(fabric_link_set(e->f, e->f->hca_port[0], true), 0);
		assert_int_equal(sm_sweep(e->sm), 0);
		assert_int_equal(fabric_lft_get(sw, lid), out);
		assert_shortest(e);
		stop(e);
	}
}

/* ---- up/down ---- */

CASE(shortest_paths_around_a_ring_have_a_credit_loop)
{
	struct env *e = start_ring(6, "minhop");

	assert_true(has_credit_loop(e)); /* so the check below can fail */
	stop(e);
}

/* With each link failed in turn, too, as long as all hangs together. */
static void assert_updn(struct env *e, bool is_joined)
{
	assert_all_reached(e);
	assert_false(has_credit_loop(e));
	for (unsigned n = 0; n < 40; n += 5) {
		struct fabric_port *p = nth_link(e, n);

		assert_int_equal(fabric_link_set(e->f, p, false), 0);
		assert_int_equal(sm_sweep(e->sm), 0);
		if (is_joined)
			assert_all_reached(e);
		assert_false(has_credit_loop(e));
		assert_int_equal(fabric_link_set(e->f, p, true), 0);
		assert_int_equal(sm_sweep(e->sm), 0);
	}
	stop(e);
}

CASE(up_down_is_free_of_credit_loops_on_rings)
{
	for (unsigned n = 3; n <= 12; n++)
		assert_updn(start_ring(n, "updn"), true);
}

CASE(up_down_is_free_of_credit_loops_on_tori)
{
	assert_updn(start_torus(4, 4, 1, "updn"), true);
	assert_updn(start_torus(5, 3, 1, "updn"), true);
	assert_updn(start_torus(3, 3, 3, "updn"), true);
}

CASE(up_down_is_free_of_credit_loops_on_random_topologies)
{
	for (unsigned seed = 1; seed <= 40; seed++)
		assert_updn(start_random(seed, "updn"), false);
}

CASE(up_down_on_a_fat_tree_uses_shortest_paths)
{
	for (unsigned levels = 2; levels <= 3; levels++) {
		struct env *e = start_fat_tree(levels, 8, "updn");

		assert_false(has_credit_loop(e));
		for (unsigned i = 0; i < e->f->n_hca_ports; i++) {
			const struct fabric_port *to = e->f->hca_port[i];
			unsigned hops[MAX_SWITCH];

			distances(e, to->peer->node, hops);
			for (unsigned k = 0; k < e->f->n_hca_ports; k++) {
				struct fabric_node *from = e->f->hca_port[k]->peer->node;

				assert_int_equal(path_length(from, to->peer->node, to->lid),
				                 hops[from->index]);
			}
		}
		stop(e);
	}
}

/* A host on a spine: then that spine is no root, and is still reached. */
CASE(up_down_reaches_a_host_on_a_spine)
{
	struct net net;

	net_init(&net, 4, 2);
	for (unsigned i = 0; i < 2; i++) { /* two spines that have none, one that has */
		unsigned spine = (unsigned)fabric_plan_add_switch(&net.plan, NULL, 36);

		net.sw[net.n++] = spine;
		for (unsigned leaf = 0; leaf < 3; leaf++)
			net_link(&net, leaf, net.n - 1);
	}
	for (unsigned leaf = 0; leaf < 3; leaf++)
		net_link(&net, leaf, 3);
	assert_updn(start(&net.plan, "updn"), true);
}

/* Two fat trees that one leaf of each joins: no root reaches all. */
CASE(where_roots_do_not_suffice_there_is_one_in_the_middle)
{
	struct net net;

	net_init(&net, 4, 2);
	for (unsigned i = 0; i < 4; i++) {
		unsigned spine = (unsigned)fabric_plan_add_switch(&net.plan, NULL, 36);

		net.sw[net.n++] = spine;
		net_link(&net, i / 2 * 2, net.n - 1);
		net_link(&net, i / 2 * 2 + 1, net.n - 1);
	}
	net_link(&net, 1, 2);
	assert_updn(start(&net.plan, "updn"), false);
}

/* ---- what links carry ---- */

/* By switch and port: how many LIDs of hosts a link to another switch carries for some host. */
struct loads {
	unsigned lids[MAX_SWITCH][256];
};

static void count_lid(const struct env *e, struct loads *l, const struct fabric_port *to)
{
	bool seen[MAX_SWITCH] = { false };

	for (unsigned i = 0; i < e->f->n_hca_ports; i++) {
		struct fabric_node *at = e->f->hca_port[i]->peer->node;

		for (; at != to->peer->node && !seen[at->index]; at = next_switch(at, to->lid)) {
			seen[at->index] = true;
			assert_non_null(next_switch(at, to->lid));
			l->lids[at->index][out_port(at, to->lid)->num]++;
		}
	}
}

static struct loads *count_loads(const struct env *e)
{
	struct loads *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	for (unsigned i = 0; i < e->f->n_hca_ports; i++)
		count_lid(e, l, e->f->hca_port[i]);
	return l;
}

/* The least and the most that links from switches named @from to those named @to carry. */
static void find_range(const struct env *e, const char *from, const char *to, unsigned range[2])
{
	struct loads *l = count_loads(e);

	range[0] = UINT32_MAX;
	range[1] = 0;
	for (unsigned s = 0; s < e->f->n_switches; s++) {
		const struct fabric_node *sw = sm_switch(e->sm, s);

		for (unsigned k = 1; k <= sw->n_ports && !strncmp(sw->name, from, 3); k++) {
			unsigned lids = l->lids[s][k];

			if (!sw->port[k].peer || !fabric_port_carries(&sw->port[k]) ||
			    strncmp(sw->port[k].peer->node->name, to, 3))
				continue;
			range[0] = lids < range[0] ? lids : range[0];
			range[1] = lids > range[1] ? lids : range[1];
		}
	}
	free(l);
}

static void assert_range(const struct env *e, const char *from, const char *to, unsigned least,
                         unsigned most)
{
	unsigned range[2];

	find_range(e, from, to, range);
	assert_in_range(range[0], least, most);
	assert_in_range(range[1], least, most);
}

static const char *const all_routings[] = { "minhop", "updn", "ftree" };

/* 128 hosts in 8 pods of 4 leaves: each of a leaf's 4 links up leads to a quarter of the 124 hosts
 * elsewhere, each of an agg's 4 to a quarter of the 28 that remain in other pods. */
CASE(every_link_of_a_fat_tree_carries_the_same)
{
	for (unsigned i = 0; EACH_ROW(i, all_routings); i++) {
		struct env *e = start_fat_tree(3, 8, all_routings[i]);

		assert_range(e, "leaf", "agg", 31, 31);
		assert_range(e, "agg", "spine", 7, 7);
		assert_range(e, "spine", "agg", 1, 1);
		assert_range(e, "agg", "leaf", 1, 1);
		stop(e);
		e = start_fat_tree(2, 8, all_routings[i]);
		assert_range(e, "leaf", "spine", 7, 7);
		assert_range(e, "spine", "leaf", 1, 1);
		stop(e);
	}
}

static struct env *start_part(unsigned hosts, const char *routing)
{
	const struct fabric_fat_tree shape = { 3, 8, hosts };
	struct fabric_plan plan;
	char why[160];

	fabric_plan_init(&plan);
	assert_int_equal(fabric_plan_fat_tree(&plan, &shape, why, sizeof(why)), 0);
	return start(&plan, routing);
}

/* 77 hosts: up from a leaf 73 to 76 of them share 4 links. */
CASE(with_hosts_missing_links_differ_by_one)
{
	for (unsigned i = 0; EACH_ROW(i, all_routings); i++) {
		struct env *e = start_part(77, all_routings[i]);

		assert_range(e, "leaf", "agg", 18, 19);
		assert_range(e, "agg", "spine", 3, 4);
		assert_range(e, "spine", "agg", 0, 1);
		stop(e);
	}
}

static void cut(const struct env *e, const char *name, unsigned port)
{
	for (unsigned s = 0; s < e->f->n_switches; s++)
		if (!strcmp(sm_switch(e->sm, s)->name, name))
			assert_int_equal(
			        fabric_link_set(e->f, &sm_switch(e->sm, s)->port[port], false), 0);
}

/* The load of the failed links is shared out among the others. */
CASE(with_links_failed_no_link_carries_much_more_than_its_share)
{
	for (unsigned i = 0; EACH_ROW(i, all_routings); i++) {
		struct env *e = start_fat_tree(3, 8, all_routings[i]);

		cut(e, "leaf3", 5);
		assert_int_equal(sm_sweep(e->sm), 0);
		cut(e, "agg7", 6);
		cut(e, "agg20", 8);
		assert_int_equal(sm_sweep(e->sm), 0);
		assert_all_reached(e);
		assert_range(e, "leaf", "agg", 20, 42); /* 124 by 3 links are 41.3 each */
		assert_range(e, "agg", "spine", 4, 14);
		assert_range(e, "spine", "agg", 0, 3);
		stop(e);
	}
}

/* Whatever fails, a fat tree has no credit loop with ftree, and all reach each other that can. */
CASE(fat_tree_routing_has_no_credit_loops)
{
	unsigned seed = 11;

	for (unsigned round = 0; round < 10; round++) {
		struct env *e = start_fat_tree(2 + round % 2, 4 + round % 3 * 2, "ftree");

		for (unsigned i = 0; i < 4; i++) {
			fabric_link_set(e->f, nth_link(e, next_random(&seed)), false);
			assert_int_equal(sm_sweep(e->sm), 0);
			assert_false(has_credit_loop(e));
			assert_connected_are_reached(e);
		}
		stop(e);
	}
}

/* Half of the links fail, one after the other, and come back in another order. */
CASE(fat_tree_routing_loses_nobody_whatever_fails)
{
	unsigned seed = 17;

	for (unsigned round = 0; round < 4; round++) {
		struct env *e = start_fat_tree(3, 4, "ftree");
		struct tables *t = remember(e);
		struct fabric_port *down[32];

		for (unsigned i = 0; EACH_ROW(i, down); i++) {
			down[i] = nth_link(e, next_random(&seed));
			fabric_link_set(e->f, down[i], false);
			assert_int_equal(sm_sweep(e->sm), 0);
			assert_false(has_credit_loop(e));
			assert_connected_are_reached(e);
		}
		for (unsigned i = 0; EACH_ROW(i, down); i++) {
			fabric_link_set(e->f, down[i], true);
			assert_int_equal(sm_sweep(e->sm), 0);
			assert_connected_are_reached(e);
		}
		assert_int_equal(sm_routing(e->sm), SM_ROUTING_FTREE);
		assert_same_tables(e, t);
		free(t);
		stop(e);
	}
}

/* Three links fail so that some leaves have no path to each other that goes up and then down. */
CASE(a_fat_tree_that_is_none_any_more_is_routed_up_down)
{
	struct env *e = start_fat_tree(3, 4, "ftree");

	assert_int_equal(sm_routing(e->sm), SM_ROUTING_FTREE);
	cut(e, "agg5", 3);
	cut(e, "agg5", 4);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(sm_routing(e->sm), SM_ROUTING_FTREE);
	cut(e, "agg6", 2);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_int_equal(sm_routing(e->sm), SM_ROUTING_UPDN);
	assert_all_reached(e);
	assert_false(has_credit_loop(e));
	stop(e);
}

CASE(what_is_no_fat_tree_is_routed_up_down)
{
	assert_updn(start_ring(6, "ftree"), true);
	assert_updn(start_torus(4, 4, 1, "ftree"), true);
}

CASE(with_ftree_a_link_of_a_host_moves_no_other_path)
{
	struct env *e = start_fat_tree(3, 4, "ftree");
	struct fabric_port *hca = e->f->hca_port[5];
	struct tables *t = remember(e);

	assert_int_equal(fabric_link_set(e->f, hca, false), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	for (unsigned s = 0; s < e->f->n_switches; s++)
		for (uint16_t lid = 1; lid < 1024; lid++)
			if (lid != hca->lid)
				assert_int_equal(fabric_lft_get(sm_switch(e->sm, s), lid),
				                 t->out[s][lid]);
	assert_int_equal(fabric_lft_get(hca->peer->node, hca->lid), FABRIC_LFT_NONE);
	assert_int_equal(fabric_link_set(e->f, hca, true), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_same_tables(e, t);
	free(t);
	stop(e);
}

/* ---- links of hosts ---- */

/* A link fails, or returns; most are hosts'. */
static void change_link(struct env *e, unsigned chance)
{
	struct fabric_port *p = chance % 8 ? e->f->hca_port[chance / 8 % e->f->n_hca_ports]
	                                   : nth_link(e, chance / 8);

	fabric_link_set(e->f, p, p->state == IB_PORT_DOWN);
}

static void assert_like_anew(unsigned seed, const char *routing)
{
	struct env *e = start_random(seed, routing), *anew = start_random(seed, routing);

	for (unsigned i = 0; i < 30; i++) {
		unsigned chance = next_random(&seed);
		struct tables *t;

		change_link(e, chance);
		change_link(anew, chance);
		/* as if the sweep before had not been done, but for links that it found up */
		anew->sm->net.left = true;
		anew->sm->net.came_up = false;
		assert_int_equal(sm_sweep(e->sm), 0);
		assert_int_equal(sm_sweep(anew->sm), 0);
		t = remember(anew);
		assert_same_tables(e, t);
		free(t);
	}
	stop(e);
	stop(anew);
}

/* With updn only paths to the switches of those hosts are chosen; the tables are as if all were
 * looked at. */
CASE(links_of_hosts_move_no_other_paths)
{
	for (unsigned seed = 1; seed <= 40; seed++)
		assert_like_anew(seed, "updn");
}
