/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that fail on purpose: rules of faults (umbel-fault(1)) that say what a wire cannot do. The
 * n-th request that is posted is refused, the n-th completion has another status, or one more comes
 * behind it, the n-th region is not registered. A context that is opened while there are such rules
 * has a layer (layer.h), and asks the daemon each time, which counts for all processes. Safe from
 * any thread.
 */
#ifndef API_VERBS_FAULTS_H
#define API_VERBS_FAULTS_H

#include "api/verbs/layered.h"
#include "control/message.h"

/* Whether there are rules of calls. */
bool verbs_faults_wanted(const struct hca_context *ctx);

/* 0, or -errno: the call of this kind, for that queue pair if it has one, fails. */
int verbs_faults_meet(struct hca_context *ctx, enum control_call_kind kind, uint32_t qpn);

/* Applies the rules to a success of that queue pair, with the layer's lock held. */
void verbs_faults_complete(struct hca_cq *cq, struct verbs_layer_qp *q, struct ibv_wc *wc);

#endif
