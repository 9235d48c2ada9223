/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unicast routing: the out port for each LID in each switch. Every path is a shortest one; with
 * up/down routing (sm_updn.c), a shortest legal one. Of several, the path by the port with the
 * least load is chosen. The load of a port is how many LIDs of HCAs go out by it that some host's
 * packets reach this switch for: LIDs to which no host sends by this switch are spread, and not
 * counted. So a LID is routed in the switches farthest from it first, and each choice decides what
 * the next switch carries. (If all LIDs counted alike, on a fat tree of three levels a third-level
 * switch would get all that its neighbours send there by one of its links.)
 *
 * A path that is still a shortest one is kept, so that a failed link moves only the LIDs that
 * crossed it. When a link between switches comes up, all paths are chosen again; the result then
 * depends only on the cables. With sm_ftree.c, tables of a fat tree are written there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "subnet/sm_routes.h"

/* Up to this many switches, all distances between them are kept (32 MB); with more, each sweep
 * measures them again. */
#define MAX_ROWS 4096

#define NO_PATH (~0u)

/* The paths from one switch to the present root, by their first links. */
struct paths {
	unsigned at, n;
	unsigned cursor; /* the paths before it have more than the least load */
	uint32_t least;
	uint32_t *at_load; /* by port: what sm_load_at() says */
	uint32_t load[FABRIC_MAX_PORTS];
	uint32_t to[FABRIC_MAX_PORTS]; /* the next switch */
	uint8_t port[FABRIC_MAX_PORTS];
	/* how many other LIDs of the same HCA port go to the path's next switch, and use it */
	uint8_t to_used[FABRIC_MAX_PORTS], used[FABRIC_MAX_PORTS];
	uint8_t index[256]; /* by port, if port[index] is that port */
};

int sm_routes_new(struct sm_routes **out, struct sm_net *net)
{
	struct sm_routes *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->net = net;
	r->engine = (enum sm_routing)net->f->settings.routing;
	r->has_all_rows = net->n <= MAX_ROWS;
	r->rows = calloc((size_t)(r->has_all_rows ? net->n : SM_HOPS_ROOTS) * net->n + 1,
	                 sizeof(*r->rows));
	r->order = calloc(net->n + 1, sizeof(*r->order));
	r->start = calloc(net->n + 2, sizeof(*r->start));
	r->lid = calloc(IB_LID_MCAST_FIRST, sizeof(*r->lid));
	if (!r->rows || !r->order || !r->start || !r->lid || sm_load_init(r) || sm_fresh_init(r) ||
	    sm_hops_new(&r->measure, net) ||
	    (net->f->settings.routing != SM_ROUTING_MINHOP && sm_updn_new(&r->updn, net)) ||
	    (net->f->settings.routing == SM_ROUTING_FTREE && sm_ftree_new(&r->ftree, r)) ||
	    (net->f->settings.routing == SM_ROUTING_DFSSSP && sm_dfsssp_new(&r->dfsssp, r))) {
		sm_routes_free(r);
		return -ENOMEM;
	}
	*out = r;
	return 0;
}

void sm_routes_free(struct sm_routes *r)
{
	if (r->dfsssp)
		sm_dfsssp_free(r->dfsssp);
	if (r->ftree)
		sm_ftree_free(r->ftree);
	if (r->updn)
		sm_updn_free(r->updn);
	if (r->measure)
		sm_hops_free(r->measure);
	sm_load_fini(r);
	sm_fresh_fini(r);
	free(r->rows);
	free(r->order);
	free(r->start);
	free(r->lid);
	free(r);
}

enum sm_routing sm_routes_engine(const struct sm_routes *r)
{
	return r->engine;
}

const struct sm_order *sm_routes_order(const struct sm_routes *r)
{
	if (r->engine == SM_ROUTING_MINHOP)
		return NULL;
	return r->engine == SM_ROUTING_FTREE ? sm_ftree_order(r->ftree) : sm_updn_order(r->updn);
}

