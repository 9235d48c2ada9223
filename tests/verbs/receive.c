/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posting receives, ibv_post_recv(3), and what a message becomes in them: 40 bytes of
 * GRH, the data, and a completion that describes it.
 *
 * umbel: --set exact_sizes=1
 */
#include "lab.h"

/* One receive with these entries; @wr_id 0. */
static int post_entries(struct lab_end *e, struct ibv_sge *sge, int n)
{
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = n }, *bad;

	return ibv_post_recv(e->qp, &wr, &bad);
}

static struct ibv_sge entry(struct lab_end *e, uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){ .addr = (uintptr_t)e->slot + offset,
		                 .length = length,
		                 .lkey = e->mr->lkey };
}

/* ---- the GRH ---- */

static void expect_grh(const char *grh, uint16_t length, uint8_t hop_limit,
                       const union ibv_gid *from, const union ibv_gid *to)
{
	const uint8_t head[8] = {
		0x6A,
		0xB1,
		0x23,
		0x45, /* version 6, traffic class AB, flow label 12345 */
		(uint8_t)(length >> 8),
		(uint8_t)length,
		0x1B, /* next header: IBA transport */
		hop_limit,
	};

	assert_memory_equal(grh, head, sizeof(head));
	assert_memory_equal(grh + 8, from, 16);
	assert_memory_equal(grh + 24, to, 16);
}

static void set_grh(struct ibv_ah_attr *attr)
{
	attr->grh.traffic_class = 0xAB;
	attr->grh.flow_label = 0x12345;
	attr->grh.hop_limit = 0x3F;
}

LAB_CASE(a_global_message_shows_its_grh_byte_for_byte)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_ah_attr attr = lab_attr_global(b);
	struct lab_message m;
	union ibv_gid from;

	set_grh(&attr);
	lab_post(b, 1);
	lab_send_text(a, lab_ah(a->pd, &attr), b->qp->qp_num, "abc");
	m = lab_receive(b);
	assert_int_equal(ibv_query_gid(a->context, 1, 0, &from), 0);
	/* BTH 12, DETH 8, data padded to 4, ICRC 4 */
	expect_grh(m.grh, 12 + 8 + 4 + 4, 0x3F, &from, &attr.grh.dgid);
	assert_int_equal(m.wc.wc_flags, IBV_WC_GRH);
}

LAB_CASE(immediate_data_counts_in_the_length_of_the_grh)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_ah_attr attr = lab_attr_global(b);
	struct lab_message m;
	struct lab_request r;
	union ibv_gid from;

	set_grh(&attr);
	lab_post(b, 1);
	lab_request(a, &r, lab_ah(a->pd, &attr), b->qp->qp_num, "abcde", 5);
	r.wr.opcode = IBV_WR_SEND_WITH_IMM;
	lab_send_request(a, &r);
	m = lab_receive(b);
	assert_int_equal(ibv_query_gid(a->context, 1, 0, &from), 0);
	expect_grh(m.grh, 12 + 8 + 4 + 8 + 4, 0x3F, &from, &attr.grh.dgid);
}

LAB_CASE(a_multicast_message_shows_its_group_in_the_grh)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct lab_group *g = lab_join(2, "239.3.0.1");
	struct lab_message m;
	union ibv_gid from;

	set_grh(&g->attr);
	lab_attach(b->qp, &g->mgid, g->mlid);
	lab_post(b, 1);
	lab_send_text(a, lab_ah_group(a, g), LAB_MCAST, "abcd");
	m = lab_receive(b);
	assert_int_equal(ibv_query_gid(a->context, 1, 0, &from), 0);
	expect_grh(m.grh, 12 + 8 + 4 + 4, 0x3F, &from, &g->mgid);
	assert_int_equal(m.wc.wc_flags, IBV_WC_GRH);
}

LAB_CASE(without_grh_the_flag_is_missing_and_the_room_is_not)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct lab_message m;

	lab_post(b, 1);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "local");
	m = lab_receive(b);
	assert_int_equal(m.wc.wc_flags, 0);
	assert_int_equal(m.wc.byte_len, LAB_GRH + 5);
	assert_memory_equal(m.data, "local", 5);
}

/* ---- the completion ---- */

