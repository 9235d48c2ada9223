/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Holding writes to memory of this process: another thread, or the kernel in a system call of
 * another thread, that is about to write there waits until the hold ends. It notices nothing else,
 * so that memory can be moved beside other threads (adopt.h). A thread that only reads does not
 * wait.
 *
 * By userfaultfd(2), where that holds the kernel's writes, too: for a process with CAP_SYS_PTRACE
 * in the initial user namespace, with the sysctl vm.unprivileged_userfaultfd, or for a process that
 * may open /dev/userfaultfd; since Linux 6.4.
 *
 * The thread that holds memory must neither write there itself nor wait for other threads. No
 * function here allocates memory.
 */
#ifndef HCA_HOLD_H
#define HCA_HOLD_H

#include <stdbool.h>
#include <stdint.h>

/* Whether this process may hold writes. */
bool hca_hold_is_possible(void);

/* Holds writes to the pages from @from to @to, which are private anonymous memory. A descriptor for
 * the functions below, or -errno. */
int hca_hold(uint64_t from, uint64_t to);

/* Other memory has been mapped from @from to @to: writes go on there. */
void hca_hold_replaced(int hold, uint64_t from, uint64_t to);

/* All writes go on. */
void hca_hold_end(int hold);

#endif
