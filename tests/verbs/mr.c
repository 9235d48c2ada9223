/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions: ibv_reg_mr(3), ibv_rereg_mr(3), and the checks of every lkey when it
 * is used; protection domains; the fork helpers.
 */
#include "lab.h"

#define BYTES 8192

static _Alignas(4096) char memory[2 * BYTES];

static void undo_dereg(void *mr)
{
	ibv_dereg_mr(mr);
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t bytes, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, bytes, access);

	assert_non_null(mr);
	lab_undo(undo_dereg, mr);
	return mr;
}

static void expect_refused(struct ibv_pd *pd, void *addr, size_t bytes, int access, int error)
{
	errno = 0;
	assert_null(ibv_reg_mr(pd, addr, bytes, access));
	assert_int_equal(errno, error);
}

/* How a send of these bytes to itself completes; then it can send again. */
static enum ibv_wc_status send_from(struct lab_end *e, uint64_t addr, uint32_t bytes, uint32_t lkey)
{
	struct ibv_send_wr *bad;
	struct lab_request r;
	struct ibv_wc wc;

	lab_request(e, &r, lab_ah_to(e, e), e->qp->qp_num, NULL, bytes);
	r.sge = (struct ibv_sge){ .addr = addr, .length = bytes, .lkey = lkey };
	assert_int_equal(ibv_post_send(e->qp, &r.wr, &bad), 0);
	lab_poll(e->send_cq, 1, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		lab_to(e->qp, IBV_QPS_RTS);
	return wc.status;
}

/* How a receive into these bytes completes. The QP is in ERR if it failed. */
static enum ibv_wc_status receive_into(struct lab_end *e, uint64_t addr, uint32_t bytes,
                                       uint32_t lkey)
{
	struct ibv_sge sge = { .addr = addr, .length = bytes, .lkey = lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
	lab_send_text(e, lab_ah_to(e, e), e->qp->qp_num, "message");
	lab_poll(e->cq, 1, &wc);
	return wc.status;
}

LAB_CASE(a_region_says_what_it_is)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = lab_pd(context);
	struct ibv_mr *mr = reg(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);

	assert_ptr_equal(mr->context, context);
	assert_ptr_equal(mr->pd, pd);
	assert_ptr_equal(mr->addr, memory);
	assert_int_equal(mr->length, BYTES);
	assert_int_not_equal(mr->lkey, 0);
	assert_int_not_equal(mr->rkey, 0);
}

/* 0 says that there is none. The low byte of a window's key is the program's. */
LAB_CASE(no_key_is_0_however_many_there_were)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_mr *mr;
	struct ibv_mw *mw;

	for (unsigned i = 0; i < 10000; i++) {
		assert_non_null(mr = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE));
		assert_int_not_equal(mr->lkey, 0);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	for (unsigned i = 0; i < 100; i++) {
		assert_non_null(mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2));
		assert_int_not_equal(mw->rkey & ~0xFFu, 0);
		assert_int_equal(ibv_dealloc_mw(mw), 0);
	}
}

LAB_CASE(the_same_memory_can_be_registered_again)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_mr *a = reg(pd, memory, BYTES, 0), *b = reg(pd, memory, BYTES, 0);

	assert_int_not_equal(a->lkey, b->lkey);
}

LAB_CASE(every_access_that_the_man_page_names_is_accepted)
{
	static const int access[] = {
		0,
		IBV_ACCESS_LOCAL_WRITE,
		IBV_ACCESS_REMOTE_READ,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		IBV_ACCESS_MW_BIND,
		IBV_ACCESS_ZERO_BASED,
		IBV_ACCESS_HUGETLB,
		IBV_ACCESS_RELAXED_ORDERING,
	};
	struct ibv_pd *pd = lab_pd(lab_open(1));

	for (size_t i = 0; i < LAB_ARRAY(access); i++)
		reg(pd, memory, BYTES, access[i]);
}

LAB_CASE(remote_write_without_local_write_is_refused)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));

	expect_refused(pd, memory, BYTES, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	expect_refused(pd, memory, BYTES, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
}

LAB_CASE(an_unknown_access_flag_is_refused)
{
	expect_refused(lab_pd(lab_open(1)), memory, BYTES, 1 << 12, EINVAL);
}

LAB_CASE(memory_that_is_not_mapped_is_refused)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(munmap(p, BYTES), 0);
	expect_refused(pd, p, BYTES, IBV_ACCESS_LOCAL_WRITE, EFAULT);
	expect_refused(pd, p, BYTES, 0, EFAULT);
	expect_refused(pd, NULL, BYTES, IBV_ACCESS_LOCAL_WRITE, EFAULT);
}

