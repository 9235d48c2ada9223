/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Address handles: ibv_create_ah(3), ibv_destroy_ah(3), ibv_init_ah_from_wc(3) and
 * ibv_create_ah_from_wc(3).
 * Nothing leaks.
 */
#include "lab.h"

static void expect_refused(struct ibv_pd *pd, struct ibv_ah_attr attr)
{
	errno = 0;
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_equal(errno, EINVAL);
}

/* To a group that need not exist. */
static struct ibv_ah_attr multicast_attr(void)
{
	return (struct ibv_ah_attr){ .dlid = 0xC001,
		                     .port_num = 1,
		                     .is_global = 1,
		                     .grh = { .dgid = lab_mgid(1), .hop_limit = 1 } };
}

LAB_CASE(an_ah_is_made_and_destroyed)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = lab_pd(context);
	struct ibv_ah *ah = ibv_create_ah(pd, &(struct ibv_ah_attr){ .dlid = 1, .port_num = 1 });

	assert_non_null(ah);
	assert_ptr_equal(ah->pd, pd);
	assert_ptr_equal(ah->context, context);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

LAB_CASE(a_multicast_lid_needs_a_grh)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_ah_attr attr = multicast_attr();

	lab_ah(pd, &attr);
	attr.is_global = 0;
	expect_refused(pd, attr);
}

LAB_CASE(a_multicast_lid_with_a_unicast_gid_is_refused)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_ah_attr attr = multicast_attr();

	assert_int_equal(ibv_query_gid(context, 1, 0, &attr.grh.dgid), 0);
	expect_refused(lab_pd(context), attr);
}

LAB_CASE(a_port_that_is_not_there_is_refused)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_ah_attr attr = multicast_attr();

	attr.port_num = 0;
	expect_refused(pd, attr);
	attr.port_num = 2;
	expect_refused(pd, attr);
	attr.port_num = 255;
	expect_refused(pd, attr);
}

LAB_CASE(an_sgid_index_that_is_empty_or_beyond_the_table_is_refused)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = lab_pd(context);
	struct ibv_ah_attr attr = multicast_attr();
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(context, 1, &port), 0);
	attr.grh.sgid_index = (uint8_t)(port.gid_tbl_len - 1);
	expect_refused(pd, attr);
	attr.grh.sgid_index = (uint8_t)port.gid_tbl_len;
	expect_refused(pd, attr);
	attr.grh.sgid_index = 255;
	expect_refused(pd, attr);
}

LAB_CASE(a_lid_of_zero_is_refused)
{
	expect_refused(lab_pd(lab_open(1)), (struct ibv_ah_attr){ .port_num = 1 });
}

/* One that does not exist is the port's own, as by mlx5. */
LAB_CASE(any_static_rate_will_do)
{
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	struct ibv_ah_attr attr = lab_attr_to(to);

	lab_post(to, 2);
	attr.static_rate = IBV_RATE_100_GBPS;
	lab_send_text(from, lab_ah(from->pd, &attr), to->qp->qp_num, "real");
	attr.static_rate = 200;
	lab_send_text(from, lab_ah(from->pd, &attr), to->qp->qp_num, "none");
	lab_expect_text(to, "real");
	lab_expect_text(to, "none");
}

LAB_CASE(destroying_it_twice_is_refused)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_ah *ah = ibv_create_ah(pd, &(struct ibv_ah_attr){ .dlid = 1, .port_num = 1 });

	assert_int_equal(ibv_destroy_ah(ah), 0);
	errno = 0;
	assert_int_equal(ibv_destroy_ah(ah), EINVAL);
	assert_int_equal(errno, EINVAL);
}

LAB_CASE(destroying_none_is_refused)
{
	assert_int_equal(ibv_destroy_ah(NULL), EINVAL);
}

LAB_CASE(posting_with_a_destroyed_ah_is_refused)
{
	struct lab_end *e = lab_end(1);
	struct ibv_ah_attr attr = lab_attr_to(e);
	struct ibv_ah *ah = ibv_create_ah(e->pd, &attr);
	struct ibv_send_wr *bad = NULL;
	struct lab_request r;

	lab_request(e, &r, ah, e->qp->qp_num, "x", 1);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_post_send(e->qp, &r.wr, &bad), EINVAL);
	assert_ptr_equal(bad, &r.wr);
}

