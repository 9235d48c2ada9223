/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Printing of simulations in which packets wait for credits: see simulation.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/simulate/simulation.h"

#define SHOWN        8  /* lines of a table */
#define SHOWN_CIRCLE 16 /* links */

/* "h1", "leaf1:19", "leaf1:19/VL2". The text is valid until the next but three. */
static const char *link_text(const struct simulation *s, uint32_t link, unsigned lane)
{
	static char text[4][2 * FABRIC_NAME];
	static unsigned turn;
	const struct fabric_port *from = s->link_from[link];
	char *to = text[turn++ % 4];
	int n = snprintf(to, sizeof(text[0]), "%s:%u", cli_simulation_name(s, from->node),
	                 from->num);

	if (lane && n > 0 && (size_t)n < sizeof(text[0]))
		snprintf(to + n, sizeof(text[0]) - (size_t)n, "/VL%u", lane);
	return to;
}

/* The sender and the receiver. */
static const char *way_text(const struct simulation *s, const struct credits_message *m)
{
	static char text[3 * FABRIC_NAME];
	const char *from = cli_simulation_name(s, s->f->hca_port[m->from]->node);

	if (m->to_group)
		snprintf(text, sizeof(text), "%s > group %u", from, m->to + 1);
	else
		snprintf(text, sizeof(text), "%s > %s", from,
		         cli_simulation_name(s, s->f->hca_port[m->to]->node));
	return text;
}

static uint32_t count_arrived(const struct credits *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_messages; i++)
		n += credits_has_arrived(&c->message[i]);
	return n;
}

/* Of what has not arrived, 0. */
static double ns_of(const struct credits_message *m)
{
	return m->arrived_ps ? (double)credits_took_ps(m) / 1000 : 0;
}

/* Gb/s, from its beginning to the last byte. */
static double rate_of(const struct credits *c, const struct credits_message *m)
{
	return m->arrived_ps ? 8.0 * c->bytes / ns_of(m) : 0;
}

/* ---- the summary ---- */

static void print_circle(const struct simulation *s)
{
	const struct credits *c = &s->credits;

	printf("deadlock:  %ju packets wait forever, at the ends of %ju links; %u of these wait "
	       "for each other:\n",
	       (uintmax_t)c->stuck, (uintmax_t)c->stuck_lanes, c->n_circle);
	for (uint32_t i = 0; i < c->n_circle && i < SHOWN_CIRCLE; i++) {
		const struct credits_wait *w = &c->circle[i];
		const struct credits_wait *next = &c->circle[(i + 1) % c->n_circle];

		printf("           %s waits for %s, with a packet %s\n",
		       link_text(s, w->link, w->lane), link_text(s, next->link, next->lane),
		       way_text(s, &c->message[w->message]));
	}
	if (c->n_circle > SHOWN_CIRCLE)
		puts("           ... and so on, around");
}

static void print_rates(const struct credits *c)
{
	double least = 0, most = 0, sum = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_messages; i++) {
		double rate = rate_of(c, &c->message[i]);

		if (!credits_has_arrived(&c->message[i]))
			continue;
		least = n && least < rate ? least : rate;
		most = rate > most ? rate : most;
		sum += rate;
		n++;
	}
	if (n)
		printf("rates:     %.2f to %.2f Gb/s of a message, %.2f in the mean\n", least, most,
		       sum / n);
}

static void print_ps(double ps, const char *after)
{
	cli_simulation_print_ns(ps / 1000);
	fputs(after, stdout);
}

static void print_times(const struct simulation *s, const struct simulate_times *t)
{
	const struct simulate_arrivals *a = s->arrivals;

	printf("load:      %g of its link by each sender, %s; %u messages are counted, after %u\n",
	       a->load, a->even ? "at equal gaps" : "by chance", t->n, s->credits.first_counted);
	if (!t->n)
		return;
	printf("times:     ");
	print_ps(t->mean_ps, " in the mean; 99 of 100 took at most ");
	print_ps((double)t->p99_ps, ", the longest ");
	print_ps((double)t->most_ps, "\n");
	printf("queue:     %.2f messages in the network in the mean, %u when the last one began\n",
	       t->queue, s->credits.queue_last);
}

void cli_credits_summary(const struct simulation *s, const struct cli_simulation *what)
{
	const struct credits *c = &s->credits;

	printf("credits:   for %u packet%s on each lane; %u of %u messages have arrived after ",
	       what->buffer, what->buffer == 1 ? "" : "s", count_arrived(c), c->n_messages);
	cli_simulation_print_ns((double)c->arrived_ps / 1000);
	putchar('\n');
	if (what->times)
		print_times(s, what->times);
	print_rates(c);
	if (c->n_circle)
		print_circle(s);
}

/* ---- tables ---- */

static unsigned queue_at(const struct credits *c, uint32_t link)
{
	unsigned most = 0;

	for (unsigned k = 0; k < CREDITS_LANES; k++)
		most = c->lane[link][k].most > most ? c->lane[link][k].most : most;
	return most;
}

