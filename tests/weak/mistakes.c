/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs whose mistake only timing shows, each with its right twin, for search.sh. On a strong
 * fabric all of them pass.
 *
 * weak.mistakes --list: their names.
 * weak.mistakes NAME|--all wrong|right: names those whose data is not what it should be; the exit
 * status is 1 then.
 */
#include "verbs/peer_lab.h"
#include "attributes.h"

#define ROUNDS 12
#define OLD    0x0101010101010101ull
#define NEW    0x0202020202020202ull

/* Two queue pairs from a host to another one, which have the same memory. */
static struct lab_peer *from[2], *to[2];

static uint64_t *word(const struct lab_peer *p, unsigned i)
{
	return (uint64_t *)p->here->memory + i;
}

static void fill(struct lab_peer *p, unsigned i, unsigned n, uint64_t value)
{
	while (n--)
		*(volatile uint64_t *)word(p, i++) = value;
}

static bool is_all(struct lab_peer *p, unsigned i, unsigned n, uint64_t value)
{
	while (n--)
		if (*(volatile uint64_t *)word(p, i++) != value)
			return false;
	return true;
}

/* ---- pieces ---- */

/* By queue pair @q: @n words from @i on, and words from @there on of the other host. All are of the
 * first pair's memory. */
static void post_with(unsigned q, enum ibv_wr_opcode opcode, unsigned i, unsigned there, unsigned n,
                      unsigned flags)
{
	struct ibv_sge sge = { (uintptr_t)word(from[0], i), 8 * n, from[0]->lkey };
	struct ibv_send_wr wr = request_of(&sge, opcode, flags), *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)word(to[0], there);
		wr.wr.atomic.rkey = to[0]->address.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)word(to[0], there);
		wr.wr.rdma.rkey = to[0]->address.rkey;
	}
	assert_int_equal(ibv_post_send(from[q]->here->qp, &wr, &bad), 0);
}

static void post(unsigned q, enum ibv_wr_opcode opcode, unsigned i, unsigned there, unsigned n,
                 unsigned flags)
{
	post_with(q, opcode, i, there, n, flags | IBV_SEND_SIGNALED);
}

static void done(unsigned q)
{
	lab_peer_sent(from[q], IBV_WC_SUCCESS);
}

static void done_if(bool is_so, unsigned q)
{
	if (is_so)
		done(q);
}

static void write_words(unsigned q, unsigned i, unsigned there, unsigned n)
{
	post(q, IBV_WR_RDMA_WRITE, i, there, n, 0);
}

static void read_words(unsigned q, unsigned i, unsigned there, unsigned n)
{
	post(q, IBV_WR_RDMA_READ, i, there, n, 0);
}

static void receive(unsigned q, unsigned there, unsigned n)
{
	struct ibv_sge sge = { (uintptr_t)word(to[0], there), 8 * n, to[0]->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(to[q]->here->qp, &wr, &bad), 0);
}

static void received(unsigned q)
{
	lab_peer_received(to[q], IBV_WC_SUCCESS);
}

/* ---- memory that is used again too early ---- */

static bool reuse(bool wrong, enum ibv_wr_opcode opcode, unsigned n)
{
	fill(from[0], 0, n, NEW);
	if (opcode != IBV_WR_RDMA_WRITE)
		receive(0, 0, n);
	post(0, opcode, 0, 0, n, 0);
	done_if(!wrong, 0);
	fill(from[0], 0, n, OLD);
	done_if(wrong, 0);
	if (opcode != IBV_WR_RDMA_WRITE)
		received(0);
	return is_all(to[0], 0, n, NEW);
}

static bool reuse_send(bool wrong)
{
	return reuse(wrong, IBV_WR_SEND, 8);
}

static bool reuse_long_send(bool wrong)
{
	return reuse(wrong, IBV_WR_SEND, 4096);
}

static bool reuse_send_with_imm(bool wrong)
{
	return reuse(wrong, IBV_WR_SEND_WITH_IMM, 2);
}

