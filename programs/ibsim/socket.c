/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sockets of ibsim's protocol: see socket.h.
 */
#define _GNU_SOURCE
#include "ibsim/socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool ibsim_address_make(struct ibsim_address *a, const char *base, const char *end, long number)
{
	size_t room = sizeof(a->name.sun_path) - 1;
	char *path;
	int n;

	*a = (struct ibsim_address){ .name.sun_family = AF_UNIX };
	path = a->name.sun_path + 1; /* behind the byte that makes it abstract */
	n = number < 0 ? snprintf(path, room, "%s:%s", base, end)
	               : snprintf(path, room, "%s:%s%ld", base, end, number);
	if (n < 0 || (size_t)n >= room)
		return false;
	a->bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n + 1);
	return true;
}

bool ibsim_address_equal(const struct ibsim_address *a, const struct ibsim_address *b)
{
	return a->bytes == b->bytes && !memcmp(&a->name, &b->name, a->bytes);
}

int ibsim_socket_open(const struct ibsim_address *name)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;
	int ret;

	if (fd < 0)
		return -errno;
	/* first the credentials, then the name: no message comes without */
	if (!setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) &&
	    !bind(fd, (const struct sockaddr *)&name->name, name->bytes))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

static void read_credentials(struct msghdr *msg, struct ibsim_sender *sender)
{
	struct ucred who;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&who, CMSG_DATA(c), sizeof(who));
		sender->pid = who.pid;
		sender->is_served = who.uid == geteuid() || who.uid == 0;
	}
}

int ibsim_socket_receive(int fd, void *message, size_t bytes, struct ibsim_sender *sender)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct ucred))]; /* descriptors have no room */
	} control;
	struct iovec iov = { message, bytes };
	struct msghdr msg = { .msg_name = &sender->address.name,
		              .msg_namelen = sizeof(sender->address.name),
		              .msg_iov = &iov,
		              .msg_iovlen = 1,
		              .msg_control = &control,
		              .msg_controllen = sizeof(control.space) };
	ssize_t n;

	*sender = (struct ibsim_sender){ .pid = 0 };
	n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	sender->address.bytes = msg.msg_namelen;
	read_credentials(&msg, sender);
	return (size_t)n == bytes && !(msg.msg_flags & MSG_TRUNC) ? 0 : -EMSGSIZE;
}
