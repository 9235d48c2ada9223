/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The intrusive hash table: see hash.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

#define FIRST_BUCKETS 16

static int grow(struct base_hash *h)
{
	size_t n = h->n_buckets ? h->n_buckets * 2 : FIRST_BUCKETS;
	struct base_hash_node **bucket = calloc(n, sizeof(*bucket));

	if (!bucket)
		return -ENOMEM;
	for (size_t i = 0; i < h->n_buckets; i++) {
		while (h->bucket[i]) {
			struct base_hash_node *node = h->bucket[i];

			h->bucket[i] = node->next;
			node->next = bucket[node->hash & (n - 1)];
			bucket[node->hash & (n - 1)] = node;
		}
	}
	free(h->bucket);
	h->bucket = bucket;
	h->n_buckets = n;
	return 0;
}

int base_hash_add(struct base_hash *h, struct base_hash_node *node, uint64_t hash)
{
	struct base_hash_node **b;

	if (h->n == h->n_buckets && grow(h) && !h->n_buckets)
		return -ENOMEM;
	b = &h->bucket[hash & (h->n_buckets - 1)];
	node->hash = hash;
	node->next = *b;
	*b = node;
	h->n++;
	return 0;
}

void base_hash_remove(struct base_hash *h, struct base_hash_node *node)
{
	struct base_hash_node **b = &h->bucket[node->hash & (h->n_buckets - 1)];

	while (*b != node)
		b = &(*b)->next;
	*b = node->next;
	h->n--;
}

void base_hash_fini(struct base_hash *h)
{
	free(h->bucket);
	*h = (struct base_hash){ 0 };
}

static struct base_hash_node *match(struct base_hash_node *node, uint64_t hash)
{
	while (node && node->hash != hash)
		node = node->next;
	return node;
}

struct base_hash_node *base_hash_first(const struct base_hash *h, uint64_t hash)
{
	return h->n ? match(h->bucket[hash & (h->n_buckets - 1)], hash) : NULL;
}

struct base_hash_node *base_hash_next(const struct base_hash_node *node)
{
	return match(node->next, node->hash);
}

struct base_hash_node *base_hash_walk(const struct base_hash *h, const struct base_hash_node *node)
{
	size_t i = 0;

	if (node) {
		if (node->next)
			return node->next;
		i = (node->hash & (h->n_buckets - 1)) + 1;
	}
	for (; i < h->n_buckets; i++)
		if (h->bucket[i])
			return h->bucket[i];
	return NULL;
}

uint64_t base_hash_of(const void *key, size_t bytes, uint64_t seed)
{
	const unsigned char *p = key;
	uint64_t h = seed ^ 0x9E3779B97F4A7C15ull;

	for (size_t i = 0; i < bytes; i++)
		h = (h ^ p[i]) * 0x100000001B3ull;
	h ^= h >> 32;
	h *= 0xD6E8FEB86659FD93ull;
	return h ^ h >> 32;
}
