/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registering memory regions, and giving them up.
 */
#ifndef HCA_MR_H
#define HCA_MR_H

#include "hca/memory/object.h"
#include "hca/process/process.h"

/* Publishes the keys of all regions, from now on. @wait waits for the processes that use them.
 * Returns 0 also if that was done before; -ENOMEM; -EIO. */
int hca_mr_publish_keys(struct hca_process *p, hca_wait_for_users *wait);

/* Windows (mw.c) have an index in the table. 0, -ENOMEM. leave: with the lock held. */
int hca_mr_enter_window(struct hca_process *p, struct hca_mr *entry);
void hca_mr_leave_window(struct hca_process *p, struct hca_mr *entry);

/* Registers memory; *@error is negative then. -EFAULT: not this process's memory. */
struct hca_mr *hca_mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               unsigned access, int *error);
/* Not of a null region or an imported handle. -EINVAL: it is in device memory. */
int hca_mr_reregister(struct hca_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                      unsigned access);
/* -ENOENT: it was deregistered by another handle; -EBUSY: a window is bound to it. */
int hca_mr_deregister(struct hca_mr *mr);

/* Memory of @dm. *@error: -EINVAL: @access lacks IBV_ACCESS_ZERO_BASED, or the range is not all
 * there, or @pd is of another device. */
struct hca_mr *hca_mr_register_dm(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
                                  size_t length, unsigned access, int *error);

/* Another handle of a region in @pd's domain. NULL: *@error. -ENOENT: there is none; -EINVAL: it is
 * in another domain; -EOPNOTSUPP: its memory is another process's. */
struct hca_mr *hca_mr_import(struct ibv_pd *pd, uint32_t handle, int *error);
/* Gives up a handle, but not the region. */
void hca_mr_unimport(struct hca_mr *mr);
struct hca_mr *hca_mr_alloc_null(struct ibv_pd *pd, int *error);

#endif
