/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric's directory, in which the stand-ins are (stand_in.h), and what their paths mean.
 * Thread-safe.
 */
#ifndef SYSFS_HOME_H
#define SYSFS_HOME_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct sysfs_home {
	char path[PATH_MAX]; /* as the kernel names it */
	uid_t uid;           /* its owner */
	gid_t gid;
};

/* NULL: there is none. */
const struct sysfs_home *sysfs_home_get(void);

/* If @path names a stand-in, replaces it by the path of the directory that it stands for, which is
 * shorter. Returns whether it did. */
bool sysfs_home_to_path(char *path);

/* Likewise of the stand-in that is open as @fd; false: it is none. */
bool sysfs_home_of(int fd, char path[static PATH_MAX]);

#endif
