/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XRC: domains, targets, and the numbers of shared receive queues. Safe from any thread.
 */
#include "api/verbs/verbs.h"
#include "hca/queue/srq.h"
#include "hca/transport/xrc.h"

/* EOPNOTSUPP: @init has more than we know; EINVAL: it lacks the file or the flags, or the domain is
 * there and must not be (O_EXCL); EAGAIN: it is not there and must not be made (no O_CREAT). Other
 * flags mean nothing, as in Linux. ibv_open_xrcd(3) */
struct ibv_xrcd *verbs_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *init)
{
	const uint32_t all = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct hca_xrcd *x;
	int ret = verbs_check_mask(init->comp_mask, all, all);

	if (!ret)
		ret = hca_xrcd_open(hca_context(context), init->fd, init->oflags, &x);
	return ret ? verbs_null(ret) : &x->xrcd;
}

/* EBUSY: targets or shared receive queues are in it. */
int verbs_close_xrcd(struct ibv_xrcd *xrcd)
{
	return verbs_result(hca_xrcd_close(hca_xrcd(xrcd)));
}

/* EINVAL: no domain. */
struct ibv_qp *verbs_create_target(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	struct hca_qp *qp;
	int ret;

	if (!(init->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !init->xrcd ||
	    init->xrcd->context != context)
		return verbs_null(-EINVAL);
	ret = hca_xrc_target(hca_xrcd(init->xrcd), init, 0, &qp);
	return ret ? verbs_null(ret) : &qp->ex.qp_base;
}

/* EOPNOTSUPP: @attr has more than we know; EINVAL: no target of the domain has the number.
 * ibv_open_qp(3) */
struct ibv_qp *verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
	        IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct ibv_qp_init_attr_ex init = { 0 };
	struct hca_qp *qp;
	int ret = verbs_check_mask(attr->comp_mask, needed | IBV_QP_OPEN_ATTR_CONTEXT, needed);

	if (ret)
		return verbs_null(ret);
	if (attr->qp_type != IBV_QPT_XRC_RECV || !attr->qp_num || !attr->xrcd ||
	    attr->xrcd->context != context)
		return verbs_null(-EINVAL);
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		init.qp_context = attr->qp_context;
	ret = hca_xrc_target(hca_xrcd(attr->xrcd), &init, attr->qp_num, &qp);
	return ret ? verbs_null(ret) : &qp->ex.qp_base;
}

/* EINVAL: it is not one of XRC. ibv_get_srq_num(3) */
int verbs_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	if (!hca_srq(srq)->xrc)
		return verbs_result(-EINVAL);
	*number = hca_srq(srq)->xrc->sender.qpn;
	return 0;
}
