/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Proves that a directory is private: see directory.h. The path is walked one component at a
 * time from "/", by descriptors, so that what was checked is what is used.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/directory.h"
#include "control/owner.h"
#include "control/path.h"

#define MAX_LINKS 40
#define NOBODY    ((uid_t)-1)

struct walk {
	int fd;              /* the directory that was reached, by O_PATH */
	uid_t system;        /* the owner of "/" */
	uid_t other;         /* the other user whose directories were passed; or NOBODY */
	bool shared;         /* others than its owner may make entries in the directory reached */
	bool make;           /* what is missing is made */
	unsigned n_links;    /* that were followed */
	char at[PATH_MAX];   /* its path, for messages */
	char rest[PATH_MAX]; /* what is left to walk */
	char *why;
};

static bool names_a_directory(void)
{
	const char *named = secure_getenv("UMBEL_RUNTIME_DIR");

	return named && *named;
}

bool control_user_is_trusted(uid_t uid, const char *socket)
{
	struct stat st;

	if (uid == geteuid())
		return true;
	return names_a_directory() && (geteuid() == 0 || (!stat(socket, &st) && st.st_uid == uid));
}

/* Whether this user namespace has all numbers, by one line that maps each to itself. */
static bool maps_all(const char *path)
{
	unsigned inside, outside, n;
	FILE *map = fopen(path, "re");
	bool all;

	all = map && fscanf(map, "%u %u %u", &inside, &outside, &n) == 3 && !inside && !outside &&
	      n == UINT_MAX;
	if (map)
		fclose(map);
	return all;
}

bool control_user_is_known(uid_t uid)
{
	return uid != CONTROL_UNKNOWN_USER || maps_all("/proc/self/uid_map");
}

bool control_group_is_known(gid_t gid)
{
	return gid != CONTROL_UNKNOWN_USER || maps_all("/proc/self/gid_map");
}

static int refuse(struct walk *w, int error, const char *what)
{
	snprintf(w->why, CONTROL_WHY_ROOM, "'%.500s' %s", *w->at ? w->at : "/", what);
	return error;
}

static int refuse_errno(struct walk *w, int error)
{
	snprintf(w->why, CONTROL_WHY_ROOM, "'%.500s': %s", *w->at ? w->at : "/", strerror(-error));
	return error;
}

static int refuse_owner(struct walk *w, uid_t uid)
{
	const bool may_visit = !w->make && names_a_directory();
	char what[128];

	snprintf(what, sizeof(what), "belongs to another user (%u)%s", (unsigned)uid,
	         !may_visit                    ? ""
	         : !control_user_is_known(uid) ? ", who has no number in this user namespace"
	         : w->shared                   ? ", and is where anybody may make one"
	                                       : "");
	return refuse(w, -EPERM, what);
}

/*
 * Whether the directory may belong to @uid: to this user, or to the one other who is visited. Root
 * knows what it does. Other users are to meet only the directory of the user that they mean: it is
 * not where anybody could have made one of that name.
 */
static bool may_own_directory(struct walk *w, uid_t uid)
{
	if (uid == geteuid())
		return true;
	if (w->make || !names_a_directory() || (w->other != NOBODY && w->other != uid))
		return false;
	if (geteuid() != 0 && uid != 0 && (w->shared || !control_user_is_known(uid)))
		return false;
	w->other = uid;
	return true;
}

static bool may_own_ancestor(struct walk *w, uid_t uid)
{
	return uid == 0 || uid == w->system || may_own_directory(w, uid);
}

static int check_ancestor(struct walk *w, const struct stat *st)
{
	if (!may_own_ancestor(w, st->st_uid))
		return refuse_owner(w, st->st_uid);
	if ((st->st_mode & S_IWOTH) && !(st->st_mode & S_ISVTX))
		return refuse(w, -EPERM, "can be changed by all users");
	return 0;
}

/* The last directory. Returns a descriptor to use it by. */
static int check_private(struct walk *w, const struct stat *st)
{
	const bool is_visit = geteuid() != 0 && st->st_uid != geteuid();
	int fd;

	if (!may_own_directory(w, st->st_uid))
		return refuse_owner(w, st->st_uid);
	if ((st->st_mode & 077) && (st->st_mode & 0777) != CONTROL_PASSABLE)
		return refuse(w, -EPERM, "can be entered by other users; it must have mode 0700");
	if ((st->st_mode & 077) && !control_user_is_known(st->st_uid))
		return refuse_owner(w, st->st_uid);
	/* this proves the owner where numbers cannot: only he may search and read it */
	fd = openat(w->fd, ".", (is_visit ? O_PATH : O_RDONLY) | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? refuse_errno(w, -errno) : fd;
}

static int move_to(struct walk *w, int fd)
{
	if (fd < 0)
		return refuse_errno(w, -errno);
	close(w->fd);
	w->fd = fd;
	return 0;
}

static int start_at_root(struct walk *w)
{
	struct stat st;
	int ret = move_to(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));

	*w->at = '\0';
	if (!ret && fstat(w->fd, &st) < 0)
		ret = -errno;
	if (ret)
		return ret;
	w->system = st.st_uid;
	w->shared = st.st_mode & 022;
	return 0;
}

