/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * statfs(2) and its like: see wrap.h. Nodes of the tree belong to the file system of /sys or /dev:
 * libudev believes only files in sysfs, by its number.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "sysfs/home.h"
#include "sysfs/opened.h"
#include "sysfs/wrap.h"

static const char *root_of(const char *canonical)
{
	return strncmp(canonical, "/dev", 4) != 0 ? "/sys" : "/dev";
}

/* Finds the path to ask about instead of @path: @place->path. False: errno says why not. */
static bool find_instead(const char *path, struct sysfs_place *place)
{
	sysfs_resolve(AT_FDCWD, path, true, place);
	if (place->where == SYSFS_HERE)
		place->path = root_of(place->canonical);
	else if (place->where == SYSFS_NOWHERE)
		errno = place->error;
	return place->where != SYSFS_NOWHERE;
}

/* Likewise instead of @fd; NULL: it is none of the tree. That of a device is one in /dev. */
static const char *instead_of_descriptor(int fd)
{
	struct sysfs_node node;
	char path[PATH_MAX];
	int error = errno;
	const char *root = NULL;

	if (sysfs_opened_find(fd, &node) && sysfs_kind(&node) == SYSFS_FILE)
		root = "/sys";
	else if (sysfs_home_of(fd, path))
		root = root_of(path);
	errno = error;
	return root;
}

int statfs(const char *path, struct statfs *fs)
{
	struct sysfs_place place;

	return find_instead(path, &place) ? sysfs_real()->statfs(place.path, fs) : -1;
}

int fstatfs(int fd, struct statfs *fs)
{
	const char *root = instead_of_descriptor(fd);

	return root ? sysfs_real()->statfs(root, fs) : sysfs_real()->fstatfs(fd, fs);
}

int statvfs(const char *path, struct statvfs *fs)
{
	struct sysfs_place place;

	return find_instead(path, &place) ? sysfs_real()->statvfs(place.path, fs) : -1;
}

int fstatvfs(int fd, struct statvfs *fs)
{
	const char *root = instead_of_descriptor(fd);

	return root ? sysfs_real()->statvfs(root, fs) : sysfs_real()->fstatvfs(fd, fs);
}

SYSFS_ALIAS(statfs64, statfs);
SYSFS_ALIAS(fstatfs64, fstatfs);
SYSFS_ALIAS(statvfs64, statvfs);
SYSFS_ALIAS(fstatvfs64, fstatvfs);
