/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Much ends at once: connections of clients, queue pairs with attachments, posted receives.
 * Meanwhile the daemon does little between another client's request and its reply. Its processor
 * time is measured, so that a busy machine does not matter; what the slowest request took by the
 * clock is printed beside it.
 *
 * adversary.ends [CONNECTIONS [ATTACHMENTS [RECEIVES]]]; `adversary.ends hold ...` makes all of
 * these, says so, and keeps them.
 */
#include "verbs/lab.h"

#include "daemon_lab.h"
#include "attributes.h"

#define LIMIT_NS  30000000ull /* it was 100 ms and more */
#define HOSTS     4
#define RECEIVERS 25 /* queue pairs of a host with attachments */
#define GROUPS \
	8000 /* of a host: no two queue pairs have the same ones, until they have gone round */
#define CROWD   500 /* queue pairs of one group more, to which others send */
#define SENDERS 8
#define MLID    0xC123
#define QPS     20000
#define IDS     10000
#define AT_MOST 16384 /* receives of a queue pair */

static unsigned connections = 3000, attachments = 100000, receives = 1000000;

static struct {
	int ready[2]; /* a byte: the child has made all */
	clockid_t clock;
} shared;

/* ---- what ends ---- */

static void connect_one(void)
{
	struct control_hello_reply hello;
	struct control_client *client = daemon_client(CONTROL_ROLE_VERBS);
	int fd[2], events = -1;

	control_hello(client, &hello, fd);
	close(fd[0]);
	close(fd[1]);
	daemon_open_hca(client, 1, &events);
}

static void make_connections(void)
{
	for (unsigned i = 0; i < connections; i++)
		connect_one();
}

static struct ibv_qp *small_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = init_of(IBV_QPT_UD, cq, 1, 1);
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	assert_non_null(qp);
	lab_start(qp, LAB_QKEY);
	return qp;
}

static void attach(struct ibv_qp *qp, unsigned group)
{
	const union ibv_gid mgid = lab_mgid(group);

	assert_int_equal(ibv_attach_mcast(qp, &mgid, MLID), 0);
}

static void send_to(struct lab_end *e, unsigned group)
{
	const union ibv_gid mgid = lab_mgid(group);
	struct ibv_ah_attr attr = {
		.is_global = 1, .dlid = MLID, .port_num = 1, .grh = { .dgid = mgid }
	};

	lab_send(e, lab_ah(e->pd, &attr), LAB_MCAST, NULL, 8);
}

static void make_attachments(void)
{
	const unsigned each = attachments / (HOSTS * RECEIVERS);

	for (int host = 1; host <= HOSTS; host++) {
		struct ibv_context *context = lab_open(host);
		struct ibv_pd *pd = lab_pd(context);
		struct ibv_cq *cq = lab_cq(context, 16, NULL);

		for (unsigned i = 0; i < RECEIVERS; i++) {
			struct ibv_qp *qp = small_qp(pd, cq);

			for (unsigned k = 0; k < each; k++)
				attach(qp, (i * each + k) % GROUPS);
		}
		for (unsigned i = 0; i < CROWD / HOSTS; i++)
			attach(small_qp(pd, cq), GROUPS);
	}
	for (unsigned i = 0; i < SENDERS; i++)
		send_to(lab_end(1 + (int)i % HOSTS), GROUPS);
}

static void make_receives(void)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = lab_pd(context);
	const unsigned n = (receives + AT_MOST - 1) / AT_MOST;

	for (unsigned i = 0; i < n; i++) {
		struct ibv_cq *cq = lab_cq(context, AT_MOST, NULL);
		struct ibv_qp_init_attr init = init_of(IBV_QPT_UD, cq, 1, AT_MOST);
		struct ibv_recv_wr wr = { 0 }, *bad;
		struct ibv_qp *qp = ibv_create_qp(pd, &init);

		assert_non_null(qp);
		lab_start(qp, LAB_QKEY);
		for (unsigned k = 0; k < receives / n; k++)
			assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	}
}

/* Queue pairs with a flow each, some in the middle of things. */
static void make_qps(void)
{
	struct lab_end *to = lab_end(2);

	for (int host = 1; host <= HOSTS; host++) {
		struct ibv_context *context = lab_open(host);
		struct ibv_pd *pd = lab_pd(context);
		struct ibv_cq *cq = lab_cq(context, 16, NULL);
		const struct ibv_ah_attr attr = lab_attr_to(to);
		struct ibv_ah *ah = lab_ah(pd, &attr);

		for (unsigned i = 0; i < QPS / HOSTS; i++) {
			struct ibv_qp *qp = small_qp(pd, cq);
			struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

			wr.wr.ud.ah = ah;
			wr.wr.ud.remote_qpn = to->qp->qp_num;
			wr.wr.ud.remote_qkey = LAB_QKEY;
			assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
		}
	}
}

