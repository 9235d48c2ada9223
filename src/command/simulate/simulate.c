/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of a simulated fabric: see simulate.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "fabric/agents/link.h"
#include "fabric/plan/build.h"
#include "fabric/plan/port_name.h"
#include "simulate/simulate.h"
#include "subnet/sm.h"
#include "wire/rate.h"

static_assert(LOAD_MAX_SWITCHES == FABRIC_MAX_HOPS, "a packet's way is as long in both");

/* ---- the fabric ---- */

/* Tables that are to be written later are written at once: simulate_join(). */
static void wake(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
}

static int route(struct simulation *s)
{
	const struct sm_ops ops = { .wake = wake };
	int ret = sm_new(&s->sm, s->f, &ops);

	simulate_tell(s, "routing", 0, 1);
	return ret ? ret : sm_sweep(s->sm);
}

int simulate_open(struct simulation *s, const struct fabric_shape *shape,
                  const struct shm_settings *settings, char *why, size_t len)
{
	struct fabric_plan plan;
	int ret;

	simulate_tell(s, "building", 0, 1);
	fabric_plan_init(&plan);
	ret = fabric_shape_plan(shape, &plan, why, len);
	if (!ret)
		ret = fabric_new(&s->f, &plan, settings);
	fabric_plan_fini(&plan);
	if (!ret)
		ret = fabric_shape_check_lids(s->f, why, len);
	return ret ? ret : route(s);
}

void simulate_close(struct simulation *s)
{
	simulate_pattern_fini(&s->pattern);
	load_fini(&s->net);
	credits_fini(&s->credits);
	free(s->first_link);
	free(s->link_from);
	free(s->failed);
	if (s->sm)
		sm_free(s->sm);
	if (s->f)
		fabric_free(s->f);
}

/* ---- groups ---- */

/* The members whose links are up, and hosts that only send. How many they are. */
static unsigned list_members(const struct simulation *s, const struct simulate_group *g,
                             struct sm_member *m)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < g->members.n; i++)
		m[n++] = (struct sm_member){ s->f->hca_port[g->members.host[i]], true };
	for (uint32_t i = 0; i < g->senders.n; i++)
		m[n++] = (struct sm_member){ s->f->hca_port[g->senders.host[i]], false };
	for (unsigned i = n; i-- > 0;)
		if (m[i].port->state == IB_PORT_DOWN)
			memmove(&m[i], &m[i + 1], (--n - i) * sizeof(*m));
	return n;
}

/* Routes group number @i to the first @first of its members, if that is not 0, and then to all. */
static int route_group(struct simulation *s, uint32_t i, unsigned first)
{
	const struct simulate_group *g = &s->pattern.group[i];
	unsigned all = g->members.n + g->senders.n, n;
	struct sm_member *m = calloc((size_t)all + 1, sizeof(*m));
	int ret = 0;

	if (!m)
		return -ENOMEM;
	n = list_members(s, g, m);
	if (first && first < n)
		ret = sm_route_mcast(s->sm, SIMULATE_MLID(i), m, first);
	else if (!first && n == all && !sm_mcast_is_stale(s->sm, SIMULATE_MLID(i)))
		n = all = 0; /* the tree stays */
	if (!ret && (n || all))
		ret = sm_route_mcast(s->sm, SIMULATE_MLID(i), m, n);
	free(m);
	sm_run_due(s->sm, UINT64_MAX);
	return ret;
}

/* Hosts join one after the other; the first of them decides where the tree has its core. */
int simulate_join(struct simulation *s)
{
	int ret = 0;

	for (uint32_t i = 0; i < s->pattern.n_groups && !ret; i++) {
		simulate_tell(s, "joining groups", i, s->pattern.n_groups);
		ret = i > IB_LID_MCAST_LAST - SIMULATE_MLID(0) ? -ENOSPC : route_group(s, i, 1);
	}
	return ret;
}

int simulate_reroute(struct simulation *s)
{
	int ret;

	simulate_tell(s, "routing", 0, 1);
	ret = sm_sweep(s->sm);
	for (uint32_t i = 0; i < s->pattern.n_groups && !ret; i++) {
		simulate_tell(s, "routing groups", i, s->pattern.n_groups);
		ret = route_group(s, i, 0);
	}
	return ret;
}

/* ---- failures ---- */

static int note_failed(struct simulation *s, const char *name, unsigned num)
{
	char *text;

	if (base_array_reserve(&s->failed, &s->failed_room, (size_t)s->n_failed + 1))
		return -ENOMEM;
	text = s->failed[s->n_failed++];
	if (num)
		snprintf(text, sizeof(*s->failed), "%s:%u", name, num);
	else
		snprintf(text, sizeof(*s->failed), "%s", name);
	return 0;
}

