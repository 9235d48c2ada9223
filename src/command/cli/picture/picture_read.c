/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A picture of the daemon's topology and hosts: see picture.h. Called by show_picture.c.
 */
#include <json-c/json.h>
#include <string.h>

#include "cli/base/command.h"
#include "cli/base/json.h"
#include "cli/picture/picture.h"

/* ---- nodes ---- */

static bool is_switch(struct json_object *node)
{
	return !strcmp(cli_json_text(node, "type"), "switch");
}

/* The host, and the names of its HCAs. */
static int add_host(struct cli_picture *p, struct json_object *host)
{
	struct json_object *hcas = cli_json_array(host, "hcas");
	uint32_t index = p->n;
	int ret = cli_picture_add_host(p, cli_json_text(host, "name"));

	for (size_t i = 0; i < cli_json_count(hcas) && !ret; i++)
		ret = cli_picture_add_hca(p, index, cli_json_text(cli_json_at(hcas, i), "name"));
	return ret;
}

static int add_switch(struct cli_picture *p, struct json_object *node)
{
	return cli_picture_add_switch(p, cli_json_text(node, "name"),
	                              json_object_object_get(node, "dead") != NULL,
	                              (unsigned)cli_json_number(node, "lid"));
}

static int add_nodes(struct cli_picture *p, struct json_object *hosts, struct json_object *nodes)
{
	size_t n_ports = 0, n = cli_json_count(nodes) + cli_json_count(hosts);
	int ret;

	for (size_t i = 0; i < cli_json_count(nodes); i++)
		n_ports += cli_json_count(cli_json_array(cli_json_at(nodes, i), "ports"));
	ret = cli_picture_make_room(p, n, n + n_ports, n_ports); /* an HCA has a port */
	for (size_t i = 0; i < cli_json_count(hosts) && !ret; i++)
		ret = add_host(p, cli_json_at(hosts, i));
	for (size_t i = 0; i < cli_json_count(nodes) && !ret; i++)
		if (is_switch(cli_json_at(nodes, i)))
			ret = add_switch(p, cli_json_at(nodes, i));
	return ret;
}

/* ---- links ---- */

static enum cli_picture_state state_of(struct json_object *port)
{
	const char *state = cli_json_text(port, "state");

	if (!strcmp(state, "active"))
		return CLI_PICTURE_ACTIVE;
	return strcmp(state, "down") != 0 ? CLI_PICTURE_IDLE : CLI_PICTURE_FAILED;
}

static int add_port(struct cli_picture *p, const char *name, struct json_object *port)
{
	const struct cli_picture_port added = {
		.node = name,
		.peer = cli_json_text(port, "peer"),
		.port = (unsigned)cli_json_number(port, "port"),
		.peer_port = (unsigned)cli_json_number(port, "peer_port"),
		.state = state_of(port),
	};

	return cli_picture_add_port(p, &added);
}

/* The host's port is the first one, or rather the first active one. */
static void choose_port(struct cli_picture_node *host, const char *hca, struct json_object *port)
{
	bool active = state_of(port) == CLI_PICTURE_ACTIVE;

	if (host->port && (host->active || !active))
		return;
	host->hca = hca;
	host->active = active;
	host->port = (unsigned)cli_json_number(port, "port");
	host->lid = (unsigned)cli_json_number(port, "lid");
}

static int add_ports(struct cli_picture *p, struct json_object *node)
{
	const char *name = cli_json_text(node, "name");
	uint32_t index = cli_picture_find_node(p, name);
	struct json_object *ports = cli_json_array(node, "ports");
	int ret = 0;

	if (index == CLI_PICTURE_NONE)
		return 0;
	for (size_t i = 0; i < cli_json_count(ports) && !ret; i++) {
		ret = add_port(p, name, cli_json_at(ports, i));
		if (!p->node[index].is_switch)
			choose_port(&p->node[index], name, cli_json_at(ports, i));
	}
	return ret;
}

int cli_picture_read(struct cli_picture *p, struct control_client *client, const char *fabric)
{
	struct json_object *nodes;
	int ret;

	*p = (struct cli_picture){ .fabric = fabric };
	p->kept[0] = cli_request_json(client, "topology");
	p->kept[1] = p->kept[0] ? cli_request_json(client, "hosts") : NULL;
	if (!p->kept[1])
		return CLI_FAILED;
	nodes = cli_json_array(p->kept[0], "nodes");
	ret = add_nodes(p, p->kept[1], nodes);
	for (size_t i = 0; i < cli_json_count(nodes) && !ret; i++)
		ret = add_ports(p, cli_json_at(nodes, i));
	if (ret)
		return ret;
	cli_picture_finish(p);
	return 0;
}
