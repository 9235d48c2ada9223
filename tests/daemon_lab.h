/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clients of the fabric's daemon, for tests that speak its protocol themselves; and how many
 * descriptors it has open.
 */
#ifndef TESTS_DAEMON_LAB_H
#define TESTS_DAEMON_LAB_H

#include "harness.h"

#include "control/client.h"
#include "control/path.h"
#include "shm/region.h"

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

/* The same, by the library, as a client of that role. */
static inline struct control_client *daemon_client(enum control_role role)
{
	struct control_client *c;
	char path[512];

	assert_int_equal(control_path(path, sizeof(path), control_fabric_name(), "ctl"), 0);
	assert_int_equal(control_connect(&c, path, role, NULL), 0);
	return c;
}

/* Maps the shared memory for @c, of which nothing was asked yet. The descriptor of the data part,
 * which the caller closes. */
static inline int daemon_map(struct control_client *c, struct shm_region *r)
{
	struct control_hello_reply hello;
	int fd[2];

	control_hello(c, &hello, fd);
	assert_int_equal(shm_region_map(r, fd[0], fd[1]), 0);
	close(fd[0]);
	return fd[1];
}

/* Opens HCA @hca, by its index in the shared memory. Its handle, and *@events: the descriptor of
 * its events, which the caller closes; it may stay open until the test ends. */
static inline uint32_t daemon_open_hca(struct control_client *c, uint32_t hca, int *events)
{
	const struct control_open_hca open = { .hca = hca };
	struct control_open_hca_reply opened;

	assert_int_equal(control_call(c, &(struct control_call){ .type = CONTROL_OPEN_HCA,
	                                                         .request = &open,
	                                                         .request_bytes = sizeof(open),
	                                                         .reply = &opened,
	                                                         .reply_bytes = sizeof(opened),
	                                                         .fd = events }),
	                 0);
	return opened.handle;
}

/* A reply takes a turn of the daemon's loop: what came before has had its own. */
static inline void daemon_serves_others(void)
{
	for (unsigned i = 0; i < 3; i++)
		control_close(daemon_client(CONTROL_ROLE_VERBS));
}

static inline pid_t daemon_pid(void)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int sock = daemon_socket();

	assert_int_equal(getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len), 0);
	close(sock);
	return cred.pid;
}

static inline long daemon_descriptors(pid_t daemon)
{
	char path[64];
	long n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", daemon);
	assert_non_null(dir = opendir(path));
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

#endif
