/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counting what crosses links: see load.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "simulate/load.h"

#define ASTRAY UINT8_MAX /* of load_step.links: a circle, or too far */

/* A switch's step for the LID that is counted. */
struct load_step {
	uint32_t turn;          /* which LID's this is */
	uint32_t next;          /* the next switch, or LOAD_NOWHERE: it is the last */
	struct load_link *link; /* by which packets leave; NULL: they are lost here */
	uint64_t messages;
	uint8_t links; /* how many are before a packet; ASTRAY */
	bool arrives;
};

int load_init(struct load_net *net, unsigned n, unsigned n_hosts)
{
	*net = (struct load_net){ 0 };
	net->sw = calloc((size_t)n + 1, sizeof(*net->sw));
	net->host = calloc((size_t)n_hosts + 1, sizeof(*net->host));
	net->step = calloc((size_t)n + 1, sizeof(*net->step));
	net->order = calloc((size_t)n + 1, sizeof(*net->order));
	if (!net->sw || !net->host || !net->step || !net->order)
		return -ENOMEM;
	net->n = n;
	net->n_hosts = n_hosts;
	return 0;
}

void load_fini(struct load_net *net)
{
	for (unsigned i = 0; i < net->n; i++)
		free(net->sw[i].port);
	free(net->sw);
	free(net->host);
	free(net->step);
	free(net->order);
}

int load_set_ports(struct load_switch *sw, unsigned n_ports)
{
	sw->port = calloc((size_t)n_ports + 1, sizeof(*sw->port));
	if (!sw->port)
		return -ENOMEM;
	sw->n_ports = n_ports;
	for (unsigned k = 0; k <= n_ports; k++)
		sw->port[k].to = LOAD_NOWHERE;
	return 0;
}

/* ---- one LID ---- */

/* The link by which @sw sends @lid; NULL: none that carries packets. */
static struct load_link *link_of(const struct load_switch *sw, unsigned lid)
{
	unsigned port = lid < sw->n_lids ? sw->lft[lid] : 0;
	struct load_link *link;

	if (!port || port > sw->n_ports)
		return NULL;
	link = &sw->port[port];
	return link->to != LOAD_NOWHERE ? link : NULL;
}

/* How many hosts at switch number @at send to host @to. */
static uint64_t senders(const struct load_net *net, unsigned at, const struct load_host *to)
{
	return net->sw[at].hosts - (at == to->at);
}

/* Finds where switch number @at sends the LID. The next switch, or LOAD_NOWHERE. */
static unsigned take_step(struct load_net *net, unsigned at, const struct load_host *to)
{
	struct load_step *s = &net->step[at];
	struct load_link *link = link_of(&net->sw[at], to->lid);

	s->turn = net->turn;
	s->link = link;
	s->links = 0;
	s->next = link && link->to != LOAD_HOST ? link->to : LOAD_NOWHERE;
	s->arrives = link && link->to == LOAD_HOST && &net->host[link->host] == to;
	s->messages = senders(net, at, to);
	return s->next;
}

/* Follows the LID from switch number @from until a switch that has been seen: those on the way are
 * added to the order, the last one first. How many the order has now. */
static unsigned follow(struct load_net *net, unsigned from, const struct load_host *to, unsigned n)
{
	unsigned end = n, at;

	for (at = from; at != LOAD_NOWHERE && net->step[at].turn != net->turn;) {
		net->order[end++] = at;
		at = take_step(net, at, to);
	}
	for (unsigned i = n, k = end; i + 1 < k; i++) {
		unsigned swap = net->order[i];

		net->order[i] = net->order[--k];
		net->order[k] = swap;
	}
	return end;
}

/* How many links are before a packet in @s, whose next switch, if it has one, was measured: if not,
 * they are on a circle. */
static uint8_t links_from(const struct load_step *s, const struct load_step *next)
{
	if (!s->link)
		return 0;
	if (!next || !next->link)
		return 1;
	if (!next->links || next->links >= LOAD_MAX_SWITCHES)
		return ASTRAY;
	return next->links + 1;
}

/* Measures the switches of the order from number @n on. */
static void measure(struct load_net *net, unsigned n, unsigned end)
{
	for (unsigned i = n; i < end; i++) {
		struct load_step *s = &net->step[net->order[i]];
		const struct load_step *next = s->next != LOAD_NOWHERE ? &net->step[s->next] : NULL;

		s->links = links_from(s, next);
		s->arrives |= next && next->arrives;
	}
}

static void add(struct load_net *net, unsigned end, const struct load_host *to)
{
	uint64_t arrived = 0, sent = 0;

	for (unsigned i = end; i-- > 0;) {
		unsigned at = net->order[i];
		struct load_step *s = &net->step[at];
		uint64_t own = senders(net, at, to);

		sent += own;
		if (s->links == ASTRAY)
			continue;
		if (s->arrives) {
			arrived += own;
			net->sum.links[s->links + 1] += own;
		}
		if (!s->link || !s->messages)
			continue;
		s->link->crossed.messages += s->messages;
		s->link->lids++;
		if (s->next != LOAD_NOWHERE)
			net->step[s->next].messages += s->messages;
	}
	net->sum.sent += sent;
	net->sum.lost += sent - arrived;
}

void load_count(struct load_net *net, unsigned to)
{
	const struct load_host *host = &net->host[to];
	unsigned n = 0;

	net->turn++;
	for (unsigned i = 0; i < net->n; i++) {
		unsigned end = n;

		if (net->sw[i].hosts && net->step[i].turn != net->turn)
			end = follow(net, i, host, n);
		measure(net, n, end);
		n = end;
	}
	add(net, n, host);
}
