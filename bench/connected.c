/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures RC queue pairs between two processes on two hosts: RDMA WRITE, READ and atomics, from
 * ibv_post_send() to their completion, and SEND, half of there and back. Beside them, in turns,
 * what they are held against: memcpy(), and process_vm_writev() and process_vm_readv() between the
 * same two places. Prints a line of JSON a sample; bench/run.py calls it and judges.
 *
 * connected [--turns N] [--bytes N]
 */
#define _GNU_SOURCE
#include <err.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "common/pair.h"
#include "common/util.h"

#define SAMPLES  64
#define STRETCH  200000.0 /* ns that one sample lasts, about */
#define RECEIVES 16

/* What a side tells the other. */
struct address {
	uint32_t qpn, rkey;
	uint16_t lid;
	uint64_t memory;
	pid_t pid;
};

struct plan {
	unsigned turns;
	uint32_t bytes;
	struct address *told; /* by side */
};

struct side {
	const struct plan *plan;
	struct bench_pair *pair;
	int number;
	const struct address *peer;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *memory; /* what peers write to and read from; and another half, to send from */
	size_t room;
};

/* ---- making ---- */

static struct ibv_device *device_of(int number)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	char name[64];

	snprintf(name, sizeof(name), "umbel_h%d_0", number + 1);
	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return list[i];
	errx(1, "there is no device %s", name);
}

static void open_side(struct side *s)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		                         .cap = { .max_send_wr = 16,
		                                  .max_recv_wr = RECEIVES,
		                                  .max_send_sge = 1,
		                                  .max_recv_sge = 1 } };

	s->room = s->plan->bytes < 4096 ? 4096 : s->plan->bytes;
	s->memory = bench_alloc(2 * s->room, 0);
	s->context = ibv_open_device(device_of(s->number));
	s->pd = s->context ? ibv_alloc_pd(s->context) : NULL;
	if (!s->pd)
		bench_fail("opening the device");
	s->mr = ibv_reg_mr(s->pd, s->memory, 2 * s->room,
	                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
	                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	s->send_cq = init.send_cq = ibv_create_cq(s->context, 64, NULL, NULL, 0);
	s->recv_cq = init.recv_cq = ibv_create_cq(s->context, 64, NULL, NULL, 0);
	s->qp = s->mr && s->send_cq && s->recv_cq ? ibv_create_qp(s->pd, &init) : NULL;
	if (!s->qp)
		bench_fail("making a queue pair");
}

static void tell(struct side *s)
{
	struct ibv_port_attr port;

	if (ibv_query_port(s->context, 1, &port))
		bench_fail("ibv_query_port");
	s->plan->told[s->number] = (struct address){ .qpn = s->qp->qp_num,
		                                     .rkey = s->mr->rkey,
		                                     .lid = port.lid,
		                                     .memory = (uintptr_t)s->memory,
		                                     .pid = getpid() };
	bench_pair_meet(s->pair, s->number);
	s->peer = &s->plan->told[!s->number];
}

static void to(struct side *s, struct ibv_qp_attr *attr, enum ibv_qp_state state, int mask)
{
	attr->qp_state = state;
	if (ibv_modify_qp(s->qp, attr, mask | IBV_QP_STATE))
		bench_fail("ibv_modify_qp");
}

