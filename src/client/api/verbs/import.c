/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects that are named by handles: ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3),
 * ibv_import_dm(3). src/client/hca/process/command_file.h says what works between processes. Safe
 * from any thread.
 */
#include "api/verbs/verbs.h"
#include "hca/memory/dm.h"
#include "hca/registration/mr.h"

/* ENOENT: there is no such PD. */
struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	int error;
	struct ibv_pd *pd = hca_pd_import(hca_context(context), pd_handle, &error);

	return pd ? pd : verbs_null(error);
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	hca_pd_unimport(pd);
}

/* ENOENT: there is no such MR; EINVAL: it is in another PD; EOPNOTSUPP: another process's. */
struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	int error;
	struct hca_mr *mr = hca_mr_import(pd, mr_handle, &error);

	return mr ? &mr->mr : verbs_null(error);
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	hca_mr_unimport((struct hca_mr *)mr);
}

/* ENOENT: there is no such device memory; EOPNOTSUPP: another process's. */
struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	int error;
	struct ibv_dm *dm = hca_dm_import(hca_context(context), dm_handle, &error);

	return dm ? dm : verbs_null(error);
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
	hca_dm_unimport(dm);
}
