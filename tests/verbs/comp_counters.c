/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion counters, ibv_create_comp_cntr(3) and on. They are found by name and version, as the
 * loader finds them for a program built with rdma-core 65; older headers do not declare them.
 *
 * umbel: --set exact_sizes=1
 */
#include "peer_lab.h"

/* enum ibv_qp_attach_comp_cntr_op */
enum { SEND = 1, RECV = 2, READ = 4, REMOTE_READ = 8, WRITE = 16, REMOTE_WRITE = 32, ALL = 63 };
#define KINDS 6
/* enum ibv_comp_cntr_type */
enum { REQUESTS, BYTES };

struct counter; /* struct ibv_comp_cntr */

/* struct ibv_comp_cntr_init_attr */
struct init_attr {
	uint32_t comp_mask, type, flags;
};

/* struct ibv_qp_attach_comp_cntr_attr */
struct attach_attr {
	uint32_t comp_mask, op_mask;
};

/* struct ibv_comp_cntr_caps */
struct caps {
	uint64_t max_value;
	uint32_t max_counters, supported_qp_attach_ops;
};

/* The calls, in a structure that main() fills. */
static struct {
	int (*query)(struct ibv_context *context, void *caps, size_t size);
	struct counter *(*create)(struct ibv_context *context, struct init_attr *attr);
	int (*destroy)(struct counter *c);
	int (*set)(struct counter *c, uint64_t value);
	int (*set_err)(struct counter *c, uint64_t value);
	int (*inc)(struct counter *c, uint64_t amount);
	int (*inc_err)(struct counter *c, uint64_t amount);
	int (*read)(struct counter *c, uint64_t *value);
	int (*read_err)(struct counter *c, uint64_t *value);
	int (*attach)(struct ibv_qp *qp, struct counter *c, struct attach_attr *attr);
} call;

static void find(void *fn, const char *name)
{
	void *found = dlvsym(RTLD_DEFAULT, name, "IBVERBS_1.18");

	if (!found) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	memcpy(fn, &found, sizeof(found));
}

static void find_calls(void)
{
	find(&call.query, "_ibv_query_comp_cntr_caps");
	find(&call.create, "ibv_create_comp_cntr");
	find(&call.destroy, "ibv_destroy_comp_cntr");
	find(&call.set, "ibv_set_comp_cntr");
	find(&call.set_err, "ibv_set_err_comp_cntr");
	find(&call.inc, "ibv_inc_comp_cntr");
	find(&call.inc_err, "ibv_inc_err_comp_cntr");
	find(&call.read, "ibv_read_comp_cntr");
	find(&call.read_err, "ibv_read_err_comp_cntr");
	find(&call.attach, "ibv_qp_attach_comp_cntr");
}

/* ---- helpers ---- */

static void undo_counter(void *c)
{
	assert_int_equal(call.destroy(c), 0);
}

static struct counter *counter_of(struct ibv_context *context, uint32_t type)
{
	struct counter *c = call.create(context, &(struct init_attr){ .type = type });

	assert_non_null(c);
	lab_undo(undo_counter, c);
	return c;
}

static int try_attach(struct ibv_qp *qp, struct counter *c, uint32_t kinds)
{
	return call.attach(qp, c, &(struct attach_attr){ .op_mask = kinds });
}

static void attach(struct ibv_qp *qp, struct counter *c, uint32_t kinds)
{
	assert_int_equal(try_attach(qp, c, kinds), 0);
}

static uint64_t done(struct counter *c)
{
	uint64_t value = 0;

	assert_int_equal(call.read(c, &value), 0);
	return value;
}

static uint64_t failed(struct counter *c)
{
	uint64_t value = 0;

	assert_int_equal(call.read_err(c, &value), 0);
	return value;
}

static void expect(struct counter *c, uint64_t n_done, uint64_t n_failed)
{
	assert_int_equal(done(c), n_done);
	assert_int_equal(failed(c), n_failed);
}

/* Two peers, on h1 and h2; the first one, which is here, has counters. Objects are undone in the
 * opposite order, and a counter outlives its queue pairs: so there is a neighbour, whose context is
 * there before the counters. */
struct pair {
	struct lab_peer *neighbour, *p[2];
};

static struct ibv_context *begin(struct pair *pair)
{
	pair->neighbour = lab_peer(&(struct lab_peer_options){ .host = 1 });
	return pair->neighbour->here->context;
}

