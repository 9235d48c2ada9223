/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel switch`: kills switches and revives them.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"
#include "cli/base/port.h"
#include "control/client.h"

static const char help[] =
        "Usage: umbel switch [OPTION]... kill|revive SWITCH\n"
        "\n"
        "Kills a switch: all its links go down, its tables are lost. Or revives it. Returns\n"
        "when the subnet manager has routed around it; 'umbel show topology' lists switches.\n";

static int set_switch(const char *fabric, const char *name, bool alive)
{
	struct control_client *client;
	int ret = cli_connect(&client, fabric);

	if (ret)
		return ret;
	ret = control_switch(client, name, alive);
	if (ret == -EALREADY) {
		base_log("switch '%s' is %s already", name, alive ? "alive" : "dead");
		ret = CLI_FAILED;
	} else if (ret) {
		ret = cli_switch_refused(client, name, ret);
	}
	control_close(client);
	return ret;
}

static int switch_execute(const struct cli_command *self, void *options, int argc, char **argv)
{
	const struct cli_name_options *o = options;
	bool alive;

	if (argc < 1)
		return cli_usage_error(self, "'kill' or 'revive'?");
	alive = !strcmp(argv[0], "revive");
	if (!alive && strcmp(argv[0], "kill"))
		return cli_usage_error(self, "'kill' or 'revive', not '%s'", argv[0]);
	if (argc < 2)
		return cli_usage_error(self, "which switch?");
	if (argc > 2)
		return cli_usage_error(self, "one switch at a time, not '%s' too", argv[2]);
	return set_switch(cli_fabric_name(o->name), argv[1], alive);
}

const struct cli_command cli_switch = {
	.name = "switch",
	.summary = "kill a switch, or revive it",
	.help = help,
	CLI_OPTIONS(cli_name_options, struct cli_name_options),
	.execute = switch_execute,
};
