/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that wait for credits: see credits.h. All that happens is one of five kinds of events,
 * each due at a time. When those of one moment are over, links that may be able to send are looked
 * at, so that all which begin to wait at the same time are there to be chosen from.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "simulate/credits.h"

#define PROGRESS_EVENTS 0x40000 /* a power of two */

enum kind {
	HEAD,   /* a packet's head is at the end of its link; at a host, its last byte */
	ASK,    /* a packet begins to wait for its link */
	SENT,   /* a link has sent a packet */
	CREDIT, /* room for blocks is known to the sender */
	BEGIN,  /* the next message begins */
};

/* ---- filling in ---- */

static const struct credits_list no_packets = { CREDITS_NONE, CREDITS_NONE };

int credits_open(struct credits *c, uint32_t n_links)
{
	c->free_packet = CREDITS_NONE;
	c->link = calloc((size_t)n_links + 1, sizeof(*c->link));
	c->lane = calloc((size_t)n_links + 1, sizeof(*c->lane));
	c->asked = calloc((size_t)n_links + 1, sizeof(*c->asked));
	if (!c->link || !c->lane || !c->asked)
		return -ENOMEM;
	c->n_links = n_links;
	for (uint32_t i = 0; i < n_links; i++)
		for (unsigned k = 0; k < CREDITS_LANES; k++)
			c->lane[i][k] = (struct credits_lane){ .credits = c->buffer,
				                               .waiting = no_packets,
				                               .buffer = no_packets };
	return 0;
}

void credits_fini(struct credits *c)
{
	free(c->link);
	free(c->lane);
	free(c->asked);
	free(c->hop);
	free(c->message);
	free(c->packet);
	free(c->circle);
	free(c->arbiter);
	simulate_events_fini(&c->events);
}

int credits_add_hop(struct credits *c, uint32_t parent, const struct credits_hop *hop,
                    uint32_t *index)
{
	struct credits_hop *new;

	if (base_array_reserve(&c->hop, &c->hops_room, (size_t)c->n_hops + 1))
		return -ENOMEM;
	*index = c->n_hops++;
	new = &c->hop[*index];
	*new = *hop;
	new->next = new->also = CREDITS_NONE;
	if (parent == CREDITS_NONE)
		return 0;
	new->also = c->hop[parent].next;
	c->hop[parent].next = *index;
	return 0;
}

int credits_add_message(struct credits *c, const struct credits_message *m)
{
	if (base_array_reserve(&c->message, &c->messages_room, (size_t)c->n_messages + 1))
		return -ENOMEM;
	c->message[c->n_messages++] = *m;
	return 0;
}

/* ---- queues ---- */

static void append(struct credits *c, struct credits_list *list, uint32_t packet)
{
	c->packet[packet].next = CREDITS_NONE;
	if (list->first == CREDITS_NONE)
		list->first = packet;
	else
		c->packet[list->last].next = packet;
	list->last = packet;
}

static uint32_t take_first(const struct credits *c, struct credits_list *list)
{
	uint32_t first = list->first;

	list->first = c->packet[first].next;
	return first;
}

static struct credits_lane *lane_of(struct credits *c, uint32_t packet)
{
	const struct credits_hop *hop = &c->hop[c->packet[packet].hop];

	return &c->lane[hop->link][hop->lane];
}

static void add_event(struct credits *c, uint64_t at_ps, enum kind kind, uint32_t what)
{
	const struct simulate_event e = { .at_ps = at_ps, .what = what, .kind = (uint8_t)kind };

	c->no_memory |= simulate_events_add(&c->events, &e) != 0;
}

/* ---- packets ---- */

/* CREDITS_NONE: there is no memory. */
static uint32_t new_packet(struct credits *c, const struct credits_packet *p)
{
	uint32_t i = c->free_packet;

	if (i != CREDITS_NONE) {
		c->free_packet = c->packet[i].next;
	} else {
		if (base_array_reserve(&c->packet, &c->packets_room, (size_t)c->n_packets + 1)) {
			c->no_memory = true;
			return CREDITS_NONE;
		}
		i = c->n_packets++;
	}
	c->packet[i] = *p;
	return i;
}

static void free_packet(struct credits *c, uint32_t packet)
{
	c->packet[packet].next = c->free_packet;
	c->free_packet = packet;
}

uint32_t credits_packets(const struct credits *c)
{
	return c->bytes ? (c->bytes + c->mtu - 1) / c->mtu : 1;
}

static uint64_t time_of(const struct credits *c, uint32_t link, uint32_t bytes)
{
	return (uint64_t)(bytes * c->link[link].ps_per_byte + 0.5);
}

/* ---- waiting ---- */

/* The link may be able to send now. */
static void ask(struct credits *c, uint32_t link)
{
	if (c->link[link].asked)
		return;
	c->link[link].asked = true;
	c->asked[c->n_asked++] = link;
}

