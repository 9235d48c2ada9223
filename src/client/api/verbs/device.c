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

#include "api/verbs/connection.h"
#include "api/verbs/layer.h"
#include "api/verbs/verbs.h"
#include "base/util.h"
#include "control/join.h"
#include "hca/process/command_file.h"
#include "hca/process/link.h"

static void describe(struct verbs_hca *d, struct hca_process *p, uint32_t hca)
{
	const char *name = shm_hca_called(shm_hca_at(&p->region, hca), p->host_index);

	d->device.node_type =
	        shm_hca_at(&p->region, hca)->is_router ? IBV_NODE_ROUTER : IBV_NODE_CA;
	d->device.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->device.name, sizeof(d->device.name), "%s", name);
	snprintf(d->device.dev_name, sizeof(d->device.dev_name), "uverbs%u", hca);
	snprintf(d->device.dev_path, sizeof(d->device.dev_path),
	         "/sys/class/infiniband_verbs/uverbs%u", hca);
	snprintf(d->device.ibdev_path, sizeof(d->device.ibdev_path), "/sys/class/infiniband/%s",
	         d->device.name);
	d->node_guid = htobe64(shm_hca_at(&p->region, hca)->node_guid);
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
		const struct shm_hca *h = shm_hca_at(&p->region, i);

		if (p->host_index < 0 || h->host_index == (uint32_t)p->host_index)
			describe(&d[p->n_devices++], p, i);
	}
	p->devices = d;
out:
	pthread_mutex_unlock(&p->device_lock);
	return p->devices ? 0 : -ENOMEM;
}

/* @p NULL: of none. NULL: there is no memory. */
static struct ibv_device **list_devices(struct hca_process *p, int *n)
{
	struct ibv_device **list;

	*n = 0;
	if (p && make_devices(p))
		return NULL;
	list = calloc((p ? p->n_devices : 0) + 1, sizeof(*list));
	if (!list || !p)
		return list;
	for (unsigned i = 0; i < p->n_devices; i++)
		list[i] = &((struct verbs_hca *)p->devices)[i].device;
	*n = (int)p->n_devices;
	return list;
}

/* The devices, NULL-terminated, to be freed by ibv_free_device_list(); none without a fabric. */
struct ibv_device **(ibv_get_device_list)(int *num_devices)
{
	struct ibv_device **list;
	struct hca_process *p;
	int error, n;

	p = hca_process_get(&error);
	if (!p)
		control_join_explain(error);
	list = list_devices(p, &n);
	if (p)
		hca_process_put(p);
	if (num_devices)
		*num_devices = n;
	return list ? list : verbs_null(-ENOMEM);
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
	return ((struct verbs_hca *)device)->node_guid;
}

/* ---- contexts ---- */

/* The functions that programs call through the context. Absent ones make the header say
 * EOPNOTSUPP. */
static const struct verbs_context verbs_template = {
	.query_port = verbs_query_port,
	.query_device_ex = verbs_query_device_ex,
	.alloc_parent_domain = verbs_alloc_parent_domain,
	.alloc_dm = verbs_alloc_dm,
	.free_dm = verbs_free_dm,
	.reg_dm_mr = verbs_reg_dm_mr,
	.alloc_null_mr = verbs_alloc_null_mr,
	.advise_mr = verbs_advise_mr,
	.query_rt_values = verbs_query_rt_values,
	.alloc_td = verbs_alloc_td,
	.dealloc_td = verbs_dealloc_td,
	.create_cq_ex = verbs_create_cq_ex,
	.modify_cq = verbs_modify_cq,
	.create_qp_ex = verbs_create_qp_ex,
	.create_srq_ex = verbs_create_srq_ex,
	.open_xrcd = verbs_open_xrcd,
	.close_xrcd = verbs_close_xrcd,
	.open_qp = verbs_open_qp,
	.get_srq_num = verbs_get_srq_num,
	.sz = sizeof(struct verbs_context),
	.context = {
		.ops = {
			.alloc_mw = verbs_alloc_mw,
			.bind_mw = verbs_bind_mw,
			.dealloc_mw = verbs_dealloc_mw,
			.poll_cq = verbs_poll_cq,
			.req_notify_cq = verbs_req_notify_cq,
			.post_srq_recv = verbs_post_srq_recv,
			.post_send = verbs_post_send,
			.post_recv = verbs_post_recv,
		},
		.cmd_fd = -1,
		.num_comp_vectors = VERBS_COMP_VECTORS,
		.abi_compat = __VERBS_ABI_IS_EXTENDED,
	},
};

