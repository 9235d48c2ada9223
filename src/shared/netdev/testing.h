/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the tests of this folder: network namespaces of their own, in a user namespace, so that any
 * user may run them. The test has no capability in use, except while it asks for one; the `ip`
 * commands that it runs have them.
 *
 *     here:  va 10.0.0.1/24 2001:db8::1/64 fe80::1    there:  vb 10.0.0.2/24 2001:db8::2/64 fe80::2
 */
#ifndef NETDEV_TESTING_H
#define NETDEV_TESTING_H

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
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"

#define TESTING_SECONDS 120 /* the longest that anything may last */
#define UNUSED          __attribute__((unused))

#define TESTING_DEVICE                                       \
	"export d=%s; ip link set $d up addrgenmode none &&" \
	"ip addr replace 10.0.0.%d/24 dev $d &&"             \
	"ip addr replace 2001:db8::%d/64 dev $d nodad && "   \
	"ip addr replace fe80::%d/64 dev $d nodad"

static UNUSED void testing_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		fail_msg("cannot write \"%s\" to %s: %s", text, path, strerror(errno));
	close(fd);
}

/* Makes the permitted capabilities effective, or not. */
static UNUSED void testing_use_capabilities(bool use)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	for (size_t i = 0; i < ARRAY_SIZE(data); i++)
		data[i].effective = use ? data[i].permitted : 0;
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

/* Gives them up: then other processes of the user may read this one's entries in /proc. */
static UNUSED void testing_give_up_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

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
	testing_use_capabilities(false);
	return 0;
}

/* Moves the test to a namespace, by its descriptor. */
static UNUSED void testing_go(int ns)
{
	testing_use_capabilities(true);
	assert_int_equal(setns(ns, CLONE_NEWNET), 0);
	testing_use_capabilities(false);
}

struct testing_nets {
	int here, there;
};

/* Makes a namespace; returns its descriptor. Process *@pid is in it until *@end is closed. */
static UNUSED int testing_new_namespace(pid_t *pid, int *end)
{
	int hold[2], ready[2], ns;
	char path[64], c;

	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	testing_use_capabilities(true);
	*pid = fork();
	assert_true(*pid >= 0);
	if (!*pid) {
		close(hold[1]);
		if (unshare(CLONE_NEWNET) || write(ready[1], "", 1) != 1)
			_exit(1);
		_exit(read(hold[0], &c, 1) != 0);
	}
	close(ready[1]);
	close(hold[0]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)*pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	testing_use_capabilities(false);
	assert_true(ns >= 0);
	*end = hold[1];
	return ns;
}

/* A group's set-up: two namespaces and the link between them. *@state: struct testing_nets. */
static UNUSED int testing_enter_two_namespaces(void **state)
{
	static struct testing_nets nets;
	pid_t pid;
	int end;

	if (testing_enter_namespace(state))
		return -1;
	nets.here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_true(nets.here >= 0);
	nets.there = testing_new_namespace(&pid, &end);
	testing_run("ip link add va type veth peer name vb netns %d", (int)pid);
	close(end);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	testing_run(TESTING_DEVICE, "va", 1, 1, 1);
	testing_go(nets.there);
	testing_run(TESTING_DEVICE, "vb", 2, 2, 2);
	testing_go(nets.here);
	*state = &nets;
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
