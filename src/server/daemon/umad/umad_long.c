/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Long messages of programs: see umad_long.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/umad/umad_long.h"

/* All that follows struct ib_user_mad is in the memfd, which its sender may still change: it is
 * read, not mapped. Another file could block its reader (FUSE); only memory has seals. */
size_t umad_long_bytes(const struct ib_user_mad *header, int fd)
{
	size_t bytes = header->length - sizeof(*header);
	struct stat st;

	if (header->length < sizeof(*header) || bytes > CONTROL_UMAD_MAX_BYTES ||
	    fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size < bytes)
		return 0;
	return bytes;
}

int umad_long_read(struct umad_long *l)
{
	size_t left = l->bytes - l->at;
	size_t n = left < UMAD_LONG_PIECE ? left : UMAD_LONG_PIECE;

	if (pread(l->fd, l->message + l->at, n, (off_t)l->at) != (ssize_t)n)
		return -EIO; /* it has become shorter */
	l->at += n;
	return l->at == l->bytes;
}
