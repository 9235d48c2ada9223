/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a path leads: see path.h.
 *
 * Whether paths that begin at the current directory need a look is known from a flag, which is
 * never cleared: a child by vfork() that changes its directory writes to its parent's memory.
 */
#define _GNU_SOURCE
#include "sysfs/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sysfs/home.h"
#include "sysfs/pointer.h"
#include "sysfs/real.h"

#define MAX_DEPTH 16
#define MAX_LINKS 8

enum cwd { CWD_UNKNOWN, CWD_OUT, CWD_IN };

static atomic_int cwd_state;
static atomic_bool has_dirs;

bool sysfs_path_is_empty(const char *path)
{
	return path && sysfs_is_path(path) && !*path;
}

void sysfs_note_dir(void)
{
	atomic_store_explicit(&has_dirs, true, memory_order_relaxed);
}

bool sysfs_has_dirs(void)
{
	return atomic_load_explicit(&has_dirs, memory_order_relaxed);
}

/* ---- where a relative path begins */

static bool begins_with(const char *path, const char *first)
{
	size_t n = strlen(first);

	return !strncmp(path, first, n) && (!path[n] || path[n] == '/');
}

static bool may_lead_to_tree(const char *dir)
{
	return begins_with(dir, "/sys") || begins_with(dir, "/dev") || !strcmp(dir, "/");
}

/* The current directory as the program sees it. */
static bool find_cwd(char dir[static PATH_MAX])
{
	if (!sysfs_real()->getcwd(dir, PATH_MAX))
		return false;
	sysfs_home_to_path(dir);
	return may_lead_to_tree(dir);
}

static bool cwd_is_in(void)
{
	char dir[PATH_MAX];

	if (atomic_load_explicit(&cwd_state, memory_order_relaxed) == CWD_UNKNOWN) {
		int unknown = CWD_UNKNOWN;

		atomic_compare_exchange_strong(&cwd_state, &unknown,
		                               find_cwd(dir) ? CWD_IN : CWD_OUT);
	}
	return atomic_load_explicit(&cwd_state, memory_order_relaxed) == CWD_IN;
}

void sysfs_before_chdir(void)
{
	int error = errno;

	cwd_is_in();
	errno = error;
}

void sysfs_after_chdir(void)
{
	char dir[PATH_MAX];
	int error = errno;

	if (find_cwd(dir))
		atomic_store_explicit(&cwd_state, CWD_IN, memory_order_relaxed);
	errno = error;
}

static bool find_dir(int fd, char dir[static PATH_MAX])
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = sysfs_real()->readlink(link, dir, PATH_MAX - 1);
	if (n <= 0)
		return false;
	dir[n] = '\0';
	sysfs_home_to_path(dir);
	return may_lead_to_tree(dir);
}

/* The rest of an absolute path behind the "/", "." and ".." at its start: from the root these lead
 * nowhere else. */
static const char *skip_root(const char *path)
{
	for (;;) {
		path += strspn(path, "/");
		if (begins_with(path, ".."))
			path += 2;
		else if (begins_with(path, "."))
			path++;
		else
			return path;
		if (!*path)
			return path;
	}
}

/* The directory where @path begins; false: it cannot lead into the tree. A descriptor may have come
 * from anywhere, such as a parent: only the kernel knows which directory it is. */
static bool find_base(int dir, const char *path, char base[static PATH_MAX])
{
	if (*path == '/') {
		path = skip_root(path);
		strcpy(base, "/");
		return begins_with(path, "sys") || begins_with(path, "dev");
	}
	if (dir == AT_FDCWD)
		return cwd_is_in() && find_cwd(base);
	return find_dir(dir, base);
}

/* ---- the walk */

struct walk {
	struct sysfs_node node[MAX_DEPTH];
	unsigned end[MAX_DEPTH]; /* of the name in the canonical path */
	unsigned depth;          /* of the current node; 0: the root */
	unsigned links;
	bool follow;
	bool touched; /* it has been in the tree: the program's own path leads elsewhere */
	struct sysfs_place *place;
	char rest[PATH_MAX]; /* what is still to be walked */
};

static int append(struct walk *w, const char *name, size_t length, const struct sysfs_node *child)
{
	unsigned at = w->end[w->depth];

	if (w->depth + 1 == MAX_DEPTH || at + length + 2 > PATH_MAX)
		return -ENAMETOOLONG;
	w->place->canonical[at] = '/';
	memcpy(w->place->canonical + at + 1, name, length);
	w->depth++;
	w->end[w->depth] = at + 1 + (unsigned)length;
	w->place->canonical[w->end[w->depth]] = '\0';
	w->node[w->depth] = *child;
	w->touched |= sysfs_kind(child) != SYSFS_OUTSIDE;
	return 0;
}

