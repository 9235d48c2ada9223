/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unicast routing: the out port of each LID in each switch. Every way is a shortest one
 * (of the legal ones, if sm_updn.c has a say), and where there are several, the one by the
 * port that leads to the fewest LIDs of HCAs so far: equal ways and parallel links carry
 * equal shares. A way that is still a shortest one stays as it is, so that a link that
 * fails moves only what crossed it; when a link between switches comes up, all are shared
 * out anew, and the outcome depends on the cables alone.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "subnet/sm_state.h"

/* Distances of all switches from each other are kept for so many: 32 MB. With more of them each
 * sweep measures them again. */
#define MAX_ROWS 4096

/*
 * The ways from one switch to another. The one with the lowest rank is the best: from the top, how
 * many LIDs of the same port go to the switch that it leads to, how many by the way itself, how
 * many LIDs of HCAs by its port; then which way it is, so that the least rank says it.
 */
struct ways {
	unsigned at, n;
	bool several; /* LIDs of one port are to go by different ones */
	uint64_t rank[FABRIC_MAX_PORTS];
	uint32_t to[FABRIC_MAX_PORTS]; /* the switch that it leads to */
	uint8_t port[FABRIC_MAX_PORTS];
};

#define RANK_TO_USED (1ull << 48)
#define RANK_USED    (1ull << 40)
#define RANK_LOAD    (1ull << 8)
#define RANK_WAY     (RANK_LOAD - 1)
#define NO_WAY       (~0u)

static_assert(FABRIC_MAX_PORTS <= RANK_WAY, "ways fit their ranks");

struct sm_routes {
	struct sm_net *net;
	struct sm_updn *updn; /* NULL: all ways are legal */
	uint16_t *rows;       /* by switch and switch, or one row by switch: distances */
	bool has_all_rows;
	uint16_t *hops;  /* the row of the one that is looked at: distances to it */
	unsigned *queue; /* scratch */
	uint32_t *load;  /* LIDs of HCAs by out port: load[load_of[switch] + port] */
	unsigned *load_of;
	bool keep; /* ways that are good stay */
	uint64_t *changed;
	unsigned n_hcas; /* ports on the switch that is looked at */
	struct {
		const struct fabric_port *port;
		bool up;
	} hca[FABRIC_MAX_PORTS];
};

