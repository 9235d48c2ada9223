/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A message that has come lies in its receive's memory, though nobody has polled yet: what its
 * sender asks for next finds it there, or is not undone by it, and the memory may go. "Far": other
 * processes reach the memory by system calls only.
 */
#include "adopted_lab.h"

#define WORD   8u
#define AFTER  20000 /* what is sent */
#define REGION 20480

static const uint32_t sizes[] = { 1, 64, 65, 4096, 4097, 16384, 16385 };

static struct lab_peer_options options;

static int set_far(void **state)
{
	(void)state;
	options.far = true;
	return 0;
}

static int clean_up_far(void **state)
{
	options.far = false;
	return lab_clean_up(state);
}

/* In all three ways. */
#define CASE_THREE(name)                                                   \
	CASE_AS(name, harness_add(#name, name, NULL, lab_clean_up, NULL);  \
	        harness_add(#name "__elsewhere", name, NULL, lab_clean_up, \
	                    (void *)(uintptr_t)lab_open);                  \
	        harness_add(#name "__far", name, set_far, clean_up_far,    \
	                    (void *)(uintptr_t)lab_open))

static struct lab_work send_of(uint64_t at, uint32_t bytes)
{
	return (struct lab_work){ .opcode = IBV_WR_SEND, .n = 1, .piece = { { at, bytes, 0 } } };
}

static struct lab_work rdma_of(enum ibv_wr_opcode opcode, uint64_t at, uint32_t bytes,
                               struct lab_peer *to)
{
	return (struct lab_work){
		.opcode = opcode, .n = 1, .piece = { { at, bytes, 0 } }, .to = to
	};
}

/* p[0] sends @bytes of pattern 1 to the beginning of p[1]'s memory, which has pattern 2. */
static void send_first(struct lab_peer *p[2], uint32_t bytes)
{
	struct lab_work w = send_of(0, bytes);

	lab_peer_fill(p[0], 0, bytes, 1);
	lab_peer_fill(p[1], 0, bytes, 2);
	lab_peer_receive(p[1], 1, 0, bytes);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
}

static void expect_receive(struct lab_peer *p, uint32_t bytes)
{
	assert_int_equal(lab_peer_received(p, IBV_WC_SUCCESS).byte_len, bytes);
}

/* ---- order ---- */

CASE_THREE(a_read_finds_what_was_sent)
{
	struct lab_peer **p = lab_peers(&options, state);

	for (size_t i = 0; i < LAB_ARRAY(sizes); i++) {
		struct lab_work read = rdma_of(IBV_WR_RDMA_READ, AFTER, sizes[i], p[1]);

		send_first(p, sizes[i]);
		lab_peer_do(p[0], &read, IBV_WC_SUCCESS);
		lab_peer_expect(p[0], AFTER, sizes[i], 1);
		expect_receive(p[1], sizes[i]);
		lab_peer_expect(p[1], 0, sizes[i], 1);
	}
}

CASE_THREE(what_is_written_later_stays)
{
	struct lab_peer **p = lab_peers(&options, state);

	for (size_t i = 0; i < LAB_ARRAY(sizes); i++) {
		struct lab_work write = rdma_of(IBV_WR_RDMA_WRITE, AFTER, sizes[i], p[1]);

		send_first(p, sizes[i]);
		lab_peer_fill(p[0], AFTER, sizes[i], 3);
		lab_peer_do(p[0], &write, IBV_WC_SUCCESS);
		expect_receive(p[1], sizes[i]);
		lab_peer_expect(p[1], 0, sizes[i], 3);
	}
}

CASE_THREE(an_atomic_finds_what_was_sent)
{
	uint64_t word = 5;
	struct lab_peer **p = lab_peers(&options, state);

	for (int i = 0; i < 3; i++) {
		struct lab_work w = send_of(0, WORD);
		struct lab_work add = rdma_of(IBV_WR_ATOMIC_FETCH_AND_ADD, 8192, WORD, p[1]);

		add.compare_add = 2;
		word = 5;
		lab_peer_put(p[0], 0, &word, WORD);
		lab_peer_receive(p[1], 1, 0, WORD);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		lab_peer_do(p[0], &add, IBV_WC_SUCCESS);
		lab_peer_get(p[0], 8192, &word, WORD);
		assert_int_equal(word, 5);
		expect_receive(p[1], WORD);
		lab_peer_get(p[1], 0, &word, WORD);
		assert_int_equal(word, 7);
	}
}

/* Not all messages are polled before the next request. */
CASE_THREE(what_was_sent_before_and_behind_is_in_order)
{
	const uint32_t n = 20;
	struct lab_peer **p = lab_peers(&options, state);

	lab_peer_fill(p[0], 0, 200 * n, 1);
	lab_peer_fill(p[0], 8192, 200 * n, 3);
	for (uint32_t i = 0; i < n; i++) {
		struct lab_work w = send_of(200ull * i, i % 2 ? 200 : 50);
		struct lab_work write = rdma_of(IBV_WR_RDMA_WRITE, 8192 + 200ull * i, 25, p[1]);

		lab_peer_receive(p[1], i, 200ull * i, 200);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		write.remote = 200ull * i;
		if (i % 3 == 0)
			lab_peer_do(p[0], &write, IBV_WC_SUCCESS);
		if (i % 4 == 3)
			for (int k = 0; k < 2; k++)
				lab_peer_received(p[1], IBV_WC_SUCCESS);
	}
	for (uint32_t k = 0; k < n / 2; k++)
		lab_peer_received(p[1], IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < n; i++) {
		uint8_t got[50];

		lab_peer_get(p[1], 200ull * i, got, sizeof(got));
		for (uint32_t k = 0; k < sizeof(got); k++)
			assert_int_equal(got[k], i % 3 == 0 && k < 25
			                                 ? lab_pattern(3, 200ull * i + k)
			                                 : lab_pattern(1, 200ull * i + k));
	}
}

/* Receives of other than one entry, and where nothing goes. */
CASE_THREE(entries_of_a_receive_are_found)
{
	struct lab_work receive = { .wr_id = 1,
		                    .n = 3,
		                    .piece = { { 100, 5, 0 }, { 0, 30, 0 }, { 200, 100, 0 } } };
	struct lab_work none = { .wr_id = 2 };
	struct lab_peer **p = lab_peers(&options, state);

	lab_peer_fill(p[0], 0, 60, 1);
	lab_peer_fill(p[1], 0, 1024, 2);
	assert_int_equal(lab_peer_try_receive(p[1], &receive), 0);
	assert_int_equal(lab_peer_try_receive(p[1], &none), 0);
	lab_peer_do(p[0],
	            &(struct lab_work){ .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, 60, 0 } } },
	            IBV_WC_SUCCESS);
	lab_peer_do(p[0], &(struct lab_work){ .opcode = IBV_WR_SEND }, IBV_WC_SUCCESS);
	for (int i = 0; i < 2; i++) {
		struct lab_work read = rdma_of(IBV_WR_RDMA_READ, 8192, 512, p[1]);
		uint8_t got[512];

		lab_peer_do(p[0], &read, IBV_WC_SUCCESS);
		lab_peer_get(p[0], 8192, got, sizeof(got));
		for (unsigned k = 0; k < 60; k++)
			assert_int_equal(got[k < 5    ? 100 + k
			                     : k < 35 ? k - 5
			                              : 200 + k - 35],
			                 lab_pattern(1, k));
		assert_int_equal(got[30], lab_pattern(2, 30));
		assert_int_equal(got[225], lab_pattern(2, 225));
	}
	expect_receive(p[1], 60);
	expect_receive(p[1], 0);
}

