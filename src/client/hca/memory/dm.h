/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Device memory (ibv_alloc_dm(3)): memory of the process that programs reach only by copies and by
 * memory regions. Several handles may name one piece (ibv_import_dm(3)).
 *
 * A copy consists of whole words of 4 bytes, as libmlx5 demands. Thread-safe.
 */
#ifndef HCA_DM_H
#define HCA_DM_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct hca_context;

#define HCA_DM_BYTES     (1u << 20) /* max_dm_size: of all pieces of one open HCA in a process */
#define HCA_DM_LOG_ALIGN 12         /* no piece can be aligned to more */

/* NULL: *@error. -EINVAL: no length, or too much alignment; -ENOMEM: no room. */
struct ibv_dm *hca_dm_alloc(struct hca_context *ctx, const struct ibv_alloc_dm_attr *attr,
                            int *error);
/* -EBUSY: a region is registered in it; -ENOENT: it was freed by another handle. */
int hca_dm_free(struct ibv_dm *dm);

/* NULL: *@error. -ENOENT: there is none; -EOPNOTSUPP: another process made it. */
struct ibv_dm *hca_dm_import(struct hca_context *ctx, uint32_t handle, int *error);
void hca_dm_unimport(struct ibv_dm *dm);

/* The memory at @offset for a region, which holds it until it is put; NULL: it is not all there. */
struct hca_dm_memory *hca_dm_get(struct ibv_dm *dm, uint64_t offset, size_t bytes, char **start);
void hca_dm_put(struct hca_dm_memory *memory);

#endif
