/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Output whose reader may stop: see output.h. Called by capture.c and monitor.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/record/output.h"

/* A pipe has room for so much if it has room for anything; it is written piece by piece, so that a
 * reader which has stopped does not keep us from ending. */
#define PIECE     4096
#define STUCK_MS  1000
#define FILE_ROOM 65536

static volatile sig_atomic_t ends;

void cli_output_end(void)
{
	ends = 1;
}

bool cli_output_ends(void)
{
	return ends;
}

static bool has_room(int fd)
{
	struct pollfd out = { .fd = fd, .events = POLLOUT };
	int n;

	do {
		n = poll(&out, 1, STUCK_MS);
	} while (n <= 0 && !(n == 0 && ends));
	return n > 0;
}

/* All of it; or 0: an error, as fopencookie(3) has it. */
static ssize_t write_pieces(void *cookie, const char *at, size_t bytes)
{
	int fd = *(int *)cookie;
	size_t done = 0, piece = PIECE;
	struct stat st;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		piece = bytes;
	while (done < bytes) {
		ssize_t n;

		if (!has_room(fd)) {
			errno = ETIMEDOUT;
			return 0;
		}
		n = write(fd, at + done, bytes - done < piece ? bytes - done : piece);
		if (n < 0 && errno != EINTR)
			return 0;
		done += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)done;
}

FILE *cli_output_open(int *fd)
{
	FILE *file = fopencookie(fd, "w", (cookie_io_functions_t){ .write = write_pieces });

	if (file)
		setvbuf(file, NULL, _IOFBF, FILE_ROOM);
	return file;
}
