/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel down`: ends a fabric, or all of this user's, and removes what it or a dead
 * manager left. It returns when the manager is gone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/manager.h"
#include "control/client.h"
#include "control/path.h"

enum { STOP_MS = 10000 };

static const char help[] =
        "Usage: umbel down [OPTION]...\n"
        "\n"
        "Ends a fabric. Programs that still run on it get IBV_EVENT_DEVICE_FATAL and errors.\n"
        "\n"
        "  -n, --name NAME   the fabric (default: $UMBEL_FABRIC, else 'default')\n"
        "      --all         every fabric of this user\n"
        "  -h, --help        this text\n";

/* The manager's process, so that its end can be awaited whatever happens to it. */
static int manager_pidfd(struct control_client *client)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);

	if (getsockopt(control_fd(client), SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return -1;
	return peer.pid > 0 ? pidfd_open(peer.pid, 0) : -1; /* 0: in another namespace */
}

/* Asks the manager to end and sees to it. 0 or CLI_FAILED. */
static int end_manager(struct control_client *client, const char *name)
{
	int pidfd = manager_pidfd(client);
	int ret = control_stop(client);

	if (pidfd >= 0 && cli_wait_gone(pidfd, STOP_MS)) {
		base_log("the manager of fabric '%s' did not end in %d s: killed", name,
		         STOP_MS / 1000);
		pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
		ret = cli_wait_gone(pidfd, STOP_MS);
	}
	if (pidfd >= 0) /* that it is gone is what counts, not what it said */
		close(pidfd);
	else if (ret)
		base_log("the manager of fabric '%s' does not end: %s", name, strerror(-ret));
	return pidfd < 0 && ret ? CLI_FAILED : 0;
}

/*
 * Removes what a killed manager has left, file by file: the runtime directory may be one that
 * the user has put other things in. Whoever holds the lock lives.
 */
static void remove_leftovers(const char *name)
{
	static const char *const leaves[] = { "ctl", "log", "lock", NULL };
	char path[PATH_MAX];
	bool dead;
	int lock;

	if (control_path(path, sizeof(path), name, "lock"))
		return;
	lock = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (lock < 0)
		return;
	dead = !flock(lock, LOCK_EX | LOCK_NB);
	for (size_t i = 0; dead && i < ARRAY_SIZE(leaves); i++) {
		if (!control_path(path, sizeof(path), name, leaves[i]))
			remove(path); /* the directory last, if it is empty */
	}
	close(lock);
}

static int down_one(const char *name)
{
	struct control_client *client;
	int ret = cli_connect(&client, name);

	if (ret)
		return ret;
	ret = end_manager(client, name);
	control_close(client);
	if (ret)
		return ret;
	cli_manager_remove_log(name);
	printf("fabric '%s' is down\n", name);
	return 0;
}

/* For each fabric there is a trace of. */
static int down_each(const char *name, void *arg)
{
	struct control_client *client;
	int *status = arg, ret;

	ret = cli_try_connect(&client, name);
	if (ret == -ECONNREFUSED)
		remove_leftovers(name);
	if (ret == -ENOENT || ret == -ECONNREFUSED)
		return 0;
	if (!ret)
		control_close(client);
	if (down_one(name))
		*status = CLI_FAILED;
	return 0;
}

static int down_run(const struct cli_command *self, int argc, char **argv)
{
	static const struct option options[] = {
		{ "name", required_argument, NULL, 'n' },
		{ "all", no_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *name = NULL;
	bool all = false;
	int opt, ret, status = CLI_OK;

	while ((opt = getopt_long(argc, argv, "+:n:h", options, NULL)) != -1) {
		if (opt == 'n')
			name = optarg;
		else if (opt == 'a')
			all = true;
		else
			return cli_option_end(self, opt, argv);
	}
	if (optind < argc)
		return cli_usage_error(self, "it takes no '%s'", argv[optind]);
	if (all && name)
		return cli_usage_error(self, "either --all or --name");
	if (!all)
		return down_one(cli_fabric_name(name));
	ret = cli_each_fabric(down_each, &status);
	return ret ? ret : status;
}

const struct cli_command cli_down = {
	.name = "down",
	.summary = "end a fabric",
	.help = help,
	.run = down_run,
};
