/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells valgrind's tools that look for races (helgrind, drd) which memory to leave alone: memory
 * that a card would read and write unseen by them. Tells memcheck which memory a card has. A
 * request is a few instructions that do nothing on a processor, and that valgrind understands. Its
 * numbers, from valgrind's manual and its headers of version 3.6 and later, are part of its
 * interface. Thread-safe; never blocks.
 */
#ifndef BASE_VALGRIND_H
#define BASE_VALGRIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum base_valgrind_request {
	BASE_VALGRIND_IS_RUNNING = 0x1001,
	BASE_VALGRIND_CHANGE_ERRORS = 0x1801, /* 1: no errors of this thread; -1: again */
	BASE_VALGRIND_HELGRIND = 'H' << 24 | 'G' << 16,
	BASE_VALGRIND_HELGRIND_IGNORE = BASE_VALGRIND_HELGRIND + 256 + 39,
	BASE_VALGRIND_HELGRIND_WATCH = BASE_VALGRIND_HELGRIND + 256 + 40,
	BASE_VALGRIND_DRD = 'D' << 24 | 'R' << 16,
	BASE_VALGRIND_DRD_IGNORE = BASE_VALGRIND_DRD + 2,
	BASE_VALGRIND_DRD_WATCH = BASE_VALGRIND_DRD + 3,
	BASE_VALGRIND_MEMCHECK = 'M' << 24 | 'C' << 16,
	BASE_VALGRIND_NO_ACCESS = BASE_VALGRIND_MEMCHECK,
	BASE_VALGRIND_UNDEFINED = BASE_VALGRIND_MEMCHECK + 1,
	BASE_VALGRIND_DEFINED = BASE_VALGRIND_MEMCHECK + 2,
	BASE_VALGRIND_GET_BITS = BASE_VALGRIND_MEMCHECK + 8,
	BASE_VALGRIND_SET_BITS = BASE_VALGRIND_MEMCHECK + 9,
};

#define BASE_VALGRIND_DONE 1 /* an answer about bits: all of the memory can be used */

/* Returns valgrind's answer; 0: it does not run, or the tool does not know the request. */
static inline uint64_t base_valgrind_ask_of(uint64_t request, uint64_t a, uint64_t b, uint64_t c)
{
	volatile uint64_t args[6] = { request, a, b, c };
	uint64_t answer = 0;

#if defined(__x86_64__)
	__asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\t"
	                 "rolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
	                 "xchgq %%rbx, %%rbx"
	                 : "+d"(answer)
	                 : "a"(args)
	                 : "cc", "memory");
#elif defined(__aarch64__)
	__asm__ volatile("mov x3, %1\n\tmov x4, %2\n\t"
	                 "ror x12, x12, #3\n\tror x12, x12, #13\n\t"
	                 "ror x12, x12, #51\n\tror x12, x12, #61\n\t"
	                 "orr x10, x10, x10\n\t"
	                 "mov %0, x3"
	                 : "=r"(answer)
	                 : "r"(answer), "r"(args)
	                 : "cc", "memory", "x3", "x4");
#endif
	return answer;
}

static inline uint64_t base_valgrind_ask(uint64_t request, uint64_t a, uint64_t b)
{
	return base_valgrind_ask_of(request, a, b, 0);
}

static inline bool base_valgrind_runs(void)
{
	return base_valgrind_ask(BASE_VALGRIND_IS_RUNNING, 0, 0) != 0;
}

/* From now on accesses to the memory are none of a race; or may be again. */
static inline void base_valgrind_ignore(const void *at, size_t bytes, bool ignore)
{
	base_valgrind_ask(ignore ? BASE_VALGRIND_HELGRIND_IGNORE : BASE_VALGRIND_HELGRIND_WATCH,
	                  (uintptr_t)at, bytes);
	base_valgrind_ask(ignore ? BASE_VALGRIND_DRD_IGNORE : BASE_VALGRIND_DRD_WATCH,
	                  (uintptr_t)at, bytes);
}

/* Reads or writes which bits of memory memcheck takes for undefined, a byte for each byte. */
static inline uint64_t base_valgrind_bits(const void *at, uint8_t *bits, size_t bytes, bool set)
{
	return base_valgrind_ask_of(set ? BASE_VALGRIND_SET_BITS : BASE_VALGRIND_GET_BITS,
	                            (uintptr_t)at, (uintptr_t)bits, bytes);
}

#endif
