// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two threads whose order is that of completions, and nothing else: one writes to its memory and
 * sends, the other polls, reads what has come, fetches the sender's memory by RDMA READ, and
 * responds. By any reading of verbs that is right. With an argument both begin with a race of the
 * program's own: "plain" in a variable, "registered" in memory that was registered before.
 */
#include "../posix.h"

#include <infiniband/verbs.h>

#include "../qp_states.h"

#define ROUNDS  30
#define BYTES   16384
#define EACH(i) for (int i = 0; i < 2; i++)

static const uint32_t sizes[] = { 16, 700, BYTES };
static struct ibv_qp *qp[2];
static struct ibv_cq *sent[2], *come[2];
static struct ibv_mr *mr[2];
static char memory[2][2 * BYTES]; /* what is sent, what comes */
static int variable, registered[64], *raced;

static __attribute__((noinline)) void race(void)
{
	if (raced)
		(*raced)++;
}

static void must(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(3);
	}
}

static void complete(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	must(n == 1 && wc.status == IBV_WC_SUCCESS, "a completion");
}

static void receive(int at)
{
	struct ibv_sge sge = { (uintptr_t)memory[at] + BYTES, BYTES, mr[at]->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(qp[at], &wr, &bad), "ibv_post_recv");
}

static void request(int at, enum ibv_wr_opcode opcode, char *local, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)local, bytes, mr[at]->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED
	};

	wr.wr.rdma.remote_addr = (uintptr_t)memory[!at];
	wr.wr.rdma.rkey = mr[!at]->rkey;
	must(!ibv_post_send(qp[at], &wr, &bad), "ibv_post_send");
	complete(sent[at]);
}

static void *ask(void *arg)
{
	race();
	for (int i = 0; i < ROUNDS; i++) {
		memset(memory[0], i, sizes[i % 3]);
		request(0, IBV_WR_SEND, memory[0], sizes[i % 3]);
		complete(come[0]);
		must(memory[0][BYTES] == i, "the response");
		receive(0);
	}
	return arg;
}

static void *respond(void *arg)
{
	race();
	for (int i = 0; i < ROUNDS; i++) {
		complete(come[1]);
		must(memory[1][BYTES] == i, "the request");
		receive(1);
		request(1, IBV_WR_RDMA_READ, memory[1], sizes[i % 3]);
		must(memory[1][sizes[i % 3] - 1] == i, "what was read");
		request(1, IBV_WR_SEND, memory[1], 16);
	}
	return arg;
}

static void connect_to(int at, uint16_t lid)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
		                 .port_num = 1,
		                 .qp_access_flags = IBV_ACCESS_REMOTE_READ,
		                 .path_mtu = IBV_MTU_1024,
		                 .dest_qp_num = qp[!at]->qp_num,
		                 .ah_attr = { .dlid = lid, .port_num = 1 },
		                 .max_rd_atomic = 1,
		                 .max_dest_rd_atomic = 1,
		                 .min_rnr_timer = 12,
		                 .timeout = 18,
		                 .retry_cnt = 7,
		                 .rnr_retry = 7 };

	must(!qp_to_init(qp[at], &a), "INIT");
	must(!qp_to_rtr(qp[at], &a), "RTR");
	must(!qp_to_rts(qp[at], &a), "RTS");
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(list[0]);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_port_attr port;
	pthread_t thread[2];

	must(pd && !ibv_query_port(context, 1, &port), "the device");
	EACH(i)
	{
		struct ibv_qp_init_attr init = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

		init.send_cq = sent[i] = ibv_create_cq(context, 8, NULL, NULL, 0);
		init.recv_cq = come[i] = ibv_create_cq(context, 8, NULL, NULL, 0);
		mr[i] = ibv_reg_mr(pd, memory[i], sizeof(memory[i]),
		                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
		qp[i] = ibv_create_qp(pd, &init);
		must(mr[i] && qp[i], "objects");
	}
	EACH(i)
	connect_to(i, port.lid);
	EACH(i)
	receive(i);
	if (argc > 1) {
		struct ibv_mr *before = ibv_reg_mr(pd, registered, sizeof(registered), 0);

		must(before && !ibv_dereg_mr(before), "a region");
		raced = strcmp(argv[1], "registered") ? &variable : registered;
	}
	must(!pthread_create(&thread[0], NULL, ask, NULL), "a thread");
	must(!pthread_create(&thread[1], NULL, respond, NULL), "a thread");
	EACH(i)
	pthread_join(thread[i], NULL);
	EACH(i)
	must(!ibv_destroy_qp(qp[i]) && !ibv_dereg_mr(mr[i]), "the end");
	puts("done");
	return 0;
}
