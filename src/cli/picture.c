/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nodes and links of a picture, out of the daemon's topology and hosts: see picture.h. Called by
 * show_picture.c.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/picture.h"

static size_t count(struct json_object *array)
{
	return json_object_array_length(array);
}

static struct json_object *at(struct json_object *array, size_t i)
{
	return json_object_array_get_idx(array, i);
}

static int no_memory(void)
{
	base_log("%s", strerror(ENOMEM));
	return CLI_FAILED;
}

/* ---- names ---- */

static struct cli_picture_name *name_at(struct base_hash_node *n)
{
	return n ? container_of(n, struct cli_picture_name, hash) : NULL;
}

static struct cli_picture_name *find(const struct base_hash *h, const char *name, unsigned port)
{
	struct base_hash_node *n = base_hash_first(h, base_hash_of(name, strlen(name), port));

	while (n && (name_at(n)->port != port || strcmp(name_at(n)->name, name) != 0))
		n = base_hash_next(n);
	return name_at(n);
}

static int add_name(struct cli_picture *p, struct base_hash *to, const char *name, unsigned port,
                    uint32_t index)
{
	struct cli_picture_name *new;

	if (p->n_names == p->names_room) {
		base_log("the daemon's topology and its hosts do not fit");
		return CLI_FAILED;
	}
	new = &p->name[p->n_names++];
	*new = (struct cli_picture_name){ .name = name, .port = port, .index = index };
	if (base_hash_add(to, &new->hash, base_hash_of(name, strlen(name), port)))
		return no_memory();
	return 0;
}

uint32_t cli_picture_find_node(const struct cli_picture *p, const char *name)
{
	const struct cli_picture_name *found = find(&p->nodes, name, 0);

	return found ? found->index : CLI_PICTURE_NONE;
}

uint32_t cli_picture_find(const struct cli_picture *p, const char *name)
{
	const struct cli_picture_name *found = find(&p->hosts, name, 0);

	return found ? found->index : cli_picture_find_node(p, name);
}

struct cli_picture_link *cli_picture_link_at(const struct cli_picture *p, const char *name,
                                             unsigned port)
{
	const struct cli_picture_name *end = find(&p->ends, name, port);

	return end ? &p->link[end->index] : NULL;
}

/* ---- nodes ---- */

static bool is_switch(struct json_object *node)
{
	return !strcmp(cli_json_text(node, "type"), "switch");
}

static int make_room(struct cli_picture *p, struct json_object *hosts, struct json_object *nodes)
{
	size_t n_ports = 0, n = count(nodes) + count(hosts);

	for (size_t i = 0; i < count(nodes); i++)
		n_ports += count(cli_json_array(at(nodes, i), "ports"));
	p->node = calloc(n + 1, sizeof(*p->node));
	p->link = calloc(n_ports + 1, sizeof(*p->link));
	p->names_room = (uint32_t)(n + 2 * n_ports);
	p->name = calloc(p->names_room + (size_t)1, sizeof(*p->name));
	return p->node && p->link && p->name ? 0 : no_memory();
}

/* The host, and the names of its HCAs. */
static int add_host(struct cli_picture *p, struct json_object *host)
{
	struct json_object *hcas = cli_json_array(host, "hcas");
	const char *name = cli_json_text(host, "name");
	int ret = add_name(p, &p->hosts, name, 0, p->n);

	for (size_t i = 0; i < count(hcas) && !ret; i++)
		ret = add_name(p, &p->nodes, cli_json_text(at(hcas, i), "name"), 0, p->n);
	p->node[p->n++] = (struct cli_picture_node){ .name = name };
	p->n_hosts++;
	return ret;
}

static int add_switch(struct cli_picture *p, struct json_object *node)
{
	const char *name = cli_json_text(node, "name");

	p->node[p->n] = (struct cli_picture_node){
		.name = name,
		.is_switch = true,
		.dead = json_object_object_get(node, "dead") != NULL,
		.lid = (unsigned)cli_json_number(node, "lid"),
	};
	return add_name(p, &p->nodes, name, 0, p->n++);
}

