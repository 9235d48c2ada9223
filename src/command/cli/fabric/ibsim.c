/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel ibsim`: becomes umbel-ibsim, which serves clients of ibsim.
 */
#include <stdlib.h>

#include "cli/base/command.h"
#include "cli/base/environ.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"

static const char help[] =
        "Usage: umbel ibsim [OPTION]...\n"
        "\n"
        "Serves clients of the simulator ibsim, in its place: programs that run with ibsim's\n"
        "library libumad2sim, by ibsim-run or LD_PRELOAD, are at a port of the running fabric,\n"
        "the one that SIM_HOST names. Runs until a signal comes or the fabric ends.\n";

static const char *default_socket(void)
{
	const char *name = getenv("IBSIM_SOCKNAME");

	return name && *name ? name : "sim";
}

struct options {
	const char *name, *socket;
};

static const struct cli_option options[] = {
	{ CLI_NAME_LINE, CLI_TEXT(struct options, name) },
	{ "      --socket NAME its sockets, which clients find by IBSIM_SOCKNAME=NAME (default:\n"
	  "                    $IBSIM_SOCKNAME, else 'sim')\n",
	  CLI_TEXT(struct options, socket) },
	CLI_HELP_ROW,
};

static int ibsim_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	const struct options *o = from;
	const char *name = cli_fabric_name(o->name);
	char *own[] = { "umbel-ibsim", (char *)(o->socket ? o->socket : default_socket()), NULL };
	int ret;

	if (argc > 0)
		return cli_usage_error(self, "what is '%s'?", argv[0]);
	if (!*own[1])
		return cli_usage_error(self, "sockets need a name");
	ret = cli_check_host(name, NULL);
	if (ret)
		return ret;
	cli_exec_own(name, NULL, own);
	return CLI_FAILED;
}

const struct cli_command cli_ibsim = {
	.name = "ibsim",
	.summary = "serve clients of the simulator ibsim",
	.help = help,
	CLI_OPTIONS(options, struct options),
	.execute = ibsim_execute,
};