static int fail_switch(struct simulation *s, struct fabric_node *sw)
{
	int ret = sw->type == FABRIC_SWITCH ? fabric_switch_set(s->f, sw, false) : -ENOTTY;

	return ret ? ret : note_failed(s, sw->name, 0);
}

static int fail_link(struct simulation *s, struct fabric_port *p)
{
	int ret = fabric_link_set(s->f, p, false);

	return ret ? ret : note_failed(s, p->node->name, p->num);
}

int simulate_fail(struct simulation *s, const char name[static FABRIC_NAME], unsigned num)
{
	struct fabric_node *node;
	struct fabric_port *p;
	int ret;

	if (!num) {
		ret = fabric_node_named(s->f, name, &node);
		return ret ? ret : fail_switch(s, node);
	}
	ret = fabric_port_named(s->f, name, num, &p);
	return ret ? ret : fail_link(s, p);
}

/* The candidates for a failure: the switches that live, or by their first end the links between
 * them. */
struct choice {
	void **what;
	size_t n;
};

static int list_switches(const struct fabric *f, struct choice *c)
{
	c->what = calloc((size_t)f->n_nodes + 1, sizeof(*c->what));
	for (unsigned i = 0; c->what && i < f->n_nodes; i++)
		if (f->node[i]->type == FABRIC_SWITCH && !f->node[i]->dead)
			c->what[c->n++] = f->node[i];
	return c->what ? 0 : -ENOMEM;
}

static bool is_first_end(const struct fabric_port *p)
{
	return p->peer && p->peer->node->type == FABRIC_SWITCH && p->state != IB_PORT_DOWN &&
	       (p->node->index < p->peer->node->index ||
	        (p->node == p->peer->node && p->num < p->peer->num));
}

static int list_links(const struct fabric *f, struct choice *c)
{
	size_t ports = 0;

	for (unsigned i = 0; i < f->n_nodes; i++)
		ports += f->node[i]->n_ports;
	c->what = calloc(ports + 1, sizeof(*c->what));
	for (unsigned i = 0; c->what && i < f->n_nodes; i++)
		for (unsigned k = 1; f->node[i]->type == FABRIC_SWITCH && k <= f->node[i]->n_ports;
		     k++)
			if (is_first_end(&f->node[i]->port[k]))
				c->what[c->n++] = &f->node[i]->port[k];
	return c->what ? 0 : -ENOMEM;
}

/* Takes one of them out. */
static void *choose(struct choice *c, struct simulate_random *r)
{
	size_t i = simulate_random_below(r, (uint32_t)c->n);
	void *chosen = c->what[i];

	c->what[i] = c->what[--c->n];
	return chosen;
}

static int fail_some(struct simulation *s, bool links, unsigned n, struct simulate_random *r)
{
	struct choice c = { 0 };
	int ret = links ? list_links(s->f, &c) : list_switches(s->f, &c);

	if (!ret && n > c.n)
		ret = -ERANGE;
	for (unsigned i = 0; i < n && !ret; i++)
		ret = links ? fail_link(s, choose(&c, r)) : fail_switch(s, choose(&c, r));
	free(c.what);
	return ret;
}

int simulate_fail_links(struct simulation *s, unsigned n, struct simulate_random *r)
{
	return fail_some(s, true, n, r);
}

int simulate_fail_switches(struct simulation *s, unsigned n, struct simulate_random *r)
{
	return fail_some(s, false, n, r);
}

/* ---- counting ---- */

static void set_link(struct load_link *link, const struct fabric_port *p)
{
	if (!fabric_port_carries(p))
		return;
	if (p->peer->node->type == FABRIC_SWITCH) {
		link->to = p->peer->node->index;
		return;
	}
	link->to = LOAD_HOST;
	link->host = p->peer->index;
}

static int set_switch(struct load_switch *sw, const struct fabric_node *node)
{
	sw->name = node->name;
	sw->lft = node->lft;
	sw->n_lids = node->lft_end;
	if (load_set_ports(sw, node->n_ports))
		return -ENOMEM;
	for (unsigned k = 1; k <= node->n_ports; k++)
		set_link(&sw->port[k], &node->port[k]);
	return 0;
}

static int set_net(struct simulation *s)
{
	const struct fabric *f = s->f;
	int ret = load_init(&s->net, f->n_switches, f->n_ib_ports);

	for (unsigned i = 0; i < f->n_nodes && !ret; i++)
		if (f->node[i]->type == FABRIC_SWITCH)
			ret = set_switch(&s->net.sw[f->node[i]->index], f->node[i]);
	for (unsigned i = 0; i < f->n_ib_ports && !ret; i++) {
		const struct fabric_port *p = f->hca_port[i];
		struct load_host *host = &s->net.host[i];

		*host = (struct load_host){ p->node->name, p->lid, LOAD_NOWHERE, { 0 } };
		if (!fabric_port_carries(p) || p->peer->node->type != FABRIC_SWITCH)
			continue;
		host->at = p->peer->node->index;
		s->net.sw[host->at].hosts++;
	}
	return ret;
}

