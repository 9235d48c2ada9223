/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranges of memory that requests use, which may overlap, and the question which of them a range
 * meets. A treap ordered by where ranges begin, each node with the furthest end below it: adding,
 * removing and finding one take logarithmic time on average. The nodes are the caller's. Not
 * thread-safe.
 */
#ifndef CHECKED_RANGES_H
#define CHECKED_RANGES_H

#include <stdint.h>

struct checked_range {
	uint64_t from, to; /* to: behind the last byte; more than from */
	struct checked_range *left, *right, *parent;
	uint64_t furthest; /* the largest `to` here and below */
	uint32_t priority;
};

struct checked_ranges {
	struct checked_range *root;
	uint32_t seed;
};

/* ->from and ->to are set. */
void checked_ranges_add(struct checked_ranges *all, struct checked_range *r);
void checked_ranges_remove(struct checked_ranges *all, struct checked_range *r);

/* The first range, by where they begin, that has a byte in common with this one; and the next one
 * behind @r that has. NULL: there is none. */
struct checked_range *checked_ranges_first(const struct checked_ranges *all, uint64_t from,
                                           uint64_t to);
struct checked_range *checked_ranges_next(const struct checked_range *r, uint64_t from,
                                          uint64_t to);

#endif
