/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posted requests, which nobody waits for, in shared memory: a ring of datagrams, as they would
 * come by the socket (message.h), that a process writes and the daemon reads. While the daemon has
 * something to read, neither needs a system call. A daemon that has read all *sleeps*: a process
 * that posts then tells it by a datagram, CONTROL_POSTED.
 *
 * Order: the daemon reads the ring before it serves a datagram of the same connection. A process
 * that uses the ring sends no other datagram but those whose reply it waits for; CONTROL_POSTED
 * may be one, which empties the ring.
 *
 * After a fork() the child posts by the socket: it has no lock in common with its parent.
 *
 * One writer at a time, one reader. The reader believes nothing that the ring says but what it has
 * copied and checked.
 */
#ifndef CONTROL_POSTS_H
#define CONTROL_POSTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "control/socket.h"

#define CONTROL_POSTS_BYTES 16384u /* a power of two */

struct control_posts {
	_Alignas(BASE_CACHE_LINE) _Atomic uint32_t
	        head; /* bytes that the process has written, ever */
	_Alignas(BASE_CACHE_LINE) _Atomic uint32_t tail; /* that the daemon has read */
	_Atomic uint32_t asleep;                         /* the daemon is to be told */
	_Alignas(BASE_CACHE_LINE) unsigned char data[CONTROL_POSTS_BYTES];
};

/* The daemon's. */
struct control_posts_reader {
	struct control_posts *ring; /* NULL: the process has none */
	uint32_t tail;
};

/* Makes an empty ring, whose reader sleeps; the process maps what *@fd, the caller's, leads to. 0
 * or -errno. */
int control_posts_make(struct control_posts_reader *r, int *fd);
/* 0 or -errno; -EPROTO: it is no ring. */
int control_posts_map(struct control_posts **ring, int fd);
void control_posts_unmap(struct control_posts *ring);

/*
 * Writes a datagram: @p, without descriptors, and @bytes of requests @ahead of it. 0; -ENOBUFS:
 * there is no room. *@tell: the reader sleeps, and is to be told, by the caller alone.
 */
int control_posts_put(struct control_posts *ring, const void *ahead, uint32_t bytes,
                      const struct control_packet *p, bool *tell);

/* Up to where the process has written by now. */
uint32_t control_posts_written(const struct control_posts_reader *r);

/* Reads a datagram. 0; -EAGAIN: there is none before @until; -EPROTO: it is none. */
int control_posts_take(struct control_posts_reader *r, uint32_t until, struct control_packet *p);

/* False: there is more to read. Otherwise the reader will be told of more. */
bool control_posts_sleep(struct control_posts_reader *r);

#endif
