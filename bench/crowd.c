/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fills a fabric, so that others can be measured in the crowd. Prints a line of JSON when it is
 * ready, and stays until its standard input ends.
 *
 * crowd groups N	joins N groups, attached to one queue pair
 * crowd qps N		makes N queue pairs, and sends a message to each of them
 * crowd connections N	connects N RC queue pairs, two by two, and sends a message by each of them
 * crowd joins N	joins and leaves a group N times a second, until the end
 */
#include "common/rc.h"
#include "common/endpoint.h"
#include "common/util.h"

#define HOST       "10.0.0.3"
#define QKEY       0x11111111
#define FIRST_IPV4 0xEF100000 /* 239.16.0.0 */

static struct bench_endpoint endpoint;

static struct sockaddr_in group_of(unsigned i)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
		                     .sin_addr.s_addr = htonl(FIRST_IPV4 + i) };
}

static void join(unsigned i)
{
	struct sockaddr_in group = group_of(i);
	struct rdma_cm_event *event;

	bench_must(!rdma_join_multicast(endpoint.id, (struct sockaddr *)&group, NULL),
	           "rdma_join_multicast");
	bench_must(!rdma_get_cm_event(endpoint.events, &event), "rdma_get_cm_event");
	if (event->event != RDMA_CM_EVENT_MULTICAST_JOIN)
		errx(EXIT_FAILURE, "group %u: %s, status %d", i, rdma_event_str(event->event),
		     event->status);
	rdma_ack_cm_event(event);
}

static void leave(unsigned i)
{
	struct sockaddr_in group = group_of(i);

	bench_must(!rdma_leave_multicast(endpoint.id, (struct sockaddr *)&group),
	           "rdma_leave_multicast");
}

/* Whether standard input has ended; waits for so long. */
static int ended(int timeout_ms)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&in, 1, timeout_ms) > 0;
}

static void crowd_groups(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		join(i);
	printf("{\"ready\": \"groups\", \"n\": %u}\n", n);
	ended(-1);
}

static void crowd_joins(unsigned a_second)
{
	unsigned long n = 0;

	printf("{\"ready\": \"joins\", \"n\": %u}\n", a_second);
	for (; !ended(0); n++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000000L / a_second }, NULL);
		join(0);
		leave(0);
	}
	printf("{\"measure\": \"joins\", \"n\": %lu}\n", n);
}

/* Kilobytes of private memory of this process. */
static long private_kb(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char text[128];
	long kb = -1;

	if (!f)
		err(EXIT_FAILURE, "/proc/self/status");
	while (kb < 0 && fgets(text, sizeof(text), f))
		if (sscanf(text, "RssAnon: %ld", &kb) != 1)
			kb = -1;
	if (kb < 0)
		errx(EXIT_FAILURE, "/proc/self/status does not tell the private memory");
	fclose(f);
	return kb;
}