static void go_to_root(struct walk *w)
{
	w->depth = 0;
	w->place->canonical[0] = '\0';
}

/* The path goes on at the link's target. */
static int follow_link(struct walk *w, const struct sysfs_node *link, const char *behind)
{
	char text[SYSFS_TEXT_ROOM], rest[PATH_MAX];
	int n;

	if (++w->links > MAX_LINKS)
		return -ELOOP;
	n = sysfs_text(link, text);
	if (n < 0)
		return -ENOENT;
	n = snprintf(rest, sizeof(rest), "%s%s", text, behind);
	if (n >= (int)sizeof(rest))
		return -ENAMETOOLONG;
	if (*text == '/')
		go_to_root(w);
	strcpy(w->rest, rest);
	w->touched = true;
	return 0;
}

/* The path leaves the tree: takes the part that has been walked, and the rest as it is. */
static int leave(struct walk *w, const char *rest)
{
	unsigned at = w->end[w->depth];
	int n = snprintf(w->place->canonical + at, PATH_MAX - at, "/%s", rest);

	return n < (int)(PATH_MAX - at) ? 1 : -ENAMETOOLONG;
}

/* A netdev has a path in /sys/devices, too, by which programs go that follow links themselves. */
static bool find_netdev(struct walk *w)
{
	const char *net = strstr(w->rest, "/net/"), *device;
	char path[PATH_MAX];

	if (!net || !begins_with(w->place->canonical, "/sys/devices") || w->links)
		return false;
	device = net + strlen("/net/");
	device += strcspn(device, "/");
	if (!sysfs_netdev_has(device))
		return false;
	w->links++;
	go_to_root(w);
	if (snprintf(path, sizeof(path), "/sys/class%s", net) < (int)sizeof(path))
		strcpy(w->rest, path);
	return true;
}

/* Walks the first name of the rest. 0; 1: the path leaves the tree; -errno. */
static int step(struct walk *w)
{
	const char *name = w->rest + strspn(w->rest, "/"), *behind;
	struct sysfs_node *at = &w->node[w->depth], child;
	size_t length = strcspn(name, "/");
	int ret;

	behind = name + length;
	if (!length || (length == 1 && *name == '.') || (length == 2 && !strncmp(name, "..", 2))) {
		if (sysfs_kind(at) == SYSFS_FILE || sysfs_kind(at) == SYSFS_DEVICE)
			return -ENOTDIR;
		if (length == 2 && w->depth)
			w->depth--;
		w->place->canonical[w->end[w->depth]] = '\0';
		memmove(w->rest, behind, strlen(behind) + 1);
		return 0;
	}
	ret = sysfs_find(at, name, length, behind, &child);
	if (ret == -ENOENT && sysfs_kind(at) == SYSFS_OUTSIDE)
		return find_netdev(w) ? 0 : leave(w, name);
	if (ret)
		return ret;
	if (sysfs_kind(&child) == SYSFS_LINK && (*behind || w->follow))
		return follow_link(w, &child, behind);
	ret = append(w, name, length, &child);
	memmove(w->rest, behind, strlen(behind) + 1);
	return ret;
}

static void walk(struct walk *w)
{
	struct sysfs_place *place = w->place;
	int ret = 0;

	while (!ret && *w->rest)
		ret = step(w);
	if (ret < 0) {
		place->where = SYSFS_NOWHERE;
		place->error = -ret;
		return;
	}
	if (!w->depth)
		strcpy(place->canonical, "/");
	if (w->touched)
		place->path = place->canonical;
	place->node = w->node[w->depth];
	place->on_way = !ret && sysfs_kind(&place->node) == SYSFS_OUTSIDE;
	if (!ret && !place->on_way)
		place->where = SYSFS_HERE;
}

/* Fills in the path to be walked, from "/" on. False: it is too long; the real function says so. */
static bool begin(struct walk *w, int dir, const char *path)
{
	size_t n;

	if (!find_base(dir, path, w->rest))
		return false;
	n = strlen(w->rest);
	return snprintf(w->rest + n, sizeof(w->rest) - n, "/%s", path) < (int)(sizeof(w->rest) - n);
}

void sysfs_resolve(int dir, const char *path, bool follow, struct sysfs_place *place)
{
	int error = errno;
	struct walk w;

	place->where = SYSFS_ELSEWHERE;
	place->on_way = false;
	place->path = path;
	if (!path || !sysfs_is_path(path) || !*path)
		return; /* the real function says what is wrong */
	if (begin(&w, dir, path)) {
		w.place = place;
		w.follow = follow;
		w.depth = w.links = 0;
		w.touched = false;
		w.node[0] = sysfs_root;
		w.end[0] = 0;
		place->canonical[0] = '\0';
		walk(&w);
	}
	errno = error;
}