/* From a host whose cable leads to another host; only that one is reached. */
static void count_back_to_back(struct simulation *s, unsigned host, unsigned to)
{
	const struct fabric_port *p = s->f->hca_port[host];

	if (!p->peer || p->peer->node->type != FABRIC_HCA || !fabric_port_carries(p))
		return;
	s->net.host[host].crossed.messages++;
	s->net.sum.links[1] += p->peer->index == to;
}

static void count_all_to_all(struct simulation *s)
{
	struct load_net *net = &s->net;
	unsigned n = net->n_hosts, n_lids = 0;

	for (unsigned to = 0; to < n; to++) {
		if (to % 256 == 0)
			simulate_tell(s, "counting", to, n);
		if (!net->host[to].lid)
			continue;
		n_lids++;
		load_count(net, to);
	}
	for (unsigned i = 0; i < n; i++) {
		if (net->host[i].at != LOAD_NOWHERE)
			net->host[i].crossed.messages += n_lids - (net->host[i].lid != 0);
		else if (s->f->hca_port[i]->peer)
			for (unsigned to = 0; to < n; to++)
				if (to != i && net->host[to].lid)
					count_back_to_back(s, i, to);
	}
	net->sum.sent = (uint64_t)n * (n - 1);
}

int simulate_count(struct simulation *s)
{
	struct load_sum *sum = &s->net.sum;
	int ret = set_net(s);

	if (ret)
		return ret;
	if (s->pattern.all_to_all)
		count_all_to_all(s);
	ret = simulate_count_pairs(s);
	if (!ret)
		ret = simulate_count_groups(s);
	sum->lost = sum->sent;
	for (unsigned i = 0; i < LOAD_MAX_SWITCHES + 2; i++)
		sum->lost -= sum->links[i];
	return ret;
}

/* ---- results ---- */

static const struct fabric_port *found(const struct simulation *s, struct simulate_link *l,
                                       const struct fabric_port *from)
{
	l->from = from;
	l->crossed = *simulate_link_at(s, from);
	return from;
}

const struct fabric_port *simulate_next_link(const struct simulation *s, struct simulate_link *l)
{
	const struct fabric *f = s->f;

	while (l->host < f->n_ib_ports) {
		const struct fabric_port *p = f->hca_port[l->host++];

		if (p->peer)
			return found(s, l, p);
	}
	for (; l->sw < f->n_nodes; l->sw++, l->port = 0) {
		const struct fabric_node *node = f->node[l->sw];

		while (node->type == FABRIC_SWITCH && l->port < node->n_ports)
			if (node->port[++l->port].peer)
				return found(s, l, &node->port[l->port]);
	}
	return NULL;
}

double simulate_data_rate(const struct fabric_port *p)
{
	double nominal = wire_link_speed(p->width, p->speed) / 10.0;

	if (p->speed <= FABRIC_SPEED_QDR)
		return nominal * 8 / 10;
	return p->speed == FABRIC_SPEED_FDR ? nominal * 64 / 66 : nominal;
}

int simulate_check_size(const struct simulation *s, uint64_t bytes)
{
	return s->pattern.n_groups && bytes > IB_MTU_BYTES(s->f->settings.mtu) ? -EMSGSIZE : 0;
}

/* How many bits cross the link. */
static double bits_on(const struct simulation *s, const struct simulate_link *l, uint64_t bytes)
{
	const uint64_t mtu = IB_MTU_BYTES(s->f->settings.mtu);
	const uint64_t packets = bytes ? (bytes + mtu - 1) / mtu : 1;
	const double to_groups = (double)l->crossed.to_groups;

	return 8.0 * (((double)l->crossed.messages - to_groups) *
	                      ((double)bytes + (double)packets * SIMULATE_HEADERS) +
	              to_groups * (double)(bytes + SIMULATE_GROUP_HEADERS));
}

void simulate_time(const struct simulation *s, const struct simulate_cost *cost,
                   struct simulate_time *t)
{
	struct simulate_link l = { 0 };

	*t = (struct simulate_time){ 0 };
	while (simulate_next_link(s, &l)) {
		double rate = simulate_data_rate(l.from),
		       ns = rate > 0 ? bits_on(s, &l, cost->bytes) / rate : 0;
		bool of_host =
		        l.from->node->type == FABRIC_HCA || l.from->peer->node->type == FABRIC_HCA;

		if (of_host && ns > t->hosts_ns)
			t->hosts_ns = ns;
		if (ns > t->transfer_ns) {
			t->transfer_ns = ns;
			t->busiest = l;
		}
	}
	for (unsigned i = 0; i < LOAD_MAX_SWITCHES + 2; i++)
		if (s->net.sum.links[i])
			t->path_ns = (double)i * cost->hop_ns;
}
