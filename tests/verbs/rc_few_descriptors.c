/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process without a free descriptor does not fail a connection with a process whose memory it
 * reaches by a descriptor only (adversary.memory_ways: no other way is allowed): what it posts
 * waits, and is carried out when it has a free one again; by any of its threads.
 */
#include "peer_lab.h"

#define POLLS   2000
#define THREADS 4

/* From now on the process gets no descriptor. */
static void take_descriptors(struct rlimit *before)
{
	struct rlimit few;
	int next = dup(STDIN_FILENO);

	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
	few = (struct rlimit){ (rlim_t)next, before->rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(dup(STDIN_FILENO), -1);
}

static void give_descriptors(const struct rlimit *before)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, before), 0);
}

/* How often @p polled until it had a completion, which must be of a success; at most POLLS. */
static int poll_for_success(struct lab_peer *p)
{
	struct ibv_wc wc;
	int n = 0;

	while (n < POLLS && !lab_peer_try_sent(p, &wc))
		n++;
	if (n < POLLS)
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	return n;
}

LAB_CASE_ELSEWHERE(a_request_waits_for_a_descriptor)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		                                      IBV_WR_SEND };
	struct lab_peer_options o = { .far = true, .rnr_retry = 7 };

	for (unsigned i = 0; i < LAB_ARRAY(opcodes); i++) {
		struct rlimit before;
		struct lab_peer *p[2];
		struct lab_work w = { .opcode = opcodes[i], .n = 1, .piece = { { 0, 5000, 0 } } };
		const bool reads = opcodes[i] == IBV_WR_RDMA_READ;

		for (int k = 0; k < 2; k++) {
			o.host = k + 1;
			o.elsewhere = k;
			p[k] = lab_peer(&o);
		}
		lab_peer_fill(p[0], 0, 5000, 1);
		lab_peer_fill(p[1], 0, 5000, 2);
		take_descriptors(&before);
		lab_peer_connect(p[0], p[1]);
		lab_peer_connect(p[1], p[0]);
		lab_peer_receive(p[1], 0, 0, 5000);
		w.to = p[1];
		lab_peer_post(p[0], &w);
		if (poll_for_success(p[0]) < POLLS) {
			give_descriptors(&before); /* another way led there */
		} else {
			give_descriptors(&before);
			lab_peer_sent(p[0], IBV_WC_SUCCESS);
		}
		if (opcodes[i] == IBV_WR_SEND)
			lab_peer_received(p[1], IBV_WC_SUCCESS);
		lab_peer_expect(p[0], 0, 5000, reads ? 2 : 1);
		lab_peer_expect(p[1], 0, 5000, reads ? 2 : 1);
	}
}

/* ---- threads ---- */

static atomic_uint n_waiting; /* threads that have polled POLLS times, or have their completion */

struct reader {
	struct lab_peer *near, *far;
	pthread_t thread;
	struct ibv_wc wc;
};

static void *reads(void *arg)
{
	struct reader *r = arg;
	const struct lab_work w = {
		.opcode = IBV_WR_RDMA_READ, .n = 1, .piece = { { 0, 5000, 0 } }, .to = r->far
	};
	bool is_done = false;

	lab_peer_post(r->near, &w);
	for (int n = 0; !is_done && n < POLLS; n++)
		is_done = lab_peer_try_sent(r->near, &r->wc);
	atomic_fetch_add(&n_waiting, 1);
	while (!is_done)
		is_done = lab_peer_try_sent(r->near, &r->wc);
	return NULL;
}

/* All wait for the memory of the same process, and one descriptor serves them all. */
LAB_CASE_ELSEWHERE(threads_wait_for_the_same_descriptor)
{
	struct lab_peer_options o = { .host = 1, .rnr_retry = 7 }, other = {
		.host = 2, .rnr_retry = 7, .far = true, .elsewhere = true
	};
	struct reader reader[THREADS] = { { .near = NULL } };
	struct rlimit before;
	unsigned n;

	for (unsigned i = 0; i < THREADS; i++) {
		struct reader *r = &reader[i];

		o.neighbour = i ? reader[0].near : NULL;
		r->near = lab_peer(&o);
		r->far = i ? lab_peer_beside(reader[i - 1].far) : lab_peer(&other);
		lab_peer_fill(r->far, 0, 5000, 10 + i);
		lab_peer_connect(r->far, r->near);
	}
	n = harness_descriptors();
	take_descriptors(&before);
	for (unsigned i = 0; i < THREADS; i++) {
		lab_peer_connect(reader[i].near, reader[i].far);
		assert_int_equal(pthread_create(&reader[i].thread, NULL, reads, &reader[i]), 0);
	}
	while (atomic_load(&n_waiting) < THREADS)
		usleep(100);
	give_descriptors(&before);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(reader[i].thread, NULL), 0);
		assert_int_equal(reader[i].wc.status, IBV_WC_SUCCESS);
		lab_peer_expect(reader[i].near, 0, 5000, 10 + i);
	}
	assert_in_range(harness_descriptors(), n, n + 1);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
