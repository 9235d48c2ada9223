/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading and writing as a whole: what is longer than the first room, too long, empty, or not
 * there.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include <harness.h>

#define BYTES 100000

/* A file of @bytes letters, to be read from its beginning. */
static int file_of(size_t bytes)
{
	char *text = malloc(bytes + 1);
	int fd = memfd_create("file_test", MFD_CLOEXEC);

	assert_non_null(text);
	memset(text, 'x', bytes);
	assert_int_equal(base_write_all(fd, text, bytes), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	free(text);
	return fd;
}

static void read_back(size_t bytes, size_t most, int result)
{
	int fd = file_of(bytes);
	char *text = NULL;
	size_t n = 0;

	assert_int_equal(base_read_all(fd, most, &text, &n), result);
	if (!result) {
		assert_int_equal(n, bytes);
		assert_int_equal(strspn(text, "x"), bytes);
		assert_int_equal(strlen(text), bytes);
	}
	free(text);
	close(fd);
}

CASE(all_is_read_whatever_its_length)
{
	read_back(0, SIZE_MAX, 0);
	read_back(1, SIZE_MAX, 0);
	read_back(16383, SIZE_MAX, 0);
	read_back(16384, SIZE_MAX, 0);
	read_back(BYTES, BYTES, 0);
}

CASE(more_than_may_be_is_refused)
{
	read_back(BYTES, BYTES - 1, -EFBIG);
	read_back(1, 0, -EFBIG);
}

CASE(a_descriptor_that_cannot_be_read_or_written_says_why)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t n;
	char *s;

	assert_int_equal(base_read_all(fd, SIZE_MAX, &s, &n), -EISDIR);
	assert_int_equal(base_write_all(fd, "x", 1), -EBADF);
	close(fd);
}

CASE(the_beginning_fits_the_room)
{
	int fd = file_of(10);
	char path[40], text[6] = "?????";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(base_read_start(path, text, sizeof(text)), 5);
	assert_string_equal(text, "xxxxx");
	assert_int_equal(base_read_start("/nowhere", text, sizeof(text)), -ENOENT);
	assert_string_equal(text, "");
	close(fd);
}
