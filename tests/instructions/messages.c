/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * messages K: sends K messages of 64 bytes, inline, to a multicast group, receives each
 * on a second queue pair of the same process, and posts its receive anew: one thread, so that what
 * it executes is the same every time. count.sh counts the instructions of the three functions that
 * are marked.
 */
#include <err.h>
#include <stdlib.h>

#include "common/endpoint.h"

#define GROUP "239.255.0.1"
#define DEPTH (2 * BENCH_LIST)

#define COUNTED __attribute__((noinline, noclone))

COUNTED static void counted_post_send(struct bench_endpoint *e)
{
	bench_endpoint_send(e, 1);
}

COUNTED static void counted_poll_cq(struct bench_endpoint *e)
{
	if (bench_endpoint_poll(e, 1) != 1)
		errx(EXIT_FAILURE, "a message did not arrive");
}

COUNTED static void counted_post_recv(struct bench_endpoint *e)
{
	bench_endpoint_repost(e);
}

int main(int argc, char **argv)
{
	struct bench_endpoint sender, receiver;
	long n = argc == 2 ? atol(argv[1]) : 0;

	if (n <= 0)
		errx(2, "how many messages?");
	bench_endpoint_open(&receiver, &(struct bench_plan){ .address = "10.0.0.2",
	                                                     .receive = GROUP,
	                                                     .depth = DEPTH,
	                                                     .bytes = 64 });
	bench_endpoint_open(&sender, &(struct bench_plan){ .address = "10.0.0.1",
	                                                   .send = GROUP,
	                                                   .depth = DEPTH,
	                                                   .bytes = 64 });
	while (n--) {
		counted_post_send(&sender);
		counted_poll_cq(&receiver);
		counted_post_recv(&receiver);
	}
	bench_endpoint_close(&sender);
	bench_endpoint_close(&receiver);
	return 0;
}
