/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The load of the links: by each port, how many LIDs of HCAs that some host's packets reach the
 * switch for. Called by sm_routes.c, which says in its first comment why.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "subnet/sm_routes.h"

/* The most HCAs that are plugged into one switch. */
static unsigned most_hosts(const struct sm_net *net)
{
	unsigned most = 0;

	for (unsigned i = 0; i < net->n; i++) {
		unsigned n = 0;

		for (unsigned k = 1; k <= net->sw[i]->n_ports; k++)
			n += net->sw[i]->port[k].peer &&
			     net->sw[i]->port[k].peer->node->type == FABRIC_HCA;
		most = n > most ? n : most;
	}
	return most;
}

int sm_load_init(struct sm_routes *r)
{
	const struct sm_net *net = r->net;
	struct sm_load *l = &r->load;
	unsigned n_ports = 0;

	l->left_out = SM_NOBODY;
	l->words = ((most_hosts(net) << net->f->settings.lmc) + 63) / 64;
	l->first = calloc(net->n + 1, sizeof(*l->first));
	l->reached = calloc((size_t)net->n * l->words + 1, sizeof(*l->reached));
	if (!l->first || !l->reached)
		return -ENOMEM;
	for (unsigned i = 0; i < net->n; i++) {
		l->first[i] = n_ports;
		n_ports += net->sw[i]->n_ports + 1;
	}
	l->first[net->n] = n_ports;
	l->lids = calloc(n_ports + 1, sizeof(*l->lids));
	l->link = calloc(n_ports + 1, sizeof(*l->link));
	if (!l->lids || !l->link)
		return -ENOMEM;
	for (unsigned i = 0; i < net->n; i++)
		for (unsigned k = net->first[i]; k < net->first[i + 1]; k++)
			l->link[l->first[i] + net->link[k].port] = k + 1;
	return 0;
}

void sm_load_fini(struct sm_routes *r)
{
	free(r->load.first);
	free(r->load.reached);
	free(r->load.lids);
	free(r->load.link);
}

void sm_load_clear(struct sm_routes *r)
{
	memset(r->load.lids, 0, r->load.first[r->net->n] * sizeof(*r->load.lids));
}

void sm_load_begin(struct sm_routes *r)
{
	uint64_t *reached = r->load.reached;

	for (unsigned i = 0; i < r->net->n; i++)
		for (unsigned w = 0; w < r->load.words; w++)
			*reached++ = r->net->has_hosts[i] ? UINT64_MAX : 0;
}

/* Others may have written to the tables: a load never falls below 0. */
static void add_load(struct sm_routes *r, unsigned at, unsigned port, int add)
{
	uint32_t *load = sm_load_at(r, at, port);

	if (add > 0 || *load)
		*load += (uint32_t)add;
}

/* The link by which the table of @at sends @lid, if it is on a shortest path. */
static const struct sm_link *next_link(const struct sm_routes *r, unsigned at, uint16_t lid)
{
	const struct sm_link *l = sm_link_of(r, at, fabric_lft_get(r->net->sw[at], lid));

	return l && r->hops[at] != SM_FAR && r->hops[l->to] + 1 == r->hops[at] ? l : NULL;
}

static void count_from(struct sm_routes *r, unsigned at, int add, bool also_down)
{
	for (unsigned i = 0; i < r->n_lids; i++) {
		const struct sm_link *l;

		if (!sm_load_reaches(r, at, i))
			continue;
		l = next_link(r, at, r->lid[i].lid);
		if (!l || !(l->up || also_down) || (r->updn && !sm_updn_may_go(r->updn, at, l->to)))
			continue;
		add_load(r, at, l->port, add);
		sm_load_pass(r, l->to, i);
	}
}

void sm_load_count(struct sm_routes *r, unsigned root, int add, bool also_down)
{
	sm_routes_list_lids(r, root);
	if (!r->n_lids)
		return;
	sm_routes_sort(r);
	sm_load_begin(r);
	for (unsigned i = 0; i < r->net->n; i++)
		if (r->order[i] != root)
			count_from(r, r->order[i], add, also_down);
}

/* ---- one LID ---- */

/* The switch that the packets for @lid come to after @at; SM_NOBODY: the root was the last. */
static unsigned next_switch(const struct sm_routes *r, unsigned at, uint16_t lid)
{
	const struct sm_link *l = next_link(r, at, lid);

	return l && r->hops[l->to] ? l->to : SM_NOBODY;
}

/* Looks at tables that one question may cost. On fabrics so large that it takes more, what is near
 * the root, where there is little choice, may be counted a little wrong until all is routed anew.
 */
#define LOOKS 256

static bool is_reached_by(const struct sm_routes *r, unsigned at, uint16_t lid, unsigned *looks)
{
	const struct sm_net *net = r->net;

	if (net->has_hosts[at])
		return true;
	for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
		const struct sm_link *l = &net->link[k];
		const struct fabric_port *there = net->sw[at]->port[l->port].peer;

		if (!l->up || l->to == r->load.left_out || r->hops[l->to] != r->hops[at] + 1)
			continue;
		if (!*looks)
			return true;
		--*looks;
		if (fabric_lft_get(net->sw[l->to], lid) == there->num &&
		    is_reached_by(r, l->to, lid, looks))
			return true;
	}
	return false;
}

/* Whether some host's packets for @lid reach @at by the tables. */
static bool is_reached(const struct sm_routes *r, unsigned at, uint16_t lid)
{
	unsigned looks = LOOKS;

	return is_reached_by(r, at, lid, &looks);
}

/* Adds to the loads of those after @at that are reached by no other way. */
static void follow(struct sm_routes *r, unsigned at, uint16_t lid, int add)
{
	r->load.left_out = at;
	for (unsigned x = next_switch(r, at, lid); x != SM_NOBODY && !is_reached(r, x, lid);
	     x = next_switch(r, x, lid)) {
		const struct sm_link *l = next_link(r, x, lid);

		if (l)
			add_load(r, x, l->port, add);
	}
	r->load.left_out = SM_NOBODY;
}

void sm_load_leave(struct sm_routes *r, unsigned at, unsigned i)
{
	uint64_t *bits = &r->load.reached[(size_t)at * r->load.words + i / 64];
	const struct sm_link *old = next_link(r, at, r->lid[i].lid);

	if (i / 64 >= r->load.words)
		return;
	*bits &= ~(1ull << (i % 64));
	if (!is_reached(r, at, r->lid[i].lid))
		return;
	*bits |= 1ull << (i % 64);
	if (!old)
		return;
	add_load(r, at, old->port, -1);
	follow(r, at, r->lid[i].lid, -1);
}

void sm_load_arrive(struct sm_routes *r, unsigned at, unsigned i)
{
	if (sm_load_reaches(r, at, i))
		follow(r, at, r->lid[i].lid, 1);
}
