/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMA WRITEs to memory that was used before (src/client/hca/memory/end.h), READs of it, and lists
 * of them: nothing is looked up any more, and all that a first request would be refused for is seen
 * all the same.
 *
 * umbel: --set exact_sizes=1
 * On RoCE, too.
 */
#include "peer_lab.h"

#define LENGTH 40u
#define LIST   20u

/* The kind of requests. */
static enum ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;

/* From where they copy, and to where. The first peer posts them. */
static struct lab_peer *source(struct lab_peer *p[2])
{
	return p[opcode == IBV_WR_RDMA_READ];
}

static struct lab_peer *sink(struct lab_peer *p[2])
{
	return p[opcode != IBV_WR_RDMA_READ];
}

/* @n requests that copy to the same offset, each its LENGTH bytes, all signalled. */
struct list {
	struct ibv_send_wr wr[LIST];
	struct ibv_sge sge[LIST];
};

static void make_list(struct list *l, unsigned n, const struct lab_peer *from,
                      const struct lab_peer *to)
{
	for (unsigned i = 0; i < n; i++) {
		l->sge[i] = (struct ibv_sge){ .addr = from->address.addr + i * LENGTH,
			                      .length = LENGTH,
			                      .lkey = from->lkey };
		l->wr[i] = (struct ibv_send_wr){
			.wr_id = i,
			.next = i + 1 < n ? &l->wr[i + 1] : NULL,
			.sg_list = &l->sge[i],
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = to->address.addr + i * LENGTH,
			             .rkey = to->address.rkey },
		};
	}
}

/* The index of the first one that is not posted, or LIST. */
static unsigned post(struct lab_peer *p, struct list *l, int error)
{
	struct ibv_send_wr *bad = NULL;

	assert_int_equal(ibv_post_send(p->here->qp, l->wr, &bad), error);
	return error ? (unsigned)(bad - l->wr) : LIST;
}

static void expect_done(struct lab_peer *p, unsigned from, unsigned n)
{
	for (unsigned i = from; i < from + n; i++)
		assert_int_equal(lab_peer_sent(p, IBV_WC_SUCCESS).wr_id, i);
}

/* The first @n have copied what they should, and nobody anything else. */
static void expect_copied(struct lab_peer *to, unsigned n)
{
	uint8_t got[LIST * LENGTH];

	lab_peer_get(to, 0, got, sizeof(got));
	for (unsigned i = 0; i < sizeof(got); i++)
		assert_int_equal(got[i], lab_pattern(i < n * LENGTH ? 1 : 2, i));
}

static struct lab_work work(const struct lab_peer *to, enum ibv_wr_opcode what, uint64_t remote,
                            uint32_t length)
{
	return (struct lab_work){
		.opcode = what, .n = 1, .piece = { { 0, length, 0 } }, .to = to, .remote = remote
	};
}

/* Two peers; the source has pattern 1, the sink 2, and both are known. */
static struct lab_peer **make(const struct lab_peer_options *o, void **state)
{
	struct lab_peer **p = lab_peers(o, state);
	struct lab_work w = work(p[1], opcode, 0, 64);

	for (int i = 0; i < 3; i++)
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_fill(source(p), 0, LAB_PEER_BYTES, 1);
	lab_peer_fill(sink(p), 0, LAB_PEER_BYTES, 2);
	return p;
}

LAB_CASE_BOTH(a_list_is_carried_out_in_its_order)
{
	struct list l;
	struct lab_peer **p = make(NULL, state);

	for (unsigned n = 1; n <= LIST; n++) {
		lab_peer_fill(sink(p), 0, LAB_PEER_BYTES, 2);
		make_list(&l, n, p[0], p[1]);
		post(p[0], &l, 0);
		expect_done(p[0], 0, n);
		expect_copied(sink(p), n);
	}
	/* all to one place: the last one stays */
	make_list(&l, LIST, p[0], p[1]);
	for (unsigned i = 0; i < LIST; i++)
		if (opcode == IBV_WR_RDMA_READ)
			l.sge[i].addr = p[0]->address.addr;
		else
			l.wr[i].wr.rdma.remote_addr = p[1]->address.addr;
	lab_peer_fill(source(p), (LIST - 1) * LENGTH, LENGTH, 7);
	post(p[0], &l, 0);
	expect_done(p[0], 0, LIST);
	lab_peer_expect(sink(p), 0, LENGTH, 7);
}

