/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SEND over RC: messages and receives, requests that wait for a receive or for a responder, and how
 * both ends fail.
 * On RoCE, too.
 */
#include "peer_lab.h"

#define MIB 1048576u

static struct lab_work send_of(uint64_t at, uint32_t length)
{
	return (struct lab_work){
		.opcode = IBV_WR_SEND, .wr_id = 7, .n = 1, .piece = { { at, length, 0 } }
	};
}

/* ---- messages ---- */

static const uint32_t sizes[] = { 0, 1, 63, 64, 65, 128, 4095, 4096, 4097, 70001, 3 * MIB };

LAB_CASE_BOTH(a_message_of_any_size_arrives_exactly)
{
	const struct lab_peer_options o = { .bytes = 4 * MIB, .rnr_retry = 7 };
	struct lab_peer **p = lab_peers(&o, state);

	for (unsigned i = 0; i < LAB_ARRAY(sizes); i++) {
		struct lab_work w = send_of(3 + i, sizes[i]);
		struct ibv_wc wc;

		lab_peer_fill(p[0], 3 + i, sizes[i], i);
		lab_peer_fill(p[1], 0, sizes[i] + 2048, 99);
		lab_peer_receive(p[1], i, 1001, sizes[i]);
		w.by_wr = i % 2;
		assert_int_equal(lab_peer_do(p[0], &w, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
		wc = lab_peer_received(p[1], IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.byte_len, sizes[i]);
		assert_int_equal(wc.wc_flags, 0);
		lab_peer_expect(p[1], 1001, sizes[i], i);
		lab_peer_expect(p[1], 0, 1001, 99);
	}
}

/* Four bits in a packet of InfiniBand, three of a priority on Ethernet; more is cut off, as by
 * mlx5. */
LAB_CASE(a_service_level_is_cut_to_what_its_link_has)
{
	const struct lab_peer_options o = { .retry_cnt = 7, .rnr_retry = 7 };
	struct lab_peer *p[2] = { lab_peer(&o), lab_peer(&o) };
	struct ibv_qp_init_attr init;
	struct lab_work w = send_of(0, 8);
	struct ibv_port_attr port;
	struct ibv_qp_attr a;

	for (int i = 0; i < 2; i++)
		p[i]->address.path.sl = 0x9D;
	for (int i = 0; i < 2; i++)
		lab_peer_connect(p[i], p[!i]);
	assert_int_equal(ibv_query_port(p[0]->here->context, 1, &port), 0);
	assert_int_equal(ibv_query_qp(p[0]->here->qp, &a, IBV_QP_AV, &init), 0);
	assert_int_equal(a.ah_attr.sl,
	                 port.link_layer == IBV_LINK_LAYER_ETHERNET ? 0x9D & 7 : 0x9D & 15);
	lab_peer_receive(p[1], 1, 0, 8);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_received(p[1], IBV_WC_SUCCESS);
}

LAB_CASE_BOTH(pieces_are_gathered_and_scattered_in_order)
{
	for (int large = 0; large < 2; large++) {
		uint32_t k = large ? 1000 : 1;
		struct lab_work r = { .n = 4 }, w = { .opcode = IBV_WR_SEND, .n = 3 };
		uint32_t from[] = { 5 * k, 1 * k, 20 * k }, to[] = { 2 * k, 0, 13 * k, 12 * k };
		uint8_t *got = malloc(26000);
		struct lab_peer **p = lab_peers(NULL, state);

		for (int i = 0; i < 3; i++)
			w.piece[i] = (struct lab_piece){ 10 + 20000u * (unsigned)i, from[i], 0 };
		for (int i = 0; i < 4; i++)
			r.piece[i] = (struct lab_piece){ 1 + 16000u * (unsigned)i, to[i], 0 };
		lab_peer_fill(p[0], 0, LAB_PEER_BYTES, 3);
		assert_int_equal(lab_peer_try_receive(p[1], &r), 0);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		lab_peer_received(p[1], IBV_WC_SUCCESS);
		lab_peer_get(p[1], 1, got, 2 * k);
		lab_peer_get(p[1], 32001, got + 2 * k, 13 * k);
		lab_peer_get(p[1], 48001, got + 15 * k, 11 * k);
		for (uint32_t i = 0; i < 26 * k; i++)
			assert_int_equal(got[i], lab_pattern(3, i < 5 * k   ? 10 + i
			                                        : i < 6 * k ? 20010 + i - 5 * k
			                                                    : 40010 + i - 6 * k));
		free(got);
		lab_clean_up(NULL);
	}
}

LAB_CASE_BOTH(immediate_data_arrives)
{
	struct lab_work w = send_of(0, 10);
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(NULL, state);

	w.opcode = IBV_WR_SEND_WITH_IMM;
	w.imm = htobe32(0xCAFE0001);
	for (int by_wr = 0; by_wr < 2; by_wr++) {
		w.by_wr = by_wr;
		lab_peer_receive(p[1], 1, 0, 64);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		wc = lab_peer_received(p[1], IBV_WC_SUCCESS);
		assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
		assert_int_equal(wc.imm_data, htobe32(0xCAFE0001));
	}
}

/* A receive's entries behind the message are not looked at. */
LAB_CASE_BOTH(entries_that_a_message_does_not_reach_may_be_wrong)
{
	const uint32_t lengths[] = { 10, 5000 };

	for (int i = 0; i < 2; i++) {
		struct lab_work r = { .n = 2, .piece = { { 0, 5000, 0 }, { 6000, 10, 1 } } };
		struct lab_work w = send_of(0, lengths[i]);
		struct lab_peer **p = lab_peers(NULL, state);

		assert_int_equal(lab_peer_try_receive(p[1], &r), 0);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		lab_peer_received(p[1], IBV_WC_SUCCESS);
		lab_clean_up(NULL);
	}
}

/* A receive's entry is looked at as far as the message reaches. @room: bytes of the region from
 * where the receive begins. */
static void send_to_the_end(void **state, const struct lab_peer_options *o,
                            const struct lab_work *r, uint32_t length, uint32_t room)
{
	const uint64_t at = LAB_PEER_BYTES - room;
	struct lab_work w = send_of(0, length), longer = send_of(0, room + 1);
	struct lab_peer **p = lab_peers(o, state);

	lab_peer_fill(p[0], 0, length, 5);
	for (int i = 0; i < 2; i++) { /* the second time the key is known */
		lab_peer_fill(p[1], at, room, 9);
		assert_int_equal(lab_peer_try_receive(p[1], r), 0);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		lab_peer_received(p[1], IBV_WC_SUCCESS);
		lab_peer_expect(p[1], at, length, 5);
	}
	assert_int_equal(lab_peer_try_receive(p[1], r), 0);
	lab_peer_do(p[0], &longer, IBV_WC_REM_OP_ERR);
	lab_peer_received(p[1], IBV_WC_LOC_PROT_ERR);
	lab_clean_up(NULL);
}

static void send_beyond(void **state, const struct lab_peer_options *o)
{
	const uint32_t rooms[] = { 60, 200, 5000 };

	for (unsigned i = 0; i < LAB_ARRAY(rooms); i++) {
		const uint32_t room = rooms[i];
		const uint64_t at = LAB_PEER_BYTES - room;
		const struct lab_work one = { .n = 1, .piece = { { at, room + 44, 0 } } };
		const struct lab_work two = {
			.n = 2, .piece = { { at, 10, 0 }, { at + 10, room + 44, 0 } }
		};

		send_to_the_end(state, o, &one, room, room);
		send_to_the_end(state, o, &one, 1, room);
		send_to_the_end(state, o, &two, room, room);
		send_to_the_end(state, o, &two, 11, room);
	}
}

LAB_CASE_BOTH(a_receive_may_reach_beyond_its_region)
{
	const struct lab_peer_options o = { .rnr_retry = 7 };

	send_beyond(state, &o);
}

LAB_CASE_BOTH(a_receive_may_reach_beyond_a_region_that_is_far)
{
	const struct lab_peer_options o = { .rnr_retry = 7, .far = true };

	send_beyond(state, &o);
}

/* ---- waiting for a receive ---- */

LAB_CASE_BOTH(messages_wait_for_receives_and_come_in_order)
{
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(NULL, state);

	for (unsigned i = 0; i < 40; i++) {
		struct lab_work w = send_of(i * 100, i % 3 == 2 ? 5000 : 40);

		w.wr_id = i;
		w.flags = i % 3 ? 0 : IBV_SEND_INLINE;
		lab_peer_fill(p[0], i * 100, w.piece[0].length, i);
		lab_peer_post(p[0], &w);
		if (i % 3 == 0) /* the data was taken when it was posted */
			lab_peer_fill(p[0], i * 100, 40, 77);
		lab_peer_receive(p[1], i, 0, 8000);
		lab_peer_received(p[1], IBV_WC_SUCCESS);
		lab_peer_expect(p[1], 0, w.piece[0].length, i);
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).wr_id, i);
	}
	assert_int_equal(lab_peer_try_sent(p[0], &wc), 0);
	assert_int_equal(lab_peer_try_received(p[1], &wc), 0);
}

