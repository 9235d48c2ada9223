/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stat(2), access(2) and extended attributes: see wrap.h. The names with __x are those of programs
 * built for glibc before 2.33.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "sysfs/opened.h"
#include "sysfs/pointer.h"
#include "sysfs/wrap.h"

int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);

static bool stat_here(int dir, const char *path, bool follow, struct sysfs_place *place,
                      struct stat *st, int *ret)
{
	sysfs_resolve(dir, path, follow, place);
	if (place->where == SYSFS_ELSEWHERE)
		return false;
	*ret = place->where == SYSFS_HERE ? sysfs_stat_place(place, st) : sysfs_fail(place->error);
	return true;
}

int stat(const char *path, struct stat *st)
{
	struct sysfs_place place;
	int ret;

	if (stat_here(AT_FDCWD, path, true, &place, st, &ret))
		return ret;
	return sysfs_real()->stat(place.path, st);
}

int lstat(const char *path, struct stat *st)
{
	struct sysfs_place place;
	int ret;

	if (stat_here(AT_FDCWD, path, false, &place, st, &ret))
		return ret;
	return sysfs_real()->lstat(place.path, st);
}

int fstat(int fd, struct stat *st)
{
	struct sysfs_node node;

	if (!sysfs_opened_find(fd, &node))
		return sysfs_real()->fstat(fd, st);
	return sysfs_stat_node(&node, st);
}

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	struct sysfs_place place;
	int ret;

	if ((flags & AT_EMPTY_PATH) && sysfs_path_is_empty(path) && dir != AT_FDCWD)
		return fstat(dir, st);
	if (stat_here(dir, path, !(flags & AT_SYMLINK_NOFOLLOW), &place, st, &ret))
		return ret;
	return sysfs_real()->fstatat(dir, place.path, st, flags);
}

/*
 * Another preloaded library may make stat() of __xstat(), so these call what has the same name, if
 * there is such. The version is that of the struct, which is the same for both.
 */

int __xstat(int version, const char *path, struct stat *st)
{
	struct sysfs_place place;
	int ret;

	if (stat_here(AT_FDCWD, path, true, &place, st, &ret))
		return ret;
	if (sysfs_real()->__xstat)
		return sysfs_real()->__xstat(version, place.path, st);
	return sysfs_real()->stat(place.path, st);
}

int __lxstat(int version, const char *path, struct stat *st)
{
	struct sysfs_place place;
	int ret;

	if (stat_here(AT_FDCWD, path, false, &place, st, &ret))
		return ret;
	if (sysfs_real()->__lxstat)
		return sysfs_real()->__lxstat(version, place.path, st);
	return sysfs_real()->lstat(place.path, st);
}

int __fxstat(int version, int fd, struct stat *st)
{
	struct sysfs_node node;

	if (sysfs_opened_find(fd, &node))
		return sysfs_stat_node(&node, st);
	if (sysfs_real()->__fxstat)
		return sysfs_real()->__fxstat(version, fd, st);
	return sysfs_real()->fstat(fd, st);
}

int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags)
{
	struct sysfs_place place;
	int ret;

	if ((flags & AT_EMPTY_PATH) && sysfs_path_is_empty(path) && dir != AT_FDCWD)
		return __fxstat(version, dir, st);
	if (stat_here(dir, path, !(flags & AT_SYMLINK_NOFOLLOW), &place, st, &ret))
		return ret;
	if (sysfs_real()->__fxstatat)
		return sysfs_real()->__fxstatat(version, dir, place.path, st, flags);
	return sysfs_real()->fstatat(dir, place.path, st, flags);
}

SYSFS_ALIAS(stat64, stat);
SYSFS_ALIAS(lstat64, lstat);
SYSFS_ALIAS(fstat64, fstat);
SYSFS_ALIAS(fstatat64, fstatat);
SYSFS_ALIAS(__xstat64, __xstat);
SYSFS_ALIAS(__lxstat64, __lxstat);
SYSFS_ALIAS(__fxstat64, __fxstat);
SYSFS_ALIAS(__fxstatat64, __fxstatat);

static struct statx_timestamp timestamp_of(struct timespec t)
{
	return (struct statx_timestamp){ .tv_sec = t.tv_sec, .tv_nsec = (uint32_t)t.tv_nsec };
}

