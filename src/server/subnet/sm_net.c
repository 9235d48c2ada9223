/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cables of the fabric, and what has changed since the last sweep. Called by sm.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "subnet/sm_state.h"

struct fabric_port *sm_far_end(const struct fabric_port *p)
{
	if (!p->peer || p->state <= IB_PORT_DOWN || p->peer->state <= IB_PORT_DOWN)
		return NULL;
	return p->peer;
}

static bool leads_to_switch(const struct fabric_port *p)
{
	return p->peer && p->peer->node->type == FABRIC_SWITCH;
}

static bool has_hosts(const struct fabric_node *sw)
{
	for (unsigned k = 1; k <= sw->n_ports; k++)
		if (sw->port[k].peer && sw->port[k].peer->node->type == FABRIC_HCA)
			return true;
	return false;
}

static void list_links(struct sm_net *net)
{
	unsigned n = 0;

	for (unsigned i = 0; i < net->n; i++) {
		net->first[i] = n;
		for (unsigned k = 1; k <= net->sw[i]->n_ports; k++) {
			const struct fabric_port *p = &net->sw[i]->port[k];

			if (leads_to_switch(p))
				net->link[n++] = (struct sm_link){ .to = p->peer->node->index,
					                           .port = p->num };
		}
	}
	net->first[net->n] = n;
}

int sm_net_init(struct sm_net *net, struct fabric *f)
{
	unsigned n_links = 0;

	net->f = f;
	net->sw = calloc(f->n_nodes + 1, sizeof(*net->sw));
	net->first = calloc(f->n_nodes + 1, sizeof(*net->first));
	if (!net->sw || !net->first)
		return -ENOMEM;
	for (unsigned i = 0; i < f->n_nodes; i++) {
		net->max_to_ready += f->node[i]->n_ports + 1;
		if (f->node[i]->type != FABRIC_SWITCH)
			continue;
		net->sw[net->n++] = f->node[i];
		for (unsigned k = 1; k <= f->node[i]->n_ports; k++)
			n_links += leads_to_switch(&f->node[i]->port[k]);
	}
	net->link = calloc(n_links + 1, sizeof(*net->link));
	net->down = calloc(n_links + 1, sizeof(*net->down));
	net->to_ready = calloc(net->max_to_ready + 1, sizeof(struct fabric_port *));
	net->ready_all = true;
	net->known = calloc(f->n_ib_ports + 1, sizeof(*net->known));
	net->lid = calloc(f->n_nodes + 1, sizeof(*net->lid));
	net->home_changed = calloc(f->n_nodes + 1, sizeof(*net->home_changed));
	net->has_hosts = calloc(f->n_nodes + 1, sizeof(*net->has_hosts));
	net->level = calloc(f->n_nodes + 1, sizeof(*net->level));
	net->queue = calloc(f->n_nodes + 1, sizeof(*net->queue));
	if (!net->link || !net->down || !net->to_ready || !net->known || !net->lid ||
	    !net->home_changed || !net->has_hosts || !net->level || !net->queue)
		return -ENOMEM;
	list_links(net);
	for (unsigned i = 0; i < net->n; i++)
		net->has_hosts[i] = has_hosts(net->sw[i]);
	return 0;
}

void sm_net_fini(struct sm_net *net)
{
	free(net->sw);
	free(net->link);
	free(net->first);
	free(net->down);
	free(net->to_ready);
	free(net->known);
	free(net->lid);
	free(net->home_changed);
	free(net->has_hosts);
	free(net->level);
	free(net->queue);
}

static void look_at_link(struct sm_net *net, unsigned at, struct sm_link *l)
{
	bool up = sm_far_end(&net->sw[at]->port[l->port]) != NULL;

	if (up && !l->up)
		net->came_up = true;
	if (!up && l->up)
		net->down[net->n_down++] = (struct sm_down){ .at = at, .link = l };
	l->up = up;
}

/* An HCA's. */
static void look_at_port(struct sm_net *net, const struct fabric_port *p)
{
	struct sm_known_port *known = &net->known[p->index];
	bool up = sm_far_end(p) != NULL;

	if (known->up != up && p->peer && p->peer->node->type == FABRIC_SWITCH) {
		net->home_changed[p->peer->node->index] = true;
		net->n_homes_changed++;
	}
	known->up = up;
}

/* One end of a cable whose state has been set. */
static void look_at_end(struct sm_net *net, const struct fabric_port *p)
{
	unsigned at = p->node->index;

	if (p->node->type == FABRIC_HCA) {
		if (p->index < net->f->n_ib_ports)
			look_at_port(net, p);
		return;
	}
	for (unsigned k = net->first[at]; k < net->first[at + 1]; k++)
		if (net->link[k].port == p->num)
			look_at_link(net, at, &net->link[k]);
}

