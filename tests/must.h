/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What must be so in programs without cmocka. If it is not, the program says so, in err(3)'s or
 * errx(3)'s words, and ends with status 1.
 */
#ifndef TESTS_MUST_H
#define TESTS_MUST_H

#include "posix.h"

/* A call that must succeed; errno says why it does not. It may be an assignment. */
#define MUST(x) ((x) ? (void)0 : err(EXIT_FAILURE, "%s", #x))

/* The same, in words. */
static inline void check(bool ok, const char *what)
{
	if (!ok)
		err(EXIT_FAILURE, "%s", what);
}

/* must(CONDITION, FORMAT...): the rest says what is wrong otherwise, without errno. */
#define must(x, ...) ((x) ? (void)0 : errx(EXIT_FAILURE, __VA_ARGS__))

#endif
