/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How calls on an rsocket wait. Sleepers poll the rsocket's epoll instance without the lock. A
 * completion channel fires once, and the first thread that wakes acknowledges that. So a thread
 * that returns while others sleep arms again, and wakes a sleeper if there is something to read.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "api/rdmacm/rsocket.h"

#define EVENTS 16

void rsocket_drain(struct rsocket *rs)
{
	struct epoll_event event[EVENTS];
	eventfd_t count;
	int n;

	do {
		n = epoll_wait(rs->fd, event, EVENTS, 0);
		for (int i = 0; i < n; i++) {
			if (event[i].data.ptr == &rs->kick)
				eventfd_read(rs->kick, &count);
			else if (event[i].data.ptr != &rs->events)
				rs->type->disarm(rs, event[i].data.ptr);
		}
	} while (n == EVENTS);
	rs->type->progress(rs);
}

/* Milliseconds from now for poll(). */
static int timeout_until(uint64_t until_ms)
{
	uint64_t now = rsocket_now_ms();

	if (until_ms == UINT64_MAX)
		return -1;
	if (until_ms <= now)
		return 0;
	return until_ms - now < INT32_MAX ? (int)(until_ms - now) : INT32_MAX;
}

int rsocket_sleep(struct rsocket *rs, uint64_t until_ms)
{
	struct pollfd p = { .fd = rs->fd, .events = POLLIN };
	int n, err;

	rs->sleepers++;
	pthread_mutex_unlock(&rs->lock);
	n = poll(&p, 1, timeout_until(until_ms));
	err = errno;
	pthread_mutex_lock(&rs->lock);
	rs->sleepers--;
	if (n < 0)
		return -err;
	rsocket_drain(rs);
	return n ? 0 : -ETIMEDOUT;
}

void rsocket_wake(struct rsocket *rs)
{
	eventfd_write(rs->kick, 1);
}

void rsocket_pass_on(struct rsocket *rs)
{
	if (!rs->sleepers)
		return;
	rs->type->arm(rs);
	if (rs->type->events(rs) & POLLIN)
		rsocket_wake(rs);
}
