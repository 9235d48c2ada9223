/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * open(2) and what else opens files, and reading them again from the start: see wrap.h.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sysfs/opened.h"
#include "sysfs/wrap.h"

int __open_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
ssize_t __pread_chk(int fd, void *buf, size_t bytes, off_t offset, size_t room);

static bool has_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

/* Where open() of it leads. True: *@fd is the result. */
static bool open_here(int dir, const char *path, int flags, struct sysfs_place *place, int *fd)
{
	bool follow;

	if (flags & O_PATH) /* it ignores all others */
		flags &= O_PATH | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW;
	follow = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
	sysfs_resolve(dir, path, follow, place);
	if (place->where == SYSFS_ELSEWHERE)
		return false;
	if (place->where == SYSFS_HERE)
		*fd = sysfs_open_place(place, flags);
	else
		*fd = sysfs_fail(place->error == ENOENT && (flags & O_CREAT) ? EACCES
		                                                             : place->error);
	return true;
}

static int note_real(int fd, const struct sysfs_place *place)
{
	int error = errno;

	sysfs_opened_forget(fd);
	if (place->on_way && fd >= 0)
		sysfs_opened_note_dir(fd, &place->node);
	else if (fd >= 0)
		sysfs_opened_look_at_issm(fd, place->path);
	errno = error;
	return fd;
}

int open(const char *path, int flags, ...)
{
	struct sysfs_place place;
	mode_t mode = 0;
	va_list list;
	int fd;

	va_start(list, flags);
	if (has_mode(flags))
		mode = va_arg(list, mode_t);
	va_end(list);
	if (open_here(AT_FDCWD, path, flags, &place, &fd))
		return fd;
	return note_real(sysfs_real()->open(place.path, flags, mode), &place);
}

int openat(int dir, const char *path, int flags, ...)
{
	struct sysfs_place place;
	mode_t mode = 0;
	va_list list;
	int fd;

	va_start(list, flags);
	if (has_mode(flags))
		mode = va_arg(list, mode_t);
	va_end(list);
	if (open_here(dir, path, flags, &place, &fd))
		return fd;
	return note_real(sysfs_real()->openat(dir, place.path, flags, mode), &place);
}

int creat(const char *path, mode_t mode)
{
	return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int __open_2(const char *path, int flags)
{
	return open(path, flags);
}

int __openat_2(int dir, const char *path, int flags)
{
	return openat(dir, path, flags);
}

SYSFS_ALIAS(open64, open);
SYSFS_ALIAS(openat64, openat);
SYSFS_ALIAS(creat64, creat);
SYSFS_ALIAS(__open64_2, __open_2);
SYSFS_ALIAS(__openat64_2, __openat_2);

/* ---- streams */

static int flags_of(const char *mode)
{
	int flags = strchr(mode, 'e') ? O_CLOEXEC : 0;

	if (strchr(mode, '+'))
		return flags | O_RDWR;
	return flags | (*mode == 'r' ? O_RDONLY : O_WRONLY);
}

FILE *fopen(const char *path, const char *mode)
{
	struct sysfs_place place;
	FILE *f;
	int fd;

	if (!open_here(AT_FDCWD, path, flags_of(mode), &place, &fd)) {
		f = sysfs_real()->fopen(place.path, mode);
		if (f)
			sysfs_opened_forget(fileno(f));
		return f;
	}
	if (fd < 0)
		return NULL;
	f = fdopen(fd, mode);
	if (!f)
		close(fd);
	return f;
}

FILE *freopen(const char *path, const char *mode, FILE *stream)
{
	struct sysfs_place place;
	char link[32];
	FILE *f;
	int fd;

	if (!path || !open_here(AT_FDCWD, path, flags_of(mode), &place, &fd))
		return sysfs_real()->freopen(path ? place.path : NULL, mode, stream);
	if (fd < 0) {
		fclose(stream); /* as freopen() does when it fails */
		return NULL;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	f = sysfs_real()->freopen(link, mode, stream);
	close(fd);
	return f;
}

SYSFS_ALIAS(fopen64, fopen);
SYSFS_ALIAS(freopen64, freopen);

/* ---- reading again */

off_t lseek(int fd, off_t offset, int whence)
{
	if (offset == 0 && whence == SEEK_SET)
		sysfs_opened_refresh(fd);
	return sysfs_real()->lseek(fd, offset, whence);
}

ssize_t pread(int fd, void *buf, size_t bytes, off_t offset)
{
	if (offset == 0)
		sysfs_opened_refresh(fd);
	return sysfs_real()->pread(fd, buf, bytes, offset);
}

ssize_t __pread_chk(int fd, void *buf, size_t bytes, off_t offset, size_t room)
{
	if (bytes > room)
		__chk_fail();
	return pread(fd, buf, bytes, offset);
}

SYSFS_ALIAS(lseek64, lseek);
SYSFS_ALIAS(pread64, pread);
SYSFS_ALIAS(__pread64_chk, __pread_chk);
