/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adopted memory (src/client/hca/memory/adopt.h): the peer, in a process of its own, reads and
 * writes this process's regions through a mapping. Nobody may notice: the memory holds what it
 * held, fork() and madvise() do what they do with private memory, and what is not registered is out
 * of reach.
 *
 * With one thread.
 */
#include "adopted_lab.h"

#include <spawn.h>

/* ---- what is adopted ---- */

LAB_CASE(whole_pages_of_a_region_keep_what_they_hold)
{
	char *m = lab_adopted_memory();
	struct ibv_mr *mr;
	struct lab_peer **p = lab_adopted_begin();

	mr = lab_adopted_region(p[0], m + 100, 4 * LAB_ADOPTED_PAGE); /* three whole pages */
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 3);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 1);
	lab_adopted_deregister(mr);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 1);
	munmap(m, LAB_ADOPTED_BYTES);
}

LAB_CASE(the_peer_reaches_pages_and_edges_alike)
{
	static const struct {
		uint32_t at, length;
	} places[] = { { 0, 64 },
		       { 3996, 64 },
		       { 3990, 20 },
		       { 4000, 8000 },
		       { 5000, 1 },
		       { 12000, 4384 },
		       { 0, 4 * LAB_ADOPTED_PAGE },
		       { 12284, 4 },
		       { 12280, 20 },
		       { 3996, 3 * LAB_ADOPTED_PAGE },
		       { 3995, 3 * LAB_ADOPTED_PAGE + 2 } };
	char *m = lab_adopted_memory(), got[4 * LAB_ADOPTED_PAGE];
	struct lab_peer **p = lab_adopted_begin();
	struct ibv_mr *mr = lab_adopted_region(p[0], m + 100, 4 * LAB_ADOPTED_PAGE);

	for (unsigned i = 0; i < LAB_ARRAY(places); i++) {
		uint32_t at = places[i].at, n = places[i].length;

		memset(m, 0, LAB_ADOPTED_BYTES);
		lab_adopted_write(p, at, n, i);
		for (uint32_t k = 0; k < LAB_ADOPTED_BYTES; k++)
			assert_int_equal((uint8_t)m[k], k >= 100 + at && k < 100 + at + n
			                                        ? lab_pattern(i, k - 100 - at)
			                                        : 0);
		lab_peer_fill(p[1], 0, n, 77);
		lab_adopted_read(p, at, n);
		lab_peer_get(p[1], 0, got, n);
		assert_memory_equal(got, m + 100 + at, n);
	}
	lab_adopted_deregister(mr);
	munmap(m, LAB_ADOPTED_BYTES);
}

LAB_CASE(atomics_change_the_word)
{
	char *m = lab_adopted_memory();
	struct lab_work w;
	uint64_t *word = (uint64_t *)(m + 2 * LAB_ADOPTED_PAGE), old;
	struct lab_peer **p = lab_adopted_begin();
	struct ibv_mr *mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);

	for (uint64_t i = 0; i < 100; i++) {
		*word = i;
		w = lab_adopted_work(p[0], IBV_WR_ATOMIC_FETCH_AND_ADD, 2 * LAB_ADOPTED_PAGE, 8);
		w.compare_add = 1000;
		lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
		lab_peer_get(p[1], 0, &old, sizeof(old));
		assert_int_equal(old, i);
		assert_int_equal(*word, i + 1000);
	}
	lab_adopted_deregister(mr);
	munmap(m, LAB_ADOPTED_BYTES);
}

LAB_CASE(memory_that_others_could_write_to_is_not_adopted)
{
	char *shared = mmap(NULL, LAB_ADOPTED_BYTES, PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char on_stack[4 * LAB_ADOPTED_PAGE];
	struct lab_peer **p = lab_adopted_begin();
	struct ibv_mr *mr = lab_adopted_region(p[0], shared, LAB_ADOPTED_BYTES);

	assert_int_equal(lab_adopted_pages(shared, LAB_ADOPTED_PAGES), 0);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 3);
	lab_adopted_holds(shared, 0, LAB_ADOPTED_BYTES, 3);
	lab_adopted_deregister(mr);
	munmap(shared, LAB_ADOPTED_BYTES);
	mr = lab_adopted_region(p[0], on_stack, sizeof(on_stack));
	assert_int_equal(
	        lab_adopted_pages(
	                (void *)((uintptr_t)on_stack & ~(uintptr_t)(LAB_ADOPTED_PAGE - 1)), 5),
	        0);
	lab_adopted_write(p, 0, sizeof(on_stack), 4);
	lab_adopted_holds(on_stack, 0, sizeof(on_stack), 4);
	lab_adopted_deregister(mr);
}

/* Packets that go through a tun device were copied when the call returns; a disk's writes may come
 * later. */
