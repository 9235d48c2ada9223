/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lists of short SENDs over RC, of which several are carried out before the responder is looked up
 * anew (connected_send.c): in their order, each by a receive of its own, and up to the one that has
 * to wait, or fails, or is malformed, as if each had been posted by itself.
 *
 * umbel: --set exact_sizes=1
 * On RoCE, too.
 */
#include "peer_lab.h"
#include "deadline.h"

#define LIST 40u /* more than are carried out at once */
#define SLOT 128u

/* @n SENDs, all signalled; message i has i % 65 bytes at i * SLOT of the memory. */
struct list {
	struct ibv_send_wr wr[LIST];
	struct ibv_sge sge[LIST][2];
};

static uint32_t length_of(unsigned i)
{
	return i % 65;
}

static void make_list(struct list *l, unsigned n, const struct lab_peer *from)
{
	for (unsigned i = 0; i < n; i++) {
		l->sge[i][0] = (struct ibv_sge){ .addr = from->address.addr + i * SLOT,
			                         .length = length_of(i),
			                         .lkey = from->lkey };
		l->wr[i] = (struct ibv_send_wr){
			.wr_id = i,
			.next = i + 1 < n ? &l->wr[i + 1] : NULL,
			.sg_list = l->sge[i],
			.num_sge = 1,
			.opcode = i % 3 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM,
			.send_flags = IBV_SEND_SIGNALED | (i % 2 ? IBV_SEND_INLINE : 0),
			.imm_data = htobe32(i),
		};
		if (i % 5 == 4) { /* in two pieces */
			l->sge[i][1] = l->sge[i][0];
			l->sge[i][0].length /= 2;
			l->sge[i][1].addr += l->sge[i][0].length;
			l->sge[i][1].length -= l->sge[i][0].length;
			l->wr[i].num_sge = 2;
		}
	}
}

/* The index of the first one that is not posted, or LIST. */
static unsigned post(struct lab_peer *p, struct list *l, int error)
{
	struct ibv_send_wr *bad = NULL;

	assert_int_equal(ibv_post_send(p->here->qp, l->wr, &bad), error);
	return error ? (unsigned)(bad - l->wr) : LIST;
}

static void receive(struct lab_peer *p, unsigned from, unsigned n)
{
	for (unsigned i = from; i < from + n; i++)
		lab_peer_receive(p, i, i * SLOT, SLOT);
}

static void expect_sent(struct lab_peer *p, unsigned from, unsigned n)
{
	for (unsigned i = from; i < from + n; i++)
		assert_int_equal(lab_peer_sent(p, IBV_WC_SUCCESS).wr_id, i);
}

static void expect_message(struct lab_peer *p, unsigned i, const struct ibv_wc *wc)
{
	uint8_t got[SLOT];

	assert_int_equal(wc->wr_id, i);
	assert_int_equal(wc->byte_len, length_of(i));
	assert_int_equal(wc->wc_flags, i % 3 ? 0 : IBV_WC_WITH_IMM);
	if (wc->wc_flags)
		assert_int_equal(wc->imm_data, htobe32(i));
	lab_peer_get(p, i * SLOT, got, sizeof(got));
	for (unsigned b = 0; b < SLOT; b++)
		assert_int_equal(got[b], b < length_of(i) ? lab_pattern(1, i * SLOT + b)
		                                          : lab_pattern(2, i * SLOT + b));
}

static void expect_received(struct lab_peer *p, unsigned from, unsigned n)
{
	for (unsigned i = from; i < from + n; i++) {
		struct ibv_wc wc = lab_peer_received(p, IBV_WC_SUCCESS);

		expect_message(p, i, &wc);
	}
}

static void expect_flushed(struct lab_peer *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		lab_peer_sent(p, IBV_WC_WR_FLUSH_ERR);
}

static void fill(struct lab_peer *p[2])
{
	lab_peer_fill(p[0], 0, LAB_PEER_BYTES, 1);
	lab_peer_fill(p[1], 0, LAB_PEER_BYTES, 2);
}

