/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An outbox: events on their way to one process, by a socket pair of which the process has the
 * other end. Events that the socket has no room for wait here, in order, and are sent when there is
 * room. A process that closes its end, or dies, gets no more. Nor does one that does not read: each
 * outbox has a budget of its own.
 */
#ifndef DAEMON_OUTBOX_H
#define DAEMON_OUTBOX_H

#include <stddef.h>

#include "daemon/core/loop.h"

struct cm_outbox; /* named by cm/cm.h, whose outboxes they are, too */

/* *@process_fd: the process's end, the caller's to close. 0 or -errno. */
int daemon_outbox_open(struct daemon_loop *loop, struct cm_outbox **box, int *process_fd);
/* 0, or -errno: it is lost. */
int daemon_outbox_send(struct cm_outbox *box, const void *event, size_t bytes);
/*
 * Sends one byte, less than DAEMON_OUTBOX_RINGS. It is never lost: bytes that wait are counted, not
 * kept. Those between the same two messages go the lower ones first.
 */
#define DAEMON_OUTBOX_RINGS 2
void daemon_outbox_ring(struct cm_outbox *box, uint8_t byte);
/* How many wait here. */
unsigned daemon_outbox_waiting(const struct cm_outbox *box);
/* Whether nobody has the process's end open any more. */
bool daemon_outbox_closed(const struct cm_outbox *box);
void daemon_outbox_close(struct cm_outbox *box);

/* A datagram to send; @beside, unless it has 0 bytes, is sent in a memfd beside it. */
struct daemon_datagram {
	const void *data;
	size_t bytes;
	const void *beside;
	size_t beside_bytes;
};
int daemon_outbox_send_datagram(struct cm_outbox *box, const struct daemon_datagram *g);

/* The daemon's end of the socket, for receiving. */
int daemon_outbox_fd(const struct cm_outbox *box);

#endif
