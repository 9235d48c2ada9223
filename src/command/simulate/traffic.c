/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of pairs and to groups, walked through the switches' tables as those of queue pairs are
 * (fabric_walk_unicast(), fabric_walk_from_switch()). Called by simulate_count().
 */
#include <errno.h>
#include <stdlib.h>

#include "fabric/model/lanes.h"
#include "simulate/simulate.h"
#include "subnet/sm.h"

/* ---- pairs ---- */

struct pair_walk {
	struct simulation *s;
	unsigned links;
	bool reached;
};

static void cross(void *arg, struct fabric_port *out, uint8_t in, uint8_t vl)
{
	struct pair_walk *w = arg;

	(void)in;
	if (vl == FABRIC_LANE_NONE)
		return;
	w->links++;
	simulate_link_at(w->s, out)->messages++;
}

static void reach(void *arg, struct fabric_port *hca)
{
	struct pair_walk *w = arg;

	(void)hca;
	w->reached = true;
}

static void count_pair(struct simulation *s, const struct simulate_pair *pair)
{
	struct pair_walk w = { .s = s };
	struct fabric_walk walk = { .hop = cross, .reached = reach, .arg = &w };
	uint16_t lid = s->f->hca_port[pair->to]->lid;

	s->net.sum.sent++;
	if (lid)
		fabric_walk_unicast(s->f, s->f->hca_port[pair->from], lid, &walk);
	if (w.reached)
		s->net.sum.links[w.links]++;
}

int simulate_count_pairs(struct simulation *s)
{
	for (uint32_t i = 0; i < s->pattern.n_pairs; i++) {
		if (i % 4096 == 0)
			simulate_tell(s, "counting", i, s->pattern.n_pairs);
		count_pair(s, &s->pattern.pair[i]);
	}
	return 0;
}

/* ---- groups ---- */

#define NONE (~0u)

/* A group's messages. Those that come into the subnet by one switch take the same ways, and are
 * walked together. */
struct group_walk {
	struct simulation *s;
	uint32_t mark;     /* the group's number, from 1 */
	uint32_t *member;  /* by host: the mark of the last group that it is a member of */
	uint32_t *own;     /* by host: its own messages, of those that are walked */
	uint32_t *first;   /* by switch: the first sender there, by its place in the list; NONE */
	uint32_t *next;    /* by sender: the next one at its switch */
	uint32_t *links;   /* by switch: how many a message has crossed that is there */
	uint64_t messages; /* those that are walked */
	unsigned crossed;  /* links, by the message that has crossed the last one */
};

/* @n messages more; they may be fewer. */
static void cross_to_group(struct load_crossed *c, int64_t n)
{
	c->messages += (uint64_t)n;
	c->to_groups += (uint64_t)n;
}

static void group_cross(void *arg, struct fabric_port *out, uint8_t in, uint8_t vl)
{
	struct group_walk *w = arg;

	(void)in;
	if (vl == FABRIC_LANE_NONE)
		return;
	w->crossed = w->links[out->node->index] + 1;
	cross_to_group(simulate_link_at(w->s, out), (int64_t)w->messages);
	if (out->peer->node->type == FABRIC_SWITCH)
		w->links[out->peer->node->index] = w->crossed;
}

/* A host's own messages do not cross its link: the HCA gives itself a copy. */
static void group_reach(void *arg, struct fabric_port *hca)
{
	struct group_walk *w = arg;
	uint32_t own = w->own[hca->index];
	unsigned most = LOAD_MAX_SWITCHES + 1;

	cross_to_group(simulate_link_at(w->s, hca->peer), -(int64_t)own);
	if (w->member[hca->index] == w->mark)
		w->s->net.sum.links[w->crossed < most ? w->crossed : most] += w->messages - own;
}

/* Walks the messages of the senders at switch number @at, if they were not walked. */
static void count_ingress(struct group_walk *w, const struct simulate_list *senders, unsigned at)
{
	struct fabric_walk walk = { .hop = group_cross, .reached = group_reach, .arg = w };

	w->messages = 0;
	for (uint32_t i = w->first[at]; i != NONE; i = w->next[i]) {
		w->own[senders->host[i]]++;
		w->messages++;
	}
	if (!w->messages)
		return;
	w->links[at] = 1;
	fabric_walk_from_switch(w->s->f, sm_switch(w->s->sm, at), SIMULATE_MLID(w->mark - 1),
	                        &walk);
	for (uint32_t i = w->first[at]; i != NONE; i = w->next[i])
		w->own[senders->host[i]] = 0;
	w->first[at] = NONE;
}

/* A message leaves its host. */
static void send(struct group_walk *w, const struct simulate_list *senders, uint32_t i)
{
	struct load_host *host = &w->s->net.host[senders->host[i]];
	const struct fabric_port *p = w->s->f->hca_port[senders->host[i]];

	if (host->at != LOAD_NOWHERE) {
		cross_to_group(&host->crossed, 1);
		w->next[i] = w->first[host->at];
		w->first[host->at] = i;
	} else if (p->peer && fabric_port_carries(p)) { /* to another host */
		cross_to_group(&host->crossed, 1);
		w->s->net.sum.links[1] += w->member[p->peer->index] == w->mark;
	}
}

static int count_group(struct group_walk *w, const struct simulate_group *g)
{
	const struct simulate_list *senders = g->has_senders ? &g->senders : &g->members;

	free(w->next);
	w->next = calloc((size_t)senders->n + 1, sizeof(*w->next));
	if (!w->next)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->members.n; i++)
		w->member[g->members.host[i]] = w->mark;
	for (uint32_t i = 0; i < senders->n; i++) {
		w->s->net.sum.sent += g->members.n - (w->member[senders->host[i]] == w->mark);
		send(w, senders, i);
	}
	for (uint32_t i = 0; i < senders->n; i++) {
		unsigned at = w->s->net.host[senders->host[i]].at;

		if (at != LOAD_NOWHERE)
			count_ingress(w, senders, at);
	}
	return 0;
}

static int group_walk_init(struct group_walk *w, struct simulation *s)
{
	const struct load_net *net = &s->net;

	*w = (struct group_walk){ .s = s };
	w->member = calloc((size_t)net->n_hosts + 1, sizeof(*w->member));
	w->own = calloc((size_t)net->n_hosts + 1, sizeof(*w->own));
	w->first = calloc((size_t)net->n + 1, sizeof(*w->first));
	w->links = calloc((size_t)net->n + 1, sizeof(*w->links));
	if (!w->member || !w->own || !w->first || !w->links)
		return -ENOMEM;
	for (unsigned i = 0; i < net->n; i++)
		w->first[i] = NONE;
	return 0;
}

static void group_walk_fini(struct group_walk *w)
{
	free(w->member);
	free(w->own);
	free(w->first);
	free(w->next);
	free(w->links);
}

int simulate_count_groups(struct simulation *s)
{
	struct group_walk w;
	int ret = group_walk_init(&w, s);

	for (uint32_t i = 0; i < s->pattern.n_groups && !ret; i++) {
		simulate_tell(s, "counting", i, s->pattern.n_groups);
		w.mark = i + 1;
		ret = count_group(&w, &s->pattern.group[i]);
	}
	group_walk_fini(&w);
	return ret;
}