/* Identifiers of rdma_cm, each listening at a port of its own. */
static void make_identifiers(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in any = { .sin_family = AF_INET };

	assert_non_null(channel);
	for (unsigned i = 0; i < IDS; i++) {
		struct rdma_cm_id *id;

		assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), 0);
		assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&any), 0);
		assert_int_equal(rdma_listen(id, 8), 0);
	}
}

static void make_all(void)
{
	make_connections();
	make_attachments();
	make_receives();
}

/* ---- who is served meanwhile ---- */

static pid_t start(void (*make)(void))
{
	pid_t pid = fork();
	char byte = 0;

	assert_true(pid >= 0);
	if (!pid) {
		make();
		if (write(shared.ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(shared.ready[0], &byte, 1), 1);
	return pid;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A reply counts as soon as it is there: what the daemon does while this process waits for a
 * processor is nobody's wait for the daemon. Where this may not be had, the daemon has no priority
 * either. */
static void run_before_others(void)
{
	const struct sched_param param = { .sched_priority =
		                                   sched_get_priority_min(SCHED_FIFO) + 1 };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param))
		print_message("no real-time priority: this process may wait for a processor\n");
}

/* Asks until all but this process has gone: the most that the daemon did until it replied. */
static void ask_until_they_have_gone(struct ibv_context *context, const char *what)
{
	uint64_t work = 0, time = 0;

	do {
		for (unsigned i = 0; i < 1000; i++) {
			uint64_t before = now_ns(shared.clock), from = now_ns(CLOCK_MONOTONIC);
			struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);

			time = larger(time, now_ns(CLOCK_MONOTONIC) - from);
			work = larger(work, now_ns(shared.clock) - before);
			assert_non_null(cq);
			assert_int_equal(ibv_destroy_cq(cq), 0);
		}
	} while (lab_status("clients") != 1 || lab_status("qps") || lab_status("flows") ||
	         lab_status("listeners"));
	print_message("%s: the slowest request took %.1f ms, and %.1f ms of the daemon's time\n",
	              what, (double)time / 1e6, (double)work / 1e6);
	assert_true(work < LIMIT_NS);
}

static void all_end_while_another_asks(void (*make)(void), const char *what)
{
	pid_t pid = start(make);
	struct ibv_context *context = lab_open(2);

	assert_int_equal(clock_getcpuclockid((pid_t)lab_status("pid"), &shared.clock), 0);
	kill(pid, SIGKILL);
	ask_until_they_have_gone(context, what);
	waitpid(pid, NULL, 0);
}

LAB_CASE(nobody_waits_for_connections_that_end)
{
	all_end_while_another_asks(make_connections, "connections end");
}

LAB_CASE(nobody_waits_for_attachments_that_end)
{
	all_end_while_another_asks(make_attachments, "attachments end");
}

LAB_CASE(nobody_waits_for_queue_pairs_that_end)
{
	all_end_while_another_asks(make_qps, "queue pairs end");
}

LAB_CASE(nobody_waits_for_identifiers_that_end)
{
	all_end_while_another_asks(make_identifiers, "identifiers end");
}

LAB_CASE(nobody_waits_for_receives_that_end)
{
	all_end_while_another_asks(make_receives, "receives end");
}

static int set_up(void **state)
{
	struct rlimit r;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = r.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
	/* the daemon has three descriptors for each connection, and one process three quarters of
	 * all */
	if (connections > (r.rlim_max - 400) / 4)
		connections = (unsigned)(r.rlim_max - 400) / 4;
	run_before_others();
	return pipe(shared.ready);
}

static void hold(void **state)
{
	(void)state;
	make_all();
	print_message("all is made\n");
	pause();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest holds[] = { LAB_TEST(hold) };
	bool holds_all = argc > 1 && !strcmp(argv[1], "hold");
	unsigned *size[] = { &connections, &attachments, &receives };

	for (int i = 1 + holds_all; i < argc && i <= 3 + holds_all; i++)
		*size[i - 1 - holds_all] = (unsigned)atoi(argv[i]);
	return holds_all ? cmocka_run_group_tests_name("hold", holds, set_up, NULL)
	                 : harness_run(set_up, NULL);
}
