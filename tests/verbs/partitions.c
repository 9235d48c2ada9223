/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Partitions: members reach each other, but two limited ones and others do not; a P_Key table
 * that changes is told, and holds for queue pairs that are there.
 * umbel: --partitions verbs/partitions.conf
 */
#include "peer_lab.h"

#define RED  0x0010
#define BLUE 0x0020
#define FULL 0x8000

/* The index of @pkey, with or without membership bit as it is in the table; -1: none. */
static int index_of(struct ibv_context *context, uint16_t pkey)
{
	__be16 entry;

	for (int i = 0; !ibv_query_pkey(context, 1, i, &entry); i++)
		if (be16toh(entry) == pkey)
			return i;
	return -1;
}

/* An end on host @host that is in that partition. */
static struct lab_end *end_in(int host, uint16_t pkey)
{
	struct lab_end *e = lab_end_with(&(struct lab_options){ .host = host, .reset = true });
	int index = index_of(e->context, pkey);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		                    .port_num = 1,
		                    .qkey = e->qkey,
		                    .pkey_index = (uint16_t)index };

	assert_true(index >= 0);
	assert_int_equal(
	        ibv_modify_qp(e->qp, &attr,
	                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	        0);
	lab_to_rtr(e->qp);
	lab_to_rts(e->qp);
	return e;
}

static void send_to(struct lab_end *from, struct lab_end *to)
{
	lab_send_text(from, lab_ah_to(from, to), to->qp->qp_num, "partitioned");
}

static void assert_reaches(struct lab_end *from, struct lab_end *to)
{
	lab_post(to, 1);
	send_to(from, to);
	lab_expect_text(to, "partitioned");
}

/* The switch's port to the receiver is not in that partition. */
static void assert_held_back(struct lab_end *from, struct lab_end *to)
{
	uint64_t before = lab_fabric_counter("xmit_constraint");
	uint64_t bad_pkey = lab_counter(to->host, "bad_pkey");

	send_to(from, to);
	lab_quiet(to->cq);
	assert_int_equal(lab_fabric_counter("xmit_constraint"), before + 1);
	assert_int_equal(lab_counter(to->host, "bad_pkey"), bad_pkey);
}

/* The switch lets it through, and the receiver does not. */
static void assert_dropped(struct lab_end *from, struct lab_end *to)
{
	uint64_t before = lab_counter(to->host, "bad_pkey");

	send_to(from, to);
	lab_quiet(to->cq);
	assert_int_equal(lab_counter(to->host, "bad_pkey"), before + 1);
}

static void use_partitions(const char *name)
{
	char command[128];

	snprintf(command, sizeof(command), "umbel sm partitions verbs/%s", name);
	assert_int_equal(system(command), 0);
}

LAB_CASE(ports_have_the_pkeys_of_their_partitions)
{
	static const uint16_t want[][3] = {
		{ 0xFFFF, FULL | RED, 0 },
		{ 0xFFFF, RED, 0 },
		{ 0xFFFF, RED, FULL | BLUE },
		{ 0xFFFF, FULL | BLUE, 0 },
	};

	for (int host = 1; host <= 4; host++)
		for (int i = 0; i < 3; i++) {
			__be16 pkey;

			assert_int_equal(ibv_query_pkey(lab_open(host), 1, i, &pkey), 0);
			assert_int_equal(be16toh(pkey), want[host - 1][i]);
		}
}

LAB_CASE(full_and_limited_members_reach_each_other)
{
	struct lab_end *full = end_in(1, FULL | RED), *limited = end_in(2, RED);

	assert_reaches(full, limited);
	assert_reaches(limited, full);
}

LAB_CASE(limited_members_do_not_reach_each_other)
{
	struct lab_end *a = end_in(2, RED), *b = end_in(3, RED);

	assert_dropped(a, b);
	assert_dropped(b, a);
}

LAB_CASE(others_reach_nobody_in_a_partition)
{
	struct lab_end *red = end_in(1, FULL | RED), *blue = end_in(4, FULL | BLUE);
	struct lab_end *neither = lab_end(2);

	assert_int_equal(index_of(neither->context, FULL | BLUE), -1);
	assert_held_back(red, blue);
	assert_dropped(neither, blue);
	assert_dropped(neither, red);
	assert_held_back(blue, neither);
}

LAB_CASE(who_is_in_two_partitions_has_a_queue_pair_in_each)
{
	struct lab_end *red = end_in(3, RED), *blue = end_in(3, FULL | BLUE);

	assert_reaches(end_in(1, FULL | RED), red);
	assert_reaches(end_in(4, FULL | BLUE), blue);
	assert_dropped(end_in(4, FULL | BLUE), red);
}

