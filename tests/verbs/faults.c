/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules of faults (`umbel fault`): the packets that they name get lost, late, twice, damaged or out
 * of order, no others do; and reliable connections bring everything all the same, or fail as on
 * hardware.
 * On RoCE, too.
 */
#include "fault_lab.h"
#include "peer_lab.h"

#include "base/util.h"

#define MANY 400

/* On Ethernet the network makes the copies. */
#define CASE_OF_SWITCHES(name)                  \
	CASE_AS(name, if (!fault_lab_on_roce()) \
	                      harness_add(#name, name, NULL, fault_lab_clean_up, NULL))

/* ---- datagrams ---- */

/* Sends the numbers from 0 to @n - 1. */
static void send_numbers(struct lab_end *from, struct lab_end *to, uint32_t n)
{
	struct ibv_ah *ah = lab_ah_to(from, to);

	for (uint32_t i = 0; i < n; i++)
		lab_send(from, ah, to->qp->qp_num, &i, sizeof(i));
}

static uint32_t next_number(struct lab_end *at)
{
	struct lab_message m = lab_receive(at);
	uint32_t n;

	assert_int_equal(m.length, sizeof(n));
	memcpy(&n, m.data, sizeof(n));
	return n;
}

static void expect_numbers(struct lab_end *at, const uint32_t *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(next_number(at), list[i]);
	usleep(50000);
	lab_quiet(at->cq);
}

/* The numbers from 0 to 3 come, in any order, so many times each. */
static void expect_times(struct lab_end *at, const unsigned times[4])
{
	unsigned came[4] = { 0 };
	uint32_t n;

	for (unsigned i = 0; i < times[0] + times[1] + times[2] + times[3]; i++) {
		n = next_number(at);
		assert_true(n < 4);
		came[n]++;
	}
	assert_memory_equal(came, times, sizeof(came));
	usleep(50000);
	lab_quiet(at->cq);
}

FAULT_CASE(the_nth_datagram_gets_lost)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	fault_lab_add("qp=@1:%u nth=3 drop", a->qp->qp_num);
	lab_post(b, 8);
	send_numbers(a, b, 5);
	expect_numbers(b, (uint32_t[]){ 0, 1, 3, 4 }, 4);
	assert_int_equal(fault_lab_fired(0), 1);
}

FAULT_CASE(a_damaged_datagram_does_not_come)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	fault_lab_add("to=@2:0x%x nth=2 count=2 corrupt", b->qp->qp_num);
	lab_post(b, 8);
	send_numbers(a, b, 5);
	expect_numbers(b, (uint32_t[]){ 0, 3, 4 }, 3);
}

FAULT_CASE(a_datagram_comes_twice)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	fault_lab_add("qp=@1:* nth=1 duplicate");
	lab_post(b, 8);
	send_numbers(a, b, 1);
	expect_numbers(b, (uint32_t[]){ 0, 0 }, 2);
}

FAULT_CASE(a_datagram_comes_behind_the_next_one)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	fault_lab_add("qp=@1:* nth=2 reorder");
	lab_post(b, 8);
	send_numbers(a, b, 4);
	expect_numbers(b, (uint32_t[]){ 0, 2, 1, 3 }, 4);
}

FAULT_CASE(a_datagram_comes_late_and_in_order)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	uint64_t began;

	fault_lab_add("qp=@1:* delay=150ms");
	lab_post(b, 8);
	began = base_now_ns() / 1000000;
	send_numbers(a, b, 3);
	expect_numbers(b, (uint32_t[]){ 0, 1, 2 }, 3);
	assert_true(base_now_ns() / 1000000 - began >= 150);
}

/* A packet that has left its queue pair comes, as by a wire, also if the queue pair is gone. */
FAULT_CASE(what_is_late_outlives_its_sender)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	uint64_t began = base_now_ns() / 1000000;

	fault_lab_add("qp=@1:* delay=150ms");
	lab_post(b, 8);
	send_numbers(a, b, 3);
	lab_forget(a->qp);
	assert_int_equal(ibv_destroy_qp(a->qp), 0);
	expect_numbers(b, (uint32_t[]){ 0, 1, 2 }, 3);
	assert_true(base_now_ns() / 1000000 - began >= 150);
}

CASE_AS(what_is_late_outlives_its_process,
        harness_add("what_is_late_outlives_its_process", what_is_late_outlives_its_process, NULL,
                    fault_lab_clean_up, (void *)(uintptr_t)lab_open))
{
	const struct lab_peer_options o = { .type = IBV_QPT_UC };
	struct lab_work w = { .opcode = IBV_WR_SEND, .n = 1, .piece = { { .length = 3000 } } };
	struct lab_peer **p;

	fault_lab_add("qp=@2:* delay=150ms");
	p = lab_peers(&o, state);
	lab_peer_fill(p[1], 0, 3000, 1);
	for (unsigned i = 0; i < 3; i++) {
		lab_peer_receive(p[0], i, 4096 * i, 3000);
		lab_peer_post(p[1], &w);
	}
	lab_peer_signal(p[1], SIGKILL);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(lab_peer_received(p[0], IBV_WC_SUCCESS).wr_id, i);
		lab_peer_expect(p[0], 4096 * i, 3000, 1);
	}
}

FAULT_CASE(a_rule_holds_for_its_time)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	const uint64_t began = base_now_ns();
	unsigned slow;

	lab_post(b, LAB_SLOTS);
	fault_lab_add("qp=@1:* until=1ms drop");
	/* adding a rule takes seconds where machines are emulated */
	slow = (unsigned)((base_now_ns() - began) / 1000000000);
	fault_lab_add("qp=@1:* after=%us drop", 2 + 2 * slow);
	usleep(50000);
	send_numbers(a, b, 1);
	expect_numbers(b, (uint32_t[]){ 0 }, 1);
	for (unsigned i = 0; !fault_lab_fired(1) && i < LAB_SLOTS - 1; i++) {
		usleep(100000);
		send_numbers(a, b, 1);
	}
	assert_true(fault_lab_fired(1) > 0);
	assert_int_equal(fault_lab_fired(0), 0);
}

FAULT_CASE(only_what_crosses_the_link_gets_lost)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2), *c = lab_end(3);

	fault_lab_add("link=@2:1 drop");
	lab_post(b, 4);
	lab_post(c, 4);
	send_numbers(a, b, 2);
	send_numbers(a, c, 2);
	expect_numbers(c, (uint32_t[]){ 0, 1 }, 2);
	lab_quiet(b->cq);
	assert_int_equal(fault_lab_fired(0), 2);
}

/* ---- what ports count ---- */

/* The traffic that host @host has sent and received: packets, and bytes of payload. */
struct counts {
	uint64_t xmit, rcv, xmit_bytes, rcv_bytes;
};

static struct counts counts_of(int host)
{
	return (struct counts){ lab_counter(host, "xmit_pkts"), lab_counter(host, "rcv_pkts"),
		                lab_counter(host, "xmit_bytes"), lab_counter(host, "rcv_bytes") };
}

