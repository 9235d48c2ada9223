/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program `umbel`: finds the command in the table and runs it. Each command is a
 * file; no other file names them all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/help.h"
#include "cli/base/options.h"

/* All commands, in the order of `umbel --help`. A new one is a line here. */
#define COMMANDS(X) \
	X(up)       \
	X(down)     \
	X(run)      \
	X(exec)     \
	X(env)      \
	X(rsh)      \
	X(mpirun)   \
	X(litmus)   \
	X(simulate) \
	X(ibsim)    \
	X(show)     \
	X(top)      \
	X(explain)  \
	X(check)    \
	X(monitor)  \
	X(capture)  \
	X(ladder)   \
	X(set)      \
	X(status)   \
	X(sysfs)    \
	X(wait)     \
	X(link)     \
	X(fault)    \
	X(switch)   \
	X(router)   \
	X(sm)       \
	X(daemon)

#define DECLARE(name) extern const struct cli_command cli_##name;
COMMANDS(DECLARE)

#define POINT(name) &cli_##name,
static const struct cli_command *const commands[] = { COMMANDS(POINT) };

static void print_help(void)
{
	char line[256];

	printf("A software RDMA fabric: unmodified RDMA programs on a machine without RDMA.\n"
	       "\n"
	       "Usage: umbel COMMAND [OPTION]...\n"
	       "\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!commands[i]->summary)
			continue;
		snprintf(line, sizeof(line), "  %-9s %s\n", commands[i]->name,
		         commands[i]->summary);
		cli_help_print(line, stdout);
	}
	printf("\n"
	       "  umbel COMMAND --help     what a command takes; also: umbel help COMMAND\n"
	       "  umbel --version          the version\n"
	       "\n"
	       "The fabric is the one given with --name, else $UMBEL_FABRIC, else 'default'.\n"
	       "\n"
	       "UMBEL_LOG=LEVEL,PART=LEVEL... in the environment: what is logged, by programs\n"
	       "to standard error and by the daemon to its log file. A level is off, error,\n"
	       "warning, info, debug or trace, a part one of these:\n"
	       "\n");
	for (unsigned i = 0; base_log_part_name(i); i++)
		printf("    %-8s %s\n", base_log_part_name(i), base_log_part_text(i));
}

static const struct cli_command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	}
	return NULL;
}

/* `umbel help [COMMAND]` */
static int help(const char *name)
{
	const struct cli_command *cmd = name ? find_command(name) : NULL;

	if (name && !cmd) {
		base_log("no command '%s'; see umbel --help", name);
		return CLI_USAGE;
	}
	if (cmd)
		cli_print_help(cmd);
	else
		print_help();
	return cli_finish(CLI_OK);
}

/* Reads the command's options and does what it is for. */
static int run(const struct cli_command *cmd, int argc, char **argv)
{
	static void *options; /* static: leak checkers see its memory at the end */
	int ret;

	options = calloc(1, cmd->bytes);
	if (!options)
		return cli_no_memory();
	if (cmd->defaults)
		memcpy(options, cmd->defaults, cmd->bytes);
	ret = cli_read_options(cmd, argc, argv, options);
	if (ret)
		return ret == CLI_HELPED ? CLI_OK : ret;
	return cmd->execute(cmd, options, argc - optind, argv + optind);
}

/* If one of the first three descriptors is closed, a connection would have its number, and get what
 * is printed. Reading and writing fails with EBADF still, and a command that we become finds it
 * closed. */
static void hold_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) != fd)
			return; /* not even the root: nothing else will open */
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	const struct cli_command *cmd;

	hold_standard_streams();
	base_log_start(BASE_LOG_WARNING);
	if (!strcmp(slash ? slash + 1 : argv[0], "umbel-rsh"))
		return cli_finish(run(find_command("rsh"), argc, argv));
	if (argc < 2) {
		base_log("which command? see umbel --help");
		return CLI_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return help(NULL);
	if (!strcmp(argv[1], "help"))
		return help(argv[2]);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("umbel %s\n", UMBEL_VERSION);
		return cli_finish(CLI_OK);
	}
	cmd = find_command(argv[1]);
	if (!cmd) {
		base_log("no command '%s'; see umbel --help", argv[1]);
		return CLI_USAGE;
	}
	return cli_finish(run(cmd, argc - 1, argv + 1));
}
