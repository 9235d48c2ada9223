/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel show`: what the manager knows of its fabric, as text or as JSON. How each thing
 * looks as text is in views.c.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/views.h"
#include "control/client.h"

static const char help[] =
        "Usage: umbel show [OPTION]... WHAT [OPTION]...\n"
        "\n"
        "  topology   nodes, ports and the links between them\n"
        "  groups     multicast groups: members, attached queue pairs, tree\n"
        "  routes     what the switches forward where\n"
        "  counters   what the ports have counted\n"
        "  hosts      hosts with their addresses and HCAs\n"
        "\n"
        "  -n, --name NAME   the fabric (default: $UMBEL_FABRIC, else 'default')\n"
        "      --json        as JSON\n"
        "  -h, --help        this text\n";

struct show {
	const char *name, *what;
	bool json;
};

static int show(const struct cli_command *self, const struct show *s)
{
	const struct cli_view *view = s->what ? cli_view_find(s->what) : NULL;
	struct control_client *client;
	struct json_object *answer;
	int ret;

	if (!s->what)
		return cli_usage_error(self, "what? topology, groups, routes, counters or hosts");
	if (!view)
		return cli_usage_error(
		        self, "no '%s': it shows topology, groups, routes, counters or hosts",
		        s->what);
	ret = cli_connect(&client, cli_fabric_name(s->name));
	if (ret)
		return ret;
	answer = cli_ask(client, s->what);
	control_close(client);
	if (!answer)
		return CLI_FAILED;
	ret = s->json ? cli_json_print(answer) : view->print(answer);
	json_object_put(answer);
	return ret;
}

static int show_run(const struct cli_command *self, int argc, char **argv)
{
	static const struct option options[] = {
		{ "name", required_argument, NULL, 'n' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct show s = { 0 };
	int opt;

	/* "-": words among the options come as 1 */
	while ((opt = getopt_long(argc, argv, "-:n:h", options, NULL)) != -1) {
		if (opt == 'n')
			s.name = optarg;
		else if (opt == 'j')
			s.json = true;
		else if (opt == 1 && !s.what)
			s.what = optarg;
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
