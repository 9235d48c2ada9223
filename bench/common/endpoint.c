/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints for measurements: see endpoint.h.
 */
#include "common/util.h"

#include <netdb.h>

#include "common/bare.h"
#include "common/endpoint.h"

#define MAX_INLINE 64
#define IDLE_QKEY  0x11111111

static void parse_address(const char *text, struct sockaddr_storage *address)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
	struct addrinfo *info;

	if (getaddrinfo(text, NULL, &hints, &info))
		errx(EXIT_FAILURE, "'%s' is no address", text);
	memcpy(address, info->ai_addr, info->ai_addrlen);
	freeaddrinfo(info);
}

/* ---- what it is made of ---- */

/* The device that has the address, as rdma_cm knows it. */
static void find_device(struct bench_endpoint *e, const char *address)
{
	struct sockaddr_storage source;

	bench_must((e->events = rdma_create_event_channel()), "rdma_create_event_channel");
	bench_must(!rdma_create_id(e->events, &e->id, NULL, RDMA_PS_UDP), "rdma_create_id");
	parse_address(address, &source);
	bench_must(!rdma_bind_addr(e->id, (struct sockaddr *)&source), "rdma_bind_addr");
	e->verbs = e->id->verbs;
	e->pd = e->id->pd;
	e->port_num = e->id->port_num;
}

static void make_cqs(struct bench_endpoint *e, const struct bench_plan *plan)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = plan->cqe ? plan->cqe
		                                             : e->depth + 2 * plan->idle_qps,
		                            .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };

	if (plan->block && !(e->channel = ibv_create_comp_channel(e->verbs)))
		bench_fail("ibv_create_comp_channel");
	attr.channel = e->channel;
	e->own_cq = !plan->cq;
	if (plan->cq) {
		e->cq = plan->cq;
	} else if (plan->extended) {
		e->cq_ex = ibv_create_cq_ex(e->verbs, &attr);
		e->cq = e->cq_ex ? ibv_cq_ex_to_cq(e->cq_ex) : NULL;
	} else {
		e->cq = ibv_create_cq(e->verbs, (int)attr.cqe, NULL, e->channel, 0);
	}
	e->send_cq = ibv_create_cq(e->verbs, (int)e->depth, NULL, NULL, 0);
	bench_must(e->cq && e->send_cq, "ibv_create_cq");
}

static void make_qp(struct bench_endpoint *e, const struct bench_plan *plan)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = e->send_cq,
		.recv_cq = e->cq,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = e->depth,
		         .max_recv_wr = e->depth,
		         .max_send_sge = 1,
		         .max_recv_sge = 1,
		         .max_inline_data = MAX_INLINE },
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = e->pd,
	};

	if (plan->extended) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	}
	if (plan->bare) {
		bench_bare_qp(e, &attr);
	} else {
		bench_must(!rdma_create_qp_ex(e->id, &attr), "rdma_create_qp_ex");
		e->qp = e->id->qp;
	}
	if (plan->extended)
		e->qp_ex = ibv_qp_to_qp_ex(e->qp);
}

struct ibv_qp *bench_idle_qp(struct bench_endpoint *e, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		                    .port_num = e->port_num,
		                    .qkey = IDLE_QKEY };
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	bench_must(qp, "ibv_create_qp");
	errno = ibv_modify_qp(qp, &attr,
	                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	bench_must(!errno, "ibv_modify_qp to INIT");
	attr.qp_state = IBV_QPS_RTR;
	errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	bench_must(!errno, "ibv_modify_qp to RTR");
	return qp;
}

static void make_buffers(struct bench_endpoint *e)
{
	size_t total;

	e->slot = (BENCH_GRH_BYTES + e->bytes + BENCH_ALIGN - 1) / BENCH_ALIGN * BENCH_ALIGN;
	total = (size_t)e->slot * (e->depth + 1);
	bench_must((e->buffer = aligned_alloc(BENCH_ALIGN, total)), "no memory");
	memset(e->buffer, 0, total);
	e->message = e->buffer + (size_t)e->slot * e->depth;
	bench_must((e->mr = ibv_reg_mr(e->pd, e->buffer, total, IBV_ACCESS_LOCAL_WRITE)),
	           "ibv_reg_mr");
}

