/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UC: messages and RDMA WRITEs as over RC, but what cannot be delivered is lost without a word.
 * On RoCE, too.
 */
#include "peer_lab.h"

static struct lab_work work_of(enum ibv_wr_opcode opcode, struct lab_peer *to, uint32_t length)
{
	return (struct lab_work){ .opcode = opcode,
		                  .wr_id = 7,
		                  .n = 1,
		                  .piece = { { 0, length, 0 } },
		                  .to = to,
		                  .imm = htobe32(5) };
}

static struct lab_peer **uc_peers(void **state)
{
	const struct lab_peer_options o = { .type = IBV_QPT_UC };
	struct lab_peer **p = lab_peers(&o, state);

	return p;
}

/* The next message is the first that arrived. */
static void expect_nothing_arrived(struct lab_peer *p[2])
{
	struct lab_work mark = work_of(IBV_WR_SEND_WITH_IMM, NULL, 3);

	mark.imm = htobe32(99);
	lab_peer_do(p[0], &mark, IBV_WC_SUCCESS);
	assert_int_equal(lab_peer_received(p[1], IBV_WC_SUCCESS).imm_data, htobe32(99));
}

LAB_CASE_BOTH(messages_and_writes_arrive)
{
	const uint32_t lengths[] = { 0, 1, 64, 65, 5000, 30000 };
	struct lab_peer **p = uc_peers(state);

	for (unsigned i = 0; i < LAB_ARRAY(lengths); i++) {
		struct lab_work w = work_of(IBV_WR_SEND_WITH_IMM, NULL, lengths[i]);

		lab_peer_fill(p[0], 0, lengths[i], i);
		lab_peer_receive(p[1], i, 0, 30000);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		assert_int_equal(lab_peer_received(p[1], IBV_WC_SUCCESS).byte_len, lengths[i]);
		lab_peer_expect(p[1], 0, lengths[i], i);
		w = work_of(IBV_WR_RDMA_WRITE_WITH_IMM, p[1], lengths[i]);
		w.remote = 30100;
		lab_peer_receive(p[1], i, 0, 0);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		lab_peer_received(p[1], IBV_WC_SUCCESS);
		lab_peer_expect(p[1], 30100, lengths[i], i);
	}
}

LAB_CASE_BOTH(without_a_receive_a_message_is_lost_and_counted)
{
	uint64_t lost = lab_counter(2, "no_receive");
	struct lab_peer **p = uc_peers(state);
	struct lab_work w = work_of(IBV_WR_SEND, NULL, 64);

	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	assert_int_equal(lab_counter(2, "no_receive"), lost + 1);
	lab_peer_receive(p[1], 1, 0, 64);
	expect_nothing_arrived(p);
}

LAB_CASE_BOTH(a_write_that_is_refused_is_lost_and_counted)
{
	uint64_t lost = lab_counter(2, "uc_refused");
	struct lab_work w;
	struct lab_peer **p = uc_peers(state);

	lab_peer_fill(p[1], 0, 4096, 9);
	w = work_of(IBV_WR_RDMA_WRITE, p[1], 64);
	w.rkey_xor = 1;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	w.rkey_xor = 0;
	w.remote = LAB_PEER_BYTES - 63;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	assert_int_equal(lab_counter(2, "uc_refused"), lost + 2);
	lab_peer_expect(p[1], 0, 4096, 9);
	lab_peer_expect_state(p[0], IBV_QPS_RTS);
	lab_peer_expect_state(p[1], IBV_QPS_RTS);
	lab_peer_no_event(p[1]);
}

/* By the queue pair itself, before the key is looked at. */
LAB_CASE_BOTH(a_queue_pair_that_allows_no_writes_loses_them)
{
	const struct lab_peer_options o = { .type = IBV_QPT_UC,
		                            .no_qp_access = IBV_ACCESS_REMOTE_WRITE };
	struct lab_work w;
	struct lab_peer **p = lab_peers(&o, state);

	lab_peer_fill(p[0], 0, 4096, 3);
	lab_peer_fill(p[1], 0, 4096, 9);
	w = work_of(IBV_WR_RDMA_WRITE, p[1], 64);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_expect(p[1], 0, 4096, 9);
	lab_peer_expect_state(p[1], IBV_QPS_RTS);
}

LAB_CASE_BOTH(packets_of_another_size_are_lost)
{
	struct lab_work w;
	struct lab_peer **p = uc_peers(state);

	p[1]->o.path_mtu = IBV_MTU_256; /* the other one's is 1024 */
	lab_peer_to(p[1], IBV_QPS_RESET);
	lab_peer_connect(p[1], p[0]);
	lab_peer_receive(p[1], 1, 0, 512);
	w = work_of(IBV_WR_SEND, p[1], 257);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	expect_nothing_arrived(p);
	lab_peer_receive(p[1], 2, 0, 512);
	w.piece[0].length = 256;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	assert_int_equal(lab_peer_received(p[1], IBV_WC_SUCCESS).byte_len, 256);
}

LAB_CASE_BOTH(a_refused_write_uses_no_receive)
{
	struct lab_work w;
	struct lab_peer **p = uc_peers(state);

	lab_peer_receive(p[1], 1, 0, 64);
	w = work_of(IBV_WR_RDMA_WRITE_WITH_IMM, p[1], 64);
	w.rkey_xor = 1;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	expect_nothing_arrived(p);
}

LAB_CASE_BOTH(a_failed_request_stops_the_send_queue_alone)
{
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct lab_peer **p = uc_peers(state);
	struct lab_work w = work_of(IBV_WR_SEND, NULL, 64);

	w.piece[0].key_xor = 1;
	lab_peer_receive(p[0], 1, 0, 64);
	lab_peer_receive(p[1], 1, 0, 64);
	lab_peer_do(p[0], &w, IBV_WC_LOC_PROT_ERR);
	lab_peer_expect_state(p[0], IBV_QPS_SQE);
	w.piece[0].key_xor = 0;
	lab_peer_do(p[0], &w, IBV_WC_WR_FLUSH_ERR);
	/* it receives */
	lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
	lab_peer_received(p[0], IBV_WC_SUCCESS);
	assert_int_equal(lab_peer_modify(p[0], &rts, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
	expect_nothing_arrived(p);
}

LAB_CASE_BOTH(reads_and_atomics_are_refused)
{
	const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
		                               IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct lab_peer **p = uc_peers(state);

	for (unsigned i = 0; i < LAB_ARRAY(opcodes); i++) {
		struct lab_work w = work_of(opcodes[i], p[1], 8);

		assert_int_equal(lab_peer_try_post(p[0], &w), EINVAL);
	}
}

LAB_CASE_BOTH(without_a_way_messages_are_lost)
{
	struct lab_work w = work_of(IBV_WR_SEND, NULL, 64);
	struct lab_peer **p = uc_peers(state);

	lab_peer_receive(p[1], 1, 0, 64);
	lab_link(2, false);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_link(2, true);
	expect_nothing_arrived(p);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
