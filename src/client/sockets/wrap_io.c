/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The C library's functions that receive and send.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "api/rdmacm/rsocket/look.h"
#include "base/signals.h"
#include "sockets/wrap.h"

#define COPY_BYTES 65536 /* at once, of a file */

static int fail(int error)
{
	errno = error;
	return -1;
}

/* Whether a call that a signal has ended is made again, as the kernel does. */
static bool again(ssize_t ret)
{
	return ret < 0 && errno == EINTR && base_signals_restart();
}

/* ---- the calls, in which the thread may be cancelled ---- */

#define CALL(name, call, ...)                                                                \
	static __attribute__((noinline)) ssize_t name(struct sockets_socket *s, __VA_ARGS__, \
	                                              int flags)                             \
	{                                                                                    \
		ssize_t ret;                                                                 \
                                                                                             \
		pthread_cleanup_push(sockets_abandon, s);                                    \
		do                                                                           \
			ret = SOCKETS_INSIDE(call);                                          \
		while (again(ret));                                                          \
		pthread_cleanup_pop(0);                                                      \
		return ret;                                                                  \
	}
CALL(receive_message, rrecvmsg(s->rs, msg, flags), struct msghdr *msg)
CALL(receive_bytes, rrecv(s->rs, buf, bytes, flags), void *buf, size_t bytes)
CALL(send_bytes, rsend(s->rs, buf, bytes, flags), const void *buf, size_t bytes)
CALL(send_plain, rsendmsg(s->rs, msg, flags), const struct msghdr *msg)

/* ---- time limits: SO_RCVTIMEO and SO_SNDTIMEO are those of whole calls ---- */

/* Whether a call that may wait @ms has that limit. */
static bool is_limited(const struct sockets_socket *s, int ms, int flags)
{
	return ms && !(flags & MSG_DONTWAIT) &&
	       !(SOCKETS_INSIDE(rfcntl(s->rs, F_GETFL)) & O_NONBLOCK);
}

static __attribute__((noinline)) int await(struct sockets_socket *s, short events, uint64_t until)
{
	int ret;

	pthread_cleanup_push(sockets_abandon, s);
	ret = sockets_await(s, events, until);
	pthread_cleanup_pop(0);
	return ret;
}

static ssize_t receive_until(struct sockets_socket *s, struct msghdr *msg, int flags,
                             uint64_t until)
{
	ssize_t ret;

	do
		ret = receive_message(s, msg, flags | MSG_DONTWAIT);
	while (ret < 0 && errno == EAGAIN && !await(s, POLLIN, until));
	return ret;
}

static ssize_t send_until(struct sockets_socket *s, const void *buf, size_t bytes, int flags,
                          uint64_t until)
{
	ssize_t ret;

	do
		ret = send_bytes(s, buf, bytes, flags | MSG_DONTWAIT);
	while (ret < 0 && errno == EAGAIN && !await(s, POLLOUT, until));
	return ret;
}

/* The next part of the memory that @msg describes, after @done bytes; false: there is none. */
static bool next_part(const struct msghdr *msg, size_t done, struct iovec *part)
{
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		*part = msg->msg_iov[i];
		if (done < part->iov_len) {
			part->iov_base = (char *)part->iov_base + done;
			part->iov_len -= done;
			return true;
		}
		done -= part->iov_len;
	}
	return false;
}

static ssize_t receive_limited(struct sockets_socket *s, struct msghdr *msg, int flags)
{
	const uint64_t until = sockets_end_of(s->rcv_ms);
	struct msghdr one = *msg;
	struct iovec part;
	ssize_t n = 0, done = 0;

	if (!(flags & MSG_WAITALL) || flags & MSG_PEEK || msg->msg_iovlen > IOV_MAX)
		return receive_until(s, msg, flags, until);
	one.msg_iov = &part;
	one.msg_iovlen = 1;
	for (; next_part(msg, (size_t)done, &part); done += n) {
		n = receive_until(s, &one, flags & ~MSG_WAITALL, until);
		if (n <= 0)
			break;
		msg->msg_namelen = one.msg_namelen;
		msg->msg_controllen = 0;
		msg->msg_flags = one.msg_flags;
	}
	return done ? done : n;
}