static bool reuse_write(bool wrong)
{
	return reuse(wrong, IBV_WR_RDMA_WRITE, 8);
}

static bool reuse_long_write(bool wrong)
{
	return reuse(wrong, IBV_WR_RDMA_WRITE, 8000);
}

static bool reuse_write_with_imm(bool wrong)
{
	return reuse(wrong, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
}

/* One buffer for a row of messages. */
static bool one_buffer(bool wrong)
{
	bool ok = true;

	for (unsigned i = 0; i < 4; i++) {
		fill(from[0], 0, 4, i);
		write_words(0, 0, 4 * i, 4);
		done_if(!wrong, 0);
	}
	for (unsigned i = 0; wrong && i < 4; i++)
		done(0);
	for (unsigned i = 0; i < 4; i++)
		ok &= is_all(to[0], 4 * i, 4, i);
	return ok;
}

/* Nothing says that it is done. */
static bool reuse_unsignaled(bool wrong)
{
	fill(from[0], 0, 8, NEW);
	post_with(0, IBV_WR_RDMA_WRITE, 0, 0, 8, wrong ? 0 : IBV_SEND_SIGNALED);
	done_if(!wrong, 0);
	fill(from[0], 0, 8, OLD);
	write_words(0, 64, 64, 1);
	done(0);
	return is_all(to[0], 0, 8, NEW);
}

/* The completion is another queue pair's. */
static bool wrong_completion(bool wrong)
{
	fill(from[0], 0, 8, NEW);
	write_words(0, 0, 0, 8);
	post(1, IBV_WR_RDMA_WRITE, 64, 64, 1, 0);
	done(wrong ? 1 : 0);
	fill(from[0], 0, 8, OLD);
	done(wrong ? 0 : 1);
	return is_all(to[0], 0, 8, NEW);
}

/* ---- memory that is read too early ---- */

/* The processor waits for a word, and its program polls another queue meanwhile. */
static void wait_for(struct lab_peer *p, unsigned i)
{
	struct ibv_wc wc;

	while (!is_all(p, i, 1, NEW))
		ibv_poll_cq(from[1]->here->recv_cq, 1, &wc);
}

/* The target looks for the last word. */
static bool last_word(bool wrong)
{
	bool ok;

	fill(from[0], 0, 64, NEW);
	write_words(0, 0, 0, 64);
	done_if(!wrong, 0);
	wait_for(to[0], 63);
	ok = is_all(to[0], 0, 64, NEW);
	done_if(wrong, 0);
	return ok;
}

/* The target looks for the first word, which says how many there are. */
static bool first_word(bool wrong)
{
	bool ok;

	fill(from[0], 0, 32, NEW);
	write_words(0, 0, 0, 32);
	done_if(!wrong, 0);
	wait_for(to[0], 0);
	ok = is_all(to[0], 0, 32, NEW);
	done_if(wrong, 0);
	return ok;
}

/* So does the message that says that the data is there. */
static bool message_elsewhere(bool wrong)
{
	bool ok;

	fill(from[0], 0, 8, NEW);
	receive(1, 64, 1);
	write_words(0, 0, 0, 8);
	done_if(!wrong, 0);
	post(1, IBV_WR_SEND, 64, 64, 1, 0);
	received(1);
	ok = is_all(to[0], 0, 8, NEW);
	done_if(wrong, 0);
	done(1);
	return ok;
}

/* Or it is told without RDMA, as by TCP. */
static bool told_without_rdma(bool wrong)
{
	bool ok;

	fill(from[0], 0, 8, NEW);
	write_words(0, 0, 0, 8);
	done_if(!wrong, 0);
	ok = is_all(to[0], 0, 8, NEW);
	done_if(wrong, 0);
	return ok;
}

/* The program uses the result of a READ before it completes. */
static bool read_used_early(bool wrong)
{
	bool ok;

	fill(to[0], 0, 8, NEW);
	read_words(0, 0, 0, 8);
	done_if(!wrong, 0);
	ok = is_all(from[0], 0, 8, NEW);
	done_if(wrong, 0);
	return ok;
}

/* Or when its last word is there. */
static bool read_last_word(bool wrong)
{
	bool ok;

	fill(to[0], 0, 64, NEW);
	read_words(0, 0, 0, 64);
	done_if(!wrong, 0);
	wait_for(from[0], 63);
	ok = is_all(from[0], 0, 64, NEW);
	done_if(wrong, 0);
	return ok;
}

/* The old value of an atomic operation is used at once. */
static bool atomic_used_early(bool wrong)
{
	bool ok;

	fill(to[0], 0, 1, NEW);
	post(0, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 1, 0);
	done_if(!wrong, 0);
	ok = is_all(from[0], 0, 1, NEW);
	done_if(wrong, 0);
	return ok;
}

/* A receive buffer is looked at before its completion. */
static bool receive_used_early(bool wrong)
{
	bool ok;

	fill(from[0], 0, 8, NEW);
	receive(0, 0, 8);
	post(0, IBV_WR_SEND, 0, 0, 8, 0);
	if (!wrong)
		received(0);
	ok = is_all(to[0], 0, 8, NEW);
	if (wrong)
		received(0);
	done(0);
	return ok;
}

/* The target's buffer is used for other things before the READ of it has completed. */
static bool target_reused(bool wrong)
{
	fill(to[0], 0, 8, NEW);
	read_words(0, 0, 0, 8);
	done_if(!wrong, 0);
	fill(to[0], 0, 8, OLD);
	done_if(wrong, 0);
	return is_all(from[0], 0, 8, NEW);
}

/* ---- order that nobody promises ---- */

/* A slot is read and marked free without a fence. */
static bool free_without_fence(bool wrong)
{
	fill(to[0], 0, 1, NEW);
	fill(from[0], 64, 1, OLD);
	read_words(0, 0, 0, 1);
	post(0, IBV_WR_RDMA_WRITE, 64, 0, 1, wrong ? 0 : IBV_SEND_FENCE);
	done(0);
	done(0);
	return is_all(from[0], 0, 1, NEW);
}

/* The program sends the result of a READ on without a fence. */
static bool forward_without_fence(bool wrong)
{
	fill(to[0], 0, 1, NEW);
	read_words(0, 0, 0, 1);
	post(0, IBV_WR_RDMA_WRITE, 0, 64, 1, wrong ? 0 : IBV_SEND_FENCE);
	done(0);
	done(0);
	return is_all(to[0], 64, 1, NEW);
}

static bool send_without_fence(bool wrong)
{
	receive(0, 64, 1);
	fill(to[0], 0, 1, NEW);
	read_words(0, 0, 0, 1);
	post(0, IBV_WR_SEND, 0, 0, 1, wrong ? 0 : IBV_SEND_FENCE);
	done(0);
	done(0);
	received(0);
	return is_all(to[0], 64, 1, NEW);
}

/* A counter is raised and set without a fence. */
static bool set_without_fence(bool wrong)
{
	fill(to[0], 0, 1, NEW);
	fill(from[0], 64, 1, OLD);
	post(0, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 1, 0);
	post(0, IBV_WR_RDMA_WRITE, 64, 0, 1, wrong ? 0 : IBV_SEND_FENCE);
	done(0);
	done(0);
	return is_all(to[0], 0, 1, OLD);
}

/* The target's processor sets a counter that others raise. */
static bool store_beside_atomic(bool wrong)
{
	volatile uint64_t *counter = word(to[0], 0);

	fill(to[0], 0, 1, OLD);
	post(0, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 1, 0);
	if (!wrong)
		done(0);
	*counter = NEW;
	if (wrong)
		done(0);
	return *counter == NEW || *counter == NEW + 1;
}

/* Two queue pairs write the same word, and the later post should win. */
static bool last_post_wins(bool wrong)
{
	fill(from[0], 0, 1, OLD);
	fill(from[0], 64, 1, NEW);
	write_words(0, 0, 0, 1);
	done_if(!wrong, 0);
	write_words(1, 64, 0, 1);
	done(1);
	done_if(wrong, 0);
	return is_all(to[0], 0, 1, NEW);
}

/* A WRITE by one queue pair, and a READ by another should see it. */
static bool read_elsewhere(bool wrong)
{
	fill(from[0], 0, 1, NEW);
	write_words(0, 0, 0, 1);
	done_if(!wrong, 0);
	read_words(1, 64, 0, 1);
	done(1);
	done_if(wrong, 0);
	return is_all(from[0], 64, 1, NEW);
}

/* The sequence number by one queue pair, and what it guards by another. */
static bool number_elsewhere(bool wrong)
{
	bool ok;

	read_words(0, 0, 0, 1);
	done_if(!wrong, 0);
	read_words(1, 64, 64, 1);
	/* the writer: first the data, then the number */
	fill(to[0], 64, 1, NEW);
	fill(to[0], 0, 1, NEW);
	done_if(wrong, 0);
	done(1);
	ok = !is_all(from[0], 0, 1, NEW) || is_all(from[0], 64, 1, NEW);
	return ok;
}

/* ---- completions that are expected to be there ---- */

/* The peer has the message, so the completion must be there. */
static bool completion_with_reply(bool wrong)
{
	struct ibv_wc wc;
	bool ok = true;

	receive(0, 0, 1);
	post(0, IBV_WR_SEND, 0, 0, 1, 0);
	received(0);
	if (wrong)
		ok = lab_peer_try_sent(from[0], &wc);
	if (!wrong || !ok)
		done(0);
	return ok;
}

/* Two were posted, so one poll finds two. */
static bool two_at_once(bool wrong)
{
	struct ibv_wc wc[2];
	int n = 0;
	bool ok;

	write_words(0, 0, 0, 1);
	write_words(0, 0, 0, 1);
	if (wrong)
		n = ibv_poll_cq(from[0]->here->send_cq, 2, wc);
	ok = !wrong || n == 2;
	for (; n < 2; n++)
		done(0);
	return ok;
}

/* Requests of two queue pairs complete in the order in which they were posted. */
static bool order_of_two(bool wrong)
{
	struct ibv_wc wc;
	bool ok = true;

	write_words(0, 0, 0, 1);
	done_if(!wrong, 0);
	write_words(1, 0, 0, 1);
	done(1);
	if (wrong) {
		ok = lab_peer_try_sent(from[0], &wc);
		if (!ok)
			done(0);
	}
	return ok;
}

/* Messages of two queue pairs arrive in the order in which they were posted. */
static bool arrivals_of_two(bool wrong)
{
	struct ibv_wc wc;
	bool ok = true;

	receive(0, 0, 1);
	receive(1, 64, 1);
	post(0, IBV_WR_SEND, 0, 0, 1, 0);
	if (!wrong)
		received(0);
	post(1, IBV_WR_SEND, 0, 0, 1, 0);
	received(1);
	if (wrong) {
		ok = lab_peer_try_received(to[0], &wc);
		if (!ok)
			received(0);
	}
	done(0);
	done(1);
	return ok;
}

/* An event means that there is a completion. */
static bool event_is_completion(bool wrong)
{
	struct ibv_cq *cq = from[0]->here->send_cq;
	struct ibv_wc wc;
	int n = 0;

	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	write_words(0, 0, 0, 1);
	while (!n) {
		lab_peer_sleep(from[0]);
		n = ibv_poll_cq(cq, 1, &wc);
		if (wrong)
			break;
		if (!n && !ibv_req_notify_cq(cq, 0))
			n = ibv_poll_cq(cq, 1, &wc);
	}
	if (!n)
		done(0);
	return n;
}

/* All that is flushed is flushed at once. */
static bool flushed_at_once(bool wrong)
{
	struct ibv_wc wc[8];
	int n;

	for (unsigned i = 0; i < 8; i++)
		write_words(0, 0, 0, 1);
	lab_peer_to(from[0], IBV_QPS_ERR);
	n = ibv_poll_cq(from[0]->here->send_cq, 8, wc);
	if (!wrong && n < 8) {
		lab_poll(from[0]->here->send_cq, 8 - n, wc);
		n = 8;
	}
	return n == 8;
}

/* ---- objects that end too early ---- */

/* The region is deregistered before its request has completed. */
static bool region_ends(bool wrong)
{
	static char memory[4096];
	struct ibv_mr *mr = ibv_reg_mr(from[0]->here->pd, memory, sizeof(memory), 0);
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
	struct ibv_send_wr wr = request_of(&sge, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED), *bad;
	struct ibv_wc wc = { 0 };

	wr.wr.rdma.remote_addr = (uintptr_t)word(to[0], 0);
	wr.wr.rdma.rkey = to[0]->address.rkey;
	if (ibv_post_send(from[0]->here->qp, &wr, &bad))
		return true; /* it has failed before */
	if (wrong)
		ibv_dereg_mr(mr);
	lab_poll(from[0]->here->send_cq, 1, &wc);
	if (!wrong)
		ibv_dereg_mr(mr);
	return wc.status == IBV_WC_SUCCESS;
}

/* The queue pair ends behind the last message. */
static bool queue_pair_ends(bool wrong)
{
	fill(from[0], 0, 8, NEW);
	write_words(0, 0, 0, 8);
	done_if(!wrong, 0);
	lab_peer_to(from[0], IBV_QPS_RESET);
	return is_all(to[0], 0, 8, NEW);
}

/* It moves to ERR, and nothing should be flushed. */
static bool nothing_flushed(bool wrong)
{
	struct ibv_wc wc;

	write_words(0, 0, 0, 8);
	if (!wrong) {
		done(0);
		return true;
	}
	lab_peer_to(from[0], IBV_QPS_ERR);
	lab_poll(from[0]->here->send_cq, 1, &wc);
	return wc.status == IBV_WC_SUCCESS;
}

/* ---- datagrams ---- */

static struct lab_end *sender, *receiver[2];
static struct ibv_ah *ah[2];
static unsigned slot[2]; /* of the next datagram */

static void datagram(unsigned there, uint64_t value)
{
	struct ibv_sge sge = { (uintptr_t)sender->out, 8, sender->mr->lkey };
	struct ibv_send_wr wr = request_of(&sge, IBV_WR_SEND, IBV_SEND_SIGNALED), *bad;

	memcpy(sender->out, &value, sizeof(value));
	wr.wr.ud.ah = ah[there];
	wr.wr.ud.remote_qpn = receiver[there]->qp->qp_num;
	wr.wr.ud.remote_qkey = LAB_QKEY;
	assert_int_equal(ibv_post_send(sender->qp, &wr, &bad), 0);
}

static void make_ends(void)
{
	if (sender)
		return;
	slot[0] = slot[1] = 0;
	sender = lab_end(1);
	for (unsigned i = 0; i < 2; i++) {
		receiver[i] = lab_end(2 + (int)i);
		ah[i] = lab_ah_to(sender, receiver[i]);
		lab_post(receiver[i], LAB_SLOTS);
	}
}

/* Whether a datagram comes, and what it says. */
static bool comes(unsigned there, uint64_t *value)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(receiver[there]->cq, 1, &wc) < 1)
		return false;
	memcpy(value, receiver[there]->slot + slot[there]++ % LAB_SLOTS * LAB_SLOT + LAB_GRH,
	       sizeof(*value));
	return true;
}