int sm_routes_lane(const struct sm_routes *r, unsigned at, uint16_t lid)
{
	return r->dfsssp ? sm_dfsssp_lane(r->dfsssp, at, lid) : -1;
}

/* ---- distances ---- */

static uint16_t *row(struct sm_routes *r, unsigned root)
{
	return &r->rows[(size_t)(r->has_all_rows ? root : root % SM_HOPS_ROOTS) * r->net->n];
}

/* Whether a link is on a shortest legal path from @at to the present root. */
static inline bool leads(const struct sm_routes *r, unsigned at, const struct sm_link *l)
{
	return l->up && r->hops[l->to] + 1 == r->hops[at] &&
	       (!r->updn || sm_updn_may_go(r->updn, at, l->to));
}

/* Finds the links that lead to the present root. */
static void find_leads(struct sm_routes *r, unsigned root)
{
	const struct sm_net *net = r->net;
	unsigned words = r->leads.word[net->n];
	uint64_t *bits = r->leads.bits + (size_t)(root % SM_HOPS_ROOTS) * words;

	memset(bits, 0, words * sizeof(*bits));
	for (unsigned at = 0; at < net->n; at++)
		for (unsigned k = 0; net->first[at] + k < net->first[at + 1]; k++)
			if (leads(r, at, &net->link[net->first[at] + k]))
				bits[r->leads.word[at] + k / 64] |= 1ull << (k % 64);
}

/* Measures a batch of roots, and routes the switches themselves. 0 or -ENOMEM. */
static int measure_batch(struct sm_routes *r, unsigned first)
{
	unsigned left = r->net->n - first, n = left < SM_HOPS_ROOTS ? left : SM_HOPS_ROOTS;

	sm_hops_measure(r->measure, first, n, row(r, first), r->keep ? NULL : &r->leads);
	return r->keep ? 0 : sm_fresh_switches(r, first, n);
}

/* Makes @root the present root, after all switches before it. 0 or -ENOMEM. */
static int turn_to(struct sm_routes *r, unsigned root)
{
	int ret = 0;

	r->hops = row(r, root);
	r->lead = r->keep ? NULL : sm_leads_of(&r->leads, r->net->n, root);
	if (r->updn)
		sm_updn_measure(r->updn, root, r->hops);
	else if (root % SM_HOPS_ROOTS == 0)
		ret = measure_batch(r, root);
	if (r->updn && !r->keep)
		find_leads(r, root);
	return ret;
}

static void list_paths(const struct sm_routes *r, unsigned at, struct paths *w)
{
	const struct sm_net *net = r->net;
	const uint32_t *at_load = sm_load_at(r, at, 0);
	uint32_t least = UINT32_MAX;
	unsigned n = 0;

	memset(w->index, 0, sizeof(w->index));
	for (unsigned k = net->first[at]; r->hops[at] != SM_FAR && k < net->first[at + 1]; k++) {
		const struct sm_link *l = &net->link[k];
		uint32_t load;

		if (!leads(r, at, l))
			continue;
		load = at_load[l->port];
		least = load < least ? load : least;
		w->load[n] = load;
		w->to[n] = l->to;
		w->index[l->port] = (uint8_t)n;
		w->port[n++] = l->port;
	}
	w->at = at;
	w->at_load = sm_load_at(r, at, 0);
	w->n = n;
	w->least = least;
	w->cursor = 0;
}

/* ---- one path ---- */

static unsigned find_path(const struct paths *w, uint8_t port)
{
	unsigned i = w->index[port];

	return i < w->n && w->port[i] == port ? i : NO_PATH;
}

/* The first path with the least load. Loads only grow while a switch has its turn. */
static inline unsigned least_loaded(struct paths *w)
{
	for (;;) {
		for (; w->cursor < w->n; w->cursor++)
			if (w->load[w->cursor] == w->least)
				return w->cursor;
		w->least = UINT32_MAX;
		for (unsigned i = 0; i < w->n; i++)
			w->least = w->load[i] < w->least ? w->load[i] : w->least;
		w->cursor = 0;
	}
}

