/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory windows of both types over RC: bound, used by the peer, invalidated by either end. The
 * windows' owner is here, its peer here or elsewhere.
 * On RoCE, too.
 */
#include "peer_lab.h"

/* The part of the owner's memory that the window is bound to. */
#define AT     4096
#define LENGTH 1000

struct fixture {
	struct lab_peer **p; /* the owner; the window's user */
	struct ibv_mr *mr;   /* of all the owner's memory; windows may be bound to it */
	struct ibv_mw *mw;
};

static void undo_mr(void *mr)
{
	ibv_dereg_mr(mr);
}

static void undo_mw(void *mw)
{
	ibv_dealloc_mw(mw);
}

static void make(struct fixture *f, enum ibv_mw_type type, void *const *state)
{
	f->p = lab_peers(NULL, state);
	assert_non_null(f->mr = ibv_reg_mr(f->p[0]->here->pd, f->p[0]->here->memory, LAB_PEER_BYTES,
	                                   LAB_ALL_ACCESS | IBV_ACCESS_MW_BIND));
	lab_undo(undo_mr, f->mr);
	assert_non_null(f->mw = ibv_alloc_mw(f->p[0]->here->pd, type));
	lab_undo(undo_mw, f->mw);
	lab_peer_fill(f->p[0], 0, LAB_PEER_BYTES, 1);
	lab_peer_fill(f->p[1], 0, LAB_PEER_BYTES, 2);
}

static struct ibv_mw_bind_info info_of(struct fixture *f, uint64_t length, unsigned access)
{
	return (struct ibv_mw_bind_info){ .mr = f->mr,
		                          .addr = (uintptr_t)f->p[0]->here->memory + AT,
		                          .length = length,
		                          .mw_access_flags = access };
}

/* Type 2: by a request. Returns the key. */
static uint32_t bind_with(struct fixture *f, uint64_t length, unsigned access,
                          enum ibv_wc_status status)
{
	struct ibv_send_wr wr = { .wr_id = 6,
		                  .opcode = IBV_WR_BIND_MW,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .bind_mw = { .mw = f->mw,
		                               .rkey = ibv_inc_rkey(f->mw->rkey),
		                               .bind_info = info_of(f, length, access) } },
	                   *bad;

	assert_int_equal(ibv_post_send(f->p[0]->here->qp, &wr, &bad), 0);
	assert_int_equal(lab_peer_sent(f->p[0], status).wr_id, 6);
	f->mw->rkey = wr.bind_mw.rkey;
	return wr.bind_mw.rkey;
}

static uint32_t bind_window(struct fixture *f)
{
	return bind_with(f, LENGTH, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	                 IBV_WC_SUCCESS);
}

/* The peer's request there, by this key. */
static struct lab_work work_by(struct fixture *f, enum ibv_wr_opcode opcode, uint32_t key)
{
	return (struct lab_work){ .opcode = opcode,
		                  .wr_id = 5,
		                  .n = 1,
		                  .piece = { { 0, LENGTH, 0 } },
		                  .to = f->p[0],
		                  .remote = AT,
		                  .rkey_xor = f->p[0]->address.rkey ^ key };
}

static void expect_writable(struct fixture *f, uint32_t key)
{
	struct lab_work w = work_by(f, IBV_WR_RDMA_WRITE, key);

	lab_peer_do(f->p[1], &w, IBV_WC_SUCCESS);
	lab_peer_expect(f->p[0], AT, LENGTH, 2);
	lab_peer_expect(f->p[0], 0, AT, 1);
}

/* The key is none any more; the connection ends by that. */
static void expect_gone(struct fixture *f, uint32_t key)
{
	struct lab_work w = work_by(f, IBV_WR_RDMA_WRITE, key);

	lab_peer_fill(f->p[0], 0, LAB_PEER_BYTES, 3);
	lab_peer_do(f->p[1], &w, IBV_WC_REM_ACCESS_ERR);
	lab_peer_event(f->p[0], IBV_EVENT_QP_ACCESS_ERR);
	lab_peer_expect(f->p[0], 0, LAB_PEER_BYTES, 3);
}

static struct lab_work invalidating(uint32_t key)
{
	return (struct lab_work){ .opcode = IBV_WR_SEND_WITH_INV,
		                  .wr_id = 9,
		                  .n = 1,
		                  .piece = { { 0, 100, 0 } },
		                  .imm = key };
}

static void expect_invalidated(struct fixture *f, uint32_t key)
{
	struct ibv_wc wc = lab_peer_received(f->p[0], IBV_WC_SUCCESS);

	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, key);
	assert_int_equal(wc.byte_len, 100);
	lab_peer_expect(f->p[0], 16384, 100, 2);
}

/* ---- type 2 ---- */