LAB_CASE_BOTH(other_requests_may_stand_between)
{
	struct list l;
	struct lab_peer **p = make(NULL, state);

	lab_peer_receive(p[1], 0, 8192, LENGTH);
	lab_peer_receive(p[1], 1, 8192 + LENGTH, LENGTH);
	make_list(&l, LIST, p[0], p[1]);
	l.wr[0].opcode = l.wr[11].opcode = IBV_WR_SEND;
	l.wr[19].opcode = IBV_WR_RDMA_READ;
	l.wr[19].wr.rdma.remote_addr = p[1]->address.addr; /* which nothing was written to */
	l.sge[12].length = 0;
	post(p[0], &l, 0);
	expect_done(p[0], 0, LIST);
	lab_peer_received(p[1], IBV_WC_SUCCESS);
	lab_peer_received(p[1], IBV_WC_SUCCESS);
	lab_peer_expect(p[0], 19 * LENGTH, LENGTH, 2);
}

LAB_CASE_BOTH(a_list_ends_with_the_request_that_is_refused)
{
	struct list l;
	struct lab_peer **p = make(NULL, state);

	make_list(&l, LIST, p[0], p[1]);
	l.wr[11].wr.rdma.rkey ^= 0x100;
	post(p[0], &l, 0);
	expect_done(p[0], 0, 11);
	lab_peer_sent(p[0], IBV_WC_REM_ACCESS_ERR);
	for (unsigned i = 12; i < LIST; i++)
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_WR_FLUSH_ERR).wr_id, i);
	expect_copied(sink(p), 11);
}

LAB_CASE_BOTH(a_list_ends_before_the_request_that_is_malformed)
{
	struct list l;
	struct lab_peer **p = make(NULL, state);

	make_list(&l, LIST, p[0], p[1]);
	l.wr[13].num_sge = -1;
	assert_int_equal(post(p[0], &l, EINVAL), 13);
	expect_done(p[0], 0, 13);
	expect_copied(sink(p), 13);
	l.wr[13].num_sge = 1;
	l.wr[13].send_flags |= IBV_SEND_INLINE;
	l.sge[13].length = 65; /* of 64 */
	assert_int_equal(post(p[0], &l, EINVAL), 13);
	expect_done(p[0], 0, 13);
	expect_copied(sink(p), 13);
}

LAB_CASE_BOTH(a_list_ends_where_the_send_queue_is_full)
{
	const struct lab_peer_options o = { .cap = { .max_send_wr = 13 } };
	struct list l;
	struct lab_peer **p = make(&o, state);

	make_list(&l, LIST, p[0], p[1]);
	assert_int_equal(post(p[0], &l, ENOMEM), 13);
	expect_copied(sink(p), 13);
	expect_done(p[0], 0, 13);
	make_list(&l, 13, p[0], p[1]); /* there is room again */
	post(p[0], &l, 0);
	expect_done(p[0], 0, 13);
}

LAB_CASE_BOTH(inline_data_needs_no_key)
{
	struct list l;
	struct lab_peer **p = make(NULL, state);

	make_list(&l, LIST, p[0], p[1]);
	for (unsigned i = 0; i < LIST; i++) {
		l.wr[i].send_flags |= IBV_SEND_INLINE;
		l.sge[i].lkey = 0;
	}
	post(p[0], &l, 0);
	expect_done(p[0], 0, LIST);
	expect_copied(sink(p), LIST);
}

LAB_CASE_BOTH(what_may_be_read_may_not_be_written)
{
	const struct lab_peer_options o = { .no_access = IBV_ACCESS_REMOTE_WRITE };
	struct lab_work w;
	struct lab_peer **p = lab_peers(&o, state);

	lab_peer_fill(p[1], 0, LAB_PEER_BYTES, 2);
	w = work(p[1], IBV_WR_RDMA_READ, 0, 64);
	for (int i = 0; i < 3; i++)
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	w.opcode = IBV_WR_RDMA_WRITE;
	lab_peer_do(p[0], &w, IBV_WC_REM_ACCESS_ERR);
	lab_peer_expect(p[1], 0, 64, 2);
}

