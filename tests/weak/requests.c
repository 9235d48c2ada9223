/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests on a weak fabric (docs/weak.md) that meet what may come in between: the queue pair
 * fails, ends, or has no way, the program forks, sleeps, or calls nothing, and there can be no
 * thread.
 */
#include "verbs/peer_lab.h"
#include "../deadline.h"

#define ROUNDS 40
#define MANY   32

/* The libraries call this one. */
static bool has_no_threads;

__attribute__((visibility("default"))) int
pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (has_no_threads)
		return EAGAIN;
	if (!create) {
		void *found = dlsym(RTLD_NEXT, "pthread_create");

		memcpy(&create, &found, sizeof(create));
	}
	return create(thread, attr, run, arg);
}

static struct lab_work write_of(struct lab_peer *p[2], unsigned i)
{
	return (struct lab_work){ .opcode = IBV_WR_RDMA_WRITE,
		                  .wr_id = i,
		                  .n = 1,
		                  .piece = { { i * 64, 64, 0 } },
		                  .to = p[1],
		                  .remote = i * 64 };
}

static void post_many(struct lab_peer *p[2])
{
	for (unsigned i = 0; i < MANY; i++) {
		struct lab_work w = write_of(p, i);

		lab_peer_post(p[0], &w);
	}
}

/* ---- threads ---- */

/* Writes, and looks at once. How many of them were late. */
static unsigned count_late(struct lab_peer *p[2])
{
	unsigned n_late = 0;

	for (unsigned i = 0; i < 8 * ROUNDS; i++) {
		struct lab_work w = write_of(p, i % MANY);
		struct ibv_wc wc;

		lab_peer_fill(p[0], 0, MANY * 64, i);
		lab_peer_post(p[0], &w);
		if (lab_peer_try_sent(p[0], &wc)) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			continue;
		}
		n_late++;
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
	}
	return n_late;
}

/* How often @text is in the file @fd. */
static unsigned count_said(int fd, const char *text)
{
	char said[4096] = "";
	unsigned n = 0;

	assert_true(pread(fd, said, sizeof(said) - 1, 0) >= 0);
	for (const char *at = said; (at = strstr(at, text)); at++)
		n++;
	return n;
}

/* The first of all, as the thread stays. */
LAB_CASE(without_a_thread_nothing_is_late_and_that_is_said)
{
	const int fd = memfd_create("said", 0), err = dup(2);
	struct lab_peer **p;

	assert_true(fd >= 0 && err >= 0 && dup2(fd, 2) == 2);
	has_no_threads = true;
	p = lab_peers(NULL, state);
	dup2(err, 2);
	assert_int_equal(count_late(p), 0);
	has_no_threads = false;
	assert_int_equal(count_said(fd, "not weak: it can have no thread"), 1);
	lab_clean_up(NULL);
	p = lab_peers(NULL, state);
	assert_true(count_late(p));
	close(fd);
	close(err);
}

/* ---- programs that do nothing ---- */

LAB_CASE(a_program_that_sleeps_is_woken)
{
	const struct lab_peer_options options = { .channel = true };
	struct lab_peer **p = lab_peers(&options, state);

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct lab_work w = write_of(p, i % MANY);

		lab_peer_arm(p[0]);
		lab_peer_post(p[0], &w);
		lab_peer_sleep(p[0]);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
	}
}

/* As ib_write_lat. */
LAB_CASE(a_program_that_looks_at_memory_sees_it_change)
{
	struct lab_peer **p = lab_peers(NULL, state);

	for (unsigned i = 0; i < MANY; i++) {
		volatile uint8_t *last = (volatile uint8_t *)p[1]->here->memory + i * 64 + 63;
		struct lab_work w = write_of(p, i);
		struct deadline deadline = { 0 };

		*last = 0;
		p[0]->here->memory[i * 64 + 63] = 1;
		lab_peer_post(p[0], &w);
		while (!*last)
			DEADLINE_LOOK(&deadline, "a WRITE, by a program that looks at memory only");
	}
	for (unsigned i = 0; i < MANY; i++)
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
}

