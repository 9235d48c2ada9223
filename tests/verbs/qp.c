/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: ibv_create_qp(3), ibv_create_qp_ex(3), the state machine behind
 * ibv_modify_qp(3) with every transition that UD has and has not, ibv_query_qp(3),
 * flushing, and ibv_destroy_qp(3).
 */
#include "lab.h"

#define STATES (IBV_QPS_ERR + 1)

static const char *const state_name[STATES] = {
	"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"
};

/* ---- creation ---- */

static struct ibv_qp_init_attr usual(struct lab_end *e)
{
	return (struct ibv_qp_init_attr){ .qp_type = IBV_QPT_UD,
		                          .send_cq = e->send_cq,
		                          .recv_cq = e->cq,
		                          .cap = { .max_send_wr = 16,
		                                   .max_recv_wr = 16,
		                                   .max_send_sge = 2,
		                                   .max_recv_sge = 2 } };
}

static void expect_not_created(struct lab_end *e, struct ibv_qp_init_attr init, int error)
{
	errno = 0;
	assert_null(ibv_create_qp(e->pd, &init));
	assert_int_equal(errno, error);
}

LAB_CASE(a_new_qp_says_what_it_is)
{
	struct lab_end *e = lab_end(1);
	struct ibv_qp_init_attr init = usual(e);
	struct ibv_qp *qp;

	init.qp_context = &init;
	qp = lab_qp(e->pd, &init);
	assert_ptr_equal(qp->context, e->context);
	assert_ptr_equal(qp->qp_context, &init);
	assert_ptr_equal(qp->pd, e->pd);
	assert_ptr_equal(qp->send_cq, e->send_cq);
	assert_ptr_equal(qp->recv_cq, e->cq);
	assert_int_equal(qp->qp_type, IBV_QPT_UD);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_in_range(qp->qp_num, 2, LAB_MCAST - 1);
}

LAB_CASE(the_capabilities_are_at_least_those_asked_for)
{
	struct lab_end *e = lab_end(1);
	struct ibv_qp_init_attr init = usual(e);
	struct ibv_qp *qp;

	init.cap = (struct ibv_qp_cap){ .max_send_wr = 100,
		                        .max_recv_wr = 33,
		                        .max_send_sge = 7,
		                        .max_recv_sge = 5,
		                        .max_inline_data = 200 };
	assert_non_null(qp = ibv_create_qp(e->pd, &init));
	assert_true(init.cap.max_send_wr >= 100);
	assert_true(init.cap.max_recv_wr >= 33);
	assert_true(init.cap.max_send_sge >= 7);
	assert_true(init.cap.max_recv_sge >= 5);
	assert_true(init.cap.max_inline_data >= 200);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

LAB_CASE(numbers_of_queue_pairs_are_not_given_twice)
{
	struct lab_end *e = lab_end(1), *f = lab_end(2);
	struct ibv_qp_init_attr a = usual(e), b = usual(f);
	uint32_t number[64];

	for (int i = 0; i < 64; i++) {
		number[i] = lab_qp(i % 2 ? e->pd : f->pd, i % 2 ? &a : &b)->qp_num;
		for (int k = 0; k < i; k++)
			assert_int_not_equal(number[i], number[k]);
	}
}

LAB_CASE(types_that_are_not_here_are_not_supported)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER };
	struct lab_end *e = lab_end(1);
	struct ibv_qp_init_attr init = usual(e);

	for (size_t i = 0; i < LAB_ARRAY(types); i++) {
		init.qp_type = types[i];
		expect_not_created(e, init, EOPNOTSUPP);
	}
}

LAB_CASE(a_type_that_does_not_exist_is_refused)
{
	struct lab_end *e = lab_end(1);
	struct ibv_qp_init_attr init = usual(e);

	init.qp_type = (enum ibv_qp_type)0;
	expect_not_created(e, init, EINVAL);
	init.qp_type = (enum ibv_qp_type)77;
	expect_not_created(e, init, EINVAL);
	init.qp_type = IBV_QPT_XRC_RECV; /* it needs a domain */
	expect_not_created(e, init, EINVAL);
}

