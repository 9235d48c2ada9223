/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether memory of this process is plain: nobody but this process's threads knows where its pages
 * are or writes to them, and the program has asked the kernel for nothing special about them. Such
 * pages can be moved without anybody noticing (adopt.h). Whatever cannot be told counts as not
 * plain.
 *
 * No function here allocates memory.
 */
#ifndef HCA_PLAIN_H
#define HCA_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

#define HCA_PAGE 4096ull

/* Whether no other thread or process has this address space. */
bool hca_plain_alone(void);

/* Whether the kernel may know pages of this process by other means than their addresses, and write
 * to them at any time: io_uring, AIO, AF_XDP, devices. */
bool hca_plain_pinned(void);

/* Whether the page at @at is there and belongs to a file or is shared. */
bool hca_plain_is_shared(uint64_t at);

/* Whether all pages from @from to @to, whole ones, are there and plain, but for what other threads
 * do. */
bool hca_plain_range(uint64_t from, uint64_t to);

/*
 * Whether another thread could notice that pages from @from to @to move while its writes are held
 * (hold.h): it waits for a futex there, as one that processes may share is of a page, not of an
 * address; or it has open files of its own, or a child in this address space: hca_plain_pinned()
 * does not see the kernel's writes for these.
 */
bool hca_plain_noticed(uint64_t from, uint64_t to);

#endif