/* ---- memory that goes ---- */

struct region {
	char *at;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
};

static void register_it(void *arg)
{
	struct region *r = arg;

	assert_non_null(r->mr = ibv_reg_mr(r->pd, r->at, REGION, IBV_ACCESS_LOCAL_WRITE));
}

/* p[0], which is here, receives in memory of its own; @at: there, or anywhere. */
static struct region region_for(struct lab_peer *p, uint32_t bytes, char *at)
{
	struct region r = { .at = mmap(at, REGION, PROT_READ | PROT_WRITE,
		                       MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0),
		                       -1, 0) };
	struct ibv_recv_wr wr = { .wr_id = 1, .num_sge = 1 }, *bad;
	struct ibv_sge sge = { .addr = (uintptr_t)r.at, .length = bytes };

	assert_true(r.at != MAP_FAILED);
	r.pd = p->here->pd;
	if (options.far)
		lab_without_moving(register_it, &r);
	else
		register_it(&r);
	sge.lkey = r.mr->lkey;
	wr.sg_list = &sge;
	assert_int_equal(ibv_post_recv(p->here->qp, &wr, &bad), 0);
	return r;
}

static void send_to_region(struct lab_peer *p[2], uint32_t bytes)
{
	struct lab_work w = send_of(0, bytes);

	lab_peer_fill(p[1], 0, bytes, 1);
	lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
}

