/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lit parts of a picture, a group's tree or a path, and the load of links: see picture.h.
 * Called by show_picture.c.
 */
#include <arpa/inet.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/group.h"
#include "cli/base/json.h"
#include "cli/picture/picture.h"
#include "cli/check/route_tables.h"
#include "cli/check/routes.h"

/* ---- loads ---- */

static void add_load(struct cli_picture *p, const char *name, unsigned port, uint64_t load)
{
	struct cli_picture_link *l = cli_picture_link_at(p, name, port);

	if (l && load > l->load)
		l->load = load;
}

int cli_picture_count_bytes(struct cli_picture *p, struct control_client *client)
{
	struct json_object *counters = cli_request_json(client, "counters"), *ports;

	if (!counters)
		return CLI_FAILED;
	ports = cli_json_array(counters, "ports");
	for (size_t i = 0; i < cli_json_count(ports); i++)
		add_load(p, cli_json_text(cli_json_at(ports, i), "node"),
		         (unsigned)cli_json_number(cli_json_at(ports, i), "port"),
		         (uint64_t)cli_json_number(cli_json_at(ports, i), "xmit_bytes"));
	json_object_put(counters);
	p->loads = "bytes";
	return 0;
}

static void add_routes(void *picture, const char *name, unsigned port, uint64_t paths)
{
	add_load(picture, name, port, paths);
}

int cli_picture_count_routes(struct cli_picture *p, struct control_client *client)
{
	p->loads = "routes";
	return cli_load_each(client, add_routes, p);
}

/* ---- what is lit ---- */

static void light(struct cli_picture *p, struct cli_picture_link *l)
{
	if (l->lit)
		return;
	l->lit = true;
	for (unsigned k = 0; k < 2; k++) {
		p->node[l->node[k]].lit = true;
		p->node[l->node[k]].lit_links++;
	}
}

/* ---- groups ---- */

static size_t light_hosts(struct cli_picture *p, struct json_object *hosts)
{
	for (size_t i = 0; i < cli_json_count(hosts); i++) {
		uint32_t host = cli_picture_find(p, cli_json_text(cli_json_at(hosts, i), "host"));

		if (host != CLI_PICTURE_NONE)
			p->node[host].lit = true;
	}
	return cli_json_count(hosts);
}

static void light_tree(struct cli_picture *p, struct json_object *tree)
{
	for (size_t i = 0; i < cli_json_count(tree); i++) {
		const char *name = cli_json_text(cli_json_at(tree, i), "switch");
		struct json_object *ports = cli_json_array(cli_json_at(tree, i), "ports");

		for (size_t k = 0; k < cli_json_count(ports); k++) {
			struct cli_picture_link *l = cli_picture_link_at(
			        p, name, (unsigned)json_object_get_int(cli_json_at(ports, k)));

			if (l)
				light(p, l);
		}
	}
}

int cli_picture_light_group(struct cli_picture *p, struct control_client *client, const char *text)
{
	struct json_object *groups, *group = NULL;
	struct cli_group wanted;
	const char *mgid;
	size_t members, attached;

	if (!cli_group_parse(text, &wanted)) {
		base_log(CLI_NO_GROUP, text);
		return CLI_USAGE;
	}
	groups = cli_request_json(client, "groups");
	if (!groups)
		return CLI_FAILED;
	mgid = cli_group_find(&wanted, groups);
	for (size_t i = 0; mgid && i < cli_json_count(groups) && !group; i++)
		if (!strcmp(cli_json_text(cli_json_at(groups, i), "mgid"), mgid))
			group = cli_json_at(groups, i);
	if (!group) {
		base_log("no group '%s'; 'umbel show groups' lists them", text);
		json_object_put(groups);
		return CLI_FAILED;
	}
	members = light_hosts(p, cli_json_array(group, "members"));
	attached = light_hosts(p, cli_json_array(group, "attached"));
	light_tree(p, cli_json_array(group, "tree"));
	snprintf(p->about, sizeof(p->about), "group %s: %zu member%s, %zu queue pair%s attached",
	         cli_json_text(group, "mgid"), members, members == 1 ? "" : "s", attached,
	         attached == 1 ? "" : "s");
	json_object_put(groups);
	return 0;
}

