/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors that the loop watches: see source.h.
 */
#include "ibsim/source.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

int ibsim_source_watch(int loop, struct ibsim_source *s, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = s };

	if (!epoll_ctl(loop, EPOLL_CTL_MOD, s->fd, &event))
		return 0;
	return errno != ENOENT || epoll_ctl(loop, EPOLL_CTL_ADD, s->fd, &event) ? -errno : 0;
}

void ibsim_source_forget(int loop, struct ibsim_source *s)
{
	epoll_ctl(loop, EPOLL_CTL_DEL, s->fd, NULL);
}

int ibsim_source_dispatch(int loop)
{
	struct epoll_event event;
	struct ibsim_source *s;

	/* one: serving it may free the source of another */
	if (epoll_wait(loop, &event, 1, -1) < 1)
		return errno == EINTR ? 0 : -errno;
	s = event.data.ptr;
	s->ready(s, event.events);
	return 0;
}
