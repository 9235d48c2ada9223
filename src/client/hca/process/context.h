/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An HCA that a program has open.
 */
#ifndef HCA_CONTEXT_H
#define HCA_CONTEXT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "hca/process/async.h"
#include "hca/process/process.h"

struct hca_command_file;
struct hca_link;
struct verbs_layer;

struct hca_context {
	struct hca_process *process;
	uint32_t hca;    /* index */
	uint32_t handle; /* the daemon's name for this opened HCA */
	pthread_mutex_t lock;
	unsigned n_objects; /* domains of all kinds, device memory, completion queues */
	uint32_t n_comp_counters, next_comp_counter;
	struct hca_command_file *file; /* what cmd_fd is */
	struct hca_async async;
	struct verbs_layer *layer;       /* around its calls (api/verbs/layer.h); or NULL */
	struct hca_link *network;        /* of an Ethernet port, once there is a CQ; or NULL */
	struct shm_gid_users *gid_users; /* of an Ethernet port; or NULL */
	struct verbs_context vctx;       /* last: ends with the public struct */
};

static inline struct hca_context *hca_context(struct ibv_context *context)
{
	return (struct hca_context *)((char *)context - offsetof(struct hca_context, vctx.context));
}

/* Whether an object of @other can be used with those of @ctx: it is the device as it was opened
 * here, or imported. */
static inline bool hca_context_shares(const struct hca_context *ctx, struct ibv_context *other)
{
	return hca_context(other) == ctx || (ctx->file && hca_context(other)->file == ctx->file);
}

/* Adds @change to the number of objects. A context with objects keeps its memory when it is closed.
 */
static inline void hca_context_count(struct hca_context *ctx, int change)
{
	pthread_mutex_lock(&ctx->lock);
	ctx->n_objects += (unsigned)change;
	pthread_mutex_unlock(&ctx->lock);
}

/* Copies the shared record of @ctx's port @num (from 1). -EINVAL: no such port. */
int hca_port(struct hca_context *ctx, unsigned num, struct shm_port *port);

#endif
