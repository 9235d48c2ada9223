/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many multicast groups with many members. Hosts join groups by rdma_cm, and each of the queue
 * pairs, which are shared out over the hosts, is attached to each of the groups. Prints a line of
 * JSON when all are, and one for each command that it reads then:
 *
 * growth GROUPS HOSTS QPS
 *	flows N		a queue pair of each of N hosts sends to each group
 *	send G		messages to group G, one by one: what one takes its sender, and how many
 *			arrived
 *	leave		all leave all groups
 *
 *
 * growth ask PID	asks the daemon, process PID, for one small thing after the other, until
 *			standard input ends; how long it worked on something else at most before it
 *			answered: the clock's time, or its processor time if that is less, as others
 *			may have had its processor
 */
#include "common/util.h"

#include <rdma/rdma_cma.h>

#define FIRST_IPV4 0xEF200000 /* 239.32.0.0 */
#define FIRST_HOST 0x0A000000
#define A_NETWORK  254 /* hosts of it */
#define DEPTH      16
#define RECEIVES   2
#define ROUNDS     64
#define BYTES      64
#define SLOT       128
#define CHUNK      64 /* joins, by which they are timed */

struct group {
	union ibv_gid mgid;
	uint16_t mlid;
	uint32_t qkey;
};

struct host {
	struct rdma_cm_id *id;
	struct ibv_cq *cq, *send_cq;
	struct ibv_mr *mr;
	struct ibv_qp **qp;
	uint8_t *posted; /* receives, by queue pair */
	unsigned n;
};

static struct {
	struct rdma_event_channel *events;
	struct group *group;
	struct host *host;
	unsigned n_groups, n_hosts, n_qps;
	char buffer[2 * SLOT];
} all;

static struct sockaddr_in address(uint32_t ipv4)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(ipv4) };
}

/* ---- hosts and their queue pairs ---- */

