/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The text form of topology, groups, counters, hosts and neighbours: see views.h. Called by show.c.
 * The objects of programs are in views_programs.c.
 */
#define _GNU_SOURCE
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/exit.h"
#include "cli/show/growth.h"
#include "cli/show/interfaces.h"
#include "cli/base/json.h"
#include "cli/base/table.h"
#include "cli/show/views.h"

/* A key or identifier, which may come as a number, is written in hex. */
static void print_hex(struct json_object *o, const char *key)
{
	if (json_object_is_type(json_object_object_get(o, key), json_type_int))
		printf("0x%lx", cli_json_number(o, key));
	else
		fputs(cli_json_text(o, key), stdout);
}

/* The elements of an array, with blanks between; to be freed. NULL: no memory. */
static char *join(struct json_object *array)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	for (size_t i = 0; i < cli_json_count(array); i++)
		fprintf(to, "%s%s", i ? " " : "", json_object_get_string(cli_json_at(array, i)));
	if (cli_json_count(array) == 0)
		fputc('-', to);
	fclose(to);
	return text;
}

static void add_joined(struct cli_table *t, struct json_object *element, const char *key)
{
	char *text = join(cli_json_array(element, key));

	cli_table_add(t, "%s", text ? text : "?");
	free(text);
}

/* "sw1/3", the network device of an Ethernet port, or "-" where nothing is plugged in. */
static void add_peer(struct cli_table *t, struct json_object *port, const char *key)
{
	const char *peer = cli_json_text(port, key);

	if (!strcmp(peer, "-"))
		cli_table_add(t, "%s", cli_json_text(port, "device"));
	else
		cli_table_add(t, "%s/%s", peer, cli_json_text(port, "peer_port"));
}

static int print_topology(struct json_object *topology)
{
	static const char *const ports[] = { "ports", NULL };
	static const struct cli_column columns[] = {
		{ "NODE", "name", cli_add_text, 0 },   { "TYPE", "type", cli_add_text, 0 },
		{ "GUID", "guid", cli_add_text, 0 },   { "PORT", "port", cli_add_text, 1 },
		{ "STATE", "state", cli_add_text, 1 }, { "LID", "lid", cli_add_text, 1 },
		{ "PEER", "peer", add_peer, 1 },       { "MTU", "mtu", cli_add_text, 1 },
		{ "RATE", "rate", cli_add_text, 1 },   { 0 },
	};

	return cli_json_print_table(cli_json_array(topology, "nodes"), columns, ports);
}

/* "h1 full", or "h1 QP 0x000002". The columns that it takes. */
static int print_pair(struct json_object *o, const char *first, const char *second)
{
	return printf("%s%s %s", cli_json_text(o, first), strcmp(second, "qpn") ? "" : " QP",
	              cli_json_text(o, second));
}

/* "  members   h1 full, h2 full": pairs on as many lines as it takes; '-' if there are none. */
static void print_pairs(const char *label, struct json_object *array, const char *first,
                        const char *second)
{
	const int wide = 72;
	int column = printf("  %-9s ", label);

	if (cli_json_count(array) == 0)
		putchar('-');
	for (size_t i = 0; i < cli_json_count(array); i++) {
		if (i && column > wide)
			column = printf(",\n  %-9s ", "");
		else if (i)
			column += printf(", ");
		column += print_pair(cli_json_at(array, i), first, second);
	}
	putchar('\n');
}

static void print_tree(struct json_object *tree)
{
	for (size_t i = 0; i < cli_json_count(tree); i++) {
		struct json_object *ports = cli_json_array(cli_json_at(tree, i), "ports");
		char *text = join(ports);

		printf("  %-9s %s: port%s %s\n", i ? "" : "tree",
		       cli_json_text(cli_json_at(tree, i), "switch"),
		       cli_json_count(ports) == 1 ? "" : "s", text ? text : "?");
		free(text);
	}
	if (cli_json_count(tree) == 0)
		printf("  %-9s -\n", "tree");
}

static void print_group(struct json_object *group)
{
	bool colour = cli_colour();

	if (json_object_object_get(group, "hca")) {
		printf("%s%s%s\n  %-9s %s\n", colour ? "\033[1m" : "", cli_json_text(group, "mgid"),
		       colour ? "\033[0m" : "", "HCA", cli_json_text(group, "hca"));
		print_pairs("attached", cli_json_array(group, "attached"), "host", "qpn");
		return;
	}
	printf("%s%s%s\n  %-9s ", colour ? "\033[1m" : "", cli_json_text(group, "mgid"),
	       colour ? "\033[0m" : "", "MLID");
	print_hex(group, "mlid");
	if (!json_object_object_get(group, "qkey")) {
		puts("  (the rest is with the master's SA: saquery -g, saquery -m)");
		print_pairs("attached", cli_json_array(group, "attached"), "host", "qpn");
		print_tree(cli_json_array(group, "tree"));
		return;
	}
	fputs("  Q_Key ", stdout);
	print_hex(group, "qkey");
	fputs("  P_Key ", stdout);
	print_hex(group, "pkey");
	printf("  MTU %s", cli_json_text(group, "mtu"));
	printf("  rate %ld Gb/s", cli_json_number(group, "rate_mbps") / 1000);
	printf("  SL %s\n", cli_json_text(group, "sl"));
	print_pairs("members", cli_json_array(group, "members"), "host", "join_state");
	print_pairs("attached", cli_json_array(group, "attached"), "host", "qpn");
	print_tree(cli_json_array(group, "tree"));
}

