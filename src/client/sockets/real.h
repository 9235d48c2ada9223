/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions that ours stand before: those of the C library, or of another preloaded library.
 * Thread-safe; may be called before constructors have run.
 */
#ifndef SOCKETS_REAL_H
#define SOCKETS_REAL_H

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/fast.h"

/* All of them: result, name, arguments. The last three are not in each C library: NULL there. */
#define SOCKETS_REAL(X)                                                                           \
	X(int, socket, (int domain, int type, int protocol))                                      \
	X(int, bind, (int fd, const struct sockaddr *addr, socklen_t bytes))                      \
	X(int, listen, (int fd, int backlog))                                                     \
	X(int, accept4, (int fd, struct sockaddr *addr, socklen_t *bytes, int flags))             \
	X(int, connect, (int fd, const struct sockaddr *addr, socklen_t bytes))                   \
	X(int, shutdown, (int fd, int how))                                                       \
	X(int, getsockname, (int fd, struct sockaddr *addr, socklen_t *bytes))                    \
	X(int, getpeername, (int fd, struct sockaddr *addr, socklen_t *bytes))                    \
	X(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *bytes))          \
	X(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t bytes))     \
	X(int, close, (int fd))                                                                   \
	X(int, dup, (int fd))                                                                     \
	X(int, dup2, (int fd, int to))                                                            \
	X(int, dup3, (int fd, int to, int flags))                                                 \
	X(int, fcntl, (int fd, int cmd, ...))                                                     \
	X(int, ioctl, (int fd, unsigned long request, ...))                                       \
	X(ssize_t, read, (int fd, void *buf, size_t bytes))                                       \
	X(ssize_t, readv, (int fd, const struct iovec *iov, int n))                               \
	X(ssize_t, write, (int fd, const void *buf, size_t bytes))                                \
	X(ssize_t, writev, (int fd, const struct iovec *iov, int n))                              \
	X(ssize_t, recv, (int fd, void *buf, size_t bytes, int flags))                            \
	X(ssize_t, recvfrom,                                                                      \
	  (int fd, void *buf, size_t bytes, int flags, struct sockaddr *from, socklen_t *room))   \
	X(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags))                              \
	X(ssize_t, send, (int fd, const void *buf, size_t bytes, int flags))                      \
	X(ssize_t, sendto,                                                                        \
	  (int fd, const void *buf, size_t bytes, int flags, const struct sockaddr *to,           \
	   socklen_t to_bytes))                                                                   \
	X(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags))                        \
	X(ssize_t, sendfile, (int to, int from, off_t *offset, size_t bytes))                     \
	X(int, poll, (struct pollfd * fds, nfds_t n, int timeout))                                \
	X(int, ppoll,                                                                             \
	  (struct pollfd * fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask))  \
	X(int, select, (int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)) \
	X(int, pselect,                                                                           \
	  (int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,        \
	   const sigset_t *mask))                                                                 \
	X(int, epoll_ctl, (int set, int op, int fd, struct epoll_event *event))                   \
	X(int, epoll_pwait,                                                                       \
	  (int set, struct epoll_event *events, int n, int timeout, const sigset_t *mask))        \
	X(int, epoll_pwait2,                                                                      \
	  (int set, struct epoll_event *events, int n, const struct timespec *timeout,            \
	   const sigset_t *mask))                                                                 \
	X(pid_t, fork, (void))                                                                    \
	X(int, daemon, (int keep_dir, int keep_output))                                           \
	X(int, close_range, (unsigned first, unsigned last, int flags))                           \
	X(void, closefrom, (int first))

#define SOCKETS_REAL_FIELD(result, name, args) result(*name) args;
struct sockets_reals {
	atomic_bool found;
	SOCKETS_REAL(SOCKETS_REAL_FIELD)
};
#undef SOCKETS_REAL_FIELD

extern struct sockets_reals sockets_reals __attribute__((visibility("hidden")));

/* Looks them up. */
BASE_COLD void sockets_real_find(void);

static inline const struct sockets_reals *sockets_real(void)
{
	/* acquire: pairs with the release in sockets_real_find() */
	if (base_unlikely(!atomic_load_explicit(&sockets_reals.found, memory_order_acquire)))
		sockets_real_find();
	return &sockets_reals;
}

#endif