/* Two peers that have exchanged messages already: nothing is to be looked up. The first one's
 * memory has pattern 1, the second one's 2. */
static struct lab_peer **make(const struct lab_peer_options *o, void **state)
{
	struct list l;
	struct lab_peer **p = lab_peers(o, state);

	for (unsigned i = 0; i < 3; i++) {
		lab_peer_receive(p[1], i, 0, SLOT);
		make_list(&l, 1, p[0]);
		post(p[0], &l, 0);
		lab_peer_sent(p[0], IBV_WC_SUCCESS);
		lab_peer_received(p[1], IBV_WC_SUCCESS);
	}
	fill(p);
	return p;
}

LAB_CASE_BOTH(a_list_arrives_in_its_order)
{
	struct list l;
	struct lab_peer **p = make(NULL, state);

	for (unsigned n = 1; n <= LIST; n++) {
		fill(p);
		receive(p[1], 0, n);
		make_list(&l, n, p[0]);
		post(p[0], &l, 0);
		expect_sent(p[0], 0, n);
		expect_received(p[1], 0, n);
	}
}

/* The owner of memory that its peer reaches by system calls only copies what lies in arrivals. */
LAB_CASE_BOTH(a_list_is_left_to_who_polls)
{
	const struct lab_peer_options o = { .far = true };
	struct list l;
	struct lab_peer **p = make(&o, state);

	for (unsigned round = 0; round < 3; round++) {
		fill(p);
		receive(p[1], 0, LIST);
		make_list(&l, LIST, p[0]);
		post(p[0], &l, 0);
		expect_sent(p[0], 0, LIST);
		expect_received(p[1], 0, LIST);
	}
}

/* In slot @i are all bytes of slot @from of pattern @seed. */
static void expect_bytes(struct lab_peer *p, unsigned i, unsigned seed, unsigned from)
{
	uint8_t got[SLOT];

	lab_peer_get(p, i * SLOT, got, sizeof(got));
	for (unsigned b = 0; b < SLOT; b++)
		assert_int_equal(got[b], lab_pattern(seed, from * SLOT + b));
}

/* Each request of another kind takes effect where it stands in the list. */
LAB_CASE_BOTH(other_requests_stand_between)
{
	struct list l;
	struct lab_peer **p = make(NULL, state);

	receive(p[1], 0, 9);
	receive(p[1], 10, 10);
	make_list(&l, 20, p[0]);
	/* over what message 3 has brought */
	l.wr[9].opcode = IBV_WR_RDMA_WRITE;
	l.wr[9].wr.rdma.remote_addr = p[1]->address.addr + 3 * SLOT;
	l.wr[9].wr.rdma.rkey = p[1]->address.rkey;
	l.wr[9].num_sge = 1;
	l.wr[9].send_flags = IBV_SEND_SIGNALED;
	l.sge[9][0].length = SLOT;
	l.wr[15].send_flags = IBV_SEND_SIGNALED; /* too long for an arrival */
	l.sge[15][0].length = SLOT;
	post(p[0], &l, 0);
	expect_sent(p[0], 0, 20);
	for (unsigned i = 0; i < 20; i++) {
		if (i == 9)
			continue;
		assert_int_equal(lab_peer_received(p[1], IBV_WC_SUCCESS).wr_id, i);
	}
	expect_bytes(p[1], 3, 1, 9);
	expect_bytes(p[1], 15, 1, 15);
}

LAB_CASE_BOTH(what_finds_no_receive_waits)
{
	const struct lab_peer_options o = { .rnr_retry = 7 };
	struct list l;
	struct lab_peer **p = make(&o, state);

	for (unsigned n = 0; n < LIST; n += 3) {
		fill(p);
		receive(p[1], 0, n);
		make_list(&l, LIST, p[0]);
		post(p[0], &l, 0);
		expect_sent(p[0], 0, n);
		receive(p[1], n, LIST - n);
		expect_sent(p[0], n, LIST - n);
		expect_received(p[1], 0, LIST);
	}
}

