/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The C library's functions that wait: poll(2), select(2), epoll(7), of which each set may have
 * rsockets in it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/fd_sets.h"
#include "base/util.h"
#include "sockets/wrap.h"

static int fail(int error)
{
	errno = error;
	return -1;
}

/* In milliseconds, and not less. */
static int timeout_ms(const struct timespec *t)
{
	if (!t)
		return -1;
	if (t->tv_sec >= INT32_MAX / 1000)
		return INT32_MAX;
	return (int)(t->tv_sec * 1000 + (t->tv_nsec + 999999) / 1000000);
}

static bool is_time(const struct timespec *t)
{
	return !t || (t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < 1000000000);
}

/* ---- poll ---- */

/* The headers say of poll() that it does not read what it is given. */
static __attribute__((used)) int sockets_wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	if (!sockets_poll_is_ours(fds, n))
		return sockets_real()->poll(fds, n, timeout);
	return sockets_poll(fds, n, timeout, NULL);
}

static __attribute__((used)) int sockets_wrap_ppoll(struct pollfd *fds, nfds_t n,
                                                    const struct timespec *timeout,
                                                    const sigset_t *mask)
{
	if (!sockets_poll_is_ours(fds, n))
		return sockets_real()->ppoll(fds, n, timeout, mask);
	return is_time(timeout) ? sockets_poll(fds, n, timeout_ms(timeout), mask) : fail(EINVAL);
}

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room)
{
	if (room / sizeof(*fds) < n)
		__chk_fail();
	return sockets_wrap_poll(fds, n, timeout);
}

int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
                size_t room)
{
	if (room / sizeof(*fds) < n)
		__chk_fail();
	return sockets_wrap_ppoll(fds, n, timeout, mask);
}

SOCKETS_ALIAS(poll, sockets_wrap_poll);
SOCKETS_ALIAS(ppoll, sockets_wrap_ppoll);

/* ---- select ---- */

/* Whether any of them may be an rsocket; then they are in @fds, @k of them. */
static bool select_is_ours(int n, const struct base_fd_sets *sets, struct pollfd fds[FD_SETSIZE],
                           nfds_t *k)
{
	if (n <= 0 || n > FD_SETSIZE)
		return false;
	*k = base_fd_sets_to_poll(sets, n, fds);
	return sockets_poll_is_ours(fds, *k);
}

static int select_these(struct pollfd *fds, nfds_t n, const struct base_fd_sets *sets,
                        const struct timespec *timeout, const sigset_t *mask)
{
	int ret;

	if (!is_time(timeout))
		return fail(EINVAL);
	ret = sockets_poll(fds, n, timeout_ms(timeout), mask);
	if (ret < 0)
		return ret;
	ret = base_fd_sets_from_poll(sets, fds, n);
	return ret < 0 ? fail(-ret) : ret;
}

/* Writes the rest of the time to @timeout, as Linux does: select(2). */
static void put_rest(struct timeval *timeout, uint64_t began)
{
	const uint64_t us = (base_now_ns() - began) / 1000;
	const uint64_t all = (uint64_t)timeout->tv_sec * 1000000 + (uint64_t)timeout->tv_usec;
	const uint64_t rest = us < all ? all - us : 0;

	if (all && timeout->tv_sec < INT32_MAX)
		*timeout = (struct timeval){ .tv_sec = (time_t)(rest / 1000000),
			                     .tv_usec = (suseconds_t)(rest % 1000000) };
}

int select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	const struct base_fd_sets sets = { in, out, except };
	struct pollfd fds[FD_SETSIZE];
	struct timespec ts;
	int ret, saved;
	uint64_t began;
	nfds_t k;

	if (!select_is_ours(n, &sets, fds, &k))
		return sockets_real()->select(n, in, out, except, timeout);
	if (timeout) /* of more than a second's microseconds Linux makes seconds */
		ts = (struct timespec){ .tv_sec = timeout->tv_sec + timeout->tv_usec / 1000000,
			                .tv_nsec = timeout->tv_usec % 1000000 * 1000 };
	began = base_now_ns();
	ret = select_these(fds, k, &sets, timeout ? &ts : NULL, NULL);
	saved = errno;
	if (timeout && is_time(&ts))
		put_rest(timeout, began);
	errno = saved;
	return ret;
}

int pselect(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
            const sigset_t *mask)
{
	const struct base_fd_sets sets = { in, out, except };
	struct pollfd fds[FD_SETSIZE];
	nfds_t k;

	if (!select_is_ours(n, &sets, fds, &k))
		return sockets_real()->pselect(n, in, out, except, timeout, mask);
	return select_these(fds, k, &sets, timeout, mask);
}

/* ---- epoll ---- */

int epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	return sockets_epoll_ctl(set, op, fd, event);
}

int epoll_pwait(int set, struct epoll_event *events, int n, int timeout, const sigset_t *mask)
{
	if (!sockets_is_set(set))
		return sockets_real()->epoll_pwait(set, events, n, timeout, mask);
	return sockets_epoll_wait(set, events, n, timeout < 0 ? -1 : timeout * 1000000ll, mask);
}

int epoll_wait(int set, struct epoll_event *events, int n, int timeout)
{
	return epoll_pwait(set, events, n, timeout, NULL);
}

int epoll_pwait2(int set, struct epoll_event *events, int n, const struct timespec *timeout,
                 const sigset_t *mask)
{
	const int64_t longest = INT64_MAX / 2000000000;

	if (!sockets_is_set(set) && sockets_real()->epoll_pwait2)
		return sockets_real()->epoll_pwait2(set, events, n, timeout, mask);
	if (!is_time(timeout))
		return fail(EINVAL);
	if (!sockets_is_set(set))
		return sockets_real()->epoll_pwait(set, events, n, timeout_ms(timeout), mask);
	if (!timeout || timeout->tv_sec > longest)
		return sockets_epoll_wait(set, events, n, -1, mask);
	return sockets_epoll_wait(set, events, n, timeout->tv_sec * 1000000000ll + timeout->tv_nsec,
	                          mask);
}
