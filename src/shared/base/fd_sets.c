/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* select(2)'s sets by poll(2): see fd_sets.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>

#include "base/fd_sets.h"

#define READABLE    (POLLIN | POLLRDNORM | POLLHUP | POLLERR)
#define WRITABLE    (POLLOUT | POLLWRNORM | POLLERR)
#define EXCEPTIONAL POLLPRI

static bool is_in(const fd_set *set, int fd)
{
	return set && FD_ISSET(fd, set);
}

nfds_t base_fd_sets_to_poll(const struct base_fd_sets *sets, int n, struct pollfd *fds)
{
	nfds_t k = 0;

	for (int fd = 0; fd < n; fd++) {
		int events = (is_in(sets->in, fd) ? POLLIN : 0) |
		             (is_in(sets->out, fd) ? POLLOUT : 0) |
		             (is_in(sets->except, fd) ? POLLPRI : 0);

		if (events)
			fds[k++] = (struct pollfd){ .fd = fd, .events = (short)events };
	}
	return k;
}

/* Leaves a descriptor in the set if it is to be told. 1: it is. */
static int tell(fd_set *set, const struct pollfd *p, int bits)
{
	if (!is_in(set, p->fd))
		return 0;
	if (p->revents & bits)
		return 1;
	FD_CLR(p->fd, set);
	return 0;
}

int base_fd_sets_from_poll(const struct base_fd_sets *sets, const struct pollfd *fds, nfds_t n)
{
	int ret = 0;

	for (nfds_t i = 0; i < n; i++)
		if (fds[i].revents & POLLNVAL)
			return -EBADF;
	for (nfds_t i = 0; i < n; i++)
		ret += tell(sets->in, &fds[i], READABLE) + tell(sets->out, &fds[i], WRITABLE) +
		       tell(sets->except, &fds[i], EXCEPTIONAL);
	return ret;
}
