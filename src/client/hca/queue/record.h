/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The record of one work request: what it asked for, and when each step of it was done. A request
 * is posted by the program, its bytes are gathered at the sender and placed at the receiver, it
 * completes, and the program polls its completion. The specification orders these steps, and says
 * little of the time between them (volume 1, 10.8): what a program does between two of
 * them, and what a fabric may do between two of them, are the two sides of one question.
 *
 * Records are kept for contexts that are watched (src/client/api/verbs/layer.h), and for no others.
 * A record begins before its request is carried out. It ends when its completion is polled; a
 * request without a completion ends with the completion of a later one of the same queue. Not
 * thread-safe: the lock of the layer holds for all records of a context.
 */
#ifndef HCA_RECORD_H
#define HCA_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "base/hash.h"

enum hca_step { HCA_POSTED, HCA_GATHERED, HCA_PLACED, HCA_COMPLETED, HCA_POLLED, HCA_N_STEPS };

struct hca_record {
	TAILQ_ENTRY(hca_record) entry; /* of its queue, in the order in which they were posted */
	uint64_t number;               /* in its queue, from 0 */
	uint64_t at_ns[HCA_N_STEPS];   /* of the monotonic clock; 0: the step has not been seen */
	struct ibv_qp *qp;             /* NULL: a receive of a shared receive queue */
	struct ibv_srq *srq;           /* that one; else NULL */
	struct ibv_cq *cq;             /* where it completes; NULL: it is not known yet */
	uint64_t wr_id;
	const void *caller; /* where the program called: a return address */
	void *watched;      /* the watcher's own */
	/* of a shared receive queue: the oldest one of its wr_id is in the queue's table, and has
	 * the newest; all of them know their neighbours */
	struct base_hash_node by_wr_id;
	struct hca_record *older, *newer, *newest;
	bool is_indexed; /* it is in the table */
	uint32_t bytes;  /* of all ranges */
	bool is_receive, is_signaled, is_inline;
	bool is_posting; /* the call that posts it has not returned: it may yet be refused */
	bool has_ended;  /* meanwhile */
	/* of a request that is sent */
	enum ibv_wr_opcode opcode;
	struct ibv_ah *ah; /* of a datagram; else NULL */
	uint32_t remote_qpn, remote_qkey;
	/* of RDMA and atomic operations; else 0 */
	uint64_t rdma_addr;
	uint32_t rdma_rkey;
	/* memory: addresses as the region of the key has them (its iova) */
	uint32_t n;
	struct ibv_sge sge[];
};

TAILQ_HEAD(hca_records, hca_record);

/* The requests of a queue that have not ended. */
struct hca_record_queue {
	struct hca_records all;
	struct base_hash by_wr_id; /* of a shared receive queue */
	uint64_t next;             /* number */
	uint32_t n;
};

#endif
