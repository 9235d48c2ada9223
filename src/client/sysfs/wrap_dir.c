/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Directories: opening and reading them, going there, symbolic links, glob(3): see wrap.h.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sysfs/home.h"
#include "sysfs/listing.h"
#include "sysfs/opened.h"
#include "sysfs/pointer.h"
#include "sysfs/stand_in.h"
#include "sysfs/wrap.h"

ssize_t __readlink_chk(const char *path, char *buf, size_t bytes, size_t room);
ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t bytes, size_t room);
char *__realpath_chk(const char *path, char *resolved, size_t room);
char *__getcwd_chk(char *buf, size_t bytes, size_t room);

/* The path to give to the real function for the directory @path: @place->path, or a stand-in in
 * @stand_in. NULL and errno. */
static const char *real_dir(const char *path, bool fill, struct sysfs_place *place, char *stand_in)
{
	int ret;

	sysfs_resolve(AT_FDCWD, path, true, place);
	if (place->where == SYSFS_ELSEWHERE)
		return place->path;
	if (place->where == SYSFS_NOWHERE)
		ret = -place->error;
	else if (sysfs_kind(&place->node) != SYSFS_DIR)
		ret = -ENOTDIR;
	else
		ret = sysfs_stand_in_make(place, fill, stand_in);
	if (!ret)
		return stand_in;
	errno = -ret;
	return NULL;
}

DIR *opendir(const char *path)
{
	char stand_in[PATH_MAX];
	struct sysfs_place place;
	const char *real = real_dir(path, true, &place, stand_in);

	DIR *dir;

	if (!real)
		return NULL;
	if (real == stand_in)
		sysfs_note_dir();
	dir = sysfs_real()->opendir(real);
	if (dir && place.on_way && sysfs_adds_to(&place.node))
		sysfs_listing_add(dir, &place.node);
	return dir;
}

DIR *fdopendir(int fd)
{
	DIR *dir = sysfs_real()->fdopendir(fd);
	struct sysfs_node node;

	if (dir && sysfs_opened_find_dir(fd, &node))
		sysfs_listing_add(dir, &node);
	return dir;
}

void rewinddir(DIR *dir)
{
	sysfs_listing_rewind(dir);
	sysfs_real()->rewinddir(dir);
}

static int close_dir(DIR *dir)
{
	sysfs_listing_remove(dir);
	return sysfs_real()->closedir(dir);
}

int closedir(DIR *dir)
{
	return close_dir(dir);
}

static bool is_stand_in(int fd)
{
	char path[PATH_MAX];

	return sysfs_home_of(fd, path);
}

/* A stand-in has a FIFO in the place of a device. */
struct dirent *readdir(DIR *dir)
{
	int error = errno;
	struct dirent *entry = sysfs_real()->readdir(dir);

	if (!entry && errno == error) /* the end, and no failure */
		entry = sysfs_listing_next(dir);
	error = errno;
	if (entry && entry->d_type == DT_FIFO && sysfs_has_dirs() && is_stand_in(dirfd(dir)))
		entry->d_type = DT_CHR;
	errno = error;
	return entry;
}

SYSFS_ALIAS(readdir64, readdir);

/* ---- scandir: with our readdir(), for the C library's calls its own */

static void free_list(struct dirent **list, size_t n)
{
	while (n)
		free(list[--n]);
	free(list);
}

/* Appends a copy of @entry. 0 or -ENOMEM. */
static int keep(struct dirent ***list, size_t n, const struct dirent *entry)
{
	size_t bytes = offsetof(struct dirent, d_name) + strlen(entry->d_name) + 1;
	bool is_full = !(n & (n - 1)); /* it doubles */
	struct dirent *copy = malloc(bytes), **longer = *list;

	if (copy && is_full)
		longer = realloc(*list, (n ? n * 2 : 1) * sizeof(struct dirent *));
	if (!copy || !longer) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, entry, bytes);
	copy->d_reclen = (unsigned short)bytes;
	longer[n] = copy;
	*list = longer;
	return 0;
}

