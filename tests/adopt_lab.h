/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests of adopted memory: a process a case, as there is one file a process, and a fork() ends
 * adopting for ever; and memory with a pattern. The daemon is the test's own. Where another thread
 * runs nothing is adopted, and the cases are skipped.
 */
#ifndef TESTS_ADOPT_LAB_H
#define TESTS_ADOPT_LAB_H

#include "harness.h"

#include "control/client.h"
#include "control/socket.h"
#include "hca/process/plain.h"
#include "hca/process/process.h"

#define PAGES 4
#define BYTES (PAGES * HCA_PAGE)

static struct shm_control control = { .settings.adopt = 1 };
static struct hca_process process = { .region.control = &control };
static unsigned offers; /* of a file, to the daemon */

static void serve(void *arg, struct control_packet *p)
{
	(void)arg;
	assert_int_equal(p->header.type, CONTROL_OFFER_MEMORY);
	p->header.bytes = 0;
	p->n_fds = 0;
	offers++;
}

static int begin(void **state)
{
	(void)state;
	return control_local(&process.control, serve, NULL);
}

static void in_child(void **state)
{
	const struct CMUnitTest test = { "process", (CMUnitTestFunction)(uintptr_t)*state, begin,
		                         NULL, NULL };
	pid_t pid;

#ifdef __SANITIZE_THREAD__ /* which may begin a thread of its own at any time */
	skip();
#endif
	if (!hca_plain_alone())
		skip();
	pid = fork();
	if (!pid) {
		harness_serve();
		_exit(_cmocka_run_group_tests("process", &test, 1, NULL, NULL));
	}
	harness_expect_success(pid);
}

#define PROCESS_CASE(name) \
	CASE_AS(name, harness_add(#name, in_child, NULL, NULL, (void *)(uintptr_t)name))

static inline void fill(uint8_t *at, uint8_t seed)
{
	for (size_t i = 0; i < BYTES; i++)
		at[i] = (uint8_t)(seed + i * 31 + i / 256);
}

static inline void expect(const uint8_t *at, uint8_t seed)
{
	for (size_t i = 0; i < BYTES; i++)
		if (at[i] != (uint8_t)(seed + i * 31 + i / 256))
			fail_msg("byte %zu is not what was written", i);
}

static inline uint8_t *map(int prot, int flags, int fd)
{
	uint8_t *at = mmap(NULL, BYTES, prot, flags, fd, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static inline uint8_t *plain_memory(void)
{
	uint8_t *at = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	fill(at, 1);
	return at;
}

#endif
