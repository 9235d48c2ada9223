/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel show`: what the daemon knows about its fabric, as text, as JSON or as a picture. How each
 * thing looks as text is in views.c, as a picture in show_picture.c.
 */
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/show/drops.h"
#include "cli/base/fabrics.h"
#include "cli/show/growth.h"
#include "cli/show/interfaces.h"
#include "cli/base/json.h"
#include "cli/picture/legend.h"
#include "cli/base/options.h"
#include "cli/check/routes.h"
#include "cli/picture/show_picture.h"
#include "cli/show/views.h"
#include "control/client.h"

#define WHAT                                                                                 \
	"topology, groups, routes, routers, counters, hosts, neighbours, qps, connections, " \
	"processes, mrs or drops"

#define MOST_SECONDS 1000000
#define PATIENCE_MS  10000 /* for a daemon that is stopped while it is asked again */

static const char help[] =
        "Usage: umbel show [OPTION]... WHAT [OPTION]...\n"
        "\n"
        "  topology     nodes, ports and the links between them\n"
        "  groups       multicast groups: members, attached queue pairs, tree\n"
        "  routes       what the switches forward where; 'routes SWITCH': that one\n"
        "  routers      routers to other subnets, and what crosses them\n"
        "  counters     what the ports have counted\n"
        "  hosts        hosts with their addresses, HCAs and interfaces\n"
        "  neighbours   what the hosts' interfaces know of each other (umbel up --ipoib)\n"
        "  qps          queue pairs: state, keys, receives, peers, PSNs\n"
        "  connections  of rdma_cm, with listeners; and queue pairs connected by hand\n"
        "  processes    programs, and what they have: queue pairs, completion queues, ...\n"
        "  mrs          memory regions of programs that have connected queue pairs\n"
        "  drops        what was lost, where, why, and what to do about it\n"
        "\n"
        "As pictures (--svg, --png, --dot): topology, and\n"
        "\n"
        "  group        'group MGID': that one's tree and members\n"
        "  path         'path HOST HOST': the way of packets from the first to the second\n";

struct show {
	const char *name, *what, *of;
	struct cli_list words;
	bool json, load, explain;
	long watch;
	struct cli_growth growth; /* of counters that are watched */
	struct cli_show_picture picture;
};

static const struct cli_option options[] = {
	{ CLI_NAME_LINE, CLI_TEXT(struct show, name) },
	{ "      --json        as JSON\n", CLI_FLAG(struct show, json) },
	{ "      --explain     of counters: what each that is not 0 means, and what to do\n",
	  CLI_FLAG(struct show, explain) },
	{ "      --load        of routes: how many of them each link between switches carries;\n"
	  "                    of pictures: lines are as wide as they carry routes\n",
	  CLI_FLAG(struct show, load) },
	{ "      --watch N     again every N seconds, until it is interrupted; counters with\n"
	  "                    what they grew by since, and in a second\n",
	  CLI_NUMBER(struct show, watch, 1, MOST_SECONDS) },
	{ "      --svg         a picture, by Graphviz\n", CLI_FLAG(struct show, picture.svg) },
	{ "      --png         likewise\n", CLI_FLAG(struct show, picture.png) },
	{ "      --dot         the picture's text, which Graphviz reads\n",
	  CLI_FLAG(struct show, picture.dot) },
	{ "      --lines N     of more boxes or lines, equal ones fold (default: 48)\n",
	  CLI_NUMBER(struct show, picture.most, 1, INT_MAX), .wrong = "is no number of lines" },
	{ "  -o, --output FILE the picture's file (default: standard output)\n",
	  CLI_TEXT(struct show, picture.output) },
	CLI_HELP_ROW,
};

/* As JSON text that is printed as it comes. */
static int print_text(struct control_client *client, const char *what)
{
	int fd = cli_request_text(client, what, NULL), ret;

	if (fd < 0)
		return CLI_FAILED;
	ret = cli_json_print_text(fd);
	close(fd);
	return ret;
}

/* The content of the view, to be put; NULL after an error. */
static struct json_object *request(struct control_client *client, const char *what,
                                   struct json_object *interfaces)
{
	struct json_object *reply;

	if (!strcmp(what, "neighbours"))
		return cli_interfaces_neighbours(interfaces);
	reply = cli_request_json(client, what);
	if (reply && interfaces)
		cli_interfaces_add(reply, interfaces);
	return reply;
}

/* Counters, and their growth since the last time; NULL after an error. */
static struct json_object *request_counters(struct show *s, struct control_client *client)
{
	struct json_object *counters = cli_request_json(client, s->what);

	if (counters && s->watch)
		cli_growth_add(&s->growth, counters, base_now_ns());
	return counters;
}

static int print_grown(struct show *s, struct control_client *client)
{
	struct json_object *counters = request_counters(s, client);
	int ret;

	if (!counters)
		return CLI_FAILED;
	ret = s->json ? cli_json_print(counters) : cli_view_find(s->what)->print(counters);
	json_object_put(counters);
	return ret;
}

/* Counters, and what they mean. */
static int print_explained(struct show *s, struct control_client *client)
{
	struct json_object *counters = request_counters(s, client), *texts, *legend;
	int ret = CLI_FAILED;

	texts = counters ? cli_request_json(client, "counter_texts") : NULL;
	if (!texts)
		goto out;
	legend = cli_legend(counters, texts);
	json_object_object_add(counters, "legend", legend);
	if (s->json) {
		ret = cli_json_print(counters);
		goto out;
	}
	json_object_get(legend);
	json_object_object_del(counters, "legend"); /* which is no counter */
	ret = cli_view_find(s->what)->print(counters);
	cli_legend_print(legend);
	json_object_put(legend);
out:
	json_object_put(texts);
	json_object_put(counters);
	return ret;
}

/* Prints the daemon's answer. */
static int print(struct show *s, struct control_client *client)
{
	const struct cli_view *view = cli_view_find(s->what);
	struct json_object *reply, *interfaces = NULL;
	int ret;

	if (!strcmp(s->what, "drops"))
		return cli_drops_print(client, s->json);
	if (!view)
		return s->load ? cli_load_print(client, s->json)
		               : cli_routes_print(client, s->of, s->json);
	if (s->explain)
		return print_explained(s, client);
	if (s->watch && !strcmp(s->what, "counters"))
		return print_grown(s, client);
	if (view->interfaces)
		interfaces = cli_interfaces_request(client);
	if (s->json && strcmp(s->what, "neighbours") &&
	    (!interfaces || !json_object_array_length(interfaces))) {
		json_object_put(interfaces);
		return print_text(client, s->what);
	}
	reply = request(client, s->what, interfaces);
	json_object_put(interfaces);
	if (!reply)
		return CLI_FAILED;
	ret = s->json ? cli_json_print(reply) : view->print(reply);
	json_object_put(reply);
	return ret;
}

/* Whether the daemon answers still; else says why not. A request would wait for one that is
 * stopped. */
static int probe(const char *fabric)
{
	struct control_client *client;
	int ret = cli_connect(&client, fabric);

	if (!ret)
		control_close(client);
	return ret;
}

/* Prints it again and again. A terminal shows the last one alone. */
static int watch(struct show *s, struct control_client *client, const char *fabric)
{
	const bool clears = isatty(STDOUT_FILENO) && !s->json;
	int ret;

	for (bool first = true;; first = false) {
		if (clears)
			fputs("\033[H\033[2J", stdout);
		else if (!first && !s->json)
			putchar('\n');
		ret = cli_finish(print(s, client));
		if (ret && !first)
			probe(fabric);
		if (ret)
			break;
		control_limit_wait(client, PATIENCE_MS);
		sleep((unsigned)s->watch);
		ret = probe(fabric);
		if (ret)
			break;
	}
	cli_growth_fini(&s->growth);
	return ret;
}

/* Checks which options go together. 0 or CLI_USAGE. */
static int check(const struct cli_command *self, const struct show *s)
{
	bool picture = cli_wants_picture(&s->picture), routes;

	if (!s->what)
		return cli_usage_error(self, "what? " WHAT);
	routes = !strcmp(s->what, "routes");
	if (!strcmp(s->what, "group") || !strcmp(s->what, "path") || picture || s->picture.output ||
	    s->picture.most) {
		int ret = cli_show_picture_check(self, &s->picture, &s->words);

		if (!ret && (s->json || s->explain || s->watch))
			ret = cli_usage_error(
			        self, "a picture is not --json, not --explain and not --watch");
		return ret;
	}
	if (!routes && strcmp(s->what, "drops") != 0 && !cli_view_find(s->what))
		return cli_usage_error(self, "no '%s': it shows " WHAT, s->what);
	if (s->words.n > 2 || (s->of && (!routes || s->load)))
		return cli_usage_error(self, "one thing at a time, not '%s' too",
		                       s->words.at[s->words.n > 2 ? 2 : 1]);
	if (s->load && !routes)
		return cli_usage_error(self, "--load goes with routes, not with %s", s->what);
	if (s->explain && strcmp(s->what, "counters"))
		return cli_usage_error(self, "--explain goes with counters, not with %s", s->what);
	return 0;
}

static int show(const struct cli_command *self, void *from, int argc, char **argv)
{
	struct show *s = from;
	const char *fabric = cli_fabric_name(s->name);
	struct control_client *client;
	int ret;

	(void)argc; /* take_word() has had them */
	(void)argv;
	s->what = s->words.n > 0 ? s->words.at[0] : NULL;
	s->of = s->words.n > 1 ? s->words.at[1] : NULL;
	ret = check(self, s);
	if (!ret && (s->picture.svg || s->picture.png) && !s->picture.output &&
	    isatty(STDOUT_FILENO)) {
		base_log("a picture is no text: write it to a file by --output, or to a pipe");
		ret = CLI_USAGE;
	}
	if (!ret)
		ret = cli_connect(&client, fabric);
	if (ret)
		return ret;
	if (cli_wants_picture(&s->picture) || !strcmp(s->what, "path"))
		ret = cli_show_picture(&s->picture, client, fabric, &s->words, s->load);
	else
		ret = s->watch ? watch(s, client, fabric) : print(s, client);
	control_close(client);
	return ret;
}

/* The first word is what to show, the next ones of what. */
static int take_word(const struct cli_command *self, void *options, const char *word)
{
	struct show *s = options;

	(void)self;
	return cli_list_add(&s->words, word);
}

const struct cli_command cli_show = {
	.name = "show",
	.summary =
	        "show topology, groups, routes, counters, hosts, connections, processes or drops",
	.help = help,
	CLI_OPTIONS(options, struct show),
	.word = take_word,
	.execute = show,
};
