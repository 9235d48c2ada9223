/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fat trees: how many switches of each kind there are, and that the upper links carry no more
 * than the lower ones. The trees of `--hosts` are in fabric_test.c.
 */
#include <harness.h>

#include "fabric/testing.h"

static int build(struct fabric_plan *plan, unsigned levels, unsigned radix, unsigned hosts,
                 char why[static 160])
{
	const struct fabric_fat_tree shape = { levels, radix, hosts };

	fabric_plan_init(plan);
	strcpy(why, "");
	return fabric_plan_fat_tree(plan, &shape, why, 160);
}

static void build_well(struct fabric_plan *plan, unsigned levels, unsigned radix, unsigned hosts)
{
	char why[160];

	assert_int_equal(build(plan, levels, radix, hosts, why), 0);
}

static unsigned count(const struct fabric_plan *plan, const char *name)
{
	unsigned n = 0;

	for (unsigned i = 0; i < plan->n_nodes; i++)
		n += plan->node[i].type == FABRIC_SWITCH &&
		     !strncmp(plan->node[i].name, name, strlen(name));
	return n;
}

static unsigned linked(const struct fabric_plan_node *node)
{
	unsigned n = 0;

	for (unsigned k = 1; k <= node->n_ports; k++)
		n += node->port[k].peer_node != FABRIC_UNLINKED;
	return n;
}

CASE(a_fat_tree_has_these_switches)
{
	static const struct {
		unsigned levels, radix, hosts, want, leaves, aggs, spines;
	} rows[] = {
		{ 2, 36, 0, 648, 36, 0, 18 },
		{ 2, 36, 648, 648, 36, 0, 18 },
		{ 2, 36, 72, 72, 4, 0, 18 },
		{ 2, 36, 1, 1, 1, 0, 18 },
		{ 2, 36, 19, 19, 2, 0, 18 },
		{ 2, 2, 0, 2, 2, 0, 1 },
		{ 2, 12, 36, 36, 6, 0, 6 },
		{ 3, 24, 0, 3456, 288, 288, 144 },
		{ 3, 4, 0, 16, 8, 8, 4 },
		{ 3, 4, 5, 5, 3, 4, 4 },
		{ 3, 36, 4096, 4096, 228, 234, 324 },
		{ 3, 48, 0, 27648, 1152, 1152, 576 },
	};

	for (size_t i = 0; EACH_ROW(i, rows); i++) {
		struct fabric_plan plan;

		build_well(&plan, rows[i].levels, rows[i].radix, rows[i].hosts);
		assert_int_equal(plan.n_hosts, rows[i].want);
		assert_int_equal(plan.n_hca_ports, rows[i].want);
		assert_int_equal(count(&plan, "leaf"), rows[i].leaves);
		assert_int_equal(count(&plan, "agg"), rows[i].aggs);
		assert_int_equal(count(&plan, "spine"), rows[i].spines);
		assert_int_equal(plan.n_switches, rows[i].leaves + rows[i].aggs + rows[i].spines);
		fabric_plan_fini(&plan);
	}
}

CASE(every_port_of_a_full_fat_tree_is_linked)
{
	static const unsigned rows[][2] = { { 2, 36 }, { 2, 8 }, { 3, 4 }, { 3, 24 } };

	for (size_t i = 0; EACH_ROW(i, rows); i++) {
		struct fabric_plan plan;

		build_well(&plan, rows[i][0], rows[i][1], 0);
		for (unsigned n = 0; n < plan.n_nodes; n++)
			assert_int_equal(linked(&plan.node[n]), plan.node[n].n_ports);
		fabric_plan_fini(&plan);
	}
}

/* The uplinks of @node lead to different switches. */
static void assert_uplinks_differ(const struct fabric_plan *plan,
                                  const struct fabric_plan_node *node)
{
	unsigned half = node->n_ports / 2;

	for (unsigned k = half + 1; k <= node->n_ports; k++) {
		assert_true(node->port[k].peer_node < plan->n_nodes);
		assert_int_equal(plan->node[node->port[k].peer_node].type, FABRIC_SWITCH);
		for (unsigned m = half + 1; m < k; m++)
			assert_int_not_equal(node->port[k].peer_node, node->port[m].peer_node);
	}
}

