/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures many RC connections between two hosts on RoCEv2, beside one of them: a process on either
 * host, in the network namespaces a and b, which bench/wire.sh makes. The messages go by one
 * connection after the other, or all by the first one, in turns. SENDs there and back, one way; and
 * RDMA WRITEs in lists, one way. Prints a line of JSON a sample, and one that says what memory the
 * connections take; bench/run.py calls it and judges.
 *
 * wires CONNECTIONS [TURNS]
 */
#include "common/rc.h"

#include <infiniband/verbs.h>

#include "common/bare.h"
#include "common/pair.h"
#include "common/util.h"

#define MOST      16384 /* connections */
#define BYTES     64
#define LIST      32
#define RECEIVES  2
#define EACH      8 /* exchanges: in the first turn it is learnt that replies bring acknowledgements */
#define LISTS     4000
#define UNDER_WAY 8 /* lists */

struct told {
	uint32_t qpn[2][MOST], rkey[2];
	uint64_t memory[2];
};

struct side {
	struct bench_pair *pair;
	struct told *told;
	int number;
	unsigned n;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp **qp;
	char *memory;
	unsigned sends;   /* under way */
	double before_kb; /* memory of the process without connections */
};

static const char *const address[2] = { "192.0.2.1", "192.0.2.2" };

/* ---- opening ---- */

/* Of its own, in KB. */
static double memory_kb(void)
{
	unsigned long size, resident, shared;
	FILE *f = fopen("/proc/self/statm", "re");

	bench_must(f && fscanf(f, "%lu %lu %lu", &size, &resident, &shared) == 3,
	           "/proc/self/statm");
	fclose(f);
	return (double)(resident - shared) * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static void open_device(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

	s->context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	s->pd = s->context ? ibv_alloc_pd(s->context) : NULL;
	s->memory = bench_alloc(4096, 0);
	bench_must((s->mr = s->pd ? ibv_reg_mr(s->pd, s->memory, 4096, access) : NULL),
	           "opening the device");
	s->send_cq = ibv_create_cq(s->context, 4096, NULL, NULL, 0);
	s->recv_cq = ibv_create_cq(s->context, (int)s->n * RECEIVES, NULL, NULL, 0);
	bench_must(s->send_cq && s->recv_cq, "ibv_create_cq");
}

static void make_qps(struct side *s)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		                         .send_cq = s->send_cq,
		                         .recv_cq = s->recv_cq,
		                         .cap = { UNDER_WAY * LIST, RECEIVES, 1, 1, BYTES } };

	s->qp = bench_alloc(sizeof(struct ibv_qp *) * s->n, 0);
	for (unsigned i = 0; i < s->n; i++) {
		bench_must((s->qp[i] = ibv_create_qp(s->pd, &init)), "ibv_create_qp");
		s->told->qpn[s->number][i] = s->qp[i]->qp_num;
	}
	s->told->rkey[s->number] = s->mr->rkey;
	s->told->memory[s->number] = (uintptr_t)s->memory;
}

static void post_receive(struct side *s, uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, BYTES, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(s->qp[i], &wr, &bad);
	bench_must(!errno, "ibv_post_recv");
}

static void connect_qps(struct side *s)
{
	struct ibv_ah_attr path = { .port_num = 1, .is_global = 1 };

	path.grh = (struct ibv_global_route){ .dgid = bench_mapped_gid(address[!s->number]),
		                              .sgid_index = bench_find_gid(s->context,
		                                                           address[s->number]),
		                              .hop_limit = 64 };
	for (unsigned i = 0; i < s->n; i++) {
		bench_rc_bring_up(s->qp[i], s->told->qpn[!s->number][i], &path);
		for (int k = 0; k < RECEIVES; k++)
			post_receive(s, i);
	}
}

/* ---- there and back ---- */

static void take_sends(struct side *s)
{
	s->sends -= (unsigned)bench_rc_poll(s->send_cq, LIST);
}

static void send_one(struct side *s, uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, BYTES, s->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND,
		                  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	if (s->sends >= LIST) /* every reply may be there at once, and receive_one() never waits */
		take_sends(s);
	errno = ibv_post_send(s->qp[i], &wr, &bad);
	bench_must(!errno, "ibv_post_send");
	s->sends++;
}

static uint64_t receive_one(struct side *s)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(s->recv_cq, 1, &wc)))
		take_sends(s);
	if (n < 0 || wc.status)
		errx(EXIT_FAILURE, "a receive fails: %s", ibv_wc_status_str(wc.status));
	post_receive(s, wc.wr_id);
	return wc.wr_id;
}

