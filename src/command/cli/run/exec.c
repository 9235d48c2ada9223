/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel exec`: any program, unmodified, on a host of a running fabric. umbel becomes the program,
 * so signals and exit status are the program's own; of a checked one it is the parent (checked.h).
 * With
 * --all: exec_all.c.
 */
#include <stdbool.h>
#include <string.h>

#include "cli/base/command.h"
#include "cli/base/environ.h"
#include "cli/run/checked.h"
#include "cli/run/weak.h"
#include "cli/run/exec_all.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"

#define JOBS 32 /* by default */

static const char help[] =
        "Usage: umbel exec [OPTION]... [HOST] -- COMMAND [ARGUMENT]...\n"
        "       umbel exec [OPTION]... --all -- COMMAND [ARGUMENT]...\n"
        "\n"
        "Runs the command on a host of a running fabric: it sees the RDMA devices of that\n"
        "host and no others. Without a host it sees those of all hosts. If hosts have a network\n"
        "of their own (umbel up --ipoib or --roce-hosts), it is on that of the host.\n"
        "With --all it runs once on each host, and what it prints has the host's name before it.\n";

static const char help_end[] =
        "Exit status: the command's, of all the first one that is not 0; 126 or 127 if it cannot\n"
        "run; 1 if the fabric is not up; 99 if --checked found errors.\n";

struct options {
	const char *name;
	bool stay; /* on the network that umbel runs on */
	bool sockets;
	bool all;
	struct cli_checked checked;
	struct cli_weak weak;
	long jobs; /* 0: not given */
};

static int store_net(const struct cli_value *v, void *to)
{
	if (strcmp(v->text, "host"))
		return cli_usage_error(v->cmd, "no network '%s': host", v->text);
	return cli_store_flag(v, to);
}

static const struct cli_option options[] = {
	{ CLI_NAME_LINE, CLI_TEXT(struct options, name) },
	{ "      --net host    keep the network, and host name, that umbel runs on\n",
	  CLI_STORE(store_net, struct options, stay) },
	{ "      --sockets     its TCP connections to addresses of the fabric are rsockets\n",
	  CLI_FLAG(struct options, sockets) },
	{ "      --all         on each host\n", CLI_FLAG(struct options, all) },
	{ "      --jobs N      with --all: on so many hosts at once (default: 32)\n",
	  CLI_NUMBER(struct options, jobs, 1, CLI_MOST_JOBS) },
	{ .more = cli_checked_rows, .offset = offsetof(struct options, checked) },
	{ .more = cli_weak_rows, .offset = offsetof(struct options, weak) },
	CLI_HELP_ROW,
};

/* As the program, or with it as a child whose reports count. */
static int exec_here(struct options *o, const char *name, const char *host, char **argv)
{
	int ret = cli_checked_begin(&o->checked, NULL);

	if (!ret)
		ret = cli_environ_set(name, host);
	if (!ret && host && !o->stay)
		ret = cli_enter_host(name, host, false);
	if (ret)
		return cli_checked_end(&o->checked, ret);
	return o->checked.on ? cli_checked_exec(&o->checked, argv) : cli_exec_command(argv);
}

static int exec_on_all(struct options *o, char **argv)
{
	int ret = cli_checked_begin(&o->checked, NULL);

	if (!ret)
		ret = cli_exec_all(
		        &(struct cli_exec_all){ .fabric = cli_fabric_name(o->name),
		                                .stay = o->stay,
		                                .jobs = o->jobs ? (unsigned)o->jobs : JOBS,
		                                .argv = argv });
	return cli_checked_end(&o->checked, ret);
}

static int exec_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	struct options *o = from;
	const char *name = cli_fabric_name(o->name), *host;
	int dashes = cli_find_dashes(argc, argv), ret;

	if (dashes > 1)
		return cli_usage_error(self, "one host, then '--' and the command");
	if (dashes > argc - 2)
		return cli_usage_error(self, "'--' and a command are missing");
	host = dashes ? argv[0] : NULL;
	if (o->all && host)
		return cli_usage_error(self, "either --all or a host, not '%s' too", host);
	if (o->jobs && !o->all)
		return cli_usage_error(self, "--jobs goes with --all");
	if (o->sockets && cli_environ_preload("libumbel-sockets.so"))
		return CLI_FAILED;
	ret = cli_check_host(name, host);
	if (ret)
		return ret;
	if (o->weak.on && !o->weak.text)
		return cli_usage_error(self, "--weak=SEED: 'umbel run --weak' looks for a seed");
	ret = cli_weak_check(&o->weak);
	if (!ret)
		ret = cli_weak_begin(&o->weak);
	if (ret)
		return ret;
	cli_checked_by_fabric(&o->checked, name);
	if (o->all)
		return exec_on_all(o, argv + dashes + 1);
	return exec_here(o, name, host, argv + dashes + 1);
}

const struct cli_command cli_exec = {
	.name = "exec",
	.summary = "run a program on a host of a fabric",
	.help = help,
	.help_end = help_end,
	CLI_OPTIONS(options, struct options),
	.has_command = true,
	.execute = exec_execute,
};
