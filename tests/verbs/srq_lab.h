/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shared receive queue on h2, whose receives are known by their wr_id, and requesters that are
 * connected to queue pairs which receive by it.
 */
#ifndef TESTS_SRQ_LAB_H
#define TESTS_SRQ_LAB_H

#include "peer_lab.h"

#define SRQ_LAB_MOST 4096 /* receives */

struct srq_lab {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	char *memory;
	uint32_t bytes;            /* of a message, at most */
	unsigned size;             /* of the queue */
	bool posted[SRQ_LAB_MOST]; /* by wr_id */
	unsigned n;                /* of these */
	struct ibv_qp *last;       /* to which the last requester is connected */
};

void srq_lab_make(struct srq_lab *r, unsigned size, uint32_t bytes);

/* Posts all receives that are not. False: the queue is full before. */
bool srq_lab_try_post_all(struct srq_lab *r);
void srq_lab_post_all(struct srq_lab *r);

/* A completion, if there is one: of a receive that is posted. */
bool srq_lab_poll(struct srq_lab *r);

/* A requester elsewhere or here, connected to a new queue pair. */
struct lab_peer *srq_lab_requester(struct srq_lab *r, bool elsewhere);

#endif