LAB_CASE(a_qp_without_completion_queues_is_refused)
{
	struct lab_end *e = lab_end(1);
	struct ibv_qp_init_attr init = usual(e);

	init.send_cq = NULL;
	expect_not_created(e, init, EINVAL);
	init = usual(e);
	init.recv_cq = NULL;
	expect_not_created(e, init, EINVAL);
}

LAB_CASE(objects_of_another_device_are_refused)
{
	struct lab_end *e = lab_end(1), *other = lab_end(2);
	struct ibv_qp_init_attr_ex ex = { .send_cq = e->send_cq,
		                          .recv_cq = e->cq,
		                          .cap = { .max_send_wr = 1, .max_send_sge = 1 },
		                          .comp_mask = IBV_QP_INIT_ATTR_PD,
		                          .pd = other->pd };
	static const enum ibv_qp_type types[] = { IBV_QPT_UD, IBV_QPT_RC };

	for (unsigned i = 0; i < LAB_ARRAY(types); i++) {
		struct ibv_qp_init_attr init = usual(e);

		init.qp_type = ex.qp_type = types[i];
		init.send_cq = other->send_cq;
		expect_not_created(e, init, EINVAL);
		init.send_cq = e->send_cq;
		init.recv_cq = other->cq;
		expect_not_created(e, init, EINVAL);
		init.recv_cq = e->cq;
		expect_not_created(other, init, EINVAL);
		errno = 0;
		assert_null(ibv_create_qp_ex(e->context, &ex));
		assert_int_equal(errno, EINVAL);
	}
}

LAB_CASE(more_than_the_device_can_is_refused)
{
	struct lab_end *e = lab_end(1);
	struct ibv_qp_init_attr init = usual(e);
	struct ibv_device_attr dev;

	assert_int_equal(ibv_query_device(e->context, &dev), 0);
	init.cap.max_send_wr = (uint32_t)dev.max_qp_wr + 1;
	expect_not_created(e, init, EINVAL);
	init = usual(e);
	init.cap.max_recv_wr = (uint32_t)dev.max_qp_wr + 1;
	expect_not_created(e, init, EINVAL);
	init = usual(e);
	init.cap.max_send_sge = (uint32_t)dev.max_sge + 1;
	expect_not_created(e, init, EINVAL);
	init = usual(e);
	init.cap.max_recv_sge = (uint32_t)dev.max_sge + 1;
	expect_not_created(e, init, EINVAL);
	init = usual(e);
	init.cap.max_inline_data = 1 << 20;
	expect_not_created(e, init, EINVAL);
}

LAB_CASE(the_most_that_the_device_can_is_given)
{
	struct lab_end *e = lab_end(1);
	struct ibv_qp_init_attr init = usual(e);
	struct ibv_device_attr dev;

	assert_int_equal(ibv_query_device(e->context, &dev), 0);
	init.cap.max_send_wr = init.cap.max_recv_wr = (uint32_t)dev.max_qp_wr;
	init.cap.max_send_sge = init.cap.max_recv_sge = (uint32_t)dev.max_sge;
	lab_qp(e->pd, &init);
}

LAB_CASE(an_extended_qp_that_cannot_be_is_refused)
{
	struct lab_end *e = lab_end(1);
	struct ibv_qp_init_attr_ex good = { .qp_type = IBV_QPT_UD,
		                            .send_cq = e->send_cq,
		                            .recv_cq = e->cq,
		                            .comp_mask = IBV_QP_INIT_ATTR_PD,
		                            .pd = e->pd },
	                           bad[5];
	static const int error[5] = { EINVAL, EINVAL, EOPNOTSUPP, EOPNOTSUPP, EOPNOTSUPP };

	for (int i = 0; i < 5; i++)
		bad[i] = good;
	bad[0].comp_mask = 0; /* no PD */
	bad[1].pd = NULL;     /* with no more than a PD the header would look into it */
	bad[1].comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	bad[2].comp_mask |= 1u << 31;
	bad[3].comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	bad[3].create_flags = IBV_QP_CREATE_SCATTER_FCS;
	bad[4].comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	bad[4].send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	for (int i = 0; i < 5; i++) {
		errno = 0;
		assert_null(ibv_create_qp_ex(e->context, &bad[i]));
		if (errno != error[i])
			fail_msg("case %d: %s", i, strerror(errno));
	}
}

