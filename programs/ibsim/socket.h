/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sockets of ibsim's protocol. An abstract name has no permissions: any process on this
 * machine's network may send to it. But the kernel names the sender of each message.
 */
#ifndef IBSIM_SOCKET_H
#define IBSIM_SOCKET_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

struct ibsim_address {
	struct sockaddr_un name;
	socklen_t bytes;
};

/* BASE:END, and the number unless it is negative. False: it has no room. */
bool ibsim_address_make(struct ibsim_address *a, const char *base, const char *end, long number);
bool ibsim_address_equal(const struct ibsim_address *a, const struct ibsim_address *b);

/* A socket of that name, which does not block and whose messages name their senders. It, or -errno;
 * -EADDRINUSE: another has the name. */
int ibsim_socket_open(const struct ibsim_address *name);

struct ibsim_sender {
	struct ibsim_address address;
	pid_t pid;      /* 0: in another PID namespace */
	bool is_served; /* of our own user, or root */
};

/*
 * Receives one message of @bytes bytes, no more and no less. 0; -EAGAIN: there is none; -EMSGSIZE:
 * it was another, and is gone; -errno.
 */
int ibsim_socket_receive(int fd, void *message, size_t bytes, struct ibsim_sender *sender);

#endif