LAB_CASE_BOTH(a_peer_invalidates_a_window_by_its_message)
{
	struct fixture f;
	struct lab_work w;
	uint32_t key;

	make(&f, IBV_MW_TYPE_2, state);
	key = bind_window(&f);
	expect_writable(&f, key);
	lab_peer_receive(f.p[0], 1, 16384, 100);
	w = invalidating(key);
	lab_peer_do(f.p[1], &w, IBV_WC_SUCCESS);
	expect_invalidated(&f, key);
	key = bind_window(&f); /* it can be bound again */
	expect_writable(&f, key);
	expect_gone(&f, key - 1);
}

/* The owner's thread carries it out when it posts the receive; until then the window is there. */
LAB_CASE_BOTH(a_message_that_waits_invalidates_when_it_comes)
{
	struct fixture f;
	struct lab_work w;
	uint32_t key;

	make(&f, IBV_MW_TYPE_2, state);
	key = bind_window(&f);
	w = invalidating(key);
	lab_peer_post(f.p[1], &w);
	w = work_by(&f, IBV_WR_RDMA_WRITE, key); /* behind it: too late */
	lab_peer_post(f.p[1], &w);
	lab_peer_receive(f.p[0], 1, 16384, 100);
	lab_peer_sent(f.p[1], IBV_WC_SUCCESS);
	expect_invalidated(&f, key);
	lab_peer_sent(f.p[1], IBV_WC_REM_ACCESS_ERR);
	lab_peer_expect(f.p[0], 0, 16384, 1);
}

LAB_CASE_BOTH(what_is_no_window_of_the_queue_pair_cannot_be_invalidated)
{
	for (int i = 0; i < 3; i++) {
		struct fixture f;
		struct lab_work w;
		uint32_t key;

		make(&f, IBV_MW_TYPE_2, state);
		key = bind_window(&f);
		lab_peer_receive(f.p[0], 1, 16384, 100);
		/* a region; the key before; another index */
		w = invalidating(i == 0 ? f.mr->rkey : i == 1 ? key - 1 : key + 0x10000);
		lab_peer_do(f.p[1], &w, IBV_WC_REM_ACCESS_ERR);
		lab_peer_event(f.p[0], IBV_EVENT_QP_ACCESS_ERR);
		lab_peer_received(f.p[0], IBV_WC_WR_FLUSH_ERR);
		lab_clean_up(NULL);
	}
}

