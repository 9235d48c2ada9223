/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket(2), send(2) and recv(2) and their kin: see wrap.h. A program that opens RDMA netlink gets
 * a socket of ours (netlink/socket.h). All others pay for a look at one flag.
 */
#define _GNU_SOURCE
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/signals.h"
#include "sysfs/netlink/socket.h"
#include "sysfs/session.h"
#include "sysfs/libraries.h"
#include "sysfs/wrap.h"

ssize_t __recv_chk(int fd, void *buf, size_t room, size_t known, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t room, size_t known, int flags,
                       struct sockaddr *from, socklen_t *from_bytes);

int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && sysfs_session()) {
		sysfs_libraries_explain(); /* rdma-core's look for devices by it */
		return sysfs_netlink_open(type);
	}
	return sysfs_real()->socket(domain, type, protocol);
}

/* ---- sending */

static ssize_t send_ours(struct sysfs_netlink *n, int fd, const struct msghdr *msg, int flags)
{
	int cancel_state = base_cancel_off();
	ssize_t ret = sysfs_netlink_send(n, fd, msg, flags);

	base_cancel_restore(cancel_state);
	return ret;
}

static ssize_t send_bytes(struct sysfs_netlink *n, int fd, const void *buf, size_t bytes, int flags)
{
	struct iovec piece = { .iov_base = (void *)buf, .iov_len = bytes };
	const struct msghdr msg = { .msg_iov = &piece, .msg_iovlen = 1 };

	return send_ours(n, fd, &msg, flags);
}

ssize_t send(int fd, const void *buf, size_t bytes, int flags)
{
	struct sysfs_netlink *n = sysfs_netlink_find(fd);

	return n ? send_bytes(n, fd, buf, bytes, flags) : sysfs_real()->send(fd, buf, bytes, flags);
}

ssize_t sendto(int fd, const void *buf, size_t bytes, int flags, const struct sockaddr *to,
               socklen_t to_bytes)
{
	struct sysfs_netlink *n = sysfs_netlink_find(fd);

	return n ? send_bytes(n, fd, buf, bytes, flags)
	         : sysfs_real()->sendto(fd, buf, bytes, flags, to, to_bytes);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct sysfs_netlink *n = sysfs_netlink_find(fd);

	return n ? send_ours(n, fd, msg, flags) : sysfs_real()->sendmsg(fd, msg, flags);
}

/* ---- receiving: the kernel's part may be cancelled */

static ssize_t received(int fd, ssize_t ret, struct sockaddr *from, socklen_t bytes)
{
	struct sysfs_netlink *n = ret < 0 ? NULL : sysfs_netlink_find(fd);
	int cancel_state;

	if (base_likely(!n))
		return ret;
	cancel_state = base_cancel_off();
	sysfs_netlink_received(n, from, bytes);
	base_cancel_restore(cancel_state);
	return ret;
}

ssize_t recv(int fd, void *buf, size_t room, int flags)
{
	return received(fd, sysfs_real()->recv(fd, buf, room, flags), NULL, 0);
}

ssize_t __recv_chk(int fd, void *buf, size_t room, size_t known, int flags)
{
	if (room > known)
		__chk_fail();
	return recv(fd, buf, room, flags);
}

ssize_t recvfrom(int fd, void *buf, size_t room, int flags, struct sockaddr *from,
                 socklen_t *from_bytes)
{
	ssize_t ret = sysfs_real()->recvfrom(fd, buf, room, flags, from, from_bytes);

	return received(fd, ret, from, ret >= 0 && from && from_bytes ? *from_bytes : 0);
}

ssize_t __recvfrom_chk(int fd, void *buf, size_t room, size_t known, int flags,
                       struct sockaddr *from, socklen_t *from_bytes)
{
	if (room > known)
		__chk_fail();
	return recvfrom(fd, buf, room, flags, from, from_bytes);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t ret = sysfs_real()->recvmsg(fd, msg, flags);

	return received(fd, ret, ret >= 0 ? msg->msg_name : NULL, ret >= 0 ? msg->msg_namelen : 0);
}
