/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Devices: the list, and opening one (ibv_get_device_list(3), ibv_open_device(3)).
 * A process sees the HCAs of its host, or of all hosts if it runs on none. Safe from
 * any thread.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/verbs/verbs.h"
#include "base/util.h"
#include "control/join.h"
#include "hca/wire.h"

static void describe(struct verbs_hca *d, struct hca_process *p, uint32_t hca)
{
	const struct shm_hca *h = &p->region.hcas[hca];

	d->device.node_type = IBV_NODE_CA;
	d->device.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->device.name, sizeof(d->device.name), "%.*s", (int)sizeof(h->name), h->name);
	snprintf(d->device.dev_name, sizeof(d->device.dev_name), "uverbs%u", hca);
	snprintf(d->device.dev_path, sizeof(d->device.dev_path),
	         "/sys/class/infiniband_verbs/uverbs%u", hca);
	snprintf(d->device.ibdev_path, sizeof(d->device.ibdev_path), "/sys/class/infiniband/%s",
	         d->device.name);
	d->process = p;
	d->hca = hca;
}

/* The process's devices are made once and stay: contexts and programs point at them. */
static int make_devices(struct hca_process *p)
{
	uint32_t n = p->region.control->n_hcas;
	struct verbs_hca *d;

	pthread_mutex_lock(&p->device_lock);
	if (p->devices)
		goto out;
	d = calloc(n, sizeof(*d));
	if (!d)
		goto out;
	for (uint32_t i = 0; i < n; i++) {
		const struct shm_hca *h = &p->region.hcas[i];

		if (p->host_index < 0 || h->host_index == (uint32_t)p->host_index)
			describe(&d[p->n_devices++], p, i);
	}
	p->devices = d;
out:
	pthread_mutex_unlock(&p->device_lock);
	return p->devices ? 0 : -ENOMEM;
}

/* The devices, NULL-terminated, to be freed by ibv_free_device_list(); none without a fabric. */
struct ibv_device **(ibv_get_device_list)(int *num_devices)
{
	struct ibv_device **list;
	struct hca_process *p;
	int error;

	if (num_devices)
		*num_devices = 0;
	p = hca_process_get(&error);
	if (!p)
		control_join_explain(error);
	else if ((error = make_devices(p)))
		return verbs_null(error);
	list = calloc((p ? p->n_devices : 0) + 1, sizeof(*list));
	if (!list)
		return verbs_null(-ENOMEM);
	for (unsigned i = 0; p && i < p->n_devices; i++)
		list[i] = &((struct verbs_hca *)p->devices)[i].device;
	if (num_devices && p)
		*num_devices = (int)p->n_devices;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

/* The node GUID, network order. */
__be64 ibv_get_device_guid(struct ibv_device *device)
{
	struct verbs_hca *d = (struct verbs_hca *)device;

	return htobe64(d->process->region.hcas[d->hca].node_guid);
}

/* ---- contexts ---- */

static int no_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	(void)qp;
	(void)mw;
	(void)bind;
	return EOPNOTSUPP;
}

static struct ibv_mw *no_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	(void)pd;
	(void)type;
	return verbs_null(-EOPNOTSUPP);
}

static int no_dealloc_mw(struct ibv_mw *mw)
{
	(void)mw;
	return EOPNOTSUPP;
}

static int no_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)srq;
	*bad = wr;
	return EOPNOTSUPP;
}

/* What programs call through the context. Absent ones make the header say EOPNOTSUPP. */
static const struct verbs_context verbs_template = {
	.query_port = verbs_query_port,
	.query_device_ex = verbs_query_device_ex,
	.create_cq_ex = verbs_create_cq_ex,
	.create_qp_ex = verbs_create_qp_ex,
	.sz = sizeof(struct verbs_context),
	.context = {
		.ops = {
			.alloc_mw = no_alloc_mw,
			.bind_mw = no_bind_mw,
			.dealloc_mw = no_dealloc_mw,
			.poll_cq = verbs_poll_cq,
			.req_notify_cq = verbs_req_notify_cq,
			.post_srq_recv = no_post_srq_recv,
			.post_send = verbs_post_send,
			.post_recv = verbs_post_recv,
		},
		.cmd_fd = -1,
		.num_comp_vectors = VERBS_COMP_VECTORS,
		.abi_compat = __VERBS_ABI_IS_EXTENDED,
	},
};

/* The process that @device is open in: after a fork it is another one, with its own connection. */
static struct hca_process *process_of(struct verbs_hca *d, int *error)
{
	struct hca_process *p = hca_process_get(error);

	if (!p && (*error == -ECONNREFUSED || *error == -ENOENT))
		*error = -ENODEV; /* its fabric has ended since it was listed */
	if (p && d->hca >= p->region.control->n_hcas)
		return NULL;
	return p;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct verbs_hca *d = (struct verbs_hca *)device;
	struct control_open_hca req = { .hca = d->hca };
	struct control_open_hca_reply rep;
	struct hca_context *ctx;
	int ret = -ENODEV;

	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return verbs_null(-ENOMEM);
	ctx->vctx = verbs_template;
	ctx->process = process_of(d, &ret);
	if (!ctx->process)
		goto err_free;
	ctx->hca = d->hca;
	ret = -ENOMEM;
	ctx->qp_by_index = calloc(SHM_MAX_QPS, sizeof(*ctx->qp_by_index));
	ctx->cq_by_id = calloc(SHM_MAX_CQS, sizeof(*ctx->cq_by_id));
	if (!ctx->qp_by_index || !ctx->cq_by_id)
		goto err_tables;
	ret = control_call(ctx->process->control,
	                   &(struct control_call){ .type = CONTROL_OPEN_HCA,
	                                           .request = &req,
	                                           .request_bytes = sizeof(req),
	                                           .reply = &rep,
	                                           .reply_bytes = sizeof(rep),
	                                           .fd = &ctx->vctx.context.async_fd });
	if (ret)
		goto err_tables;
	ctx->handle = rep.handle;
	ctx->vctx.context.device = device;
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_mutex_init(&ctx->vctx.context.mutex, NULL);
	return &ctx->vctx.context;
err_tables:
	free(ctx->qp_by_index);
	free(ctx->cq_by_id);
err_free:
	free(ctx);
	return verbs_null(ret);
}

/* Objects that are left keep the context's memory: they point at it. */
int ibv_close_device(struct ibv_context *context)
{
	struct hca_context *ctx = hca_context(context);
	struct control_handle req = { .handle = ctx->handle };

	hca_request(ctx->process, CONTROL_CLOSE_HCA, &req, sizeof(req));
	close(context->async_fd);
	if (ctx->n_objects)
		return 0;
	if (ctx->wire)
		hca_wire_close(ctx->wire);
	pthread_mutex_destroy(&ctx->lock);
	pthread_mutex_destroy(&context->mutex);
	free(ctx->qp_by_index);
	free(ctx->cq_by_id);
	free(ctx);
	return 0;
}
