/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client's socket to the daemon, for tests that speak its protocol themselves.
 */
#ifndef TESTS_DEATH_DAEMON_SOCKET_H
#define TESTS_DEATH_DAEMON_SOCKET_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "control/path.h"

/* Connected to the fabric's daemon, which is told nothing yet. The caller closes it. */
static inline int daemon_socket(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(sock >= 0);
	assert_int_equal(
	        control_path(addr.sun_path, sizeof(addr.sun_path), control_fabric_name(), "ctl"),
	        0);
	assert_int_equal(connect(sock, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return sock;
}

#endif