/* How many entries; -errno. Closes @dir. */
static int scan(DIR *dir, struct dirent ***result, sysfs_filter *filter, sysfs_compare *compare)
{
	struct dirent **list = NULL, *entry;
	size_t n = 0;
	int ret = 0;

	for (errno = 0; !ret && (entry = readdir(dir)) != NULL; errno = 0) {
		if (filter && !filter(entry))
			continue;
		ret = keep(&list, n, entry);
		n += !ret;
	}
	if (!ret)
		ret = -errno;
	close_dir(dir);
	if (ret) {
		free_list(list, n);
		return ret;
	}
	if (compare && n)
		qsort(list, n, sizeof(*list), (int (*)(const void *, const void *))compare);
	*result = list ? list : malloc(1);
	return (int)n;
}

static int scan_path(const char *path, struct dirent ***list, sysfs_filter *filter,
                     sysfs_compare *compare)
{
	DIR *dir = opendir(path);
	int error = errno, ret;

	if (!dir)
		return -1;
	ret = scan(dir, list, filter, compare);
	errno = ret < 0 ? -ret : error;
	return ret < 0 ? -1 : ret;
}

int scandir(const char *path, struct dirent ***list, sysfs_filter *filter, sysfs_compare *compare)
{
	struct sysfs_place place;

	sysfs_resolve(AT_FDCWD, path, true, &place);
	if (place.where != SYSFS_ELSEWHERE || place.on_way)
		return scan_path(path, list, filter, compare);
	return sysfs_real()->scandir(place.path, list, filter, compare);
}

SYSFS_ALIAS(scandir64, scandir);

/* ---- glob: with our functions, for the C library's calls its own */

static void *glob_opendir(const char *path)
{
	return opendir(path);
}

static struct dirent *glob_readdir(void *dir)
{
	return readdir(dir);
}

static void glob_closedir(void *dir)
{
	closedir(dir);
}

static int glob_stat(const char *path, struct stat *st)
{
	return stat(path, st);
}

static int glob_lstat(const char *path, struct stat *st)
{
	return lstat(path, st);
}

/* Whether a pattern may match what is in the tree: from the root on, or from where the program is.
 */
static bool may_match(const char *pattern)
{
	struct sysfs_place place;

	if (*pattern == '/')
		return !strncmp(pattern, "/sys", 4) || !strncmp(pattern, "/dev", 4);
	sysfs_resolve(AT_FDCWD, ".", true, &place);
	return place.where == SYSFS_HERE || place.on_way;
}

int glob(const char *pattern, int flags, sysfs_glob_error *error, glob_t *result)
{
	glob_t own = *result;
	int ret;

	if ((flags & GLOB_ALTDIRFUNC) || !may_match(pattern))
		return sysfs_real()->glob(pattern, flags, error, result);
	result->gl_opendir = glob_opendir;
	result->gl_readdir = glob_readdir;
	result->gl_closedir = glob_closedir;
	result->gl_stat = glob_stat;
	result->gl_lstat = glob_lstat;
	ret = sysfs_real()->glob(pattern, flags | GLOB_ALTDIRFUNC, error, result);
	result->gl_opendir = own.gl_opendir;
	result->gl_readdir = own.gl_readdir;
	result->gl_closedir = own.gl_closedir;
	result->gl_stat = own.gl_stat;
	result->gl_lstat = own.gl_lstat;
	result->gl_flags &= ~GLOB_ALTDIRFUNC;
	return ret;
}

SYSFS_ALIAS(glob64, glob);

/* ---- the current directory */

int chdir(const char *path)
{
	char stand_in[PATH_MAX];
	struct sysfs_place place;
	const char *real;
	int ret;

	sysfs_before_chdir();
	real = real_dir(path, false, &place, stand_in);
	ret = real ? sysfs_real()->chdir(real) : -1;
	if (!ret)
		sysfs_after_chdir();
	return ret;
}