LAB_CASE_BOTH(the_responder_carries_out_what_waited_for_it)
{
	struct lab_peer **p = lab_peers(NULL, state);

	for (unsigned i = 0; i < 30; i++) {
		struct lab_work w = send_of(i * 100, 90);

		w.wr_id = i;
		lab_peer_fill(p[0], i * 100, 90, i);
		lab_peer_post(p[0], &w);
	}
	/* the requester does nothing any more */
	for (unsigned i = 0; i < 30; i++)
		lab_peer_receive(p[1], i, i * 100, 90);
	for (unsigned i = 0; i < 30; i++) {
		assert_int_equal(lab_peer_received(p[1], IBV_WC_SUCCESS).wr_id, i);
		lab_peer_expect(p[1], i * 100, 90, i);
	}
	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).wr_id, i);
}

/* A WRITE behind a SEND that waits may not overtake it. */
LAB_CASE_BOTH(nothing_overtakes_a_request_that_waits)
{
	struct lab_work w = {
		.opcode = IBV_WR_RDMA_WRITE, .n = 1, .piece = { { 512, 8, 0 } }, .remote = 512
	};
	struct lab_work first = send_of(0, 8);
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(NULL, state);

	lab_peer_fill(p[0], 512, 8, 1);
	lab_peer_fill(p[1], 512, 8, 2);
	lab_peer_post(p[0], &first);
	w.to = p[1];
	lab_peer_post(p[0], &w);
	assert_int_equal(lab_peer_try_sent(p[0], &wc), 0);
	lab_peer_expect(p[1], 512, 8, 2);
	lab_peer_receive(p[1], 1, 0, 8);
	lab_peer_received(p[1], IBV_WC_SUCCESS);
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
	lab_peer_expect(p[1], 512, 8, 1);
}