static void make_pair(struct pair *pair, const struct lab_peer_options *options, void *const *state)
{
	struct lab_peer_options o = { .retry_cnt = 7, .rnr_retry = 7 };

	if (options)
		o = *options;
	o.host = 1;
	o.neighbour = pair->neighbour;
	pair->p[0] = lab_peer(&o);
	o.host = 2;
	o.neighbour = NULL;
	o.elsewhere = state && *state;
	pair->p[1] = lab_peer(&o);
}

static void connect_pair(struct pair *pair)
{
	for (int i = 0; i < 2; i++) {
		lab_peer_to_init(pair->p[i]);
		lab_peer_to_rtr(pair->p[i], pair->p[!i]);
	}
	for (int i = 0; i < 2; i++)
		lab_peer_to_rts(pair->p[i]);
}

/* All of that, with one counter. */
static struct counter *counted_pair(struct pair *pair, const struct lab_peer_options *options,
                                    void *const *state, uint32_t kinds)
{
	struct counter *c = counter_of(begin(pair), REQUESTS);

	make_pair(pair, options, state);
	attach(pair->p[0]->here->qp, c, kinds);
	connect_pair(pair);
	return c;
}

static struct lab_work work(enum ibv_wr_opcode opcode, const struct lab_peer *to, uint32_t length)
{
	return (struct lab_work){
		.opcode = opcode, .n = 1, .piece = { { 0, length, 0 } }, .to = to
	};
}

/* @n times, signalled and not in turn; the last one is. */
static void do_many(struct lab_peer *p, const struct lab_peer *to, enum ibv_wr_opcode opcode,
                    unsigned n, uint32_t length)
{
	struct lab_work w = work(opcode, to, length);

	while (n--) {
		w.unsignalled = n % 2;
		if (w.unsignalled)
			lab_peer_post(p, &w);
		else
			lab_peer_do(p, &w, IBV_WC_SUCCESS);
	}
}

static void receives(struct lab_peer *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		lab_peer_receive(p, i, 0, 4096);
}

/* ---- what is counted ---- */

