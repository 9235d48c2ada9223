/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of memory regions: which entries of work requests a region lets in, to the byte and at
 * the ends of all addresses, by the table and by what is known of it; regions of other kinds; and
 * what others may reach by a key.
 */
#include <harness.h>

#include "hca/process/domain.h"
#include "hca/process/mr_table.h"
#include "hca/process/plain.h"
#include "shm/key.h"

#define LOCAL   IBV_ACCESS_LOCAL_WRITE
#define READ    IBV_ACCESS_REMOTE_READ
#define WRITE   IBV_ACCESS_REMOTE_WRITE
#define ANYTIME IBV_ACCESS_ON_DEMAND

static const struct hca_domain domain, other_domain;

struct lab {
	struct hca_mr_table t;
	struct hca_mr *mr[8];
	unsigned n;
};

static int begin(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	*state = l;
	if (!l)
		return -1;
	base_idtable_init(&l->t.ids, 8);
	return 0;
}

static int end(void **state)
{
	struct lab *l = *state;

	for (unsigned i = 0; i < l->n; i++)
		free(l->mr[i]);
	for (unsigned i = 0; i < HCA_MR_CHUNKS; i++)
		free((void *)(uintptr_t)atomic_load(&l->t.chunk[i]));
	base_idtable_fini(&l->t.ids);
	free(l);
	return 0;
}

/* A region of @length bytes at @start, which requests call @iova, that allows @access. */
static struct hca_mr *add(struct lab *l, void *start, uint64_t length, uint64_t iova,
                          unsigned access)
{
	struct hca_mr *mr = calloc(1, sizeof(*mr));

	assert_non_null(mr);
	l->mr[l->n++] = mr;
	mr->start = start;
	mr->iova = iova;
	mr->mr.length = length;
	mr->access = access;
	mr->domain = mr->own_domain = &domain;
	mr->region = mr;
	assert_int_equal(base_idtable_add(&l->t.ids, mr, &mr->index), 0);
	mr->mr.lkey = mr->mr.rkey = mr->index << 8 | 0x5A;
	hca_mr_set(&l->t, hca_mr_place(&l->t, mr->index), mr);
	return mr;
}

static struct hca_mr *add_special(struct lab *l, enum hca_mr_kind kind, void *start,
                                  uint64_t length, unsigned access)
{
	struct hca_mr *mr = add(l, start, length, (uintptr_t)start, access);

	mr->kind = kind;
	mr->domain = NULL;
	return mr;
}

static struct ibv_sge entry(const struct hca_mr *mr, uint64_t addr, uint32_t length)
{
	return (struct ibv_sge){ .addr = addr, .length = length, .lkey = mr->mr.lkey };
}

static void *resolve(struct lab *l, const struct hca_mr *mr, uint64_t addr, uint32_t length,
                     unsigned access)
{
	const struct ibv_sge sge = entry(mr, addr, length);

	return hca_mr_resolve(&l->t, &domain, &sge, access);
}

/* ---- ordinary regions ---- */

CASE_WITH(an_entry_is_within_its_region_to_the_byte, begin, end)
{
	static char memory[100];
	static const struct {
		uint64_t addr;
		uint32_t length;
		int offset; /* in the region; -1: it is not let in */
	} entries[] = { { 1000, 100, 0 },      { 1000, 101, -1 }, { 999, 1, -1 },
		        { 1099, 1, 99 },       { 1099, 2, -1 },   { 1100, 0, 100 },
		        { 1100, 1, -1 },       { 1101, 0, -1 },   { 999, 0, -1 },
		        { 1050, 50, 50 },      { 1050, 51, -1 },  { 1000, UINT32_MAX, -1 },
		        { UINT64_MAX, 1, -1 }, { 0, 1, -1 },      { 1001, UINT32_MAX, -1 } };
	struct lab *l = *state;
	const struct hca_mr *mr = add(l, memory, sizeof(memory), 1000, LOCAL);

	for (size_t i = 0; EACH_ROW(i, entries); i++) {
		char *at = resolve(l, mr, entries[i].addr, entries[i].length, LOCAL);

		assert_ptr_equal(at, entries[i].offset < 0 ? NULL : memory + entries[i].offset);
	}
}

