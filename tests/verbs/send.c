/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posting sends: ibv_post_send(3) and ibv_wr_post(3), as the receiver and the sender's
 * completions see them.
 */
#include "lab.h"

#define MAX_LIST 16

/* Two ends, and an address handle from the first to the second. */
struct pair {
	struct lab_end *a, *b;
	struct ibv_ah *ah;
};

static struct pair pair_with(const struct lab_options *options)
{
	struct pair p = { .a = lab_end_with(options), .b = lab_end(2) };

	p.ah = lab_ah_to(p.a, p.b);
	return p;
}

static struct pair make_pair(void)
{
	return pair_with(&(struct lab_options){ .host = 1 });
}

static void prepare(struct pair *p, struct lab_request *r, const char *text)
{
	lab_request(p->a, r, p->ah, p->b->qp->qp_num, text, (uint32_t)strlen(text));
}

static int post(struct pair *p, struct lab_request *r)
{
	struct ibv_send_wr *bad = NULL;
	int ret = ibv_post_send(p->a->qp, &r->wr, &bad);

	if (ret)
		assert_ptr_equal(bad, &r->wr);
	return ret;
}

/* ---- lists ---- */

/* @n requests in a row, of one byte each: their number. */
static void prepare_list(struct pair *p, struct lab_request r[], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		prepare(p, &r[i], "");
		p->a->out[i] = (char)i;
		r[i].sge.addr += i;
		r[i].sge.length = 1;
		r[i].wr.wr_id = i;
		r[i].wr.next = i + 1 < n ? &r[i + 1].wr : NULL;
	}
}

/* The first @n of the list were sent, and no more. */
static void expect_first(struct pair *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(lab_complete(p->a->send_cq, IBV_WC_SUCCESS).wr_id, i);
	lab_quiet(p->a->send_cq);
	for (unsigned i = 0; i < n; i++)
		lab_expect(p->b, &(char){ (char)i }, 1);
	lab_quiet(p->b->cq);
}

LAB_CASE(a_list_is_sent_in_its_order)
{
	struct lab_request r[MAX_LIST];
	struct pair p = make_pair();
	struct ibv_send_wr *bad;

	lab_post(p.b, MAX_LIST);
	prepare_list(&p, r, MAX_LIST);
	assert_int_equal(ibv_post_send(p.a->qp, &r[0].wr, &bad), 0);
	expect_first(&p, MAX_LIST);
}

LAB_CASE(a_bad_request_stops_the_list_and_is_named)
{
	struct lab_request r[MAX_LIST];
	struct pair p = make_pair();
	struct ibv_send_wr *bad = NULL;

	lab_post(p.b, MAX_LIST);
	prepare_list(&p, r, MAX_LIST);
	r[5].wr.opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(ibv_post_send(p.a->qp, &r[0].wr, &bad), EINVAL);
	assert_ptr_equal(bad, &r[5].wr);
	expect_first(&p, 5);
}

LAB_CASE(a_list_that_does_not_fit_is_sent_as_far_as_it_does)
{
	struct pair p = pair_with(&(struct lab_options){ .cap.max_send_wr = 4 });
	struct lab_request r[MAX_LIST];
	struct ibv_send_wr *bad = NULL;

	lab_post(p.b, MAX_LIST);
	prepare_list(&p, r, MAX_LIST);
	assert_int_equal(ibv_post_send(p.a->qp, &r[0].wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &r[4].wr);
	expect_first(&p, 4);
}

/* ---- bad requests ---- */

LAB_CASE(an_operation_that_ud_has_not_is_refused)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE,
		                                      IBV_WR_RDMA_WRITE_WITH_IMM,
		                                      IBV_WR_RDMA_READ,
		                                      IBV_WR_ATOMIC_CMP_AND_SWP,
		                                      IBV_WR_ATOMIC_FETCH_AND_ADD,
		                                      IBV_WR_LOCAL_INV,
		                                      IBV_WR_BIND_MW,
		                                      IBV_WR_SEND_WITH_INV,
		                                      IBV_WR_TSO,
		                                      (enum ibv_wr_opcode)99 };
	struct pair p = make_pair();
	struct lab_request r;

	prepare(&p, &r, "x");
	for (size_t i = 0; i < LAB_ARRAY(opcodes); i++) {
		r.wr.opcode = opcodes[i];
		assert_int_equal(post(&p, &r), EINVAL);
	}
}