static void look_at_all(struct sm_net *net)
{
	for (unsigned i = 0; i < net->n; i++)
		for (unsigned k = net->first[i]; k < net->first[i + 1]; k++)
			look_at_link(net, i, &net->link[k]);
	for (unsigned i = 0; i < net->f->n_ib_ports; i++)
		look_at_port(net, net->f->hca_port[i]);
}

/* Has them brought up, which may take several steps. */
static void note_to_ready(struct sm_net *net, struct fabric_port *p)
{
	if (net->ready_all)
		return;
	if (net->n_to_ready == net->max_to_ready) { /* sweeps that began and did not get to it */
		net->ready_all = true;
		return;
	}
	net->to_ready[net->n_to_ready++] = p;
}

static int by_place(const void *a, const void *b)
{
	const struct sm_down *x = a, *y = b;

	return x->link < y->link ? -1 : x->link > y->link;
}

/* Ports whose state has been set since the last look; at the first one all. */
static void look_at_ports(struct sm_net *net)
{
	struct fabric *f = net->f;
	struct fabric_port *p;

	if (!net->looked)
		look_at_all(net);
	while ((p = SLIST_FIRST(&f->relinked))) {
		SLIST_REMOVE_HEAD(&f->relinked, of_relinked);
		p->is_relinked = false;
		note_to_ready(net, p);
		if (!p->peer || !net->looked)
			continue;
		look_at_end(net, p);
		look_at_end(net, p->peer);
	}
	/* in the order of the switches, whichever failed first */
	qsort(net->down, net->n_down, sizeof(*net->down), by_place);
}

unsigned sm_net_measure(const struct sm_net *net, uint16_t *dist, unsigned *queue)
{
	unsigned head = 0, tail = 0;

	for (unsigned i = 0; i < net->n; i++)
		if (!dist[i])
			queue[tail++] = i;
	while (head < tail) {
		unsigned at = queue[head++];

		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
			const struct sm_link *l = &net->link[k];

			if (!l->up || dist[l->to] != SM_FAR)
				continue;
			dist[l->to] = dist[at] + 1;
			queue[tail++] = l->to;
		}
	}
	return tail;
}

static void measure_levels(struct sm_net *net)
{
	memset(net->level, 0xFF, net->n * sizeof(*net->level));
	for (unsigned i = 0; i < net->n; i++)
		if (net->has_hosts[i] && !net->sw[i]->dead)
			net->level[i] = 0;
	sm_net_measure(net, net->level, net->queue);
}

void sm_net_look_at_lids(struct sm_net *net)
{
	net->lids_changed = false;
	for (unsigned i = 0; i < net->f->n_ib_ports; i++) {
		const struct fabric_port *p = net->f->hca_port[i];
		struct sm_known_port *known = &net->known[i];

		net->lids_changed |= known->lid != p->lid || known->lmc != p->lmc;
		known->lid = p->lid;
		known->lmc = p->lmc;
	}
	for (unsigned i = 0; i < net->n; i++) {
		net->lids_changed |= net->lid[i] != net->sw[i]->port[0].lid;
		net->lid[i] = net->sw[i]->port[0].lid;
	}
}

void sm_net_look(struct sm_net *net)
{
	const uint64_t settings = base_hash_of(&net->f->settings, sizeof(net->f->settings), 0);
	bool first = !net->looked, same;

	/* else any entry may be wrong, and all are written */
	same = !first && !net->left && net->foreign == net->f->foreign && net->settings == settings;
	net->foreign = net->f->foreign;
	net->settings = settings;
	net->came_up &= net->left;
	net->n_down = net->n_homes_changed = 0;
	memset(net->home_changed, 0, net->n * sizeof(*net->home_changed));
	look_at_ports(net);
	net->looked = true;
	measure_levels(net);
	if (first)
		net->came_up = false;
	same &= !net->came_up && !net->lids_changed;
	net->little_changed = same && (net->n_down || net->n_homes_changed);
	net->nothing_changed = same && !net->n_down && !net->n_homes_changed;
	net->left = true;
}

/* ---- islands ---- */

/* All switches that links connect with switch @first are of its island. */
static void fill_island(const struct sm_net *net, unsigned first, unsigned *island, unsigned *queue)
{
	unsigned head = 0, tail = 0;

	island[first] = first;
	queue[tail++] = first;
	while (head < tail) {
		unsigned at = queue[head++];

		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
			unsigned to = net->link[k].to;

			if (!net->link[k].up || island[to] != UINT32_MAX)
				continue;
			island[to] = first;
			queue[tail++] = to;
		}
	}
}

void sm_net_find_islands(const struct sm_net *net, unsigned *island, unsigned *queue)
{
	memset(island, 0xFF, net->n * sizeof(*island));
	for (unsigned i = 0; i < net->n; i++)
		if (island[i] == UINT32_MAX)
			fill_island(net, i, island, queue);
}
