/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast: the spanning tree that connects the members of a group, and the rows of the switches
 * on it, written at once or after a delay. See sm_route_mcast() in sm.h.
 *
 * An MLID has a core, a switch from which the shortest ways down to all members are its tree
 * (sm_cores.c). It keeps its core as long as there are such ways, so a port that joins or leaves
 * moves no other. The end of the tree at the core is cut off as far as it does not branch.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "fabric/forwarding/flow.h"
#include "subnet/sm.h"
#include "subnet/sm_state.h"

/* A multicast table to be written later. */
struct pending {
	struct pending *next;
	uint64_t due_ms;
	uint16_t mlid;
	struct fabric_mft_row row[]; /* by switch */
};

struct sm_trees {
	struct sm_cores *cores;
	unsigned *parent; /* scratch: breadth-first tree by switch index */
	uint8_t *up;      /* scratch: the port towards the parent; 0: this is the root */
	unsigned *queue;  /* scratch */
	unsigned *edge;   /* scratch: the switches with members, in the order of these */
	unsigned n_edges;
	unsigned n_missing; /* of these, those that the trees have not reached */
	unsigned *root;     /* scratch: of the trees: one in each island */
	unsigned n_roots;
	bool obey;               /* they go up and down in the order */
	struct on_tree *on_tree; /* scratch: by switch */
	struct pending *pending; /* in order of time */
	uint32_t routed;         /* changes of trees so far, on a weak fabric */
};

/* A switch's place on the tree. */
struct on_tree {
	unsigned members, children; /* here, and neighbours away from the root that lead to some */
	unsigned child;             /* one of them */
	bool climbed;               /* it counts as its parent's child */
	bool listed;                /* as a switch with members */
};