LAB_CASE(only_a_qp_with_send_operations_is_an_extended_one)
{
	struct lab_end *e = lab_end(1),
	               *f = lab_end_with(&(struct lab_options){ .send_ops = IBV_QP_EX_WITH_SEND });

	assert_null(ibv_qp_to_qp_ex(e->qp));
	assert_non_null(ibv_qp_to_qp_ex(f->qp));
}

/* ---- states ---- */

/* The transitions that UD has, besides those to RESET and ERR, which every state has; but none
 * leads from RESET to ERR (qp_state_table in Linux's drivers/infiniband/core/verbs.c). */
static const struct transition {
	enum ibv_qp_state from, to;
	int required, optional;
} transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
};

/* Never UD's. */
static const int foreign[] = { IBV_QP_ACCESS_FLAGS,   IBV_QP_AV,
	                       IBV_QP_PATH_MTU,       IBV_QP_TIMEOUT,
	                       IBV_QP_RETRY_CNT,      IBV_QP_RNR_RETRY,
	                       IBV_QP_RQ_PSN,         IBV_QP_MAX_QP_RD_ATOMIC,
	                       IBV_QP_ALT_PATH,       IBV_QP_MIN_RNR_TIMER,
	                       IBV_QP_PATH_MIG_STATE, IBV_QP_CAP,
	                       IBV_QP_DEST_QPN,       IBV_QP_MAX_DEST_RD_ATOMIC,
	                       IBV_QP_RATE_LIMIT };

static const struct transition *transition_of(int from, int to)
{
	static const struct transition always; /* to RESET and ERR nothing is required */

	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return &always;
	for (size_t i = 0; i < LAB_ARRAY(transitions); i++)
		if ((int)transitions[i].from == from && (int)transitions[i].to == to)
			return &transitions[i];
	return NULL;
}

/* ibv_modify_qp() from @from to @to with these attributes, all of them with good values. */
static int modify(struct lab_end *e, int from, int to, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = (enum ibv_qp_state)to,
		                    .cur_qp_state = (enum ibv_qp_state)from,
		                    .port_num = 1,
		                    .qkey = 0x2222 };

	return ibv_modify_qp(e->qp, &attr, mask);
}

LAB_CASE(every_pair_of_states_is_a_transition_or_refused)
{
	struct lab_end *e = lab_end(1);

	for (int from = 0; from < STATES; from++) {
		for (int to = 0; to < STATES; to++) {
			const struct transition *t = transition_of(from, to);
			int ret;

			lab_bring_to(e, from);
			ret = modify(e, from, to, IBV_QP_STATE | (t ? t->required : 0));
			if (ret != (t ? 0 : EINVAL))
				fail_msg("%s to %s: %d", state_name[from], state_name[to], ret);
			assert_int_equal(lab_state(e->qp), t ? to : from);
		}
	}
}

LAB_CASE(each_required_attribute_is_required)
{
	struct lab_end *e = lab_end(1);

	for (size_t i = 0; i < LAB_ARRAY(transitions); i++) {
		const struct transition *t = &transitions[i];

		for (int bit = 1; bit <= t->required; bit <<= 1) {
			if (!(t->required & bit))
				continue;
			lab_bring_to(e, (int)t->from);
			if (modify(e, (int)t->from, (int)t->to,
			           IBV_QP_STATE | (t->required & ~bit)) != EINVAL)
				fail_msg("%s to %s without 0x%x", state_name[t->from],
				         state_name[t->to], bit);
			assert_int_equal(lab_state(e->qp), t->from);
		}
	}
}

LAB_CASE(each_optional_attribute_is_accepted)
{
	struct lab_end *e = lab_end(1);

	for (size_t i = 0; i < LAB_ARRAY(transitions); i++) {
		const struct transition *t = &transitions[i];

		for (int bit = 1; bit <= t->optional; bit <<= 1) {
			if (!(t->optional & bit))
				continue;
			lab_bring_to(e, (int)t->from);
			if (modify(e, (int)t->from, (int)t->to, IBV_QP_STATE | t->required | bit))
				fail_msg("%s to %s with 0x%x", state_name[t->from],
				         state_name[t->to], bit);
		}
	}
}

