/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of XRC for the tests of this folder, made in one call each and destroyed when the test
 * ends. Calls that should not fail fail the test, but for those that say what they return.
 */
#ifndef TESTS_VERBS_XRC_LAB_H
#define TESTS_VERBS_XRC_LAB_H

#include "lab.h"

#define XRC_LAB_ACCESS                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define XRC_LAB_BYTES 100000u
#define XRC_LAB_WR    16

/* A shared receive queue with its memory and its protection domain. */
struct xrc_lab_queue {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	uint32_t number;
	struct ibv_mr *mr;
	char *memory; /* XRC_LAB_BYTES */
};

/* ibv_open_xrcd(); the domain of the file, or one without: -1. */
struct ibv_xrcd *xrc_lab_open(struct ibv_context *context, int fd, int flags);
struct ibv_xrcd *xrc_lab_domain(struct ibv_context *context, int fd);

/* XRC_LAB_BYTES, registered. */
void *xrc_lab_memory(struct ibv_pd *pd, struct ibv_mr **mr);
void xrc_lab_queue(struct xrc_lab_queue *q, struct ibv_context *context, struct ibv_xrcd *xrcd);
struct ibv_qp *xrc_lab_target(struct ibv_context *context, struct ibv_xrcd *xrcd);
struct ibv_qp *xrc_lab_sender(struct ibv_pd *pd, struct ibv_cq *cq);

/* lab_connect() with all that a peer may do. */
static inline void xrc_lab_connect(struct ibv_qp *qp, uint32_t peer, struct ibv_context *there)
{
	lab_connect(qp, peer, there, XRC_LAB_ACCESS);
}

/* ibv_post_srq_recv() of @length bytes. */
int xrc_lab_receive(struct xrc_lab_queue *q, uint64_t wr_id, uint32_t length);

/* For lab_undo(). */
void xrc_lab_close(void *xrcd);
void xrc_lab_destroy(void *qp);

#endif