LAB_CASE(a_request_without_address_handle_is_refused)
{
	struct pair p = make_pair();
	struct lab_request r;

	prepare(&p, &r, "x");
	r.wr.wr.ud.ah = NULL;
	assert_int_equal(post(&p, &r), EINVAL);
}

LAB_CASE(more_entries_than_the_queue_has_are_refused)
{
	struct pair p = pair_with(&(struct lab_options){ .cap.max_send_sge = 2 });
	struct ibv_sge sge[3] = { 0 };
	struct lab_request r;

	prepare(&p, &r, "x");
	r.wr.sg_list = sge;
	r.wr.num_sge = 3;
	assert_int_equal(post(&p, &r), EINVAL);
	r.wr.num_sge = -1;
	assert_int_equal(post(&p, &r), EINVAL);
}

LAB_CASE(before_rts_a_send_is_refused)
{
	struct lab_end *e = lab_end_with(&(struct lab_options){ .reset = true });
	struct pair p = { .a = e, .b = e, .ah = lab_ah_to(e, e) };
	struct lab_request r;

	prepare(&p, &r, "x");
	assert_int_equal(post(&p, &r), EINVAL);
	lab_to_init(e->qp, LAB_QKEY);
	assert_int_equal(post(&p, &r), EINVAL);
	lab_to_rtr(e->qp);
	assert_int_equal(post(&p, &r), EINVAL);
	lab_to_rts(e->qp);
	assert_int_equal(post(&p, &r), 0);
}

/* ---- gather ---- */

LAB_CASE(a_message_is_gathered_from_all_entries)
{
	struct lab_options o = { .cap.max_send_sge = 32 };
	struct pair p = pair_with(&o);
	struct ibv_sge sge[32];
	struct lab_request r;
	char expected[32 * 3];

	lab_post(p.b, 1);
	prepare(&p, &r, "");
	for (unsigned i = 0; i < 32; i++) {
		/* backwards, with gaps */
		char *piece = p.a->out + (31 - i) * 100;

		memset(piece, (int)('A' + i), 3);
		memset(expected + i * 3, (int)('A' + i), 3);
		sge[i] = (struct ibv_sge){ (uintptr_t)piece, 3, p.a->mr->lkey };
	}
	r.wr.sg_list = sge;
	r.wr.num_sge = 32;
	lab_send_request(p.a, &r);
	lab_expect(p.b, expected, sizeof(expected));
}

LAB_CASE(large_pieces_are_gathered_too)
{
	struct pair p = make_pair();
	struct ibv_sge sge[4];
	struct lab_request r;
	static char expected[4000];

	lab_post(p.b, 1);
	prepare(&p, &r, "");
	for (unsigned i = 0; i < 4; i++) {
		memset(p.a->out + i * 1000, (int)('a' + i), 1000);
		memset(expected + (3 - i) * 1000, (int)('a' + i), 1000);
		sge[3 - i] =
		        (struct ibv_sge){ (uintptr_t)p.a->out + i * 1000, 1000, p.a->mr->lkey };
	}
	r.wr.sg_list = sge;
	r.wr.num_sge = 4;
	lab_send_request(p.a, &r);
	lab_expect(p.b, expected, sizeof(expected));
}

LAB_CASE(a_message_may_be_empty)
{
	struct pair p = make_pair();
	struct lab_request r;

	lab_post(p.b, 2);
	prepare(&p, &r, "");
	lab_send_request(p.a, &r);
	lab_expect(p.b, "", 0);
	r.wr.num_sge = 0;
	r.wr.sg_list = NULL;
	lab_send_request(p.a, &r);
	lab_expect(p.b, "", 0);
}