static void expect_more(const struct counts *before, int host, struct counts more)
{
	struct counts now = counts_of(host);

	assert_int_equal(now.xmit - before->xmit, more.xmit);
	assert_int_equal(now.rcv - before->rcv, more.rcv);
	assert_int_equal(now.xmit_bytes - before->xmit_bytes, more.xmit_bytes);
	assert_int_equal(now.rcv_bytes - before->rcv_bytes, more.rcv_bytes);
}

CASE_OF_SWITCHES(a_member_alone_misses_a_message)
{
	const char *group = fault_lab_on_roce() ? "239.7.7.7" : "ff12:4001:ffff::f07:707";
	struct lab_group *g = lab_join(1, "239.7.7.7");
	struct lab_end *a = lab_end(1), *at[2];
	struct ibv_ah *ah = lab_ah_group(a, g);
	struct counts before[3];

	for (int i = 0; i < 2; i++) {
		struct lab_group *joined = lab_join(2 + i, "239.7.7.7");

		at[i] = lab_end(2 + i);
		lab_attach(at[i]->qp, &joined->mgid, joined->mlid);
		ibv_modify_qp(at[i]->qp, &(struct ibv_qp_attr){ .qkey = joined->qkey },
		              IBV_QP_QKEY);
		lab_post(at[i], 8);
	}
	fault_lab_add("group=%s nth=2 link=@3:1 drop", group);
	fault_lab_add("group=%s nth=2 duplicate", group); /* neither comes there */
	for (int i = 0; i < 3; i++)
		before[i] = counts_of(1 + i);
	for (uint32_t i = 0; i < 4; i++) {
		struct lab_request q;

		lab_request(a, &q, ah, LAB_MCAST, &i, sizeof(i));
		q.wr.wr.ud.remote_qkey = g->qkey;
		lab_send_request(a, &q);
	}
	expect_times(at[0], (unsigned[4]){ 1, 2, 1, 1 });
	expect_times(at[1], (unsigned[4]){ 1, 0, 1, 1 });
	expect_more(&before[0], 1, (struct counts){ .xmit = 4, .xmit_bytes = 16 });
	expect_more(&before[1], 2, (struct counts){ .rcv = 4, .rcv_bytes = 16 });
	expect_more(&before[2], 3, (struct counts){ .rcv = 3, .rcv_bytes = 12 });
}

FAULT_CASE(what_gets_lost_is_sent_and_not_received)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct counts at_a, at_b;

	fault_lab_add("qp=@1:* nth=2 count=2 drop");
	lab_post(b, 8);
	at_a = counts_of(1);
	at_b = counts_of(2);
	send_numbers(a, b, 5);
	expect_numbers(b, (uint32_t[]){ 0, 3, 4 }, 3);
	expect_more(&at_a, 1, (struct counts){ .xmit = 5, .xmit_bytes = 20 });
	expect_more(&at_b, 2, (struct counts){ .rcv = 3, .rcv_bytes = 12 });
	assert_int_equal(system("umbel fault clear"), 0);
	send_numbers(a, b, 2); /* which do not go by the daemon any more */
	expect_numbers(b, (uint32_t[]){ 0, 1 }, 2);
	expect_more(&at_a, 1, (struct counts){ .xmit = 7, .xmit_bytes = 28 });
	expect_more(&at_b, 2, (struct counts){ .rcv = 5, .rcv_bytes = 20 });
}

/* The switch between counts no more of it than the link lets through. */
CASE_OF_SWITCHES(what_gets_lost_on_a_link_is_received_before_it_only)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	uint64_t xmit, rcv;
	struct counts at_b;

	fault_lab_add("link=@1:1 qp=@1:* nth=1 drop");
	fault_lab_add("link=@2:1 qp=@1:* nth=3 drop");    /* the third, as it sees the first, too */
	fault_lab_add("link=@2:1 qp=@1:* nth=4 corrupt"); /* which arrives, damaged */
	lab_post(b, 8);
	at_b = counts_of(2);
	xmit = lab_fabric_counter("xmit_pkts");
	rcv = lab_fabric_counter("rcv_pkts");
	send_numbers(a, b, 5);
	expect_numbers(b, (uint32_t[]){ 1, 4 }, 2);
	assert_int_equal(lab_fabric_counter("xmit_pkts") - xmit, 5 + 4); /* with the hosts' */
	assert_int_equal(lab_fabric_counter("rcv_pkts") - rcv, 4 + 3);
	expect_more(&at_b, 2, (struct counts){ .rcv = 3, .rcv_bytes = 12 });
}

/* Which of MANY datagrams come, by that rule, as bits. */
static void trace(const char *rule, uint8_t came[MANY])
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_ah *ah = lab_ah_to(a, b);
	struct ibv_wc wc;

	assert_int_equal(system("umbel fault clear"), 0);
	fault_lab_add("qp=@1:%u %s", a->qp->qp_num, rule);
	memset(came, 0, MANY);
	lab_post(b, LAB_SLOTS);
	for (uint32_t i = 0; i < MANY; i++) {
		lab_send(a, ah, b->qp->qp_num, &i, sizeof(i));
		if (i % 50 == 49)
			usleep(100000);
		while (ibv_poll_cq(b->cq, 1, &wc) == 1) {
			uint32_t n;

			memcpy(&n, b->slot + wc.wr_id * LAB_SLOT + LAB_GRH, sizeof(n));
			assert_true(n < MANY);
			came[n]++;
			lab_post(b, 1);
		}
	}
}

FAULT_CASE(the_same_seed_brings_the_same_faults)
{
	static uint8_t first[MANY], again[MANY], other[MANY];

	trace("loss=20% seed=9", first);
	trace("loss=20% seed=9", again);
	trace("loss=20% seed=10", other);
	assert_memory_equal(first, again, MANY);
	assert_true(memcmp(first, other, MANY) != 0);
}

/* ---- reliable connections ---- */

static struct lab_work work_of(enum ibv_wr_opcode opcode, struct lab_peer *to, uint32_t length)
{
	return (struct lab_work){ .opcode = opcode,
		                  .wr_id = 7,
		                  .n = 1,
		                  .piece = { { 0, length, 0 } },
		                  .to = to,
		                  .remote = 64 };
}

