/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nodes and ports as people write them: see port.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/fabrics.h"
#include "cli/base/json.h"
#include "cli/base/port.h"
#include "control/client.h"

#define NAMES 512 /* bytes of a list of names */

int cli_port_parse(const struct cli_command *cmd, const char *text, struct cli_port *port)
{
	const char *colon = strrchr(text, ':');
	long number;

	if (!colon || colon == text || !colon[1])
		return cli_usage_error(cmd, "'%s' is no port: write NODE:PORT, as in sw1:3", text);
	if (base_parse_number(colon + 1, 0, INT_MAX, &number))
		return cli_usage_error(cmd, "'%s' in '%s' is no number of a port", colon + 1, text);
	port->text = text;
	port->port = (unsigned)number;
	snprintf(port->node, sizeof(port->node), "%.*s", (int)(colon - text), text);
	return 0;
}

/* ---- what there is ---- */

/* The fabric as the daemon shows it. */
struct view {
	struct json_object *hosts, *nodes, *topology;
};

static int view_init(struct control_client *client, struct view *v)
{
	*v = (struct view){ .hosts = cli_request_json(client, "hosts") };
	if (!v->hosts)
		return CLI_FAILED;
	v->topology = cli_request_json(client, "topology");
	if (!v->topology) {
		json_object_put(v->hosts);
		return CLI_FAILED;
	}
	v->nodes = cli_json_array(v->topology, "nodes");
	return 0;
}

static void view_fini(struct view *v)
{
	json_object_put(v->hosts);
	json_object_put(v->topology);
}

/* The element of @array whose name is @name, or NULL. */
static struct json_object *find_named(struct json_object *array, const char *name)
{
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		struct json_object *o = json_object_array_get_idx(array, i);

		if (!strcmp(cli_json_text(o, "name"), name))
			return o;
	}
	return NULL;
}

/* The node that the daemon knows by @name, as fabric_node_named(): a node's, a host's, or HOST.HCA.
 */
static struct json_object *find_node(const struct view *v, const char *name)
{
	struct json_object *node = find_named(v->nodes, name), *host;
	const char *dot = strrchr(name, '.');

	if (node)
		return node;
	host = find_named(v->hosts, name);
	if (!host)
		return dot ? find_named(v->nodes, dot + 1) : NULL;
	if (!json_object_array_length(cli_json_array(host, "hcas")))
		return NULL;
	host = json_object_array_get_idx(cli_json_array(host, "hcas"), 0);
	return find_named(v->nodes, cli_json_text(host, "name"));
}

/* Appends the names of the elements of @type (NULL: of all). If they are many: the first eight and
 * the last. */
static void list_names(char names[static NAMES], struct json_object *array, const char *type)
{
	size_t n = json_object_array_length(array), shown = 0, len = strlen(names);
	const char *last = NULL;

	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_object_array_get_idx(array, i);

		if (type && strcmp(cli_json_text(o, "type"), type))
			continue;
		last = cli_json_text(o, "name");
		if (shown++ >= 8)
			continue;
		len += (size_t)snprintf(names + len, NAMES - len, "%s%s", len ? " " : "", last);
		if (len >= NAMES)
			return;
	}
	if (shown > 8)
		snprintf(names + len, NAMES - len, " … %s", last);
}

/* ---- what is wrong ---- */

static bool is_dead(struct json_object *node)
{
	return json_object_get_boolean(json_object_object_get(node, "dead"));
}

/* The dead switch because of which the link stays down. */
static const char *dead_end(const struct view *v, const struct cli_port *p)
{
	struct json_object *node = find_node(v, p->node), *ports;

	if (is_dead(node))
		return cli_json_text(node, "name");
	ports = cli_json_array(node, "ports");
	for (size_t i = 0; i < json_object_array_length(ports); i++) {
		struct json_object *port = json_object_array_get_idx(ports, i);

		if (cli_json_number(port, "port") == (long)p->port)
			return cli_json_text(port, "peer");
	}
	return "a switch";
}

static void say_range(const struct view *v, const struct cli_port *p)
{
	struct json_object *node = find_node(v, p->node);
	long n = cli_json_number(node, "n_ports");

	base_log("'%s' has no port %u: %s %ld", p->node, p->port,
	         n == 1 ? "it has port" : "it has ports 1 to", n);
}

/* The host that has the HCA of this name. */
static const char *host_of(const struct view *v, const char *hca)
{
	for (size_t i = 0; i < cli_json_count(v->hosts); i++) {
		struct json_object *host = cli_json_at(v->hosts, i);

		if (find_named(cli_json_array(host, "hcas"), hca))
			return cli_json_text(host, "name");
	}
	return "HOST";
}

/* A port on a network device has no link of the fabric: the device has one. */
static void say_unplugged(const struct view *v, const struct cli_port *p)
{
	struct json_object *node = find_node(v, p->node), *ports = cli_json_array(node, "ports");

	for (size_t i = 0; i < cli_json_count(ports); i++) {
		struct json_object *port = cli_json_at(ports, i);

		if (cli_json_number(port, "port") != (long)p->port ||
		    !json_object_object_get(port, "device"))
			continue;
		base_log("%s is the network device %s: 'umbel exec %s -- ip link set %s down' "
		         "takes its link down, with 'up' up again",
		         p->text, cli_json_text(port, "device"),
		         host_of(v, cli_json_text(node, "name")), cli_json_text(port, "device"));
		return;
	}
	base_log("nothing is plugged in at %s", p->text);
}

static void explain(const struct view *v, const struct cli_port *p, int error)
{
	char names[NAMES] = "";

	switch (error) {
	case -ENOENT:
		list_names(names, v->hosts, NULL);
		list_names(names, v->nodes, "switch");
		base_log("no node '%s': there are %s", p->node, names);
		break;
	case -EMLINK:
		list_names(names, cli_json_array(find_named(v->hosts, p->node), "hcas"), NULL);
		base_log("host '%s' has several HCAs: name one of %s", p->node, names);
		break;
	case -ERANGE:
		say_range(v, p);
		break;
	case -EHOSTDOWN:
		base_log("the link at %s cannot come up: switch '%s' is dead", p->text,
		         dead_end(v, p));
		break;
	case -EBUSY:
		base_log("a fault keeps the link at %s down: see 'umbel fault show'", p->text);
		break;
	case -ENOTCONN:
		say_unplugged(v, p);
		break;
	case -ENOTTY:
		base_log("%s is no port of a host", p->text);
		break;
	case -ENETDOWN:
		base_log("%s is not active", p->text);
		break;
	default:
		base_log("%s: %s", p->text, cli_refusal(error));
	}
}

int cli_port_refused(struct control_client *client, const struct cli_port *p, int error)
{
	struct view v;

	if (view_init(client, &v))
		return CLI_FAILED;
	explain(&v, p, error);
	view_fini(&v);
	return CLI_FAILED;
}

int cli_switch_refused(struct control_client *client, const char *name, int error)
{
	char names[NAMES] = "";
	struct view v;

	if (view_init(client, &v))
		return CLI_FAILED;
	list_names(names, v.nodes, "switch");
	if (error == -ENOENT)
		base_log("no switch '%s': there are %s", name, names);
	else if (error == -ENOTTY)
		base_log("'%s' is no switch: there are %s", name, names);
	else
		base_log("switch '%s': %s", name, cli_refusal(error));
	view_fini(&v);
	return CLI_FAILED;
}
