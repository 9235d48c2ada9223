/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory windows, which programs call through the context. Safe from any thread.
 */
#include "api/verbs/layer.h"
#include "api/verbs/verbs.h"
#include "hca/registration/mw.h"

/* Types 1 and 2 (2B); EINVAL: another. ibv_alloc_mw(3) */
struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	int error;
	struct ibv_mw *mw = hca_mw_alloc(pd, type, &error);

	if (mw && verbs_watcher(pd->context))
		verbs_watcher(pd->context)->needs(CHECKED_NEEDS_WINDOWS, 1);
	return mw ? mw : verbs_null(error);
}

int verbs_dealloc_mw(struct ibv_mw *mw)
{
	hca_mw_dealloc(mw);
	return 0;
}

/* Posts a bind request; mw->rkey is the new key. Type 1. ibv_bind_mw(3) */
int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr, *bad;
	int ret = hca_mw_bind_1(mw, bind, &wr);

	if (!ret)
		ret = hca_qp(qp)->transport->post(hca_qp(qp), &wr, &bad);
	if (!ret)
		mw->rkey = wr.bind_mw.rkey;
	return verbs_result(ret);
}
