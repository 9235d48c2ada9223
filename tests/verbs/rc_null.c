/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Null regions (ibv_alloc_null_mr(3)) at both ends of an RC connection: they read as zeros, and
 * discard what is written, whichever end's thread carries the request out.
 */
#include "peer_lab.h"

#define BYTES 300000

static const uint32_t sizes[] = { 40, 3000, 5000, 200000 };

static void undo_mr(void *mr)
{
	ibv_dereg_mr(mr);
}

/* Of the peer, which is here. */
static struct ibv_mr *null_mr(const struct lab_peer *p)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(p->here->pd);

	assert_non_null(mr);
	lab_undo(undo_mr, mr);
	return mr;
}

/* p[0] is here, p[1] may be elsewhere. */
static struct lab_peer **make(void **state)
{
	const struct lab_peer_options o = { .bytes = BYTES, .rnr_retry = 7, .retry_cnt = 7 };
	struct lab_peer **p = lab_peers(&o, state);

	lab_peer_fill(p[0], 0, BYTES, 1);
	lab_peer_fill(p[1], 0, BYTES, 2);
	return p;
}

/* The first 4 bytes of the memory of @p, then @n that are nothing, then the next 4 bytes. */
static void entries(const struct lab_peer *p, const struct ibv_mr *null, uint32_t n,
                    struct ibv_sge sge[3])
{
	uint64_t at = (uintptr_t)p->here->memory;

	sge[0] = (struct ibv_sge){ .addr = at, .length = 4, .lkey = p->lkey };
	sge[1] = (struct ibv_sge){ .addr = UINT64_MAX - 5, .length = n, .lkey = null->lkey };
	sge[2] = (struct ibv_sge){ .addr = at + 4, .length = 4, .lkey = p->lkey };
}

static void post(struct lab_peer *p, const struct lab_peer *to, enum ibv_wr_opcode opcode,
                 struct ibv_sge *sge, int n)
{
	struct ibv_send_wr wr = { .wr_id = 5,
		                  .sg_list = sge,
		                  .num_sge = n,
		                  .opcode = opcode,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .wr.rdma = { .remote_addr = to->address.addr,
		                               .rkey = to->address.rkey } },
	                   *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = to->address.addr;
		wr.wr.atomic.rkey = to->address.rkey;
		wr.wr.atomic.compare_add = 1;
	}
	assert_int_equal(ibv_post_send(p->here->qp, &wr, &bad), 0);
}

static void expect_zeros_between(struct lab_peer *p, uint32_t n)
{
	uint8_t *got = malloc(n + 8);

	lab_peer_get(p, 0, got, n + 8);
	for (uint32_t i = 0; i < n + 8; i++)
		assert_int_equal(got[i], i < 4       ? lab_pattern(1, i)
		                         : i < n + 4 ? 0
		                                     : lab_pattern(1, i - n));
	free(got);
}

LAB_CASE_BOTH(zeros_are_sent)
{
	struct ibv_sge sge[3];
	struct lab_peer **p = make(state);

	for (unsigned i = 0; i < LAB_ARRAY(sizes); i++) {
		lab_peer_fill(p[1], 0, BYTES, 2);
		entries(p[0], null_mr(p[0]), sizes[i], sge);
		lab_peer_receive(p[1], 0, 0, BYTES);
		post(p[0], p[1], IBV_WR_SEND, sge, 3);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
		lab_peer_received(p[1], IBV_WC_SUCCESS);
		expect_zeros_between(p[1], sizes[i]);
	}
}

/* The responder goes on with what waited for its receive: the requester does not poll before. */
LAB_CASE_BOTH(zeros_are_sent_by_a_responder_that_helps)
{
	struct ibv_sge sge[3];
	struct lab_peer **p = make(state);

	for (unsigned i = 0; i < LAB_ARRAY(sizes); i++) {
		lab_peer_fill(p[1], 0, BYTES, 2);
		entries(p[0], null_mr(p[0]), sizes[i], sge);
		post(p[0], p[1], IBV_WR_SEND, sge, 3);
		lab_peer_receive(p[1], 0, 0, BYTES);
		lab_peer_received(p[1], IBV_WC_SUCCESS);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
		expect_zeros_between(p[1], sizes[i]);
	}
}

LAB_CASE_BOTH(zeros_are_written)
{
	struct ibv_sge sge[3];
	struct lab_peer **p = make(state);

	for (unsigned i = 0; i < LAB_ARRAY(sizes); i++) {
		lab_peer_fill(p[1], 0, BYTES, 2);
		entries(p[0], null_mr(p[0]), sizes[i], sge);
		post(p[0], p[1], IBV_WR_RDMA_WRITE, sge, 3);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
		expect_zeros_between(p[1], sizes[i]);
	}
}

/* Of the bytes of p[1] only those that surround the null entry have come. */
static void expect_rest(struct lab_peer *p[2], uint32_t n)
{
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal((uint8_t)p[0]->here->memory[i], lab_pattern(2, i < 4 ? i : i + n));
	for (uint32_t i = 8; i < BYTES; i++)
		assert_int_equal((uint8_t)p[0]->here->memory[i], lab_pattern(1, i));
}

LAB_CASE_BOTH(what_is_read_into_a_null_entry_is_gone)
{
	struct ibv_sge sge[3];
	struct lab_peer **p = make(state);

	for (unsigned i = 0; i < LAB_ARRAY(sizes); i++) {
		entries(p[0], null_mr(p[0]), sizes[i], sge);
		post(p[0], p[1], IBV_WR_RDMA_READ, sge, 3);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
		expect_rest(p, sizes[i]);
	}
}

LAB_CASE_BOTH(what_an_atomic_operation_brings_back_may_be_discarded)
{
	struct ibv_sge sge = { .length = 8 };
	uint64_t word = 41;
	struct lab_peer **p = make(state);

	sge.lkey = null_mr(p[0])->lkey;
	lab_peer_put(p[1], 0, &word, sizeof(word));
	post(p[0], p[1], IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1);
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
	lab_peer_get(p[1], 0, &word, sizeof(word));
	assert_int_equal(word, 42);
}

/* With the receive posted first, or the message first. */
LAB_CASE_BOTH(what_is_received_into_a_null_entry_is_gone)
{
	struct ibv_sge sge[3];
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 3 }, *bad;
	struct lab_work w = { .opcode = IBV_WR_SEND, .n = 1 };
	struct lab_peer **p = make(state);

	for (unsigned i = 0; i < 2 * LAB_ARRAY(sizes); i++) {
		uint32_t n = sizes[i / 2];

		lab_peer_fill(p[0], 0, 8, 1);
		entries(p[0], null_mr(p[0]), n, sge);
		w.piece[0].length = n + 8;
		if (i % 2)
			lab_peer_post(p[1], &w);
		assert_int_equal(ibv_post_recv(p[0]->here->qp, &wr, &bad), 0);
		if (i % 2 == 0)
			lab_peer_post(p[1], &w);
		assert_int_equal(lab_peer_received(p[0], IBV_WC_SUCCESS).byte_len, n + 8);
		lab_peer_sent(p[1], IBV_WC_SUCCESS);
		expect_rest(p, n);
	}
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