/* For one of several LIDs of an HCA port: if possible a path that none of the others uses, and to a
 * switch that none uses; then the least loaded. */
static unsigned apart(const struct paths *w)
{
	uint64_t best = UINT64_MAX;
	unsigned path = 0;

	for (unsigned i = 0; i < w->n; i++) {
		uint64_t rank =
		        (uint64_t)w->to_used[i] << 40 | (uint64_t)w->used[i] << 32 | w->load[i];

		if (rank < best) {
			best = rank;
			path = i;
		}
	}
	return path;
}

static void use_apart(struct paths *w, unsigned path)
{
	w->used[path]++;
	for (unsigned i = 0; i < w->n; i++)
		w->to_used[i] += w->to[i] == w->to[path];
}

/* LID number @i of the root goes by this path, and some host sends to it. */
static inline void load_path(struct sm_routes *r, struct paths *w, unsigned path, unsigned i)
{
	sm_load_pass(r, w->to[path], i);
	w->load[path]++;
	w->at_load[w->port[path]]++;
}

/* LID number @i of the root goes by this path. */
static void take(struct sm_routes *r, struct paths *w, unsigned path, unsigned i)
{
	use_apart(w, path);
	if (sm_load_reaches(r, w->at, i))
		load_path(r, w, path, i);
}

/* The path of LID number @i in the table, if it can be kept. */
static unsigned kept_path(const struct sm_routes *r, const struct paths *w, unsigned i)
{
	return r->keep ? find_path(w, fabric_lft_get(r->net->sw[w->at], r->lid[i].lid)) : NO_PATH;
}

/* Routes LID number @i, the only one of its HCA port. */
static inline int route_single(struct sm_routes *r, struct paths *w, unsigned i)
{
	unsigned path = kept_path(r, w, i);
	bool reached = sm_load_reaches(r, w->at, i);

	if (path != NO_PATH) {
		if (reached)
			load_path(r, w, path, i);
		return 0;
	}
	path = reached ? least_loaded(w) : (r->root + i) % w->n;
	if (reached)
		load_path(r, w, path, i);
	return sm_routes_write(r, w->at, r->lid[i].lid, w->port[path]);
}

/* Routes the LIDs of one HCA port: number @first and those after it. */
static int route_several(struct sm_routes *r, struct paths *w, unsigned first)
{
	bool done[1u << SM_MAX_LMC];
	unsigned n = r->lid[first].n;
	int ret = 0;

	memset(w->used, 0, w->n);
	memset(w->to_used, 0, w->n);
	for (unsigned i = 0; i < n; i++) {
		unsigned path = kept_path(r, w, first + i);

		done[i] = path != NO_PATH;
		if (done[i])
			take(r, w, path, first + i);
	}
	for (unsigned i = 0; i < n && !ret; i++) {
		unsigned path;

		if (done[i])
			continue;
		path = apart(w);
		take(r, w, path, first + i);
		ret = sm_routes_write(r, w->at, r->lid[first + i].lid, w->port[path]);
	}
	return ret;
}

static inline int route_port(struct sm_routes *r, struct paths *w, unsigned first)
{
	return r->lid[first].n == 1 ? route_single(r, w, first) : route_several(r, w, first);
}

/* ---- tables ---- */

/* The first path to the switch @root, or the present one if it can be kept. */
static int route_switch(struct sm_routes *r, unsigned at, unsigned root)
{
	const struct sm_net *net = r->net;
	uint16_t lid = net->lid[root];
	const struct sm_link *old;

	if (r->lead)
		return sm_fresh_switch(r, at);
	old = sm_link_of(r, at, fabric_lft_get(net->sw[at], lid));
	if (r->hops[at] == SM_FAR)
		return sm_routes_write(r, at, lid, FABRIC_LFT_NONE);
	if (r->keep && old && leads(r, at, old))
		return 0;
	for (unsigned k = net->first[at]; k < net->first[at + 1]; k++)
		if (leads(r, at, &net->link[k]))
			return sm_routes_write(r, at, lid, net->link[k].port);
	return sm_routes_write(r, at, lid, FABRIC_LFT_NONE);
}

