/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all commands do with their arguments: see command.h. No state but getopt's.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/fabrics.h"

int cli_usage_error(const struct cli_command *cmd, const char *format, ...)
{
	char message[512];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	base_log("%s: %s; see umbel %s --help", cmd->name, message, cmd->name);
	return CLI_USAGE;
}

int cli_option_end(const struct cli_command *cmd, int got, char **argv)
{
	const char *word = argv[optind - 1];

	if (got == 'h') {
		fputs(cmd->help, stdout);
		return CLI_OK;
	}
	if (got == ':')
		return cli_usage_error(cmd, "option '%s' needs a value", word);
	if (strncmp(word, "--", 2) || (optopt && !strchr(word, '=')))
		return cli_usage_error(cmd, "no option '-%c'", optopt);
	if (optopt)
		return cli_usage_error(cmd, "option '%.*s' takes no value", (int)strcspn(word, "="),
		                       word);
	return cli_usage_error(cmd, "no option '%s'", word);
}

int cli_words(const struct cli_command *cmd, int argc, char **argv, const char **name, int *status)
{
	static const struct option options[] = {
		{ "name", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *fabric = NULL;
	int opt;

	while ((opt = getopt_long(argc, argv, "+:n:h", options, NULL)) != -1) {
		if (opt != 'n') {
			*status = cli_option_end(cmd, opt, argv);
			return -1;
		}
		fabric = optarg;
	}
	*name = cli_fabric_name(fabric);
	return 0;
}

int cli_find_dashes(int argc, char **argv)
{
	int i;

	for (i = 0; i < argc && strcmp(argv[i], "--"); i++)
		;
	return i;
}

int cli_finish(int status)
{
	if (fflush(stdout) && status == CLI_OK) {
		base_log("cannot write the output: %s", strerror(errno));
		return CLI_FAILED;
	}
	return status;
}
