/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The owner of a runtime directory: see owner.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/owner.h"
#include "control/path.h"

/* A socket, and the address of the owner's of that directory. -ENAMETOOLONG, -errno. */
static int open_socket(const char *dir, struct sockaddr_un *addr)
{
	int fd, n;

	addr->sun_family = AF_UNIX;
	n = snprintf(addr->sun_path, sizeof(addr->sun_path), "%s/.owner", dir);
	if (n < 0 || (size_t)n >= sizeof(addr->sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd < 0 ? -errno : fd;
}

int control_owner_become(const char *dir)
{
	struct sockaddr_un addr;
	int fd = open_socket(dir, &addr), error;

	if (fd < 0 || (!bind(fd, (struct sockaddr *)&addr, sizeof(addr)) && !listen(fd, SOMAXCONN)))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

int control_owner_watch(void)
{
	struct sockaddr_un addr;
	char dir[PATH_MAX];
	int fd, error = control_runtime_dir(dir, sizeof(dir));

	fd = error ? error : open_socket(dir, &addr);
	/* a path that is too long for this socket is too long for the daemon's: that is said there
	 */
	if (fd == -ENAMETOOLONG)
		return -ENOENT;
	if (fd < 0 || !connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	error = -errno;
	close(fd);
	return error;
}
