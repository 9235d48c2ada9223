/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors of clients: nobody waits for those that take long.
 */
#include <harness.h>

#include "daemon/core/closer.h"
#include "daemon/core/closer_testing.h"

#define LARGE (4 << 20)

/* In memory, with pages for all its bytes. */
static int file_of(off_t bytes)
{
	int fd = memfd_create("closer", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, bytes), 0);
	return fd;
}

static bool is_closed(int fd)
{
	return fcntl(fd, F_GETFD) < 0 && errno == EBADF;
}

static void wait_closed(int fd)
{
	while (!is_closed(fd)) /* ctest ends it */
		usleep(1000);
}

CASE(a_thread_closes_large_files_in_memory)
{
	struct daemon_closer c = { 0 };
	int fd[3];

	for (unsigned i = 0; i < 3; i++)
		fd[i] = file_of(LARGE);
	for (unsigned i = 0; i < 3; i++)
		daemon_closer_close(&c, fd[i]);
	assert_non_null(c.memory);
	daemon_closer_fini(&c);
	for (unsigned i = 0; i < 3; i++)
		assert_true(is_closed(fd[i]));
}

/* Nor is there a thread for them: most daemons have none. */
CASE(small_memory_and_connections_are_closed_at_once)
{
	struct daemon_closer c = { 0 };
	int fd = file_of(4096), hole = memfd_create("hole", MFD_CLOEXEC), end[2][2];
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	assert_int_equal(ftruncate(hole, 1ll << 40), 0);
	daemon_closer_close(&c, fd);
	daemon_closer_close(&c, hole);
	daemon_closer_close(&c, mem);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, end[i]), 0);
	close(end[0][1]);
	for (unsigned i = 0; i < 2; i++)
		daemon_closer_close_end(&c, end[i][0]);
	assert_true(is_closed(fd) && is_closed(hole) && is_closed(mem));
	assert_true(is_closed(end[0][0]) && is_closed(end[1][0]));
	assert_null(c.memory);
	assert_null(c.sockets);
	assert_null(c.others);
	daemon_closer_fini(&c);
	close(end[1][1]);
}

/* More than there are threads, by themselves and in an end. Nobody reads. */
CASE(no_socket_lingers)
{
	struct daemon_closer c = { 0 };
	int reader[2 * DAEMON_CLOSER_HELD], fd[2 * DAEMON_CLOSER_HELD], end[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, end), 0);
	assert_int_equal(send(end[1], "", 0, 0), 0); /* ahead of what shows */
	for (unsigned i = 0; i < 2 * DAEMON_CLOSER_HELD; i++)
		fd[i] = lingering(&reader[i]);
	for (unsigned i = 0; i < 2 * DAEMON_CLOSER_HELD; i += 2) {
		assert_int_equal(send_descriptors(end[1], "", 0, fd[i], 1), 0);
		close(fd[i]);
	}
	for (unsigned i = 1; i < 2 * DAEMON_CLOSER_HELD; i += 2)
		daemon_closer_close(&c, fd[i]);
	close(end[1]);
	daemon_closer_close_end(&c, end[0]);
	assert_non_null(c.sockets);
	wait_closed(end[0]);
	for (unsigned i = 1; i < 2 * DAEMON_CLOSER_HELD; i += 2)
		wait_closed(fd[i]);
	assert_null(c.others);
	daemon_closer_fini(&c);
	for (unsigned i = 0; i < 2 * DAEMON_CLOSER_HELD; i++)
		close(reader[i]);
}

/* Descriptors that are held end with the process. */
CASE(the_end_does_not_wait_for_what_lingers)
{
	struct daemon_closer c = { 0 };
	int reader;

	daemon_closer_close(&c, lingering(&reader));
	daemon_closer_fini(&c);
	close(reader);
}
