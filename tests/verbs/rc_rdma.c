/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMA WRITE, RDMA READ and atomic operations over RC: what they do to memory, what completes, and
 * how a responder refuses them.
 * On RoCE, too.
 */
#include "peer_lab.h"

#define MIB  1048576u
#define PAGE 4096u

static struct lab_work write_of(struct lab_peer *to, uint64_t at, uint64_t remote, uint32_t length)
{
	return (struct lab_work){ .opcode = IBV_WR_RDMA_WRITE,
		                  .wr_id = 7,
		                  .n = 1,
		                  .piece = { { at, length, 0 } },
		                  .to = to,
		                  .remote = remote };
}

static struct lab_work read_of(struct lab_peer *to, uint64_t at, uint64_t remote, uint32_t length)
{
	struct lab_work w = write_of(to, at, remote, length);

	w.opcode = IBV_WR_RDMA_READ;
	return w;
}

static struct lab_work atomic_of(struct lab_peer *to, enum ibv_wr_opcode opcode, uint64_t remote,
                                 uint64_t compare_add, uint64_t swap)
{
	struct lab_work w = write_of(to, 0, remote, 8);

	w.opcode = opcode;
	w.compare_add = compare_add;
	w.swap = swap;
	return w;
}

static uint64_t word_at(struct lab_peer *p, uint64_t at)
{
	uint64_t word;

	lab_peer_get(p, at, &word, sizeof(word));
	return word;
}

static void put_word(struct lab_peer *p, uint64_t at, uint64_t word)
{
	lab_peer_put(p, at, &word, sizeof(word));
}

/* ---- what they do ---- */

static const uint32_t sizes[] = { 0, 1, 7, 63, 64, 65, 4095, 4096, 4097, MIB - 3, 3 * MIB };

