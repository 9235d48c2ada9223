/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of stream rsockets' buffers. Whether memory may be moved to where peers reach it without a
 * system call takes milliseconds to find out, by looking at all that the process has mapped and
 * opened. So blocks of one size lie side by side, and all of them are registered at one time, for
 * nobody but this process; what peers may write to is registered by each rsocket.
 */
#ifndef RSOCKET_MEMORY_H
#define RSOCKET_MEMORY_H

#include <infiniband/verbs.h>

/* A block of @bytes, all zero, in whole pages. NULL: no memory. */
void *rsocket_memory_get(struct ibv_pd *pd, size_t bytes);

/* Nothing within it is registered any more. NULL: nothing happens. */
void rsocket_memory_put(void *block);

#endif