LAB_CASE(a_child_has_a_fabric_of_its_own)
{
	pid_t pid;
	struct lab_peer **p = lab_peers(NULL, state);

	post_many(p);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct lab_peer **q = lab_peers(NULL, NULL);

		post_many(q);
		for (unsigned i = 0; i < MANY; i++)
			lab_peer_sent(q[0], IBV_WC_SUCCESS);
		_exit(0);
	}
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).wr_id, i);
	harness_expect_success(pid);
}

/* ---- receives ---- */

/* In a queue of four that is always nearly full; each message finds no receive at first. */
LAB_CASE(each_message_comes_once)
{
	const struct lab_peer_options o = { .cap = { .max_send_wr = 4 }, .rnr_retry = 7 };
	struct lab_peer **p = lab_peers(&o, state);

	for (uint32_t i = 0; i < 16 * MANY; i++) {
		struct lab_work w = write_of(p, 0);
		uint32_t got;

		w.opcode = IBV_WR_SEND;
		w.wr_id = i;
		w.piece[0].length = sizeof(i);
		w.unsignalled = i % 4 != 3;
		w.flags = IBV_SEND_INLINE;
		lab_peer_put(p[0], 0, &i, sizeof(i));
		lab_peer_post(p[0], &w);
		lab_peer_receive(p[1], i, 64, 64);
		lab_peer_received(p[1], IBV_WC_SUCCESS);
		lab_peer_get(p[1], 64, &got, sizeof(got));
		assert_int_equal(got, i);
		if (i % 4 == 3)
			assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).wr_id, i);
	}
}

/* Short messages to memory that is reached by system calls do not lie there before the poll. */
LAB_CASE_ELSEWHERE(an_atomic_operation_finds_what_is_not_polled)
{
	const struct lab_peer_options far = {
		.timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .far = true
	};
	struct lab_peer **p = lab_peers(&far, state);

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		struct lab_work send = { .n = 1, .opcode = IBV_WR_SEND, .piece = { { 0, 8, 0 } } };
		struct lab_work swap = { .n = 1,
			                 .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
			                 .piece = { { 64, 8, 0 } },
			                 .to = p[1],
			                 .compare_add = i,
			                 .swap = ROUNDS + i };
		uint64_t word = i;

		lab_peer_put(p[0], 0, &word, sizeof(word));
		lab_peer_receive(p[1], i, 0, sizeof(word));
		lab_peer_post(p[0], &send);
		lab_peer_post(p[0], &swap);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
		lab_peer_get(p[0], 64, &word, sizeof(word));
		assert_int_equal(word, i);
		lab_peer_received(p[1], IBV_WC_SUCCESS);
		lab_peer_get(p[1], 0, &word, sizeof(word));
		assert_int_equal(word, ROUNDS + i);
	}
}

/* ---- ends ---- */

/* Of a READ and of a WRITE that may overtake it: neither hides how long the other has waited. */
LAB_CASE(what_finds_no_way_fails_in_the_end)
{
	struct lab_peer_options options = { .timeout = 12, .retry_cnt = 1, .rnr_retry = 7 };
	struct lab_peer **p = lab_peers(&options, state);

	lab_link(2, false);
	for (unsigned i = 0; i < 4; i++) {
		struct lab_work w = write_of(p, i);

		if (i % 2 == 0)
			w.opcode = IBV_WR_RDMA_READ;
		lab_peer_post(p[0], &w);
	}
	assert_int_equal(lab_peer_sent(p[0], IBV_WC_RETRY_EXC_ERR).wr_id, 0);
	for (unsigned i = 1; i < 4; i++)
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_WR_FLUSH_ERR).wr_id, i);
	lab_link(2, true);
}

