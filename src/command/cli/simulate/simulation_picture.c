/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A picture of a simulation: links by what they carry, and those that wait for each other. See
 * simulation.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/picture/picture.h"
#include "cli/simulate/simulation.h"

/* ---- the fabric ---- */

static int make_room(struct cli_picture *p, const struct fabric *f)
{
	size_t n_ports = 0;

	for (unsigned i = 0; i < f->n_nodes; i++)
		n_ports += f->node[i]->n_ports;
	return cli_picture_make_room(p, f->n_hosts + (size_t)f->n_switches,
	                             f->n_hosts + (size_t)f->n_nodes, n_ports);
}

static int add_nodes(struct cli_picture *p, const struct simulation *s)
{
	const struct fabric *f = s->f;
	int ret = make_room(p, f);

	for (unsigned i = 0; i < f->n_hosts && !ret; i++)
		ret = cli_picture_add_host(p, f->host[i].name);
	for (unsigned i = 0; i < f->n_nodes && !ret; i++) {
		const struct fabric_node *node = f->node[i];

		ret = node->type == FABRIC_SWITCH
		              ? cli_picture_add_switch(p, node->name, node->dead, node->port[0].lid)
		              : cli_picture_add_hca(
		                        p, cli_picture_find(p, cli_simulation_name(s, node)),
		                        node->name);
	}
	return ret;
}

static int add_link(struct cli_picture *p, const struct simulate_link *l)
{
	const struct fabric_port *from = l->from, *to = from->peer;
	const struct cli_picture_port port = {
		.node = from->node->name,
		.peer = to->node->name,
		.port = from->num,
		.peer_port = to->num,
		.state = fabric_port_carries(from)     ? CLI_PICTURE_ACTIVE
		         : from->state == IB_PORT_DOWN ? CLI_PICTURE_FAILED
		                                       : CLI_PICTURE_IDLE,
	};
	int ret = cli_picture_add_port(p, &port);
	struct cli_picture_link *added = cli_picture_link_at(p, port.node, port.port);

	if (added && l->crossed.messages > added->load)
		added->load = l->crossed.messages;
	return ret;
}

/* ---- the circle ---- */

static void mark_circle(struct cli_picture *p, const struct simulation *s)
{
	for (uint32_t i = 0; i < s->credits.n_circle; i++) {
		const struct fabric_port *from = s->link_from[s->credits.circle[i].link];
		struct cli_picture_link *l = cli_picture_link_at(p, from->node->name, from->num);
		uint32_t node = cli_picture_find_node(p, from->node->name);

		if (!l)
			continue;
		l->circle |= (uint8_t)(1u << cli_picture_end(l, node));
		p->node[l->node[0]].stuck = p->node[l->node[1]].stuck = true;
	}
}

static void describe(struct cli_picture *p, const struct simulation *s,
                     const struct cli_simulation *what)
{
	int n = snprintf(p->about, sizeof(p->about), "%s, routing %s", what->pattern,
	                 cli_simulation_routing(s));

	if (s->credits.n_circle && n > 0 && (size_t)n < sizeof(p->about))
		snprintf(p->about + n, sizeof(p->about) - (size_t)n,
		         "; deadlock: %u links wait for each other", s->credits.n_circle);
}

static int fill(struct cli_picture *p, const struct simulation *s,
                const struct cli_simulation *what)
{
	struct simulate_link l = { 0 };
	int ret;

	*p = (struct cli_picture){ .loads = "messages", .scaled = true };
	ret = add_nodes(p, s);
	while (!ret && simulate_next_link(s, &l))
		ret = add_link(p, &l);
	if (ret)
		return ret;
	cli_picture_finish(p);
	mark_circle(p, s);
	describe(p, s, what);
	return 0;
}

int cli_simulation_draw(const struct simulation *s, const struct cli_simulation *what,
                        const struct cli_simulation_files *files)
{
	const struct {
		const char *format, *name;
	} file[] = { { "svg", files->svg }, { "png", files->png }, { NULL, files->dot } };
	struct cli_picture p;
	char *dot = NULL;
	int ret = fill(&p, s, what);

	if (!ret) {
		dot = cli_picture_dot(&p, files->most ? (unsigned)files->most : CLI_PICTURE_MOST);
		if (!dot)
			base_log("%s", strerror(ENOMEM));
		ret = dot ? 0 : CLI_FAILED;
	}
	for (size_t i = 0; i < ARRAY_SIZE(file) && !ret; i++)
		ret = file[i].name ? cli_picture_write(dot, file[i].format, file[i].name) : 0;
	free(dot);
	cli_picture_fini(&p);
	return ret;
}
