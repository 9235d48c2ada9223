/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of the checker comes from the C library's allocator, whichever the program has: below the
 * lock of the checker nobody waits for the program's, which may call us with a lock of its own held
 * (wrap_allocator.c). Safe from any thread.
 */
#ifndef CHECKED_ALLOCATOR_H
#define CHECKED_ALLOCATOR_H

#include <stdlib.h>

/* Frees what another library has allocated, by the program's allocator. */
#ifdef CHECKED_HAS_ALLOCATOR
void __real_free(void *at);
#define checked_free_foreign __real_free
#else
#define checked_free_foreign free
#endif

#endif
