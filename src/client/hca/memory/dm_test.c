/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Device memory: its room, copies in words and within it, handles and imports, and the regions that
 * keep it. The command file is this program's own.
 */
#include <harness.h>

#include "base/util.h"
#include "hca/memory/dm.h"
#include "hca/process/command_file.h"
#include "hca/process/context.h"

struct lab {
	struct hca_process process;
	struct hca_command_file file;
	struct hca_context ctx;
};

static int begin(void **state)
{
	struct lab *l = aligned_alloc(128, base_align_up(sizeof(*l), 128));

	assert_non_null(l);
	memset((void *)l, 0, sizeof(*l));
	*state = l;
	pthread_mutex_init(&l->process.file_lock, NULL);
	pthread_mutex_init(&l->ctx.lock, NULL);
	l->file.process = &l->process;
	l->file.member = 3;
	l->ctx.process = &l->process;
	l->ctx.file = &l->file;
	return 0;
}

/* Nothing is left. */
static int end(void **state)
{
	struct lab *l = *state;
	const bool is_clean = !l->ctx.n_objects && !l->file.dm_bytes && LIST_EMPTY(&l->file.dms);

	free(l);
	return is_clean ? 0 : -1;
}

static struct ibv_dm *alloc(struct lab *l, size_t length)
{
	const struct ibv_alloc_dm_attr attr = { .length = length };
	int error;
	struct ibv_dm *dm = hca_dm_alloc(&l->ctx, &attr, &error);

	assert_int_equal(error, 0);
	assert_non_null(dm);
	return dm;
}

static int refused(struct lab *l, const struct ibv_alloc_dm_attr *attr)
{
	int error = 0;

	assert_null(hca_dm_alloc(&l->ctx, attr, &error));
	return error;
}

CASE_WITH(what_cannot_be_had_is_refused, begin, end)
{
	static const struct {
		struct ibv_alloc_dm_attr attr;
		int error;
	} attrs[] = { { { .length = 0 }, -EINVAL },
		      { { .length = 8, .comp_mask = 1 }, -EINVAL },
		      { { .length = 8, .log_align_req = HCA_DM_LOG_ALIGN + 1 }, -EINVAL },
		      { { .length = HCA_DM_BYTES + 1 }, -ENOMEM },
		      { { .length = SIZE_MAX }, -ENOMEM } };
	struct lab *l = *state;

	for (size_t i = 0; EACH_ROW(i, attrs); i++)
		assert_int_equal(refused(l, &attrs[i].attr), attrs[i].error);
	assert_int_equal(l->ctx.n_objects, 0);
}

CASE_WITH(the_device_has_so_much_and_no_more, begin, end)
{
	const struct ibv_alloc_dm_attr one = { .length = 1 };
	struct lab *l = *state;
	struct ibv_dm *half = alloc(l, HCA_DM_BYTES / 2);
	struct ibv_dm *rest = alloc(l, HCA_DM_BYTES - HCA_DM_BYTES / 2);

	assert_int_equal(refused(l, &one), -ENOMEM);
	assert_int_equal(hca_dm_free(half), 0);
	half = alloc(l, HCA_DM_BYTES / 2);
	assert_int_equal(hca_dm_free(rest), 0);
	assert_int_equal(hca_dm_free(half), 0);
}

CASE_WITH(memory_begins_with_zeros_where_it_was_asked_to, begin, end)
{
	struct lab *l = *state;

	for (uint32_t log = 0; log <= HCA_DM_LOG_ALIGN; log++) {
		const struct ibv_alloc_dm_attr attr = { .length = 64, .log_align_req = log };
		struct hca_dm_memory *m;
		struct ibv_dm *dm;
		char *start;
		int error;

		dm = hca_dm_alloc(&l->ctx, &attr, &error);
		assert_non_null(dm);
		m = hca_dm_get(dm, 0, 64, &start);
		assert_non_null(m);
		assert_int_equal((uintptr_t)start % ((uintptr_t)1 << log), 0);
		for (unsigned i = 0; i < 64; i++)
			assert_int_equal(start[i], 0);
		memset(start, 1, 64);
		hca_dm_put(m);
		assert_int_equal(hca_dm_free(dm), 0);
	}
}

