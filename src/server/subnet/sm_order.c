/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The order of the switches, the highest first: a link leads up to an earlier one, down to a later
 * one. Messages that go up and then down, in one order all of them, cannot wait for each other in a
 * circle, be they for one host or for a group. Of sm_updn.c, sm_ftree.c and sm_cores.c.
 *
 * A group needs more than a pair of hosts: one switch from which the ways to all of its members
 * lead down. So an order is mended: in each island, as links connect it, the ways from one switch
 * lead down to all switches with hosts. Where they do not, as links have failed, a switch that is
 * not below it gets its place behind one that is, and which a link connects with it. Nothing that
 * was below gets lost by that, so it comes to an end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "subnet/sm_state.h"

int sm_order_new(struct sm_order **out, const struct sm_net *net)
{
	struct sm_order *o = calloc(1, sizeof(*o));
	size_t n = net->n + 1, words = (net->n < SM_TOPS ? net->n : SM_TOPS) / 64 + 1;

	if (!o)
		return -ENOMEM;
	o->net = net;
	o->place = calloc(n, sizeof(*o->place));
	o->sorted = calloc(n, sizeof(*o->sorted));
	o->island = calloc(n, sizeof(*o->island));
	o->n_tops = calloc(n, sizeof(*o->n_tops));
	o->is_flat = calloc(n, sizeof(*o->is_flat));
	o->top = calloc(n, sizeof(*o->top));
	o->above = calloc(n * words, sizeof(*o->above));
	o->queue = calloc(n, sizeof(*o->queue));
	o->hosts = calloc(n, sizeof(*o->hosts));
	o->from = calloc(n, sizeof(*o->from));
	o->covered = calloc(n, sizeof(*o->covered));
	if (!o->place || !o->sorted || !o->island || !o->n_tops || !o->is_flat || !o->top ||
	    !o->above || !o->queue || !o->hosts || !o->from || !o->covered) {
		sm_order_free(o);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < net->n; i++)
		o->place[i] = o->sorted[i] = i;
	*out = o;
	return 0;
}

void sm_order_free(struct sm_order *o)
{
	free(o->place);
	free(o->sorted);
	free(o->island);
	free(o->n_tops);
	free(o->is_flat);
	free(o->top);
	free(o->above);
	free(o->queue);
	free(o->hosts);
	free(o->from);
	free(o->covered);
	free(o);
}

/* Orders them by what ->from says, less than the number of switches, or that; then by index. */
static void sort(struct sm_order *o)
{
	const unsigned n = o->net->n;
	unsigned *start = o->queue;

	memset(start, 0, (n + 1) * sizeof(*start));
	for (unsigned i = 0; i < n; i++)
		if (o->from[i] < n)
			start[o->from[i] + 1]++;
	for (unsigned i = 0; i < n; i++)
		start[i + 1] += start[i];
	for (unsigned i = 0; i < n; i++) {
		unsigned to = start[o->from[i]]++;

		o->place[i] = to;
		o->sorted[to] = i;
	}
}

void sm_order_by_rank(struct sm_order *o, const uint16_t *rank)
{
	for (unsigned i = 0; i < o->net->n; i++)
		o->from[i] = rank[i] < o->net->n ? rank[i] : o->net->n;
	sort(o);
}

void sm_order_by_level(struct sm_order *o)
{
	const uint16_t *level = o->net->level;
	unsigned top = 0;

	for (unsigned i = 0; i < o->net->n; i++)
		if (level[i] != SM_FAR && level[i] > top)
			top = level[i];
	for (unsigned i = 0; i < o->net->n; i++)
		o->from[i] = level[i] == SM_FAR ? o->net->n : top - level[i];
	sort(o);
}

bool sm_order_copy(struct sm_order *to, const struct sm_order *from)
{
	const size_t size = to->net->n * sizeof(*to->place);

	if (!memcmp(to->place, from->place, size))
		return false;
	memcpy(to->place, from->place, size);
	memcpy(to->sorted, from->sorted, size);
	return true;
}

/* ---- tops ---- */

/* Looks at the links up of a switch: it is below all switches that its neighbours up there are
 * below. */
static void look_up(struct sm_order *o, unsigned at)
{
	const struct sm_net *net = o->net;
	uint64_t *above = sm_order_above(o, at);

	memset(above, 0, o->words * sizeof(*above));
	for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
		const struct sm_link *l = &net->link[k];

		if (!l->up || o->place[l->to] >= o->place[at])
			continue;
		for (unsigned w = 0; w < o->words; w++)
			above[w] |= sm_order_above(o, l->to)[w];
	}
	if (o->top[at] != SM_NO_SWITCH)
		above[o->top[at] / 64] |= 1ull << (o->top[at] % 64);
}

static bool is_top(const struct sm_order *o, unsigned at)
{
	const struct sm_net *net = o->net;

	for (unsigned k = net->first[at]; k < net->first[at + 1] && !o->is_flat[o->island[at]]; k++)
		if (net->link[k].up && o->place[net->link[k].to] < o->place[at])
			return false;
	return !net->sw[at]->dead;
}

void sm_order_find_tops(struct sm_order *o)
{
	const struct sm_net *net = o->net;
	unsigned most = 0;

	sm_net_find_islands(net, o->island, o->queue);
	memset(o->n_tops, 0, net->n * sizeof(*o->n_tops));
	memset(o->is_flat, true, net->n * sizeof(*o->is_flat));
	for (unsigned i = 0; i < net->n; i++)
		o->is_flat[o->island[i]] &= !net->level[i] || net->level[i] == SM_FAR;
	for (unsigned i = 0; i < net->n; i++) {
		unsigned at = o->sorted[i], *n_tops = &o->n_tops[o->island[at]];

		o->top[at] = *n_tops < SM_TOPS && is_top(o, at) ? (*n_tops)++ : SM_NO_SWITCH;
		most = *n_tops > most ? *n_tops : most;
	}
	o->words = (most + 63) / 64;
	for (unsigned i = 0; i < net->n; i++)
		look_up(o, o->sorted[i]);
}

