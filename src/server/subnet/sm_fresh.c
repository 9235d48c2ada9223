/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths that are all chosen anew, as sm_routes.c does it if none is to be kept, and with the same
 * result. All tables of a large fabric together have tens of millions of entries, so this is made
 * short: the links that lead to a root are bits, found for 64 roots at a time (sm_hops.c), and a
 * switch's entries for the HCAs of a root, whose LIDs mostly follow each other, are written at
 * once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "subnet/sm_routes.h"

/* The ways from a switch to the present root, by their first links. */
struct exits {
	unsigned n, cursor; /* those before cursor have more than the least load */
	uint32_t least;
	uint32_t *load; /* of each: the switch's own counts, if the ports follow each other */
	uint32_t copy[FABRIC_MAX_PORTS];
	const struct sm_exit *exit; /* those of the switch, if they follow each other; or @list */
	struct sm_exit list[FABRIC_MAX_PORTS];
};

int sm_fresh_init(struct sm_routes *r)
{
	const struct sm_net *net = r->net;
	struct sm_leads *l = &r->leads;
	unsigned words = 0;

	r->table = calloc(net->n + 1, sizeof(*r->table));
	l->word = calloc(net->n + 1, sizeof(*l->word));
	l->by_link = calloc(net->first[net->n] + 1, sizeof(*l->by_link));
	l->exit = calloc(net->first[net->n] + 1, sizeof(*l->exit));
	if (!r->table || !l->word || !l->by_link || !l->exit)
		return -ENOMEM;
	for (unsigned i = 0; i < net->n; i++) {
		l->word[i] = words;
		words += (net->first[i + 1] - net->first[i] + 63) / 64;
	}
	l->word[net->n] = words;
	for (unsigned k = 0; k < net->first[net->n]; k++)
		l->exit[k] = (struct sm_exit){ .to = net->link[k].to & 0xFFFFFF,
			                       .port = net->link[k].port };
	l->bits = calloc((size_t)words * SM_HOPS_ROOTS + 1, sizeof(*l->bits));
	l->port = calloc((size_t)net->n * SM_HOPS_ROOTS + 1, 1);
	return l->bits && l->port ? 0 : -ENOMEM;
}

void sm_fresh_fini(struct sm_routes *r)
{
	free(r->table);
	free(r->leads.word);
	free(r->leads.by_link);
	free(r->leads.exit);
	free(r->leads.bits);
	free(r->leads.port);
}

void sm_fresh_begin(struct sm_routes *r)
{
	for (unsigned i = 0; i < r->net->n; i++) {
		const struct fabric_node *sw = r->net->sw[i];

		r->table[i] = (struct sm_table){ .out = sw->dead ? NULL : sw->lft,
			                         .size = sw->dead ? 0 : sw->lft_size };
	}
}

const uint64_t *sm_leads_of(const struct sm_leads *l, unsigned n_switches, unsigned root)
{
	return &l->bits[(size_t)(root % SM_HOPS_ROOTS) * l->word[n_switches]];
}

/* ---- entries that follow each other ---- */

/* Notes which of @n LIDs, from @lid on, have another route than before. Whether all of them are
 * noted now. */
static bool note_changed(struct sm_routes *r, uint16_t lid, unsigned n, const uint8_t *old,
                         const uint8_t *out)
{
	bool all = true;

	for (unsigned i = 0; i < n; i++, lid++) {
		if (old[i] != out[i])
			r->changed[lid / 64] |= 1ull << (lid % 64);
		all &= r->changed[lid / 64] >> (lid % 64) & 1;
	}
	return all;
}

/* Writes @n entries of @t, from @lid on. *@noted: all of these LIDs are in r->changed. */
static void write_row(struct sm_routes *r, const struct sm_table *t, uint16_t lid, unsigned n,
                      const uint8_t *out, bool *noted)
{
	if (!*noted && memcmp(t->out + lid, out, n) != 0)
		*noted = note_changed(r, lid, n, t->out + lid, out);
	memcpy(t->out + lid, out, n);
}

/* ---- routes to switches ---- */

/* The batch of roots: their LIDs follow each other from the first one on, or @in_a_row is false. */
struct batch {
	unsigned first, n;
	bool in_a_row, noted;
	uint16_t lid[SM_HOPS_ROOTS];
};

