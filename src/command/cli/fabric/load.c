/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel show routes --load`: how many paths between hosts cross each link between switches, and
 * how many LIDs of hosts it leads to: see routes.h. A host's first LID counts, and both ends of a
 * cable apart.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/json.h"
#include "cli/base/kinds.h"
#include "cli/check/route_tables.h"
#include "cli/check/routes.h"
#include "simulate/load.h"

struct load {
	struct json_object *topology, *nodes;
	struct load_net net;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct load_switch *)a)->name, ((const struct load_switch *)b)->name);
}

static struct load_switch *find(const struct load *l, const char *name)
{
	const struct load_switch key = { .name = name };

	return bsearch(&key, l->net.sw, l->net.n, sizeof(*l->net.sw), by_name);
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
	unsigned n = 0;

	for (size_t i = 0; i < cli_json_count(l->nodes); i++) {
		struct json_object *node = cli_json_at(l->nodes, i);
		struct load_switch *sw = &l->net.sw[n];

		if (!is_switch(node))
			continue;
		n++;
		sw->name = cli_json_text(node, "name");
		if (load_set_ports(sw, (unsigned)cli_json_number(node, "n_ports")))
			return -ENOMEM;
	}
	qsort(l->net.sw, l->net.n, sizeof(*l->net.sw), by_name);
	return 0;
}

/* A link of the switch @from, or of a host (NULL), which is that port's. */
static void read_link(struct load *l, struct load_switch *from, struct json_object *port)
{
	struct load_switch *to = find(l, cli_json_text(port, "peer"));
	unsigned num = (unsigned)cli_json_number(port, "port");
	unsigned there = (unsigned)cli_json_number(port, "peer_port");

	if (!to || !is_active(port))
		return;
	if (!from && there <= to->n_ports) {
		to->port[there].to = LOAD_HOST;
		to->port[there].host = l->net.n_hosts;
		l->net.host[l->net.n_hosts++] =
		        (struct load_host){ .lid = (unsigned)cli_json_number(port, "lid"),
			                    .at = (unsigned)(to - l->net.sw) };
		to->hosts++;
	} else if (from && num <= from->n_ports) {
		from->port[num].to = (unsigned)(to - l->net.sw);
	}
}

static int read_topology(struct load *l, struct control_client *client)
{
	unsigned n_switches = 0, n_ports = 0;
	int ret;

	l->topology = cli_request_json(client, "topology");
	if (!l->topology)
		return -EIO;
	l->nodes = cli_json_array(l->topology, "nodes");
	for (size_t i = 0; i < cli_json_count(l->nodes); i++) {
		struct json_object *node = cli_json_at(l->nodes, i);

		if (is_switch(node))
			n_switches++;
		else
			n_ports += (unsigned)cli_json_count(cli_json_array(node, "ports"));
	}
	ret = load_init(&l->net, n_switches, n_ports);
	l->net.n_hosts = 0; /* so far */
	if (!ret)
		ret = read_switches(l);
	for (size_t i = 0; i < cli_json_count(l->nodes) && !ret; i++) {
		struct json_object *node = cli_json_at(l->nodes, i),
		                   *ports = cli_json_array(node, "ports");

		for (size_t k = 0; k < cli_json_count(ports); k++)
			read_link(l, is_switch(node) ? find(l, cli_json_text(node, "name")) : NULL,
			          cli_json_at(ports, k));
	}
	return ret;
}

static int keep_table(void *arg, const struct cli_switch *from)
{
	struct load_switch *sw = find(arg, from->name);
	uint8_t *lft;

	if (!sw || sw->lft)
		return 0;
	lft = malloc(from->n_lids + 1);
	if (!lft)
		return cli_no_memory();
	memcpy(lft, from->port, from->n_lids);
	sw->lft = lft;
	sw->n_lids = from->n_lids;
	return 0;
}

/* ---- printing ---- */

/* The name of the switch that the link leads to, or NULL. */
static const char *to_switch(const struct load *l, const struct load_link *p)
{
	return p->to < l->net.n ? l->net.sw[p->to].name : NULL;
}

static int add_links(const struct load *l, struct cli_kinds *kinds)
{
	int ret = 0;

	for (unsigned i = 0; i < l->net.n; i++)
		for (unsigned k = 1; k <= l->net.sw[i].n_ports && !ret; k++) {
			const struct load_link *p = &l->net.sw[i].port[k];
			const struct cli_kinds_link link = { .from = l->net.sw[i].name,
				                             .to = to_switch(l, p),
				                             .messages = p->crossed.messages,
				                             .lids = p->lids };

			if (link.to)
				ret = cli_kinds_add(kinds, &link);
		}
	return ret;
}

static int print_text(const struct load *l)
{
	struct cli_kinds kinds = { 0 };
	int ret = add_links(l, &kinds);

	if (!ret)
		ret = cli_kinds_print(&kinds, true);
	cli_kinds_fini(&kinds);
	if (!ret && l->net.sum.lost)
		printf("\n%ju paths do not arrive\n", (uintmax_t)l->net.sum.lost);
	return ret;
}

/* Each link, so that programs can draw them. */
static int print_json(const struct load *l)
{
	const char *separator = "\n";

	printf("{\n  \"lost\": %ju,\n  \"links\": [", (uintmax_t)l->net.sum.lost);
	for (unsigned i = 0; i < l->net.n; i++)
		for (unsigned k = 1; k <= l->net.sw[i].n_ports; k++) {
			const struct load_link *p = &l->net.sw[i].port[k];

			if (!to_switch(l, p))
				continue;
			printf("%s    { \"switch\": \"%s\", \"port\": %u, \"peer\": \"%s\", "
			       "\"paths\": %ju, \"lids\": %ju }",
			       separator, l->net.sw[i].name, k, to_switch(l, p),
			       (uintmax_t)p->crossed.messages, (uintmax_t)p->lids);
			separator = ",\n";
		}
	puts("\n  ]\n}");
	return 0;
}

static void load_free(struct load *l)
{
	for (unsigned i = 0; i < l->net.n; i++)
		free((void *)l->net.sw[i].lft);
	load_fini(&l->net);
	json_object_put(l->topology);
}

/* Reads the load of all links; load_free() is due in any case. */
static int read_load(struct load *l, struct control_client *client)
{
	struct cli_tables t;
	int ret = read_topology(l, client);

	if (ret == -ENOMEM)
		base_log("%s", strerror(ENOMEM));
	if (ret || cli_tables_read(&t, client, NULL))
		return CLI_FAILED;
	ret = cli_tables_each(&t, keep_table, l);
	cli_tables_free(&t);
	for (unsigned i = 0; i < l->net.n_hosts && !ret; i++)
		load_count(&l->net, i);
	return ret;
}

int cli_load_print(struct control_client *client, bool json)
{
	struct load l = { 0 };
	int ret = read_load(&l, client);

	if (!ret) {
		ret = json ? print_json(&l) : print_text(&l);
		if (ret)
			base_log("%s", strerror(-ret));
		ret = ret ? CLI_FAILED : CLI_OK;
	}
	load_free(&l);
	return ret;
}

int cli_load_each(struct control_client *client,
                  void (*each)(void *arg, const char *name, unsigned port, uint64_t paths),
                  void *arg)
{
	struct load l = { 0 };
	int ret = read_load(&l, client);

	for (unsigned i = 0; i < l.net.n && !ret; i++)
		for (unsigned k = 1; k <= l.net.sw[i].n_ports; k++)
			each(arg, l.net.sw[i].name, k, l.net.sw[i].port[k].crossed.messages);
	load_free(&l);
	return ret;
}