/* Nanoseconds one way, by @n connections in turns, on side 0. */
static double exchange(struct side *s, unsigned n)
{
	const unsigned exchanges = EACH * s->n;
	uint64_t t;

	bench_pair_meet(s->pair, s->number);
	t = bench_now();
	for (unsigned i = 0; i < exchanges; i++) {
		if (!s->number)
			send_one(s, i % n);
		if (receive_one(s) != i % n)
			errx(EXIT_FAILURE, "a message comes by another connection");
		if (s->number)
			send_one(s, i % n);
	}
	t = bench_now() - t;
	while (s->sends)
		take_sends(s);
	bench_pair_meet(s->pair, s->number);
	return (double)t / exchanges / 2;
}

/* ---- lists ---- */

static void write_list(struct side *s, struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, BYTES, s->mr->lkey };
	struct ibv_send_wr wr[LIST], *bad;

	for (int i = 0; i < LIST; i++) {
		wr[i] = (struct ibv_send_wr){
			.next = i + 1 < LIST ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_INLINE | (i + 1 < LIST ? 0 : IBV_SEND_SIGNALED)
		};
		wr[i].wr.rdma.remote_addr = s->told->memory[!s->number] + (unsigned)i * BYTES;
		wr[i].wr.rdma.rkey = s->told->rkey[!s->number];
	}
	errno = ibv_post_send(qp, wr, &bad);
	bench_must(!errno, "ibv_post_send");
}

/* Nanoseconds a message, by @n connections in turns, on side 0; the other side only polls. */
static double write_lists(struct side *s, unsigned n)
{
	/* no other list is under way by then: the pair's own line of credit tells */
	_Atomic uint32_t *over = &s->pair->credit;
	unsigned posted = 0, done = 0;
	uint64_t t;

	atomic_store(over, 0);
	bench_pair_meet(s->pair, s->number);
	t = bench_now();
	while (s->number && !atomic_load_explicit(over, memory_order_relaxed))
		bench_rc_poll(s->recv_cq, 1);
	while (!s->number && done < LISTS) {
		while (posted < LISTS && posted - done < UNDER_WAY)
			write_list(s, s->qp[posted++ % n]);
		done += (unsigned)bench_rc_poll(s->send_cq, LIST);
	}
	t = bench_now() - t;
	atomic_store(over, 1);
	bench_pair_meet(s->pair, s->number);
	return (double)t / LISTS / LIST;
}

/* ---- all ---- */

static void measure(struct side *s, unsigned turn, const char *what,
                    double (*once)(struct side *s, unsigned n), unsigned n)
{
	double line[2], ns;
	uint64_t interrupted;

	line[0] = bench_pair_line(s->pair, s->number);
	interrupted = bench_interrupted();
	ns = once(s, n);
	interrupted = bench_interrupted() - interrupted;
	line[1] = bench_pair_line(s->pair, s->number);
	if (s->number || !turn)
		return;
	printf("{\"measure\": \"wires\", \"what\": \"%s\", \"connections\": %u, \"turn\": %u, "
	       "\"line\": [%.1f, %.1f], \"interrupted\": %u, \"ns\": %.2f}\n",
	       what, n, turn, line[0], line[1], (unsigned)interrupted, ns);
}

struct plan {
	unsigned n, turns;
	struct told *told;
};

static void run(struct bench_pair *pair, int number, void *arg)
{
	const struct plan *plan = arg;
	struct side s = { .pair = pair, .told = plan->told, .number = number, .n = plan->n };

	bench_enter(number ? "b" : "a");
	open_device(&s);
	s.before_kb = memory_kb();
	make_qps(&s);
	bench_pair_meet(pair, number);
	connect_qps(&s);
	bench_pair_meet(pair, number);
	/* turn 0 is not printed: each connection is used for the first time */
	for (unsigned turn = 0; turn <= plan->turns; turn++) {
		measure(&s, turn, "exchange", exchange, 1);
		measure(&s, turn, "exchange", exchange, s.n);
	}
	for (unsigned turn = 0; turn <= plan->turns; turn++) {
		measure(&s, turn, "lists", write_lists, 1);
		measure(&s, turn, "lists", write_lists, s.n);
	}
	if (!number)
		printf("{\"measure\": \"wires\", \"what\": \"memory\", \"connections\": %u, "
		       "\"kb\": %.2f}\n",
		       s.n, (memory_kb() - s.before_kb) / s.n);
	bench_pair_meet(pair, number);
}

int main(int argc, char **argv)
{
	struct plan plan = { .n = argc > 1 ? (unsigned)atoi(argv[1]) : 0,
		             .turns = argc > 2 ? (unsigned)atoi(argv[2]) : 2 };

	if (!plan.n || plan.n > MOST)
		errx(2, "usage: wires CONNECTIONS [TURNS]; at most %d connections", MOST);
	plan.told = bench_alloc(sizeof(*plan.told), 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return bench_pair_run(bench_pair_new(), run, &plan);
}
