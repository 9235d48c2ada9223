/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Data that is written for a reader: see feed.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/core/feed.h"
#include "daemon/core/pair.h"

int daemon_feed_open(struct daemon_feed *f, struct daemon_loop *loop, size_t room,
                     void (*ready)(struct daemon_source *s, uint32_t events), int *reader)
{
	int pair[2], ret;

	*f = (struct daemon_feed){ .source = { .ready = ready }, .input = EPOLLIN, .room = room };
	f->ring = malloc(room);
	if (!f->ring)
		return -ENOMEM;
	ret = -EMFILE;
	if (daemon_pair(loop, SOCK_STREAM, pair))
		goto err_free;
	ret = daemon_source_watch(loop, &f->source, pair[0], EPOLLIN);
	if (ret)
		goto err_pair;
	f->loop = loop;
	f->fd = pair[0];
	*reader = pair[1];
	return 0;
err_pair:
	daemon_loop_close_end(loop, pair[0]);
	close(pair[1]);
err_free:
	free(f->ring);
	return ret;
}

void daemon_feed_close(struct daemon_feed *f)
{
	daemon_source_stop(&f->source);
	daemon_loop_close_end(f->loop, f->fd);
	free(f->ring);
}

void daemon_feed_put(struct daemon_feed *f, const void *data, size_t bytes)
{
	size_t at = (f->first + f->used) % f->room;
	size_t part = bytes < f->room - at ? bytes : f->room - at;

	memcpy(f->ring + at, data, part);
	memcpy(f->ring, (const uint8_t *)data + part, bytes - part);
	f->used += bytes;
}

static void wait_for_room(struct daemon_feed *f, bool full)
{
	if (f->full == full)
		return;
	f->full = full;
	daemon_source_change(&f->source, f->input | (full ? EPOLLOUT : 0));
}

bool daemon_feed_send(struct daemon_feed *f)
{
	size_t bytes;
	ssize_t n;

	do {
		bytes = f->used < f->room - f->first ? f->used : f->room - f->first;
		n = bytes ? send(f->fd, f->ring + f->first, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
		if (n < 0 && errno != EAGAIN && errno != ENOBUFS && errno != EINTR)
			return false;
		if (n > 0) {
			f->first = (f->first + (size_t)n) % f->room;
			f->used -= (size_t)n;
		}
	} while (n > 0 && (size_t)n == bytes && f->used); /* the ring's other part */
	wait_for_room(f, f->used);
	return true;
}

void daemon_feed_end(struct daemon_feed *f)
{
	f->input = 0;
	f->full = true;
	daemon_source_change(&f->source, EPOLLOUT);
}