/* Puts what the symbolic link @fd says before the rest. Only root's and this user's lead on. */
static int follow_link(struct walk *w, int fd, const struct stat *st)
{
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t n;

	if (!*w->rest || !may_own_ancestor(w, st->st_uid))
		return refuse(w, -ELOOP, "is a symbolic link");
	n = readlinkat(fd, "", target, sizeof(target) - 1);
	if (n < 0)
		return refuse_errno(w, -errno);
	target[n] = '\0';
	if (++w->n_links > MAX_LINKS ||
	    (size_t)snprintf(rest, sizeof(rest), "%s/%s", target, w->rest) >= sizeof(rest))
		return refuse_errno(w, -ELOOP);
	memcpy(w->rest, rest, sizeof(rest));
	if (*target == '/')
		return start_at_root(w);
	*strrchr(w->at, '/') = '\0';
	return 0;
}

/* Opens the entry @name of the directory reached, and makes it before if that is wanted. */
static int open_entry(const struct walk *w, const char *name)
{
	int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(w->fd, name, flags);

	if (fd >= 0 || errno != ENOENT || !w->make ||
	    !strncmp(name, CONTROL_OWNED_PREFIX, sizeof(CONTROL_OWNED_PREFIX) - 1))
		return fd; /* an owner makes its own: one that is missing has ended */
	if (mkdirat(w->fd, name, 0700) < 0 && errno != EEXIST)
		return -1;
	return openat(w->fd, name, flags);
}

/* One component further. Of the last one: a descriptor; otherwise 0. Or -errno. */
static int step(struct walk *w, const char *name, bool is_last)
{
	size_t used = strlen(w->at);
	struct stat st;
	int fd, ret;

	fd = open_entry(w, name);
	ret = fd < 0 ? -errno : 0;
	snprintf(w->at + used, sizeof(w->at) - used, "/%s", name);
	if (ret)
		return refuse_errno(w, ret);
	if (fstat(fd, &st) < 0) {
		ret = refuse_errno(w, -errno);
	} else if (S_ISLNK(st.st_mode)) {
		ret = follow_link(w, fd, &st);
	} else if (!S_ISDIR(st.st_mode)) {
		ret = refuse(w, -ENOTDIR, "is no directory");
	} else {
		ret = move_to(w, fd);
		fd = -1;
		if (!ret)
			ret = is_last ? check_private(w, &st) : check_ancestor(w, &st);
		w->shared = st.st_mode & 022;
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

/* Removes the next component from the rest. False: there is none. */
static bool next_component(struct walk *w, char name[static NAME_MAX + 1], int *error)
{
	char *p = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(p, "/");

	*error = n > NAME_MAX ? -ENAMETOOLONG : 0;
	if (!n || *error)
		return false;
	memcpy(name, p, n);
	name[n] = '\0';
	p += n;
	p += strspn(p, "/");
	memmove(w->rest, p, strlen(p) + 1);
	return true;
}

static int walk(struct walk *w)
{
	char name[NAME_MAX + 1];
	int ret = start_at_root(w);

	while (!ret && next_component(w, name, &ret)) {
		if (strcmp(name, ".") != 0 || !*w->rest)
			ret = step(w, name, !*w->rest);
	}
	if (ret == -ENAMETOOLONG)
		refuse_errno(w, ret);
	/* "/" itself is nobody's private directory */
	return ret ? ret : refuse(w, -EPERM, "is not private");
}

/* The path from "/" on, without a slash at the end. 0 or -errno. */
static int set_path(struct walk *w, const char *path)
{
	char cwd[PATH_MAX] = "";
	size_t n;

	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	n = (size_t)snprintf(w->rest, sizeof(w->rest), "%s/%s", cwd, path);
	if (n >= sizeof(w->rest))
		return -ENAMETOOLONG;
	while (n && w->rest[n - 1] == '/')
		w->rest[--n] = '\0';
	return 0;
}

/* Walks @path, then the directory @inner in it unless that is NULL. */
static int open_private(const char *path, const char *inner, bool make, char *why)
{
	struct walk w = { .fd = -1, .other = NOBODY, .make = make, .why = why };
	int ret, outer;

	*why = '\0';
	ret = set_path(&w, path);
	if (!ret) {
		ret = walk(&w);
	} else {
		snprintf(why, CONTROL_WHY_ROOM, "'%.500s': %s", path, strerror(-ret));
	}
	outer = ret;
	if (ret >= 0 && inner) {
		ret = step(&w, inner, true);
		close(outer);
	}
	if (w.fd >= 0)
		close(w.fd);
	return ret;
}

int control_directory_open(const char *path, bool make, char why[static CONTROL_WHY_ROOM])
{
	return open_private(path, NULL, make, why);
}

int control_fabric_open(const char *name, bool make, char why[static CONTROL_WHY_ROOM])
{
	char path[PATH_MAX];
	int ret = control_path(path, sizeof(path), name, NULL);

	*why = '\0';
	if (!ret)
		ret = control_runtime_dir(path, sizeof(path));
	if (ret) {
		snprintf(why, CONTROL_WHY_ROOM, "the directory of fabric '%.40s': %s", name,
		         strerror(-ret));
		return ret;
	}
	return open_private(path, name, make, why);
}

/* Not by nftw(3), which tells what is mounted by its device: on overlayfs files may have another
 * one than their directory. */
void control_remove_dir(const char *path)
{
	char *const paths[] = { (char *)path, NULL };
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
	const FTSENT *e;

	while (tree && (e = fts_read(tree)))
		if (e->fts_info != FTS_D)
			remove(e->fts_path);
	if (tree)
		fts_close(tree);
}
