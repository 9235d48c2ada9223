/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that was freed is free for rings of every size.
 */
#include "verbs/lab.h"
#include "attributes.h"

#define MANY 70000

static struct ibv_qp *qp[MANY];

static struct ibv_qp *make(struct ibv_pd *pd, struct ibv_cq *cq, unsigned receives)
{
	struct ibv_qp_init_attr init = init_of(IBV_QPT_UD, cq, 1, receives);

	return ibv_create_qp(pd, &init);
}

/* Makes queue pairs until there is no memory. Returns how many. */
static unsigned exhaust(struct ibv_pd *pd, struct ibv_cq *cq, unsigned receives)
{
	unsigned n = 0;

	while (n < MANY && (qp[n] = make(pd, cq, receives)))
		n++;
	assert_int_equal(errno, ENOMEM);
	return n;
}

/* Frees @n of them, those @step apart first. */
static void destroy(unsigned n, unsigned step)
{
	for (unsigned first = 0; first < step; first++)
		for (unsigned i = first; i < n; i += step)
			assert_int_equal(ibv_destroy_qp(qp[i]), 0);
}

LAB_CASE(rings_that_are_gone_make_room_for_rings_of_any_size)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = lab_pd(context);
	struct ibv_cq *cq = lab_cq(context, 64, NULL);
	struct ibv_device_attr attr;
	unsigned first, largest;

	assert_int_equal(ibv_query_device(context, &attr), 0);
	largest = (unsigned)attr.max_qp_wr;
	first = exhaust(pd, cq, largest);
	destroy(first, 7);
	for (unsigned receives = 1; receives <= largest; receives *= 4) {
		unsigned n = 0;

		while (n < 3 && (qp[n] = make(pd, cq, receives)))
			n++;
		assert_int_equal(n, 3);
		destroy(n, 1);
	}
	destroy(exhaust(pd, cq, largest / 2), 3);
	assert_int_equal(exhaust(pd, cq, largest), first);
	destroy(first, 1);
}
