/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A responder takes its memory back while its peer writes there as fast as it can, or a thread of
 * its own does: once ibv_dereg_mr(), ibv_destroy_qp() or a reset has returned, no byte changes any
 * more. Nor does a reset look like anything else to the peer.
 * On RoCE, too.
 */
#include "peer_lab.h"

#define ROUNDS   8
#define BYTES    (1u << 18)
#define RECEIVES 4096
#define RESETS   20

/* Writes until it fails. */
static void *write_on(void *o)
{
	struct lab_peer **p = o;
	struct lab_work w = {
		.opcode = IBV_WR_RDMA_WRITE, .n = 1, .piece = { { 0, BYTES, 0 } }, .to = p[1]
	};
	struct ibv_wc wc = { 0 };

	while (!wc.status) {
		lab_peer_try_post(p[0], &w);
		lab_peer_try_sent(p[0], &wc);
	}
	return (void *)(uintptr_t)wc.status;
}

static void deregister(struct lab_peer *p)
{
	assert_int_equal(lab_peer_deregister(p), 0);
}

static void reset(struct lab_peer *p)
{
	lab_peer_to(p, IBV_QPS_RESET);
}

static const struct lab_peer_options options = { .bytes = BYTES, .timeout = 8, .retry_cnt = 1 };

/* A thread of p[0] writes to p[1] again and again, and has begun. */
static pthread_t begin_to_write(struct lab_peer *p[2])
{
	pthread_t thread;
	uint8_t first = 0;

	lab_peer_fill(p[0], 0, BYTES, 1);
	assert_int_equal(pthread_create(&thread, NULL, write_on, p), 0);
	while (first != lab_pattern(1, BYTES - 1))
		lab_peer_get(p[1], BYTES - 1, &first, 1);
	return thread;
}

/* The status of the writer's last request. */
static enum ibv_wc_status last_status(pthread_t thread)
{
	void *status;

	assert_int_equal(pthread_join(thread, &status), 0);
	return (enum ibv_wc_status)(uintptr_t)status;
}

/* @take_back is the only end of the writer's access. The status of the writer's last request. */
static enum ibv_wc_status writes_until(void (*take_back)(struct lab_peer *), void **state)
{
	struct lab_peer **p = lab_peers(&options, state);
	pthread_t thread = begin_to_write(p);
	enum ibv_wc_status status;

	take_back(p[1]);
	lab_peer_fill(p[1], 0, BYTES, 2);
	status = last_status(thread);
	lab_peer_expect(p[1], 0, BYTES, 2);
	lab_clean_up(NULL);
	return status;
}

LAB_CASE_BOTH(what_is_deregistered_does_not_change)
{
	for (int i = 0; i < ROUNDS; i++)
		assert_int_equal(writes_until(deregister, state), IBV_WC_REM_ACCESS_ERR);
}

/* A thread of the process itself reads there. */
LAB_CASE_BOTH(what_is_deregistered_is_not_sent)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct lab_peer **p = lab_peers(&options, state);
		pthread_t thread = begin_to_write(p);

		assert_int_equal(lab_peer_deregister(p[0]), 0);
		lab_peer_fill(p[0], 0, BYTES, 2);
		assert_int_equal(last_status(thread), IBV_WC_LOC_PROT_ERR);
		lab_peer_expect(p[1], 0, BYTES, 1);
		lab_clean_up(NULL);
	}
}

/* A thread that polls copies a short message, and stops in the middle: the page is out of reach. */
static struct {
	int stopped[2], go[2]; /* pipes */
} halt;

static void on_fault(int sig)
{
	char c = (char)sig;

	if (write(halt.stopped[1], &c, 1) != 1 || read(halt.go[0], &c, 1) != 1)
		abort();
}

static void *poll_one(void *o)
{
	struct lab_peer *p = o;
	struct ibv_wc wc;

	while (!ibv_poll_cq(p->here->recv_cq, 1, &wc))
		;
	return (void *)(uintptr_t)wc.status;
}

struct deregisterer {
	struct lab_peer *p;
	atomic_bool done;
};

static void *deregister_and_say(void *o)
{
	struct deregisterer *d = o;

	deregister(d->p);
	atomic_store(&d->done, true);
	return NULL;
}

