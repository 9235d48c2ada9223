/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fast path's hints to the compiler and the processor: which way a branch goes, lines fetched
 * before they are needed. And short copies without a call. Hints and plain memory, safe from any
 * thread.
 */
#ifndef BASE_FAST_H
#define BASE_FAST_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define base_likely(x)   __builtin_expect(!!(x), 1)
#define base_unlikely(x) __builtin_expect(!!(x), 0)

/* A function that is off the fast path: not inlined, and placed apart. */
#define BASE_COLD __attribute__((cold, noinline))
/* A function on the fast path: inlined, however large it is. */
#define BASE_HOT inline __attribute__((always_inline))

/*
 * Begins to fetch the line of @p in order to write to it, so that others' copies of it go
 * meanwhile. Never faults. gcc's builtin makes a fetch for reading of it unless it may assume
 * more than the oldest x86-64.
 */
static inline void base_prefetch_write(const void *p)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/* Where the processor makes nothing of waiting in a loop: some ten or twenty nanoseconds. */
static inline void base_relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb"); /* YIELD takes no time on most of them */
#endif
}

/*
 * A full barrier directly behind a seq_cst store or read-modify-write: later loads of any order
 * come after it. On x86 such an access is a barrier by itself; elsewhere it is none.
 */
static inline void base_fence_behind_seq_cst(void)
{
#ifdef __x86_64__
	atomic_signal_fence(memory_order_seq_cst);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

#define BASE_COPY_SHORT 64

/*
 * memcpy() of at most BASE_COPY_SHORT bytes, inline: two moves of one size that may overlap. The
 * last byte is written once, behind all others: programs wait for it to change, and then use the
 * memory anew. 4 and 8 bytes are one store.
 */
static inline void base_copy_short(void *to, const void *from, size_t n)
{
	typedef uint64_t pair __attribute__((vector_size(16), aligned(1), may_alias));
	typedef uint64_t eight __attribute__((aligned(1), may_alias));
	typedef uint32_t four __attribute__((aligned(1), may_alias));
	const char *f = (const char *)from, *f_end = f + n;
	char *t = (char *)to, *t_end = t + n;

	if (base_likely(n > 32)) {
		pair a = ((const pair *)f)[0], b = ((const pair *)f)[1];
		pair c = ((const pair *)f_end)[-2], d = ((const pair *)f_end)[-1];

		((pair *)t)[0] = a;
		((pair *)t)[1] = b;
		((pair *)t_end)[-2] = c;
		((pair *)t_end)[-1] = d;
	} else if (n > 16) {
		pair a = *(const pair *)f, b = ((const pair *)f_end)[-1];

		*(pair *)t = a;
		((pair *)t_end)[-1] = b;
	} else if (n > 8) {
		eight a = *(const eight *)f, b = ((const eight *)f_end)[-1];

		*(eight *)t = a;
		((eight *)t_end)[-1] = b;
	} else if (n == 8) {
		*(eight *)t = *(const eight *)f;
	} else if (n > 4) {
		four a = *(const four *)f, b = ((const four *)f_end)[-1];

		*(four *)t = a;
		((four *)t_end)[-1] = b;
	} else if (n == 4) {
		*(four *)t = *(const four *)f;
	} else {
		while (t < t_end)
			*t++ = *f++;
	}
}

/* Shorter ones are faster through the caches. */
#define BASE_COPY_PAST_CACHE 2048

/*
 * memcpy() to memory that another processor read last and will read next: longer ones past the
 * caches, where there is an instruction for that. Each line that is written otherwise is fetched
 * from the other processor's cache first.
 */
static inline void base_copy_past_cache(void *to, const void *from, size_t n)
{
#ifdef __x86_64__
	typedef long long pair __attribute__((vector_size(16), may_alias));
	typedef long long any_pair __attribute__((vector_size(16), aligned(1), may_alias));
	const size_t before = -(uintptr_t)to % sizeof(pair);
	const char *f = (const char *)from;
	char *t = (char *)to;

	if (n > BASE_COPY_PAST_CACHE) {
		memcpy(t, f, before);
		t += before;
		f += before;
		n -= before;
		for (; n >= 4 * sizeof(pair); n -= 4 * sizeof(pair)) {
			for (size_t i = 0; i < 4; i++)
				__builtin_ia32_movntdq((pair *)t + i, ((const any_pair *)f)[i]);
			t += 4 * sizeof(pair);
			f += 4 * sizeof(pair);
		}
		__builtin_ia32_sfence(); /* such stores are in no order by themselves */
	}
	memcpy(t, f, n);
#else
	memcpy(to, from, n);
#endif
}

#endif
