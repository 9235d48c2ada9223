/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that the card writes is poisoned for AddressSanitizer: see tools.h. Its shadow has a byte
 * for each eight, the granule: 0, all can be used; 1 to 7, so many of the first; else none, and why
 * not.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#include "checked/tools.h"

#define GRANULE 8
#define BY_USER 0xf7 /* of the shadow: poisoned by hand */

static struct {
	void (*poison)(const volatile void *at, size_t bytes);
	void (*unpoison)(const volatile void *at, size_t bytes);
	void *(*first_poisoned)(void *at, size_t bytes);
	uintptr_t offset; /* of the shadow; 0: there is no AddressSanitizer */
} asan;

bool checked_asan_start(void)
{
	void (*mapping)(size_t * scale, size_t * offset) =
	        dlsym(RTLD_DEFAULT, "__asan_get_shadow_mapping");
	size_t scale = 0, offset = 0;

	asan.poison = dlsym(RTLD_DEFAULT, "__asan_poison_memory_region");
	asan.unpoison = dlsym(RTLD_DEFAULT, "__asan_unpoison_memory_region");
	asan.first_poisoned = dlsym(RTLD_DEFAULT, "__asan_region_is_poisoned");
	if (mapping && asan.poison && asan.unpoison && asan.first_poisoned)
		mapping(&scale, &offset);
	asan.offset = (1u << scale) == GRANULE ? offset : 0;
	return asan.offset != 0;
}

static void *memory(uint64_t at)
{
	return (void *)(uintptr_t)at;
}

/* Not what is poisoned in part already: the end of a block, or a buffer of another request. */
void checked_asan_lend(struct checked_lent *l)
{
	if (!asan.offset || asan.first_poisoned(memory(l->from), l->to - l->from))
		return;
	asan.poison(memory(l->from), l->to - l->from);
	l->is_poisoned = true;
}

/* Whether it is still poisoned as we left it: the block may have been freed, the stack used anew.
 */
static bool is_ours(const struct checked_lent *l, uint64_t at)
{
	const uint8_t shadow = *(const uint8_t *)(at / GRANULE + asan.offset);

	return shadow == BY_USER || (at == l->from && at % GRANULE && shadow == at % GRANULE);
}

static uint64_t next_granule(const struct checked_lent *l, uint64_t at)
{
	const uint64_t next = at / GRANULE * GRANULE + GRANULE;

	return next < l->to ? next : l->to;
}

void checked_asan_return(struct checked_lent *l)
{
	uint64_t at = l->from, end;

	for (; l->is_poisoned && at < l->to; at = end) {
		end = at;
		while (end < l->to && is_ours(l, end))
			end = next_granule(l, end);
		if (end > at)
			asan.unpoison(memory(at), end - at);
		else
			end = next_granule(l, at);
	}
	l->is_poisoned = false;
}
