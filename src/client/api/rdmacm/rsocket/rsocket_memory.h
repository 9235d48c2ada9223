/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of stream rsockets' buffers, which peers on this machine write to without a system call:
 * it is a System V segment from the start. Ordinary memory would have to be moved first (adopt.h):
 * to decide on that takes milliseconds, and it is not done for processes with many descriptors, nor
 * mostly for those with threads. Blocks of one size share a segment.
 */
#ifndef RSOCKET_MEMORY_H
#define RSOCKET_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* A block of @bytes, all zero, in whole pages. NULL: no memory. */
void *rsocket_memory_get(size_t bytes);

/* Nothing within it is registered any more. NULL: nothing happens. @is_quiet: nor is a peer in the
 * middle of writing there; else the block is nobody's from now on. */
void rsocket_memory_put(void *block, bool is_quiet);

#endif
