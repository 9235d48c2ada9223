/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The common part of wrap_*.c, the files with functions of the C library's names. Each calls the
 * real function unless the descriptor is an rsocket's.
 */
#ifndef SOCKETS_WRAP_H
#define SOCKETS_WRAP_H

#include "sockets/sockets.h"

/* The function @alias, which the headers declare with other types, is @name. */
#define SOCKETS_ALIAS(alias, name) \
	__asm__(".globl " #alias "\n\t.type " #alias ", %function\n\t.set " #alias ", " #name)

/* Functions that older C libraries do not declare. */
int epoll_pwait2(int set, struct epoll_event *events, int n, const struct timespec *timeout,
                 const sigset_t *mask);
int close_range(unsigned first, unsigned last, int flags);
void closefrom(int first);

/* The functions that gcc calls instead where it knows the size of a buffer (_FORTIFY_SOURCE). */
void __chk_fail(void) __attribute__((noreturn));
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
                size_t room);
ssize_t __read_chk(int fd, void *buf, size_t bytes, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t bytes, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t bytes, size_t room, int flags,
                       struct sockaddr *from, socklen_t *from_room);

#endif
