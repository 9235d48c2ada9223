/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where stand-ins are: see home.h. They are in FABRIC/sysfs/HOST, or FABRIC/sysfs/.all for a
 * process that sees all hosts. If FABRIC is another user's, it lets us pass but make nothing. Then
 * stand-ins are in a directory of our own, OWN/.visits/FABRIC-SOCKET: each fabric of that name has
 * another socket. It is left behind, as the daemon cannot remove it.
 */
#define _GNU_SOURCE
#include "sysfs/home.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/directory.h"
#include "control/path.h"
#include "sysfs/real.h"

/* The registry: found once, never freed. */
static _Atomic(struct sysfs_home *) home;

/* The search opens files itself. */
static _Thread_local bool searching;

/* Makes our own directory beside another user's fabric. 0 or -errno. */
static int make_visit(char path[static PATH_MAX], const struct stat *socket)
{
	char own[PATH_MAX], why[CONTROL_WHY_ROOM];
	int ret = control_own_dir(own, sizeof(own));

	if (!ret && snprintf(path, PATH_MAX, "%s/.visits/%s-%llx-%llx", own, control_fabric_name(),
	                     (unsigned long long)socket->st_ino,
	                     (unsigned long long)socket->st_ctim.tv_sec * 1000000000 +
	                             (unsigned long long)socket->st_ctim.tv_nsec) >= PATH_MAX)
		ret = -ENAMETOOLONG;
	if (!ret)
		ret = control_directory_open(path, true, why);
	if (ret < 0)
		return ret;
	close(ret);
	return 0;
}

static int find_home(struct sysfs_home *h)
{
	char path[PATH_MAX], why[CONTROL_WHY_ROOM];
	int ret, dir = control_fabric_open(control_fabric_name(), false, why);
	struct stat st, ctl;

	if (dir < 0)
		return dir;
	ret = sysfs_real()->fstat(dir, &st) ? -errno : 0;
	if (!ret && sysfs_real()->fstatat(dir, "ctl", &ctl, 0))
		ret = -errno;
	close(dir);
	if (ret)
		return ret;
	if (st.st_uid == geteuid() || geteuid() == 0)
		ret = control_path(path, sizeof(path), control_fabric_name(), NULL);
	else
		ret = make_visit(path, &ctl);
	if (ret)
		return ret;
	h->uid = st.st_uid;
	h->gid = st.st_gid;
	return sysfs_real()->realpath(path, h->path) ? 0 : -errno;
}

const struct sysfs_home *sysfs_home_get(void)
{
	struct sysfs_home *h = atomic_load_explicit(&home, memory_order_acquire), *none = NULL;
	bool found;

	if (h || searching)
		return h;
	h = calloc(1, sizeof(*h));
	searching = true;
	found = h && !find_home(h);
	searching = false;
	if (!found) {
		free(h);
		return NULL;
	}
	if (atomic_compare_exchange_strong(&home, &none, h))
		return h;
	free(h); /* another thread was faster */
	return none;
}

bool sysfs_home_to_path(char *path)
{
	const struct sysfs_home *h;
	const char *rest;
	size_t n;

	if (!strstr(path, "/" CONTROL_STAND_INS "/"))
		return false;
	h = sysfs_home_get();
	n = h ? strlen(h->path) : 0;
	if (!h || strncmp(path, h->path, n) ||
	    strncmp(path + n, "/" CONTROL_STAND_INS "/", strlen(CONTROL_STAND_INS) + 2))
		return false;
	rest = strchr(path + n + strlen(CONTROL_STAND_INS) + 2, '/'); /* behind the host */
	if (!rest)
		return false;
	memmove(path, rest, strlen(rest) + 1);
	return true;
}

bool sysfs_home_of(int fd, char path[static PATH_MAX])
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = sysfs_real()->readlink(link, path, PATH_MAX - 1);
	if (n <= 0)
		return false;
	path[n] = '\0';
	return sysfs_home_to_path(path);
}
