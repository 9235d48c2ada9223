/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The common part of wrap_*.c, the files with functions of the C library's names. Each resolves the
 * path that it is given, and either calls the real function or does for a node of the tree what
 * that would do.
 *
 * On the machines that we support, files are large (off_t has 64 bits), so open64() is open().
 */
#ifndef SYSFS_WRAP_H
#define SYSFS_WRAP_H

#include <assert.h>
#include <errno.h>
#include <sys/types.h>

#include "sysfs/path.h"
#include "sysfs/real.h"

static_assert(sizeof(off_t) == 8, "open64() is another function");

/* The function @alias, which the headers declare with other types, is @name. */
#define SYSFS_ALIAS(alias, name) \
	__asm__(".globl " #alias "\n\t.type " #alias ", %function\n\t.set " #alias ", " #name)

/* The functions that gcc calls instead where it knows the size of a buffer (_FORTIFY_SOURCE). */
void __chk_fail(void) __attribute__((noreturn));

/* -1 and errno. */
static inline int sysfs_fail(int error)
{
	errno = error;
	return -1;
}

#endif