CASE_THREE(a_region_may_go)
{
	struct lab_peer **p = lab_peers(&options, state);

	for (size_t i = 0; i < LAB_ARRAY(sizes); i++) {
		struct region r = region_for(p[0], sizes[i], NULL);

		send_to_region(p, sizes[i]);
		assert_int_equal(ibv_dereg_mr(r.mr), 0);
		for (uint32_t k = 0; k < sizes[i]; k++)
			assert_int_equal((uint8_t)r.at[k], lab_pattern(1, k));
		munmap(r.at, REGION);
		expect_receive(p[0], sizes[i]);
	}
}

/* Memory may go ahead of its region and of the poll only if it is adopted. A process that has
 * deregistered such memory 64 times adopts no more: the cases that ran before must not count. */
static void in_new_process(void (*test)(void **state), void *state)
{
	const struct CMUnitTest tests[] = { { "process", test, NULL, lab_clean_up, state } };
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	return; /* its own thread makes all memory far: docs/semantics.md */
#endif
	pid = fork();
	if (!pid) {
		harness_serve();
		fclose(stdout);
		_exit(_cmocka_run_group_tests("process", tests, 1, NULL, NULL));
	}
	harness_expect_success(pid);
}

static void expect_adopted(const struct region *r)
{
	lab_adopted_expect(r->at, REGION / LAB_ADOPTED_PAGE, REGION / LAB_ADOPTED_PAGE);
}

static void unmap_before_polls(void **state)
{
	struct lab_peer **p = lab_peers(&options, state);

	for (size_t i = 0; i < LAB_ARRAY(sizes); i++) {
		struct region r = region_for(p[0], sizes[i], NULL);

		expect_adopted(&r);
		send_to_region(p, sizes[i]);
		munmap(r.at, REGION);
		expect_receive(p[0], sizes[i]);
		assert_int_equal(ibv_dereg_mr(r.mr), 0);
	}
}

LAB_CASE_BOTH(memory_may_go)
{
	in_new_process(unmap_before_polls, *state);
}

/* So it is registered twice when it is mapped again: then it is not adopted. */
static void unmap_again_and_again(void **state)
{
	struct lab_peer **p = lab_peers(&options, state);
	struct region r[LAB_ARRAY(sizes)];
	char *at = NULL;

	for (size_t i = 0; i < LAB_ARRAY(sizes); i++) {
		r[i] = region_for(p[0], sizes[i], at);
		if (!at)
			expect_adopted(&r[i]);
		at = r[i].at;
		send_to_region(p, sizes[i]);
		munmap(at, REGION);
		expect_receive(p[0], sizes[i]);
	}
	for (size_t i = 0; i < LAB_ARRAY(sizes); i++)
		assert_int_equal(ibv_dereg_mr(r[i].mr), 0);
}

LAB_CASE_BOTH(memory_may_go_again_and_again)
{
	in_new_process(unmap_again_and_again, *state);
}

/* Messages to the memory were not polled when it went. */
CASE_THREE(memory_may_go_before_its_region)
{
	struct lab_peer **p = lab_peers(&options, state);

	for (size_t i = 0; i < LAB_ARRAY(sizes); i++) {
		struct region r = region_for(p[0], sizes[i], NULL);

		send_to_region(p, sizes[i]);
		munmap(r.at, REGION);
		assert_int_equal(ibv_dereg_mr(r.mr), 0);
		expect_receive(p[0], sizes[i]);
	}
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