/* Each that was sent is received. */
static bool none_is_lost(bool wrong)
{
	uint64_t value;

	make_ends();
	for (unsigned i = 0; i < 100; i++) {
		datagram(0, NEW);
		lab_complete(sender->send_cq, IBV_WC_SUCCESS);
		if (comes(0, &value))
			lab_post(receiver[0], 1);
		else if (wrong)
			return false;
	}
	return true;
}

static bool datagram_reused(bool wrong)
{
	uint64_t value = NEW;

	make_ends();
	datagram(0, NEW);
	if (!wrong)
		lab_complete(sender->send_cq, IBV_WC_SUCCESS);
	memset(sender->out, 1, 8);
	if (wrong)
		lab_complete(sender->send_cq, IBV_WC_SUCCESS);
	if (comes(0, &value))
		lab_post(receiver[0], 1);
	return value == NEW;
}

/* The second one goes to another receiver, and comes second. */
static bool datagrams_in_order(bool wrong)
{
	uint64_t value;
	bool ok = true, first, second;

	make_ends();
	datagram(0, NEW);
	if (!wrong)
		lab_complete(sender->send_cq, IBV_WC_SUCCESS);
	datagram(1, NEW);
	second = comes(1, &value);
	first = comes(0, &value);
	if (wrong)
		ok = !second || first;
	for (unsigned i = !wrong; i < 2; i++)
		lab_complete(sender->send_cq, IBV_WC_SUCCESS);
	first |= comes(0, &value);
	second |= comes(1, &value);
	if (first)
		lab_post(receiver[0], 1);
	if (second)
		lab_post(receiver[1], 1);
	return ok;
}

