/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel ibsim`: becomes umbel-ibsim, which serves clients of ibsim.
 */
#include <stdlib.h>

#include "cli/command.h"
#include "cli/environ.h"
#include "cli/fabrics.h"

static const char help[] =
        "Usage: umbel ibsim [OPTION]...\n"
        "\n"
        "Serves clients of the simulator ibsim, in its place: programs that run with ibsim's\n"
        "library libumad2sim, by ibsim-run or LD_PRELOAD, are at a port of the running fabric,\n"
        "the one that SIM_HOST names. Runs until a signal comes or the fabric ends.\n"
        "\n"
        "  -n, --name NAME   the fabric (default: $UMBEL_FABRIC, else 'default')\n"
        "      --socket NAME its sockets, which clients find by IBSIM_SOCKNAME=NAME (default:\n"
        "                    $IBSIM_SOCKNAME, else 'sim')\n"
        "  -h, --help        this text\n";

static const char *default_socket(void)
{
	const char *name = getenv("IBSIM_SOCKNAME");

	return name && *name ? name : "sim";
}

static int ibsim_run(const struct cli_command *self, int argc, char **argv)
{
	static const struct option options[] = {
		{ "name", required_argument, NULL, 'n' },
		{ "socket", required_argument, NULL, 'S' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	char *own[] = { "umbel-ibsim", (char *)default_socket(), NULL };
	const char *name = NULL;
	int opt, ret;

	while ((opt = getopt_long(argc, argv, "+:n:h", options, NULL)) != -1) {
		if (opt == 'n')
			name = optarg;
		else if (opt == 'S')
			own[1] = optarg;
		else
			return cli_option_end(self, opt, argv);
	}
	if (optind < argc)
		return cli_usage_error(self, "what is '%s'?", argv[optind]);
	if (!*own[1])
		return cli_usage_error(self, "sockets need a name");
	name = cli_fabric_name(name);
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
	.run = ibsim_run,
};
