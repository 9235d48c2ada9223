// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ping_order ROUNDS BYTES [ADDRESS] [deaths]: two processes answer each other's messages over an RC
 * connection: the server, and with ADDRESS, which is the server's, the client. A send is complete
 * before the answer to it is there, as an HCA acknowledges messages before programs see them, and
 * as ib_send_lat -e relies on: with two queues on one channel each event is of the queue whose turn
 * it is, and one look finds one completion. A request without a completion has no event. While
 * others die that receive for all, events may come for nothing.
 *
 * ping_order neighbours: up to SIGTERM, programs that poll, and so receive for all of their port,
 * and die at a random instruction, one after the other. "NUMBER have died".
 */
#include "must.h"
#include "attributes.h"

#include <rdma/rdma_cma.h>

#define PORT "18515"

static bool is_client, others_die;
static unsigned rounds, bytes;
static struct rdma_cm_id *id;
static struct ibv_comp_channel *channel;
static struct ibv_cq *send_cq, *receive_cq;
static struct ibv_mr *mr;
static char *memory;

static void post_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)memory, bytes, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(id->qp, &wr, &bad);
	check(!errno, "ibv_post_recv");
}

static void post_send(void)
{
	struct ibv_sge sge = { (uintptr_t)memory + bytes, bytes, mr->lkey };
	struct ibv_send_wr wr = request_of(&sge, IBV_WR_SEND, IBV_SEND_SIGNALED), *bad;

	errno = ibv_post_send(id->qp, &wr, &bad);
	check(!errno, "ibv_post_send");
}

