/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of this process is adopted and given back: the bytes stay, wherever they lie.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

#include "hca/memory/adopt.h"
#include <adopt_lab.h>

static bool adopt(unsigned slot, const uint8_t *at)
{
	return hca_adopt(&process, slot, (uintptr_t)at, (uintptr_t)at + BYTES);
}

static bool is_there(unsigned slot, const uint8_t *at)
{
	return hca_adopt_is_there(slot, (uintptr_t)at, (uintptr_t)at + BYTES);
}

/* The file once more, as a peer has it. */
static uint8_t *as_peer(unsigned slot, const uint8_t *at)
{
	uint8_t *peer = hca_adopt_map_again(hca_adopt_offset(slot, (uintptr_t)at), BYTES);

	assert_non_null(peer);
	return peer;
}

/* The descriptor of the file of adopted memory. */
static int file_descriptor(void)
{
	char name[32], link[64];

	for (int fd = 3; fd < 64; fd++) {
		ssize_t n;

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n = readlink(name, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = '\0';
		if (strstr(link, "umbel-adopted"))
			return fd;
	}
	fail_msg("there is no file of adopted memory");
	return -1;
}

/* ---- adopting ---- */

PROCESS_CASE(adopted_memory_is_where_it_was_and_in_the_file)
{
	uint8_t *at = plain_memory(), *peer;

	assert_false(hca_adopt_any());
	assert_true(adopt(0, at));
	assert_true(hca_adopt_any());
	assert_true(is_there(0, at));
	assert_false(is_there(1, at));
	expect(at, 1);
	peer = as_peer(0, at);
	expect(peer, 1);
	fill(peer, 2);
	expect(at, 2);
	fill(at, 3);
	expect(peer, 3);
	hca_adopt_unmap(peer, BYTES);
	expect(at, 3);
}

PROCESS_CASE(the_file_is_offered_once)
{
	for (unsigned slot = 0; slot < 8; slot++)
		assert_true(adopt(slot, plain_memory()));
	assert_int_equal(offers, 1);
}

PROCESS_CASE(a_process_that_does_not_want_it_keeps_its_memory)
{
	uint8_t *at = plain_memory();

	control.settings.adopt = 0;
	assert_false(adopt(0, at));
	control.settings.adopt = 1;
	process.is_watched = true;
	assert_false(adopt(0, at));
	process.is_watched = false;
	assert_int_equal(offers, 0);
	assert_true(adopt(0, at));
}

static uint8_t *shared_memory(void)
{
	uint8_t *at = map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);

	fill(at, 1);
	return at;
}

