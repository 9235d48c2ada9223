/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Printing of simulations: see simulation.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/kinds.h"
#include "cli/simulate/simulation.h"

#define BINS 10 /* of the histogram */

/* ---- progress ---- */

void cli_simulation_progress(void *arg, const char *what, unsigned percent)
{
	static uint64_t since_ns;
	static bool shown;
	uint64_t now_ns = base_now_ns();

	(void)arg;
	since_ns = since_ns ? since_ns : now_ns;
	if (what && (shown || now_ns - since_ns >= 1000000000)) {
		fprintf(stderr, "\r\033[K%s, %u %%", what, percent);
		shown = true;
	} else if (shown) {
		fputs("\r\033[K", stderr);
		shown = false;
	}
}

/* ---- sums ---- */

struct sums {
	uint64_t arrived, links_sum;
	unsigned links_min, links_max; /* of messages that arrived */
	unsigned n_cables, n_switches;
};

static void add_up(const struct simulation *s, struct sums *u)
{
	struct simulate_link l = { 0 };
	unsigned n_links = 0;

	*u = (struct sums){ .n_switches = s->f->n_switches };
	for (unsigned i = LOAD_MAX_SWITCHES + 2; i-- > 0;) {
		uint64_t n = s->net.sum.links[i];

		if (!n)
			continue;
		u->links_max = u->arrived ? u->links_max : i;
		u->links_min = i;
		u->arrived += n;
		u->links_sum += n * i;
	}
	while (simulate_next_link(s, &l))
		n_links++;
	u->n_cables = n_links / 2;
}

static double mean_links(const struct sums *u)
{
	return u->arrived ? (double)u->links_sum / (double)u->arrived : 0;
}

const char *cli_simulation_routing(const struct simulation *s)
{
	const char *key;
	uint32_t value;

	for (unsigned i = 0; fabric_settings_get(&s->f->settings, i, &key, &value); i++)
		if (!strcmp(key, "routing"))
			return fabric_settings_name(&s->f->settings, i);
	return "?";
}

static bool is_between_switches(const struct fabric_port *p)
{
	return p->node->type == FABRIC_SWITCH && p->peer->node->type == FABRIC_SWITCH;
}

/* ---- text ---- */

static void print_failed(const struct simulation *s, bool rerouted)
{
	if (!s->n_failed)
		return;
	printf("failed:    ");
	for (unsigned i = 0; i < s->n_failed && i < 8; i++)
		printf("%s%s", i ? ", " : "", s->failed[i]);
	printf("%s; %s\n", s->n_failed > 8 ? ", ..." : "",
	       rerouted ? "routed anew" : "not routed anew");
}

static void print_time(const struct simulation *s, const struct cli_simulation *what)
{
	struct simulate_time t;

	simulate_time(s, &what->cost, &t);
	printf("time:      at least ");
	cli_simulation_print_ns(t.transfer_ns + t.path_ns);
	if (!t.busiest.from) {
		putchar('\n');
		return;
	}
	printf("; the busiest link begins at %s:%u\n", cli_simulation_name(s, t.busiest.from->node),
	       t.busiest.from->num);
	printf("           ");
	cli_simulation_print_ns(t.hosts_ns + t.path_ns);
	printf(" if links between switches had no limit\n");
}

static void print_head(const struct simulation *s, const struct cli_simulation *what)
{
	struct sums u;

	add_up(s, &u);
	printf("fabric:    %u host%s, %u switch%s, %u cable%s; routing %s\n", s->f->n_ib_ports,
	       s->f->n_ib_ports == 1 ? "" : "s", u.n_switches, u.n_switches == 1 ? "" : "es",
	       u.n_cables, u.n_cables == 1 ? "" : "s", cli_simulation_routing(s));
	print_failed(s, what->rerouted);
	printf("messages:  %ju sent, %ju lost\n", (uintmax_t)s->net.sum.sent,
	       (uintmax_t)s->net.sum.lost);
	printf("hops:      %u to %u links, %.2f in the mean\n", u.links_min, u.links_max,
	       mean_links(&u));
	print_time(s, what);
}

static int print_kinds(const struct simulation *s)
{
	struct cli_kinds kinds = { 0 };
	struct simulate_link l = { 0 };
	int ret = 0;

	while (!ret && simulate_next_link(s, &l)) {
		const struct cli_kinds_link link = { .from = cli_simulation_name(s, l.from->node),
			                             .to = cli_simulation_name(s,
			                                                       l.from->peer->node),
			                             .messages = l.crossed.messages };

		if (fabric_port_carries(l.from))
			ret = cli_kinds_add(&kinds, &link);
	}
	if (!ret)
		ret = cli_kinds_print(&kinds, false);
	cli_kinds_fini(&kinds);
	return ret;
}

