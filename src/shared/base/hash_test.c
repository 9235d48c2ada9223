/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The intrusive hash table and its hash function.
 */
#include <harness.h>

#include "base/hash.h"
#include "base/util.h"

struct item {
	struct base_hash_node node;
	unsigned key;
	bool in, seen;
};

static struct item *item_of(struct base_hash_node *node)
{
	return node ? container_of(node, struct item, node) : NULL;
}

static struct item *find(const struct base_hash *h, unsigned key, uint64_t hash)
{
	struct base_hash_node *n;

	for (n = base_hash_first(h, hash); n; n = base_hash_next(n))
		if (item_of(n)->key == key)
			return item_of(n);
	return NULL;
}

CASE(an_empty_table_finds_and_walks_nothing)
{
	struct base_hash h = { 0 };

	assert_null(base_hash_first(&h, 7));
	assert_null(base_hash_walk(&h, NULL));
	base_hash_fini(&h);
}

CASE(nodes_of_one_hash_are_all_found)
{
	struct base_hash h = { 0 };
	struct item item[100] = { 0 };

	for (unsigned i = 0; EACH_ROW(i, item); i++) {
		item[i].key = i;
		assert_int_equal(base_hash_add(&h, &item[i].node, 42), 0);
	}
	for (unsigned i = 0; EACH_ROW(i, item); i++)
		assert_ptr_equal(find(&h, i, 42), &item[i]);
	base_hash_fini(&h);
}

CASE(hashes_in_one_bucket_are_told_apart)
{
	struct base_hash h = { 0 };
	struct item a = { .key = 1 }, b = { .key = 1 };

	base_hash_add(&h, &a.node, 5);
	base_hash_add(&h, &b.node, 5 + (1ull << 40));
	assert_ptr_equal(find(&h, 1, 5), &a);
	assert_ptr_equal(find(&h, 1, 5 + (1ull << 40)), &b);
	base_hash_fini(&h);
}

CASE(each_of_a_bucket_can_be_removed)
{
	for (unsigned gone = 0; gone < 3; gone++) {
		struct base_hash h = { 0 };
		struct item item[3] = { { .key = 0 }, { .key = 1 }, { .key = 2 } };

		for (unsigned i = 0; i < 3; i++)
			base_hash_add(&h, &item[i].node, 9);
		base_hash_remove(&h, &item[gone].node);
		for (unsigned i = 0; i < 3; i++)
			assert_ptr_equal(find(&h, i, 9), i == gone ? NULL : &item[i]);
		assert_int_equal(h.n, 2);
		base_hash_fini(&h);
	}
}

CASE(the_walk_meets_each_node_once_while_they_are_removed)
{
	struct base_hash h = { 0 };
	struct item item[500] = { 0 };
	struct base_hash_node *n, *next;
	unsigned met = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(item); i++)
		base_hash_add(&h, &item[i].node, base_hash_of(&i, sizeof(i), 0));
	for (n = base_hash_walk(&h, NULL); n; n = next) {
		next = base_hash_walk(&h, n);
		assert_false(item_of(n)->seen);
		item_of(n)->seen = true;
		base_hash_remove(&h, n);
		met++;
	}
	assert_int_equal(met, ARRAY_SIZE(item));
	assert_int_equal(h.n, 0);
	base_hash_fini(&h);
}

static unsigned walk_all(const struct base_hash *h)
{
	unsigned met = 0;

	for (struct base_hash_node *n = base_hash_walk(h, NULL); n; n = base_hash_walk(h, n))
		met++;
	return met;
}

/* A step of growth is done with each node that is added: all are there at each step, also when
 * others go meanwhile. */
CASE(nothing_is_lost_while_it_grows)
{
	struct base_hash h = { 0 };
	struct item item[300] = { 0 };
	unsigned growing = 0;

	for (unsigned i = 0; EACH_ROW(i, item); i++) {
		item[i].key = i;
		base_hash_add(&h, &item[i].node, base_hash_of(&i, sizeof(i), 0));
		item[i].in = true;
		growing += h.old != NULL;
		if (i % 3 == 2) {
			base_hash_remove(&h, &item[i / 3].node);
			item[i / 3].in = false;
		}
		for (unsigned k = 0; k <= i; k++)
			assert_ptr_equal(find(&h, k, base_hash_of(&k, sizeof(k), 0)),
			                 item[k].in ? &item[k] : NULL);
		assert_int_equal(walk_all(&h), h.n);
	}
	assert_in_range(growing, 8 + 16 + 32, ARRAY_SIZE(item));
	base_hash_fini(&h);
}

CASE(random_use_agrees_with_flags)
{
	struct base_hash h = { 0 };
	struct item item[300] = { 0 };
	unsigned seed = 7;

	for (int step = 0; step < 30000; step++) {
		unsigned i = rand_r(&seed) % ARRAY_SIZE(item);
		uint64_t hash = i % 17; /* many nodes have the same hash */

		item[i].key = i;
		assert_ptr_equal(find(&h, i, hash), item[i].in ? &item[i] : NULL);
		if (item[i].in)
			base_hash_remove(&h, &item[i].node);
		else
			base_hash_add(&h, &item[i].node, hash);
		item[i].in = !item[i].in;
	}
	base_hash_fini(&h);
}

CASE(every_byte_and_the_seed_and_the_length_change_the_hash)
{
	unsigned char key[21] = { 0 };

	for (size_t bytes = 1; bytes <= sizeof(key); bytes++) {
		uint64_t h = base_hash_of(key, bytes, 0);

		assert_true(h == base_hash_of(key, bytes, 0));
		assert_true(h != base_hash_of(key, bytes, 1));
		assert_true(h != base_hash_of(key, bytes - 1, 0));
		for (size_t i = 0; i < bytes; i++) {
			key[i] = 1;
			assert_true(h != base_hash_of(key, bytes, 0));
			key[i] = 0;
		}
	}
}

/* MGIDs that differ only in the last bytes must not end up in a few buckets. */
CASE(low_bits_of_the_hash_are_well_mixed)
{
	unsigned bucket[1024] = { 0 }, fullest = 0;
	unsigned char key[16] = { 0xFF, 0x12 };

	for (unsigned i = 0; i < 1024; i++) {
		key[14] = (unsigned char)(i >> 8);
		key[15] = (unsigned char)i;
		bucket[base_hash_of(key, sizeof(key), 0) % 1024]++;
	}
	for (unsigned i = 0; i < 1024; i++)
		if (bucket[i] > fullest)
			fullest = bucket[i];
	assert_in_range(fullest, 1, 12);
}