static void convert(const struct stat *st, struct statx *stx)
{
	*stx = (struct statx){ .stx_mask = STATX_BASIC_STATS,
		               .stx_blksize = (uint32_t)st->st_blksize,
		               .stx_nlink = (uint32_t)st->st_nlink,
		               .stx_uid = st->st_uid,
		               .stx_gid = st->st_gid,
		               .stx_mode = (uint16_t)st->st_mode,
		               .stx_ino = st->st_ino,
		               .stx_size = (uint64_t)st->st_size,
		               .stx_blocks = (uint64_t)st->st_blocks,
		               .stx_atime = timestamp_of(st->st_atim),
		               .stx_mtime = timestamp_of(st->st_mtim),
		               .stx_ctime = timestamp_of(st->st_ctim),
		               .stx_rdev_major = major(st->st_rdev),
		               .stx_rdev_minor = minor(st->st_rdev),
		               .stx_dev_major = major(st->st_dev),
		               .stx_dev_minor = minor(st->st_dev) };
}

int statx(int dir, const char *path, int flags, unsigned mask, struct statx *stx)
{
	struct sysfs_place place;
	struct sysfs_node node;
	struct stat st;
	int ret = 0;

	if ((flags & AT_EMPTY_PATH) && sysfs_path_is_empty(path) && sysfs_opened_find(dir, &node))
		ret = sysfs_stat_node(&node, &st);
	else if (!stat_here(dir, path, !(flags & AT_SYMLINK_NOFOLLOW), &place, &st, &ret))
		return sysfs_real()->statx(dir, place.path, flags, mask, stx);
	if (!ret && !sysfs_is_writable(stx, sizeof(*stx)))
		ret = sysfs_fail(EFAULT);
	if (!ret)
		convert(&st, stx);
	return ret;
}

/* ---- access */

/* Nobody may write a file of the tree, not even root. */
static bool access_here(int dir, const char *path, int mode, bool follow, struct sysfs_place *place,
                        int *ret)
{
	static const int denied[] = { [SYSFS_DIR] = W_OK,
		                      [SYSFS_LINK] = 0,
		                      [SYSFS_FILE] = W_OK | X_OK,
		                      [SYSFS_DEVICE] = X_OK };

	sysfs_resolve(dir, path, follow, place);
	if (place->where == SYSFS_ELSEWHERE)
		return false;
	if (place->where == SYSFS_NOWHERE)
		*ret = sysfs_fail(place->error);
	else
		*ret = mode & denied[sysfs_kind(&place->node)] ? sysfs_fail(EACCES) : 0;
	return true;
}

int access(const char *path, int mode)
{
	struct sysfs_place place;
	int ret;

	if (access_here(AT_FDCWD, path, mode, true, &place, &ret))
		return ret;
	return sysfs_real()->access(place.path, mode);
}

int faccessat(int dir, const char *path, int mode, int flags)
{
	struct sysfs_place place;
	int ret;

	if (access_here(dir, path, mode, !(flags & AT_SYMLINK_NOFOLLOW), &place, &ret))
		return ret;
	return sysfs_real()->faccessat(dir, place.path, mode, flags);
}

int euidaccess(const char *path, int mode)
{
	struct sysfs_place place;
	int ret;

	if (access_here(AT_FDCWD, path, mode, true, &place, &ret))
		return ret;
	return sysfs_real()->euidaccess(place.path, mode);
}

SYSFS_ALIAS(eaccess, euidaccess);

/* ---- extended attributes: there are none */

static bool has_none(const char *path, bool follow, struct sysfs_place *place)
{
	sysfs_resolve(AT_FDCWD, path, follow, place);
	if (place->where == SYSFS_ELSEWHERE)
		return false;
	errno = place->where == SYSFS_HERE ? EOPNOTSUPP : place->error;
	return true;
}

ssize_t getxattr(const char *path, const char *name, void *value, size_t room)
{
	struct sysfs_place place;

	return has_none(path, true, &place) ? -1
	                                    : sysfs_real()->getxattr(place.path, name, value, room);
}

ssize_t lgetxattr(const char *path, const char *name, void *value, size_t room)
{
	struct sysfs_place place;

	return has_none(path, false, &place)
	               ? -1
	               : sysfs_real()->lgetxattr(place.path, name, value, room);
}

ssize_t listxattr(const char *path, char *list, size_t room)
{
	struct sysfs_place place;

	return has_none(path, true, &place) ? -1 : sysfs_real()->listxattr(place.path, list, room);
}

ssize_t llistxattr(const char *path, char *list, size_t room)
{
	struct sysfs_place place;

	return has_none(path, false, &place) ? -1
	                                     : sysfs_real()->llistxattr(place.path, list, room);
}
