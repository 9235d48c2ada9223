/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One datagram to the service manager. It knows the sender's process by the kernel.
 */
#define _GNU_SOURCE
#include "daemon/top/notify.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int daemon_notify(const char *path, const char *state)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t length = path ? strlen(path) : 0;
	int fd, ret = 0;

	if (!length)
		return 0;
	if (!strchr("/@", *path) || length > sizeof(to.sun_path))
		return -EINVAL;
	memcpy(to.sun_path, path, length);
	if (*path == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
	           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}