int sm_trees_new(struct sm_trees **out, struct sm *sm)
{
	struct sm_trees *t = calloc(1, sizeof(*t));
	size_t n = sm->net.n + 1;

	if (!t)
		return -ENOMEM;
	t->parent = calloc(n, sizeof(*t->parent));
	t->up = calloc(n, sizeof(*t->up));
	t->queue = calloc(n, sizeof(*t->queue));
	t->edge = calloc(n, sizeof(*t->edge));
	t->root = calloc(n, sizeof(*t->root));
	t->on_tree = calloc(n, sizeof(*t->on_tree));
	if (!t->parent || !t->up || !t->queue || !t->edge || !t->root || !t->on_tree ||
	    sm_cores_new(&t->cores, &sm->net)) {
		sm_trees_free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

void sm_trees_free(struct sm_trees *t)
{
	while (t->pending) {
		struct pending *p = t->pending;

		t->pending = p->next;
		free(p);
	}
	if (t->cores)
		sm_cores_free(t->cores);
	free(t->parent);
	free(t->up);
	free(t->queue);
	free(t->edge);
	free(t->root);
	free(t->on_tree);
	free(t);
}

void sm_trees_look(struct sm_trees *t)
{
	sm_cores_look(t->cores);
}

void sm_trees_obey(struct sm_trees *t, const struct sm_order *order)
{
	sm_cores_obey(t->cores, order);
}

/* ---- trees ---- */

static void add_to_tree(struct sm_trees *t, unsigned at, unsigned parent, uint8_t up)
{
	t->parent[at] = parent;
	t->up[at] = up;
	t->n_missing -= t->on_tree[at].listed;
}

/*
 * Grows the breadth-first tree on from the switches that are in it, number @head to @tail of the
 * queue, until it has reached all with members: fills parent and up. @order: only down; or NULL.
 * @turn: where each switch begins with its links, of which several may be equal. How many there are
 * then.
 */
static unsigned spread(struct sm *sm, const struct sm_order *order, unsigned turn, unsigned head,
                       unsigned tail)
{
	const struct sm_net *net = &sm->net;
	struct sm_trees *t = sm->trees;

	while (head < tail && t->n_missing) {
		unsigned at = t->queue[head++], n = net->first[at + 1] - net->first[at];
		unsigned begin = n ? turn % n : 0;

		for (unsigned i = 0; i < n; i++) {
			unsigned k = begin + i < n ? begin + i : begin + i - n;
			const struct sm_link *l = &net->link[net->first[at] + k];

			if (!l->up || t->parent[l->to] != SM_NO_SWITCH ||
			    (order && order->place[l->to] < order->place[at]))
				continue;
			add_to_tree(t, l->to, at, net->sw[at]->port[l->port].peer->num);
			t->queue[tail++] = l->to;
		}
	}
	return tail;
}

/* Whether the tree in this island has reached the switches with members. */
static bool has_all(const struct sm *sm, unsigned island)
{
	const struct sm_trees *t = sm->trees;

	for (unsigned i = 0; i < t->n_edges; i++)
		if (t->parent[t->edge[i]] == SM_NO_SWITCH &&
		    sm_core_island(t->cores, t->edge[i]) == island)
			return false;
	return true;
}

/*
 * Grows the tree from @root, which is in none yet. In mid-sweep, when links have failed and the
 * order is not yet known that the new routes will have, it may not reach all by going down: then it
 * does not obey, and is grown anew after the sweep.
 */
static void grow_tree(struct sm *sm, unsigned root, unsigned turn)
{
	struct sm_trees *t = sm->trees;
	const struct sm_order *order = sm_core_order(t->cores, root);
	unsigned n;

	t->root[t->n_roots++] = root;
	add_to_tree(t, root, root, 0);
	t->queue[0] = root;
	n = spread(sm, order, turn, 0, 1);
	if (!order || has_all(sm, sm_core_island(t->cores, root)))
		return;
	spread(sm, NULL, turn, 0, n);
	t->obey = false;
}

/* Grows the trees: from the core, and one in each island with members that this is not in. */
static void grow_trees(struct sm *sm, unsigned core, unsigned turn)
{
	struct sm_trees *t = sm->trees;

	for (unsigned i = 0; i < sm->net.n; i++)
		t->parent[i] = SM_NO_SWITCH;
	t->n_missing = t->n_edges;
	t->n_roots = 0;
	t->obey = true;
	grow_tree(sm, core, turn);
	for (unsigned i = 0; i < t->n_edges; i++) {
		unsigned other;

		if (t->parent[t->edge[i]] != SM_NO_SWITCH)
			continue;
		sm_core_list(t->cores, &t->edge[i], t->n_edges - i, &other, 1);
		grow_tree(sm, other, turn);
	}
}

/* Whether some member is farther from the core than the way straight up. */
static bool is_long(const struct sm *sm, unsigned core)
{
	const struct sm_trees *t = sm->trees;
	unsigned height = sm_core_height(t->cores, core);

	for (unsigned i = 0; i < t->n_edges && height; i++) {
		unsigned steps = 0;

		for (unsigned at = t->edge[i]; t->up[at] && steps <= height; at = t->parent[at])
			steps++;
		if (steps > height)
			return true;
	}
	return false;
}

/*
 * Chooses the core and grows the trees. After a sweep in which the tree was affected, another core
 * may be better: one with all members straight below it, as each has been so far.
 */
static void choose_core(struct sm *sm, uint16_t mlid)
{
	struct sm_trees *t = sm->trees;
	unsigned other[SM_CORE_TRIES], n, best = 0;
	const unsigned turn = sm_core_turn(t->cores, mlid);
	bool check;
	const unsigned core = sm_core_get(t->cores, mlid, t->edge, t->n_edges, &check);

	if (core != SM_NO_SWITCH) {
		grow_trees(sm, core, turn);
		if (!check || !is_long(sm, core))
			return;
	}
	n = sm_core_list(t->cores, t->edge, t->n_edges, other, SM_CORE_TRIES);
	for (; best < n; best++) {
		grow_trees(sm, other[best], turn);
		if (!is_long(sm, other[best]))
			break;
	}
	if (best == n) {
		if (core == SM_NO_SWITCH)
			sm_core_set(t->cores, mlid, other[0]);
		grow_trees(sm, core == SM_NO_SWITCH ? other[0] : core, turn);
		return;
	}
	sm_core_set(t->cores, mlid, other[best]);
}

/* The switch of a member; NULL: it has none, as its link is down. */
static const struct fabric_port *edge_of(const struct sm_member *m)
{
	const struct fabric_port *edge = sm_far_end(m->port);

	return edge && edge->node->type == FABRIC_SWITCH ? edge : NULL;
}

static void list_edges(struct sm *sm, const struct sm_member *member, unsigned n)
{
	struct sm_trees *t = sm->trees;

	memset(t->on_tree, 0, sm->net.n * sizeof(*t->on_tree));
	t->n_edges = 0;
	for (unsigned i = 0; i < n; i++) {
		const struct fabric_port *edge = edge_of(&member[i]);

		if (!edge)
			continue;
		if (!t->on_tree[edge->node->index].listed)
			t->edge[t->n_edges++] = edge->node->index;
		t->on_tree[edge->node->index].listed = true;
	}
}

/* Notes that the way from @at to its parent is used. */
static void note_child(struct sm_trees *t, unsigned at)
{
	struct on_tree *parent = &t->on_tree[t->parent[at]];

	if (t->on_tree[at].climbed)
		return;
	t->on_tree[at].climbed = true;
	parent->children++;
	parent->child = at;
}

/* Cuts off the end of the tree at its root @core that does not branch. */
static void prune(const struct sm_trees *t, unsigned core, struct fabric_mft_row *row)
{
	static const struct fabric_mft_row nothing;

	while (!t->on_tree[core].members && t->on_tree[core].children == 1) {
		unsigned child = t->on_tree[core].child;

		row[core] = nothing;
		row[child].ports[t->up[child] / 64] &= ~(1ull << (t->up[child] % 64));
		core = child;
	}
}

/*
 * Makes the rows of the tree that connects the members; of several trees if the subnet is split. A
 * row leads towards the root from every member, and away from it only to members that receive.
 */
static void build_rows(struct sm *sm, uint16_t mlid, const struct sm_member *member, unsigned n,
                       struct fabric_mft_row *row)
{
	struct sm_trees *t = sm->trees;

	list_edges(sm, member, n);
	if (!t->n_edges)
		return;
	choose_core(sm, mlid);
	sm_core_obeys(t->cores, mlid, t->obey);
	for (unsigned i = 0; i < n; i++) {
		const struct fabric_port *edge = edge_of(&member[i]);
		unsigned at;

		if (!edge)
			continue;
		at = edge->node->index;
		t->on_tree[at].members++;
		if (member[i].receives)
			fabric_row_add(&row[at], edge->num);
		for (; t->up[at]; at = t->parent[at]) {
			const struct fabric_port *up = &sm->net.sw[at]->port[t->up[at]];

			note_child(t, at);
			fabric_row_add(&row[at], up->num);
			if (member[i].receives)
				fabric_row_add(&row[t->parent[at]], up->peer->num);
		}
	}
	for (unsigned i = 0; i < t->n_roots; i++)
		prune(t, t->root[i], row);
}

static const struct fabric_mft_row empty;

static const struct fabric_mft_row *row_of(const struct fabric_node *sw, uint16_t mlid)
{
	const struct fabric_mft_row *row = fabric_mft_get(sw, mlid);

	return row ? row : &empty;
}

/* The ports that are in one row but not in both. */
static struct fabric_mft_row difference(const struct fabric_mft_row *a,
                                        const struct fabric_mft_row *b)
{
	struct fabric_mft_row d;

	for (unsigned i = 0; i < FABRIC_MFT_BLOCKS; i++)
		d.ports[i] = a->ports[i] ^ b->ports[i];
	return d;
}

/* The next port after @port in the row; 0: none. */
static unsigned next_port(const struct fabric_mft_row *row, unsigned port)
{
	for (port++; port <= FABRIC_MAX_PORTS; port++)
		if (fabric_row_has(row, port))
			return port;
	return 0;
}

/* How a row changes: not at all, only in ports to HCAs, or in the tree itself. */
enum change { SAME = 0, EDGES = 1, TREE = 3 };

static enum change compare(const struct fabric_node *sw, uint16_t mlid,
                           const struct fabric_mft_row *row)
{
	struct fabric_mft_row d = difference(row_of(sw, mlid), row);

	if (fabric_row_is_empty(&d))
		return SAME;
	for (unsigned k = next_port(&d, 0); k; k = next_port(&d, k))
		if (k > sw->n_ports || !sw->port[k].peer ||
		    sw->port[k].peer->node->type != FABRIC_HCA)
			return TREE;
	return EDGES;
}

/* Writes the row of @mlid in one switch, and updates the flows through it. */
static int write_edges(struct sm *sm, struct fabric_node *sw, uint16_t mlid,
                       const struct fabric_mft_row *row)
{
	const struct fabric_mft_row d = difference(row_of(sw, mlid), row);
	const uint64_t since = sm->f->flows->compiled;
	int ret = fabric_mft_set(sm->f, sw, mlid, row);

	for (unsigned k = ret ? 0 : next_port(&d, 0); k; k = next_port(&d, k))
		fabric_flow_edge_changed(sm->f, &sw->port[k], mlid, since);
	return ret;
}

/*
 * Writes the rows of @mlid; @row: by switch, NULL: all are empty. A switch without a row gets no
 * memory for an empty one. If the tree itself does not change, flows are updated without a walk.
 */
static int write_rows(struct sm *sm, uint16_t mlid, const struct fabric_mft_row *row)
{
	unsigned *const changed = sm->trees->queue;
	enum change change = SAME;
	unsigned n_changed = 0;
	int ret = 0;

	for (unsigned i = 0; i < sm->net.n; i++) {
		const enum change here = compare(sm->net.sw[i], mlid, row ? &row[i] : &empty);

		change |= here;
		if (here != SAME)
			changed[n_changed++] = i;
	}
	for (unsigned k = 0; k < n_changed && !ret; k++) {
		struct fabric_node *sw = sm->net.sw[changed[k]];
		const struct fabric_mft_row *r = row ? &row[changed[k]] : &empty;

		ret = change == EDGES ? write_edges(sm, sw, mlid, r)
		                      : fabric_mft_set(sm->f, sw, mlid, r);
	}
	if (change == TREE)
		fabric_flow_lid_changed(sm->f, mlid);
	return ret;
}

/* Discards the tables of @mlid that are due at @due_ms or later. */
static void forget_pending(struct sm *sm, uint16_t mlid, uint64_t due_ms)
{
	struct pending **p = &sm->trees->pending;

	while (*p) {
		struct pending *old = *p;

		if (old->mlid != mlid || old->due_ms < due_ms) {
			p = &old->next;
			continue;
		}
		*p = old->next;
		free(old);
	}
}

static void append_pending(struct sm *sm, struct pending *p)
{
	struct pending **at = &sm->trees->pending;

	while (*at && (*at)->due_ms <= p->due_ms)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
}

static uint64_t now_ms(const struct sm *sm)
{
	return sm->ops.now_ms ? sm->ops.now_ms(sm->ops.arg) : base_now_ns() / 1000000;
}

/* ---- after another subnet manager ---- */

static void note_forwarded(struct sm *sm, const struct fabric_node *sw)
{
	for (uint32_t i = 0; i < sw->mft_size; i++) {
		if (fabric_row_is_empty(&sw->mft[i]))
			continue;
		sm->earlier[i / 64] |= 1ull << (i % 64);
		sm->learning = true;
	}
}

bool sm_learn_step(struct sm *sm, unsigned *at, uint32_t *budget)
{
	for (; *at < sm->net.n && *budget; ++*at) {
		uint32_t cost = sm->net.sw[*at]->mft_size + 1;

		note_forwarded(sm, sm->net.sw[*at]);
		*budget -= cost < *budget ? cost : *budget;
	}
	return *at == sm->net.n;
}

bool sm_is_learning(const struct sm *sm)
{
	return sm->learning;
}

bool sm_mlid_is_earlier(const struct sm *sm, uint16_t mlid)
{
	unsigned i = mlid - IB_LID_MCAST_FIRST;

	return sm->learning && (sm->earlier[i / 64] >> (i % 64) & 1);
}

/* Whether the tables that are there lead to all of the members, and from them. */
static bool are_served(uint16_t mlid, const struct sm_member *member, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct fabric_port *edge = edge_of(&member[i]);
		const struct fabric_mft_row *row = edge ? fabric_mft_get(edge->node, mlid) : NULL;

		if (edge && (!row || fabric_row_is_empty(row) ||
		             (member[i].receives && !fabric_row_has(row, edge->num))))
			return false;
	}
	return true;
}

void sm_mlid_learned(struct sm *sm, uint16_t mlid)
{
	unsigned i = mlid - IB_LID_MCAST_FIRST;

	sm->earlier[i / 64] &= ~(1ull << (i % 64));
}

void sm_learned(struct sm *sm)
{
	sm->learning = false;
}

/* How long after a join the switches forward, ms. */
static unsigned delay_of(struct sm *sm, uint16_t mlid)
{
	const struct fabric_weak *weak = &sm->f->weak;
	unsigned delay = sm->f->settings.mft_delay_ms;

	if (weak->choose)
		delay += weak->choose(weak->arg, mlid, sm->trees->routed++, BASE_WEAK_STEP_join);
	return delay;
}

int sm_route_mcast(struct sm *sm, uint16_t mlid, const struct sm_member *member, unsigned n)
{
	struct pending *p;
	unsigned delay;
	int ret;

	if (!ib_lid_is_mcast(mlid) ||
	    mlid - IB_LID_MCAST_FIRST >= (int)sm->f->settings.mft_capacity)
		return -ENOSPC;
	sm->f->flows->work += sm->net.n + n;
	if (sm_mlid_is_earlier(sm, mlid) && are_served(mlid, member, n))
		return 0;
	if (!n) {
		forget_pending(sm, mlid, 0);
		sm_core_put(sm->trees->cores, mlid);
		write_rows(sm, mlid, NULL);
		return 0;
	}
	p = calloc(1, sizeof(*p) + sm->net.n * sizeof(p->row[0]));
	if (!p)
		return -ENOMEM;
	build_rows(sm, mlid, member, n, p->row);
	delay = delay_of(sm, mlid);
	base_log_trace(join, "SM: a new tree for MLID 0x%04x, written in %u ms; members: %u", mlid,
	               delay, n);
	if (!delay) {
		forget_pending(sm, mlid, 0);
		ret = write_rows(sm, mlid, p->row);
		free(p);
		return ret;
	}
	p->mlid = mlid;
	p->due_ms = now_ms(sm) + delay;
	forget_pending(sm, mlid, p->due_ms); /* the delay was shortened meanwhile */
	append_pending(sm, p);
	sm->ops.wake(sm->ops.arg, delay);
	return 0;
}

static bool is_stale(const struct sm *sm, uint16_t mlid)
{
	const struct sm_net *net = &sm->net;

	if (!net->little_changed || sm_core_is_stale(sm->trees->cores, mlid))
		return true;
	for (const struct pending *p = sm->trees->pending; p; p = p->next)
		if (p->mlid == mlid)
			return true;
	for (unsigned i = 0; i < net->n_down; i++) {
		const struct sm_down *down = &net->down[i];

		if (fabric_row_has(fabric_mft_get(net->sw[down->at], mlid), down->link->port))
			return true;
	}
	return false;
}

bool sm_mcast_is_stale(const struct sm *sm, uint16_t mlid)
{
	bool stale = is_stale(sm, mlid);

	if (!stale) /* a port that joins later moves no other */
		sm_core_keep(sm->trees->cores, mlid);
	return stale;
}

void sm_run_due(struct sm *sm, uint64_t now_ms)
{
	while (sm->trees->pending && sm->trees->pending->due_ms <= now_ms) {
		struct pending *p = sm->trees->pending;

		sm->trees->pending = p->next;
		write_rows(sm, p->mlid, p->row); /* sm_route_mcast() has checked the capacity */
		free(p);
	}
	if (sm->trees->pending)
		sm->ops.wake(sm->ops.arg, (unsigned)(sm->trees->pending->due_ms - now_ms));
}