LAB_CASE(an_attribute_of_another_transition_is_refused)
{
	const int own = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_SQ_PSN |
	                IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_CUR_STATE;
	struct lab_end *e = lab_end(1);

	for (size_t i = 0; i < LAB_ARRAY(transitions); i++) {
		const struct transition *t = &transitions[i];

		lab_bring_to(e, (int)t->from);
		for (int bit = 1; bit <= own; bit <<= 1) {
			if (!(own & bit) || ((t->required | t->optional) & bit))
				continue;
			if (modify(e, (int)t->from, (int)t->to, IBV_QP_STATE | t->required | bit) !=
			    EINVAL)
				fail_msg("%s to %s with 0x%x", state_name[t->from],
				         state_name[t->to], bit);
		}
		assert_int_equal(lab_state(e->qp), t->from);
	}
}

LAB_CASE(an_attribute_that_ud_has_not_is_refused)
{
	struct lab_end *e = lab_end(1);

	for (size_t i = 0; i < LAB_ARRAY(transitions); i++) {
		const struct transition *t = &transitions[i];

		lab_bring_to(e, (int)t->from);
		for (size_t k = 0; k < LAB_ARRAY(foreign); k++)
			if (modify(e, (int)t->from, (int)t->to,
			           IBV_QP_STATE | t->required | foreign[k]) != EINVAL)
				fail_msg("%s to %s with 0x%x", state_name[t->from],
				         state_name[t->to], foreign[k]);
		assert_int_equal(lab_state(e->qp), t->from);
	}
}

/* The current state may be named where a queue pair goes to RTS only. */
LAB_CASE(reset_and_error_take_the_state_alone)
{
	struct lab_end *e = lab_end(1);

	for (int from = 0; from < STATES; from++) {
		lab_bring_to(e, from);
		assert_int_equal(modify(e, from, IBV_QPS_ERR, IBV_QP_STATE | IBV_QP_CUR_STATE),
		                 EINVAL);
		assert_int_equal(modify(e, from, IBV_QPS_RESET, IBV_QP_STATE | IBV_QP_CUR_STATE),
		                 EINVAL);
		assert_int_equal(lab_state(e->qp), from);
	}
}

LAB_CASE(a_state_that_does_not_exist_is_refused)
{
	struct lab_end *e = lab_end(1);

	assert_int_equal(modify(e, IBV_QPS_RTS, IBV_QPS_UNKNOWN, IBV_QP_STATE), EINVAL);
	assert_int_equal(modify(e, IBV_QPS_RTS, 200, IBV_QP_STATE), EINVAL);
	assert_int_equal(lab_state(e->qp), IBV_QPS_RTS);
}

LAB_CASE(a_wrong_current_state_is_refused)
{
	struct lab_end *e = lab_end(1);

	assert_int_equal(modify(e, IBV_QPS_SQD, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_CUR_STATE),
	                 EINVAL);
	assert_int_equal(lab_state(e->qp), IBV_QPS_RTS);
}

LAB_CASE(a_port_that_is_not_there_is_refused)
{
	struct lab_end *e = lab_end_with(&(struct lab_options){ .reset = true });
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .qkey = 1 };
	static const uint8_t ports[] = { 0, 2, 255 };

	for (size_t i = 0; i < LAB_ARRAY(ports); i++) {
		attr.port_num = ports[i];
		assert_int_equal(
		        ibv_modify_qp(e->qp, &attr,
		                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		        EINVAL);
	}
	assert_int_equal(lab_state(e->qp), IBV_QPS_RESET);
}

LAB_CASE(a_pkey_index_that_is_empty_or_beyond_the_table_is_refused)
{
	struct lab_end *e = lab_end_with(&(struct lab_options){ .reset = true });
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	static const uint16_t indexes[] = { 1, 16, 0xFFFF };

	for (size_t i = 0; i < LAB_ARRAY(indexes); i++) {
		attr.pkey_index = indexes[i];
		assert_int_equal(
		        ibv_modify_qp(e->qp, &attr,
		                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		        EINVAL);
	}
	assert_int_equal(lab_state(e->qp), IBV_QPS_RESET);
}

static struct ibv_qp_attr query(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr;
}

LAB_CASE(a_refused_change_changes_nothing)
{
	struct lab_end *e = lab_end_with(&(struct lab_options){ .reset = true });
	struct ibv_qp_attr attr = { .qkey = 0x9999, .pkey_index = 1, .port_num = 1 };

	lab_to_init(e->qp, LAB_QKEY);
	assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	                 EINVAL);
	assert_int_equal(query(e->qp).qkey, LAB_QKEY);
	assert_int_equal(query(e->qp).pkey_index, 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .qkey = 0x9999 };
	assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_QKEY), EINVAL);
	assert_int_equal(query(e->qp).qkey, LAB_QKEY);
	assert_int_equal(query(e->qp).qp_state, IBV_QPS_INIT);
}