CASE_WITH(copies_are_of_whole_words_within_it, begin, end)
{
	static const struct {
		uint64_t offset;
		size_t bytes;
		int error;
	} copies[] = { { 0, 64, 0 },
		       { 60, 4, 0 },
		       { 64, 0, 0 },
		       { 0, 0, 0 },
		       { 0, 65, EINVAL },
		       { 0, 68, EINVAL },
		       { 64, 4, EINVAL },
		       { 2, 4, EINVAL },
		       { 0, 6, EINVAL },
		       { 68, 0, EINVAL },
		       { 4, SIZE_MAX - 3, EINVAL },
		       { UINT64_MAX - 3, 4, EINVAL } };
	struct lab *l = *state;
	struct ibv_dm *dm = alloc(l, 64);
	char in[128], out[128];

	for (size_t i = 0; EACH_ROW(i, copies); i++) {
		memset(in, (int)i + 1, sizeof(in));
		memset(out, 0, sizeof(out));
		assert_int_equal(dm->memcpy_to_dm(dm, copies[i].offset, in, copies[i].bytes),
		                 copies[i].error);
		assert_int_equal(dm->memcpy_from_dm(out, dm, copies[i].offset, copies[i].bytes),
		                 copies[i].error);
		if (!copies[i].error)
			assert_memory_equal(in, out, copies[i].bytes);
		else
			assert_int_equal(out[0], 0);
	}
	assert_int_equal(hca_dm_free(dm), 0);
}

CASE_WITH(a_region_keeps_the_memory, begin, end)
{
	struct lab *l = *state;
	struct ibv_dm *dm = alloc(l, 64);
	struct hca_dm_memory *m;
	char *start, *second;

	assert_null(hca_dm_get(dm, 0, 65, &start));
	assert_null(hca_dm_get(dm, 65, 0, &start));
	m = hca_dm_get(dm, 0, 64, &start);
	assert_ptr_equal(hca_dm_get(dm, 16, 48, &second), m);
	assert_ptr_equal(second, start + 16);
	assert_int_equal(hca_dm_free(dm), -EBUSY);
	hca_dm_put(m);
	assert_int_equal(hca_dm_free(dm), -EBUSY);
	hca_dm_put(m);
	assert_int_equal(hca_dm_free(dm), 0);
}

CASE_WITH(an_imported_handle_is_the_same_memory, begin, end)
{
	struct lab *l = *state;
	struct ibv_dm *dm = alloc(l, 8), *other = alloc(l, 8), *imported;
	uint32_t word = 0x12345678, read = 0;
	int error;

	assert_int_not_equal(dm->handle, other->handle);
	imported = hca_dm_import(&l->ctx, dm->handle, &error);
	assert_non_null(imported);
	assert_int_equal(imported->handle, dm->handle);
	assert_int_equal(dm->memcpy_to_dm(dm, 4, &word, 4), 0);
	assert_int_equal(imported->memcpy_from_dm(&read, imported, 4, 4), 0);
	assert_int_equal(read, word);
	assert_int_equal(l->ctx.n_objects, 3);
	/* freed by one handle, it is gone for all but those that have it */
	assert_int_equal(hca_dm_free(dm), 0);
	assert_null(hca_dm_import(&l->ctx, imported->handle, &error));
	assert_int_equal(error, -ENOENT);
	assert_int_equal(imported->memcpy_from_dm(&read, imported, 4, 4), 0);
	assert_int_equal(hca_dm_free(imported), -ENOENT);
	hca_dm_unimport(imported);
	assert_int_equal(hca_dm_free(other), 0);
}
