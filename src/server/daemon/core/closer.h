/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Closes descriptors that clients have a say in, which can keep close(2) for long: the last one of
 * a large file in memory, whose pages the kernel takes back first, a quarter of a second for a
 * gigabyte; and for as long as a client likes, a file of a file system that it serves itself, a
 * socket of TCP that lingers (SO_LINGER), or our end of a connection in which such descriptors lie
 * that nobody has received. So threads close those, and nobody waits for them.
 *
 * Large files have a thread of their own, so that memory comes back whatever holds the others.
 * Sockets have theirs, and signals end what these wait for: a socket lingers for a millisecond, and
 * so do all that lie in an end of a connection. (A file there is not flushed.) Files of /proc never
 * wait, and have none. Nothing ends what a thread waits for with any other file. These have a
 * thread each while they take long, up to DAEMON_CLOSER_HELD; further descriptors wait, and stay
 * open. The first thread begins with the first such descriptor.
 */
#ifndef DAEMON_CLOSER_H
#define DAEMON_CLOSER_H

#include <stdint.h>

#define DAEMON_CLOSER_HELD 32 /* threads */

/* All zero: nothing was to be closed by a thread yet. */
struct daemon_closer {
	struct closer_lane *memory, *sockets, *others;
	uint64_t left; /* to threads, but for memory, at any time */
};

/* Closes @fd, which a client has sent. */
void daemon_closer_close(struct daemon_closer *c, int fd);

/* Closes @fd, our end of a connection of AF_UNIX, the other end of which is a client's. */
void daemon_closer_close_end(struct daemon_closer *c, int fd);

/* How many wait until a thread closes them, but for memory. */
uint64_t daemon_closer_waiting(const struct daemon_closer *c);

/* Waits until all that is memory is closed. Threads that are held are left to the end of the
 * process, with the descriptors that wait for them. */
void daemon_closer_fini(struct daemon_closer *c);

#endif
