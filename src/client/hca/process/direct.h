/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls past the functions that a preloaded library, ours or another one, has in their
 * place: these may wait for another thread, which may wait for what the caller is about to do.
 * As the functions of these names otherwise.
 */
#ifndef HCA_DIRECT_H
#define HCA_DIRECT_H

#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int hca_direct_open(int dir, const char *path, int flags)
{
	return (int)syscall(SYS_openat, dir, path, flags | O_CLOEXEC, 0);
}

static inline ssize_t hca_direct_read(int fd, void *buf, size_t bytes)
{
	return syscall(SYS_read, fd, buf, bytes);
}

static inline void hca_direct_close(int fd)
{
	syscall(SYS_close, fd);
}

static inline ssize_t hca_direct_readlink(int dir, const char *name, char *buf, size_t bytes)
{
	return syscall(SYS_readlinkat, dir, name, buf, bytes);
}

static inline int hca_direct_stat(int dir, const char *name, struct stat *s)
{
	return (int)syscall(SYS_newfstatat, dir, name, s, 0);
}

/* Its flags: F_GETFL. */
static inline int hca_direct_flags(int fd)
{
	return (int)syscall(SYS_fcntl, fd, F_GETFL);
}

static inline int hca_direct_getsockopt(int fd, int level, int name, void *value, socklen_t *bytes)
{
	return (int)syscall(SYS_getsockopt, fd, level, name, value, bytes);
}

#endif