static int print_groups(struct json_object *groups)
{
	if (cli_json_count(groups) == 0)
		puts("no groups");
	for (size_t i = 0; i < cli_json_count(groups); i++) {
		if (i)
			putchar('\n');
		print_group(cli_json_at(groups, i));
	}
	return 0;
}

/*
 * Counters: arrays of what counts, ports for instance. The daemon alone knows their names: an
 * element's texts and its number say what it is, all other integers are counters.
 */

/* Adds the fields of an element to @columns: true for what is shown, a counter that is not 0. */
static void note_fields(struct json_object *columns, struct json_object *element)
{
	json_object_object_foreach(element, key, value)
	{
		bool shown = json_object_get_boolean(json_object_object_get(columns, key));

		if (cli_growth_is_identity(key, value) || json_object_get_int64(value))
			shown = true;
		json_object_object_add(columns, key, json_object_new_boolean(shown));
	}
}

static bool any_counter_moved(struct json_object *array)
{
	for (size_t i = 0; i < cli_json_count(array); i++) {
		json_object_object_foreach(cli_json_at(array, i), key, value)
		{
			if (!cli_growth_is_identity(key, value) && json_object_get_int64(value))
				return true;
		}
	}
	return false;
}

/* A row for each element, with the columns that @columns says are shown. */
static int print_counter_table(struct json_object *array, struct json_object *columns)
{
	size_t room = (size_t)json_object_object_length(columns) + 1;
	struct cli_column *shown = calloc(room, sizeof(*shown));
	unsigned n = 0;
	int ret;

	if (!shown) {
		base_log("no memory");
		return CLI_FAILED;
	}
	json_object_object_foreach(columns, key, is_shown)
	{
		if (json_object_get_boolean(is_shown))
			shown[n++] = (struct cli_column){ key, key, cli_growth_add_cell, 0 };
	}
	ret = cli_json_print_table(array, shown, NULL);
	free(shown);
	return ret;
}

static int print_counter_array(struct json_object *array)
{
	struct json_object *columns = json_object_new_object();
	int ret;

	for (size_t i = 0; i < cli_json_count(array); i++)
		note_fields(columns, cli_json_at(array, i));
	ret = print_counter_table(array, columns);
	json_object_put(columns);
	return ret;
}

static int print_counters(struct json_object *counters)
{
	bool any = false;
	int ret = 0;

	json_object_object_foreach(counters, key, array)
	{
		(void)key;
		if (!json_object_is_type(array, json_type_array) || !any_counter_moved(array))
			continue;
		if (any)
			putchar('\n');
		any = true;
		ret = ret ? ret : print_counter_array(array);
	}
	if (!any)
		puts("all counters are 0");
	return ret;
}

/* ---- hosts and their neighbours ---- */

static int print_hosts(struct json_object *hosts)
{
	static const char *const ports[] = { "hcas", "ports", NULL };
	static const struct cli_column columns[] = {
		{ "HOST", "name", cli_add_text, 0 },
		{ "ADDRESSES", "addresses", add_joined, 2 },
		{ "HCA", "name", cli_add_text, 1 },
		{ "NODE GUID", "node_guid", cli_add_text, 1 },
		{ "PORT", "port", cli_add_text, 2 },
		{ "LID", "lid", cli_add_text, 2 },
		{ "STATE", "state", cli_add_text, 2 },
		{ "GID", "gid", cli_add_text, 2 },
		{ 0 },
	};
	struct json_object *counters;
	int ret = cli_json_print_table(hosts, columns, ports);

	counters = cli_interfaces_counters(hosts);
	if (!ret && cli_json_count(counters) > 0) {
		putchar('\n');
		ret = print_counter_array(counters);
	}
	json_object_put(counters);
	return ret;
}

static int print_neighbours(struct json_object *neighbours)
{
	static const struct cli_column columns[] = {
		{ "HOST", "host", cli_add_text, 0 },  { "INTERFACE", "interface", cli_add_text, 0 },
		{ "ADDRESS", "ip", cli_add_text, 0 }, { "STATE", "state", cli_add_text, 0 },
		{ "MODE", "mode", cli_add_text, 0 },  { "QPN", "qpn", cli_add_text, 0 },
		{ "GID", "gid", cli_add_text, 0 },    { 0 },
	};

	return cli_json_print_table(neighbours, columns, NULL);
}

static int print_routers(struct json_object *routers)
{
	static const struct cli_column columns[] = {
		{ "ROUTER", "host", cli_add_text, 0 },
		{ "PORT", "port", cli_add_text, 0 },
		{ "LID", "lid", cli_add_text, 0 },
		{ "STATE", "state", cli_add_text, 0 },
		{ "TO", "peer", cli_add_text, 0 },
		{ "ITS PREFIX", "prefix", cli_add_text, 0 },
		{ "GROUPS", "groups", cli_add_text, 0 },
		{ "SENT", "sent", cli_add_text, 0 },
		{ "RECEIVED", "received", cli_add_text, 0 },
		{ "DROPPED", "dropped", cli_add_text, 0 },
		{ 0 },
	};

	return cli_json_print_table(routers, columns, NULL);
}

static const struct cli_view views[] = {
	{ "topology", false, print_topology },
	{ "groups", false, print_groups },
	{ "counters", false, print_counters },
	{ "routers", false, print_routers },
	{ "hosts", true, print_hosts },
	{ "neighbours", true, print_neighbours },
	{ "qps", false, cli_views_qps },
	{ "connections", false, cli_views_connections },
	{ "processes", false, cli_views_processes },
	{ "mrs", false, cli_views_mrs },
};

const struct cli_view *cli_view_find(const char *what)
{
	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		if (!strcmp(views[i].what, what))
			return &views[i];
	}
	return NULL;
}
