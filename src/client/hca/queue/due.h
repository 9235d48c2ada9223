/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The completion queues of a channel that have events, in the order in which these came. They are
 * found by bits in shared memory (struct shm_cq_events): a look at some thousands of queues is one
 * at a few lines of memory. With the lock of the channel held.
 */
#ifndef HCA_DUE_H
#define HCA_DUE_H

#include "base/hash.h"
#include "shm/region.h"

struct hca_cq;

/* Of the queues that share a word of the bits: those of the channel, and those in the heap. */
struct hca_due_word {
	uint64_t mine, found;
};

struct hca_due_cq {
	uint64_t since_ns; /* when the first of its events came */
	struct hca_cq *cq;
};

struct hca_due {
	struct shm_cq_events *events;
	struct base_hash by_id;    /* all queues of the channel */
	struct hca_due_word *word; /* from events[first] on */
	uint32_t first, n;
	/* a heap: none comes before the one at half its place, counted from 1 */
	struct hca_due_cq *heap;
	uint32_t n_heap, room;
};

/* Has room for the queue, which is the channel's from now on. 0 or -ENOMEM. */
int hca_due_enter(struct hca_due *d, struct hca_cq *cq);
void hca_due_leave(struct hca_due *d, struct hca_cq *cq);
/* When no queue is left. */
void hca_due_fini(struct hca_due *d);

/* The queue whose event came first; NULL: none has an event. */
struct hca_cq *hca_due_first(struct hca_due *d);
/* Takes an event of that queue. If it has more, those of others come first. */
void hca_due_take(struct hca_due *d);

#endif
