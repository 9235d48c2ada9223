/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The faults that the tests of ROCm's RCCL inject into its network transport (net-ib), by rules: of
 * a connection of several queue pairs that share a completion queue, one is slow, cannot post, has
 * completions that are errors or that nobody has asked for, or breaks with requests under way. The
 * others go on, what failed is sent by them, and the broken one is connected again. RCCL changes
 * its own calls of libibverbs for that; here the calls themselves fail.
 *
 * On RoCE, too.
 */
#include "fault_lab.h"
#include "peer_lab.h"

#include "base/util.h"

#define QPS       4
#define PATIENT   19 /* 2.1 s */
#define IMPATIENT 14 /* 67 ms: for a peer that is to give up */
#define MESSAGE   4096
/* The wr_id that RCCL's tests give a made-up completion. */
#define NOBODYS 0xF00000

/* A connection: its queue pairs, of the sender and of the receiver. */
struct comm {
	struct lab_peer *from[QPS], *to[QPS];
};

static void connect_pair(struct lab_peer *a, struct lab_peer *b)
{
	struct lab_peer *p[] = { a, b };

	for (int i = 0; i < 2; i++) {
		lab_peer_to_init(p[i]);
		lab_peer_to_rtr(p[i], p[!i]);
	}
	for (int i = 0; i < 2; i++)
		lab_peer_to_rts(p[i]);
}

/* @timeout: as of ibv_modify_qp(), for 8 tries. */
static void comm_open_with(struct comm *c, uint8_t timeout)
{
	struct lab_peer_options o = { .timeout = timeout, .retry_cnt = 7, .rnr_retry = 7 };

	for (unsigned i = 0; i < QPS; i++) {
		o.shares_cqs = i > 0;
		o.host = 1;
		o.neighbour = i ? c->from[0] : NULL;
		c->from[i] = lab_peer(&o);
		o.host = 2;
		o.neighbour = i ? c->to[0] : NULL;
		c->to[i] = lab_peer(&o);
		connect_pair(c->from[i], c->to[i]);
	}
}

static void comm_open(struct comm *c)
{
	comm_open_with(c, PATIENT);
}

/* Message @n of queue pair @q, as RCCL sends it: a WRITE with immediate data. */
static struct lab_work message(const struct comm *c, unsigned q, unsigned n)
{
	return (struct lab_work){ .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		                  .wr_id = n,
		                  .n = 1,
		                  .piece = { { n % 8 * MESSAGE, MESSAGE, 0 } },
		                  .imm = n,
		                  .to = c->to[q],
		                  .remote = n % 8 * MESSAGE };
}

static void expect_arrival(const struct comm *c, unsigned q, unsigned n)
{
	const struct ibv_wc wc = lab_peer_received(c->to[q], IBV_WC_SUCCESS);

	assert_int_equal(wc.qp_num, c->to[q]->address.qpn);
	assert_int_equal(wc.wr_id, n);
	lab_peer_expect(c->to[q], n % 8 * MESSAGE, MESSAGE, n);
}

/* Message @n goes by queue pair @q, and arrives whole; its completion has this status. */
static void transfer_with(const struct comm *c, unsigned q, unsigned n, enum ibv_wc_status status)
{
	const struct lab_work w = message(c, q, n);

	lab_peer_receive(c->to[q], n, 0, 0);
	lab_peer_fill(c->from[q], n % 8 * MESSAGE, MESSAGE, n);
	lab_peer_post(c->from[q], &w);
	assert_int_equal(lab_peer_sent(c->from[q], status).qp_num, c->from[q]->address.qpn);
	expect_arrival(c, q, n);
}

static void transfer(const struct comm *c, unsigned q, unsigned n)
{
	transfer_with(c, q, n, IBV_WC_SUCCESS);
}

static void transfer_by_all_but(const struct comm *c, unsigned but)
{
	for (unsigned q = 0; q < QPS; q++)
		if (q != but)
			transfer(c, q, q);
}

static void nothing_completes(const struct comm *c)
{
	struct ibv_wc wc;

	assert_int_equal(lab_peer_try_sent(c->from[0], &wc), 0);
	assert_int_equal(lab_peer_try_received(c->to[0], &wc), 0);
}

static void connect_again(const struct comm *c, unsigned q)
{
	lab_peer_to(c->from[q], IBV_QPS_RESET);
	lab_peer_to(c->to[q], IBV_QPS_RESET);
	connect_pair(c->from[q], c->to[q]);
}

/* ---- calls that fail ---- */

FAULT_CASE(no_queue_pair_can_post)
{
	struct comm c;

	fault_lab_add("host=@1 post=EIO");
	comm_open(&c);
	for (unsigned q = 0; q < QPS; q++) {
		const struct lab_work w = message(&c, q, q);

		assert_int_equal(lab_peer_try_post(c.from[q], &w), EIO);
		lab_peer_expect_state(c.from[q], IBV_QPS_RTS);
	}
	nothing_completes(&c);
	assert_int_equal(fault_lab_fired(0), QPS);
}

