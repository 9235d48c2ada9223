/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One side of a measurement between two RC queue pairs: a queue pair on host h1 (side 0) or h2
 * (side 1), or on the one device of a RoCE fabric, connected to that of the other side, with one
 * region that the other side may write, read and change by atomics. Plain verbs, as any program
 * would use them. Errors end the program.
 *
 * Thread safety: one thread a side.
 */
#ifndef BENCH_COMMON_RC_H
#define BENCH_COMMON_RC_H

#include "common/util.h"

#include <infiniband/verbs.h>

/* The words of the two sides to each other, in memory that both have: bench_alloc(, 1). */
struct bench_rc_told {
	struct bench_rc_address {
		uint32_t qpn, rkey;
		uint16_t lid;
		union ibv_gid gid; /* RoCE */
		uint64_t memory;
		pid_t pid;
	} address[2];
	_Atomic int is_there[2];
};

struct bench_rc {
	struct bench_rc_told *told;
	int side;
	const char *ip; /* IPv4 address of this side's device; NULL: InfiniBand */
	const struct bench_rc_address *peer; /* once it is connected */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq; /* or NULL */
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *memory; /* the region */
	size_t bytes;
};

struct bench_rc_plan {
	size_t bytes;   /* of the region */
	unsigned depth; /* of each queue */
	bool has_srq;   /* receives are those of a shared receive queue */
	bool is_shared; /* the region is of memory that is shared with processes forked later */
	const char *ip; /* as above */
};

/* Makes it, and tells the other side. */
void bench_rc_open(struct bench_rc *rc, struct bench_rc_told *told, int side,
                   const struct bench_rc_plan *plan);
/* Waits for the other side to be open, and connects this one. */
void bench_rc_connect(struct bench_rc *rc);
void bench_rc_close(struct bench_rc *rc);

/* Connects a new RC queue pair to number @peer, there by @path of its device's port 1: ready to
 * send. */
void bench_rc_bring_up(struct ibv_qp *qp, uint32_t peer, const struct ibv_ah_attr *path);

/* Polls, and ends the program if a request failed. How many completions there were. */
int bench_rc_poll(struct ibv_cq *cq, int max);

#endif
