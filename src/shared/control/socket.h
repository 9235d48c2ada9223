/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One datagram with descriptors over a SOCK_SEQPACKET socket, in either direction. Blocks
 * as the socket does. Safe from any thread.
 */
#ifndef CONTROL_SOCKET_H
#define CONTROL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/util.h"
#include "control/message.h"

struct control_packet {
	struct control_header header;
	unsigned char body[CONTROL_MAX_BYTES]; /* and behind it requests that have come with it, */
	uint32_t behind;                       /* so many bytes of them */
	int fd[CONTROL_MAX_FDS];
	int n_fds;
};

/*
 * 0; -EAGAIN where the socket would block; -EMSGSIZE for more bytes or descriptors than a
 * packet has; -errno (-EPIPE: nobody there). Never a signal.
 */
int control_send(int sock, const struct control_packet *p);

/* The same with requests that go ahead of it: @bytes at @ahead, all CONTROL_FOLLOWED. */
int control_send_behind(int sock, const void *ahead, uint32_t bytes,
                        const struct control_packet *p);

/*
 * Receives one packet; its descriptors, up to CONTROL_MAX_FDS, are the caller's. 0; -EPIPE at the
 * end of the connection; -EPROTO for a datagram that is no packet (its descriptors are closed);
 * -EMFILE for a packet whose descriptors we have no room for; -EAGAIN; -errno.
 */
int control_receive(int sock, struct control_packet *p);

/* The same, and all descriptors that it would close it gives to @discard_fd, as closing them could
 * take long. */
int control_receive_discarding(int sock, struct control_packet *p,
                               void (*discard_fd)(void *arg, int fd), void *arg);

/* Makes a packet without descriptors of a datagram's @bytes, which lie from @p's header on. 0, or
 * -EPROTO: it is none. */
int control_packet_set(struct control_packet *p, size_t bytes);

/* Whether nobody waits for a reply to the packet, or to one behind it. */
bool control_packet_is_post(const struct control_packet *p);

/* Goes on to the next request of the datagram. False: it was the last one. Descriptors stay. */
bool control_packet_next(struct control_packet *p);

/* How many bytes of a datagram a request takes that is CONTROL_FOLLOWED, with @bytes of body. */
static inline uint64_t control_followed_bytes(uint32_t bytes)
{
	return sizeof(struct control_header) + base_align_up(bytes, 8);
}

void control_close_fds(struct control_packet *p);

#endif