CASE_WITH(a_region_may_end_with_the_last_address, begin, end)
{
	static char memory[16];
	struct lab *l = *state;
	const struct hca_mr *mr = add(l, memory, 16, UINT64_MAX - 15, LOCAL);
	const struct hca_mr *all = add(l, NULL, UINT64_MAX, 0, LOCAL);

	assert_ptr_equal(resolve(l, mr, UINT64_MAX, 1, LOCAL), memory + 15);
	assert_null(resolve(l, mr, UINT64_MAX, 2, LOCAL));
	assert_null(resolve(l, mr, 0, 1, LOCAL)); /* it does not go on there */
	assert_ptr_equal(resolve(l, all, (uintptr_t)memory, 16, LOCAL), memory);
	assert_null(resolve(l, all, UINT64_MAX, 1, LOCAL));
}

CASE_WITH(access_domain_and_key_have_to_be_the_region_s, begin, end)
{
	static char memory[8];
	struct lab *l = *state;
	struct hca_mr *mr = add(l, memory, 8, 0, LOCAL | READ);
	struct ibv_sge sge = entry(mr, 0, 8);

	assert_non_null(hca_mr_resolve(&l->t, &domain, &sge, 0));
	assert_non_null(hca_mr_resolve(&l->t, &domain, &sge, LOCAL | READ));
	assert_null(hca_mr_resolve(&l->t, &domain, &sge, LOCAL | WRITE));
	assert_null(hca_mr_resolve(&l->t, &other_domain, &sge, LOCAL));
	sge.lkey ^= 1; /* that of the region before */
	assert_null(hca_mr_resolve(&l->t, &domain, &sge, LOCAL));
	assert_null(hca_mr_find(&l->t, sge.lkey));
	sge.lkey ^= 1;
	assert_ptr_equal(hca_mr_find(&l->t, sge.lkey), mr);
	assert_ptr_equal(hca_mr_at(&l->t, sge.lkey), mr);
	hca_mr_set(&l->t, hca_mr_place(&l->t, mr->index), NULL);
	assert_null(hca_mr_resolve(&l->t, &domain, &sge, LOCAL));
	sge.lkey = UINT32_MAX; /* of no place of the table */
	assert_null(hca_mr_resolve(&l->t, &domain, &sge, 0));
}

/* Memory for places is made as indexes get there. */
CASE_WITH(a_region_is_found_at_any_index, begin, end)
{
	static const uint32_t indexes[] = { HCA_MR_CHUNK - 1, HCA_MR_CHUNK, 5 * HCA_MR_CHUNK + 7,
		                            HCA_MR_CHUNK * HCA_MR_CHUNKS - 1 };
	static char memory[8];
	struct lab *l = *state;
	struct hca_mr *mr = add(l, memory, 8, 0, LOCAL);

	for (size_t i = 0; EACH_ROW(i, indexes); i++) {
		mr->mr.lkey = indexes[i] << 8 | 0x5A;
		assert_null(resolve(l, mr, 0, 8, LOCAL));
		hca_mr_set(&l->t, hca_mr_place(&l->t, indexes[i]), mr);
		assert_ptr_equal(resolve(l, mr, 0, 8, LOCAL), memory);
		assert_ptr_equal(hca_mr_find(&l->t, mr->mr.lkey), mr);
	}
}

/* ---- what is known ---- */

/* The known region gives the same answers as the table, for any entries, and as regions come and
 * go. */
CASE_WITH(the_region_that_is_known_lets_in_the_same_entries, begin, end)
{
	static char memory[4][64];
	static const uint64_t iova[] = { 0, 1000, UINT64_MAX - 63, 1ull << 63 };
	struct lab *l = *state;
	struct hca_mr_known known = { 0 };
	struct hca_mr *mr[4];
	unsigned seed = 1;

	for (unsigned i = 0; i < 4; i++)
		mr[i] = add(l, memory[i], 64, iova[i], i % 2 ? LOCAL : LOCAL | READ);
	for (unsigned n = 0; n < 200000; n++) {
		struct hca_mr *m = mr[rand_r(&seed) % 4];
		struct ibv_sge sge = entry(m, m->iova - 4 + (uint64_t)rand_r(&seed) % 72,
		                           (uint32_t)rand_r(&seed) % 72);
		void *at = hca_mr_resolve(&l->t, &domain, &sge, LOCAL);

		assert_ptr_equal(hca_mr_resolve_known(&l->t, &known, &domain, &sge, LOCAL), at);
		if (rand_r(&seed) % 3) /* or it is not found twice in a row */
			assert_ptr_equal(hca_mr_resolve_known(&l->t, &known, &domain, &sge, LOCAL),
			                 at);
		if (rand_r(&seed) % 50)
			continue;
		m->mr.length = 1 + (uint64_t)rand_r(&seed) % 64;
		hca_mr_set(&l->t, hca_mr_place(&l->t, m->index), rand_r(&seed) % 4 ? m : NULL);
	}
}

