/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The intrusive hash table: see hash.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define FIRST_BUCKETS 16

static void put_first(struct base_hash_node **head, struct base_hash_node *node)
{
	node->next = *head;
	if (node->next)
		node->next->link = &node->next;
	node->link = head;
	*head = node;
}

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
			put_first(&bucket[node->hash & (n - 1)], node);
		}
	}
	free(h->bucket);
	h->bucket = bucket;
	h->n_buckets = n;
	return 0;
}

int base_hash_add(struct base_hash *h, struct base_hash_node *node, uint64_t hash)
{
	if (h->n == h->n_buckets && grow(h) && !h->n_buckets)
		return -ENOMEM;
	node->hash = hash;
	put_first(&h->bucket[hash & (h->n_buckets - 1)], node);
	h->n++;
	return 0;
}

void base_hash_remove(struct base_hash *h, struct base_hash_node *node)
{
	*node->link = node->next;
	if (node->next)
		node->next->link = node->link;
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

static uint64_t mix(uint64_t h)
{
	/* the last bytes of an MGID, in which groups differ, are the top bits here */
	h ^= h >> 32;
	h *= 0xD6E8FEB86659FD93ull;
	h ^= h >> 32;
	h *= 0xD6E8FEB86659FD93ull;
	return h ^ h >> 32;
}

uint64_t base_hash_of(const void *key, size_t bytes, uint64_t seed)
{
	const unsigned char *p = key;
	uint64_t h = seed ^ 0x9E3779B97F4A7C15ull;

	h = mix(h + bytes);
	for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), p += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, p, sizeof(word));
		h = mix(h ^ word);
	}
	for (; bytes; bytes--)
		h = mix(h ^ *p++);
	return h;
}