LAB_CASE(a_query_gives_what_was_set)
{
	struct lab_end *e =
	        lab_end_with(&(struct lab_options){ .reset = true, .signal_all = true });
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .sq_psn = 0x123456 };
	struct ibv_qp_init_attr init;

	lab_to_init(e->qp, 0xABCD);
	lab_to_rtr(e->qp);
	assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	assert_int_equal(ibv_query_qp(e->qp, &attr, -1, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.cur_qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.qkey, 0xABCD);
	assert_int_equal(attr.sq_psn, 0x123456);
	assert_int_equal(attr.pkey_index, 0);
	assert_int_equal(attr.port_num, 1);
	assert_true(attr.cap.max_send_wr >= LAB_SLOTS);
	assert_ptr_equal(init.send_cq, e->send_cq);
	assert_ptr_equal(init.recv_cq, e->cq);
	assert_int_equal(init.qp_type, IBV_QPT_UD);
	assert_int_equal(init.sq_sig_all, 1);
	assert_memory_equal(&init.cap, &attr.cap, sizeof(attr.cap));
}

LAB_CASE(the_public_state_follows)
{
	struct lab_end *e = lab_end(1);

	for (int s = 0; s < STATES; s++) {
		lab_bring_to(e, s);
		if (s != IBV_QPS_SQE) /* the program did not ask for that one */
			assert_int_equal(e->qp->state, s);
	}
}

/* ---- RESET ---- */

LAB_CASE(a_reset_forgets_receives_and_completions)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	lab_post(b, 3);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "lost");
	lab_to(b->qp, IBV_QPS_RESET);
	lab_quiet(b->cq);
	lab_start(b->qp, LAB_QKEY);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "no receive");
	lab_quiet(b->cq);
	lab_post(b, 1);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "afresh");
	lab_expect_text(b, "afresh");
	lab_quiet(b->cq);
}

LAB_CASE(a_reset_makes_room_for_all_receives_again)
{
	struct lab_end *e = lab_end(1);

	for (int round = 0; round < 5; round++) {
		lab_post(e, LAB_SLOTS);
		lab_to(e->qp, IBV_QPS_RESET);
		lab_start(e->qp, LAB_QKEY);
	}
	lab_post(e, LAB_SLOTS);
	assert_int_equal(lab_try_post(e, 0), ENOMEM);
}

/* ---- SQD ---- */

static int post_text(struct lab_end *from, struct lab_end *to, uint64_t wr_id, const char *text)
{
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_request(from, &r, lab_ah_to(from, to), to->qp->qp_num, text, (uint32_t)strlen(text));
	r.wr.wr_id = wr_id;
	return ibv_post_send(from->qp, &r.wr, &bad);
}

LAB_CASE(in_sqd_sends_wait_until_rts)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	lab_post(b, 2);
	lab_to(a->qp, IBV_QPS_SQD);
	assert_int_equal(post_text(a, b, 1, "waits"), 0);
	lab_quiet(a->send_cq);
	lab_quiet(b->cq);
	lab_to(a->qp, IBV_QPS_RTS);
	assert_int_equal(lab_complete(a->send_cq, IBV_WC_SUCCESS).wr_id, 1);
	lab_expect_text(b, "waits");
}

LAB_CASE(what_waited_in_sqd_goes_in_order_and_before_the_rest)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_wc wc[20];

	lab_post(b, 20);
	lab_to(a->qp, IBV_QPS_SQD);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(post_text(a, b, i, "x"), 0);
	lab_to(a->qp, IBV_QPS_RTS);
	for (uint64_t i = 10; i < 20; i++)
		assert_int_equal(post_text(a, b, i, "x"), 0);
	lab_poll(a->send_cq, 20, wc);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(wc[i].wr_id, i);
}