FAULT_CASE_BOTH(what_gets_lost_is_sent_again)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		const char *rule;
	} cases[] = {
		{ IBV_WR_RDMA_WRITE, "opcode=RC_WRITE_FIRST nth=1 drop" },
		{ IBV_WR_RDMA_WRITE, "opcode=RC_WRITE_MIDDLE nth=4 drop" },
		{ IBV_WR_RDMA_WRITE, "opcode=RC_WRITE_LAST nth=1 count=2 drop" },
		{ IBV_WR_RDMA_WRITE, "opcode=RC_WRITE_MIDDLE nth=2 reorder" },
		{ IBV_WR_RDMA_WRITE, "opcode=RC_WRITE_MIDDLE nth=3 duplicate" },
		{ IBV_WR_RDMA_WRITE, "opcode=RC_WRITE_MIDDLE nth=3 corrupt" },
		{ IBV_WR_RDMA_WRITE, "opcode=RC_ACKNOWLEDGE nth=1 drop" },
		{ IBV_WR_RDMA_READ, "opcode=RC_READ_REQUEST nth=1 drop" },
		{ IBV_WR_RDMA_READ, "opcode=RC_READ_RESPONSE_FIRST nth=1 drop" },
		{ IBV_WR_RDMA_READ, "opcode=RC_READ_RESPONSE_MIDDLE nth=3 drop" },
		{ IBV_WR_RDMA_READ, "opcode=RC_READ_RESPONSE_LAST nth=1 drop" },
		{ IBV_WR_RDMA_READ, "opcode=RC_READ_RESPONSE_MIDDLE nth=3 reorder" },
	};

	for (size_t i = 0; i < LAB_ARRAY(cases); i++) {
		const struct lab_peer_options o = { .timeout = 19, .retry_cnt = 7, .rnr_retry = 7 };
		const bool reads = cases[i].opcode == IBV_WR_RDMA_READ;
		struct lab_peer **p;
		struct lab_work w;

		assert_int_equal(system("umbel fault clear"), 0);
		fault_lab_add("%s", cases[i].rule);
		p = lab_peers(&o, state);
		w = work_of(cases[i].opcode, p[1], 50000);
		lab_peer_fill(p[reads], reads ? 64 : 0, 50000, (unsigned)i);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		lab_peer_expect(p[!reads], reads ? 0 : 64, 50000, (unsigned)i);
		if (!fault_lab_fired(0))
			fail_msg("'%s' has not fired", cases[i].rule);
	}
}

/* Packets end within entries, and nothing is written behind one. */
FAULT_CASE(a_message_in_packets_fills_entry_after_entry)
{
	const struct lab_peer_options o = { .timeout = 19, .retry_cnt = 7, .rnr_retry = 7 };
	const struct {
		uint32_t at, length;
	} entry[] = { { 0, 3000 }, { 5000, 3000 }, { 10000, 4000 } };
	struct ibv_recv_wr wr = { .num_sge = LAB_ARRAY(entry) }, *bad;
	struct ibv_sge sge[LAB_ARRAY(entry)];
	struct lab_peer_objects *from, *to;
	char gap[2000], *sent;
	struct lab_peer **p;
	struct lab_work w;

	fault_lab_add("opcode=RC_SEND_MIDDLE nth=1000 drop"); /* it goes by packets */
	p = lab_peers(&o, state);
	from = p[0]->here;
	to = p[1]->here;
	memset(to->memory, 0xEE, 20000);
	memset(gap, 0xEE, sizeof(gap));
	for (size_t i = 0; i < LAB_ARRAY(entry); i++)
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)to->memory + entry[i].at,
			                   .length = entry[i].length,
			                   .lkey = to->lkey };
	wr.sg_list = sge;
	assert_int_equal(ibv_post_recv(to->qp, &wr, &bad), 0);
	w = work_of(IBV_WR_SEND, p[1], 10000);
	lab_peer_fill(p[0], 0, 10000, 1);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_complete(to->recv_cq, IBV_WC_SUCCESS);
	sent = from->memory;
	for (size_t i = 0; i < LAB_ARRAY(entry); sent += entry[i++].length) {
		assert_memory_equal(to->memory + entry[i].at, sent, entry[i].length);
		assert_memory_equal(to->memory + entry[i].at + entry[i].length, gap, sizeof(gap));
	}
}

/* Each packet counts as often as it is sent, by any sender, and as received if it comes. */
FAULT_CASE_BOTH(packets_of_connections_count_alike)
{
	static const struct {
		enum ibv_qp_type type;
		enum ibv_wr_opcode opcode;
		const char *rule;
		int from, lost;
	} cases[] = {
		{ IBV_QPT_RC, IBV_WR_RDMA_WRITE, "opcode=RC_WRITE_MIDDLE nth=4 drop", 1, 1 },
		{ IBV_QPT_RC, IBV_WR_RDMA_WRITE, "opcode=RC_WRITE_LAST nth=1 count=2 drop", 1, 2 },
		{ IBV_QPT_RC, IBV_WR_RDMA_WRITE, "opcode=RC_ACKNOWLEDGE nth=1 drop", 1, 0 },
		{ IBV_QPT_RC, IBV_WR_RDMA_READ, "opcode=RC_READ_RESPONSE_LAST nth=1 drop", 2, 1 },
		{ IBV_QPT_UC, IBV_WR_RDMA_WRITE, "opcode=UC_WRITE_LAST nth=1 drop", 1, 1 },
	};

	for (size_t i = 0; i < LAB_ARRAY(cases); i++) {
		const struct lab_peer_options o = {
			.type = cases[i].type, .timeout = 19, .retry_cnt = 7, .rnr_retry = 7
		};
		const int from = cases[i].from, to = 3 - from;
		struct counts before[3], now[3];
		struct lab_peer **p;
		struct lab_work w;

		assert_int_equal(system("umbel fault clear"), 0);
		fault_lab_add("%s", cases[i].rule);
		p = lab_peers(&o, state);
		w = work_of(cases[i].opcode, p[1], 50000);
		for (int host = 1; host <= 2; host++)
			before[host] = counts_of(host);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		while (!fault_lab_fired(0)) /* UC waits for nobody */
			usleep(10000);
		for (int host = 1; host <= 2; host++)
			now[host] = counts_of(host);
		assert_true(now[from].xmit_bytes - before[from].xmit_bytes >= 50000);
		assert_int_equal((now[from].xmit - before[from].xmit) -
		                         (now[to].rcv - before[to].rcv),
		                 cases[i].lost);
	}
}

/* Where the way has become slow, the sender learns how long it takes: else it would send each
 * packet many times, and make the way slower. */
FAULT_CASE_BOTH(who_answers_late_is_soon_waited_for)
{
	const struct lab_peer_options o = { .timeout = 19, .retry_cnt = 7, .rnr_retry = 7 };
	const unsigned writes = 20;
	struct lab_peer **p;
	struct lab_work w;

	fault_lab_add("opcode=CNP drop");
	p = lab_peers(&o, state);
	w = work_of(IBV_WR_RDMA_WRITE, p[1], 100);
	for (unsigned i = 0; i < 8; i++)
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	fault_lab_add("qp=@1:* opcode=RC_WRITE_ONLY delay=40ms");
	for (unsigned i = 0; i < writes; i++)
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	assert_in_range(fault_lab_shown(1, "fitted"), writes, 2 * writes);
}

