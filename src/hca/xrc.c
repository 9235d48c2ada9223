/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XRC domains and targets: see xrc.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "hca/qp.h"
#include "hca/xrc.h"

/* Has the daemon open it: its number. */
static int ask(struct hca_context *ctx, int fd, int flags, uint32_t *number)
{
	struct control_open_xrcd req = { .hca_handle = ctx->handle,
		                         .create = !!(flags & O_CREAT),
		                         .exclusive = !!(flags & O_EXCL) };
	struct control_open_xrcd_reply rep = { 0 };
	struct control_call call = CONTROL_CALL(CONTROL_OPEN_XRCD, &req, &rep);
	int ret;

	if (fd >= 0) {
		call.type = CONTROL_OPEN_XRCD_FILE;
		call.send_fd = &fd;
	}
	ret = control_call(ctx->process->control, &call);
	*number = rep.xrcd;
	return ret;
}

static int close_there(struct hca_xrcd *x)
{
	struct control_handle req = { .handle = x->number };

	return hca_request(x->ctx->process, CONTROL_CLOSE_XRCD, &req, sizeof(req));
}

static int make(struct hca_xrcd *x)
{
	int ret = 0;

	x->pd = hca_pd_alloc(x->ctx, &ret);
	if (!x->pd)
		return ret;
	ret = hca_cq_create(x->ctx, 1, NULL, 0, NULL, &x->cq);
	if (ret)
		hca_pd_dealloc(x->pd);
	return ret;
}

int hca_xrcd_open(struct hca_context *ctx, int fd, int flags, struct hca_xrcd **out)
{
	struct hca_xrcd *x;
	struct shm_port port;
	int ret;

	if (flags & ~(O_CREAT | O_EXCL))
		return -EINVAL;
	if (fd >= 0 && fcntl(fd, F_GETFD) < 0)
		return -EBADF;
	ret = hca_port(ctx, 1, &port);
	if (ret)
		return ret;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET)
		return -EOPNOTSUPP;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	x->xrcd.context = &ctx->vctx.context;
	x->ctx = ctx;
	ret = ask(ctx, fd, flags, &x->number);
	if (ret)
		goto err_free;
	ret = make(x);
	if (ret)
		goto err_close;
	*out = x;
	return 0;
err_close:
	close_there(x);
err_free:
	free(x);
	return ret;
}

int hca_xrcd_close(struct hca_xrcd *x)
{
	if (atomic_load_explicit(&x->users, memory_order_acquire))
		return -EBUSY;
	close_there(x);
	hca_cq_destroy(x->cq);
	hca_pd_dealloc(x->pd);
	free(x);
	return 0;
}

int hca_xrc_target(struct hca_xrcd *x, const struct ibv_qp_init_attr_ex *attr, uint32_t opened,
                   struct hca_qp **out)
{
	struct ibv_qp_init_attr_ex a = { .qp_context = attr->qp_context,
		                         .qp_type = IBV_QPT_XRC_RECV,
		                         .comp_mask = IBV_QP_INIT_ATTR_XRCD,
		                         .send_ops_flags = attr->send_ops_flags,
		                         .xrcd = &x->xrcd,
		                         .pd = x->pd,
		                         .send_cq = (struct ibv_cq *)x->cq,
		                         .recv_cq = (struct ibv_cq *)x->cq };
	int ret = hca_qp_create_as(x->ctx, &hca_xrc_recv, &a, opened, out);
	struct ibv_qp *public;

	if (ret)
		return ret;
	public = &(*out)->ex.qp_base;
	public->pd = NULL;
	public->send_cq = public->recv_cq = NULL;
	return 0;
}