/* The hosts keep their full bandwidth if others are left out. */
CASE(every_switch_below_the_spines_leads_up_by_half_its_ports)
{
	static const unsigned rows[][3] = {
		{ 2, 36, 0 }, { 2, 36, 50 }, { 3, 8, 0 }, { 3, 8, 37 }, { 3, 8, 1 },
	};

	for (size_t i = 0; EACH_ROW(i, rows); i++) {
		struct fabric_plan plan;

		build_well(&plan, rows[i][0], rows[i][1], rows[i][2]);
		for (unsigned n = 0; n < plan.n_nodes; n++)
			if (plan.node[n].type == FABRIC_SWITCH &&
			    strncmp(plan.node[n].name, "spine", 5))
				assert_uplinks_differ(&plan, &plan.node[n]);
		fabric_plan_fini(&plan);
	}
}

/* The HCAs of each host have links of their own, to its switch. */
static void assert_hcas(const struct fabric_plan *plan, unsigned hosts, unsigned hcas)
{
	assert_int_equal(plan->n_hosts, hosts);
	assert_int_equal(plan->n_hcas, hosts * hcas);
	for (unsigned i = 0; i < plan->n_hcas; i++) {
		assert_int_equal(plan->node[i].type, FABRIC_HCA);
		assert_int_equal(plan->node[i].host, i / hcas);
		assert_int_equal(linked(&plan->node[i]), 1);
	}
}

CASE(hosts_may_have_several_hcas)
{
	const struct fabric_fat_tree shape = { .levels = 2, .radix = 4 };
	struct fabric_plan plan;
	char why[160];

	fabric_plan_init(&plan);
	plan.hcas = 3;
	assert_int_equal(fabric_plan_tree(&plan, 20), 0);
	assert_hcas(&plan, 20, 3);
	assert_string_equal(plan.node[59].name, "umbel_h20_2");
	fabric_plan_fini(&plan);
	fabric_plan_init(&plan);
	plan.hcas = 256;
	assert_int_equal(fabric_plan_tree(&plan, FABRIC_MAX_HOSTS), -ERANGE);
	fabric_plan_fini(&plan);

	fabric_plan_init(&plan);
	plan.hcas = 3;
	assert_int_equal(fabric_plan_fat_tree(&plan, &shape, why, sizeof(why)), 0);
	assert_hcas(&plan, 2, 3); /* there are 8 ports */
	fabric_plan_fini(&plan);
	fabric_plan_init(&plan);
	plan.hcas = 9;
	assert_int_equal(fabric_plan_fat_tree(&plan, &shape, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "2 levels of 4-port switches have no room for a host");
	fabric_plan_fini(&plan);
}

CASE(impossible_shapes_are_refused_with_a_reason)
{
	static const struct {
		unsigned levels, radix, hosts;
		const char *why;
	} rows[] = {
		{ 1, 36, 0, "a fat tree has 2 or 3 levels, not 1" },
		{ 4, 36, 0, "a fat tree has 2 or 3 levels, not 4" },
		{ 2, 0, 0, "a fat tree's switches have 2 to 254 ports, an even number, not 0" },
		{ 2, 7, 0, "a fat tree's switches have 2 to 254 ports, an even number, not 7" },
		{ 2, 256, 0, "a fat tree's switches have 2 to 254 ports, an even number, not 256" },
		{ 2, 36, 649, "2 levels of 36-port switches take 648 hosts, not 649" },
		{ 3, 64, 0,
		  "3 levels of 64-port switches take 65536 hosts, more than the 49151 of a fabric: "
		  "say how many it shall have" },
		{ 3, 64, 48000, "3 levels of 64-port switches take 4028 switches: too many" },
	};

	for (size_t i = 0; EACH_ROW(i, rows); i++) {
		struct fabric_plan plan;
		char why[160];

		assert_int_equal(build(&plan, rows[i].levels, rows[i].radix, rows[i].hosts, why),
		                 -EINVAL);
		assert_string_equal(why, rows[i].why);
		fabric_plan_fini(&plan);
	}
}
