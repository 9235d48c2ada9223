/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The C library's functions that make, connect and ask sockets.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include "api/rdmacm/rsocket/look.h"
#include "sockets/wrap.h"

static int done(struct sockets_socket *s, int ret)
{
	const int saved = errno;

	sockets_put(s);
	errno = saved;
	return ret;
}

/* ---- making ---- */

static bool is_tcp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM &&
	       (!protocol || protocol == IPPROTO_TCP);
}

int socket(int domain, int type, int protocol)
{
	int fd = sockets_real()->socket(domain, type, protocol);
	struct sockets_socket *s;

	if (fd < 0 || sockets_inside || !is_tcp(domain, type, protocol))
		return fd;
	s = sockets_new(fd, domain, -1); /* NULL: it stays TCP's */
	if (s)
		sockets_put(s);
	return fd;
}

int bind(int fd, const struct sockaddr *addr, socklen_t bytes)
{
	struct sockets_socket *s = sockets_find(fd);
	int ret = s ? done(s, sockets_bind(s, fd, addr, bytes)) : SOCKETS_KERNEL;

	return ret == SOCKETS_KERNEL ? sockets_real()->bind(fd, addr, bytes) : ret;
}

int connect(int fd, const struct sockaddr *addr, socklen_t bytes)
{
	struct sockets_socket *s = sockets_find(fd);
	int ret = SOCKETS_KERNEL, saved;

	if (s) {
		pthread_cleanup_push(sockets_abandon, s);
		ret = sockets_connect(s, fd, addr, bytes);
		pthread_cleanup_pop(0);
		saved = errno;
		sockets_touch(s, POLLOUT | POLLWRNORM);
		errno = saved;
		ret = done(s, ret);
	}
	return ret == SOCKETS_KERNEL ? sockets_real()->connect(fd, addr, bytes) : ret;
}

int listen(int fd, int backlog)
{
	struct sockets_socket *s = sockets_find(fd);
	int ret = s ? done(s, sockets_listen(s, fd, backlog)) : SOCKETS_KERNEL;

	return ret == SOCKETS_KERNEL ? sockets_real()->listen(fd, backlog) : ret;
}

int accept4(int fd, struct sockaddr *restrict addr, socklen_t *restrict bytes, int flags)
{
	struct sockets_socket *s = sockets_rsocket(fd);
	int ret, saved;

	if (!s)
		return sockets_real()->accept4(fd, addr, bytes, flags);
	pthread_cleanup_push(sockets_abandon, s);
	ret = sockets_accept(s, fd, addr, bytes, flags);
	pthread_cleanup_pop(0);
	saved = errno;
	sockets_touch(s, ret < 0 && saved == EAGAIN ? POLLIN | POLLRDNORM : 0);
	errno = saved;
	return done(s, ret);
}

int accept(int fd, struct sockaddr *restrict addr, socklen_t *restrict bytes)
{
	return accept4(fd, addr, bytes, 0);
}

int shutdown(int fd, int how)
{
	struct sockets_socket *s = sockets_rsocket(fd);
	int ret, saved;

	if (!s)
		return sockets_real()->shutdown(fd, how);
	ret = SOCKETS_INSIDE(rshutdown(s->rs, how));
	saved = errno;
	sockets_touch(s, 0);
	errno = saved;
	return done(s, ret);
}

/* ---- names ---- */

/* The name that was noted: of a socket that listens, perhaps in another process by now, or that is
 * relayed. */
static int put_name(const struct sockaddr_storage *name, socklen_t n, struct sockaddr *addr,
                    socklen_t *bytes)
{
	memcpy(addr, name, *bytes < n ? *bytes : n);
	*bytes = n;
	return 0;
}

/* An rsocket, or one that was. */
static struct sockets_socket *find_named(int fd)
{
	struct sockets_socket *s = sockets_find(fd);

	if (!s || s->rs >= 0 || s->listens || s->is_relayed)
		return s;
	sockets_put(s);
	return NULL;
}

int getsockname(int fd, struct sockaddr *restrict addr, socklen_t *restrict bytes)
{
	struct sockets_socket *s = find_named(fd);

	if (!s)
		return sockets_real()->getsockname(fd, addr, bytes);
	if (s->listens || s->is_relayed)
		return done(s, put_name(&s->name, s->name_bytes, addr, bytes));
	return done(s, SOCKETS_INSIDE(rgetsockname(s->rs, addr, bytes)));
}

int getpeername(int fd, struct sockaddr *restrict addr, socklen_t *restrict bytes)
{
	struct sockets_socket *s = find_named(fd);

	if (!s)
		return sockets_real()->getpeername(fd, addr, bytes);
	if (s->is_relayed)
		return done(s, put_name(&s->peer, s->peer_bytes, addr, bytes));
	if (s->listens)
		return done(s, sockets_real()->getpeername(fd, addr, bytes));
	return done(s, SOCKETS_INSIDE(rgetpeername(s->rs, addr, bytes)));
}

