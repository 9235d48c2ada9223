/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * States of connected queue pairs: every transition with the attributes that it needs and may have,
 * and what each state does to requests.
 *
 * umbel: --set exact_sizes=1
 */
#include "peer_lab.h"

#define STATES (IBV_QPS_ERR + 1)

/* ---- the table ---- */

#define TO_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR  (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RC_RTR  (TO_RTR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RC_RTS  (IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | READS)
#define READS   IBV_QP_MAX_QP_RD_ATOMIC
#define OPT_RTR (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define OPT_ANY (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define OPT_RTS (OPT_ANY | IBV_QP_CUR_STATE)
#define OPT_SQD (OPT_ANY | IBV_QP_AV | IBV_QP_PKEY_INDEX)
#define RNR     IBV_QP_MIN_RNR_TIMER
#define RC_SQD                                                                     \
	(OPT_SQD | RNR | READS | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | \
	 IBV_QP_RNR_RETRY | IBV_QP_MAX_DEST_RD_ATOMIC)

/* As the kernel's core has it. */
static const struct {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int required, optional;
} table[] = {
	{ IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT, 0 },
	{ IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, TO_INIT },
	{ IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR, OPT_RTR },
	{ IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS, OPT_RTS | RNR },
	{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, OPT_RTS | RNR },
	{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0, OPT_RTS | RNR },
	{ IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, 0, RC_SQD },
	{ IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT, 0 },
	{ IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, TO_INIT },
	{ IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, TO_RTR, OPT_RTR },
	{ IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, OPT_RTS },
	{ IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, OPT_RTS },
	{ IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, OPT_RTS },
	{ IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQD, 0, OPT_SQD },
	{ IBV_QPT_UC, IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS },
};

/* All that ibv_modify_qp(3) names, but for the state. */
static const int attributes[] = {
	IBV_QP_EN_SQD_ASYNC_NOTIFY,
	IBV_QP_ACCESS_FLAGS,
	IBV_QP_PKEY_INDEX,
	IBV_QP_PORT,
	IBV_QP_QKEY,
	IBV_QP_AV,
	IBV_QP_PATH_MTU,
	IBV_QP_TIMEOUT,
	IBV_QP_RETRY_CNT,
	IBV_QP_RNR_RETRY,
	IBV_QP_RQ_PSN,
	IBV_QP_MAX_QP_RD_ATOMIC,
	IBV_QP_ALT_PATH,
	IBV_QP_MIN_RNR_TIMER,
	IBV_QP_SQ_PSN,
	IBV_QP_MAX_DEST_RD_ATOMIC,
	IBV_QP_PATH_MIG_STATE,
	IBV_QP_DEST_QPN,
	IBV_QP_CUR_STATE,
};

/* Values that are right for all. */
static struct ibv_qp_attr right(enum ibv_qp_state to)
{
	return (struct ibv_qp_attr){ .qp_state = to,
		                     .path_mtu = IBV_MTU_1024,
		                     .path_mig_state = IBV_MIG_MIGRATED,
		                     .dest_qp_num = 77,
		                     .ah_attr = { .dlid = 1, .port_num = 1 },
		                     .alt_ah_attr = { .dlid = 1, .port_num = 1 },
		                     .alt_port_num = 1,
		                     .port_num = 1,
		                     .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		                     .timeout = 14,
		                     .retry_cnt = 7,
		                     .rnr_retry = 7,
		                     .min_rnr_timer = 12,
		                     .max_rd_atomic = 1,
		                     .max_dest_rd_atomic = 1 };
}

static int row(enum ibv_qp_type type, int from, int to)
{
	for (unsigned i = 0; i < LAB_ARRAY(table); i++)
		if (table[i].type == type && (int)table[i].from == from && (int)table[i].to == to)
			return (int)i;
	return -1;
}

