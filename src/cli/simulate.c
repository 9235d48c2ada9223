/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel simulate`: what the links of a fabric carry and how long that takes, without processes and
 * without a daemon. The arguments are here, what is printed is in simulation.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/fabric_options.h"
#include "cli/port.h"
#include "cli/simulation.h"

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
        "  file FILE         as FILE says: umbel-simulate(1)\n"
        "\n"
        "      --hosts N         how many hosts (default: 4)\n"
        "      --fat-tree LEVELS the switches form a fat tree of 2 or 3 levels; --hosts N then\n"
        "                        means fewer hosts than there is room for\n"
        "      --radix N         ports of a switch of the fat tree (default: 36)\n"
        "      --topology FILE   hosts, switches and links as in FILE, which ibnetdiscover wrote,\n"
        "                        or which ibsim reads\n"
        "      --set KEY=VALUE   a setting of the fabric, as often as needed: routing, lmc, mtu\n"
        "      --fail WHAT       a link (NODE:PORT) or a switch fails, as often as needed\n"
        "      --fail-switches N switches that fail by chance\n"
        "      --fail-links N    links between switches that fail by chance\n"
        "      --no-reroute      the subnet manager has not noticed the failures yet\n"
        "      --seed N          of what chance decides (default: 1)\n"
        "      --size BYTES      of a message (default: 4096)\n"
        "      --hop NS          nanoseconds for a link and the switch behind it (default: 100)\n"
        "      --json            as JSON, with each link\n"
        "  -h, --help            this text\n";

enum { FAIL = 256, FAIL_SWITCHES, FAIL_LINKS, NO_REROUTE, SEED, SIZE, HOP, JSON };

#define MAX_SIZE (1u << 30) /* as ibv_port_attr.max_msg_sz */

struct request {
	const struct cli_command *self;
	struct cli_fabric_options fabric;
	const char **fail;
	unsigned n_fail;
	long fail_switches, fail_links, seed, size, hop;
	bool no_reroute, json;
	const char *pattern;
	long n, members; /* the pattern's */
	struct cli_file file;
	struct simulate_random random;
	char why[512], notes[512];
};

/* ---- arguments ---- */

static int read_number(const struct request *r, const char *text, long max, long *v)
{
	if (base_parse_number(text, 0, max, v))
		return cli_usage_error(r->self, "'%s' is no number from 0 to %ld", text, max);
	return 0;
}

static int add_fail(struct request *r, const char *what)
{
	const char **grown = realloc(r->fail, (r->n_fail + 1) * sizeof(*grown));

	if (!grown) {
		base_log("%s", strerror(ENOMEM));
		return CLI_FAILED;
	}
	r->fail = grown;
	r->fail[r->n_fail++] = what;
	return 0;
}

static int read_option(struct request *r, int opt)
{
	switch (opt) {
	case FAIL:
		return add_fail(r, optarg);
	case FAIL_SWITCHES:
		return read_number(r, optarg, INT32_MAX, &r->fail_switches);
	case FAIL_LINKS:
		return read_number(r, optarg, INT32_MAX, &r->fail_links);
	case NO_REROUTE:
		r->no_reroute = true;
		return 0;
	case SEED:
		return read_number(r, optarg, INT64_MAX, &r->seed);
	case SIZE:
		return read_number(r, optarg, MAX_SIZE, &r->size);
	case HOP:
		return read_number(r, optarg, 1000000000, &r->hop);
	case JSON:
		r->json = true;
		return 0;
	default:
		return cli_fabric_option(r->self, &r->fabric, opt, optarg);
	}
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
		ret = read_number(r, argv[1], INT32_MAX, &r->n);
	return ret || p->words < 2 ? ret : read_number(r, argv[2], INT32_MAX, &r->members);
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

	for (unsigned i = 0; i < r->n_fail && !ret; i++)
		ret = fail_one(r, s, r->fail[i]);
	if (!ret)
		ret = simulate_fail_switches(s, (unsigned)r->fail_switches, &r->random);
	if (!ret)
		ret = simulate_fail_links(s, (unsigned)r->fail_links, &r->random);
	if (ret == -ERANGE && !*r->why)
		snprintf(r->why, sizeof(r->why), "there is less that could fail");
	return ret;
}

static int simulate(struct request *r, struct simulation *s)
{
	struct fabric_shape shape = cli_fabric_shape(&r->fabric);
	struct shm_settings settings;
	int ret = fabric_shape_settings(&settings, r->fabric.settings, r->fabric.n_settings, r->why,
	                                sizeof(r->why));

	shape.notes = r->notes;
	shape.notes_len = sizeof(r->notes);
	if (!ret)
		ret = simulate_open(s, &shape, &settings, r->why, sizeof(r->why));
	if (!ret)
		ret = make_pattern(r, s);
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

static int run(struct request *r)
{
	const struct cli_simulation what = { .pattern = r->pattern,
		                             .rerouted = !r->no_reroute,
		                             .cost = { (uint64_t)r->size, (unsigned)r->hop } };
	struct simulation s = { .progress =
		                        isatty(STDERR_FILENO) ? cli_simulation_progress : NULL };
	int ret;

	r->random.state = (uint64_t)r->seed;
	ret = simulate(r, &s);
	for (char *line = strtok(r->notes, "\n"); line; line = strtok(NULL, "\n"))
		base_log("%s", line);
	if (ret)
		ret = fail(r, ret);
	else
		ret = r->json ? cli_simulation_json(&s, &what) : cli_simulation_text(&s, &what);
	simulate_close(&s);
	return ret;
}

static const struct option options[] = {
	{ "hosts", required_argument, NULL, 'H' },
	{ "fat-tree", required_argument, NULL, 'F' },
	{ "radix", required_argument, NULL, 'R' },
	{ "topology", required_argument, NULL, 'T' },
	{ "set", required_argument, NULL, 's' },
	{ "fail", required_argument, NULL, FAIL },
	{ "fail-switches", required_argument, NULL, FAIL_SWITCHES },
	{ "fail-links", required_argument, NULL, FAIL_LINKS },
	{ "no-reroute", no_argument, NULL, NO_REROUTE },
	{ "seed", required_argument, NULL, SEED },
	{ "size", required_argument, NULL, SIZE },
	{ "hop", required_argument, NULL, HOP },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static int simulate_run(const struct cli_command *self, int argc, char **argv)
{
	struct request r = { .self = self,
		             .fabric = CLI_FABRIC_OPTIONS_INIT,
		             .seed = 1,
		             .size = 4096,
		             .hop = 100,
		             .file = { .fd = -1 } };
	int opt, ret = 0;

	while (!ret && (opt = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		if (opt == 'h' || opt == '?' || opt == ':') {
			ret = cli_option_end(self, opt, argv);
			goto out;
		}
		ret = read_option(&r, opt);
	}
	if (!ret)
		ret = read_pattern(&r, argc - optind, argv + optind);
	if (!ret)
		ret = cli_fabric_options_end(self, &r.fabric);
	if (!ret && r.file.name)
		ret = cli_file_read(&r.file);
	if (!ret)
		ret = run(&r);
out:
	cli_file_fini(&r.file);
	cli_fabric_options_fini(&r.fabric);
	free(r.fail);
	return ret;
}

const struct cli_command cli_simulate = {
	.name = "simulate",
	.summary = "what links of a fabric would carry, and how long that takes",
	.help = help,
	.run = simulate_run,
};
