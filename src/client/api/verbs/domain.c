/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection, parent and thread domains. Safe from any thread.
 */
#include "api/verbs/layer.h"
#include "api/verbs/verbs.h"

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	int error;
	struct ibv_pd *pd = hca_pd_alloc(hca_context(context), &error);

	if (pd && verbs_watcher(context))
		verbs_watcher(context)->made(
		        CHECKED_PD, pd,
		        &(struct checked_made){ .context = context, .caller = VERBS_CALLER });

	return pd ? pd : verbs_null(error);
}

/* EBUSY while an MR, AH, QP or parent domain is in it. Parent domains end by this call too. */
int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return verbs_result(VERBS_DESTROY(pd->context, PD, pd, hca_pd_dealloc(pd)));
}

/* ibv_alloc_parent_domain(3) */
struct ibv_pd *verbs_alloc_parent_domain(struct ibv_context *context,
                                         struct ibv_parent_domain_init_attr *attr)
{
	int error;
	struct ibv_pd *pd = hca_pd_alloc_parent(hca_context(context), attr, &error);

	if (pd && verbs_watcher(context))
		verbs_watcher(context)->made(
		        CHECKED_PD, pd,
		        &(struct checked_made){ .context = context,
		                                .caller = VERBS_CALLER,
		                                .in = attr->pd,
		                                .is_in_thread_domain = attr->td != NULL });
	return pd ? pd : verbs_null(error);
}

/* ibv_alloc_td(3) */
struct ibv_td *verbs_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct ibv_td *td;
	int error;

	if (attr->comp_mask)
		return verbs_null(-EINVAL);
	td = hca_td_alloc(hca_context(context), &error);
	return td ? td : verbs_null(error);
}

/* EBUSY while a parent domain has it. */
int verbs_dealloc_td(struct ibv_td *td)
{
	return verbs_result(hca_td_dealloc(td));
}
