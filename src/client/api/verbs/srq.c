/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared receive queues. Safe from any thread.
 */
#include "api/verbs/layer.h"
#include "api/verbs/verbs.h"
#include "hca/queue/srq.h"

/* NULL: there is no memory to watch it; it is gone then. */
static struct ibv_srq *watched(struct ibv_srq *srq, struct ibv_pd *pd,
                               const struct ibv_srq_attr *asked, const void *caller)
{
	int ret = verbs_layer_add_srq(srq, pd, asked, caller);

	if (!ret)
		return srq;
	hca_srq_destroy(hca_srq(srq));
	return verbs_null_of("ibv_create_srq", ret);
}

/* EINVAL: more than the device has (max_srq_wr, max_srq_sge). *@init becomes what there is.
 * ibv_create_srq(3) */
struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	const struct ibv_srq_attr asked = init->attr;
	struct hca_srq *srq;
	int ret = hca_srq_create(pd, init, &srq);

	return ret ? verbs_null(ret) : watched(&srq->srq, pd, &asked, VERBS_CALLER);
}

#define ALL_KNOWN (IBV_SRQ_INIT_ATTR_RESERVED - 1)

/* EOPNOTSUPP: @init has more than we know; EINVAL: it lacks its PD, XRC domain or CQ, or they are
 * another device's. */
static struct ibv_srq *create_xrc(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
	const uint32_t needed =
	        IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	const struct ibv_srq_attr asked = init->attr;
	struct hca_srq *srq;
	int ret = verbs_check_mask(init->comp_mask, ALL_KNOWN, needed);

	if (ret)
		return verbs_null(ret);
	if (!init->pd || !init->xrcd || !init->cq || init->pd->context != context ||
	    init->xrcd->context != context || init->cq->context != context)
		return verbs_null(-EINVAL);
	ret = hca_srq_create_xrc(init->pd, init, &srq);
	return ret ? verbs_null(ret) : watched(&srq->srq, init->pd, &asked, VERBS_CALLER);
}

/* EOPNOTSUPP: tag matching, or @init has more than we know; EINVAL: a type that nobody knows.
 * ibv_create_srq_ex(3) */
struct ibv_srq *verbs_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
	struct ibv_srq_init_attr basic = { .srq_context = init->srq_context, .attr = init->attr };
	enum ibv_srq_type type =
	        init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? init->srq_type : IBV_SRQT_BASIC;
	struct ibv_srq *srq;
	int ret;

	if (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC)
		return verbs_null(type == IBV_SRQT_TM ? -EOPNOTSUPP : -EINVAL);
	if (type == IBV_SRQT_XRC)
		return create_xrc(context, init);
	ret = verbs_check_mask(init->comp_mask, ALL_KNOWN, IBV_SRQ_INIT_ATTR_PD);
	if (ret)
		return verbs_null(ret);
	if (!init->pd || init->pd->context != context)
		return verbs_null(-EINVAL);
	srq = ibv_create_srq(init->pd, &basic);
	if (srq)
		init->attr = basic.attr;
	return srq;
}

/* EINVAL: more than max_srq_wr, fewer than are posted, a limit above the size, or the size of an
 * XRC one, which is fixed. ibv_modify_srq(3) */
int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	return verbs_result(hca_srq_modify(hca_srq(srq), attr, mask));
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	hca_srq_query(hca_srq(srq), attr);
	return 0;
}

/* EBUSY: a queue pair uses it. Waits until all its events are acknowledged. */
int ibv_destroy_srq(struct ibv_srq *srq)
{
	return verbs_result(verbs_layer_destroy_srq(srq, VERBS_CALLER));
}
