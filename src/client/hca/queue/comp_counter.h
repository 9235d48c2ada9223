/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion counters (ibv_create_comp_cntr(3)): how many operations of queue pairs are done, and
 * how many have failed, without a look at completion queues.
 *
 * Sends count when they complete, whether or not the program asked for a completion. Receives count
 * when their message lies in their memory. Somebody has to put it there: a thread that reads a
 * counter does what polling would do, and sets the completions aside, where polling finds them.
 * RDMA by peers is counted in shared memory by the thread that carries it out, and added by the
 * thread that reads the counter.
 *
 * A queue pair without counters pays nothing: one that has some, or has completions set aside for
 * another reason, is given other functions for its completions.
 *
 * Thread-safe. Lock order: a counter's lock, then those of qp.h.
 */
#ifndef HCA_COMP_COUNTER_H
#define HCA_COMP_COUNTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "hca/queue/qp.h"

/* Kinds of operations: bits of enum ibv_qp_attach_comp_cntr_op. */
enum hca_comp_kind {
	HCA_COMP_KIND_SEND,
	HCA_COMP_KIND_RECEIVE,
	HCA_COMP_KIND_READ,
	HCA_COMP_KIND_REMOTE_READ, /* by a peer, of our memory */
	HCA_COMP_KIND_WRITE,
	HCA_COMP_KIND_REMOTE_WRITE,
	HCA_COMP_KINDS,
};

#define HCA_MAX_COMP_COUNTERS 65536 /* of an open HCA */

enum hca_comp_count { HCA_COMP_DONE, HCA_COMP_FAILED };

struct hca_comp_counter {
	struct ibv_context *context; /* these two: struct ibv_comp_cntr */
	uint32_t handle;
	bool counts_bytes;
	_Atomic uint64_t count[2]; /* by enum hca_comp_count */
	pthread_mutex_t lock;
	LIST_HEAD(, hca_counted_operation) uses;
};

/* 0, or -ENOMEM. @bytes: it counts the bytes of what is done. */
int hca_comp_counter_create(struct hca_context *ctx, bool bytes, struct hca_comp_counter **counter);
/* -EBUSY: a queue pair has it. */
int hca_comp_counter_destroy(struct hca_comp_counter *c);

/* The kinds of operations that queue pairs can have counted, as bits. */
#define HCA_COMP_COUNTER_OPERATIONS ((1u << HCA_COMP_KINDS) - 1)

/* Has @c count those kinds of operations. -EINVAL: the queue pair's state; -EOPNOTSUPP: it has no
 * such operations; -EBUSY: another counter has one of them. */
int hca_comp_counter_attach(struct hca_comp_counter *c, struct hca_qp *qp, uint32_t operations);

uint64_t hca_comp_counter_read(struct hca_comp_counter *c, enum hca_comp_count which);
void hca_comp_counter_set(struct hca_comp_counter *c, enum hca_comp_count which, uint64_t value);
void hca_comp_counter_add(struct hca_comp_counter *c, enum hca_comp_count which, uint64_t amount);

/* ---- for queue pairs that have counters ---- */

/* Brings the counters of @qp up to date: takes what has arrived from its ring, where it waits to be
 * polled, and adds what peers did. With the lock of its receives' CQ held. */
void hca_counted_update(struct hca_qp *qp);

/* ---- for deregistering memory ---- */

/* Takes the arrivals at @rq, of a queue pair, from its ring, and sets the completions aside:
 * messages that came while the memory was registered lie there before it is not registered any
 * more. Memory may have been unmapped already. With the lock of its CQ held. */
void hca_counted_take(struct hca_rq *rq);
/* Its part of shared memory is another's now: nothing is counted any more. With that lock held. */
void hca_counted_close(struct hca_qp *qp);
/* Forgets the completions of @rq that wait to be polled. With that lock held. */
void hca_counted_drop(struct hca_rq *rq);
/* Leaves its counters. */
void hca_counted_free(struct hca_qp *qp);

#endif
