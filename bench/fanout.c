/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures a message's cost to its sender by the number of receivers: queue pairs attached to one
 * group, all in one process or shared out over two. The sender posts a list, which is timed, while
 * the receivers sleep; then they take it and post anew, in turns on the second processor. Prints a
 * line of JSON a sample; bench/run.py calls it.
 *
 * fanout [--bytes N] [--qps N] [--processes 1|2] [--turns N] [--bare]
 *
 * --bare: not by verbs, but by bare rings (common/rings.h), of one process.
 */
#include "common/util.h"

#include <getopt.h>
#include <semaphore.h>

#include "common/endpoint.h"
#include "common/pair.h"
#include "common/rings.h"

#define DEPTH 64
#define LISTS 200 /* a sample */
#define GROUP "239.255.100.1"

/* The second process of receivers, which takes its turn by semaphores. */
struct other {
	sem_t begin, done;
};

struct plan {
	uint32_t bytes;
	unsigned qps, processes, turns;
	struct other *other;
	struct bench_rings *rings; /* NULL: by verbs */
};

struct receivers {
	struct bench_endpoint *e;
	unsigned n;
};

static struct receivers open_receivers(const struct plan *plan, unsigned process)
{
	struct receivers r = { .n = plan->qps / plan->processes };
	struct bench_plan p = { .address = process ? "10.0.0.3" : "10.0.0.2",
		                .receive = GROUP,
		                .depth = DEPTH,
		                .bytes = plan->bytes };

	if (!process)
		r.n = plan->qps - r.n * (plan->processes - 1);
	p.cqe = DEPTH * r.n; /* the first one's CQ is everybody's */
	bench_must((r.e = calloc(r.n, sizeof(*r.e))), "no memory");
	for (unsigned i = 0; i < r.n; i++) {
		p.cq = i ? r.e[0].cq : NULL;
		bench_endpoint_open(&r.e[i], &p);
	}
	return r;
}

/* Takes one list from each queue pair, and makes room for the next. */
static void take_list(struct receivers *r)
{
	unsigned left = BENCH_LIST * r->n;

	while (left)
		left -= bench_endpoint_poll(&r->e[0], left);
	for (unsigned i = 0; i < r->n; i++) {
		r->e[i].received = r->e[i].posted + BENCH_LIST;
		bench_endpoint_repost(&r->e[i]);
	}
}

static void run_other(const struct plan *plan)
{
	struct receivers r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bench_must(!bench_pin(1), "sched_setaffinity");
	r = open_receivers(plan, 1);
	sem_post(&plan->other->done);
	for (;;) {
		sem_wait(&plan->other->begin);
		take_list(&r);
		sem_post(&plan->other->done);
	}
}

static void send_list(const struct plan *plan, struct bench_endpoint *e)
{
	if (plan->rings)
		bench_rings_send(plan->rings, BENCH_LIST);
	else
		bench_endpoint_send(e, BENCH_LIST);
}

static double send_lists(struct bench_pair *pair, const struct plan *plan, struct bench_endpoint *e)
{
	double taken[LISTS];

	for (int i = 0; i < LISTS; i++) {
		uint64_t t = bench_ticks();

		send_list(plan, e);
		taken[i] = (double)(bench_ticks() - t) * bench_tick_ns() / BENCH_LIST;
		bench_pair_meet(pair, 0);
		bench_pair_meet(pair, 0);
	}
	bench_sort(taken, LISTS);
	return bench_quantile(taken, LISTS, 0.5);
}

static void take_lists(struct bench_pair *pair, struct receivers *r, const struct plan *plan)
{
	for (int i = 0; i < LISTS; i++) {
		bench_pair_meet(pair, 1);
		if (plan->rings)
			bench_rings_take(plan->rings, BENCH_LIST);
		else
			take_list(r);
		if (plan->processes > 1) {
			sem_post(&plan->other->begin);
			sem_wait(&plan->other->done);
		}
		bench_pair_meet(pair, 1);
	}
}

static void run_sender(struct bench_pair *pair, const struct plan *plan)
{
	struct bench_endpoint e;
	double line[2], ns;

	if (!plan->rings)
		bench_endpoint_open(&e, &(struct bench_plan){ .address = "10.0.0.1",
		                                              .send = GROUP,
		                                              .depth = DEPTH,
		                                              .bytes = plan->bytes });
	for (unsigned turn = 0; turn <= plan->turns; turn++) {
		line[0] = bench_pair_line(pair, 0);
		ns = send_lists(pair, plan, &e);
		line[1] = bench_pair_line(pair, 0);
		if (turn)
			printf("{\"measure\": \"%s\", \"bytes\": %u, \"qps\": %u, "
			       "\"processes\": %u, \"turn\": %u, \"line\": [%.1f, %.1f], "
			       "\"ns\": %.2f}\n",
			       plan->rings ? "bare fanout" : "fanout", plan->bytes, plan->qps,
			       plan->processes, turn, line[0], line[1], ns);
	}
	if (!plan->rings)
		bench_endpoint_close(&e);
}

static void run(struct bench_pair *pair, int side, void *arg)
{
	const struct plan *plan = arg;
	struct receivers r;

	if (side == 0) {
		bench_pair_meet(pair, 0);
		run_sender(pair, plan);
		return;
	}
	if (!plan->rings)
		r = open_receivers(plan, 0);
	bench_pair_meet(pair, 1);
	for (unsigned turn = 0; turn <= plan->turns; turn++) {
		bench_pair_line(pair, 1);
		take_lists(pair, &r, plan);
		bench_pair_line(pair, 1);
	}
}

static void parse(struct plan *plan, int argc, char **argv)
{
	bool bare = false;

	static const struct option options[] = { { "bytes", required_argument, NULL, 'b' },
		                                 { "qps", required_argument, NULL, 'q' },
		                                 { "processes", required_argument, NULL, 'p' },
		                                 { "turns", required_argument, NULL, 't' },
		                                 { "bare", no_argument, NULL, 'r' },
		                                 { NULL, 0, NULL, 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		unsigned n = optarg ? (unsigned)atoi(optarg) : 0;

		if (c == 'b')
			plan->bytes = n;
		else if (c == 'q')
			plan->qps = n;
		else if (c == 'p')
			plan->processes = n;
		else if (c == 't')
			plan->turns = n;
		else if (c == 'r')
			bare = true;
		else
			exit(2);
	}
	if (!plan->qps || !plan->processes || plan->processes > 2 || plan->qps < plan->processes)
		errx(2, "one or two processes, and a queue pair in each");
	if (bare && plan->processes > 1)
		errx(2, "bare rings are of one process");
	if (bare)
		plan->rings = bench_rings_new(plan->qps, plan->bytes, DEPTH);
}

int main(int argc, char **argv)
{
	struct plan plan = { .bytes = 64, .qps = 1, .processes = 1, .turns = 3 };
	struct bench_pair *pair;
	pid_t other = 0;

	parse(&plan, argc, argv);
	pair = bench_pair_new();
	plan.other = bench_alloc(sizeof(*plan.other), 1);
	sem_init(&plan.other->begin, 1, 0);
	sem_init(&plan.other->done, 1, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (plan.processes > 1) {
		other = fork();
		bench_must(other >= 0, "fork");
		if (other == 0)
			run_other(&plan);
		sem_wait(&plan.other->done);
	}
	return bench_pair_run(pair, run, &plan);
}
