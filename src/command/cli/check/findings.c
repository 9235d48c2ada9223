/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verdict on a subnet, as text and as JSON: see findings.h.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/check/findings.h"
#include "cli/base/json.h"
#include "cli/base/kinds.h"

enum verdict { VERDICT_OK, VERDICT_NOTE, VERDICT_WRONG };

static const char *const verdict_names[] = { "ok", "note", "WRONG" };

/* The unit in which the checks of each property are counted. */
static const char *const units[CHECK_PROPERTIES] = {
	[CHECK_LINKS] = "ports with a link",
	[CHECK_LIDS] = "ports of hosts, and switches",
	[CHECK_PATHS] = "pairs of hosts",
	[CHECK_LOOPS] = "LIDs",
	[CHECK_SWITCH_PATHS] = "pairs of a host and a switch",
	[CHECK_DEADLOCK] = "waits of a link for the next one",
	[CHECK_DEADLOCK_GROUPS] = "with those of groups",
	[CHECK_GROUPS] = "multicast LIDs",
	[CHECK_PARTITIONS] = "ports that enforce",
	[CHECK_MTU] = "pairs of hosts",
	[CHECK_RATE] = "pairs of hosts",
	[CHECK_M_KEYS] = "ports of hosts, and switches",
};

static enum verdict verdict_of(const struct cli_findings *f, enum check_property p)
{
	if (!f->report->result[p].found)
		return VERDICT_OK;
	if (f->excepted >> p & 1 || (check_property_is_note(p) && !f->strict))
		return VERDICT_NOTE;
	return VERDICT_WRONG;
}

/* ---- balance ---- */

struct balance {
	struct cli_kinds links, trees;
};

static int weigh_switch(const struct cli_findings *f, struct balance *b, uint32_t i)
{
	const struct check_switch *sw = &f->net->sw[i];
	int ret = 0;

	for (unsigned k = 1; k <= sw->n_ports && !ret; k++) {
		const struct check_port *p = &sw->port[k];
		struct cli_kinds_link link = { .from = sw->name };

		if (p->end != CHECK_TO_SWITCH)
			continue;
		link.to = f->net->sw[p->to].name;
		link.messages = f->report->routes[f->net->first[i] + k];
		ret = cli_kinds_add(&b->links, &link);
	}
	if (!ret && f->report->result[CHECK_GROUPS].checked)
		ret = cli_kinds_add(&b->trees,
		                    &(struct cli_kinds_link){ .from = sw->name,
		                                              .messages = f->report->trees[i] });
	return ret;
}

/* 0 or -ENOMEM; the caller has to end @b in any case. */
static int weigh(const struct cli_findings *f, struct balance *b)
{
	int ret = 0;

	*b = (struct balance){ 0 };
	for (uint32_t i = 0; i < f->net->n && !ret; i++)
		ret = weigh_switch(f, b, i);
	return ret;
}

static void balance_end(struct balance *b)
{
	cli_kinds_fini(&b->links);
	cli_kinds_fini(&b->trees);
}

static double ratio(const struct cli_kind *k)
{
	return k->mean > 0 ? (double)k->max / k->mean : 0;
}

/* Kinds of links with a link that carries too much. */
struct limit {
	double most;
	unsigned n;
	char first[120];
};

static void limit_kind(void *arg, const struct cli_kind *k)
{
	struct limit *l = arg;

	if (ratio(k) <= l->most)
		return;
	if (!l->n++)
		snprintf(l->first, sizeof(l->first), "%s: a link carries %.2f times the mean",
		         k->name, ratio(k));
}

static int find_limit(const struct cli_findings *f, const struct balance *b, struct limit *l)
{
	*l = (struct limit){ .most = (double)f->balance / 100 + 1e-9 };
	return f->balance ? cli_kinds_each(&b->links, limit_kind, l) : 0;
}

/* ---- text ---- */

static unsigned count_hosts(const struct check_net *net)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < net->n_hosts; i++)
		n += net->host[i].at != CHECK_NONE;
	return n;
}

static unsigned count_links(const struct check_net *net)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < net->n; i++)
		for (unsigned k = 1; k <= net->sw[i].n_ports; k++)
			n += net->sw[i].port[k].end == CHECK_TO_SWITCH;
	return n / 2;
}

static void print_line(const char *name, enum verdict verdict, const char *text)
{
	printf("%-15s  %-5s  %s\n", name, verdict_names[verdict], text);
}

/* The assumptions of the verdict: the service levels of packets, or the members of groups. */
static void print_basis(const struct cli_findings *f, enum check_property p)
{
	const struct check_report *r = f->report;

	if (p == CHECK_DEADLOCK && *f->levels)
		printf("    %s\n", f->levels);
	if (p == CHECK_DEADLOCK && r->assumed && !f->net->one_lane)
		printf("    assumed: %ju paths, of which nobody tells one, have service level %u\n",
		       (uintmax_t)r->assumed, f->net->sl);
	if (p == CHECK_GROUPS && r->guessed)
		printf("    assumed: of %u the members are the hosts that the tables lead to\n",
		       r->guessed);
}

static void print_property(const struct cli_findings *f, enum check_property p)
{
	const struct check_result *r = &f->report->result[p];
	unsigned shown = r->n < (unsigned long)f->most ? r->n : (unsigned)f->most;
	char text[160];
	int n = snprintf(text, sizeof(text), "%ju %s", (uintmax_t)r->checked, units[p]);

	if (p == CHECK_PATHS)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ", of %u links at most",
		              f->report->longest);
	if (p == CHECK_PATHS && f->report->unconnected)
		snprintf(text + n, sizeof(text) - (size_t)n, "; no cables between %ju others",
		         (uintmax_t)f->report->unconnected);
	print_line(check_property_name(p), verdict_of(f, p), text);
	print_basis(f, p);
	for (unsigned i = 0; i < shown; i++)
		printf("    %s\n", r->text[i]);
	if (r->found > shown)
		printf("    and %ju more\n", (uintmax_t)(r->found - shown));
}