static int go(struct lab_peer *p, int to, int mask)
{
	struct ibv_qp_attr a = right((enum ibv_qp_state)to);

	if (mask & IBV_QP_CUR_STATE)
		a.cur_qp_state = lab_peer_state(p);
	return lab_peer_modify(p, &a, IBV_QP_STATE | mask);
}

static void step(struct lab_peer *p, int from, int to)
{
	assert_int_equal(go(p, to, table[row(p->o.type, from, to)].required), 0);
}

static void bring_to(struct lab_peer *p, int state)
{
	struct lab_work w = { .n = 1, .piece = { { 0, 8, 1 } } };

	lab_peer_to(p, IBV_QPS_RESET);
	if (state == IBV_QPS_RESET)
		return;
	step(p, IBV_QPS_RESET, IBV_QPS_INIT);
	if (state == IBV_QPS_ERR) {
		lab_peer_to(p, IBV_QPS_ERR);
		return;
	}
	if (state >= IBV_QPS_RTR)
		step(p, IBV_QPS_INIT, IBV_QPS_RTR);
	if (state >= IBV_QPS_RTS)
		step(p, IBV_QPS_RTR, IBV_QPS_RTS);
	if (state == IBV_QPS_SQD)
		step(p, IBV_QPS_RTS, IBV_QPS_SQD);
	if (state == IBV_QPS_SQE)
		lab_peer_do(p, &w, IBV_WC_LOC_PROT_ERR); /* a wrong key */
	assert_int_equal(lab_peer_state(p), state);
}

static struct lab_peer *one(enum ibv_qp_type type)
{
	return lab_peer(&(struct lab_peer_options){ .type = type });
}

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };

static bool has_state(enum ibv_qp_type type, int state)
{
	return state != IBV_QPS_SQE || type == IBV_QPT_UC;
}

static void try_attributes(struct lab_peer *p, unsigned i)
{
	int from = table[i].from, to = table[i].to;
	int required = table[i].required, optional = table[i].optional;

	for (unsigned k = 0; k < LAB_ARRAY(attributes); k++) {
		int bit = attributes[k], expected = EINVAL, mask = required ^ bit;

		if ((optional & bit) && !(required & bit))
			expected = bit & IBV_QP_ALT_PATH ? EOPNOTSUPP : 0;
		bring_to(p, from);
		assert_int_equal(go(p, to, mask), expected);
		assert_int_equal(lab_peer_state(p), expected ? from : to);
	}
}

LAB_CASE(each_transition_has_its_attributes)
{
	for (int t = 0; t < 2; t++) {
		struct lab_peer *p = one(types[t]);

		for (unsigned i = 0; i < LAB_ARRAY(table); i++) {
			if (table[i].type != types[t])
				continue;
			bring_to(p, table[i].from);
			assert_int_equal(go(p, table[i].to, table[i].required), 0);
			assert_int_equal(lab_peer_state(p), table[i].to);
			try_attributes(p, i);
		}
	}
}

LAB_CASE(there_are_no_other_transitions)
{
	const int all = TO_INIT | RC_RTR | RC_RTS;

	for (int t = 0; t < 2; t++) {
		struct lab_peer *p = one(types[t]);

		for (int from = 0; from < STATES; from++)
			for (int to = 0; to < STATES; to++) {
				bool may = to == IBV_QPS_RESET ||
				           (to == IBV_QPS_ERR && from != IBV_QPS_RESET);
				int expected = may ? 0 : EINVAL;

				if (!has_state(types[t], from) || row(types[t], from, to) >= 0)
					continue;
				bring_to(p, from);
				assert_int_equal(go(p, to, 0), expected);
				assert_int_equal(lab_peer_state(p), expected ? from : to);
				assert_int_equal(go(p, to, all), EINVAL);
			}
	}
}

/* ---- values ---- */

