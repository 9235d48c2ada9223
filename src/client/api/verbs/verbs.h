/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libibverbs' own dialect of errors, in one place: calls that return int give 0 or a
 * positive errno; calls that return a pointer give NULL and set errno; a few give -1 and do.
 */
#ifndef API_VERBS_VERBS_H
#define API_VERBS_VERBS_H

#include <errno.h>
#include <stddef.h>

#include "base/reason.h"
#include "hca/queue/ah.h"
#include "hca/queue/qp.h"

/*
 * The call @name fails with @ret, -errno: logs why (base/reason.h) and sets errno, as Debian's
 * library does for calls that return it, too. Returns errno. All errors leave by this, so that none
 * is silent. "verbs_" in front of a name stands for "ibv_": those calls go through the context.
 */
int verbs_error(const char *name, int ret);

static inline int verbs_result_of(const char *name, int ret)
{
	return base_likely(!ret) ? 0 : verbs_error(name, ret);
}

static inline void *verbs_null_of(const char *name, int ret)
{
	verbs_error(name, ret);
	return NULL;
}

static inline int verbs_minus_one_of(const char *name, int ret)
{
	verbs_error(name, ret);
	return -1;
}

/* For the exported function in which they stand: of 0 or -errno; of -errno. */
#define verbs_result(ret)    verbs_result_of(__func__, ret)
#define verbs_null(ret)      verbs_null_of(__func__, ret)
#define verbs_minus_one(ret) verbs_minus_one_of(__func__, ret)

/* Of a comp_mask. -EOPNOTSUPP: it has others than those that are @known, as in a program that was
 * built for a newer library; -EINVAL: it lacks some that are @needed. */
static inline int verbs_check_mask(uint32_t mask, uint32_t known, uint32_t needed)
{
	if (mask & ~known)
		return base_because(-EOPNOTSUPP, "comp_mask 0x%x is not supported", mask);
	if ((mask & needed) != needed)
		return base_because(-EINVAL, "comp_mask 0x%x lacks 0x%x", mask, needed & ~mask);
	return 0;
}

#define VERBS_COMP_VECTORS 4

/* Called through struct verbs_context. */
int verbs_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
                     size_t len);
int verbs_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
int verbs_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *in,
                          struct ibv_device_attr_ex *attr, size_t len);
struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *verbs_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_xrcd *verbs_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *init);
int verbs_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_qp *verbs_create_target(struct ibv_context *context, struct ibv_qp_init_attr_ex *init);
int verbs_get_srq_num(struct ibv_srq *srq, uint32_t *number);
struct ibv_srq *verbs_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_pd *verbs_alloc_parent_domain(struct ibv_context *context,
                                         struct ibv_parent_domain_init_attr *attr);
struct ibv_td *verbs_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int verbs_dealloc_td(struct ibv_td *td);
struct ibv_dm *verbs_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int verbs_free_dm(struct ibv_dm *dm);
struct ibv_mr *verbs_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
                               unsigned int access);
struct ibv_mr *verbs_alloc_null_mr(struct ibv_pd *pd);
int verbs_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                    struct ibv_sge *sg_list, uint32_t num_sges);
struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int verbs_dealloc_mw(struct ibv_mw *mw);
int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int verbs_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int verbs_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int verbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int verbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* The device behind the public struct. */
struct verbs_hca {
	struct ibv_device device;
	/*
	 * The same member is here in Debian's private struct verbs_device: provider libraries that
	 * a program links look whether this pointer is their own. It is not.
	 */
	const void *ops;
	void *reserved[6];
	__be64 node_guid;
	uint32_t hca; /* index */
};

#endif
