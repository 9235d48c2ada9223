/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Routing of fat trees: every link carries the same number of LIDs, as far as the cables allow.
 * Called by sm_routes.c.
 *
 * A switch's level is its distance from the switches with hosts, level 0. In a fat tree each link
 * leads one level up or down. Paths go up, then down, so there are no credit loops. The trees of
 * groups do as well, in one order with the paths (sm_order.c): where links have failed, some may
 * have to be left to them. If there are no such paths between leaves that links connect, it is no
 * fat tree.
 *
 * Each LID gets a stem: from its leaf up to the top, one switch a level, at each by the link that
 * the fewest stems come down. All paths to the LID go to its stem, as near to the top as they can,
 * and down along it. So what goes down is shared out by the stems, and what goes up too, as each
 * stem has its own switch at the top. If a link is missing, a path that cannot reach the stem at
 * the top does so farther below.
 *
 * All stems are chosen anew when a link between switches comes up or goes down. A host whose link
 * is down keeps its place, so other paths do not move.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "subnet/sm_routes.h"

#define MAX_LEVELS 8

struct sm_ftree {
	struct sm_routes *r;
	const uint16_t *level; /* by switch */
	struct sm_order *order;
	unsigned *queue; /* scratch */
	bool *above;     /* by switch: the present root can be reached by going down alone */
	unsigned *up;    /* links that lead up: up[first_up[i]] to up[first_up[i + 1] - 1] */
	unsigned *first_up;
	uint32_t *stems; /* by switch: those that end here, at the top */
	/* by level and switch: bits of the root's LIDs whose paths from there join the stem at that
	 * level */
	uint64_t *joins[MAX_LEVELS];
	bool routed;      /* the tables are ours, and fit the links */
	bool has_written; /* they have paths of ours */
	unsigned next;    /* root to be routed to; all are: the number of switches */
};

