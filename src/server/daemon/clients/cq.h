/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues: their records in shared memory, and their holders.
 */
#ifndef DAEMON_CQ_H
#define DAEMON_CQ_H

#include "base/timer.h"
#include "daemon/clients/channel.h"
#include "daemon/clients/hca.h"
#include "shm/region.h"

struct daemon_cq {
	LIST_ENTRY(daemon_cq) entry;
	struct daemon_holder *holder;
	uint32_t id; /* index of its record */
	struct daemon_hca *hca;
	LIST_HEAD(, daemon_qp) qps; /* that receive by it */
	uint32_t n_qps;             /* of these */
	bool counts_arrivals;
	bool overrun_told; /* its holder has been told of an overrun */
	uint32_t events;   /* asynchronous ones that were sent */
	struct daemon_cqs *all;
	struct base_timer moderation; /* its period runs */
};

struct daemon_cqs {
	struct shm_region *region;
	const struct daemon_channels *channels;
	struct base_timers *timers;
	struct base_idtable ids;
	struct daemon_ending ending;
};

void daemon_cqs_init(struct daemon_cqs *all, struct shm_region *region,
                     const struct daemon_channels *channels, struct base_timers *timers,
                     struct daemon_endings *endings);

/* 0, -ENOSPC, -ENOMEM. */
int daemon_cq_new(struct daemon_cqs *all, struct daemon_holder *holder, struct daemon_hca *h,
                  struct daemon_cq **out);
void daemon_cq_free(struct daemon_cqs *all, struct daemon_cq *cq);

/* The CQ with this number if it is @holder's, or NULL. */
struct daemon_cq *daemon_cq_of(const struct daemon_cqs *all, const struct daemon_holder *holder,
                               uint32_t id);

/* Wakes threads that sleep on CQ @id, for no completion perhaps. False: nobody sleeps on it. */
bool daemon_cq_wake(struct daemon_cqs *all, uint32_t id);
/* Likewise when a process has died, which may have been about to wake. */
void daemon_cq_wake_bereaved(struct daemon_cqs *all, uint32_t id);

/* Fires the event of CQ @id when its period is over, unless another completion has. 0, -EINVAL. */
int daemon_cq_moderate(struct daemon_cqs *all, uint32_t id);

/* A sender has found CQ @id overrun: its holder is told, once. 0, or -EINVAL: it is not. */
int daemon_cq_overrun(struct daemon_cqs *all, uint32_t id);

#endif
