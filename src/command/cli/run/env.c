/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel env`: what `umbel exec` puts into the environment, as text: for a shell whose commands are
 * to run on a host, and for the files by which CI systems pass variables on.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/environ.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"

static const char help[] =
        "Usage: umbel env [OPTION]... [HOST]\n"
        "\n"
        "Prints commands for a shell, after which the programs that it starts see the RDMA\n"
        "devices of that host, or without a host of all, as under umbel exec:\n"
        "\n"
        "  eval \"$(umbel env h1)\"\n";

static const char help_end[] =
        "The network, and host name, are those of the shell, as with umbel exec --net host.\n";

struct options {
	const char *name;
	bool plain;
};

static const struct cli_option options[] = {
	{ CLI_NAME_LINE, CLI_TEXT(struct options, name) },
	{ "      --plain       lines NAME=VALUE without quotes, as GITHUB_ENV and 'docker "
	  "--env-file'\n"
	  "                    have them; without PATH\n",
	  CLI_STORE(cli_store_flag, struct options, plain) },
	CLI_HELP_ROW,
};

/* In single quotes all stands for itself, but a single quote. */
static void print_export(const char *name, const char *value)
{
	printf("export %s='", name);
	for (; *value; value++) {
		if (*value == '\'')
			printf("'\\''");
		else
			putchar(*value);
	}
	printf("'\n");
}

static int print_variable(const char *name, bool plain)
{
	const char *value = getenv(name);

	if (!value && !plain)
		printf("unset %s\n", name);
	else if (value && !plain)
		print_export(name, value);
	else if (value && strchr(value, '\n')) {
		base_log("%s has a line break, which --plain cannot say", name);
		return CLI_FAILED;
	} else if (value && strcmp(name, "PATH") != 0)
		printf("%s=%s\n", name, value);
	return CLI_OK;
}

static int env_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	/* what cli_environ_set() sets */
	static const char *const names[] = {
		"PATH",         "LD_LIBRARY_PATH", "LD_PRELOAD",        "ASAN_OPTIONS",
		"TSAN_OPTIONS", "VALGRIND_OPTS",   "UMBEL_RUNTIME_DIR", "UMBEL_FABRIC",
		"UMBEL_HOST",   "OSM_CACHE_DIR",   "OSM_TMP_DIR"
	};
	const struct options *o = from;
	const char *name = cli_fabric_name(o->name), *host = argc ? argv[0] : NULL;
	int ret;

	if (argc > 1)
		return cli_usage_error(self, "one host");
	ret = cli_check_host(name, host);
	if (!ret)
		ret = cli_environ_set(name, host);
	for (size_t i = 0; i < ARRAY_SIZE(names) && !ret; i++)
		ret = print_variable(names[i], o->plain);
	if (!ret && host && cli_has_network(name, host))
		base_log("host '%s' has a network of its own, to which a shell cannot go by this; "
		         "it takes umbel exec",
		         host);
	return ret ? ret : cli_finish(CLI_OK);
}

const struct cli_command cli_env = {
	.name = "env",
	.summary = "print what lets a shell's programs run on a host",
	.help = help,
	.help_end = help_end,
	CLI_OPTIONS(options, struct options),
	.execute = env_execute,
};