LAB_CASE(an_open_tun_device_does_not_disturb)
{
	char *m = lab_adopted_memory();
	struct ibv_mr *mr;
	struct lab_peer **p = lab_adopted_begin();
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		skip();
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, LAB_ADOPTED_PAGES);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 5);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 5);
	lab_adopted_deregister(mr);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	close(fd);
	munmap(m, LAB_ADOPTED_BYTES);
}

/* ---- regions come and go ---- */

LAB_CASE(regions_that_overlap_leave_each_other_alone)
{
	char *m = lab_adopted_memory();
	struct ibv_mr *all, *inner, *beyond;
	struct lab_peer **p = lab_adopted_begin();

	all = lab_adopted_region(p[0], m, 6 * LAB_ADOPTED_PAGE);
	inner = lab_adopted_region(p[0], m + LAB_ADOPTED_PAGE + 8, 2 * LAB_ADOPTED_PAGE);
	beyond = lab_adopted_region(p[0], m + 4 * LAB_ADOPTED_PAGE,
	                            4 * LAB_ADOPTED_PAGE); /* some of its pages are adopted */
	lab_adopted_write(p, 0, 4 * LAB_ADOPTED_PAGE, 2);
	lab_adopted_holds(m + 4 * LAB_ADOPTED_PAGE, 0, 4 * LAB_ADOPTED_PAGE, 2);
	lab_adopted_deregister(all);
	/* the file has to stay: the others' pages lie there */
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 6);
	lab_adopted_write(p, LAB_ADOPTED_PAGE, 2 * LAB_ADOPTED_PAGE, 5);
	lab_adopted_holds(m + 5 * LAB_ADOPTED_PAGE, 0, 2 * LAB_ADOPTED_PAGE, 5);
	p[0]->address.rkey = inner->rkey;
	p[0]->address.addr = (uintptr_t)inner->addr;
	lab_adopted_write(p, 0, 2 * LAB_ADOPTED_PAGE, 6);
	lab_adopted_holds(m + LAB_ADOPTED_PAGE + 8, 0, 2 * LAB_ADOPTED_PAGE, 6);
	lab_adopted_deregister(beyond);
	lab_adopted_deregister(inner);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	lab_adopted_holds(m + LAB_ADOPTED_PAGE + 8, 0, 2 * LAB_ADOPTED_PAGE, 6);
	munmap(m, LAB_ADOPTED_BYTES);
}

LAB_CASE(deregistered_memory_is_private_again)
{
	struct lab_work w;
	char *m = lab_adopted_memory();
	struct ibv_mr *mr;
	struct lab_peer **p = lab_adopted_begin();

	for (unsigned i = 0; i < 20; i++) {
		mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
		lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, i);
		lab_adopted_deregister(mr);
		lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
		lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, i);
	}
	w = lab_adopted_work(p[0], IBV_WR_RDMA_WRITE, 0, 64);
	lab_peer_do(p[1], &w, IBV_WC_REM_ACCESS_ERR);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 19);
	lab_adopted_is_emptied(m);
	munmap(m, LAB_ADOPTED_BYTES);
}

LAB_CASE(what_the_program_maps_in_their_place_is_left_alone)
{
	char *m = lab_adopted_memory(), *other;
	struct lab_peer **p = lab_adopted_begin();
	struct ibv_mr *mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);

	assert_int_equal(munmap(m, 4 * LAB_ADOPTED_PAGE), 0);
	other = mmap(m + LAB_ADOPTED_PAGE, LAB_ADOPTED_PAGE, PROT_READ,
	             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_ptr_equal(other, m + LAB_ADOPTED_PAGE);
	lab_adopted_deregister(mr);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	assert_int_equal(other[5], 0);
	assert_int_equal(madvise(m, LAB_ADOPTED_PAGE, MADV_NORMAL), -1); /* nothing is there */
	lab_adopted_holds(m, 4 * LAB_ADOPTED_PAGE, LAB_ADOPTED_BYTES, 1);
	munmap(m, LAB_ADOPTED_BYTES);
}

/* ---- other threads ---- */

/* pthread_join() returns before the kernel has done with the thread. */
static void wait_until_alone(void)
{
	struct stat s;

	do
		assert_int_equal(stat("/proc/self/task", &s), 0);
	while (s.st_nlink > 3);
}

/* ---- other programs ---- */

LAB_CASE(a_program_that_is_spawned_does_not_disturb)
{
	char *const argv[] = { (char *)(uintptr_t) "true", NULL };
	char *m = lab_adopted_memory();
	pid_t pid;
	struct lab_peer **p = lab_adopted_begin();
	struct ibv_mr *mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);

	assert_int_equal(posix_spawnp(&pid, "true", NULL, NULL, argv, environ), 0);
	harness_expect_success(pid);
	assert_int_equal(system("true"), 0);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, LAB_ADOPTED_PAGES);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_deregister(mr);
	munmap(m, LAB_ADOPTED_BYTES);
}