/* The sender is another process, which would need a system call to place the message. */
LAB_CASE_ELSEWHERE(a_poll_that_copies_is_waited_for)
{
	const struct lab_peer_options far = { .far = true };
	const struct sigaction stop = { .sa_handler = on_fault };
	const struct lab_work w = { .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, 64, 0 } } };
	struct deregisterer d = { .done = false };
	struct sigaction before;
	pthread_t poller, thread;
	uintptr_t page;
	void *status;
	bool early;
	char c = 0;
	struct lab_peer **p = lab_peers(&far, state);

	assert_int_equal(pipe(halt.stopped) | pipe(halt.go), 0);
	page = ((uintptr_t)p[0]->here->memory + 2 * 4096) & ~(uintptr_t)4095;
	lab_peer_receive(p[0], 1, page - 32 - (uintptr_t)p[0]->here->memory, 64);
	lab_peer_post(p[1], &w);
	assert_int_equal(mprotect((void *)page, 4096, PROT_NONE), 0);
	assert_int_equal(sigaction(SIGSEGV, &stop, &before), 0);
	assert_int_equal(pthread_create(&poller, NULL, poll_one, p[0]), 0);
	assert_int_equal(read(halt.stopped[0], &c, 1), 1);
	d.p = p[0];
	assert_int_equal(pthread_create(&thread, NULL, deregister_and_say, &d), 0);
	usleep(50000); /* if it does not wait, it has come to its end */
	early = atomic_load(&d.done);
	assert_int_equal(mprotect((void *)page, 4096, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(write(halt.go[1], &c, 1), 1);
	pthread_join(poller, &status);
	pthread_join(thread, NULL);
	sigaction(SIGSEGV, &before, NULL);
	assert_false(early);
	assert_int_equal((uintptr_t)status, IBV_WC_SUCCESS);
	for (int i = 0; i < 2; i++) {
		close(halt.stopped[i]);
		close(halt.go[i]);
	}
}

LAB_CASE_BOTH(what_a_destroyed_queue_pair_let_in_does_not_change)
{
	for (int i = 0; i < ROUNDS; i++)
		assert_int_equal(writes_until(lab_peer_destroy_qp, state), IBV_WC_RETRY_EXC_ERR);
}

LAB_CASE_BOTH(what_a_queue_pair_let_in_before_its_reset_does_not_change)
{
	for (int i = 0; i < ROUNDS; i++)
		assert_int_equal(writes_until(reset, state), IBV_WC_RETRY_EXC_ERR);
}

/* Sends messages, no more than there are receives, until one fails. */
static void *send_on(void *o)
{
	struct lab_peer **p = o;
	const struct lab_work w = { .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, 64, 0 } } };
	struct ibv_wc wc = { 0 };

	for (unsigned i = 0; i < RECEIVES && !wc.status; i++) {
		lab_peer_post(p[0], &w);
		while (!lab_peer_try_sent(p[0], &wc))
			;
	}
	return (void *)(uintptr_t)wc.status;
}

/* In RESET nobody answers: not even that there is no receive, though there is none any more. */
LAB_CASE_BOTH(who_is_reset_has_not_run_out_of_receives)
{
	const struct lab_peer_options o = { .timeout = 8,
		                            .retry_cnt = 1,
		                            .cap = { .max_recv_wr = RECEIVES } };
	struct lab_peer **p;
	uint8_t first;

	for (int i = 0; i < RESETS; i++) {
		enum ibv_wc_status status;
		pthread_t thread;

		p = lab_peers(&o, state);
		lab_peer_fill(p[0], 0, 64, 1);
		for (unsigned k = 0; k < RECEIVES; k++)
			lab_peer_receive(p[1], k, 0, 64);
		assert_int_equal(pthread_create(&thread, NULL, send_on, p), 0);
		do
			lab_peer_get(p[1], 0, &first, 1);
		while (first != lab_pattern(1, 0));
		reset(p[1]);
		status = last_status(thread);
		assert_true(status == IBV_WC_SUCCESS || status == IBV_WC_RETRY_EXC_ERR);
		lab_clean_up(NULL);
	}
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
