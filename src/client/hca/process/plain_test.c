/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which memory of a process is plain, as the kernel tells it: by what was asked for it, by other
 * threads and children, and by open files. Each case is a process of its own.
 */
#include <harness.h>
#include <linux/io_uring.h>

#include "hca/process/plain.h"

#define BYTES (3 * HCA_PAGE)

static uint8_t *anonymous(void)
{
	uint8_t *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	memset(at, 1, BYTES);
	return at;
}

static bool is_plain(const uint8_t *at)
{
	return hca_plain_range((uintptr_t)at, (uintptr_t)at + BYTES);
}

/* A second thread of the harness or of a sanitizer makes nothing plain. */
static void need_one_thread(void)
{
	if (!hca_plain_alone())
		skip();
}

static void end_with(int status)
{
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- pages ---- */

static uint8_t *shared(void)
{
	uint8_t *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	memset(at, 1, BYTES);
	return at;
}

static uint8_t *advised(int advice)
{
	uint8_t *at = anonymous();

	if (madvise(at, BYTES, advice))
		skip();
	return at;
}

static uint8_t *advised_about_fork(void)
{
	return advised(MADV_DONTFORK);
}

static uint8_t *advised_to_merge(void)
{
	return advised(MADV_MERGEABLE);
}

static uint8_t *not_dumped(void)
{
	return advised(MADV_DONTDUMP);
}

static uint8_t *protected_in_the_middle(void)
{
	uint8_t *at = anonymous();

	assert_int_equal(mprotect(at + HCA_PAGE, HCA_PAGE, PROT_READ), 0);
	return at;
}

static uint8_t *not_there_in_the_middle(void)
{
	uint8_t *at = anonymous();

	assert_int_equal(madvise(at + HCA_PAGE, HCA_PAGE, MADV_DONTNEED), 0);
	return at;
}

static uint8_t *unmapped_in_the_middle(void)
{
	uint8_t *at = anonymous();

	assert_int_equal(munmap(at + HCA_PAGE, HCA_PAGE), 0);
	return at;
}

CASE(memory_about_which_something_was_said_is_not_plain)
{
	static const struct {
		uint8_t *(*make)(void);
		const char *what;
	} kinds[] = { { shared, "shared" },
		      { advised_about_fork, "not for children" },
		      { advised_to_merge, "to be merged" },
		      { not_dumped, "not dumped" },
		      { protected_in_the_middle, "read-only in the middle" },
		      { not_there_in_the_middle, "not there in the middle" },
		      { unmapped_in_the_middle, "unmapped in the middle" } };

	for (size_t i = 0; EACH_NAMED(i, kinds, what); i++)
		if (is_plain(kinds[i].make()))
			fail_msg("memory that is %s is plain", kinds[i].what);
}

CASE(anonymous_memory_and_the_heap_are_plain)
{
	uint8_t *at = anonymous(), *heap;

	assert_true(is_plain(at));
	assert_false(hca_plain_is_shared((uintptr_t)at));
	assert_true(hca_plain_is_shared((uintptr_t)shared()));
	/* across two mappings */
	assert_int_equal(mprotect(at, HCA_PAGE, PROT_READ), 0);
	assert_int_equal(mprotect(at, HCA_PAGE, PROT_READ | PROT_WRITE), 0);
	assert_true(is_plain(at));
	heap = sbrk(0);
	heap = sbrk((intptr_t)(BYTES + HCA_PAGE)) == (void *)-1 ? NULL : heap;
	if (!heap)
		return;
	heap += (HCA_PAGE - (uintptr_t)heap % HCA_PAGE) % HCA_PAGE;
	memset(heap, 1, BYTES);
	assert_true(is_plain(heap));
}

CASE(the_stack_is_not_plain)
{
	uint8_t here[4 * HCA_PAGE];
	uint8_t *page = here + (HCA_PAGE - (uintptr_t)here % HCA_PAGE) % HCA_PAGE;

	memset(here, 1, sizeof(here));
	assert_false(is_plain(page));
}

/* After fork() parent and child have the same pages until one writes. */
CASE(pages_are_told_apart_by_what_they_are_not_by_who_has_them)
{
	uint8_t *at = anonymous();
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(!is_plain(at));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	end_with(status);
	assert_true(is_plain(at));
}

/* ---- who else has the address space ---- */

static pthread_barrier_t barrier;

static void *waits(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

CASE(a_process_is_alone_without_other_threads)
{
	pthread_t thread;

	need_one_thread();
	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, waits, NULL), 0);
	pthread_barrier_wait(&barrier);
	assert_false(hca_plain_alone());
	pthread_barrier_wait(&barrier);
	assert_int_equal(pthread_join(thread, NULL), 0);
#ifndef __SANITIZE_THREAD__ /* which has a thread of its own from now on */
	for (unsigned i = 0; !hca_plain_alone(); i++) { /* the kernel's end of it comes later */
		assert_true(i < 10000);
		usleep(1000);
	}
#endif
}