int sm_ftree_new(struct sm_ftree **out, struct sm_routes *r)
{
	struct sm_ftree *t = calloc(1, sizeof(*t));
	size_t n = (size_t)r->net->n + 1;
	bool failed = false;

	if (!t)
		return -ENOMEM;
	t->r = r;
	t->level = r->net->level;
	t->queue = calloc(n, sizeof(*t->queue));
	t->above = calloc(n, sizeof(*t->above));
	t->up = calloc((size_t)r->net->first[r->net->n] + 1, sizeof(*t->up));
	t->first_up = calloc(n, sizeof(*t->first_up));
	t->stems = calloc(n, sizeof(*t->stems));
	for (unsigned i = 0; i < MAX_LEVELS; i++) {
		t->joins[i] = calloc(n * r->load.words + 1, sizeof(*t->joins[i]));
		failed |= !t->joins[i];
	}
	if (failed || !t->queue || !t->above || !t->up || !t->first_up || !t->stems ||
	    sm_order_new(&t->order, r->net)) {
		sm_ftree_free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

const struct sm_order *sm_ftree_order(const struct sm_ftree *t)
{
	return t->order;
}

void sm_ftree_free(struct sm_ftree *t)
{
	for (unsigned i = 0; i < MAX_LEVELS; i++)
		free(t->joins[i]);
	if (t->order)
		sm_order_free(t->order);
	free(t->queue);
	free(t->above);
	free(t->up);
	free(t->first_up);
	free(t->stems);
	free(t);
}

/* ---- levels ---- */

/* Whether each link leads one level up or down; if not, says which one. */
static bool is_fat_tree(const struct sm_ftree *t)
{
	const struct sm_net *net = t->r->net;

	for (unsigned i = 0; i < net->n; i++)
		for (unsigned k = net->first[i]; k < net->first[i + 1]; k++) {
			const struct sm_link *l = &net->link[k];

			if (!l->up || (abs((int)t->level[i] - (int)t->level[l->to]) == 1 &&
			               t->level[i] < MAX_LEVELS && t->level[l->to] < MAX_LEVELS))
				continue;
			base_log_warning(sm,
			                 "routing=ftree: this is no fat tree, as '%s' and '%s' are "
			                 "linked; it is routed up/down",
			                 net->sw[i]->name, net->sw[l->to]->name);
			return false;
		}
	return true;
}

/* Whether paths go up from @at to its neighbour @to. They do not where the order differs from that
 * of levels: such a link is left to groups. */
static inline bool rises(const struct sm_ftree *t, unsigned at, unsigned to)
{
	return t->level[to] > t->level[at] && t->order->place[to] < t->order->place[at];
}

static void list_up(struct sm_ftree *t)
{
	const struct sm_net *net = t->r->net;
	unsigned n = 0, moved;

	sm_order_by_level(t->order);
	moved = sm_order_mend(t->order);
	if (moved)
		base_log_info(sm,
		              "routing=ftree: links lead down to all hosts from no switch at the "
		              "top; they do as %u switches have another place",
		              moved);
	for (unsigned i = 0; i < net->n; i++) {
		t->first_up[i] = n;
		for (unsigned k = net->first[i]; k < net->first[i + 1]; k++)
			if (net->link[k].up && rises(t, i, net->link[k].to))
				t->up[n++] = k;
	}
	t->first_up[net->n] = n;
}

/* ---- whether leaves reach each other ---- */

/* The leaves, and which of them each switch leads to. */
struct reach {
	unsigned *leaf; /* their switches */
	unsigned n_leaves;
	unsigned words;   /* of the bits of a switch */
	uint64_t *bits;   /* by switch and leaf */
	unsigned *island; /* by switch: the lowest one that links connect with it */
};

static int reach_init(struct reach *c, const struct sm_ftree *t)
{
	const struct sm_net *net = t->r->net;

	*c = (struct reach){ .leaf = calloc(net->n, sizeof(*c->leaf)),
		             .island = calloc(net->n, sizeof(*c->island)) };
	if (!c->leaf || !c->island)
		return -ENOMEM;
	for (unsigned i = 0; i < net->n; i++)
		if (t->r->net->has_hosts[i] && !net->sw[i]->dead)
			c->leaf[c->n_leaves++] = i;
	c->words = c->n_leaves / 64 + 1;
	c->bits = calloc((size_t)net->n * c->words, sizeof(*c->bits));
	return c->bits ? 0 : -ENOMEM;
}

static void reach_fini(struct reach *c)
{
	free(c->leaf);
	free(c->island);
	free(c->bits);
}

static uint64_t *bits_of(const struct reach *c, unsigned at)
{
	return &c->bits[(size_t)at * c->words];
}

static void add_bits(const struct reach *c, unsigned to, unsigned from)
{
	uint64_t *a = bits_of(c, to);
	const uint64_t *b = bits_of(c, from);

	for (unsigned i = 0; i < c->words; i++)
		a[i] |= b[i];
}

/* First the leaves below each switch; then those that it reaches by going up as well. */
static void find_reached(const struct sm_ftree *t, const struct reach *c)
{
	const struct sm_net *net = t->r->net;

	for (unsigned i = 0; i < c->n_leaves; i++)
		bits_of(c, c->leaf[i])[i / 64] |= 1ull << (i % 64);
	for (unsigned i = net->n; i-- > 0;)
		for (unsigned at = t->order->sorted[i], k = t->first_up[at];
		     k < t->first_up[at + 1]; k++)
			add_bits(c, net->link[t->up[k]].to, at);
	for (unsigned i = 0; i < net->n; i++)
		for (unsigned at = t->order->sorted[i], k = t->first_up[at];
		     k < t->first_up[at + 1]; k++)
			add_bits(c, at, net->link[t->up[k]].to);
}

/* A leaf that links connect with the leaf at @from, and that it does not reach; or NULL. */
static const unsigned *first_missed(const struct reach *c, unsigned from)
{
	const uint64_t *bits = bits_of(c, from);

	for (unsigned word = 0; word < c->words; word++)
		for (uint64_t rest = ~bits[word]; rest; rest &= rest - 1) {
			unsigned i = word * 64 + (unsigned)__builtin_ctzll(rest);

			if (i < c->n_leaves && c->island[c->leaf[i]] == c->island[from])
				return &c->leaf[i];
		}
	return NULL;
}

/* Whether each leaf has a path to all that links connect it with; if not, says which one has none.
 * *@ret: 0 or -ENOMEM. */
static bool is_whole(const struct sm_ftree *t, int *ret)
{
	const struct sm_net *net = t->r->net;
	const unsigned *missed = NULL;
	struct reach c;

	*ret = reach_init(&c, t);
	if (!*ret) {
		find_reached(t, &c);
		sm_net_find_islands(net, c.island, t->queue);
	}
	for (unsigned i = 0; i < c.n_leaves && !*ret && !missed; i++) {
		missed = first_missed(&c, c.leaf[i]);
		if (missed)
			base_log_warning(sm,
			                 "routing=ftree: too many links are down, as no path from "
			                 "'%s' to '%s' goes up and then down; it is routed up/down",
			                 net->sw[c.leaf[i]]->name, net->sw[*missed]->name);
	}
	reach_fini(&c);
	return !missed;
}

/* ---- distances ---- */

/* Measures the paths to the present root: first the paths that only go down, then the paths that go
 * up before they go down. */
static void measure(struct sm_ftree *t, unsigned root)
{
	const struct sm_net *net = t->r->net;
	uint16_t *hops = t->r->hops;
	unsigned head = 0, tail = 0;

	memset(hops, 0xFF, net->n * sizeof(*hops));
	memset(t->above, 0, net->n * sizeof(*t->above));
	hops[root] = 0;
	t->above[root] = true;
	t->queue[tail++] = root;
	while (head < tail) {
		unsigned at = t->queue[head++];

		for (unsigned k = t->first_up[at]; k < t->first_up[at + 1]; k++) {
			unsigned to = net->link[t->up[k]].to;

			if (t->above[to])
				continue;
			t->above[to] = true;
			hops[to] = hops[at] + 1;
			t->queue[tail++] = to;
		}
	}
	for (unsigned i = 0; i < net->n; i++) {
		unsigned at = t->order->sorted[i];

		for (unsigned k = t->first_up[at]; k < t->first_up[at + 1] && !t->above[at]; k++) {
			unsigned to = net->link[t->up[k]].to;

			if (hops[to] != SM_FAR && hops[to] + 1 < hops[at])
				hops[at] = hops[to] + 1;
		}
	}
}

/* Whether a link is on a shortest path from @at: it leads down above the root, and up elsewhere. */
static inline bool leads(const struct sm_ftree *t, unsigned at, const struct sm_link *l)
{
	if (!l->up || t->r->hops[l->to] + 1 != t->r->hops[at])
		return false;
	return t->above[at] ? t->above[l->to] && rises(t, l->to, at) : rises(t, at, l->to);
}

/* ---- stems ---- */

/* How many stems come down the link of which @l is the lower end, at @at. */
static uint32_t *stems_down(const struct sm_ftree *t, unsigned at, const struct sm_link *l)
{
	const struct fabric_port *top = t->r->net->sw[at]->port[l->port].peer;

	return sm_load_at(t->r, l->to, top->num);
}

/* How good it is to go on up from @at, the less the better: by the stems that come down the best
 * link, then by those at the top. */
static uint64_t look_up(const struct sm_ftree *t, unsigned at)
{
	uint64_t best = UINT64_MAX;

	if (t->first_up[at] == t->first_up[at + 1])
		return t->stems[at];
	for (unsigned k = t->first_up[at]; k < t->first_up[at + 1]; k++) {
		const struct sm_link *l = &t->r->net->link[t->up[k]];
		uint64_t above = look_up(t, l->to);
		uint64_t rank =
		        (uint64_t)*stems_down(t, at, l) << 40 | (above >> 40 ? above >> 16 : above);

		best = rank < best ? rank : best;
	}
	return best;
}

/* Grows the stem of LID number @i from the present root to the top. */
static void grow_stem(struct sm_ftree *t, unsigned root, unsigned i)
{
	const struct sm_net *net = t->r->net;
	unsigned at = root, words = t->r->load.words;

	for (;;) {
		const struct sm_link *best = NULL;
		uint64_t least = UINT64_MAX;
		uint32_t fewest = UINT32_MAX;

		t->joins[t->level[at] - t->level[root]][(size_t)at * words + i / 64] |= 1ull
		                                                                        << (i % 64);
		for (unsigned k = t->first_up[at]; k < t->first_up[at + 1]; k++) {
			const struct sm_link *l = &net->link[t->up[k]];
			uint32_t stems = *stems_down(t, at, l);
			uint64_t rank;

			if (stems > fewest)
				continue;
			rank = look_up(t, l->to);
			if (stems == fewest && rank >= least)
				continue;
			fewest = stems;
			least = rank;
			best = l;
		}
		if (!best)
			break;
		++*stems_down(t, at, best);
		at = best->to;
	}
	t->stems[at]++;
}

static void grow_stems(struct sm_ftree *t, unsigned root)
{
	struct sm_routes *r = t->r;

	for (unsigned level = 0; level < MAX_LEVELS; level++)
		memset(t->joins[level], 0, (size_t)r->net->n * r->load.words * sizeof(uint64_t));
	for (unsigned i = 0; i < r->n_lids; i++)
		grow_stem(t, root, i);
}

/* ---- tables ---- */

/* The links from one switch towards the present root. */
struct ways {
	unsigned at, n;
	const struct sm_link *link[FABRIC_MAX_PORTS];
	unsigned next; /* where the search for one of several equal ones begins */
	bool counts;   /* they lead up, and some host's packets go by them */
};

/* LID number @i goes by this link. */
static int go(struct sm_ftree *t, const struct ways *w, unsigned way, unsigned i)
{
	uint8_t port = w->link[way]->port;

	if (w->counts)
		++*sm_load_at(t->r, w->at, port);
	return sm_routes_write(t->r, w->at, t->r->lid[i].lid, port);
}

static uint64_t joins(const struct sm_ftree *t, unsigned level, unsigned at, unsigned word)
{
	return t->joins[level][(size_t)at * t->r->load.words + word];
}

/*
 * One of several links by which LID number @i joins its stem at @level: the one with the fewest
 * LIDs. Where no host's packets come, because they would have joined before, links have turns.
 */
static unsigned choose_way(const struct sm_ftree *t, struct ways *w, unsigned level, unsigned i)
{
	uint32_t fewest = UINT32_MAX;
	unsigned best = 0;

	for (unsigned k = 0; k < w->n; k++) {
		unsigned way = (w->next + k) % w->n;
		uint32_t lids = w->counts ? *sm_load_at(t->r, w->at, w->link[way]->port) : 0;

		if (lids >= fewest || !(joins(t, level, w->link[way]->to, i / 64) >> (i % 64) & 1))
			continue;
		fewest = lids;
		best = way;
		if (!w->counts)
			break;
	}
	w->next = best + 1;
	return best;
}

/* Routes those of @need that can join their stems at @level. *@need: the rest. */
static int route_level(struct sm_ftree *t, struct ways *w, unsigned level, unsigned word,
                       uint64_t *need)
{
	uint64_t once = 0, twice = 0;
	int ret = 0;

	w->counts = !t->above[w->at] && (level || t->r->net->has_hosts[w->at]);
	for (unsigned k = 0; k < w->n; k++) {
		uint64_t can = *need & joins(t, level, w->link[k]->to, word);

		twice |= once & can;
		once |= can;
	}
	for (unsigned k = 0; k < w->n && once & ~twice; k++) {
		uint64_t bits = *need & ~twice & joins(t, level, w->link[k]->to, word);

		for (; bits && !ret; bits &= bits - 1)
			ret = go(t, w, k, word * 64 + (unsigned)__builtin_ctzll(bits));
	}
	for (uint64_t bits = twice; bits && !ret; bits &= bits - 1) {
		unsigned i = word * 64 + (unsigned)__builtin_ctzll(bits);

		ret = go(t, w, choose_way(t, w, level, i), i);
	}
	/* a stem's own switch has joined it already */
	t->joins[level][(size_t)w->at * t->r->load.words + word] |= once;
	*need &= ~once;
	return ret;
}

/* The LIDs whose stems pass through @at go down along them. */
static int route_stems(struct sm_ftree *t, struct ways *w, unsigned level, unsigned word,
                       uint64_t *need)
{
	uint64_t own = level ? joins(t, level, w->at, word) & *need : 0, rest = own;
	int ret = own ? route_level(t, w, level - 1, word, &rest) : 0;

	/* they join here, not one level below */
	if (own)
		t->joins[level - 1][(size_t)w->at * t->r->load.words + word] &= ~own;
	*need &= ~own;
	return ret;
}

/* Writes the routes of switch @at to the HCAs of @root. */
static int route_from(struct sm_ftree *t, unsigned at, unsigned root)
{
	const struct sm_net *net = t->r->net;
	unsigned top = MAX_LEVELS - 1 - t->level[root], n_lids = t->r->n_lids;
	struct ways w = { .at = at };
	int ret = 0;

	for (unsigned k = net->first[at]; k < net->first[at + 1]; k++)
		if (leads(t, at, &net->link[k]))
			w.link[w.n++] = &net->link[k];
	w.next = root; /* after failures LIDs come here that are the n-th of many roots */
	for (unsigned i = 0; i < n_lids && !w.n && !ret; i++)
		ret = sm_routes_write(t->r, at, t->r->lid[i].lid, FABRIC_LFT_NONE);
	for (unsigned word = 0; word * 64 < n_lids && w.n && !ret; word++) {
		unsigned left = n_lids - word * 64;
		uint64_t need = left >= 64 ? UINT64_MAX : (1ull << left) - 1;

		if (t->above[at])
			ret = route_stems(t, &w, t->level[at] - t->level[root], word, &need);
		for (unsigned level = top + 1; level-- > 0 && need && !ret;)
			ret = route_level(t, &w, level, word, &need);
	}
	return ret;
}

/* Writes the routes of switch @at to the switch @root. */
static int route_switch(struct sm_ftree *t, unsigned at, unsigned root)
{
	const struct sm_net *net = t->r->net;
	uint16_t lid = net->lid[root];

	for (unsigned k = net->first[at]; k < net->first[at + 1]; k++)
		if (t->r->hops[at] != SM_FAR && leads(t, at, &net->link[k]))
			return sm_routes_write(t->r, at, lid, net->link[k].port);
	return sm_routes_write(t->r, at, lid, FABRIC_LFT_NONE);
}

static int route_towards(struct sm_ftree *t, unsigned root)
{
	struct sm_routes *r = t->r;
	int ret = 0;

	measure(t, root);
	sm_routes_list_lids(r, root);
	if (r->n_lids)
		grow_stems(t, root);
	sm_routes_sort(r);
	for (unsigned i = r->net->n; i-- > 0 && !ret;) {
		unsigned at = r->order[i]; /* the nearest first */

		if (r->net->sw[at]->dead)
			continue;
		if (at == root) {
			ret = sm_routes_home(r, at);
			continue;
		}
		ret = route_switch(t, at, root);
		if (!ret && r->n_lids)
			ret = route_from(t, at, root);
	}
	return ret;
}

/* Only links of hosts have changed: the other switches keep their routes to them. */
static int route_homes(struct sm_ftree *t)
{
	int ret = 0;

	for (unsigned i = 0; i < t->r->net->n && !ret; i++) {
		if (!t->r->net->home_changed[i])
			continue;
		sm_routes_list_lids(t->r, i);
		ret = sm_routes_home(t->r, i);
	}
	return ret;
}

bool sm_ftree_begin(struct sm_ftree *t, int *ret)
{
	struct sm_net *net = t->r->net;

	*ret = 0;
	t->next = net->n;
	if (t->routed && net->little_changed && !net->n_down) {
		*ret = route_homes(t);
		return true;
	}
	t->routed = false;
	if (!is_fat_tree(t))
		return false;
	list_up(t);
	if (!is_whole(t, ret))
		return false;
	if (*ret)
		return true;
	t->has_written = true;
	sm_load_clear(t->r);
	memset(t->stems, 0, net->n * sizeof(*t->stems));
	t->r->hops = t->r->rows;
	t->next = 0;
	return true;
}

bool sm_ftree_give_way(struct sm_ftree *t)
{
	const bool had_written = t->has_written;

	t->has_written = false;
	return had_written;
}

bool sm_ftree_step(struct sm_ftree *t, uint32_t *budget, int *ret)
{
	const struct sm_net *net = t->r->net;

	*ret = 0;
	while (t->next < net->n && *budget && !*ret) {
		uint32_t cost;

		*ret = route_towards(t, t->next++);
		cost = 2 * net->n * (t->r->n_lids + 2) + net->first[net->n] / 4;
		*budget -= cost < *budget ? cost : *budget;
	}
	if (t->next < net->n && !*ret)
		return false;
	t->routed = !*ret;
	return true;
}