LAB_CASE_BOTH(each_kind_of_operation_has_its_counter)
{
	static const uint64_t expected[KINDS] = { 5, 6, 2, 4, 3, 7 };
	struct counter *c[KINDS];
	struct pair pair;

	begin(&pair);
	for (int i = 0; i < KINDS; i++)
		c[i] = counter_of(pair.neighbour->here->context, REQUESTS);
	make_pair(&pair, NULL, state);
	for (int i = 0; i < KINDS; i++)
		attach(pair.p[0]->here->qp, c[i], 1u << i);
	connect_pair(&pair);
	receives(pair.p[1], 6);
	do_many(pair.p[0], NULL, IBV_WR_SEND, 3, 40);
	do_many(pair.p[0], NULL, IBV_WR_SEND_WITH_IMM, 2, 4000);
	do_many(pair.p[0], pair.p[1], IBV_WR_RDMA_READ, 2, 4000);
	do_many(pair.p[0], pair.p[1], IBV_WR_RDMA_WRITE, 2, 40);
	do_many(pair.p[0], pair.p[1], IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0);
	do_many(pair.p[0], pair.p[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 8);
	receives(pair.p[0], 6);
	do_many(pair.p[1], NULL, IBV_WR_SEND, 4, 40);
	do_many(pair.p[1], pair.p[0], IBV_WR_RDMA_READ, 4, 40);
	do_many(pair.p[1], pair.p[0], IBV_WR_RDMA_WRITE, 5, 4000);
	do_many(pair.p[1], pair.p[0], IBV_WR_RDMA_WRITE_WITH_IMM, 2, 40);
	do_many(pair.p[1], pair.p[0], IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 8);
	for (int i = 0; i < KINDS; i++)
		expect(c[i], expected[i], 0);
	lab_peer_destroy_qp(pair.p[0]);
	for (int i = 0; i < KINDS; i++)
		expect(c[i], expected[i], 0);
}

LAB_CASE_BOTH(bytes_are_counted_if_that_is_wanted)
{
	struct counter *sends, *receive, *remote;
	struct pair pair;

	sends = counter_of(begin(&pair), BYTES);
	receive = counter_of(pair.neighbour->here->context, BYTES);
	remote = counter_of(pair.neighbour->here->context, BYTES);
	make_pair(&pair, NULL, state);
	attach(pair.p[0]->here->qp, sends, SEND | READ | WRITE);
	attach(pair.p[0]->here->qp, receive, RECV);
	attach(pair.p[0]->here->qp, remote, REMOTE_READ | REMOTE_WRITE);
	connect_pair(&pair);
	receives(pair.p[1], 1);
	do_many(pair.p[0], NULL, IBV_WR_SEND, 1, 100);
	do_many(pair.p[0], pair.p[1], IBV_WR_RDMA_READ, 1, 20);
	do_many(pair.p[0], pair.p[1], IBV_WR_RDMA_WRITE, 2, 3);
	receives(pair.p[0], 2);
	do_many(pair.p[1], NULL, IBV_WR_SEND, 2, 50);
	do_many(pair.p[1], pair.p[0], IBV_WR_RDMA_READ, 1, 7);
	do_many(pair.p[1], pair.p[0], IBV_WR_RDMA_WRITE, 1, 2000);
	expect(sends, 126, 0);
	expect(receive, 100, 0);
	expect(remote, 2007, 0);
}

/* Ends on h1 that are in RESET, whose counter this is. */
static struct counter *counted_ends(struct lab_end *e[], int n)
{
	struct lab_end *neighbour = lab_end(1);
	struct counter *c = counter_of(neighbour->context, REQUESTS);

	for (int i = 0; i < n; i++)
		e[i] = lab_end_with(&(struct lab_options){ .reset = true, .neighbour = neighbour });
	return c;
}

LAB_CASE(one_counter_counts_for_several_queue_pairs)
{
	struct lab_end *to = lab_end(2), *e[2];
	struct counter *c = counted_ends(e, 2);

	for (int i = 0; i < 2; i++) {
		attach(e[i]->qp, c, SEND);
		lab_start(e[i]->qp, LAB_QKEY);
		lab_send_text(e[i], lab_ah_to(e[i], to), to->qp->qp_num, "counted");
	}
	expect(c, 2, 0);
	assert_int_equal(call.destroy(c), EBUSY);
}

/* ---- receives ---- */

/* A counter is read, and nothing is polled: the messages are there. */
LAB_CASE_BOTH(receives_count_before_they_are_polled)
{
	struct pair pair;
	struct ibv_wc wc;
	struct counter *c = counted_pair(&pair, NULL, state, RECV);

	for (unsigned i = 0; i < 200; i++) {
		struct lab_work w = work(IBV_WR_SEND, NULL, 60 + i % 10);

		lab_peer_fill(pair.p[1], 0, w.piece[0].length, i);
		if (!(i % 40)) /* half of a batch is polled before the next comes */
			for (unsigned k = i; k < i + 40; k++)
				lab_peer_receive(pair.p[0], k, 100 * (uint64_t)(k % 50), 100);
		lab_peer_do(pair.p[1], &w, IBV_WC_SUCCESS);
		expect(c, i + 1, 0);
		lab_peer_expect(pair.p[0], 100 * (uint64_t)(i % 50), w.piece[0].length, i);
		if (i % 40 < 20)
			continue;
		wc = lab_peer_received(pair.p[0], IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i / 40 * 20 + i % 40 - 20);
		assert_int_equal(wc.byte_len, 60 + wc.wr_id % 10);
	}
	for (unsigned i = 100; i < 200; i++)
		assert_int_equal(lab_peer_received(pair.p[0], IBV_WC_SUCCESS).wr_id, i);
	assert_int_equal(lab_peer_try_received(pair.p[0], &wc), 0);
	expect(c, 200, 0);
}

/* Two queue pairs in one CQ; each completion is what it would be without a counter. */
LAB_CASE(datagrams_that_were_counted_are_polled_as_others)
{
	struct lab_end *from = lab_end(2), *e[2];
	struct counter *c = counted_ends(e, 2);
	struct ibv_wc wc[4];

	for (int i = 0; i < 2; i++) {
		attach(e[i]->qp, c, RECV);
		lab_start(e[i]->qp, LAB_QKEY);
		lab_post(e[i], 4);
	}
	for (unsigned i = 0; i < 4; i++)
		lab_send_text(from, lab_ah_to(from, e[i % 2]), e[i % 2]->qp->qp_num, "datagram");
	expect(c, 4, 0);
	lab_poll(e[0]->cq, 4, wc);
	for (unsigned i = 0, of[2] = { 0 }; i < 4; i++) {
		int k = wc[i].qp_num == e[1]->qp->qp_num;

		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		assert_int_equal(wc[i].src_qp, from->qp->qp_num);
		assert_int_equal(wc[i].byte_len, LAB_GRH + strlen("datagram"));
		assert_int_equal(wc[i].wr_id, of[k]++);
		assert_memory_equal(e[k]->slot + wc[i].wr_id * LAB_SLOT + LAB_GRH, "datagram", 8);
	}
	lab_quiet(e[0]->cq);
	/* and those that were polled at once */
	lab_send_text(from, lab_ah_to(from, e[1]), e[1]->qp->qp_num, "datagram");
	lab_poll(e[0]->cq, 1, wc);
	expect(c, 5, 0);
}

/* ---- requests that wait, errors ---- */

LAB_CASE_BOTH(reading_goes_on_with_requests_that_wait)
{
	struct lab_work w = work(IBV_WR_SEND, NULL, 40);
	struct pair pair;
	struct counter *c = counted_pair(&pair, NULL, state, SEND);

	for (int i = 0; i < 5; i++)
		lab_peer_post(pair.p[0], &w);
	expect(c, 0, 0);
	receives(pair.p[1], 5);
	expect(c, 5, 0);
	for (int i = 0; i < 5; i++)
		lab_peer_sent(pair.p[0], IBV_WC_SUCCESS);
}

/* The peer's write waits for a receive. The process that posts the receive carries it out. */
LAB_CASE_BOTH(a_write_that_waited_counts_when_it_is_done)
{
	struct pair pair;
	struct counter *c = counted_pair(&pair, NULL, state, REMOTE_WRITE | RECV);
	struct lab_work w = work(IBV_WR_RDMA_WRITE_WITH_IMM, pair.p[0], 4000);

	lab_peer_post(pair.p[1], &w);
	expect(c, 0, 0);
	receives(pair.p[0], 1);
	expect(c, 2, 0);
	lab_peer_sent(pair.p[1], IBV_WC_SUCCESS);
}

LAB_CASE_BOTH(requests_that_fail_and_are_flushed_are_errors)
{
	const struct lab_peer_options o = { .retry_cnt = 1, .rnr_retry = 1, .timeout = 1 };
	struct lab_work w = work(IBV_WR_SEND, NULL, 40);
	struct pair pair;
	struct counter *c = counted_pair(&pair, &o, state, SEND | RECV);

	receives(pair.p[0], 4);
	for (int i = 0; i < 3; i++)
		lab_peer_post(pair.p[0], &w);
	while (failed(c) < 7) /* the retries end, and all is flushed */
		;
	expect(c, 0, 7);
	lab_peer_sent(pair.p[0], IBV_WC_RNR_RETRY_EXC_ERR);
	lab_peer_sent(pair.p[0], IBV_WC_WR_FLUSH_ERR);
	lab_peer_received(pair.p[0], IBV_WC_WR_FLUSH_ERR);
	expect(c, 0, 7);
}

LAB_CASE_BOTH(what_a_peer_may_not_do_is_an_error)
{
	const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	for (unsigned i = 0; i < 2; i++) {
		struct lab_work w;
		struct counter *c;
		struct pair pair;

		c = counted_pair(&pair, NULL, state, i ? REMOTE_READ : REMOTE_WRITE);
		w = work(opcodes[i], pair.p[0], 64);
		lab_peer_do(pair.p[1], &w, IBV_WC_SUCCESS);
		w.rkey_xor = 1;
		lab_peer_do(pair.p[1], &w, IBV_WC_REM_ACCESS_ERR);
		expect(c, 1, 1);
		lab_clean_up(NULL);
	}
}

/* Over UC the requester does not notice. */
LAB_CASE_BOTH(what_uc_drops_is_an_error)
{
	const struct lab_peer_options o = { .type = IBV_QPT_UC };
	struct pair pair;
	struct counter *c = counted_pair(&pair, &o, state, REMOTE_WRITE);
	struct lab_work w = work(IBV_WR_RDMA_WRITE, pair.p[0], 64);

	lab_peer_do(pair.p[1], &w, IBV_WC_SUCCESS);
	w.rkey_xor = 1;
	lab_peer_do(pair.p[1], &w, IBV_WC_SUCCESS);
	expect(c, 1, 1);
}

/* A message that had arrived is done; its completion goes with the reset. */
LAB_CASE(a_reset_leaves_the_counter)
{
	struct lab_end *from = lab_end(2), *e;
	struct counter *c = counted_ends(&e, 1);

	attach(e->qp, c, RECV | SEND);
	for (unsigned i = 1; i <= 3; i++) {
		lab_start(e->qp, LAB_QKEY);
		lab_post(e, 2);
		lab_send_text(from, lab_ah_to(from, e), e->qp->qp_num, "first");
		if (i == 2)
			expect(c, 3, 0);
		lab_send_text(from, lab_ah_to(from, e), e->qp->qp_num, "second");
		lab_to(e->qp, IBV_QPS_RESET);
		lab_quiet(e->cq);
		expect(c, 2 * i, 0);
	}
}

/* ---- completion queues that nobody polls ---- */

static void undo_cq(void *cq)
{
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* A CQ of 4 completions, flags as of ibv_create_cq_ex(); a queue pair with 4 receives there. */
static struct ibv_cq *cq_of_4(struct lab_end *of, uint32_t flags)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 4,
		                            .wc_flags = IBV_WC_STANDARD_FLAGS,
		                            .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		                            .flags = flags };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(of->context, &init);

	assert_non_null(cq);
	lab_undo(undo_cq, cq);
	return ibv_cq_ex_to_cq(cq);
}

