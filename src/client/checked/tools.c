/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All tools at once: see tools.h. A program has one of them at most.
 */
#define _GNU_SOURCE /* mincore() */
#include <sys/mman.h>
#include <unistd.h>

#include "checked/rebind.h"
#include "checked/tools.h"

static bool has_tool, has_sanitizer;

/* Regions may have no memory behind them: null regions, those of device memory, pages that went. */
static bool is_mapped(uint64_t at)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned char there;

	return !mincore((void *)(uintptr_t)(at / page * page), 1, &there);
}

void checked_tools_start(void)
{
/* Where our libraries are built with a sanitizer, it is them that are looked at. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	has_sanitizer = checked_asan_start();
	has_sanitizer |= checked_tsan_start();
	has_tool = checked_memcheck_start() || has_sanitizer;
#endif
}

void checked_tools_library(const void *within)
{
	if (has_sanitizer)
		checked_rebind(within);
}

void checked_tools_lend(struct checked_lent *l)
{
	if (!has_tool || !is_mapped(l->from) || !is_mapped(l->to - 1))
		return;
	if (l->is_written && !l->is_peers) {
		checked_asan_lend(l);
		checked_memcheck_lend(l);
	}
	checked_tsan_lend(l);
}

void checked_tools_return(struct checked_lent *l, uint32_t bytes)
{
	checked_asan_return(l);
	checked_memcheck_return(l, bytes);
	checked_tsan_return(l);
}

bool checked_tools_any(void)
{
	return has_tool;
}

bool checked_tools_see_peers(void)
{
	return checked_tsan_runs();
}

void checked_tools_undefine(uint64_t at, uint32_t bytes)
{
	checked_memcheck_undefine(at, bytes);
}

void checked_tools_sends(void)
{
	checked_tsan_sends();
}

void checked_tools_received(void)
{
	checked_tsan_received();
}

void checked_tools_carry(bool begins)
{
	checked_memcheck_carry(begins);
}
