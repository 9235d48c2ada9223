/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links, tables and partitions on the way of a packet: see explain.h.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain/explain.h"
#include "cli/base/json.h"
#include "cli/check/route_tables.h"

#define MOST_HOPS 64
#define MEMBER    0x8000 /* the bit of a P_Key: full member */

/* The element whose @key has that text, or that number. */
static struct json_object *find(struct json_object *array, const char *key, const char *text)
{
	for (size_t i = 0; i < cli_json_count(array); i++)
		if (!strcmp(cli_json_text(cli_json_at(array, i), key), text))
			return cli_json_at(array, i);
	return NULL;
}

static struct json_object *find_port(struct json_object *node, long port)
{
	struct json_object *ports = cli_json_array(node, "ports");

	for (size_t i = 0; i < cli_json_count(ports); i++)
		if (cli_json_number(cli_json_at(ports, i), "port") == port)
			return cli_json_at(ports, i);
	return NULL;
}

static struct json_object *node_of(struct cli_explain *e, const char *name)
{
	return json_object_object_get(e->by_node, name);
}

static bool is_active(struct json_object *link)
{
	return !strcmp(cli_json_text(link, "state"), "active");
}

/* ---- ends ---- */

/* Fills in what the views say of the port. False: it has no link. */
static bool fill(struct cli_explain *e, struct cli_end *end)
{
	struct json_object *node = node_of(e, end->node);

	end->link = node ? find_port(node, end->port) : NULL;
	node = json_object_object_get(e->keys_by_node, end->node);
	end->keys = node ? find_port(node, end->port) : NULL;
	if (!end->link || !end->keys)
		cli_explain_say(e, CLI_FAILS, "host", "umbel show topology lists the ports",
		                "%s has no port %ld that is linked", end->host, end->port);
	return end->link && end->keys;
}

bool cli_explain_end(struct cli_explain *e, const char *text, struct cli_end *end)
{
	size_t bytes = strcspn(text, ":");
	struct json_object *host, *hcas;
	char name[128];

	*end = (struct cli_end){ .port = text[bytes] ? strtol(text + bytes + 1, NULL, 10) : 1 };
	snprintf(name, sizeof(name), "%.*s", (int)bytes, text);
	host = json_object_object_get(e->by_host, name);
	hcas = host ? cli_json_array(host, "hcas") : NULL;
	if (!hcas || !cli_json_count(hcas)) {
		cli_explain_say(e, CLI_FAILS, "host", "umbel show hosts lists them",
		                "there is no host '%.*s'%s", (int)bytes, text,
		                host ? " with an HCA" : "");
		return false;
	}
	end->host = cli_json_text(host, "name");
	end->node = cli_json_text(cli_json_at(hcas, 0), "name");
	return fill(e, end);
}

bool cli_explain_link(struct cli_explain *e, const struct cli_end *end)
{
	const char *state = cli_json_text(end->link, "state");

	if (is_active(end->link)) {
		bool has_lid = cli_json_number(end->link, "lid");

		cli_explain_say(e, CLI_HOLDS, "link", NULL, "%s: port %ld of %s is active%s%s",
		                end->host, end->port, end->node, has_lid ? ", LID " : "",
		                has_lid ? cli_json_text(end->link, "lid") : "");
		return true;
	}
	cli_explain_say(e, CLI_FAILS, "link",
	                !strcmp(state, "down")
	                        ? "umbel link up, or umbel switch revive, what is down"
	                        : "a subnet manager has to bring it up: umbel status, umbel sm",
	                "%s: port %ld of %s is %s", end->host, end->port, end->node, state);
	return false;
}

/* ---- routes ---- */

struct entry {
	long lid, port; /* port CLI_NO_PORT: none */
};

static int look_up(void *arg, const struct cli_switch *sw)
{
	struct entry *x = arg;

	if (x->lid < (long)sw->n_lids)
		x->port = sw->port[x->lid];
	return 0;
}

/* The port out of a switch to a LID. */
static long port_out(struct cli_explain *e, const char *name, long lid)
{
	struct entry x = { lid, CLI_NO_PORT };
	struct cli_tables tables;

	if (cli_tables_read(&tables, e->client, name)) {
		e->broken = true;
		return CLI_NO_PORT;
	}
	e->broken |= cli_tables_each(&tables, look_up, &x) != 0;
	cli_tables_free(&tables);
	return x.port;
}

static bool is_alive(struct cli_explain *e, struct json_object *sw)
{
	if (!json_object_object_get(sw, "dead"))
		return true;
	cli_explain_say(e, CLI_FAILS, "switch", "umbel switch revive", "%s is dead",
	                cli_json_text(sw, "name"));
	return false;
}