LAB_CASE_BOTH(without_retries_the_first_rnr_ends_it)
{
	const struct lab_peer_options o = { .timeout = 14, .retry_cnt = 7, .rnr_retry = 0 };
	struct lab_work w = send_of(0, 10);
	struct lab_peer **p = lab_peers(&o, state);

	lab_peer_do(p[0], &w, IBV_WC_RNR_RETRY_EXC_ERR);
	lab_peer_expect_state(p[0], IBV_QPS_ERR);
	lab_peer_expect_state(p[1], IBV_QPS_RTS);
	lab_peer_no_event(p[1]);
}

LAB_CASE_BOTH(each_number_of_rnr_retries_ends)
{
	for (uint8_t retries = 1; retries < 7; retries++) {
		const struct lab_peer_options o = { .rnr_retry = retries, .min_rnr_timer = 14 };
		struct lab_work w = send_of(0, 10);
		struct lab_peer **p = lab_peers(&o, state);

		lab_peer_post(p[0], &w);
		w.wr_id = 8;
		lab_peer_post(p[0], &w);
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_RNR_RETRY_EXC_ERR).wr_id, 7);
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_WR_FLUSH_ERR).wr_id, 8);
		lab_clean_up(NULL);
	}
}

/* Six times 491 ms; how quick this goes does not matter but for that. */
LAB_CASE_BOTH(a_receive_that_comes_in_time_is_used)
{
	const struct lab_peer_options o = { .rnr_retry = 6, .min_rnr_timer = 31 };
	struct lab_work w = send_of(0, 10);
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(&o, state);

	lab_peer_post(p[0], &w);
	assert_int_equal(lab_peer_try_sent(p[0], &wc), 0);
	lab_peer_receive(p[1], 1, 0, 10);
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
	lab_peer_received(p[1], IBV_WC_SUCCESS);
}

