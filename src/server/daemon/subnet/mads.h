/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The queue of MADs that are about to be sent. A MAD that arrives may cause responses,
 * which arrive elsewhere and cause others. So code that makes a MAD while another one arrives puts
 * it here, and nothing is freed or changed while a sender still uses it.
 */
#ifndef DAEMON_MADS_H
#define DAEMON_MADS_H

#include "daemon/core/loop.h"
#include "fabric/agents/mads.h"

/* High halves of the transaction IDs of requests that the daemon itself makes. */
enum { DAEMON_TID_SM = 1, DAEMON_TID_CM, DAEMON_TID_PROGRAMS = 16 };

struct daemon_mads {
	struct fabric *f;
	struct daemon_loop *loop;
	STAILQ_HEAD(, daemon_mad) queue;
	bool sending;
	struct base_timer more; /* the queue was too long for one go */
};

void daemon_mads_init(struct daemon_mads *mads, struct fabric *f, struct daemon_loop *loop);
void daemon_mads_fini(struct daemon_mads *mads);

/* Queues a MAD: sent when daemon_mads_send() is called, in the end after this turn of the loop.
 * The data's copy is ours. */
void daemon_mads_queue(struct daemon_mads *mads, struct fabric_port *from,
                       const struct fabric_mad *mad);

/* Sends what is queued, but for more than is fair to others, which is sent soon. */
void daemon_mads_send(struct daemon_mads *mads);

/* Has what is queued sent soon, not before this returns. */
void daemon_mads_send_soon(struct daemon_mads *mads);

#endif
