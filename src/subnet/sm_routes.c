/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unicast routing: the out port of each LID in each switch. Every way is a shortest one
 * (of the legal ones, if sm_updn.c has a say), and where there are several, the one by the
 * port that leads to the fewest LIDs of HCAs so far: equal ways and parallel links carry
 * equal shares. A way that is still a shortest one stays as it is, so that a link that
 * fails moves only what crossed it; when a link between switches comes up, all are shared
 * out anew, and the outcome depends on the cables alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "subnet/sm_state.h"

/* A port by which a switch may send what is for a LID. */
struct way {
	uint32_t to; /* the switch that it leads to */
	uint8_t port;
};

struct sm_routes {
	struct sm_net *net;
	struct sm_updn *updn; /* NULL: all ways are legal */
	uint16_t *hops;       /* by switch: to the one that is looked at */
	unsigned *queue;      /* scratch */
	uint32_t *load;       /* LIDs of HCAs by out port: load[load_of[switch] + port] */
	unsigned *load_of;
	bool swept; /* once at least */
	bool keep;  /* ways that are good stay */
	uint64_t *changed;
};

int sm_routes_new(struct sm_routes **out, struct sm_net *net)
{
	struct sm_routes *r = calloc(1, sizeof(*r));
	unsigned n_ports = 0;

	if (!r)
		return -ENOMEM;
	r->net = net;
	r->hops = calloc(net->n + 1, sizeof(*r->hops));
	r->queue = calloc(net->n + 1, sizeof(*r->queue));
	r->load_of = calloc(net->n + 1, sizeof(*r->load_of));
	for (unsigned i = 0; i < net->n && r->load_of; i++) {
		r->load_of[i] = n_ports;
		n_ports += net->sw[i]->n_ports + 1;
	}
	if (r->load_of)
		r->load_of[net->n] = n_ports;
	r->load = calloc(n_ports + 1, sizeof(*r->load));
	if (!r->hops || !r->queue || !r->load || !r->load_of ||
	    (net->f->settings.routing == SM_ROUTING_UPDN && sm_updn_new(&r->updn, net))) {
		sm_routes_free(r);
		return -ENOMEM;
	}
	*out = r;
	return 0;
}

void sm_routes_free(struct sm_routes *r)
{
	if (r->updn)
		sm_updn_free(r->updn);
	free(r->hops);
	free(r->queue);
	free(r->load);
	free(r->load_of);
	free(r);
}

/* ---- distances ---- */

/* From each switch to @root, by any links that are up. */
static void measure_all(struct sm_routes *r, unsigned root)
{
	const struct sm_net *net = r->net;
	unsigned head = 0, tail = 0;

	memset(r->hops, 0xFF, net->n * sizeof(*r->hops));
	if (net->sw[root]->dead)
		return;
	r->hops[root] = 0;
	r->queue[tail++] = root;
	while (head < tail) {
		unsigned at = r->queue[head++];

		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
			const struct sm_link *l = &net->link[k];

			if (!l->up || r->hops[l->to] != SM_FAR)
				continue;
			r->hops[l->to] = r->hops[at] + 1;
			r->queue[tail++] = l->to;
		}
	}
}

static void measure(struct sm_routes *r, unsigned root)
{
	if (r->updn)
		sm_updn_measure(r->updn, root, r->hops);
	else
		measure_all(r, root);
}

/* The ways from @at to the root that was measured: their number. */
static unsigned list_ways(const struct sm_routes *r, unsigned at, struct way *way)
{
	const struct sm_net *net = r->net;
	unsigned n = 0;

	if (r->hops[at] == SM_FAR)
		return 0;
	for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
		const struct sm_link *l = &net->link[k];

		if (l->up && r->hops[l->to] + 1 == r->hops[at] &&
		    (!r->updn || sm_updn_may_go(r->updn, at, l->to)))
			way[n++] = (struct way){ .to = l->to, .port = l->port };
	}
	return n;
}

/* ---- tables ---- */

static uint32_t *load_at(const struct sm_routes *r, unsigned at, unsigned port)
{
	return &r->load[r->load_of[at] + port];
}

static int write_lft(struct sm_routes *r, unsigned at, uint16_t lid, uint8_t out)
{
	struct fabric_node *sw = r->net->sw[at];

	if (fabric_lft_get(sw, lid) == out)
		return 0;
	r->changed[lid / 64] |= 1ull << (lid % 64);
	return fabric_lft_set(sw, lid, out);
}

static const struct way *find_way(const struct way *way, unsigned n, uint8_t port)
{
	for (unsigned i = 0; i < n; i++)
		if (way[i].port == port)
			return &way[i];
	return NULL;
}

