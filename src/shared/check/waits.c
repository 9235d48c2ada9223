/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The graph of links that wait for each other: see waits.h. Links on no circle are peeled off, from
 * both ends. From the rest the shortest circle is taken that one of a few links is on.
 */
#include <stdlib.h>
#include <string.h>

#include "check/waits.h"

#define TRIES 32 /* links whose shortest circle is looked for */

int check_waits_init(struct check_waits *w, const struct check_net *net)
{
	*w = (struct check_waits){ .net = net };
	w->offset = calloc((size_t)net->n_channels + 1, sizeof(*w->offset));
	if (!w->offset)
		return -ENOMEM;
	for (uint32_t c = 0; c < net->n_channels; c++) {
		uint32_t at = net->channel_at[c];
		const struct check_port *p = &net->sw[at].port[c - net->first[at]];

		w->offset[c] = w->bytes;
		if (p->end == CHECK_TO_SWITCH)
			w->bytes += net->sw[p->to].n_ports + 1;
	}
	return 0;
}

void check_waits_fini(struct check_waits *w)
{
	for (unsigned lane = 0; lane < CHECK_LANES; lane++)
		free(w->dep[lane]);
	free(w->offset);
	free(w->circle);
	free(w->causes);
}

int check_waits_open(struct check_waits *w, unsigned lane)
{
	w->dep[lane] = calloc(w->bytes + 1, 1);
	return w->dep[lane] ? 0 : -ENOMEM;
}

void check_waits_clear(struct check_waits *w)
{
	for (unsigned lane = 0; lane < CHECK_LANES; lane++) {
		free(w->dep[lane]);
		w->dep[lane] = NULL;
	}
	free(w->circle);
	free(w->causes);
	w->circle = w->causes = NULL;
	w->n_circle = 0;
}

/* ---- the graph ---- */

static const struct check_port *port_of(const struct check_waits *w, uint32_t channel)
{
	uint32_t at = w->net->channel_at[channel];

	return &w->net->sw[at].port[channel - w->net->first[at]];
}

/* The lanes that a lane of a link waits for, one after the other. */
struct nexts {
	const uint8_t *row; /* NULL: nothing */
	unsigned n_ports, port, left;
	uint32_t first; /* channel */
};

static struct nexts nexts_of(const struct check_waits *w, check_lane_t v)
{
	uint32_t channel = v / CHECK_LANES;
	const struct check_port *p = port_of(w, channel);
	const uint8_t *dep = w->dep[v % CHECK_LANES];
	struct nexts n = { 0 };

	if (p->end != CHECK_TO_SWITCH || !dep)
		return n;
	n.row = dep + w->offset[channel];
	n.n_ports = w->net->sw[p->to].n_ports;
	n.first = w->net->first[p->to];
	n.left = n.row[0];
	return n;
}

static bool next_of(struct nexts *n, check_lane_t *next)
{
	while (n->row && !n->left) {
		if (n->port == n->n_ports)
			return false;
		n->left = n->row[++n->port];
	}
	if (!n->row)
		return false;
	*next = (n->first + n->port) * CHECK_LANES + (unsigned)__builtin_ctz(n->left);
	n->left &= n->left - 1;
	return true;
}

/* The lanes that wait for it, likewise. */
struct earlier {
	const struct check_waits *w;
	const struct check_switch *sw;
	unsigned out, lane, port, lane_in;
};

static struct earlier earlier_of(const struct check_waits *w, check_lane_t v)
{
	uint32_t channel = v / CHECK_LANES, at = w->net->channel_at[channel];

	return (struct earlier){
		w, &w->net->sw[at], channel - w->net->first[at], v % CHECK_LANES, 1, 0
	};
}

static bool previous_of(struct earlier *e, check_lane_t *previous)
{
	for (; e->port <= e->sw->n_ports; e->port++, e->lane_in = 0) {
		const struct check_port *p = &e->sw->port[e->port];
		uint32_t from;

		if (p->end != CHECK_TO_SWITCH)
			continue;
		from = e->w->net->first[p->to] + p->to_port;
		while (e->lane_in < CHECK_LANES) {
			const uint8_t *dep = e->w->dep[e->lane_in++];

			if (!dep || !(dep[e->w->offset[from] + e->out] >> e->lane & 1))
				continue;
			*previous = from * CHECK_LANES + e->lane_in - 1;
			return true;
		}
	}
	return false;
}

/* ---- circles ---- */

struct search {
	struct check_waits *w;
	uint32_t n; /* lanes of links */
	bool *gone;
	uint32_t *count, *queue, *from;
};

