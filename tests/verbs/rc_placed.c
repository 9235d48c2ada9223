/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Atomic writes and flushes over RC, which rdma-core calls ibv_wr_atomic_write() and ibv_wr_flush()
 * (InfiniBand specification, annex A19): what they do, and how they are refused.
 */
#include "peer_lab.h"

#define WORD 0x1122334455667788ull

static struct lab_work word_of(struct lab_peer *to, uint64_t remote, bool by_wr)
{
	return (struct lab_work){ .opcode = (enum ibv_wr_opcode)LAB_WR_ATOMIC_WRITE,
		                  .wr_id = 8,
		                  .n = by_wr ? 0 : 1,
		                  .piece = { { 16, 8, 0 } },
		                  .to = to,
		                  .remote = remote,
		                  .swap = WORD,
		                  .by_wr = by_wr };
}

static struct lab_work flush_of(struct lab_peer *to, uint64_t remote, size_t bytes)
{
	return (struct lab_work){ .opcode = (enum ibv_wr_opcode)LAB_WR_FLUSH,
		                  .wr_id = 9,
		                  .to = to,
		                  .remote = remote,
		                  .flush_bytes = bytes,
		                  .flush_type = LAB_FLUSH_GLOBAL,
		                  .by_wr = true };
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

/* ---- atomic writes ---- */

LAB_CASE_BOTH(an_atomic_write_writes_a_word)
{
	struct lab_work w;
	struct ibv_wc wc;
	struct lab_peer **p = lab_peers(NULL, state);

	put_word(p[0], 16, WORD);
	for (int by_wr = 0; by_wr < 2; by_wr++) {
		lab_peer_fill(p[1], 0, 256, 1);
		w = word_of(p[1], 64, by_wr);
		wc = lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, LAB_WC_ATOMIC_WRITE);
		assert_int_equal(wc.byte_len, 8);
		assert_true(word_at(p[1], 64) == WORD);
		lab_peer_expect(p[1], 0, 64, 1);
	}
}

LAB_CASE_BOTH(an_atomic_write_gathers_its_word)
{
	struct lab_work w;
	struct lab_peer **p = lab_peers(NULL, state);

	put_word(p[0], 16, WORD);
	w = word_of(p[1], 64, false);
	w.n = 2;
	w.piece[0] = (struct lab_piece){ 16, 3, 0 };
	w.piece[1] = (struct lab_piece){ 19, 5, 0 };
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	assert_true(word_at(p[1], 64) == WORD);
	w = word_of(p[1], 72, false);
	w.flags = IBV_SEND_INLINE;
	w.piece[0].key_xor = ~0u; /* inline data needs no key */
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	assert_true(word_at(p[1], 72) == WORD);
}

/* It waits in the queue behind a SEND that no receive is posted for. */
LAB_CASE_BOTH(an_atomic_write_that_waited_is_carried_out)
{
	struct lab_work send = { .opcode = IBV_WR_SEND }, w;
	struct lab_peer **p = lab_peers(NULL, state);

	put_word(p[0], 16, WORD);
	for (int by_wr = 0; by_wr < 2; by_wr++) {
		put_word(p[1], 64, 0);
		lab_peer_post(p[0], &send);
		w = word_of(p[1], 64, by_wr);
		lab_peer_post(p[0], &w);
		assert_int_equal(word_at(p[1], 64), 0);
		lab_peer_receive(p[1], 1, 0, 0);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).opcode, LAB_WC_ATOMIC_WRITE);
		assert_true(word_at(p[1], 64) == WORD);
	}
}

LAB_CASE(an_atomic_write_is_of_8_bytes)
{
	struct lab_peer **p = lab_peers(NULL, state);
	struct lab_work w = word_of(p[1], 64, false);

	w.piece[0].length = 7;
	assert_int_equal(lab_peer_try_post(p[0], &w), EINVAL);
	w.piece[0].length = 9;
	assert_int_equal(lab_peer_try_post(p[0], &w), EINVAL);
	w.n = 0;
	assert_int_equal(lab_peer_try_post(p[0], &w), EINVAL);
}

