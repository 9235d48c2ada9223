/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which memory of an end the entries of a request name, by keys that stand in shared memory: of
 * this process, which looks into its own table as well, and of another process, whose keys may be
 * any bytes. There is no daemon: the shared memory is this program's own.
 */
#include <harness.h>

#include "base/util.h"
#include "hca/memory/parts.h"

#define QPN    0x20005
#define USER   0x10006
#define DOMAIN 7
#define LOCAL  IBV_ACCESS_LOCAL_WRITE
#define READ   IBV_ACCESS_REMOTE_READ
#define WRITE  IBV_ACCESS_REMOTE_WRITE
#define MEMORY 256
#define FAR    0x700000000000ull /* where another process has its memory */

struct lab {
	struct hca_process process;
	struct hca_memory memory;
	struct hca_end end;
	struct shm_keys *keys;
	struct shm_key *chunk;
	uint64_t keys_off, chunk_off;
	struct hca_mr mr;
	uint32_t serial;
	struct hca_parts parts;
	_Alignas(64) char bytes[MEMORY];
};

/* The end of a queue pair of another process, or of this one. */
static void make_end(struct lab *l, bool is_own)
{
	memset((void *)&l->memory, 0, sizeof(l->memory));
	l->memory.way = is_own ? HCA_MEMORY_OWN : HCA_MEMORY_VM;
	l->end.qp = (struct shm_qp){ .qpn = QPN,
		                     .connection = { .domain = DOMAIN, .keys_off = l->keys_off } };
	l->end.memory = &l->memory;
	hca_end_prepare(&l->end, &l->process, QPN, USER);
}

static int begin(void **state)
{
	struct lab *l = aligned_alloc(128, base_align_up(sizeof(*l), 128));
	struct shm_region *r;

	assert_non_null(l);
	memset((void *)l, 0, sizeof(*l));
	*state = l;
	r = &l->process.region;
	assert_int_equal(shm_region_create(r, 1, 2), 0);
	l->keys_off = r->control->payloads_off;
	l->chunk_off = base_align_up(l->keys_off + sizeof(struct shm_keys), 4096);
	l->keys = shm_data_map(r, l->keys_off, sizeof(struct shm_keys));
	l->chunk = shm_data_map(r, l->chunk_off, SHM_KEY_CHUNK * sizeof(struct shm_key));
	assert_true(l->keys && l->chunk);
	l->keys->chunk_off[0] = l->chunk_off;
	make_end(l, false);
	return 0;
}

static int end(void **state)
{
	struct lab *l = *state;

	for (unsigned i = 0; i < HCA_MR_CHUNKS; i++)
		free((void *)(uintptr_t)atomic_load(&l->process.mrs.chunk[i]));
	shm_region_unmap(&l->process.region);
	free(l);
	return 0;
}

/* Key @key of the end's process stands for that. */
static void put_key(struct lab *l, uint32_t key, const struct shm_reach *reach)
{
	shm_key_write(&l->chunk[key >> 8], key, ++l->serial, reach);
}

/* Of MEMORY bytes that requests call 1000. */
static struct shm_reach reach_of(uint64_t start, uint32_t access)
{
	return (struct shm_reach){
		.iova = 1000, .length = MEMORY, .start = start, .access = access, .domain = DOMAIN
	};
}

/* The key of the bytes here, in this process's own table, too. */
static uint32_t own_key(struct lab *l, unsigned access)
{
	const uint32_t key = 3 << 8 | 0x11;
	const struct shm_reach reach = reach_of((uintptr_t)l->bytes, access);

	l->mr = (struct hca_mr){ .start = l->bytes,
		                 .index = 3,
		                 .access = access,
		                 .mr = { .lkey = key, .length = MEMORY } };
	hca_mr_set(&l->process.mrs, hca_mr_place(&l->process.mrs, 3), &l->mr);
	put_key(l, key, &reach);
	make_end(l, true);
	return key;
}