LAB_CASE(memory_that_cannot_be_written_is_refused_for_local_write)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	void *p = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	expect_refused(pd, p, BYTES, IBV_ACCESS_LOCAL_WRITE, EFAULT);
	reg(pd, p, BYTES, 0);
	lab_clean_up(NULL);
	munmap(p, BYTES);
}

LAB_CASE(a_range_that_wraps_round_is_refused)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));

	errno = 0;
	assert_null(ibv_reg_mr(pd, memory, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
	assert_true(errno == EINVAL || errno == EFAULT || errno == ENOMEM);
}

/* As by Linux, for mlx5 and rxe alike: pages are what it counts. */
/* Whether memory can be registered that is not there yet: not where madvise() is denied. */
static bool has_on_demand(struct ibv_context *context)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(context, NULL, &attr), 0);
	return attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
}

LAB_CASE(a_region_of_no_bytes_lies_within_a_page_or_is_refused)
{
	struct lab_end *e = lab_end(1);
	char *page = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	assert_ptr_not_equal(page, MAP_FAILED);
	expect_refused(e->pd, page, 0, IBV_ACCESS_LOCAL_WRITE, EINVAL);
	expect_refused(e->pd, page, 0, IBV_ACCESS_ON_DEMAND,
	               has_on_demand(e->context) ? EINVAL : EOPNOTSUPP);
	mr = reg(e->pd, page + 1, 0, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(mr->length, 0);
	assert_int_equal(send_from(e, (uintptr_t)page + 1, 0, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(send_from(e, (uintptr_t)page + 1, 1, mr->lkey), IBV_WC_LOC_PROT_ERR);
	munmap(page, BYTES);
}

LAB_CASE(a_dma_buffer_is_not_supported)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));

	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(pd, 0, BYTES, 0, 0, 0));
	assert_int_equal(errno, EOPNOTSUPP);
}

/* ---- keys when they are used ---- */

