/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Device memory: ibv_alloc_dm(3). Safe from any thread.
 */
#include "api/verbs/faults.h"
#include "api/verbs/layer.h"
#include "api/verbs/verbs.h"
#include "hca/memory/dm.h"
#include "hca/registration/mr.h"

struct ibv_dm *verbs_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	int error;
	struct ibv_dm *dm = hca_dm_alloc(hca_context(context), attr, &error);

	if (dm && verbs_watcher(context))
		verbs_watcher(context)->needs(CHECKED_NEEDS_DEVICE_MEMORY, attr->length);
	return dm ? dm : verbs_null(error);
}

/* EBUSY while a region is in it. */
int verbs_free_dm(struct ibv_dm *dm)
{
	return verbs_result(hca_dm_free(dm));
}

/* EINVAL: without IBV_ACCESS_ZERO_BASED, or not all in the device memory. */
struct ibv_mr *verbs_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
                               unsigned int access)
{
	int error = verbs_faults_meet(hca_context(pd->context), CONTROL_CALL_REGISTER, 0);
	struct hca_mr *mr;

	if (error)
		return verbs_null(error);
	mr = hca_mr_register_dm(pd, dm, offset, length, access, &error);
	return mr ? &mr->mr : verbs_null(error);
}
