/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process dies whose messages wait unread in many rings. Meanwhile the daemon serves others: it
 * does little other work between one's request and its reply. Its processor time is measured, not
 * the wall's, so that a busy machine does not matter.
 */
#include "verbs/lab.h"

#define RECEIVERS 64
#define SENDERS   128
#define RECEIVES  1024
#define BYTES     100
#define LIMIT_NS  10000000ull

static struct {
	uint32_t qpn[RECEIVERS];
	int pipe[2]; /* a byte a child that is ready */
	clockid_t clock;
} shared;

static void say_ready(void)
{
	assert_int_equal(write(shared.pipe[1], shared.qpn, sizeof(shared.qpn)), sizeof(shared.qpn));
	pause();
}

static void await_ready(void)
{
	assert_int_equal(read(shared.pipe[0], shared.qpn, sizeof(shared.qpn)), sizeof(shared.qpn));
}

static struct lab_end *end_of(int host, unsigned receives)
{
	const struct lab_options options = { .host = host,
		                             .cap = { .max_recv_wr = receives },
		                             .cqe = (int)receives };

	return lab_end_with(&options);
}

static void hold_rings(void)
{
	for (unsigned i = 0; i < RECEIVERS; i++) {
		struct lab_end *e = end_of(1, RECEIVES);

		for (unsigned k = 0; k < RECEIVES; k++)
			assert_int_equal(lab_try_post(e, 0), 0);
		shared.qpn[i] = e->qp->qp_num;
	}
	say_ready();
}

static void send_to_rings(void)
{
	struct lab_end *to = lab_end(1);

	for (unsigned i = 0; i < SENDERS; i++) {
		struct lab_end *e = end_of(2, 1);
		struct ibv_ah *ah = lab_ah_to(e, to);

		lab_send(e, ah, shared.qpn[i % RECEIVERS], NULL, BYTES);
	}
	say_ready();
}

static pid_t start(void (*what)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		what();
		_exit(1);
	}
	await_ready();
	return pid;
}

static uint64_t daemon_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(shared.clock, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The work that the daemon does at most until it replies to a request, while @qps are left. */
static uint64_t longest_request(struct ibv_context *context, unsigned qps)
{
	uint64_t longest = 0;

	do {
		for (unsigned i = 0; i < 200; i++) {
			uint64_t ns = daemon_ns();
			struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);

			ns = daemon_ns() - ns;
			assert_non_null(cq);
			assert_int_equal(ibv_destroy_cq(cq), 0);
			longest = ns > longest ? ns : longest;
		}
	} while (lab_status("qps") != qps);
	return longest;
}

LAB_CASE(others_are_served_while_the_daemon_cleans_up)
{
	struct ibv_context *context;
	pid_t receivers, senders;

	receivers = start(hold_rings);
	senders = start(send_to_rings);
	assert_int_equal(clock_getcpuclockid((pid_t)lab_status("pid"), &shared.clock), 0);
	context = lab_open(3);
	kill(senders, SIGKILL);
	assert_true(longest_request(context, RECEIVERS) < LIMIT_NS);
	waitpid(senders, NULL, 0);
	kill(receivers, SIGKILL);
	assert_true(longest_request(context, 0) < LIMIT_NS);
	waitpid(receivers, NULL, 0);
}

static int make_pipe(void **state)
{
	(void)state;
	return pipe(shared.pipe);
}

int main(void)
{
	return harness_run(make_pipe, NULL);
}
