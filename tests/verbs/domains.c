/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection, parent and thread domains: ibv_alloc_pd(3), ibv_alloc_parent_domain(3),
 * ibv_alloc_td(3).
 */
#include "lab.h"
#include "attributes.h"

#define THREADS 4
#define ROUNDS  200

static void undo_pd(void *pd)
{
	ibv_dealloc_pd(pd);
}

static void undo_td(void *td)
{
	ibv_dealloc_td(td);
}

static struct ibv_pd *parent_with(struct ibv_pd *pd, struct ibv_parent_domain_init_attr attr)
{
	attr.pd = pd;
	return ibv_alloc_parent_domain(pd->context, &attr);
}

static struct ibv_pd *parent_of(struct ibv_pd *pd)
{
	struct ibv_pd *parent = parent_with(pd, (struct ibv_parent_domain_init_attr){ 0 });

	assert_non_null(parent);
	lab_undo(undo_pd, parent);
	return parent;
}

static struct ibv_td *thread_domain(struct ibv_context *context)
{
	struct ibv_td *td = ibv_alloc_td(context, &(struct ibv_td_init_attr){ 0 });

	assert_non_null(td);
	lab_undo(undo_td, td);
	return td;
}

/* A queue pair in @pd, in RTS, with the completion queues of @e. */
static struct ibv_qp *qp_in(struct ibv_pd *pd, struct lab_end *e)
{
	struct ibv_qp *qp = lab_qp(pd, &(struct ibv_qp_init_attr){
	                                       .send_cq = e->send_cq,
	                                       .recv_cq = e->cq,
	                                       .cap = { 4, 4, 1, 1, 0 },
	                                       .qp_type = IBV_QPT_UD,
	                                       .sq_sig_all = 1,
	                               });

	lab_start(qp, LAB_QKEY);
	return qp;
}

/* How a message of @qp to @e completes, with an address handle and a region of these domains. */
static enum ibv_wc_status send_by(struct lab_end *e, struct ibv_qp *qp, struct ibv_pd *ah_pd,
                                  struct ibv_pd *mr_pd)
{
	struct ibv_ah_attr attr = lab_attr_to(e);
	struct ibv_ah *ah = lab_ah(ah_pd, &attr);
	struct ibv_mr *mr = lab_mr(mr_pd, e->out, LAB_SLOT);
	struct ibv_send_wr *bad;
	struct lab_request r;
	struct ibv_wc wc;