static void batch_init(struct batch *b, const struct sm_net *net, unsigned first, unsigned n)
{
	b->first = first;
	b->n = n;
	b->in_a_row = net->lid[first] != 0;
	b->noted = false;
	for (unsigned i = 0; i < n; i++) {
		b->lid[i] = net->lid[first + i];
		b->in_a_row &= b->lid[i] == b->lid[0] + i;
	}
}

/* Writes the routes of switch @at to the batch, but for its own (sm_routes_home()). */
static int write_batch(struct sm_routes *r, unsigned at, struct batch *b)
{
	uint8_t *port = r->leads.port + (size_t)at * SM_HOPS_ROOTS;
	const struct sm_table *t = &r->table[at];
	int ret = 0;

	if (b->in_a_row && b->lid[0] + b->n <= t->size) {
		if (at >= b->first && at < b->first + b->n)
			port[at - b->first] = t->out[b->lid[at - b->first]];
		write_row(r, t, b->lid[0], b->n, port, &b->noted);
		return 0;
	}
	for (unsigned i = 0; i < b->n && !ret; i++)
		if (at != b->first + i)
			ret = sm_routes_write(r, at, b->lid[i], port[i]);
	return ret;
}

int sm_fresh_switches(struct sm_routes *r, unsigned first, unsigned n)
{
	struct batch b;
	int ret = 0;

	batch_init(&b, r->net, first, n);
	for (unsigned at = 0; at < r->net->n && !ret; at++)
		if (r->table[at].out)
			ret = write_batch(r, at, &b);
	return ret;
}

int sm_fresh_switch(struct sm_routes *r, unsigned at)
{
	const struct sm_leads *l = &r->leads;
	uint16_t lid = r->net->lid[r->root];

	for (unsigned w = l->word[at]; w < l->word[at + 1]; w++) {
		unsigned k = r->net->first[at] + (w - l->word[at]) * 64;

		if (r->lead[w])
			return sm_routes_write(
			        r, at, lid,
			        l->exit[k + (unsigned)__builtin_ctzll(r->lead[w])].port);
	}
	return sm_routes_write(r, at, lid, FABRIC_LFT_NONE);
}

/* ---- routes to HCAs ---- */

/* Links that lead to one root are mostly neighbours, as those up are. Whether they all are, in one
 * word. */
static bool find_exits(const struct sm_routes *r, unsigned at, struct exits *e)
{
	const struct sm_leads *l = &r->leads;
	const unsigned w = l->word[at];
	unsigned skip;
	uint64_t run;

	if (l->word[at + 1] != w + 1 || !r->lead[w])
		return false;
	skip = (unsigned)__builtin_ctzll(r->lead[w]);
	run = r->lead[w] >> skip;
	e->exit = &l->exit[r->net->first[at] + skip];
	e->n = run + 1 ? (unsigned)__builtin_ctzll(run + 1) : 64;
	return !(run & (run + 1));
}

/* Each run of neighbours is copied at once. */
static void list_exits(const struct sm_routes *r, unsigned at, struct exits *e)
{
	const struct sm_leads *l = &r->leads;
	unsigned n = 0;

	for (unsigned w = l->word[at]; w < l->word[at + 1]; w++) {
		const struct sm_exit *exit = &l->exit[r->net->first[at] + (w - l->word[at]) * 64];
		unsigned from = 0;

		for (uint64_t bits = r->lead[w]; bits;) {
			unsigned skip = (unsigned)__builtin_ctzll(bits), some = 64 - from - skip;
			uint64_t gaps = ~(bits >> skip);

			if (gaps && (unsigned)__builtin_ctzll(gaps) < some)
				some = (unsigned)__builtin_ctzll(gaps);
			memcpy(&e->list[n], &exit[from + skip], some * sizeof(*exit));
			n += some;
			from += skip + some;
			bits = from < 64 ? r->lead[w] >> from : 0;
		}
	}
	e->exit = e->list;
	e->n = n;
}

static bool ports_in_a_row(const struct exits *e)
{
	return e->exit[e->n - 1].port == e->exit[0].port + e->n - 1;
}

static uint32_t least_of(const uint32_t *load, unsigned n)
{
	uint32_t least = UINT32_MAX;

	for (unsigned i = 0; i < n; i++)
		least = load[i] < least ? load[i] : least;
	return least;
}

