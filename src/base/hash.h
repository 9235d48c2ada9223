/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An intrusive hash table: the caller embeds a node and finds it by a 64-bit hash
 * of its own making, comparing keys itself. Grows by doubling. Also the hash
 * function for short keys. Not thread-safe.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct base_hash_node {
	struct base_hash_node *next, **link; /* link: what points at this node */
	uint64_t hash;
};

struct base_hash {
	struct base_hash_node **bucket;
	size_t n_buckets; /* a power of two, or 0 before the first node */
	size_t n;
};

/* Adds @node under @hash. 0 or -ENOMEM. */
int base_hash_add(struct base_hash *h, struct base_hash_node *node, uint64_t hash);

/* Removes @node, which is in @h. Constant in time. */
void base_hash_remove(struct base_hash *h, struct base_hash_node *node);

/* Frees the buckets; the nodes are the caller's. */
void base_hash_fini(struct base_hash *h);

/* The first node under @hash, and the next one after @node. */
struct base_hash_node *base_hash_first(const struct base_hash *h, uint64_t hash);
struct base_hash_node *base_hash_next(const struct base_hash_node *node);

/* All nodes, in no order: NULL begins, NULL ends. Ask for the next one before removing. */
struct base_hash_node *base_hash_walk(const struct base_hash *h, const struct base_hash_node *node);

/* Of @bytes at @key, continuing @seed. */
uint64_t base_hash_of(const void *key, size_t bytes, uint64_t seed);

#endif
