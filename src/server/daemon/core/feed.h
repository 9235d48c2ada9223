/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Data that is written for a reader without end, as captures and events are: the daemon's end of a
 * stream socket, and a ring of bytes that wait for the reader. A reader that is slow, or stopped,
 * costs that memory, and none of the daemon's time.
 */
#ifndef DAEMON_FEED_H
#define DAEMON_FEED_H

#include <stdint.h>

#include "daemon/core/loop.h"

struct daemon_feed {
	struct daemon_source source; /* the reader says something, or is gone; or there is room */
	struct daemon_loop *loop;
	int fd;
	bool full;      /* the socket has no room: source.ready() is called when it has */
	uint32_t input; /* EPOLLIN; 0: what the reader says does not matter any more */
	uint8_t *ring;
	size_t room, first, used; /* bytes; the first of them may be in the middle of a record */
};

/* @ready: is called as source.ready(). *@reader: the other end, which is the caller's. 0; -ENOMEM;
 * -EMFILE; -errno. */
int daemon_feed_open(struct daemon_feed *f, struct daemon_loop *loop, size_t room,
                     void (*ready)(struct daemon_source *s, uint32_t events), int *reader);
void daemon_feed_close(struct daemon_feed *f);

static inline bool daemon_feed_fits(const struct daemon_feed *f, size_t bytes)
{
	return bytes <= f->room - f->used;
}

/* Adds what fits. */
void daemon_feed_put(struct daemon_feed *f, const void *data, size_t bytes);

/* Whether there is something to send, and the socket may have room. */
static inline bool daemon_feed_may_send(const struct daemon_feed *f)
{
	return f->used && !f->full;
}

/* Sends what there is room for. False: the reader is gone. */
bool daemon_feed_send(struct daemon_feed *f);

/* The data that is there is sent, and no more. */
void daemon_feed_end(struct daemon_feed *f);

#endif