static void add_trees(void *arg, const struct cli_kind *k)
{
	if (k->max)
		printf("%s%s %.2f",
		       *(bool *)arg ? ", " : "trees of groups by switch, max/mean: ", k->name,
		       ratio(k));
	*(bool *)arg |= k->max > 0;
}

static int print_balance(const struct cli_findings *f, const struct balance *b, unsigned *wrong)
{
	struct limit l;
	bool any = false;
	int ret = find_limit(f, b, &l);

	if (f->balance && !ret) {
		print_line("balance", l.n ? VERDICT_WRONG : VERDICT_OK, l.n ? l.first : "");
		*wrong += l.n > 0;
	}
	putchar('\n');
	if (!ret)
		ret = cli_kinds_print(&b->links, false);
	if (!ret)
		ret = cli_kinds_each(&b->trees, add_trees, &any);
	if (any)
		putchar('\n');
	return ret;
}

static int end(int ret, unsigned wrong)
{
	if (ret)
		base_log("%s", strerror(-ret));
	return ret || wrong ? CLI_FAILED : CLI_OK;
}

int cli_findings_text(const struct cli_findings *f)
{
	struct balance b;
	unsigned wrong = 0;
	int ret = weigh(f, &b);

	printf("%u host%s, %u switch%s, %u link%s between switches", count_hosts(f->net),
	       count_hosts(f->net) == 1 ? "" : "s", f->net->n, f->net->n == 1 ? "" : "es",
	       count_links(f->net), count_links(f->net) == 1 ? "" : "s");
	printf("%s%s\n\n", *f->routing ? "; routed by " : "", f->routing);
	for (int p = 0; p < CHECK_PROPERTIES; p++) {
		print_property(f, (enum check_property)p);
		wrong += verdict_of(f, (enum check_property)p) == VERDICT_WRONG;
	}
	if (!ret)
		ret = print_balance(f, &b, &wrong);
	balance_end(&b);
	return end(ret, wrong);
}

/* ---- JSON ---- */

static struct json_object *number(uint64_t v)
{
	return json_object_new_int64((int64_t)v);
}

static struct json_object *json_property(const struct cli_findings *f, enum check_property p)
{
	const struct check_result *r = &f->report->result[p];
	struct json_object *o = json_object_new_object(), *texts = json_object_new_array();

	json_object_object_add(o, "verdict",
	                       json_object_new_string(verdict_names[verdict_of(f, p)]));
	json_object_object_add(o, "checked", number(r->checked));
	json_object_object_add(o, "found", number(r->found));
	for (unsigned i = 0; i < r->n; i++)
		json_object_array_add(texts, json_object_new_string(r->text[i]));
	json_object_object_add(o, "findings", texts);
	return o;
}

static void json_kind(void *arg, const struct cli_kind *k)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "kind", json_object_new_string(k->name));
	json_object_object_add(o, "number", number(k->n));
	json_object_object_add(o, "unused", number(k->unused));
	json_object_object_add(o, "mean", json_object_new_double(k->mean));
	json_object_object_add(o, "max", number(k->max));
	json_object_array_add(arg, o);
}

static int json_balance(const struct cli_findings *f, const struct balance *b,
                        struct json_object *to, unsigned *wrong)
{
	struct json_object *links = json_object_new_array(), *trees = json_object_new_array();
	struct limit l;
	int ret = find_limit(f, b, &l);

	if (!ret)
		ret = cli_kinds_each(&b->links, json_kind, links);
	if (!ret)
		ret = cli_kinds_each(&b->trees, json_kind, trees);
	*wrong += !ret && l.n > 0;
	json_object_object_add(to, "links", links);
	json_object_object_add(to, "trees", trees);
	return ret;
}

int cli_findings_json(const struct cli_findings *f)
{
	struct json_object *o = json_object_new_object(), *properties = json_object_new_object();
	struct balance b;
	unsigned wrong = 0;
	int ret = weigh(f, &b);

	for (int i = 0; i < CHECK_PROPERTIES; i++) {
		enum check_property p = (enum check_property)i;

		wrong += verdict_of(f, p) == VERDICT_WRONG;
		json_object_object_add(properties, check_property_name(p), json_property(f, p));
	}
	json_object_object_add(o, "hosts", number(count_hosts(f->net)));
	json_object_object_add(o, "switches", number(f->net->n));
	json_object_object_add(o, "cables", number(count_links(f->net)));
	if (*f->routing)
		json_object_object_add(o, "routing", json_object_new_string(f->routing));
	json_object_object_add(o, "longest", number(f->report->longest));
	json_object_object_add(o, "unconnected", number(f->report->unconnected));
	if (!f->net->one_lane)
		json_object_object_add(o, "assumed_levels", number(f->report->assumed));
	if (*f->levels)
		json_object_object_add(o, "levels", json_object_new_string(f->levels));
	json_object_object_add(o, "lanes", number(f->report->lanes));
	json_object_object_add(o, "assumed_members", number(f->report->guessed));
	json_object_object_add(o, "properties", properties);
	if (!ret)
		ret = json_balance(f, &b, o, &wrong);
	json_object_object_add(o, "ok", json_object_new_boolean(!wrong));
	if (!ret && cli_json_print(o))
		wrong++;
	json_object_put(o);
	balance_end(&b);
	return end(ret, wrong);
}
