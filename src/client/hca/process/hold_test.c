/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes to memory are held: by other threads and by the kernel, and they go on, without a loss,
 * where other memory was mapped meanwhile, or where the hold ends.
 */
#include <harness.h>

#include "hca/process/hold.h"
#include "hca/process/plain.h"

#define PAGES 4

struct lab {
	_Atomic uint8_t *at;
	int hold, pipe[2];
	_Atomic pid_t tid; /* of the thread that writes; 0: it has not begun */
	_Atomic unsigned done;
};

static uint64_t address(const struct lab *l, unsigned page)
{
	return (uintptr_t)l->at + page * HCA_PAGE;
}

static int begin(void **state)
{
	static struct lab l;

	/* ThreadSanitizer holds a lock of its own while a write waits */
#ifdef __SANITIZE_THREAD__
	return 0; /* *state is NULL: the cases are skipped */
#endif
	if (!hca_hold_is_possible())
		return 0;
	memset(&l, 0, sizeof(l));
	l.at = mmap(NULL, PAGES * HCA_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	            0);
	*state = &l;
	return l.at == MAP_FAILED || pipe(l.pipe) ? -1 : 0;
}

static int end(void **state)
{
	struct lab *l = *state;

	if (!l)
		return 0;
	close(l->pipe[0]);
	close(l->pipe[1]);
	return munmap((void *)(uintptr_t)l->at, PAGES * HCA_PAGE);
}

static struct lab *lab_of(void **state)
{
	if (!*state)
		skip();
	return *state;
}

static void hold(struct lab *l)
{
	l->hold = hca_hold(address(l, 0), address(l, PAGES));
	assert_true(l->hold >= 0);
}

static void *writes_each_page(void *arg)
{
	struct lab *l = arg;

	l->tid = gettid();
	for (unsigned i = 0; i < PAGES; i++) {
		l->at[i * HCA_PAGE] = (uint8_t)(i + 1);
		l->done++;
	}
	return NULL;
}

static void *has_the_kernel_write(void *arg)
{
	struct lab *l = arg;

	l->tid = gettid();
	if (read(l->pipe[0], (void *)(uintptr_t)l->at, 1) == 1)
		l->done++;
	return NULL;
}

static pthread_t start(struct lab *l, void *(*run)(void *arg))
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, l), 0);
	while (!l->tid)
		usleep(100);
	return thread;
}

static bool is_asleep(pid_t tid)
{
	char name[64], text[256] = "", *state;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", tid);
	file = fopen(name, "r");
	assert_non_null(file);
	state = fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
	fclose(file);
	return state && strchr("SD", state[2]);
}

/* It waits in the kernel: for the hold, as there is nothing else to wait for. */
static void wait_until_held(const struct lab *l)
{
	for (unsigned i = 0; !is_asleep(l->tid); i++) {
		if (i > 20000)
			fail_msg("waited 20 s: the thread that writes does not sleep");
		usleep(1000);
	}
}

static void wait_for(const struct lab *l, unsigned done)
{
	for (unsigned i = 0; l->done < done; i++) {
		if (i > 20000)
			fail_msg("waited 20 s: %u of %u writes are done", l->done, done);
		usleep(1000);
	}
}

CASE_WITH(a_write_waits_for_the_end_of_the_hold, begin, end)
{
	struct lab *l = lab_of(state);
	pthread_t thread;

	l->at[0] = 77;
	hold(l);
	thread = start(l, writes_each_page);
	wait_until_held(l);
	assert_int_equal(l->done, 0);
	assert_int_equal(l->at[0], 77); /* a thread that reads does not wait */
	hca_hold_end(l->hold);
	wait_for(l, PAGES);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (unsigned i = 0; i < PAGES; i++)
		assert_int_equal(l->at[i * HCA_PAGE], i + 1);
}

CASE_WITH(the_kernel_s_write_waits_too, begin, end)
{
	struct lab *l = lab_of(state);
	pthread_t thread;

	l->at[0] = 77;
	hold(l);
	assert_int_equal(write(l->pipe[1], "x", 1), 1);
	thread = start(l, has_the_kernel_write);
	wait_until_held(l);
	assert_int_equal(l->done, 0);
	assert_int_equal(l->at[0], 77);
	hca_hold_end(l->hold);
	wait_for(l, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(l->at[0], 'x');
}

/* Page by page, as memory moves. */
CASE_WITH(writes_go_on_in_the_memory_that_was_mapped_there, begin, end)
{
	struct lab *l = lab_of(state);
	int file = memfd_create("moved", MFD_CLOEXEC);
	pthread_t thread;

	assert_true(file >= 0 && !ftruncate(file, PAGES * HCA_PAGE));
	hold(l);
	thread = start(l, writes_each_page);
	for (unsigned i = 0; i < PAGES; i++) {
		uint8_t byte = 0;

		wait_until_held(l);
		assert_int_equal(l->done, i);
		assert_true(mmap((void *)(uintptr_t)address(l, i), HCA_PAGE, PROT_READ | PROT_WRITE,
		                 MAP_SHARED | MAP_FIXED, file,
		                 (off_t)(i * HCA_PAGE)) != MAP_FAILED);
		hca_hold_replaced(l->hold, address(l, i), address(l, i + 1));
		wait_for(l, i + 1);
		assert_int_equal(pread(file, &byte, 1, (off_t)(i * HCA_PAGE)), 1);
		assert_int_equal(byte, i + 1);
	}
	hca_hold_end(l->hold);
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(file);
}

CASE_WITH(memory_that_is_not_there_is_not_held, begin, end)
{
	struct lab *l = lab_of(state);
	uint64_t beyond = (uint64_t)1 << 62;

	assert_true(hca_hold(beyond, beyond + HCA_PAGE) < 0);
	hold(l);
	hca_hold_end(l->hold);
	l->at[0] = 1;
	assert_int_equal(l->at[0], 1);
}
