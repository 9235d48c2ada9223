/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two connected RC queue pairs: see rc.h.
 */
#include "common/rc.h"
#include "common/bare.h"
#include "common/util.h"

#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define MOST_AT_ONCE BENCH_LIST /* completions */
#define HOP_LIMIT    64
#define RD_ATOMIC    16 /* READs under way: all that the device offers, as perftest and UCX ask */

static struct ibv_device *device_of(const struct bench_rc *rc)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	char name[64];

	snprintf(name, sizeof(name), "umbel_h%d_0", rc->side + 1);
	for (int i = 0; list && list[i]; i++)
		if (rc->ip || !strcmp(ibv_get_device_name(list[i]), name))
			return list[i];
	errx(EXIT_FAILURE, "there is no device %s", rc->ip ? "of the fabric" : name);
}

static struct ibv_srq *make_srq(struct bench_rc *rc, unsigned depth)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = depth, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(rc->pd, &init);

	bench_must(srq, "ibv_create_srq");
	return srq;
}

static void make(struct bench_rc *rc, const struct bench_rc_plan *plan)
{
	const unsigned depth = plan->depth;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		                         .cap = { .max_send_wr = depth,
		                                  .max_recv_wr = depth,
		                                  .max_send_sge = 1,
		                                  .max_recv_sge = 1,
		                                  .max_inline_data = 64 } };

	rc->memory = bench_alloc(rc->bytes, plan->is_shared);
	rc->context = ibv_open_device(device_of(rc));
	bench_must((rc->pd = rc->context ? ibv_alloc_pd(rc->context) : NULL), "opening the device");
	rc->mr = ibv_reg_mr(rc->pd, rc->memory, rc->bytes, ACCESS);
	rc->send_cq = init.send_cq = ibv_create_cq(rc->context, (int)depth, NULL, NULL, 0);
	rc->recv_cq = init.recv_cq = ibv_create_cq(rc->context, (int)depth, NULL, NULL, 0);
	if (plan->has_srq)
		rc->srq = init.srq = make_srq(rc, depth);
	bench_must((rc->qp = rc->mr && rc->send_cq && rc->recv_cq ? ibv_create_qp(rc->pd, &init)
	                                                          : NULL),
	           "making a queue pair");
}

static void tell(const struct bench_rc *rc)
{
	struct ibv_port_attr port;

	bench_must(!ibv_query_port(rc->context, 1, &port), "ibv_query_port");
	rc->told->address[rc->side] = (struct bench_rc_address){ .qpn = rc->qp->qp_num,
		                                                 .rkey = rc->mr->rkey,
		                                                 .lid = port.lid,
		                                                 .memory = (uintptr_t)rc->memory,
		                                                 .pid = getpid() };
	if (rc->ip)
		rc->told->address[rc->side].gid = bench_mapped_gid(rc->ip);
	/* release: pairs with the acquire in bench_rc_connect() */
	atomic_store_explicit(&rc->told->is_there[rc->side], 1, memory_order_release);
}

static void to(struct ibv_qp *qp, struct ibv_qp_attr *attr, enum ibv_qp_state state, int mask)
{
	attr->qp_state = state;
	errno = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE);
	bench_must(!errno, "ibv_modify_qp");
}

void bench_rc_bring_up(struct ibv_qp *qp, uint32_t peer, const struct ibv_ah_attr *path)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = { .port_num = 1,
		                    .qp_access_flags = ACCESS,
		                    .dest_qp_num = peer,
		                    .ah_attr = *path,
		                    .max_dest_rd_atomic = RD_ATOMIC,
		                    .max_rd_atomic = RD_ATOMIC,
		                    .timeout = 14,
		                    .retry_cnt = 7,
		                    .rnr_retry = 7 };

	bench_must(!ibv_query_port(qp->context, 1, &port), "ibv_query_port");
	attr.path_mtu = port.active_mtu;
	to(qp, &attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	to(qp, &attr, IBV_QPS_RTR,
	   IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	to(qp, &attr, IBV_QPS_RTS,
	   IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
	           IBV_QP_MAX_QP_RD_ATOMIC);
}

void bench_rc_open(struct bench_rc *rc, struct bench_rc_told *told, int side,
                   const struct bench_rc_plan *plan)
{
	*rc = (struct bench_rc){ .told = told, .side = side, .bytes = plan->bytes, .ip = plan->ip };
	make(rc, plan);
	tell(rc);
}

void bench_rc_connect(struct bench_rc *rc)
{
	struct ibv_ah_attr path;

	/* acquire: pairs with the release in tell() */
	while (!atomic_load_explicit(&rc->told->is_there[!rc->side], memory_order_acquire))
		bench_relax();
	rc->peer = &rc->told->address[!rc->side];
	path = (struct ibv_ah_attr){ .dlid = rc->peer->lid,
		                     .port_num = 1,
		                     .is_global = rc->ip != NULL };
	if (rc->ip)
		path.grh = (struct ibv_global_route){ .dgid = rc->peer->gid,
			                              .sgid_index =
			                                      bench_find_gid(rc->context, rc->ip),
			                              .hop_limit = HOP_LIMIT };
	bench_rc_bring_up(rc->qp, rc->peer->qpn, &path);
}

void bench_rc_close(struct bench_rc *rc)
{
	ibv_destroy_qp(rc->qp);
	ibv_dereg_mr(rc->mr);
	if (rc->srq)
		ibv_destroy_srq(rc->srq);
	ibv_destroy_cq(rc->send_cq);
	ibv_destroy_cq(rc->recv_cq);
	ibv_dealloc_pd(rc->pd);
	ibv_close_device(rc->context);
	bench_free(rc->memory, rc->bytes);
}

int bench_rc_poll(struct ibv_cq *cq, int max)
{
	struct ibv_wc wc[MOST_AT_ONCE];
	int n = ibv_poll_cq(cq, max < MOST_AT_ONCE ? max : MOST_AT_ONCE, wc);

	if (n < 0)
		errx(EXIT_FAILURE, "a completion queue is in error");
	for (int i = 0; i < n; i++)
		if (wc[i].status)
			errx(EXIT_FAILURE, "a request fails: %s", ibv_wc_status_str(wc[i].status));
	return n;
}