static ssize_t send_limited(struct sockets_socket *s, const struct msghdr *msg, int flags)
{
	const uint64_t until = sockets_end_of(s->snd_ms);
	struct iovec part;
	ssize_t n = 0, done = 0;

	if (msg->msg_iovlen > IOV_MAX)
		return fail(EMSGSIZE);
	for (; next_part(msg, (size_t)done, &part); done += n) {
		n = send_until(s, part.iov_base, part.iov_len, flags, until);
		if (n <= 0)
			break;
	}
	return done ? done : n;
}

/* ---- receiving ---- */

/* Less than there is room for: all has been read, as far as it has come. */
static ssize_t received(struct sockets_socket *s, ssize_t ret, size_t room)
{
	const bool over = ret < 0 ? errno == EAGAIN : (size_t)ret < room;
	const int saved = errno;

	sockets_touch(s, over ? POLLIN | POLLRDNORM : 0);
	sockets_put(s);
	errno = saved;
	return ret;
}

static ssize_t receive(struct sockets_socket *s, struct msghdr *msg, int flags)
{
	size_t room = 0;
	ssize_t ret;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		room += msg->msg_iov[i].iov_len;
	if (flags & MSG_ERRQUEUE)
		return received(s, fail(EAGAIN), room);
	ret = is_limited(s, s->rcv_ms, flags) ? receive_limited(s, msg, flags)
	                                      : receive_message(s, msg, flags);
	return received(s, ret, room);
}

static ssize_t receive_one(struct sockets_socket *s, void *buf, size_t bytes, int flags)
{
	struct iovec iov = { .iov_base = buf, .iov_len = bytes };

	if (flags & MSG_ERRQUEUE || is_limited(s, s->rcv_ms, flags))
		return receive(s, &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 }, flags);
	return received(s, receive_bytes(s, buf, bytes, flags), bytes);
}

ssize_t read(int fd, void *buf, size_t bytes)
{
	struct sockets_socket *s = sockets_rsocket(fd);

	return s ? receive_one(s, buf, bytes, 0) : sockets_real()->read(fd, buf, bytes);
}

ssize_t recv(int fd, void *buf, size_t bytes, int flags)
{
	struct sockets_socket *s = sockets_rsocket(fd);

	return s ? receive_one(s, buf, bytes, flags) : sockets_real()->recv(fd, buf, bytes, flags);
}

ssize_t recvfrom(int fd, void *restrict buf, size_t bytes, int flags,
                 struct sockaddr *restrict from, socklen_t *restrict room)
{
	struct sockets_socket *s = sockets_rsocket(fd);

	if (!s)
		return sockets_real()->recvfrom(fd, buf, bytes, flags, from, room);
	if (from && room)
		*room = 0; /* as of TCP */
	return receive_one(s, buf, bytes, flags);
}

ssize_t readv(int fd, const struct iovec *iov, int n)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n };
	struct sockets_socket *s = n < 0 ? NULL : sockets_rsocket(fd);

	return s ? receive(s, &msg, 0) : sockets_real()->readv(fd, iov, n);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct sockets_socket *s = sockets_rsocket(fd);

	return s ? receive(s, msg, flags) : sockets_real()->recvmsg(fd, msg, flags);
}

ssize_t __read_chk(int fd, void *buf, size_t bytes, size_t room)
{
	if (bytes > room)
		__chk_fail();
	return read(fd, buf, bytes);
}

ssize_t __recv_chk(int fd, void *buf, size_t bytes, size_t room, int flags)
{
	if (bytes > room)
		__chk_fail();
	return recv(fd, buf, bytes, flags);
}

ssize_t __recvfrom_chk(int fd, void *buf, size_t bytes, size_t room, int flags,
                       struct sockaddr *from, socklen_t *from_room)
{
	if (bytes > room)
		__chk_fail();
	return recvfrom(fd, buf, bytes, flags, from, from_room);
}

/* ---- sending ---- */