CASE_WITH(nothing_is_known_in_doubt, begin, end)
{
	static char memory[8];
	struct lab *l = *state;
	const struct hca_mr *mr = add(l, memory, 8, 0, LOCAL);
	struct hca_mr_known known = { .doubts = true };
	const struct ibv_sge sge = entry(mr, 0, 8);

	for (unsigned i = 0; i < 3; i++)
		assert_null(hca_mr_resolve_known(&l->t, &known, &domain, &sge, LOCAL));
	assert_true(known.doubts);
}

/* ---- regions of other kinds ---- */

CASE_WITH(a_null_region_reads_as_zeros_and_discards, begin, end)
{
	static const char zeros[HCA_MR_ZEROS];
	struct lab *l = *state;
	const struct hca_mr *mr = add_special(l, HCA_MR_NULL, NULL, 0, LOCAL);
	struct ibv_sge sge = entry(mr, 12345, HCA_MR_ZEROS);

	assert_null(hca_mr_resolve(&l->t, &domain, &sge, 0));
	assert_true(hca_mr_is_special(&l->t, &domain, &sge, LOCAL));
	assert_memory_equal(hca_mr_fault(&l->t, &domain, &sge, 0), zeros, sizeof(zeros));
	assert_ptr_equal(hca_mr_fault(&l->t, &domain, &sge, LOCAL), HCA_MR_DISCARD);
	assert_null(hca_mr_fault(&l->t, &other_domain, &sge, 0));
	sge.length++; /* no message is that long */
	assert_null(hca_mr_fault(&l->t, &domain, &sge, 0));
	assert_ptr_equal(hca_mr_fault(&l->t, &domain, &sge, LOCAL), HCA_MR_DISCARD);
}

static char *two_pages(void)
{
	char *at = mmap(NULL, 2 * HCA_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	                0);

	assert_true(at != MAP_FAILED);
	return at;
}

CASE_WITH(an_on_demand_region_is_looked_at_each_time, begin, end)
{
	struct lab *l = *state;
	char *at = two_pages();
	const struct hca_mr *mr =
	        add_special(l, HCA_MR_ON_DEMAND, at, 2 * HCA_PAGE, LOCAL | ANYTIME);
	struct ibv_sge sge = entry(mr, (uintptr_t)at + HCA_PAGE, HCA_PAGE);

	if (!hca_mr_has_on_demand())
		skip();
	assert_null(hca_mr_resolve(&l->t, &domain, &sge, LOCAL));
	assert_ptr_equal(hca_mr_fault(&l->t, &domain, &sge, LOCAL), at + HCA_PAGE);
	assert_int_equal(mprotect(at + HCA_PAGE, HCA_PAGE, PROT_READ), 0);
	assert_null(hca_mr_fault(&l->t, &domain, &sge, LOCAL));
	assert_ptr_equal(hca_mr_fault(&l->t, &domain, &sge, 0), at + HCA_PAGE);
	assert_int_equal(munmap(at + HCA_PAGE, HCA_PAGE), 0);
	assert_null(hca_mr_fault(&l->t, &domain, &sge, 0));
	assert_true(hca_mr_is_special(&l->t, &domain, &sge, LOCAL)); /* memory is not looked at */
	sge.addr++;
	assert_false(hca_mr_is_special(&l->t, &domain, &sge, LOCAL));
	munmap(at, HCA_PAGE);
}

CASE_WITH(advice_is_for_on_demand_regions_and_within_them, begin, end)
{
	struct lab *l = *state;
	char *at = two_pages();
	struct hca_mr *mr = add_special(l, HCA_MR_ON_DEMAND, at, 2 * HCA_PAGE, ANYTIME);
	const struct hca_mr *plain = add(l, at, HCA_PAGE, (uintptr_t)at, LOCAL);
	struct ibv_sge sge = entry(mr, (uintptr_t)at, 2 * HCA_PAGE);
	struct ibv_sge bad = entry(plain, (uintptr_t)at, 1);

	if (!hca_mr_has_on_demand())
		skip();
	assert_int_equal(hca_mr_advise(&l->t, &domain, IBV_ADVISE_MR_ADVICE_PREFETCH, &sge), 0);
	assert_int_equal(hca_mr_advise(&l->t, &domain, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, &sge),
	                 -EPERM);
	assert_int_equal(hca_mr_advise(&l->t, &other_domain, IBV_ADVISE_MR_ADVICE_PREFETCH, &sge),
	                 -EPERM);
	assert_int_equal(hca_mr_advise(&l->t, &domain, IBV_ADVISE_MR_ADVICE_PREFETCH, &bad),
	                 -ENOTSUP);
	sge.length++;
	assert_int_equal(hca_mr_advise(&l->t, &domain, IBV_ADVISE_MR_ADVICE_PREFETCH, &sge),
	                 -EFAULT);
	sge.lkey ^= 1;
	assert_int_equal(hca_mr_advise(&l->t, &domain, IBV_ADVISE_MR_ADVICE_PREFETCH, &sge),
	                 -ENOENT);
	munmap(at, 2 * HCA_PAGE);
}

