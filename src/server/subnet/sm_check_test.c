/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All engines on all kinds of topologies, before and after links, switches and hosts fail, 1,000
 * times in all, with groups that hosts join and leave meanwhile: the judge of `umbel check` finds
 * that hosts reach each other, that nothing goes round in circles, that groups reach their members
 * once, and that links do not wait for each other in circles where the engine promises it, be it
 * for messages to hosts or to groups. UMBEL_FUZZ_SEEDS has it go on for longer than three seeds.
 */
#include <harness.h>

#include "subnet/testing_check.h"

#define GROUPS   6
#define FAILURES 16

static const char *const engines[] = { "minhop", "updn", "ftree", "dfsssp" };

/* ---- topologies ---- */

static struct env *fat_tree_2(const char *routing)
{
	return start_fat_tree(2, 8, routing);
}

static struct env *fat_tree_3(const char *routing)
{
	return start_fat_tree(3, 4, routing);
}

static struct env *fat_tree_wide(const char *routing)
{
	return start_fat_tree(3, 8, routing);
}

static struct env *torus_2(const char *routing)
{
	return start_torus(5, 5, 1, routing);
}

static struct env *torus_3(const char *routing)
{
	return start_torus(3, 3, 3, routing);
}

static struct env *hypercube(const char *routing)
{
	struct net net;

	net_init(&net, 32, 1);
	for (unsigned i = 0; i < net.n; i++)
		for (unsigned bit = 1; bit < net.n; bit *= 2)
			if (!(i & bit))
				net_link(&net, i, i | bit);
	return start(&net.plan, routing);
}

/* Nine groups of four switches: all of a group are linked, and each group to each other one. */
static struct env *dragonfly(const char *routing)
{
	struct net net;

	net_init(&net, 36, 1);
	for (unsigned i = 0; i < net.n; i++)
		for (unsigned k = i + 1; k < net.n && k / 4 == i / 4; k++)
			net_link(&net, i, k);
	for (unsigned a = 0; a < 9; a++)
		for (unsigned b = a + 1; b < 9; b++)
			net_link(&net, 4 * a + (b - a - 1) % 4, 4 * b + (8 - (b - a)) % 4);
	return start(&net.plan, routing);
}

/* Of McKay, Miller and Siran, with q = 5: 50 switches with 7 links each, two links apart at most.
 */
static struct env *slim_fly(const char *routing)
{
	static const bool even[5] = { [1] = true, [4] = true }, odd[5] = { [2] = true, [3] = true };
	struct net net;

	net_init(&net, 50, 1);
	for (unsigned x = 0; x < 5; x++)
		for (unsigned y = 0; y < 5; y++)
			for (unsigned z = y + 1; z < 5; z++) {
				if (even[z - y])
					net_link(&net, 5 * x + y, 5 * x + z);
				if (odd[z - y])
					net_link(&net, 25 + 5 * x + y, 25 + 5 * x + z);
			}
	for (unsigned x = 0; x < 5; x++)
		for (unsigned y = 0; y < 5; y++)
			for (unsigned m = 0; m < 5; m++)
				net_link(&net, 5 * x + y, 25 + 5 * m + (y + 5 * 5 - m * x) % 5);
	return start(&net.plan, routing);
}

static unsigned random_seed;

static struct env *by_chance(const char *routing)
{
	return start_random(random_seed, routing);
}

static const struct topology {
	const char *name;
	struct env *(*start)(const char *routing);
} topologies[] = {
	{ "fat tree of 2 levels", fat_tree_2 },
	{ "fat tree of 3 levels", fat_tree_3 },
	{ "fat tree of 3 levels, 128 hosts", fat_tree_wide },
	{ "torus of 5 x 5", torus_2 },
	{ "torus of 3 x 3 x 3", torus_3 },
	{ "hypercube", hypercube },
	{ "dragonfly", dragonfly },
	{ "Slim Fly", slim_fly },
	{ "random", by_chance },
};

/* ---- groups and failures ---- */

