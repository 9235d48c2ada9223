/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel show routes --load`: how many paths between hosts cross each link between switches, and
 * how many LIDs of hosts it leads to: see routes.h. A host's first LID counts, and both ends of a
 * cable apart.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/route_tables.h"
#include "cli/routes.h"
#include "cli/table.h"

#define NO_SWITCH (~0u)

struct load_port {
	unsigned to; /* the switch there; NO_SWITCH: none, or not active */
	uint64_t paths, lids;
};

struct load_switch {
	const char *name; /* the topology's */
	unsigned n_ports;
	struct load_port *port; /* from 1 */
	uint64_t hosts;         /* ports of hosts that are active here */
	uint8_t *lft;
	unsigned n_lids;
	/* for one LID: */
	unsigned next, waits; /* the next switch, and how many lead here that are not done */
	uint64_t paths;
};

struct load_host {
	unsigned lid, at;
};

struct load {
	struct json_object *topology, *nodes;
	struct load_switch *sw;
	struct load_host *host;
	unsigned *queue;
	size_t n, n_hosts;
	uint64_t lost; /* paths that do not arrive */
};

static size_t count(struct json_object *array)
{
	return json_object_array_length(array);
}

static struct json_object *at(struct json_object *array, size_t i)
{
	return json_object_array_get_idx(array, i);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct load_switch *)a)->name, ((const struct load_switch *)b)->name);
}

static struct load_switch *find(const struct load *l, const char *name)
{
	const struct load_switch key = { .name = name };

	return bsearch(&key, l->sw, l->n, sizeof(*l->sw), by_name);
}

static bool is_switch(struct json_object *node)
{
	return !strcmp(cli_json_text(node, "type"), "switch");
}

static bool is_active(struct json_object *port)
{
	return !strcmp(cli_json_text(port, "state"), "active");
}

/* ---- reading ---- */

static int read_switches(struct load *l)
{
	for (size_t i = 0; i < count(l->nodes); i++) {
		struct json_object *node = at(l->nodes, i);
		struct load_switch *sw = &l->sw[l->n];

		if (!is_switch(node))
			continue;
		l->n++;
		sw->name = cli_json_text(node, "name");
		sw->n_ports = (unsigned)cli_json_number(node, "n_ports");
		sw->port = calloc((size_t)sw->n_ports + 1, sizeof(*sw->port));
		if (!sw->port)
			return -ENOMEM;
		for (unsigned k = 0; k <= sw->n_ports; k++)
			sw->port[k].to = NO_SWITCH;
	}
	qsort(l->sw, l->n, sizeof(*l->sw), by_name);
	return 0;
}

/* A link of the switch @from, or of a host (NULL). */
static void read_link(struct load *l, struct load_switch *from, struct json_object *port)
{
	struct load_switch *to = find(l, cli_json_text(port, "peer"));
	unsigned num = (unsigned)cli_json_number(port, "port");

	if (!to || !is_active(port))
		return;
	if (!from) {
		l->host[l->n_hosts++] =
		        (struct load_host){ .lid = (unsigned)cli_json_number(port, "lid"),
			                    .at = (unsigned)(to - l->sw) };
		to->hosts++;
	} else if (num <= from->n_ports) {
		from->port[num].to = (unsigned)(to - l->sw);
	}
}

static int by_lid(const void *a, const void *b)
{
	const struct load_host *x = a, *y = b;

	return x->lid < y->lid ? -1 : x->lid > y->lid;
}

static int read_topology(struct load *l, struct control_client *client)
{
	size_t n_ports = 0;
	int ret;

	l->topology = cli_request_json(client, "topology");
	if (!l->topology)
		return -EIO;
	l->nodes = cli_json_array(l->topology, "nodes");
	for (size_t i = 0; i < count(l->nodes); i++)
		n_ports += count(cli_json_array(at(l->nodes, i), "ports"));
	l->sw = calloc(count(l->nodes) + 1, sizeof(*l->sw));
	l->host = calloc(n_ports + 1, sizeof(*l->host));
	l->queue = calloc(count(l->nodes) + 1, sizeof(*l->queue));
	if (!l->sw || !l->host || !l->queue)
		return -ENOMEM;
	ret = read_switches(l);
	for (size_t i = 0; i < count(l->nodes) && !ret; i++) {
		struct json_object *node = at(l->nodes, i), *ports = cli_json_array(node, "ports");

		for (size_t k = 0; k < count(ports); k++)
			read_link(l, is_switch(node) ? find(l, cli_json_text(node, "name")) : NULL,
			          at(ports, k));
	}
	qsort(l->host, l->n_hosts, sizeof(*l->host), by_lid);
	return ret;
}

static int keep_table(void *arg, const struct cli_switch *from)
{
	struct load_switch *sw = find(arg, from->name);

	if (!sw)
		return 0;
	free(sw->lft);
	sw->lft = malloc(from->n_lids + 1);
	if (!sw->lft) {
		base_log("%s", strerror(ENOMEM));
		return CLI_FAILED;
	}
	memcpy(sw->lft, from->port, from->n_lids);
	sw->n_lids = from->n_lids;
	return 0;
}

/* ---- counting ---- */

static struct load_port *way(const struct load_switch *sw, unsigned lid)
{
	unsigned port = lid < sw->n_lids ? sw->lft[lid] : CLI_NO_PORT;

	return port && port <= sw->n_ports && sw->port[port].to != NO_SWITCH ? &sw->port[port]
	                                                                     : NULL;
}

/* Where each switch sends the LID, and how many switches send it there. */
static void follow(struct load *l, const struct load_host *host)
{
	for (unsigned i = 0; i < l->n; i++) {
		l->sw[i].waits = 0;
		l->sw[i].paths = i == host->at ? 0 : l->sw[i].hosts;
	}
	for (unsigned i = 0; i < l->n; i++) {
		const struct load_port *p = i == host->at ? NULL : way(&l->sw[i], host->lid);

		l->sw[i].next = p ? p->to : NO_SWITCH;
		if (p)
			l->sw[p->to].waits++;
	}
}

/* Counts the paths to @host: a switch's are known once those are that lead there. Switches on a
 * circle are never done, so what enters one is lost. */
static void count_paths(struct load *l, const struct load_host *host)
{
	unsigned head = 0, tail = 0;
	uint64_t sent = 0;

	follow(l, host);
	for (unsigned i = 0; i < l->n; i++) {
		sent += l->sw[i].paths;
		if (!l->sw[i].waits)
			l->queue[tail++] = i;
	}
	while (head < tail) {
		struct load_switch *sw = &l->sw[l->queue[head++]];
		struct load_port *p;

		if (sw->next == NO_SWITCH)
			continue;
		p = way(sw, host->lid);
		p->paths += sw->paths;
		p->lids += sw->paths > 0;
		l->sw[p->to].paths += sw->paths;
		if (!--l->sw[p->to].waits)
			l->queue[tail++] = p->to;
	}
	l->lost += sent - (l->sw[host->at].waits ? 0 : l->sw[host->at].paths);
}

/* ---- printing ---- */

/* Links of one kind. */
struct kind {
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

static struct kind *find_kind(struct kind **kinds, size_t *n, const char *name)
{
	struct kind *grown;

	for (size_t i = 0; i < *n; i++)
		if (!strcmp((*kinds)[i].name, name))
			return &(*kinds)[i];
	grown = realloc(*kinds, (*n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	*kinds = grown;
	grown[*n] = (struct kind){ .min = UINT64_MAX, .lids_min = UINT64_MAX };
	snprintf(grown[*n].name, sizeof(grown->name), "%s", name);
	return &grown[(*n)++];
}

static void add_to_kind(struct kind *k, const struct load_port *p)
{
	k->n++;
	k->unused += !p->paths;
	k->sum += p->paths;
	k->min = p->paths < k->min ? p->paths : k->min;
	k->max = p->paths > k->max ? p->paths : k->max;
	k->lids_sum += p->lids;
	k->lids_min = p->lids < k->lids_min ? p->lids : k->lids_min;
	k->lids_max = p->lids > k->lids_max ? p->lids : k->lids_max;
}

static int by_kind(const void *a, const void *b)
{
	return strcmp(((const struct kind *)a)->name, ((const struct kind *)b)->name);
}

static int list_kinds(const struct load *l, struct kind **kinds, size_t *n)
{
	for (size_t i = 0; i < l->n; i++)
		for (unsigned k = 1; k <= l->sw[i].n_ports; k++) {
			const struct load_port *p = &l->sw[i].port[k];
			struct kind *kind;
			char name[80];

			if (p->to == NO_SWITCH)
				continue;
			snprintf(name, sizeof(name), "%.*s>%.*s", letters(l->sw[i].name),
			         l->sw[i].name, letters(l->sw[p->to].name), l->sw[p->to].name);
			kind = find_kind(kinds, n, name);
			if (!kind)
				return -ENOMEM;
			add_to_kind(kind, p);
		}
	qsort(*kinds, *n, sizeof(**kinds), by_kind);
	return 0;
}

static void add_row(struct cli_table *t, const struct kind *k)
{
	double mean = (double)k->sum / (double)k->n;

	cli_table_add(t, "%s", k->name);
	cli_table_add(t, "%ju", (uintmax_t)k->n);
	cli_table_add(t, "%ju", (uintmax_t)k->unused);
	cli_table_add(t, "%ju", (uintmax_t)k->min);
	cli_table_add(t, "%.1f", mean);
	cli_table_add(t, "%ju", (uintmax_t)k->max);
	cli_table_add(t, "%.2f", k->sum ? (double)k->max / mean : 0);
	cli_table_add(t, "%ju", (uintmax_t)k->lids_min);
	cli_table_add(t, "%.1f", (double)k->lids_sum / (double)k->n);
	cli_table_add(t, "%ju", (uintmax_t)k->lids_max);
}

static int print_text(const struct load *l)
{
	static const char *const headers[] = { "LINKS",     "NUMBER",  "UNUSED",   "MIN",
		                               "MEAN",      "MAX",     "MAX/MEAN", "MIN LIDS",
		                               "MEAN LIDS", "MAX LIDS" };
	struct cli_table *t = cli_table_new(ARRAY_SIZE(headers), headers);
	struct kind *kinds = NULL;
	size_t n = 0;
	int ret = list_kinds(l, &kinds, &n);

	for (size_t i = 0; i < n; i++)
		add_row(t, &kinds[i]);
	free(kinds);
	if (!ret)
		ret = cli_table_print(t, stdout, cli_colour());
	cli_table_free(t);
	if (!ret && l->lost)
		printf("\n%ju paths do not arrive\n", (uintmax_t)l->lost);
	return ret;
}

/* Each link, so that programs can draw them. */
static int print_json(const struct load *l)
{
	const char *separator = "\n";

	printf("{\n  \"lost\": %ju,\n  \"links\": [", (uintmax_t)l->lost);
	for (size_t i = 0; i < l->n; i++)
		for (unsigned k = 1; k <= l->sw[i].n_ports; k++) {
			const struct load_port *p = &l->sw[i].port[k];

			if (p->to == NO_SWITCH)
				continue;
			printf("%s    { \"switch\": \"%s\", \"port\": %u, \"peer\": \"%s\", "
			       "\"paths\": %ju, \"lids\": %ju }",
			       separator, l->sw[i].name, k, l->sw[p->to].name, (uintmax_t)p->paths,
			       (uintmax_t)p->lids);
			separator = ",\n";
		}
	puts("\n  ]\n}");
	return 0;
}

static void load_free(struct load *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->sw[i].port);
		free(l->sw[i].lft);
	}
	free(l->sw);
	free(l->host);
	free(l->queue);
	json_object_put(l->topology);
}

static int print_load(struct load *l, struct cli_tables *t, bool json)
{
	int ret = cli_tables_each(t, keep_table, l);

	if (ret)
		return ret;
	for (size_t i = 0; i < l->n_hosts; i++)
		count_paths(l, &l->host[i]);
	ret = json ? print_json(l) : print_text(l);
	if (ret)
		base_log("%s", strerror(-ret));
	return ret ? CLI_FAILED : CLI_OK;
}

int cli_load_print(struct control_client *client, bool json)
{
	struct load l = { 0 };
	struct cli_tables t;
	int ret = read_topology(&l, client);

	if (ret == -ENOMEM)
		base_log("%s", strerror(ENOMEM));
	if (ret) {
		load_free(&l);
		return CLI_FAILED;
	}
	ret = cli_tables_read(&t, client, NULL);
	if (!ret) {
		ret = print_load(&l, &t, json);
		cli_tables_free(&t);
	}
	load_free(&l);
	return ret;
}
