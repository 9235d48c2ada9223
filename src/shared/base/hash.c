/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The intrusive hash table: see hash.h.
 */
#include <errno.h>
#include <stdbool.h>
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

/* Where the nodes with this hash are. */
static struct base_hash_node **bucket_of(const struct base_hash *h, uint64_t hash)
{
	size_t i = hash & (h->n_buckets / 2 - 1);

	if (h->old && i >= h->moved)
		return &h->old[i];
	return &h->bucket[hash & (h->n_buckets - 1)];
}

/* Moves the nodes of one more bucket. */
static void move_some(struct base_hash *h)
{
	size_t i = h->moved++;

	while (h->old[i]) {
		struct base_hash_node *node = h->old[i];

		h->old[i] = node->next;
		put_first(&h->bucket[node->hash & (h->n_buckets - 1)], node);
	}
	if (h->moved < h->n_buckets / 2)
		return;
	free(h->old);
	h->old = NULL;
}

/* Without memory it stays as it is, and its buckets get fuller. */
static void grow(struct base_hash *h)
{
	size_t n = h->n_buckets ? h->n_buckets * 2 : FIRST_BUCKETS;
	struct base_hash_node **bucket = calloc(n, sizeof(*bucket));

	if (!bucket)
		return;
	h->old = h->bucket;
	h->moved = 0;
	h->bucket = bucket;
	h->n_buckets = n;
}

int base_hash_add(struct base_hash *h, struct base_hash_node *node, uint64_t hash)
{
	if (h->old)
		move_some(h);
	if (h->n >= h->n_buckets && !h->old)
		grow(h);
	if (!h->n_buckets)
		return -ENOMEM;
	node->hash = hash;
	put_first(bucket_of(h, hash), node);
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
	free(h->old);
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
	return h->n ? match(*bucket_of(h, hash), hash) : NULL;
}

struct base_hash_node *base_hash_next(const struct base_hash_node *node)
{
	return match(node->next, node->hash);
}

/* The first node in the buckets from number @i on: of old ones, then of the others. */
static struct base_hash_node *first_from(const struct base_hash *h, bool old, size_t i)
{
	for (; old && i < h->n_buckets / 2; i++)
		if (h->old[i])
			return h->old[i];
	for (i = old ? 0 : i; i < h->n_buckets; i++)
		if (h->bucket[i])
			return h->bucket[i];
	return NULL;
}

struct base_hash_node *base_hash_walk(const struct base_hash *h, const struct base_hash_node *node)
{
	size_t i;

	if (!node)
		return first_from(h, h->old, h->old ? h->moved : 0);
	if (node->next)
		return node->next;
	i = node->hash & (h->n_buckets / 2 - 1);
	if (h->old && i >= h->moved)
		return first_from(h, true, i + 1);
	return first_from(h, false, (node->hash & (h->n_buckets - 1)) + 1);
}

void base_hash_free(struct base_hash *h, size_t at)
{
	struct base_hash_node *node = base_hash_walk(h, NULL), *next;

	for (; node; node = next) {
		next = base_hash_walk(h, node);
		free((char *)node - at);
	}
	base_hash_fini(h);
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