LAB_CASE(the_completion_describes_the_message)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_ah_attr attr = lab_attr_to(b);
	struct ibv_wc wc;

	attr.sl = 6;
	lab_post(b, 1);
	lab_send_text(a, lab_ah(a->pd, &attr), b->qp->qp_num, "message");
	wc = lab_complete(b->cq, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 0);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.vendor_err, 0);
	assert_int_equal(wc.byte_len, LAB_GRH + 7);
	assert_int_equal(wc.qp_num, b->qp->qp_num);
	assert_int_equal(wc.src_qp, a->qp->qp_num);
	assert_int_equal(wc.pkey_index, 0);
	assert_int_equal(wc.slid, lab_attr_to(a).dlid);
	assert_int_equal(wc.sl, 6);
	assert_int_equal(wc.dlid_path_bits, 0);
}

LAB_CASE(receives_are_used_in_the_order_of_posting)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_ah *ah = lab_ah_to(a, b);

	for (int round = 0; round < 3; round++) {
		unsigned first = b->posted;

		lab_post(b, 50);
		for (int i = 0; i < 50; i++)
			lab_send_text(a, ah, b->qp->qp_num, "x");
		for (unsigned i = 0; i < 50; i++)
			assert_int_equal(lab_receive(b).wc.wr_id, (first + i) % LAB_SLOTS);
	}
}

/* ---- scatter ---- */

/* The GRH by itself, the data behind: as many programs have it. */
LAB_CASE(the_grh_can_have_an_entry_of_its_own)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_sge sge[2] = { entry(b, 1000, LAB_GRH), entry(b, 0, 100) };

	assert_int_equal(post_entries(b, sge, 2), 0);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "scattered");
	assert_int_equal(lab_complete(b->cq, IBV_WC_SUCCESS).byte_len, LAB_GRH + 9);
	assert_memory_equal(b->slot, "scattered", 9);
}

LAB_CASE(a_message_is_scattered_over_all_entries)
{
	struct lab_options o = { .host = 2, .cap.max_recv_sge = 32 };
	struct lab_end *a = lab_end(1), *b = lab_end_with(&o);
	struct ibv_sge sge[32];
	static char text[LAB_MTU];

	for (int i = 0; i < LAB_MTU; i++)
		text[i] = (char)(i * 13);
	/* backwards, of 130 bytes each with a gap; the first are in the GRH */
	for (unsigned i = 0; i < 32; i++)
		sge[i] = entry(b, (31 - i) * 200, 130);
	assert_int_equal(post_entries(b, sge, 32), 0);
	lab_send(a, lab_ah_to(a, b), b->qp->qp_num, text, LAB_MTU);
	lab_complete(b->cq, IBV_WC_SUCCESS);
	assert_memory_equal(b->slot + 31 * 200 + LAB_GRH, text, 130 - LAB_GRH);
	for (unsigned i = 1; i < 31; i++)
		assert_memory_equal(b->slot + (31 - i) * 200, text + i * 130 - LAB_GRH, 130);
	assert_memory_equal(b->slot, text + 31 * 130 - LAB_GRH, LAB_MTU - (31 * 130 - LAB_GRH));
	for (unsigned i = 0; i < 31; i++)
		assert_int_equal(b->slot[i * 200 + 130], 0); /* the gaps stay as they were */
}

LAB_CASE(an_empty_entry_between_others_is_passed_over)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_sge sge[3] = { entry(b, 0, 42), { 0 }, entry(b, 100, 3) };

	assert_int_equal(post_entries(b, sge, 3), 0);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "abcde");
	lab_complete(b->cq, IBV_WC_SUCCESS);
	assert_memory_equal(b->slot + LAB_GRH, "ab", 2);
	assert_memory_equal(b->slot + 100, "cde", 3);
}

LAB_CASE(a_buffer_of_just_the_size_is_enough)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_sge sge = entry(b, 0, LAB_GRH + 5), least = entry(b, 0, LAB_GRH);

	assert_int_equal(post_entries(b, &sge, 1), 0);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "exact");
	lab_complete(b->cq, IBV_WC_SUCCESS);
	assert_int_equal(post_entries(b, &least, 1), 0);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "");
	lab_complete(b->cq, IBV_WC_SUCCESS);
}

/* ---- receives that fail ---- */

/* A message of five bytes into these entries fails, and so does the QP. */
static void expect_failure(struct ibv_sge *sge, int n, enum ibv_wc_status status)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	for (int i = 0; i < n; i++) {
		sge[i].addr += (uintptr_t)b->slot;
		sge[i].lkey += b->mr->lkey;
	}
	assert_int_equal(post_entries(b, sge, n), 0);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "abcde");
	assert_int_equal(lab_complete(b->cq, status).opcode, IBV_WC_RECV);
	assert_int_equal(lab_state(b->qp), IBV_QPS_ERR);
}

