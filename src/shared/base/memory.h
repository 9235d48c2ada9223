/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much memory there is for this process. It may be in a cgroup with a limit, as in a container:
 * who needs more then is ended by the kernel, or a neighbour is. Where the kernel promises no more
 * than there is (vm.overcommit_memory 2), a page of shared memory that cannot be had is a signal.
 *
 * No state; any thread. No cancellation point; errno stays.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Whether memory that was not written yet may turn out not to be there. */
bool base_memory_is_limited(void);

#define BASE_MEMORY_NO_LIMIT (1ull << 60)

/*
 * The bytes that are left beyond a reserve for what nobody asks for: a sixteenth of the limit, 16
 * MiB at most. Memory of files that are only cached counts as free, but is not counted where there
 * is @enough without it. Swap does not count. BASE_MEMORY_NO_LIMIT: it is not limited.
 */
uint64_t base_memory_left(uint64_t enough);

#endif