static void read_loads(const struct sm_routes *r, unsigned at, struct exits *e)
{
	uint32_t *load = sm_load_at(r, at, 0);

	e->load = ports_in_a_row(e) ? load + e->exit[0].port : e->copy;
	for (unsigned i = 0; i < e->n && e->load == e->copy; i++)
		e->copy[i] = load[e->exit[i].port];
}

static void write_loads(const struct sm_routes *r, unsigned at, const struct exits *e)
{
	uint32_t *load = sm_load_at(r, at, 0);

	for (unsigned i = 0; i < e->n && e->load == e->copy; i++)
		load[e->exit[i].port] = e->copy[i];
}

/* The first way with the least load. Loads only grow while a switch has its turn. */
static inline unsigned least_loaded(struct exits *e)
{
	for (;;) {
		for (; e->cursor < e->n; e->cursor++)
			if (e->load[e->cursor] == e->least)
				return e->cursor;
		e->least = least_of(e->load, e->n);
		e->cursor = 0;
	}
}

/* There is one way. */
static void take_only(struct sm_routes *r, unsigned at, const struct exits *e, uint8_t *out)
{
	const struct sm_load *l = &r->load;
	const uint64_t *from = &l->reached[(size_t)at * l->words];
	uint64_t *to = &l->reached[(size_t)e->exit[0].to * l->words];
	uint32_t *load = sm_load_at(r, at, e->exit[0].port);

	memset(out, e->exit[0].port, r->n_lids);
	if (!r->all_up) {
		for (unsigned i = 0; i < r->n_lids; i++) {
			if (!r->lid[i].up || !sm_load_reaches(r, at, i))
				continue;
			sm_load_pass(r, e->exit[0].to, i);
			++*load;
		}
		return;
	}
	for (unsigned w = 0; w * 64 < r->n_lids; w++) {
		unsigned left = r->n_lids - w * 64;
		uint64_t some = left < 64 ? from[w] & ((1ull << left) - 1) : from[w];

		to[w] |= some;
		*load += (uint32_t)__builtin_popcountll(some);
	}
}

/* The ports of @e in turn, by the root's LIDs. */
static void rotate(const struct sm_routes *r, const struct exits *e, uint8_t *out)
{
	unsigned way = r->root % e->n;

	for (unsigned i = 0; i < r->n_lids; way = 0)
		for (; way < e->n && i < r->n_lids; way++, i++)
			out[i] = (uint8_t)e->exit[way].port;
}

/*
 * No host sends here: the HCAs are spread over the ports. When a link fails, some host may; what it
 * carried are the n-th HCAs of many roots, so the root makes a difference. Many switches have the
 * same ports that follow each other.
 */
static void spread(struct sm_routes *r, const struct exits *e, uint8_t *out)
{
	struct sm_spread *s = &r->spread;

	if (!ports_in_a_row(e)) {
		rotate(r, e, out);
		return;
	}
	if (s->root != r->root || s->port != e->exit[0].port || s->n != e->n ||
	    s->n_lids != r->n_lids) {
		rotate(r, e, s->out);
		s->root = r->root;
		s->port = e->exit[0].port;
		s->n = e->n;
		s->n_lids = r->n_lids;
	}
	memcpy(out, s->out, r->n_lids);
}

/* The root's LIDs that hosts' packets come here for. */
enum reach { REACH_NONE, REACH_SOME, REACH_ALL };

static enum reach reach_of(const struct sm_routes *r, unsigned at)
{
	const uint64_t *reached = r->load.reached + (size_t)at * r->load.words;
	uint64_t any = 0, missing = 0;

	for (unsigned left = r->n_lids; left; reached++, left -= left < 64 ? left : 64) {
		uint64_t lids = UINT64_MAX >> (left < 64 ? 64 - left : 0);

		any |= *reached & lids;
		missing |= ~*reached & lids;
	}
	if (!any)
		return REACH_NONE;
	return missing || !r->all_up ? REACH_SOME : REACH_ALL;
}

static bool are_even(const struct exits *e)
{
	return !memcmp(e->load, e->load + 1, (e->n - 1) * sizeof(*e->load));
}

