/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel link`: takes links down, and up again.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"
#include "cli/base/port.h"
#include "control/client.h"

static const char help[] =
        "Usage: umbel link [OPTION]... down|up NODE:PORT\n"
        "\n"
        "Takes the link at a port down, as if its cable were pulled, or up again. Returns when\n"
        "the subnet manager has routed around it. NODE is a switch (sw1:3), a host (h2:1) or\n"
        "an HCA (umbel_h2_0:1); 'umbel show topology' lists them.\n";

static int set_link(const char *fabric, const struct cli_port *port, bool up)
{
	struct control_client *client;
	int ret = cli_connect(&client, fabric);

	if (ret)
		return ret;
	ret = control_link(client, port->node, port->port, up);
	if (ret == -EALREADY) {
		base_log("the link at %s is %s already", port->text, up ? "up" : "down");
		ret = CLI_FAILED;
	} else if (ret) {
		ret = cli_port_refused(client, port, ret);
	}
	control_close(client);
	return ret;
}

static int link_execute(const struct cli_command *self, void *options, int argc, char **argv)
{
	const struct cli_name_options *o = options;
	struct cli_port port;
	bool up;

	if (argc < 1)
		return cli_usage_error(self, "'down' or 'up'?");
	up = !strcmp(argv[0], "up");
	if (!up && strcmp(argv[0], "down"))
		return cli_usage_error(self, "'down' or 'up', not '%s'", argv[0]);
	if (argc < 2)
		return cli_usage_error(self, "which? write NODE:PORT, as in sw1:3");
	if (argc > 2)
		return cli_usage_error(self, "one port at a time, not '%s' too", argv[2]);
	if (cli_port_parse(self, argv[1], &port))
		return CLI_USAGE;
	return set_link(cli_fabric_name(o->name), &port, up);
}

const struct cli_command cli_link = {
	.name = "link",
	.summary = "take a link down, or up again",
	.help = help,
	CLI_OPTIONS(cli_name_options, struct cli_name_options),
	.execute = link_execute,
};
