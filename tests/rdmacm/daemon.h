/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For those programs of this folder that stop their fabric's daemon for a time, or end it. */
#ifndef TESTS_RDMACM_DAEMON_H
#define TESTS_RDMACM_DAEMON_H

#include "common.h"

#include <sys/pidfd.h>

/* The daemon: whose the channel's other end is. */
static UNUSED pid_t daemon_of(const struct rdma_event_channel *channel)
{
	struct ucred cred;
	socklen_t bytes = sizeof(cred);

	assert_int_equal(getsockopt(channel->fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes), 0);
	return cred.pid;
}

/* Ends the daemon, until all that it had open is closed: a program that only sends, and does not
 * wait, notices that alone. */
static UNUSED void kill_daemon(const struct rdma_event_channel *channel)
{
	const pid_t pid = daemon_of(channel);
	struct pollfd p = { .fd = pidfd_open(pid, 0), .events = POLLIN };

	assert_true(p.fd >= 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(poll(&p, 1, -1), 1);
	close(p.fd);
}

static UNUSED pid_t stopped; /* the daemon; 0: it runs */

static UNUSED void stop_daemon(const struct rdma_event_channel *channel)
{
	const pid_t pid = daemon_of(channel);

	assert_int_equal(kill(pid, SIGSTOP), 0);
	stopped = pid;
}

static UNUSED void continue_daemon(void)
{
	assert_int_equal(kill(stopped, SIGCONT), 0);
	stopped = 0;
}

/* By a child, while this process waits for the daemon; after *@when has become true, which this
 * process sees. NULL: nobody looks. */
static UNUSED pid_t continue_daemon_soon(volatile bool *when)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		usleep(50000);
		if (when)
			*when = true;
		_exit(kill(stopped, SIGCONT) ? 1 : 0);
	}
	return child;
}

/* After each test, failed or not. */
static UNUSED int leave_daemon_running(void **state)
{
	(void)state;
	if (stopped)
		kill(stopped, SIGCONT);
	stopped = 0;
	return 0;
}

#endif