/* Takes away what nothing waits for, then what waits for nothing that is left. */
static void peel(struct search *s, bool forward)
{
	uint32_t head = 0, tail = 0;
	check_lane_t other;

	memset(s->count, 0, s->n * sizeof(*s->count));
	for (check_lane_t v = 0; v < s->n; v++) {
		struct nexts n = nexts_of(s->w, v);

		while (!s->gone[v] && next_of(&n, &other))
			if (!s->gone[other])
				s->count[forward ? other : v]++;
	}
	for (check_lane_t v = 0; v < s->n; v++)
		if (!s->gone[v] && !s->count[v])
			s->queue[tail++] = v;
	while (head < tail) {
		check_lane_t v = s->queue[head++];
		struct nexts n = nexts_of(s->w, v);
		struct earlier e = earlier_of(s->w, v);

		s->gone[v] = true;
		while (forward ? next_of(&n, &other) : previous_of(&e, &other))
			if (!s->gone[other] && !--s->count[other])
				s->queue[tail++] = other;
	}
}

/* Looks for the shortest circle that @start is on, if it is shorter than the one that is known. 0
 * or -ENOMEM. */
static int search_from(struct search *s, check_lane_t start)
{
	uint32_t head = 0, tail = 0, length = 1;
	check_lane_t other, v;

	memset(s->from, 0xFF, s->n * sizeof(*s->from));
	s->queue[tail++] = start;
	while (head < tail && s->from[start] == CHECK_NONE) {
		struct nexts n;

		v = s->queue[head++];
		n = nexts_of(s->w, v);
		while (next_of(&n, &other)) {
			if (s->gone[other] || s->from[other] != CHECK_NONE)
				continue;
			s->from[other] = v;
			s->queue[tail++] = other;
		}
	}
	if (s->from[start] == CHECK_NONE)
		return 0;
	for (v = s->from[start]; v != start; v = s->from[v])
		length++;
	if (s->w->n_circle && length >= s->w->n_circle)
		return 0;
	free(s->w->circle);
	s->w->circle = malloc(length * sizeof(*s->w->circle));
	if (!s->w->circle)
		return -ENOMEM;
	s->w->n_circle = length;
	for (v = start; length--; v = s->from[v])
		s->w->circle[length] = s->from[v];
	return 0;
}

static int search(struct search *s)
{
	unsigned tries = 0;
	int ret = 0;

	peel(s, true);
	peel(s, false);
	for (check_lane_t v = 0; v < s->n; v++)
		s->w->n_left += !s->gone[v];
	for (check_lane_t v = 0; v < s->n && tries < TRIES && !ret; v++)
		if (!s->gone[v]) {
			tries++;
			ret = search_from(s, v);
		}
	/* the first ones may lie between two circles, and on none */
	for (check_lane_t v = 0; v < s->n && !ret && s->w->n_left && !s->w->n_circle; v++)
		if (!s->gone[v])
			ret = search_from(s, v);
	if (ret || !s->w->n_circle)
		return ret;
	s->w->causes = calloc(s->w->n_circle, sizeof(*s->w->causes));
	return s->w->causes ? 1 : -ENOMEM;
}

int check_waits_search(struct check_waits *w)
{
	struct search s = { .w = w, .n = w->net->n_channels * CHECK_LANES };
	size_t room = (size_t)s.n + 1;
	int ret = -ENOMEM;

	w->n_left = 0;
	s.gone = calloc(room, sizeof(*s.gone));
	s.count = calloc(room, sizeof(*s.count));
	s.queue = calloc(room, sizeof(*s.queue));
	s.from = calloc(room, sizeof(*s.from));
	if (s.gone && s.count && s.queue && s.from)
		ret = search(&s);
	free(s.gone);
	free(s.count);
	free(s.queue);
	free(s.from);
	return ret;
}

void check_waits_note(struct check_waits *w, uint32_t from, unsigned lane, uint32_t out,
                      unsigned next)
{
	check_lane_t a = from * CHECK_LANES + lane;
	check_lane_t b = (w->net->first[port_of(w, from)->to] + out) * CHECK_LANES + next;

	for (uint32_t i = 0; i < w->n_circle; i++)
		if (w->circle[i] == a && w->circle[(i + 1) % w->n_circle] == b && !w->causes[i])
			w->causes[i] = w->cause;
}

uint64_t check_waits_count(const struct check_waits *w)
{
	uint64_t n = 0;

	for (unsigned lane = 0; lane < CHECK_LANES; lane++)
		for (size_t i = 0; w->dep[lane] && i < w->bytes; i++)
			n += (unsigned)__builtin_popcount(w->dep[lane][i]);
	return n;
}