/* The LIDs reach the switches behind the ways of @e in turn. */
static void pass_in_turn(struct sm_routes *r, const struct exits *e)
{
	const unsigned n_lids = r->n_lids, n = e->n < n_lids ? e->n : n_lids;
	const uint64_t all = n_lids < 64 ? (1ull << n_lids) - 1 : UINT64_MAX;
	uint64_t *reached = r->load.reached, lids = 0; /* that go by the present way */

	for (unsigned i = 0; r->load.words > 1 && i < n_lids; i++)
		sm_load_pass(r, e->exit[i % n].to, i);
	if (r->load.words > 1)
		return;
	for (unsigned i = 0; i < n_lids; i += n)
		lids |= 1ull << i;
	for (unsigned way = 0; way < n; way++, lids = lids << 1 & all)
		reached[e->exit[way].to] |= lids;
}

/* All LIDs come here, and all ways have the same load: they take turns. */
static void deal(struct sm_routes *r, const struct exits *e, uint8_t *out)
{
	const unsigned n_lids = r->n_lids, rounds = n_lids / e->n, rest = n_lids % e->n;
	const unsigned n = e->n < n_lids ? e->n : n_lids;

	for (unsigned way = 0; rounds && way < e->n; way++)
		e->load[way] += rounds;
	for (unsigned way = 0; way < rest; way++)
		e->load[way]++;
	pass_in_turn(r, e);
	for (unsigned i = 0; i < n; i++)
		out[i] = (uint8_t)e->exit[i].port;
	for (unsigned i = n; i < n_lids; i++)
		out[i] = out[i - n];
}

/* Hosts' packets for some LIDs come here: each goes by the least loaded way. */
static void balance_some(struct sm_routes *r, unsigned at, struct exits *e, uint8_t *out)
{
	const uint64_t *reached = r->load.reached + (size_t)at * r->load.words;

	e->least = least_of(e->load, e->n);
	e->cursor = 0;
	for (unsigned w = 0; w < r->load.words && w * 64 < r->n_lids; w++) {
		unsigned left = r->n_lids - w * 64;
		uint64_t bits = left < 64 ? reached[w] & ((1ull << left) - 1) : reached[w];

		for (; bits; bits &= bits - 1) {
			unsigned i = w * 64 + (unsigned)__builtin_ctzll(bits), way;

			if (!r->lid[i].up)
				continue;
			way = least_loaded(e);
			e->load[way]++;
			sm_load_pass(r, e->exit[way].to, i);
			out[i] = (uint8_t)e->exit[way].port;
		}
	}
}

static void balance(struct sm_routes *r, unsigned at, struct exits *e, uint8_t *out, bool all)
{
	read_loads(r, at, e);
	if (all && are_even(e))
		deal(r, e, out);
	else
		balance_some(r, at, e, out);
	write_loads(r, at, e);
}

/* Where the root's LIDs have their entries, if these follow each other. */
static uint8_t *row_of(const struct sm_routes *r, unsigned at)
{
	const struct sm_table *t = &r->table[at];

	return r->row && r->row + r->n_lids <= t->size ? t->out + r->row : NULL;
}

static int write_all(struct sm_routes *r, unsigned at, const uint8_t *out)
{
	int ret = 0;

	if (row_of(r, at)) {
		write_row(r, &r->table[at], r->row, r->n_lids, out, &r->all_noted);
		return 0;
	}
	for (unsigned i = 0; i < r->n_lids && !ret; i++)
		ret = sm_routes_write(r, at, r->lid[i].lid, out[i]);
	return ret;
}

int sm_fresh_hcas(struct sm_routes *r, unsigned at)
{
	uint8_t list[FABRIC_MAX_PORTS], *row = r->all_noted ? row_of(r, at) : NULL;
	uint8_t *out = row ? row : list;
	struct exits e;
	enum reach reach;

	if (!find_exits(r, at, &e))
		list_exits(r, at, &e);
	reach = e.n > 1 ? reach_of(r, at) : REACH_NONE;
	if (!e.n)
		memset(out, FABRIC_LFT_NONE, r->n_lids);
	else if (e.n == 1)
		take_only(r, at, &e, out);
	else if (reach != REACH_ALL)
		spread(r, &e, out);
	if (reach != REACH_NONE)
		balance(r, at, &e, out, reach == REACH_ALL);
	for (unsigned i = 0; !r->all_up && i < r->n_lids; i++)
		if (!r->lid[i].up)
			out[i] = FABRIC_LFT_NONE;
	return row ? 0 : write_all(r, at, out);
}
