/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sweeps in slices: random failures and repairs on several topologies, and after each slice what
 * packets must never see. No packet goes round in circles. A host that the old routes reached, and
 * the new ones reach, is reached in between. A group that no failure touched has all that is sent
 * to it. Flows are what a fresh walk finds. In the end all is as after a sweep in one piece.
 */
#include <harness.h>

#include "base/util.h"
#include "fabric/agents/link.h"
#include "fabric/forwarding/mcast_path.h"
#include "fabric/testing.h"
#include "subnet/sm.h"

#define MAX_HOSTS 64
#define MLID      0xC005
#define GROUP     6
#define N_FLOWS   32
#define STEPS     40
#define SLICE     60  /* table entries: a root at a time; */
#define LONG      500 /* or so many, where a sweep is much more than tables */
#define SLICES    256

/* Fat trees of two and three levels, and random graphs. */
static const struct {
	unsigned topology;
	const char *routing;
} rows[] = { { 0, "minhop" }, { 1, "minhop" }, { 2, "minhop" }, { 3, "minhop" }, { 4, "minhop" },
	     { 5, "minhop" }, { 0, "updn" },   { 1, "updn" },   { 3, "updn" },   { 4, "updn" },
	     { 0, "ftree" },  { 1, "ftree" },  { 2, "ftree" },  { 0, "dfsssp" }, { 1, "dfsssp" },
	     { 2, "dfsssp" }, { 3, "dfsssp" }, { 4, "dfsssp" }, { 5, "dfsssp" } };

struct env {
	struct fabric *f;
	struct sm *sm;
	unsigned n, seed, slice;
	struct sm_member member[GROUP];
	struct fabric_flow *flow[N_FLOWS];
	bool reached[MAX_HOSTS];
};

static void no_wake(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
}

static unsigned roll(struct env *e, unsigned n)
{
	return (unsigned)rand_r(&e->seed) % n;
}

/* Hosts 0 to n-1 in turn on the switches of a random graph. */
static void plan_random(struct fabric_plan *plan, unsigned seed)
{
	unsigned sw[12], used[12] = { 0 };

	for (unsigned i = 0; i < ARRAY_SIZE(sw); i++)
		sw[i] = (unsigned)fabric_plan_add_switch(plan, NULL, 36);
	for (unsigned i = 0; i < 40; i++) {
		unsigned a = i < 11 ? i + 1 : (unsigned)rand_r(&seed) % 12;
		unsigned b =
		        i < 11 ? (unsigned)rand_r(&seed) % (i + 1) : (unsigned)rand_r(&seed) % 12;

		if (a != b)
			assert_int_equal(
			        fabric_plan_link(plan, (struct fabric_plan_end){ sw[a], ++used[a] },
			                         (struct fabric_plan_end){ sw[b], ++used[b] },
			                         FABRIC_RATE_DEFAULT),
			        0);
	}
	for (unsigned i = 0; i < 24; i++) {
		int host = fabric_plan_add_host(plan, NULL);
		int hca = fabric_plan_add_hca(plan, (unsigned)host, 1);

		assert_int_equal(
		        fabric_plan_link(plan, (struct fabric_plan_end){ sw[i % 9], ++used[i % 9] },
		                         (struct fabric_plan_end){ (unsigned)hca, 1 },
		                         FABRIC_RATE_DEFAULT),
		        0);
	}
}

static struct env *start(unsigned topology, const char *routing)
{
	const struct fabric_fat_tree tree = { topology == 0 ? 2 : 3, topology == 0 ? 6 : 4, 0 };
	const struct sm_ops ops = { .wake = no_wake };
	struct env *e = calloc(1, sizeof(*e));
	const struct ib_gid mgid = testing_mgid(1);
	struct shm_settings settings;
	struct fabric_plan plan;
	char why[160];
	int node;

