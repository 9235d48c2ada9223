/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures RC queue pairs between two processes on two hosts: RDMA WRITE, READ and atomics, from
 * ibv_post_send() to their completion, and SEND, half of there and back. Beside them, in turns,
 * their anchors: memcpy(), and process_vm_writev() and process_vm_readv() between the same two
 * places, with a byte that proves whose they are. Prints a line of JSON a sample; bench/run.py
 * calls it and judges.
 *
 * connected [--turns N] [--bytes N] [--shared] [--threaded]
 *
 * With --shared the regions are memory that was shared before they were registered, which cannot
 * be adopted: then the requests take system calls. With --threaded each process has a second
 * thread, which sleeps: its memory is adopted only if the process may hold what others write. Then
 * lists are measured as well, beside one system call for the same pieces; no two of these are
 * neighbours, which would be faster.
 */
#include "common/rc.h"

#include <getopt.h>
#include <pthread.h>
#include <sys/uio.h>

#include <infiniband/verbs.h>

#include "common/pair.h"
#include "common/util.h"

#define SAMPLES  64
#define STRETCH  200000.0 /* ns that one sample lasts, about */
#define RECEIVES 8
#define LIST     32
#define GUARD    4096

/* In memory that both sides see. */
struct told {
	struct bench_rc_told rc;
	_Atomic uint64_t guard[2]; /* of either side */
};

struct plan {
	unsigned turns;
	uint32_t bytes;
	bool is_shared, is_threaded;
	struct told *told;
};

/* The first half of the region is what peers write to and read from. */
struct side {
	struct bench_rc rc;
	const struct plan *plan;
	struct bench_pair *pair;
	int number;
	char *half; /* the other half, to send from */
	size_t room;
	/* used again and again: to clear one takes a good part of the time of a short request */
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};

static void open_side(struct side *s)
{
	const size_t list = s->plan->is_threaded ? 2ul * LIST * s->plan->bytes : 0;
	const size_t least = list < 4096 ? 4096 : list;

	s->room = s->plan->bytes < least ? least : s->plan->bytes;
	/* before the other side can see that this one is open */
	atomic_store_explicit(&s->plan->told->guard[s->number], (uintptr_t)bench_alloc(GUARD, 0),
	                      memory_order_relaxed);
	bench_rc_open(&s->rc, &s->plan->told->rc, s->number,
	              &(struct bench_rc_plan){ .bytes = 2 * s->room,
	                                       .depth = LIST,
	                                       .is_shared = s->plan->is_shared });
	bench_rc_connect(&s->rc);
	s->half = s->rc.memory + s->room;
}

/* ---- what is measured: once ---- */

static void take(struct ibv_cq *cq)
{
	while (!bench_rc_poll(cq, 1))
		;
}

static void post(struct side *s, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	struct ibv_send_wr *wr = &s->wr, *bad;

	s->sge = (struct ibv_sge){ .addr = (uintptr_t)s->half,
		                   .length = bytes,
		                   .lkey = s->rc.mr->lkey };
	wr->sg_list = &s->sge;
	wr->num_sge = 1;
	wr->opcode = opcode;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = s->rc.peer->memory;
		wr->wr.atomic.rkey = s->rc.peer->rkey;
		wr->wr.atomic.compare_add = 1;
	} else {
		wr->wr.rdma.remote_addr = s->rc.peer->memory;
		wr->wr.rdma.rkey = s->rc.peer->rkey;
	}
	bench_must(!ibv_post_send(s->rc.qp, wr, &bad), "ibv_post_send");
}

static void request(struct side *s, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	post(s, opcode, bytes);
	take(s->rc.send_cq);
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

/*
 * One call for @n pieces, behind the first one of @here and @there, which this fills in: a byte of
 * the other side's guard. In place of that a program has a page where nobody else has one: then the
 * call copies nothing if the number is that of another process by now. Without it nobody could rely
 * on the copy.
 */
static void call(struct side *s, struct iovec *here, struct iovec *there, unsigned n, bool is_write)
{
	const uint64_t guard =
	        atomic_load_explicit(&s->plan->told->guard[!s->number], memory_order_relaxed);
	const ssize_t all = 1 + (ssize_t)n * s->plan->bytes;
	char byte = 0;
	ssize_t copied;

	here[0] = (struct iovec){ &byte, 1 };
	there[0] = (struct iovec){ (void *)(uintptr_t)guard, 1 };
	copied = is_write ? process_vm_writev(s->rc.peer->pid, here, n + 1, there, n + 1, 0)
	                  : process_vm_readv(s->rc.peer->pid, here, n + 1, there, n + 1, 0);
	bench_must(copied == all, "process_vm_writev");
}

static void raw(struct side *s, bool is_write)
{
	struct iovec here[2], there[2];

	here[1] = (struct iovec){ s->half, s->plan->bytes };
	there[1] = (struct iovec){ (void *)(uintptr_t)s->rc.peer->memory, s->plan->bytes };
	call(s, here, there, 1, is_write);
}

static void raw_write(struct side *s)
{
	raw(s, true);
}

static void raw_read(struct side *s)
{
	raw(s, false);
}

/* ---- likewise, in lists: piece i is 2 i times its length from the beginning ---- */

static void take_list(struct ibv_cq *cq)
{
	for (int n = 0; n < LIST;)
		n += bench_rc_poll(cq, LIST - n);
}

static void request_list(struct side *s, enum ibv_wr_opcode opcode)
{
	const uint32_t bytes = s->plan->bytes;
	struct ibv_send_wr wr[LIST] = { 0 }, *bad;
	struct ibv_sge sge[LIST];

	for (uint64_t i = 0; i < LIST; i++) {
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)s->half + 2 * i * bytes,
			                   .length = bytes,
			                   .lkey = s->rc.mr->lkey };
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
		wr[i].opcode = opcode;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].wr.rdma.remote_addr = s->rc.peer->memory + 2 * i * bytes;
		wr[i].wr.rdma.rkey = s->rc.peer->rkey;
		wr[i].next = i + 1 < LIST ? &wr[i + 1] : NULL;
	}
	bench_must(!ibv_post_send(s->rc.qp, wr, &bad), "ibv_post_send");
	take_list(s->rc.send_cq);
}

