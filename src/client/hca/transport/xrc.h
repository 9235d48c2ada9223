/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XRC domains and targets (InfiniBand specification volume 1, annex A14). A requester names, in
 * each request, the shared receive queue that its target is to use; several processes may have
 * queues in the target's domain, so a node needs one target for all of them.
 *
 * A target is a connected queue pair without queues: its messages arrive in the ring of the shared
 * receive queue (srq.h). Each process that has a target open has a handle of it; their states are
 * one, in the queue pair's record.
 */
#ifndef HCA_XRC_H
#define HCA_XRC_H

#include <stdatomic.h>

#include "hca/process/context.h"

struct hca_qp;

struct hca_xrcd {
	struct ibv_xrcd xrcd; /* public */
	struct hca_context *ctx;
	uint32_t number;
	_Atomic uint32_t
	        users; /* targets and shared receive queues that were made by this handle */
	/* what targets have in the place of a protection domain and completion queues */
	struct ibv_pd *pd;
	struct hca_cq *cq;
};

static inline struct hca_xrcd *hca_xrcd(struct ibv_xrcd *xrcd)
{
	return (struct hca_xrcd *)xrcd;
}

/* The domain of the file @fd, or a new one: -1. @flags: O_CREAT, O_EXCL. -EINVAL, -EAGAIN as
 * ibv_open_xrcd(3) has it; -EBADF; -ENOMEM; -EOPNOTSUPP: an Ethernet port. */
int hca_xrcd_open(struct hca_context *ctx, int fd, int flags, struct hca_xrcd **out);
/* -EBUSY: it has users. */
int hca_xrcd_close(struct hca_xrcd *xrcd);

/* Makes a target. @opened: the number of an existing target of this or another process, which is
 * opened; 0: a new target. -EINVAL: no target has that number. */
int hca_xrc_target(struct hca_xrcd *xrcd, const struct ibv_qp_init_attr_ex *attr, uint32_t opened,
                   struct hca_qp **out);

/* An XRC target's attributes are those that the one has set who was the last, of all that have it
 * open. Before this process looks at them or changes them: takes what others have set. */
void hca_xrc_follow_others(struct hca_qp *qp);
/* Fills in what they are told beside the target's record. */
void hca_xrc_tell_others(const struct hca_qp *qp, struct control_target *t);

#endif
