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
#define LITMUS_QPS 7

struct litmus_end {
	struct ibv_qp *qp;
	struct ibv_cq *send_cq, *recv_cq;
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

#endif
