/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A command that runs as a child: see child.h.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/signals.h"
#include "cli/run/child.h"

pid_t cli_child_fork(struct cli_child *c)
{
	pid_t pid;

	fflush(stdout);
	c->child_fd = cli_signals_open_child();
	pid = c->child_fd < 0 ? -1 : fork();
	if (pid < 0)
		base_log("cannot start the command: %s", strerror(errno));
	c->pid = pid > 0 ? pid : 0;
	return pid;
}

int cli_child_wait(struct cli_child *c)
{
	struct pollfd fds[] = {
		{ .fd = c->child_fd, .events = POLLIN },
		{ .fd = c->signal_fd, .events = POLLIN },
	};
	bool typed;
	int signo;

	while (waitpid(c->pid, &c->status, WNOHANG) != c->pid) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			continue;
		cli_signals_clear_child(c->child_fd); /* a daemon may be a child as well */
		while ((signo = cli_signals_next(c->signal_fd, &typed))) {
			if (!typed)
				kill(c->pid, signo);
		}
	}
	close(c->child_fd);
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}
