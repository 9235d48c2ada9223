/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A long message of a program, which is in a memfd beside its datagram. It is read in pieces: all
 * of it at once takes longer than others are to wait.
 */
#ifndef DAEMON_UMAD_LONG_H
#define DAEMON_UMAD_LONG_H

#include "daemon/umad/umad_state.h"

#define UMAD_LONG_PIECE (256u << 10)

struct umad_long {
	struct ib_user_mad header;
	int fd;
	uint8_t *message; /* umad_memory_alloc() */
	size_t bytes, at; /* so many, of which these are read */
};

/* How many bytes of message are in @fd, by the header; 0: it has not so many, or is no memfd. */
size_t umad_long_bytes(const struct ib_user_mad *header, int fd);

/* Reads one piece more. 0: there is more; 1: that was all; -EIO. */
int umad_long_read(struct umad_long *l);

#endif