/* A fork moves memory that peers have mapped; the daemon sends again, and places. */
FAULT_CASE_BOTH(what_gets_lost_is_sent_again_after_a_fork)
{
	const struct lab_peer_options o = { .timeout = 19, .retry_cnt = 7, .rnr_retry = 7 };
	struct lab_peer **p;

	fault_lab_add("opcode=RC_WRITE_MIDDLE nth=4 drop");
	fault_lab_add("opcode=RC_READ_RESPONSE_MIDDLE nth=4 drop");
	p = lab_peers(&o, state);
	for (unsigned i = 0; i < 4; i++) {
		const bool reads = i % 2;
		struct lab_work w =
		        work_of(reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, p[1], 50000);

		assert_int_equal(system("true"), 0);
		lab_peer_fill(p[reads], reads ? 64 : 0, 50000, i);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		lab_peer_expect(p[!reads], reads ? 0 : 64, 50000, i);
	}
	assert_int_equal(fault_lab_fired(0), 1);
	assert_int_equal(fault_lab_fired(1), 1);
}

FAULT_CASE_BOTH(a_word_is_added_to_once)
{
	const struct lab_peer_options o = { .timeout = 19, .retry_cnt = 7, .rnr_retry = 7 };
	const uint64_t none = 0;
	struct lab_peer **p;
	struct lab_work w;
	uint64_t sum;

	fault_lab_add("opcode=RC_FETCH_ADD loss=10%% seed=1");
	fault_lab_add("opcode=RC_ATOMIC_ACKNOWLEDGE loss=10%% seed=2");
	fault_lab_add("opcode=RC_FETCH_ADD chance=10%% seed=3 duplicate");
	p = lab_peers(&o, state);
	lab_peer_put(p[1], 64, &none, sizeof(none));
	w = work_of(IBV_WR_ATOMIC_FETCH_AND_ADD, p[1], 8);
	w.compare_add = 1;
	for (unsigned i = 0; i < 200; i++)
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_get(p[1], 64, &sum, sizeof(sum));
	assert_int_equal(sum, 200);
	for (unsigned i = 0; i < 3; i++)
		assert_true(fault_lab_fired(i) > 0);
}

/* And what is to be flushed is, in between. */
FAULT_CASE_BOTH(a_word_is_written_once)
{
	const struct lab_peer_options o = { .timeout = 19,
		                            .retry_cnt = 7,
		                            .rnr_retry = 7,
		                            .flush_access = LAB_ACCESS_FLUSH_GLOBAL };
	struct lab_work write = { .opcode = (enum ibv_wr_opcode)LAB_WR_ATOMIC_WRITE,
		                  .remote = 64,
		                  .by_wr = true };
	struct lab_work flush = { .opcode = (enum ibv_wr_opcode)LAB_WR_FLUSH,
		                  .flush_bytes = 8,
		                  .flush_type = LAB_FLUSH_GLOBAL,
		                  .by_wr = true };
	struct lab_peer **p;
	uint64_t word;

	fault_lab_add("opcode=RC_ATOMIC_WRITE loss=10%% seed=1");
	fault_lab_add("opcode=RC_ATOMIC_WRITE chance=10%% seed=2 duplicate");
	fault_lab_add("opcode=RC_FLUSH loss=10%% seed=3");
	fault_lab_add("opcode=RC_READ_RESPONSE_ONLY loss=10%% seed=4");
	p = lab_peers(&o, state);
	write.to = flush.to = p[1];
	for (uint64_t i = 1; i <= 100; i++) {
		write.swap = i;
		lab_peer_post(p[0], &write);
		lab_peer_post(p[0], &flush);
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).opcode, LAB_WC_ATOMIC_WRITE);
		assert_int_equal(lab_peer_sent(p[0], IBV_WC_SUCCESS).opcode, LAB_WC_FLUSH);
		lab_peer_get(p[1], 64, &word, sizeof(word));
		assert_int_equal(word, i);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_true(fault_lab_fired(i) > 0);
}

FAULT_CASE_BOTH(without_a_way_retries_come_to_their_end)
{
	const struct lab_peer_options o = { .timeout = 8, .retry_cnt = 2, .rnr_retry = 7 };
	struct lab_peer **p;
	struct lab_work w;

	fault_lab_add("qp=@1:* to=@2:* drop");
	p = lab_peers(&o, state);
	w = work_of(IBV_WR_RDMA_WRITE, p[1], 64);
	lab_peer_do(p[0], &w, IBV_WC_RETRY_EXC_ERR);
	lab_peer_expect_state(p[0], IBV_QPS_ERR);
}

FAULT_CASE_BOTH(what_is_refused_fails_as_the_nak_says)
{
	static const struct {
		const char *rule;
		enum ibv_wc_status status;
	} cases[] = {
		{ "opcode=RC_SEND_ONLY nth=1 nak=access", IBV_WC_REM_ACCESS_ERR },
		{ "opcode=RC_SEND_ONLY nth=1 nak=invalid", IBV_WC_REM_INV_REQ_ERR },
		{ "opcode=RC_SEND_ONLY nth=1 nak=operation", IBV_WC_REM_OP_ERR },
		{ "opcode=RC_SEND_ONLY nth=1 count=50 nak=rnr", IBV_WC_RNR_RETRY_EXC_ERR },
		{ "opcode=RC_SEND_ONLY nth=1 nak=rnr", IBV_WC_SUCCESS },
		{ "opcode=RC_SEND_ONLY nth=1 nak=sequence", IBV_WC_SUCCESS },
	};

	for (size_t i = 0; i < LAB_ARRAY(cases); i++) {
		const struct lab_peer_options o = { .timeout = 19, .retry_cnt = 7, .rnr_retry = 2 };
		struct lab_peer **p;
		struct lab_work w;

		assert_int_equal(system("umbel fault clear"), 0);
		fault_lab_add("%s", cases[i].rule);
		p = lab_peers(&o, state);
		lab_peer_receive(p[1], 1, 0, 4096);
		w = work_of(IBV_WR_RDMA_WRITE, p[1], 64);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		w = work_of(IBV_WR_SEND, p[1], 64);
		lab_peer_do(p[0], &w, cases[i].status);
		assert_true(fault_lab_fired(0) > 0);
	}
}

#define PACKETS 49 /* of LENGTH bytes */
#define LENGTH  50000

/* The packet is named before there is a connection, or a PSN. */
FAULT_CASE_BOTH(a_packet_is_named_by_its_place)
{
	const struct lab_peer_options o = { .timeout = 19, .retry_cnt = 7, .rnr_retry = 7 };
	struct lab_peer **p[3];

	fault_lab_add("'qp=@1:#2' psn=+3 drop");
	fault_lab_add("'qp=@1:#2' psn=+%u drop", PACKETS + 1);
	fault_lab_add("'to=@2:#3' psn=+0 drop");
	fault_lab_add("'qp=@2:#3' opcode=RC_READ_RESPONSE_LAST psn=+%u drop", 2 * PACKETS - 1);
	fault_lab_add("'qp=@1:#4' drop");
	fault_lab_add("psn=+%u drop", 2 * PACKETS);
	for (unsigned i = 0; i < 3; i++)
		p[i] = lab_peers(&o, state);
	for (unsigned i = 0; i < 3; i++) {
		struct lab_work w = work_of(IBV_WR_RDMA_WRITE, p[i][1], LENGTH);

		lab_peer_fill(p[i][0], 0, LENGTH, i);
		lab_peer_do(p[i][0], &w, IBV_WC_SUCCESS);
		lab_peer_expect(p[i][1], 64, LENGTH, i);
		assert_int_equal(fault_lab_fired(0), i >= 1);
		assert_int_equal(fault_lab_fired(1), 0);
		assert_int_equal(fault_lab_fired(2), i == 2);
		w.opcode = IBV_WR_RDMA_READ;
		lab_peer_do(p[i][0], &w, IBV_WC_SUCCESS);
		assert_int_equal(fault_lab_fired(3), i == 2);
	}
	for (unsigned i = 4; i < 6; i++)
		assert_int_equal(fault_lab_fired(i), 0);
}

