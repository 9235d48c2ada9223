/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stand-ins: see stand_in.h.
 */
#define _GNU_SOURCE
#include "sysfs/stand_in.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "control/path.h"
#include "sysfs/home.h"
#include "sysfs/real.h"

/*
 * The directory @name in @dir, made if it is not there. Root may make it for the fabric's owner,
 * and the owner could put something else in its place meanwhile: so by descriptors, without
 * following links. Whatever the program's umask is. The descriptor or -errno.
 */
static int enter(const struct sysfs_home *h, int dir, const char *name)
{
	bool made = !mkdirat(dir, name, 0700);
	int fd, ret;

	if (!made && errno != EEXIST)
		return -errno;
	fd = sysfs_real()->openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (made &&
	    (fchmod(fd, 0755) || (geteuid() == 0 && h->uid != 0 && fchown(fd, h->uid, h->gid)))) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

/* All directories of @path, from the fabric's on. The descriptor of the last one, or -errno. */
static int enter_all(const struct sysfs_home *h, char *path)
{
	int fd = sysfs_real()->open(h->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char *name, *rest = path;

	if (fd < 0)
		return -errno;
	while (fd >= 0 && (name = strsep(&rest, "/"))) {
		int dir = fd;

		if (!*name)
			continue;
		fd = enter(h, dir, name);
		close(dir);
	}
	return fd;
}

struct filling {
	const struct sysfs_home *home;
	int dir;
	unsigned n; /* entries */
};

/* One with another text is replaced: a network device may be on another HCA now. */
static int make_link(int dir, const char *name, const char *text)
{
	char old[SYSFS_TEXT_ROOM];
	ssize_t n;

	if (!symlinkat(text, dir, name))
		return 0;
	if (errno != EEXIST)
		return -1;
	n = sysfs_real()->readlinkat(dir, name, old, sizeof(old));
	if (n == (ssize_t)strlen(text) && !memcmp(old, text, (size_t)n))
		return 0;
	unlinkat(dir, name, 0);
	return symlinkat(text, dir, name);
}

static int make_entry(void *arg, const char *name, const struct sysfs_node *child)
{
	struct filling *f = arg;
	char text[SYSFS_TEXT_ROOM];
	int ret = 0;

	f->n++;
	switch (sysfs_kind(child)) {
	case SYSFS_OUTSIDE:
	case SYSFS_DIR:
		ret = enter(f->home, f->dir, name);
		if (ret < 0)
			return ret;
		close(ret);
		return 0;
	case SYSFS_LINK:
		if (sysfs_text(child, text) < 0)
			f->n--;
		else
			ret = make_link(f->dir, name, text);
		break;
	case SYSFS_FILE:
		ret = mknodat(f->dir, name, S_IFREG | 0444, 0);
		break;
	case SYSFS_DEVICE:
		ret = mkfifoat(f->dir, name, 0600); /* readdir() of ours says what it is */
		break;
	}
	return ret && errno != EEXIST ? -errno : 0;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Removes entries of what is not there any more, such as a network device by its old name. */
static void remove_gone(const struct filling *f, const struct sysfs_node *node)
{
	int fd = sysfs_real()->openat(f->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : sysfs_real()->fdopendir(fd);
	struct sysfs_node child;
	struct dirent *e;
	unsigned n = 0;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (sysfs_real()->readdir(dir))
		n++;
	if (n > f->n + 2) {
		sysfs_real()->rewinddir(dir);
		while ((e = sysfs_real()->readdir(dir)) != NULL)
			if (!is_dots(e->d_name) &&
			    sysfs_find(node, e->d_name, strlen(e->d_name), "", &child) == -ENOENT)
				unlinkat(f->dir, e->d_name, e->d_type == DT_DIR ? AT_REMOVEDIR : 0);
	}
	sysfs_real()->closedir(dir);
}

static int make(const struct sysfs_home *h, const struct sysfs_place *place, bool fill, char *path)
{
	char name[CONTROL_HOST_ROOM];
	const char *host = control_host_name(name);
	struct filling f = { .home = h };
	char within[PATH_MAX];
	int ret = 0, n;

	n = snprintf(within, PATH_MAX, "%s/%s%s", CONTROL_STAND_INS, host ? host : ".all",
	             place->canonical);
	if (n >= PATH_MAX || snprintf(path, PATH_MAX, "%s/%s", h->path, within) >= PATH_MAX)
		return -ENAMETOOLONG;
	f.dir = enter_all(h, within);
	if (f.dir < 0)
		return f.dir;
	if (fill)
		ret = sysfs_list(&place->node, make_entry, &f);
	if (fill && !ret)
		remove_gone(&f, &place->node);
	close(f.dir);
	return ret;
}

int sysfs_stand_in_make(const struct sysfs_place *place, bool fill, char path[static PATH_MAX])
{
	int error = errno, ret = -ENOENT;
	const struct sysfs_home *h = sysfs_home_get();

	if (h)
		ret = make(h, place, fill, path);
	if (ret)
		base_log_warning(sysfs, "cannot make a directory that stands for '%s': %s",
		                 place->canonical, strerror(-ret));
	errno = error;
	return ret;
}
