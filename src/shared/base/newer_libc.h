/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions that newer C libraries have, and the oldest that Umbel is built with, 2.31, lacks
 * (./run package --portable). Calls of the kernel are made here. Functions that only a newer
 * library knows are weak: they are there if the program runs with one. Safe from any thread.
 */
#ifndef BASE_NEWER_LIBC_H
#define BASE_NEWER_LIBC_H

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#if __GLIBC_PREREQ(2, 32)
#define BASE_KNOWS_ERRORS true
#else
const char *strerrorname_np(int error) __attribute__((weak));
const char *strerrordesc_np(int error) __attribute__((weak));
#define BASE_KNOWS_ERRORS (strerrorname_np && strerrordesc_np)
#endif

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

#if !__GLIBC_PREREQ(2, 34)
static inline int close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(__NR_close_range, first, last, flags);
}

static inline void closefrom(int first)
{
	if (!close_range((unsigned)first, ~0u, 0))
		return;
	for (int fd = first; fd < sysconf(_SC_OPEN_MAX); fd++) /* a container denies the call */
		close(fd);
}
#endif

#if __GLIBC_PREREQ(2, 36)
#include <sys/pidfd.h>
#else
/* of <linux/mount.h>, which does not go with <sys/mount.h> */
enum { OPEN_TREE_CLONE = 1, OPEN_TREE_CLOEXEC = O_CLOEXEC, MOVE_MOUNT_F_EMPTY_PATH = 4 };

static inline int open_tree(int dir, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dir, path, flags);
}

static inline int move_mount(int from, const char *path, int to, const char *to_path,
                             unsigned flags)
{
	return (int)syscall(SYS_move_mount, from, path, to, to_path, flags);
}

static inline int pidfd_open(pid_t pid, unsigned flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

static inline int pidfd_send_signal(int fd, int signal, siginfo_t *info, unsigned flags)
{
	return (int)syscall(SYS_pidfd_send_signal, fd, signal, info, flags);
}
#endif

#endif
