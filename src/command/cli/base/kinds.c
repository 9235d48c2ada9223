/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links by kind: see kinds.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/base/kinds.h"
#include "cli/base/table.h"

struct kind {
	struct base_hash_node node;
	char name[80];
	uint64_t n, unused, min, max, sum, lids_min, lids_max, lids_sum;
};

/* "leaf" of "leaf12". */
static int letters(const char *name)
{
	int n = (int)strcspn(name, "0123456789");

	while (n && strchr("-_.", name[n - 1]))
		n--;
	return n;
}

static struct kind *kind_at(struct base_hash_node *n)
{
	return n ? container_of(n, struct kind, node) : NULL;
}

/* The kind of that name, a new one if need be; NULL: there is no memory. */
static struct kind *get(struct cli_kinds *all, const char *name)
{
	uint64_t hash = base_hash_of(name, strlen(name), 0);
	struct base_hash_node *n = base_hash_first(&all->by_name, hash);
	struct kind *k;

	while (n && strcmp(kind_at(n)->name, name))
		n = base_hash_next(n);
	if (n)
		return kind_at(n);
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->min = k->lids_min = UINT64_MAX;
	snprintf(k->name, sizeof(k->name), "%s", name);
	if (!base_hash_add(&all->by_name, &k->node, hash))
		return k;
	free(k);
	return NULL;
}

int cli_kinds_add(struct cli_kinds *all, const struct cli_kinds_link *link)
{
	struct kind *k;
	char name[80];

	snprintf(name, sizeof(name), "%.*s%s%.*s", letters(link->from), link->from,
	         link->to ? ">" : "", link->to ? letters(link->to) : 0, link->to ? link->to : "");
	k = get(all, name);
	if (!k)
		return -ENOMEM;
	k->n++;
	k->unused += !link->messages;
	k->sum += link->messages;
	k->min = link->messages < k->min ? link->messages : k->min;
	k->max = link->messages > k->max ? link->messages : k->max;
	k->lids_sum += link->lids;
	k->lids_min = link->lids < k->lids_min ? link->lids : k->lids_min;
	k->lids_max = link->lids > k->lids_max ? link->lids : k->lids_max;
	return 0;
}

void cli_kinds_fini(struct cli_kinds *all)
{
	base_hash_free(&all->by_name, offsetof(struct kind, node));
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct kind *const *)a)->name,
	              (*(const struct kind *const *)b)->name);
}

static void add_row(struct cli_table *t, const struct kind *k, bool lids)
{
	double mean = (double)k->sum / (double)k->n;

	cli_table_add(t, "%s", k->name);
	cli_table_add(t, "%ju", (uintmax_t)k->n);
	cli_table_add(t, "%ju", (uintmax_t)k->unused);
	cli_table_add(t, "%ju", (uintmax_t)k->min);
	cli_table_add(t, "%.1f", mean);
	cli_table_add(t, "%ju", (uintmax_t)k->max);
	cli_table_add(t, "%.2f", k->sum ? (double)k->max / mean : 0);
	if (!lids)
		return;
	cli_table_add(t, "%ju", (uintmax_t)k->lids_min);
	cli_table_add(t, "%.1f", (double)k->lids_sum / (double)k->n);
	cli_table_add(t, "%ju", (uintmax_t)k->lids_max);
}

/* The kinds by name, from malloc(); NULL: there is no memory. */
static struct kind **sorted(const struct cli_kinds *all, size_t *n)
{
	struct kind **kinds = calloc(all->by_name.n + 1, sizeof(*kinds));
	struct base_hash_node *node = NULL;

	*n = 0;
	while (kinds && (node = base_hash_walk(&all->by_name, node)))
		kinds[(*n)++] = kind_at(node);
	if (kinds)
		qsort(kinds, *n, sizeof(*kinds), by_name);
	return kinds;
}

int cli_kinds_each(const struct cli_kinds *all,
                   void (*each)(void *arg, const struct cli_kind *kind), void *arg)
{
	size_t n;
	struct kind **kinds = sorted(all, &n);

	for (size_t i = 0; kinds && i < n; i++) {
		const struct kind *k = kinds[i];

		each(arg, &(struct cli_kind){ k->name, k->n, k->unused, k->max,
		                              (double)k->sum / (double)k->n });
	}
	if (!kinds)
		return -ENOMEM;
	free(kinds);
	return 0;
}

int cli_kinds_print(const struct cli_kinds *all, bool lids)
{
	static const char *const headers[] = { "LINKS",     "NUMBER",  "UNUSED",   "MIN",
		                               "MEAN",      "MAX",     "MAX/MEAN", "MIN LIDS",
		                               "MEAN LIDS", "MAX LIDS" };
	struct cli_table *t;
	size_t n;
	struct kind **kinds = sorted(all, &n);
	int ret;

	if (!kinds)
		return -ENOMEM;
	t = cli_table_new(ARRAY_SIZE(headers) - (lids ? 0 : 3), headers);
	for (size_t i = 0; i < n; i++)
		add_row(t, kinds[i], lids);
	free(kinds);
	ret = t ? cli_table_print(t, stdout, cli_colour()) : -ENOMEM;
	cli_table_free(t);
	return ret;
}
