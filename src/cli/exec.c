/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel exec`: any program, unmodified, on a host of a running fabric. It becomes
 * the program, so signals and exit status are the program's own.
 */
#include <stdbool.h>
#include <string.h>

#include "cli/command.h"
#include "cli/environ.h"
#include "cli/fabrics.h"

static const char help[] =
        "Usage: umbel exec [OPTION]... [HOST] -- COMMAND [ARGUMENT]...\n"
        "\n"
        "Runs the command on a host of a running fabric: it sees the RDMA devices of that\n"
        "host and no others. Without a host it sees those of all hosts. If hosts have a network\n"
        "of their own (umbel up --ipoib or --roce-hosts), it is on that of the host.\n"
        "\n"
        "  -n, --name NAME   the fabric (default: $UMBEL_FABRIC, else 'default')\n"
        "      --net host    keep the network, and host name, that umbel runs on\n"
        "  -h, --help        this text\n"
        "\n"
        "Exit status: the command's; 126 or 127 if it cannot run; 1 if the fabric is not up.\n";

static int exec_run(const struct cli_command *self, int argc, char **argv)
{
	static const struct option options[] = {
		{ "name", required_argument, NULL, 'n' },
		{ "net", required_argument, NULL, 'N' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int dashes = cli_find_dashes(argc, argv);
	const char *name = NULL, *host = NULL;
	bool stay = false;
	int opt, ret;

	while ((opt = getopt_long(dashes, argv, "+:n:h", options, NULL)) != -1) {
		if (opt == 'n')
			name = optarg;
		else if (opt == 'N' && !strcmp(optarg, "host"))
			stay = true;
		else if (opt == 'N')
			return cli_usage_error(self, "no network '%s': host", optarg);
		else
			return cli_option_end(self, opt, argv);
	}
	if (dashes - optind > 1)
		return cli_usage_error(self, "one host, then '--' and the command");
	if (dashes > argc - 2)
		return cli_usage_error(self, "'--' and a command are missing");
	if (optind < dashes)
		host = argv[optind];
	name = cli_fabric_name(name);
	ret = cli_check_host(name, host);
	if (!ret)
		ret = cli_environ_set(name, host);
	if (!ret && host && !stay)
		ret = cli_enter_host(name, host, false);
	return ret ? ret : cli_exec_command(argv + dashes + 1);
}

const struct cli_command cli_exec = {
	.name = "exec",
	.summary = "run a program on a host of a fabric",
	.help = help,
	.run = exec_run,
};