/* The packet is lost again when it is sent again, and a third time: then all of it comes. The
 * second loss takes a timeout. One that comes early, as machines are slow, begins a round before
 * all packets of the last one are sent. */
FAULT_CASE_BOTH(a_packet_is_named_by_its_round)
{
	const struct lab_peer_options o = { .timeout = 16, .retry_cnt = 7, .rnr_retry = 7 };
	struct lab_peer **p;

	fault_lab_add("qp=@1:* psn=+5/%u round=1 drop", PACKETS);
	fault_lab_add("qp=@1:* psn=+5/%u round=2 drop", PACKETS);
	fault_lab_add("qp=@1:* psn=+7/%u round=3 drop", PACKETS);
	fault_lab_add("opcode=RC_ACKNOWLEDGE round=1 drop");
	p = lab_peers(&o, state);
	for (unsigned i = 0; i < 2; i++) {
		struct lab_work w = work_of(IBV_WR_RDMA_WRITE, p[1], LENGTH);

		lab_peer_fill(p[0], 0, LENGTH, i);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		lab_peer_expect(p[1], 64, LENGTH, i);
		for (unsigned rule = 0; rule < 3; rule++)
			assert_int_equal(fault_lab_fired(rule), i + 1);
		assert_int_equal(fault_lab_fired(3), 0);
	}
}

/* A queue pair that begins anew counts as another one. */
FAULT_CASE(a_queue_pair_is_counted_when_it_begins)
{
	struct lab_peer **p;
	struct lab_work w;

	fault_lab_add("'qp=@1:#2' wc=RETRY_EXC nth=1");
	fault_lab_add("'qp=@1:#2' post=ENOMEM nth=2");
	p = lab_peers(NULL, state);
	w = work_of(IBV_WR_RDMA_WRITE, p[1], 64);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 2; i++) {
		lab_peer_to(p[i], IBV_QPS_RESET);
		lab_peer_connect(p[i], p[!i]);
	}
	lab_peer_do(p[0], &w, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(lab_peer_try_post(p[0], &w), ENOMEM);
	assert_int_equal(fault_lab_fired(0), 1);
	assert_int_equal(fault_lab_fired(1), 1);
}

FAULT_CASE_BOTH(who_was_connected_before_is_not_concerned)
{
	struct lab_work w;
	struct lab_peer **p = lab_peers(NULL, state);

	fault_lab_add("qp=*:* drop");
	w = work_of(IBV_WR_RDMA_WRITE, p[1], 5000);
	lab_peer_fill(p[0], 0, 5000, 3);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_expect(p[1], 64, 5000, 3);
	assert_int_equal(fault_lab_fired(0), 0);
}

FAULT_CASE_BOTH(what_began_with_faults_goes_on_without)
{
	struct lab_peer **p;
	struct lab_work w;

	fault_lab_add("opcode=CNP drop");
	p = lab_peers(NULL, state);
	assert_int_equal(system("umbel fault clear"), 0);
	w = work_of(IBV_WR_RDMA_WRITE, p[1], 50000);
	lab_peer_fill(p[0], 0, 50000, 3);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_expect(p[1], 64, 50000, 3);
}

/* ---- rules that are none ---- */

/* ---- calls ---- */

FAULT_CASE(the_nth_request_is_not_posted)
{
	struct lab_end *a, *b;
	struct lab_request r[3];
	struct ibv_send_wr *bad;
	struct ibv_ah *ah;

	fault_lab_add("qp=@1:* post=ENOMEM nth=2 count=2");
	a = lab_end(1);
	b = lab_end(2);
	ah = lab_ah_to(a, b);
	lab_post(b, 8);
	for (unsigned i = 0; i < 3; i++) {
		lab_request(a, &r[i], ah, b->qp->qp_num, &i, sizeof(i));
		r[i].wr.next = i < 2 ? &r[i + 1].wr : NULL;
	}
	assert_int_equal(ibv_post_send(a->qp, &r[0].wr, &bad), ENOMEM); /* the list ends there */
	assert_ptr_equal(bad, &r[1].wr);
	lab_complete(a->send_cq, IBV_WC_SUCCESS);
	assert_int_equal(ibv_post_send(a->qp, &r[1].wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &r[1].wr);
	assert_int_equal(ibv_post_send(a->qp, &r[1].wr, &bad), 0);
	lab_complete(a->send_cq, IBV_WC_SUCCESS);
	lab_complete(a->send_cq, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 3; i++)
		lab_receive(b);
	assert_int_equal(fault_lab_fired(0), 2);
}

FAULT_CASE(a_receive_is_not_posted)
{
	struct lab_end *a, *b;

	fault_lab_add("host=@2 receive=EINVAL nth=2");
	a = lab_end(1);
	b = lab_end(2);
	assert_int_equal(lab_try_post(b, 1), 0);
	assert_int_equal(lab_try_post(b, 2), EINVAL);
	assert_int_equal(lab_try_post(b, 3), 0);
	send_numbers(a, b, 3);
	expect_numbers(b, (uint32_t[]){ 0, 1 }, 2);
}

FAULT_CASE(a_receive_of_a_shared_queue_is_not_posted)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_srq *srq;

	fault_lab_add("host=@2 receive=ENOMEM nth=2");
	assert_non_null(srq = ibv_create_srq(lab_pd(lab_open(2)), &init));
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(fault_lab_fired(0), 1);
}

FAULT_CASE(a_region_is_not_registered)
{
	char memory[64];
	struct ibv_pd *pd;

	fault_lab_add("host=@1 register=ENOMEM nth=2");
	pd = lab_pd(lab_open(1));
	lab_mr(pd, memory, sizeof(memory));
	errno = 0;
	assert_null(ibv_reg_mr(pd, memory, sizeof(memory), 0));
	assert_int_equal(errno, ENOMEM);
	lab_mr(pd, memory, sizeof(memory));
	assert_int_equal(fault_lab_fired(0), 1);
}