	lab_request(e, &r, ah, e->qp->qp_num, "message", 7);
	r.sge.lkey = mr->lkey;
	assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
	lab_poll(e->send_cq, 1, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		lab_to(qp, IBV_QPS_RTS);
	return wc.status;
}

/* ---- parent domains ---- */

LAB_CASE(a_parent_domain_and_its_pd_are_one_domain)
{
	struct lab_end *e = lab_end(1);
	struct ibv_pd *parent = parent_of(e->pd), *other = parent_of(e->pd);
	struct ibv_qp *qp = qp_in(parent, e);

	lab_post(e, 4);
	assert_int_equal(send_by(e, qp, parent, parent), IBV_WC_SUCCESS);
	assert_int_equal(send_by(e, qp, e->pd, e->pd), IBV_WC_SUCCESS);
	assert_int_equal(send_by(e, qp, other, other), IBV_WC_SUCCESS);
	assert_int_equal(send_by(e, e->qp, parent, parent), IBV_WC_SUCCESS);
	for (int i = 0; i < 4; i++)
		lab_expect_text(e, "message");
}

LAB_CASE(a_parent_domain_of_another_pd_is_another_domain)
{
	struct lab_end *e = lab_end(1);
	struct ibv_pd *parent = parent_of(lab_pd(e->context));

	assert_int_equal(send_by(e, e->qp, e->pd, parent), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(send_by(e, e->qp, parent, e->pd), IBV_WC_LOC_QP_OP_ERR);
}

LAB_CASE(a_receive_goes_into_memory_of_the_pd_and_of_the_parent_domain)
{
	struct lab_end *e = lab_end(1);
	struct ibv_pd *parent = parent_of(e->pd);
	struct ibv_mr *mr = lab_mr(parent, e->slot, LAB_SLOT);
	struct ibv_sge sge = { .addr = (uintptr_t)e->slot, .length = LAB_SLOT, .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
	lab_send_text(e, lab_ah_to(e, e), e->qp->qp_num, "message");
	lab_complete(e->cq, IBV_WC_SUCCESS);
	assert_memory_equal(e->slot + LAB_GRH, "message", 7);
}

static void expect_refused(struct ibv_context *context, struct ibv_parent_domain_init_attr attr,
                           int error)
{
	errno = 0;
	assert_null(ibv_alloc_parent_domain(context, &attr));
	assert_int_equal(errno, error);
}

LAB_CASE(a_parent_domain_needs_a_pd_of_the_same_device)
{
	struct ibv_context *context = lab_open(1), *foreign = lab_open(2);
	struct ibv_pd *pd = lab_pd(context);

	expect_refused(context, (struct ibv_parent_domain_init_attr){ 0 }, EINVAL);
	expect_refused(foreign, (struct ibv_parent_domain_init_attr){ .pd = pd }, EINVAL);
	expect_refused(context, (struct ibv_parent_domain_init_attr){ .pd = parent_of(pd) },
	               EINVAL);
	expect_refused(
	        context,
	        (struct ibv_parent_domain_init_attr){ .pd = pd, .td = thread_domain(foreign) },
	        EINVAL);
}

LAB_CASE(a_parent_domain_refuses_what_it_does_not_know)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .comp_mask = 1 << 20 };

	expect_refused(pd->context, attr, EOPNOTSUPP);
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	expect_refused(pd->context, attr, EINVAL);
}

/* ---- the order of destruction ---- */

LAB_CASE(a_pd_with_a_parent_domain_is_busy)
{
	struct ibv_pd *pd = ibv_alloc_pd(lab_open(1));
	struct ibv_pd *parent = parent_with(pd, (struct ibv_parent_domain_init_attr){ 0 });

	assert_non_null(parent);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

LAB_CASE(a_parent_domain_with_an_object_is_busy)
{
	struct lab_end *e = lab_end(1);
	struct ibv_pd *parent = parent_with(e->pd, (struct ibv_parent_domain_init_attr){ 0 });
	struct ibv_ah_attr attr = lab_attr_to(e);
	struct ibv_mr *mr = ibv_reg_mr(parent, e->out, 64, 0);
	struct ibv_ah *ah = ibv_create_ah(parent, &attr);

	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
}

LAB_CASE(a_thread_domain_of_a_parent_domain_is_busy)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_td *td = ibv_alloc_td(pd->context, &(struct ibv_td_init_attr){ 0 });
	struct ibv_pd *parent = parent_with(pd, (struct ibv_parent_domain_init_attr){ .td = td });

	assert_non_null(parent);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
}

LAB_CASE(a_thread_domain_refuses_attributes_that_nobody_knows)
{
	struct ibv_context *context = lab_open(1);

	errno = 0;
	assert_null(ibv_alloc_td(context, &(struct ibv_td_init_attr){ .comp_mask = 1 }));
	assert_int_equal(errno, EINVAL);
}

/* ---- completion queues ---- */

static struct ibv_cq_ex *cq_in(struct ibv_pd *pd)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16,
		                            .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		                            .parent_domain = pd };

	errno = 0;
	return ibv_create_cq_ex(pd->context, &attr);
}

LAB_CASE(a_completion_queue_can_be_in_a_parent_domain_only)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_pd *parent = parent_with(pd, (struct ibv_parent_domain_init_attr){ 0 });
	struct ibv_cq_ex *cq;

	assert_null(cq_in(pd));
	assert_int_equal(errno, EINVAL);
	assert_non_null(cq = cq_in(parent));
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
}

/* ---- allocators ---- */

struct store {
	struct ibv_pd *pd; /* that the allocator was called for */
	void *memory;
	unsigned n_alloc, n_free;
};

static void *alloc_from_store(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
                              uint64_t type)
{
	struct store *s = context;

	(void)type;
	s->pd = pd;
	s->n_alloc++;
	if (posix_memalign(&s->memory, alignment, size))
		return NULL;
	memset(s->memory, 0, size);
	return s->memory;
}

static void free_to_store(struct ibv_pd *pd, void *context, void *memory, uint64_t type)
{
	struct store *s = context;

	(void)type;
	assert_ptr_equal(s->pd, pd);
	assert_ptr_equal(s->memory, memory);
	free(memory);
	s->n_free++;
}

