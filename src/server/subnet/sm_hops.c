/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Distances between switches over all links that are up. Called by sm_routes.c.
 *
 * Distances to many roots are measured together: a bit for each of 64 roots, so that a look at a
 * link serves all of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "subnet/sm_routes.h"

struct sm_hops {
	const struct sm_net *net;
	/* by switch: the roots that have reached it, in the last step, and that do in this one */
	uint64_t *seen, *front, *next;
};

int sm_hops_new(struct sm_hops **out, const struct sm_net *net)
{
	struct sm_hops *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->net = net;
	h->seen = calloc(net->n + 1, sizeof(*h->seen));
	h->front = calloc(net->n + 1, sizeof(*h->front));
	h->next = calloc(net->n + 1, sizeof(*h->next));
	if (!h->seen || !h->front || !h->next) {
		sm_hops_free(h);
		return -ENOMEM;
	}
	*out = h;
	return 0;
}

void sm_hops_free(struct sm_hops *h)
{
	free(h->seen);
	free(h->front);
	free(h->next);
	free(h);
}

/* All roots at the front take one step. */
static void step(struct sm_hops *h)
{
	const struct sm_net *net = h->net;

	for (unsigned at = 0; at < net->n; at++) {
		if (!h->front[at])
			continue;
		for (unsigned k = net->first[at]; k < net->first[at + 1]; k++)
			if (net->link[k].up)
				h->next[net->link[k].to] |= h->front[at];
	}
}

/* Roots that have reached @at for the first time came from a neighbour at the front. */
static void note_leads(const struct sm_hops *h, unsigned at, uint64_t fresh, struct sm_leads *leads)
{
	const struct sm_net *net = h->net;

	for (unsigned k = net->first[at]; k < net->first[at + 1]; k++)
		if (net->link[k].up)
			leads->by_link[k] |= fresh & h->front[leads->exit[k].to];
}

/* The switches that the step has reached for the first time are so far away. Whether there are
 * any. */
static bool arrive(struct sm_hops *h, uint16_t hops, uint16_t *rows, struct sm_leads *leads)
{
	uint64_t *front = h->next;
	bool any = false;

	for (unsigned at = 0; at < h->net->n; at++) {
		uint64_t fresh = h->next[at] & ~h->seen[at];

		h->next[at] = fresh;
		h->seen[at] |= fresh;
		any |= fresh != 0;
		if (fresh && leads)
			note_leads(h, at, fresh, leads);
		for (; fresh; fresh &= fresh - 1)
			rows[(size_t)__builtin_ctzll(fresh) * h->net->n + at] = hops;
	}
	h->next = h->front;
	h->front = front;
	memset(h->next, 0, h->net->n * sizeof(*h->next));
	return any;
}

/* Swaps rows and columns of each square that many @rows have: 64 columns are one square, two or
 * four, side by side. */
static inline void transpose(uint64_t *m, unsigned rows)
{
	uint64_t mask = UINT64_MAX / ((1ull << rows / 2) + 1);

	for (unsigned j = rows / 2; j; j >>= 1, mask ^= mask << j) {
		for (unsigned i = 0; i < rows; i = (i + j + 1) & ~j) {
			uint64_t t = (m[i] >> j ^ m[i + j]) & mask;

			m[i] ^= t << j;
			m[i + j] ^= t;
		}
	}
}

/* Notes the first link of a switch that leads to each root. */
static void note_first(const uint64_t *by_link, unsigned n, const struct sm_exit *exit,
                       uint8_t port[static SM_HOPS_ROOTS])
{
	uint64_t seen = 0;

	for (unsigned k = 0; k < n; k++) {
		uint64_t fresh = by_link[k] & ~seen;

		seen |= fresh;
		for (; fresh; fresh &= fresh - 1)
			port[__builtin_ctzll(fresh)] = exit[k].port;
	}
}

/* From the roots of each of up to 64 links to these links' bits for each root, @stride apart. */
static void sort_links(const uint64_t *by_link, unsigned n, unsigned n_roots, uint64_t *to,
                       size_t stride)
{
	const unsigned rows = n <= 16 ? 16 : n <= 32 ? 32 : 64;
	uint64_t m[64];

	memcpy(m, by_link, n * sizeof(*m));
	memset(m + n, 0, (rows - n) * sizeof(*m));
	transpose(m, rows);
	for (unsigned square = 0; square < n_roots; square += rows)
		for (unsigned i = 0; i < rows && square + i < n_roots; i++, to += stride)
			*to = m[i] >> square & (UINT64_MAX >> (64 - rows));
}

/* Whether HCAs are plugged in at one of the roots: nobody asks for the links to others, but for the
 * first one. */
static bool have_hosts(const struct sm_net *net, unsigned first, unsigned n_roots)
{
	for (unsigned i = first; i < first + n_roots; i++)
		if (net->has_hosts[i])
			return true;
	return false;
}

/* From the roots of each link to the links for each root: to all, or to the first one only. */
static void sort_by_root(const struct sm_net *net, unsigned n_roots, bool all,
                         struct sm_leads *leads)
{
	const size_t words = leads->word[net->n];

	memset(leads->port, FABRIC_LFT_NONE, (size_t)net->n * SM_HOPS_ROOTS);
	for (unsigned at = 0; at < net->n; at++) {
		const uint64_t *by_link = &leads->by_link[net->first[at]];
		unsigned n = net->first[at + 1] - net->first[at];

		note_first(by_link, n, &leads->exit[net->first[at]],
		           &leads->port[(size_t)at * SM_HOPS_ROOTS]);
		for (unsigned from = 0; from < n && all; from += 64)
			sort_links(by_link + from, n - from < 64 ? n - from : 64, n_roots,
			           &leads->bits[leads->word[at] + from / 64], words);
	}
}

void sm_hops_measure(struct sm_hops *h, unsigned first, unsigned n, uint16_t *rows,
                     struct sm_leads *leads)
{
	const struct sm_net *net = h->net;

	memset(rows, 0xFF, (size_t)n * net->n * sizeof(*rows));
	memset(h->seen, 0, net->n * sizeof(*h->seen));
	memset(h->front, 0, net->n * sizeof(*h->front));
	if (leads)
		memset(leads->by_link, 0, net->first[net->n] * sizeof(*leads->by_link));
	for (unsigned i = 0; i < n; i++)
		if (!net->sw[first + i]->dead)
			h->next[first + i] = 1ull << i;
	for (uint16_t hops = 0; arrive(h, hops, rows, leads); hops++)
		step(h);
	if (leads)
		sort_by_root(net, n, have_hosts(net, first, n), leads);
}