/* The region stays as it was: messages go out of it, and its key is the same. */
FAULT_CASE(a_region_is_not_registered_anew)
{
	static char other[64];
	struct lab_end *a, *b;
	uint32_t lkey;

	fault_lab_add("host=@1 register=EAGAIN nth=2");
	a = lab_end(1); /* has one region */
	b = lab_end(2);
	lkey = a->mr->lkey;
	errno = 0;
	assert_int_equal(
	        ibv_rereg_mr(a->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, sizeof(other), 0),
	        IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(a->mr->lkey, lkey);
	lab_post(b, 1);
	send_numbers(a, b, 1);
	expect_numbers(b, (uint32_t[]){ 0 }, 1);
	assert_int_equal(
	        ibv_rereg_mr(a->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, sizeof(other), 0),
	        0);
	assert_ptr_equal(a->mr->addr, other);
	assert_int_equal(fault_lab_fired(0), 1);
	assert_int_equal(fault_lab_shown(0, "fitted"), 3);
}

FAULT_CASE(a_region_of_device_memory_is_not_registered)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_dm *dm;
	struct ibv_mr *mr;

	fault_lab_add("host=@1 register=ENOSPC nth=1");
	context = lab_open(1);
	pd = lab_pd(context);
	assert_non_null(dm = ibv_alloc_dm(context, &attr));
	errno = 0;
	assert_null(ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED));
	assert_int_equal(errno, ENOSPC);
	assert_non_null(mr = ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* A request whose completion is an error ends its queue pair, as on hardware. */
FAULT_CASE(a_completion_is_an_error)
{
	const struct lab_peer_options o = { .signal_all = true };
	struct lab_peer **p;
	struct lab_work w;

	fault_lab_add("qp=@1:* wc=RETRY_EXC nth=2");
	p = lab_peers(&o, state);
	w = work_of(IBV_WR_RDMA_WRITE, p[1], 64);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_post(p[0], &w);
	lab_peer_post(p[0], &w);
	lab_peer_sent(p[0], IBV_WC_RETRY_EXC_ERR);
	lab_peer_expect_state(p[0], IBV_QPS_ERR);
	lab_peer_sent(p[0], IBV_WC_WR_FLUSH_ERR); /* which was carried out */
	lab_peer_do(p[0], &w, IBV_WC_WR_FLUSH_ERR);
	lab_peer_to(p[0], IBV_QPS_RESET);
	lab_peer_connect(p[0], p[1]);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
}

/* Of datagrams the send queue alone stops, in SQE. */
FAULT_CASE(a_datagram_completes_in_error)
{
	struct lab_end *a, *b;
	struct ibv_send_wr *bad;
	struct lab_request r;
	uint32_t n = 7;

	fault_lab_add("qp=@1:* wc=LOC_PROT_ERR nth=1");
	a = lab_end(1);
	b = lab_end(2);
	lab_post(a, 1);
	lab_post(b, 4);
	lab_request(a, &r, lab_ah_to(a, b), b->qp->qp_num, &n, sizeof(n));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), 0);
		lab_complete(a->send_cq, i ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_PROT_ERR);
		assert_int_equal(lab_state(a->qp), IBV_QPS_SQE);
	}
	send_numbers(b, a, 1); /* it receives still */
	expect_numbers(a, (uint32_t[]){ 0 }, 1);
	lab_to(a->qp, IBV_QPS_RTS);
	lab_send_request(a, &r);
}

static void undo_cq(void *cq)
{
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

FAULT_CASE(extended_calls_meet_faults)
{
	struct ibv_cq_init_attr_ex want = { .cqe = 16 };
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 0 } };
	struct lab_request r;
	struct ibv_send_wr *bad;
	struct ibv_cq_ex *cq;
	struct ibv_qp_ex *ex;
	struct lab_end *a, *b;
	struct ibv_ah *ah;
	struct ibv_qp *qp;

	fault_lab_add("qp=@1:* post=EAGAIN nth=1");
	fault_lab_add("qp=@1:* wc=GENERAL nth=2");
	a = lab_end_with(&(struct lab_options){ .host = 1, .send_ops = IBV_QP_EX_WITH_SEND });
	b = lab_end(2);
	ah = lab_ah_to(a, b);
	ex = ibv_qp_to_qp_ex(a->qp);
	for (unsigned i = 0; i < 2; i++) {
		ibv_wr_start(ex);
		ex->wr_id = i;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(ex);
		ibv_wr_set_ud_addr(ex, ah, b->qp->qp_num, b->qkey);
		ibv_wr_set_sge(ex, a->mr->lkey, (uintptr_t)a->out, 4);
		assert_int_equal(ibv_wr_complete(ex), i ? 0 : EAGAIN);
	}
	assert_int_equal(lab_complete(a->send_cq, IBV_WC_SUCCESS).wr_id, 1);
	assert_non_null(cq = ibv_create_cq_ex(a->context, &want));
	lab_undo(undo_cq, cq);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = lab_qp(a->pd, &init);
	lab_start(qp, a->qkey);
	for (unsigned i = 0; i < 2; i++) {
		lab_request(a, &r, ah, b->qp->qp_num, NULL, 4);
		assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
	}
	assert_int_equal(ibv_start_poll(cq, &none), 0);
	assert_int_equal(cq->status, IBV_WC_GENERAL_ERR);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
}

/* ---- completions that are made up ---- */

static void expect_wc(struct ibv_wc wc, uint64_t wr_id, enum ibv_wc_opcode opcode, uint32_t qpn)
{
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.qp_num, qpn);
}

FAULT_CASE(a_completion_comes_twice)
{
	const struct lab_peer_options o = { .signal_all = true };
	struct lab_peer **p;
	struct lab_work w;

	fault_lab_add("qp=@1:* made=SUCCESS nth=2");
	p = lab_peers(&o, state);
	w = work_of(IBV_WR_RDMA_WRITE, p[1], 64);
	for (w.wr_id = 1; w.wr_id < 4; w.wr_id++) {
		lab_peer_post(p[0], &w);
		expect_wc(lab_peer_sent(p[0], IBV_WC_SUCCESS), w.wr_id, IBV_WC_RDMA_WRITE,
		          p[0]->address.qpn);
		if (w.wr_id == 2)
			expect_wc(lab_peer_sent(p[0], IBV_WC_SUCCESS), 2, IBV_WC_RDMA_WRITE,
			          p[0]->address.qpn);
		lab_quiet(p[0]->here->send_cq);
	}
	lab_peer_expect_state(p[0], IBV_QPS_RTS);
	assert_int_equal(fault_lab_fired(0), 1);
	assert_int_equal(fault_lab_shown(0, "fitted"),
	                 3); /* the one that is made up does not count */
}