static struct ibv_qp *qp_with(struct lab_end *of, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.send_cq = of->send_cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 }
	};

	return lab_qp(of->pd, &init);
}

/* A receive, by the shared queue if there is one, and a message for it. */
static void send_one(struct lab_end *of, struct ibv_qp *qp, struct lab_end *from, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)of->slot, LAB_SLOT, of->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(
	        qp->srq ? ibv_post_srq_recv(qp->srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad), 0);
	lab_send_text(from, lab_ah_to(from, of), qp->qp_num, "one of them");
}

LAB_CASE(a_cq_that_nobody_polls_overruns)
{
	struct lab_end *of = lab_end(1);
	struct counter *c = counter_of(of->context, REQUESTS);
	struct ibv_cq *cq = cq_of_4(of, 0);
	struct ibv_qp *qp = qp_with(of, cq, NULL);
	struct lab_end *from = lab_end(2);
	struct ibv_wc wc;

	attach(qp, c, RECV);
	lab_start(qp, LAB_QKEY);
	for (unsigned i = 0; i < 4; i++) {
		send_one(of, qp, from, i);
		expect(c, i + 1, 0);
	}
	send_one(of, qp, from, 4);
	expect(c, 4, 0);
	lab_async_event(of->context, IBV_EVENT_CQ_ERR);
	assert_true(ibv_poll_cq(cq, 1, &wc) < 0);
}

