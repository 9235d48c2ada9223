/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Device memory: ibv_alloc_dm(3), its copies and its regions.
 */
#include "lab.h"

#define BYTES   4096
#define THREADS 4
#define ROUNDS  100

static void undo_dm(void *dm)
{
	ibv_free_dm(dm);
}

static void undo_dereg(void *mr)
{
	ibv_dereg_mr(mr);
}

static struct ibv_dm *try_alloc(struct ibv_context *context, size_t bytes, uint32_t log_align)
{
	struct ibv_alloc_dm_attr attr = { .length = bytes, .log_align_req = log_align };

	errno = 0;
	return ibv_alloc_dm(context, &attr);
}

static struct ibv_dm *alloc(struct ibv_context *context, size_t bytes)
{
	struct ibv_dm *dm = try_alloc(context, bytes, 0);

	assert_non_null(dm);
	lab_undo(undo_dm, dm);
	return dm;
}

static struct ibv_mr *reg(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t bytes)
{
	struct ibv_mr *mr = ibv_reg_dm_mr(pd, dm, offset, bytes,
	                                  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	lab_undo(undo_dereg, mr);
	return mr;
}

static uint64_t max_dm_size(struct ibv_context *context)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(context, NULL, &attr), 0);
	return attr.max_dm_size;
}

/* ---- memory ---- */

LAB_CASE(device_memory_keeps_what_is_copied_to_it)
{
	struct ibv_dm *dm = alloc(lab_open(1), BYTES);
	char back[16] = "";

	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, 16), 0);
	assert_memory_equal(back, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_int_equal(ibv_memcpy_to_dm(dm, BYTES - 16, "fifteen letters", 16), 0);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, BYTES - 16, 16), 0);
	assert_string_equal(back, "fifteen letters");
	assert_int_equal(ibv_memcpy_to_dm(dm, BYTES, back, 0), 0);
}

LAB_CASE(a_copy_beyond_the_end_or_of_parts_of_words_is_refused)
{
	struct ibv_dm *dm = alloc(lab_open(1), 100);
	char bytes[128] = "";
	static const struct {
		uint64_t offset;
		size_t bytes;
	} wrong[] = { { 0, 104 },      { 100, 4 }, { 104, 0 }, { UINT64_MAX - 3, 8 },
		      { 0, SIZE_MAX }, { 1, 4 },   { 4, 5 } };

	for (size_t i = 0; i < LAB_ARRAY(wrong); i++) {
		assert_int_equal(ibv_memcpy_to_dm(dm, wrong[i].offset, bytes, wrong[i].bytes),
		                 EINVAL);
		assert_int_equal(ibv_memcpy_from_dm(bytes, dm, wrong[i].offset, wrong[i].bytes),
		                 EINVAL);
	}
}

LAB_CASE(there_is_as_much_device_memory_as_the_device_says)
{
	struct ibv_context *context = lab_open(1);
	uint64_t max = max_dm_size(context);
	struct ibv_dm *dm;

	assert_true(max >= BYTES);
	assert_null(try_alloc(context, max + 1, 0));
	assert_int_equal(errno, ENOMEM);
	assert_non_null(dm = try_alloc(context, max, 0));
	assert_null(try_alloc(context, 1, 0));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_free_dm(dm), 0);
	alloc(context, max / 2);
	alloc(context, max / 2);
}

LAB_CASE(wrong_attributes_are_refused)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_alloc_dm_attr attr = { .length = 64, .comp_mask = 1 };

	assert_null(try_alloc(context, 0, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(try_alloc(context, 64, 13));
	assert_int_equal(errno, EINVAL);
	assert_null(try_alloc(context, 64, UINT32_MAX));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ibv_alloc_dm(context, &attr));
	assert_int_equal(errno, EINVAL);
}

/* ---- regions ---- */