/* ---- paths ---- */

/* A walk of packets to one LID: the ports by which switches forward it, by index of the switch, and
 * how far it has come. */
struct walk {
	struct cli_picture *p;
	uint8_t *port;
	uint32_t at, to;
	unsigned lid, links;
};

static int keep_port(void *arg, const struct cli_switch *from)
{
	struct walk *w = arg;
	uint32_t sw = cli_picture_find_node(w->p, from->name);

	if (sw != CLI_PICTURE_NONE && w->lid < from->n_lids)
		w->port[sw] = from->port[w->lid];
	return 0;
}

/* Over a link. Why it does not lead on; NULL: it does. */
static const char *cross(struct walk *w, struct cli_picture_link *l)
{
	const unsigned here = cli_picture_end(l, w->at);

	if (l->lit)
		return "it goes round in circles";
	light(w->p, l);
	w->links++;
	if (w->p->way)
		fprintf(w->p->way, "%s:%u > %s:%u\n", w->p->node[w->at].name, l->port[here],
		        w->p->node[l->node[!here]].name, l->port[!here]);
	if (l->state == CLI_PICTURE_FAILED)
		return "its link has failed";
	if (l->state == CLI_PICTURE_IDLE)
		return "its link is not active";
	w->at = l->node[!here];
	return NULL;
}

/* From one node to the next one. Why it does not go on; NULL: it does. */
static const char *step(struct walk *w)
{
	const struct cli_picture_node *here = &w->p->node[w->at];
	struct cli_picture_link *l;

	if (!here->is_switch && w->links)
		return "it is the wrong host";
	if (!here->is_switch)
		l = here->port ? cli_picture_link_at(w->p, here->hca, here->port) : NULL;
	else if (w->port[w->at] == CLI_NO_PORT)
		return "it has no route on";
	else
		l = cli_picture_link_at(w->p, here->name, w->port[w->at]);
	return l ? cross(w, l) : "no active link leads on";
}

/* Follows the tables to the end. */
static void light_walk(struct walk *w)
{
	struct cli_picture *p = w->p;
	const char *why = w->lid ? NULL : "the other end has no LID", *from = p->node[w->at].name;
	int n;

	p->node[w->at].lit = p->node[w->at].end = true;
	p->node[w->to].lit = p->node[w->to].end = true;
	while (!why && w->at != w->to)
		why = step(w);
	n = snprintf(p->about, sizeof(p->about), "path %.60s > %.60s: %u link%s", from,
	             p->node[w->to].name, w->links, w->links == 1 ? "" : "s");
	if (why)
		snprintf(p->about + n, sizeof(p->about) - (size_t)n, ", ends at %.60s: %s",
		         p->node[w->at].name, why);
}

static int find_end(const struct cli_picture *p, const char *name, uint32_t *end)
{
	*end = cli_picture_find(p, name);
	if (*end != CLI_PICTURE_NONE)
		return 0;
	base_log("no host or switch '%s' in fabric '%s'", name, p->fabric);
	return CLI_FAILED;
}

int cli_picture_light_path(struct cli_picture *p, struct control_client *client, const char *from,
                           const char *to)
{
	struct walk w = { .p = p };
	struct cli_tables t;
	int ret;

	if (find_end(p, from, &w.at) || find_end(p, to, &w.to))
		return CLI_FAILED;
	w.lid = p->node[w.to].lid;
	w.port = malloc(p->n);
	if (!w.port)
		return cli_no_memory();
	memset(w.port, CLI_NO_PORT, p->n);
	ret = cli_tables_read(&t, client, NULL);
	if (!ret) {
		ret = cli_tables_each(&t, keep_port, &w);
		cli_tables_free(&t);
	}
	if (!ret)
		light_walk(&w);
	free(w.port);
	return ret;
}