struct row {
	const struct credits *c;
	uint32_t i;
};

static int by_number(const struct row *a, const struct row *b)
{
	return (a->i > b->i) - (a->i < b->i);
}

/* By the time that links were blocked, longest first, then by the time that they were busy. */
static int by_blocked(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	const struct credits_link *x = &a->c->link[a->i], *y = &b->c->link[b->i];

	if (x->blocked_ps != y->blocked_ps)
		return x->blocked_ps < y->blocked_ps ? 1 : -1;
	if (x->busy_ps != y->busy_ps)
		return x->busy_ps < y->busy_ps ? 1 : -1;
	return by_number(a, b);
}

/* Those that took longest. */
static int by_time(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	const struct credits_message *x = &a->c->message[a->i], *y = &b->c->message[b->i];

	if (credits_took_ps(x) != credits_took_ps(y))
		return credits_took_ps(x) < credits_took_ps(y) ? 1 : -1;
	return by_number(a, b);
}

static uint64_t end_of(const struct credits *c)
{
	return c->stuck ? c->now_ps : c->arrived_ps;
}

static void print_links(const struct simulation *s, const struct row *row, uint32_t n)
{
	const struct credits *c = &s->credits;
	uint64_t end = end_of(c);
	double percent = end ? 100.0 / (double)end : 0;

	printf("\nlinks that waited longest for credits, and packets in a queue at their ends:\n");
	printf("%-24s %-24s %7s %9s %7s\n", "FROM", "TO", "BUSY", "WAITING", "QUEUE");
	for (uint32_t i = 0; i < n; i++) {
		const struct credits_link *l = &c->link[row[i].i];
		const struct fabric_port *to = s->link_from[row[i].i]->peer;
		char end_text[2 * FABRIC_NAME];

		snprintf(end_text, sizeof(end_text), "%s:%u", cli_simulation_name(s, to->node),
		         to->num);
		printf("%-24s %-24s %5.1f %% %7.1f %% %7u\n", link_text(s, row[i].i, 0), end_text,
		       (double)l->busy_ps * percent, (double)l->blocked_ps * percent,
		       queue_at(c, row[i].i));
	}
}

/* ---- lanes ---- */

static uint64_t shared_bytes(const struct row *r)
{
	uint64_t n = 0;

	for (unsigned k = 0; k < CREDITS_LANES; k++)
		n += r->c->arbiter[r->i].shared[k];
	return n;
}

/* Those whose lanes competed for most. */
static int by_shared(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	uint64_t x = shared_bytes(a), y = shared_bytes(b);

	if (x != y)
		return x < y ? 1 : -1;
	return by_number(a, b);
}

/* Gb/s of a lane, with headers, in all the time. */
static double lane_rate(const struct credits *c, uint32_t link, unsigned lane)
{
	double end = (double)end_of(c), ps_per_byte = c->link[link].ps_per_byte;

	if (end <= 0 || ps_per_byte <= 0)
		return 0;
	return 8000 * (double)c->arbiter[link].busy_ps[lane] / ps_per_byte / end;
}

static void print_lanes_of(const struct simulation *s, const struct row *r, double shared)
{
	for (unsigned k = 0; k < CREDITS_LANES; k++)
		if (r->c->arbiter[r->i].busy_ps[k])
			printf("%-24s %4u %9.2f Gb/s %7.1f %%\n", link_text(s, r->i, 0), k,
			       lane_rate(r->c, r->i, k),
			       100 * (double)r->c->arbiter[r->i].shared[k] / shared);
}

/* @row is sorted anew. */
static void print_lanes(const struct simulation *s, struct row *row, uint32_t n)
{
	qsort(row, n, sizeof(*row), by_shared);
	if (!n || !shared_bytes(&row[0]))
		return;
	printf("\nlanes that competed for links, and what each got of what was sent meanwhile:\n");
	printf("%-24s %4s %14s %9s\n", "FROM", "LANE", "IN ALL", "SHARE");
	for (uint32_t i = 0; i < n && i < SHOWN && shared_bytes(&row[i]); i++)
		print_lanes_of(s, &row[i], (double)shared_bytes(&row[i]));
}

/* ---- messages ---- */

static void print_messages(const struct simulation *s, const struct row *row, uint32_t n)
{
	const struct credits *c = &s->credits;

	printf("\nmessages that took longest:\n");
	for (uint32_t i = 0; i < n; i++) {
		const struct credits_message *m = &c->message[row[i].i];

		printf("%-32s %8.2f Gb/s, ", way_text(s, m), rate_of(c, m));
		cli_simulation_print_ns(ns_of(m));
		putchar('\n');
	}
}

