/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection domains, memory regions, and the fork helpers. Safe from any thread.
 */
#include <stdlib.h>

#include "api/verbs/verbs.h"

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct hca_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return verbs_null(-ENOMEM);
	if (hca_process_gone(hca_context(context)->process)) {
		free(pd);
		return verbs_null(-EIO);
	}
	pd->pd.context = context;
	hca_context(context)->n_objects++;
	return &pd->pd;
}

/* EBUSY while an MR, AH or QP is in it. */
int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct hca_pd *own = (struct hca_pd *)pd;

	if (own->users)
		return verbs_result(-EBUSY);
	hca_context(pd->context)->n_objects--;
	free(own);
	return 0;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                          unsigned access)
{
	struct hca_mr *mr;
	int error;

	mr = hca_mr_register(pd, addr, length, access & IBV_ACCESS_ZERO_BASED ? 0 : iova, access,
	                     &error);
	return mr ? &mr->mr : verbs_null(error);
}

struct ibv_mr *(ibv_reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *(ibv_reg_mr_iova)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                 int access)
{
	return reg(pd, addr, length, iova, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned int access)
{
	return reg(pd, addr, length, iova, access);
}

/* 0 or enum ibv_rereg_mr_err_code. A refusal leaves the region as it was. ibv_rereg_mr(3) */
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                 int access)
{
	int ret;

	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!addr || !length)) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if ((flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != mr->context)) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	ret = hca_mr_reregister((struct hca_mr *)mr, flags, pd, addr, length, (unsigned)access);
	if (!ret)
		return 0;
	errno = -ret;
	return IBV_REREG_MR_ERR_CMD;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	hca_mr_deregister((struct hca_mr *)mr);
	return 0;
}

/* Nothing is pinned, so a fork changes nothing for the parent. ibv_fork_init(3) */
int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
