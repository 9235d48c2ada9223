/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions that are not ordinary: null regions (ibv_alloc_null_mr(3)), and on-demand paging
 * with the advice for it (ibv_reg_mr(3), ibv_advise_mr(3)).
 */
#include "lab.h"

#include "base/pause.h"

#define THREADS 4
#define ROUNDS  50

static size_t page;

static void undo_dereg(void *mr)
{
	ibv_dereg_mr(mr);
}

static struct ibv_mr *null_mr(struct ibv_pd *pd)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(pd);

	assert_non_null(mr);
	lab_undo(undo_dereg, mr);
	return mr;
}

static struct ibv_mr *on_demand(struct ibv_pd *pd, void *addr, size_t bytes, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, bytes, IBV_ACCESS_ON_DEMAND | access);

	assert_non_null(mr);
	lab_undo(undo_dereg, mr);
	return mr;
}

/* How a send of these entries to itself completes. */
static enum ibv_wc_status send_entries(struct lab_end *e, struct ibv_sge *sge, int n)
{
	struct ibv_send_wr *bad;
	struct lab_request r;
	struct ibv_wc wc;

	lab_request(e, &r, lab_ah_to(e, e), e->qp->qp_num, NULL, 0);
	r.wr.sg_list = sge;
	r.wr.num_sge = n;
	assert_int_equal(ibv_post_send(e->qp, &r.wr, &bad), 0);
	lab_poll(e->send_cq, 1, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		lab_to(e->qp, IBV_QPS_RTS);
	return wc.status;
}

static enum ibv_wc_status send_from(struct lab_end *e, const struct ibv_mr *mr, const void *addr,
                                    uint32_t bytes)
{
	struct ibv_sge sge = { .addr = (uintptr_t)addr, .length = bytes, .lkey = mr->lkey };

	return send_entries(e, &sge, 1);
}

/* How a receive into these entries completes, of "message". */
static enum ibv_wc_status receive_into(struct lab_end *e, struct ibv_sge *sge, int n)
{
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = n }, *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
	lab_send_text(e, lab_ah_to(e, e), e->qp->qp_num, "message");
	lab_poll(e->cq, 1, &wc);
	return wc.status;
}

/* ---- null regions ---- */

LAB_CASE(a_null_region_has_a_local_key_and_no_end)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_mr *mr = null_mr(pd);

	assert_ptr_equal(mr->pd, pd);
	assert_null(mr->addr);
	assert_true(mr->length == SIZE_MAX);
	assert_int_not_equal(mr->lkey, 0);
	assert_int_equal(mr->rkey, 0);
}

LAB_CASE(zeros_are_read_from_a_null_region)
{
	static const char expected[3000 + 4];
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = null_mr(e->pd);
	struct ibv_sge sge[] = {
		{ .addr = (uintptr_t)e->out, .length = 4, .lkey = e->mr->lkey },
		{ .addr = UINT64_MAX - 5, .length = 3000, .lkey = mr->lkey },
		{ .addr = (uintptr_t)e->out, .length = 4, .lkey = e->mr->lkey },
	};
	struct lab_message m;

	memcpy(e->out, "data", 4);
	lab_post(e, 1);
	assert_int_equal(send_entries(e, sge, 3), IBV_WC_SUCCESS);
	m = lab_receive(e);
	assert_int_equal(m.length, 3008);
	assert_memory_equal(m.data, "data", 4);
	assert_memory_equal(m.data + 4, expected, 3000);
	assert_memory_equal(m.data + 3004, "data", 4);
}

LAB_CASE(a_whole_message_can_be_zeros)
{
	static const char expected[LAB_MTU];
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = null_mr(e->pd);

	lab_post(e, 1);
	assert_int_equal(send_from(e, mr, NULL, LAB_MTU), IBV_WC_SUCCESS);
	lab_expect(e, expected, LAB_MTU);
}

LAB_CASE(what_is_received_into_a_null_region_is_gone)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = null_mr(e->pd);
	struct ibv_sge sge = { .addr = 0, .length = UINT32_MAX, .lkey = mr->lkey };

	assert_int_equal(receive_into(e, &sge, 1), IBV_WC_SUCCESS);
	/* zeros are read as before */
	lab_post(e, 1);
	assert_int_equal(send_from(e, mr, NULL, 7), IBV_WC_SUCCESS);
	lab_expect(e, "\0\0\0\0\0\0", 7);
}

LAB_CASE(a_null_entry_skips_its_part_of_a_message)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = null_mr(e->pd);
	struct ibv_sge sge[] = {
		{ .addr = 0, .length = LAB_GRH + 3, .lkey = mr->lkey },
		{ .addr = (uintptr_t)e->slot, .length = 100, .lkey = e->mr->lkey },
	};

	memset(e->slot, 'x', 8);
	assert_int_equal(receive_into(e, sge, 2), IBV_WC_SUCCESS);
	assert_memory_equal(e->slot, "sagexxxx", 8);
}