int cli_credits_tables(const struct simulation *s)
{
	const struct credits *c = &s->credits;
	size_t room = c->n_links > c->n_messages ? c->n_links : c->n_messages;
	struct row *row = calloc(room + 1, sizeof(*row));
	uint32_t n = 0;

	if (!row)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_links; i++)
		if (s->link_from[i] && c->link[i].busy_ps)
			row[n++] = (struct row){ c, i };
	qsort(row, n, sizeof(*row), by_blocked);
	print_links(s, row, n < SHOWN ? n : SHOWN);
	if (c->arbiter)
		print_lanes(s, row, n);
	n = 0;
	for (uint32_t i = 0; i < c->n_messages; i++)
		if (credits_has_arrived(&c->message[i]))
			row[n++] = (struct row){ c, i };
	qsort(row, n, sizeof(*row), by_time);
	if (n)
		print_messages(s, row, n < SHOWN ? n : SHOWN);
	free(row);
	return 0;
}

/* ---- JSON ---- */

static void print_json_lanes(const struct credits *c, uint32_t link)
{
	const char *separator = "";

	printf(", \"lanes\": [");
	for (unsigned k = 0; k < CREDITS_LANES; k++)
		if (c->arbiter[link].busy_ps[k]) {
			printf("%s{ \"lane\": %u, \"busy_ns\": %.3f, \"gbps\": %.3f, "
			       "\"shared_bytes\": %ju }",
			       separator, k, (double)c->arbiter[link].busy_ps[k] / 1000,
			       lane_rate(c, link, k), (uintmax_t)c->arbiter[link].shared[k]);
			separator = ", ";
		}
	putchar(']');
}

void cli_credits_json_link(const struct simulation *s, const struct fabric_port *from)
{
	uint32_t i = simulate_link_number(s, from);
	const struct credits_link *l = &s->credits.link[i];

	printf(", \"busy_ns\": %.3f, \"waiting_ns\": %.3f, \"queue\": %u",
	       (double)l->busy_ps / 1000, (double)l->blocked_ps / 1000, queue_at(&s->credits, i));
	if (s->credits.arbiter)
		print_json_lanes(&s->credits, i);
}

static void print_json_way(const struct simulation *s, const struct credits_message *m)
{
	printf("\"from\": \"%s\", ", s->f->hca_port[m->from]->node->name);
	if (m->to_group)
		printf("\"group\": %u", m->to + 1);
	else
		printf("\"to\": \"%s\"", s->f->hca_port[m->to]->node->name);
}

static void print_json_circle(const struct simulation *s)
{
	const struct credits *c = &s->credits;

	printf("    \"circle\": [");
	for (uint32_t i = 0; i < c->n_circle; i++) {
		const struct fabric_port *from = s->link_from[c->circle[i].link];

		printf("%s\n      { \"node\": \"%s\", \"port\": %u, \"lane\": %u, \"waits\": { ",
		       i ? "," : "", from->node->name, from->num, c->circle[i].lane);
		print_json_way(s, &c->message[c->circle[i].message]);
		printf(" } }");
	}
	printf("%s],\n", c->n_circle ? "\n    " : "");
}

static void print_json_times(const struct simulation *s, const struct simulate_times *t)
{
	const struct simulate_arrivals *a = s->arrivals;

	printf("    \"load\": { \"load\": %g, \"even\": %s, \"messages\": %u, \"counted\": %u,\n",
	       a->load, a->even ? "true" : "false", s->credits.n_messages, t->n);
	printf("      \"mean_ns\": %.3f, \"p99_ns\": %.3f, \"most_ns\": %.3f,\n", t->mean_ps / 1000,
	       (double)t->p99_ps / 1000, (double)t->most_ps / 1000);
	printf("      \"queue\": %.4f, \"queue_last\": %u },\n", t->queue, s->credits.queue_last);
}

static void print_json_message(const struct simulation *s, const struct credits_message *m)
{
	print_json_way(s, m);
	if (s->arrivals)
		printf(", \"begins_ns\": %.3f", (double)m->begins_ps / 1000);
	printf(", \"arrived\": %s, \"time_ns\": %.3f, \"gbps\": %.3f",
	       credits_has_arrived(m) ? "true" : "false", ns_of(m),
	       credits_has_arrived(m) ? rate_of(&s->credits, m) : 0);
}

void cli_credits_json(const struct simulation *s, const struct cli_simulation *what)
{
	const struct credits *c = &s->credits;

	printf("  \"credits\": {\n    \"buffer\": %u,\n    \"arrived\": %u,\n", what->buffer,
	       count_arrived(c));
	printf("    \"time_ns\": %.3f,\n    \"deadlock\": %s,\n", (double)c->arrived_ps / 1000,
	       c->n_circle ? "true" : "false");
	printf("    \"stuck_packets\": %ju,\n    \"stuck_links\": %ju,\n", (uintmax_t)c->stuck,
	       (uintmax_t)c->stuck_lanes);
	print_json_circle(s);
	if (what->times)
		print_json_times(s, what->times);
	printf("    \"messages\": [");
	for (uint32_t i = 0; i < c->n_messages; i++) {
		printf("%s\n      { ", i ? "," : "");
		print_json_message(s, &c->message[i]);
		fputs(" }", stdout);
	}
	puts("\n    ]\n  },");
}
