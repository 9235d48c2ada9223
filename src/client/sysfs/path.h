/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a path that a program names leads: to a node of the tree, or out of it. Symbolic links of
 * the tree, "." and ".." are followed. A path that cannot lead into the tree costs a few
 * comparisons, and a short system call as the pointer may be a bad one (pointer.h).
 *
 * A program may be in a directory of the tree, or have one open. In truth it has a directory that
 * stands for it (stand_in.h), which it keeps over fork() and exec(); relative paths are resolved by
 * that.
 *
 * Thread-safe.
 */
#ifndef SYSFS_PATH_H
#define SYSFS_PATH_H

#include <limits.h>

#include "sysfs/tree.h"

enum sysfs_where {
	SYSFS_ELSEWHERE, /* the real function is to be called, with ->path */
	SYSFS_HERE,      /* ->node is meant */
	SYSFS_NOWHERE,   /* it fails with ->error */
};

struct sysfs_place {
	enum sysfs_where where;
	int error; /* errno */
	struct sysfs_node node;
	bool on_way; /* ELSEWHERE: ->node is a directory of the machine's with entries of the tree
	              */
	/* ELSEWHERE: what to give to the real function: the program's own path, or in canonical[]
	 */
	const char *path;
	char canonical[PATH_MAX]; /* HERE: from "/" on, without links and dots */
};

/* @follow: a symbolic link at the end is followed. @dir: as of openat(2). Leaves errno alone. */
void sysfs_resolve(int dir, const char *path, bool follow, struct sysfs_place *place);

/* The empty string; NULL is not. For callers whose headers say that it cannot be NULL. */
bool sysfs_path_is_empty(const char *path);

/* The program has opened a directory of the tree, and whether it ever has. */
void sysfs_note_dir(void);
bool sysfs_has_dirs(void);

/* To be called before and after a change of directory. */
void sysfs_before_chdir(void);
void sysfs_after_chdir(void);

#endif