LAB_CASE_BOTH(a_requester_that_sleeps_is_woken)
{
	struct lab_peer_options o = { .channel = true, .rnr_retry = 7 };
	struct lab_work w = send_of(0, 10);
	struct lab_peer **p = lab_peers(&o, state);

	lab_peer_post(p[0], &w);
	lab_peer_arm(p[0]);
	lab_peer_receive(p[1], 1, 0, 10);
	lab_peer_sleep(p[0]);
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
	lab_clean_up(NULL);
	/* likewise when it gives up */
	o.rnr_retry = 1;
	p = lab_peers(&o, state);
	lab_peer_post(p[0], &w);
	lab_peer_arm(p[0]);
	lab_peer_sleep(p[0]);
	lab_peer_sent(p[0], IBV_WC_RNR_RETRY_EXC_ERR);
	/* by one event: a program that does not block takes it for an error if there is none */
	assert_int_equal(
	        poll(&(struct pollfd){ .fd = p[0]->here->channel->fd, .events = POLLIN }, 1, 0), 0);
}

/* ---- waiting for a responder ---- */

LAB_CASE_BOTH(a_responder_may_come_to_rtr_later)
{
	struct lab_peer_options o = { .timeout = 0, .retry_cnt = 7, .rnr_retry = 7 };
	struct lab_work w = send_of(0, 10);
	struct lab_peer *p[2];
	struct ibv_wc wc;

	p[0] = lab_peer(&o);
	o.host = 2;
	o.elsewhere = *state;
	p[1] = lab_peer(&o);
	lab_peer_connect(p[0], p[1]);
	lab_peer_to_init(p[1]);
	lab_peer_receive(p[1], 1, 0, 10);
	lab_peer_post(p[0], &w);
	assert_int_equal(lab_peer_try_sent(p[0], &wc), 0);
	lab_peer_to_rtr(p[1], p[0]);
	/* the responder goes on with it by itself */
	lab_peer_received(p[1], IBV_WC_SUCCESS);
	lab_peer_event(p[1], IBV_EVENT_COMM_EST);
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
	lab_peer_to_rts(p[1]);
	lab_peer_no_event(p[1]);
}

/* Whatever comes first, a WRITE too, tells that the communication is established; once. */
LAB_CASE_BOTH(a_write_establishes_communication_too)
{
	struct lab_work w = { .opcode = IBV_WR_RDMA_WRITE, .n = 1, .piece = { { 0, 8, 0 } } };
	struct lab_peer_options o = { .timeout = 0, .rnr_retry = 7 };
	struct lab_peer *p[2];

	p[0] = lab_peer(&o);
	o.host = 2;
	o.elsewhere = *state;
	p[1] = lab_peer(&o);
	lab_peer_connect(p[0], p[1]);
	lab_peer_to_init(p[1]);
	lab_peer_to_rtr(p[1], p[0]);
	w.to = p[1];
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_event(p[1], IBV_EVENT_COMM_EST);
	lab_peer_no_event(p[1]);
}

