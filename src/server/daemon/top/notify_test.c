/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The datagram to the service manager, whose socket is ours here. reach.unit has systemd itself.
 */
#include <harness.h>

#include "daemon/top/notify.h"

/* A manager that is told by @name what the daemon says. */
static void is_told(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char said[32] = "";
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	memcpy(at.sun_path, name, strlen(name));
	if (*name == '@')
		at.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&at,
	                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
	                 0);
	assert_int_equal(daemon_notify(name, "READY=1"), 0);
	assert_int_equal(recv(fd, said, sizeof(said) - 1, MSG_DONTWAIT), strlen("READY=1"));
	assert_string_equal(said, "READY=1");
	close(fd);
}

CASE(a_manager_is_told_by_a_path_and_by_an_abstract_name)
{
	char name[64];

	snprintf(name, sizeof(name), "/tmp/umbel-notify.%d", (int)getpid());
	is_told(name);
	unlink(name);
	snprintf(name, sizeof(name), "@umbel-notify.%d", (int)getpid());
	is_told(name);
}

CASE(without_a_manager_nothing_is_sent)
{
	char long_name[200] = "/";

	assert_int_equal(daemon_notify(NULL, "READY=1"), 0);
	assert_int_equal(daemon_notify("", "READY=1"), 0);
	assert_int_equal(daemon_notify("relative", "READY=1"), -EINVAL);
	memset(long_name, '/', sizeof(long_name) - 1);
	assert_int_equal(daemon_notify(long_name, "READY=1"), -EINVAL);
	assert_int_equal(daemon_notify("/nobody/listens", "READY=1"), -ENOENT);
}
