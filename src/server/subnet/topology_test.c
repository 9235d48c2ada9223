/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fabrics of all shapes that `umbel up` builds, with the embedded subnet manager: hosts connected
 * by cables reach each other, by unicast and as a multicast group; others do not.
 */
#include <harness.h>

#include "fabric/testing.h"
#include "fabric/plan/topology_file.h"
#include "subnet/sm.h"

#define EXAMPLES "/usr/share/doc/ibsim-utils/net-examples/"
#define MLID     0xC003

struct env {
	struct fabric *f;
	struct sm *sm;
	unsigned *island; /* by port index */
	unsigned *reached;
};

static void no_wake(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
}

/* Marks what hangs on @p by cables, not by tables. */
static void mark_island(struct env *e, const struct fabric_port *p, unsigned island, bool *seen)
{
	const struct fabric_node *sw;

	if (!p)
		return;
	if (p->node->type == FABRIC_HCA) {
		e->island[p->index] = island;
		return;
	}
	sw = p->node;
	if (seen[sw->index])
		return;
	seen[sw->index] = true;
	for (unsigned k = 1; k <= sw->n_ports; k++)
		mark_island(e, sw->port[k].peer, island, seen);
}

static struct env *start(struct fabric_plan *plan)
{
	struct env *e = calloc(1, sizeof(*e));
	const struct sm_ops ops = { .wake = no_wake };
	struct shm_settings settings;
	bool *seen;

	fabric_settings_default(&settings);
	e->f = testing_build(plan, &settings);
	e->island = calloc(e->f->n_hca_ports, sizeof(*e->island));
	e->reached = calloc(e->f->n_hca_ports, sizeof(*e->reached));
	seen = calloc(e->f->n_switches + 1, sizeof(*seen));
	assert_true(e->island && e->reached && seen);
	for (unsigned i = 0; i < e->f->n_hca_ports; i++) {
		if (e->island[i])
			continue;
		mark_island(e, e->f->hca_port[i]->peer, i + 1, seen);
		e->island[i] = i + 1;
	}
	free(seen);
	assert_int_equal(sm_new(&e->sm, e->f, &ops), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	return e;
}

static void stop(struct env *e)
{
	sm_free(e->sm);
	fabric_free(e->f);
	free(e->island);
	free(e->reached);
	free(e);
}

static struct env *start_tree(unsigned hosts)
{
	struct fabric_plan plan;

	fabric_plan_init(&plan);
	assert_int_equal(fabric_plan_tree(&plan, hosts), 0);
	return start(&plan);
}

static struct env *start_fat_tree(unsigned levels, unsigned radix, unsigned hosts)
{
	const struct fabric_fat_tree shape = { levels, radix, hosts };
	struct fabric_plan plan;
	char why[160];

	fabric_plan_init(&plan);
	assert_int_equal(fabric_plan_fat_tree(&plan, &shape, why, sizeof(why)), 0);
	return start(&plan);
}

static struct env *start_text(const char *text, size_t bytes)
{
	const struct fabric_topology_file file = { .name = "net", .text = text, .bytes = bytes };
	struct fabric_plan plan;
	char why[256] = "";

	fabric_plan_init(&plan);
	if (fabric_topology_parse(&plan, &file, why, sizeof(why)))
		fail_msg("%s", why);
	return start(&plan);
}

static struct env *start_example(const char *name)
{
	char path[128], text[8192];
	struct env *e;
	size_t bytes;
	FILE *file;

