/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that fail on purpose: rules of faults (umbel-fault(1)) that say what a wire cannot do. The
 * n-th request that is posted is refused, the n-th completion has another status, or one more comes
 * behind it, the n-th region is not registered. A context that is opened while there are such rules
 * calls these functions in place of its own, and asks the daemon each time, which counts for all
 * processes; others do not know of them. Safe from any thread.
 */
#ifndef API_VERBS_FAULTS_H
#define API_VERBS_FAULTS_H

#include "control/message.h"
#include "hca/queue/cq.h"
#include "hca/queue/qp.h"

/* The context is new: it meets faults if there are rules of calls. 0 or -ENOMEM. */
int verbs_faults_open(struct hca_context *ctx);
void verbs_faults_close(struct hca_context *ctx);

/* A queue pair, or an extended completion queue, of a context is new; for all contexts.
 * verbs_faults_add_qp(): 0 or -ENOMEM. */
int verbs_faults_add_qp(struct hca_qp *qp);
void verbs_faults_add_cq_ex(struct hca_cq *cq);

/* hca_qp_destroy() of a queue pair of any context. */
int verbs_faults_destroy_qp(struct hca_qp *qp);

/* 0, or -errno: the call of this kind fails. */
int verbs_faults_meet(struct hca_context *ctx, enum control_call_kind kind);

#endif