/* mremap(2) fails where two mappings meet. */
static void expect_one_mapping(char **m)
{
#ifdef __SANITIZE_THREAD__
	return; /* which has a thread of its own: beside threads it is a mapping by itself */
#endif
	assert_ptr_not_equal(*m = mremap(*m, LAB_ADOPTED_BYTES, 2 * LAB_ADOPTED_BYTES,
	                                 MREMAP_MAYMOVE),
	                     MAP_FAILED);
	assert_int_equal(munmap(*m + LAB_ADOPTED_BYTES, LAB_ADOPTED_BYTES), 0);
	lab_adopted_holds(*m, 0, LAB_ADOPTED_BYTES, 1);
}

LAB_CASE(moved_memory_is_one_mapping_again)
{
	char *m = lab_adopted_memory();
	struct ibv_mr *mr;
	size_t at;
	struct lab_peer **p = lab_adopted_begin();

	for (unsigned i = 0; i < 6; i++) {
		expect_one_mapping(&m);
		at = i % 3 * LAB_ADOPTED_PAGE; /* of eight pages */
		mr = lab_adopted_region(p[0], m + at, 6 * LAB_ADOPTED_PAGE);
		lab_adopted_expect(m, LAB_ADOPTED_PAGES, 6);
		lab_adopted_deregister(mr);
		lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	}
	expect_one_mapping(&m);
	munmap(m, LAB_ADOPTED_BYTES);
}

/* ---- beside a thread: from here on ends of memory stay mappings by themselves ---- */

/* The program unmaps a part before it is given back. */
LAB_CASE(what_was_given_back_beside_a_thread_grows_by_zeros)
{
	const size_t half = LAB_ADOPTED_BYTES / 2;
	char *m = lab_adopted_memory();
	struct lab_sleeper s;
	struct lab_peer **p = lab_adopted_begin();
	struct ibv_mr *mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);

	lab_sleeper_begin(&s);
	assert_int_equal(munmap(m + half, half), 0);
	lab_adopted_deregister(mr);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	assert_ptr_not_equal(m = mremap(m, half, LAB_ADOPTED_BYTES, MREMAP_MAYMOVE), MAP_FAILED);
	lab_adopted_holds(m, 0, (unsigned)half, 1);
	for (size_t i = half; i < LAB_ADOPTED_BYTES; i++)
		assert_int_equal(m[i], 0);
	munmap(m, LAB_ADOPTED_BYTES);
	lab_sleeper_end(&s);
#ifndef __SANITIZE_THREAD__ /* which has a thread of its own now */
	wait_until_alone();
#endif
}

/* ---- the end ---- */

/* Memory that a dead process had adopted is still mapped here. Until the daemon has noticed the
 * death, requests succeed. */
LAB_CASE(requests_to_a_dead_peer_fail_soon)
{
	struct lab_peer_options o = { .retry_cnt = 1, .timeout = 10 };
	static void *const elsewhere = (void *)(uintptr_t)lab_open;
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(&o, &elsewhere);
	struct lab_work w = lab_adopted_work(p[1], IBV_WR_RDMA_WRITE, 0, LAB_PEER_BYTES / 2);

	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_signal(p[1], SIGKILL);
	do {
		lab_peer_post(p[0], &w);
		while (!lab_peer_try_sent(p[0], &wc))
			;
	} while (wc.status == IBV_WC_SUCCESS);
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
}

LAB_CASE(what_was_given_back_beside_a_thread_stays_its_own)
{
	char *m = lab_adopted_memory(), *late = lab_adopted_memory();
	struct ibv_mr *mr, *second;
	struct lab_sleeper s;
	struct lab_peer **p = lab_adopted_begin();

	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, LAB_ADOPTED_PAGES);
	lab_sleeper_begin(&s);
	second = lab_adopted_region(p[0], late, LAB_ADOPTED_BYTES);
	lab_adopted_beside_threads(late, LAB_ADOPTED_PAGES);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_holds(late, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_deregister(mr);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 1);
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	assert_int_equal(lab_adopted_pages(m, LAB_ADOPTED_PAGES), 0);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 3);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 3);
	lab_adopted_deregister(mr);
	lab_adopted_is_emptied(m);
	/* other memory in its place is other memory */
	assert_int_equal(munmap(m, LAB_ADOPTED_BYTES), 0);
	assert_ptr_equal(mmap(m, LAB_ADOPTED_BYTES, PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
	                 m);
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 3);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 3);
	lab_adopted_deregister(mr);
	lab_sleeper_end(&s);
#ifdef __SANITIZE_THREAD__
	return; /* the sanitizer has a thread now, too, which stays */
#endif
	wait_until_alone();
	lab_adopted_deregister(second);
	mr = lab_adopted_region(p[0], late, LAB_ADOPTED_BYTES);
	lab_adopted_expect(late, LAB_ADOPTED_PAGES, LAB_ADOPTED_PAGES);
	lab_adopted_deregister(mr);
	lab_adopted_expect(late, LAB_ADOPTED_PAGES, 0);
	munmap(m, LAB_ADOPTED_BYTES);
	munmap(late, LAB_ADOPTED_BYTES);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
