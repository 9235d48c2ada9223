// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * fallocate() where the kernel promises no more memory than there is, and 8 MiB are left.
 * Preloaded.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int fallocate(int fd, int mode, off_t off, off_t bytes)
{
	static off_t left = 8 << 20;

	if (!(mode & FALLOC_FL_PUNCH_HOLE) && (left -= bytes) < 0) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_fallocate, fd, mode, off, bytes);
}