LAB_CASE(a_send_takes_what_is_in_the_region_and_no_byte_more)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = reg(e->pd, memory + 100, 1000, 0);
	uint64_t first = (uintptr_t)memory + 100;

	assert_int_equal(send_from(e, first, 1000, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(send_from(e, first + 999, 1, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(send_from(e, first, 1001, mr->lkey), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(send_from(e, first - 1, 1, mr->lkey), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(send_from(e, first + 1000, 1, mr->lkey), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(send_from(e, UINT64_MAX, 1, mr->lkey), IBV_WC_LOC_PROT_ERR);
}

LAB_CASE(a_key_that_was_never_given_fails)
{
	struct lab_end *e = lab_end(1);
	static const uint32_t keys[] = { 0, 1, 0xDEADBEEF, UINT32_MAX };

	for (size_t i = 0; i < LAB_ARRAY(keys); i++)
		assert_int_equal(send_from(e, (uintptr_t)e->out, 1, keys[i]), IBV_WC_LOC_PROT_ERR);
}

LAB_CASE(a_key_dies_with_its_region)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = ibv_reg_mr(e->pd, memory, BYTES, 0);
	uint32_t lkey;

	assert_non_null(mr);
	lkey = mr->lkey;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(send_from(e, (uintptr_t)memory, 1, lkey), IBV_WC_LOC_PROT_ERR);
	/* the next region may take its place, but not its key */
	mr = reg(e->pd, memory, BYTES, 0);
	assert_int_not_equal(mr->lkey, lkey);
	assert_int_equal(send_from(e, (uintptr_t)memory, 1, lkey), IBV_WC_LOC_PROT_ERR);
}

LAB_CASE(a_region_of_another_pd_fails)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = reg(lab_pd(e->context), memory, BYTES, IBV_ACCESS_LOCAL_WRITE);

	assert_int_equal(send_from(e, (uintptr_t)memory, 1, mr->lkey), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(receive_into(e, (uintptr_t)memory, BYTES, mr->lkey), IBV_WC_LOC_PROT_ERR);
}

LAB_CASE(without_local_write_it_can_be_sent_but_not_received_into)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = reg(e->pd, memory, BYTES, 0);

	assert_int_equal(send_from(e, (uintptr_t)memory, 1, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(receive_into(e, (uintptr_t)memory, BYTES, mr->lkey), IBV_WC_LOC_PROT_ERR);
}

LAB_CASE(a_receive_is_checked_when_the_message_comes)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = ibv_reg_mr(e->pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = BYTES };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_non_null(mr);
	sge.lkey = mr->lkey;
	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	lab_send_text(e, lab_ah_to(e, e), e->qp->qp_num, "message");
	lab_complete(e->cq, IBV_WC_LOC_PROT_ERR);
}

LAB_CASE(a_receive_may_reach_beyond_a_region_where_the_message_does_not)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = reg(e->pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
	const uint64_t fits = (uintptr_t)memory + BYTES - LAB_GRH - 7;

	assert_int_equal(receive_into(e, fits, BYTES, mr->lkey), IBV_WC_SUCCESS);
	assert_memory_equal(memory + BYTES - 7, "message", 7);
	assert_int_equal(receive_into(e, fits + 1, BYTES, mr->lkey), IBV_WC_LOC_PROT_ERR);
}

LAB_CASE(a_receive_of_two_entries_may_reach_beyond_each_region)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *grh = reg(e->pd, memory, LAB_GRH, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *text = reg(e->pd, memory + BYTES, 7, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge[] = {
		{ .addr = (uintptr_t)memory, .length = LAB_GRH, .lkey = grh->lkey },
		{ .addr = (uintptr_t)memory + BYTES, .length = 100, .lkey = text->lkey },
	};
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 2 }, *bad;

	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
	lab_send_text(e, lab_ah_to(e, e), e->qp->qp_num, "message");
	lab_complete(e->cq, IBV_WC_SUCCESS);
	assert_memory_equal(memory + BYTES, "message", 7);
}

LAB_CASE(an_iova_is_what_requests_call_the_memory)
{
	const uint64_t iova = 0x123456000;
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = ibv_reg_mr_iova(e->pd, memory, BYTES, iova, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	lab_undo(undo_dereg, mr);
	assert_int_equal(send_from(e, iova, BYTES / 2, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(send_from(e, (uintptr_t)memory, 1, mr->lkey), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(receive_into(e, iova + 64, 100, mr->lkey), IBV_WC_SUCCESS);
	assert_memory_equal(memory + 64 + LAB_GRH, "message", 7);
}

LAB_CASE(an_iova_at_another_offset_of_its_page_is_refused)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_mr *mr;

	errno = 0;
	assert_null(ibv_reg_mr_iova(pd, memory + 8, BYTES / 2, 0x123456000, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_mr_iova(pd, memory, BYTES, 0x123456001, 0));
	assert_non_null(mr = ibv_reg_mr_iova(pd, memory + 8, BYTES / 2,
	                                     0x123456000 + (uintptr_t)(memory + 8) % 4096, 0));
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

LAB_CASE(a_zero_based_region_begins_at_zero)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr =
	        reg(e->pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);

	assert_int_equal(send_from(e, 0, 64, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(send_from(e, BYTES, 1, mr->lkey), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(receive_into(e, 0, 100, mr->lkey), IBV_WC_SUCCESS);
	assert_memory_equal(memory + LAB_GRH, "message", 7);
}

LAB_CASE(an_empty_entry_needs_no_region)
{
	struct lab_end *e = lab_end(1);

	assert_int_equal(send_from(e, 0, 0, 0xDEADBEEF), IBV_WC_SUCCESS);
}

/* ---- ibv_rereg_mr ---- */

LAB_CASE(rereg_moves_the_region)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = reg(e->pd, memory, BYTES, 0);
	uint32_t lkey = mr->lkey;

	assert_int_equal(
	        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + BYTES, BYTES, 0),
	        0);
	assert_ptr_equal(mr->addr, memory + BYTES);
	assert_int_not_equal(mr->lkey, lkey); /* the old one is good for nothing any more */
	assert_int_equal(mr->rkey, mr->lkey);
	assert_int_equal(send_from(e, (uintptr_t)memory + BYTES, 64, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(send_from(e, (uintptr_t)memory, 64, mr->lkey), IBV_WC_LOC_PROT_ERR);
}

LAB_CASE(rereg_changes_the_access)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = reg(e->pd, memory, BYTES, 0);
	uint32_t lkey = mr->lkey;

	assert_int_equal(
	        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
	        0);
	assert_int_equal(mr->lkey, lkey);
	assert_int_equal(receive_into(e, (uintptr_t)memory, BYTES, mr->lkey), IBV_WC_SUCCESS);
}

LAB_CASE(rereg_changes_the_pd)
{
	struct lab_end *e = lab_end(1);
	struct ibv_pd *pd = ibv_alloc_pd(e->context);
	struct ibv_mr *mr = reg(pd, memory, BYTES, 0);

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, e->pd, NULL, 0, 0), 0);
	assert_ptr_equal(mr->pd, e->pd);
	assert_int_equal(send_from(e, (uintptr_t)memory, 64, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

LAB_CASE(bad_input_to_rereg_leaves_the_region_valid)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = reg(e->pd, memory, BYTES, 0);
	struct ibv_pd *foreign = lab_pd(lab_open(2));
	uint32_t lkey = mr->lkey;

	assert_int_equal(ibv_rereg_mr(mr, 1 << 20, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, BYTES, 0),
	                 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 0, 0),
	                 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0),
	                 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, foreign, NULL, 0, 0),
	                 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(
	        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, e->pd, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
	        IBV_REREG_MR_ERR_INPUT);
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_rereg_mr(mr, 0, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
	                 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(mr->lkey, lkey);
	assert_int_equal(send_from(e, (uintptr_t)memory, 64, lkey), IBV_WC_SUCCESS);
}

/* libibverbs says so itself; that of device memory it leaves to the kernel. */
LAB_CASE(rereg_of_a_region_that_is_none_of_memory_is_bad_input)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_mr *null = ibv_alloc_null_mr(pd), *own = reg(pd, memory, BYTES, 0);
	struct ibv_mr *imported = ibv_import_mr(pd, own->handle);

	assert_non_null(null);
	assert_non_null(imported);
	for (unsigned i = 0; i < 2; i++) {
		errno = 0;
		assert_int_equal(ibv_rereg_mr(i ? imported : null, IBV_REREG_MR_CHANGE_ACCESS, NULL,
		                              NULL, 0, IBV_ACCESS_LOCAL_WRITE),
		                 IBV_REREG_MR_ERR_INPUT);
		assert_int_equal(errno, EINVAL);
	}
	ibv_unimport_mr(imported);
	assert_int_equal(ibv_dereg_mr(null), 0);
}

LAB_CASE(rereg_checks_access_as_reg_does)
{
	struct ibv_mr *mr = reg(lab_pd(lab_open(1)), memory, BYTES, 0);

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
	                              IBV_ACCESS_REMOTE_WRITE),
	                 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EINVAL);
}

LAB_CASE(rereg_checks_memory_as_reg_does)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = reg(e->pd, memory, BYTES, 0);
	uint32_t lkey = mr->lkey;
	void *gone = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_int_equal(munmap(gone, BYTES), 0);
	assert_int_equal(
	        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, SIZE_MAX, 0),
	        IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, gone, BYTES, 0),
	                 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(mr->lkey, lkey);
	assert_int_equal(send_from(e, (uintptr_t)memory, 64, lkey), IBV_WC_SUCCESS);
}

/* ---- protection domains and fork ---- */

LAB_CASE(a_pd_with_a_region_is_busy)
{
	struct ibv_pd *pd = ibv_alloc_pd(lab_open(1));
	struct ibv_mr *mr;

	assert_non_null(pd);
	assert_non_null(mr = ibv_reg_mr(pd, memory, BYTES, 0));
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

LAB_CASE(a_pd_with_a_qp_is_busy)
{
	struct lab_end *e = lab_end(1);
	struct ibv_pd *pd = ibv_alloc_pd(e->context);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
		                         .send_cq = e->send_cq,
		                         .recv_cq = e->cq };
	struct ibv_qp *qp;

	assert_non_null(pd);
	assert_non_null(qp = ibv_create_qp(pd, &init));
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

LAB_CASE(fork_needs_no_preparation)
{
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}
