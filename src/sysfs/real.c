/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions that ours stand before: see real.h. The one registry of them is here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "sysfs/real.h"

struct sysfs_reals sysfs_reals;

void sysfs_real_find(void)
{
	/* C has no conversion of a data pointer to a function's: the bytes are copied */
#define FIND(result, name, args)                            \
	{                                                   \
		void *at = dlsym(RTLD_NEXT, #name);         \
                                                            \
		memcpy(&sysfs_reals.name, &at, sizeof(at)); \
	}
	SYSFS_REAL(FIND)
#undef FIND
	atomic_store_explicit(&sysfs_reals.found, true, memory_order_release);
}

/* Before a signal handler needs them: send(2) may be called there, dlsym(3) may not. */
__attribute__((constructor)) static void find_early(void)
{
	sysfs_real_find();
}
