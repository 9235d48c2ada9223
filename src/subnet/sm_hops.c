/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Distances between switches over all links that are up. Called by sm_routes.c.
 *
 * Those to many roots are measured together: a bit for each of 64 roots, so that a look at a link
 * serves all of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "subnet/sm_routes.h"

struct sm_hops {
	const struct sm_net *net;
	uint64_t *seen, *front, *next; /* by switch: the roots that have reached it */
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

/* What the step has reached for the first time is so far away. Whether there is any. */
static bool arrive(struct sm_hops *h, uint16_t hops, uint16_t *rows)
{
	bool any = false;

	for (unsigned at = 0; at < h->net->n; at++) {
		uint64_t fresh = h->next[at] & ~h->seen[at];

		h->next[at] = 0;
		h->front[at] = fresh;
		h->seen[at] |= fresh;
		any |= fresh != 0;
		for (; fresh; fresh &= fresh - 1)
			rows[(size_t)__builtin_ctzll(fresh) * h->net->n + at] = hops;
	}
	return any;
}

void sm_hops_measure(struct sm_hops *h, unsigned first, unsigned n, uint16_t *rows)
{
	const struct sm_net *net = h->net;

	memset(rows, 0xFF, (size_t)n * net->n * sizeof(*rows));
	memset(h->seen, 0, net->n * sizeof(*h->seen));
	for (unsigned i = 0; i < n; i++)
		if (!net->sw[first + i]->dead)
			h->next[first + i] = 1ull << i;
	for (uint16_t hops = 0; arrive(h, hops, rows); hops++)
		step(h);
}
