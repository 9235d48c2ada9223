/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the tests of link/: a network namespace of their own, in a user namespace, so that any
 * user may run them. The test itself holds no capability there; `ip`, which it runs, does.
 */
#ifndef LINK_TESTING_H
#define LINK_TESTING_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* unshare(): a test includes this before all else */
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"

#define TESTING_SECONDS 20 /* that anything may take */
#define UNUSED          __attribute__((unused))

static UNUSED void testing_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		fail_msg("cannot write \"%s\" to %s: %s", text, path, strerror(errno));
	close(fd);
}

static UNUSED void testing_drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	assert_int_equal(syscall(SYS_capset, &header, none), 0);
}

/* Runs a shell command, which must succeed. */
static UNUSED __attribute__((format(printf, 1, 2))) void testing_run(const char *format, ...)
{
	char command[512];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

/* A group's set-up: a namespace whose loopback device is up, and nothing else in it. */
static UNUSED int testing_enter_namespace(void **state)
{
	char map[64];
	unsigned uid = geteuid(), gid = getegid();

	(void)state;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		print_error("no namespaces: %s\n", strerror(errno));
		return -1;
	}
	testing_write("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	testing_write("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	testing_write("/proc/self/gid_map", map);
	testing_run("ip link set lo up");
	testing_drop_capabilities();
	return 0;
}

static UNUSED uint64_t testing_deadline(void)
{
	return base_now_ns() + TESTING_SECONDS * UINT64_C(1000000000);
}

/* Waits for input on @fd; fails the test at @deadline. */
static UNUSED void testing_wait_input(int fd, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int64_t left = (int64_t)(deadline - base_now_ns());

	if (left <= 0 || poll(&p, 1, (int)(left / 1000000) + 1) < 1)
		fail_msg("nothing came");
}

#endif