/* The post is done when the AH goes; on hardware this would be an error or a crash. */
LAB_CASE(a_send_already_posted_survives_the_ah)
{
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	struct ibv_ah_attr attr = lab_attr_to(to);
	struct ibv_ah *ah = ibv_create_ah(from->pd, &attr);
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_post(to, 1);
	lab_request(from, &r, ah, to->qp->qp_num, "posted", 6);
	assert_int_equal(ibv_post_send(from->qp, &r.wr, &bad), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	lab_complete(from->send_cq, IBV_WC_SUCCESS);
	lab_expect_text(to, "posted");
}

LAB_CASE(a_send_that_waits_in_sqd_survives_the_ah)
{
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	struct ibv_ah_attr attr = lab_attr_to(to);
	struct ibv_ah *ah = ibv_create_ah(from->pd, &attr);
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_post(to, 1);
	lab_to(from->qp, IBV_QPS_SQD);
	lab_request(from, &r, ah, to->qp->qp_num, "waited", 6);
	assert_int_equal(ibv_post_send(from->qp, &r.wr, &bad), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	attr.dlid = 0xBFFF; /* nowhere: perhaps in the same memory */
	lab_ah(from->pd, &attr);
	lab_to(from->qp, IBV_QPS_RTS);
	lab_complete(from->send_cq, IBV_WC_SUCCESS);
	lab_expect_text(to, "waited");
}

/* One with this traffic class, where @at is (or anywhere, if that is NULL). Others are destroyed
 * when the test ends. */
static struct ibv_ah *ah_of_class(struct lab_end *from, const struct lab_end *to, uint8_t class,
                                  const struct ibv_ah *at)
{
	struct ibv_ah_attr attr = lab_attr_global(to);
	struct ibv_ah *ah;

	attr.grh.traffic_class = class;
	do
		ah = lab_ah(from->pd, &attr);
	while (at && ah != at);
	return ah;
}

static unsigned received_class(struct lab_end *e)
{
	const uint8_t *grh = (const uint8_t *)lab_receive(e).grh;

	return (uint8_t)(grh[0] << 4 | grh[1] >> 4);
}

LAB_CASE(an_ah_at_the_place_of_another_has_its_own_attributes)
{
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	struct ibv_ah *ah = ah_of_class(from, to, 1, NULL);

	lab_post(to, 3);
	lab_send_text(from, ah, to->qp->qp_num, "before");
	lab_send_text(from, ah, to->qp->qp_num, "again");
	assert_int_equal(received_class(to), 1);
	assert_int_equal(received_class(to), 1);
	lab_forget(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	ah = ah_of_class(from, to, 2, ah);
	lab_send_text(from, ah, to->qp->qp_num, "after");
	assert_int_equal(received_class(to), 2);
}

LAB_CASE(a_pd_with_an_ah_is_busy)
{
	struct ibv_pd *pd = ibv_alloc_pd(lab_open(1));
	struct ibv_ah *ah;

	assert_non_null(pd);
	ah = ibv_create_ah(pd, &(struct ibv_ah_attr){ .dlid = 1, .port_num = 1 });
	assert_non_null(ah);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

LAB_CASE(a_send_with_an_ah_of_another_pd_fails)
{
	struct lab_end *e = lab_end(1);
	struct ibv_ah_attr attr = lab_attr_to(e);
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_request(e, &r, lab_ah(lab_pd(e->context), &attr), e->qp->qp_num, "x", 1);
	assert_int_equal(ibv_post_send(e->qp, &r.wr, &bad), 0);
	lab_complete(e->send_cq, IBV_WC_LOC_QP_OP_ERR);
}

/* ---- from a completion ---- */

/* A message from @from to @to, with a GRH or without. */
static struct lab_message exchange(struct lab_end *from, struct lab_end *to, bool global)
{
	struct ibv_ah_attr attr = global ? lab_attr_global(to) : lab_attr_to(to);

	lab_post(to, 1);
	attr.grh.flow_label = 0x12345;
	attr.grh.traffic_class = 0x67;
	attr.grh.hop_limit = 9;
	attr.sl = 3;
	lab_send_text(from, lab_ah(from->pd, &attr), to->qp->qp_num, "request");
	return lab_receive(to);
}

static void expect_reply(struct lab_end *from, struct lab_end *to, struct lab_message *m)
{
	struct ibv_ah *ah = ibv_create_ah_from_wc(from->pd, &m->wc, (struct ibv_grh *)m->grh, 1);

	assert_non_null(ah);
	lab_post(to, 1);
	lab_send_text(from, ah, m->wc.src_qp, "reply");
	lab_expect_text(to, "reply");
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

LAB_CASE(a_reply_finds_back_by_lid)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct lab_message m = exchange(a, b, false);

	expect_reply(b, a, &m);
}

LAB_CASE(a_reply_finds_back_by_gid)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct lab_message m = exchange(a, b, true);

	expect_reply(b, a, &m);
}

LAB_CASE(without_grh_the_attributes_are_those_of_the_completion)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct lab_message m = exchange(a, b, false);
	struct ibv_ah_attr attr;

	assert_int_equal(ibv_init_ah_from_wc(b->context, 1, &m.wc, NULL, &attr), 0);
	assert_int_equal(attr.dlid, lab_attr_to(a).dlid);
	assert_int_equal(attr.sl, 3);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.is_global, 0);
}

LAB_CASE(with_grh_the_attributes_turn_it_round)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct lab_message m = exchange(a, b, true);
	struct ibv_ah_attr attr;
	union ibv_gid gid;

	assert_int_equal(ibv_init_ah_from_wc(b->context, 1, &m.wc, (struct ibv_grh *)m.grh, &attr),
	                 0);
	assert_int_equal(ibv_query_gid(a->context, 1, 0, &gid), 0);
	assert_int_equal(attr.is_global, 1);
	assert_memory_equal(&attr.grh.dgid, &gid, sizeof(gid));
	assert_int_equal(attr.grh.sgid_index, 0);
	assert_int_equal(attr.grh.flow_label, 0x12345);
	assert_int_equal(attr.grh.traffic_class, 0x67);
}