LAB_CASE_BOTH(an_atomic_write_elsewhere_than_at_a_multiple_of_8_is_invalid)
{
	struct lab_work w;
	struct lab_peer **p = lab_peers(NULL, state);

	put_word(p[1], 64, 0);
	put_word(p[1], 72, 0);
	w = word_of(p[1], 68, true);
	lab_peer_do(p[0], &w, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(word_at(p[1], 64) | word_at(p[1], 72), 0);
	lab_peer_event(p[1], IBV_EVENT_QP_REQ_ERR);
}

LAB_CASE_BOTH(an_atomic_write_needs_the_right_to_write)
{
	struct lab_peer_options o = { .timeout = 14, .retry_cnt = 7 };
	struct lab_peer **p;
	struct lab_work w;

	o.no_access = IBV_ACCESS_REMOTE_WRITE;
	p = lab_peers(&o, state);
	put_word(p[1], 64, 0);
	w = word_of(p[1], 64, true);
	lab_peer_do(p[0], &w, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(word_at(p[1], 64), 0);
	o.no_access = 0;
	o.no_qp_access = IBV_ACCESS_REMOTE_WRITE;
	p = lab_peers(&o, state);
	w = word_of(p[1], 64, true);
	lab_peer_do(p[0], &w, IBV_WC_REM_INV_REQ_ERR);
}

LAB_CASE(a_responder_without_resources_refuses_both)
{
	struct lab_peer_options o = {
		.timeout = 14, .retry_cnt = 7, .no_read = 1, .flush_access = LAB_ACCESS_FLUSH_GLOBAL
	};
	struct lab_peer **p = lab_peers(&o, state);
	struct lab_work w = word_of(p[1], 64, true);

	lab_peer_do(p[0], &w, IBV_WC_REM_INV_REQ_ERR);
	p = lab_peers(&o, state);
	w = flush_of(p[1], 0, 64);
	lab_peer_do(p[0], &w, IBV_WC_REM_INV_REQ_ERR);
}

#define ROUNDS 2000

struct adder {
	struct lab_peer *from, *to;
	struct lab_peer word; /* whose memory it adds to */
	_Atomic bool ends;
};

static void *add_until_the_end(void *o)
{
	struct adder *a = o;
	struct lab_work w = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		              .n = 1,
		              .piece = { { 0, 8, 0 } },
		              .to = &a->word,
		              .remote = 64,
		              .compare_add = 1 };

	while (!atomic_load(&a->ends))
		lab_peer_do(a->from, &w, IBV_WC_SUCCESS);
	return NULL;
}

/* One requester writes the upper half of a word, while another one adds to the lower half: what was
 * written stays. */
LAB_CASE_BOTH(an_atomic_write_is_atomic_among_atomics)
{
	struct lab_peer_options here = { .host = 1, .timeout = 14, .retry_cnt = 7 };
	struct lab_peer_options there = { .host = 2, .timeout = 14, .retry_cnt = 7 };
	struct adder a[2] = { 0 };
	struct lab_work w;
	pthread_t thread;

	there.elsewhere = *state;
	for (int i = 0; i < 2; i++) {
		here.neighbour = i ? a[0].to : NULL;
		a[i].to = lab_peer(&here);
		a[i].from = lab_peer(&there);
		lab_peer_connect(a[i].to, a[i].from);
		lab_peer_connect(a[i].from, a[i].to);
		a[i].word = *a[0].to;
	}
	put_word(a[0].to, 64, 0);
	assert_int_equal(pthread_create(&thread, NULL, add_until_the_end, &a[1]), 0);
	w = word_of(&a[0].word, 64, true);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		w.swap = i << 32;
		lab_peer_do(a[0].from, &w, IBV_WC_SUCCESS);
		assert_true(word_at(a[0].to, 64) >> 32 == i);
	}
	atomic_store(&a[1].ends, true);
	pthread_join(thread, NULL);
}

/* ---- flushes ---- */

static struct lab_peer **flush_peers(void *const *state)
{
	const struct lab_peer_options o = { .timeout = 14,
		                            .retry_cnt = 7,
		                            .rnr_retry = 7,
		                            .flush_access = LAB_ACCESS_FLUSH_GLOBAL };

	return lab_peers(&o, state);
}

LAB_CASE_BOTH(a_flush_of_bytes_or_of_the_region_succeeds)
{
	struct lab_peer **p = flush_peers(state);
	struct lab_work w = flush_of(p[1], 100, LAB_PEER_BYTES - 100);

	assert_int_equal(lab_peer_do(p[0], &w, IBV_WC_SUCCESS).opcode, LAB_WC_FLUSH);
	w = flush_of(p[1], 100, 0);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	w = flush_of(p[1], 12345678, (size_t)1 << 40); /* they do not matter */
	w.flush_level = LAB_FLUSH_MR;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
}

LAB_CASE_BOTH(a_flush_waits_for_what_was_posted_before)
{
	struct lab_peer **p = flush_peers(state);
	struct lab_work send = { .opcode = IBV_WR_SEND }, w;
	struct ibv_wc wc;

	lab_peer_post(p[0], &send);
	w = flush_of(p[1], 0, 64);
	lab_peer_post(p[0], &w);
	assert_int_equal(lab_peer_try_sent(p[0], &wc), 0);
	lab_peer_receive(p[1], 1, 0, 0);
	assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).opcode, LAB_WC_FLUSH);
}

LAB_CASE_BOTH(a_flush_of_what_is_not_there_is_refused)
{
	static const struct {
		uint64_t remote;
		size_t bytes;
		uint8_t level;
		uint32_t rkey_xor;
	} wrong[] = {
		{ 100, LAB_PEER_BYTES, LAB_FLUSH_RANGE, 0 },
		{ LAB_PEER_BYTES + 1, 0, LAB_FLUSH_RANGE, 0 },
		{ 0, 8, LAB_FLUSH_RANGE, ~0u },
		{ 0, 0, LAB_FLUSH_RANGE, ~0u }, /* the key counts for no bytes, too */
		{ 0, 8, LAB_FLUSH_MR, ~0u },
	};
	struct lab_work w;

	for (unsigned i = 0; i < LAB_ARRAY(wrong); i++) {
		struct lab_peer **p = flush_peers(state);

		w = flush_of(p[1], wrong[i].remote, wrong[i].bytes);
		w.flush_level = wrong[i].level;
		w.rkey_xor = wrong[i].rkey_xor;
		lab_peer_do(p[0], &w, IBV_WC_REM_ACCESS_ERR);
		lab_peer_event(p[1], IBV_EVENT_QP_ACCESS_ERR);
		lab_peer_expect_state(p[1], IBV_QPS_ERR);
	}
}