/* One bad key among good ones: nothing is sent. */
LAB_CASE(a_bad_key_in_the_last_entry_fails_the_send)
{
	struct pair p = make_pair();
	struct ibv_sge sge[2];
	struct lab_request r;

	lab_post(p.b, 1);
	prepare(&p, &r, "ab");
	sge[0] = (struct ibv_sge){ (uintptr_t)p.a->out, 1, p.a->mr->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)p.a->out, 1, ~0u };
	r.wr.sg_list = sge;
	r.wr.num_sge = 2;
	assert_int_equal(post(&p, &r), 0);
	lab_complete(p.a->send_cq, IBV_WC_LOC_PROT_ERR);
	lab_quiet(p.b->cq);
}

/* ---- flags ---- */

LAB_CASE(inline_data_needs_no_region_and_may_be_reused_at_once)
{
	struct pair p = make_pair();
	char text[] = "inline";
	struct lab_request r;

	lab_post(p.b, 1);
	prepare(&p, &r, "");
	r.sge = (struct ibv_sge){ .addr = (uintptr_t)text, .length = 6, .lkey = ~0u };
	r.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(post(&p, &r), 0);
	memset(text, 0, sizeof(text));
	lab_complete(p.a->send_cq, IBV_WC_SUCCESS);
	lab_expect_text(p.b, "inline");
}

LAB_CASE(inline_data_up_to_the_limit_is_sent)
{
	struct pair p = pair_with(&(struct lab_options){ .cap.max_inline_data = 512 });
	static char text[512];
	struct lab_request r;

	memset(text, 'i', sizeof(text));
	lab_post(p.b, 1);
	prepare(&p, &r, "");
	r.sge = (struct ibv_sge){ .addr = (uintptr_t)text, .length = sizeof(text) };
	r.wr.send_flags |= IBV_SEND_INLINE;
	lab_send_request(p.a, &r);
	lab_expect(p.b, text, sizeof(text));
}

LAB_CASE(inline_data_is_gathered)
{
	struct pair p = make_pair();
	struct ibv_sge sge[2] = { { (uintptr_t) "in", 2, 0 }, { (uintptr_t) "line", 4, 0 } };
	struct lab_request r;

	lab_post(p.b, 1);
	prepare(&p, &r, "");
	r.wr.sg_list = sge;
	r.wr.num_sge = 2;
	r.wr.send_flags |= IBV_SEND_INLINE;
	lab_send_request(p.a, &r);
	lab_expect_text(p.b, "inline");
}

LAB_CASE(inline_data_beyond_the_limit_is_refused)
{
	struct pair p = make_pair();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct lab_request r;

	assert_int_equal(ibv_query_qp(p.a->qp, &attr, IBV_QP_CAP, &init), 0);
	prepare(&p, &r, "");
	r.sge.length = attr.cap.max_inline_data + 1;
	r.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(post(&p, &r), EINVAL);
}