LAB_CASE(bad_values_are_refused_and_change_nothing)
{
	struct lab_peer *p = one(IBV_QPT_RC);
	struct ibv_qp_attr a;

#define REFUSED(from, to, mask, field, value)                                            \
	do {                                                                             \
		bring_to(p, from);                                                       \
		a = right(to);                                                           \
		a.field = (value);                                                       \
		assert_int_equal(lab_peer_modify(p, &a, IBV_QP_STATE | (mask)), EINVAL); \
		assert_int_equal(lab_peer_state(p), from);                               \
	} while (0)
	REFUSED(IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT, port_num, 0);
	REFUSED(IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT, port_num, 2);
	REFUSED(IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT, pkey_index, 0xFFFF);
	REFUSED(IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR, path_mtu, 0);
	REFUSED(IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR, path_mtu, 6);
	REFUSED(IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR, max_dest_rd_atomic, 17);
	REFUSED(IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR, ah_attr.port_num, 2);
	REFUSED(IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR, ah_attr.static_rate, 200);
	REFUSED(IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS, timeout, 32);
	REFUSED(IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS, max_rd_atomic, 17);
#undef REFUSED
	/* the state that the program takes it for */
	bring_to(p, IBV_QPS_RTR);
	a = right(IBV_QPS_RTS);
	a.cur_qp_state = IBV_QPS_SQD;
	assert_int_equal(lab_peer_modify(p, &a, IBV_QP_STATE | IBV_QP_CUR_STATE | RC_RTS), EINVAL);
	assert_int_equal(go(p, IBV_QPS_RTS, RC_RTS), 0);
}

LAB_CASE(attributes_are_as_they_were_set)
{
	struct lab_peer *p = one(IBV_QPT_RC);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	bring_to(p, IBV_QPS_RTS);
	assert_int_equal(ibv_query_qp(p->here->qp, &a, 0, &init), 0);
	assert_int_equal(a.path_mtu, IBV_MTU_1024);
	assert_int_equal(a.dest_qp_num, 77);
	assert_int_equal(a.ah_attr.dlid, 1);
	assert_int_equal(a.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(a.timeout, 14);
	assert_int_equal(a.retry_cnt, 7);
	assert_int_equal(a.rnr_retry, 7);
	assert_int_equal(a.min_rnr_timer, 12);
	assert_int_equal(a.max_rd_atomic, 1);
	assert_int_equal(a.max_dest_rd_atomic, 1);
	assert_int_equal(a.path_mig_state, IBV_MIG_MIGRATED);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
}

/* mlx5 cuts these values to the bits that it has. */
LAB_CASE(what_has_no_room_in_packets_is_cut_off)
{
	struct lab_peer *p = one(IBV_QPT_RC);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	bring_to(p, IBV_QPS_INIT);
	a = right(IBV_QPS_RTR);
	a.dest_qp_num |= 1u << 24;
	a.min_rnr_timer |= 32;
	assert_int_equal(lab_peer_modify(p, &a, IBV_QP_STATE | RC_RTR), 0);
	a = right(IBV_QPS_RTS);
	a.retry_cnt |= 8;
	a.rnr_retry = 8;
	assert_int_equal(lab_peer_modify(p, &a, IBV_QP_STATE | RC_RTS), 0);
	assert_int_equal(ibv_query_qp(p->here->qp, &a, 0, &init), 0);
	assert_int_equal(a.dest_qp_num, 77);
	assert_int_equal(a.min_rnr_timer, 12);
	assert_int_equal(a.retry_cnt, 7);
	assert_int_equal(a.rnr_retry, 0);
}

/* There is one path, which the queue pair has migrated to: that may be said. */
LAB_CASE(of_the_states_of_migration_there_is_one)
{
	struct lab_peer *p = one(IBV_QPT_RC);
	struct ibv_qp_attr a = right(IBV_QPS_RTS);

	bring_to(p, IBV_QPS_RTR);
	a.path_mig_state = IBV_MIG_REARM;
	assert_int_equal(lab_peer_modify(p, &a, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE | RC_RTS),
	                 EOPNOTSUPP);
	a.path_mig_state = IBV_MIG_MIGRATED;
	assert_int_equal(lab_peer_modify(p, &a, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE | RC_RTS), 0);
}

/* ---- what states do ---- */

static struct lab_work send_of(uint64_t wr_id)
{
	return (struct lab_work){
		.opcode = IBV_WR_SEND, .wr_id = wr_id, .n = 1, .piece = { { 0, 10, 0 } }
	};
}

LAB_CASE(states_allow_posting_or_not)
{
	struct lab_work w = send_of(1), r = { .n = 1, .piece = { { 0, 10, 0 } } };
	struct lab_peer *p = one(IBV_QPT_RC);

	for (int s = 0; s < STATES; s++) {
		if (!has_state(IBV_QPT_RC, s))
			continue;
		bring_to(p, s);
		assert_int_equal(lab_peer_try_post(p, &w), s < IBV_QPS_RTS ? EINVAL : 0);
		assert_int_equal(lab_peer_try_receive(p, &r), s == IBV_QPS_RESET ? EINVAL : 0);
	}
}

LAB_CASE_BOTH(in_sqd_requests_wait_and_in_rts_they_go)
{
	struct ibv_qp_attr sqd = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_qp_attr timeout = { .timeout = 9 };
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(NULL, state);

	assert_int_equal(lab_peer_modify(p[0], &sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	lab_peer_event(p[0], IBV_EVENT_SQ_DRAINED);
	for (uint64_t i = 0; i < 3; i++) {
		struct lab_work w = send_of(i);

		lab_peer_receive(p[1], i, 0, 10);
		lab_peer_post(p[0], &w);
	}
	assert_int_equal(lab_peer_try_sent(p[0], &wc), 0);
	assert_int_equal(lab_peer_try_received(p[1], &wc), 0);
	assert_int_equal(lab_peer_modify(p[0], &timeout, IBV_QP_TIMEOUT), 0);
	/* the other direction is open */
	lab_peer_receive(p[0], 9, 0, 10);
	lab_peer_do(p[1], &(struct lab_work){ .opcode = IBV_WR_SEND }, IBV_WC_SUCCESS);
	lab_peer_received(p[0], IBV_WC_SUCCESS);
	lab_peer_to(p[0], IBV_QPS_RTS);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(lab_peer_received(p[1], IBV_WC_SUCCESS).wr_id, i);
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).wr_id, i);
	}
}