static int wait_for_byte(void *arg)
{
	char byte;

	return read(*(int *)arg, &byte, 1) < 0;
}

CASE(a_child_in_the_same_address_space_is_somebody_else)
{
	static _Alignas(16) char stack[16384];
	int fds[2], status;
	pid_t pid;

	need_one_thread();
	assert_int_equal(pipe(fds), 0);
	pid = clone(wait_for_byte, stack + sizeof(stack), CLONE_VM | CLONE_FILES | SIGCHLD,
	            &fds[0]);
	assert_true(pid > 0);
	assert_false(hca_plain_alone());
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	end_with(status);
	assert_true(hca_plain_alone());
	/* one with a memory of its own is not */
	pid = fork();
	if (!pid)
		_exit(wait_for_byte(&fds[0]));
	assert_true(hca_plain_alone());
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	end_with(status);
	close(fds[0]);
	close(fds[1]);
}

/* ---- other threads that would notice ---- */

static _Atomic uint32_t *word;

static void *sleeps_on_word(void *arg)
{
	(void)arg;
	while (!*word)
		syscall(SYS_futex, word, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
	return NULL;
}

static bool is_noticed(const void *at)
{
	return hca_plain_noticed((uintptr_t)at, (uintptr_t)at + HCA_PAGE);
}

CASE(a_thread_that_waits_for_a_futex_there_would_notice)
{
	pthread_t thread;

	word = (void *)anonymous();
	*word = 0;
	assert_false(is_noticed((void *)word));
	assert_int_equal(pthread_create(&thread, NULL, sleeps_on_word, NULL), 0);
	for (unsigned i = 0; !is_noticed((void *)word); i++) {
		assert_true(i < 10000);
		usleep(1000);
	}
	assert_false(is_noticed((char *)word + HCA_PAGE));
	*word = 1;
	syscall(SYS_futex, word, 1 /* FUTEX_WAKE */, 1, NULL, NULL, 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *has_files_of_its_own(void *arg)
{
	if (unshare(CLONE_FILES))
		return arg;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

CASE(a_thread_with_files_of_its_own_would_notice)
{
	uint8_t *at = anonymous();
	pthread_t thread;

	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, has_files_of_its_own, NULL), 0);
	pthread_barrier_wait(&barrier);
	assert_true(is_noticed(at));
	pthread_barrier_wait(&barrier);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- what may be pinned ---- */

CASE(ordinary_files_pin_nothing)
{
	int fds[] = { open("/dev/null", O_RDWR),        open("/dev/zero", O_RDWR),
		      open("/proc/self/exe", O_RDONLY), socket(AF_INET, SOCK_STREAM, 0),
		      socket(AF_UNIX, SOCK_DGRAM, 0),   memfd_create("a", 0) };

	if (hca_plain_pinned())
		skip(); /* the runner has left something open that nobody can judge */
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		close(fds[i]);
	assert_false(hca_plain_pinned());
}

CASE(a_ring_of_the_kernel_s_may_pin_memory)
{
	struct io_uring_params params = { 0 };
	int ring;

	if (hca_plain_pinned())
		skip();
	ring = (int)syscall(SYS_io_uring_setup, 4, &params);
	if (ring < 0)
		skip(); /* containers forbid it */
	assert_true(hca_plain_pinned());
	close(ring);
	assert_false(hca_plain_pinned());
}

CASE(data_past_the_kernel_s_buffers_may_come_later)
{
	char name[] = "/var/tmp/umbel-plain-XXXXXX";
	int fd = mkstemp(name), direct;

	assert_true(fd >= 0);
	direct = open(name, O_RDWR | O_DIRECT);
	unlink(name);
	close(fd);
	if (direct < 0)
		skip(); /* the file system has no such files */
	assert_true(hca_plain_pinned());
	close(direct);
}