static void wait_for_link(struct credits *c, uint32_t packet)
{
	append(c, &lane_of(c, packet)->waiting, packet);
	ask(c, c->hop[c->packet[packet].hop].link);
}

/* The message's next packet waits in its host. */
static void offer(struct credits *c, uint32_t message)
{
	const struct credits_message *m = &c->message[message];
	uint32_t bytes = m->left > 1 ? c->mtu : c->bytes - (credits_packets(c) - 1) * c->mtu;
	uint32_t packet =
	        new_packet(c, &(struct credits_packet){
	                              .message = message,
	                              .hop = m->hop,
	                              .from = CREDITS_NONE,
	                              .bytes = (uint16_t)(bytes + (m->to_group ? c->group_headers
	                                                                       : c->headers)) });

	if (packet != CREDITS_NONE)
		wait_for_link(c, packet);
}

/* A host has sent a packet of the message. */
static void go_on(struct credits *c, uint32_t message)
{
	c->sent++;
	if (--c->message[message].left)
		offer(c, message);
}

/* ---- messages ---- */

/* @by messages more are in the network. */
static void change_queue(struct credits *c, int by)
{
	c->queue_ps += (double)c->queue * (double)(c->now_ps - c->queue_since_ps);
	c->queue_since_ps = c->now_ps;
	c->queue += (uint32_t)by;
}

/* Messages that begin now have their first packets ready. The next one to begin is the only one
 * that is an event, so there are no more of these for messages to come. */
static void begin(struct credits *c)
{
	for (; c->n_begun < c->n_messages && !c->no_memory; c->n_begun++) {
		const struct credits_message *m = &c->message[c->n_begun];

		if (m->begins_ps > c->now_ps) {
			add_event(c, m->begins_ps, BEGIN, 0);
			return;
		}
		if (m->hop == CREDITS_NONE)
			continue;
		if (m->copies && c->n_begun >= c->first_counted)
			change_queue(c, 1);
		offer(c, c->n_begun);
	}
	c->queue_last = c->queue;
}

/* ---- sending ---- */

static void send(struct credits *c, uint32_t link, unsigned k)
{
	struct credits_lane *lane = &c->lane[link][k];
	uint32_t i = take_first(c, &lane->waiting);
	struct credits_packet *p = &c->packet[i];
	struct credits_link *l = &c->link[link];
	uint64_t ps = time_of(c, link, p->bytes);

	lane->credits -= credits_blocks(p->bytes);
	l->busy = true;
	l->busy_ps += ps;
	l->blocked_ps += l->blocked ? c->now_ps - l->since_ps : 0;
	l->blocked = false;
	l->from = p->from;
	if (c->arbiter)
		c->arbiter[link].busy_ps[k] += ps;
	p->last_ps = c->now_ps + ps + c->hop_ps;
	add_event(c, c->now_ps + ps, SENT, link);
	add_event(c, c->hop[p->hop].next == CREDITS_NONE ? p->last_ps : c->now_ps + c->hop_ps, HEAD,
	          i);
	if (p->from == CREDITS_NONE)
		go_on(c, p->message);
}

/* The lanes take turns; those without packets or credits miss theirs. CREDITS_LANES: all do;
 * *@waiting: for want of credits. */
static unsigned take_turn(struct credits *c, uint32_t link, bool *waiting)
{
	struct credits_link *l = &c->link[link];

	for (unsigned i = 0; i < CREDITS_LANES; i++) {
		unsigned k = (l->turn + i) % CREDITS_LANES;
		const struct credits_lane *lane = &c->lane[link][k];

		if (lane->waiting.first == CREDITS_NONE)
			continue;
		*waiting = true;
		if (credits_blocks(c->packet[lane->waiting.first].bytes) > lane->credits)
			continue;
		l->turn = (uint8_t)((k + 1) % CREDITS_LANES);
		return k;
	}
	return CREDITS_LANES;
}

static unsigned arbitrate(struct credits *c, uint32_t link, bool *waiting)
{
	for (unsigned k = 0; k < CREDITS_LANES; k++)
		*waiting |= c->lane[link][k].waiting.first != CREDITS_NONE;
	return *waiting ? credits_arbitrate(c, link) : CREDITS_LANES;
}

static void try_to_send(struct credits *c, uint32_t link)
{
	struct credits_link *l = &c->link[link];
	bool waiting = false;
	unsigned k;

	if (l->busy)
		return;
	k = c->arbitration ? arbitrate(c, link, &waiting) : take_turn(c, link, &waiting);
	if (k < CREDITS_LANES) {
		send(c, link, k);
	} else if (waiting && !l->blocked) {
		l->blocked = true;
		l->since_ps = c->now_ps;
	}
}

/* ---- buffers ---- */

/* The first packet of a buffer: its copies begin to wait, each for its link. A link that is faster
 * than the one by which the packet comes has to wait for its bytes. */
