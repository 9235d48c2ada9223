/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adopted memory (src/hca/adopt.h): the peer, in a process of its own, reads and writes this
 * process's regions through a mapping. Nobody may notice: the memory holds what it held, fork()
 * and madvise() do what they do with private memory, and what is not registered is out of reach.
 */
#define _GNU_SOURCE
#include "peer_lab.h"

#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  4096u
#define PAGES 8u
#define BYTES (PAGES * PAGE)

/* How many of the pages from @at on lie in the file of adopted memory. */
static unsigned adopted_pages(const void *at, unsigned pages)
{
	uint64_t from, to, begin = (uintptr_t)at, end = begin + (uint64_t)pages * PAGE;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, "umbel-adopted") ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to) != 2)
			continue;
		from = from > begin ? from : begin;
		to = to < end ? to : end;
		n += from < to ? (unsigned)((to - from) / PAGE) : 0;
	}
	fclose(f);
	return n;
}

static void expect_adopted(const void *at, unsigned pages, unsigned n)
{
	assert_int_equal(adopted_pages(at, pages), n);
}

/* Private memory with a pattern. */
static char *memory(void)
{
	char *m = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(m, MAP_FAILED);
	for (unsigned i = 0; i < BYTES; i++)
		m[i] = (char)lab_pattern(1, i);
	return m;
}

static void expect_pattern(const char *m, unsigned from, unsigned to, unsigned seed)
{
	for (unsigned i = from; i < to; i++)
		assert_int_equal((uint8_t)m[i], lab_pattern(seed, i));
}

/* @p[0] is here, @p[1] elsewhere. */
static void begin(struct lab_peer *p[2])
{
	static void *const elsewhere = (void *)(uintptr_t)lab_open;

	lab_peers(p, NULL, &elsewhere);
}

static struct ibv_mr *region(struct lab_peer *p, char *at, size_t bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(p->here->pd, at, bytes, LAB_ALL_ACCESS);

	assert_non_null(mr);
	p->address.rkey = mr->rkey;
	p->address.addr = (uintptr_t)at;
	return mr;
}

