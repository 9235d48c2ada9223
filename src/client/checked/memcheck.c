/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that the card writes, told to valgrind's memcheck: see tools.h. It says which bits of
 * memory are defined, and takes that back; of memory that cannot be used it says nothing, and we
 * lend none.
 */
#include <stdlib.h>
#include <string.h>

#include "base/valgrind.h"
#include "checked/tools.h"

#define MOST ((uint64_t)256 << 20) /* bytes that are lent at once */

static bool runs;
static uint64_t lent;

/* memcheck alone knows the request. */
bool checked_memcheck_start(void)
{
	uint8_t byte = 0, bits;

	runs = base_valgrind_bits(&byte, &bits, 1, false) == BASE_VALGRIND_DONE;
	return runs;
}

void checked_memcheck_lend(struct checked_lent *l)
{
	const uint64_t bytes = l->to - l->from;
	void *at = (void *)(uintptr_t)l->from;

	if (!runs || lent + bytes > MOST)
		return;
	l->defined = malloc(bytes);
	if (!l->defined)
		return;
	if (base_valgrind_bits(at, l->defined, bytes, false) != BASE_VALGRIND_DONE) {
		free(l->defined);
		l->defined = NULL;
		return;
	}
	lent += bytes;
	base_valgrind_ask(BASE_VALGRIND_NO_ACCESS, l->from, bytes);
}

void checked_memcheck_return(struct checked_lent *l, uint32_t bytes)
{
	const uint64_t all = l->to - l->from, done = bytes < all ? bytes : all;

	if (!l->defined)
		return;
	memset(l->defined, 0, done); /* 0: it is */
	base_valgrind_ask(BASE_VALGRIND_DEFINED, l->from, all);
	base_valgrind_bits((void *)(uintptr_t)l->from, l->defined, all, true);
	free(l->defined);
	l->defined = NULL;
	lent -= all;
}

void checked_memcheck_undefine(uint64_t at, uint32_t bytes)
{
	if (runs)
		base_valgrind_ask(BASE_VALGRIND_UNDEFINED, at, bytes);
}

void checked_memcheck_carry(bool begins)
{
	if (runs)
		base_valgrind_ask(BASE_VALGRIND_CHANGE_ERRORS, begins ? 1 : UINT64_MAX, 0);
}
