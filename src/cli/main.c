/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program `umbel`: finds the command in the table and runs it. The commands
 * are one file each; this one only knows their names.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/cli.h"

static const struct cli_command *const commands[] = {
	&cli_up,     &cli_down, &cli_run,    &cli_exec, &cli_show,   &cli_set,
	&cli_status, &cli_link, &cli_switch, &cli_sm,   &cli_daemon,
};

static void print_help(void)
{
	printf("A software RDMA fabric: unmodified RDMA programs on a machine without RDMA.\n"
	       "\n"
	       "Usage: umbel COMMAND [OPTION]...\n"
	       "\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (commands[i]->summary)
			printf("  %-8s %s\n", commands[i]->name, commands[i]->summary);
	}
	printf("\n"
	       "  umbel COMMAND --help     what a command takes\n"
	       "  umbel --version          the version\n"
	       "\n"
	       "The fabric is the one given with --name, else $UMBEL_FABRIC, else 'default'.\n");
}

static const struct cli_command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct cli_command *cmd;

	if (argc < 2) {
		base_log("which command? see umbel --help");
		return CLI_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_help();
		return cli_finish(CLI_OK);
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("umbel %s\n", UMBEL_VERSION);
		return cli_finish(CLI_OK);
	}
	cmd = find_command(argv[1]);
	if (!cmd) {
		base_log("no command '%s'; see umbel --help", argv[1]);
		return CLI_USAGE;
	}
	return cli_finish(cmd->run(cmd, argc - 1, argv + 1));
}