static void route_group(struct env *e, const struct checked_group *g)
{
	struct sm_member m[MAX_SWITCH];

	for (unsigned i = 0; i < g->n; i++)
		m[i] = (struct sm_member){ e->f->hca_port[g->member[i]], true };
	assert_int_equal(sm_route_mcast(e->sm, g->mlid, m, g->n), 0);
}

/* After a sweep: as the subnet administrator does, members whose links are down leave. */
static void follow_sweep(struct env *e, struct checked_group *g)
{
	unsigned before = g->n;

	for (unsigned i = g->n; i-- > 0;)
		if (e->f->hca_port[g->member[i]]->state == IB_PORT_DOWN)
			g->member[i] = g->member[--g->n];
	if (g->n < before || sm_mcast_is_stale(e->sm, g->mlid))
		route_group(e, g);
}

/* A host joins it, or leaves if it is a member. */
static void join_or_leave(struct env *e, struct checked_group *g, uint32_t host)
{
	unsigned at = 0;

	if (e->f->hca_port[host]->state == IB_PORT_DOWN)
		return;
	while (at < g->n && g->member[at] != host)
		at++;
	if (at == g->n && g->n < MAX_SWITCH)
		g->member[g->n++] = host;
	else if (at < g->n)
		g->member[at] = g->member[--g->n];
	route_group(e, g);
}

/* Some hosts join it, one after the other. */
static void join(struct env *e, struct checked_group *g, unsigned *chance)
{
	unsigned want = 2 + next_random(chance) % 8;

	g->n = 0;
	for (unsigned i = 0; i < want; i++)
		join_or_leave(e, g, next_random(chance) % e->f->n_hca_ports);
}

static unsigned n_failures;

/* Something fails, or comes back. */
static void change(struct env *e, unsigned *chance)
{
	unsigned what = next_random(chance) % 8;
	struct fabric_port *p = nth_link(e, next_random(chance));

	n_failures += what < 6;
	if (what == 0)
		fabric_switch_set(e->f, p->node, p->node->dead);
	else if (what == 1)
		p = e->f->hca_port[next_random(chance) % e->f->n_hca_ports];
	if (what)
		fabric_link_set(e->f, p, p->state == IB_PORT_DOWN && what > 5);
}

/* ---- the verdict ---- */

static void assert_holds(const struct check_report *r, enum check_property p, const char *where)
{
	if (!r->result[p].found)
		return;
	for (unsigned i = 0; i < r->result[p].n; i++)
		print_message("%s: %s: %s\n", where, check_property_name(p), r->result[p].text[i]);
	fail();
}

/* updn, ftree and dfsssp promise that no links wait for each other in circles; minhop does on a fat
 * tree that is whole. */
static void assert_right(const struct env *e, const struct checked_group *group, const char *where,
                         bool promised)
{
	struct check_report r;

	checked(e, group, GROUPS, &r);
	assert_holds(&r, CHECK_LIDS, where);
	assert_holds(&r, CHECK_PATHS, where);
	assert_holds(&r, CHECK_LOOPS, where);
	assert_holds(&r, CHECK_GROUPS, where);
	if (promised) {
		assert_holds(&r, CHECK_DEADLOCK, where);
		assert_holds(&r, CHECK_DEADLOCK_GROUPS, where);
	}
	check_report_fini(&r);
}

static void run(const struct topology *t, const char *engine, unsigned seed)
{
	struct checked_group group[GROUPS];
	struct env *e = t->start(engine);
	unsigned chance = seed;
	char where[80];

	for (unsigned i = 0; i < GROUPS; i++) {
		group[i].mlid = (uint16_t)(0xC001 + i);
		join(e, &group[i], &chance);
	}
	for (unsigned i = 0; i <= FAILURES; i++) {
		snprintf(where, sizeof(where), "%s, %s, seed %u, failure %u", t->name, engine, seed,
		         i);
		assert_right(e, group, where,
		             strcmp(engine, "minhop") != 0 ||
		                     (!i && !strncmp(t->name, "fat tree", 8)));
		change(e, &chance);
		assert_int_equal(sm_sweep(e->sm), 0);
		for (unsigned k = 0; k < GROUPS; k++)
			follow_sweep(e, &group[k]);
		join_or_leave(e, &group[i % GROUPS], next_random(&chance) % e->f->n_hca_ports);
	}
	stop(e);
}

