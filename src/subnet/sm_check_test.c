/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All engines on all kinds of topologies, before and after links, switches and hosts fail, with
 * groups that hosts join: the judge of `umbel check` finds that hosts reach each other, that
 * nothing goes round in circles, that groups reach their members once, and that links do not wait
 * for each other in circles where the engine promises it. UMBEL_FUZZ_SEEDS has it go on for longer
 * than three seeds.
 */
#include "subnet/testing_check.h"

#define GROUPS   6
#define FAILURES 12

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
	{ "torus of 5 x 5", torus_2 },
	{ "torus of 3 x 3 x 3", torus_3 },
	{ "hypercube", hypercube },
	{ "dragonfly", dragonfly },
	{ "Slim Fly", slim_fly },
	{ "random", by_chance },
};

/* ---- groups and failures ---- */

/* Routes a group to those of its members whose links are up. */
static void route_group(struct env *e, const struct checked_group *g)
{
	struct sm_member m[MAX_SWITCH];
	unsigned n = 0;

	for (unsigned i = 0; i < g->n; i++)
		if (e->f->hca_port[g->member[i]]->state != IB_PORT_DOWN)
			m[n++] = (struct sm_member){ e->f->hca_port[g->member[i]], true };
	assert_int_equal(sm_route_mcast(e->sm, g->mlid, m, n), 0);
}

/* Some hosts join it, one after the other. */
static void join(struct env *e, struct checked_group *g, unsigned *chance)
{
	unsigned want = 2 + next_random(chance) % 8;

	g->n = 0;
	for (unsigned tries = 0; tries < want; tries++) {
		uint32_t host = next_random(chance) % e->f->n_hca_ports;
		bool is_member = false;

		for (unsigned i = 0; i < g->n; i++)
			is_member |= g->member[i] == host;
		if (is_member)
			continue;
		g->member[g->n++] = host;
		route_group(e, g);
	}
}

/* Something fails, or comes back. */
static void change(struct env *e, unsigned *chance)
{
	unsigned what = next_random(chance) % 8;
	struct fabric_port *p = nth_link(e, next_random(chance));

	if (what == 0)
		fabric_switch_set(e->f, p->node, p->node->dead);
	else if (what == 1)
		p = e->f->hca_port[next_random(chance) % e->f->n_hca_ports];
	if (what)
		fabric_link_set(e->f, p, p->state == IB_PORT_DOWN && what > 5);
}

/* ---- the verdict ---- */

static unsigned loops_with_groups; /* fabrics on which groups close a circle */

static void assert_holds(const struct check_report *r, enum check_property p, const char *where)
{
	if (!r->result[p].found)
		return;
	for (unsigned i = 0; i < r->result[p].n; i++)
		print_message("%s: %s: %s\n", where, check_property_name(p), r->result[p].text[i]);
	fail();
}

static void assert_right(const struct env *e, const struct checked_group *group, const char *where,
                         bool deadlock_free)
{
	struct check_report r;

	checked(e, group, GROUPS, &r);
	assert_holds(&r, CHECK_LIDS, where);
	assert_holds(&r, CHECK_PATHS, where);
	assert_holds(&r, CHECK_LOOPS, where);
	assert_holds(&r, CHECK_GROUPS, where);
	if (deadlock_free)
		assert_holds(&r, CHECK_DEADLOCK, where);
	loops_with_groups += r.result[CHECK_DEADLOCK_GROUPS].found > 0;
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
		assert_right(e, group, where, strcmp(engine, "minhop") != 0);
		change(e, &chance);
		assert_int_equal(sm_sweep(e->sm), 0);
		for (unsigned k = 0; k < GROUPS; k++)
			route_group(e, &group[k]);
	}
	stop(e);
}

static void all_engines_on_all_topologies_with_failures(void **state)
{
	const char *more = getenv("UMBEL_FUZZ_SEEDS");
	unsigned seeds = more ? (unsigned)atoi(more) : 3;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(topologies); i++)
		for (unsigned k = 0; k < ARRAY_SIZE(engines); k++) {
			loops_with_groups = 0;
			for (random_seed = 1; random_seed <= seeds; random_seed++)
				run(&topologies[i], engines[k], random_seed);
			print_message("%s, %s: groups close circles on %u of %u\n",
			              topologies[i].name, engines[k], loops_with_groups,
			              seeds * (FAILURES + 1));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_engines_on_all_topologies_with_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
