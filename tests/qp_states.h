/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The transitions of an RC or UC queue pair to RTS, each with the attributes that ibv_modify_qp(3)
 * wants for it. @a: all attributes, but for the state. The result is ibv_modify_qp()'s.
 */
#ifndef TESTS_QP_STATES_H
#define TESTS_QP_STATES_H

#include <infiniband/verbs.h>

static inline int qp_to_init(struct ibv_qp *qp, struct ibv_qp_attr *a)
{
	a->qp_state = IBV_QPS_INIT;
	return ibv_modify_qp(qp, a,
	                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static inline int qp_to_rtr(struct ibv_qp *qp, struct ibv_qp_attr *a)
{
	const int rc = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

	a->qp_state = IBV_QPS_RTR;
	return ibv_modify_qp(qp, a,
	                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	                             IBV_QP_RQ_PSN | (qp->qp_type == IBV_QPT_UC ? 0 : rc));
}

static inline int qp_to_rts(struct ibv_qp *qp, struct ibv_qp_attr *a)
{
	const int rc =
	        IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

	a->qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, a,
	                     IBV_QP_STATE | IBV_QP_SQ_PSN | (qp->qp_type == IBV_QPT_UC ? 0 : rc));
}

#endif