static void connect_side(struct side *s)
{
	struct ibv_qp_attr attr = { .port_num = 1,
		                    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
		                                       IBV_ACCESS_REMOTE_READ |
		                                       IBV_ACCESS_REMOTE_ATOMIC,
		                    .path_mtu = IBV_MTU_4096,
		                    .dest_qp_num = s->peer->qpn,
		                    .ah_attr = { .dlid = s->peer->lid, .port_num = 1 },
		                    .max_dest_rd_atomic = 1,
		                    .max_rd_atomic = 1,
		                    .timeout = 14,
		                    .retry_cnt = 7,
		                    .rnr_retry = 7 };

	to(s, &attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	to(s, &attr, IBV_QPS_RTR,
	   IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	to(s, &attr, IBV_QPS_RTS,
	   IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
	           IBV_QP_MAX_QP_RD_ATOMIC);
	bench_pair_meet(s->pair, s->number);
}

/* ---- what is measured: once ---- */

static void take(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (!n);
	if (n < 0 || wc.status)
		errx(1, "a request fails: %s", n < 0 ? "its CQ" : ibv_wc_status_str(wc.status));
}

static void post(struct side *s, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	struct ibv_sge sge = { .addr = (uintptr_t)s->memory + s->room,
		               .length = bytes,
		               .lkey = s->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED
	};
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = s->peer->memory;
	wr.wr.rdma.rkey = s->peer->rkey;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = s->peer->memory;
		wr.wr.atomic.rkey = s->peer->rkey;
		wr.wr.atomic.compare_add = 1;
	}
	if (ibv_post_send(s->qp, &wr, &bad))
		bench_fail("ibv_post_send");
}

static void request(struct side *s, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	post(s, opcode, bytes);
	take(s->send_cq);
}

static void rdma_write(struct side *s)
{
	request(s, IBV_WR_RDMA_WRITE, s->plan->bytes);
}

static void rdma_read(struct side *s)
{
	request(s, IBV_WR_RDMA_READ, s->plan->bytes);
}

static void fetch_add(struct side *s)
{
	request(s, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
}

static void raw(struct side *s, bool is_write)
{
	struct iovec here = { s->memory + s->room, s->plan->bytes };
	struct iovec there = { (void *)(uintptr_t)s->peer->memory, s->plan->bytes };
	ssize_t n = is_write ? process_vm_writev(s->peer->pid, &here, 1, &there, 1, 0)
	                     : process_vm_readv(s->peer->pid, &here, 1, &there, 1, 0);

	if (n != (ssize_t)s->plan->bytes)
		bench_fail("process_vm_writev");
}

static void raw_write(struct side *s)
{
	raw(s, true);
}

static void raw_read(struct side *s)
{
	raw(s, false);
}

static void copy(struct side *s)
{
	memcpy(s->memory, s->memory + s->room, s->plan->bytes);
	__asm__ volatile("" : : "r"(s->memory) : "memory");
}

static const struct {
	const char *name;
	void (*once)(struct side *s);
} operations[] = {
	{ "memcpy", copy },       { "raw-write", raw_write }, { "write", rdma_write },
	{ "raw-read", raw_read }, { "read", rdma_read },      { "fetch-add", fetch_add },
};

/* ---- measuring ---- */

/* Nanoseconds of one, the median of stretches. */
static double measure(struct side *s, void (*once)(struct side *s))
{
	double taken[SAMPLES];
	unsigned n = 1;

	for (uint64_t t = bench_now(); bench_now() - t < STRETCH; n++)
		once(s);
	for (int i = 0; i < SAMPLES; i++) {
		uint64_t t = bench_now();

		for (unsigned k = 0; k < n; k++)
			once(s);
		taken[i] = (double)(bench_now() - t) / n;
	}
	bench_sort(taken, SAMPLES);
	return taken[SAMPLES / 2];
}

static void post_receive(struct side *s)
{
	struct ibv_sge sge = { .addr = (uintptr_t)s->memory,
		               .length = (uint32_t)s->room,
		               .lkey = s->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(s->qp, &wr, &bad))
		bench_fail("ibv_post_recv");
}

/* Nanoseconds of a SEND, one way, on side 0. Both sides call it. */
static double measure_send(struct side *s)
{
	const unsigned n = s->plan->bytes > 65536 ? 200 : 2000;
	uint64_t t;

	for (int i = 0; i < RECEIVES / 2; i++)
		post_receive(s);
	bench_pair_meet(s->pair, s->number);
	t = bench_now();
	for (unsigned i = 0; i < n; i++) {
		if (!s->number)
			post(s, IBV_WR_SEND, s->plan->bytes);
		take(s->recv_cq);
		post_receive(s);
		if (s->number)
			post(s, IBV_WR_SEND, s->plan->bytes);
		take(s->send_cq);
	}
	t = bench_now() - t;
	return (double)t / n / 2;
}

static void print(const struct side *s, unsigned turn, const char *what, double ns,
                  const double line[2], uint64_t interrupted)
{
	if (s->number || !turn)
		return;
	printf("{\"measure\": \"connected\", \"operation\": \"%s\", \"bytes\": %u, \"turn\": %u, "
	       "\"line\": [%.1f, %.1f], \"interrupted\": %u, \"ns\": %.2f}\n",
	       what, s->plan->bytes, turn, line[0], line[1], (unsigned)interrupted, ns);
}

static void measure_one(struct side *s, unsigned turn, const char *what,
                        void (*once)(struct side *s))
{
	uint64_t interrupted;
	double line[2], ns = 0;

	line[0] = bench_pair_line(s->pair, s->number);
	interrupted = bench_interrupted();
	if (!once)
		ns = measure_send(s);
	else if (!s->number)
		ns = measure(s, once);
	interrupted = bench_interrupted() - interrupted;
	line[1] = bench_pair_line(s->pair, s->number);
	print(s, turn, what, ns, line, interrupted);
}

/* Receives of the last exchange remain: they are dropped with the queue pair's life. */
static void run(struct bench_pair *pair, int number, void *arg)
{
	struct side s = { .plan = arg, .pair = pair, .number = number };

	open_side(&s);
	tell(&s);
	connect_side(&s);
	/* turn 0 is not printed: memory is used for the first time */
	for (unsigned turn = 0; turn <= s.plan->turns; turn++) {
		for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
			measure_one(&s, turn, operations[i].name, operations[i].once);
	}
	measure_one(&s, 1, "send", NULL);
	bench_pair_meet(pair, number);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "turns", required_argument, NULL, 't' },
		                                 { "bytes", required_argument, NULL, 'b' },
		                                 { NULL, 0, NULL, 0 } };
	struct plan plan = { .turns = 3, .bytes = 64 };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 't')
			plan.turns = (unsigned)atoi(optarg);
		else if (c == 'b')
			plan.bytes = (uint32_t)atoi(optarg);
		else
			return 2;
	}
	plan.told = bench_alloc(2 * sizeof(*plan.told), 1);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* for process_vm_writev() itself */
	setvbuf(stdout, NULL, _IOLBF, 0);
	return bench_pair_run(bench_pair_new(), run, &plan);
}