/* ---- memory ---- */

CASE(memory_that_is_not_there_or_read_only_is_told_apart)
{
	char *at = two_pages();

	assert_int_equal(hca_mr_populate(at, 2 * HCA_PAGE, LOCAL), 0);
	assert_int_equal(hca_mr_populate(at + 1, 0, LOCAL), 0);
	assert_true(hca_mr_is_there(at + HCA_PAGE - 1, 2));
	assert_int_equal(mprotect(at + HCA_PAGE, HCA_PAGE, PROT_READ), 0);
	assert_int_equal(hca_mr_populate(at, 2 * HCA_PAGE, 0), 0);
	assert_int_equal(hca_mr_populate(at + HCA_PAGE - 1, 2, LOCAL), -EFAULT);
	assert_int_equal(hca_mr_populate(at, HCA_PAGE, LOCAL), 0);
	assert_int_equal(munmap(at + HCA_PAGE, HCA_PAGE), 0);
	assert_int_equal(hca_mr_populate(at, HCA_PAGE + 1, 0), -EFAULT);
	assert_false(hca_mr_is_there(at, HCA_PAGE + 1));
	assert_true(hca_mr_is_there(at, HCA_PAGE));
	munmap(at, HCA_PAGE);
}

CASE_WITH(regions_overlap_by_whole_pages, begin, end)
{
	struct lab *l = *state;
	char *at = two_pages();
	const uint64_t page = (uintptr_t)at;
	struct hca_mr *mr = add(l, at + 100, 10, 0, LOCAL);

	assert_true(hca_mr_overlaps(&l->t, page, page + 1));
	assert_true(hca_mr_overlaps(&l->t, page + 50, page + 60));
	assert_false(hca_mr_overlaps(&l->t, page - HCA_PAGE, page));
	assert_false(hca_mr_overlaps(&l->t, page + HCA_PAGE, page + 2 * HCA_PAGE));
	mr->unsettled = true; /* the region that asks */
	assert_false(hca_mr_overlaps(&l->t, page, page + 1));
	mr->unsettled = false;
	mr->kind = HCA_MR_WINDOW;
	assert_false(hca_mr_overlaps(&l->t, page, page + 1));
	munmap(at, 2 * HCA_PAGE);
}

/* ---- what others may reach ---- */

CASE_WITH(what_others_find_by_a_key_is_within_its_region, begin, end)
{
	static char memory[100];
	struct lab *l = *state;
	const struct hca_mr *mr = add(l, memory, sizeof(memory), 0, READ);
	const uint64_t from = (uintptr_t)memory;
	const struct {
		struct shm_reach reach;
		bool may;
	} reaches[] = { { { .start = from, .length = 100, .access = READ }, true },
		        { { .start = from, .length = 101, .access = READ }, false },
		        { { .start = from - 1, .length = 2, .access = READ }, false },
		        { { .start = from + 99, .length = 1, .access = READ }, true },
		        { { .start = from + 99, .length = 2, .access = READ }, false },
		        { { .start = from + 100, .length = 0, .access = READ }, true },
		        { { .start = from + 1, .length = UINT64_MAX, .access = READ }, false },
		        { { .start = from, .length = 8, .access = READ | WRITE }, false },
		        { { .start = from, .length = 8, .access = LOCAL }, false },
		        { { .start = from, .length = 8, .access = IBV_ACCESS_REMOTE_ATOMIC },
		          false } };

	for (size_t i = 0; EACH_ROW(i, reaches); i++)
		assert_int_equal(hca_mr_reaches(&l->t, mr->mr.lkey, &reaches[i].reach),
		                 reaches[i].may);
	assert_false(hca_mr_reaches(&l->t, mr->mr.lkey ^ 1, &reaches[0].reach));
	assert_false(hca_mr_reaches(&l->t, UINT32_MAX, &reaches[0].reach));
}
