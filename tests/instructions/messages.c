/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * messages K: sends K messages of 64 bytes, inline, to a multicast group, receives each
 * on a second queue pair of the same process, and posts its receive anew: one thread, so that what
 * it executes is the same every time. First message by message, then K more in lists of
 * BENCH_LIST, then K by ibv_wr calls and an extended CQ. Likewise K messages of 64 bytes between
 * two RC queue pairs, by SEND and by RDMA WRITE, and by SEND to a shared receive queue. count.sh
 * counts the instructions of the functions that are marked.
 */
#include "must.h"
#include "common/endpoint.h"
#include "common/link.h"

#define DEPTH (2 * BENCH_LIST)

#define COUNTED __attribute__((noinline, noclone, no_icf))

static void expect(unsigned received, unsigned sent)
{
	must(received == sent, "%u of %u messages arrived", received, sent);
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

COUNTED static void counted_rc_write(void *from)
{
	bench_rc_write_ops.send(from, 1);
}

COUNTED static void counted_rc_write_list(void *from)
{
	bench_rc_write_ops.send(from, BENCH_LIST);
}

COUNTED static void counted_rc_send(void *from)
{
	bench_rc_send_ops.send(from, 1);
}

COUNTED static void counted_rc_send_list(void *from)
{
	bench_rc_send_ops.send(from, BENCH_LIST);
}

COUNTED static void counted_rc_poll(void *to)
{
	expect(bench_rc_send_ops.receive(to, 1), 1);
}

COUNTED static void counted_rc_poll_list(void *to)
{
	expect(bench_rc_send_ops.receive(to, BENCH_LIST), BENCH_LIST);
}

COUNTED static void counted_rc_recv(void *to)
{
	bench_rc_send_ops.settle(to);
}

COUNTED static void counted_rc_recv_list(void *to)
{
	bench_rc_send_ops.settle(to);
}

COUNTED static void counted_srq_send(void *from)
{
	bench_rc_send_ops.send(from, 1);
}

COUNTED static void counted_srq_poll(void *to)
{
	expect(bench_rc_send_ops.receive(to, 1), 1);
}

COUNTED static void counted_srq_recv(void *to)
{
	bench_rc_send_ops.settle(to);
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

/* ---- RC ---- */

struct rc_end {
	const struct bench_link_ops *ops;
	struct bench_spec spec;
	void *shared, *link;
	int side;
};

/* Returns when the other side is open, too. */
static void *open_end(void *arg)
{
	struct rc_end *e = arg;

	e->link = e->ops->open(e->shared, &e->spec, e->side);
	return NULL;
}

static void open_ends(struct rc_end end[2], const struct bench_link_ops *ops, bool has_srq)
{
	pthread_t thread;

	end[0] = (struct rc_end){ .ops = ops,
		                  .spec = { .bytes = 64, .depth = DEPTH, .has_srq = has_srq } };
	end[0].shared = ops->prepare(&end[0].spec);
	end[1] = end[0];
	end[1].side = 1;
	must(!pthread_create(&thread, NULL, open_end, &end[1]), "no thread");
	open_end(&end[0]);
	pthread_join(thread, NULL);
}

static void close_ends(struct rc_end end[2])
{
	end[0].ops->close(end[0].link);
	end[1].ops->close(end[1].link);
}

static void send_by_rc(long n)
{
	struct rc_end end[2];

	open_ends(end, &bench_rc_send_ops, false);
	for (long i = 0; i < n; i++) {
		counted_rc_send(end[0].link);
		counted_rc_poll(end[1].link);
		counted_rc_recv(end[1].link);
	}
	for (long i = 0; i < n / BENCH_LIST; i++) {
		counted_rc_send_list(end[0].link);
		counted_rc_poll_list(end[1].link);
		counted_rc_recv_list(end[1].link);
	}
	close_ends(end);
}

static void send_to_srq(long n)
{
	struct rc_end end[2];

	open_ends(end, &bench_rc_send_ops, true);
	for (long i = 0; i < n; i++) {
		counted_srq_send(end[0].link);
		counted_srq_poll(end[1].link);
		counted_srq_recv(end[1].link);
	}
	close_ends(end);
}

static void write_by_rc(long n)
{
	struct rc_end end[2];

	open_ends(end, &bench_rc_write_ops, false);
	for (long i = 0; i < n; i++) {
		counted_rc_write(end[0].link);
		expect(bench_rc_write_ops.receive(end[1].link, 1), 1);
	}
	for (long i = 0; i < n / BENCH_LIST; i++) {
		counted_rc_write_list(end[0].link);
		expect(bench_rc_write_ops.receive(end[1].link, BENCH_LIST), BENCH_LIST);
	}
	close_ends(end);
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
	send_by_rc(n);
	send_to_srq(n);
	write_by_rc(n);
	return 0;
}
