/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rpoll(), rselect() and what look.h has: rsockets and ordinary descriptors, mixed. Of an rsocket
 * we know ourselves what could be done; while there is nothing to do for any, its epoll instance
 * stands for it.
 */
#define _GNU_SOURCE /* ppoll() */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rsocket/look.h"
#include "api/rdmacm/rsocket/rsocket_stream.h"
#include "base/fd_sets.h"
#include "base/signals.h"

#define LOOK_MS 500 /* rsocket_sleep.c says why */

struct poll_set {
	struct pollfd *fds;  /* the program's */
	struct pollfd *real; /* the same with what the kernel is to look at */
	struct rsocket **rs; /* NULL: an ordinary descriptor */
	nfds_t n;
	const sigset_t *mask; /* while it sleeps; NULL: the thread's */
};

/* ---- the set ---- */

static void close_set(struct poll_set *s)
{
	for (nfds_t i = 0; s->rs && i < s->n; i++)
		if (s->rs[i])
			rdmacm_session_rsocket_put(s->rs[i]);
	free(s->rs);
	free(s->real);
}

static int open_set(struct poll_set *s)
{
	const nfds_t n = s->n;

	s->real = calloc(n + 1, sizeof(*s->real));
	s->rs = calloc(n + 1, sizeof(struct rsocket *));
	if (!s->real || !s->rs) {
		close_set(s);
		return -ENOMEM;
	}
	for (nfds_t i = 0; i < n; i++) {
		s->real[i] = s->fds[i];
		s->rs[i] = rdmacm_session_rsocket(s->fds[i].fd);
	}
	return 0;
}

/* The calls that an rsocket is ready for, as events of poll(). @arm: it is to wake threads that
 * sleep. */
static short look(struct rsocket *rs, short wanted, bool arm)
{
	short events;

	wanted |= POLLERR | POLLHUP;
	pthread_mutex_lock(&rs->lock);
	events = rs->type->events(rs) & wanted;
	if (!events) {
		rsocket_drain(rs);
		if (arm)
			rs->type->arm(rs);
		events = rs->type->events(rs) & wanted;
	}
	rsocket_leave_to_all(rs);
	pthread_mutex_unlock(&rs->lock);
	return events;
}

/* How many descriptors have something, of which the program is told. -errno. */
static int check(struct poll_set *s, bool arm)
{
	int n, ret = 0;

	for (nfds_t i = 0; i < s->n; i++)
		if (s->rs[i])
			s->real[i].fd = -1;
	if (poll(s->real, s->n, 0) < 0)
		return -errno;
	for (nfds_t i = 0; i < s->n; i++) {
		n = s->rs[i] ? look(s->rs[i], s->fds[i].events, arm) : s->real[i].revents;
		s->fds[i].revents = (short)n;
		ret += n != 0;
	}
	return ret;
}

/* Threads that wait in calls leave it to us to poll; when we leave, they poll again. */
static void count_poller(struct poll_set *s, int by)
{
	for (nfds_t i = 0; i < s->n; i++) {
		if (!s->rs[i])
			continue;
		pthread_mutex_lock(&s->rs[i]->lock);
		s->rs[i]->n_pollers += (unsigned)by;
		if (by < 0) {
			rsocket_changed(s->rs[i]);
			rsocket_pass_on(s->rs[i]);
		}
		pthread_mutex_unlock(&s->rs[i]->lock);
	}
}

/* The thread is cancelled as it sleeps. */
static void poll_no_more(void *set)
{
	count_poller(set, -1);
	close_set(set);
}

/* Until any has something, or @ms have passed. 0 or -errno. */
static int sleep_on(struct poll_set *s, int ms)
{
	struct timespec until = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l };
	struct pollfd *served = &s->real[s->n];
	int ret;

	for (nfds_t i = 0; i < s->n; i++) {
		if (!s->rs[i])
			continue;
		s->real[i].fd = s->rs[i]->fd;
		s->real[i].events = POLLIN;
	}
	*served = (struct pollfd){ .fd = rdmacm_session_served(), .events = POLLIN };
	pthread_cleanup_push(poll_no_more, s);
	rsocket_cancel_on();
	ret = ppoll(s->real, s->n + 1, &until, s->mask) < 0 ? -errno : 0;
	base_cancel_off();
	pthread_cleanup_pop(0);
	if (ret)
		return ret;
	if (served->revents)
		rsocket_serve_all();
	return 0;
}

