/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traffic patterns that need no file: see pattern.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "simulate/pattern.h"

void simulate_pattern_fini(struct simulate_pattern *p)
{
	for (uint32_t i = 0; i < p->n_groups; i++) {
		free(p->group[i].members.host);
		free(p->group[i].senders.host);
	}
	free(p->group);
	free(p->pair);
}

int simulate_pattern_add_pair(struct simulate_pattern *p, uint32_t from, uint32_t to)
{
	if (base_array_reserve(&p->pair, &p->pair_room, (size_t)p->n_pairs + 1))
		return -ENOMEM;
	p->pair[p->n_pairs++] = (struct simulate_pair){ from, to, p->sl };
	return 0;
}

int simulate_pattern_add_group(struct simulate_pattern *p)
{
	if (base_array_reserve(&p->group, &p->group_room, (size_t)p->n_groups + 1))
		return -ENOMEM;
	p->group[p->n_groups++] = (struct simulate_group){ .sl = p->sl };
	return 0;
}

int simulate_list_add(struct simulate_list *l, uint32_t host)
{
	if (base_array_reserve(&l->host, &l->room, (size_t)l->n + 1))
		return -ENOMEM;
	l->host[l->n++] = host;
	return 0;
}

int simulate_pattern_shift(struct simulate_pattern *p, unsigned hosts, unsigned by)
{
	int ret = 0;

	for (unsigned i = 0; i < hosts && !ret; i++)
		ret = simulate_pattern_add_pair(p, i, (i + by % hosts) % hosts);
	return ret;
}

/* The numbers below @n, in their order. NULL: there is no memory. */
static uint32_t *numbers(unsigned n)
{
	uint32_t *to = calloc((size_t)n + 1, sizeof(*to));

	for (unsigned i = 0; to && i < n; i++)
		to[i] = i;
	return to;
}

static void swap(uint32_t *a, uint32_t *b)
{
	uint32_t old = *a;

	*a = *b;
	*b = old;
}

/* By Sattolo's algorithm: one circle of all, so nobody sends to itself. */
int simulate_pattern_permutation(struct simulate_pattern *p, unsigned hosts,
                                 struct simulate_random *r)
{
	uint32_t *to = numbers(hosts);
	int ret = to ? 0 : -ENOMEM;

	for (unsigned i = hosts; to && i-- > 1;)
		swap(&to[i], &to[simulate_random_below(r, i)]);
	for (unsigned i = 0; i < hosts && !ret; i++)
		ret = simulate_pattern_add_pair(p, i, to[i]);
	free(to);
	return ret;
}

static int add_random_group(struct simulate_pattern *p, uint32_t *all, unsigned hosts,
                            unsigned members, struct simulate_random *r)
{
	int ret = simulate_pattern_add_group(p);

	for (unsigned i = 0; i < members && i < hosts && !ret; i++) {
		swap(&all[i], &all[i + simulate_random_below(r, hosts - i)]);
		ret = simulate_list_add(&p->group[p->n_groups - 1].members, all[i]);
	}
	return ret;
}

int simulate_pattern_groups(struct simulate_pattern *p, unsigned hosts,
                            const struct simulate_groups *groups, struct simulate_random *r)
{
	uint32_t *all = numbers(hosts);
	int ret = all ? 0 : -ENOMEM;

	for (unsigned i = 0; i < groups->n && !ret; i++)
		ret = add_random_group(p, all, hosts, groups->members, r);
	free(all);
	return ret;
}