static bool find(struct lab *l, const struct shm_entry *e, unsigned n, uint32_t length,
                 uint32_t access)
{
	return hca_parts_find(&l->end, e, n, length, access, &l->parts);
}

static bool find_one(struct lab *l, uint32_t key, uint64_t addr, uint32_t length, uint32_t access)
{
	const struct shm_entry e = { .addr = addr, .length = length, .lkey = key };

	return find(l, &e, 1, length, access);
}

/* ---- memory of another process ---- */

CASE_WITH(an_entry_names_bytes_within_its_key, begin, end)
{
	static const struct {
		uint64_t addr;
		uint32_t length;
		int offset; /* -1: it names nothing */
	} entries[] = { { 1000, MEMORY, 0 },
		        { 1000, MEMORY + 1, -1 },
		        { 999, 1, -1 },
		        { 1000 + MEMORY - 1, 1, MEMORY - 1 },
		        { 1000 + MEMORY - 1, 2, -1 },
		        { 1000 + MEMORY, 1, -1 },
		        { 0, 1, -1 },
		        { UINT64_MAX, 1, -1 },
		        { 1001, UINT32_MAX, -1 } };
	struct lab *l = *state;
	const struct shm_reach reach = reach_of(FAR, LOCAL);

	put_key(l, 0x211, &reach);
	for (unsigned known = 0; known < 2; known++)
		for (size_t i = 0; EACH_ROW(i, entries); i++) {
			const bool is_there =
			        find_one(l, 0x211, entries[i].addr, entries[i].length, LOCAL);

			assert_int_equal(is_there, entries[i].offset >= 0);
			if (!is_there)
				continue;
			assert_int_equal(l->parts.n, 1);
			assert_false(l->parts.here);
			assert_int_equal((uintptr_t)l->parts.iov[0].iov_base,
			                 FAR + (unsigned)entries[i].offset);
			assert_int_equal(l->parts.iov[0].iov_len, entries[i].length);
		}
	assert_true(l->end.is_far);
}

CASE_WITH(key_access_domain_and_queue_pair_have_to_be_right, begin, end)
{
	struct lab *l = *state;
	struct shm_reach reach = reach_of(FAR, LOCAL | READ);

	put_key(l, 0x211, &reach);
	assert_true(find_one(l, 0x211, 1000, 8, LOCAL | READ));
	assert_false(find_one(l, 0x211, 1000, 8, LOCAL | WRITE));
	assert_false(find_one(l, 0x212, 1000, 8, 0)); /* another key of the same place */
	assert_false(find_one(l, 0x311, 1000, 8, 0)); /* nothing stands there */
	assert_false(find_one(l, 0, 1000, 8, 0));
	assert_false(find_one(l, UINT32_MAX, 1000, 8, 0));
	reach.domain++;
	put_key(l, 0x311, &reach);
	assert_false(find_one(l, 0x311, 1000, 8, 0));
	reach.domain--;
	reach.qpn = QPN; /* a window: it is for peers, not for entries */
	put_key(l, 0x411, &reach);
	assert_false(find_one(l, 0x411, 1000, 8, 0));
}

CASE_WITH(a_key_that_is_gone_or_came_back_is_known_no_more, begin, end)
{
	struct lab *l = *state;
	struct shm_reach reach = reach_of(FAR, LOCAL);
	uint32_t users[SHM_KEY_USERS];

	put_key(l, 0x211, &reach);
	assert_true(find_one(l, 0x211, 1000, 8, LOCAL));
	assert_true(hca_known_allows(&l->end, 0x211, 1000, 8, LOCAL));
	shm_key_remove(&l->chunk[2], 0x211, users);
	assert_int_equal(users[0], USER & IB_QPN_MASK); /* the owner waits for this thread */
	assert_false(hca_known_allows(&l->end, 0x211, 1000, 8, LOCAL));
	assert_false(find_one(l, 0x211, 1000, 8, LOCAL));
	/* the same key, of other memory */
	reach.start += 0x10000;
	put_key(l, 0x211, &reach);
	assert_false(hca_known_allows(&l->end, 0x211, 1000, 8, LOCAL));
	assert_true(find_one(l, 0x211, 1000, 8, LOCAL));
	assert_int_equal((uintptr_t)l->parts.iov[0].iov_base, FAR + 0x10000);
	shm_key_remove(&l->chunk[2], 0x211, users);
	assert_int_equal(users[0], USER & IB_QPN_MASK);
}

