/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nodes and queue pairs: see world.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "litmus/world.h"

#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define DEPTH 16

static const struct {
	unsigned from, to;
	enum ibv_qp_type type;
} shape[LITMUS_QPS] = {
	{ 0, 1, IBV_QPT_RC }, { 0, 1, IBV_QPT_RC }, { 1, 0, IBV_QPT_RC },
	{ 1, 2, IBV_QPT_RC }, { 0, 2, IBV_QPT_RC }, { 2, 1, IBV_QPT_RC },
	{ 0, 1, IBV_QPT_UC }, { 0, 1, IBV_QPT_UD }, { 0, 2, IBV_QPT_UD },
};

static bool open_node(struct litmus_node *n, struct ibv_device *device)
{
	n->context = ibv_open_device(device);
	n->pd = n->context ? ibv_alloc_pd(n->context) : NULL;
	n->word = n->pd ? aligned_alloc(4096, 4096) : NULL;
	n->mr = n->word ? ibv_reg_mr(n->pd, n->word, 4096, ACCESS) : NULL;
	return n->mr;
}

static bool make_end(const struct litmus_world *w, struct litmus_end *e, unsigned node,
                     enum ibv_qp_type type)
{
	const struct litmus_node *n = &w->node[node];
	struct ibv_qp_init_attr init = {
		.qp_type = type,
		.cap = { .max_send_wr = DEPTH,
		         .max_recv_wr = DEPTH,
		         .max_send_sge = 1,
		         .max_recv_sge = 2,
		         .max_inline_data = sizeof(uint64_t) * LITMUS_WORDS },
	};

	e->node = node;
	e->send_cq = ibv_create_cq(n->context, DEPTH, NULL, NULL, 0);
	e->recv_cq = ibv_create_cq(n->context, DEPTH, NULL, NULL, 0);
	init.send_cq = e->send_cq;
	init.recv_cq = e->recv_cq;
	e->qp = e->send_cq && e->recv_cq ? ibv_create_qp(n->pd, &init) : NULL;
	return e->qp;
}

/* One that attributes of UC and RC alike are asked of. */
static int modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, int of_rc)
{
	return ibv_modify_qp(qp, attr, qp->qp_type == IBV_QPT_RC ? mask | of_rc : mask);
}

static bool connect_to(struct litmus_end *e, const struct litmus_end *to)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_port_attr port;
	union ibv_gid gid;

	if (ibv_query_port(to->qp->context, 1, &port) || ibv_query_gid(to->qp->context, 1, 0, &gid))
		return false;
	attr.qp_access_flags = ACCESS;
	if (modify(e->qp, &attr,
	           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0))
		return false;
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
		                     .path_mtu = IBV_MTU_1024,
		                     .dest_qp_num = to->qp->qp_num,
		                     .max_dest_rd_atomic = 8,
		                     .min_rnr_timer = 1,
		                     .ah_attr = { .dlid = port.lid, .port_num = 1 } };
	attr.ah_attr.is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	attr.ah_attr.grh.dgid = gid;
	attr.ah_attr.grh.hop_limit = 1;
	if (modify(e->qp, &attr,
	           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return false;
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
		                     .timeout = 14,
		                     .retry_cnt = 7,
		                     .rnr_retry = 7,
		                     .max_rd_atomic = 8 };
	return !modify(e->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN,
	               IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	                       IBV_QP_MAX_QP_RD_ATOMIC);
}

/* From RESET. */
static bool start_datagrams(struct litmus_end *e)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = LITMUS_QKEY };

	if (ibv_modify_qp(e->qp, &attr,
	                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		return false;
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(e->qp, &attr, IBV_QP_STATE))
		return false;
	attr.qp_state = IBV_QPS_RTS;
	return !ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static bool address(const struct litmus_world *w, struct litmus_end *e, const struct litmus_end *to)
{
	struct ibv_ah_attr attr = { .port_num = 1 };
	struct ibv_port_attr port;
	union ibv_gid gid;

	if (ibv_query_port(to->qp->context, 1, &port) || ibv_query_gid(to->qp->context, 1, 0, &gid))
		return false;
	attr.dlid = port.lid;
	attr.is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	attr.grh.dgid = gid;
	attr.grh.hop_limit = 1;
	e->ah = ibv_create_ah(w->node[e->node].pd, &attr);
	return e->ah;
}

bool litmus_drop_receives(struct litmus_world *w, unsigned q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	w->to[q].receives = 0;
	return !ibv_modify_qp(w->to[q].qp, &attr, IBV_QP_STATE) && start_datagrams(&w->to[q]);
}

static bool join(struct litmus_world *w, unsigned q)
{
	struct litmus_end *from = &w->from[q], *to = &w->to[q];

	if (shape[q].type == IBV_QPT_UD)
		return start_datagrams(from) && start_datagrams(to) && address(w, from, to);
	return connect_to(from, to) && connect_to(to, from);
}

static bool make(struct litmus_world *w, struct ibv_device **devices, int n)
{
	if (n < LITMUS_NODES) {
		fprintf(stderr, "umbel-litmus: there are %d HCAs, and it needs %d\n", n,
		        LITMUS_NODES);
		return false;
	}
	for (unsigned i = 0; i < LITMUS_NODES; i++)
		if (!open_node(&w->node[i], devices[i]))
			return false;
	for (unsigned i = 0; i < LITMUS_QPS; i++)
		if (!make_end(w, &w->from[i], shape[i].from, shape[i].type) ||
		    !make_end(w, &w->to[i], shape[i].to, shape[i].type))
			return false;
	for (unsigned i = 0; i < LITMUS_QPS; i++)
		if (!join(w, i))
			return false;
	w->idle = ibv_create_cq(w->node[0].context, 1, NULL, NULL, 0);
	return w->idle;
}

struct litmus_world *litmus_world_new(void)
{
	struct litmus_world *w = calloc(1, sizeof(*w));
	struct ibv_device **devices;
	int n = 0;

	devices = ibv_get_device_list(&n);
	if (w && devices && make(w, devices, n)) {
		ibv_free_device_list(devices);
		return w;
	}
	if (n >= LITMUS_NODES)
		perror("umbel-litmus: cannot make queue pairs");
	else if (!devices)
		perror("umbel-litmus: cannot list HCAs");
	if (devices)
		ibv_free_device_list(devices);
	litmus_world_free(w);
	return NULL;
}

static void free_end(struct litmus_end *e)
{
	if (e->ah)
		ibv_destroy_ah(e->ah);
	if (e->qp)
		ibv_destroy_qp(e->qp);
	if (e->send_cq)
		ibv_destroy_cq(e->send_cq);
	if (e->recv_cq)
		ibv_destroy_cq(e->recv_cq);
}

void litmus_world_free(struct litmus_world *w)
{
	if (!w)
		return;
	for (unsigned i = 0; i < LITMUS_QPS; i++) {
		free_end(&w->from[i]);
		free_end(&w->to[i]);
	}
	if (w->idle)
		ibv_destroy_cq(w->idle);
	for (unsigned i = 0; i < LITMUS_NODES; i++) {
		struct litmus_node *n = &w->node[i];

		if (n->mr)
			ibv_dereg_mr(n->mr);
		free(n->word);
		if (n->pd)
			ibv_dealloc_pd(n->pd);
		if (n->context)
			ibv_close_device(n->context);
	}
	free(w);
}
