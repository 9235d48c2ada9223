/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Topologies that chance has wired: see topology.h.
 */
#include "posix.h"
#include "topology.h"

#define MAX_SWITCHES 6
#define MAX_HOSTS    8
#define MAX_NODES    (MAX_SWITCHES + MAX_HOSTS)
#define MAX_CABLES   64
#define SWITCH_PORTS 24 /* more than one block of ports of a multicast table */

struct place {
	unsigned node, port;
};

struct cable {
	struct place end[2];
};

/* Nodes are the switches and then the hosts. */
struct maker {
	unsigned seed;
	unsigned n_switches, n_hosts;
	unsigned n_ports[MAX_NODES];
	bool used[MAX_NODES][SWITCH_PORTS + 1];
	struct cable cable[MAX_CABLES];
	unsigned n_cables;
};

static unsigned any(struct maker *m, unsigned n)
{
	return (unsigned)rand_r(&m->seed) % n;
}

static struct place free_place(struct maker *m, unsigned sw)
{
	struct place p = { .node = sw };

	do
		p.port = 1 + any(m, SWITCH_PORTS);
	while (m->used[sw][p.port]);
	m->used[sw][p.port] = true;
	return p;
}

static void plug(struct maker *m, struct place a, struct place b)
{
	m->cable[m->n_cables++] = (struct cable){ { a, b } };
}

/* Most are in one part, by a tree; then any others, loops and parallel ones. */
static void wire_switches(struct maker *m)
{
	for (unsigned sw = 1; sw < m->n_switches; sw++)
		if (any(m, 8))
			plug(m, free_place(m, sw), free_place(m, any(m, sw)));
	for (unsigned n = any(m, 2 * m->n_switches + 1); n; n--) {
		struct place a = free_place(m, any(m, m->n_switches));

		plug(m, a, free_place(m, any(m, m->n_switches)));
	}
}

/* Few stay without a cable, few are to go back to back: @mate waits for another host's. */
static void wire_port(struct maker *m, struct place port, struct place *mate)
{
	bool is_home = port.node == m->n_switches && port.port == 1;

	if (port.port == 2 && !any(m, 8))
		return;
	if (is_home || any(m, 5)) {
		plug(m, port, free_place(m, any(m, m->n_switches)));
	} else if (mate->port && mate->node != port.node) {
		plug(m, *mate, port);
		mate->port = 0;
	} else if (!mate->port) {
		*mate = port;
	}
}

static void wire_hosts(struct maker *m)
{
	struct place mate = { 0 };

	for (unsigned h = m->n_switches; h < m->n_switches + m->n_hosts; h++)
		for (unsigned k = 1; k <= m->n_ports[h]; k++)
			wire_port(m, (struct place){ h, k }, &mate);
	if (mate.port)
		plug(m, mate, free_place(m, any(m, m->n_switches)));
}

/* Two hosts and no switch. */
static void wire_back_to_back(struct maker *m)
{
	m->n_switches = 0;
	m->n_hosts = 2;
	m->n_ports[0] = m->n_ports[1] = 1 + any(m, 2);
	for (unsigned k = 1; k <= m->n_ports[0]; k++)
		plug(m, (struct place){ 0, k }, (struct place){ 1, k });
}

static void wire(struct maker *m)
{
	if (!any(m, 8)) {
		wire_back_to_back(m);
		return;
	}
	m->n_switches = 1 + any(m, MAX_SWITCHES);
	m->n_hosts = 2 + any(m, MAX_HOSTS - 1);
	for (unsigned h = m->n_switches; h < m->n_switches + m->n_hosts; h++)
		m->n_ports[h] = 1 + any(m, 2);
	wire_switches(m);
	wire_hosts(m);
}

static void print_name(const struct maker *m, unsigned node)
{
	if (node < m->n_switches)
		printf("\"s%u\"", node + 1);
	else
		printf("\"h%u\"", node - m->n_switches + 1);
}

static void print_node(const struct maker *m, unsigned node)
{
	if (node < m->n_switches)
		printf("Switch %u ", SWITCH_PORTS);
	else
		printf("Hca %u ", m->n_ports[node]);
	print_name(m, node);
	putchar('\n');
	for (unsigned i = 0; i < m->n_cables; i++) {
		const struct place *end = m->cable[i].end;

		if (end[0].node != node)
			continue;
		printf("[%u] ", end[0].port);
		print_name(m, end[1].node);
		printf("[%u]\n", end[1].port);
	}
	putchar('\n');
}

void topology_print(unsigned seed)
{
	struct maker m = { .seed = seed };

	wire(&m);
	for (unsigned i = 0; i < m.n_switches + m.n_hosts; i++)
		print_node(&m, i);
}
