/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast trees on fat trees: they are spread over the spines, as short as can be, do not move
 * when somebody joins or leaves, unless links have failed, and lead around failures.
 */
#include <harness.h>

#include "base/util.h"
#include "fabric/agents/link.h"
#include "fabric/testing.h"
#include "subnet/sm.h"

#define MAX_SWITCH  128
#define MAX_MEMBERS 256

struct env {
	struct fabric *f;
	struct sm *sm;
	unsigned reached[MAX_MEMBERS];
};

static void no_wake(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
}

static struct env *start_routed(unsigned levels, unsigned radix, const char *routing)
{
	const struct fabric_fat_tree shape = { levels, radix, 0 };
	const struct sm_ops ops = { .wake = no_wake };
	struct env *e = calloc(1, sizeof(*e));
	struct shm_settings settings;
	struct fabric_plan plan;
	char why[160];

	fabric_settings_default(&settings);
	assert_int_equal(fabric_settings_set(&settings, "routing", routing, false), 0);
	fabric_plan_init(&plan);
	assert_int_equal(fabric_plan_fat_tree(&plan, &shape, why, sizeof(why)), 0);
	e->f = testing_build(&plan, &settings);
	assert_in_range(e->f->n_hca_ports, 1, MAX_MEMBERS);
	assert_in_range(e->f->n_switches, 1, MAX_SWITCH);
	assert_int_equal(sm_new(&e->sm, e->f, &ops), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	return e;
}

static struct env *start(unsigned levels, unsigned radix)
{
	return start_routed(levels, radix, "minhop");
}

static void stop(struct env *e)
{
	sm_free(e->sm);
	fabric_free(e->f);
	free(e);
}

static struct fabric_node *find(const struct env *e, const char *name)
{
	for (unsigned s = 0; s < e->f->n_switches; s++)
		if (!strcmp(sm_switch(e->sm, s)->name, name))
			return sm_switch(e->sm, s);
	fail_msg("no switch '%s'", name);
	return NULL;
}

/* Hosts number @from to @from + @n - 1, in steps of @step, are members. */
struct members {
	struct sm_member m[MAX_MEMBERS];
	unsigned n;
};

static void join(const struct env *e, struct members *g, unsigned from, unsigned n, unsigned step)
{
	for (unsigned i = 0; i < n; i++)
		g->m[g->n++] = (struct sm_member){ .port = e->f->hca_port[from + i * step],
			                           .receives = true };
}

static void route(const struct env *e, uint16_t mlid, const struct members *g)
{
	assert_int_equal(sm_route_mcast(e->sm, mlid, g->m, g->n), 0);
}

/* How many links between switches the tree has, and whether it uses switches named @name. */
static unsigned count_links(const struct env *e, uint16_t mlid, const char *name, unsigned *uses)
{
	unsigned ends = 0;

	*uses = 0;
	for (unsigned s = 0; s < e->f->n_switches; s++) {
		const struct fabric_node *sw = sm_switch(e->sm, s);
		const struct fabric_mft_row *row = fabric_mft_get(sw, mlid);

		for (unsigned k = 1; k <= sw->n_ports; k++)
			ends += fabric_row_has(row, k) &&
			        sw->port[k].peer->node->type == FABRIC_SWITCH;
		if (row && !fabric_row_is_empty(row) && !strncmp(sw->name, name, strlen(name)))
			++*uses;
	}
	assert_int_equal(ends % 2, 0);
	return ends / 2;
}

static void on_reached(void *arg, struct fabric_port *hca)
{
	((struct env *)arg)->reached[hca->index]++;
}

/* Each member gets the packets of each member once. */
static void assert_reached(struct env *e, uint16_t mlid, const struct members *g)
{
	struct fabric_walk w = { .hop = testing_no_hop, .reached = on_reached, .arg = e };

	for (unsigned i = 0; i < g->n; i++) {
		memset(e->reached, 0, sizeof(e->reached));
		fabric_walk_multicast(e->f, g->m[i].port, mlid, &w);
		for (unsigned k = 0; k < g->n; k++)
			assert_int_equal(e->reached[g->m[k].port->index], 1);
	}
}

struct tables {
	struct fabric_mft_row row[MAX_SWITCH];
};

static void remember(const struct env *e, uint16_t mlid, struct tables *t)
{
	memset(t, 0, sizeof(*t));
	for (unsigned s = 0; s < e->f->n_switches; s++)
		if (fabric_mft_get(sm_switch(e->sm, s), mlid))
			t->row[s] = *fabric_mft_get(sm_switch(e->sm, s), mlid);
}

/* ---- the tests ---- */

/* 64 groups on a tree with 4 spines: 16 each; they end, and others are spread as well. */
CASE(trees_are_spread_over_the_spines)
{
	struct env *e = start(2, 8);
	struct members g = { .n = 0 };

	join(e, &g, 0, 8, 4);
	for (unsigned round = 0; round < 2; round++) {
		unsigned used[4] = { 0 };

		for (uint16_t i = 0; i < 64; i++)
			route(e, 0xC000 + i, &g);
		for (uint16_t i = 0; i < 64; i++)
			for (unsigned k = 0; k < 4; k++) {
				char name[16];
				unsigned uses;

				snprintf(name, sizeof(name), "spine%u", k + 1);
				assert_int_equal(count_links(e, 0xC000 + i, name, &uses), 8);
				used[k] += uses;
			}
		for (unsigned k = 0; k < 4; k++)
			assert_int_equal(used[k], 16);
		for (uint16_t i = 0; i < 64; i++)
			assert_int_equal(sm_route_mcast(e->sm, 0xC000 + i, NULL, 0), 0);
	}
	stop(e);
}

/* Over l leaves in p pods no tree has fewer links: none for one leaf, l for leaves of one pod, l +
 * p for more. */
CASE(trees_are_as_short_as_can_be)
{
	static const struct {
		unsigned n, step, links;
	} rows[] = {
		{ 1, 1, 0 },  { 4, 1, 0 },   { 2, 4, 2 },   { 4, 4, 4 },
		{ 2, 16, 4 }, { 8, 16, 16 }, { 32, 4, 40 },
	};
	struct env *e = start(3, 8); /* 8 pods of 4 leaves with 4 hosts */

	for (uint16_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct members g = { .n = 0 };
		unsigned uses;

		join(e, &g, 0, rows[i].n, rows[i].step);
		route(e, 0xC000 + i, &g);
		assert_int_equal(count_links(e, 0xC000 + i, "spine", &uses), rows[i].links);
		assert_true(uses <= 1);
		assert_reached(e, 0xC000 + i, &g);
	}
	stop(e);
}

/* No row loses a port when somebody joins, nor gets one when somebody leaves: the first, too. */
CASE(who_joins_or_leaves_moves_nobody)
{
	struct env *e = start(3, 8);
	struct members g = { .n = 0 };
	struct tables before, after;

	for (unsigned i = 0; i < 40; i++) {
		remember(e, 0xC000, &before);
		join(e, &g, i * 37 % 128, 1, 1);
		route(e, 0xC000, &g);
		/* others come and go meanwhile */
		route(e, (uint16_t)(0xC001 + i % 7), &g);
		remember(e, 0xC000, &after);
		for (unsigned s = 0; s < e->f->n_switches; s++)
			for (unsigned b = 0; b < FABRIC_MFT_BLOCKS; b++)
				assert_int_equal(before.row[s].ports[b] & ~after.row[s].ports[b],
				                 0);
	}
	while (g.n > 1) {
		remember(e, 0xC000, &before);
		memmove(&g.m[0], &g.m[1], --g.n * sizeof(g.m[0]));
		route(e, 0xC000, &g);
		assert_reached(e, 0xC000, &g);
		remember(e, 0xC000, &after);
		for (unsigned s = 0; s < e->f->n_switches; s++)
			for (unsigned b = 0; b < FABRIC_MFT_BLOCKS; b++)
				assert_int_equal(after.row[s].ports[b] & ~before.row[s].ports[b],
				                 0);
	}
	stop(e);
}

/* Where a link of the tree fails, the tree moves to another spine and is as short as before. */
CASE(a_tree_around_a_failure_is_as_short)
{
	struct env *e = start(2, 8);
	struct members g = { .n = 0 };
	unsigned uses;

	join(e, &g, 0, 8, 4);
	route(e, 0xC000, &g);
	for (unsigned k = 5; k < 8; k++) { /* leaf1 loses its links one by one */
		assert_int_equal(fabric_link_set(e->f, &find(e, "leaf1")->port[k], false), 0);
		assert_int_equal(sm_sweep(e->sm), 0);
		if (!sm_mcast_is_stale(e->sm, 0xC000))
			continue;
		route(e, 0xC000, &g);
		assert_reached(e, 0xC000, &g);
		assert_int_equal(count_links(e, 0xC000, "spine", &uses), 8);
	}
	assert_int_equal(uses, 1);
	assert_int_equal(fabric_switch_set(e->f, find(e, "spine4"), false), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	assert_true(sm_mcast_is_stale(e->sm, 0xC000));
	memmove(&g.m[0], &g.m[1], --g.n * sizeof(g.m[0])); /* leaf1 is alone */
	route(e, 0xC000, &g);
	assert_reached(e, 0xC000, &g);
	assert_int_equal(count_links(e, 0xC000, "spine", &uses), 7);
	stop(e);
}

static const char *const engines[] = { "minhop", "updn", "ftree", "dfsssp" };

/* leaf8 has lost its link to spine1, where one of four groups has its core; then it joins all. */
CASE(a_core_moves_for_who_joins_and_is_not_below_it)
{
	for (unsigned k = 0; EACH_ROW(k, engines); k++) {
		struct env *e = start_routed(2, 8, engines[k]);
		struct members g = { .n = 0 };
		struct tables before, after;
		unsigned uses, had_core = 0;

		assert_int_equal(fabric_link_set(e->f, &find(e, "leaf8")->port[5], false), 0);
		assert_int_equal(sm_sweep(e->sm), 0);
		join(e, &g, 0, 7, 4);
		for (uint16_t i = 0; i < 4; i++) {
			route(e, 0xC000 + i, &g);
			assert_int_equal(count_links(e, 0xC000 + i, "spine1", &uses), 7);
			had_core += uses;
		}
		assert_int_equal(had_core, 1);
		join(e, &g, 28, 1, 1);
		for (uint16_t i = 0; i < 4; i++) {
			route(e, 0xC000 + i, &g);
			assert_int_equal(count_links(e, 0xC000 + i, "spine1", &uses), 8);
			assert_int_equal(uses, 0);
			assert_reached(e, 0xC000 + i, &g);
			remember(e, 0xC000 + i, &before);
			route(e, 0xC000 + i, &g); /* and there it stays */
			remember(e, 0xC000 + i, &after);
			assert_memory_equal(&before, &after, sizeof(before));
		}
		stop(e);
	}
}

/* After this, no spine is above both leaf1 and leaf2. */
static void cut(struct env *e)
{
	assert_int_equal(fabric_link_set(e->f, &find(e, "leaf1")->port[3], false), 0);
	assert_int_equal(fabric_link_set(e->f, &find(e, "leaf2")->port[4], false), 0);
}

/* In mid-sweep the order is not yet known in which trees will go; they reach all, and then follow.
 */
CASE(who_joins_in_mid_sweep_is_reached_and_then_the_tree_obeys)
{
	for (unsigned k = 0; EACH_ROW(k, engines); k++) {
		struct env *e = start_routed(2, 4, engines[k]);
		struct members g = { .n = 0 };
		unsigned steps = 0, uses;
		uint32_t budget = 1;

		join(e, &g, 0, 1, 1);
		route(e, 0xC000, &g);
		cut(e);
		join(e, &g, 2, 1, 1);
		sm_sweep_begin(e->sm);
		for (; !sm_sweep_step(e->sm, &budget); budget = 1) {
			if (++steps < 3) /* LIDs and links have been looked at */
				continue;
			route(e, 0xC000, &g);
			assert_reached(e, 0xC000, &g);
		}
		assert_true(steps > 3);
		assert_true(sm_mcast_is_stale(e->sm, 0xC000));
		route(e, 0xC000, &g);
		assert_false(sm_mcast_is_stale(e->sm, 0xC000));
		assert_reached(e, 0xC000, &g);
		assert_int_equal(count_links(e, 0xC000, "leaf", &uses), 4);
		stop(e);
	}
}

/* A port that only sends is on the way to the receivers, and gets nothing. */
CASE(who_only_sends_reaches_all)
{
	struct env *e = start(3, 8);
	struct fabric_walk w = { .hop = testing_no_hop, .reached = on_reached, .arg = e };
	struct members g = { .n = 0 };

	join(e, &g, 0, 1, 1);
	join(e, &g, 100, 1, 1);
	g.m[1].receives = false;
	route(e, 0xC000, &g);
	fabric_walk_multicast(e->f, g.m[1].port, 0xC000, &w);
	assert_int_equal(e->reached[0], 1);
	assert_int_equal(e->reached[100], 0);
	stop(e);
}
