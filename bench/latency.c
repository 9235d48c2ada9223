/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * umbel-latency: how long a 64-byte multicast message takes from ibv_post_send() in
 * one process to the return of ibv_poll_cq() in another, one way: a ping-pong of two
 * processes on two hosts, each on its own processor, both polling. In turns with it
 * the floor: the same ping-pong with a bare cache line that they share.
 *
 * For the demo: two seconds, three lines.
 */
#define _GNU_SOURCE
#include <err.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/endpoint.h"

#define BYTES     64
#define DEPTH     512
#define ROUNDS    200
#define EXCHANGES 500 /* a round */

static const struct bench_plan plans[2] = {
	{ "10.0.0.1", "239.255.0.1", "239.255.0.2", DEPTH, BYTES, 0 },
	{ "10.0.0.2", "239.255.0.2", "239.255.0.1", DEPTH, BYTES, 0 },
};

/* What the two processes share besides the fabric. */
struct shared {
	_Alignas(64) atomic_int joined;
	_Alignas(64) atomic_uint line;
};

static void message_round(struct bench_endpoint *e, int side)
{
	for (int i = 0; i < EXCHANGES; i++) {
		if (side == 0)
			bench_send(e, BYTES);
		bench_receive(e);
		if (side == 1)
			bench_send(e, BYTES);
	}
}

/* Whose turn it is says whether the line's value is odd. */
static void line_round(atomic_uint *line, int side)
{
	for (int i = 0; i < EXCHANGES; i++) {
		while ((atomic_load_explicit(line, memory_order_acquire) & 1) != (unsigned)side)
			;
		atomic_fetch_add_explicit(line, 1, memory_order_release);
	}
}

/* Both sides of the measurement; times (one way, in ns) are the first side's. */
static void run_side(struct shared *shared, int side, double *message, double *line)
{
	struct bench_endpoint e;

	if (bench_pin(side))
		bench_fail("two processors are needed: cannot pin to the second");
	bench_endpoint_open(&e, &plans[side]);
	atomic_fetch_add(&shared->joined, 1);
	while (atomic_load(&shared->joined) < 2)
		;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t t0 = bench_now(), t1, t2;

		message_round(&e, side);
		t1 = bench_now();
		line_round(&shared->line, side);
		t2 = bench_now();
		message[i] = (double)(t1 - t0) / EXCHANGES / 2;
		line[i] = (double)(t2 - t1) / EXCHANGES / 2;
	}
	bench_endpoint_close(&e);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	static double message[ROUNDS], line[ROUNDS];
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t other;

	if (shared == MAP_FAILED)
		bench_fail("no memory");
	other = fork();
	if (other < 0)
		bench_fail("fork");
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_side(shared, 1, message, line);
		return 0;
	}
	run_side(shared, 0, message, line);
	if (waitpid(other, &status, 0) < 0 || status)
		errx(EXIT_FAILURE, "the other side failed");
	qsort(message, ROUNDS, sizeof(*message), by_value);
	qsort(line, ROUNDS, sizeof(*line), by_value);
	printf("64-byte multicast, h1 to h2   median %4.0f ns   99th percentile %4.0f ns\n",
	       message[ROUNDS / 2], message[ROUNDS * 99 / 100]);
	printf("a bare cache line likewise    median %4.0f ns   99th percentile %4.0f ns\n",
	       line[ROUNDS / 2], line[ROUNDS * 99 / 100]);
	printf("(of %d rounds of %d exchanges each; two processes that poll)\n", ROUNDS, EXCHANGES);
	return 0;
}