/* A full member's QP is attached by rdma_get_cm_event(); a send-only member's is not. */
static void join(struct bench_endpoint *e, const char *group, unsigned flags)
{
	struct sockaddr_storage *address = &e->joined[e->n_joined++];
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = (struct sockaddr *)address,
	};
	struct rdma_cm_event *event;

	parse_address(group, address);
	bench_must(!rdma_join_multicast_ex(e->id, &attr, NULL), "rdma_join_multicast_ex");
	bench_must(!rdma_get_cm_event(e->events, &event), "rdma_get_cm_event");
	if (event->event != RDMA_CM_EVENT_MULTICAST_JOIN)
		errx(EXIT_FAILURE, "joining %s: %s", group, rdma_event_str(event->event));
	if (flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) {
		bench_must((e->ah = ibv_create_ah(e->pd, &event->param.ud.ah_attr)),
		           "ibv_create_ah");
		e->remote_qpn = event->param.ud.qp_num;
		e->qkey = event->param.ud.qkey;
	}
	rdma_ack_cm_event(event);
}

static void prepare_lists(struct bench_endpoint *e)
{
	e->send_flags = e->bytes <= MAX_INLINE ? IBV_SEND_INLINE : 0;
	e->send_sge = (struct ibv_sge){ .addr = (uintptr_t)e->message,
		                        .length = e->bytes,
		                        .lkey = e->mr->lkey };
	for (unsigned i = 0; i < BENCH_LIST; i++) {
		struct ibv_send_wr *wr = &e->send_wr[i];

		wr->sg_list = &e->send_sge;
		wr->num_sge = 1;
		wr->opcode = IBV_WR_SEND;
		wr->wr.ud.ah = e->ah;
		wr->wr.ud.remote_qpn = e->remote_qpn;
		wr->wr.ud.remote_qkey = e->qkey;
		e->recv_sge[i].length = e->slot;
		e->recv_sge[i].lkey = e->mr->lkey;
		e->recv_wr[i].sg_list = &e->recv_sge[i];
		e->recv_wr[i].num_sge = 1;
	}
}

