/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors of clients: which of them a thread closes.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/core/closer.h"

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

static void a_thread_closes_large_files_in_memory(void **state)
{
	struct daemon_closer c = { 0 };
	int fd[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		fd[i] = file_of(LARGE);
	for (unsigned i = 0; i < 3; i++)
		daemon_closer_close(&c, fd[i]);
	assert_true(c.runs);
	daemon_closer_fini(&c);
	assert_int_equal(atomic_load(&c.closed), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_true(is_closed(fd[i]));
}

/* Nor is there a thread for them: most daemons have none. */
static void all_others_are_closed_at_once(void **state)
{
	struct daemon_closer c = { 0 };
	int pair[2], fd = file_of(4096), hole = memfd_create("hole", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(pipe(pair), 0);
	assert_int_equal(ftruncate(hole, 1ll << 40), 0);
	daemon_closer_close(&c, fd);
	daemon_closer_close(&c, hole);
	daemon_closer_close(&c, pair[0]);
	daemon_closer_close(&c, pair[1]);
	assert_true(is_closed(fd) && is_closed(hole) && is_closed(pair[0]) && is_closed(pair[1]));
	assert_false(c.runs);
	daemon_closer_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_closes_large_files_in_memory),
		cmocka_unit_test(all_others_are_closed_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
