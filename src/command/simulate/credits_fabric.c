/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages of a pattern, with the ways that the switches' tables lead them and the lanes that
 * these have: what credits.h sends. Called for `umbel simulate --credits`.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "fabric/model/lanes.h"
#include "simulate/simulate.h"
#include "subnet/sm.h"

static_assert(CREDITS_LANES == FABRIC_LANES, "all lanes of a link");

/* ---- links ---- */

/* Links of hosts come first, then those of each switch, by port. */
static int number_links(struct simulation *s, uint32_t *n)
{
	const struct fabric *f = s->f;

	s->first_link = calloc((size_t)f->n_switches + 1, sizeof(*s->first_link));
	if (!s->first_link)
		return -ENOMEM;
	*n = f->n_ib_ports;
	for (unsigned i = 0; i < f->n_nodes; i++)
		if (f->node[i]->type == FABRIC_SWITCH) {
			s->first_link[f->node[i]->index] = *n;
			*n += f->node[i]->n_ports + 1;
		}
	s->link_from = calloc((size_t)*n + 1, sizeof(struct fabric_port *));
	return s->link_from ? 0 : -ENOMEM;
}

uint32_t simulate_link_number(const struct simulation *s, const struct fabric_port *from)
{
	return from->node->type == FABRIC_HCA ? from->index
	                                      : s->first_link[from->node->index] + from->num;
}

static int set_links(struct simulation *s)
{
	struct simulate_link l = { 0 };
	uint32_t n;
	int ret = number_links(s, &n);

	if (!ret)
		ret = credits_open(&s->credits, n);
	while (!ret && simulate_next_link(s, &l)) {
		uint32_t i = simulate_link_number(s, l.from);
		double rate = simulate_data_rate(l.from);

		s->link_from[i] = l.from;
		s->credits.link[i].ps_per_byte = rate > 0 ? 8000 / rate : 0;
	}
	return ret;
}

/* ---- ways ---- */

/* The way of a message, or all ways of one to a group. */
struct way {
	struct simulation *s;
	struct fabric_walk walk;
	const struct fabric_port *from;
	uint32_t *entered; /* by switch: the hop that leads there */
	uint32_t *member;  /* by host: the last group, from 1, that it is a member of */
	uint32_t group;    /* 0: it is for one host */
	uint32_t first, last, copies;
	int error;
};

static void cross(void *arg, struct fabric_port *out, uint8_t in, uint8_t vl)
{
	struct way *w = arg;
	bool begins = out->node->type == FABRIC_HCA;
	const struct credits_hop hop = { .link = simulate_link_number(w->s, out), .lane = vl };

	(void)in;
	if (vl == FABRIC_LANE_NONE || w->error)
		return;
	if (w->s->credits.n_hops == SIMULATE_MOST_HOPS)
		w->error = -EFBIG;
	else
		w->error = credits_add_hop(&w->s->credits,
		                           begins ? CREDITS_NONE : w->entered[out->node->index],
		                           &hop, &w->last);
	if (begins)
		w->first = w->last;
	if (out->peer->node->type == FABRIC_SWITCH)
		w->entered[out->peer->node->index] = w->last;
}

/* A host's own messages are no load: the HCA gives itself a copy. */
static void reach(void *arg, struct fabric_port *hca)
{
	struct way *w = arg;

	if (w->error || hca == w->from || (w->group && w->member[hca->index] != w->group))
		return;
	w->s->credits.hop[w->last].arrives = true;
	w->copies++;
}

/* @needed: the service level that routes need; -1: none, and the message has @sl. */
static void begin(struct way *w, const struct fabric_port *from, int needed, uint8_t sl)
{
	w->walk = (struct fabric_walk){ .hop = cross, .reached = reach, .arg = w };
	w->walk.sl = needed < 0 ? sl : (uint8_t)needed;
	w->from = from;
	w->first = CREDITS_NONE;
	w->copies = 0;
}

static int add_message(struct way *w, uint32_t to)
{
	const struct credits_message m = {
		.hop = w->first,
		.from = w->from->index,
		.to = to,
		.to_group = w->group != 0,
		.copies = w->copies * credits_packets(&w->s->credits),
	};

	return w->error ? w->error : credits_add_message(&w->s->credits, &m);
}