void bench_endpoint_open(struct bench_endpoint *e, const struct bench_plan *plan)
{
	memset(e, 0, sizeof(*e));
	e->depth = plan->depth;
	e->bytes = plan->bytes;
	if (plan->bare)
		bench_bare_open(e, plan->address);
	else
		find_device(e, plan->address);
	make_cqs(e, plan);
	bench_must((e->idle = calloc(plan->idle_qps + 1, sizeof(*e->idle))), "no memory");
	for (; e->n_idle < plan->idle_qps; e->n_idle++)
		e->idle[e->n_idle] = bench_idle_qp(e, e->cq);
	make_qp(e, plan);
	make_buffers(e);
	if (plan->send && plan->bare)
		bench_bare_lead(e, plan->send);
	else if (plan->send)
		join(e, plan->send, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	prepare_lists(e);
	e->received = e->depth;
	bench_endpoint_repost(e);
	e->received = 0;
	e->posted = 0;
	if (plan->receive && plan->bare)
		bench_bare_attach(e, plan->receive);
	else if (plan->receive)
		join(e, plan->receive, RDMA_MC_JOIN_FLAG_FULLMEMBER);
}

void bench_endpoint_close(struct bench_endpoint *e)
{
	if (e->ah)
		ibv_destroy_ah(e->ah);
	while (e->n_joined)
		rdma_leave_multicast(e->id, (struct sockaddr *)&e->joined[--e->n_joined]);
	if (e->id)
		rdma_destroy_qp(e->id);
	else
		ibv_destroy_qp(e->qp);
	while (e->n_idle)
		ibv_destroy_qp(e->idle[--e->n_idle]);
	ibv_dereg_mr(e->mr);
	ibv_destroy_cq(e->send_cq);
	if (e->own_cq)
		ibv_destroy_cq(e->cq);
	if (e->channel)
		ibv_destroy_comp_channel(e->channel);
	if (e->id) {
		rdma_destroy_id(e->id);
		rdma_destroy_event_channel(e->events);
	} else {
		bench_bare_close(e);
	}
	free(e->idle);
	free(e->buffer);
}

/* ---- messages ---- */

static _Noreturn void fail_completion(int n, const struct ibv_wc *wc)
{
	errx(EXIT_FAILURE, "a completion failed: %s",
	     n < 0 ? "CQ error" : ibv_wc_status_str(wc->status));
}

/* Send completions, when half of the queue waits for them. Each stands for BENCH_LIST messages. */
static void reap(struct bench_endpoint *e)
{
	struct ibv_wc wc[4];

	while (e->sent - e->done > e->depth / 2) {
		int n = ibv_poll_cq(e->send_cq, 4, wc);

		for (int i = 0; i < n; i++)
			if (wc[i].status != IBV_WC_SUCCESS)
				fail_completion(n, &wc[i]);
		if (n < 0)
			fail_completion(n, NULL);
		e->done += (uint32_t)n * BENCH_LIST;
	}
}

/* Whether the next message is one of those that ask for a completion. */
static uint32_t next_flags(struct bench_endpoint *e)
{
	return e->send_flags | (++e->sent % BENCH_LIST ? 0 : IBV_SEND_SIGNALED);
}

void bench_endpoint_send(struct bench_endpoint *e, unsigned n)
{
	struct ibv_send_wr *bad;

	for (unsigned i = 0; i < n; i++) {
		e->send_wr[i].send_flags = next_flags(e);
		e->send_wr[i].next = i + 1 < n ? &e->send_wr[i + 1] : NULL;
	}
	errno = ibv_post_send(e->qp, e->send_wr, &bad);
	bench_must(!errno, "ibv_post_send");
	reap(e);
}

void bench_endpoint_send_ex(struct bench_endpoint *e, unsigned n)
{
	struct ibv_qp_ex *qp = e->qp_ex;

	ibv_wr_start(qp);
	for (unsigned i = 0; i < n; i++) {
		qp->wr_id = 0;
		qp->wr_flags = next_flags(e) & ~IBV_SEND_INLINE;
		ibv_wr_send(qp);
		ibv_wr_set_ud_addr(qp, e->ah, e->remote_qpn, e->qkey);
		if (e->send_flags & IBV_SEND_INLINE)
			ibv_wr_set_inline_data(qp, e->message, e->bytes);
		else
			ibv_wr_set_sge(qp, e->mr->lkey, e->send_sge.addr, e->bytes);
	}
	errno = ibv_wr_complete(qp);
	bench_must(!errno, "ibv_wr_complete");
	reap(e);
}

unsigned bench_endpoint_poll(struct bench_endpoint *e, unsigned max)
{
	int n = ibv_poll_cq(e->cq, (int)(max < BENCH_LIST ? max : BENCH_LIST), e->wc);

	for (int i = 0; i < n; i++)
		if (e->wc[i].status != IBV_WC_SUCCESS)
			fail_completion(n, &e->wc[i]);
	if (n < 0)
		fail_completion(n, NULL);
	e->received += (uint32_t)n;
	return (unsigned)n;
}

unsigned bench_endpoint_poll_ex(struct bench_endpoint *e, unsigned max)
{
	struct ibv_poll_cq_attr attr = { 0 };
	unsigned n = 0;

	if (ibv_start_poll(e->cq_ex, &attr))
		return 0;
	do {
		if (e->cq_ex->status != IBV_WC_SUCCESS)
			errx(EXIT_FAILURE, "a completion failed: %s",
			     ibv_wc_status_str(e->cq_ex->status));
		n++;
	} while (n < max && !ibv_next_poll(e->cq_ex));
	ibv_end_poll(e->cq_ex);
	e->received += n;
	return n;
}

void bench_endpoint_repost(struct bench_endpoint *e)
{
	struct ibv_recv_wr *bad;

	while (e->posted != e->received) {
		unsigned n = 0;

		for (; n < BENCH_LIST && e->posted != e->received; n++, e->posted++) {
			size_t at = (size_t)e->slot * (e->posted % e->depth);

			e->recv_wr[n].wr_id = e->posted;
			e->recv_wr[n].next = &e->recv_wr[n + 1];
			e->recv_sge[n].addr = (uintptr_t)(e->buffer + at);
		}
		e->recv_wr[n - 1].next = NULL;
		errno = ibv_post_recv(e->qp, e->recv_wr, &bad);
		bench_must(!errno, "ibv_post_recv");
	}
}

void bench_endpoint_wait(struct bench_endpoint *e)
{
	struct ibv_cq *cq;
	void *context;

	while (!bench_endpoint_poll(e, 1)) {
		bench_must(!ibv_req_notify_cq(e->cq, 0), "ibv_req_notify_cq");
		if (bench_endpoint_poll(e, 1))
			return;
		bench_must(!ibv_get_cq_event(e->channel, &cq, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
}