LAB_CASE(immediate_data_arrives_as_it_was_sent)
{
	struct pair p = make_pair();
	struct lab_message m;
	struct lab_request r;

	lab_post(p.b, 2);
	prepare(&p, &r, "x");
	r.wr.opcode = IBV_WR_SEND_WITH_IMM;
	r.wr.imm_data = htobe32(0xCAFEF00D);
	lab_send_request(p.a, &r);
	m = lab_receive(p.b);
	assert_true(m.wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(m.wc.imm_data, htobe32(0xCAFEF00D));
	assert_int_equal(m.wc.opcode, IBV_WC_RECV);
	lab_send_text(p.a, p.ah, p.b->qp->qp_num, "without");
	assert_false(lab_receive(p.b).wc.wc_flags & IBV_WC_WITH_IMM);
}

LAB_CASE(an_unsignalled_send_completes_silently)
{
	struct pair p = make_pair();
	struct lab_request r;

	lab_post(p.b, 2);
	prepare(&p, &r, "quiet");
	r.wr.send_flags = 0;
	assert_int_equal(post(&p, &r), 0);
	lab_expect_text(p.b, "quiet");
	lab_quiet(p.a->send_cq);
	r.wr.send_flags = IBV_SEND_SIGNALED;
	r.wr.wr_id = 2;
	lab_send_request(p.a, &r);
	lab_quiet(p.a->send_cq);
}

LAB_CASE(an_unsignalled_send_that_fails_says_so)
{
	struct pair p = make_pair();
	struct lab_request r;

	prepare(&p, &r, "x");
	r.wr.send_flags = 0;
	r.sge.lkey = ~0u;
	assert_int_equal(post(&p, &r), 0);
	lab_complete(p.a->send_cq, IBV_WC_LOC_PROT_ERR);
}

LAB_CASE(sq_sig_all_signals_every_send)
{
	struct pair p = pair_with(&(struct lab_options){ .signal_all = true });
	struct lab_request r;

	lab_post(p.b, 1);
	prepare(&p, &r, "x");
	r.wr.send_flags = 0;
	lab_send_request(p.a, &r);
}

/* ---- room ---- */

LAB_CASE(a_full_send_queue_says_enomem_until_it_is_polled)
{
	struct pair p = pair_with(&(struct lab_options){ .cap.max_send_wr = 4 });
	struct lab_request r;

	prepare(&p, &r, "x");
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++)
			assert_int_equal(post(&p, &r), 0);
		assert_int_equal(post(&p, &r), ENOMEM);
		lab_complete(p.a->send_cq, IBV_WC_SUCCESS);
		assert_int_equal(post(&p, &r), 0);
		assert_int_equal(post(&p, &r), ENOMEM);
		for (int i = 0; i < 4; i++)
			lab_complete(p.a->send_cq, IBV_WC_SUCCESS);
	}
}

/* The queue learns that they are done when a later completion is polled. */
LAB_CASE(unsignalled_sends_fill_the_queue)
{
	struct pair p = pair_with(&(struct lab_options){ .cap.max_send_wr = 4 });
	struct lab_request r;

	prepare(&p, &r, "x");
	r.wr.send_flags = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(post(&p, &r), 0);
	r.wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(post(&p, &r), 0);
	assert_int_equal(post(&p, &r), ENOMEM);
	lab_complete(p.a->send_cq, IBV_WC_SUCCESS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post(&p, &r), 0);
}

/* ---- sizes ---- */

LAB_CASE(a_message_of_the_mtu_arrives)
{
	struct pair p = make_pair();
	static char text[LAB_MTU];

	for (int i = 0; i < LAB_MTU; i++)
		text[i] = (char)(i * 7);
	lab_post(p.b, 1);
	lab_send(p.a, p.ah, p.b->qp->qp_num, text, LAB_MTU);
	lab_expect(p.b, text, LAB_MTU);
}

/* C10-93.1.1 of the specification: no packet, and the request completes all the same. */
LAB_CASE(a_message_larger_than_the_mtu_is_not_sent_and_completes)
{
	struct pair p = make_pair();
	uint64_t discards = lab_counter(1, "xmit_discards");

	lab_post(p.b, 1);
	lab_send(p.a, p.ah, p.b->qp->qp_num, NULL, LAB_MTU + 1);
	lab_quiet(p.b->cq);
	assert_int_equal(lab_counter(1, "xmit_discards"), discards + 1);
	lab_expect_nothing(p.b, p.a);
}

LAB_CASE(a_message_to_nobody_completes)
{
	struct pair p = make_pair();
	struct ibv_ah_attr nowhere = { .dlid = 0xBFFF, .port_num = 1 };

	lab_send_text(p.a, lab_ah(p.a->pd, &nowhere), 17, "x");
	lab_send_text(p.a, p.ah, 0xABCDEF, "x");
}