/* Writes the routes of switch @at to the present root's HCAs. */
static int route_hcas(struct sm_routes *r, unsigned at)
{
	struct paths paths;
	int ret = 0;

	list_paths(r, at, &paths);
	for (unsigned i = 0; i < r->n_lids && !ret;) {
		unsigned n = r->lid[i].n;

		if (paths.n && r->lid[i].up)
			ret = route_port(r, &paths, i);
		for (unsigned k = 0; k < n && !ret && !(paths.n && r->lid[i].up); k++)
			ret = sm_routes_write(r, at, r->lid[i + k].lid, FABRIC_LFT_NONE);
		i += n;
	}
	return ret;
}

static int route_towards(struct sm_routes *r, unsigned root)
{
	int ret = 0;

	sm_routes_list_lids(r, root);
	if (!r->n_lids && r->lead && !r->updn)
		return r->net->sw[root]->dead ? 0 : sm_routes_home(r, root);
	sm_routes_sort(r);
	sm_load_begin(r);
	for (unsigned i = 0; i < r->net->n && !ret; i++) {
		unsigned at = r->order[i];

		if (r->lead && i + SM_FRESH_AHEAD < r->net->n)
			sm_fresh_prefetch(r, r->order[i + SM_FRESH_AHEAD]);
		if (r->lead ? !r->table[at].out : r->net->sw[at]->dead)
			continue;
		if (at == root) {
			ret = sm_routes_home(r, at);
			continue;
		}
		if (!r->lead || r->updn) /* else measure_batch() has */
			ret = route_switch(r, at, root);
		if (!ret && r->n_lids)
			ret = r->lead && r->one_each ? sm_fresh_hcas(r, at) : route_hcas(r, at);
	}
	return ret;
}

/* ---- sweep ---- */

/* Tables reach to the highest LID at once, instead of growing bit by bit. True: all do. */
static bool grow_tables(struct sm_routes *r, uint32_t *budget, int *ret)
{
	for (; r->next < r->net->n && *budget && !*ret; r->next++) {
		struct fabric_node *sw = r->net->sw[r->next];
		uint32_t cost = 1;

		if (!sw->dead && r->top >= sw->lft_size) {
			cost += (r->top - sw->lft_size) / 16;
			*ret = fabric_lft_set(sw, r->top, FABRIC_LFT_NONE);
		}
		*budget -= cost < *budget ? cost : *budget;
	}
	return r->next == r->net->n;
}

/* Whether any switch has a table, ours or another subnet manager's. */
static bool has_tables(const struct sm_net *net)
{
	for (unsigned i = 0; i < net->n; i++)
		if (net->sw[i]->lft_size)
			return true;
	return false;
}

/* Whether a path from the link's end to @root crossed the link. */
static bool was_used(struct sm_routes *r, unsigned root, const struct sm_down *down)
{
	const uint16_t *hops = row(r, root);

	return hops[down->at] != SM_FAR && hops[down->link->to] + 1 == hops[down->at];
}

static bool has_path(const struct sm_routes *r, unsigned at)
{
	for (unsigned k = r->net->first[at]; k < r->net->first[at + 1]; k++)
		if (leads(r, at, &r->net->link[k]))
			return true;
	return false;
}

/* Whether no distance to @root has changed: each switch has another shortest path. A dead one needs
 * none; its own distance is of no use until it is back and all are measured. */
static bool is_as_far(struct sm_routes *r, unsigned root)
{
	for (unsigned i = 0; i < r->net->n_down; i++) {
		const struct sm_down *down = &r->net->down[i];

		if (!r->net->sw[down->at]->dead && was_used(r, root, down) &&
		    !has_path(r, down->at))
			return false;
	}
	return true;
}

