/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion channels. A channel is an eventfd in semaphore mode, made by the daemon. A process
 * that completes something on an armed CQ, perhaps another process's, adds one to it. Thread-safe.
 */
#ifndef HCA_CHANNEL_H
#define HCA_CHANNEL_H

#include <pthread.h>
#include <sys/queue.h>

#include "hca/process/context.h"
#include "hca/queue/due.h"

struct hca_channel {
	struct ibv_comp_channel channel;
	uint32_t id;
	pthread_mutex_t lock;
	TAILQ_HEAD(, hca_cq) cqs;
	struct hca_due due;
	bool has_surplus; /* events are gone whose units may still be there, or come */
};

int hca_channel_create(struct hca_context *ctx, struct hca_channel **ch);
/* -EBUSY: a CQ still uses it. */
int hca_channel_destroy(struct hca_channel *ch);

/* Waits for an event, unless the descriptor is non-blocking. -EIO: the daemon is gone. */
int hca_channel_get_event(struct hca_channel *ch, struct hca_cq **cq);

/* A thread has waited for an event for a second: says so if none can come. cq_vain.c */
void hca_vain_waits(struct hca_channel *ch);

/* Has the descriptor say whether there are events, as some are gone. With the lock held. */
void hca_channel_settle(struct hca_channel *ch);

#endif