static void divide(struct credits *c, uint32_t packet)
{
	const struct credits_packet whole = c->packet[packet];

	for (uint32_t h = c->hop[whole.hop].next; h != CREDITS_NONE; h = c->hop[h].also) {
		uint64_t ps = time_of(c, c->hop[h].link, whole.bytes);
		uint32_t copy = new_packet(c, &(struct credits_packet){ .message = whole.message,
		                                                        .hop = h,
		                                                        .from = packet,
		                                                        .bytes = whole.bytes });

		if (copy == CREDITS_NONE)
			return;
		c->packet[packet].copies++;
		if (whole.last_ps > c->now_ps + ps)
			add_event(c, whole.last_ps - ps, ASK, copy);
		else
			wait_for_link(c, copy);
	}
}

static void receive(struct credits *c, uint32_t packet)
{
	const struct credits_packet *p = &c->packet[packet];
	struct credits_message *m = &c->message[p->message];

	if (!c->hop[p->hop].arrives)
		return;
	m->received++;
	m->arrived_ps = c->arrived_ps = c->now_ps;
	if (credits_has_arrived(m) && p->message >= c->first_counted)
		change_queue(c, -1);
}

/* The packet has left its buffer. */
static void give_back(struct credits *c, uint32_t packet)
{
	const struct credits_hop *hop = &c->hop[c->packet[packet].hop];
	const struct simulate_event e = {
		.at_ps = c->now_ps + c->hop_ps,
		.kind = CREDIT,
		.what = hop->link,
		.lane = hop->lane,
		.blocks = (uint16_t)credits_blocks(c->packet[packet].bytes),
	};

	c->no_memory |= simulate_events_add(&c->events, &e) != 0;
	free_packet(c, packet);
}

static void on_head(struct credits *c, uint32_t packet)
{
	struct credits_lane *lane = lane_of(c, packet);

	if (c->hop[c->packet[packet].hop].next == CREDITS_NONE) { /* it is all here */
		receive(c, packet);
		give_back(c, packet);
		return;
	}
	append(c, &lane->buffer, packet);
	if (++lane->held > lane->most)
		lane->most = lane->held;
	if (lane->buffer.first == packet)
		divide(c, packet);
}

static void on_sent(struct credits *c, uint32_t link)
{
	uint32_t from = c->link[link].from;
	struct credits_lane *lane;

	c->link[link].busy = false;
	ask(c, link);
	if (from == CREDITS_NONE || --c->packet[from].copies)
		return;
	lane = lane_of(c, from);
	take_first(c, &lane->buffer);
	lane->held--;
	give_back(c, from);
	if (lane->buffer.first != CREDITS_NONE)
		divide(c, lane->buffer.first);
}

/* ---- the course of time ---- */

static void happen(struct credits *c, const struct simulate_event *e)
{
	c->now_ps = e->at_ps;
	switch (e->kind) {
	case HEAD:
		on_head(c, e->what);
		break;
	case ASK:
		wait_for_link(c, e->what);
		break;
	case SENT:
		on_sent(c, e->what);
		break;
	case BEGIN:
		begin(c);
		break;
	default:
		c->lane[e->what][e->lane].credits += e->blocks;
		ask(c, e->what);
	}
}

static void try_all(struct credits *c)
{
	for (uint32_t i = 0; i < c->n_asked; i++) {
		try_to_send(c, c->asked[i]);
		c->link[c->asked[i]].asked = false; /* a host's link that sends asks for itself */
	}
	c->n_asked = 0;
}

static void start(struct credits *c)
{
	for (uint32_t i = 0; i < c->n_messages; i++) {
		struct credits_message *m = &c->message[i];

		m->left = credits_packets(c);
		c->to_send += m->hop != CREDITS_NONE ? m->left : 0;
	}
	begin(c);
	try_all(c);
}

/* Counts what waits forever. */
static void finish(struct credits *c)
{
	change_queue(c, 0);
	for (uint32_t i = 0; i < c->n_links; i++) {
		struct credits_link *l = &c->link[i];

		if (l->blocked)
			l->blocked_ps += c->now_ps - l->since_ps;
		l->blocked = false;
		for (unsigned k = 0; k < CREDITS_LANES; k++) {
			c->stuck += c->lane[i][k].held;
			c->stuck_lanes += c->lane[i][k].held != 0;
		}
	}
}

int credits_run(struct credits *c)
{
	if (c->arbitration && credits_arbiters_init(c))
		return -ENOMEM;
	start(c);
	for (uint64_t n = 1; c->events.n && !c->no_memory; n++) {
		struct simulate_event e = simulate_events_take(&c->events);

		happen(c, &e);
		if (!c->events.n || c->events.heap[0].at_ps > c->now_ps)
			try_all(c);
		if (!(n % PROGRESS_EVENTS) && c->progress)
			c->progress(c->arg, c->sent, c->to_send);
	}
	if (c->no_memory)
		return -ENOMEM;
	finish(c);
	return 0;
}
