/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions of librdmacm for libumbel-sockets, which is of the same build: rsockets in sets of
 * epoll, and ppoll(2) of rsockets. Thread-safe.
 */
#ifndef API_RDMACM_RSOCKET_LOOK_H
#define API_RDMACM_RSOCKET_LOOK_H

#include <poll.h>
#include <signal.h>
#include <stdint.h>

#define UMBEL_RSOCKET_FIRED 1u /* the descriptor is readable: the cause is served */
#define UMBEL_RSOCKET_ARM   2u /* the descriptor becomes readable when anything happens next */

struct umbel_rsocket_look {
	short events;      /* poll()'s bits of what could be done now */
	uint32_t news;     /* grows with each message, connection and end that comes */
	uint32_t readable; /* bytes of a stream */
};

/* 0; -1 and errno: it is no rsocket. */
int umbel_rsocket_look(int fd, unsigned flags, struct umbel_rsocket_look *out);

/*
 * Rsockets of the process that listen or connect are served by any of its calls. The descriptor is
 * readable when one has something that no call was told of yet; -1: there is none. It is the same
 * one as long as the process lives. The call serves them.
 */
int umbel_rsockets_to_serve(void);
void umbel_rsockets_serve(void);

/* As rpoll(), with the signal mask of ppoll(2); @mask NULL: the thread's. */
int umbel_rpoll(struct pollfd *fds, nfds_t nfds, int timeout, const sigset_t *mask);

#endif
