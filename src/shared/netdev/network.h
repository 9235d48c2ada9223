/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network that sockets belong to: the process's own, or another network namespace, in which
 * another process makes the sockets. A socket stays in its network, whichever process uses it: only
 * making it differs.
 */
#ifndef NETDEV_NETWORK_H
#define NETDEV_NETWORK_H

#include <errno.h>
#include <sys/socket.h>

struct netdev_network {
	/* As socket(2), close-on-exec: a descriptor, or -errno. */
	int (*socket)(const struct netdev_network *network, int family, int type, int protocol);
};

/* A device, in a network. */
struct netdev_site {
	const struct netdev_network *network; /* NULL: this process's */
	const char *device;
};

/* A socket in @network; NULL: this process's. A descriptor, or -errno. */
static inline int netdev_network_socket(const struct netdev_network *network, int family, int type,
                                        int protocol)
{
	int fd;

	if (network)
		return network->socket(network, family, type, protocol);
	fd = socket(family, type | SOCK_CLOEXEC, protocol);
	return fd < 0 ? -errno : fd;
}

#endif
