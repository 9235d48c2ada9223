/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nodes and links of a picture: see picture.h. Filled in by picture_read.c.
 */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/picture/picture.h"

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
		return cli_no_memory();
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

/* ---- filling in ---- */

int cli_picture_make_room(struct cli_picture *p, size_t nodes, size_t names, size_t ports)
{
	p->node = calloc(nodes + 1, sizeof(*p->node));
	p->link = calloc(ports + 1, sizeof(*p->link));
	p->names_room = (uint32_t)(names + ports);
	p->name = calloc(p->names_room + (size_t)1, sizeof(*p->name));
	return p->node && p->link && p->name ? 0 : cli_no_memory();
}

int cli_picture_add_host(struct cli_picture *p, const char *name)
{
	int ret = add_name(p, &p->hosts, name, 0, p->n);

	p->node[p->n++] = (struct cli_picture_node){ .name = name };
	p->n_hosts++;
	return ret;
}

int cli_picture_add_hca(struct cli_picture *p, uint32_t host, const char *name)
{
	return add_name(p, &p->nodes, name, 0, host);
}

int cli_picture_add_switch(struct cli_picture *p, const char *name, bool dead, unsigned lid)
{
	p->node[p->n] = (struct cli_picture_node){
		.name = name,
		.is_switch = true,
		.dead = dead,
		.lid = lid,
	};
	return add_name(p, &p->nodes, name, 0, p->n++);
}

int cli_picture_add_port(struct cli_picture *p, const struct cli_picture_port *port)
{
	uint32_t index = cli_picture_find_node(p, port->node);
	uint32_t far = cli_picture_find_node(p, port->peer);
	struct cli_picture_link *l = cli_picture_link_at(p, port->peer, port->peer_port);

	if (index == CLI_PICTURE_NONE || far == CLI_PICTURE_NONE)
		return 0;
	if (!l) {
		l = &p->link[p->n_links++];
		*l = (struct cli_picture_link){ .node = { index, far },
			                        .port = { port->port, port->peer_port },
			                        .state = port->state };
	}
	l->state = port->state > l->state ? port->state : l->state;
	return add_name(p, &p->ends, port->node, port->port, (uint32_t)(l - p->link));
}

/* ---- levels ---- */

/* Switches with hosts are at level 1, their neighbours at 2, and so on, whichever links have
 * failed. Switches without a way to a host stay at 1. */
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

void cli_picture_finish(struct cli_picture *p)
{
	find_levels(p);
	count_links(p);
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