	fabric_settings_default(&settings);
	assert_int_equal(fabric_settings_set(&settings, "routing", routing, false), 0);
	fabric_plan_init(&plan);
	if (topology < 2)
		assert_int_equal(fabric_plan_fat_tree(&plan, &tree, why, sizeof(why)), 0);
	else
		plan_random(&plan, topology);
	assert_int_equal(fabric_plan_finish(&plan, &node, why, sizeof(why)), 0);
	e->f = testing_build(&plan, &settings);
	e->seed = topology + 1;
	e->slice = strcmp(routing, "dfsssp") != 0 ? SLICE : LONG;
	e->n = e->f->n_hca_ports;
	assert_in_range(e->n, GROUP, MAX_HOSTS);
	assert_int_equal(sm_new(&e->sm, e->f, &ops), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	for (unsigned i = 0; i < e->n; i++)
		testing_qp(e->f, 10 + i, e->f->hca_port[i]);
	for (unsigned i = 0; i < GROUP; i++) {
		unsigned host = i * e->n / GROUP;

		e->member[i] = (struct sm_member){ e->f->hca_port[host], true };
		assert_int_equal(fabric_attach_add(e->f, e->f->hca_port[host]->node->hca, 10 + host,
		                                   &mgid, MLID),
		                 0);
	}
	assert_int_equal(sm_route_mcast(e->sm, MLID, e->member, GROUP), 0);
	for (unsigned i = 0; i < N_FLOWS; i++) {
		unsigned from = i * 7 % e->n, to = i * 11 % e->n;

		e->flow[i] =
		        i % 4 ? testing_flow(e->f, e->f->hca_port[from], 10 + from,
		                             e->f->hca_port[to]->lid, NULL)
		              : testing_flow(e->f, e->member[i % GROUP].port,
		                             10 + e->member[i % GROUP].port->index, MLID, &mgid);
	}
	return e;
}

static void stop(struct env *e)
{
	sm_free(e->sm);
	fabric_free(e->f);
	free(e);
}

/* Follows the tables. Whether packets get there; fails if they go round in circles. */
static bool delivers(const struct env *e, const struct fabric_port *from, uint16_t lid)
{
	const struct fabric_port *at = from;

	if (from->lid == lid)
		return true;
	for (unsigned hops = 0; fabric_port_carries(at); hops++) {
		uint8_t out;

		assert_in_range(hops, 0, e->f->n_switches);
		at = at->peer;
		if (at->node->type == FABRIC_HCA)
			return at->lid == lid;
		out = fabric_lft_get(at->node, lid);
		if (!out || out > at->node->n_ports)
			return false;
		at = &at->node->port[out];
	}
	return false;
}

static void note_pairs(const struct env *e, bool pair[MAX_HOSTS][MAX_HOSTS])
{
	for (unsigned a = 0; a < e->n; a++)
		for (unsigned b = 0; b < e->n; b++)
			pair[a][b] = delivers(e, e->f->hca_port[a], e->f->hca_port[b]->lid);
}

static void on_reached(void *arg, struct fabric_port *hca)
{
	((struct env *)arg)->reached[hca->index] = true;
}

/* Whether what member @i sends reaches all members. */
static bool reaches_group(struct env *e, unsigned i)
{
	struct fabric_walk w = { .hop = testing_no_hop, .reached = on_reached, .arg = e };
	bool all = true;

	memset(e->reached, 0, sizeof(e->reached));
	fabric_walk_multicast(e->f, e->member[i].port, MLID, &w);
	for (unsigned k = 0; k < GROUP; k++)
		all &= e->reached[e->member[k].port->index];
	return all;
}

/* The receivers that flows list are those that a fresh walk finds, unless some flows have yet to
 * follow. */
static void assert_flows_follow(struct env *e)
{
	uint32_t n[N_FLOWS], none = 0;

	if (!fabric_flow_follow(e->f, &none, 1))
		return;
	for (unsigned i = 0; i < N_FLOWS; i++)
		n[i] = testing_receivers(e->f, e->flow[i]);
	fabric_flow_all_changed(e->f);
	for (unsigned i = 0; i < N_FLOWS; i++)
		assert_int_equal(testing_receivers(e->f, e->flow[i]), n[i]);
}

/* A link or a switch fails, or returns; nothing else is done. */
static void change(struct env *e)
{
	struct fabric_node *sw = sm_switch(e->sm, roll(e, e->f->n_switches));
	struct fabric_port *p = &sw->port[1 + roll(e, sw->n_ports)];

	if (!roll(e, 6)) {
		fabric_switch_set(e->f, sw, sw->dead);
		return;
	}
	if (p->peer)
		fabric_link_set(e->f, p, p->cut);
}

/* Links alone: they may, in mid-sweep. */
static void change_link(struct env *e)
{
	struct fabric_node *sw = sm_switch(e->sm, roll(e, e->f->n_switches));
	struct fabric_port *p = &sw->port[1 + roll(e, sw->n_ports)];

	if (p->peer)
		fabric_link_set(e->f, p, p->cut);
}

static void assert_lids_are_kept(const struct env *e, const uint16_t *lid)
{
	for (unsigned i = 0; i < e->n; i++)
		assert_int_equal(e->f->hca_port[i]->lid, lid[i]);
}

static void sweep_checked(struct env *e)
{
	static bool before[MAX_HOSTS][MAX_HOSTS], middle[SLICES][MAX_HOSTS][MAX_HOSTS],
	        after[MAX_HOSTS][MAX_HOSTS];
	bool group[GROUP];
	unsigned slices = 0;
	uint32_t budget;
	bool done;

	note_pairs(e, before);
	for (unsigned i = 0; i < GROUP; i++)
		group[i] = reaches_group(e, i);
	sm_sweep_begin(e->sm);
	do {
		budget = e->slice;
		done = sm_sweep_step(e->sm, &budget);
		note_pairs(e, slices < SLICES ? middle[slices++] : after);
		for (unsigned i = 0; i < GROUP; i++)
			assert_true(!group[i] || reaches_group(e, i));
		assert_flows_follow(e);
	} while (!done);
	assert_int_equal(sm_sweep_result(e->sm), 0);
	assert_in_range(slices, 2, SLICES - 1);
	note_pairs(e, after);
	for (unsigned s = 0; s < slices; s++)
		for (unsigned a = 0; a < e->n; a++)
			for (unsigned b = 0; b < e->n; b++)
				assert_true(!before[a][b] || !after[a][b] || middle[s][a][b]);
}

CASE(whoever_is_reached_before_and_after_is_reached_in_mid_sweep)
{
	for (size_t i = 0; EACH_NAMED(i, rows, routing); i++) {
		struct env *e = start(rows[i].topology, rows[i].routing);

		for (unsigned step = 0; step < STEPS; step++) {
			change(e);
			sweep_checked(e);
			if (sm_mcast_is_stale(e->sm, MLID))
				sm_route_mcast(e->sm, MLID, e->member, GROUP);
		}
		stop(e);
	}
}

/* The result is that of another sweep in one piece, or of another SM that begins now. */
CASE(a_sweep_in_slices_ends_as_one_in_one_piece)
{
	for (size_t i = 0; EACH_NAMED(i, rows, routing); i++) {
		struct env *a = start(rows[i].topology, rows[i].routing);
		struct env *b = start(rows[i].topology, rows[i].routing);

		for (unsigned step = 0; step < STEPS; step++) {
			uint32_t budget = a->slice;

			change(a);
			change(b);
			sm_sweep_begin(a->sm);
			while (!sm_sweep_step(a->sm, &budget))
				budget = a->slice;
			assert_int_equal(sm_sweep(b->sm), 0);
			for (unsigned k = 0; k < a->f->n_switches; k++)
				for (unsigned lid = 1; lid < 200; lid++)
					assert_int_equal(
					        fabric_lft_get(sm_switch(a->sm, k), (uint16_t)lid),
					        fabric_lft_get(sm_switch(b->sm, k), (uint16_t)lid));
		}
		stop(a);
		stop(b);
	}
}

/* Links fail and return in mid-sweep, a sweep begins anew before the last one was done, somebody
 * writes tables: the sweep after all that finds everything in order. */
CASE(changes_in_mid_sweep_are_the_next_sweeps)
{
	for (size_t row = 0; EACH_NAMED(row, rows, routing); row++) {
		struct env *e = start(rows[row].topology, rows[row].routing);
		static bool pair[MAX_HOSTS][MAX_HOSTS];
		uint16_t lid[MAX_HOSTS];

		for (unsigned i = 0; i < e->n; i++)
			lid[i] = e->f->hca_port[i]->lid;
		for (unsigned step = 0; step < 4 * STEPS; step++) {
			uint32_t budget = 1 + roll(e, e->slice);

			if (!roll(e, 20))
				sm_sweep_begin(e->sm);
			if (!roll(e, 8))
				change_link(e);
			if (!roll(e,
			          8)) /* a LID above all that are in use, so that the table grows */
				fabric_lft_set(sm_switch(e->sm, roll(e, e->f->n_switches)),
				               (uint16_t)(300 + 64 * step), 1);
			if (sm_sweep_step(e->sm, &budget))
				sm_sweep_begin(e->sm);
		}
		for (unsigned i = 0; i < e->f->n_switches; i++)
			for (unsigned k = 1; k <= sm_switch(e->sm, i)->n_ports; k++)
				if (sm_switch(e->sm, i)->port[k].cut)
					fabric_link_set(e->f, &sm_switch(e->sm, i)->port[k], true);
		assert_int_equal(sm_sweep(e->sm), 0);
		note_pairs(e, pair);
		for (unsigned a = 0; a < e->n; a++)
			for (unsigned b = 0; b < e->n; b++)
				assert_true(pair[a][b]);
		assert_lids_are_kept(e, lid);
		assert_flows_follow(e);
		stop(e);
	}
}

/* A sweep that is given up has seen changes that the next one does not see as changes. */
CASE(a_sweep_that_begins_anew_does_what_the_last_one_left)
{
	static const char *const routing[] = { "minhop", "updn", "ftree", "dfsssp" };
	static bool pair[MAX_HOSTS][MAX_HOSTS];

	for (unsigned i = 0; EACH_ROW(i, routing); i++) {
		struct env *e = start(0, routing[i]);

		for (unsigned k = 0; k < 20; k++) {
			struct fabric_port *host = e->f->hca_port[k % e->n];
			struct fabric_port *link =
			        &host->peer->node->port[host->peer->node->n_ports];
			uint32_t budget = 1;

			assert_int_equal(fabric_link_set(e->f, host, false), 0);
			assert_int_equal(sm_sweep(e->sm), 0);
			assert_int_equal(fabric_link_set(e->f, link, false), 0);
			sm_sweep_begin(e->sm);
			for (unsigned n = 0; n < 1 + k / 4; n++, budget = 1)
				sm_sweep_step(e->sm, &budget);
			assert_int_equal(fabric_link_set(e->f, host, true), 0);
			assert_int_equal(sm_sweep(e->sm), 0);
			note_pairs(e, pair);
			for (unsigned a = 0; a < e->n; a++)
				for (unsigned b = 0; b < e->n; b++)
					assert_true(pair[a][b]);
			assert_int_equal(fabric_link_set(e->f, link, true), 0);
			assert_int_equal(sm_sweep(e->sm), 0);
		}
		stop(e);
	}
}

/* LIDs that a program's SubnSet(PortInfo) may set: a LID beyond all tables, a LID that another port
 * has, no LID, more LIDs than there is room for, another LID for a switch. */
enum lid_change { BEYOND, TWICE, NONE, MANY, OF_SWITCH, N_LID_CHANGES };

static void change_lid(struct env *e, enum lid_change what, unsigned i)
{
	struct fabric_port *p = e->f->hca_port[i % e->n];

	switch (what) {
	case BEYOND:
		p->lid = 0x3000;
		break;
	case TWICE:
		p->lid = e->f->hca_port[i * 5 % e->n]->lid;
		break;
	case NONE:
		p->lid = 0;
		break;
	case OF_SWITCH:
		sm_switch(e->sm, i % e->f->n_switches)->port[0].lid = 0x2000;
		break;
	default:
		for (unsigned k = 0; k < e->n; k++) {
			e->f->hca_port[k]->lid = (uint16_t)(0x4000 + 128 * k);
			e->f->hca_port[k]->lmc = SM_MAX_LMC;
		}
	}
}

/* Whether all slices but the first @k were left for after the change. */
static bool sweep_with_lid_change(struct env *e, enum lid_change what, unsigned k)
{
	uint32_t budget = k ? e->slice : 1; /* 1: a phase */
	bool done = false, in_mid_sweep;

	sm_sweep_begin(e->sm);
	for (unsigned slices = 0; !done && slices <= k; slices++, budget = e->slice)
		done = sm_sweep_step(e->sm, &budget);
	in_mid_sweep = !done;
	change_lid(e, what, k);
	for (; !done; budget = 300000)
		done = sm_sweep_step(e->sm, &budget);
	assert_int_equal(sm_sweep_result(e->sm), 0);
	return in_mid_sweep;
}

CASE(lids_that_change_in_mid_sweep_are_the_next_sweeps)
{
	static const char *const routing[] = { "minhop", "updn", "ftree", "dfsssp" };
	static bool pair[MAX_HOSTS][MAX_HOSTS];

	for (unsigned i = 0; i < ARRAY_SIZE(routing) * N_LID_CHANGES; i++) {
		struct env *e = start(1, routing[i / N_LID_CHANGES]);
		struct fabric_node *last = sm_switch(e->sm, e->f->n_switches - 1);

		for (unsigned k = 0;; k++) {
			/* all paths are chosen anew */
			assert_int_equal(fabric_link_set(e->f, &last->port[1], false), 0);
			assert_int_equal(sm_sweep(e->sm), 0);
			assert_int_equal(fabric_link_set(e->f, &last->port[1], true), 0);
			if (!sweep_with_lid_change(e, i % N_LID_CHANGES, k))
				break;
			assert_int_equal(sm_sweep(e->sm), 0);
			note_pairs(e, pair);
			for (unsigned a = 0; a < e->n; a++)
				for (unsigned b = 0; b < e->n; b++)
					assert_true(pair[a][b]);
		}
		stop(e);
	}
}

static unsigned active_ports(const struct env *e)
{
	unsigned n = 0;

	for (unsigned i = 0; i < e->f->n_nodes; i++)
		for (unsigned k = 1; k <= e->f->node[i]->n_ports; k++)
			n += e->f->node[i]->port[k].state == IB_PORT_ACTIVE;
	return n;
}

CASE(ports_come_up_in_slices)
{
	struct env *e = start(0, "minhop");
	unsigned before = active_ports(e), n;
	bool done;

	for (unsigned i = 0; i < e->n; i++)
		assert_int_equal(fabric_link_set(e->f, e->f->hca_port[i], false), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	for (unsigned i = 0; i < e->n; i++)
		assert_int_equal(fabric_link_set(e->f, e->f->hca_port[i], true), 0);
	n = active_ports(e);
	sm_sweep_begin(e->sm);
	do {
		uint32_t budget = 1;

		done = sm_sweep_step(e->sm, &budget);
		assert_in_range(active_ports(e), n, n + 2);
		n = active_ports(e);
	} while (!done);
	assert_int_equal(sm_sweep_result(e->sm), 0);
	assert_int_equal(n, before);
	assert_flows_follow(e);
	stop(e);
}