/* Another process writes its keys, and where they lie: any bytes. */
CASE_WITH(keys_that_lie_nowhere_are_no_keys, begin, end)
{
	struct lab *l = *state;
	const struct shm_reach reach = reach_of(FAR, LOCAL);
	const uint64_t bad[] = { 0,
		                 1,
		                 l->chunk_off + 1,
		                 l->chunk_off + 32,
		                 UINT64_MAX,
		                 UINT64_MAX - 63,
		                 1ull << 60,
		                 l->process.region.part.data.size };

	put_key(l, 0x211, &reach);
	for (size_t i = 0; EACH_ROW(i, bad); i++) {
		l->keys->chunk_off[0] = bad[i];
		make_end(l, false); /* which knows nothing yet */
		assert_false(find_one(l, 0x211, 1000, 8, LOCAL));
	}
	l->keys->chunk_off[0] = l->chunk_off;
	for (size_t i = 0; EACH_ROW(i, bad); i++) {
		if (bad[i] % 64) /* the daemon says where the keys lie */
			continue;
		make_end(l, false);
		l->end.qp.connection.keys_off = bad[i];
		assert_false(find_one(l, 0x211, 1000, 8, LOCAL));
	}
	make_end(l, false);
	assert_true(find_one(l, 0x211, 1000, 8, LOCAL));
}

/* ---- memory of this process ---- */

CASE_WITH(memory_of_this_process_is_used_where_it_is, begin, end)
{
	struct lab *l = *state;
	const uint32_t key = own_key(l, LOCAL);

	assert_true(find_one(l, key, 1010, 20, LOCAL));
	assert_true(l->parts.here);
	assert_ptr_equal(l->parts.iov[0].iov_base, l->bytes + 10);
	assert_true(hca_parts_is_one_here(&l->parts, 20));
	assert_false(hca_parts_is_one_here(&l->parts, 21));
	assert_false(l->end.is_far);
	/* it is known from now on */
	assert_ptr_equal(hca_known_at(&l->end, key, 1000, MEMORY, LOCAL), l->bytes);
	assert_null(hca_known_at(&l->end, key, 1000, MEMORY + 1, LOCAL));
	assert_null(hca_known_at(&l->end, key, 999, 1, LOCAL));
	assert_null(hca_known_at(&l->end, key, 1000, 1, LOCAL | READ));
}

/* Others can write to the memory that our keys lie in: our own table counts. */
CASE_WITH(a_forged_key_of_our_own_names_no_memory, begin, end)
{
	struct lab *l = *state;
	const uint32_t key = own_key(l, LOCAL);
	struct shm_reach reach = reach_of((uintptr_t)l->bytes, LOCAL);

	reach.length++;
	put_key(l, key, &reach);
	assert_false(find_one(l, key, 1000, 8, LOCAL));
	reach.length--;
	reach.start--;
	put_key(l, key, &reach);
	assert_false(find_one(l, key, 1000, 8, LOCAL));
	reach.start++;
	reach.access |= WRITE;
	l->mr.access = 0; /* it may only be read */
	put_key(l, key, &reach);
	assert_false(find_one(l, key, 1000, 8, 0));
	l->mr.access = LOCAL;
	assert_true(find_one(l, key, 1000, 8, 0));
	put_key(l, 0x411, &reach); /* of no region */
	assert_false(find_one(l, 0x411, 1000, 8, 0));
}