LAB_CASE(a_cq_that_ignores_overrun_need_not_be_polled)
{
	struct lab_end *of = lab_end(1);
	struct counter *c = counter_of(of->context, REQUESTS);
	struct ibv_cq *cq = cq_of_4(of, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	struct ibv_qp *qp = qp_with(of, cq, NULL);
	struct lab_end *from = lab_end(2);
	struct ibv_wc wc[4];

	attach(qp, c, RECV);
	lab_start(qp, LAB_QKEY);
	for (unsigned i = 0; i < 5; i++) {
		send_one(of, qp, from, i);
		expect(c, i + 1, 0);
	}
	lab_poll(cq, 4, wc);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(wc[i].wr_id, i + 1);
	lab_quiet(cq);
}

/* Two queue pairs share the CQ, so arrivals are counted against its size. */
LAB_CASE(what_is_set_aside_fills_its_cq)
{
	struct lab_end *of = lab_end(1), *from = lab_end(2);
	struct counter *c = counter_of(of->context, REQUESTS);
	struct ibv_cq *cq = cq_of_4(of, 0);
	struct ibv_qp *qp[2];
	struct ibv_wc wc[4];

	for (int i = 0; i < 2; i++) {
		qp[i] = qp_with(of, cq, NULL);
		attach(qp[i], c, RECV);
		lab_start(qp[i], LAB_QKEY);
	}
	for (unsigned i = 0; i < 3; i++)
		send_one(of, qp[0], from, i);
	expect(c, 3, 0);
	lab_to(qp[0], IBV_QPS_RESET); /* these three go */
	for (unsigned i = 0; i < 4; i++) {
		send_one(of, qp[1], from, i);
		expect(c, 4 + i, 0);
	}
	lab_poll(cq, 2, wc);
	for (unsigned i = 4; i < 6; i++)
		send_one(of, qp[1], from, i);
	expect(c, 9, 0);
	lab_poll(cq, 4, wc);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(wc[i].wr_id, 2 + i);
	for (unsigned i = 0; i < 5; i++) {
		send_one(of, qp[1], from, i);
		expect(c, 10 + i - (i == 4), 0);
	}
	lab_async_event(of->context, IBV_EVENT_CQ_ERR);
}

static void undo_srq(void *srq)
{
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

LAB_CASE(receives_of_a_shared_queue_count)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct lab_end *of = lab_end(1), *from = lab_end(2);
	struct counter *c = counter_of(of->context, REQUESTS);
	struct ibv_srq *srq = ibv_create_srq(of->pd, &init);
	struct ibv_qp *qp;
	struct ibv_wc wc[4];

	assert_non_null(srq);
	lab_undo(undo_srq, srq);
	qp = qp_with(of, of->cq, srq);
	attach(qp, c, RECV);
	lab_start(qp, LAB_QKEY);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 4; i++) {
			send_one(of, qp, from, i);
			expect(c, 4 * round + i + 1, 0);
		}
		lab_poll(of->cq, 4, wc);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(wc[i].wr_id, i);
	}
	lab_quiet(of->cq);
}