int sm_routes_new(struct sm_routes **out, struct sm_net *net)
{
	struct sm_routes *r = calloc(1, sizeof(*r));
	unsigned n_ports = 0;

	if (!r)
		return -ENOMEM;
	r->net = net;
	r->has_all_rows = net->n <= MAX_ROWS;
	r->rows = calloc((r->has_all_rows ? net->n : 1) * net->n + 1, sizeof(*r->rows));
	r->queue = calloc(net->n + 1, sizeof(*r->queue));
	r->load_of = calloc(net->n + 1, sizeof(*r->load_of));
	for (unsigned i = 0; i < net->n && r->load_of; i++) {
		r->load_of[i] = n_ports;
		n_ports += net->sw[i]->n_ports + 1;
	}
	if (r->load_of)
		r->load_of[net->n] = n_ports;
	r->load = calloc(n_ports + 1, sizeof(*r->load));
	if (!r->rows || !r->queue || !r->load || !r->load_of ||
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
	free(r->rows);
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

static uint16_t *row(struct sm_routes *r, unsigned root)
{
	return r->has_all_rows ? &r->rows[(size_t)root * r->net->n] : r->rows;
}

static void measure(struct sm_routes *r, unsigned root)
{
	r->hops = row(r, root);
	if (r->updn)
		sm_updn_measure(r->updn, root, r->hops);
	else
		measure_all(r, root);
}

static uint32_t *load_at(const struct sm_routes *r, unsigned at, unsigned port)
{
	return &r->load[r->load_of[at] + port];
}

/* The ways from @at to the root that was measured. */
static void list_ways(const struct sm_routes *r, unsigned at, struct ways *w)
{
	const struct sm_net *net = r->net;

	w->at = at;
	w->n = 0;
	if (r->hops[at] == SM_FAR)
		return;
	for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
		const struct sm_link *l = &net->link[k];

		if (!l->up || r->hops[l->to] + 1 != r->hops[at] ||
		    (r->updn && !sm_updn_may_go(r->updn, at, l->to)))
			continue;
		w->rank[w->n] = *load_at(r, at, l->port) * RANK_LOAD + w->n;
		w->to[w->n] = l->to;
		w->port[w->n++] = l->port;
	}
}

/* ---- tables ---- */

static int write_lft(struct sm_routes *r, unsigned at, uint16_t lid, uint8_t out)
{
	struct fabric_node *sw = r->net->sw[at];

	if (fabric_lft_get(sw, lid) == out)
		return 0;
	r->changed[lid / 64] |= 1ull << (lid % 64);
	return fabric_lft_set(sw, lid, out);
}

static unsigned find_way(const struct ways *w, uint8_t port)
{
	for (unsigned i = 0; i < w->n; i++)
		if (w->port[i] == port)
			return i;
	return NO_WAY;
}

/*
 * The way that no other LID of the port uses, nor the switch that it leads to, if there is one;
 * then the one by the port that has the fewest LIDs; of equals that by the lowest port.
 */
static unsigned best_way(const struct ways *w)
{
	uint64_t best = w->rank[0];

	for (unsigned i = 1; i < w->n; i++)
		best = w->rank[i] < best ? w->rank[i] : best;
	return best & RANK_WAY;
}

static void use_way(struct ways *w, unsigned way)
{
	if (!w->several)
		return;
	w->rank[way] += RANK_USED;
	for (unsigned i = 0; i < w->n; i++)
		if (w->to[i] == w->to[way])
			w->rank[i] += RANK_TO_USED;
}

/* For another port, of @n LIDs. */
static void unuse_ways(struct ways *w, unsigned n)
{
	for (unsigned i = 0; w->several && i < w->n; i++)
		w->rank[i] %= RANK_USED;
	w->several = n > 1;
}

/* A LID goes by @port no more. Somebody else may have written to the table since it was counted. */
static void unload(const struct sm_routes *r, struct ways *w, uint8_t port)
{
	uint32_t *load = load_at(r, w->at, port);
	unsigned way = find_way(w, port);

	if (!*load)
		return;
	--*load;
	if (way != NO_WAY)
		w->rank[way] -= RANK_LOAD;
}

/* Switch @w->at sends @lid on by one of these ways. @counts: it is an HCA's. */
static int route_lid(struct sm_routes *r, struct ways *w, uint16_t lid, bool counts)
{
	const struct fabric_node *sw = r->net->sw[w->at];
	uint8_t old = fabric_lft_get(sw, lid);
	unsigned new;

	if (r->keep && counts && old && old <= sw->n_ports)
		unload(r, w, old);
	if (!w->n)
		return write_lft(r, w->at, lid, FABRIC_LFT_NONE);
	new = best_way(w);
	if (counts) {
		++*load_at(r, w->at, w->port[new]);
		w->rank[new] += RANK_LOAD;
		use_way(w, new);
	}
	return write_lft(r, w->at, lid, w->port[new]);
}

/* The way that @lid goes may stay: it is then used. */
static bool stays(const struct sm_routes *r, struct ways *w, uint16_t lid)
{
	uint8_t out = r->keep ? fabric_lft_get(r->net->sw[w->at], lid) : FABRIC_LFT_NONE;
	unsigned old = out == FABRIC_LFT_NONE ? NO_WAY : find_way(w, out);

	if (old == NO_WAY)
		return false;
	use_way(w, old);
	return true;
}

/* All LIDs of an HCA's port: by different ways, as far as there are any. */
static int route_port(struct sm_routes *r, struct ways *w, const struct fabric_port *hca)
{
	unsigned n = 1u << hca->lmc;
	bool done[1u << SM_MAX_LMC];
	int ret = 0;

	unuse_ways(w, n);
	for (unsigned i = 0; i < n; i++)
		done[i] = stays(r, w, (uint16_t)(hca->lid + i));
	for (unsigned i = 0; i < n && !ret; i++)
		if (!done[i])
			ret = route_lid(r, w, (uint16_t)(hca->lid + i), true);
	return ret;
}

/* The HCA at a switch's port, or NULL. */
static const struct fabric_port *hca_at(const struct fabric_port *p)
{
	return p->peer && p->peer->node->type == FABRIC_HCA ? p->peer : NULL;
}

static void list_hcas(struct sm_routes *r, const struct fabric_node *root)
{
	r->n_hcas = 0;
	for (unsigned k = 1; k <= root->n_ports; k++) {
		const struct fabric_port *hca = hca_at(&root->port[k]);

		if (!hca)
			continue;
		r->hca[r->n_hcas].port = hca;
		r->hca[r->n_hcas++].up = sm_far_end(&root->port[k]);
	}
}

/* Switch @at learns the ways to what hangs on @root: itself and its HCAs. */
static int route_from(struct sm_routes *r, unsigned at, const struct fabric_node *root)
{
	struct ways ways, none;
	int ret = 0;

	none.at = at;
	none.n = 0;
	none.several = ways.several = false;
	list_ways(r, at, &ways);
	if (!stays(r, &ways, root->port[0].lid))
		ret = route_lid(r, &ways, root->port[0].lid, false);
	for (unsigned i = 0; i < r->n_hcas && !ret; i++)
		ret = route_port(r, r->hca[i].up ? &ways : &none, r->hca[i].port);
	return ret;
}

/* The root itself. */
static int route_home(struct sm_routes *r, unsigned at)
{
	const struct fabric_node *sw = r->net->sw[at];
	int ret = write_lft(r, at, sw->port[0].lid, 0);

	for (unsigned k = 1; k <= sw->n_ports && !ret; k++) {
		const struct fabric_port *hca = hca_at(&sw->port[k]);
		uint8_t out = sm_far_end(&sw->port[k]) ? (uint8_t)k : FABRIC_LFT_NONE;

		for (unsigned i = 0; hca && i < 1u << hca->lmc && !ret; i++)
			ret = write_lft(r, at, (uint16_t)(hca->lid + i), out);
	}
	return ret;
}

static int route_towards(struct sm_routes *r, unsigned root)
{
	int ret = 0;

	measure(r, root);
	list_hcas(r, r->net->sw[root]);
	for (unsigned at = 0; at < r->net->n && !ret; at++) {
		if (r->net->sw[at]->dead)
			continue;
		ret = at == root ? route_home(r, at) : route_from(r, at, r->net->sw[root]);
	}
	return ret;
}

/* ---- sweep ---- */

/* Counts again what the tables of @at have, whoever wrote them. */
static void count_loads(struct sm_routes *r, unsigned at)
{
	const struct fabric_node *sw = r->net->sw[at];
	const struct fabric *f = r->net->f;

	for (unsigned i = 0; i < f->n_hca_ports && sw->lft_size; i++) {
		const struct fabric_port *p = f->hca_port[i];

		for (unsigned lid = p->lid; lid < p->lid + (1u << p->lmc); lid++) {
			uint8_t out = fabric_lft_get(sw, (uint16_t)lid);

			if (out && out <= sw->n_ports)
				++*load_at(r, at, out);
		}
	}
}

static int route_all(struct sm_routes *r)
{
	const struct sm_net *net = r->net;
	int ret = 0;

	r->keep = !net->came_up;
	if (r->updn)
		sm_updn_rank(r->updn);
	memset(r->load, 0, r->load_of[net->n] * sizeof(*r->load));
	for (unsigned i = 0; i < net->n && r->keep; i++)
		count_loads(r, i);
	for (unsigned i = 0; i < net->n && !ret; i++)
		ret = route_towards(r, i);
	return ret;
}

/* Whether a way led from the link's end to @root by it. */
static bool was_used(struct sm_routes *r, unsigned root, const struct sm_down *down)
{
	const uint16_t *hops = row(r, root);

	return hops[down->at] != SM_FAR && hops[down->link->to] + 1 == hops[down->at];
}

/* Whether all switches are as far from @root as they were: each has other ways left. */
static bool is_as_far(struct sm_routes *r, unsigned root)
{
	for (unsigned i = 0; i < r->net->n_down; i++) {
		const struct sm_down *down = &r->net->down[i];
		struct ways ways;

		if (!was_used(r, root, down))
			continue;
		list_ways(r, down->at, &ways);
		if (!ways.n)
			return false;
	}
	return true;
}

/* As long as no distance has changed, only the ends of links that went down have to choose anew. */
static int repair_towards(struct sm_routes *r, unsigned root)
{
	int ret = 0;

	r->hops = row(r, root);
	if (r->net->home_changed[root] || r->net->sw[root]->dead || !is_as_far(r, root))
		return route_towards(r, root);
	list_hcas(r, r->net->sw[root]);
	for (unsigned i = 0; i < r->net->n_down && !ret; i++) {
		const struct sm_down *down = &r->net->down[i];

		if (was_used(r, root, down) && !r->net->sw[down->at]->dead)
			ret = route_from(r, down->at, r->net->sw[root]);
	}
	return ret;
}

int sm_routes_sweep(struct sm_routes *r, uint64_t changed[IB_LID_MCAST_FIRST / 64])
{
	int ret = 0;

	r->changed = changed;
	if (!r->net->little_changed || r->updn || !r->has_all_rows)
		return route_all(r);
	r->keep = true;
	for (unsigned i = 0; i < r->net->n && !ret; i++)
		ret = repair_towards(r, i);
	return ret;
}