LAB_CASE(in_sqd_inline_data_is_taken_when_it_is_posted)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_post(b, 1);
	lab_to(a->qp, IBV_QPS_SQD);
	lab_request(a, &r, lab_ah_to(a, b), b->qp->qp_num, "before", 6);
	r.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), 0);
	memcpy(a->out, "after!", 6);
	lab_to(a->qp, IBV_QPS_RTS);
	lab_expect_text(b, "before");
}

LAB_CASE(in_sqd_the_send_queue_gets_full)
{
	struct lab_end *a = lab_end_with(&(struct lab_options){ .cap.max_send_wr = 4 });

	lab_to(a->qp, IBV_QPS_SQD);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post_text(a, a, 0, "x"), 0);
	assert_int_equal(post_text(a, a, 0, "x"), ENOMEM);
}

LAB_CASE(in_sqd_messages_still_arrive)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	lab_to(b->qp, IBV_QPS_SQD);
	lab_post(b, 1);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "hello");
	lab_expect_text(b, "hello");
}

LAB_CASE(what_waits_in_sqd_is_flushed_by_err)
{
	struct lab_end *a = lab_end(1);
	struct ibv_wc wc[3];

	lab_to(a->qp, IBV_QPS_SQD);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(post_text(a, a, i, "x"), 0);
	lab_to(a->qp, IBV_QPS_ERR);
	lab_poll(a->send_cq, 3, wc);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
	}
}

LAB_CASE(what_waits_in_sqd_is_forgotten_by_reset)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	lab_post(b, 1);
	lab_to(a->qp, IBV_QPS_SQD);
	assert_int_equal(post_text(a, b, 1, "lost"), 0);
	lab_to(a->qp, IBV_QPS_RESET);
	lab_start(a->qp, LAB_QKEY);
	lab_quiet(a->send_cq);
	lab_expect_nothing(b, a);
}

static void drain(struct lab_end *e, bool notify)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify };

	assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
}

LAB_CASE(a_drained_send_queue_is_reported_if_asked_for)
{
	struct lab_end *e = lab_end(1);

	drain(e, true);
	assert_ptr_equal(lab_async_event(e->context, IBV_EVENT_SQ_DRAINED).element.qp, e->qp);
}

LAB_CASE(a_drained_send_queue_is_not_reported_unasked)
{
	struct lab_end *e = lab_end(1);
	struct ibv_async_event event;

	lab_set_nonblocking(e->context->async_fd);
	lab_to(e->qp, IBV_QPS_SQD);
	lab_to(e->qp, IBV_QPS_RTS);
	drain(e, false);
	assert_int_equal(ibv_get_async_event(e->context, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

/* Asking is for one time. */
LAB_CASE(a_later_drain_is_not_reported)
{
	struct lab_end *e = lab_end(1);
	struct ibv_async_event event;

	lab_set_nonblocking(e->context->async_fd);
	drain(e, true);
	lab_async_event(e->context, IBV_EVENT_SQ_DRAINED);
	lab_to(e->qp, IBV_QPS_RTS);
	lab_to(e->qp, IBV_QPS_SQD);
	assert_int_equal(ibv_get_async_event(e->context, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

/* ---- SQE ---- */

LAB_CASE(a_send_that_fails_stops_the_send_queue)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	lab_post(b, 1);
	lab_fail_a_send(a);
	assert_int_equal(lab_state(a->qp), IBV_QPS_SQE);
	assert_int_equal(post_text(a, b, 7, "x"), 0);
	assert_int_equal(lab_complete(a->send_cq, IBV_WC_WR_FLUSH_ERR).wr_id, 7);
	lab_quiet(b->cq);
}

LAB_CASE(from_sqe_the_send_queue_goes_on_in_rts)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	lab_post(b, 1);
	lab_fail_a_send(a);
	lab_to(a->qp, IBV_QPS_RTS);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "again");
	lab_expect_text(b, "again");
}

LAB_CASE(in_sqe_messages_still_arrive)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	lab_fail_a_send(b);
	lab_post(b, 1);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "hello");
	lab_expect_text(b, "hello");
}

/* Those behind it in the list too. */
LAB_CASE(what_follows_a_failed_send_is_flushed_in_order)
{
	struct lab_end *e = lab_end(1);
	struct lab_request r[4];
	struct ibv_send_wr *bad;
	struct ibv_wc wc[4];

	lab_post(e, 4);
	for (int i = 0; i < 4; i++) {
		lab_request(e, &r[i], lab_ah_to(e, e), e->qp->qp_num, "x", 1);
		r[i].wr.wr_id = (uint64_t)i;
		r[i].wr.next = i < 3 ? &r[i + 1].wr : NULL;
	}
	r[1].sge.lkey = ~0u;
	assert_int_equal(ibv_post_send(e->qp, &r[0].wr, &bad), 0);
	lab_poll(e->send_cq, 4, wc);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(wc[i].wr_id, i);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(wc[1].status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(wc[2].status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc[3].status, IBV_WC_WR_FLUSH_ERR);
	lab_receive(e);
	lab_quiet(e->cq);
}

/* ---- ERR ---- */

LAB_CASE(err_flushes_every_receive_in_order)
{
	struct lab_end *e = lab_end(1);
	struct ibv_wc wc[LAB_SLOTS];

	lab_post(e, LAB_SLOTS);
	lab_to(e->qp, IBV_QPS_ERR);
	lab_poll(e->cq, LAB_SLOTS, wc);
	for (uint64_t i = 0; i < LAB_SLOTS; i++) {
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wc[i].qp_num, e->qp->qp_num);
	}
	lab_quiet(e->cq);
}

LAB_CASE(messages_that_came_before_err_are_not_lost)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	lab_post(b, 4);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "one");
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "two");
	lab_to(b->qp, IBV_QPS_ERR);
	lab_expect_text(b, "one");
	lab_expect_text(b, "two");
	assert_int_equal(lab_complete(b->cq, IBV_WC_WR_FLUSH_ERR).wr_id, 2);
	assert_int_equal(lab_complete(b->cq, IBV_WC_WR_FLUSH_ERR).wr_id, 3);
	lab_quiet(b->cq);
}