/* One message to each of them, unicast from the endpoint's queue pair; each must arrive. */
static unsigned send_to_all(struct ibv_qp **qp, unsigned n, struct ibv_cq *cq)
{
	struct ibv_port_attr port;
	struct ibv_ah_attr attr = { .port_num = endpoint.port_num };
	struct ibv_sge to = { .addr = (uintptr_t)endpoint.buffer,
		              .length = endpoint.slot,
		              .lkey = endpoint.mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr *wr = &endpoint.send_wr[0];
	unsigned arrived = 0;

	errno = ibv_query_port(endpoint.verbs, attr.port_num, &port);
	bench_must(!errno, "ibv_query_port");
	attr.dlid = port.lid;
	bench_must((wr->wr.ud.ah = ibv_create_ah(endpoint.pd, &attr)), "ibv_create_ah");
	wr->wr.ud.remote_qkey = QKEY;
	for (unsigned i = 0; i < n; i++) {
		struct ibv_wc wc;

		errno = ibv_post_recv(qp[i], &recv, &bad_recv);
		bench_must(!errno, "ibv_post_recv");
		wr->wr.ud.remote_qpn = qp[i]->qp_num;
		bench_endpoint_send(&endpoint, 1);
		if (ibv_poll_cq(cq, 1, &wc) == 1 && wc.qp_num == qp[i]->qp_num &&
		    wc.status == IBV_WC_SUCCESS)
			arrived++;
	}
	ibv_destroy_ah(wr->wr.ud.ah);
	return arrived;
}

static void crowd_qps(unsigned n)
{
	struct ibv_cq *cq = ibv_create_cq(endpoint.verbs, (int)n * 2, NULL, NULL, 0);
	struct ibv_qp **qp = calloc(n, sizeof(*qp));
	long before, after;

	bench_must(cq && qp, "ibv_create_cq");
	before = private_kb();
	for (unsigned i = 0; i < n; i++)
		qp[i] = bench_idle_qp(&endpoint, cq);
	after = private_kb();
	printf("{\"ready\": \"qps\", \"n\": %u, \"private_bytes\": %ld}\n", n,
	       (after - before) * 1024);
	while (!ended(-1))
		;
	if (getchar() == EOF)
		return;
	printf("{\"measure\": \"qps\", \"n\": %u, \"arrived\": %u}\n", n, send_to_all(qp, n, cq));
	getchar();
}

/* ---- connections ---- */

#define REGIONS 201

static struct ibv_qp *connected_qp(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(endpoint.pd, &init);

	bench_must(qp, "ibv_create_qp");
	return qp;
}

static void connect_two(struct ibv_qp *qp[2], uint16_t lid)
{
	const struct ibv_ah_attr path = { .dlid = lid, .port_num = 1 };

	bench_rc_bring_up(qp[0], qp[1]->qp_num, &path);
	bench_rc_bring_up(qp[1], qp[0]->qp_num, &path);
}

/* A message by each of them. How many arrived. */
static unsigned send_by_all(struct ibv_qp **qp, unsigned n, struct ibv_cq *cq)
{
	struct ibv_sge sge = { .addr = (uintptr_t)endpoint.buffer,
		               .length = 64,
		               .lkey = endpoint.mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &sge,
		                    .num_sge = 1,
		                    .opcode = IBV_WR_SEND,
		                    .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad_send;
	unsigned arrived = 0;

	for (unsigned i = 0; i < n; i++) {
		struct ibv_wc wc;

		if (ibv_post_recv(qp[i ^ 1], &recv, &bad_recv) ||
		    ibv_post_send(qp[i], &send, &bad_send))
			errx(EXIT_FAILURE, "a message by queue pair %u cannot be posted", i);
		while (ibv_poll_cq(cq, 1, &wc) == 1)
			arrived += wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV;
	}
	return arrived;
}

/* Microseconds that a region of a page takes to be made and given back. */
static double time_region(void)
{
	double taken[REGIONS];
	char *page = bench_alloc(4096, 0);

	for (int i = 0; i < REGIONS; i++) {
		uint64_t t = bench_now();
		struct ibv_mr *mr = ibv_reg_mr(endpoint.pd, page, 4096,
		                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

		bench_must(mr && !ibv_dereg_mr(mr), "a region");
		taken[i] = (double)(bench_now() - t) / 1000;
	}
	bench_free(page, 4096);
	bench_sort(taken, REGIONS);
	return taken[REGIONS / 2];
}

static void crowd_connections(unsigned n)
{
	struct ibv_cq *cq = ibv_create_cq(endpoint.verbs, (int)n * 2, NULL, NULL, 0);
	struct ibv_qp **qp = calloc(n, sizeof(*qp));
	struct ibv_port_attr port;
	long before, after;

	if (!cq || !qp || ibv_query_port(endpoint.verbs, endpoint.port_num, &port))
		bench_fail("ibv_create_cq");
	before = private_kb();
	for (unsigned i = 0; i < n; i++)
		qp[i] = connected_qp(cq);
	for (unsigned i = 0; i + 1 < n; i += 2)
		connect_two(qp + i, port.lid);
	after = private_kb();
	printf("{\"ready\": \"connections\", \"n\": %u, \"private_bytes\": %ld}\n", n,
	       (after - before) * 1024);
	while (!ended(-1))
		;
	if (getchar() == EOF)
		return;
	printf("{\"measure\": \"connections\", \"n\": %u, \"arrived\": %u, \"region_us\": %.2f}\n",
	       n, send_by_all(qp, n & ~1u, cq), time_region());
	getchar();
}

int main(int argc, char **argv)
{
	unsigned n = argc == 3 ? (unsigned)atoi(argv[2]) : 0;

	if (!n)
		errx(2, "groups, qps, connections or joins, and how many");
	setvbuf(stdout, NULL, _IOLBF, 0);
	bench_endpoint_open(
	        &endpoint,
	        &(struct bench_plan){ .address = HOST, .depth = 2 * BENCH_LIST, .bytes = 64 });
	if (!strcmp(argv[1], "groups"))
		crowd_groups(n);
	else if (!strcmp(argv[1], "qps"))
		crowd_qps(n);
	else if (!strcmp(argv[1], "connections"))
		crowd_connections(n);
	else if (!strcmp(argv[1], "joins"))
		crowd_joins(n);
	else
		errx(2, "no crowd of '%s'", argv[1]);
	return 0; /* all ends with the process */
}
