/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Q_Keys: the receiving HCA drops what does not carry the QP's own, and counts it.
 */
#include "lab.h"

static uint32_t violations(struct lab_end *e)
{
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(e->context, 1, &port), 0);
	return port.qkey_viol_cntr;
}

static struct lab_end *end_with_qkey(int host, uint32_t qkey)
{
	return lab_end_with(&(struct lab_options){ .host = host, .qkey = qkey });
}

/* Sends one message with this Q_Key in the request. */
static void send_with(struct lab_end *from, struct lab_end *to, uint32_t qkey)
{
	struct lab_request r;

	lab_request(from, &r, lab_ah_to(from, to), to->qp->qp_num, "keyed", 5);
	r.wr.wr.ud.remote_qkey = qkey;
	lab_send_request(from, &r);
}

LAB_CASE(the_right_qkey_is_let_in)
{
	struct lab_end *a = end_with_qkey(1, 0x111), *b = end_with_qkey(2, 0x222);

	lab_post(b, 1);
	send_with(a, b, 0x222);
	lab_expect_text(b, "keyed");
}

LAB_CASE(a_wrong_qkey_is_dropped_and_counted)
{
	struct lab_end *a = end_with_qkey(1, 0x111), *b = end_with_qkey(2, 0x222);
	uint32_t before = violations(b), senders = violations(a);
	uint64_t shown = lab_counter(2, "bad_qkey");

	lab_post(b, 1);
	send_with(a, b, 0x223);
	send_with(a, b, 0);
	lab_quiet(b->cq);
	assert_int_equal(violations(b), before + 2);
	assert_int_equal(violations(a), senders);
	assert_int_equal(lab_counter(2, "bad_qkey"), shown + 2);
	/* and took no receive */
	send_with(a, b, 0x222);
	assert_int_equal(lab_receive(b).wc.wr_id, 0);
}

LAB_CASE(with_bit_31_the_senders_own_qkey_is_sent)
{
	struct lab_end *a = end_with_qkey(1, 0x222), *b = end_with_qkey(2, 0x222);

	lab_post(b, 2);
	send_with(a, b, 0x80000000);
	lab_expect_text(b, "keyed");
	send_with(a, b, 0xFFFFFFFF);
	lab_expect_text(b, "keyed");
}

LAB_CASE(with_bit_31_the_other_bits_do_not_matter)
{
	struct lab_end *a = end_with_qkey(1, 0x111), *b = end_with_qkey(2, 0x222);
	uint32_t before = violations(b);

	lab_post(b, 1);
	send_with(a, b, 0x80000222);
	lab_quiet(b->cq);
	assert_int_equal(violations(b), before + 1);
}

/* Only a Q_Key with bit 31 of its own opens a QP that has one. */
LAB_CASE(a_qkey_with_bit_31_is_reached_from_a_qp_that_has_it)
{
	struct lab_end *a = end_with_qkey(1, 0x80010000), *b = end_with_qkey(2, 0x80010000);
	struct lab_end *c = end_with_qkey(3, 0x111);
	uint32_t before = violations(b);

	lab_post(b, 2);
	send_with(c, b, 0x80010000);
	lab_quiet(b->cq);
	assert_int_equal(violations(b), before + 1);
	send_with(a, b, 0x80010000);
	lab_expect_text(b, "keyed");
}

LAB_CASE(a_changed_qkey_counts_at_once)
{
	struct lab_end *a = end_with_qkey(1, 0x111), *b = end_with_qkey(2, 0x222);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .qkey = 0x333 };

	lab_post(b, 1);
	assert_int_equal(ibv_modify_qp(b->qp, &attr, IBV_QP_STATE | IBV_QP_QKEY), 0);
	send_with(a, b, 0x222);
	lab_quiet(b->cq);
	send_with(a, b, 0x333);
	lab_expect_text(b, "keyed");
}

LAB_CASE(a_wrong_qkey_in_multicast_is_counted_by_each_receiver)
{
	struct lab_end *a = end_with_qkey(1, 0x111), *b = end_with_qkey(2, 0x222);
	struct lab_end *c = end_with_qkey(3, 0x333);
	struct lab_group *g = lab_join(2, "239.4.0.1");
	uint32_t at_b = violations(b), at_c = violations(c);
	struct lab_request r;

	lab_join(3, "239.4.0.1");
	lab_attach(b->qp, &g->mgid, g->mlid);
	lab_attach(c->qp, &g->mgid, g->mlid);
	lab_post(b, 1);
	lab_post(c, 1);
	lab_request(a, &r, lab_ah_group(a, g), LAB_MCAST, "keyed", 5);
	r.wr.wr.ud.remote_qkey = 0x222;
	lab_send_request(a, &r);
	lab_expect_text(b, "keyed");
	lab_quiet(c->cq);
	assert_int_equal(violations(b), at_b);
	assert_int_equal(violations(c), at_c + 1);
}

LAB_CASE(good_pkeys_are_not_counted_as_bad)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_port_attr port;

	lab_post(b, 1);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "x");
	lab_receive(b);
	assert_int_equal(ibv_query_port(b->context, 1, &port), 0);
	assert_int_equal(port.bad_pkey_cntr, 0);
}