/* ---- options: the kernel's socket keeps what rsockets do not have ---- */

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict bytes)
{
	struct sockets_socket *s = find_named(fd);

	if (!s)
		return sockets_real()->getsockopt(fd, level, name, value, bytes);
	if (s->is_relayed && level != SOL_SOCKET && *bytes >= sizeof(int)) {
		*bytes = sizeof(int);
		memset(value, 0, sizeof(int));
		return done(s, 0);
	}
	if (s->listens && level == SOL_SOCKET && name == SO_ACCEPTCONN && *bytes >= sizeof(int)) {
		*bytes = sizeof(int);
		memcpy(value, &(int){ 1 }, sizeof(int));
		return done(s, 0);
	}
	if (s->rs >= 0 && !SOCKETS_INSIDE(rgetsockopt(s->rs, level, name, value, bytes)))
		return done(s, 0);
	return done(s, sockets_real()->getsockopt(fd, level, name, value, bytes));
}

static int milliseconds(const struct timeval *t)
{
	if (t->tv_sec >= INT32_MAX / 1000)
		return INT32_MAX;
	return (int)(t->tv_sec * 1000 + (t->tv_usec + 999) / 1000);
}

/* Keeps the options that this library carries out itself. */
static void note_option(struct sockets_socket *s, int name, const void *value, socklen_t bytes)
{
	struct timeval t;
	int n;

	if ((name == SO_RCVTIMEO || name == SO_SNDTIMEO) && bytes >= sizeof(t)) {
		memcpy(&t, value, sizeof(t));
		*(name == SO_RCVTIMEO ? &s->rcv_ms : &s->snd_ms) = milliseconds(&t);
	} else if ((name == SO_RCVBUF || name == SO_SNDBUF) && bytes >= sizeof(n)) {
		memcpy(&n, value, sizeof(n));
		*(name == SO_RCVBUF ? &s->rcvbuf : &s->sndbuf) = n;
	}
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	struct sockets_socket *s = sockets_find(fd);
	int ret;

	if (s && s->rs >= 0 && level == SOL_SOCKET && name == SO_ZEROCOPY) {
		errno = ENOPROTOOPT; /* its notices would not come */
		return done(s, -1);
	}
	if (s && s->is_relayed && level != SOL_SOCKET)
		return done(s, 0); /* of TCP and IP, which a pair does not have */
	ret = sockets_real()->setsockopt(fd, level, name, value, bytes);
	if (!s)
		return ret;
	if (!ret && level == SOL_SOCKET)
		note_option(s, name, value, bytes);
	if (!ret && s->rs >= 0) {
		const int saved = errno;

		SOCKETS_INSIDE(rsetsockopt(s->rs, level, name, value, bytes));
		errno = saved;
	}
	return done(s, ret);
}

/* ---- flags ---- */

static void set_nonblocking(struct sockets_socket *s, bool on)
{
	const int saved = errno;

	if (s->rs >= 0)
		SOCKETS_INSIDE(rfcntl(s->rs, F_SETFL, on ? (long)O_NONBLOCK : 0l));
	errno = saved;
}

int fcntl(int fd, int cmd, ...)
{
	struct sockets_socket *s;
	va_list args;
	long arg;
	int ret;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	ret = sockets_real()->fcntl(fd, cmd, arg);
	if (ret < 0)
		return ret;
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) {
		sockets_also(fd, ret);
		sockets_epoll_also(fd, ret);
	} else if (cmd == F_SETFL) {
		s = sockets_rsocket(fd);
		if (s) {
			set_nonblocking(s, arg & O_NONBLOCK);
			sockets_put(s);
		}
	}
	return ret;
}

SOCKETS_ALIAS(fcntl64, fcntl);

int ioctl(int fd, unsigned long request, ...)
{
	struct umbel_rsocket_look l = { 0 };
	struct sockets_socket *s;
	va_list args;
	void *arg;
	int ret;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	s = request == FIONREAD || request == FIONBIO ? sockets_rsocket(fd) : NULL;
	if (s && request == FIONREAD && !SOCKETS_INSIDE(umbel_rsocket_look(s->rs, 0, &l))) {
		*(int *)arg = (int)l.readable;
		return done(s, 0);
	}
	ret = sockets_real()->ioctl(fd, request, arg);
	if (!s)
		return ret;
	if (!ret && request == FIONBIO)
		set_nonblocking(s, *(const int *)arg);
	return done(s, ret);
}