LAB_CASE(a_null_entry_that_is_too_short_is_a_length_error)
{
	struct lab_end *e = lab_end(1);
	struct ibv_sge sge = { .addr = 0, .length = LAB_GRH + 3, .lkey = null_mr(e->pd)->lkey };

	assert_int_equal(receive_into(e, &sge, 1), IBV_WC_LOC_LEN_ERR);
}

LAB_CASE(a_null_region_of_another_pd_fails)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = null_mr(lab_pd(e->context));
	struct ibv_sge sge = { .addr = 0, .length = 1000, .lkey = mr->lkey };

	assert_int_equal(send_from(e, mr, NULL, 7), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(receive_into(e, &sge, 1), IBV_WC_LOC_PROT_ERR);
}

LAB_CASE(a_null_region_cannot_be_registered_again)
{
	struct ibv_mr *mr = null_mr(lab_pd(lab_open(1)));

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
	                 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
}

LAB_CASE(a_pd_with_a_null_region_is_busy_and_its_key_dies_with_it)
{
	struct lab_end *e = lab_end(1);
	struct ibv_pd *pd = ibv_alloc_pd(e->context);
	struct ibv_mr *mr = ibv_alloc_null_mr(pd), gone;

	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	mr = ibv_alloc_null_mr(e->pd);
	gone = *mr;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(send_from(e, &gone, NULL, 7), IBV_WC_LOC_PROT_ERR);
}

