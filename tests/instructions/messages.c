/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * messages K: sends K messages of 64 bytes, inline, to a multicast group, receives each
 * on a second queue pair of the same process, and posts its receive anew: one thread, so that what
 * it executes is the same every time. First message by message, then K more in lists of
 * BENCH_LIST, then K by ibv_wr calls and an extended CQ. count.sh counts the instructions of the
 * functions that are marked.
 */
#include <err.h>
#include <stdlib.h>

#include "common/endpoint.h"

#define DEPTH (2 * BENCH_LIST)

#define COUNTED __attribute__((noinline, noclone, no_icf))

static void expect(unsigned received, unsigned sent)
{
	if (received != sent)
		errx(EXIT_FAILURE, "%u of %u messages arrived", received, sent);
}

COUNTED static void counted_post_send(struct bench_endpoint *e)
{
	bench_endpoint_send(e, 1);
}

COUNTED static void counted_poll_cq(struct bench_endpoint *e)
{
	expect(bench_endpoint_poll(e, 1), 1);
}

COUNTED static void counted_post_recv(struct bench_endpoint *e)
{
	bench_endpoint_repost(e);
}

COUNTED static void counted_post_send_list(struct bench_endpoint *e)
{
	bench_endpoint_send(e, BENCH_LIST);
}

COUNTED static void counted_poll_cq_list(struct bench_endpoint *e)
{
	expect(bench_endpoint_poll(e, BENCH_LIST), BENCH_LIST);
}

COUNTED static void counted_post_recv_list(struct bench_endpoint *e)
{
	bench_endpoint_repost(e);
}

COUNTED static void counted_wr(struct bench_endpoint *e)
{
	bench_endpoint_send_ex(e, 1);
}

COUNTED static void counted_poll_ex(struct bench_endpoint *e)
{
	expect(bench_endpoint_poll_ex(e, 1), 1);
}

static void open_both(struct bench_endpoint *sender, struct bench_endpoint *receiver,
                      struct bench_plan plan)
{
	plan.depth = DEPTH;
	plan.bytes = 64;
	plan.address = "10.0.0.2";
	plan.receive = "239.255.0.1";
	bench_endpoint_open(receiver, &plan);
	plan.address = "10.0.0.1";
	plan.send = plan.receive;
	plan.receive = NULL;
	bench_endpoint_open(sender, &plan);
}

static void close_both(struct bench_endpoint *sender, struct bench_endpoint *receiver)
{
	bench_endpoint_close(sender);
	bench_endpoint_close(receiver);
}

int main(int argc, char **argv)
{
	struct bench_endpoint sender, receiver;
	long n = argc == 2 ? atol(argv[1]) : 0;

	if (n <= 0 || n % BENCH_LIST)
		errx(2, "how many messages? a multiple of %d", BENCH_LIST);
	open_both(&sender, &receiver, (struct bench_plan){ .extended = false });
	for (long i = 0; i < n; i++) {
		counted_post_send(&sender);
		counted_poll_cq(&receiver);
		counted_post_recv(&receiver);
	}
	for (long i = 0; i < n / BENCH_LIST; i++) {
		counted_post_send_list(&sender);
		counted_poll_cq_list(&receiver);
		counted_post_recv_list(&receiver);
	}
	close_both(&sender, &receiver);
	open_both(&sender, &receiver, (struct bench_plan){ .extended = true });
	for (long i = 0; i < n; i++) {
		counted_wr(&sender);
		counted_poll_ex(&receiver);
		bench_endpoint_repost(&receiver);
	}
	close_both(&sender, &receiver);
	return 0;
}