/* The process that @device is open in, with a reference. After a fork() the child has a process
 * structure and a connection of its own. */
static struct hca_process *process_of(struct verbs_hca *d, int *error)
{
	struct hca_process *p = hca_process_get(error);

	if (!p && (*error == -ECONNREFUSED || *error == -ENOENT))
		*error = -ENODEV; /* its fabric has ended since it was listed */
	if (p && d->hca >= p->region.control->n_hcas) {
		hca_process_put(p);
		return NULL;
	}
	return p;
}

struct control_client *umbel_connection(int *error)
{
	struct hca_process *p = hca_process_get(error);

	return p ? p->control : NULL;
}

/* The process of the connection, which the caller holds, too; NULL: the process no longer has it.
 */
static const struct hca_process *holder_of(const struct control_client *connection)
{
	int error;
	struct hca_process *p = hca_process_get(&error);
	const bool same = p && p->control == connection;

	if (p)
		hca_process_put(p);
	return same ? p : NULL;
}

bool umbel_connection_stands(const struct control_client *connection)
{
	return holder_of(connection);
}

void *umbel_shared_memory(const struct control_client *connection, uint64_t off, uint32_t bytes)
{
	const struct hca_process *p = holder_of(connection);

	return p ? shm_payload_at(&p->region, off, bytes) : NULL;
}

void umbel_qp_has_moved(struct ibv_qp *qp)
{
	hca_qp_has_moved(hca_qp(qp));
}

static void free_context(struct hca_context *ctx)
{
	if (ctx->file)
		hca_command_file_put(ctx->file);
	hca_async_fini(&ctx->async);
	verbs_layer_close(ctx);
	hca_process_put(ctx->process);
	free(ctx);
}

/* Has the daemon open the HCA: handle and descriptor for asynchronous events. */
static int request_open(struct hca_context *ctx)
{
	struct control_open_hca req = { .hca = ctx->hca };
	struct control_open_hca_reply rep = { 0 };
	const struct control_call call = { .type = CONTROL_OPEN_HCA,
		                           .request = &req,
		                           .request_bytes = sizeof(req),
		                           .reply = &rep,
		                           .reply_bytes = sizeof(rep),
		                           .fd = &ctx->vctx.context.async_fd,
		                           .undo = CONTROL_CLOSE_HCA };
	int ret = hca_ask_memory(ctx->process, &call);

	if (ret)
		return ret;
	ctx->handle = rep.handle;
	if (rep.gid_users_off)
		ctx->gid_users = shm_data_map(&ctx->process->region, rep.gid_users_off,
		                              sizeof(*ctx->gid_users));
	return 0;
}

/* A context of @device with the file and the reference to @p, which it then owns, also if it fails,
 * and @cmd_fd, which stays the caller's. */
static int open_context(struct ibv_device *device, struct hca_process *p,
                        struct hca_command_file *file, int cmd_fd, struct hca_context **out)
{
	struct hca_context *ctx = calloc(1, sizeof(*ctx));
	int ret;