LAB_CASE_BOTH(its_owner_invalidates_a_window)
{
	struct lab_work w = { .opcode = IBV_WR_LOCAL_INV, .wr_id = 4 };
	struct fixture f;

	make(&f, IBV_MW_TYPE_2, state);
	w.imm = bind_window(&f);
	expect_writable(&f, w.imm);
	assert_int_equal(lab_peer_do(f.p[0], &w, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
	expect_gone(&f, w.imm);
}

LAB_CASE_BOTH(a_window_gives_no_more_than_it_says)
{
	for (int i = 0; i < 3; i++) {
		struct fixture f;
		struct lab_work w;
		uint32_t key;

		make(&f, IBV_MW_TYPE_2, state);
		key = bind_with(&f, LENGTH, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS);
		expect_writable(&f, key);
		w = work_by(&f, i ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, key);
		w.remote += i == 1; /* a byte behind it */
		w.remote -= i == 2; /* and before */
		lab_peer_do(f.p[1], &w, IBV_WC_REM_ACCESS_ERR);
		lab_clean_up(NULL);
	}
}

/* Only by the queue pair that has bound it: another one of the process does not let it in. */
LAB_CASE_BOTH(a_window_of_type_2_is_its_queue_pairs)
{
	struct lab_peer_options o = { .host = 1, .timeout = 14, .retry_cnt = 7 };
	struct lab_peer *other[2];
	struct fixture f;
	struct lab_work w;
	uint32_t key;

	make(&f, IBV_MW_TYPE_2, state);
	key = bind_window(&f);
	o.neighbour = f.p[0];
	other[0] = lab_peer(&o);
	o.neighbour = NULL;
	o.host = 2;
	o.elsewhere = *state;
	other[1] = lab_peer(&o);
	lab_peer_connect(other[0], other[1]);
	lab_peer_connect(other[1], other[0]);
	w = work_by(&f, IBV_WR_RDMA_WRITE, key);
	lab_peer_do(other[1], &w, IBV_WC_REM_ACCESS_ERR);
	expect_writable(&f, key);
}

/* As by Linux, for all devices. */
LAB_CASE(there_is_no_window_of_another_type)
{
	static const int unknown[] = { 0, IBV_MW_TYPE_2 + 1, -1 };
	struct ibv_pd *pd = lab_pd(lab_open(1));

	for (unsigned i = 0; i < LAB_ARRAY(unknown); i++) {
		errno = 0;
		assert_null(ibv_alloc_mw(pd, (enum ibv_mw_type)unknown[i]));
		assert_int_equal(errno, EINVAL);
	}
}

LAB_CASE_BOTH(a_region_with_windows_is_busy)
{
	struct lab_work w = { .opcode = IBV_WR_LOCAL_INV };
	struct fixture f;

	make(&f, IBV_MW_TYPE_2, state);
	w.imm = bind_window(&f);
	assert_int_equal(ibv_dereg_mr(f.mr), EBUSY);
	assert_int_equal(ibv_rereg_mr(f.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
	                 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EBUSY);
	expect_writable(&f, w.imm);
	lab_peer_do(f.p[0], &w, IBV_WC_SUCCESS);
	lab_forget(f.mr);
	assert_int_equal(ibv_dereg_mr(f.mr), 0);
}

LAB_CASE(a_window_beyond_its_region_is_not_bound)
{
	struct fixture f;

	make(&f, IBV_MW_TYPE_2, state);
	bind_with(&f, LAB_PEER_BYTES, IBV_ACCESS_REMOTE_WRITE, IBV_WC_MW_BIND_ERR);
	lab_peer_expect_state(f.p[0], IBV_QPS_ERR);
}

/* Addresses in it are offsets. */
LAB_CASE_BOTH(a_window_of_type_2_may_begin_at_0)
{
	struct fixture f;
	struct lab_work w;
	uint32_t key;

	make(&f, IBV_MW_TYPE_2, state);
	key = bind_with(&f, LENGTH, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED,
	                IBV_WC_SUCCESS);
	w = work_by(&f, IBV_WR_RDMA_WRITE, key);
	w.remote = -f.p[0]->address.addr;
	lab_peer_do(f.p[1], &w, IBV_WC_SUCCESS);
	lab_peer_expect(f.p[0], AT, LENGTH, 2);
	w.remote++;
	lab_peer_do(f.p[1], &w, IBV_WC_REM_ACCESS_ERR);
}

/* ---- type 1 ---- */

/* The specification has none (o10-36.2.2), though ibv_bind_mw(3) names the flag: mlx5 and rxe say
 * EINVAL. */
LAB_CASE(a_window_of_type_1_does_not_begin_at_0)
{
	struct ibv_mw_bind b = { .wr_id = 3, .send_flags = IBV_SEND_SIGNALED };
	struct fixture f;
	uint32_t key;

	make(&f, IBV_MW_TYPE_1, state);
	key = f.mw->rkey;
	b.bind_info = info_of(&f, LENGTH, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
	assert_int_equal(ibv_bind_mw(f.p[0]->here->qp, f.mw, &b), EINVAL);
	assert_int_equal(f.mw->rkey, key);
	b.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(ibv_bind_mw(f.p[0]->here->qp, f.mw, &b), 0);
	lab_peer_sent(f.p[0], IBV_WC_SUCCESS);
	expect_writable(&f, f.mw->rkey);
}

LAB_CASE_BOTH(a_window_of_type_1_is_bound_again)
{
	struct ibv_mw_bind b = { .wr_id = 3, .send_flags = IBV_SEND_SIGNALED };
	struct fixture f;
	uint32_t key[2];

	make(&f, IBV_MW_TYPE_1, state);
	b.bind_info = info_of(&f, LENGTH, IBV_ACCESS_REMOTE_WRITE);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_bind_mw(f.p[0]->here->qp, f.mw, &b), 0);
		assert_int_equal(lab_peer_sent(f.p[0], IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
		key[i] = f.mw->rkey;
		expect_writable(&f, key[i]);
	}
	assert_int_not_equal(key[0], key[1]);
	expect_gone(&f, key[0]);
}

/* One list: a WRITE to the peer, a window that is bound, and freed again. */
static void write_bind_invalidate(struct fixture *f)
{
	struct lab_peer_objects *own = f->p[0]->here;
	struct ibv_sge sge = { (uintptr_t)own->memory, 8, own->lkey };
	uint32_t key = ibv_inc_rkey(f->mw->rkey);
	struct ibv_send_wr wr[3] = { { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 },
		                     { .opcode = IBV_WR_BIND_MW },
		                     { .opcode = IBV_WR_LOCAL_INV,
		                       .send_flags = IBV_SEND_SIGNALED } };
	struct ibv_send_wr *bad;

	wr[0].next = &wr[1];
	wr[1].next = &wr[2];
	wr[0].wr.rdma.remote_addr = f->p[1]->address.addr;
	wr[0].wr.rdma.rkey = f->p[1]->address.rkey;
	wr[1].bind_mw.mw = f->mw;
	wr[1].bind_mw.rkey = wr[2].invalidate_rkey = f->mw->rkey = key;
	wr[1].bind_mw.bind_info = info_of(f, LENGTH, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(ibv_post_send(own->qp, wr, &bad), 0);
	lab_complete(own->send_cq, IBV_WC_SUCCESS);
}

/* A thread that frees a window waits for all that may be using it: for a second if a thread is
 * stopped, but not for itself. */
LAB_CASE_BOTH(a_list_does_not_wait_for_itself)
{
	struct fixture f;

	make(&f, IBV_MW_TYPE_2, state);
	for (int i = 0; i < 700; i++)
		write_bind_invalidate(&f);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
