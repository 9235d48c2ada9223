/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel set`: changes those settings of a running fabric that may change while it runs.
 * `umbel status --name NAME` shows them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"
#include "control/client.h"

static const char help[] =
        "Usage: umbel set [OPTION]... KEY=VALUE...\n"
        "\n"
        "Changes settings of a running fabric; 'umbel status --name NAME' shows them.\n";

static int set_one(struct control_client *client, const char *setting)
{
	const char *value = strchr(setting, '=') + 1;
	char key[128];
	int ret;

	snprintf(key, sizeof(key), "%.*s", (int)(value - 1 - setting), setting);
	ret = control_set(client, key, value);
	switch (ret) {
	case 0:
		return 0;
	case -ENOENT:
		base_log("no setting '%s'", key);
		return CLI_USAGE;
	case -EPERM:
		base_log("setting '%s' cannot change while the fabric is up", key);
		return CLI_FAILED;
	case -EINVAL:
	case -ERANGE:
		base_log("setting '%s' cannot be '%s': %s", key, value, strerror(-ret));
		return CLI_USAGE;
	default:
		base_log("cannot set '%s': %s", key, cli_refusal(ret));
		return CLI_FAILED;
	}
}

static int set_execute(const struct cli_command *self, void *options, int argc, char **argv)
{
	const struct cli_name_options *o = options;
	struct control_client *client;
	int ret;

	if (argc < 1)
		return cli_usage_error(self, "which setting? write key=value");
	for (int i = 0; i < argc; i++) {
		if (!strchr(argv[i], '=') || argv[i][0] == '=')
			return cli_usage_error(self, "'%s' is no setting: write key=value",
			                       argv[i]);
	}
	ret = cli_connect(&client, cli_fabric_name(o->name));
	if (ret)
		return ret;
	for (int i = 0; i < argc && !ret; i++)
		ret = set_one(client, argv[i]);
	control_close(client);
	return ret;
}

const struct cli_command cli_set = {
	.name = "set",
	.summary = "change settings of a running fabric",
	.help = help,
	CLI_OPTIONS(cli_name_options, struct cli_name_options),
	.execute = set_execute,
};
