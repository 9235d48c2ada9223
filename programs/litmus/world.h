/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where litmus tests run: three nodes, which are three hosts of a fabric that one process sees,
 * each with memory and queue pairs.
 */
#ifndef LITMUS_WORLD_H
#define LITMUS_WORLD_H

#include <infiniband/verbs.h>

#include "litmus/litmus.h"

/* The queue pairs, and from which node to which: 0 and 1 are two of the same. */
#define LITMUS_QPS 9

struct litmus_end {
	struct ibv_qp *qp;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_ah *ah; /* of UD: to the other end */
	unsigned node;
	unsigned sends, signaled, receives; /* that have no completion yet */
};

struct litmus_node {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint64_t *word;
};

struct litmus_world {
	struct litmus_node node[LITMUS_NODES];
	struct litmus_end from[LITMUS_QPS], to[LITMUS_QPS];
	struct ibv_cq *idle; /* to poll, which goes on with whatever waits */
};

#define LITMUS_QKEY 0x1234
/* Behind the words of a node: where the GRH of a datagram goes. */
#define LITMUS_GRH 64

/* Drops receives of UD queue pair @q that have got nothing. False: a call failed. */
bool litmus_drop_receives(struct litmus_world *w, unsigned q);

#endif