/* The link behind a port of a switch, if it is up. */
static struct json_object *link_out(struct cli_explain *e, struct json_object *sw, long port)
{
	const char *name = cli_json_text(sw, "name");
	struct json_object *link = find_port(sw, port);

	if (link && is_active(link))
		return link;
	if (link)
		cli_explain_say(e, CLI_FAILS, "link", "umbel link up",
		                "the link of %s:%ld to %s is %s", name, port,
		                cli_json_text(link, "peer"), cli_json_text(link, "state"));
	else
		cli_explain_say(e, CLI_FAILS, "link", "the tables are wrong: umbel check",
		                "nothing is plugged in at %s:%ld", name, port);
	return NULL;
}

static bool has_arrived(const struct cli_end *to, struct json_object *link)
{
	return !strcmp(cli_json_text(link, "peer"), to->node) &&
	       cli_json_number(link, "peer_port") == to->port;
}

long cli_explain_route(struct cli_explain *e, const struct cli_end *from, const struct cli_end *to)
{
	long lid = cli_json_number(to->link, "lid"), mtu = cli_json_number(from->link, "mtu");
	struct json_object *link = from->link, *sw;

	if (json_object_object_get(link, "device")) {
		cli_explain_say(e, CLI_HOLDS, "route", NULL, "%s sends by the network, at %s",
		                from->host, cli_json_text(link, "device"));
		return mtu;
	}
	for (unsigned hops = 0; link && !has_arrived(to, link); hops++) {
		long out;

		sw = node_of(e, cli_json_text(link, "peer"));
		if (!sw || strcmp(cli_json_text(sw, "type"), "switch") != 0 || hops > MOST_HOPS) {
			cli_explain_say(e, CLI_FAILS, "route", "the tables are wrong: umbel check",
			                hops > MOST_HOPS ? "packets go in circles, at %s"
			                                 : "packets arrive at %s",
			                cli_json_text(link, "peer"));
			return 0;
		}
		if (!is_alive(e, sw))
			return 0;
		out = port_out(e, cli_json_text(sw, "name"), lid);
		if (out == CLI_NO_PORT) {
			cli_explain_say(e, CLI_FAILS, "route",
			                "is a subnet manager running, and its sweep over? umbel "
			                "status, umbel check",
			                "%s has no route to LID %ld (%s)",
			                cli_json_text(sw, "name"), lid, to->host);
			return 0;
		}
		link = link_out(e, sw, out);
		if (!link)
			return 0;
		mtu = cli_json_number(link, "mtu") < mtu ? cli_json_number(link, "mtu") : mtu;
		cli_explain_say(e, CLI_HOLDS, "route", NULL,
		                "%s: LID %ld leaves by port %ld, to %s", cli_json_text(sw, "name"),
		                lid, out, cli_json_text(link, "peer"));
	}
	return mtu;
}

/* ---- partitions ---- */

static bool fit(long a, long b)
{
	return (a & ~MEMBER) == (b & ~MEMBER) && ((a | b) & MEMBER);
}

/* A P_Key of the port that fits; 0: none does. */
static long fitting(const struct cli_end *end, long pkey)
{
	struct json_object *keys = cli_json_array(end->keys, "pkeys");

	for (size_t i = 0; i < cli_json_count(keys); i++)
		if (fit(json_object_get_int64(cli_json_at(keys, i)), pkey))
			return (long)json_object_get_int64(cli_json_at(keys, i));
	return 0;
}

bool cli_explain_pkeys(struct cli_explain *e, const struct cli_end *from, const struct cli_end *to)
{
	struct json_object *keys = cli_json_array(from->keys, "pkeys");

	for (size_t i = 0; i < cli_json_count(keys); i++) {
		long pkey = (long)json_object_get_int64(cli_json_at(keys, i));

		if (!fitting(to, pkey))
			continue;
		cli_explain_say(e, CLI_HOLDS, "pkey", NULL,
		                "%s and %s are in the partition of P_Key 0x%04lx", from->host,
		                to->host, pkey | MEMBER);
		return true;
	}
	cli_explain_say(e, CLI_FAILS, "pkey",
	                "put both in one, and one of them as full member: umbel sm partitions",
	                "%s and %s are in no common partition", from->host, to->host);
	return false;
}

void cli_explain_group_pkey(struct cli_explain *e, const struct cli_end *end, long pkey)
{
	if (fitting(end, pkey))
		cli_explain_say(e, CLI_HOLDS, "pkey", NULL, "%s has the group's P_Key, 0x%04lx",
		                end->host, pkey);
	else
		cli_explain_say(e, CLI_FAILS, "pkey", "umbel sm partitions",
		                "%s is not in the group's partition, 0x%04lx", end->host, pkey);
}

/* ---- trees ---- */