LAB_CASE_BOTH(without_a_responder_retries_end)
{
	const struct lab_peer_options o = { .timeout = 8, .retry_cnt = 2, .rnr_retry = 7 };
	struct lab_work w = send_of(0, 10);
	struct lab_peer **p = lab_peers(&o, state);

	lab_peer_destroy_qp(p[1]);
	lab_peer_do(p[0], &w, IBV_WC_RETRY_EXC_ERR);
	lab_peer_expect_state(p[0], IBV_QPS_ERR);
}

LAB_CASE_BOTH(psns_that_differ_reach_nobody)
{
	const struct lab_peer_options o = {
		.timeout = 8, .retry_cnt = 2, .rnr_retry = 7, .sq_psn = 5, .rq_psn = 6
	};
	struct lab_work w = send_of(0, 10);
	struct lab_peer **p = lab_peers(&o, state);

	lab_peer_receive(p[1], 1, 0, 10);
	lab_peer_do(p[0], &w, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(lab_peer_state(p[1]), IBV_QPS_RTS);
}

static void again(struct lab_peer *p, const struct lab_peer *peer)
{
	lab_peer_to(p, IBV_QPS_RESET);
	lab_peer_connect(p, peer);
}

LAB_CASE_BOTH(who_acknowledges_elsewhere_is_not_heard)
{
	const struct lab_peer_options o = { .timeout = 8, .retry_cnt = 2, .rnr_retry = 7 };
	struct lab_work w = send_of(0, 10);
	struct lab_peer **p = lab_peers(&o, state);

	if (p[0]->address.path.is_global) /* RoCE has no LIDs */
		return;
	p[1]->o.lid_xor = 0x40;
	again(p[1], p[0]);
	lab_peer_receive(p[1], 1, 0, 10);
	lab_peer_do(p[0], &w, IBV_WC_RETRY_EXC_ERR);
	p[1]->o.lid_xor = 0;
	for (int i = 0; i < 2; i++)
		again(p[i], p[!i]);
	lab_peer_receive(p[1], 2, 0, 10);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_received(p[1], IBV_WC_SUCCESS);
}

LAB_CASE_BOTH(packets_of_another_size_are_no_request)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
		                                      IBV_WR_RDMA_READ };
	struct lab_peer **p;

	for (unsigned i = 0; i < 6; i++) {
		struct lab_work w = send_of(0, 256);
		enum ibv_wc_status status;

		w.opcode = opcodes[i / 2];
		status =
		        w.opcode == IBV_WR_RDMA_READ ? IBV_WC_BAD_RESP_ERR : IBV_WC_REM_INV_REQ_ERR;
		p = lab_peers(NULL, state);
		w.to = p[1];
		p[i % 2]->o.path_mtu = IBV_MTU_256; /* the other one's is 1024 */
		again(p[i % 2], p[!(i % 2)]);
		lab_peer_receive(p[1], 1, 0, 1000);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		lab_peer_receive(p[1], 2, 0, 1000);
		w.piece[0].length = 257;
		lab_peer_do(p[0], &w, status);
		lab_peer_expect_state(p[0], IBV_QPS_ERR);
		if (status == IBV_WC_REM_INV_REQ_ERR)
			lab_peer_expect_state(p[1], IBV_QPS_ERR);
	}
}

/* Either end may begin anew where the other one is: behind three messages. */
LAB_CASE_BOTH(one_end_goes_on_with_the_next_psn)
{
	const struct lab_peer_options o = {
		.timeout = 8, .retry_cnt = 2, .rnr_retry = 7, .sq_psn = 0xFFFFFE, .rq_psn = 0xFFFFFE
	};
	struct lab_work w = send_of(0, 10);
	struct lab_peer **p = lab_peers(&o, state);

	for (unsigned i = 0; i < 9; i++) {
		lab_peer_receive(p[1], i, 0, 10);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		assert_int_equal(lab_peer_received(p[1], IBV_WC_SUCCESS).wr_id, i);
		if (i == 2) {
			p[1]->o.rq_psn = 1;
			again(p[1], p[0]);
		}
		if (i == 5) {
			p[0]->o.sq_psn = 4;
			again(p[0], p[1]);
		}
	}
}