static uint8_t *of_a_file(void)
{
	int fd = memfd_create("other", MFD_CLOEXEC);
	uint8_t *at;

	assert_true(fd >= 0 && !ftruncate(fd, BYTES));
	at = map(PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	close(fd);
	fill(at, 1);
	return at;
}

static uint8_t *read_only(void)
{
	uint8_t *at = plain_memory();

	assert_int_equal(mprotect(at, BYTES, PROT_READ), 0);
	return at;
}

static uint8_t *partly_untouched(void)
{
	uint8_t *at = plain_memory();

	assert_int_equal(madvise(at + HCA_PAGE, HCA_PAGE, MADV_DONTNEED), 0);
	return at;
}

static uint8_t *not_for_children(void)
{
	uint8_t *at = plain_memory();

	assert_int_equal(madvise(at, BYTES, MADV_DONTFORK), 0);
	return at;
}

static uint8_t *locked(void)
{
	uint8_t *at = plain_memory();

	if (syscall(SYS_mlock, at, BYTES)) /* a sanitizer's mlock() does nothing */
		skip();
	return at;
}

static uint8_t *with_a_hole(void)
{
	uint8_t *at = plain_memory();

	assert_int_equal(munmap(at + 2 * HCA_PAGE, HCA_PAGE), 0);
	return at;
}

PROCESS_CASE(memory_that_is_not_plain_stays_what_it_is)
{
	static const struct {
		uint8_t *(*make)(void);
		const char *what;
	} kinds[] = { { shared_memory, "shared" },
		      { of_a_file, "of a file" },
		      { read_only, "read-only" },
		      { partly_untouched, "untouched" },
		      { not_for_children, "not for children" },
		      { locked, "locked" },
		      { with_a_hole, "with a hole" } };

	for (size_t i = 0; EACH_NAMED(i, kinds, what); i++) {
		if (adopt(0, kinds[i].make()))
			fail_msg("memory that is %s is adopted", kinds[i].what);
		assert_false(hca_adopt_any());
	}
}

PROCESS_CASE(the_stack_and_large_regions_are_not_adopted)
{
	uint8_t room[3 * HCA_PAGE];
	uint64_t from = ((uintptr_t)room + HCA_PAGE - 1) & ~(HCA_PAGE - 1);

	memset(room, 1, sizeof(room));
	assert_false(hca_adopt(&process, 0, from, from + HCA_PAGE));
	from = (uintptr_t)plain_memory();
	assert_false(hca_adopt(&process, 0, from, from + HCA_ADOPT_MOST + HCA_PAGE));
}

/* ---- giving back ---- */

PROCESS_CASE(memory_that_is_given_back_is_the_process_s_own)
{
	uint8_t *at = plain_memory(), *peer;

	for (unsigned round = 0; round < 3; round++) {
		fill(at, (uint8_t)round);
		assert_true(adopt(0, at));
		peer = as_peer(0, at);
		assert_true(hca_adopt_end(0, true));
		assert_false(hca_adopt_any());
		assert_false(hca_adopt_is_spent(0));
		assert_false(is_there(0, at));
		expect(at, (uint8_t)round);
		for (size_t i = 0; i < BYTES; i++)
			assert_int_equal(peer[i], 0);
		hca_adopt_unmap(peer, BYTES);
	}
	assert_int_equal(madvise(at, HCA_PAGE, MADV_DONTNEED), 0);
	assert_int_equal(at[0], 0);
}

PROCESS_CASE(memory_is_given_back_where_the_program_has_moved_it)
{
	uint8_t *at = plain_memory(), *moved;

	assert_true(adopt(0, at));
	moved = mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
	               map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
	assert_true(moved != MAP_FAILED && moved != at);
	assert_true(hca_adopt_end(0, true));
	expect(moved, 1);
	assert_false(hca_plain_is_shared((uintptr_t)moved));
}

PROCESS_CASE(memory_that_the_program_has_unmapped_leaves_nothing_in_the_file)
{
	uint8_t *at = plain_memory(), *peer;

	assert_true(adopt(0, at));
	peer = as_peer(0, at);
	assert_int_equal(munmap(at, BYTES), 0);
	assert_true(hca_adopt_end(0, true));
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(peer[i], 0);
}

/* One that registers for each message has no use for it. */
PROCESS_CASE(a_process_that_gives_back_often_is_left_alone)
{
	uint8_t *at = plain_memory();
	unsigned n = 0;

	while (adopt(0, at)) {
		assert_true(hca_adopt_end(0, true));
		assert_true(++n <= 1000);
	}
	assert_in_range(n, 10, 1000);
	expect(at, 1);
}

static void *writes(void *arg)
{
	volatile uint8_t *last = (uint8_t *)arg + BYTES - 1;

	for (;;) {
		++*last;
		pthread_testcancel();
	}
	return NULL;
}

/* A thread that came later writes there all the time, and misses nothing. */
PROCESS_CASE(memory_is_given_back_beside_a_thread_that_writes)
{
	uint8_t *at = plain_memory(), *peer, last;
	pthread_t thread;

	assert_true(adopt(0, at));
	peer = as_peer(0, at);
	assert_int_equal(pthread_create(&thread, NULL, writes, at), 0);
	assert_true(hca_adopt_end(0, false));
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	last = at[BYTES - 1];
	at[BYTES - 1] = (uint8_t)(1 + (BYTES - 1) * 31 + (BYTES - 1) / 256);
	expect(at, 1);
	at[BYTES - 1] = last;
	/* it is like anonymous memory: the file is empty behind it */
	assert_int_equal(madvise(at, HCA_PAGE, MADV_DONTNEED), 0);
	assert_int_equal(at[0], 0);
	fill(peer, 9);
	assert_int_equal(at[BYTES - 1], last);
	assert_int_equal(at[HCA_PAGE], (uint8_t)(1 + HCA_PAGE * 31 + HCA_PAGE / 256));
	/* no other memory has its part of the file; another part is free */
	assert_true(hca_adopt_is_spent(0));
	assert_false(hca_adopt_is_spent(1));
	assert_true(adopt(1, plain_memory()));
}

/* ---- what the program does to our descriptor ---- */

PROCESS_CASE(a_file_of_the_program_that_has_our_number_is_not_written_to)
{
	uint8_t *at = plain_memory(), *other = plain_memory();
	int fd, own = memfd_create("own", MFD_CLOEXEC);

	assert_true(adopt(0, at));
	fd = file_descriptor();
	assert_int_equal(dup3(own, fd, O_CLOEXEC), fd);
	assert_false(adopt(1, other));
	assert_true(hca_adopt_end(0, true));
	expect(at, 1);
	expect(other, 1);
	assert_false(hca_plain_is_shared((uintptr_t)at));
	assert_int_equal(lseek(own, 0, SEEK_END), 0);
	assert_false(adopt(0, at)); /* for good */
}

PROCESS_CASE(memory_is_given_back_when_all_descriptors_are_closed)
{
	uint8_t *at = plain_memory();

	assert_true(adopt(0, at));
	assert_int_equal(close_range(3, ~0u, 0), 0);
	assert_true(hca_adopt_end(0, true));
	expect(at, 1);
	assert_false(hca_plain_is_shared((uintptr_t)at));
}

/* ---- fork ---- */

static int look_in_child(uint8_t *at)
{
	for (size_t i = 0; i < BYTES; i++)
		if (at[i] != (uint8_t)(1 + i * 31 + i / 256))
			return 2;
	if (hca_plain_is_shared((uintptr_t)at) || hca_adopt_any())
		return 3;
	fill(at, 7);       /* which the parent does not see */
	if (!adopt(5, at)) /* it begins anew, with a file of its own */
		return 4;
	fill(at, 8);
	return 0;
}

PROCESS_CASE(a_child_has_its_own_and_the_parent_keeps_the_file)
{
	uint8_t *at = plain_memory(), *peer;
	int status;
	pid_t pid;

	assert_true(adopt(0, at));
	peer = as_peer(0, at);
	pid = fork();
	if (!pid)
		_exit(look_in_child(at));
	fill(at, 4); /* which the child does not see: it has the memory when fork() returns */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	expect(at, 4);
	expect(peer, 4);
	assert_true(hca_adopt_end(0, true));
	expect(at, 4);
	assert_false(adopt(1, at)); /* a process that has forked adopts none again */
}

PROCESS_CASE(a_child_of_a_process_that_has_adopted_nothing_changes_nothing)
{
	uint8_t *at = plain_memory();
	int status;
	pid_t pid;

	assert_true(adopt(0, at));
	assert_true(hca_adopt_end(0, true));
	pid = fork();
	if (!pid)
		_exit(!adopt(0, at));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(adopt(0, at));
	expect(at, 1);
}