int fchdir(int fd)
{
	int ret;

	sysfs_before_chdir();
	ret = sysfs_real()->fchdir(fd);
	if (!ret)
		sysfs_after_chdir();
	return ret;
}

/* The path of a stand-in is longer than that for which it stands, so it may not fit. */
static char *short_cwd(char *buf, size_t room)
{
	char path[PATH_MAX];

	if (!sysfs_real()->getcwd(path, sizeof(path)))
		return NULL;
	if (sysfs_home_to_path(path) && strlen(path) < room)
		return strcpy(buf, path);
	errno = ERANGE;
	return NULL;
}

char *getcwd(char *buf, size_t room)
{
	char *path = sysfs_real()->getcwd(buf, room);

	if (path)
		sysfs_home_to_path(path);
	else if (errno == ERANGE && buf)
		return short_cwd(buf, room);
	return path;
}

char *get_current_dir_name(void)
{
	char *path = getcwd(NULL, 0);
	struct sysfs_place place;

	if (!path)
		return NULL;
	sysfs_resolve(AT_FDCWD, path, true, &place);
	if (place.where == SYSFS_HERE)
		return path;
	free(path);
	return sysfs_real()->get_current_dir_name();
}

char *__getcwd_chk(char *buf, size_t bytes, size_t room)
{
	if (bytes > room)
		__chk_fail();
	return getcwd(buf, bytes);
}

/* ---- links */

static bool read_here(int dir, const char *path, char *buf, size_t room, struct sysfs_place *place,
                      ssize_t *ret)
{
	char text[SYSFS_TEXT_ROOM];
	int n;

	sysfs_resolve(dir, path, false, place);
	if (place->where == SYSFS_ELSEWHERE)
		return false;
	if (place->where == SYSFS_NOWHERE)
		n = -place->error;
	else
		n = sysfs_kind(&place->node) == SYSFS_LINK ? sysfs_text(&place->node, text)
		                                           : -EINVAL;
	if (n < 0) {
		*ret = sysfs_fail(-n);
		return true;
	}
	n = (size_t)n < room ? n : (int)room;
	*ret = sysfs_is_writable(buf, (size_t)n) ? n : sysfs_fail(EFAULT);
	if (*ret > 0)
		memcpy(buf, text, (size_t)n);
	return true;
}

ssize_t readlink(const char *path, char *buf, size_t room)
{
	struct sysfs_place place;
	ssize_t ret;

	if (read_here(AT_FDCWD, path, buf, room, &place, &ret))
		return ret;
	return sysfs_real()->readlink(place.path, buf, room);
}

ssize_t readlinkat(int dir, const char *path, char *buf, size_t room)
{
	struct sysfs_place place;
	ssize_t ret;

	if (read_here(dir, path, buf, room, &place, &ret))
		return ret;
	return sysfs_real()->readlinkat(dir, place.path, buf, room);
}

ssize_t __readlink_chk(const char *path, char *buf, size_t bytes, size_t room)
{
	if (bytes > room)
		__chk_fail();
	return readlink(path, buf, bytes);
}

ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t bytes, size_t room)
{
	if (bytes > room)
		__chk_fail();
	return readlinkat(dir, path, buf, bytes);
}

char *realpath(const char *path, char *resolved)
{
	struct sysfs_place place;
	char *real;

	sysfs_resolve(AT_FDCWD, path, true, &place);
	if (place.where == SYSFS_ELSEWHERE) {
		real = sysfs_real()->realpath(place.path, resolved);
		if (real)
			sysfs_home_to_path(real); /* such as /proc/self/cwd */
		return real;
	}
	if (place.where == SYSFS_HERE)
		return resolved ? strcpy(resolved, place.canonical) : strdup(place.canonical);
	errno = place.error;
	return NULL;
}

char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

char *__realpath_chk(const char *path, char *resolved, size_t room)
{
	if (room < PATH_MAX)
		__chk_fail();
	return realpath(path, resolved);
}
