/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the tests of unicast routing: whole topologies with a subnet manager, and what the tables
 * say. Each test program includes it once. Calls that must work stop the test if they do not.
 */
#ifndef SUBNET_TESTING_ROUTES_H
#define SUBNET_TESTING_ROUTES_H

#include "base/util.h"
#include "fabric/agents/link.h"
#include "fabric/testing.h"
#include "subnet/sm.h"

#define FAR        UINT16_MAX
#define MAX_SWITCH 128
#define CHANNELS   (MAX_SWITCH * 256)

struct env {
	struct fabric *f;
	struct sm *sm;
};

static UNUSED void no_wake(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
}

/* Builds it, and the end of the plan. */
static UNUSED struct env *start_lmc(struct fabric_plan *plan, const char *routing, const char *lmc)
{
	struct env *e = calloc(1, sizeof(*e));
	const struct sm_ops ops = { .wake = no_wake };
	struct shm_settings settings;
	char why[160];
	int node;

	fabric_settings_default(&settings);
	assert_int_equal(fabric_settings_set(&settings, "routing", routing, false), 0);
	assert_int_equal(fabric_settings_set(&settings, "lmc", lmc, false), 0);
	assert_int_equal(fabric_plan_finish(plan, &node, why, sizeof(why)), 0);
	e->f = testing_build(plan, &settings);
	assert_in_range(e->f->n_switches, 1, MAX_SWITCH);
	assert_int_equal(sm_new(&e->sm, e->f, &ops), 0);
	assert_int_equal(sm_sweep(e->sm), 0);
	return e;
}

static UNUSED struct env *start(struct fabric_plan *plan, const char *routing)
{
	return start_lmc(plan, routing, "0");
}

static UNUSED void stop(struct env *e)
{
	sm_free(e->sm);
	fabric_free(e->f);
	free(e);
}

static UNUSED struct env *start_fat_tree(unsigned levels, unsigned radix, const char *routing)
{
	const struct fabric_fat_tree shape = { levels, radix, 0 };
	struct fabric_plan plan;
	char why[160];

	fabric_plan_init(&plan);
	assert_int_equal(fabric_plan_fat_tree(&plan, &shape, why, sizeof(why)), 0);
	return start(&plan, routing);
}

/* ---- topologies: switches 0 to n - 1, each with hosts at its first ports ---- */

struct net {
	struct fabric_plan plan;
	unsigned n, n_hosts;
	unsigned sw[MAX_SWITCH], used[MAX_SWITCH];
};

static UNUSED void net_init(struct net *net, unsigned n, unsigned n_hosts)
{
	*net = (struct net){ .n = n, .n_hosts = n_hosts };
	fabric_plan_init(&net->plan);
	for (unsigned i = 0; i < n; i++) {
		net->sw[i] = (unsigned)fabric_plan_add_switch(&net->plan, NULL, 36);
		for (unsigned k = 0; k < n_hosts; k++) {
			int host = fabric_plan_add_host(&net->plan, NULL);
			int hca = fabric_plan_add_hca(&net->plan, (unsigned)host, 1);

			assert_int_equal(
			        fabric_plan_link(
			                &net->plan,
			                (struct fabric_plan_end){ net->sw[i], ++net->used[i] },
			                (struct fabric_plan_end){ (unsigned)hca, 1 },
			                FABRIC_RATE_DEFAULT),
			        0);
		}
	}
}

static UNUSED void net_link(struct net *net, unsigned a, unsigned b)
{
	const struct fabric_plan_end x = { net->sw[a], ++net->used[a] };
	const struct fabric_plan_end y = { net->sw[b], ++net->used[b] };

	assert_int_equal(fabric_plan_link(&net->plan, x, y, FABRIC_RATE_DEFAULT), 0);
}

static UNUSED struct env *start_ring(unsigned n, const char *routing)
{
	struct net net;

	net_init(&net, n, 1);
	for (unsigned i = 0; i < n; i++)
		net_link(&net, i, (i + 1) % n);
	return start(&net.plan, routing);
}

static UNUSED struct env *start_torus(unsigned x, unsigned y, unsigned z, const char *routing)
{
	struct net net;

	net_init(&net, x * y * z, 2);
	for (unsigned i = 0; i < net.n; i++) {
		unsigned a = i % x, b = i / x % y, c = i / x / y;

		if (x > 1)
			net_link(&net, i, (a + 1) % x + b * x + c * x * y);
		if (y > 1)
			net_link(&net, i, a + (b + 1) % y * x + c * x * y);
		if (z > 1)
			net_link(&net, i, a + b * x + (c + 1) % z * x * y);
	}
	return start(&net.plan, routing);
}

static UNUSED unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 16 & 0x7FFF;
}

