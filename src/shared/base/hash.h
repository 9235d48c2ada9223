/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An intrusive hash table. The caller embeds a node in its struct, computes a 64-bit hash, and
 * compares keys itself. The table grows by doubling, and moves its nodes bucket by bucket as others
 * are added, so that no single one takes long. Also the hash function for short keys. Not
 * thread-safe.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct base_hash_node {
	struct base_hash_node *next, **link; /* link: the pointer that points at this node */
	uint64_t hash;
};

struct base_hash {
	struct base_hash_node **bucket;
	size_t n_buckets; /* a power of two, or 0 before the first node */
	size_t n;
	struct base_hash_node **old; /* half as many, while it grows; NULL: it does not */
	size_t moved;                /* of these, from the first: their nodes are in the new ones */
};

/* Adds @node under @hash; the node stays the caller's. Returns 0 or -ENOMEM. */
int base_hash_add(struct base_hash *h, struct base_hash_node *node, uint64_t hash);

/* Removes @node, which is in @h, in constant time. */
void base_hash_remove(struct base_hash *h, struct base_hash_node *node);

/* Frees the buckets, not the nodes. */
void base_hash_fini(struct base_hash *h);

/* Frees the buckets, and all structs, from malloc(), whose nodes are at the offset @at. */
void base_hash_free(struct base_hash *h, size_t at);

/* The first node under @hash, and the next one under the hash of @node; NULL: there is none. */
struct base_hash_node *base_hash_first(const struct base_hash *h, uint64_t hash);
struct base_hash_node *base_hash_next(const struct base_hash_node *node);

/* Each struct under the hash @key, as @entry; its node is @member. None may be removed meanwhile.
 */
#define BASE_HASH_FOREACH(entry, table, key, member)                                              \
	for (struct base_hash_node *entry##_at = base_hash_first(table, key);                     \
	     entry##_at && ((entry) = container_of(entry##_at, __typeof__(*(entry)), member), 1); \
	     entry##_at = base_hash_next(entry##_at))

/*
 * Walks all nodes, in no order: the node after @node, or the first one if @node is NULL; NULL: the
 * end. To remove @node, get the next one first. Adding a node ends the walk.
 */
struct base_hash_node *base_hash_walk(const struct base_hash *h, const struct base_hash_node *node);

/* The hash of @bytes bytes at @key, with @seed. */
uint64_t base_hash_of(const void *key, size_t bytes, uint64_t seed);

#endif
