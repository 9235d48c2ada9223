/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions that ours stand before: those of the C library, or of another preloaded library.
 * Thread-safe; may be called before constructors have run.
 */
#ifndef SYSFS_REAL_H
#define SYSFS_REAL_H

#include <dirent.h>
#include <glob.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/fast.h"

struct addrinfo; /* in <netdb.h> */
struct ifaddrs;  /* in <ifaddrs.h> */
struct statx;    /* only with _GNU_SOURCE */
struct statfs;   /* in <sys/vfs.h> */
struct statvfs;  /* in <sys/statvfs.h> */
struct msghdr;   /* in <sys/socket.h>, as the next one is */
struct sockaddr;

typedef int sysfs_filter(const struct dirent *entry);
typedef int sysfs_compare(const struct dirent **a, const struct dirent **b);
typedef int sysfs_glob_error(const char *path, int error);

/* All of them: result, name, arguments. Those with __x may be NULL. */
#define SYSFS_REAL(X)                                                                            \
	X(int, open, (const char *path, int flags, ...))                                         \
	X(int, openat, (int dir, const char *path, int flags, ...))                              \
	X(FILE *, fopen, (const char *path, const char *mode))                                   \
	X(FILE *, freopen, (const char *path, const char *mode, FILE *stream))                   \
	X(int, stat, (const char *path, struct stat *st))                                        \
	X(int, lstat, (const char *path, struct stat *st))                                       \
	X(int, fstat, (int fd, struct stat *st))                                                 \
	X(int, fstatat, (int dir, const char *path, struct stat *st, int flags))                 \
	X(int, __xstat, (int version, const char *path, struct stat *st))                        \
	X(int, __lxstat, (int version, const char *path, struct stat *st))                       \
	X(int, __fxstat, (int version, int fd, struct stat *st))                                 \
	X(int, __fxstatat, (int version, int dir, const char *path, struct stat *st, int flags)) \
	X(int, statx, (int dir, const char *path, int flags, unsigned mask, struct statx *stx))  \
	X(int, statfs, (const char *path, struct statfs *fs))                                    \
	X(int, fstatfs, (int fd, struct statfs *fs))                                             \
	X(int, statvfs, (const char *path, struct statvfs *fs))                                  \
	X(int, fstatvfs, (int fd, struct statvfs *fs))                                           \
	X(int, access, (const char *path, int mode))                                             \
	X(int, faccessat, (int dir, const char *path, int mode, int flags))                      \
	X(int, euidaccess, (const char *path, int mode))                                         \
	X(ssize_t, readlink, (const char *path, char *buf, size_t room))                         \
	X(ssize_t, readlinkat, (int dir, const char *path, char *buf, size_t room))              \
	X(char *, realpath, (const char *path, char *resolved))                                  \
	X(char *, getcwd, (char *buf, size_t room))                                              \
	X(char *, get_current_dir_name, (void))                                                  \
	X(int, chdir, (const char *path))                                                        \
	X(int, fchdir, (int fd))                                                                 \
	X(DIR *, opendir, (const char *path))                                                    \
	X(DIR *, fdopendir, (int fd))                                                            \
	X(void, rewinddir, (DIR * dir))                                                          \
	X(int, closedir, (DIR * dir))                                                            \
	X(struct dirent *, readdir, (DIR * dir))                                                 \
	X(int, scandir,                                                                          \
	  (const char *path, struct dirent ***list, sysfs_filter *, sysfs_compare *))            \
	X(int, glob, (const char *pattern, int flags, sysfs_glob_error *, glob_t *result))       \
	X(off_t, lseek, (int fd, off_t offset, int whence))                                      \
	X(ssize_t, pread, (int fd, void *buf, size_t bytes, off_t offset))                       \
	X(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t room))     \
	X(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t room))    \
	X(ssize_t, listxattr, (const char *path, char *list, size_t room))                       \
	X(ssize_t, llistxattr, (const char *path, char *list, size_t room))                      \
	X(int, getaddrinfo,                                                                      \
	  (const char *node, const char *service, const struct addrinfo *hints,                  \
	   struct addrinfo **list))                                                              \
	X(int, getifaddrs, (struct ifaddrs * *list))                                             \
	X(int, socket, (int domain, int type, int protocol))                                     \
	X(ssize_t, send, (int fd, const void *buf, size_t bytes, int flags))                     \
	X(ssize_t, sendto,                                                                       \
	  (int fd, const void *buf, size_t bytes, int flags, const struct sockaddr *to,          \
	   unsigned to_bytes))                                                                   \
	X(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags))                       \
	X(ssize_t, recv, (int fd, void *buf, size_t room, int flags))                            \
	X(ssize_t, recvfrom,                                                                     \
	  (int fd, void *buf, size_t room, int flags, struct sockaddr *from,                     \
	   unsigned *from_bytes))                                                                \
	X(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags))

#define SYSFS_REAL_FIELD(result, name, args) result(*name) args;
struct sysfs_reals {
	atomic_bool found;
	SYSFS_REAL(SYSFS_REAL_FIELD)
};
#undef SYSFS_REAL_FIELD

extern struct sysfs_reals sysfs_reals __attribute__((visibility("hidden")));

/* Looks them up. */
BASE_COLD void sysfs_real_find(void);

static inline const struct sysfs_reals *sysfs_real(void)
{
	/* acquire: pairs with the release in sysfs_real_find() */
	if (base_unlikely(!atomic_load_explicit(&sysfs_reals.found, memory_order_acquire)))
		sysfs_real_find();
	return &sysfs_reals;
}

#endif