LAB_CASE(a_buffer_that_is_too_small_is_a_length_error)
{
	expect_failure(&(struct ibv_sge){ .length = LAB_GRH + 4 }, 1, IBV_WC_LOC_LEN_ERR);
	expect_failure(&(struct ibv_sge){ .length = LAB_GRH }, 1, IBV_WC_LOC_LEN_ERR);
	expect_failure(&(struct ibv_sge){ .length = 1 }, 1, IBV_WC_LOC_LEN_ERR);
	expect_failure(NULL, 0, IBV_WC_LOC_LEN_ERR);
	expect_failure((struct ibv_sge[]){ { .length = LAB_GRH }, { .length = 4 } }, 2,
	               IBV_WC_LOC_LEN_ERR);
}

/* As in libibverbs, the structure's field is the program's own doing. */
LAB_CASE(an_error_does_not_change_the_state_in_the_structure)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_sge sge = entry(b, 0, 1);

	assert_int_equal(b->qp->state, IBV_QPS_RTS);
	assert_int_equal(post_entries(b, &sge, 1), 0);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "abcde");
	lab_complete(b->cq, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(b->qp->state, IBV_QPS_RTS);
	assert_int_equal(lab_state(b->qp), IBV_QPS_ERR);
	assert_int_equal(b->qp->state, IBV_QPS_ERR);
	lab_to(b->qp, IBV_QPS_RESET);
	assert_int_equal(b->qp->state, IBV_QPS_RESET);
}

LAB_CASE(a_bad_key_is_a_protection_error)
{
	expect_failure(&(struct ibv_sge){ .length = 100, .lkey = 1 }, 1, IBV_WC_LOC_PROT_ERR);
	expect_failure((struct ibv_sge[]){ { .length = LAB_GRH }, { .length = 5, .lkey = 1 } }, 2,
	               IBV_WC_LOC_PROT_ERR);
}

LAB_CASE(after_a_failed_receive_the_others_are_flushed_in_order)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_sge sge = entry(b, 0, 1);

	lab_post(b, 2);
	assert_int_equal(post_entries(b, &sge, 1), 0);
	lab_post(b, 3);
	for (int i = 0; i < 3; i++)
		lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "x");
	lab_expect_text(b, "x");
	lab_expect_text(b, "x");
	lab_complete(b->cq, IBV_WC_LOC_LEN_ERR);
	for (uint64_t i = 2; i < 5; i++)
		assert_int_equal(lab_complete(b->cq, IBV_WC_WR_FLUSH_ERR).wr_id, i);
	lab_quiet(b->cq);
}

/* ---- posting ---- */

LAB_CASE(a_full_receive_queue_says_enomem_until_it_is_polled)
{
	struct lab_options o = { .host = 2, .cap.max_recv_wr = 5 };
	struct lab_end *a = lab_end(1), *b = lab_end_with(&o);

	for (int round = 0; round < 4; round++) {
		lab_post(b, 5);
		assert_int_equal(lab_try_post(b, 0), ENOMEM);
		lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "x");
		assert_int_equal(lab_try_post(b, 0), ENOMEM); /* arrived, not polled */
		lab_receive(b);
		lab_post(b, 1);
		assert_int_equal(lab_try_post(b, 0), ENOMEM);
		for (int i = 0; i < 5; i++)
			lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "x");
		for (int i = 0; i < 5; i++)
			lab_receive(b);
	}
}

LAB_CASE(a_queue_for_no_receives_takes_none)
{
	struct lab_end *e = lab_end(1);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
		                         .send_cq = e->send_cq,
		                         .recv_cq = e->cq };
	struct ibv_recv_wr wr = { 0 }, *bad = NULL;
	struct ibv_qp *qp = lab_qp(e->pd, &init);

	lab_start(qp, LAB_QKEY);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr);
}

LAB_CASE(posting_in_reset_is_refused)
{
	struct lab_end *e = lab_end_with(&(struct lab_options){ .reset = true });

	assert_int_equal(lab_try_post(e, 0), EINVAL);
}

LAB_CASE(posting_in_init_is_accepted)
{
	struct lab_end *a = lab_end(1),
	               *b = lab_end_with(&(struct lab_options){ .host = 2, .reset = true });

	lab_to_init(b->qp, LAB_QKEY);
	lab_post(b, 1);
	lab_to_rtr(b->qp);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "posted early");
	lab_expect_text(b, "posted early");
}

