/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel litmus`: the litmus tests of RDMA (programs/litmus) on a strong and on a weak fabric. It
 * becomes, or has as a child, `umbel run -- umbel-litmus`.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/environ.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"

static const char help[] =
        "Usage: umbel litmus [OPTION]... [TEST]...\n"
        "\n"
        "Runs short programs whose outcomes say how strong a fabric is: which the specification\n"
        "allows, which of them a strong fabric shows, and which only a weak one does.\n";

struct options {
	bool lists, table;
	long rounds, seed; /* 0: not given */
};

static const struct cli_option options[] = {
	{ "  -l, --list        the tests, and what each shows\n", CLI_FLAG(struct options, lists) },
	{ "      --table       the tests as a table of Markdown\n",
	  CLI_FLAG(struct options, table) },
	{ "      --rounds N    so often each (default: 10000)\n",
	  CLI_NUMBER(struct options, rounds, 1, 1000000000) },
	{ "      --seed N      of the weak fabric (default: 1)\n",
	  CLI_NUMBER(struct options, seed, 1, UINT32_MAX) },
	CLI_HELP_ROW,
};

#define WORDS 16 /* before the tests' names */

struct words {
	char *at[WORDS + 256];
	unsigned n;
};

static void add(struct words *w, const char *word)
{
	if (w->n < ARRAY_SIZE(w->at) - 1)
		w->at[w->n++] = (char *)word;
}

static int run_child(char **argv)
{
	const pid_t pid = fork();
	int status;

	if (!pid) {
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		base_log("cannot run umbel: %s", strerror(errno));
		return CLI_FAILED;
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* On a strong fabric if @weak is NULL. */
static int run(const struct options *o, const char *weak, int argc, char **argv)
{
	char rounds[32];
	struct words w = { 0 };

	snprintf(rounds, sizeof(rounds), "%ld", o->rounds);
	add(&w, "umbel");
	add(&w, "run");
	add(&w, "--hosts");
	add(&w, "3");
	if (weak)
		add(&w, weak);
	add(&w, "--");
	add(&w, "umbel-litmus");
	add(&w, weak ? "--weak" : "--strong");
	if (o->rounds) {
		add(&w, "--rounds");
		add(&w, rounds);
	}
	for (int i = 0; i < argc; i++)
		add(&w, argv[i]);
	printf("%s:\n", weak ? "On a weak fabric" : "On a strong fabric");
	fflush(stdout);
	return run_child(w.at);
}

static int litmus_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	char *const list[] = { (char *)"umbel-litmus", (char *)"--list", NULL };
	char *const table[] = { (char *)"umbel-litmus", (char *)"--table", NULL };
	const struct options *o = from;
	char weak[32];
	int strong_ret, weak_ret;

	(void)self;
	if (o->lists || o->table) {
		cli_exec_own(cli_fabric_name(NULL), NULL, (char **)(o->table ? table : list));
		return CLI_FAILED;
	}
	snprintf(weak, sizeof(weak), "--weak=%ld", o->seed ? o->seed : 1);
	strong_ret = run(o, NULL, argc, argv);
	if (strong_ret > 1)
		return strong_ret;
	weak_ret = run(o, weak, argc, argv);
	return strong_ret ? strong_ret : weak_ret;
}

const struct cli_command cli_litmus = {
	.name = "litmus",
	.summary = "show which orders of operations a fabric allows",
	.help = help,
	.help_end = "Exit status: 0; 1 if an outcome is wrong, 2 if no such test is there.\n",
	CLI_OPTIONS(options, struct options),
	.execute = litmus_execute,
};