/* The LIDs of the present root that left @at by this link leave by another one. */
static int move_lids(struct sm_routes *r, unsigned at, const struct sm_link *broken)
{
	struct paths paths;
	int ret = 0;

	list_paths(r, at, &paths);
	for (unsigned i = 0; i < r->n_lids && !ret;) {
		unsigned n = r->lid[i].n, crossed = 0;

		for (unsigned k = 0; k < n; k++)
			crossed +=
			        fabric_lft_get(r->net->sw[at], r->lid[i + k].lid) == broken->port;
		for (unsigned k = 0; k < n && crossed; k++)
			sm_load_leave(r, at, i + k);
		if (crossed && r->lid[i].up)
			ret = route_port(r, &paths, i);
		for (unsigned k = 0; k < n && crossed && !ret; k++)
			sm_load_arrive(r, at, i + k);
		i += n;
	}
	return ret;
}

/* With updn: links to HCAs have changed, and nothing else. The directions of links, up or down, are
 * as before, and so are all paths but those to the HCAs' switches. */
static int repair_home(struct sm_routes *r, unsigned root)
{
	int ret;

	r->n_lids = 0;
	r->measured = r->net->home_changed[root];
	if (!r->measured)
		return 0;
	ret = turn_to(r, root);
	if (ret)
		return ret;
	sm_load_count(r, root, -1, false);
	return route_towards(r, root);
}

/* Whether the paths of the last sweep need but some repair. */
static bool can_repair(const struct sm_routes *r)
{
	if (!r->net->little_changed)
		return false;
	if (r->updn)
		return !r->net->n_down && !r->fresh && r->engine == SM_ROUTING_UPDN;
	return r->has_all_rows;
}

/* No distance has changed: only the ends of links that went down choose again. */
static int repair_towards(struct sm_routes *r, unsigned root)
{
	int ret = 0;

	if (r->updn)
		return repair_home(r, root);
	r->hops = row(r, root);
	r->measured = r->net->home_changed[root] || r->net->sw[root]->dead || !is_as_far(r, root);
	if (r->measured) {
		sm_load_count(r, root, -1, true);
		sm_hops_measure(r->measure, root, 1, r->hops, NULL);
		return route_towards(r, root);
	}
	r->n_lids = 0;
	if (r->net->n_down)
		sm_routes_list_lids(r, root);
	for (unsigned i = 0; i < r->net->n_down && !ret; i++) {
		const struct sm_down *down = &r->net->down[i];

		if (!was_used(r, root, down) || r->net->sw[down->at]->dead)
			continue;
		ret = route_switch(r, down->at, root);
		if (!ret && r->n_lids)
			ret = move_lids(r, down->at, down->link);
	}
	return ret;
}

static enum sm_routes_phase first_roots(const struct sm_routes *r)
{
	return r->keep ? SM_ROUTES_COUNT : SM_ROUTES_ALL;
}

/* All paths are chosen: anew, or those that cannot be kept. */
static void begin_all(struct sm_routes *r)
{
	r->engine = r->updn ? SM_ROUTING_UPDN : SM_ROUTING_MINHOP;
	r->keep = !r->net->came_up && !r->fresh;
	sm_load_clear(r);
	if (r->updn)
		sm_updn_begin(r->updn);
	r->phase = r->updn ? SM_ROUTES_RANK : first_roots(r);
}

void sm_routes_begin(struct sm_routes *r, uint16_t top, uint64_t changed[IB_LID_MCAST_FIRST / 64])
{
	r->changed = changed;
	r->top = top;
	r->next = 0;
	r->fresh = !has_tables(r->net);
	r->phase = SM_ROUTES_GROW;
}

/* Tables have room for all routes. 0 or -ENOMEM. */
static int begin_to_route(struct sm_routes *r)
{
	int ret = 0;

	r->phase = SM_ROUTES_DONE;
	if (r->net->nothing_changed)
		return 0;
	if (r->ftree && sm_ftree_begin(r->ftree, &ret)) {
		r->engine = SM_ROUTING_FTREE;
		r->phase = ret ? SM_ROUTES_DONE : SM_ROUTES_FTREE;
		return ret;
	}
	if (r->ftree)
		r->fresh |= sm_ftree_give_way(r->ftree);
	if (r->dfsssp) {
		r->engine = SM_ROUTING_DFSSSP;
		ret = sm_dfsssp_begin(r->dfsssp);
		r->phase = ret ? SM_ROUTES_DONE : SM_ROUTES_DFSSSP;
		return ret;
	}
	if (!can_repair(r)) {
		begin_all(r);
		return 0;
	}
	r->phase = SM_ROUTES_REPAIR;
	r->keep = true;
	r->lead = NULL;
	return 0;
}

