/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll(2) with rsockets: librdmacm's, of other descriptors.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rsocket/look.h"
#include "base/util.h"
#include "sockets/sockets.h"

#define FEW 64

bool sockets_poll_is_ours(const struct pollfd *fds, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++)
		if (sockets_may_be(fds[i].fd) || sockets_is_set(fds[i].fd))
			return true;
	return false;
}

struct polled {
	struct sockets_socket **s;
	struct pollfd *fds; /* to look at */
	nfds_t n;
	int timeout;
};

static void put_all(const struct polled *p)
{
	for (nfds_t i = 0; i < p->n; i++) {
		if (!p->s[i])
			continue;
		sockets_touch(p->s[i], 0);
		sockets_put(p->s[i]);
	}
}

static void free_all(const struct polled *p)
{
	if (p->n > FEW) {
		free(p->fds);
		free(p->s);
	}
}

/* The thread is cancelled as it sleeps. */
static void poll_no_more(void *polled)
{
	sockets_inside = 0;
	put_all(polled);
	free_all(polled);
}

/* The descriptors to look at. Whether any is an rsocket. */
static bool replace(const struct polled *p, const struct pollfd *fds)
{
	bool any = false;

	for (nfds_t i = 0; i < p->n; i++) {
		struct sockets_socket *s = sockets_rsocket(fds[i].fd);

		p->fds[i] = fds[i];
		p->s[i] = s;
		if (!s && sockets_is_set(fds[i].fd))
			sockets_epoll_expose(fds[i].fd);
		if (!s)
			continue;
		any = true;
		p->fds[i].fd = sockets_use(s, fds[i].fd) ? s->rs : -1;
	}
	return any;
}

static int poll_kernel(struct pollfd *fds, nfds_t n, int timeout, const sigset_t *mask)
{
	const struct timespec ts = { .tv_sec = timeout / 1000,
		                     .tv_nsec = timeout % 1000 * 1000000l };

	return sockets_real()->ppoll(fds, n, timeout < 0 ? NULL : &ts, mask);
}

/* While another process listens where one of ours would, it is tried again now and then. */
static int slice(int timeout)
{
	const int most = SOCKETS_RETRY_MS;

	return sockets_are_left() && (timeout < 0 || timeout > most) ? most : timeout;
}

static bool look_again(const struct polled *p, const struct pollfd *fds)
{
	for (nfds_t i = 0; i < p->n; i++)
		if (p->s[i] && p->fds[i].fd < 0 && sockets_use(p->s[i], fds[i].fd))
			p->fds[i].fd = p->s[i]->rs;
	return true;
}

static int poll_rsockets(struct polled *p, const struct pollfd *fds, const sigset_t *mask)
{
	int ret;

	pthread_cleanup_push(poll_no_more, p);
	do {
		const int ms = slice(p->timeout);

		ret = SOCKETS_INSIDE(umbel_rpoll(p->fds, p->n, ms, mask));
		if (p->timeout > 0)
			p->timeout -= ms;
	} while (!ret && p->timeout && look_again(p, fds));
	pthread_cleanup_pop(0);
	return ret;
}

static int poll_these(struct polled *p, struct pollfd *fds, const sigset_t *mask)
{
	int ret;

	if (!replace(p, fds))
		return poll_kernel(fds, p->n, p->timeout, mask);
	ret = poll_rsockets(p, fds, mask);
	for (nfds_t i = 0; ret >= 0 && i < p->n; i++)
		fds[i].revents = p->fds[i].revents;
	return ret;
}

int sockets_poll(struct pollfd *fds, nfds_t n, int timeout, const sigset_t *mask)
{
	struct sockets_socket *few_s[FEW];
	struct pollfd few[FEW];
	struct polled p = { .s = few_s, .fds = few, .n = n, .timeout = timeout };
	int ret = -1, saved = ENOMEM;

	if (n > FEW) {
		p.fds = malloc(n * sizeof(*p.fds));
		p.s = calloc(n, sizeof(struct sockets_socket *));
	}
	if (p.fds && p.s) {
		ret = poll_these(&p, fds, mask);
		saved = errno;
		put_all(&p);
	}
	free_all(&p);
	errno = saved;
	return ret;
}

int sockets_await(const struct sockets_socket *s, short events, uint64_t until)
{
	struct pollfd p = { .fd = s->rs, .events = events };
	const uint64_t now = base_now_ns();
	int n = 0;

	if (now < until)
		n = SOCKETS_INSIDE(
		        umbel_rpoll(&p, 1, (int)((until - now + 999999) / 1000000), NULL));
	if (!n)
		errno = EAGAIN;
	return n > 0 ? 0 : -1;
}
