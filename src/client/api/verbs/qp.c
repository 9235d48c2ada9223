/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs, address handles, multicast attachment. Safe from any thread.
 */
#include <string.h>

#include "api/verbs/layer.h"
#include "api/verbs/verbs.h"
#include "base/reason.h"
#include "wire/rate.h"

#define QP_COMP_MASK_HERE                                                              \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_XRCD | \
	 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

/* One that sends by XRC receives nothing. */
static void leave_out_receives(struct ibv_qp_init_attr_ex *attr)
{
	attr->recv_cq = attr->send_cq; /* where nothing will complete */
	attr->srq = NULL;
	attr->cap.max_recv_wr = attr->cap.max_recv_sge = 0;
}

static int create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                  struct ibv_qp_cap *cap, struct ibv_qp **out, const void *caller)
{
	struct hca_qp *qp;
	int ret;

	attr->comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_XRCD; /* targets alone have a domain */
	if (attr->qp_type == IBV_QPT_XRC_SEND)
		leave_out_receives(attr);
	ret = hca_qp_create(hca_context(context), attr, &qp);
	if (ret)
		return ret;
	ret = verbs_layer_add_qp(qp, &attr->cap, caller);
	if (ret) {
		hca_qp_destroy(qp);
		return ret;
	}
	if (attr->qp_type == IBV_QPT_XRC_SEND)
		qp->ex.qp_base.recv_cq = NULL;
	*cap = qp->cap;
	*out = &qp->ex.qp_base;
	return 0;
}

/* EOPNOTSUPP for types that the device lacks; EINVAL: an XRC target, which needs its domain.
 * ibv_create_qp(3) */
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex attr = { 0 };
	struct ibv_qp *qp;
	int ret;

	memcpy(&attr, init, sizeof(*init)); /* begins with the same fields */
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = pd;
	ret = create(pd->context, &attr, &init->cap, &qp, VERBS_CALLER);
	return ret ? verbs_null(ret) : qp;
}

struct ibv_qp *verbs_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	struct ibv_qp_init_attr_ex attr = *init;
	struct ibv_qp *qp;
	int ret;

	if (attr.qp_type == IBV_QPT_XRC_RECV)
		return verbs_create_target(context, init);
	if (!(attr.comp_mask & IBV_QP_INIT_ATTR_PD) || !attr.pd)
		return verbs_null(base_because(-EINVAL, "the protection domain is missing"));
	if (attr.comp_mask & ~(uint32_t)QP_COMP_MASK_HERE)
		return verbs_null(base_because(-EOPNOTSUPP, "comp_mask 0x%x is not supported",
		                               attr.comp_mask));
	if (!(attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS))
		attr.create_flags = 0;
	if (attr.create_flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)
		return verbs_null(base_because(
		        -EOPNOTSUPP,
		        "create_flags 0x%x: only IBV_QP_CREATE_BLOCK_SELF_MCAST_LB is supported",
		        attr.create_flags));
	if (!(attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		attr.send_ops_flags = 0;
	ret = create(context, &attr, &init->cap, &qp, VERBS_CALLER);
	return ret ? verbs_null(ret) : qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return hca_qp(qp)->send_ops_flags ? &hca_qp(qp)->ex : NULL;
}

/* qp->state is what was last set or asked for, not what an error has made of it: so it is with
 * libibverbs, and UCX insists. */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int ret = hca_qp_modify(hca_qp(qp), attr, mask);

	if (!ret && (mask & IBV_QP_STATE))
		qp->state = attr->qp_state;
	if (!ret)
		verbs_layer_modified(hca_qp(qp), attr, mask);
	return verbs_result(ret);
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init)
{
	hca_qp_query(hca_qp(qp), attr, init);
	if (mask & IBV_QP_STATE) /* otherwise a hint which fields are wanted; all are free */
		qp->state = attr->qp_state;
	return 0;
}

/* EBUSY while attached to a group. Waits until all its events are acknowledged. */
int ibv_destroy_qp(struct ibv_qp *qp)
{
	return verbs_result(verbs_layer_destroy_qp(hca_qp(qp), VERBS_CALLER));
}

/* ---- address handles ---- */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct hca_ah *ah;
	int error;

	ah = hca_ah_create(hca_context(pd->context), pd, attr, &error);
	if (ah && verbs_watcher(pd->context))
		verbs_watcher(pd->context)
		        ->made(CHECKED_AH, &ah->ah,
		               &(struct checked_made){ .context = pd->context,
		                                       .caller = VERBS_CALLER,
		                                       .in = pd,
		                                       .ah = attr,
		                                       .mbps = wire_rate_to_mbps(attr->static_rate),
		                                       .is_group = ah->is_mcast });
	return ah ? &ah->ah : verbs_null(error);
}

/* -1 and errno. EINVAL: a reply cannot come from a group. ibv_create_ah_from_wc(3) */
int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
                        struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	int ret = hca_ah_init_from_wc(hca_context(context), port_num, wc, grh, attr);

	if (verbs_watcher(context)) /* it finds the index of the GID */
		verbs_watcher(context)->looked_at_gids();
	return ret ? verbs_minus_one(ret) : 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
                                     uint8_t port_num)
{
	struct ibv_ah_attr attr;
	int ret = hca_ah_init_from_wc(hca_context(pd->context), port_num, wc, grh, &attr);

	if (verbs_watcher(pd->context))
		verbs_watcher(pd->context)->looked_at_gids();
	return ret ? verbs_null(ret) : ibv_create_ah(pd, &attr);
}

/* EINVAL for a handle that is not alive. A send posted before is safe. */
int ibv_destroy_ah(struct ibv_ah *ah)
{
	if (!ah)
		return verbs_result(base_because(-EINVAL, "the handle is NULL"));
	return verbs_result(
	        VERBS_DESTROY(ah->context, AH, ah, hca_ah_destroy((struct hca_ah *)ah)));
}

/* ---- multicast ---- */

static int change_attachment(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid,
                             enum control_type type)
{
	struct control_attach req = { .qpn = qp->qp_num, .mlid = lid };

	if (qp->qp_type != IBV_QPT_UD)
		return base_because(-EINVAL,
		                    "QP 0x%06x is an %s queue pair: groups are for UD ones",
		                    qp->qp_num, hca_qp(qp)->transport->name);
	if (!gid) /* what groups there are, the daemon knows */
		return base_because(-EINVAL, "the GID is NULL");
	memcpy(req.mgid.raw, gid->raw, sizeof(req.mgid.raw));
	return hca_request(hca_qp(qp)->ctx->process, type, &req, sizeof(req));
}

/* EINVAL: no UD QP, no multicast GID or LID; ENOMEM: a limit; ENOSYS: no multicast. */
int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	int ret = change_attachment(qp, gid, lid, CONTROL_ATTACH);

	if (gid && verbs_watcher(qp->context))
		verbs_watcher(qp->context)->attached(qp, gid, lid, -ret);
	return verbs_result(ret);
}

/* EINVAL: as above, or not attached by this GID and LID. */
int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	int ret = change_attachment(qp, gid, lid, CONTROL_DETACH);

	if (gid && verbs_watcher(qp->context))
		verbs_watcher(qp->context)->detached(qp, gid, lid, -ret);
	return verbs_result(ret);
}