static void open_queues(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	MUST(channel = ibv_create_comp_channel(id->verbs));
	receive_cq = ibv_create_cq(id->verbs, 4, NULL, channel, 0);
	send_cq = ibv_create_cq(id->verbs, 4, NULL, channel, 0);
	check(receive_cq && send_cq, "ibv_create_cq");
	check(!ibv_req_notify_cq(receive_cq, 0) && !ibv_req_notify_cq(send_cq, 0),
	      "ibv_req_notify_cq");
	attr.send_cq = send_cq;
	attr.recv_cq = receive_cq;
	check(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
	memory = calloc(2, bytes);
	MUST(mr = ibv_reg_mr(id->pd, memory, 2 * (size_t)bytes,
	                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	post_receive();
	post_receive();
}

static void connect_to(const char *address)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP,
		                       .ai_flags = address ? 0 : RAI_PASSIVE },
	                     *info;
	struct rdma_cm_id *listener;

	check(!rdma_getaddrinfo(address, PORT, &hints, &info), "rdma_getaddrinfo");
	check(!rdma_create_ep(&id, info, NULL, NULL), "rdma_create_ep");
	if (address) {
		open_queues();
		check(!rdma_connect(id, NULL), "rdma_connect");
		return;
	}
	listener = id;
	check(!rdma_listen(listener, 1), "rdma_listen");
	puts("listens");
	fflush(stdout);
	check(!rdma_get_request(listener, &id), "rdma_get_request");
	open_queues();
	check(!rdma_accept(id, NULL), "rdma_accept");
}

/* Whether there is a completion, which must be of that operation. */
static bool completes(unsigned round, struct ibv_cq *queue, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(queue, 1, &wc);

	check(n >= 0, "ibv_poll_cq");
	if (n && (wc.status != IBV_WC_SUCCESS || wc.opcode != opcode))
		errx(EXIT_FAILURE, "round %u: status %d, opcode %d", round, wc.status, wc.opcode);
	return n;
}

/* Events may come for nothing, and then not be of the queue whose turn it is. But what is complete
 * when the answer is there says the same. */
static void expect_in_order(unsigned round, struct ibv_cq *queue, enum ibv_wc_opcode opcode)
{
	static bool has_answer;
	struct ibv_cq *cq;
	void *cq_context;

	if (queue == receive_cq && has_answer) {
		has_answer = false;
		return;
	}
	while (!completes(round, queue, opcode)) {
		has_answer = queue == send_cq && completes(round, receive_cq, IBV_WC_RECV);
		if (has_answer && completes(round, queue, opcode))
			return;
		must(!has_answer, "round %u: the answer comes before its send is complete", round);
		check(!ibv_get_cq_event(channel, &cq, &cq_context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		check(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	}
}

/* The next completion is of that queue, and of that operation. */
static void expect(unsigned round, struct ibv_cq *queue, enum ibv_wc_opcode opcode)
{
	const char *what = queue == send_cq ? "send" : "receive";
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *cq_context;
	int n;

	if (others_die) {
		expect_in_order(round, queue, opcode);
		return;
	}
	check(!ibv_get_cq_event(channel, &cq, &cq_context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	check(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	must(cq == queue, "round %u: an event of the other queue than %s's", round, what);
	n = ibv_poll_cq(queue, 1, &wc);
	must(n == 1, "round %u: %d completions of %s", round, n, what);
	must(wc.status == IBV_WC_SUCCESS && wc.opcode == opcode,
	     "round %u: %s has status %d, opcode %d", round, what, wc.status, wc.opcode);
}

/* A request without a completion has no event. The peer waits for us meanwhile. */
static void expect_quiet(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad; /* of no bytes */
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };

	for (unsigned i = 0; i < 5; i++) {
		errno = ibv_post_send(id->qp, &wr, &bad);
		check(!errno, "ibv_post_send");
		must(!poll(&p, 1, 20), "an event of a request without a completion");
	}
}

/* But a request that this process carries out itself is not forgotten behind it. */
static void expect_bound(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(id->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr bind = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED },
	                   quiet = { .opcode = IBV_WR_RDMA_WRITE, .next = &bind }, *bad;

	check(mw, "ibv_alloc_mw");
	bind.bind_mw.mw = mw;
	bind.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	bind.bind_mw.bind_info =
	        (struct ibv_mw_bind_info){ .mr = mr,
		                           .addr = (uintptr_t)memory,
		                           .length = bytes,
		                           .mw_access_flags = IBV_ACCESS_REMOTE_READ };
	errno = ibv_post_send(id->qp, &quiet, &bad);
	check(!errno, "ibv_post_send of a bind");
	expect(0, send_cq, IBV_WC_BIND_MW);
	check(!ibv_dealloc_mw(mw), "ibv_dealloc_mw");
}

static volatile sig_atomic_t is_over;

static void end(int signal)
{
	(void)signal;
	is_over = 1;
}

/* Polls an empty completion queue until a signal kills it, which no library handles. */
static void receive_for_all(unsigned number)
{
	struct ibv_device **list;
	struct ibv_context *context;
	struct itimerval until = { .it_value.tv_usec = 2000 + number * 7919 % 10000 };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_wc wc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	list = ibv_get_device_list(NULL);
	check(list && list[0], "ibv_get_device_list");
	MUST(context = ibv_open_device(list[0]));
	attr.send_cq = attr.recv_cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	check(attr.send_cq && ibv_create_qp(ibv_alloc_pd(context), &attr), "ibv_create_qp");
	signal(SIGALRM, SIG_DFL);
	check(!setitimer(ITIMER_REAL, &until, NULL), "setitimer");
	for (unsigned i = 1;; i++) {
		ibv_poll_cq(attr.send_cq, 1, &wc);
		if (i % 20 == 0)
			usleep(20);
	}
}

static int make_neighbours(void)
{
	unsigned n = 0;
	int status;
	pid_t pid;

	signal(SIGTERM, end);
	puts("begin");
	while (!is_over) {
		pid = fork();
		check(pid >= 0, "fork");
		if (!pid)
			receive_for_all(n);
		while (waitpid(pid, &status, 0) < 0)
			check(errno == EINTR, "waitpid");
		must(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM,
		     "a neighbour ends with status %d", status);
		n++;
	}
	printf("%u have died\n", n);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "neighbours"))
		return make_neighbours();
	others_die = argc > 1 && !strcmp(argv[argc - 1], "deaths");
	argc -= others_die;
	must(argc >= 3, "usage: %s ROUNDS BYTES [ADDRESS] [deaths]", argv[0]);
	rounds = (unsigned)atoi(argv[1]);
	bytes = (unsigned)atoi(argv[2]);
	is_client = argc > 3;
	connect_to(is_client ? argv[3] : NULL);
	for (unsigned i = 0; i < rounds; i++) {
		if (!is_client || i) {
			expect(i, receive_cq, IBV_WC_RECV);
			post_receive();
		}
		if (is_client && !i) {
			expect_quiet();
			expect_bound();
		}
		post_send();
		expect(i, send_cq, IBV_WC_SEND);
	}
	if (is_client) /* the last answer */
		expect(rounds, receive_cq, IBV_WC_RECV);
	puts("all in order");
	return EXIT_SUCCESS;
}