LAB_CASE_BOTH(a_flush_needs_its_right)
{
	struct lab_peer_options o = { .timeout = 14, .retry_cnt = 7 };
	struct lab_peer **p;
	struct lab_work w;

	p = lab_peers(&o, state); /* the queue pair does not let it in */
	w = flush_of(p[1], 0, 64);
	lab_peer_do(p[0], &w, IBV_WC_REM_INV_REQ_ERR);
	o.flush_access = o.no_flush_access = LAB_ACCESS_FLUSH_GLOBAL;
	p = lab_peers(&o, state); /* the region does not */
	w = flush_of(p[1], 0, 64);
	lab_peer_do(p[0], &w, IBV_WC_REM_ACCESS_ERR);
	/* to make persistent is another right; no region can have it */
	o.flush_access = LAB_ACCESS_FLUSH_GLOBAL | LAB_ACCESS_FLUSH_PERSISTENT;
	o.no_flush_access = LAB_ACCESS_FLUSH_PERSISTENT;
	p = lab_peers(&o, state);
	w = flush_of(p[1], 0, 64);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	w.flush_type = LAB_FLUSH_GLOBAL | LAB_FLUSH_PERSISTENT;
	lab_peer_do(p[0], &w, IBV_WC_REM_ACCESS_ERR);
}

LAB_CASE(a_flush_that_means_nothing_is_not_posted)
{
	static const struct {
		uint8_t type, level;
		size_t bytes;
	} wrong[] = {
		{ 0, LAB_FLUSH_RANGE, 8 },
		{ 4 | LAB_FLUSH_GLOBAL, LAB_FLUSH_RANGE, 8 },
		{ LAB_FLUSH_GLOBAL, 2, 8 },
		{ LAB_FLUSH_GLOBAL, LAB_FLUSH_RANGE, ((size_t)1 << 31) + 1 },
	};
	struct lab_peer **p = flush_peers(state);
	struct lab_work w;

	for (unsigned i = 0; i < LAB_ARRAY(wrong); i++) {
		w = flush_of(p[1], 0, wrong[i].bytes);
		w.flush_type = wrong[i].type;
		w.flush_level = wrong[i].level;
		assert_int_equal(lab_peer_try_post(p[0], &w), EINVAL);
	}
	w = flush_of(p[1], 0, 8);
	w.by_wr = false; /* struct ibv_send_wr has no place for what it needs */
	assert_int_equal(lab_peer_try_post(p[0], &w), EINVAL);
	w.by_wr = true;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
}

/* ---- what the device says ---- */

LAB_CASE(persistent_memory_is_not_offered)
{
	struct ibv_device_attr_ex attr;
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = lab_pd(context);
	static char memory[4096];

	errno = 0;
	assert_null(ibv_reg_mr(pd, memory, sizeof(memory), LAB_ACCESS_FLUSH_PERSISTENT));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_device_ex(context, NULL, &attr), 0);
	assert_true(attr.device_cap_flags_ex & (1ull << 38));  /* flush, globally visible */
	assert_false(attr.device_cap_flags_ex & (1ull << 39)); /* persistent */
	assert_true(attr.device_cap_flags_ex & (1ull << 40));  /* atomic write */
	if (attr.odp_caps.general_caps)
		assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps & (3 << 6), 3 << 6);
	assert_int_equal(attr.odp_caps.per_transport_caps.uc_odp_caps & (3 << 6), 0);
}

LAB_CASE(uc_has_neither)
{
	static const uint64_t ops[] = { LAB_EX_WITH_FLUSH, LAB_EX_WITH_ATOMIC_WRITE };
	const struct lab_peer_options o = { .type = IBV_QPT_UC };
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_UC,
		                            .cap = { 1, 1, 1, 1, 0 },
		                            .comp_mask = IBV_QP_INIT_ATTR_PD |
		                                         IBV_QP_INIT_ATTR_SEND_OPS_FLAGS };
	struct lab_work w;
	struct lab_peer **p = lab_peers(&o, state);

	init.pd = p[0]->here->pd;
	init.send_cq = init.recv_cq = p[0]->here->send_cq;
	for (unsigned i = 0; i < LAB_ARRAY(ops); i++) {
		init.send_ops_flags = ops[i];
		errno = 0;
		assert_null(ibv_create_qp_ex(p[0]->here->context, &init));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	w = word_of(p[1], 64, false);
	assert_int_equal(lab_peer_try_post(p[0], &w), EINVAL);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