/* The queue pair, which has no part in it, works on. */
FAULT_CASE(a_completion_tells_of_a_request_that_there_was_not)
{
	const struct lab_peer_options o = { .signal_all = true };
	struct lab_peer **p;
	struct lab_work w;

	fault_lab_add("qp=@1:* made=REM_OP nth=1 wr_id=0xfeedbeefcafe0007");
	fault_lab_add("qp=@1:* wc=GENERAL nth=3");
	fault_lab_add("qp=@1:* made=SUCCESS nth=3 wr_id=0"); /* behind one that is an error */
	p = lab_peers(&o, state);
	w = work_of(IBV_WR_RDMA_READ, p[1], 64);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	expect_wc(lab_peer_sent(p[0], IBV_WC_REM_OP_ERR), 0xfeedbeefcafe0007, IBV_WC_RDMA_READ,
	          p[0]->address.qpn);
	lab_peer_expect_state(p[0], IBV_QPS_RTS);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_quiet(p[0]->here->send_cq);
	lab_peer_do(p[0], &w, IBV_WC_GENERAL_ERR);
	expect_wc(lab_peer_sent(p[0], IBV_WC_SUCCESS), 0, IBV_WC_RDMA_READ, p[0]->address.qpn);
	lab_peer_expect_state(p[0], IBV_QPS_ERR);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(fault_lab_fired(i), 1);
}

/* No receive is used up by it; it has no source, and no GRH. */
FAULT_CASE(a_receive_completes_that_was_not_posted)
{
	struct lab_end *a, *b;
	struct ibv_wc wc;

	fault_lab_add("qp=@2:* made=SUCCESS nth=2");
	a = lab_end(1);
	b = lab_end(2);
	lab_post(b, 4);
	send_numbers(a, b, 2);
	expect_wc(lab_complete(b->cq, IBV_WC_SUCCESS), 0, IBV_WC_RECV, b->qp->qp_num);
	expect_wc(lab_complete(b->cq, IBV_WC_SUCCESS), 1, IBV_WC_RECV, b->qp->qp_num);
	wc = lab_complete(b->cq, IBV_WC_SUCCESS);
	expect_wc(wc, 1, IBV_WC_RECV, b->qp->qp_num);
	assert_int_equal(wc.byte_len, LAB_GRH + sizeof(uint32_t));
	assert_int_equal(wc.wc_flags, 0);
	assert_int_equal(wc.src_qp, 0);
	send_numbers(a, b, 2);
	expect_numbers(b, (uint32_t[]){ 0, 1 }, 2);
}

/* Posts signalled requests until the queue is full; returns how many. */
static unsigned fill_up(struct lab_end *e, struct lab_request *r)
{
	struct ibv_send_wr *bad;
	unsigned n = 0;
	int ret;

	while (!(ret = ibv_post_send(e->qp, &r->wr, &bad)))
		n++;
	assert_int_equal(ret, ENOMEM);
	return n;
}

/* Whatever is made up, in whichever CQ: a send queue has room for what it had before. */
FAULT_CASE(a_made_completion_gives_no_room_and_takes_none)
{
	const struct lab_options o = { .cap = { .max_send_wr = 8 } };
	struct ibv_send_wr *bad;
	struct lab_request r;
	struct lab_end *a, *b;
	unsigned room;

	fault_lab_add("qp=@1:* made=SUCCESS count=40");
	a = lab_end_with(&o);
	b = lab_end(2);
	lab_request(a, &r, lab_ah_to(a, b), b->qp->qp_num, "x", 1);
	room = fill_up(a, &r);
	assert_true(room >= 8);
	for (unsigned i = 0; i < 2 * room; i++) /* each one and its double */
		lab_complete(a->send_cq, IBV_WC_SUCCESS);
	lab_quiet(a->send_cq);
	assert_int_equal(fill_up(a, &r), room);
	lab_post(a, 1);
	send_numbers(b, a, 1);
	for (unsigned i = 0; i < 2; i++)
		lab_complete(a->cq, IBV_WC_SUCCESS);
	lab_quiet(a->cq);
	assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), ENOMEM);
	lab_complete(a->send_cq, IBV_WC_SUCCESS);
	assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), 0);
	assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), ENOMEM);
}

FAULT_CASE(a_made_completion_fires_its_event)
{
	struct ibv_cq *cq;
	struct lab_end *a, *b;
	void *context;

	fault_lab_add("qp=@2:* made=GENERAL nth=1");
	a = lab_end(1);
	b = lab_end_with(&(struct lab_options){ .host = 2, .channel = true });
	lab_post(b, 1);
	send_numbers(a, b, 1);
	assert_int_equal(ibv_req_notify_cq(b->cq, true), 0); /* for errors: that is one */
	lab_complete(b->cq, IBV_WC_SUCCESS);
	lab_await(b->channel->fd);
	assert_int_equal(ibv_get_cq_event(b->channel, &cq, &context), 0);
	assert_ptr_equal(cq, b->cq);
	ibv_ack_cq_events(cq, 1);
	lab_complete(b->cq, IBV_WC_GENERAL_ERR);
	lab_quiet(b->cq);
}

static void expect_overrun(struct ibv_context *context, struct ibv_cq *cq)
{
	struct ibv_wc wc;

	assert_ptr_equal(lab_async_event(context, IBV_EVENT_CQ_ERR).element.cq, cq);
	assert_true(ibv_poll_cq(cq, 1, &wc) < 0);
}

/* All requests have completed, one of them is polled, and its double takes its room. */
FAULT_CASE(a_made_completion_fills_the_queue_of_sends)
{
	struct ibv_send_wr *bad;
	struct lab_request r;
	struct lab_end *a, *b;

	fault_lab_add("qp=@1:* made=SUCCESS nth=1");
	a = lab_end_with(&(struct lab_options){ .cqe = 16 });
	b = lab_end(2);
	lab_request(a, &r, lab_ah_to(a, b), b->qp->qp_num, "x", 1);
	for (int i = 0; i < a->send_cq->cqe; i++)
		assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), 0);
	lab_complete(a->send_cq, IBV_WC_SUCCESS);
	assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), 0);
	expect_overrun(a->context, a->send_cq);
}

/* The queue has room for all receives that can be posted, and for no more. */
FAULT_CASE(a_made_completion_fills_the_queue_of_receives)
{
	const struct lab_options o = { .host = 2, .cqe = 16, .cap = { .max_recv_wr = 16 } };
	struct lab_end *a, *b;
	unsigned n;

	fault_lab_add("qp=@2:* made=SUCCESS nth=1");
	a = lab_end(1);
	b = lab_end_with(&o);
	n = (unsigned)b->cq->cqe;
	lab_post(b, n);
	send_numbers(a, b, n);
	lab_complete(b->cq, IBV_WC_SUCCESS);
	lab_post(b, 1);
	send_numbers(a, b, 1);
	expect_overrun(b->context, b->cq);
}

/* A made-up completion goes with its queue pair's other completions, and leaves those of other
 * queue pairs. */
