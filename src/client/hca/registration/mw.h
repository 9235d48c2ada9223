/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory windows (InfiniBand specification volume 1, section 10.6.7): a part of a region that peers
 * can access by a key of its own. A window has an index in the table of regions, and no key of that
 * table: it is published (keys.h) while it is bound. Type 1 may be used by all queue pairs of its
 * protection domain, type 2 (2B) by the one that has bound it.
 *
 * Binding and invalidating are requests of a send queue, carried out by its process alone.
 */
#ifndef HCA_MW_H
#define HCA_MW_H

#include <infiniband/verbs.h>

struct hca_qp;
struct shm_request;

/* NULL: *@error. -EINVAL: no such type. */
struct ibv_mw *hca_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, int *error);
/* Nobody can use it any more, bound or not. */
void hca_mw_dealloc(struct ibv_mw *mw);

/* Writes into @r what the request @wr, IBV_WR_BIND_MW, wants. 0 or -EINVAL. */
int hca_mw_describe(const struct ibv_send_wr *wr, struct shm_request *r);

/* Carries out IBV_WR_BIND_MW or IBV_WR_LOCAL_INV. Returns enum ibv_wc_status. */
int hca_mw_carry_out(struct hca_qp *qp, const struct shm_request *r);

struct hca_process;

/* A peer has invalidated @key: the window that had it is bound no more. */
void hca_mw_invalidated(struct hca_process *p, uint32_t key);

/* ibv_bind_mw(3) of a window of type 1: 0 or -errno. *@wr: the request to post; the window's key is
 * wr->bind_mw.rkey once it is posted. */
int hca_mw_bind_1(struct ibv_mw *mw, const struct ibv_mw_bind *bind, struct ibv_send_wr *wr);

#endif