/* It has no Q_Key, which is not a Q_Key of 0. */
LAB_CASE(a_datagram_with_qkey_0_is_not_for_a_connected_qp)
{
	struct pair p = make_pair();
	struct ibv_qp_init_attr init = {
		.send_cq = p.b->send_cq,
		.recv_cq = p.b->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *rc = lab_qp(p.b->pd, &init);
	struct ibv_sge sge = { (uintptr_t)p.b->slot, LAB_SLOT, p.b->mr->lkey };
	struct ibv_recv_wr receive = { .wr_id = 42, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct lab_request r;

	lab_connect(rc, rc->qp_num, p.b->context, 0);
	assert_int_equal(ibv_post_recv(rc, &receive, &bad), 0);
	for (int i = 0; i < 3; i++) { /* the third one as those before it */
		lab_request(p.a, &r, p.ah, rc->qp_num, "x", 1);
		r.wr.wr.ud.remote_qkey = 0;
		lab_send_request(p.a, &r);
	}
	lab_quiet(p.b->cq);
	sge.addr = (uintptr_t)p.b->out;
	sge.length = 1;
	r.wr = (struct ibv_send_wr){ .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	r.wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(rc, &r.wr, &(struct ibv_send_wr *){ NULL }), 0);
	assert_int_equal(lab_complete(p.b->cq, IBV_WC_SUCCESS).wr_id, 42);
}

LAB_CASE(a_qp_can_send_to_itself)
{
	struct lab_end *e = lab_end(1);

	lab_post(e, 1);
	lab_send_text(e, lab_ah_to(e, e), e->qp->qp_num, "me");
	lab_expect_text(e, "me");
}

/* A group's number as destination of a unicast packet, and a QP's of a multicast one. */
LAB_CASE(a_group_reaches_nobody_under_a_qp_number)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct lab_group *g = lab_join(2, "239.2.0.1");

	lab_attach(b->qp, &g->mgid, g->mlid);
	lab_post(b, 1);
	lab_send_text(a, lab_ah_group(a, g), b->qp->qp_num, "malformed");
	lab_send_text(a, lab_ah_to(a, b), LAB_MCAST, "malformed");
	lab_expect_nothing(b, a);
}

/* ---- ibv_wr_start() and on ---- */

static struct pair extended_pair(uint32_t send_wr)
{
	return pair_with(&(struct lab_options){ .cap.max_send_wr = send_wr,
	                                        .send_ops = IBV_QP_EX_WITH_SEND |
	                                                    IBV_QP_EX_WITH_SEND_WITH_IMM });
}

static void begin(struct pair *p, struct ibv_qp_ex *ex, uint64_t wr_id)
{
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, p->ah, p->b->qp->qp_num, LAB_QKEY);
}

LAB_CASE(the_wr_calls_send_a_batch_in_order)
{
	struct pair p = extended_pair(8);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a->qp);
	struct ibv_sge sge[2] = { { (uintptr_t)p.a->out, 2, p.a->mr->lkey },
		                  { (uintptr_t)p.a->out + 2, 2, p.a->mr->lkey } };
	struct ibv_data_buf buf[2] = { { "in", 2 }, { "line", 4 } };

	lab_post(p.b, 4);
	memcpy(p.a->out, "abcd", 4);
	ibv_wr_start(ex);
	begin(&p, ex, 1);
	ibv_wr_set_sge(ex, p.a->mr->lkey, (uintptr_t)p.a->out, 3);
	begin(&p, ex, 2);
	ibv_wr_set_sge_list(ex, 2, sge);
	begin(&p, ex, 3);
	ibv_wr_set_inline_data(ex, (void *)"data", 4);
	begin(&p, ex, 4);
	ibv_wr_set_inline_data_list(ex, 2, buf);
	assert_int_equal(ibv_wr_complete(ex), 0);
	for (uint64_t i = 1; i <= 4; i++)
		assert_int_equal(lab_complete(p.a->send_cq, IBV_WC_SUCCESS).wr_id, i);
	lab_expect_text(p.b, "abc");
	lab_expect_text(p.b, "abcd");
	lab_expect_text(p.b, "data");
	lab_expect_text(p.b, "inline");
}