FAULT_CASE(a_made_completion_goes_with_its_queue_pair)
{
	struct lab_end *a, *b, *c;
	struct lab_request r;
	struct ibv_send_wr *bad;

	fault_lab_add("host=@1 receive=ENOMEM nth=1000"); /* calls meet faults from now on */
	a = lab_end(1);
	b = lab_end_with(&(struct lab_options){ .neighbour = a });
	c = lab_end(2);
	fault_lab_add("qp=@1:%u made=SUCCESS", a->qp->qp_num);
	lab_request(a, &r, lab_ah_to(a, c), c->qp->qp_num, "x", 1);
	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), 0);
		lab_complete(a->send_cq, IBV_WC_SUCCESS);
		assert_int_equal(ibv_post_send(b->qp, &r.wr, &bad), 0);
		if (!round) {
			lab_to(a->qp, IBV_QPS_RESET);
			lab_start(a->qp, a->qkey);
		} else {
			lab_forget(a->qp);
			assert_int_equal(ibv_destroy_qp(a->qp), 0);
		}
		assert_int_equal(lab_complete(b->send_cq, IBV_WC_SUCCESS).qp_num, b->qp->qp_num);
		lab_quiet(b->send_cq);
	}
	assert_int_equal(fault_lab_fired(1), 2);
}

/* The completions of a queue pair that stays, as it is attached to a group, stay in their queue. */
FAULT_CASE(a_made_completion_stays_with_its_queue_pair)
{
	const union ibv_gid mgid = lab_mgid(1);
	struct lab_request r;
	struct ibv_send_wr *bad;
	struct lab_end *a, *b;

	fault_lab_add("qp=@1:* made=SUCCESS count=2");
	a = lab_end(1);
	b = lab_end(2);
	lab_attach(a->qp, &mgid, 0xC123);
	lab_request(a, &r, lab_ah_to(a, b), b->qp->qp_num, "x", 1);
	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(ibv_post_send(a->qp, &r.wr, &bad), 0);
		lab_complete(a->send_cq, IBV_WC_SUCCESS);
		assert_int_equal(ibv_destroy_qp(a->qp), EBUSY);
		lab_complete(a->send_cq, IBV_WC_SUCCESS);
		lab_quiet(a->send_cq);
	}
	lab_detach(a->qp, &mgid, 0xC123);
}

FAULT_CASE(extended_calls_poll_what_is_made_up)
{
	struct ibv_cq_init_attr_ex want = {
		.cqe = 16,
		.wc_flags = IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_BYTE_LEN |
		            IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 0 } };
	struct lab_end *a, *b;
	struct lab_request r;
	struct ibv_send_wr *bad;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;

	fault_lab_add("qp=@1:* made=RETRY_EXC nth=1 wr_id=9");
	a = lab_end(1);
	b = lab_end(2);
	assert_non_null(cq = ibv_create_cq_ex(a->context, &want));
	lab_undo(undo_cq, cq);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = lab_qp(a->pd, &init);
	lab_start(qp, a->qkey);
	for (unsigned i = 0; i < 2; i++) {
		lab_request(a, &r, lab_ah_to(a, b), b->qp->qp_num, NULL, 4);
		r.wr.wr_id = 5 + i;
		assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
	}
	assert_int_equal(ibv_start_poll(cq, &none), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(cq->wr_id, i < 2 ? 5 + i : 9);
		assert_int_equal(cq->status, i < 2 ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
		assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_SEND);
		assert_int_equal(ibv_wc_read_qp_num(cq), qp->qp_num);
		assert_true(ibv_wc_read_completion_ts(cq) > 0);
		assert_int_equal(ibv_next_poll(cq), i < 2 ? 0 : ENOENT);
	}
	ibv_end_poll(cq);
	assert_int_equal(lab_state(qp), IBV_QPS_RTS);
}

/* A program that had its device open before is not concerned; clearing the rules is the end. */
FAULT_CASE(who_was_open_before_is_not_concerned)
{
	struct ibv_context *before = lab_open(1);
	struct ibv_pd *pd = lab_pd(before);
	char memory[64];

	fault_lab_add("host=@1 register=ENOMEM");
	lab_mr(pd, memory, sizeof(memory));
	pd = lab_pd(lab_open(1));
	assert_null(ibv_reg_mr(pd, memory, sizeof(memory), 0));
	assert_int_equal(system("umbel fault clear"), 0);
	lab_mr(pd, memory, sizeof(memory));
}

static const char *const wrong[] = {
	"''",
	"psn=4",
	"drop drop",
	"drop loss=1%",
	"drop=1",
	"loss",
	"loss=1",
	"loss=0%",
	"loss=101%",
	"loss=nan%",
	"delay=5",
	"delay=-5ms",
	"delay=11s",
	"delay=infs",
	"qp=@9:1 drop",
	"qp=@1 drop",
	"qp=@1: drop",
	"qp=@1:0 drop",
	"qp=@1:0x1000000 drop",
	"qp=:1 drop",
	"link=sw9:1 drop",
	"link=@1:9 drop",
	"link=@1 drop",
	"group=fe80::1 drop",
	"opcode=RC drop",
	"psn=16777216 drop",
	"psn=-1 drop",
	"psn=+ drop",
	"psn=++1 drop",
	"psn=+-1 drop",
	"psn=+0x1 drop",
	"psn=+16777216 drop",
	"psn=+1/ drop",
	"psn=+1/1 drop",
	"psn=+1/0 drop",
	"psn=+1/0x2 drop",
	"psn=+0/16777216 drop",
	"psn=1/2 drop",
	"'qp=*:#1' drop",
	"'qp=@1:#' drop",
	"'qp=@1:#0' drop",
	"'qp=@1:#-1' drop",
	"'qp=@1:#1x' drop",
	"'qp=@1:#99999999999' drop",
	"round=0 drop",
	"round=65536 drop",
	"round=1 post=ENOMEM",
	"register=ENOMEM 'qp=@1:#1'",
	"nth=0 drop",
	"count=0 drop",
	"nth=1x drop",
	"nak=no",
	"colour=red drop",
	"chance=50% ecn seed=x",
	"post=ENOTHING",
	"post=12",
	"wc=SUCCESS",
	"wc=RETRY",
	"register=ENOMEM qp=@1:0x101",
	"post=ENOMEM psn=4",
	"post=ENOMEM link=@1:1",
	"receive=ENOMEM to=@1:*",
	"host=@9 post=ENOMEM",
	"made",
	"made=TWICE",
	"made=24",
	"made=SUCCESS wc=RETRY_EXC",
	"made=SUCCESS psn=1",
	"made=SUCCESS every=1s",
	"made=SUCCESS wr_id=-1",
	"made=SUCCESS wr_id=0x10000000000000000",
	"made=SUCCESS wr_id",
	"wc=RETRY_EXC wr_id=1",
	"drop wr_id=1",
	"wr_id=1",
};

FAULT_CASE(what_is_wrong_is_refused)
{
	char longest[300];

	for (size_t i = 0; i < LAB_ARRAY(wrong); i++)
		if (fault_lab_try(wrong[i]) != 2)
			fail_msg("'%s' is not refused", wrong[i]);
	memset(longest, '1', sizeof(longest) - 1);
	memcpy(longest, "drop nth=", 9);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(fault_lab_try(longest), 2);
	assert_int_equal(WEXITSTATUS(system("umbel fault clear 4711 2> /dev/null")), 1);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
