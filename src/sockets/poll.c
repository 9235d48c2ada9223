/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll(2) with rsockets: librdmacm's, of other descriptors.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rsocket/look.h"
#include "sockets/sockets.h"

#define FEW 64

bool sockets_poll_is_ours(const struct pollfd *fds, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++)
		if (sockets_may_be(fds[i].fd) || sockets_is_set(fds[i].fd))
			return true;
	return false;
}

static void put_all(struct sockets_socket **s, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++) {
		if (!s[i])
			continue;
		sockets_touch(s[i], 0);
		sockets_put(s[i]);
	}
}

/* The descriptors to look at. Whether any is an rsocket. */
static bool replace(struct pollfd *to, struct sockets_socket **s, const struct pollfd *fds,
                    nfds_t n)
{
	bool any = false;

	for (nfds_t i = 0; i < n; i++) {
		to[i] = fds[i];
		s[i] = sockets_rsocket(fds[i].fd);
		if (!s[i] && sockets_is_set(fds[i].fd))
			sockets_epoll_expose(fds[i].fd);
		if (!s[i])
			continue;
		any = true;
		to[i].fd = sockets_use(s[i], fds[i].fd) ? s[i]->rs : -1;
	}
	return any;
}

static int poll_kernel(struct pollfd *fds, nfds_t n, int timeout, const sigset_t *mask)
{
	const struct timespec ts = { .tv_sec = timeout / 1000,
		                     .tv_nsec = timeout % 1000 * 1000000l };

	return sockets_real()->ppoll(fds, n, timeout < 0 ? NULL : &ts, mask);
}

static int poll_these(struct pollfd *fds, nfds_t n, int timeout, const sigset_t *mask,
                      struct pollfd *to, struct sockets_socket **s)
{
	int ret, saved;

	if (!replace(to, s, fds, n))
		return poll_kernel(fds, n, timeout, mask);
	ret = SOCKETS_INSIDE(umbel_rpoll(to, n, timeout, mask));
	saved = errno;
	for (nfds_t i = 0; ret >= 0 && i < n; i++)
		fds[i].revents = to[i].revents;
	put_all(s, n);
	errno = saved;
	return ret;
}

int sockets_poll(struct pollfd *fds, nfds_t n, int timeout, const sigset_t *mask)
{
	struct sockets_socket *few_s[FEW], **s = few_s;
	struct pollfd few[FEW], *to = few;
	int ret, saved;

	if (n > FEW) {
		to = malloc(n * sizeof(*to));
		s = calloc(n, sizeof(struct sockets_socket *));
	}
	if (to && s) {
		ret = poll_these(fds, n, timeout, mask, to, s);
	} else {
		errno = ENOMEM;
		ret = -1;
	}
	saved = errno;
	if (n > FEW) {
		free(to);
		free(s);
	}
	errno = saved;
	return ret;
}