LAB_CASE_BOTH(what_waits_in_sqd_is_not_helped_along)
{
	struct lab_work w = send_of(1);
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(NULL, state);

	lab_peer_post(p[0], &w);
	lab_peer_to(p[0], IBV_QPS_SQD);
	lab_peer_receive(p[1], 1, 0, 10);
	assert_int_equal(lab_peer_try_received(p[1], &wc), 0);
	lab_peer_to(p[0], IBV_QPS_RTS);
	lab_peer_received(p[1], IBV_WC_SUCCESS);
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
}

LAB_CASE_BOTH(in_err_all_is_flushed_in_order)
{
	struct lab_peer **p = lab_peers(NULL, state);

	for (uint64_t i = 0; i < 5; i++) {
		struct lab_work w = send_of(i);

		lab_peer_post(p[0], &w);
		lab_peer_receive(p[0], i, 0, 10);
	}
	lab_peer_to(p[0], IBV_QPS_ERR);
	for (uint64_t i = 5; i < 8; i++) {
		struct lab_work w = send_of(i);

		w.unsignalled = true;
		lab_peer_post(p[0], &w);
		lab_peer_receive(p[0], i, 0, 10);
	}
	for (uint64_t i = 0; i < 8; i++) {
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_WR_FLUSH_ERR).wr_id, i);
		assert_int_equal(lab_peer_received(p[0], IBV_WC_WR_FLUSH_ERR).wr_id, i);
	}
	lab_peer_expect_state(p[1], IBV_QPS_RTS);
}