static ssize_t sent(struct sockets_socket *s, ssize_t ret, size_t bytes, int flags)
{
	const bool over = ret < 0 ? errno == EAGAIN : (size_t)ret < bytes;
	const int saved = errno;

	sockets_touch(s, over ? POLLOUT | POLLWRNORM : 0);
	sockets_put(s);
	if (ret < 0 && saved == EPIPE && !(flags & MSG_NOSIGNAL))
		raise(SIGPIPE);
	errno = saved;
	return ret;
}

static ssize_t send_message(struct sockets_socket *s, const struct msghdr *msg, int flags)
{
	/* the peer of a connection is known, and control messages are about packets */
	const struct msghdr plain = { .msg_iov = msg->msg_iov, .msg_iovlen = msg->msg_iovlen };
	size_t bytes = 0;
	ssize_t ret;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		bytes += msg->msg_iov[i].iov_len;
	ret = bytes && is_limited(s, s->snd_ms, flags) ? send_limited(s, &plain, flags)
	                                               : send_plain(s, &plain, flags);
	return sent(s, ret, bytes, flags);
}

static ssize_t send_one(struct sockets_socket *s, const void *buf, size_t bytes, int flags)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = bytes };

	if (is_limited(s, s->snd_ms, flags))
		return send_message(s, &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 }, flags);
	return sent(s, send_bytes(s, buf, bytes, flags), bytes, flags);
}

ssize_t write(int fd, const void *buf, size_t bytes)
{
	struct sockets_socket *s = sockets_rsocket(fd);

	return s ? send_one(s, buf, bytes, 0) : sockets_real()->write(fd, buf, bytes);
}

ssize_t send(int fd, const void *buf, size_t bytes, int flags)
{
	struct sockets_socket *s = sockets_rsocket(fd);

	return s ? send_one(s, buf, bytes, flags) : sockets_real()->send(fd, buf, bytes, flags);
}

ssize_t sendto(int fd, const void *buf, size_t bytes, int flags, const struct sockaddr *to,
               socklen_t to_bytes)
{
	struct sockets_socket *s = sockets_rsocket(fd);

	return s ? send_one(s, buf, bytes, flags)
	         : sockets_real()->sendto(fd, buf, bytes, flags, to, to_bytes);
}

ssize_t writev(int fd, const struct iovec *iov, int n)
{
	const struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n };
	struct sockets_socket *s = n < 0 ? NULL : sockets_rsocket(fd);

	return s ? send_message(s, &msg, 0) : sockets_real()->writev(fd, iov, n);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct sockets_socket *s = sockets_rsocket(fd);

	return s ? send_message(s, msg, flags) : sockets_real()->sendmsg(fd, msg, flags);
}

/* ---- files ---- */

/* As much as goes, from @at on. -1: not a byte. */
static ssize_t copy_file(int to, int from, off_t at, size_t bytes)
{
	char *buf = malloc(COPY_BYTES);
	size_t done = 0;
	ssize_t n = 0, part = 0;

	if (!buf)
		return fail(ENOMEM);
	while (done < bytes && part == n) {
		n = pread(from, buf, bytes - done < COPY_BYTES ? bytes - done : COPY_BYTES,
		          at + (off_t)done);
		part = n > 0 ? send(to, buf, (size_t)n, 0) : n;
		if (part <= 0)
			break;
		done += (size_t)part;
	}
	free(buf);
	return done ? (ssize_t)done : part;
}

ssize_t sendfile(int to, int from, off_t *offset, size_t bytes)
{
	struct sockets_socket *s = sockets_rsocket(to);
	off_t at;
	ssize_t ret;

	if (!s)
		return sockets_real()->sendfile(to, from, offset, bytes);
	sockets_put(s);
	at = offset ? *offset : lseek(from, 0, SEEK_CUR);
	if (at < 0)
		return fail(EINVAL);
	ret = copy_file(to, from, at, bytes);
	if (ret > 0 && offset)
		*offset = at + ret;
	else if (ret > 0)
		lseek(from, at + ret, SEEK_SET);
	return ret;
}

SOCKETS_ALIAS(sendfile64, sendfile);
