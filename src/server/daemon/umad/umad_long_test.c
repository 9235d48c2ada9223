/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Long messages are read in pieces, and a message that is not as long as it says, or becomes
 * shorter, is not read.
 */
#include <harness.h>

#include "daemon/umad/umad_long.h"

#define BYTES (5 * UMAD_LONG_PIECE + 1)

static int new_memfd(off_t bytes)
{
	int fd = memfd_create("long", 0);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	return fd;
}

CASE(a_call_reads_one_piece)
{
	struct umad_long l = { .fd = new_memfd(BYTES), .message = malloc(BYTES), .bytes = BYTES };
	const uint8_t last = 7;

	assert_non_null(l.message);
	assert_int_equal(pwrite(l.fd, &last, 1, BYTES - 1), 1);
	for (size_t i = 1; i <= BYTES / UMAD_LONG_PIECE; i++) {
		assert_int_equal(umad_long_read(&l), 0);
		assert_int_equal(l.at, i * UMAD_LONG_PIECE);
	}
	assert_int_equal(umad_long_read(&l), 1);
	assert_int_equal(l.message[0], 0);
	assert_int_equal(l.message[BYTES - 1], last);
	free(l.message);
	close(l.fd);
}

CASE(what_becomes_shorter_is_not_read)
{
	struct umad_long l = { .fd = new_memfd(BYTES), .message = malloc(BYTES), .bytes = BYTES };

	assert_non_null(l.message);
	assert_int_equal(umad_long_read(&l), 0);
	assert_int_equal(ftruncate(l.fd, BYTES / 2), 0);
	assert_int_equal(umad_long_read(&l), 0);
	assert_int_equal(umad_long_read(&l), -EIO);
	free(l.message);
	close(l.fd);
}

CASE(the_length_must_be_there)
{
	struct ib_user_mad header = { .length = sizeof(header) + BYTES };
	int fd = new_memfd(BYTES), pipe_fd[2];

	assert_int_equal(umad_long_bytes(&header, fd), BYTES);
	header.length++;
	assert_int_equal(umad_long_bytes(&header, fd), 0);
	header.length = sizeof(header) - 1;
	assert_int_equal(umad_long_bytes(&header, fd), 0);
	header.length = sizeof(header) + 1;
	assert_int_equal(pipe(pipe_fd), 0);
	assert_int_equal(umad_long_bytes(&header, pipe_fd[0]), 0);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	close(fd);
}
