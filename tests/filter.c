/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Linked into every test program with cmocka: runs only the cases that the environment variable
 * CMOCKA_TEST_FILTER names ('*' and '?' as in a shell). Without it, all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

__attribute__((constructor)) static void set_filter(void)
{
	const char *pattern = getenv("CMOCKA_TEST_FILTER");

	if (pattern && *pattern)
		cmocka_set_test_filter(pattern);
}
