/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel show`: what the daemon knows about its fabric, as text or as JSON. How each thing
 * looks as text is in views.c.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/fabrics.h"
#include "cli/json.h"
#include "cli/routes.h"
#include "cli/views.h"
#include "control/client.h"

static const char help[] =
        "Usage: umbel show [OPTION]... WHAT [OPTION]...\n"
        "\n"
        "  topology   nodes, ports and the links between them\n"
        "  groups     multicast groups: members, attached queue pairs, tree\n"
        "  routes     what the switches forward where; 'routes SWITCH': that one\n"
        "  counters   what the ports have counted\n"
        "  hosts      hosts with their addresses and HCAs\n"
        "\n"
        "  -n, --name NAME   the fabric (default: $UMBEL_FABRIC, else 'default')\n"
        "      --json        as JSON\n"
        "      --load        of routes: how many of them each link between switches carries\n"
        "  -h, --help        this text\n";

struct show {
	const char *name, *what, *of;
	bool json, load;
};

/* Prints the daemon's answer. */
static int print(const struct show *s, struct control_client *client)
{
	const struct cli_view *view = cli_view_find(s->what);
	struct json_object *reply;
	int fd, ret;

	if (!view)
		return s->load ? cli_load_print(client, s->json)
		               : cli_routes_print(client, s->of, s->json);
	if (s->json) {
		fd = cli_request_text(client, s->what, NULL);
		ret = fd < 0 ? CLI_FAILED : cli_json_print_text(fd);
		if (fd >= 0)
			close(fd);
		return ret;
	}
	reply = cli_request_json(client, s->what);
	if (!reply)
		return CLI_FAILED;
	ret = view->print(reply);
	json_object_put(reply);
	return ret;
}

static int show(const struct cli_command *self, const struct show *s)
{
	bool routes = s->what && !strcmp(s->what, "routes");
	struct control_client *client;
	int ret;

	if (!s->what)
		return cli_usage_error(self, "what? topology, groups, routes, counters or hosts");
	if (!routes && !cli_view_find(s->what))
		return cli_usage_error(
		        self, "no '%s': it shows topology, groups, routes, counters or hosts",
		        s->what);
	if (s->of && (!routes || s->load))
		return cli_usage_error(self, "one thing at a time, not '%s' too", s->of);
	if (s->load && !routes)
		return cli_usage_error(self, "--load goes with routes, not with %s", s->what);
	ret = cli_connect(&client, cli_fabric_name(s->name));
	if (ret)
		return ret;
	ret = print(s, client);
	control_close(client);
	return ret;
}

static int show_run(const struct cli_command *self, int argc, char **argv)
{
	static const struct option options[] = {
		{ "name", required_argument, NULL, 'n' },
		{ "json", no_argument, NULL, 'j' },
		{ "load", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct show s = { 0 };
	int opt;

	/* "-": getopt_long() returns 1 for a word among the options */
	while ((opt = getopt_long(argc, argv, "-:n:h", options, NULL)) != -1) {
		if (opt == 'n')
			s.name = optarg;
		else if (opt == 'j')
			s.json = true;
		else if (opt == 1 && !s.what)
			s.what = optarg;
		else if (opt == 1 && !s.of)
			s.of = optarg;
		else if (opt == 'l')
			s.load = true;
		else if (opt == 1)
			return cli_usage_error(self, "one thing at a time, not '%s' too", optarg);
		else
			return cli_option_end(self, opt, argv);
	}
	return show(self, &s);
}

const struct cli_command cli_show = {
	.name = "show",
	.summary = "show topology, groups, routes, counters or hosts",
	.help = help,
	.run = show_run,
};
