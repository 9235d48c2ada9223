/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading and writing files as a whole, or descriptors that are no files. Thread-safe. No stdio: a
 * call is as many system calls as it takes.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* All that comes from @fd, as a string, which free() frees; *@bytes: without its null byte. 0,
 * -errno, or -EFBIG: it is more than @most bytes. */
int base_read_all(int fd, size_t most, char **text, size_t *bytes);

/* What one read() has of the beginning of a file, as a string; @room: with the null byte. The
 * length, or -errno, and the string is empty. */
ssize_t base_read_start(const char *path, char *text, size_t room);

/* 0 or -errno. */
int base_write_all(int fd, const void *data, size_t bytes);

#endif