/* Completions in their order, successes first. How many there are of those. */
static unsigned expect_flushed(struct ibv_cq *cq, unsigned n)
{
	unsigned done = 0;

	for (unsigned i = 0; i < n; i++) {
		struct ibv_wc wc;

		lab_poll(cq, 1, &wc);
		assert_int_equal(wc.wr_id, i);
		if (wc.status == IBV_WC_SUCCESS && done == i)
			done++;
		else
			assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	lab_quiet(cq);
	return done;
}

LAB_CASE(err_flushes_what_is_not_done)
{
	unsigned done = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct lab_peer **p = lab_peers(NULL, state);

		post_many(p);
		lab_peer_to(p[0], IBV_QPS_ERR);
		done += expect_flushed(p[0]->here->send_cq, MANY);
		lab_clean_up(NULL);
	}
	assert_true(done < ROUNDS * MANY);
}

/* Requests go to two receivers, so that some overtake others. */
LAB_CASE(err_flushes_datagrams_that_are_not_done)
{
	unsigned done = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct lab_end *a = lab_end(1), *to[] = { lab_end(2), lab_end(3) };
		struct ibv_ah *ah[] = { lab_ah_to(a, to[0]), lab_ah_to(a, to[1]) };
		struct lab_request r;
		struct ibv_send_wr *bad;

		for (unsigned k = 0; k < MANY; k++) {
			lab_request(a, &r, ah[k % 2], to[k % 2]->qp->qp_num, "x", 1);
			r.wr.wr_id = k;
			assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), 0);
		}
		lab_to(a->qp, IBV_QPS_ERR);
		done += expect_flushed(a->send_cq, MANY);
		lab_clean_up(NULL);
	}
	assert_true(done < ROUNDS * MANY);
}

/* The third of them has a wrong key. */
LAB_CASE(nothing_leaves_behind_a_datagram_that_failed)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct lab_end *a = lab_end(1), *b = lab_end(2);
		struct ibv_ah *ah = lab_ah_to(a, b);
		struct ibv_send_wr *bad;
		struct lab_request r[8];
		struct ibv_wc wc[8];

		lab_post(b, 8);
		for (unsigned k = 0; k < 8; k++) {
			lab_request(a, &r[k], ah, b->qp->qp_num, "x", 1);
			r[k].wr.next = k < 7 ? &r[k + 1].wr : NULL;
		}
		r[2].sge.lkey = ~0u;
		assert_int_equal(ibv_post_send(a->qp, &r[0].wr, &bad), 0);
		lab_poll(a->send_cq, 8, wc);
		for (unsigned k = 0; k < 8; k++)
			assert_int_equal(wc[k].status, k < 2    ? IBV_WC_SUCCESS
			                               : k == 2 ? IBV_WC_LOC_PROT_ERR
			                                        : IBV_WC_WR_FLUSH_ERR);
		assert_true(ibv_poll_cq(b->cq, 8, wc) <= 2); /* or they were lost */
		lab_clean_up(NULL);
	}
}

/* And its memory is unmapped. */
LAB_CASE(a_queue_pair_ends_with_what_waits)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct lab_peer **p = lab_peers(NULL, state);

		post_many(p);
		if (i % 2)
			lab_peer_to(p[0], IBV_QPS_RESET);
		lab_clean_up(NULL);
	}
}

LAB_CASE(in_sqd_all_is_done)
{
	const struct ibv_qp_attr sqd = { .qp_state = IBV_QPS_SQD };

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct lab_peer **p = lab_peers(NULL, state);

		lab_peer_fill(p[0], 0, MANY * 64, i);
		post_many(p);
		assert_int_equal(lab_peer_modify(p[0], &sqd, IBV_QP_STATE), 0);
		lab_peer_expect(p[1], 0, MANY * 64, i);
		assert_int_equal(expect_flushed(p[0]->here->send_cq, MANY), MANY);
		lab_clean_up(NULL);
	}
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