static void deregister(struct ibv_mr *mr)
{
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static struct lab_work work_on(struct lab_peer *to, enum ibv_wr_opcode opcode, uint64_t remote,
                               uint32_t length)
{
	return (struct lab_work){
		.opcode = opcode, .n = 1, .piece = { { 0, length, 0 } }, .to = to, .remote = remote
	};
}

/* The peer writes a pattern there; it begins at offset 0 of what it names. */
static void write_there(struct lab_peer *p[2], uint64_t remote, uint32_t length, unsigned seed)
{
	struct lab_work w = work_on(p[0], IBV_WR_RDMA_WRITE, remote, length);

	lab_peer_fill(p[1], 0, length, seed);
	lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
}

static void read_there(struct lab_peer *p[2], uint64_t remote, uint32_t length)
{
	struct lab_work w = work_on(p[0], IBV_WR_RDMA_READ, remote, length);

	lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
}

/* ---- what is adopted ---- */

static void whole_pages_of_a_region_keep_what_they_hold(void **state)
{
	struct lab_peer *p[2];
	char *m = memory();
	struct ibv_mr *mr;

	(void)state;
	begin(p);
	mr = region(p[0], m + 100, 4 * PAGE); /* three whole pages */
	expect_adopted(m, PAGES, 3);
	expect_pattern(m, 0, BYTES, 1);
	deregister(mr);
	expect_adopted(m, PAGES, 0);
	expect_pattern(m, 0, BYTES, 1);
	munmap(m, BYTES);
}

static void the_peer_reaches_pages_and_edges_alike(void **state)
{
	static const struct {
		uint32_t at, length;
	} places[] = { { 0, 64 },     { 3996, 64 },       { 3990, 20 },          { 4000, 8000 },
		       { 5000, 1 },   { 12000, 4384 },    { 0, 4 * PAGE },       { 12284, 4 },
		       { 12280, 20 }, { 3996, 3 * PAGE }, { 3995, 3 * PAGE + 2 } };
	struct lab_peer *p[2];
	char *m = memory(), got[4 * PAGE];
	struct ibv_mr *mr;

	(void)state;
	begin(p);
	mr = region(p[0], m + 100, 4 * PAGE);
	for (unsigned i = 0; i < LAB_ARRAY(places); i++) {
		uint32_t at = places[i].at, n = places[i].length;

		memset(m, 0, BYTES);
		write_there(p, at, n, i);
		for (uint32_t k = 0; k < BYTES; k++)
			assert_int_equal((uint8_t)m[k], k >= 100 + at && k < 100 + at + n
			                                        ? lab_pattern(i, k - 100 - at)
			                                        : 0);
		lab_peer_fill(p[1], 0, n, 77);
		read_there(p, at, n);
		lab_peer_get(p[1], 0, got, n);
		assert_memory_equal(got, m + 100 + at, n);
	}
	deregister(mr);
	munmap(m, BYTES);
}

static void atomics_change_the_word(void **state)
{
	struct lab_peer *p[2];
	char *m = memory();
	struct lab_work w;
	struct ibv_mr *mr;
	uint64_t *word = (uint64_t *)(m + 2 * PAGE), old;

	(void)state;
	begin(p);
	mr = region(p[0], m, BYTES);
	for (uint64_t i = 0; i < 100; i++) {
		*word = i;
		w = work_on(p[0], IBV_WR_ATOMIC_FETCH_AND_ADD, 2 * PAGE, 8);
		w.compare_add = 1000;
		lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
		lab_peer_get(p[1], 0, &old, sizeof(old));
		assert_int_equal(old, i);
		assert_int_equal(*word, i + 1000);
	}
	deregister(mr);
	munmap(m, BYTES);
}

static void memory_that_others_could_write_to_is_not_adopted(void **state)
{
	char *shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char on_stack[4 * PAGE];
	struct lab_peer *p[2];
	struct ibv_mr *mr;

	(void)state;
	begin(p);
	mr = region(p[0], shared, BYTES);
	assert_int_equal(adopted_pages(shared, PAGES), 0);
	write_there(p, 0, BYTES, 3);
	expect_pattern(shared, 0, BYTES, 3);
	deregister(mr);
	munmap(shared, BYTES);
	mr = region(p[0], on_stack, sizeof(on_stack));
	assert_int_equal(adopted_pages((void *)((uintptr_t)on_stack & ~(uintptr_t)(PAGE - 1)), 5),
	                 0);
	write_there(p, 0, sizeof(on_stack), 4);
	expect_pattern(on_stack, 0, sizeof(on_stack), 4);
	deregister(mr);
}

/* ---- regions come and go ---- */

static void regions_that_overlap_leave_each_other_alone(void **state)
{
	struct lab_peer *p[2];
	char *m = memory();
	struct ibv_mr *all, *inner, *beyond;

	(void)state;
	begin(p);
	all = region(p[0], m, 6 * PAGE);
	inner = region(p[0], m + PAGE + 8, 2 * PAGE);
	beyond = region(p[0], m + 4 * PAGE, 4 * PAGE); /* some of its pages are adopted */
	write_there(p, 0, 4 * PAGE, 2);
	expect_pattern(m + 4 * PAGE, 0, 4 * PAGE, 2);
	deregister(all);
	/* the file has to stay: the others' pages lie there */
	expect_adopted(m, PAGES, 6);
	write_there(p, PAGE, 2 * PAGE, 5);
	expect_pattern(m + 5 * PAGE, 0, 2 * PAGE, 5);
	p[0]->address.rkey = inner->rkey;
	p[0]->address.addr = (uintptr_t)inner->addr;
	write_there(p, 0, 2 * PAGE, 6);
	expect_pattern(m + PAGE + 8, 0, 2 * PAGE, 6);
	deregister(beyond);
	deregister(inner);
	expect_adopted(m, PAGES, 0);
	expect_pattern(m + PAGE + 8, 0, 2 * PAGE, 6);
	munmap(m, BYTES);
}

static void deregistered_memory_is_private_again(void **state)
{
	struct lab_peer *p[2];
	struct lab_work w;
	char *m = memory();
	struct ibv_mr *mr;

	(void)state;
	begin(p);
	for (unsigned i = 0; i < 20; i++) {
		mr = region(p[0], m, BYTES);
		write_there(p, 0, BYTES, i);
		deregister(mr);
		expect_adopted(m, PAGES, 0);
		expect_pattern(m, 0, BYTES, i);
	}
	w = work_on(p[0], IBV_WR_RDMA_WRITE, 0, 64);
	lab_peer_do(p[1], &w, IBV_WC_REM_ACCESS_ERR);
	expect_pattern(m, 0, BYTES, 19);
	/* as allocators count on */
	assert_int_equal(madvise(m, BYTES, MADV_DONTNEED), 0);
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(m[i], 0);
	munmap(m, BYTES);
}

static void what_the_program_maps_in_their_place_is_left_alone(void **state)
{
	struct lab_peer *p[2];
	char *m = memory(), *other;
	struct ibv_mr *mr;

	(void)state;
	begin(p);
	mr = region(p[0], m, BYTES);
	assert_int_equal(munmap(m, 4 * PAGE), 0);
	other = mmap(m + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_ptr_equal(other, m + PAGE);
	deregister(mr);
	expect_adopted(m, PAGES, 0);
	assert_int_equal(other[5], 0);
	assert_int_equal(madvise(m, PAGE, MADV_NORMAL), -1); /* nothing is there */
	expect_pattern(m, 4 * PAGE, BYTES, 1);
	munmap(m, BYTES);
}

/* ---- other threads ---- */

static sem_t may_end;

static void *wait_to_end(void *arg)
{
	(void)arg;
	sem_wait(&may_end);
	return NULL;
}

/* pthread_join() returns before the kernel has done with the thread. */
static void wait_until_alone(void)
{
	struct stat s;

	do
		assert_int_equal(stat("/proc/self/task", &s), 0);
	while (s.st_nlink > 3);
}

static void beside_another_thread_nothing_moves(void **state)
{
	char *m = memory(), *late = memory();
	struct lab_peer *p[2];
	struct ibv_mr *mr, *second;
	pthread_t t;

	(void)state;
	begin(p);
	mr = region(p[0], m, BYTES);
	expect_adopted(m, PAGES, PAGES);
	sem_init(&may_end, 0, 0);
	assert_int_equal(pthread_create(&t, NULL, wait_to_end, NULL), 0);
	second = region(p[0], late, BYTES);
	assert_int_equal(adopted_pages(late, PAGES), 0);
	write_there(p, 0, BYTES, 2);
	expect_pattern(late, 0, BYTES, 2);
	deregister(mr);
	expect_adopted(m, PAGES, PAGES);
	expect_pattern(m, 0, BYTES, 1);
	mr = region(p[0], m, BYTES); /* it is there still */
	write_there(p, 0, BYTES, 3);
	expect_pattern(m, 0, BYTES, 3);
	deregister(mr);
	/* other memory in its place is other memory */
	assert_int_equal(munmap(m, BYTES), 0);
	assert_ptr_equal(mmap(m, BYTES, PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
	                 m);
	mr = region(p[0], m, BYTES);
	write_there(p, 0, BYTES, 3);
	expect_pattern(m, 0, BYTES, 3);
	deregister(mr);
	sem_post(&may_end);
	pthread_join(t, NULL);
#ifdef __SANITIZE_THREAD__
	return; /* the sanitizer has a thread now, too, which stays */
#endif
	wait_until_alone();
	/* with the next region that was adopted, what could not go before goes */
	deregister(second);
	mr = region(p[0], late, BYTES);
	expect_adopted(late, PAGES, PAGES);
	deregister(mr);
	expect_adopted(late, PAGES, 0);
	munmap(m, BYTES);
	munmap(late, BYTES);
}

/* ---- fork ---- */

static void wait_for_child(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool has_pattern(const char *m, unsigned seed)
{
	for (unsigned i = 0; i < BYTES; i++)
		if ((uint8_t)m[i] != lab_pattern(seed, i))
			return false;
	return true;
}

static void a_child_has_what_was_there_when_it_was_forked(void **state)
{
	struct lab_peer *p[2];
	char *m = memory();
	struct ibv_mr *mr;
	int go[2];
	char c = 0;
	pid_t pid;

	(void)state;
	begin(p);
	mr = region(p[0], m, BYTES);
	expect_adopted(m, PAGES, PAGES);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (!pid) {
		if (read(go[0], &c, 1) != 1 || !has_pattern(m, 1) || adopted_pages(m, PAGES))
			_exit(1);
		memset(m, 0, BYTES);
		_exit(0);
	}
	write_there(p, 0, BYTES, 2);
	m[0] = (char)~m[0];
	assert_int_equal(write(go[1], &c, 1), 1);
	wait_for_child(pid);
	m[0] = (char)~m[0];
	expect_pattern(m, 0, BYTES, 2); /* the child's writes are its own */
	expect_adopted(m, PAGES, PAGES);
	write_there(p, 0, BYTES, 3);
	expect_pattern(m, 0, BYTES, 3);
	deregister(mr);
	munmap(m, BYTES);
	close(go[0]);
	close(go[1]);
}

static void a_program_that_is_spawned_does_not_disturb(void **state)
{
	char *const argv[] = { (char *)(uintptr_t) "true", NULL };
	struct lab_peer *p[2];
	char *m = memory();
	struct ibv_mr *mr;
	pid_t pid;

	(void)state;
	begin(p);
	mr = region(p[0], m, BYTES);
	assert_int_equal(posix_spawnp(&pid, "true", NULL, NULL, argv, environ), 0);
	wait_for_child(pid);
	assert_int_equal(system("true"), 0);
	expect_adopted(m, PAGES, PAGES);
	write_there(p, 0, BYTES, 2);
	expect_pattern(m, 0, BYTES, 2);
	deregister(mr);
	munmap(m, BYTES);
}

/* ---- the end ---- */

/* What a dead process had adopted is still mapped here. Until the daemon has noticed the death,
 * requests succeed. */
static void requests_to_a_dead_peer_fail_soon(void **state)
{
	struct lab_peer_options o = { .retry_cnt = 1, .timeout = 10 };
	static void *const elsewhere = (void *)(uintptr_t)lab_open;
	struct lab_peer *p[2];
	struct lab_work w;
	struct ibv_wc wc;

	(void)state;
	lab_peers(p, &o, &elsewhere);
	w = work_on(p[1], IBV_WR_RDMA_WRITE, 0, LAB_PEER_BYTES / 2);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_signal(p[1], SIGKILL);
	do {
		lab_peer_post(p[0], &w);
		while (!lab_peer_try_sent(p[0], &wc))
			;
	} while (wc.status == IBV_WC_SUCCESS);
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(whole_pages_of_a_region_keep_what_they_hold),
		LAB_TEST(the_peer_reaches_pages_and_edges_alike),
		LAB_TEST(atomics_change_the_word),
		LAB_TEST(memory_that_others_could_write_to_is_not_adopted),
		LAB_TEST(regions_that_overlap_leave_each_other_alone),
		LAB_TEST(deregistered_memory_is_private_again),
		LAB_TEST(what_the_program_maps_in_their_place_is_left_alone),
		LAB_TEST(a_child_has_what_was_there_when_it_was_forked),
		LAB_TEST(a_program_that_is_spawned_does_not_disturb),
		LAB_TEST(requests_to_a_dead_peer_fail_soon),
		LAB_TEST(beside_another_thread_nothing_moves), /* the last one: see there */
	};

	lab_peers_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