LAB_CASE(a_table_that_changes_is_told)
{
	struct ibv_context *changed = lab_open(2), *unchanged = lab_open(1);

	use_partitions("partitions_without_h2.conf");
	assert_int_equal(lab_async_event(changed, IBV_EVENT_PKEY_CHANGE).element.port_num, 1);
	assert_int_equal(index_of(changed, RED), -1);
	use_partitions("partitions.conf");
	lab_async_event(changed, IBV_EVENT_PKEY_CHANGE);
	assert_int_equal(index_of(changed, RED), 1);
	/* nothing else came before */
	use_partitions("partitions.conf");
	assert_int_equal(index_of(unchanged, FULL | RED), 1);
}

LAB_CASE(queue_pairs_have_what_their_index_points_at_now)
{
	struct lab_end *full = end_in(1, FULL | RED), *limited = end_in(2, RED);

	assert_reaches(full, limited);
	use_partitions("partitions_without_h2.conf");
	assert_held_back(full, limited);
	assert_dropped(limited, full);
	use_partitions("partitions.conf");
	assert_reaches(full, limited);
	assert_reaches(limited, full);
}

/* Requests by one address handle, one after the other: nothing is looked up for them. */
LAB_CASE(what_an_index_points_at_changes_between_requests)
{
	struct lab_end *full = end_in(1, FULL | RED), *limited = end_in(2, RED);
	struct ibv_ah *ah = lab_ah_to(limited, full);
	const uint32_t qpn = full->qp->qp_num;
	uint64_t before;

	lab_post(full, 5);
	for (int i = 0; i < 4; i++) {
		lab_send_text(limited, ah, qpn, "inside");
		lab_expect_text(full, "inside");
	}
	before = lab_counter(1, "bad_pkey");
	use_partitions("partitions_without_h2.conf");
	lab_send_text(limited, ah, qpn, "outside");
	assert_int_equal(lab_counter(1, "bad_pkey"), before + 1);
	use_partitions("partitions.conf");
	lab_send_text(limited, ah, qpn, "inside again");
	lab_expect_text(full, "inside again");
}

LAB_CASE(an_index_changes_between_requests)
{
	struct lab_end *full = end_in(1, FULL | RED), *limited = end_in(2, RED);
	struct ibv_qp_attr attr = { .pkey_index = 0 };
	struct ibv_ah *ah = lab_ah_to(limited, full);
	uint64_t before = lab_counter(1, "bad_pkey");

	lab_post(full, 5);
	for (int i = 0; i < 4; i++) {
		lab_send_text(limited, ah, full->qp->qp_num, "inside");
		lab_expect_text(full, "inside");
	}
	lab_to(limited->qp, IBV_QPS_SQD);
	assert_int_equal(ibv_modify_qp(limited->qp, &attr, IBV_QP_PKEY_INDEX), 0);
	lab_to(limited->qp, IBV_QPS_RTS);
	lab_send_text(limited, ah, full->qp->qp_num, "outside");
	lab_quiet(full->cq);
	assert_int_equal(lab_counter(1, "bad_pkey"), before + 1);
}

/* Expects @status of a WRITE between two connected queue pairs in those partitions. */
static void expect_write(int from, uint16_t from_pkey, int to, uint16_t to_pkey,
                         enum ibv_wc_status status)
{
	struct lab_peer_options o[2] = { { .host = from, .timeout = 8, .retry_cnt = 1 },
		                         { .host = to } };
	struct lab_work w = { .opcode = IBV_WR_RDMA_WRITE, .n = 1, .piece = { { 0, 64, 0 } } };
	const uint16_t pkey[2] = { from_pkey, to_pkey };
	struct lab_peer *p[2];

	for (int i = 0; i < 2; i++) {
		int index = index_of(lab_open(o[i].host), pkey[i]);

		assert_true(index >= 0);
		o[i].pkey_index = (uint16_t)index;
		p[i] = lab_peer(&o[i]);
	}
	lab_peer_connect(p[0], p[1]);
	lab_peer_connect(p[1], p[0]);
	lab_peer_fill(p[0], 0, 64, 1);
	lab_peer_fill(p[1], 0, 64, 2);
	w.to = p[1];
	lab_peer_do(p[0], &w, status);
	lab_peer_expect(p[1], 0, 64, status ? 2 : 1);
}

LAB_CASE(connected_queue_pairs_need_a_common_partition)
{
	expect_write(1, RED | FULL, 2, RED, IBV_WC_SUCCESS);
	expect_write(2, RED, 1, RED | FULL, IBV_WC_SUCCESS);
	expect_write(2, RED, 3, RED, IBV_WC_RETRY_EXC_ERR);
	expect_write(1, RED | FULL, 3, BLUE | FULL, IBV_WC_RETRY_EXC_ERR);
}