/* The way by the port that has the fewest, of equals by the lowest one. */
static const struct way *least_loaded(const struct sm_routes *r, unsigned at, const struct way *way,
                                      unsigned n)
{
	const struct way *best = &way[0];

	for (unsigned i = 1; i < n; i++)
		if (*load_at(r, at, way[i].port) < *load_at(r, at, best->port))
			best = &way[i];
	return best;
}

/* Switch @at sends @lid on by one of these ways. @counts: it is an HCA's. */
static int route_lid(struct sm_routes *r, unsigned at, uint16_t lid, bool counts,
                     const struct way *way, unsigned n)
{
	uint8_t old = fabric_lft_get(r->net->sw[at], lid);
	const struct way *new;

	if (r->keep && find_way(way, n, old))
		return 0;
	if (r->keep && counts && old && old <= r->net->sw[at]->n_ports)
		--*load_at(r, at, old);
	if (!n)
		return write_lft(r, at, lid, FABRIC_LFT_NONE);
	new = least_loaded(r, at, way, n);
	if (counts)
		++*load_at(r, at, new->port);
	return write_lft(r, at, lid, new->port);
}

/* The HCA at a switch's port, or NULL. */
static const struct fabric_port *hca_at(const struct fabric_port *p)
{
	return p->peer && p->peer->node->type == FABRIC_HCA ? p->peer : NULL;
}

/* Switch @at learns the ways to what hangs on @root: itself and its HCAs. */
static int route_from(struct sm_routes *r, unsigned at, const struct fabric_node *root)
{
	struct way way[FABRIC_MAX_PORTS];
	unsigned n = list_ways(r, at, way);
	int ret = route_lid(r, at, root->port[0].lid, false, way, n);

	for (unsigned k = 1; k <= root->n_ports && !ret; k++) {
		const struct fabric_port *hca = hca_at(&root->port[k]);

		if (hca)
			ret = route_lid(r, at, hca->lid, true, way,
			                sm_far_end(&root->port[k]) ? n : 0);
	}
	return ret;
}

/* The root itself. */
static int route_home(struct sm_routes *r, unsigned at)
{
	const struct fabric_node *sw = r->net->sw[at];
	int ret = write_lft(r, at, sw->port[0].lid, 0);

	for (unsigned k = 1; k <= sw->n_ports && !ret; k++) {
		const struct fabric_port *hca = hca_at(&sw->port[k]);

		if (hca)
			ret = write_lft(r, at, hca->lid,
			                sm_far_end(&sw->port[k]) ? (uint8_t)k : FABRIC_LFT_NONE);
	}
	return ret;
}

static int route_towards(struct sm_routes *r, unsigned root)
{
	int ret = 0;

	measure(r, root);
	for (unsigned at = 0; at < r->net->n && !ret; at++) {
		if (r->net->sw[at]->dead)
			continue;
		ret = at == root ? route_home(r, at) : route_from(r, at, r->net->sw[root]);
	}
	return ret;
}

/* ---- sweep ---- */

/* Looks which links are up. Whether one has come up. */
static bool look(struct sm_net *net)
{
	bool came_up = false;

	for (unsigned i = 0; i < net->n; i++) {
		for (unsigned k = net->first[i]; k < net->first[i + 1]; k++) {
			struct sm_link *l = &net->link[k];
			bool up = sm_far_end(&net->sw[i]->port[l->port]) != NULL;

			came_up |= up && !l->up;
			l->up = up;
		}
	}
	return came_up;
}

/* Counts again what the tables have, whoever wrote them. */
static void count_loads(struct sm_routes *r)
{
	const struct fabric *f = r->net->f;

	for (unsigned at = 0; at < r->net->n; at++) {
		const struct fabric_node *sw = r->net->sw[at];

		for (unsigned i = 0; i < f->n_hca_ports; i++) {
			uint8_t out = fabric_lft_get(sw, f->hca_port[i]->lid);

			if (out && out <= sw->n_ports)
				++*load_at(r, at, out);
		}
	}
}

int sm_routes_sweep(struct sm_routes *r, uint64_t changed[IB_LID_MCAST_FIRST / 64])
{
	const struct sm_net *net = r->net;
	int ret = 0;

	/* at first all of them do; what another subnet manager left is as good as our own */
	r->keep = !look(r->net) || !r->swept;
	r->swept = true;
	if (r->updn)
		sm_updn_rank(r->updn);
	r->changed = changed;
	memset(r->load, 0, r->load_of[net->n] * sizeof(*r->load));
	if (r->keep)
		count_loads(r);
	for (unsigned i = 0; i < net->n && !ret; i++)
		ret = route_towards(r, i);
	return ret;
}
