/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XRC domains and targets: see xrc.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "hca/queue/qp.h"
#include "hca/transport/xrc.h"

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
	int ret;

	if (fd >= 0 && fcntl(fd, F_GETFD) < 0)
		return -EBADF;
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
		return base_because(-EBUSY, "targets or shared receive queues are in it");
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

/* ---- one target in several processes ---- */

void hca_xrc_tell_others(const struct hca_qp *qp, struct control_target *t)
{
	const struct hca_connection *c = &qp->connection;
	const struct ibv_ah_attr *path = &c->path;

	*t = (struct control_target){ .rq_psn = c->rq_psn,
		                      .path_mtu = c->path_mtu,
		                      .timeout = c->timeout,
		                      .flow_label = path->grh.flow_label,
		                      .sgid_index = path->grh.sgid_index,
		                      .hop_limit = path->grh.hop_limit,
		                      .traffic_class = path->grh.traffic_class,
		                      .dlid = path->dlid,
		                      .sl = path->sl,
		                      .src_path_bits = path->src_path_bits,
		                      .static_rate = path->static_rate,
		                      .is_global = path->is_global,
		                      .path_port = path->port_num };
	memcpy(t->dgid.raw, path->grh.dgid.raw, sizeof(t->dgid.raw));
}

static void set_told(struct hca_connection *c, const struct control_target *t)
{
	struct ibv_ah_attr *path = &c->path;

	c->rq_psn = t->rq_psn;
	c->path_mtu = t->path_mtu;
	c->timeout = t->timeout;
	*path = (struct ibv_ah_attr){ .grh = { .flow_label = t->flow_label,
		                               .sgid_index = t->sgid_index,
		                               .hop_limit = t->hop_limit,
		                               .traffic_class = t->traffic_class },
		                      .dlid = t->dlid,
		                      .sl = t->sl,
		                      .src_path_bits = t->src_path_bits,
		                      .static_rate = t->static_rate,
		                      .is_global = t->is_global,
		                      .port_num = t->path_port };
	memcpy(path->grh.dgid.raw, t->dgid.raw, sizeof(t->dgid.raw));
}

void hca_xrc_follow_others(struct hca_qp *qp)
{
	struct control_get_target req = { .qpn = qp->sender.qpn };
	struct hca_connection *c = &qp->connection;
	struct control_target told = { .rq_psn = 0 };
	struct shm_qp s;

	shm_qp_read(&qp->ctx->process->region, qp->sender.qpn, &s);
	if (s.qpn != qp->sender.qpn || s.seq == qp->xrc_seq ||
	    control_ask(qp->ctx->process->control, CONTROL_GET_TARGET, &req, &told))
		return;
	qp->xrc_seq = s.seq;
	atomic_store_explicit(&qp->state, s.state, memory_order_relaxed);
	qp->port_num = s.port_num;
	qp->pkey_index = s.pkey_index;
	c->dest_qpn = s.connection.dest_qpn;
	c->access = s.connection.access;
	c->min_rnr_timer = s.connection.min_rnr_timer;
	c->max_dest_rd_atomic = s.connection.max_dest_rd_atomic;
	set_told(c, &told);
}