LAB_CASE_BOTH(a_requester_that_sleeps_learns_that_retries_ended)
{
	const struct lab_peer_options o = { .timeout = 8, .retry_cnt = 2, .channel = true };
	struct lab_work w = send_of(0, 10);
	struct lab_peer **p = lab_peers(&o, state);

	lab_peer_destroy_qp(p[1]);
	lab_peer_post(p[0], &w);
	lab_peer_arm(p[0]);
	lab_peer_sleep(p[0]);
	lab_peer_sent(p[0], IBV_WC_RETRY_EXC_ERR);
}

LAB_CASE_BOTH(a_link_that_returns_in_time_is_no_error)
{
	const struct lab_peer_options o = { .timeout = 0, .retry_cnt = 7, .rnr_retry = 7 };
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(&o, state);

	for (int end = 1; end <= 2; end++) {
		struct lab_work w = send_of(0, 10);

		lab_peer_receive(p[1], 1, 0, 10);
		lab_link(end, false);
		lab_peer_post(p[0], &w);
		assert_int_equal(lab_peer_try_sent(p[0], &wc), 0);
		assert_int_equal(lab_peer_try_received(p[1], &wc), 0);
		lab_link(end, true);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
		lab_peer_received(p[1], IBV_WC_SUCCESS);
		lab_peer_event(p[end - 1], IBV_EVENT_PORT_ERR);
		lab_peer_event(p[end - 1], IBV_EVENT_PORT_ACTIVE);
	}
}

LAB_CASE_BOTH(a_link_that_stays_away_is_a_retry_error)
{
	const struct lab_peer_options o = { .timeout = 8, .retry_cnt = 1, .rnr_retry = 7 };
	struct lab_work w = send_of(0, 10);
	struct lab_peer **p = lab_peers(&o, state);

	lab_peer_receive(p[1], 1, 0, 10);
	lab_link(2, false);
	lab_peer_do(p[0], &w, IBV_WC_RETRY_EXC_ERR);
	lab_link(2, true);
}

/* ---- failures ---- */

static void expect_failed_receive(struct lab_peer *p[2], struct lab_work *w,
                                  enum ibv_wc_status remote, enum ibv_wc_status local)
{
	lab_peer_receive(p[1], 2, 0, 64);
	lab_peer_fill(p[1], 0, LAB_PEER_BYTES, 9);
	lab_peer_do(p[0], w, remote);
	lab_peer_expect(p[1], 0, LAB_PEER_BYTES, 9);
	lab_peer_expect_state(p[0], IBV_QPS_ERR);
	assert_int_equal(lab_peer_received(p[1], local).wr_id, 1);
	assert_int_equal(lab_peer_received(p[1], IBV_WC_WR_FLUSH_ERR).wr_id, 2);
	lab_peer_expect_state(p[1], IBV_QPS_ERR);
}

LAB_CASE_BOTH(a_receive_that_is_too_small_fails_both_ends)
{
	const uint32_t lengths[] = { 33, 6000 };

	for (int i = 0; i < 2; i++) {
		struct lab_work w = send_of(0, lengths[i]);
		struct lab_peer **p = lab_peers(NULL, state);

		lab_peer_receive(p[1], 1, 0, 32);
		expect_failed_receive(p, &w, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR);
		lab_clean_up(NULL);
	}
}