LAB_CASE(the_wr_calls_send_immediate_data)
{
	struct pair p = extended_pair(8);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a->qp);
	struct lab_message m;

	lab_post(p.b, 1);
	ibv_wr_start(ex);
	ex->wr_flags = 0;
	ibv_wr_send_imm(ex, htobe32(7));
	ibv_wr_set_ud_addr(ex, p.ah, p.b->qp->qp_num, LAB_QKEY);
	ibv_wr_set_inline_data(ex, (void *)"x", 1);
	assert_int_equal(ibv_wr_complete(ex), 0);
	m = lab_receive(p.b);
	assert_int_equal(m.wc.imm_data, htobe32(7));
	lab_quiet(p.a->send_cq);
}

LAB_CASE(an_aborted_batch_sends_nothing)
{
	struct pair p = extended_pair(8);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a->qp);

	lab_post(p.b, 1);
	ibv_wr_start(ex);
	begin(&p, ex, 1);
	ibv_wr_set_inline_data(ex, (void *)"x", 1);
	ibv_wr_abort(ex);
	lab_quiet(p.a->send_cq);
	lab_expect_nothing(p.b, p.a);
}

LAB_CASE(a_batch_that_does_not_fit_sends_nothing)
{
	struct pair p = extended_pair(4);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a->qp);

	lab_post(p.b, 1);
	ibv_wr_start(ex);
	for (uint64_t i = 0; i < 5; i++) {
		begin(&p, ex, i);
		ibv_wr_set_inline_data(ex, (void *)"x", 1);
	}
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
	lab_quiet(p.a->send_cq);
	lab_expect_nothing(p.b, p.a);
}

LAB_CASE(a_batch_that_does_not_fit_behind_what_waits_sends_nothing)
{
	struct pair p = extended_pair(4);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a->qp);
	struct lab_request r;

	lab_post(p.b, 4);
	lab_to(p.a->qp, IBV_QPS_SQD);
	prepare(&p, &r, "first");
	for (int i = 0; i < 3; i++)
		assert_int_equal(post(&p, &r), 0);
	ibv_wr_start(ex);
	for (uint64_t i = 0; i < 2; i++) {
		begin(&p, ex, i);
		ibv_wr_set_inline_data(ex, (void *)"x", 1);
	}
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
	lab_to(p.a->qp, IBV_QPS_RTS);
	for (int i = 0; i < 3; i++) {
		lab_complete(p.a->send_cq, IBV_WC_SUCCESS);
		lab_expect_text(p.b, "first");
	}
	lab_expect_nothing(p.b, p.a);
}

LAB_CASE(a_bad_call_fails_the_whole_batch)
{
	struct pair p = extended_pair(8);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a->qp);
	struct ibv_sge sge[5] = { 0 };
	static char much[4096];

	lab_post(p.b, 1);
	/* more entries than the queue has */
	ibv_wr_start(ex);
	begin(&p, ex, 1);
	ibv_wr_set_sge_list(ex, 5, sge);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	/* more inline data than the queue has */
	ibv_wr_start(ex);
	begin(&p, ex, 2);
	ibv_wr_set_inline_data(ex, much, sizeof(much));
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	/* a setter without a request */
	ibv_wr_start(ex);
	ibv_wr_set_sge(ex, 0, 0, 0);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	/* a good request behind a bad one */
	ibv_wr_start(ex);
	begin(&p, ex, 3);
	ibv_wr_set_sge_list(ex, 5, sge);
	begin(&p, ex, 4);
	ibv_wr_set_inline_data(ex, (void *)"x", 1);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	lab_quiet(p.a->send_cq);
	lab_expect_nothing(p.b, p.a);
}

LAB_CASE(an_operation_that_was_not_asked_for_fails_the_batch)
{
	struct pair p = pair_with(&(struct lab_options){ .send_ops = IBV_QP_EX_WITH_SEND });
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a->qp);

	ibv_wr_start(ex);
	ibv_wr_send_imm(ex, 0);
	ibv_wr_set_ud_addr(ex, p.ah, p.b->qp->qp_num, LAB_QKEY);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
}

LAB_CASE(an_empty_batch_does_nothing)
{
	struct pair p = extended_pair(8);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a->qp);

	ibv_wr_start(ex);
	assert_int_equal(ibv_wr_complete(ex), 0);
	lab_quiet(p.a->send_cq);
}
