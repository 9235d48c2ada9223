/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Directed routes: the shortest path from a port to another over links that are up. Subnet
 * managers need them to send SMPs before there are LIDs: see mads.h.
 */
#include <stdlib.h>

#include "fabric/agents/mads.h"

struct search {
	struct fabric_port *
	        *in; /* by switch index: the port by which the search reached it; NULL: not yet */
	struct fabric_node **queue;
	unsigned head, tail;
};

static bool is_up(const struct fabric_port *p)
{
	return p->peer && p->state != IB_PORT_DOWN && p->peer->state != IB_PORT_DOWN;
}

static void reach(struct search *s, struct fabric_port *in)
{
	if (in->node->type != FABRIC_SWITCH || s->in[in->node->index])
		return;
	s->in[in->node->index] = in;
	s->queue[s->tail++] = in->node;
}

/* Searches breadth first from the switch behind @from. True: it reached @to's switch. */
static bool find(struct search *s, struct fabric_port *from, const struct fabric_port *to)
{
	reach(s, from->peer);
	while (s->head < s->tail) {
		struct fabric_node *sw = s->queue[s->head++];

		if (sw == to->peer->node)
			return true;
		for (unsigned i = 1; i <= sw->n_ports; i++)
			if (is_up(&sw->port[i]))
				reach(s, sw->port[i].peer);
	}
	return false;
}

/* Writes the out ports, from the last hop to the first. False: too many hops. */
static bool write_path(const struct search *s, const struct fabric_port *from,
                       const struct fabric_port *to, struct wire_smp *smp)
{
	unsigned hops = 1;

	for (const struct fabric_port *out = to->peer; out != from;
	     out = s->in[out->node->index]->peer)
		if (++hops > SMP_MAX_HOPS)
			return false;
	smp->hop_count = (uint8_t)hops;
	for (const struct fabric_port *out = to->peer; out != from;
	     out = s->in[out->node->index]->peer)
		smp->initial_path[hops--] = out->num;
	smp->initial_path[1] = from->num;
	return true;
}

bool fabric_mad_path(const struct fabric *f, struct fabric_port *from, struct fabric_port *to,
                     struct wire_smp *smp)
{
	struct search s = { 0 };
	bool found;

	if (!is_up(from) || !is_up(to))
		return false;
	if (from->peer == to)
		return write_path(&s, from, to, smp);
	s.in = calloc(f->n_switches + 1, sizeof(*s.in));
	s.queue = calloc(f->n_switches + 1, sizeof(*s.queue));
	found = s.in && s.queue && find(&s, from, to) && write_path(&s, from, to, smp);
	free(s.in);
	free(s.queue);
	return found;
}