/* Whether a datagram has come; then another receive is posted. */
static bool has_come(struct lab_end *e)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(e->cq, 1, &wc) < 1)
		return false;
	lab_post(e, 1);
	return true;
}

/* Two members of a group, on two hosts, to which the switches forward. */
static void make_members(struct lab_end *member[2], struct lab_request *r)
{
	struct lab_group *g = lab_join(1, "224.1.2.4");

	for (int i = 0; i < 2; i++) {
		member[i] = lab_end_with(&(struct lab_options){ .host = i + 1, .qkey = g->qkey });
		lab_post(member[i], LAB_SLOTS);
		lab_attach(member[i]->qp, &g->mgid, g->mlid);
	}
	lab_join(2, "224.1.2.4");
	lab_request(member[0], r, lab_ah_group(member[0], g), LAB_MCAST, "text", 5);
	r->wr.wr.ud.remote_qkey = g->qkey;
	do {
		lab_send_request(member[0], r);
		has_come(member[0]);
	} while (!has_come(member[1]));
	while (has_come(member[0]))
		;
}

/* A sender that is a member: where its own copy is, the others are, too. */
static bool own_copy_tells(bool wrong)
{
	struct lab_end *member[2];
	struct ibv_send_wr *bad;
	struct lab_request r;
	bool own, others;

	make_members(member, &r);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(ibv_post_send(member[0]->qp, &r.wr, &bad), 0);
		own = has_come(member[0]);
		others = has_come(member[1]);
		lab_complete(member[0]->send_cq, IBV_WC_SUCCESS);
		while (!wrong && !others) { /* it is told by them, and sends again */
			lab_send_request(member[0], &r);
			others = has_come(member[1]);
		}
		if (own && !others)
			return false;
		while (has_come(member[0]) || has_come(member[1]))
			;
	}
	return true;
}