	if (!ctx) {
		hca_command_file_put(file);
		hca_process_put(p);
		return -ENOMEM;
	}
	ctx->vctx = verbs_template;
	ctx->process = p;
	ctx->hca = ((struct verbs_hca *)device)->hca;
	ctx->file = file;
	ret = hca_async_init(&ctx->async);
	if (!ret)
		ret = verbs_layer_open(ctx);
	if (!ret)
		ret = request_open(ctx);
	if (ret) {
		free_context(ctx);
		return ret;
	}
	ctx->vctx.context.cmd_fd = cmd_fd;
	ctx->vctx.context.device = device;
	pthread_mutex_init(&ctx->lock, NULL);
	hca_async_open(&ctx->async, p->control, ctx->handle, ctx->vctx.context.async_fd);
	pthread_mutex_init(&ctx->vctx.context.mutex, NULL);
	if (verbs_watcher(&ctx->vctx.context))
		verbs_watcher(&ctx->vctx.context)
		        ->made(CHECKED_CONTEXT, &ctx->vctx.context,
		               &(struct checked_made){ .context = &ctx->vctx.context });
	*out = ctx;
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct verbs_hca *d = (struct verbs_hca *)device;
	struct hca_command_file *file;
	struct hca_context *ctx;
	struct hca_process *p;
	int fd, ret = -ENODEV;

	p = process_of(d, &ret);
	if (!p)
		return verbs_null(ret);
	ret = hca_command_file_new(p, d->hca, &file, &fd);
	if (ret) {
		hca_process_put(p);
		return verbs_null(ret);
	}
	ret = open_context(device, p, file, fd, &ctx);
	if (!ret)
		return &ctx->vctx.context;
	if (fd >= 0)
		close(fd);
	return verbs_null(ret);
}

/* The device that this process lists for HCA @hca, or NULL. */
static struct ibv_device *device_of(struct hca_process *p, uint32_t hca)
{
	struct verbs_hca *d = p->devices;

	for (unsigned i = 0; i < p->n_devices; i++)
		if (d[i].hca == hca)
			return &d[i].device;
	return NULL;
}

static int import(int cmd_fd, struct hca_context **ctx)
{
	struct hca_command_file *file;
	struct ibv_device *device;
	struct hca_process *p;
	uint32_t hca;
	int ret;

	p = hca_process_get(&ret);
	if (!p)
		return ret == -ECONNREFUSED || ret == -ENOENT ? -ENODEV : ret;
	ret = make_devices(p);
	if (!ret)
		ret = hca_command_file_import(p, cmd_fd, &file, &hca);
	if (ret)
		goto err_process;
	device = device_of(p, hca);
	if (device)
		return open_context(device, p, file, cmd_fd, ctx);
	hca_command_file_put(file);
	ret = -ENODEV; /* it is another host's */
err_process:
	hca_process_put(p);
	return ret;
}

/* ibv_close_device() closes the descriptor. EBADF; EINVAL: it is no context's cmd_fd; ENODEV: it is
 * of another fabric or host. ibv_import_device(3) */
struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct hca_context *ctx;
	int ret = import(cmd_fd, &ctx);

	return ret ? verbs_null(ret) : &ctx->vctx.context;
}

/* Objects that are left keep the context's memory: they point at it. */
int ibv_close_device(struct ibv_context *context)
{
	struct hca_context *ctx = hca_context(context);
	struct control_handle req = { .handle = ctx->handle };

	if (verbs_watcher(context)) {
		verbs_watcher(context)->destroying(CHECKED_CONTEXT, context, VERBS_CALLER);
		verbs_watcher(context)->destroyed(CHECKED_CONTEXT, context, 0);
	}
	hca_request(ctx->process, CONTROL_CLOSE_HCA, &req, sizeof(req));
	hca_async_close(&ctx->async);
	close(context->async_fd);
	if (context->cmd_fd >= 0)
		close(context->cmd_fd);
	if (ctx->n_objects)
		return 0;
	if (ctx->network)
		ctx->network->ops->close(ctx->network);
	pthread_mutex_destroy(&ctx->lock);
	pthread_mutex_destroy(&context->mutex);
	free_context(ctx);
	return 0;
}
