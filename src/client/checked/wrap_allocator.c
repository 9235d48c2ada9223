/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The allocator of the checker: see allocator.h. The linker has all calls in this library come
 * here. Not where our libraries are built with a sanitizer, which looks at all memory.
 */
#include <stddef.h>

#include "checked/allocator.h"

#ifdef CHECKED_HAS_ALLOCATOR

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);
void __libc_free(void *at);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *at, size_t bytes);
void __wrap_free(void *at);

void *__wrap_malloc(size_t bytes)
{
	return __libc_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	return __libc_calloc(n, bytes);
}

void *__wrap_realloc(void *at, size_t bytes)
{
	return __libc_realloc(at, bytes);
}

void __wrap_free(void *at)
{
	__libc_free(at);
}

#endif