/* A member that has joined receives the next message. */
static bool first_message_comes(bool wrong)
{
	struct lab_group *g = lab_join(1, "224.1.2.3");
	struct lab_end *member, *e;
	struct ibv_ah *to_group;
	struct lab_request r;
	struct ibv_wc wc;

	member = lab_end_with(&(struct lab_options){ .host = 2, .qkey = g->qkey });
	e = lab_end_with(&(struct lab_options){ .host = 1, .qkey = g->qkey });
	lab_post(member, LAB_SLOTS);
	to_group = lab_ah_group(e, g);
	lab_join(2, "224.1.2.3");
	lab_attach(member->qp, &g->mgid, g->mlid);
	do {
		lab_request(e, &r, to_group, LAB_MCAST, "text", 5);
		r.wr.wr.ud.remote_qkey = g->qkey;
		lab_send_request(e, &r);
		if (ibv_poll_cq(member->cq, 1, &wc) > 0)
			return true;
		usleep(1000);
	} while (!wrong);
	return false;
}

static const struct mistake {
	const char *name;
	bool (*run)(bool wrong); /* whether all is as it should be */
	bool once;               /* the queue pair is none any more */
} mistakes[] = {
	{ "reuse-send", reuse_send, false },
	{ "reuse-long-send", reuse_long_send, false },
	{ "reuse-send-with-imm", reuse_send_with_imm, false },
	{ "reuse-write", reuse_write, false },
	{ "reuse-long-write", reuse_long_write, false },
	{ "reuse-write-with-imm", reuse_write_with_imm, false },
	{ "one-buffer", one_buffer, false },
	{ "reuse-unsignaled", reuse_unsignaled, false },
	{ "wrong-completion", wrong_completion, false },
	{ "last-word", last_word, false },
	{ "first-word", first_word, false },
	{ "message-elsewhere", message_elsewhere, false },
	{ "told-without-rdma", told_without_rdma, false },
	{ "read-used-early", read_used_early, false },
	{ "read-last-word", read_last_word, false },
	{ "atomic-used-early", atomic_used_early, false },
	{ "receive-used-early", receive_used_early, false },
	{ "target-reused", target_reused, false },
	{ "free-without-fence", free_without_fence, false },
	{ "forward-without-fence", forward_without_fence, false },
	{ "send-without-fence", send_without_fence, false },
	{ "set-without-fence", set_without_fence, false },
	{ "store-beside-atomic", store_beside_atomic, false },
	{ "last-post-wins", last_post_wins, false },
	{ "read-elsewhere", read_elsewhere, false },
	{ "number-elsewhere", number_elsewhere, false },
	{ "completion-with-reply", completion_with_reply, false },
	{ "two-at-once", two_at_once, false },
	{ "order-of-two", order_of_two, false },
	{ "arrivals-of-two", arrivals_of_two, false },
	{ "event-is-completion", event_is_completion, false },
	{ "flushed-at-once", flushed_at_once, true },
	{ "region-ends", region_ends, false },
	{ "queue-pair-ends", queue_pair_ends, true },
	{ "nothing-flushed", nothing_flushed, true },
	{ "none-is-lost", none_is_lost, false },
	{ "first-message-comes", first_message_comes, true },
	{ "own-copy-tells", own_copy_tells, true },
	{ "datagram-reused", datagram_reused, false },
	{ "datagrams-in-order", datagrams_in_order, false },
};