/* ---- the calls themselves ---- */

LAB_CASE(the_device_says_what_it_counts)
{
	struct ibv_context *context = lab_open(1);
	struct caps caps;

	memset(&caps, 0xff, sizeof(caps));
	assert_int_equal(call.query(context, &caps, sizeof(caps)), 0);
	assert_true(caps.max_value == UINT64_MAX);
	assert_int_equal(caps.max_counters, 65536);
	assert_int_equal(caps.supported_qp_attach_ops, ALL);
	/* a program that knows less of the structure, and one that knows more */
	memset(&caps, 0xff, sizeof(caps));
	assert_int_equal(call.query(context, &caps, 12), 0);
	assert_int_equal(caps.supported_qp_attach_ops, UINT32_MAX);
	assert_int_equal(call.query(context, (uint64_t[3]){ 0, 0, 7 }, 24), 0);
}

LAB_CASE(values_can_be_set_and_added_to)
{
	struct counter *c = counter_of(lab_open(1), REQUESTS);

	expect(c, 0, 0);
	assert_int_equal(call.set(c, 41), 0);
	assert_int_equal(call.inc(c, 1), 0);
	assert_int_equal(call.set_err(c, UINT64_MAX), 0);
	expect(c, 42, UINT64_MAX);
	assert_int_equal(call.inc_err(c, 3), 0);
	expect(c, 42, 2);
}

LAB_CASE_BOTH(what_was_counted_is_added_to_what_was_set)
{
	struct pair pair;
	struct counter *c = counted_pair(&pair, NULL, state, ALL);

	do_many(pair.p[1], pair.p[0], IBV_WR_RDMA_WRITE, 3, 40);
	assert_int_equal(call.set(c, 100), 0);
	do_many(pair.p[1], pair.p[0], IBV_WR_RDMA_WRITE, 2, 40);
	do_many(pair.p[0], pair.p[1], IBV_WR_RDMA_WRITE, 1, 40);
	expect(c, 103, 0);
}

LAB_CASE(there_are_as_many_as_the_device_says)
{
	struct ibv_context *context = lab_open(1);
	struct init_attr attr = { .type = REQUESTS };
	struct counter **c = calloc(65536, sizeof(*c));

	assert_non_null(c);
	lab_undo(free, c);
	for (unsigned i = 0; i < 65536; i++)
		c[i] = call.create(context, &attr);
	assert_non_null(c[65535]);
	errno = 0;
	assert_null(call.create(context, &attr));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(call.destroy(c[7]), 0);
	assert_non_null(c[7] = call.create(context, &attr));
	for (unsigned i = 0; i < 65536; i++)
		assert_int_equal(call.destroy(c[i]), 0);
}