static int add_nodes(struct cli_picture *p, struct json_object *hosts, struct json_object *nodes)
{
	int ret = make_room(p, hosts, nodes);

	for (size_t i = 0; i < count(hosts) && !ret; i++)
		ret = add_host(p, at(hosts, i));
	for (size_t i = 0; i < count(nodes) && !ret; i++)
		if (is_switch(at(nodes, i)))
			ret = add_switch(p, at(nodes, i));
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

/* The worse of both ends is the link's. */
static int add_port(struct cli_picture *p, const char *name, uint32_t index,
                    struct json_object *port)
{
	const char *peer = cli_json_text(port, "peer");
	unsigned num = (unsigned)cli_json_number(port, "port");
	unsigned far_num = (unsigned)cli_json_number(port, "peer_port");
	const struct cli_picture_name *far = find(&p->nodes, peer, 0);
	struct cli_picture_link *l = cli_picture_link_at(p, peer, far_num);
	enum cli_picture_state state = state_of(port);

	if (!far)
		return 0;
	if (!l) {
		l = &p->link[p->n_links++];
		*l = (struct cli_picture_link){ .node = { index, far->index },
			                        .port = { num, far_num },
			                        .state = state };
	}
	l->state = state > l->state ? state : l->state;
	return add_name(p, &p->ends, name, num, (uint32_t)(l - p->link));
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
	const struct cli_picture_name *found = find(&p->nodes, name, 0);
	struct json_object *ports = cli_json_array(node, "ports");
	struct cli_picture_node *to;
	int ret = 0;

	if (!found)
		return 0;
	to = &p->node[found->index];
	for (size_t i = 0; i < count(ports) && !ret; i++) {
		ret = add_port(p, name, found->index, at(ports, i));
		if (!to->is_switch)
			choose_port(to, name, at(ports, i));
	}
	return ret;
}

/* ---- levels ---- */

/* Switches with hosts are at level 1, their neighbours at 2, and so on, whichever links have
 * failed. What no host is linked to stays at 1. */
static void find_levels(struct cli_picture *p)
{
	bool more = true;

	for (unsigned level = 0; more; level++) {
		more = false;
		for (uint32_t i = 0; i < p->n_links; i++)
			for (unsigned k = 0; k < 2; k++) {
				const struct cli_picture_node *low = &p->node[p->link[i].node[k]];
				struct cli_picture_node *high = &p->node[p->link[i].node[!k]];

				if (high->is_switch && !high->level && low->level == level &&
				    low->is_switch == (level > 0)) {
					high->level = level + 1;
					more = true;
				}
			}
	}
	for (uint32_t i = 0; i < p->n; i++)
		if (p->node[i].is_switch && !p->node[i].level)
			p->node[i].level = 1;
}

static void count_links(struct cli_picture *p)
{
	for (uint32_t i = 0; i < p->n_links; i++)
		for (unsigned k = 0; k < 2; k++) {
			const struct cli_picture_link *l = &p->link[i];
			struct cli_picture_node *here = &p->node[l->node[k]];
			const struct cli_picture_node *there = &p->node[l->node[!k]];

			here->to_hosts += !there->is_switch;
			here->up += there->level > here->level;
			here->down += there->is_switch && there->level < here->level;
			here->beside += there->level == here->level;
			here->failed += l->state == CLI_PICTURE_FAILED;
		}
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
	for (size_t i = 0; i < count(nodes) && !ret; i++)
		ret = add_ports(p, at(nodes, i));
	if (ret)
		return ret;
	find_levels(p);
	count_links(p);
	return 0;
}

void cli_picture_fini(struct cli_picture *p)
{
	base_hash_fini(&p->hosts);
	base_hash_fini(&p->nodes);
	base_hash_fini(&p->ends);
	for (size_t i = 0; i < ARRAY_SIZE(p->kept); i++)
		json_object_put(p->kept[i]);
	free(p->node);
	free(p->link);
	free(p->name);
}