LAB_CASE_BOTH(a_receive_that_is_too_small_ends_the_list)
{
	const struct lab_peer_options o = { .rnr_retry = 7 };

	for (unsigned small = 1; small < LIST; small += 9) {
		struct list l;
		struct lab_peer **p = make(&o, state);

		receive(p[1], 0, small);
		lab_peer_receive(p[1], small, small * SLOT, length_of(small) - 1);
		receive(p[1], small + 1, 3);
		make_list(&l, LIST, p[0]);
		post(p[0], &l, 0);
		expect_sent(p[0], 0, small);
		lab_peer_sent(p[0], IBV_WC_REM_INV_REQ_ERR);
		expect_flushed(p[0], LIST - small - 1);
		expect_received(p[1], 0, small);
		lab_peer_received(p[1], IBV_WC_LOC_LEN_ERR);
		for (unsigned i = 0; i < 3; i++)
			lab_peer_received(p[1], IBV_WC_WR_FLUSH_ERR);
		lab_peer_expect_state(p[0], IBV_QPS_ERR);
		lab_peer_expect_state(p[1], IBV_QPS_ERR);
		lab_clean_up(NULL);
	}
}

LAB_CASE_BOTH(a_wrong_key_ends_the_list)
{
	struct list l;
	struct lab_peer **p = make(NULL, state);

	receive(p[1], 0, LIST);
	make_list(&l, LIST, p[0]);
	l.sge[22][0].lkey ^= 0x100;
	post(p[0], &l, 0);
	expect_sent(p[0], 0, 22);
	lab_peer_sent(p[0], IBV_WC_LOC_PROT_ERR);
	expect_flushed(p[0], LIST - 23);
	expect_received(p[1], 0, 22);
	lab_peer_expect_state(p[0], IBV_QPS_ERR);
}

LAB_CASE_BOTH(a_list_ends_before_the_request_that_is_malformed)
{
	for (unsigned how = 0; how < 6; how++) {
		struct list l;
		struct ibv_wc wc;
		struct lab_peer **p = make(NULL, state);

		receive(p[1], 0, LIST);
		make_list(&l, LIST, p[0]);
		if (how == 0)
			l.wr[11].num_sge = 5; /* of 4 */
		else if (how == 1)
			l.wr[11].num_sge = -1;
		else if (how == 2)
			l.wr[11].opcode = (enum ibv_wr_opcode)99;
		else if (how == 3)
			l.sge[11][0].length = 65; /* inline, of 64 */
		else
			l.wr[11].opcode = how == 4 ? IBV_WR_SEND : (enum ibv_wr_opcode)99;
		if (how >= 4) { /* what nobody may look at */
			l.wr[11].num_sge = INT_MAX;
			l.wr[11].sg_list = NULL;
		}
		assert_int_equal(post(p[0], &l, EINVAL), 11);
		expect_sent(p[0], 0, 11);
		expect_received(p[1], 0, 11);
		assert_int_equal(lab_peer_try_sent(p[0], &wc), 0);
		assert_int_equal(lab_peer_try_received(p[1], &wc), 0);
		lab_clean_up(NULL);
	}
}

LAB_CASE_BOTH(a_list_ends_where_the_send_queue_is_full)
{
	const struct lab_peer_options o = { .cap = { .max_send_wr = 20 } };
	struct list l;
	struct ibv_wc wc;
	struct lab_peer **p = make(&o, state);

	receive(p[1], 0, LIST);
	make_list(&l, LIST, p[0]);
	assert_int_equal(post(p[0], &l, ENOMEM), 20);
	expect_sent(p[0], 0, 20);
	expect_received(p[1], 0, 20);
	assert_int_equal(lab_peer_try_received(p[1], &wc), 0);
}

LAB_CASE_BOTH(uc_loses_what_finds_no_receive)
{
	const struct lab_peer_options o = { .type = IBV_QPT_UC };
	struct list l;
	struct lab_peer **p = make(&o, state);

	for (unsigned n = 0; n < LIST; n += 7) {
		fill(p);
		receive(p[1], 0, n);
		make_list(&l, LIST, p[0]);
		post(p[0], &l, 0);
		expect_sent(p[0], 0, LIST);
		expect_received(p[1], 0, n);
	}
}

