/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When messages begin: see arrivals.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "simulate/arrivals.h"

#define LATEST_PS 0x1p62 /* 53 days */

/* ---- senders ---- */

struct sender {
	uint32_t first, n; /* the kinds that it sends, in ->kind */
	uint32_t next;     /* the one whose turn it is */
	double gap_ps;     /* in the mean */
};

struct draw {
	struct credits *c;
	struct simulate_arrivals *a;
	struct sender *sender;        /* by host */
	uint32_t n_senders;           /* more than any that sends */
	uint32_t *kind;               /* numbers of ->c's messages, by sender */
	struct simulate_events first; /* the next message of each sender */
};

/* Its packets, with their headers. */
static uint64_t bytes_of(const struct credits *c, const struct credits_message *m)
{
	uint32_t headers = m->to_group ? c->group_headers : c->headers;

	return c->bytes + (uint64_t)credits_packets(c) * headers;
}

static int sort_by_sender(struct draw *d)
{
	const struct credits *c = d->c;

	for (uint32_t i = 0; i < c->n_messages; i++)
		if (c->message[i].from >= d->n_senders)
			d->n_senders = c->message[i].from + 1;
	d->sender = calloc((size_t)d->n_senders + 1, sizeof(*d->sender));
	d->kind = calloc((size_t)c->n_messages + 1, sizeof(*d->kind));
	if (!d->sender || !d->kind)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_messages; i++)
		d->sender[c->message[i].from].n++;
	for (uint32_t i = 1; i < d->n_senders; i++)
		d->sender[i].first = d->sender[i - 1].first + d->sender[i - 1].n;
	for (uint32_t i = 0; i < c->n_messages; i++) {
		struct sender *s = &d->sender[c->message[i].from];

		d->kind[s->first + s->next++] = i;
	}
	for (uint32_t i = 0; i < d->n_senders; i++)
		d->sender[i].next = 0;
	return 0;
}

static double gap_of(const struct draw *d, uint32_t sender)
{
	const struct sender *s = &d->sender[sender];
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < s->n; i++)
		bytes += bytes_of(d->c, &d->c->message[d->kind[s->first + i]]);
	return (double)bytes * d->c->link[sender].ps_per_byte / (d->a->load * s->n);
}

/* ---- times ---- */

static double next_gap(struct draw *d, const struct sender *s)
{
	return d->a->even ? s->gap_ps : simulate_random_exponential(&d->a->random) * s->gap_ps;
}

/* Equal gaps are rounded up, lest they be more than the load. */
static double round_up(double gap_ps)
{
	double whole;

	if (gap_ps >= LATEST_PS)
		return gap_ps;
	whole = (double)(uint64_t)gap_ps;
	return whole < gap_ps ? whole + 1 : whole;
}

static int add_next(struct draw *d, uint32_t sender, uint64_t now_ps, double gap_ps)
{
	struct simulate_event e = { .what = sender };

	if (gap_ps >= LATEST_PS - (double)now_ps)
		return -ERANGE;
	e.at_ps = now_ps + (uint64_t)gap_ps;
	return simulate_events_add(&d->first, &e);
}

static int begin_senders(struct draw *d)
{
	int ret = 0;

	for (uint32_t i = 0; i < d->n_senders && !ret; i++) {
		struct sender *s = &d->sender[i];
		double gap;

		if (!s->n || d->c->link[i].ps_per_byte <= 0)
			continue;
		s->gap_ps = d->a->even ? round_up(gap_of(d, i)) : gap_of(d, i);
		gap = d->a->even ? simulate_random_share(&d->a->random) * s->gap_ps
		                 : next_gap(d, s);
		ret = add_next(d, i, 0, gap);
	}
	return ret;
}

static uint32_t choose_kind(struct draw *d, struct sender *s)
{
	uint32_t i = d->a->even ? s->next++ % s->n : simulate_random_below(&d->a->random, s->n);

	return d->kind[s->first + i];
}

static int draw_all(struct draw *d, struct credits_message *to, uint32_t *n)
{
	int ret = begin_senders(d);

	while (!ret && d->first.n && *n < d->a->messages) {
		const struct simulate_event e = simulate_events_take(&d->first);
		struct sender *s = &d->sender[e.what];

		to[*n] = d->c->message[choose_kind(d, s)];
		to[(*n)++].begins_ps = e.at_ps;
		ret = add_next(d, e.what, e.at_ps, next_gap(d, s));
	}
	return ret;
}

int simulate_arrivals_draw(struct credits *c, struct simulate_arrivals *a)
{
	struct credits_message *to = calloc((size_t)a->messages + 1, sizeof(*to));
	struct draw d = { .c = c, .a = a };
	uint32_t n = 0;
	int ret = to ? sort_by_sender(&d) : -ENOMEM;

	if (!ret)
		ret = draw_all(&d, to, &n);
	if (!ret) {
		free(c->message);
		c->message = to;
		c->n_messages = n;
		c->messages_room = a->messages;
		c->first_counted = simulate_arrivals_first_counted(a);
		to = NULL;
	}
	free(to);
	free(d.sender);
	free(d.kind);
	simulate_events_fini(&d.first);
	return ret;
}

/* ---- results ---- */

static int by_size(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

int simulate_times(const struct credits *c, struct simulate_times *t)
{
	uint64_t end_ps = c->stuck ? c->now_ps : c->arrived_ps, since_ps;
	uint64_t *took = calloc((size_t)c->n_messages + 1, sizeof(*took));

	*t = (struct simulate_times){ 0 };
	if (!took)
		return -ENOMEM;
	for (uint32_t i = c->first_counted; i < c->n_messages; i++)
		if (credits_has_arrived(&c->message[i])) {
			took[t->n] = credits_took_ps(&c->message[i]);
			t->sum_ps += (double)took[t->n++];
		}
	if (t->n) {
		since_ps = c->message[c->first_counted].begins_ps;
		qsort(took, t->n, sizeof(*took), by_size);
		t->mean_ps = t->sum_ps / t->n;
		t->p99_ps = took[((uint64_t)t->n * 99 + 99) / 100 - 1];
		t->most_ps = took[t->n - 1];
		t->queue = end_ps > since_ps ? c->queue_ps / (double)(end_ps - since_ps) : 0;
	}
	free(took);
	return 0;
}
