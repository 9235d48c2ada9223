/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why requests are refused, and why they complete in error: reasons for base/reason.h, which are
 * worked out when that has happened. So the fast path checks rules, and knows nothing of words.
 *
 * All are for the cold path. They read what the caller's locks protect, and without them what may
 * be of a moment later: that makes a reason inexact, no more. Thread-safe.
 */
#ifndef HCA_EXPLAIN_H
#define HCA_EXPLAIN_H

#include <stdint.h>

#include <infiniband/verbs.h>

struct hca_cq;
struct hca_qp;
struct hca_rq;

/* "RTS" and so on; "IBV_WC_SUCCESS" and so on; "send" and so on, of enum ibv_wr_opcode. */
const char *hca_state_name(enum ibv_qp_state state);
const char *hca_status_name(enum ibv_wc_status status);
const char *hca_opcode_name(unsigned opcode);

/* Posting @wr was refused with @error, -errno, which they return. */
int hca_explain_send(const struct hca_qp *qp, const struct ibv_send_wr *wr, int error);
/* It was as the send queue is full: the checker hears it if nothing will ever free a place. */
void hca_explain_full(const struct hca_qp *qp);
int hca_explain_receive(const struct hca_rq *rq, const struct ibv_recv_wr *wr, int error);

/* Moving @qp was refused with @error, which it returns: as @attr and @mask ask for. */
int hca_explain_modify(const struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask,
                       int error);

/* A request completes in error: one line says so. @wr: with its entries, unless they are gone. */
void hca_explain_failed_send(const struct hca_qp *qp, const struct ibv_send_wr *wr,
                             enum ibv_wc_status status);

/* A receive of @rq does, for @wc, which is filled in. @sge: its entries; NULL: they are not known.
 */
void hca_explain_failed_receive(struct hca_rq *rq, const struct ibv_wc *wc,
                                const struct ibv_sge *sge, uint32_t n_sge);

/* Polling fails as the completion queue has overrun. Returns -EIO. */
int hca_explain_overrun(const struct hca_cq *cq);

#endif