LAB_CASE_BOTH(a_receive_with_a_wrong_key_fails_both_ends)
{
	const uint32_t lengths[] = { 33, 6000 };

	for (int i = 0; i < 2; i++) {
		struct lab_work w = send_of(0, lengths[i]);
		struct lab_work r = { .wr_id = 1, .n = 1, .piece = { { 0, 8000, 1 } } };
		struct lab_peer **p = lab_peers(NULL, state);

		assert_int_equal(lab_peer_try_receive(p[1], &r), 0);
		expect_failed_receive(p, &w, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
		lab_clean_up(NULL);
	}
}

/* The responder's queue pair fails when the message comes, not when its program looks. */
LAB_CASE_BOTH(a_failed_receive_shows_in_the_state_at_once)
{
	struct lab_work w = send_of(0, 33);
	struct lab_peer **p = lab_peers(NULL, state);

	lab_peer_receive(p[1], 1, 0, 32);
	lab_peer_do(p[0], &w, IBV_WC_REM_INV_REQ_ERR);
	lab_peer_expect_state(p[1], IBV_QPS_ERR);
	lab_peer_received(p[1], IBV_WC_LOC_LEN_ERR);
}

LAB_CASE_BOTH(waiting_requests_fail_in_order_when_one_fails)
{
	struct lab_peer **p = lab_peers(NULL, state);

	for (unsigned i = 0; i < 5; i++) {
		struct lab_work w = send_of(0, i == 2 ? 100 : 10);

		w.wr_id = i;
		lab_peer_post(p[0], &w);
	}
	for (unsigned i = 0; i < 5; i++)
		lab_peer_receive(p[1], i, 0, 50);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(lab_peer_sent(p[0], i < 2    ? IBV_WC_SUCCESS
		                                     : i == 2 ? IBV_WC_REM_INV_REQ_ERR
		                                              : IBV_WC_WR_FLUSH_ERR)
		                         .wr_id,
		                 i);
	for (unsigned i = 0; i < 5; i++)
		lab_peer_received(p[1], i < 2    ? IBV_WC_SUCCESS
		                        : i == 2 ? IBV_WC_LOC_LEN_ERR
		                                 : IBV_WC_WR_FLUSH_ERR);
}

/* The responder's own requests, which wait, are flushed; also if it sleeps until they are done. */
LAB_CASE_BOTH(a_responder_that_fails_flushes_what_it_had_to_send)
{
	const struct lab_peer_options o = { .channel = true, .rnr_retry = 7 };
	const uint32_t lengths[] = { 10, 100 };

	for (int i = 0; i < 2; i++) {
		struct lab_work mine = send_of(0, 10), w = send_of(0, lengths[i]);
		struct lab_peer **p = lab_peers(&o, state);

		lab_peer_post(p[1], &mine);
		lab_peer_arm(p[1]);
		if (i == 0) {
			w.opcode = IBV_WR_RDMA_WRITE;
			w.to = p[1];
			w.rkey_xor = 1;
		} else {
			lab_peer_receive(p[1], 1, 0, 10);
		}
		lab_peer_do(p[0], &w, i ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR);
		lab_peer_sleep(p[1]);
		lab_peer_sent(p[1], IBV_WC_WR_FLUSH_ERR);
		lab_clean_up(NULL);
	}
}

/* ---- queues ---- */

LAB_CASE_BOTH(a_full_send_queue_refuses_more)
{
	const struct lab_peer_options o = { .cap = { .max_send_wr = 4 }, .rnr_retry = 7 };
	struct lab_work w = send_of(0, 10);
	struct lab_peer **p = lab_peers(&o, state);

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++)
			lab_peer_post(p[0], &w);
		assert_int_equal(lab_peer_try_post(p[0], &w), ENOMEM);
		for (int i = 0; i < 4; i++)
			lab_peer_receive(p[1], 1, 0, 10);
		for (int i = 0; i < 4; i++)
			lab_peer_sent(p[0], IBV_WC_SUCCESS);
		for (int i = 0; i < 4; i++)
			lab_peer_received(p[1], IBV_WC_SUCCESS);
	}
}

LAB_CASE_BOTH(unsignalled_requests_make_room_by_a_later_completion)
{
	const struct lab_peer_options o = { .cap = { .max_send_wr = 4 }, .rnr_retry = 7 };
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(&o, state);

	for (int round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 4; i++) {
			struct lab_work w = send_of(0, 10);

			w.unsignalled = i != 3;
			w.wr_id = i;
			lab_peer_post(p[0], &w);
			lab_peer_receive(p[1], 1, 0, 10);
			lab_peer_received(p[1], IBV_WC_SUCCESS);
		}
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).wr_id, 3);
		assert_int_equal(lab_peer_try_sent(p[0], &wc), 0);
	}
}