LAB_CASE_BOTH(a_write_of_any_size_and_alignment_lands_exactly)
{
	const struct lab_peer_options o = { .bytes = 4 * MIB };
	struct lab_peer **p = lab_peers(&o, state);

	for (unsigned i = 0; i < LAB_ARRAY(sizes); i++) {
		uint32_t n = sizes[i];
		struct lab_work w = write_of(p[1], 5 + i, 1001 + i, n);

		lab_peer_fill(p[0], 5 + i, n, i);
		lab_peer_fill(p[1], 0, n + 2048, 99);
		w.by_wr = i % 2;
		assert_int_equal(lab_peer_do(p[0], &w, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
		lab_peer_expect(p[1], 1001 + i, n, i);
		lab_peer_expect(p[1], 0, 1001 + i, 99);
	}
}

LAB_CASE_BOTH(a_read_of_any_size_and_alignment_fetches_exactly)
{
	const struct lab_peer_options o = { .bytes = 4 * MIB };
	struct lab_peer **p = lab_peers(&o, state);

	for (unsigned i = 0; i < LAB_ARRAY(sizes); i++) {
		uint32_t n = sizes[i];
		struct lab_work w = read_of(p[1], 1001 + i, 3 + i, n);

		lab_peer_fill(p[0], 0, n + 2048, 99);
		lab_peer_fill(p[1], 3 + i, n, i);
		w.by_wr = i % 2;
		assert_int_equal(lab_peer_do(p[0], &w, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
		lab_peer_expect(p[0], 1001 + i, n, i);
		lab_peer_expect(p[0], 0, 1001 + i, 99);
	}
}

LAB_CASE_BOTH(entries_are_gathered_and_scattered_in_order)
{
	struct lab_work w = {
		.n = 4,
		.piece = { { 100, 10, 0 }, { 50, 0, 1 }, { 300, 90, 0 }, { 10, 3, 0 } },
		.remote = 1000
	};
	uint8_t got[103];
	struct lab_peer **p = lab_peers(NULL, state);

	w.to = p[1];
	lab_peer_fill(p[0], 0, 512, 1);
	w.opcode = IBV_WR_RDMA_WRITE;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_get(p[1], 1000, got, sizeof(got));
	for (unsigned i = 0; i < sizeof(got); i++)
		assert_int_equal(got[i], lab_pattern(1, i < 10    ? 100 + i
		                                        : i < 100 ? 290 + i
		                                                  : i - 90));
	lab_peer_fill(p[0], 0, 512, 2);
	w.opcode = IBV_WR_RDMA_READ;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_get(p[0], 300, got, 90);
	for (unsigned i = 0; i < 90; i++)
		assert_int_equal(got[i], lab_pattern(1, 300 + i));
}

LAB_CASE_BOTH(inline_data_may_change_after_posting)
{
	struct lab_peer **p = lab_peers(NULL, state);

	for (int by_wr = 0; by_wr < 2; by_wr++) {
		struct lab_work w = write_of(p[1], 0, 256, 48);

		w.flags = IBV_SEND_INLINE;
		w.piece[0].key_xor = ~0u; /* inline data needs no key */
		w.by_wr = by_wr;
		lab_peer_fill(p[0], 0, 48, 4);
		lab_peer_post(p[0], &w);
		lab_peer_fill(p[0], 0, 48, 5);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
		lab_peer_expect(p[1], 256, 48, 4);
	}
}

/* Of as many bytes as there are entries, each to its own, from the last entry's to the first's. */
static int post_read(struct lab_peer *p, const struct lab_peer *from, struct ibv_sge *sge, int n)
{
	struct ibv_send_wr wr = { .wr_id = 7,
		                  .opcode = IBV_WR_RDMA_READ,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .sg_list = sge,
		                  .num_sge = n },
	                   *bad;

	for (int i = 0; i < n; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)p->here->memory + (size_t)(n - 1 - i), 1,
			                   p->lkey };
	wr.wr.rdma.remote_addr = from->address.addr;
	wr.wr.rdma.rkey = from->address.rkey;
	return ibv_post_send(p->here->qp, &wr, &bad);
}

LAB_CASE_BOTH(a_read_has_as_many_entries_as_the_device_says)
{
	struct lab_peer_options o = { .cap = { .max_send_wr = 4, .max_recv_wr = 4 } };
	struct ibv_device_attr attr;
	struct ibv_sge sge[257];
	struct lab_peer **p;

	assert_int_equal(ibv_query_device(lab_open(1), &attr), 0);
	assert_in_range(attr.max_sge_rd, 1, 256);
	o.cap.max_send_sge = o.cap.max_recv_sge = (uint32_t)attr.max_sge_rd;
	p = lab_peers(&o, state);
	lab_peer_fill(p[1], 0, LAB_PEER_BYTES, 5);
	assert_int_equal(post_read(p[0], p[1], sge, attr.max_sge_rd), 0);
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
	for (int i = 0; i < attr.max_sge_rd; i++)
		assert_int_equal((uint8_t)p[0]->here->memory[attr.max_sge_rd - 1 - i],
		                 lab_pattern(5, (size_t)i));
	assert_int_equal(post_read(p[0], p[1], sge, attr.max_sge_rd + 1), EINVAL);
}

LAB_CASE_BOTH(a_write_with_immediate_uses_a_receive)
{
	struct lab_work w;
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(NULL, state);

	lab_peer_receive(p[1], 41, 0, 0);
	lab_peer_fill(p[0], 0, 5000, 3);
	w = write_of(p[1], 0, 512, 5000);
	w.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	w.imm = htobe32(0x12345678);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	wc = lab_peer_received(p[1], IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 41);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, 5000);
	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htobe32(0x12345678));
	lab_peer_expect(p[1], 512, 5000, 3);
}

LAB_CASE_BOTH(compare_and_swap_swaps_only_what_equals)
{
	struct lab_work w;
	struct lab_peer **p = lab_peers(NULL, state);

	put_word(p[1], 64, 10);
	w = atomic_of(p[1], IBV_WR_ATOMIC_CMP_AND_SWP, 64, 10, 20);
	assert_int_equal(lab_peer_do(p[0], &w, IBV_WC_SUCCESS).opcode, IBV_WC_COMP_SWAP);
	assert_int_equal(word_at(p[0], 0), 10);
	assert_int_equal(word_at(p[1], 64), 20);
	w.by_wr = true;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	assert_int_equal(word_at(p[0], 0), 20);
	assert_int_equal(word_at(p[1], 64), 20);
}

LAB_CASE_BOTH(fetch_and_add_wraps)
{
	struct lab_work w;
	struct lab_peer **p = lab_peers(NULL, state);

	put_word(p[1], 64, UINT64_MAX);
	w = atomic_of(p[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 3, 0);
	assert_int_equal(lab_peer_do(p[0], &w, IBV_WC_SUCCESS).opcode, IBV_WC_FETCH_ADD);
	assert_true(word_at(p[0], 0) == UINT64_MAX);
	assert_int_equal(word_at(p[1], 64), 2);
	w.by_wr = true;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	assert_int_equal(word_at(p[1], 64), 5);
}

#define ADDERS 4
#define ADDS   2000

struct adder {
	struct lab_peer *from, *to;
	struct lab_peer word; /* whose memory it adds to */
};

static void *add_many(void *o)
{
	struct adder *a = o;
	struct lab_work w = atomic_of(&a->word, IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 1, 0);

	for (int i = 0; i < ADDS; i++)
		lab_peer_do(a->from, &w, IBV_WC_SUCCESS);
	return NULL;
}

/* Requesters in several processes add to one word: their responders are in one process, and share
 * its protection domain. */
LAB_CASE_BOTH(additions_of_many_requesters_are_all_there)
{
	struct lab_peer_options here = { .host = 1, .timeout = 14, .retry_cnt = 7 };
	struct lab_peer_options there = { .host = 2, .timeout = 14, .retry_cnt = 7 };
	struct adder a[ADDERS];
	pthread_t thread[ADDERS];

	for (int i = 0; i < ADDERS; i++) {
		here.neighbour = i ? a[0].to : NULL;
		a[i].to = lab_peer(&here);
		there.elsewhere = *state;
		a[i].from = lab_peer(&there);
		lab_peer_connect(a[i].to, a[i].from);
		lab_peer_connect(a[i].from, a[i].to);
		a[i].word = *a[0].to;
	}
	put_word(a[0].to, 64, 0);
	for (int i = 0; i < ADDERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, add_many, &a[i]), 0);
	for (int i = 0; i < ADDERS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(word_at(a[0].to, 64), ADDERS * ADDS);
}

/* ---- what is refused ---- */

#define SERVED 3

/* A server of several peers with one completion queue, which looks at nothing else, hears of each
 * connection that fails, whether it had messages before or not. */
LAB_CASE_BOTH(one_of_many_that_is_refused_shows_in_the_queue_they_share)
{
	for (int i = 0; i < 2 * SERVED; i++) {
		struct lab_peer_options there = { .host = 2, .timeout = 14 };
		struct lab_peer_options here = { .host = 1, .timeout = 14, .elsewhere = *state };
		struct lab_peer *from[SERVED], *to[SERVED];
		const int refused = i % SERVED;
		const bool had_messages = i >= SERVED;
		struct lab_work w;

		for (int k = 0; k < SERVED; k++) {
			there.neighbour = k ? to[0] : NULL;
			there.shares_cqs = k;
			to[k] = lab_peer(&there);
			from[k] = lab_peer(&here);
			lab_peer_connect(to[k], from[k]);
			lab_peer_connect(from[k], to[k]);
			lab_peer_receive(to[k], 10 + k, 0, 64);
		}
		for (int k = 0; had_messages && k < SERVED; k++) {
			w = (struct lab_work){ .opcode = IBV_WR_SEND,
				               .n = 1,
				               .piece = { { 0, 8 } } };
			lab_peer_do(from[k], &w, IBV_WC_SUCCESS);
			assert_int_equal(lab_peer_received(to[k], IBV_WC_SUCCESS).wr_id, 10 + k);
			lab_peer_receive(to[k], 10 + k, 0, 64);
		}
		w = write_of(to[refused], 0, 0, 8);
		w.rkey_xor = 1;
		lab_peer_do(from[refused], &w, IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(lab_peer_received(to[refused], IBV_WC_WR_FLUSH_ERR).wr_id,
		                 10 + refused);
		lab_clean_up(NULL);
	}
}

/* The request fails at both ends as the specification says, and no byte changes. */
static void expect_refused(struct lab_peer *p[2], const struct lab_work *w,
                           enum ibv_wc_status status, enum ibv_event_type event)
{
	lab_peer_fill(p[1], 0, LAB_PEER_BYTES, 9);
	lab_peer_receive(p[1], 1, 0, 64);
	lab_peer_do(p[0], w, status);
	lab_peer_expect(p[1], 0, LAB_PEER_BYTES, 9);
	lab_peer_expect_state(p[0], IBV_QPS_ERR);
	lab_peer_event(p[1], event);
	lab_peer_expect_state(p[1], IBV_QPS_ERR);
	assert_int_equal(lab_peer_received(p[1], IBV_WC_WR_FLUSH_ERR).wr_id, 1);
	lab_peer_do(p[0], w, IBV_WC_WR_FLUSH_ERR);
	lab_peer_no_event(p[0]);
	lab_peer_no_event(p[1]);
}

LAB_CASE_BOTH(a_wrong_key_is_a_remote_access_error)
{
	for (int i = 0; i < 5; i++) {
		const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
			                               IBV_WR_ATOMIC_CMP_AND_SWP,
			                               IBV_WR_ATOMIC_FETCH_AND_ADD,
			                               IBV_WR_RDMA_WRITE_WITH_IMM };
		struct lab_peer **p = lab_peers(NULL, state);
		struct lab_work w = atomic_of(p[1], opcodes[i], 64, 0, 0);

		w.rkey_xor = 1;
		expect_refused(p, &w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
		lab_clean_up(NULL);
	}
}

LAB_CASE_BOTH(an_address_outside_of_the_region_is_a_remote_access_error)
{
	const struct {
		uint64_t at;
		uint32_t length;
	} outside[] = { { LAB_PEER_BYTES - 7, 8 }, { (uint64_t)-8, 16 }, { (uint64_t)1 << 40, 1 } };

	for (unsigned i = 0; i < LAB_ARRAY(outside); i++) {
		struct lab_peer **p = lab_peers(NULL, state);
		struct lab_work w = write_of(p[1], 0, outside[i].at, outside[i].length);

		expect_refused(p, &w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
		lab_clean_up(NULL);
	}
}

LAB_CASE_BOTH(a_region_without_the_access_is_a_remote_access_error)
{
	const struct {
		enum ibv_wr_opcode opcode;
		unsigned access;
	} each[] = { { IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
		     { IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
		     { IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC } };

	for (unsigned i = 0; i < LAB_ARRAY(each); i++) {
		struct lab_peer_options o = { .no_access = each[i].access };
		struct lab_peer **p = lab_peers(&o, state);
		struct lab_work w = atomic_of(p[1], each[i].opcode, 64, 1, 1);

		expect_refused(p, &w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
		lab_clean_up(NULL);
	}
}

LAB_CASE_BOTH(a_queue_pair_without_the_access_is_an_invalid_request)
{
	const struct {
		enum ibv_wr_opcode opcode;
		unsigned access;
	} each[] = { { IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
		     { IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
		     { IBV_WR_ATOMIC_CMP_AND_SWP, IBV_ACCESS_REMOTE_ATOMIC } };

	for (unsigned i = 0; i < LAB_ARRAY(each); i++) {
		struct lab_peer_options o = { .no_qp_access = each[i].access };
		struct lab_peer **p = lab_peers(&o, state);
		struct lab_work w = atomic_of(p[1], each[i].opcode, 64, 1, 1);

		expect_refused(p, &w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
		lab_clean_up(NULL);
	}
}

LAB_CASE_BOTH(an_atomic_address_must_be_a_multiple_of_8)
{
	struct lab_peer **p = lab_peers(NULL, state);
	struct lab_work w = atomic_of(p[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 68, 1, 1);

	expect_refused(p, &w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

LAB_CASE_BOTH(without_resources_for_reads_they_are_invalid_requests)
{
	const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
		                               IBV_WR_ATOMIC_FETCH_AND_ADD };

	for (unsigned i = 0; i < LAB_ARRAY(opcodes); i++) {
		struct lab_peer_options o = { .no_read = 1 };
		struct lab_peer **p = lab_peers(&o, state);
		struct lab_work w = atomic_of(p[1], opcodes[i], 64, 1, 1);

		/* this is looked at before the key is */
		w.rkey_xor = 1;
		expect_refused(p, &w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
		lab_clean_up(NULL);
	}
}

LAB_CASE_BOTH(of_no_bytes_the_key_means_nothing)
{
	struct lab_peer **p = lab_peers(NULL, state);
	struct lab_work w = write_of(p[1], 0, 1u << 30, 0);

	w.rkey_xor = ~0u;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	w.n = 0;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	w.opcode = IBV_WR_RDMA_READ;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
}

/* A request whose own memory is wrong harms the requester alone, whatever else is wrong. */
LAB_CASE_BOTH(a_wrong_local_key_is_a_local_protection_error)
{
	const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		                               IBV_WR_ATOMIC_CMP_AND_SWP };

	for (unsigned i = 0; i < LAB_ARRAY(opcodes); i++) {
		struct lab_work w;
		struct lab_peer **p = lab_peers(NULL, state);

		lab_peer_fill(p[1], 0, LAB_PEER_BYTES, 9);
		w = atomic_of(p[1], opcodes[i], 64, 1, 1);
		w.piece[0].key_xor = 1;
		w.rkey_xor = 1;
		lab_peer_do(p[0], &w, IBV_WC_LOC_PROT_ERR);
		lab_peer_expect_state(p[0], IBV_QPS_ERR);
		lab_peer_expect_state(p[1], IBV_QPS_RTS);
		lab_peer_expect(p[1], 0, LAB_PEER_BYTES, 9);
		lab_peer_no_event(p[1]);
		lab_clean_up(NULL);
	}
}

LAB_CASE_BOTH(a_wrong_local_key_shows_even_if_the_responder_is_gone)
{
	const struct lab_peer_options o = { .timeout = 1 };
	struct lab_work w;
	struct lab_peer **p = lab_peers(&o, state);

	lab_peer_destroy_qp(p[1]);
	w = write_of(p[1], 0, 0, 64);
	w.piece[0].key_xor = 1;
	lab_peer_do(p[0], &w, IBV_WC_LOC_PROT_ERR);
}

LAB_CASE_BOTH(a_deregistered_region_is_not_reached)
{
	struct lab_work w;
	struct lab_peer **p = lab_peers(NULL, state);

	assert_int_equal(lab_peer_deregister(p[1]), 0);
	lab_peer_fill(p[1], 0, 64, 9);
	w = write_of(p[1], 0, 0, 64);
	lab_peer_do(p[0], &w, IBV_WC_REM_ACCESS_ERR);
	lab_peer_expect(p[1], 0, 64, 9);
}

LAB_CASE_BOTH(requests_behind_a_failed_one_are_flushed_in_order)
{
	struct lab_work w;
	struct lab_peer **p = lab_peers(NULL, state);

	lab_peer_fill(p[1], 64, 512, 9);
	for (unsigned i = 0; i < 8; i++) {
		w = write_of(p[1], 0, 0, 16);
		w.wr_id = i;
		w.unsignalled = i % 2;
		w.rkey_xor = i == 2;
		w.remote = i > 1 ? 64 : 0;
		lab_peer_post(p[0], &w);
	}
	assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).wr_id, 0);
	assert_int_equal(lab_peer_sent(p[0], IBV_WC_REM_ACCESS_ERR).wr_id, 2);
	for (unsigned i = 3; i < 8; i++)
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_WR_FLUSH_ERR).wr_id, i);
	lab_peer_expect(p[1], 64, 512, 9);
}

/* ---- limits and counters ---- */

/* As on mlx5: the requester has one READ or atomic operation under way at a time. */
LAB_CASE(a_requester_that_may_have_no_read_under_way_has_one)
{
	const struct lab_peer_options o = { .timeout = 14, .retry_cnt = 7, .no_reading = 1 };
	struct lab_work w;
	struct lab_peer **p = lab_peers(&o, state);

	for (unsigned i = 0; i < 20; i++) {
		w = read_of(p[1], 256, 0, 100);
		w.unsignalled = i < 19;
		lab_peer_fill(p[1], 0, 100, i);
		lab_peer_post(p[0], &w);
	}
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
	lab_peer_expect(p[0], 256, 100, 19);
	w = atomic_of(p[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 512, 1, 0);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
}

struct traffic {
	uint64_t xmit_pkts[2], rcv_pkts[2], xmit_bytes[2], rcv_bytes[2];
};

static struct traffic count_traffic(void)
{
	struct traffic t;

	for (int i = 0; i < 2; i++) {
		t.xmit_pkts[i] = lab_counter(i + 1, "xmit_pkts");
		t.rcv_pkts[i] = lab_counter(i + 1, "rcv_pkts");
		t.xmit_bytes[i] = lab_counter(i + 1, "xmit_bytes");
		t.rcv_bytes[i] = lab_counter(i + 1, "rcv_bytes");
	}
	return t;
}

/* Since @before, h1 has sent this to h2, and h2 this to h1. */
static void expect_traffic(const struct traffic *before, const uint64_t packets[2],
                           const uint64_t bytes[2])
{
	struct traffic t = count_traffic();

	for (int i = 0; i < 2; i++) {
		assert_int_equal(t.xmit_pkts[i] - before->xmit_pkts[i], packets[i]);
		assert_int_equal(t.rcv_pkts[!i] - before->rcv_pkts[!i], packets[i]);
		assert_int_equal(t.xmit_bytes[i] - before->xmit_bytes[i], bytes[i]);
		assert_int_equal(t.rcv_bytes[!i] - before->rcv_bytes[!i], bytes[i]);
	}
}

/* The MTU of the path is 1024. */
LAB_CASE_BOTH(responses_are_counted_at_the_port_that_sends_them)
{
	const struct lab_peer_options o = { .bytes = MIB, .timeout = 14, .retry_cnt = 7 };
	struct traffic before = count_traffic();
	struct lab_peer **p = lab_peers(&o, state);
	struct lab_work w = read_of(p[1], 0, 0, 10000);

	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	w = read_of(p[1], 0, 0, 0);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	w = atomic_of(p[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 0);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	expect_traffic(&before, (const uint64_t[]){ 3, 10 + 1 + 1 },
	               (const uint64_t[]){ 0, 10000 });
	before = count_traffic();
	w = write_of(p[1], 0, 0, 10000);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	expect_traffic(&before, (const uint64_t[]){ 10, 0 }, (const uint64_t[]){ 10000, 0 });
}

/* No matter which process carries them out: here the responder, when it posts the receive. */
LAB_CASE_BOTH(requests_that_waited_are_counted_once)
{
	struct traffic before = count_traffic();
	struct lab_peer **p = lab_peers(NULL, state);
	struct lab_work w = write_of(p[1], 0, 0, 5000);

	w.opcode = IBV_WR_SEND;
	lab_peer_post(p[0], &w);
	w = read_of(p[1], 0, 0, 5000);
	lab_peer_post(p[0], &w);
	lab_peer_receive(p[1], 1, 8192, 5000);
	lab_peer_received(p[1], IBV_WC_SUCCESS);
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
	expect_traffic(&before, (const uint64_t[]){ 5 + 1, 5 }, (const uint64_t[]){ 5000, 5000 });
}

/* ---- memory that the program protects ---- */

/* Three pages of a peer here. */
static void protect(struct lab_peer *p, int prot)
{
	assert_int_equal(mprotect(p->here->memory + PAGE, 3 * PAGE, prot), 0);
}

/* An HCA has pinned the pages, and does not notice. */
LAB_CASE_ELSEWHERE(protected_memory_is_reached_from_elsewhere)
{
	const struct lab_peer_options far = { .far = true };
	const int prots[] = { PROT_READ, PROT_NONE };
	struct lab_work write, read, add;
	uint64_t old;
	struct lab_peer **p = lab_peers(&far, state);

	write = write_of(p[0], 0, 100, 5 * PAGE);
	read = read_of(p[0], 0, 100, 5 * PAGE);
	add = atomic_of(p[0], IBV_WR_ATOMIC_FETCH_AND_ADD, 2 * PAGE, 3, 0);
	for (unsigned i = 0; i < LAB_ARRAY(prots); i++) {
		lab_peer_fill(p[1], 0, 5 * PAGE, 2 * i);
		protect(p[0], prots[i]);
		lab_peer_do(p[1], &write, IBV_WC_SUCCESS);
		protect(p[0], PROT_READ | PROT_WRITE);
		lab_peer_expect(p[0], 100, 5 * PAGE, 2 * i);
		lab_peer_fill(p[0], 100, 5 * PAGE, 2 * i + 1);
		protect(p[0], prots[i]);
		lab_peer_do(p[1], &read, IBV_WC_SUCCESS);
		lab_peer_expect(p[1], 0, 5 * PAGE, 2 * i + 1);
		protect(p[0], PROT_READ | PROT_WRITE);
		old = word_at(p[0], 2 * PAGE);
		protect(p[0], prots[i]);
		lab_peer_do(p[1], &add, IBV_WC_SUCCESS);
		protect(p[0], PROT_READ | PROT_WRITE);
		assert_int_equal(word_at(p[0], 2 * PAGE), old + 3);
	}
	assert_int_equal(munmap(p[0]->here->memory + PAGE, PAGE), 0);
	lab_peer_do(p[1], &write, IBV_WC_REM_OP_ERR);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
