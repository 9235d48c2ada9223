/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A layer around the calls of chosen contexts: those that are opened while rules of faults are
 * about calls (faults.h), or while a watcher is wanted (src/client/checked/watcher.h). Such a
 * context calls these functions in place of its own; others do not know of them. The layer carries
 * requests out one by one, keeps a record of each for the watcher (src/client/hca/queue/record.h),
 * and sees each completion before the program does. The transports do not know of it. Safe from any
 * thread.
 */
#ifndef API_VERBS_LAYER_H
#define API_VERBS_LAYER_H

#include "api/verbs/layered.h"

/* The context is new: it gets a layer if somebody wants one. 0 or -ENOMEM. */
int verbs_layer_open(struct hca_context *ctx);
void verbs_layer_close(struct hca_context *ctx);

/* ibv_fork_init() was called. */
void verbs_layer_fork_is_safe(void);

/* A queue pair, a shared receive queue, or an extended completion queue of any context is new.
 * @asked: it may have more. 0 or -ENOMEM. */
int verbs_layer_add_qp(struct hca_qp *qp, const struct ibv_qp_cap *asked, const void *caller);
int verbs_layer_add_srq(struct ibv_srq *srq, struct ibv_pd *pd, const struct ibv_srq_attr *asked,
                        const void *caller);
void verbs_layer_add_cq_ex(struct hca_cq *cq);

/* hca_qp_destroy() and its like, of those of any context. */
int verbs_layer_destroy_qp(struct hca_qp *qp, const void *caller);
int verbs_layer_destroy_cq(struct hca_cq *cq, const void *caller);
int verbs_layer_destroy_srq(struct ibv_srq *srq, const void *caller);

/* The queue pair was modified: it has no requests any more after RESET. */
void verbs_layer_modified(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask);

#endif