CASE_WITH(a_null_region_s_entry_is_no_memory, begin, end)
{
	struct lab *l = *state;
	const uint32_t key = own_key(l, LOCAL);
	const struct shm_reach reach = { .access = SHM_KEY_NULL | LOCAL, .domain = DOMAIN };
	const struct shm_entry e[] = { { .addr = 5, .length = 100, .lkey = 0x511 },
		                       { .addr = 1000, .length = 8, .lkey = key } };

	put_key(l, 0x511, &reach);
	assert_true(find(l, e, 2, 108, LOCAL));
	assert_true(l->parts.has_null);
	assert_int_equal(l->parts.n, 2);
	assert_ptr_equal(l->parts.iov[0].iov_base, HCA_MEMORY_NULL);
	assert_int_equal(l->parts.iov[0].iov_len, 100);
	assert_ptr_equal(l->parts.iov[1].iov_base, l->bytes);
	assert_true(find(l, &e[1], 1, 8, LOCAL));
	assert_false(l->parts.has_null);
}

/* ---- several entries ---- */

CASE_WITH(entries_are_used_as_far_as_the_message_goes, begin, end)
{
	struct lab *l = *state;
	const uint32_t key = own_key(l, LOCAL);
	const struct shm_entry e[] = { { .addr = 1000, .length = 10, .lkey = key },
		                       { .addr = 0, .length = 0, .lkey = 0xBAD },
		                       { .addr = 1100, .length = 20, .lkey = key },
		                       { .addr = 0, .length = 30, .lkey = 0xBAD } };
	static const struct {
		uint32_t length;
		unsigned n; /* parts; 0: there are none */
		uint32_t last;
	} messages[] = { { 1, 1, 1 }, { 10, 1, 10 }, { 11, 2, 1 }, { 30, 2, 20 }, { 31, 0, 0 } };

	for (size_t i = 0; EACH_ROW(i, messages); i++) {
		const bool is_there = find(l, e, 4, messages[i].length, LOCAL);

		assert_int_equal(is_there, messages[i].n != 0);
		if (!is_there)
			continue;
		assert_int_equal(l->parts.n, messages[i].n);
		assert_int_equal(l->parts.iov[messages[i].n - 1].iov_len, messages[i].last);
		assert_ptr_equal(l->parts.iov[messages[i].n - 1].iov_base,
		                 l->bytes + (messages[i].n == 1 ? 0 : 100));
	}
	assert_true(find(l, e, 4, 0, LOCAL));
	assert_int_equal(l->parts.n, 0);
}

/* Entries lie where others write, too: they may name less than the request does. */
CASE_WITH(entries_that_are_shorter_than_the_message_are_seen, begin, end)
{
	struct lab *l = *state;
	const struct shm_entry e = { .addr = 1000, .length = 8, .lkey = own_key(l, LOCAL) };

	assert_true(find(l, &e, 1, 100, LOCAL));
	assert_int_equal(l->parts.iov[0].iov_len, 8);
	assert_false(hca_parts_is_one_here(&l->parts, 100));
	/* it has become shorter since its length was looked at */
	assert_false(hca_parts_look_up(&l->end, &e, 100, LOCAL, &l->parts));
}

CASE_WITH(inline_data_needs_no_key, begin, end)
{
	struct lab *l = *state;
	const struct shm_entry e[] = { { .addr = (uintptr_t)l->bytes, .length = 5, .lkey = 0xBAD },
		                       { .addr = (uintptr_t)l->bytes + 9, .length = 7 } };
	const struct shm_request inline_data = { .flags = IBV_SEND_INLINE,
		                                 .n_entries = 2,
		                                 .length = 12 };
	const struct shm_request by_keys = { .n_entries = 2, .length = 12 };

	own_key(l, LOCAL);
	assert_true(hca_parts_of_request(&l->end, &inline_data, e, 0, &l->parts));
	assert_true(l->parts.here);
	assert_int_equal(l->parts.n, 2);
	assert_ptr_equal(l->parts.iov[1].iov_base, l->bytes + 9);
	assert_int_equal(l->parts.iov[1].iov_len, 7);
	assert_false(hca_parts_of_request(&l->end, &by_keys, e, 0, &l->parts));
}