CASE(all_engines_on_all_topologies_with_failures)
{
	const char *more = getenv("UMBEL_FUZZ_SEEDS");
	unsigned seeds = more ? (unsigned)atoi(more) : 3;

	for (unsigned i = 0; i < ARRAY_SIZE(topologies); i++)
		for (unsigned k = 0; k < ARRAY_SIZE(engines); k++)
			for (random_seed = 1; random_seed <= seeds; random_seed++)
				run(&topologies[i], engines[k], random_seed);
	print_message("%u failures\n", n_failures);
	assert_true(n_failures >= 1000 || seeds < 3);
}

/* A sixth of all links between switches fail before one sweep, and a host joins each group after
 * it.
 */
static void run_at_once(const struct topology *t, const char *engine, unsigned seed)
{
	struct checked_group group[GROUPS];
	struct env *e = t->start(engine);
	unsigned chance = seed, ends = 0;
	char where[80];

	for (unsigned i = 0; i < GROUPS; i++) {
		group[i].mlid = (uint16_t)(0xC001 + i);
		join(e, &group[i], &chance);
	}
	for (unsigned s = 0; s < e->f->n_switches; s++)
		for (unsigned k = 1; k <= sm_switch(e->sm, s)->n_ports; k++) {
			const struct fabric_port *p = sm_switch(e->sm, s)->port[k].peer;

			ends += p && p->node->type == FABRIC_SWITCH;
		}
	for (unsigned i = 0; i < ends / 12; i++)
		fabric_link_set(e->f, nth_link(e, next_random(&chance)), false);
	assert_int_equal(sm_sweep(e->sm), 0);
	for (unsigned i = 0; i < GROUPS; i++) {
		follow_sweep(e, &group[i]);
		join_or_leave(e, &group[i], next_random(&chance) % e->f->n_hca_ports);
	}
	snprintf(where, sizeof(where), "%s, %s, seed %u, many failures", t->name, engine, seed);
	assert_right(e, group, where, strcmp(engine, "minhop") != 0);
	stop(e);
}

CASE(many_links_fail_at_once)
{
	const char *more = getenv("UMBEL_FUZZ_SEEDS");
	unsigned seeds = more ? (unsigned)atoi(more) : 10;

	for (unsigned i = 0; i < ARRAY_SIZE(topologies); i++)
		for (unsigned k = 0; k < ARRAY_SIZE(engines); k++)
			for (random_seed = 1; random_seed <= seeds; random_seed++)
				run_at_once(&topologies[i], engines[k], random_seed);
}

/* Where all switches have hosts the core is as near to the members as the order allows. */
CASE(groups_of_neighbours_have_one_link)
{
	for (unsigned k = 0; EACH_ROW(k, engines); k++) {
		struct env *e = torus_2(engines[k]);
		struct checked_group g = { .mlid = 0xC001 };

		for (uint32_t host = 0; host < e->f->n_hca_ports; host++) {
			const struct fabric_node *sw = e->f->hca_port[host]->peer->node;
			const struct fabric_port *next = &sw->port[sw->n_ports];
			unsigned ends = 0;

			while (!next->peer)
				next--;
			g.n = 0;
			join_or_leave(e, &g, host);
			join_or_leave(e, &g, next->peer->node->port[1].peer->index);
			for (unsigned s = 0; s < e->f->n_switches; s++) {
				const struct fabric_mft_row *row =
				        fabric_mft_get(sm_switch(e->sm, s), g.mlid);

				for (unsigned port = 3; port < 7; port++)
					ends += row && fabric_row_has(row, port);
			}
			assert_int_equal(ends, 2);
			assert_int_equal(sm_route_mcast(e->sm, g.mlid, NULL, 0), 0);
		}
		stop(e);
	}
}