/* Two receives in each of its queue pairs, so that a second copy of a message would be seen. */
static void post_receives(struct host *h)
{
	struct ibv_sge sge = { .addr = (uintptr_t)all.buffer, .length = SLOT, .lkey = h->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	for (unsigned k = 0; k < h->n; k++) {
		wr.wr_id = k;
		for (; h->posted[k] < RECEIVES; h->posted[k]++) {
			errno = ibv_post_recv(h->qp[k], &wr, &bad);
			bench_must(!errno, "ibv_post_recv");
		}
	}
}

static struct ibv_qp *make_qp(struct host *h, bool first)
{
	struct ibv_qp_init_attr init = { .send_cq = h->send_cq,
		                         .recv_cq = h->cq,
		                         .qp_type = IBV_QPT_UD,
		                         .cap = { .max_send_wr = DEPTH,
		                                  .max_recv_wr = RECEIVES,
		                                  .max_send_sge = 1,
		                                  .max_recv_sge = 1,
		                                  .max_inline_data = BYTES } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = h->id->port_num };
	struct ibv_qp *qp;

	if (first) {
		bench_must(!rdma_create_qp(h->id, h->id->pd, &init), "rdma_create_qp");
		return h->id->qp;
	}
	bench_must((qp = ibv_create_qp(h->id->pd, &init)), "ibv_create_qp");
	attr.qkey = RDMA_UDP_QKEY;
	errno = ibv_modify_qp(qp, &attr,
	                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	if (!errno)
		errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	bench_must(!errno, "ibv_modify_qp");
	return qp;
}

static void open_host(struct host *h, unsigned i)
{
	struct sockaddr_in at = address(FIRST_HOST + i / A_NETWORK * 256 + i % A_NETWORK + 1);

	h->n = all.n_qps / all.n_hosts + (i < all.n_qps % all.n_hosts);
	if (rdma_create_id(all.events, &h->id, h, RDMA_PS_UDP) ||
	    rdma_bind_addr(h->id, (struct sockaddr *)&at))
		bench_fail("rdma_bind_addr");
	h->cq = ibv_create_cq(h->id->verbs, (int)(RECEIVES * h->n), NULL, NULL, 0);
	h->send_cq = ibv_create_cq(h->id->verbs, DEPTH, NULL, NULL, 0);
	h->mr = ibv_reg_mr(h->id->pd, all.buffer, sizeof(all.buffer), IBV_ACCESS_LOCAL_WRITE);
	h->qp = calloc(h->n, sizeof(struct ibv_qp *));
	h->posted = calloc(h->n, sizeof(*h->posted));
	if (!h->cq || !h->send_cq || !h->mr || !h->qp || !h->posted)
		bench_fail("a host");
	for (unsigned k = 0; k < h->n; k++)
		h->qp[k] = make_qp(h, !k);
}

/* ---- groups ---- */

/* The outcome of a join: the first queue pair of the host is attached by it. */
static struct host *joined(unsigned g)
{
	struct rdma_cm_event *event;
	struct host *h;

	bench_must(!rdma_get_cm_event(all.events, &event), "rdma_get_cm_event");
	if (event->event != RDMA_CM_EVENT_MULTICAST_JOIN)
		errx(EXIT_FAILURE, "group %u: %s, status %d", g, rdma_event_str(event->event),
		     event->status);
	h = event->id->context;
	all.group[g] = (struct group){ .mgid = event->param.ud.ah_attr.grh.dgid,
		                       .mlid = event->param.ud.ah_attr.dlid,
		                       .qkey = event->param.ud.qkey };
	rdma_ack_cm_event(event);
	return h;
}

/* All hosts join the group. */
static void join(unsigned g)
{
	struct sockaddr_in to = address(FIRST_IPV4 + g);

	for (unsigned i = 0; i < all.n_hosts; i++)
		bench_must(!rdma_join_multicast(all.host[i].id, (struct sockaddr *)&to, NULL),
		           "rdma_join_multicast");
	for (unsigned i = 0; i < all.n_hosts; i++)
		joined(g);
}

static void leave(unsigned g)
{
	struct sockaddr_in to = address(FIRST_IPV4 + g);

	for (unsigned i = 0; i < all.n_hosts; i++)
		bench_must(!rdma_leave_multicast(all.host[i].id, (struct sockaddr *)&to),
		           "rdma_leave_multicast");
}

/* Attaches the other queue pairs to the group, or detaches them. */
static void attach(unsigned g, bool attached)
{
	for (unsigned i = 0; i < all.n_hosts; i++) {
		for (unsigned k = 1; k < all.host[i].n; k++) {
			const struct group *to = &all.group[g];

			errno = attached ? ibv_attach_mcast(all.host[i].qp[k], &to->mgid, to->mlid)
			                 : ibv_detach_mcast(all.host[i].qp[k], &to->mgid, to->mlid);
			if (errno)
				bench_fail(attached ? "ibv_attach_mcast" : "ibv_detach_mcast");
		}
	}
}

/* Each group once; says what a member took at the beginning and at the end. */
static void each_group(const char *what, void (*one)(unsigned g))
{
	const unsigned n = all.n_groups < 2 * CHUNK ? all.n_groups / 2 : all.n_groups / 10;
	const double members = (double)n * all.n_qps;
	uint64_t begin = bench_now(), first = 0, last = 0;

	for (unsigned g = 0; g < all.n_groups; g++) {
		if (g == n)
			first = bench_now() - begin;
		if (g == all.n_groups - n)
			last = bench_now();
		one(g);
	}
	printf("{\"measure\": \"%s\", \"groups\": %u, \"qps\": %u, \"first_us\": %.3f, "
	       "\"last_us\": %.3f, \"s\": %.3f}\n",
	       what, all.n_groups, all.n_qps, (double)first / 1e3 / members,
	       (double)(bench_now() - last) / 1e3 / members, (double)(bench_now() - begin) / 1e9);
}

static void enter_group(unsigned g)
{
	join(g);
	attach(g, true);
}

static void leave_group(unsigned g)
{
	attach(g, false);
	leave(g);
}

/* ---- messages ---- */

static struct ibv_ah *handle_of(const struct host *h, const struct group *g)
{
	struct ibv_ah_attr attr = { .is_global = 1,
		                    .dlid = g->mlid,
		                    .port_num = h->id->port_num,
		                    .grh = { .dgid = g->mgid } };
	struct ibv_ah *ah = ibv_create_ah(h->id->pd, &attr);

	bench_must(ah, "ibv_create_ah");
	return ah;
}

/* Nanoseconds of a message from the host to the group. */
static double post(struct host *h, struct ibv_ah *ah, const struct group *g)
{
	struct ibv_sge sge = { .addr = (uintptr_t)all.buffer, .length = BYTES };
	struct ibv_send_wr wr = { .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND,
		                  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
		                  .wr.ud = { ah, 0xFFFFFF, g->qkey } };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	uint64_t begin = bench_now();

	errno = ibv_post_send(h->qp[0], &wr, &bad);
	bench_must(!errno, "ibv_post_send");
	begin = bench_now() - begin;
	if (ibv_poll_cq(h->send_cq, 1, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		errx(EXIT_FAILURE, "a send does not complete");
	return (double)begin;
}

/* Takes what has come to the host: how many messages. */
static unsigned take(struct host *h)
{
	struct ibv_wc wc[DEPTH];
	unsigned arrived = 0;
	int n;

	while ((n = ibv_poll_cq(h->cq, DEPTH, wc)) > 0) {
		for (int i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS)
				errx(EXIT_FAILURE, "a receive failed: %s",
				     ibv_wc_status_str(wc[i].status));
			h->posted[wc[i].wr_id]--;
		}
		arrived += (unsigned)n;
	}
	return arrived;
}

static unsigned long take_all(void)
{
	unsigned long arrived = 0;

	for (unsigned i = 0; i < all.n_hosts; i++)
		arrived += take(&all.host[i]);
	return arrived;
}

static void send_to(unsigned g)
{
	struct host *from = &all.host[0];
	struct ibv_ah *ah;
	unsigned long arrived = 0;
	double ns[ROUNDS];

	if (g >= all.n_groups)
		errx(2, "there is no group %u", g);
	ah = handle_of(from, &all.group[g]);
	post(from, ah, &all.group[g]); /* finds the flow */
	take_all();
	for (unsigned r = 0; r < ROUNDS; r++) {
		for (unsigned i = 0; i < all.n_hosts; i++)
			post_receives(&all.host[i]);
		ns[r] = post(from, ah, &all.group[g]);
		arrived += take_all();
	}
	ibv_destroy_ah(ah);
	bench_sort(ns, ROUNDS);
	printf("{\"measure\": \"send\", \"groups\": %u, \"qps\": %u, \"ns\": %.1f, "
	       "\"sent\": %d, \"arrived\": %lu}\n",
	       all.n_groups, all.n_qps, bench_quantile(ns, ROUNDS, 0.5), ROUNDS, arrived);
}

static void make_flows(unsigned senders)
{
	unsigned n = 0;

	for (unsigned g = 0; g < all.n_groups; g++) {
		for (unsigned i = 0; i < senders && i < all.n_hosts; i++, n++) {
			struct host *h = &all.host[(g + i * (all.n_hosts / senders)) % all.n_hosts];
			struct ibv_ah *ah = handle_of(h, &all.group[g]);

			post(h, ah, &all.group[g]);
			ibv_destroy_ah(ah);
		}
	}
	printf("{\"measure\": \"flows\", \"n\": %u}\n", n);
}

/* ---- who else asks ---- */

static void ask(pid_t daemon)
{
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct sockaddr_in at = address(FIRST_HOST + 1);
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	struct rdma_cm_id *id;
	uint64_t longest = 0;
	unsigned long n = 0;
	clockid_t clock;

	if (!events || rdma_create_id(events, &id, NULL, RDMA_PS_UDP) ||
	    rdma_bind_addr(id, (struct sockaddr *)&at))
		bench_fail("rdma_bind_addr");
	errno = clock_getcpuclockid(daemon, &clock);
	bench_must(!errno, "clock_getcpuclockid");
	printf("{\"ready\": \"ask\"}\n");
	for (; !poll(&in, 1, 0); n++) {
		uint64_t begin = bench_now(), work, took;
		struct timespec before, after;
		struct ibv_cq *cq;

		clock_gettime(clock, &before);
		cq = ibv_create_cq(id->verbs, 1, NULL, NULL, 0);
		clock_gettime(clock, &after);
		took = bench_now() - begin;
		bench_must(cq && !ibv_destroy_cq(cq), "ibv_create_cq");
		work = (uint64_t)((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec -
		                  before.tv_nsec);
		took = work < took ? work : took;
		longest = took > longest ? took : longest;
		usleep(200);
	}
	printf("{\"measure\": \"ask\", \"n\": %lu, \"ms\": %.2f}\n", n, (double)longest / 1e6);
}

/* ---- commands ---- */

static void obey(const char *line)
{
	unsigned n;

	if (sscanf(line, "flows %u", &n) == 1 && n)
		make_flows(n);
	else if (sscanf(line, "send %u", &n) == 1)
		send_to(n);
	else if (!strcmp(line, "leave\n"))
		each_group("leave", leave_group);
	else
		errx(2, "no command: %s", line);
}

int main(int argc, char **argv)
{
	char line[80];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "ask")) {
		ask(atoi(argv[2]));
		return 0;
	}
	if (argc == 4) {
		all.n_groups = (unsigned)atoi(argv[1]);
		all.n_hosts = (unsigned)atoi(argv[2]);
		all.n_qps = (unsigned)atoi(argv[3]);
	}
	if (!all.n_groups || !all.n_hosts || all.n_qps < all.n_hosts)
		errx(2, "how many groups, hosts, and queue pairs; or ask and a process");
	all.events = rdma_create_event_channel();
	all.group = calloc(all.n_groups, sizeof(*all.group));
	all.host = calloc(all.n_hosts, sizeof(*all.host));
	if (!all.events || !all.group || !all.host)
		bench_fail("no memory");
	for (unsigned i = 0; i < all.n_hosts; i++)
		open_host(&all.host[i], i);
	each_group("join", enter_group);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	return 0; /* all ends with the process */
}