/* Of one connection, the others do not notice. */
FAULT_CASE(one_queue_pair_cannot_post)
{
	struct lab_work w;
	struct comm c;

	fault_lab_add("qp=@1:#2 post=EIO");
	comm_open(&c);
	for (unsigned round = 0; round < 10; round++) {
		w = message(&c, 1, round);
		assert_int_equal(lab_peer_try_post(c.from[1], &w), EIO);
		transfer_by_all_but(&c, 1);
	}
	nothing_completes(&c);
	assert_int_equal(fault_lab_fired(0), 10);
}

/* Nothing was posted; it can be tried again. */
FAULT_CASE(a_request_is_to_be_posted_again)
{
	struct lab_work w;
	struct comm c;

	fault_lab_add("qp=@1:#1 post=EAGAIN nth=2 count=3");
	comm_open(&c);
	transfer(&c, 0, 0);
	w = message(&c, 0, 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(lab_peer_try_post(c.from[0], &w), EAGAIN);
	nothing_completes(&c);
	transfer(&c, 0, 1);
	assert_int_equal(fault_lab_fired(0), 3);
}

FAULT_CASE(a_receive_is_to_be_posted_again)
{
	const struct lab_work receive = { .wr_id = 99, .n = 0 };
	struct comm c;

	fault_lab_add("qp=@2:#3 receive=EAGAIN nth=2");
	comm_open(&c);
	transfer(&c, 2, 0);
	assert_int_equal(lab_peer_try_receive(c.to[2], &receive), EAGAIN);
	transfer(&c, 2, 1); /* into the one that is posted then */
	transfer_by_all_but(&c, 2);
	nothing_completes(&c);
	assert_int_equal(fault_lab_fired(0), 1);
}

FAULT_CASE(memory_is_not_registered)
{
	static char memory[MESSAGE];
	struct lab_peer *p;

	fault_lab_add("host=@1 register=ENOMEM nth=2");
	p = lab_peer(&(struct lab_peer_options){ .host = 1 });
	errno = 0;
	assert_null(ibv_reg_mr(p->here->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, ENOMEM);
	lab_mr(p->here->pd, memory, sizeof(memory));
}

/* ---- completions ---- */

/* RCCL takes the first two for a broken link, and the others for its end. */
FAULT_CASE(a_completion_is_an_error)
{
	static const struct {
		const char *name;
		enum ibv_wc_status status;
	} cases[] = {
		{ "WR_FLUSH", IBV_WC_WR_FLUSH_ERR },
		{ "RETRY_EXC", IBV_WC_RETRY_EXC_ERR },
		{ "REM_ACCESS", IBV_WC_REM_ACCESS_ERR },
		{ "GENERAL", IBV_WC_GENERAL_ERR },
	};

	for (size_t i = 0; i < LAB_ARRAY(cases); i++) {
		struct comm c;

		assert_int_equal(system("umbel fault clear"), 0);
		fault_lab_add("qp=@1:#1 wc=%s nth=2", cases[i].name);
		comm_open(&c);
		transfer(&c, 0, 0);
		transfer_with(&c, 0, 1, cases[i].status);
		/* one that is flushed does not break it: it comes of that */
		lab_peer_expect_state(c.from[0], cases[i].status == IBV_WC_WR_FLUSH_ERR
		                                         ? IBV_QPS_RTS
		                                         : IBV_QPS_ERR);
		transfer_by_all_but(&c, 0);
		connect_again(&c, 0);
		transfer(&c, 0, 2);
		nothing_completes(&c);
	}
}

/* One on each queue pair, which are left as they are; then all is as it should be. */
FAULT_CASE(so_many_completions_are_errors)
{
	struct comm c;

	for (unsigned q = 0; q < QPS; q++)
		fault_lab_add("qp=@1:#%u wc=WR_FLUSH nth=1", q + 1);
	comm_open(&c);
	for (unsigned q = 0; q < QPS; q++)
		transfer_with(&c, q, q, IBV_WC_WR_FLUSH_ERR);
	for (unsigned round = 0; round < 3; round++)
		transfer_by_all_but(&c, QPS);
	nothing_completes(&c);
	for (unsigned q = 0; q < QPS; q++)
		assert_int_equal(fault_lab_fired(q), 1);
}

/* At both ends, though nothing is under way: a program must not take it for one of its own. */
FAULT_CASE(a_completion_is_nobodys)
{
	struct comm c;

	fault_lab_add("qp=@1:#1 made=RETRY_EXC nth=1 wr_id=0x%x", NOBODYS);
	fault_lab_add("qp=@2:#1 made=WR_FLUSH nth=1 wr_id=0x%x", NOBODYS);
	comm_open(&c);
	transfer(&c, 0, 0);
	assert_int_equal(lab_peer_sent(c.from[0], IBV_WC_RETRY_EXC_ERR).wr_id, NOBODYS);
	assert_int_equal(lab_peer_received(c.to[0], IBV_WC_WR_FLUSH_ERR).wr_id, NOBODYS);
	nothing_completes(&c);
	transfer(&c, 0, 1);
}

/* ---- slow and broken queue pairs ---- */

FAULT_CASE(one_queue_pair_is_slow)
{
	struct comm c;
	uint64_t began;

	fault_lab_add("qp=@1:#1 delay=10ms");
	comm_open(&c);
	for (unsigned n = 0; n < 5; n++) {
		began = base_now_ns() / 1000000;
		transfer(&c, 0, n);
		assert_true(base_now_ns() / 1000000 - began >= 10);
		transfer_by_all_but(&c, 0);
	}
	assert_true(fault_lab_fired(0) >= 5 * MESSAGE / 1024);
	assert_int_equal(fault_lab_shown(0, "fitted"), fault_lab_fired(0));
}

FAULT_CASE(what_is_slow_comes_whole)
{
	struct comm c;

	for (unsigned q = 0; q < QPS; q++)
		fault_lab_add("qp=@1:#%u delay=2ms", q + 1);
	comm_open(&c);
	for (unsigned n = 0; n < 50; n++)
		transfer(&c, n % QPS, n);
	for (unsigned q = 0; q < QPS; q++)
		assert_true(fault_lab_fired(q) > 0);
}

/* It breaks with requests under way: the first one says why, the others are flushed, all are sent
 * by another one, and when it is connected again, it works. */
FAULT_CASE(what_was_under_way_goes_by_another_one)
{
	const unsigned broken[] = { 0, 1 };

	for (size_t i = 0; i < LAB_ARRAY(broken); i++) {
		const unsigned q = broken[i], other = !q;
		struct comm c;

		assert_int_equal(system("umbel fault clear"), 0);
		fault_lab_add("qp=@1:#%u drop", q + 1);
		comm_open_with(&c, IMPATIENT);
		for (unsigned n = 0; n < 4; n++) {
			const struct lab_work w = message(&c, q, n);

			lab_peer_post(c.from[q], &w);
		}
		for (unsigned n = 0; n < 4; n++) {
			const struct ibv_wc wc = lab_peer_sent(c.from[q], n ? IBV_WC_WR_FLUSH_ERR
			                                                    : IBV_WC_RETRY_EXC_ERR);

			assert_int_equal(wc.wr_id, n);
			assert_int_equal(wc.qp_num, c.from[q]->address.qpn);
		}
		lab_peer_expect_state(c.from[q], IBV_QPS_ERR);
		lab_peer_expect_state(c.to[q], IBV_QPS_RTS); /* it knows nothing */
		for (unsigned n = 0; n < 4; n++)
			transfer(&c, other, n);
		assert_int_equal(system("umbel fault clear"), 0);
		connect_again(&c, q);
		for (unsigned n = 0; n < 20; n++)
			transfer(&c, q, n);
		transfer_by_all_but(&c, q);
	}
}

/* The device's port goes down, and comes back: the programs are told, and connect again. */
FAULT_CASE(the_port_is_lost)
{
	struct lab_work w;
	struct comm c;

	if (fault_lab_on_roce())
		skip(); /* a link between switches and hosts is InfiniBand's */
	fault_lab_add("opcode=CNP drop");
	comm_open_with(&c, IMPATIENT);
	transfer_by_all_but(&c, QPS);
	assert_int_equal(system("umbel link down h1:1"), 0);
	lab_peer_event(c.from[0], IBV_EVENT_PORT_ERR);
	for (unsigned q = 0; q < QPS; q++) {
		w = message(&c, q, q);
		lab_peer_post(c.from[q], &w);
		lab_peer_sent(c.from[q], IBV_WC_RETRY_EXC_ERR);
	}
	assert_int_equal(system("umbel link up h1:1"), 0);
	lab_peer_event(c.from[0], IBV_EVENT_PORT_ACTIVE);
	for (unsigned q = 0; q < QPS; q++) {
		lab_peer_expect_state(c.from[q], IBV_QPS_ERR);
		connect_again(&c, q);
	}
	transfer_by_all_but(&c, QPS);
}

/* A program that opened its device before there were rules meets none. */
FAULT_CASE(without_rules_nothing_is_different)
{
	struct comm c;

	comm_open(&c);
	fault_lab_add("host=@1 post=EAGAIN");
	fault_lab_add("host=@2 receive=EAGAIN");
	fault_lab_add("host=@1 wc=RETRY_EXC");
	transfer_by_all_but(&c, QPS);
	nothing_completes(&c);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(fault_lab_fired(i), 0);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
