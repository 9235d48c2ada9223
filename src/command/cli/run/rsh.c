/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel rsh`: what ssh does, on a host of a fabric: for launchers that start their programs by it,
 * such as those of MPI. Called `umbel-rsh` it is the same, for those that take no command of two
 * words.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/environ.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"

static const char help[] =
        "Usage: umbel rsh [OPTION]... HOST [COMMAND [ARGUMENT]...]\n"
        "\n"
        "Runs the command on a host of a fabric as ssh would: a shell reads it, and all words\n"
        "of it are one line. Without a command it is a shell. In place of ssh it serves\n"
        "launchers: mpirun --mca plm_rsh_agent 'umbel rsh' (Open MPI), mpiexec -launcher-exec\n"
        "umbel-rsh (MPICH). Options of ssh's that mean nothing here are passed over.\n";

/* Options of ssh that have a value, and those that have none. Which the help lists are not among
 * them. */
#define SSH_OPTIONS "B:b:c:D:E:e:F:I:i:J:L:l:m:O:o:p:Q:R:S:W:w:46AaCfGgKkMNqsTtVvXxYy"

/* The words in one, with blanks between; NULL: no memory. */
static char *join(char **words)
{
	size_t bytes = 1;
	char *line;

	for (char **w = words; *w; w++)
		bytes += strlen(*w) + 1;
	line = calloc(1, bytes);
	for (char **w = words; line && *w; w++) {
		strcat(line, *w);
		if (w[1])
			strcat(line, " ");
	}
	return line;
}

/* Becomes a shell that reads the words; if there are none, one that asks. Returns the exit status.
 */
static int exec_shell(char **words)
{
	const char *shell = getenv("SHELL");
	char *line = *words ? join(words) : NULL;
	char *argv[] = { (char *)(shell && *shell ? shell : "/bin/sh"), line ? "-c" : NULL, line,
		         NULL };
	int ret;

	if (*words && !line) {
		base_log("no memory");
		return CLI_FAILED;
	}
	ret = cli_exec_command(argv);
	free(line);
	return ret;
}

/* Standard input is empty. */
static int close_input(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
		return CLI_FAILED;
	close(fd);
	return 0;
}

struct options {
	const char *name;
	bool no_input;
};

static const struct cli_option options[] = {
	{ "      --name NAME       the fabric (default: $UMBEL_FABRIC, else 'default')\n",
	  CLI_TEXT(struct options, name) },
	{ "  -n, --no-input        standard input is /dev/null\n",
	  CLI_FLAG(struct options, no_input) },
	{ .line = "  -h, --help            this text\n" },
};

static int rsh_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	const struct options *o = from;
	const char *name = cli_fabric_name(o->name), *host = argv[0], *at;
	int ret;

	if (argc < 1)
		return cli_usage_error(self, "which host?");
	at = strchr(host, '@'); /* the user is the same everywhere */
	host = at ? at + 1 : host;
	ret = cli_check_host(name, host);
	if (!ret)
		ret = cli_environ_set(name, host);
	if (!ret)
		ret = cli_enter_host(name, host, false);
	if (!ret && o->no_input)
		ret = close_input();
	return ret ? ret : exec_shell(argv + 1);
}

const struct cli_command cli_rsh = {
	.name = "rsh",
	.summary = "run a command on a host as ssh would, for launchers",
	.help = help,
	.help_end = "Exit status: the command's.\n",
	.runs_words = true,
	CLI_OPTIONS(options, struct options),
	.ignored = SSH_OPTIONS,
	.execute = rsh_execute,
};