/* ---- messages ---- */

static int add_pair(struct way *w, uint32_t from, uint32_t to, uint8_t sl)
{
	struct simulation *s = w->s;
	struct fabric_port *p = s->f->hca_port[from];
	uint16_t lid = s->f->hca_port[to]->lid;

	if (from == to)
		return 0;
	begin(w, p, lid ? sm_path_sl(s->sm, p, lid) : -1, sl);
	w->group = 0;
	if (lid)
		fabric_walk_unicast(s->f, p, lid, &w->walk);
	return add_message(w, to);
}

/* Each host begins with the one behind it. */
static int add_all_to_all(struct way *w)
{
	uint32_t n = w->s->f->n_ib_ports;
	int ret = (uint64_t)n * (n - 1) > SIMULATE_MOST_HOPS ? -EFBIG : 0; /* not after seconds */

	for (uint32_t by = 1; by < n && !ret; by++) {
		if (by % 64 == 0)
			simulate_tell(w->s, "finding ways", by, n);
		for (uint32_t i = 0; i < n && !ret; i++)
			ret = add_pair(w, i, (i + by) % n, 0);
	}
	return ret;
}

static int add_group(struct way *w, uint32_t number)
{
	struct simulation *s = w->s;
	const struct simulate_group *g = &s->pattern.group[number];
	const struct simulate_list *senders = g->has_senders ? &g->senders : &g->members;
	int ret = 0;

	w->group = number + 1;
	for (uint32_t i = 0; i < g->members.n; i++)
		w->member[g->members.host[i]] = w->group;
	for (uint32_t i = 0; i < senders->n && !ret; i++) {
		struct fabric_port *from = s->f->hca_port[senders->host[i]];

		begin(w, from, sm_group_sl(s->sm), g->sl);
		fabric_walk_multicast(s->f, from, SIMULATE_MLID(number), &w->walk);
		ret = add_message(w, number);
	}
	return ret;
}

static int add_messages(struct simulation *s)
{
	const struct simulate_pattern *p = &s->pattern;
	struct way w = { .s = s };
	int ret = 0;

	w.entered = calloc((size_t)s->f->n_switches + 1, sizeof(*w.entered));
	w.member = calloc((size_t)s->f->n_ib_ports + 1, sizeof(*w.member));
	if (!w.entered || !w.member)
		ret = -ENOMEM;
	if (!ret && p->all_to_all)
		ret = add_all_to_all(&w);
	for (uint32_t i = 0; i < p->n_pairs && !ret; i++)
		ret = add_pair(&w, p->pair[i].from, p->pair[i].to, p->pair[i].sl);
	for (uint32_t i = 0; i < p->n_groups && !ret; i++)
		ret = add_group(&w, i);
	free(w.entered);
	free(w.member);
	return ret;
}

static void tell(void *arg, uint64_t done, uint64_t of)
{
	simulate_tell(arg, "simulating", done, of);
}

int simulate_credits(struct simulation *s, const struct simulate_cost *cost, unsigned buffer)
{
	uint32_t mtu = IB_MTU_BYTES(s->f->settings.mtu);
	int ret;

	s->credits = (struct credits){
		.hop_ps = (uint64_t)cost->hop_ns * 1000,
		.bytes = (uint32_t)cost->bytes,
		.mtu = mtu,
		.headers = SIMULATE_HEADERS,
		.group_headers = SIMULATE_GROUP_HEADERS,
		.buffer = buffer * credits_blocks(mtu + SIMULATE_GROUP_HEADERS),
		.arbitration = s->arbitration,
		.progress = tell,
		.arg = s,
	};
	ret = set_links(s);
	if (!ret)
		ret = add_messages(s);
	if (!ret && credits_unserved(&s->credits) < CREDITS_LANES)
		ret = -ENOLINK;
	if (!ret && s->arrivals)
		ret = simulate_arrivals_draw(&s->credits, s->arrivals);
	if (!ret)
		ret = credits_run(&s->credits);
	if (!ret && s->credits.stuck)
		ret = credits_find_circle(&s->credits);
	return ret;
}