LAB_CASE_BOTH(what_may_be_sent_may_not_be_read_into)
{
	struct ibv_mr *mr;
	struct lab_work w;
	struct list l;
	struct lab_peer **p = make(NULL, state);

	assert_non_null(mr = ibv_reg_mr(p[0]->here->pd, p[0]->here->memory, LAB_PEER_BYTES, 0));
	make_list(&l, LIST, p[0], p[1]);
	for (unsigned i = 0; i < LIST; i++)
		l.sge[i].lkey = mr->lkey;
	post(p[0], &l, 0);
	expect_done(p[0], 0, LIST);
	expect_copied(sink(p), LIST);
	w = work(p[1], IBV_WR_RDMA_READ, 0, 64);
	w.piece[0].key_xor = mr->lkey ^ p[0]->lkey;
	lab_peer_do(p[0], &w, IBV_WC_LOC_PROT_ERR);
	lab_peer_expect(p[0], 0, 64, 1);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

LAB_CASE_BOTH(what_may_be_written_may_not_be_read)
{
	const struct lab_peer_options o = { .no_access = IBV_ACCESS_REMOTE_READ };
	struct lab_peer **p = make(&o, state);
	struct lab_work w = work(p[1], IBV_WR_RDMA_READ, 0, 64);

	lab_peer_do(p[0], &w, IBV_WC_REM_ACCESS_ERR);
	lab_peer_expect(p[0], 0, 64, 1);
}

/* It takes a resource of the responder's, and a right of its queue pair's. */
LAB_CASE_BOTH(what_is_known_is_not_read_all_the_same)
{
	const struct lab_peer_options without[] = { { .no_read = true },
		                                    { .no_qp_access = IBV_ACCESS_REMOTE_READ } };

	for (int i = 0; i < 2; i++) {
		struct lab_peer **p = make(&without[i], state);
		struct lab_work w = work(p[1], IBV_WR_RDMA_READ, 0, 64);

		lab_peer_do(p[0], &w, IBV_WC_REM_INV_REQ_ERR);
		lab_peer_expect(p[0], 0, 64, 1);
		lab_clean_up(NULL);
	}
}

LAB_CASE_BOTH(uc_reads_nothing_that_is_known)
{
	const struct lab_peer_options o = { .type = IBV_QPT_UC };
	struct lab_peer **p = make(&o, state);
	struct lab_work w = work(p[1], IBV_WR_RDMA_READ, 0, 64);

	assert_int_equal(lab_peer_try_post(p[0], &w), EINVAL);
	lab_peer_expect(p[0], 0, 64, 1);
}

LAB_CASE_BOTH(nobody_copies_beyond_the_end)
{
	struct lab_peer **p = make(NULL, state);
	struct lab_work w = work(p[1], opcode, LAB_PEER_BYTES - 64, 64);

	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	w.remote++;
	lab_peer_do(p[0], &w, IBV_WC_REM_ACCESS_ERR); /* guards are looked at in the end */
}

LAB_CASE_BOTH(nobody_has_more_of_its_own_region_than_there_is)
{
	struct lab_peer **p = make(NULL, state);
	struct lab_work w = work(p[1], opcode, 0, 64);

	w.piece[0].at = LAB_PEER_BYTES - 63;
	lab_peer_do(p[0], &w, IBV_WC_LOC_PROT_ERR);
	lab_peer_expect(sink(p), 0, 64, 2);
}

LAB_CASE_BOTH(a_region_that_is_gone_is_known_no_more)
{
	struct list l;
	struct lab_peer **p = make(NULL, state);

	assert_int_equal(lab_peer_deregister(p[1]), 0);
	make_list(&l, LIST, p[0], p[1]);
	post(p[0], &l, 0);
	lab_peer_sent(p[0], IBV_WC_REM_ACCESS_ERR);
	for (unsigned i = 1; i < LIST; i++)
		lab_peer_sent(p[0], IBV_WC_WR_FLUSH_ERR);
}

/* The same by READs: last of all. */
#define BY_READS(test)                     \
	LAB_CASE_BOTH(test##__by_reads)    \
	{                                  \
		opcode = IBV_WR_RDMA_READ; \
		test(state);               \
	}

BY_READS(a_list_is_carried_out_in_its_order)
BY_READS(a_list_ends_with_the_request_that_is_refused)
BY_READS(a_list_ends_before_the_request_that_is_malformed)
BY_READS(a_list_ends_where_the_send_queue_is_full)
BY_READS(nobody_copies_beyond_the_end)
BY_READS(nobody_has_more_of_its_own_region_than_there_is)
BY_READS(a_region_that_is_gone_is_known_no_more)

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
