/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel down`: ends a fabric, or all of this user's, and removes what it or a dead
 * daemon left. It returns when the daemon is gone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/newer_libc.h"
#include "cli/fabric/daemon_process.h"
#include "cli/fabric/down.h"
#include "cli/base/fabrics.h"
#include "cli/base/options.h"
#include "control/client.h"

static const char help[] =
        "Usage: umbel down [OPTION]...\n"
        "\n"
        "Ends a fabric. Programs that still run on it get IBV_EVENT_DEVICE_FATAL and errors.\n";

/* A daemon that is to end, found without its help. */
struct target {
	const char *name;
	int sock;  /* hangs up when the daemon ends */
	pid_t pid; /* 0: in a PID namespace that is out of sight */
	int pidfd; /* -1 where there is none: see @pid, or a seccomp filter denies it */
};

/* 0, or the error of control_find_daemon(). */
static int find_target(struct target *t, const char *name)
{
	char path[PATH_MAX];
	int ret = cli_socket_path(path, name);

	if (ret)
		return ret;
	t->name = name;
	t->sock = control_find_daemon(path, &t->pid);
	if (t->sock < 0)
		return t->sock;
	t->pidfd = t->pid > 0 ? pidfd_open(t->pid, 0) : -1;
	return 0;
}

static void forget_target(struct target *t)
{
	close(t->sock);
	if (t->pidfd >= 0)
		close(t->pidfd);
}

/* How a daemon has ended. */
struct ending {
	bool unsaved; /* it could not write the subnet manager's state (--state) */
	bool killed;
};

/* Waits for the end of the process, or where it cannot be watched, of its connections. */
static int wait_for_end(const struct target *t)
{
	return t->pidfd >= 0 ? cli_wait_gone(t->pid, t->pidfd, CONTROL_PATIENCE_MS)
	                     : control_wait_hangup(t->sock, CONTROL_PATIENCE_MS);
}

/* The daemon does not answer, or does not end: it is stopped or stuck. 0 or CLI_FAILED. */
static int kill_daemon(const struct target *t)
{
	if (t->pid <= 0) {
		base_log("the daemon of fabric '%s' does not answer, and is in a PID namespace "
		         "that 'umbel down' cannot see",
		         t->name);
		return CLI_FAILED;
	}
	base_log("the daemon of fabric '%s' (pid %d) has not ended in %d s: killed", t->name,
	         (int)t->pid, CONTROL_PATIENCE_MS / 1000);
	/* it still had the connection when @pidfd was opened, so this is its process */
	if ((t->pidfd >= 0 ? pidfd_send_signal(t->pidfd, SIGKILL, NULL, 0)
	                   : kill(t->pid, SIGKILL)) < 0 &&
	    errno != ESRCH) {
		base_log("cannot kill process %d: %s", (int)t->pid, strerror(errno));
		return CLI_FAILED;
	}
	if (!wait_for_end(t))
		return 0;
	base_log("process %d does not end", (int)t->pid);
	return CLI_FAILED;
}

/* Asks the daemon to end and sees to it. 0 or CLI_FAILED. */
static int end_daemon(const struct target *t, struct ending *e)
{
	struct control_client *client;
	int ret = cli_try_connect(&client, t->name);

	if (!ret) {
		ret = control_stop(client);
		control_close(client);
	}
	if (ret == -EACCES || ret == -CONTROL_REFUSED) {
		base_log("cannot end fabric '%s': %s", t->name, cli_refusal(ret));
		return CLI_FAILED;
	}
	if (ret == -EPROTO && t->pidfd >= 0) /* of another version: all end by this signal */
		pidfd_send_signal(t->pidfd, SIGTERM, NULL, 0);
	e->unsaved = ret == CONTROL_STOPS_UNSAVED;
	/* whatever the daemon has answered, it has to be gone */
	if (ret != -ETIMEDOUT && !wait_for_end(t))
		return 0;
	e->killed = true;
	return kill_daemon(t);
}

/* Ends the fabric, whose daemon was found. 0 or CLI_FAILED; *@gone: it is down, in any case. */
static int end_fabric(const struct target *t, bool *gone)
{
	struct ending e = { 0 };
	int ret = end_daemon(t, &e);

	*gone = !ret;
	if (ret)
		return ret;
	if (e.unsaved)
		cli_daemon_process_print_log(t->name);
	cli_daemon_process_remove_leftovers(t->name);
	cli_daemon_process_remove_log(t->name);
	return e.unsaved || e.killed ? CLI_FAILED : 0;
}

static int down_one(const char *name)
{
	struct target t;
	bool gone;
	int ret;

	if (find_target(&t, name)) {
		struct control_client *client;

		ret = cli_connect(&client, name); /* says why not */
		if (!ret)
			control_close(client);
		return ret ? ret : CLI_FAILED;
	}
	ret = end_fabric(&t, &gone);
	forget_target(&t);
	if (gone)
		printf("fabric '%s' is down\n", name);
	return ret;
}

static int end_unless(const char *name, void *except)
{
	struct target t;
	bool gone;

	if (!strcmp(name, except) || find_target(&t, name))
		return 0;
	end_fabric(&t, &gone);
	forget_target(&t);
	return 0;
}

void cli_end_fabrics(const char *except)
{
	cli_each_fabric(end_unless, (void *)except);
}

struct options {
	const char *name;
	bool all;
	struct cli_down_all how;
};

static const struct cli_option options[] = {
	{ CLI_NAME_LINE, CLI_TEXT(struct options, name) },
	{ "      --all         every fabric of this user on which no program runs\n",
	  CLI_FLAG(struct options, all) },
	{ "      --yes         with --all: without asking\n", CLI_FLAG(struct options, how.yes) },
	{ "      --force       with --all: those on which programs run, too\n",
	  CLI_FLAG(struct options, how.force) },
	CLI_HELP_ROW,
};

static int down_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	struct options *o = from;

	if (argc > 0)
		return cli_usage_error(self, "it takes no '%s'", argv[0]);
	if (o->all && o->name)
		return cli_usage_error(self, "either --all or --name");
	if (!o->all && (o->how.yes || o->how.force))
		return cli_usage_error(self, "--yes and --force go with --all");
	o->how.end = down_one;
	return o->all ? cli_down_all(self, &o->how) : down_one(cli_fabric_name(o->name));
}

const struct cli_command cli_down = {
	.name = "down",
	.summary = "end a fabric",
	.help = help,
	CLI_OPTIONS(options, struct options),
	.execute = down_execute,
};