/* A receive fails: the responder takes nothing more, and what its receives name stays as it is. */
LAB_CASE_BOTH(uc_loses_what_comes_behind_a_failure)
{
	const struct lab_peer_options o = { .type = IBV_QPT_UC };

	for (unsigned small = 1; small < LIST; small += 5) {
		struct list l;
		struct lab_peer **p = make(&o, state);

		receive(p[1], 0, small);
		lab_peer_receive(p[1], small, small * SLOT, length_of(small) - 1);
		receive(p[1], small + 1, LIST - small - 1);
		make_list(&l, LIST, p[0]);
		post(p[0], &l, 0);
		expect_sent(p[0], 0, LIST);
		expect_received(p[1], 0, small);
		lab_peer_received(p[1], IBV_WC_LOC_LEN_ERR);
		for (unsigned i = small + 1; i < LIST; i++) {
			assert_int_equal(lab_peer_received(p[1], IBV_WC_WR_FLUSH_ERR).wr_id, i);
			expect_bytes(p[1], i, 2, i);
		}
		lab_clean_up(NULL);
	}
}

/* ---- a responder that goes meanwhile ---- */

struct poster {
	struct lab_peer *peer;
	unsigned posted, ended;
	enum ibv_wc_status error; /* the first one */
	bool went_on;             /* something has succeeded behind it */
};

static void take_ends(struct poster *t)
{
	struct ibv_wc wc[LIST];
	const int n = ibv_poll_cq(t->peer->here->send_cq, LIST, wc);

	for (int i = 0; i < n; i++, t->ended++) {
		t->went_on |= t->error && !wc[i].status;
		if (!t->error)
			t->error = wc[i].status;
	}
}

/* Posts lists of different lengths until one of its requests has failed, and all have ended. */
static void *post_till_one_fails(void *arg)
{
	struct poster *t = arg;
	struct ibv_send_wr *bad;
	struct list l;

	for (unsigned n = 1; !t->error; n = n % 12 + 1) {
		make_list(&l, n, t->peer);
		t->posted +=
		        ibv_post_send(t->peer->here->qp, l.wr, &bad) ? (unsigned)(bad - l.wr) : n;
		take_ends(t);
	}
	while (t->ended < t->posted)
		take_ends(t);
	return NULL;
}

/* Receives that many messages. */
static void receive_many(struct lab_peer *p, unsigned n)
{
	struct deadline deadline = { 0 };
	struct ibv_wc wc[LIST];

	for (unsigned posted = 0, got = 0; got < n;) {
		int some;

		for (; posted - got < LIST; posted++)
			lab_peer_receive(p, posted, posted % LIST * SLOT, SLOT);
		some = ibv_poll_cq(p->here->recv_cq, LIST, wc);
		for (int i = 0; i < some; i++, got++)
			assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		if (some)
			deadline = (struct deadline){ 0 };
		DEADLINE_LOOK(&deadline, "a message of a list");
	}
}

LAB_CASE(a_responder_that_is_reset_ends_the_list)
{
	const struct lab_peer_options o = { .timeout = 8, .retry_cnt = 1, .rnr_retry = 7 };

	for (unsigned round = 0; round < 100; round++) {
		struct poster t = { 0 };
		pthread_t thread;
		struct lab_peer **p = make(&o, NULL);

		t.peer = p[0];
		assert_int_equal(pthread_create(&thread, NULL, post_till_one_fails, &t), 0);
		receive_many(p[1], 1 + round * 7);
		lab_peer_to(p[1], IBV_QPS_RESET);
		/* from now on nobody writes there */
		lab_peer_fill(p[1], 0, LAB_PEER_BYTES, 3);
		pthread_join(thread, NULL);
		assert_int_equal(t.error, IBV_WC_RETRY_EXC_ERR);
		assert_false(t.went_on);
		for (unsigned i = 0; i < LIST; i++)
			expect_bytes(p[1], i, 3, i);
		lab_clean_up(NULL);
	}
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
