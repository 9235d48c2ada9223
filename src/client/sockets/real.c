/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions that ours stand before: see real.h. The one registry of them is here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "sockets/real.h"

struct sockets_reals sockets_reals;

void sockets_real_find(void)
{
	/* C has no conversion of a data pointer to a function's: the bytes are copied */
#define FIND(result, name, args)                              \
	{                                                     \
		void *at = dlsym(RTLD_NEXT, #name);           \
                                                              \
		memcpy(&sockets_reals.name, &at, sizeof(at)); \
	}
	SOCKETS_REAL(FIND)
#undef FIND
	atomic_store_explicit(&sockets_reals.found, true, memory_order_release);
}

/* Before a signal handler needs them: write(2) may be called there, dlsym(3) may not. */
__attribute__((constructor)) static void find_early(void)
{
	sockets_real_find();
}