/* A tree, so that all switches are connected, and half as many more links, some parallel. */
static UNUSED struct env *start_random(unsigned seed, const char *routing)
{
	unsigned n = 3 + next_random(&seed) % 30;
	struct net net;

	net_init(&net, n, 1);
	for (unsigned i = 1; i < n; i++)
		net_link(&net, i, next_random(&seed) % i);
	for (unsigned i = 0; i < n / 2 + 1; i++) {
		unsigned a = next_random(&seed) % n, b = next_random(&seed) % n;

		if (a != b && net.used[a] < 36 && net.used[b] < 36)
			net_link(&net, a, b);
	}
	return start(&net.plan, routing);
}

/* ---- what the tables say ---- */

static UNUSED struct fabric_port *out_port(struct fabric_node *sw, uint16_t lid)
{
	uint8_t out = fabric_lft_get(sw, lid);

	return out && out <= sw->n_ports ? &sw->port[out] : NULL;
}

/* The next switch after @sw towards @lid, or NULL. */
static UNUSED struct fabric_node *next_switch(struct fabric_node *sw, uint16_t lid)
{
	struct fabric_port *out = out_port(sw, lid);

	if (!out || !fabric_port_carries(out) || out->peer->node->type != FABRIC_SWITCH)
		return NULL;
	return out->peer->node;
}

/* How many links between switches it crosses to @root, or FAR. */
static UNUSED unsigned path_length(struct fabric_node *sw, const struct fabric_node *root,
                                   uint16_t lid)
{
	unsigned n = 0;

	for (; sw != root; n++)
		if (n > MAX_SWITCH || !(sw = next_switch(sw, lid)))
			return FAR;
	return n;
}

static UNUSED void distances(const struct env *e, const struct fabric_node *root, unsigned *hops)
{
	bool again = true;

	for (unsigned i = 0; i < e->f->n_switches; i++)
		hops[i] = FAR;
	hops[root->index] = 0;
	while (again) {
		again = false;
		for (unsigned i = 0; i < e->f->n_switches; i++) {
			const struct fabric_node *sw = sm_switch(e->sm, i);

			for (unsigned k = 1; k <= sw->n_ports; k++) {
				const struct fabric_port *p = sw->port[k].peer;

				if (!p || p->node->type != FABRIC_SWITCH ||
				    !fabric_port_carries(&sw->port[k]) ||
				    hops[p->node->index] + 1 >= hops[i])
					continue;
				hops[i] = hops[p->node->index] + 1;
				again = true;
			}
		}
	}
}

/* From every switch every host is as near as the links allow. */
static UNUSED void assert_shortest(const struct env *e)
{
	unsigned hops[MAX_SWITCH];

	for (unsigned i = 0; i < e->f->n_hca_ports; i++) {
		const struct fabric_port *hca = e->f->hca_port[i];

		distances(e, hca->peer->node, hops);
		for (unsigned s = 0; s < e->f->n_switches; s++)
			assert_int_equal(
			        path_length(sm_switch(e->sm, s), hca->peer->node, hca->lid),
			        hops[s]);
	}
}

static UNUSED void assert_all_reached(const struct env *e)
{
	for (unsigned i = 0; i < e->f->n_hca_ports; i++)
		for (unsigned k = 0; k < e->f->n_hca_ports; k++) {
			const struct fabric_port *to = e->f->hca_port[k];

			assert_int_not_equal(
			        path_length(e->f->hca_port[i]->peer->node, to->peer->node, to->lid),
			        FAR);
		}
}

/* Hosts that links connect reach each other. */
static UNUSED void assert_connected_are_reached(const struct env *e)
{
	unsigned hops[MAX_SWITCH];

	for (unsigned i = 0; i < e->f->n_hca_ports; i++) {
		const struct fabric_port *to = e->f->hca_port[i];

		distances(e, to->peer->node, hops);
		for (unsigned k = 0; k < e->f->n_hca_ports; k++) {
			struct fabric_node *from = e->f->hca_port[k]->peer->node;

			if (hops[from->index] != FAR)
				assert_int_not_equal(path_length(from, to->peer->node, to->lid),
				                     FAR);
		}
	}
}

/* The @n-th port that leads to a switch. */
static UNUSED struct fabric_port *nth_link(const struct env *e, unsigned n)
{
	for (;;) {
		for (unsigned s = 0; s < e->f->n_switches; s++) {
			struct fabric_node *sw = sm_switch(e->sm, s);

			for (unsigned k = 1; k <= sw->n_ports; k++) {
				struct fabric_port *p = &sw->port[k];

				if (p->peer && p->peer->node->type == FABRIC_SWITCH && !n--)
					return p;
			}
		}
	}
}

struct tables {
	uint8_t out[MAX_SWITCH][1024];
};

static UNUSED struct tables *remember(const struct env *e)
{
	struct tables *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	for (unsigned s = 0; s < e->f->n_switches; s++)
		for (unsigned lid = 1; lid < 1024; lid++)
			t->out[s][lid] = fabric_lft_get(sm_switch(e->sm, s), (uint16_t)lid);
	return t;
}

static UNUSED void assert_same_tables(const struct env *e, const struct tables *t)
{
	struct tables *now = remember(e);

	assert_memory_equal(now, t, sizeof(*t));
	free(now);
}

#endif
