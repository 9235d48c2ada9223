/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests: descriptors that are closed slowly.
 */
#ifndef DAEMON_CLOSER_TESTING_H
#define DAEMON_CLOSER_TESTING_H

#include <assert.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_SECONDS 1000

/* A socket; closing its last descriptor takes LINGER_SECONDS, or until *@reader, its peer, is
 * closed. */
static inline int lingering(int *reader)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_SECONDS };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	const int little = 4096;
	socklen_t bytes = sizeof(a);
	char some[4096] = { 0 };
	int ret;

	ret = setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)) ||
	      bind(listener, (struct sockaddr *)&a, sizeof(a)) || listen(listener, 1) ||
	      getsockname(listener, (struct sockaddr *)&a, &bytes) ||
	      setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)) ||
	      setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) ||
	      connect(fd, (struct sockaddr *)&a, sizeof(a));
	assert(!ret);
	*reader = accept(listener, NULL, NULL);
	assert(*reader >= 0);
	close(listener);
	while (send(fd, some, sizeof(some), MSG_DONTWAIT) > 0)
		;
	return fd;
}

/* Sends @bytes at @data with @fd, @n times. As sendmsg(2). */
static inline ssize_t send_descriptors(int to, const void *data, size_t bytes, int fd, unsigned n)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(fd) * 253)];
	} control = { .align = { .cmsg_level = SOL_SOCKET,
		                 .cmsg_type = SCM_RIGHTS,
		                 .cmsg_len = CMSG_LEN(sizeof(fd) * n) } };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = bytes };
	struct msghdr msg = { .msg_iov = &iov,
		              .msg_iovlen = 1,
		              .msg_control = &control,
		              .msg_controllen = CMSG_SPACE(sizeof(fd) * n) };

	for (unsigned i = 0; i < n; i++)
		memcpy(CMSG_DATA(&control.align) + i * sizeof(fd), &fd, sizeof(fd));
	return sendmsg(to, &msg, MSG_NOSIGNAL);
}

#endif