static void *receive_in_a_thread(void *end)
{
	struct lab_end *e = end;
	struct ibv_mr *mr = ibv_alloc_null_mr(e->pd);
	struct ibv_sge sge = { .addr = 0, .length = 1000, .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	for (int i = 0; i < ROUNDS; i++) {
		struct base_pause pause = { 0 };

		if (ibv_post_recv(e->qp, &wr, &bad))
			return NULL;
		while (!ibv_poll_cq(e->cq, 1, &wc))
			base_pause(&pause);
		if (wc.status != IBV_WC_SUCCESS)
			return NULL;
	}
	return ibv_dereg_mr(mr) ? NULL : e;
}

LAB_CASE(threads_discard_at_the_same_time)
{
	struct lab_end *sender = lab_end(2), *e[THREADS];
	pthread_t thread[THREADS];
	void *result;

	for (int i = 0; i < THREADS; i++) {
		e[i] = lab_end(1);
		assert_int_equal(pthread_create(&thread[i], NULL, receive_in_a_thread, e[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		struct ibv_ah *ah = lab_ah_to(sender, e[i]);

		/* more than enough: what finds no receive posted is lost */
		while (pthread_tryjoin_np(thread[i], &result))
			lab_send_text(sender, ah, e[i]->qp->qp_num, "message");
		assert_ptr_equal(result, e[i]);
	}
}

/* ---- on-demand paging ---- */

static char *map(size_t bytes, int protection)
{
	char *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static bool is_present(void *addr)
{
	unsigned char there;

	assert_int_equal(mincore(addr, page, &there), 0);
	return there & 1;
}

LAB_CASE(the_device_says_what_it_can_do_on_demand)
{
	struct ibv_device_attr_ex attr;
	const uint32_t flush_and_atomic_write =
	        1 << 6 | 1 << 7; /* headers of Debian 12 lack them */
	uint32_t ud;

	assert_int_equal(ibv_query_device_ex(lab_open(1), NULL, &attr), 0);
	ud = attr.odp_caps.per_transport_caps.ud_odp_caps;
	assert_int_equal(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	assert_int_equal(ud,
	                 IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV);
	assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps,
	                 IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
	                         IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC |
	                         IBV_ODP_SUPPORT_SRQ_RECV | flush_and_atomic_write);
	assert_int_equal(attr.xrc_odp_caps, attr.odp_caps.per_transport_caps.rc_odp_caps);
}

/* ---- large regions ---- */

#define LARGE (64ull << 30)

static char *map_large(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		skip(); /* the machine promises no more memory than it has */
	madvise(p, bytes, MADV_NOHUGEPAGE);
	return p;
}

LAB_CASE(pages_of_a_large_region_stay_absent)
{
	struct lab_end *e = lab_end(1);
	char *p = map_large(LARGE), *middle = p + LARGE / 2;
	struct ibv_mr *mr = ibv_reg_mr(e->pd, p, LARGE, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { .addr = (uintptr_t)middle, .length = 100 };

	assert_non_null(mr);
	sge.lkey = mr->lkey;
	assert_false(is_present(middle));
	assert_int_equal(receive_into(e, &sge, 1), IBV_WC_SUCCESS);
	assert_memory_equal(middle + LAB_GRH, "message", 7);
	assert_false(is_present(middle + page));
	assert_false(is_present(p));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(p, LARGE);
}

LAB_CASE(a_large_region_is_all_there)
{
	const size_t bytes = 2ull << 30;
	struct lab_end *e = lab_end(1);
	char *p = map_large(bytes);
	struct ibv_mr *mr;

	assert_int_equal(mprotect(p + bytes / 2, page, PROT_READ), 0);
	assert_null(ibv_reg_mr(e->pd, p, bytes, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	assert_non_null(mr = ibv_reg_mr(e->pd, p, bytes, 0));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(munmap(p + bytes / 2, page), 0);
	assert_null(ibv_reg_mr(e->pd, p, bytes, 0));
	assert_int_equal(errno, EFAULT);
	munmap(p, bytes);
}

/* ---- many regions ---- */

#define MANY 100000

LAB_CASE(there_may_be_a_hundred_thousand_regions)
{
	static struct ibv_mr *mr[MANY];
	struct lab_end *e = lab_end(1);
	char *p = map(page, PROT_READ | PROT_WRITE);
	struct ibv_sge sge = { .addr = (uintptr_t)p, .length = 100 };

	for (int i = 0; i < MANY; i++) {
		assert_non_null(mr[i] = ibv_reg_mr(e->pd, p, 100, IBV_ACCESS_LOCAL_WRITE));
	}
	sge.lkey = mr[MANY - 1]->lkey;
	assert_int_equal(receive_into(e, &sge, 1), IBV_WC_SUCCESS);
	assert_memory_equal(p + LAB_GRH, "message", 7);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
	munmap(p, page);
}

/* ---- on-demand paging, in use ---- */

LAB_CASE(an_on_demand_region_brings_in_the_pages_that_are_used)
{
	struct lab_end *e = lab_end(1);
	char *p = map(4 * page, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = on_demand(e->pd, p, 4 * page, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { .addr = (uintptr_t)p + page, .length = 100, .lkey = mr->lkey };

	for (int i = 0; i < 4; i++)
		assert_false(is_present(p + (size_t)i * page));
	assert_int_equal(receive_into(e, &sge, 1), IBV_WC_SUCCESS);
	assert_memory_equal(p + page + LAB_GRH, "message", 7);
	assert_false(is_present(p));
	lab_post(e, 1);
	assert_int_equal(send_from(e, mr, p + page + LAB_GRH, 7), IBV_WC_SUCCESS);
	lab_expect_text(e, "message");
	munmap(p, 4 * page);
}

LAB_CASE(an_on_demand_region_follows_the_mapping)
{
	struct lab_end *e = lab_end(1);
	char *p = map(page, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = on_demand(e->pd, p, page, IBV_ACCESS_LOCAL_WRITE);

	assert_int_equal(send_from(e, mr, p, 7), IBV_WC_SUCCESS);
	assert_int_equal(munmap(p, page), 0);
	assert_int_equal(send_from(e, mr, p, 7), IBV_WC_LOC_PROT_ERR);
	assert_ptr_equal(mmap(p, page, PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
	                 p);
	strcpy(p, "message");
	lab_post(e, 1);
	assert_int_equal(send_from(e, mr, p, 7), IBV_WC_SUCCESS);
	lab_expect_text(e, "message");
	munmap(p, page);
}

LAB_CASE(an_on_demand_receive_needs_memory_that_can_be_written)
{
	struct lab_end *e = lab_end(1);
	char *p = map(page, PROT_READ);
	struct ibv_mr *mr = on_demand(e->pd, p, page, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { .addr = (uintptr_t)p, .length = 100, .lkey = mr->lkey };

	assert_int_equal(send_from(e, mr, p, 7), IBV_WC_SUCCESS);
	assert_int_equal(receive_into(e, &sge, 1), IBV_WC_LOC_PROT_ERR);
	munmap(p, page);
}

static void undo_srq(void *srq)
{
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

LAB_CASE(an_on_demand_receive_may_be_shared)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD };
	struct lab_end *e = lab_end(1);
	char *p = map(page, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = on_demand(e->pd, p, page, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { .addr = (uintptr_t)p, .length = 100, .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_qp *qp;

	assert_non_null(init.srq = ibv_create_srq(e->pd, &shared));
	lab_undo(undo_srq, init.srq);
	init.send_cq = init.recv_cq = e->cq;
	qp = lab_qp(e->pd, &init);
	lab_start(qp, LAB_QKEY);
	assert_int_equal(ibv_post_srq_recv(init.srq, &wr, &bad), 0);
	assert_false(is_present(p));
	lab_send_text(e, lab_ah_to(e, e), qp->qp_num, "message");
	lab_complete(e->cq, IBV_WC_SUCCESS);
	assert_memory_equal(p + LAB_GRH, "message", 7);
	munmap(p, page);
}

LAB_CASE(the_whole_address_space_can_be_one_region)
{
	struct lab_end *e = lab_end(1);
	char *p = map(page, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = on_demand(e->pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { .addr = (uintptr_t)p, .length = 100, .lkey = mr->lkey };

	assert_int_equal(receive_into(e, &sge, 1), IBV_WC_SUCCESS);
	assert_memory_equal(p + LAB_GRH, "message", 7);
	assert_int_equal(send_from(e, mr, NULL, 7), IBV_WC_LOC_PROT_ERR);
	munmap(p, page);
}

LAB_CASE(the_bounds_and_the_pd_of_an_on_demand_region_hold)
{
	struct lab_end *e = lab_end(1);
	char *p = map(2 * page, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = on_demand(e->pd, p, page, 0);
	struct ibv_mr *other = on_demand(lab_pd(e->context), p, page, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { .addr = (uintptr_t)p, .length = 100, .lkey = mr->lkey };

	assert_int_equal(send_from(e, mr, p + page - 7, 7), IBV_WC_SUCCESS);
	assert_int_equal(send_from(e, mr, p + page - 6, 7), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(send_from(e, mr, p - 1, 7), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(send_from(e, other, p, 7), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(receive_into(e, &sge, 1), IBV_WC_LOC_PROT_ERR);
	munmap(p, 2 * page);
}

LAB_CASE(a_region_becomes_on_demand_and_ordinary_again)
{
	struct lab_end *e = lab_end(1);
	char *p = map(page, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = on_demand(e->pd, p, page, 0);

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), 0);
	assert_true(is_present(p));
	assert_int_equal(send_from(e, mr, p, 7), IBV_WC_SUCCESS);
	assert_int_equal(
	        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_ON_DEMAND),
	        0);
	assert_int_equal(munmap(p, page), 0);
	assert_int_equal(send_from(e, mr, p, 7), IBV_WC_LOC_PROT_ERR);
}

/* ---- advice ---- */

static int advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, const struct ibv_mr *mr,
                  const void *addr, uint32_t bytes)
{
	struct ibv_sge sge = { .addr = (uintptr_t)addr, .length = bytes, .lkey = mr->lkey };

	return ibv_advise_mr(pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

LAB_CASE(advice_brings_pages_in)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	char *p = map(3 * page, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = on_demand(pd, p, 3 * page, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge[] = { { (uintptr_t)p, 1, mr->lkey },
		                 { (uintptr_t)p + 2 * page, 1, mr->lkey } };

	assert_int_equal(advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, mr, p, 1), 0);
	assert_false(is_present(p));
	assert_int_equal(
	        ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, sge, LAB_ARRAY(sge)), 0);
	assert_true(is_present(p));
	assert_false(is_present(p + page));
	assert_true(is_present(p + 2 * page));
	munmap(p, 3 * page);
}

LAB_CASE(wrong_advice_is_refused_as_the_man_page_says)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	char *p = map(page, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = on_demand(pd, p, page, 0), unknown = { .lkey = 0xDEADBEEF };
	struct ibv_mr *other = on_demand(lab_pd(pd->context), p, page, 0);
	struct ibv_mr *ordinary = lab_mr(pd, p, page);
	struct ibv_sge sge = { .addr = (uintptr_t)p, .length = 1, .lkey = mr->lkey };

	assert_int_equal(advise(pd, (enum ibv_advise_mr_advice)99, mr, p, 1), ENOTSUP);
	assert_int_equal(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1u << 9, &sge, 1),
	                 EINVAL);
	assert_int_equal(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 0), EINVAL);
	assert_int_equal(advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, ordinary, p, 1), ENOTSUP);
	assert_int_equal(advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, &unknown, p, 1), ENOENT);
	assert_int_equal(advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, other, p, 1), EPERM);
	assert_int_equal(advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, mr, p, 1), EPERM);
	assert_int_equal(advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, mr, p + page, 1), EFAULT);
	assert_int_equal(munmap(p, page), 0);
	assert_int_equal(advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, mr, p, 1), EFAULT);
}

LAB_CASE(a_child_uses_regions_of_all_kinds)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		zeros_are_read_from_a_null_region(NULL);
		an_on_demand_region_follows_the_mapping(NULL);
		_exit(0);
	}
	harness_expect_success(child);
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	return harness_run(NULL, NULL);
}