/* An SL has four bits in a packet. mlx5 cuts what is longer off, and programs give such. */
LAB_CASE(a_service_level_loses_its_upper_bits)
{
	static const uint8_t given[] = { 15, 16, 135 }, carried[] = { 15, 0, 7 };
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	struct ibv_ah_attr attr = lab_attr_to(to);

	lab_post(to, 3);
	for (unsigned i = 0; i < LAB_ARRAY(given); i++) {
		attr.sl = given[i];
		lab_send_text(from, lab_ah(from->pd, &attr), to->qp->qp_num, "x");
		assert_int_equal(lab_receive(to).wc.sl, carried[i]);
	}
}

/* A message that came to a group: no reply can come from the group. */
static struct lab_message from_group(struct lab_end *from, struct lab_end *to)
{
	struct lab_group *g = lab_join(to->host, "239.1.0.1");

	lab_attach(to->qp, &g->mgid, g->mlid);
	lab_post(to, 1);
	lab_send_text(from, lab_ah_group(from, g), LAB_MCAST, "to all");
	return lab_receive(to);
}

LAB_CASE(init_from_a_multicast_destination_is_refused)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct lab_message m = from_group(a, b);
	struct ibv_ah_attr attr;

	errno = 0;
	/* -1, as ibv_create_ah_from_wc(3) says */
	assert_int_equal(ibv_init_ah_from_wc(b->context, 1, &m.wc, (struct ibv_grh *)m.grh, &attr),
	                 -1);
	assert_int_equal(errno, EINVAL);
}

LAB_CASE(create_from_a_multicast_destination_is_refused)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct lab_message m = from_group(a, b);

	errno = 0;
	assert_null(ibv_create_ah_from_wc(b->pd, &m.wc, (struct ibv_grh *)m.grh, 1));
	assert_int_equal(errno, EINVAL);
}

LAB_CASE(from_a_completion_a_port_that_is_not_there_is_refused)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct lab_message m = exchange(a, b, false);
	struct ibv_ah_attr attr;

	for (int port = 0; port <= 2; port += 2) {
		errno = 0;
		assert_int_equal(ibv_init_ah_from_wc(b->context, (uint8_t)port, &m.wc, NULL, &attr),
		                 -1);
		assert_int_equal(errno, EINVAL);
		assert_null(ibv_create_ah_from_wc(b->pd, &m.wc, NULL, (uint8_t)port));
	}
}