/* ---- rpoll ---- */

static int left_ms(uint64_t began_ms, int timeout)
{
	uint64_t gone = rsocket_now_ms() - began_ms;

	if (timeout < 0)
		return -1;
	return gone < (uint64_t)timeout ? timeout - (int)gone : 0;
}

static int wait_any(struct poll_set *s, int timeout)
{
	uint64_t began = rsocket_now_ms();
	int ret, ms;

	do {
		ms = left_ms(began, timeout);
		ret = check(s, true);
		if (ret)
			return ret;
		ret = sleep_on(s, ms < 0 || ms > LOOK_MS ? LOOK_MS : ms);
		if (ret)
			return ret;
	} while (ms);
	return check(s, false);
}

static int poll_set(struct pollfd *fds, nfds_t n, int timeout, const sigset_t *mask)
{
	struct poll_set s = { .fds = fds, .n = n, .mask = mask };
	int ret;

	rsocket_begin_call();
	rsocket_serve_in_passing();
	ret = open_set(&s);
	if (ret)
		goto out;
	ret = check(&s, false);
	if (!ret && timeout) {
		count_poller(&s, 1);
		ret = wait_any(&s, timeout);
		count_poller(&s, -1);
	}
	close_set(&s);
out:
	rsocket_end_call();
	return ret;
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	int ret = poll_set(fds, nfds, timeout, NULL);

	return ret < 0 ? rdmacm_return(ret) : ret;
}

int umbel_rpoll(struct pollfd *fds, nfds_t nfds, int timeout, const sigset_t *mask)
{
	int ret = poll_set(fds, nfds, timeout, mask);

	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

int umbel_rsocket_look(int fd, unsigned flags, struct umbel_rsocket_look *out)
{
	struct rsocket *rs;

	rsocket_begin_call();
	rs = rdmacm_session_rsocket(fd);
	if (!rs) {
		rsocket_end_call();
		errno = EBADF;
		return -1;
	}
	pthread_mutex_lock(&rs->lock);
	if (flags & UMBEL_RSOCKET_FIRED)
		rsocket_drain(rs);
	if (flags & UMBEL_RSOCKET_ARM) {
		rs->is_watched = true;
		rs->type->events(rs); /* what there is already is no news when it is armed */
		rs->type->arm(rs);
	}
	out->events = rs->type->events(rs);
	rsocket_leave_to_all(rs);
	out->news = rs->news;
	out->readable = rs->type == &rsocket_stream_type ? rsocket_stream(rs)->in.readable : 0;
	pthread_mutex_unlock(&rs->lock);
	rdmacm_session_rsocket_put(rs);
	rsocket_end_call();
	return 0;
}

int umbel_rsockets_to_serve(void)
{
	return rdmacm_session_served();
}

void umbel_rsockets_serve(void)
{
	rsocket_begin_call();
	rsocket_serve_all();
	rsocket_end_call();
}

/* ---- rselect ---- */

static int timeout_ms(const struct timeval *timeout)
{
	uint64_t ms;

	if (!timeout)
		return -1;
	ms = (uint64_t)timeout->tv_sec * 1000 + ((uint64_t)timeout->tv_usec + 999) / 1000;
	return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	const struct base_fd_sets sets = { readfds, writefds, exceptfds };
	struct pollfd fds[FD_SETSIZE];
	nfds_t n;
	int ret;

	if (nfds < 0 || nfds > FD_SETSIZE ||
	    (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return rdmacm_return(-EINVAL);
	n = base_fd_sets_to_poll(&sets, nfds, fds);
	ret = poll_set(fds, n, timeout_ms(timeout), NULL);
	if (ret >= 0)
		ret = base_fd_sets_from_poll(&sets, fds, n);
	return ret < 0 ? rdmacm_return(ret) : ret;
}