LAB_CASE_BOTH(a_destroyed_queue_pair_takes_its_waiting_requests_along)
{
	struct lab_work w = send_of(0, 10);
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(NULL, state);

	for (int i = 0; i < 10; i++)
		lab_peer_post(p[0], &w);
	lab_peer_destroy_qp(p[0]);
	assert_int_equal(lab_peer_try_sent(p[0], &wc), 0);
	lab_peer_receive(p[1], 1, 0, 10);
	assert_int_equal(lab_peer_try_received(p[1], &wc), 0);
	lab_peer_expect_state(p[1], IBV_QPS_RTS);
}

/* ---- threads ---- */

#define THREADS  4
#define MESSAGES 1000

static void *send_many(void *o)
{
	struct lab_peer *p = o;
	struct lab_work w = send_of(0, 16);

	w.unsignalled = true;
	for (int i = 0; i < MESSAGES;)
		if (!lab_peer_try_post(p, &w))
			i++;
	return NULL;
}

static void *receive_many(void *o)
{
	struct lab_peer *p = o;
	struct ibv_wc wc;

	for (int i = 0; i < THREADS * MESSAGES; i++) {
		lab_peer_receive(p, (uint64_t)i, 0, 16);
		wc = lab_peer_received(p, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
	}
	return NULL;
}

/* Nor does it matter that older messages wait. */
LAB_CASE(a_send_completes_before_its_answer_when_many_are_polled)
{
	const struct lab_peer_options o = { .one_cq = true, .rnr_retry = 7 };
	struct lab_work w = send_of(0, 10);
	struct ibv_wc wc[3];
	struct lab_peer **p = lab_peers(&o, state);

	for (unsigned i = 0; i < 20; i++) {
		for (int k = 0; k < 2; k++)
			lab_peer_receive(p[0], i, 100, 10);
		lab_peer_receive(p[1], i, 100, 10);
		lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
		lab_peer_post(p[0], &w);
		assert_int_equal(lab_peer_sent(p[1], IBV_WC_SUCCESS).opcode, IBV_WC_RECV);
		lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
		lab_poll(p[0]->here->send_cq, 3, wc);
		assert_int_equal(wc[2].opcode, IBV_WC_RECV);
	}
}

LAB_CASE_BOTH(a_send_completes_before_its_answer_is_polled)
{
	const struct lab_peer_options o = { .one_cq = true,
		                            .rnr_retry = 7,
		                            .cap = { .max_send_wr = 4 } };
	struct lab_work w = send_of(0, 10);
	struct lab_peer **p = lab_peers(&o, state);

	for (unsigned i = 0; i < 60; i++) {
		lab_peer_receive(p[0], i, 100, 10);
		lab_peer_receive(p[1], i, 100, 10);
	}
	/* each polls one completion at a time, and only until a message has come: if what was sent
	 * before it did not come first, the send queue would fill */
	for (unsigned i = 0; i < 60; i++) {
		for (int k = 0; k < 2; k++) {
			struct ibv_wc wc = { .opcode = IBV_WC_SEND };

			assert_int_equal(lab_peer_try_post(p[k], &w), 0);
			while (wc.opcode != IBV_WC_RECV)
				wc = lab_peer_sent(p[!k], IBV_WC_SUCCESS);
		}
	}
}

LAB_CASE_BOTH(threads_may_post_to_one_queue_pair)
{
	const struct lab_peer_options o = { .cap = { .max_send_wr = 8000 },
		                            .cqe = 8000,
		                            .rnr_retry = 7 };
	pthread_t thread[THREADS], receiver;
	struct lab_peer **p = lab_peers(&o, state);

	assert_int_equal(pthread_create(&receiver, NULL, receive_many, p[1]), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, send_many, p[0]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pthread_join(receiver, NULL);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