LAB_CASE_BOTH(a_responder_that_left_rts_is_not_reached)
{
	const enum ibv_qp_state away[] = { IBV_QPS_RESET, IBV_QPS_ERR };
	const struct lab_peer_options o = { .timeout = 8, .retry_cnt = 1, .rnr_retry = 7 };

	for (int i = 0; i < 2; i++) {
		struct lab_work w = { .opcode = IBV_WR_RDMA_WRITE,
			              .n = 1,
			              .piece = { { 0, 64, 0 } } };
		struct lab_peer **p = lab_peers(&o, state);

		lab_peer_fill(p[1], 0, 64, 9);
		lab_peer_to(p[1], away[i]);
		w.to = p[1];
		lab_peer_do(p[0], &w, IBV_WC_RETRY_EXC_ERR);
		lab_peer_expect(p[1], 0, 64, 9);
		lab_clean_up(NULL);
	}
}

/* A responder that has refused a request is in ERR even before its program looks. */
LAB_CASE_BOTH(a_responder_in_error_takes_no_further_request)
{
	const struct lab_peer_options o = { .timeout = 8, .retry_cnt = 1, .rnr_retry = 7 };
	struct lab_work w = { .opcode = IBV_WR_RDMA_WRITE, .n = 1, .piece = { { 0, 64, 0 } } };
	struct lab_peer **p = lab_peers(&o, state);

	lab_peer_fill(p[1], 0, 64, 9);
	w.to = p[1];
	w.rkey_xor = 1;
	lab_peer_do(p[0], &w, IBV_WC_REM_ACCESS_ERR);
	lab_peer_to(p[0], IBV_QPS_RESET);
	lab_peer_connect(p[0], p[1]);
	w.rkey_xor = 0;
	lab_peer_do(p[0], &w, IBV_WC_RETRY_EXC_ERR);
	lab_peer_expect(p[1], 0, 64, 9);
	/* and what it posts itself is flushed */
	w = send_of(3);
	lab_peer_do(p[1], &w, IBV_WC_WR_FLUSH_ERR);
	lab_peer_expect_state(p[1], IBV_QPS_ERR);
}

LAB_CASE_BOTH(after_a_reset_it_is_like_new)
{
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(NULL, state);

	for (int round = 0; round < 20; round++) {
		struct lab_work w = send_of(1);

		/* completions of all kinds are left over, and requests that wait */
		for (int i = 0; i < 2; i++)
			for (int k = 0; k < round % 7; k++) {
				lab_peer_post(p[i], &w);
				lab_peer_receive(p[i], 5, 0, 10);
			}
		if (round % 3 == 1)
			lab_peer_to(p[0], IBV_QPS_ERR);
		for (int i = 0; i < 2; i++)
			lab_peer_to(p[i], IBV_QPS_RESET);
		for (int i = 0; i < 2; i++) {
			lab_peer_to_init(p[i]);
			lab_peer_to_rtr(p[i], p[!i]);
			assert_int_equal(lab_peer_try_sent(p[i], &wc), 0);
			assert_int_equal(lab_peer_try_received(p[i], &wc), 0);
		}
		for (int i = 0; i < 2; i++)
			lab_peer_to_rts(p[i]);
		for (int i = 0; i < 2; i++) {
			lab_peer_receive(p[i], 6, 0, 10);
			lab_peer_do(p[!i], &w, IBV_WC_SUCCESS);
			assert_int_equal(lab_peer_received(p[i], IBV_WC_SUCCESS).wr_id, 6);
		}
	}
}

LAB_CASE_BOTH(a_completion_queue_that_is_too_small_overruns)
{
	const struct lab_peer_options o = { .cqe = 2, .timeout = 14, .rnr_retry = 7 };
	struct lab_work w = send_of(1);
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(&o, state);

	for (int i = 0; i < 4; i++)
		lab_peer_receive(p[1], 1, 0, 10);
	w.unsignalled = true;
	for (int i = 0; i < 4; i++)
		lab_peer_post(p[0], &w);
	lab_peer_event(p[1], IBV_EVENT_CQ_ERR);
	assert_true(lab_peer_try_received(p[1], &wc) < 0);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
