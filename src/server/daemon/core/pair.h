/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that the daemon makes for clients.
 */
#ifndef DAEMON_PAIR_H
#define DAEMON_PAIR_H

struct daemon_loop;

/* A pair of sockets of AF_UNIX and @type (SOCK_...): end[0] is the daemon's, closed by
 * daemon_loop_close_end(); end[1] the client's. 0 or -errno. Nobody can send descriptors to the
 * daemon's end, since Linux 6.16: if a receiver has no room for descriptors, the kernel closes
 * them, which can take long (closer.h). */
int daemon_pair(struct daemon_loop *loop, int type, int end[2]);

/* Descriptors can be sent to this end. */
void daemon_pair_take_descriptors(int end);

#endif