static void *alloc_by_default(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
                              uint64_t type)
{
	(void)pd;
	(void)context;
	(void)size;
	(void)alignment;
	(void)type;
	return IBV_ALLOCATOR_USE_DEFAULT;
}

static void *alloc_nothing(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
                           uint64_t type)
{
	(void)pd;
	(void)context;
	(void)size;
	(void)alignment;
	(void)type;
	return NULL;
}

static struct ibv_pd *parent_with_allocator(struct ibv_pd *pd, typeof(alloc_nothing) alloc,
                                            struct store *store)
{
	struct ibv_parent_domain_init_attr attr = {
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
		             IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = alloc,
		.free = free_to_store,
		.pd_context = store,
	};
	struct ibv_pd *parent = parent_with(pd, attr);

	assert_non_null(parent);
	lab_undo(undo_pd, parent);
	return parent;
}

/* Sends itself a message by a queue pair in @pd, and destroys it. */
static void use_a_queue_in(struct ibv_pd *pd, struct lab_end *e)
{
	struct ibv_qp *qp = qp_in(pd, e);

	lab_post(e, 1);
	assert_int_equal(send_by(e, qp, pd, pd), IBV_WC_SUCCESS);
	lab_expect_text(e, "message");
	lab_forget(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

LAB_CASE(queues_lie_in_memory_of_the_programs_allocator)
{
	struct store store = { 0 };
	struct lab_end *e = lab_end(1);
	struct ibv_pd *parent = parent_with_allocator(e->pd, alloc_from_store, &store);

	use_a_queue_in(parent, e);
	assert_int_equal(store.n_alloc, 1);
	assert_int_equal(store.n_free, 1);
	assert_ptr_equal(store.pd, parent);
}

LAB_CASE(an_allocator_may_leave_it_to_the_library)
{
	struct store store = { 0 };
	struct lab_end *e = lab_end(1);

	use_a_queue_in(parent_with_allocator(e->pd, alloc_by_default, &store), e);
	assert_int_equal(store.n_free, 0);
}

LAB_CASE(without_memory_from_the_allocator_there_is_no_queue_pair)
{
	struct store store = { 0 };
	struct lab_end *e = lab_end(1);
	struct ibv_pd *parent = parent_with_allocator(e->pd, alloc_nothing, &store);
	struct ibv_qp_init_attr init = init_of(IBV_QPT_UD, e->cq, 1, 1);

	errno = 0;
	assert_null(ibv_create_qp(parent, &init));
	assert_int_equal(errno, ENOMEM);
}

/* ---- threads and fork ---- */

static void *make_domains(void *context)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_pd *pd = ibv_alloc_pd(context), *parent;
		struct ibv_td *td = ibv_alloc_td(context, &(struct ibv_td_init_attr){ 0 });

		if (!pd || !td)
			return NULL;
		parent = parent_with(pd, (struct ibv_parent_domain_init_attr){ .td = td });
		if (!parent || ibv_dealloc_pd(parent) || ibv_dealloc_td(td) || ibv_dealloc_pd(pd))
			return NULL;
	}
	return context;
}

LAB_CASE(threads_make_domains_at_the_same_time)
{
	struct ibv_context *context = lab_open(1);
	pthread_t thread[THREADS];
	void *result;

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, make_domains, context), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], &result), 0);
		assert_ptr_equal(result, context);
	}
}

LAB_CASE(a_child_makes_parent_domains_of_its_own)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	pid_t child;

	parent_of(pd);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct lab_end *e = lab_end(1);

		use_a_queue_in(parent_of(e->pd), e);
		_exit(0);
	}
	harness_expect_success(child);
}

/* As many as the device says there are, and one again when one has gone. */
LAB_CASE(all_protection_domains_are_had)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_device_attr attr;
	struct ibv_pd **pd;
	int n = 0;

	assert_int_equal(ibv_query_device(context, &attr), 0);
	assert_non_null(pd = calloc((size_t)attr.max_pd + 1, sizeof(struct ibv_pd *)));
	while (n <= attr.max_pd && (pd[n] = ibv_alloc_pd(context)))
		n++;
	assert_int_equal(n, attr.max_pd);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_dealloc_pd(pd[n / 2]), 0);
	pd[n / 2] = ibv_alloc_pd(context);
	assert_non_null(pd[n / 2]);
	while (n--)
		assert_int_equal(ibv_dealloc_pd(pd[n]), 0);
	free(pd);
}
