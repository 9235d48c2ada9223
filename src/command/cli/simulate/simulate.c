/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel simulate`: what the links of a fabric carry and how long that takes, without processes and
 * without a daemon. The arguments are here, the output is in simulation.c.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/fabric/fabric_options.h"
#include "cli/base/options.h"
#include "cli/base/port.h"
#include "cli/simulate/simulation.h"

static const char help[] =
        "Usage: umbel simulate [OPTION]... PATTERN\n"
        "\n"
        "Builds a fabric in memory, has the subnet manager route it, and counts what each link\n"
        "carries when hosts send messages in a pattern:\n"
        "\n"
        "  all-to-all        each host to each other one\n"
        "  shift N           host number i to number i + N\n"
        "  permutation       each host to one other by chance, one to each\n"
        "  groups N MEMBERS  N groups of so many hosts by chance, each to all others of its group\n"
        "  file FILE         as FILE says: umbel-simulate(1)\n";

#define MAX_SIZE   (1u << 30) /* as ibv_port_attr.max_msg_sz */
#define BUFFER     4          /* packets; they suffice for 400 Gb/s: umbel-simulate(1) */
#define MESSAGES   100000
#define LEAST_LOAD 0.0001
#define MOST_LANE  14 /* of data: ports have eight lanes, tables may have more */

struct request {
	struct cli_fabric_options fabric; /* of which simulate has not all */
	const struct cli_command *self;
	struct cli_list fail;
	long fail_switches, fail_links, seed, size, hop, buffer, messages, high_limit;
	bool no_reroute, credits, json;
	const char *pattern;
	long n, members; /* the pattern's */
	struct cli_file file;
	struct simulate_random random;
	struct simulate_arrivals arrivals;
	struct simulate_times times;
	struct credits_arbitration arbitration;
	struct cli_simulation_files pictures;
	char why[512], notes[512];
};

/* ---- arguments ---- */

/* A share as people write it: no sign, no exponent, nothing that is not a number. */
static int store_load(const struct cli_value *v, void *to)
{
	double *load = to;
	char *end;

	*load = strtod(v->text, &end);
	if (strspn(v->text, "0123456789.") != strlen(v->text) || end == v->text || *end ||
	    !(*load >= LEAST_LOAD && *load <= 1))
		return cli_usage_error(v->cmd, "'%s' is no load from %g to 1", v->text, LEAST_LOAD);
	return 0;
}

/* A number at *@at, which moves behind it. */
static bool read_part(const char **at, unsigned most, uint8_t *to)
{
	char *end;
	unsigned long n;

	if (!isdigit((unsigned char)**at))
		return false;
	n = strtoul(*at, &end, 10);
	*at = end;
	*to = (uint8_t)n;
	return n <= most;
}

/* "0:192,1:64": as those of OpenSM's options. */
static int store_table(const struct cli_value *v, void *to)
{
	struct credits_table *t = to;
	const char *at = v->text;

	for (t->n = 0; t->n < CREDITS_SHARES; at++) {
		struct credits_share *s = &t->share[t->n++];

		if (!read_part(&at, MOST_LANE, &s->lane) || *at++ != ':' ||
		    !read_part(&at, UINT8_MAX, &s->weight))
			break;
		if (!*at)
			return 0;
		if (*at != ',')
			break;
	}
	return cli_usage_error(v->cmd,
	                       "'%s' is no list of up to %u VL:WEIGHT, up to %u:%u, between commas",
	                       v->text, CREDITS_SHARES, MOST_LANE, UINT8_MAX);
}

/* clang-format off */
static const struct cli_option options[] = {
	{ .more = cli_shape_rows },
	{ "      --set KEY=VALUE   a setting of the fabric, as often as needed: routing, lmc, mtu\n",
	  CLI_STORE(cli_store_setting, struct request, fabric.settings) },
	{ "      --fail WHAT       a link (NODE:PORT) or a switch fails, as often as needed\n",
	  CLI_LIST(struct request, fail) },
	{ "      --fail-switches N switches that fail by chance\n",
	  CLI_NUMBER(struct request, fail_switches, 0, INT32_MAX) },
	{ "      --fail-links N    links between switches that fail by chance\n",
	  CLI_NUMBER(struct request, fail_links, 0, INT32_MAX) },
	{ "      --no-reroute      the subnet manager has not noticed the failures yet\n",
	  CLI_FLAG(struct request, no_reroute) },
	{ "      --seed N          of what chance decides (default: 1)\n",
	  CLI_NUMBER(struct request, seed, 0, INT64_MAX) },
	{ "      --size BYTES      of a message (default: 4096)\n",
	  CLI_NUMBER(struct request, size, 0, MAX_SIZE) },
	{ "      --hop NS          nanoseconds for a link and the switch behind it (default: 100)\n",
	  CLI_NUMBER(struct request, hop, 0, 1000000000) },
	{ "      --credits         links have finite buffers: packets wait, and may deadlock\n",
	  CLI_FLAG(struct request, credits) },
	{ "      --buffer PACKETS  of each lane of a link, with --credits (default: 4)\n",
	  CLI_NUMBER(struct request, buffer, 1, 1000000) },
	{ "      --vlarb-low LIST  lanes with their weights in blocks of 64 bytes, VL:WEIGHT,...: how\n"
	  "                        they share links, with --credits (default: they take turns)\n",
	  CLI_STORE(store_table, struct request, arbitration.low) },
	{ "      --vlarb-high LIST likewise, of high priority: these go first\n",
	  CLI_STORE(store_table, struct request, arbitration.high) },
	{ "      --high-limit N    in 4096 bytes: how much of high priority may be sent before a packet\n"
	  "                        of low priority; 0, one packet; 255, all (default: 0)\n",
	  CLI_NUMBER(struct request, high_limit, 0, CREDITS_NO_LIMIT) },
	{ "      --load SHARE      messages begin by chance and are this share of what the link of\n"
	  "                        each sender carries, such as 0.7; with --credits\n",
	  CLI_STORE(store_load, struct request, arrivals.load) },
	{ "      --even            at equal gaps, with --load\n",
	  CLI_FLAG(struct request, arrivals.even) },
	{ "      --messages N      of all senders, with --load (default: 100000)\n",
	  CLI_NUMBER(struct request, messages, 1, 10000000) },
	{ "      --json            as JSON, with each link\n", CLI_FLAG(struct request, json) },
	{ "      --svg FILE        a picture: links by what they carry; Graphviz draws it\n",
	  CLI_TEXT(struct request, pictures.svg) },
	{ "      --png FILE        likewise, as PNG\n", CLI_TEXT(struct request, pictures.png) },
	{ "      --dot FILE        likewise, in Graphviz's language\n",
	  CLI_TEXT(struct request, pictures.dot) },
	{ "      --lines N         boxes and lines of a picture at most (default: 48)\n",
	  CLI_NUMBER(struct request, pictures.most, 1, 1000000) },
	{ .line = "  -h, --help            this text\n" },
};
/* clang-format on */

static bool has_tables(const struct request *r)
{
	return r->arbitration.high.n || r->arbitration.low.n;
}

static bool wants_picture(const struct request *r)
{
	return r->pictures.svg || r->pictures.png || r->pictures.dot;
}

static int read_number(const struct request *r, const char *text, long *v)
{
	if (base_parse_number(text, 0, INT32_MAX, v))
		return cli_usage_error(r->self, CLI_NO_NUMBER, text, 0L, (long)INT32_MAX);
	return 0;
}

/* The patterns and their words. */
static const struct pattern {
	const char *name;
	int words;
} patterns[] = {
	{ "all-to-all", 0 }, { "shift", 1 }, { "permutation", 0 }, { "groups", 2 }, { "file", 1 },
};

static int read_pattern(struct request *r, int argc, char **argv)
{
	const struct pattern *p = NULL;
	int ret = 0;

	if (argc < 1)
		return cli_usage_error(
		        r->self, "which pattern? all-to-all, shift, permutation, groups or file");
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		if (!strcmp(patterns[i].name, argv[0]))
			p = &patterns[i];
	if (!p)
		return cli_usage_error(
		        r->self, "no pattern '%s': all-to-all, shift, permutation, groups or file",
		        argv[0]);
	if (argc - 1 != p->words)
		return cli_usage_error(r->self, "'%s' takes %s", p->name,
		                       p->words == 0     ? "no more words"
		                       : p->words == 2   ? "two numbers: of groups, and of members"
		                       : *p->name == 's' ? "a number"
		                                         : "a file's name");
	r->pattern = p->name;
	if (*p->name == 'f')
		r->file.name = argv[1];
	else if (p->words > 0)
		ret = read_number(r, argv[1], &r->n);
	return ret || p->words < 2 ? ret : read_number(r, argv[2], &r->members);
}

/* ---- doing ---- */

/* Says what went wrong. Returns CLI_FAILED. */
static int fail(const struct request *r, int error)
{
	cli_simulation_progress(NULL, NULL, 0);
	base_log("%s", *r->why ? r->why : strerror(-error));
	return CLI_FAILED;
}

static int make_pattern(struct request *r, struct simulation *s)
{
	unsigned hosts = s->f->n_ib_ports;
	const struct simulate_groups groups = { (unsigned)r->n, (unsigned)r->members };
	const struct simulate_pattern_file file = { r->file.name, r->file.text, r->file.bytes };

	switch (*r->pattern) {
	case 'a':
		s->pattern.all_to_all = true;
		return 0;
	case 's':
		return simulate_pattern_shift(&s->pattern, hosts, (unsigned)r->n);
	case 'p':
		return simulate_pattern_permutation(&s->pattern, hosts, &r->random);
	case 'g':
		if (groups.members > hosts) {
			snprintf(r->why, sizeof(r->why), "a group of %u: there are %u hosts",
			         groups.members, hosts);
			return -ERANGE;
		}
		return simulate_pattern_groups(&s->pattern, hosts, &groups, &r->random);
	default:
		return simulate_pattern_read(&s->pattern, s->f, &file, r->why, sizeof(r->why));
	}
}

/* Says why @what, as written, cannot fail. */
static int explain_fail(struct request *r, const char *what, int error)
{
	const char *why = error == -ENOENT     ? "there is no such node"
	                  : error == -EMLINK   ? "the host has several HCAs: name one"
	                  : error == -ERANGE   ? "there is no such port"
	                  : error == -ENOTTY   ? "it is no switch: write NODE:PORT for a link"
	                  : error == -ENOTCONN ? "nothing is plugged in there"
	                  : error == -EALREADY ? "it has failed already"
	                                       : strerror(-error);

	snprintf(r->why, sizeof(r->why), "--fail %.100s: %s", what, why);
	return error;
}

static int fail_one(struct request *r, struct simulation *s, const char *what)
{
	char name[FABRIC_NAME] = "";
	struct cli_port port = { .port = 0 };
	int ret;

	if (strchr(what, ':') && cli_port_parse(r->self, what, &port))
		return -EINVAL;
	if (!strchr(what, ':'))
		snprintf(port.node, sizeof(port.node), "%s", what);
	else if (!port.port)
		return explain_fail(r, what, -ERANGE);
	if (strlen(port.node) >= sizeof(name))
		return explain_fail(r, what, -ENOENT);
	strcpy(name, port.node);
	ret = simulate_fail(s, name, port.port);
	return ret ? explain_fail(r, what, ret) : 0;
}

static int fail_all(struct request *r, struct simulation *s)
{
	int ret = 0;

	for (unsigned i = 0; i < r->fail.n && !ret; i++)
		ret = fail_one(r, s, r->fail.at[i]);
	if (!ret)
		ret = simulate_fail_switches(s, (unsigned)r->fail_switches, &r->random);
	if (!ret)
		ret = simulate_fail_links(s, (unsigned)r->fail_links, &r->random);
	if (ret == -ERANGE && !*r->why)
		snprintf(r->why, sizeof(r->why), "there is less that could fail");
	return ret;
}

static int check_size(struct request *r, const struct simulation *s)
{
	int ret = simulate_check_size(s, (uint64_t)r->size);

	if (ret)
		snprintf(r->why, sizeof(r->why),
		         "a message to a group is a datagram: --size is %ld, the MTU %u", r->size,
		         IB_MTU_BYTES(s->f->settings.mtu));
	return ret;
}

static int simulate(struct request *r, struct simulation *s)
{
	struct fabric_shape shape = r->fabric.daemon.shape;
	struct shm_settings settings;
	int ret = fabric_shape_settings(&settings, r->fabric.settings.at, r->fabric.settings.n,
	                                r->why, sizeof(r->why));

	shape.notes = r->notes;
	shape.notes_len = sizeof(r->notes);
	if (!ret)
		ret = simulate_open(s, &shape, &settings, r->why, sizeof(r->why));
	if (!ret)
		ret = make_pattern(r, s);
	if (!ret)
		ret = check_size(r, s);
	if (!ret)
		ret = simulate_join(s);
	if (ret == -ENOSPC && !*r->why)
		snprintf(r->why, sizeof(r->why), "the switches have no room for so many groups");
	if (!ret)
		ret = fail_all(r, s);
	if (!ret && s->n_failed && !r->no_reroute)
		ret = simulate_reroute(s);
	return ret ? ret : simulate_count(s);
}

/* After simulate(). */
static int send_by_credits(struct request *r, struct simulation *s,
                           const struct cli_simulation *what)
{
	int ret;

	r->arrivals.random = r->random;
	r->arrivals.messages = (uint32_t)r->messages;
	s->arrivals = what->times ? &r->arrivals : NULL;
	r->arbitration.limit = (uint8_t)(r->high_limit < 0 ? 0 : r->high_limit);
	s->arbitration = has_tables(r) ? &r->arbitration : NULL;
	ret = simulate_credits(s, &what->cost, what->buffer);
	if (!ret && what->times)
		ret = simulate_times(&s->credits, &r->times);
	if (ret == -ENOLINK)
		snprintf(r->why, sizeof(r->why),
		         "packets use VL%u, which has no weight by --vlarb-high or --vlarb-low",
		         credits_unserved(&s->credits));
	if (ret == -ERANGE)
		snprintf(r->why, sizeof(r->why),
		         "--load: the last message would begin after more than 50 days");
	if (ret == -EFBIG)
		snprintf(r->why, sizeof(r->why),
		         "--credits: the messages cross more than %u links in all",
		         SIMULATE_MOST_HOPS);
	return ret;
}

/* A picture that fails counts for more than the result of the simulation. */
static int print(const struct request *r, const struct simulation *s,
                 const struct cli_simulation *what)
{
	int ret = r->json ? cli_simulation_json(s, what) : cli_simulation_text(s, what);

	if (wants_picture(r) && cli_simulation_draw(s, what, &r->pictures))
		return CLI_FAILED;
	return ret;
}

static int run(struct request *r)
{
	const struct cli_simulation what = { .pattern = r->pattern,
		                             .rerouted = !r->no_reroute,
		                             .cost = { (uint64_t)r->size, (unsigned)r->hop },
		                             .buffer = r->credits ? (unsigned)r->buffer : 0,
		                             .times = r->arrivals.load > 0 ? &r->times : NULL };
	struct simulation s = { .progress =
		                        isatty(STDERR_FILENO) ? cli_simulation_progress : NULL };
	int ret;

	r->random.state = (uint64_t)r->seed;
	ret = simulate(r, &s);
	if (!ret && what.buffer)
		ret = send_by_credits(r, &s, &what);
	for (char *line = strtok(r->notes, "\n"); line; line = strtok(NULL, "\n"))
		base_log("%s", line);
	if (ret)
		ret = fail(r, ret);
	else
		ret = print(r, &s, &what);
	simulate_close(&s);
	return ret;
}

/* Options that change nothing without another one. */
static int check_needs(const struct request *r)
{
	const bool load = r->arrivals.load > 0;
	const struct {
		bool given, has;
		const char *name, *needs;
	} need[] = {
		{ r->buffer != 0, r->credits, "--buffer", "--credits" },
		{ load, r->credits, "--load", "--credits" },
		{ r->arrivals.even, load, "--even", "--load" },
		{ r->messages != 0, load, "--messages", "--load" },
		{ r->arbitration.low.n != 0, r->credits, "--vlarb-low", "--credits" },
		{ r->arbitration.high.n != 0, r->credits, "--vlarb-high", "--credits" },
		{ r->high_limit >= 0, r->arbitration.high.n != 0, "--high-limit", "--vlarb-high" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(need); i++)
		if (need[i].given && !need[i].has)
			return cli_usage_error(r->self, "%s needs %s", need[i].name, need[i].needs);
	return 0;
}

static int simulate_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	struct request *r = from;
	int ret;

	r->self = self;
	ret = read_pattern(r, argc, argv);
	if (!ret)
		ret = check_needs(r);
	if (!ret && r->pictures.most && !wants_picture(r))
		ret = cli_usage_error(self, "--lines goes with --svg, --png or --dot");
	r->buffer = r->buffer ? r->buffer : BUFFER;
	r->messages = r->messages ? r->messages : MESSAGES;
	if (!ret)
		ret = cli_fabric_options_end(self, &r->fabric);
	if (!ret && r->file.name)
		ret = cli_file_read(&r->file);
	return ret ? ret : run(r);
}

const struct cli_command cli_simulate = {
	.name = "simulate",
	.summary = "what links of a fabric would carry, and how long that takes",
	.help = help,
	CLI_OPTIONS(options, struct request),
	.defaults = &(const struct request){ .fabric = CLI_FABRIC_DEFAULTS,
	                                     .seed = 1,
	                                     .size = 4096,
	                                     .hop = 100,
	                                     .high_limit = -1,
	                                     .file = { .fd = -1 } },
	.execute = simulate_execute,
};