/* Routes all switches to one more root. 0 or -ENOMEM. */
static int next_root(struct sm_routes *r)
{
	unsigned root = r->next++;
	int ret = 0;

	if (r->phase == SM_ROUTES_REPAIR)
		return repair_towards(r, root);
	ret = turn_to(r, root);
	if (ret)
		return ret;
	if (r->phase == SM_ROUTES_COUNT) {
		sm_load_count(r, root, 1, false);
		return 0;
	}
	if (r->keep)
		sm_load_count(r, root, -1, false);
	return route_towards(r, root);
}

/* The cost of a root, roughly, in table entries. */
static uint32_t cost_of(const struct sm_routes *r)
{
	/* measuring up/down paths looks at all links three times */
	uint32_t links = r->updn ? r->net->first[r->net->n] / 2 : 0;

	if (r->phase == SM_ROUTES_REPAIR && !r->measured)
		return 16 * r->n_lids + 4 * r->net->n_down + 32;
	return r->net->n * (r->n_lids + 2) * (r->keep ? 4 : 1) + links;
}

bool sm_routes_are_written(const struct sm_routes *r)
{
	return r->phase == SM_ROUTES_DONE;
}

/* Routes to some roots more. True: to all of them, in this phase. */
static bool next_roots(struct sm_routes *r, uint32_t *budget, int *ret)
{
	sm_fresh_begin(r); /* somebody else may have written, and made a table longer */
	while (!*ret && *budget && r->next < r->net->n) {
		uint32_t cost;

		*ret = next_root(r);
		cost = cost_of(r);
		*budget -= cost < *budget ? cost : *budget;
	}
	return r->next == r->net->n;
}

/* True: dfsssp has ended. If it cannot be, up/down routing has begun. */
static bool next_dfsssp(struct sm_routes *r, uint32_t *budget, int *ret)
{
	if (!sm_dfsssp_step(r->dfsssp, budget, ret))
		return false;
	if (*ret != -ENOSPC)
		return true;
	*ret = 0;
	r->fresh = true; /* the paths in the tables are not to be kept */
	begin_all(r);
	return false;
}

/* Goes on with the phase. True: it is done. */
static bool go_on(struct sm_routes *r, uint32_t *budget, int *ret)
{
	if (r->phase == SM_ROUTES_GROW)
		return grow_tables(r, budget, ret);
	if (r->phase == SM_ROUTES_FTREE)
		return sm_ftree_step(r->ftree, budget, ret);
	if (r->phase == SM_ROUTES_DFSSSP)
		return next_dfsssp(r, budget, ret);
	if (r->phase == SM_ROUTES_RANK)
		return sm_updn_step(r->updn, budget);
	return next_roots(r, budget, ret);
}

/* 0 or -ENOMEM. */
static int begin_next_phase(struct sm_routes *r)
{
	r->next = 0;
	switch (r->phase) {
	case SM_ROUTES_GROW:
		return begin_to_route(r);
	case SM_ROUTES_RANK:
		r->phase = first_roots(r);
		break;
	case SM_ROUTES_COUNT:
		r->phase = SM_ROUTES_ALL;
		break;
	default:
		r->phase = SM_ROUTES_DONE;
	}
	return 0;
}

int sm_routes_step(struct sm_routes *r, uint32_t *budget)
{
	int ret = 0;

	while (!ret && *budget && r->phase != SM_ROUTES_DONE)
		if (go_on(r, budget, &ret) && !ret)
			ret = begin_next_phase(r);
	return ret;
}