/* How many links between switches carry how much. */
static void print_histogram(const struct simulation *s)
{
	struct simulate_link l = { 0 };
	uint64_t most = 0, bin[BINS] = { 0 }, width;
	unsigned longest = 0, first = 0;

	while (simulate_next_link(s, &l))
		if (is_between_switches(l.from) && l.crossed.messages > most)
			most = l.crossed.messages;
	if (!most)
		return;
	width = most / BINS + 1;
	l = (struct simulate_link){ 0 };
	while (simulate_next_link(s, &l))
		if (is_between_switches(l.from) && fabric_port_carries(l.from))
			bin[l.crossed.messages / width]++;
	for (unsigned i = 0; i < BINS; i++)
		longest = bin[i] > longest ? (unsigned)bin[i] : longest;
	printf("\nlinks between switches, by messages:\n");
	while (!bin[first])
		first++;
	for (unsigned i = first; i < BINS && i * width <= most; i++)
		printf("%10ju to %10ju  %7ju  %.*s\n", (uintmax_t)(i * width),
		       (uintmax_t)(i * width + width - 1), (uintmax_t)bin[i],
		       (int)((bin[i] * 40 + longest - 1) / longest),
		       "########################################");
}

static int status_of(const struct simulation *s)
{
	return s->credits.n_circle ? CLI_DEADLOCK : CLI_OK;
}

int cli_simulation_text(const struct simulation *s, const struct cli_simulation *what)
{
	int ret;

	cli_simulation_progress(NULL, NULL, 0);
	print_head(s, what);
	if (what->buffer)
		cli_credits_summary(s, what);
	putchar('\n');
	ret = print_kinds(s);
	if (!ret)
		print_histogram(s);
	if (!ret && what->buffer)
		ret = cli_credits_tables(s);
	if (ret) {
		base_log("%s", strerror(-ret));
		return CLI_FAILED;
	}
	return status_of(s);
}

/* ---- JSON ---- */

static void print_json_links(const struct simulation *s, bool credits)
{
	struct simulate_link l = { 0 };
	const char *separator = "\n";

	printf("  \"links\": [");
	while (simulate_next_link(s, &l)) {
		printf("%s    { \"node\": \"%s\", \"port\": %u, \"peer\": \"%s\", \"peer_port\": "
		       "%u, \"up\": %s, \"messages\": %ju",
		       separator, l.from->node->name, l.from->num, l.from->peer->node->name,
		       l.from->peer->num, fabric_port_carries(l.from) ? "true" : "false",
		       (uintmax_t)l.crossed.messages);
		if (credits)
			cli_credits_json_link(s, l.from);
		fputs(" }", stdout);
		separator = ",\n";
	}
	puts("\n  ]");
}

int cli_simulation_json(const struct simulation *s, const struct cli_simulation *what)
{
	struct simulate_time t;
	struct sums u;

	cli_simulation_progress(NULL, NULL, 0);
	add_up(s, &u);
	simulate_time(s, &what->cost, &t);
	printf("{\n  \"hosts\": %u,\n  \"switches\": %u,\n  \"cables\": %u,\n", s->f->n_ib_ports,
	       u.n_switches, u.n_cables);
	printf("  \"routing\": \"%s\",\n  \"pattern\": \"%s\",\n  \"failed\": [",
	       cli_simulation_routing(s), what->pattern);
	for (unsigned i = 0; i < s->n_failed; i++)
		printf("%s\"%s\"", i ? ", " : "", s->failed[i]);
	printf("],\n  \"rerouted\": %s,\n", s->n_failed && what->rerouted ? "true" : "false");
	printf("  \"sent\": %ju,\n  \"lost\": %ju,\n", (uintmax_t)s->net.sum.sent,
	       (uintmax_t)s->net.sum.lost);
	printf("  \"hops\": { \"min\": %u, \"mean\": %.4f, \"max\": %u },\n", u.links_min,
	       mean_links(&u), u.links_max);
	printf("  \"time_ns\": %.0f,\n  \"time_by_hosts_ns\": %.0f,\n", t.transfer_ns + t.path_ns,
	       t.hosts_ns + t.path_ns);
	if (what->buffer)
		cli_credits_json(s, what);
	print_json_links(s, what->buffer != 0);
	puts("}");
	return status_of(s);
}
