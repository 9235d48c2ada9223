/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints for measurements: see endpoint.h.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/endpoint.h"

#define ALIGN      64
#define MAX_INLINE 64

_Noreturn void bench_fail(const char *what)
{
	err(EXIT_FAILURE, "%s", what);
}

uint64_t bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static void parse_address(const char *text, struct sockaddr_storage *address)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
	struct addrinfo *info;

	if (getaddrinfo(text, NULL, &hints, &info))
		errx(EXIT_FAILURE, "'%s' is no address", text);
	memcpy(address, info->ai_addr, info->ai_addrlen);
	freeaddrinfo(info);
}

static void make_qp(struct bench_endpoint *e)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD };

	e->cq = ibv_create_cq(e->id->verbs, (int)e->depth * 2, NULL, e->channel, 0);
	if (!e->cq)
		bench_fail("ibv_create_cq");
	attr.send_cq = attr.recv_cq = e->cq;
	attr.cap = (struct ibv_qp_cap){ .max_send_wr = e->depth,
		                        .max_recv_wr = e->depth,
		                        .max_send_sge = 1,
		                        .max_recv_sge = 1,
		                        .max_inline_data = MAX_INLINE };
	if (rdma_create_qp(e->id, NULL, &attr))
		bench_fail("rdma_create_qp");
}

static void make_buffers(struct bench_endpoint *e, uint32_t bytes)
{
	size_t total;

	e->slot = (BENCH_GRH_BYTES + bytes + ALIGN - 1) / ALIGN * ALIGN;
	total = (size_t)e->slot * (e->depth + 1);
	e->buffer = aligned_alloc(ALIGN, total);
	if (!e->buffer)
		bench_fail("no memory");
	memset(e->buffer, 0, total);
	e->message = e->buffer + (size_t)e->slot * e->depth;
	e->mr = ibv_reg_mr(e->id->pd, e->buffer, total, IBV_ACCESS_LOCAL_WRITE);
	if (!e->mr)
		bench_fail("ibv_reg_mr");
}

/* A full member's QP is attached by rdma_get_cm_event(); a send-only member's is not. */
static void join(struct bench_endpoint *e, const char *group, unsigned flags)
{
	struct sockaddr_storage address;
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = (struct sockaddr *)&address,
	};
	struct rdma_cm_event *event;

	parse_address(group, &address);
	if (rdma_join_multicast_ex(e->id, &attr, NULL))
		bench_fail("rdma_join_multicast_ex");
	if (rdma_get_cm_event(e->events, &event))
		bench_fail("rdma_get_cm_event");
	if (event->event != RDMA_CM_EVENT_MULTICAST_JOIN)
		errx(EXIT_FAILURE, "joining %s: %s", group, rdma_event_str(event->event));
	if (flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) {
		e->ah = ibv_create_ah(e->id->pd, &event->param.ud.ah_attr);
		if (!e->ah)
			bench_fail("ibv_create_ah");
		e->remote_qpn = event->param.ud.qp_num;
		e->qkey = event->param.ud.qkey;
	}
	rdma_ack_cm_event(event);
}

static void post_recv(struct bench_endpoint *e, unsigned i)
{
	struct ibv_sge sge = { .addr = (uintptr_t)(e->buffer + (size_t)e->slot * (i % e->depth)),
		               .length = e->slot,
		               .lkey = e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(e->id->qp, &wr, &bad);
	if (errno)
		bench_fail("ibv_post_recv");
}

void bench_endpoint_open(struct bench_endpoint *e, const struct bench_plan *plan)
{
	struct sockaddr_storage source;

	memset(e, 0, sizeof(*e));
	e->depth = plan->depth;
	e->events = rdma_create_event_channel();
	if (!e->events)
		bench_fail("rdma_create_event_channel");
	if (rdma_create_id(e->events, &e->id, NULL, RDMA_PS_UDP))
		bench_fail("rdma_create_id");
	parse_address(plan->address, &source);
	if (rdma_bind_addr(e->id, (struct sockaddr *)&source))
		bench_fail("rdma_bind_addr");
	if (plan->block && !(e->channel = ibv_create_comp_channel(e->id->verbs)))
		bench_fail("ibv_create_comp_channel");
	make_qp(e);
	make_buffers(e, plan->bytes);
	for (unsigned i = 0; i < e->depth; i++)
		post_recv(e, i);
	if (plan->receive)
		join(e, plan->receive, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	if (plan->send)
		join(e, plan->send, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
}

void bench_endpoint_close(struct bench_endpoint *e)
{
	if (e->ah)
		ibv_destroy_ah(e->ah);
	rdma_destroy_qp(e->id);
	ibv_dereg_mr(e->mr);
	ibv_destroy_cq(e->cq);
	if (e->channel)
		ibv_destroy_comp_channel(e->channel);
	rdma_destroy_id(e->id);
	rdma_destroy_event_channel(e->events);
	free(e->buffer);
}

void bench_receive(struct bench_endpoint *e)
{
	struct ibv_wc wc;

	do {
		int n;

		while (!(n = ibv_poll_cq(e->cq, 1, &wc)))
			;
		if (n < 0 || wc.status != IBV_WC_SUCCESS)
			errx(EXIT_FAILURE, "a completion failed: %s",
			     n < 0 ? "CQ error" : ibv_wc_status_str(wc.status));
	} while (wc.opcode != IBV_WC_RECV);
	post_recv(e, e->received++);
}

void bench_send(struct bench_endpoint *e, uint32_t bytes)
{
	struct ibv_sge sge = { .addr = (uintptr_t)e->message,
		               .length = bytes,
		               .lkey = e->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	wr.send_flags = bytes <= MAX_INLINE ? IBV_SEND_INLINE : 0;
	if (++e->sent % (e->depth / 2) == 0)
		wr.send_flags |= IBV_SEND_SIGNALED;
	wr.wr.ud.ah = e->ah;
	wr.wr.ud.remote_qpn = e->remote_qpn;
	wr.wr.ud.remote_qkey = e->qkey;
	errno = ibv_post_send(e->id->qp, &wr, &bad);
	if (errno)
		bench_fail("ibv_post_send");
}