LAB_CASE(in_err_what_is_posted_is_flushed)
{
	struct lab_end *e = lab_end(1);

	lab_to(e->qp, IBV_QPS_ERR);
	lab_post(e, 1);
	lab_complete(e->cq, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(post_text(e, e, 5, "x"), 0);
	assert_int_equal(lab_complete(e->send_cq, IBV_WC_WR_FLUSH_ERR).wr_id, 5);
}

LAB_CASE(in_err_no_message_arrives)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	lab_post(b, 1);
	lab_to(b->qp, IBV_QPS_ERR);
	lab_complete(b->cq, IBV_WC_WR_FLUSH_ERR);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "lost");
	lab_quiet(b->cq);
}

LAB_CASE(from_err_it_starts_again_by_reset)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	lab_post(b, 1);
	lab_to(b->qp, IBV_QPS_ERR);
	lab_complete(b->cq, IBV_WC_WR_FLUSH_ERR);
	lab_to(b->qp, IBV_QPS_RESET);
	lab_start(b->qp, LAB_QKEY);
	lab_post(b, 1);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "again");
	lab_expect_text(b, "again");
}

LAB_CASE(before_rtr_no_message_arrives)
{
	struct lab_end *a = lab_end(1),
	               *b = lab_end_with(&(struct lab_options){ .host = 2, .reset = true });

	lab_to_init(b->qp, LAB_QKEY);
	lab_post(b, 1);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "too early");
	lab_quiet(b->cq);
	lab_to_rtr(b->qp);
	lab_expect_nothing(b, a);
}

/* ---- destruction ---- */

LAB_CASE(destroying_with_requests_outstanding_leaves_none_behind)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	lab_post(b, 3);
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "x");
	assert_int_equal(post_text(b, a, 1, "x"), 0);
	assert_int_equal(ibv_destroy_qp(b->qp), 0);
	lab_forget(b->qp);
	lab_quiet(b->cq);
	lab_quiet(b->send_cq);
}

LAB_CASE(a_message_to_a_destroyed_qp_is_dropped)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	uint32_t qpn = b->qp->qp_num;

	assert_int_equal(ibv_destroy_qp(b->qp), 0);
	lab_forget(b->qp);
	lab_send_text(a, lab_ah_to(a, b), qpn, "x");
}
