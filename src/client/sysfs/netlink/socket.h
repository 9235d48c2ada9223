/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets that a program takes for such of RDMA netlink: netlink(7). They are real ones, of a
 * protocol that every kernel has for programs among themselves (NETLINK_USERSOCK), so poll(),
 * options and addresses are the kernel's. A request on one goes to another socket of this process,
 * which exists as long as it takes to answer. If an answer does not fit the receiver's queue, the
 * rest follows as the queue is read.
 *
 * Thread-safe, and safe after fork().
 */
#ifndef SYSFS_NETLINK_SOCKET_H
#define SYSFS_NETLINK_SOCKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/fast.h"

struct sysfs_netlink;

/* A new socket of @type. Its descriptor, or -1 and errno. */
int sysfs_netlink_open(int type);

extern atomic_bool sysfs_netlink_any __attribute__((visibility("hidden"))); /* was opened */
struct sysfs_netlink *sysfs_netlink_search(int fd);

/* The socket behind the descriptor. NULL: another one. */
static inline struct sysfs_netlink *sysfs_netlink_find(int fd)
{
	return base_likely(!atomic_load_explicit(&sysfs_netlink_any, memory_order_relaxed))
	               ? NULL
	               : sysfs_netlink_search(fd);
}

/* As sendmsg(2), to nobody but the kernel. */
ssize_t sysfs_netlink_send(struct sysfs_netlink *n, int fd, const struct msghdr *msg, int flags);

/* Something was received: names the kernel as its sender, if that is asked, and sends on the rest
 * of an answer that waits. */
void sysfs_netlink_received(struct sysfs_netlink *n, struct sockaddr *from, socklen_t bytes);

#endif
