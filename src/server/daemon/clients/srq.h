/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared receive queues as the daemon has them: index, record in shared memory, ring of credits.
 */
#ifndef DAEMON_SRQ_H
#define DAEMON_SRQ_H

#include "base/idtable.h"
#include "control/message.h"
#include "daemon/clients/hca.h"
#include "daemon/clients/memory.h"

/* A program that asks for twice as much each time, or all that there can be, needs fewer. */
#define DAEMON_SRQ_OLD_RINGS 32

/* Memory of a ring, and of the scatter entries of its receives. */
struct daemon_srq_ring {
	uint64_t off, entries_off;
	uint8_t shift;
};

struct daemon_srq {
	LIST_ENTRY(daemon_srq) entry;
	struct daemon_holder *holder;
	struct daemon_hca *hca;
	uint32_t index;
	uint32_t max_wr, max_sge;
	uint32_t domain; /* as its process calls it */
	struct daemon_srq_ring ring;
	/* earlier rings, which processes may still look at: they go with the queue */
	struct daemon_srq_ring old[DAEMON_SRQ_OLD_RINGS];
	unsigned n_old;
	LIST_HEAD(, daemon_qp) qps; /* that receive by it */
	uint32_t events;            /* asynchronous ones that were sent */
};

struct daemon_srqs {
	struct shm_region *region;
	struct daemon_memory *memory;
	struct base_idtable ids;
	struct daemon_ending ending;
};

void daemon_srqs_init(struct daemon_srqs *all, struct shm_region *region,
                      struct daemon_memory *memory, struct daemon_endings *endings);

/* 0; -EAGAIN: memory is being freed, the client asks again; -ENOMEM. */
int daemon_srq_new(struct daemon_srqs *all, struct daemon_hca *h,
                   const struct control_create_srq *want, struct daemon_srq **out);
/* Gives it another ring, for @max_wr receives. -EINVAL: that is not more; -EAGAIN and
 * -ENOMEM as above. */
int daemon_srq_resize(struct daemon_srqs *all, struct daemon_srq *srq, uint32_t max_wr);
void daemon_srq_free(struct daemon_srqs *all, struct daemon_srq *srq);

/* The one with this index; NULL: there is none. */
struct daemon_srq *daemon_srq_find(const struct daemon_srqs *all, uint32_t index);

/* Fewer credits are left than its program wants to know of: it is told. 0, or -EINVAL: that is not
 * so. */
int daemon_srq_limit(struct daemon_srqs *all, uint32_t index);

#endif
