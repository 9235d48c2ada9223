/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * umbel-latency: how long a 64-byte multicast message takes from ibv_post_send() in
 * one process to the return of ibv_poll_cq() in another, one way: a ping-pong of two
 * processes on two hosts, each on its own processor, both polling. In turns with it
 * the floor: the same ping-pong with a bare cache line that they share.
 *
 * For the demo: half a second, three lines. `./run bench` measures all of it.
 */
#include "common/util.h"
#include "common/measure.h"

#define ROUNDS    100
#define EXCHANGES 5000 /* a round */

static void run(struct bench_pair *pair, int side, void *arg)
{
	double median[ROUNDS], p99[ROUNDS], line[ROUNDS];
	struct bench_end end = {
		.ops = &bench_verbs_ops,
		.spec = { .bytes = 64, .depth = 512, .address = { "10.0.0.1", "10.0.0.2" } },
		.side = side,
		.pair = pair,
	};
	struct bench_latency latency = { 0 };

	(void)arg;
	end.link = end.ops->open(NULL, &end.spec, side);
	for (int i = 0; i < ROUNDS; i++) {
		bench_measure_latency(&end, EXCHANGES, &latency);
		median[i] = latency.ns;
		p99[i] = latency.p99;
		line[i] = bench_pair_line(pair, side);
	}
	end.ops->close(end.link);
	if (side)
		return;
	bench_sort(median, ROUNDS);
	bench_sort(p99, ROUNDS);
	bench_sort(line, ROUNDS);
	printf("64-byte multicast, h1 to h2   median %4.0f ns   99th percentile %4.0f ns\n",
	       bench_quantile(median, ROUNDS, 0.5), bench_quantile(p99, ROUNDS, 0.5));
	printf("a bare cache line likewise    median %4.0f ns\n",
	       bench_quantile(line, ROUNDS, 0.5));
	printf("(of %d rounds of %d exchanges each; two processes that poll)\n", ROUNDS, EXCHANGES);
}

static const char help[] =
        "Usage: umbel run -- umbel-latency\n"
        "\n"
        "Measures how long a multicast message of 64 bytes takes from host h1 to host h2,\n"
        "and a bare cache line between the same two processors. It takes half a second.\n"
        "\n"
        "  -h, --help        this text\n"
        "      --version     the version\n";

int main(int argc, char **argv)
{
	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(help, stdout);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "--version")) {
		printf("umbel-latency %s\n", UMBEL_VERSION);
		return 0;
	}
	if (argc > 1) {
		fprintf(stderr, "umbel-latency takes no '%s'; see umbel-latency --help\n", argv[1]);
		return 2;
	}
	return bench_pair_run(bench_pair_new(), run, NULL);
}
