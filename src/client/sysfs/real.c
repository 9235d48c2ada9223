/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions that ours stand before: see real.h. The one registry of them is here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "sysfs/real.h"

struct sysfs_reals sysfs_reals;

#ifdef _STAT_VER /* up to 2.32 the C library has stat() and its like by these names only */
static int old_stat(const char *path, struct stat *st)
{
	return sysfs_reals.__xstat(_STAT_VER, path, st);
}

static int old_lstat(const char *path, struct stat *st)
{
	return sysfs_reals.__lxstat(_STAT_VER, path, st);
}

static int old_fstat(int fd, struct stat *st)
{
	return sysfs_reals.__fxstat(_STAT_VER, fd, st);
}

static int old_fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return sysfs_reals.__fxstatat(_STAT_VER, dir, path, st, flags);
}
#endif

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
#ifdef _STAT_VER
	if (!sysfs_reals.stat) {
		sysfs_reals.stat = old_stat;
		sysfs_reals.lstat = old_lstat;
		sysfs_reals.fstat = old_fstat;
		sysfs_reals.fstatat = old_fstatat;
	}
#endif
	atomic_store_explicit(&sysfs_reals.found, true, memory_order_release);
}

/* Before a signal handler needs them: send(2) may be called there, dlsym(3) may not. */
__attribute__((constructor)) static void find_early(void)
{
	sysfs_real_find();
}
