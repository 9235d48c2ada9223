/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adopted memory: whole pages of memory regions that lie in a file of the process, which is in
 * memory alone, at the address that they have always had. A peer that maps the file reaches them
 * without a system call. An address is also the offset in the file.
 *
 * Adopting moves what the pages hold, so nothing may write to them meanwhile. Adopted is therefore
 * only what is surely nobody else's: private anonymous pages of a process with one thread, of
 * regions that overlap no other region. All else stays where it is and is reached as before
 * (memory.h), which is always right. When the last region on adopted pages is gone, they become
 * private anonymous memory again, if the process still has one thread; if not, at a later time.
 *
 * fork(): adopted pages are copied for the child, as the kernel copies those that hardware uses.
 *
 * With the lock of the table of regions held.
 */
#ifndef HCA_ADOPT_H
#define HCA_ADOPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_process;

#define HCA_ADOPT_PAGE 4096ull
#define HCA_ADOPT_MOST (64ull << 20) /* bytes of a region: copying more takes too long */

/* The whole pages of a region at @start: from the first one to before *@to. */
static inline uint64_t hca_adopt_range(uint64_t start, uint64_t length, uint64_t *to)
{
	*to = (start + length) & ~(HCA_ADOPT_PAGE - 1);
	return (start + HCA_ADOPT_PAGE - 1) & ~(HCA_ADOPT_PAGE - 1);
}

/* Whether the whole pages of the region are adopted, from now on or already. */
bool hca_adopt(struct hca_process *p, const void *start, size_t length);

/* The region, for which hca_adopt() was true, is gone, and nobody is using it any more. */
void hca_adopt_end(struct hca_process *p, const void *start, size_t length);

#endif