/* The ports to which a switch forwards what is sent to the group; NULL: it has no entry. */
static struct json_object *row_of(struct json_object *group, const char *sw)
{
	struct json_object *row = find(cli_json_array(group, "tree"), "switch", sw);

	return row ? cli_json_array(row, "ports") : NULL;
}

/* A walk: the switches that are to be visited, each with the port by which packets come in. */
struct walk {
	struct json_object *todo, *seen, *reached;
};

static void visit_later(struct walk *w, struct json_object *link)
{
	const char *name = cli_json_text(link, "peer");

	if (json_object_object_get(w->seen, name))
		return;
	json_object_object_add(w->seen, name, json_object_new_boolean(true));
	json_object_array_add(w->todo, json_object_get(link));
}

/* Packets come to a switch by @in. */
static void visit(struct cli_explain *e, struct walk *w, struct json_object *group,
                  struct json_object *in)
{
	struct json_object *sw = node_of(e, cli_json_text(in, "peer")), *ports, *link;

	if (!sw || !is_alive(e, sw))
		return;
	ports = row_of(group, cli_json_text(sw, "name"));
	for (size_t i = 0; ports && i < cli_json_count(ports); i++) {
		long port = (long)json_object_get_int64(cli_json_at(ports, i));

		if (!port || port == cli_json_number(in, "peer_port"))
			continue;
		link = link_out(e, sw, port);
		if (!link)
			continue;
		sw = node_of(e, cli_json_text(link, "peer"));
		if (sw && !strcmp(cli_json_text(sw, "type"), "switch"))
			visit_later(w, link);
		else
			json_object_object_add(w->reached, cli_json_text(link, "peer"),
			                       json_object_new_boolean(true));
		sw = node_of(e, cli_json_text(in, "peer"));
	}
}

struct json_object *cli_explain_tree(struct cli_explain *e, const struct cli_end *from,
                                     struct json_object *group)
{
	struct walk w = { json_object_new_array(), json_object_new_object(),
		          json_object_new_object() };
	const char *first = cli_json_text(from->link, "peer");

	if (row_of(group, first))
		cli_explain_say(e, CLI_HOLDS, "tree", NULL, "%s forwards MLID %s of %s", first,
		                cli_json_text(group, "mlid"), from->host);
	else
		cli_explain_say(e, CLI_FAILS, "tree",
		                "who sends to a group joins it first, too: rdma_join_multicast()",
		                "%s, the switch of %s, has no entry for MLID %s", first, from->host,
		                cli_json_text(group, "mlid"));
	visit_later(&w, from->link);
	for (size_t i = 0; i < cli_json_count(w.todo); i++)
		visit(e, &w, group, cli_json_at(w.todo, i));
	json_object_put(w.todo);
	json_object_put(w.seen);
	return w.reached;
}

void cli_explain_unreached(struct cli_explain *e, const struct cli_end *to,
                           struct json_object *group)
{
	const char *sw = cli_json_text(to->link, "peer"),
	           *port = cli_json_text(to->link, "peer_port");
	struct json_object *ports = row_of(group, sw);

	for (size_t i = 0; ports && i < cli_json_count(ports); i++)
		if (json_object_get_int64(cli_json_at(ports, i)) ==
		    cli_json_number(to->link, "peer_port")) {
			cli_explain_say(e, CLI_FAILS, "tree",
			                "is a sweep under way? umbel status, umbel check",
			                "the tree does not lead to %s, the switch of %s", sw,
			                to->host);
			return;
		}
	cli_explain_say(e, CLI_FAILS, "tree", "has it joined? umbel show groups",
	                "%s does not forward the group to port %s (%s)", sw, port, to->host);
}

/* ---- counters ---- */

static struct json_object *counters_of(struct cli_explain *e, const struct cli_end *end)
{
	char name[160];

	snprintf(name, sizeof(name), "%s:%ld", end->node, end->port);
	return json_object_object_get(e->by_port, name);
}

long cli_explain_counter(struct cli_explain *e, const struct cli_end *end, const char *name)
{
	struct json_object *counters = counters_of(e, end);

	return counters ? cli_json_number(counters, name) : 0;
}

static const char *text_of(struct cli_explain *e, const char *name)
{
	struct json_object *text =
	        json_object_object_get(json_object_object_get(e->texts, "hca"), name);

	if (!text)
		text = json_object_object_get(json_object_object_get(e->texts, "group"), name);
	return text ? json_object_get_string(text) : "packets lost";
}

void cli_explain_losses(struct cli_explain *e, const struct cli_end *end, const char *const *names)
{
	for (; *names; names++) {
		long n = cli_explain_counter(e, end, *names);

		if (n)
			cli_explain_say(e, CLI_LOST, *names, NULL, "%s counts %ld: %s", end->host,
			                n, text_of(e, *names));
	}
}
