/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program waits for the last byte of an RDMA WRITE to change, and then uses the memory anew: all
 * of the bytes are there by then, and none is written again. Another process copies, one
 * instruction after the other, and between any two of them the program may look.
 */
#include <harness.h>
#include <sys/ptrace.h>

#include "hca/memory/memory.h"

#define MOST 5000
enum { BEFORE = 0x11, NEW = 0x22, AFTER = 0x33 };

static uint8_t *place;     /* what is shared with the process that copies */
static uint8_t from[MOST]; /* all NEW */

static int begin(void **state)
{
	(void)state;
	memset(from, NEW, sizeof(from));
	place = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return place == MAP_FAILED ? -1 : 0;
}

static bool is_all(uint8_t what, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (place[i] != what)
			return false;
	return true;
}

static pid_t start_copy(size_t n)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	hca_memory_copy_here(place, from, n);
	_exit(0);
}

/* Steps through a copy of @n bytes; the memory is used anew when the last byte has changed. */
static void look_at_copy(size_t n)
{
	bool came = false;
	int status;
	pid_t pid;

	memset(place, BEFORE, MOST);
	pid = start_copy(n);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	while (WIFSTOPPED(status)) {
		if (!came && place[n - 1] == NEW) {
			came = true;
			if (!is_all(NEW, n))
				fail_msg("%zu bytes: the last one is there before all are", n);
			memset(place, AFTER, n);
		}
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	assert_true(WIFEXITED(status) && came);
	if (!is_all(AFTER, n))
		fail_msg("%zu bytes: some are written again", n);
	assert_int_equal(place[n], BEFORE);
}

CASE_WITH(the_last_byte_comes_once_and_last, begin, NULL)
{
	static const size_t long_ones[] = { 96,  127, 128,  129,  160,  255,  256,
		                            257, 512, 1000, 1024, 2047, 4096, 4999 };

	for (size_t n = 1; n <= 72; n++)
		look_at_copy(n);
	for (unsigned i = 0; i < sizeof(long_ones) / sizeof(*long_ones); i++)
		look_at_copy(long_ones[i]);
}

/* As memmove() does. */
CASE(places_may_overlap)
{
	static uint8_t is[600], should_be[600];

	for (size_t n = 0; n <= 200; n++)
		for (size_t to = 0; to <= 400; to += 1 + to % 7) {
			for (size_t i = 0; i < sizeof(is); i++)
				is[i] = should_be[i] = (uint8_t)(i * 7 + n);
			memmove(should_be + to, should_be + 200, n);
			hca_memory_copy_here(is + to, is + 200, n);
			assert_memory_equal(is, should_be, sizeof(is));
		}
}
