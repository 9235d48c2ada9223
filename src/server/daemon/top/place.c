/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a fabric is: see place.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/directory.h"
#include "control/owner.h"
#include "control/path.h"
#include "daemon/top/place.h"

static int find_place(struct daemon_place *p, const char *fabric)
{
	int ret = control_path(p->dir, sizeof(p->dir), fabric, NULL);

	if (!ret)
		ret = control_path(p->socket, sizeof(p->socket), fabric, "ctl");
	if (!ret)
		ret = control_path(p->lock, sizeof(p->lock), fabric, "lock");
	return ret;
}

/* Removes the directories that programs have made to look into (src/client/sysfs/stand_in.h); a
 * dead daemon's, too. */
static void remove_stand_ins(const struct daemon_place *p)
{
	char path[sizeof(p->dir) + sizeof("/" CONTROL_STAND_INS)];

	snprintf(path, sizeof(path), "%s/" CONTROL_STAND_INS, p->dir);
	control_remove_dir(path);
}

/* The lock says that a daemon lives: a dead one's is free, whatever files it left. */
static int acquire_lock(int dir)
{
	int fd = openat(dir, "lock", O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
	char pid[16];
	int n;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		n = errno == EWOULDBLOCK ? -EEXIST : -errno;
		close(fd);
		return n;
	}
	n = snprintf(pid, sizeof(pid), "%d\n", getpid());
	if (ftruncate(fd, 0) < 0 || write(fd, pid, n) < 0) {
		n = -errno;
		close(fd);
		return n;
	}
	return fd;
}

/* Lets other users pass to the fabric, or not: a dead daemon may have left it otherwise. The
 * directory around it may have other fabrics in it, so that one is left as it is in that case. */
static int set_passage(int dir, bool open)
{
	char path[PATH_MAX];
	int ret;

	if (fchmod(dir, open ? CONTROL_PASSABLE : 0700) < 0)
		return -errno;
	if (!open)
		return 0;
	ret = control_runtime_dir(path, sizeof(path));
	return !ret && chmod(path, CONTROL_PASSABLE) < 0 ? -errno : ret;
}

static int lock(const char *fabric, bool open, char why[static CONTROL_WHY_ROOM])
{
	int dir = control_fabric_open(fabric, true, why), fd, ret;

	if (dir < 0)
		return dir;
	fd = acquire_lock(dir);
	ret = fd < 0 ? 0 : set_passage(dir, open);
	close(dir);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/* The directory is proven private, so its owner is this user's. */
static int find_owner(struct daemon_place *p, char why[static CONTROL_WHY_ROOM])
{
	int ret = control_owner_watch();

	if (ret == -ENOENT)
		return 0;
	if (ret == -ECONNREFUSED)
		snprintf(why, CONTROL_WHY_ROOM, "the 'umbel run' around this fabric has ended");
	p->owner_fd = ret;
	return ret < 0 ? ret : 0;
}

int daemon_place_occupy(struct daemon_place *p, const char *fabric, bool open,
                        char why[static CONTROL_WHY_ROOM])
{
	int ret;

	p->open = open;
	p->lock_fd = p->listen_fd = p->owner_fd = -1;
	ret = find_place(p, fabric);
	if (!ret)
		ret = p->lock_fd = lock(fabric, open, why);
	if (ret < 0)
		return ret;
	remove_stand_ins(p);
	return find_owner(p, why);
}

static int listen_at(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, ret;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	unlink(path); /* a dead daemon's: we hold the lock */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, SOMAXCONN) < 0) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

int daemon_place_listen(struct daemon_place *p)
{
	p->listen_fd = listen_at(p->socket);
	if (p->listen_fd < 0)
		return p->listen_fd;
	/* the daemon itself checks which users it lets in */
	return p->open && chmod(p->socket, 0666) < 0 ? -errno : 0;
}

void daemon_place_unlisten(struct daemon_place *p)
{
	if (p->listen_fd < 0)
		return;
	unlink(p->socket);
	close(p->listen_fd);
}

void daemon_place_leave(struct daemon_place *p)
{
	if (p->owner_fd >= 0)
		close(p->owner_fd);
	if (p->lock_fd < 0)
		return;
	remove_stand_ins(p);
	unlink(p->lock);
	rmdir(p->dir); /* stays if a log is in it */
	close(p->lock_fd);
}
