/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One end of a measurement: a UD queue pair on one host that receives from one
 * multicast group and sends to another, with everything it needs. Made through the public libraries
 * only, as any program would; with ibv_post_send() and ibv_poll_cq(), or, extended, with ibv_wr_*()
 * and ibv_start_poll(). Errors end the program with a line that says what failed.
 *
 * Thread safety: one thread an endpoint.
 */
#ifndef BENCH_COMMON_ENDPOINT_H
#define BENCH_COMMON_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#define BENCH_GRH_BYTES 40
#define BENCH_LIST      32 /* messages in a list, at most; one in so many has a completion */

/* The groups and the size of what a measurement exchanges. */
struct bench_plan {
	const char *address; /* of a host: where to be */
	const char *receive; /* group to receive from; NULL: receives nothing */
	const char *send;    /* group to send to, as a send-only member; NULL: sends nothing */
	unsigned depth; /* receives, and sends, that can be outstanding; 2 * BENCH_LIST or more */
	uint32_t bytes; /* of a message */
	bool block;     /* with a completion channel */
	bool bare;      /* without rdma_cm: on the only device, an Ethernet one (bare.h) */
	bool extended;  /* the ibv_wr_*() calls and an extended CQ */
	unsigned idle_qps; /* further queue pairs that complete in the same receive CQ */
	struct ibv_cq *cq; /* the receive CQ, if it is another endpoint's */
	unsigned cqe;      /* room in the receive CQ; 0: for this endpoint */
};

struct bench_endpoint {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id; /* NULL: bare */
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	uint8_t port_num, sgid_index;     /* sgid_index: bare */
	struct ibv_comp_channel *channel; /* NULL: the program polls */
	struct ibv_cq *cq, *send_cq;      /* cq: of receives */
	struct ibv_cq_ex *cq_ex;          /* the same, if extended */
	struct ibv_qp_ex *qp_ex;
	bool own_cq;
	struct sockaddr_storage joined[2];
	unsigned n_joined;
	struct ibv_qp **idle;
	unsigned n_idle;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint32_t remote_qpn, qkey;
	uint32_t depth, bytes, send_flags;
	uint32_t received, posted, sent, done; /* messages; done: sends completed */
	uint32_t slot;                         /* bytes of one receive: GRH and message */
	char *buffer;                          /* depth receives, then one message to send */
	char *message;
	/* lists, prepared */
	struct ibv_sge send_sge, recv_sge[BENCH_LIST];
	struct ibv_send_wr send_wr[BENCH_LIST];
	struct ibv_recv_wr recv_wr[BENCH_LIST];
	struct ibv_wc wc[BENCH_LIST];
};

void bench_endpoint_open(struct bench_endpoint *e, const struct bench_plan *plan);
void bench_endpoint_close(struct bench_endpoint *e);

/* Posts a list of @n messages, up to BENCH_LIST; inline if they are small. */
void bench_endpoint_send(struct bench_endpoint *e, unsigned n);

/* Looks once. How many messages have arrived, up to @max and BENCH_LIST. */
unsigned bench_endpoint_poll(struct bench_endpoint *e, unsigned max);

/* Posts receives for the messages that have arrived. */
void bench_endpoint_repost(struct bench_endpoint *e);

/* Sleeps until a message has arrived, and takes one. */
void bench_endpoint_wait(struct bench_endpoint *e);

/* A queue pair of @e's device that receives in @cq, ready to receive; room for one each way. */
struct ibv_qp *bench_idle_qp(struct bench_endpoint *e, struct ibv_cq *cq);

/* ---- the same with the extended calls ---- */

void bench_endpoint_send_ex(struct bench_endpoint *e, unsigned n);
unsigned bench_endpoint_poll_ex(struct bench_endpoint *e, unsigned max);

#endif