LAB_CASE(a_counter_of_another_kind_cannot_be_made)
{
	struct init_attr attr[] = { { .comp_mask = 1 }, { .type = 2 }, { .flags = 1 } };
	struct ibv_context *context = lab_open(1);

	for (unsigned i = 0; i < LAB_ARRAY(attr); i++) {
		errno = 0;
		assert_null(call.create(context, &attr[i]));
		assert_int_equal(errno, EOPNOTSUPP);
	}
}

LAB_CASE(each_kind_has_one_counter)
{
	struct counter *c[2];
	struct lab_end *e;

	c[0] = counted_ends(&e, 1);
	c[1] = call.create(e->context, &(struct init_attr){ .type = BYTES });
	assert_non_null(c[1]);
	attach(e->qp, c[0], SEND);
	assert_int_equal(try_attach(e->qp, c[1], SEND | RECV), EBUSY);
	assert_int_equal(try_attach(e->qp, c[0], SEND), EBUSY);
	assert_int_equal(call.destroy(c[1]), 0); /* none of the two was attached */
	attach(e->qp, c[0], RECV);
}

LAB_CASE(what_cannot_be_counted_is_refused)
{
	struct counter *c = counter_of(lab_open(1), REQUESTS), *ours;
	struct lab_end *e;
	struct pair pair;

	ours = counted_ends(&e, 1);
	assert_int_equal(try_attach(e->qp, c, SEND), EINVAL); /* of another context */
	assert_int_equal(try_attach(e->qp, ours, 0), EINVAL);
	assert_int_equal(try_attach(e->qp, ours, SEND | 64), EOPNOTSUPP);
	assert_int_equal(try_attach(e->qp, ours, WRITE), EOPNOTSUPP); /* of UD */
	assert_int_equal(
	        call.attach(e->qp, ours, &(struct attach_attr){ .comp_mask = 1, .op_mask = SEND }),
	        EOPNOTSUPP);
	ours = counter_of(begin(&pair), REQUESTS);
	make_pair(&pair, &(struct lab_peer_options){ .type = IBV_QPT_UC }, NULL);
	assert_int_equal(try_attach(pair.p[0]->here->qp, ours, READ), EOPNOTSUPP);
	assert_int_equal(try_attach(pair.p[0]->here->qp, ours, REMOTE_READ), EOPNOTSUPP);
	attach(pair.p[0]->here->qp, ours, ALL & ~(READ | REMOTE_READ));
}

LAB_CASE(only_a_queue_pair_that_does_nothing_yet_gets_a_counter)
{
	struct lab_end *e;
	struct counter *c = counted_ends(&e, 1);

	attach(e->qp, c, SEND);
	lab_to_init(e->qp, LAB_QKEY);
	attach(e->qp, c, RECV);
	lab_to_rtr(e->qp);
	assert_int_equal(try_attach(e->qp, c, SEND), EINVAL);
	lab_to_rts(e->qp);
	assert_int_equal(try_attach(e->qp, c, SEND), EINVAL);
}

/* ---- threads ---- */

#define ROUNDS 3000

struct reader {
	struct counter *c;
	uint64_t last;
};

/* Reads until all has come; a value never falls. */
static void *read_all(void *arg)
{
	struct reader *r = arg;

	while (r->last < ROUNDS) {
		uint64_t value = 0;

		if (call.read(r->c, &value) || value < r->last)
			break;
		r->last = value;
	}
	return NULL;
}

LAB_CASE(a_reader_and_a_poller_see_each_receive_once)
{
	struct lab_end *from = lab_end(2), *e;
	struct reader r = { .c = counted_ends(&e, 1) };
	struct ibv_ah *ah = lab_ah_to(from, e);
	struct ibv_wc wc;
	pthread_t thread;

	attach(e->qp, r.c, RECV);
	lab_start(e->qp, LAB_QKEY);
	assert_int_equal(pthread_create(&thread, NULL, read_all, &r), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		lab_post(e, 1);
		lab_send_text(from, ah, e->qp->qp_num, "again");
		lab_poll(e->cq, 1, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	pthread_join(thread, NULL);
	assert_int_equal(r.last, ROUNDS);
	lab_quiet(e->cq);
}

int main(void)
{
	find_calls();
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