LAB_CASE(a_receive_with_too_many_entries_is_refused)
{
	struct lab_end *e = lab_end(1);
	struct ibv_sge sge[5] = { 0 };

	assert_int_equal(post_entries(e, sge, 4), 0);
	assert_int_equal(post_entries(e, sge, 5), EINVAL);
	assert_int_equal(post_entries(e, sge, -1), EINVAL);
}

LAB_CASE(a_bad_receive_stops_the_list_and_is_named)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_sge sge = entry(b, 0, LAB_SLOT);
	struct ibv_recv_wr wr[4], *bad = NULL;

	for (unsigned i = 0; i < 4; i++)
		wr[i] = (struct ibv_recv_wr){
			.wr_id = i, .next = i < 3 ? &wr[i + 1] : NULL, .sg_list = &sge, .num_sge = 1
		};
	wr[2].num_sge = 99;
	assert_int_equal(ibv_post_recv(b->qp, &wr[0], &bad), EINVAL);
	assert_ptr_equal(bad, &wr[2]);
	for (int i = 0; i < 3; i++)
		lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "x");
	lab_receive(b);
	lab_receive(b);
	lab_quiet(b->cq);
}

LAB_CASE(a_list_that_does_not_fit_is_posted_as_far_as_it_does)
{
	struct lab_options o = { .cap.max_recv_wr = 3 };
	struct lab_end *e = lab_end_with(&o);
	struct ibv_sge sge = entry(e, 0, LAB_SLOT);
	struct ibv_recv_wr wr[5], *bad = NULL;

	for (unsigned i = 0; i < 5; i++)
		wr[i] = (struct ibv_recv_wr){
			.wr_id = i, .next = i < 4 ? &wr[i + 1] : NULL, .sg_list = &sge, .num_sge = 1
		};
	assert_int_equal(ibv_post_recv(e->qp, &wr[0], &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[3]);
	lab_to(e->qp, IBV_QPS_ERR);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(lab_complete(e->cq, IBV_WC_WR_FLUSH_ERR).wr_id, i);
	lab_quiet(e->cq);
}

LAB_CASE(without_a_receive_the_message_is_lost_and_counted)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	uint64_t lost = lab_counter(2, "no_receive");

	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "lost");
	assert_int_equal(lab_counter(2, "no_receive"), lost + 1);
	lab_post(b, 1);
	lab_expect_nothing(b, a);
}

/* Posts @n receives in memory that is registered for them alone. */
static char *post_elsewhere(struct lab_end *e, unsigned n, struct ibv_mr **mr)
{
	char *memory = mmap(NULL, n * LAB_SLOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	                    -1, 0);

	assert_true(memory != MAP_FAILED);
	assert_non_null(*mr = ibv_reg_mr(e->pd, memory, n * LAB_SLOT, IBV_ACCESS_LOCAL_WRITE));
	for (unsigned i = 0; i < n; i++) {
		struct ibv_sge sge = { (uintptr_t)memory + i * LAB_SLOT, LAB_SLOT, (*mr)->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
	}
	return memory;
}

/* @unmapped: before the region goes. */
static void let_memory_go(bool unmapped)
{
	static const char *const texts[] = { "one", "two", "three" };
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_mr *mr;
	char *memory = post_elsewhere(b, LAB_ARRAY(texts), &mr);

	lab_post(b, 1);
	for (size_t i = 0; i < LAB_ARRAY(texts); i++)
		lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, texts[i]);
	if (unmapped)
		munmap(memory, LAB_ARRAY(texts) * LAB_SLOT);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	for (size_t i = 0; i < LAB_ARRAY(texts) && !unmapped; i++)
		assert_memory_equal(memory + i * LAB_SLOT + LAB_GRH, texts[i], strlen(texts[i]));
	if (!unmapped)
		munmap(memory, LAB_ARRAY(texts) * LAB_SLOT);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "and more");
	for (size_t i = 0; i < LAB_ARRAY(texts); i++) {
		struct ibv_wc wc = lab_complete(b->cq, IBV_WC_SUCCESS);

		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.byte_len, LAB_GRH + strlen(texts[i]));
	}
	lab_expect_text(b, "and more");
}

LAB_CASE(what_came_before_its_region_went_lies_there)
{
	let_memory_go(false);
}

LAB_CASE(memory_may_go_before_its_region)
{
	let_memory_go(true);
}
