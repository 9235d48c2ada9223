/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registered memory, for packets that are sent or received. The kernel backs it at once: an owner
 * begins with little, as most of a thousand interfaces are idle, and adds more with the first
 * burst. Not thread-safe.
 */
#ifndef IPOIB_AREA_H
#define IPOIB_AREA_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct ipoib_area {
	uint8_t *memory; /* NULL: there is none */
	size_t bytes;
	struct ibv_mr *mr;
};

/* 0, or -errno, and there is none. */
int ipoib_area_make(struct ipoib_area *area, struct ibv_pd *pd, size_t bytes);
void ipoib_area_free(struct ipoib_area *area);

#endif
