/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adopted memory: whole pages of a memory region that lie in a file of the process, which is in
 * memory alone, at the address that they have always had. A peer that maps the file reaches them
 * without a system call.
 *
 * No correct program may notice. So memory is adopted only if it is plain (plain.h), overlaps no
 * other region, and the setting adopt is 1; and it is given back as soon as its last region is
 * gone.
 *
 * Beside other threads their writes are held while it moves (hold.h), where the kernel lets this
 * process do so; else nothing is adopted there. It is given back in one of three ways:
 *
 * - The process is alone (one thread): private anonymous memory again, in the same place.
 * - It has other threads by now, which may be writing there: in one step, of which they notice
 *   nothing, a private mapping of the file. Then each page becomes the process's own, and the file
 *   is emptied, so that the mapping is like anonymous memory: MADV_DONTNEED gives zeros.
 * - Something may have pinned the pages by now, or another region overlaps: not yet, but as soon as
 * a region comes or goes and that is over.
 *
 * fork(): at first the child shares the memory with its parent. It makes it private memory of its
 * own, and fork() returns in the parent when that is done. Signals to the two wait until then. A
 * process that has forked while it had adopted memory adopts none again; nor does one in which 64
 * pieces of memory were given back.
 *
 * A program may close the descriptor of the file, as it does not know it, and have another file of
 * that number. Nothing is adopted any more then, and what is adopted is given back once the process
 * is alone.
 *
 * Each place of the table of objects (object.h) has a part of the file of its own, as large as the
 * address space, in which an address is the offset: nothing but holes is beside what is adopted.
 *
 * With the lock of the table of regions held.
 */
#ifndef HCA_ADOPT_H
#define HCA_ADOPT_H

#include <stdbool.h>
#include <stdint.h>

struct hca_process;

#define HCA_ADOPT_MOST  (64ull << 20) /* bytes of a region: moving more takes too long */
#define HCA_ADOPT_SHIFT 48            /* bits of an address, on ARM; x86 has 47 */

/* Where memory at @from lies in the file. */
static inline uint64_t hca_adopt_offset(unsigned slot, uint64_t from)
{
	return ((uint64_t)slot << HCA_ADOPT_SHIFT) + from;
}

/* Whether the pages from @from to @to are adopted now, as those of the free place @slot. */
bool hca_adopt(struct hca_process *p, unsigned slot, uint64_t from, uint64_t to);

/* Whether the memory from @from to @to still is what was adopted as @slot. */
bool hca_adopt_is_there(unsigned slot, uint64_t from, uint64_t to);

/* Gives back what was adopted as @slot. Nobody is using it, nothing is pinned; @is_alone: the
 * process is (plain.h). False: that cannot be done now. */
bool hca_adopt_end(unsigned slot, bool is_alone);

/* Whether nothing can be adopted as @slot any more: a private mapping of its part of the file may
 * be left, which shows what is there. */
bool hca_adopt_is_spent(unsigned slot);

/* Maps @bytes of the file from @offset on once more, for accesses that are none of the program's:
 * the program's changes of its own mapping do not affect this one. It stays when the memory is
 * given back, and shows zeros then. NULL: it cannot be mapped. */
void *hca_adopt_map_again(uint64_t offset, uint64_t bytes);
void hca_adopt_unmap(void *at, uint64_t bytes);

/* Whether anything is adopted. */
bool hca_adopt_any(void);

#endif
