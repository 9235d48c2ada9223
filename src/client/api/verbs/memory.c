/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions, and the fork helpers. Safe from any thread.
 */
#include <errno.h>
#include <unistd.h>

#include "api/verbs/faults.h"
#include "api/verbs/layer.h"
#include "api/verbs/verbs.h"
#include "base/reason.h"
#include "hca/registration/mr.h"

/* As Linux has it: @iova names pages as the memory has them. */
static int check_iova(const void *addr, uint64_t iova)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (((uintptr_t)addr ^ iova) % page == 0)
		return 0;
	return base_because(-EINVAL,
	                    "iova 0x%llx and address %p are at different offsets of a page",
	                    (unsigned long long)iova, addr);
}

static struct checked_made made_by(const struct ibv_mr *mr, uint64_t iova, unsigned access,
                                   const void *caller)
{
	return (struct checked_made){ .context = mr->context,
		                      .caller = caller,
		                      .in = mr->pd,
		                      .iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
		                      .access = access };
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                          unsigned access, const void *caller)
{
	struct hca_mr *mr;
	int error = verbs_faults_meet(hca_context(pd->context), CONTROL_CALL_REGISTER, 0);

	if (!error)
		error = check_iova(addr, iova);
	if (error)
		return verbs_null_of("ibv_reg_mr", error);
	mr = hca_mr_register(pd, addr, length, access & IBV_ACCESS_ZERO_BASED ? 0 : iova, access,
	                     &error);
	if (!mr)
		return verbs_null_of("ibv_reg_mr", error);
	if (verbs_watcher(pd->context)) {
		const struct checked_made how = made_by(&mr->mr, iova, access, caller);

		verbs_watcher(pd->context)->made(CHECKED_MR, &mr->mr, &how);
	}
	return &mr->mr;
}

struct ibv_mr *(ibv_reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg(pd, addr, length, (uintptr_t)addr, (unsigned)access, VERBS_CALLER);
}

struct ibv_mr *(ibv_reg_mr_iova)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                 int access)
{
	return reg(pd, addr, length, iova, (unsigned)access, VERBS_CALLER);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned int access)
{
	return reg(pd, addr, length, iova, access, VERBS_CALLER);
}

/* Of the program's own, as ibv_reg_mr() makes it: null and imported ones cannot be changed. */
static bool can_be_changed(const struct hca_mr *mr)
{
	return mr->kind != HCA_MR_NULL && mr->region == mr;
}

static int reregister(struct hca_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                      unsigned access, const void *caller)
{
	const struct checked_watcher *w = verbs_watcher(mr->mr.context);
	struct checked_made how;
	int ret;

	if (w)
		w->registering_anew(&mr->mr, caller);
	ret = hca_mr_reregister(mr, flags, pd, addr, length, access);
	how = made_by(&mr->mr, mr->iova, mr->access, caller);
	if (w && !ret)
		w->registered_anew(&mr->mr, &how);
	return ret;
}

/* 0 or enum ibv_rereg_mr_err_code. A refusal leaves the region as it was. ibv_rereg_mr(3) */
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                 int access)
{
	int ret;

	if (!can_be_changed((struct hca_mr *)mr)) {
		verbs_error(__func__,
		            base_because(-EINVAL, "the region is a null one or imported"));
		return IBV_REREG_MR_ERR_INPUT;
	}
	if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) ||
	    (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS)) ||
	    ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!addr || !length)) ||
	    ((flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != mr->context))) {
		verbs_error(__func__, base_because(-EINVAL,
		                                   "flags 0x%x are wrong, or what they "
		                                   "name is: no address, length or PD, or "
		                                   "access without CHANGE_ACCESS",
		                                   (unsigned)flags));
		return IBV_REREG_MR_ERR_INPUT;
	}
	ret = verbs_faults_meet(hca_context(mr->context), CONTROL_CALL_REGISTER, 0);
	if (!ret && !flags) /* which libibverbs leaves to the kernel */
		ret = base_because(-EINVAL, "flags are 0: nothing is to be changed");
	if (!ret)
		ret = reregister((struct hca_mr *)mr, flags, pd, addr, length, (unsigned)access,
		                 VERBS_CALLER);
	if (!ret)
		return 0;
	verbs_error(__func__, ret);
	return IBV_REREG_MR_ERR_CMD;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	return verbs_result(
	        VERBS_DESTROY(mr->context, MR, mr, hca_mr_deregister((struct hca_mr *)mr)));
}

/* ibv_alloc_null_mr(3) */
struct ibv_mr *verbs_alloc_null_mr(struct ibv_pd *pd)
{
	int error;
	struct hca_mr *mr = hca_mr_alloc_null(pd, &error);

	return mr ? &mr->mr : verbs_null(error);
}

/* Brings pages of on-demand regions in, before the call returns: @flags ask for no less. The first
 * entry that is wrong ends it. ibv_advise_mr(3) */
int verbs_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                    struct ibv_sge *sg_list, uint32_t num_sges)
{
	int ret = 0;

	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return verbs_result(-EOPNOTSUPP);
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !num_sges || !sg_list)
		return verbs_result(-EINVAL);
	for (uint32_t i = 0; i < num_sges && !ret; i++)
		ret = hca_mr_advise(&hca_context(pd->context)->process->mrs, hca_pd(pd)->domain,
		                    advice, &sg_list[i]);
	return verbs_result(ret);
}

/* Nothing is pinned, so a fork changes nothing for the parent. ibv_fork_init(3) */
int ibv_fork_init(void)
{
	verbs_layer_fork_is_safe();
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
