/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For those programs of this folder that end their fabric. */
#ifndef TESTS_RDMACM_KILL_DAEMON_H
#define TESTS_RDMACM_KILL_DAEMON_H

#include "common.h"

#include <sys/pidfd.h>

/* Ends the daemon, whose the channel's other end is, until all that it had open is closed: who
 * sends only, and does not wait, notices that alone. */
static UNUSED void kill_daemon(const struct rdma_event_channel *channel)
{
	struct pollfd p = { .events = POLLIN };
	struct ucred cred;
	socklen_t bytes = sizeof(cred);

	assert_int_equal(getsockopt(channel->fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes), 0);
	p.fd = pidfd_open(cred.pid, 0);
	assert_true(p.fd >= 0);
	assert_int_equal(kill(cred.pid, SIGKILL), 0);
	assert_int_equal(poll(&p, 1, -1), 1);
	close(p.fd);
}

#endif