LAB_CASE(a_message_goes_through_device_memory)
{
	struct lab_end *e = lab_end(1);
	struct ibv_dm *dm = alloc(e->context, BYTES);
	struct ibv_mr *mr = reg(e->pd, dm, 64, BYTES - 64);
	struct ibv_sge sge = { .addr = 0, .length = 128, .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct lab_request r;
	char back[8];

	assert_null(mr->addr);
	assert_int_equal(mr->length, BYTES - 64);
	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
	lab_send_text(e, lab_ah_to(e, e), e->qp->qp_num, "received");
	lab_complete(e->cq, IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 64 + LAB_GRH, 8), 0);
	assert_memory_equal(back, "received", 8);
	assert_int_equal(ibv_memcpy_to_dm(dm, 72, "sent", 4), 0);
	lab_post(e, 1);
	lab_request(e, &r, lab_ah_to(e, e), e->qp->qp_num, NULL, 4);
	r.sge = (struct ibv_sge){ .addr = 8, .length = 4, .lkey = mr->lkey };
	lab_send_request(e, &r);
	lab_expect_text(e, "sent");
}

LAB_CASE(a_region_ends_where_it_was_registered_to_end)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = reg(e->pd, alloc(e->context, BYTES), 0, 100);
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_request(e, &r, lab_ah_to(e, e), e->qp->qp_num, NULL, 4);
	r.sge = (struct ibv_sge){ .addr = 97, .length = 4, .lkey = mr->lkey };
	assert_int_equal(ibv_post_send(e->qp, &r.wr, &bad), 0);
	lab_complete(e->send_cq, IBV_WC_LOC_PROT_ERR);
}

static void expect_refused(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t bytes,
                           unsigned access)
{
	errno = 0;
	assert_null(ibv_reg_dm_mr(pd, dm, offset, bytes, access));
	assert_int_equal(errno, EINVAL);
}

LAB_CASE(a_wrong_registration_is_refused)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = lab_pd(context);
	struct ibv_dm *dm = alloc(context, 100);

	expect_refused(pd, dm, 0, 104, IBV_ACCESS_ZERO_BASED);
	expect_refused(pd, dm, 104, 0, IBV_ACCESS_ZERO_BASED);
	expect_refused(pd, dm, UINT64_MAX, 2, IBV_ACCESS_ZERO_BASED);
	expect_refused(pd, dm, 0, 100, IBV_ACCESS_LOCAL_WRITE);
	expect_refused(pd, dm, 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE);
	expect_refused(pd, dm, 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND);
	expect_refused(lab_pd(lab_open(2)), dm, 0, 100, IBV_ACCESS_ZERO_BASED);
	assert_int_equal(
	        ibv_rereg_mr(reg(pd, dm, 0, 100), IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
	        IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EINVAL);
}

LAB_CASE(device_memory_with_a_region_is_busy)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_dm *dm = try_alloc(context, 100, 12);
	struct ibv_mr *mr = ibv_reg_dm_mr(pd, dm, 0, 100, IBV_ACCESS_ZERO_BASED);

	assert_non_null(mr);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* ---- threads and fork ---- */

static void *alloc_and_copy(void *context)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct ibv_dm *dm = try_alloc(context, BYTES, i % 13);
		uint32_t back = 0;

		if (!dm || ibv_memcpy_to_dm(dm, 4, &i, 4) || ibv_memcpy_from_dm(&back, dm, 4, 4) ||
		    back != i || ibv_free_dm(dm))
			return NULL;
	}
	return context;
}

LAB_CASE(threads_allocate_at_the_same_time)
{
	struct ibv_context *context = lab_open(1);
	pthread_t thread[THREADS];
	void *result;

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, alloc_and_copy, context), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], &result), 0);
		assert_ptr_equal(result, context);
	}
}

LAB_CASE(a_childs_copies_stay_with_the_child)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_dm *dm = alloc(context, 64);
	char back[4];
	pid_t child;

	assert_int_equal(ibv_memcpy_to_dm(dm, 0, "mine", 4), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct ibv_dm *other = try_alloc(context, 64, 0);

		_exit(!other || ibv_memcpy_to_dm(dm, 0, "ours", 4) || ibv_free_dm(other));
	}
	harness_expect_success(child);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, 4), 0);
	assert_memory_equal(back, "mine", 4);
}
