/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One end of a measurement: a UD queue pair on one host that receives from one
 * multicast group and sends to another, with everything it needs. Made through the public libraries
 * only, as any program would. Errors end the program with a line that says what failed.
 */
#ifndef BENCH_COMMON_ENDPOINT_H
#define BENCH_COMMON_ENDPOINT_H

#include <stdint.h>

#include <rdma/rdma_cma.h>

#define BENCH_GRH_BYTES 40

struct bench_endpoint {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel; /* NULL: the program polls */
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint32_t remote_qpn, qkey;
	unsigned depth, received, sent;
	uint32_t slot; /* bytes of one receive: GRH and message */
	char *buffer;  /* depth receives, then one message to send */
	char *message;
};

/* The groups and the size of what a measurement exchanges. */
struct bench_plan {
	const char *address; /* of a host: where to be */
	const char *receive; /* group to receive from; NULL: receives nothing */
	const char *send;    /* group to send to, as a send-only member; NULL: sends nothing */
	unsigned depth;      /* receives, and sends, that can be outstanding */
	uint32_t bytes;      /* of a message, at most */
	int block;           /* with a completion channel */
};

void bench_endpoint_open(struct bench_endpoint *e, const struct bench_plan *plan);
void bench_endpoint_close(struct bench_endpoint *e);

/* Polls until a message has arrived; its receive is posted anew. Send completions go by. */
void bench_receive(struct bench_endpoint *e);

/* Posts one message, inline if it is small; now and then with a completion. */
void bench_send(struct bench_endpoint *e, uint32_t bytes);

/* Pins the calling thread to processor @cpu. 0, or -1: there is none to pin to. */
int bench_pin(int cpu);

/* Nanoseconds, monotonic. */
uint64_t bench_now(void);

/* Ends the program: "umbel-x: WHAT: strerror(errno)". */
_Noreturn void bench_fail(const char *what);

#endif
