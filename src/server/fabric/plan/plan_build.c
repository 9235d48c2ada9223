/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Plans of regular shapes: see plan.h. Hosts are added first, then the switches from the bottom
 * up.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/plan/plan.h"

#define TREE_PORTS 36 /* of a switch: to hosts, or to the layer below */

static int finish(struct fabric_plan *plan)
{
	char why[1];
	int node;

	return fabric_plan_finish(plan, &node, why,
	                          sizeof(why)); /* it has no GUIDs that could clash */
}

static unsigned hcas_of_host(const struct fabric_plan *plan)
{
	return plan->hcas ? plan->hcas : 1;
}

/* Adds hosts that have @n HCAs of one port together: nodes 0 to @n - 1, a host's side by side. */
static int add_hosts(struct fabric_plan *plan, unsigned n)
{
	for (unsigned i = 0, host = 0; i < n; i++) {
		int ret = 0;

		if (i % hcas_of_host(plan) == 0)
			ret = fabric_plan_add_host(plan, NULL);
		if (ret >= 0 && i % hcas_of_host(plan) == 0)
			host = (unsigned)ret;
		if (ret >= 0)
			ret = fabric_plan_add_hca(plan, host, 1);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Adds @n switches, consecutive nodes; their names begin with @name. */
static int add_switches(struct fabric_plan *plan, const char *name, unsigned n, unsigned n_ports)
{
	for (unsigned i = 0; i < n; i++) {
		char full[FABRIC_NAME];
		int ret;

		snprintf(full, sizeof(full), "%s%u", name, i + 1);
		ret = fabric_plan_add_switch(plan, full, n_ports);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int plug(struct fabric_plan *plan, unsigned a, unsigned port_a, unsigned b, unsigned port_b)
{
	return fabric_plan_link(plan, (struct fabric_plan_end){ a, port_a },
	                        (struct fabric_plan_end){ b, port_b }, FABRIC_RATE_DEFAULT);
}

/* ---- a tree ---- */

/*
 * Adds a layer of switches above the @n ends in @below. If it has more than one switch, its
 * uplinks replace the ends in @below. Returns the number of its switches, or -errno.
 */
static int add_layer(struct fabric_plan *plan, const char *name, struct fabric_plan_end *below,
                     unsigned n)
{
	unsigned n_switches = (n + TREE_PORTS - 1) / TREE_PORTS, first = plan->n_nodes;
	int ret = add_switches(plan, name, n_switches, TREE_PORTS + (n_switches > 1));

	for (unsigned i = 0; i < n && !ret; i++)
		ret = plug(plan, below[i].node, below[i].port, first + i / TREE_PORTS,
		           i % TREE_PORTS + 1);
	if (ret)
		return ret;
	for (unsigned s = 0; s < n_switches && n_switches > 1; s++)
		below[s] = (struct fabric_plan_end){ first + s, TREE_PORTS + 1 };
	return (int)n_switches;
}

int fabric_plan_tree(struct fabric_plan *plan, unsigned n_hosts)
{
	static const char *const names[] = { "sw", "agg", "core", "top" };
	struct fabric_plan_end *below;
	unsigned n_hcas = n_hosts * hcas_of_host(plan);
	int n = (int)n_hcas, ret;

	if (!n_hosts || n_hosts > FABRIC_MAX_HOSTS || n_hcas > FABRIC_MAX_LIDS)
		return -ERANGE;
	ret = add_hosts(plan, n_hcas);
	if (ret)
		return ret;
	below = calloc(n_hcas, sizeof(*below));
	if (!below)
		return -ENOMEM;
	for (unsigned i = 0; i < n_hcas; i++)
		below[i] = (struct fabric_plan_end){ i, 1 };
	for (unsigned layer = 0; layer == 0 || n > 1; layer++)
		n = add_layer(plan, names[layer], below, (unsigned)n);
	free(below);
	return n < 0 ? n : finish(plan);
}

/* ---- fat trees ---- */

/* A fat tree while it is built: the number of switches of each kind, and their first nodes. */
struct fat_tree {
	unsigned half; /* of a switch's ports: up, or down */
	unsigned hcas, leaves, aggs, spines;
	unsigned first_leaf, first_agg, first_spine;
};

/* @hcas: of a host, and then of all. */
static int check_shape(const struct fabric_fat_tree *shape, unsigned *hcas, char *why, size_t len)
{
	unsigned half = shape->radix / 2, room = 2 * half * half, hosts;

	if (shape->levels != 2 && shape->levels != 3)
		return snprintf(why, len, "a fat tree has 2 or 3 levels, not %u", shape->levels),
		       -EINVAL;
	if (shape->radix < 2 || shape->radix > FABRIC_MAX_PORTS || shape->radix % 2)
		return snprintf(why, len,
		                "a fat tree's switches have 2 to %d ports, an even number, not %u",
		                FABRIC_MAX_PORTS, shape->radix),
		       -EINVAL;
	if (shape->levels == 3)
		room *= half;
	room /= *hcas;
	hosts = shape->hosts ? shape->hosts : room;
	if (hosts > room)
		return snprintf(why, len, "%u levels of %u-port switches take %u hosts, not %u",
		                shape->levels, shape->radix, room, hosts),
		       -EINVAL;
	if (hosts > FABRIC_MAX_HOSTS)
		return snprintf(why, len,
		                "%u levels of %u-port switches take %u hosts, more than the %d of "
		                "a fabric: say how many it shall have",
		                shape->levels, shape->radix, hosts, FABRIC_MAX_HOSTS),
		       -EINVAL;
	if (!hosts)
		return snprintf(why, len, "%u levels of %u-port switches have no room for a host",
		                shape->levels, shape->radix),
		       -EINVAL;
	*hcas *= hosts;
	return 0;
}

/* Adds all nodes. */
static int add_fat_nodes(struct fabric_plan *plan, const struct fabric_fat_tree *shape,
                         struct fat_tree *t)
{
	unsigned pods;
	int ret;

	t->half = shape->radix / 2;
	t->leaves = (t->hcas + t->half - 1) / t->half;
	pods = (t->leaves + t->half - 1) / t->half;
	t->aggs = shape->levels == 3 ? pods * t->half : 0;
	t->spines = shape->levels == 3 ? t->half * t->half : t->half;
	ret = add_hosts(plan, t->hcas);
	t->first_leaf = plan->n_nodes;
	if (!ret)
		ret = add_switches(plan, "leaf", t->leaves, shape->radix);
	t->first_agg = plan->n_nodes;
	if (!ret)
		ret = add_switches(plan, "agg", t->aggs, shape->radix);
	t->first_spine = plan->n_nodes;
	if (!ret)
		ret = add_switches(plan, "spine", t->spines, shape->radix);
	return ret;
}

/* Ports 1 to half lead down, the rest up; all ports of a spine lead down. */
static int link_leaf(struct fabric_plan *plan, const struct fat_tree *t, unsigned leaf)
{
	unsigned above = t->first_spine, port = leaf + 1;
	int ret = 0;

	if (t->aggs) { /* those of its pod */
		above = t->first_agg + leaf / t->half * t->half;
		port = leaf % t->half + 1;
	}
	for (unsigned i = leaf * t->half; i < t->hcas && i < (leaf + 1) * t->half && !ret; i++)
		ret = plug(plan, i, 1, t->first_leaf + leaf, i % t->half + 1);
	for (unsigned i = 0; i < t->half && !ret; i++)
		ret = plug(plan, t->first_leaf + leaf, t->half + 1 + i, above + i, port);
	return ret;
}

/* The i-th of each pod leads to the i-th group of spines. */
static int link_agg(struct fabric_plan *plan, const struct fat_tree *t, unsigned agg)
{
	unsigned pod = agg / t->half, above = t->first_spine + agg % t->half * t->half;
	int ret = 0;

	for (unsigned i = 0; i < t->half && !ret; i++)
		ret = plug(plan, t->first_agg + agg, t->half + 1 + i, above + i, pod + 1);
	return ret;
}

int fabric_plan_fat_tree(struct fabric_plan *plan, const struct fabric_fat_tree *shape, char *why,
                         size_t len)
{
	struct fat_tree t = { .hcas = hcas_of_host(plan) };
	int ret = check_shape(shape, &t.hcas, why, len);

	if (ret)
		return ret;
	ret = add_fat_nodes(plan, shape, &t);
	if (ret == -ERANGE) {
		snprintf(why, len, "%u levels of %u-port switches take %u switches: too many",
		         shape->levels, shape->radix, t.leaves + t.aggs + t.spines);
		return -EINVAL;
	}
	for (unsigned i = 0; i < t.leaves && !ret; i++)
		ret = link_leaf(plan, &t, i);
	for (unsigned i = 0; i < t.aggs && !ret; i++)
		ret = link_agg(plan, &t, i);
	return ret ? ret : finish(plan);
}
