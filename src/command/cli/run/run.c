/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel run`: a private fabric for one command, gone when it ends. The fabric lives in a
 * directory of its own, so the command, and whatever it starts, finds no other fabric.
 * Signals to umbel are passed on to the command. All daemons in the directory, that of an `umbel
 * up` of the command's too, end when we do, even if we are killed (control/owner.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/fabric/daemon_process.h"
#include "cli/fabric/down.h"
#include "cli/base/environ.h"
#include "cli/base/fabrics.h"
#include "cli/fabric/faults.h"
#include "cli/base/json.h"
#include "cli/run/child.h"
#include "cli/run/checked.h"
#include "cli/run/junit.h"
#include "cli/run/weak.h"
#include "cli/base/options.h"
#include "cli/base/signals.h"
#include "control/client.h"
#include "control/directory.h"
#include "control/owner.h"

static const char help[] =
        "Usage: umbel run [OPTION]... -- COMMAND [ARGUMENT]...\n"
        "\n"
        "Starts a private fabric, runs the command on it, and ends the fabric. In the command,\n"
        "'umbel' is on the PATH and means this fabric.\n";

static const char help_end[] =
        "Exit status: the command's; 128 and the signal's number if a signal ended it; 126 or\n"
        "127 if it cannot run; 99 if --checked found errors; 125 if the fabric failed, such as by "
        "a killed daemon, whatever the\n"
        "command's status; so it is if a rule of --faults is wrong, or has not fired.\n";

struct run {
	struct cli_fabric_options fabric;
	const char *host, *faults, *report;
	struct cli_junit junit;
	struct cli_checked checked;
	struct cli_weak weak;
	char **command;
	char name[CLI_NAME_MAX + 1];
	char dir[PATH_MAX];   /* the private runtime directory */
	sigset_t old_signals; /* what was blocked before */
	int owner_fd;         /* makes the directory ours */
	struct cli_daemon_process daemon;
	struct cli_child child; /* the command */
	uint64_t command_ns;    /* it has run for so long */
	bool idle_rule;         /* one has not fired */
};

/* Makes the private directory, a hidden one in the runtime directory, and makes it the runtime
 * directory from here on. */
static int make_private_dir(struct run *r)
{
	char runtime[PATH_MAX];
	int ret;

	if (cli_runtime_dir(runtime) || cli_make_dir(runtime))
		return CLI_FABRIC_FAILED;
	ret = snprintf(r->dir, sizeof(r->dir), "%s/" CONTROL_OWNED_PREFIX "XXXXXX", runtime) <
	                      PATH_MAX
	              ? 0
	              : -ENAMETOOLONG;
	if (!ret && !mkdtemp(r->dir))
		ret = -errno;
	if (ret) {
		base_log("cannot make a directory in '%s': %s", runtime, strerror(-ret));
		return CLI_FABRIC_FAILED;
	}
	setenv("UMBEL_RUNTIME_DIR", r->dir, 1);
	snprintf(r->name, sizeof(r->name), "run-%d", (int)getpid());
	r->fabric.daemon.fabric = r->name;
	return 0;
}

static int own_private_dir(struct run *r)
{
	r->owner_fd = control_owner_become(r->dir);
	if (r->owner_fd >= 0)
		return 0;
	if (r->owner_fd == -ENAMETOOLONG)
		base_log("the path of the runtime directory is too long for a socket; set "
		         "UMBEL_RUNTIME_DIR to a shorter one");
	else
		base_log("cannot make a socket in '%s': %s", r->dir, strerror(-r->owner_fd));
	return CLI_FABRIC_FAILED;
}

static int start_fabric(struct run *r)
{
	struct cli_daemon_process_start how = {
		.fabric = &r->fabric,
		.remove_dir = r->dir,
		.interrupt_fd = r->child.signal_fd,
	};
	bool typed;
	int signo;

	if (!cli_daemon_process_start(&r->daemon, &how))
		return 0;
	signo = cli_signals_next(r->child.signal_fd, &typed);
	return signo ? 128 + signo : CLI_FABRIC_FAILED;
}

/* In the child: becomes the command. */
static _Noreturn void become_command(struct run *r)
{
	int ret = cli_environ_set(r->name, r->host);

	if (!ret && r->host)
		ret = cli_enter_host(r->name, r->host, false);
	sigprocmask(SIG_SETMASK, &r->old_signals, NULL);
	_exit(ret ? CLI_FABRIC_FAILED : cli_exec_command(r->command));
}

static int start_command(struct run *r)
{
	int ret;

	if (r->host) {
		ret = cli_check_host(r->name, r->host);
		if (ret)
			return ret;
	}
	switch (cli_child_fork(&r->child)) {
	case -1:
		return CLI_FABRIC_FAILED;
	case 0:
		become_command(r);
	default:
		return 0;
	}
}

static int wait_command(struct run *r)
{
	const uint64_t begun = base_now_ns();
	int ret = cli_child_wait(&r->child);

	r->command_ns = base_now_ns() - begun;
	return ret;
}

/* Ends the fabric, and those that the command has started in its directory. @status, the command's,
 * unless the fabric failed: then that is worth nothing. */
static int end_fabric(struct run *r, int status)
{
	int daemon;

	cli_end_fabrics(r->name);
	close(r->owner_fd);
	daemon = cli_daemon_process_stop(&r->daemon);
	if (WIFEXITED(daemon) && WEXITSTATUS(daemon) == 0)
		return status;
	if (WIFSIGNALED(daemon) && !r->daemon.stuck)
		base_log("the daemon was ended by signal %d; the command's status was %d",
		         WTERMSIG(daemon), status);
	else if (!r->daemon.stuck)
		base_log("the daemon failed with status %d; the command's status was %d",
		         WEXITSTATUS(daemon), status);
	cli_daemon_process_print_log(r->name);
	cli_junit_case(&r->junit, "umbel.run", "fabric", 0, CLI_JUNIT_ERROR,
	               "the fabric failed: umbel run says why");
	return CLI_FABRIC_FAILED;
}

/* ---- rules that must fire ---- */

static void tell_rule(void *arg, const char *rule, long fired)
{
	struct run *r = arg;

	cli_junit_case(&r->junit, "umbel.faults", rule, 0,
	               fired ? CLI_JUNIT_PASSED : CLI_JUNIT_FAILED, "the fault has not fired");
	if (fired)
		return;
	r->idle_rule = true;
	if (!r->child.status)
		base_log("the fault '%s' has not fired", rule);
}

/* @status, the command's; if it has succeeded, and a rule has not fired, that of a failure. A
 * report has the rules in any case. */
static int judge_rules(struct run *r, int status)
{
	int ret;

	if (!r->faults || (status && !r->junit.file))
		return status;
	ret = cli_faults_each(r->name, tell_rule, r);
	if (ret)
		cli_junit_case(&r->junit, "umbel.faults", r->faults, 0, CLI_JUNIT_ERROR,
		               "the fabric does not say which faults have fired");
	if (r->idle_rule)
		ret = CLI_FABRIC_FAILED;
	return status ? status : ret;
}

/* ---- the report ---- */

/* The words with blanks between them; to be freed. */
static char *join(const char *const *words, size_t n)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	for (size_t i = 0; to && i < n; i++)
		fprintf(to, "%s%s", i ? " " : "", words[i]);
	if (to)
		fclose(to);
	return text;
}

static void report_fabric(struct run *r)
{
	static const char *const counts[] = { "hosts", "switches" };
	char *options = join(r->fabric.given.at, r->fabric.given.n);
	struct json_object *status = NULL;
	struct control_client *client;

	if (r->junit.file && !cli_connect(&client, r->name)) {
		status = cli_request_json(client, "status");
		control_close(client);
	}
	cli_junit_property(&r->junit, "fabric", options ? options : "");
	for (size_t i = 0; status && i < ARRAY_SIZE(counts); i++) {
		char number[32];

		snprintf(number, sizeof(number), "%ld", cli_json_number(status, counts[i]));
		cli_junit_property(&r->junit, counts[i], number);
	}
	if (r->host)
		cli_junit_property(&r->junit, "host", r->host);
	json_object_put(status);
	free(options);
}

static char *command_text(const struct run *r)
{
	size_t n = 0;

	while (r->command[n])
		n++;
	return join((const char *const *)r->command, n);
}

static void report_command(struct run *r, int status)
{
	const bool ended = r->child.pid > 0;
	enum cli_junit_outcome outcome = CLI_JUNIT_FAILED;
	char why[128], *name = command_text(r);

	if (!ended && status > 128)
		snprintf(why, sizeof(why), "signal %d ended it before it was started",
		         status - 128);
	else if (!ended)
		snprintf(why, sizeof(why), "it was not started: umbel run says why");
	else if (WIFSIGNALED(r->child.status))
		snprintf(why, sizeof(why), "ended by signal %d (%s)", WTERMSIG(r->child.status),
		         strsignal(WTERMSIG(r->child.status)));
	else
		snprintf(why, sizeof(why), "exit status %d", WEXITSTATUS(r->child.status));
	if (!ended)
		outcome = CLI_JUNIT_ERROR;
	else if (!r->child.status)
		outcome = CLI_JUNIT_PASSED;
	cli_junit_case(&r->junit, "umbel.run", name ? name : "", r->command_ns, outcome, why);
	free(name);
}

/* ---- from start to end ---- */

static int run_command(struct run *r)
{
	int ret;

	r->child.signal_fd = cli_signals_open(&r->old_signals);
	if (r->child.signal_fd < 0)
		return CLI_FABRIC_FAILED;
	ret = make_private_dir(r);
	if (ret)
		goto out_signals;
	ret = own_private_dir(r);
	if (ret)
		goto out_dir;
	ret = cli_weak_begin(&r->weak); /* the daemon is weak, too */
	if (!ret)
		ret = start_fabric(r);
	if (ret)
		goto out_owner;
	report_fabric(r);
	ret = r->faults ? cli_faults_read(r->name, r->faults) : 0;
	if (!ret)
		ret = cli_checked_begin(&r->checked, &r->junit);
	if (!ret)
		ret = start_command(r);
	if (!ret) {
		ret = wait_command(r);
		report_command(r, ret);
		ret = judge_rules(r, ret);
		ret = cli_checked_end(&r->checked, ret);
	}
	ret = end_fabric(r, ret);
	goto out_dir;
out_owner:
	close(r->owner_fd);
out_dir:
	control_remove_dir(r->dir);
out_signals:
	close(r->child.signal_fd);
	return ret;
}

/* In a child, for each run of a search. */
static int run_copy(void *arg)
{
	struct run copy = *(const struct run *)arg;

	copy.weak.on = false; /* its environment says what is weak */
	copy.junit = (struct cli_junit){ 0 };
	return run_command(&copy);
}

/* Looks for a seed with which the command fails: for the report all runs are one. */
static int search(struct run *r)
{
	const uint64_t begun = base_now_ns();
	const int ret = cli_weak_search(&r->weak, run_copy, r);
	char *name = command_text(r);
	char why[64];

	snprintf(why, sizeof(why), "exit status %d: umbel run says with which seed", ret);
	cli_junit_case(&r->junit, "umbel.weak", name ? name : "", base_now_ns() - begun,
	               ret ? CLI_JUNIT_FAILED : CLI_JUNIT_PASSED, why);
	free(name);
	return ret;
}

static const struct cli_option options[] = {
	{ .more = cli_fabric_rows },
	{ "      --host HOST       run on this host (default: on all of them at once)\n",
	  CLI_TEXT(struct run, host) },
	{ "      --faults FILE     rules as of 'umbel fault add', a line each, that hold from the "
	  "start;\n"
	  "                        if one has not fired when the command succeeds, run fails\n",
	  CLI_TEXT(struct run, faults) },
	{ .more = cli_checked_rows, .offset = offsetof(struct run, checked) },
	{ .more = cli_weak_rows, .offset = offsetof(struct run, weak) },
	{ .more = cli_weak_search_rows, .offset = offsetof(struct run, weak) },
	{ "      --junit FILE      a report for CI systems: how the command ended, and which rules "
	  "have\n"
	  "                        fired\n",
	  CLI_TEXT(struct run, report) },
	{ .line = "  -h, --help            this text\n" },
};

/* Once, with a case of the report for how the command ended. */
static int run_reported(struct run *r)
{
	const int ret = run_command(r);

	if (!r->child.pid)
		report_command(r, ret);
	return ret;
}

static int run_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	int dashes = cli_find_dashes(argc, argv), ret;
	struct run *r = from;

	if (dashes > 0)
		return cli_usage_error(self, "put '--' before '%s'", argv[0]);
	if (argc < 2)
		return cli_usage_error(self, "'--' and a command are missing");
	r->command = argv + 1;
	ret = cli_weak_check(&r->weak);
	if (ret)
		return ret;
	if (r->report && cli_junit_begin(&r->junit, r->report, "umbel run"))
		return CLI_FABRIC_FAILED;
	ret = cli_fabric_options_end(self, &r->fabric);
	if (ret) {
		ret = ret == CLI_FAILED ? CLI_FABRIC_FAILED : ret;
		report_command(r, ret);
	} else {
		ret = cli_weak_searches(&r->weak) ? search(r) : run_reported(r);
	}
	if (cli_junit_end(&r->junit) && !ret)
		ret = CLI_FABRIC_FAILED;
	return ret;
}

const struct cli_command cli_run = {
	.name = "run",
	.summary = "run a program on a fabric of its own",
	.help = help,
	.help_end = help_end,
	CLI_OPTIONS(options, struct run),
	.defaults = &(const struct run){ .fabric = CLI_FABRIC_DEFAULTS },
	.has_command = true,
	.execute = run_execute,
};