/* ---- mending ---- */

/* Lists the switches with hosts, island by island. How many. */
static unsigned list_hosts(struct sm_order *o)
{
	const struct sm_net *net = o->net;
	unsigned *next = o->from, n = 0;

	memset(next, 0, net->n * sizeof(*next));
	for (unsigned i = 0; i < net->n; i++)
		next[o->island[i]] += net->has_hosts[i] && !net->sw[i]->dead;
	for (unsigned i = 0; i < net->n; i++) {
		n += next[i];
		next[i] = n - next[i];
	}
	for (unsigned i = 0; i < net->n; i++)
		if (net->has_hosts[i] && !net->sw[i]->dead)
			o->hosts[next[o->island[i]]++] = i;
	return n;
}

static bool are_below_one(const struct sm_order *o, const unsigned *hosts, unsigned n)
{
	for (unsigned w = 0; w < o->words; w++) {
		uint64_t all = UINT64_MAX;

		for (unsigned i = 0; i < n && all; i++)
			all &= sm_order_above(o, hosts[i])[w];
		if (all)
			return true;
	}
	return false;
}

/* The top of the island that most of these switches are below. */
static unsigned best_top(const struct sm_order *o, const unsigned *hosts, unsigned n)
{
	unsigned below[SM_TOPS] = { 0 }, best = 0, at = 0;

	for (unsigned i = 0; i < n; i++)
		for (unsigned w = 0; w < o->words; w++)
			for (uint64_t bits = sm_order_above(o, hosts[i])[w]; bits; bits &= bits - 1)
				below[w * 64 + (unsigned)__builtin_ctzll(bits)]++;
	for (unsigned i = 1; i < SM_TOPS; i++)
		if (below[i] > below[best])
			best = i;
	while (o->island[at] != o->island[hosts[0]] || o->top[at] != best)
		at++;
	return at;
}

/* Notes what is below @at, and is not known to be yet. */
static void cover(struct sm_order *o, unsigned at)
{
	const struct sm_net *net = o->net;
	unsigned head = 0, tail = 0, *queue = o->queue;

	o->covered[at] = true;
	queue[tail++] = at;
	while (head < tail) {
		at = queue[head++];
		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
			const struct sm_link *l = &net->link[k];

			if (!l->up || o->covered[l->to] || o->place[l->to] < o->place[at])
				continue;
			o->covered[l->to] = true;
			queue[tail++] = l->to;
		}
	}
}

/* From each switch of the island that is not covered: the next one on a shortest way to one that
 * is. */
static void find_ways(struct sm_order *o, unsigned island)
{
	const struct sm_net *net = o->net;
	unsigned head = 0, tail = 0, *queue = o->queue;

	for (unsigned i = 0; i < net->n; i++) {
		unsigned at = o->sorted[i];

		o->from[at] = SM_NO_SWITCH;
		if (o->covered[at] && o->island[at] == island)
			queue[tail++] = at;
	}
	while (head < tail) {
		unsigned at = queue[head++];

		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
			const struct sm_link *l = &net->link[k];

			if (!l->up || o->covered[l->to] || o->from[l->to] != SM_NO_SWITCH)
				continue;
			o->from[l->to] = at;
			queue[tail++] = l->to;
		}
	}
}

/* Gives a switch that is not covered the place behind the first one that is and that a link
 * connects with it: then it is, too. */
static void sink(struct sm_order *o, unsigned at)
{
	const struct sm_net *net = o->net;
	unsigned place = UINT32_MAX;

	for (unsigned k = net->first[at]; k < net->first[at + 1]; k++) {
		const struct sm_link *l = &net->link[k];

		if (l->up && o->covered[l->to] && o->place[l->to] < place)
			place = o->place[l->to];
	}
	base_log_debug(sm, "'%s' has its place behind '%s', which hosts are below",
	               net->sw[at]->name, net->sw[o->sorted[place]]->name);
	for (unsigned i = o->place[at]; i < place; i++) {
		o->sorted[i] = o->sorted[i + 1];
		o->place[o->sorted[i]] = i;
	}
	o->sorted[place] = at;
	o->place[at] = place;
	cover(o, at);
}

/* Mends one island, by its switches with hosts. How many switches got another place. */
static unsigned mend_island(struct sm_order *o, const unsigned *hosts, unsigned n)
{
	unsigned sunk = 0;

	cover(o, best_top(o, hosts, n));
	find_ways(o, o->island[hosts[0]]);
	for (unsigned i = 0; i < n; i++)
		while (!o->covered[hosts[i]]) {
			unsigned at = hosts[i];

			while (!o->covered[o->from[at]])
				at = o->from[at];
			sink(o, at);
			sunk++;
		}
	return sunk;
}

unsigned sm_order_mend(struct sm_order *o)
{
	unsigned n, sunk = 0, end;

	sm_order_find_tops(o);
	n = list_hosts(o);
	memset(o->covered, 0, o->net->n * sizeof(*o->covered));
	for (unsigned first = 0; first < n; first = end) {
		end = first;
		while (end < n && o->island[o->hosts[end]] == o->island[o->hosts[first]])
			end++;
		if (!are_below_one(o, &o->hosts[first], end - first))
			sunk += mend_island(o, &o->hosts[first], end - first);
	}
	return sunk;
}
