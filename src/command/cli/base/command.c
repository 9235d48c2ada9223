/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arguments, as all commands read them: see command.h. No state but getopt's.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/base/command.h"

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

int cli_find_dashes(int argc, char **argv)
{
	int i;

	for (i = 0; i < argc && strcmp(argv[i], "--"); i++)
		;
	return i;
}

int cli_cannot(const char *verb, const char *path)
{
	base_log("cannot %s '%s': %s", verb, path ? path : "-", strerror(errno));
	return CLI_FAILED;
}

int cli_no_memory(void)
{
	base_log("%s", strerror(ENOMEM));
	return CLI_FAILED;
}

int cli_output_failed(void)
{
	base_log("cannot write the output: %s", strerror(errno));
	return CLI_FAILED;
}

int cli_finish(int status)
{
	if (fflush(stdout) && status == CLI_OK)
		return cli_output_failed();
	if (ferror(stdout) && status == CLI_OK) { /* what came after it was written */
		base_log("cannot write all of the output");
		return CLI_FAILED;
	}
	return status;
}