static void write_list(struct side *s)
{
	request_list(s, IBV_WR_RDMA_WRITE);
}

static void read_list(struct side *s)
{
	request_list(s, IBV_WR_RDMA_READ);
}

static void raw_list(struct side *s, bool is_write)
{
	const uint32_t bytes = s->plan->bytes;
	struct iovec here[LIST + 1], there[LIST + 1];

	for (uint64_t i = 0; i < LIST; i++) {
		const uint64_t at = 2 * i * bytes;

		here[i + 1] = (struct iovec){ s->half + at, bytes };
		there[i + 1] =
		        (struct iovec){ (void *)(uintptr_t)(s->rc.peer->memory + at), bytes };
	}
	call(s, here, there, LIST, is_write);
}

static void raw_write_list(struct side *s)
{
	raw_list(s, true);
}

static void raw_read_list(struct side *s)
{
	raw_list(s, false);
}

static void copy(struct side *s)
{
	memcpy(s->rc.memory, s->half, s->plan->bytes);
	__asm__ volatile("" : : "r"(s->rc.memory) : "memory");
}

static const struct {
	const char *name;
	void (*once)(struct side *s);
} operations[] = {
	{ "memcpy", copy },       { "raw-write", raw_write }, { "write", rdma_write },
	{ "raw-read", raw_read }, { "read", rdma_read },      { "fetch-add", fetch_add },
};

/* With --threaded only. Their figures are for one request. */
static const struct {
	const char *name;
	void (*once)(struct side *s);
} lists[] = {
	{ "raw-write-list", raw_write_list },
	{ "write-list", write_list },
	{ "raw-read-list", raw_read_list },
	{ "read-list", read_list },
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
	struct ibv_sge sge = { .addr = (uintptr_t)s->rc.memory,
		               .length = (uint32_t)s->room,
		               .lkey = s->rc.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	bench_must(!ibv_post_recv(s->rc.qp, &wr, &bad), "ibv_post_recv");
}

/* Nanoseconds of a SEND, one way, on side 0. Both sides call it. */
static double measure_send(struct side *s)
{
	const unsigned n = s->plan->bytes > 65536 ? 200 : 2000;
	uint64_t t;

	bench_pair_meet(s->pair, s->number);
	t = bench_now();
	for (unsigned i = 0; i < n; i++) {
		if (!s->number)
			post(s, IBV_WR_SEND, s->plan->bytes);
		take(s->rc.recv_cq);
		post_receive(s);
		if (s->number)
			post(s, IBV_WR_SEND, s->plan->bytes);
		take(s->rc.send_cq);
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
                        void (*once)(struct side *s), unsigned requests)
{
	uint64_t interrupted;
	double line[2], ns = 0;

	line[0] = bench_pair_line(s->pair, s->number);
	interrupted = bench_interrupted();
	if (!once)
		ns = measure_send(s);
	else if (!s->number)
		ns = measure(s, once) / requests;
	interrupted = bench_interrupted() - interrupted;
	line[1] = bench_pair_line(s->pair, s->number);
	print(s, turn, what, ns, line, interrupted);
}

static void *sleep_on(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void start_sleeper(void)
{
	pthread_t thread;

	bench_must(!pthread_create(&thread, NULL, sleep_on, NULL), "pthread_create");
	pthread_detach(thread);
}

/* Receives of the last exchange remain: they are dropped with the queue pair's life. */
static void run(struct bench_pair *pair, int number, void *arg)
{
	struct side s = { .plan = arg, .pair = pair, .number = number };

	if (s.plan->is_threaded)
		start_sleeper();
	open_side(&s);
	for (int i = 0; i < RECEIVES; i++)
		post_receive(&s);
	/* turn 0 is not printed: memory is used for the first time */
	for (unsigned turn = 0; turn <= s.plan->turns; turn++) {
		for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
			measure_one(&s, turn, operations[i].name, operations[i].once, 1);
		for (size_t i = 0; s.plan->is_threaded && i < sizeof(lists) / sizeof(lists[0]); i++)
			measure_one(&s, turn, lists[i].name, lists[i].once, LIST);
		measure_one(&s, turn, "send", NULL, 1);
	}
	bench_pair_meet(pair, number);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "turns", required_argument, NULL, 't' },
		                                 { "bytes", required_argument, NULL, 'b' },
		                                 { "shared", no_argument, NULL, 's' },
		                                 { "threaded", no_argument, NULL, 'r' },
		                                 { NULL, 0, NULL, 0 } };
	struct plan plan = { .turns = 3, .bytes = 64 };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 't')
			plan.turns = (unsigned)atoi(optarg);
		else if (c == 'b')
			plan.bytes = (uint32_t)atoi(optarg);
		else if (c == 's')
			plan.is_shared = true;
		else if (c == 'r')
			plan.is_threaded = true;
		else
			return 2;
	}
	plan.told = bench_alloc(sizeof(*plan.told), 1);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* for process_vm_writev() itself */
	setvbuf(stdout, NULL, _IOLBF, 0);
	return bench_pair_run(bench_pair_new(), run, &plan);
}