/* The second pair has the first one's memory beside its own: it uses the first one's keys. */
static void make_pairs(void)
{
	struct lab_peer_options o = { .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	struct lab_peer **first;

	o.channel = true;
	first = lab_peers(&o, NULL);
	for (unsigned i = 0; i < 2; i++) {
		o.host = (int)i + 1;
		o.neighbour = first[i];
		*(i ? &to[1] : &from[1]) = lab_peer(&o);
	}
	lab_peer_connect(from[1], to[1]);
	lab_peer_connect(to[1], from[1]);
	from[0] = first[0];
	to[0] = first[1];
}

/* Whether the data is right. */
static bool run(const struct mistake *m, bool wrong)
{
	bool ok = true;

	make_pairs();
	sender = NULL;
	for (unsigned i = 0; i < (m->once ? 1 : ROUNDS) && ok; i++) {
		memset(from[0]->here->memory, 0, LAB_PEER_BYTES);
		memset(to[0]->here->memory, 0, LAB_PEER_BYTES);
		ok = m->run(wrong);
	}
	lab_clean_up(NULL);
	return ok;
}

int main(int argc, char **argv)
{
	bool ok = true, found = argc == 2;

	for (unsigned i = 0; i < LAB_ARRAY(mistakes); i++) {
		const char *name = mistakes[i].name;

		if (argc == 2)
			puts(name);
		if (argc != 3 || (strcmp(argv[1], name) != 0 && strcmp(argv[1], "--all") != 0))
			continue;
		found = true;
		if (run(&mistakes[i], !strcmp(argv[2], "wrong")))
			continue;
		ok = false;
		printf("%s: the data is wrong\n", name);
	}
	return found ? !ok : 2;
}