	snprintf(path, sizeof(path), EXAMPLES "%s", name);
	file = fopen(path, "r");
	if (!file)
		fail_msg("%s: %s (package ibsim-utils)", path, strerror(errno));
	bytes = fread(text, 1, sizeof(text), file);
	fclose(file);
	e = start_text(text, bytes);
	return e;
}

static void on_reached(void *arg, struct fabric_port *hca)
{
	((struct env *)arg)->reached[hca->index]++;
}

static void assert_pair(struct env *e, unsigned from, unsigned to)
{
	struct fabric_walk w = { .hop = testing_no_hop, .reached = on_reached, .arg = e };
	const struct fabric_port *dest = e->f->hca_port[to];
	bool joined = dest->peer && e->island[from] == e->island[to];

	e->reached[to] = 0;
	if (dest->lid)
		fabric_walk_unicast(e->f, e->f->hca_port[from], dest->lid, &w);
	if (e->reached[to] != joined)
		fail_msg("port %u reaches port %u %u times", from, to, e->reached[to]);
}

/* From each port to every @step-th. */
static void assert_all_pairs(struct env *e, unsigned step)
{
	for (unsigned from = 0; from < e->f->n_hca_ports; from++)
		for (unsigned to = from % step; to < e->f->n_hca_ports; to += step)
			assert_pair(e, from, to);
}

/* All ports join; each port gets the packets of every @step-th port of its island once. */
static void assert_multicast(struct env *e, unsigned step)
{
	struct fabric_walk w = { .hop = testing_no_hop, .reached = on_reached, .arg = e };
	unsigned n = e->f->n_hca_ports;
	struct sm_member *m = calloc(n, sizeof(*m));

	assert_non_null(m);
	for (unsigned i = 0; i < n; i++)
		m[i] = (struct sm_member){ .port = e->f->hca_port[i], .receives = true };
	assert_int_equal(sm_route_mcast(e->sm, MLID, m, n), 0);
	for (unsigned from = 0; from < n; from += step) {
		memset(e->reached, 0, n * sizeof(*e->reached));
		fabric_walk_multicast(e->f, e->f->hca_port[from], MLID, &w);
		for (unsigned to = 0; to < n; to++)
			if (e->reached[to] !=
			    (e->f->hca_port[to]->peer && e->island[from] == e->island[to]))
				fail_msg("port %u gets %u copies from port %u", to, e->reached[to],
				         from);
	}
	free(m);
}

/* ---- shapes ---- */

CASE(all_hosts_of_a_tree_reach_each_other)
{
	static const unsigned hosts[] = { 1, 36, 37, 200 };

	for (size_t i = 0; EACH_ROW(i, hosts); i++) {
		struct env *e = start_tree(hosts[i]);

		assert_all_pairs(e, 1);
		assert_multicast(e, 1);
		stop(e);
	}
}

CASE(all_hosts_of_a_fat_tree_reach_each_other)
{
	static const unsigned rows[][3] = {
		{ 2, 2, 0 }, { 2, 8, 0 }, { 2, 8, 21 }, { 2, 36, 0 },
		{ 3, 2, 0 }, { 3, 8, 0 }, { 3, 8, 37 }, { 3, 8, 1 },
	};

	for (size_t i = 0; EACH_ROW(i, rows); i++) {
		struct env *e = start_fat_tree(rows[i][0], rows[i][1], rows[i][2]);

		assert_all_pairs(e, 1);
		assert_multicast(e, 7);
		stop(e);
	}
}

CASE(the_largest_fat_tree_is_routed)
{
	struct env *e = start_fat_tree(3, 24, 0);

	assert_int_equal(e->f->n_hca_ports, 3456);
	assert_all_pairs(e, 97);
	assert_multicast(e, 500);
	stop(e);
}

CASE(the_examples_of_ibsim_are_routed)
{
	static const struct {
		const char *name;
		unsigned hosts, ports, switches;
	} rows[] = {
		{ "net", 2, 4, 2 },
		{ "net.1", 2, 4, 1 },
		{ "net.2sw2path", 2, 4, 2 },
		{ "net.2sw2path4hca", 4, 8, 2 },
		{ "net.2sw2path4hca2port", 2, 4, 2 },
	};

	for (size_t i = 0; EACH_ROW(i, rows); i++) {
		struct env *e = start_example(rows[i].name);

		assert_int_equal(e->f->n_hosts, rows[i].hosts);
		assert_int_equal(e->f->n_hca_ports, rows[i].ports);
		assert_int_equal(e->f->n_switches, rows[i].switches);
		assert_all_pairs(e, 1);
		assert_multicast(e, 1);
		stop(e);
	}
}

/* Loops, parallel links, two islands, HCAs back to back, and switches for nothing. */
static const char odd[] = "Switch 8 \"a\"\n[1] \"b\"[1]\n[2] \"b\"[2]\n[3] \"c\"[1]\n"
                          "[4] \"a\"[5]\n[5] \"a\"[4]\n[6] \"h1\"[1]\n[7] \"h1\"[2]\n"
                          "Switch 8 \"b\"\n[3] \"c\"[2]\n[4] \"h2\"[1]\n"
                          "Switch 8 \"c\"\n[3] \"h3\"[2]\n[4] \"d\"[1]\n"
                          "Switch 8 \"d\"\n[2] \"d\"[3]\n"
                          "Switch 8 \"e\"\n[1] \"h4\"[1]\n[2] \"h5\"[1]\n"
                          "Switch 8 \"f\"\n"
                          "Ca 2 \"h1\"\nCa 1 \"h2\"\nCa 2 \"h3\"\nCa 1 \"h4\"\nCa 1 \"h5\"\n"
                          "Ca 1 \"h6\"\n[1] \"h7\"[1]\nCa 1 \"h7\"\nCa 1 \"h8\"\n"
                          "Ca 2 \"h9\"\n[1] \"h9\"[2]\n[2] \"h9\"[1]\n";

CASE(whoever_is_joined_by_cables_reaches_each_other)
{
	struct env *e = start_text(odd, sizeof(odd) - 1);

	assert_all_pairs(e, 1);
	stop(e);
}

CASE(a_group_across_islands_stays_in_each)
{
	struct env *e;

	/* back to back there is no switch, and no table, that would tell members from others */
	static const char islands[] = "Switch 4 \"a\"\n[1] \"h1\"[1]\n[2] \"h2\"[1]\n[3] \"b\"[3]\n"
	                              "[4] \"b\"[4]\nSwitch 4 \"b\"\n[1] \"b\"[2]\n"
	                              "Switch 4 \"c\"\n[1] \"h3\"[1]\n[4] \"h4\"[2]\n"
	                              "Ca 1 \"h1\"\nCa 1 \"h2\"\nCa 1 \"h3\"\nCa 2 \"h4\"\n";

	e = start_text(islands, sizeof(islands) - 1);
	assert_multicast(e, 1);
	stop(e);
}

CASE(a_port_with_nothing_plugged_in_stays_down_without_a_lid)
{
	struct env *e = start_example("net");
	unsigned down = 0;

	for (unsigned i = 0; i < e->f->n_hca_ports; i++) {
		const struct fabric_port *p = e->f->hca_port[i];
		struct shm_port seen;

		shm_port_read(e->f->region, i, &seen);
		assert_int_equal(seen.state, p->peer ? IB_PORT_ACTIVE : IB_PORT_DOWN);
		assert_int_equal(seen.lid != 0, p->peer != NULL);
		down += !p->peer;
	}
	assert_int_equal(down, 2);
	stop(e);
}

/* Where the first HCA's first port has no cable, too. */
CASE(all_ports_know_where_the_subnet_manager_is)
{
	static const char text[] = "Ca 2 \"h1\"\n[2] \"s\"[1]\nCa 1 \"h2\"\n[1] \"s\"[2]\n"
	                           "Switch 2 \"s\"\n";
	struct env *e = start_text(text, sizeof(text) - 1);

	for (unsigned i = 1; i < 3; i++) {
		struct shm_port seen;

		shm_port_read(e->f->region, i, &seen);
		assert_int_equal(seen.sm_lid, e->f->hca_port[1]->lid);
		assert_int_not_equal(seen.sm_lid, 0);
	}
	stop(e);
}
