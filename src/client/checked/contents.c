/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Contents of memory: see contents.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/util.h"
#include "base/valgrind.h"
#include "checked/contents.h"
#include "checked/report.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define SHORT 1024 /* bytes that are copied */
#define PIECE 4096 /* bytes that have a sum */

struct checked_contents {
	bool is_copy;
	union {
		unsigned char copy[SHORT];
		uint64_t sum[1]; /* of each piece */
	};
};

static pid_t self;
static bool can_probe;
static uint64_t page;

/* Whether the eight bytes can be read: the kernel reads them before it finds that there is no such
 * change of the mask of signals. It costs a seventh of process_vm_readv(). */
static bool probe(uint64_t at)
{
	return syscall(SYS_rt_sigprocmask, -1, at, NULL, sizeof(uint64_t)) < 0 && errno != EFAULT;
}

/* Not all that call themselves Linux do it in this order, and valgrind writes a line for each. */
static bool probe_works(void)
{
	uint64_t word = 0;
	void *none = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const bool works = none != MAP_FAILED && probe((uintptr_t)&word) && !probe((uintptr_t)none);

	if (none != MAP_FAILED)
		munmap(none, page);
	return works;
}

void checked_contents_start(void)
{
	self = getpid();
	if (page)
		return;
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	can_probe = !base_valgrind_runs() && probe_works();
}

static bool read_memory(void *to, uint64_t from, size_t bytes)
{
	const struct iovec here = { to, bytes }, there = { (void *)(uintptr_t)from, bytes };

	if (process_vm_readv(self, &here, 1, &there, 1, 0) == (ssize_t)bytes)
		return true;
	if (errno == EPERM || errno == ENOSYS)
		checked_say("the contents of buffers: process_vm_readv() is not permitted");
	return false;
}

/* Not by memcpy(), which a sanitizer has in its place. */
static void copy(unsigned char *to, const unsigned char *from, size_t bytes)
{
	const unsigned char *const end = from + bytes;

	for (; end - from >= (ptrdiff_t)sizeof(uint64_t); to += sizeof(uint64_t)) {
		__builtin_memcpy(to, from, sizeof(uint64_t));
		from += sizeof(uint64_t);
	}
	while (from < end)
		*to++ = *(const volatile unsigned char *)from++;
}

/* Of a short piece of memory, which is on two pages at most. */
static bool read_short(void *to, uint64_t from, size_t bytes)
{
	const uint64_t last = (from + bytes - 1) & ~(uint64_t)7, first = from & ~(uint64_t)7;
	const int error = errno;
	bool is_there;

	if (!can_probe)
		return read_memory(to, from, bytes);
	is_there = probe(first) && (first / page == last / page || probe(last));
	errno = error;
	if (is_there)
		copy(to, (const unsigned char *)(uintptr_t)from, bytes);
	return is_there;
}

/* Whether all of it can be read where it is: it is mapped, and its file, if any, is long enough. A
 * kernel before 5.14 does not say. */
static bool is_readable(uint64_t at, uint32_t bytes)
{
	const uint64_t from = at & ~(page - 1);

	return !madvise((void *)(uintptr_t)from, at + bytes - from, MADV_POPULATE_READ);
}

/* The numbers that the processor adds in one instruction, and how many such vectors are summed side
 * by side. */
typedef uint64_t vector __attribute__((vector_size(16)));
#define VECTORS 4

static inline __attribute__((always_inline)) void add(vector a[VECTORS], vector b[VECTORS],
                                                      const unsigned char *at)
{
	vector word[VECTORS];

	memcpy(word, at, sizeof(word));
#pragma GCC unroll 4
	for (unsigned i = 0; i < VECTORS; i++) {
		a[i] += word[i];
		b[i] += a[i];
	}
}

/* Words that change places change it, too: each is part of all sums from its own on. */
static uint64_t sum_piece(const unsigned char *at, uint32_t bytes)
{
	vector a[VECTORS] = { { 0 } }, b[VECTORS] = { { 0 } };
	unsigned char rest[sizeof(a)] = { 0 };
	uint64_t sum = bytes;

	for (; bytes >= sizeof(a); bytes -= (uint32_t)sizeof(a), at += sizeof(a))
		add(a, b, at);
	memcpy(rest, at, bytes);
	add(a, b, rest);
	for (unsigned i = 0; i < 2 * VECTORS; i++)
		sum = (sum ^ a[i / 2][i % 2] ^ (b[i / 2][i % 2] << 1)) * 0x9E3779B97F4A7C15 + i;
	return sum;
}

static bool make_sums(uint64_t *sum, uint64_t at, uint32_t bytes)
{
	unsigned char room[PIECE];
	const bool here = is_readable(at, bytes);

	for (uint32_t done = 0; done < bytes; done += PIECE) {
		const uint32_t n = bytes - done < PIECE ? bytes - done : PIECE;

		if (!here && !read_memory(room, at + done, n))
			return false;
		*sum++ = sum_piece(here ? (const unsigned char *)(uintptr_t)(at + done) : room, n);
	}
	return true;
}

static size_t pieces_of(uint32_t bytes)
{
	return ((size_t)bytes + PIECE - 1) / PIECE;
}

struct checked_contents *checked_contents_of(uint64_t at, uint32_t bytes)
{
	const bool is_copy = bytes <= SHORT;
	struct checked_contents *c =
	        malloc(offsetof(struct checked_contents, copy) +
	               (is_copy ? bytes : pieces_of(bytes) * sizeof(c->sum[0])));

	if (!c)
		return NULL;
	c->is_copy = is_copy;
	if (is_copy ? read_short(c->copy, at, bytes) : make_sums(c->sum, at, bytes))
		return c;
	free(c);
	return NULL;
}

static bool short_changed(const struct checked_contents *c, uint64_t at, uint32_t bytes,
                          uint32_t *from, uint32_t *to)
{
	unsigned char now[SHORT];
	uint32_t first = *from, end = bytes;

	if (!read_short(now, at, bytes) || !memcmp(now + first, c->copy + first, bytes - first))
		return false;
	while (now[first] == c->copy[first])
		first++;
	while (now[end - 1] == c->copy[end - 1])
		end--;
	*from = first;
	*to = end;
	return true;
}

bool checked_contents_changed(const struct checked_contents *c, uint64_t at, uint32_t bytes,
                              uint32_t *from, uint32_t *to)
{
	const size_t n = pieces_of(bytes);
	size_t first = 0, end = n;
	bool changed = false;
	uint64_t *now;

	if (c->is_copy)
		return short_changed(c, at, bytes, from, to);
	now = malloc(n * sizeof(*now));
	if (now && make_sums(now, at, bytes) && memcmp(now, c->sum, n * sizeof(*now))) {
		changed = true;
		while (now[first] == c->sum[first])
			first++;
		while (now[end - 1] == c->sum[end - 1])
			end--;
		*from = (uint32_t)first * PIECE;
		*to = end * PIECE < bytes ? (uint32_t)end * PIECE : bytes;
	}
	free(now);
	return changed;
}
