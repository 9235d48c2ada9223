/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The order in which completions are polled: each source of a CQ (its sends, each receive queue)
 * has its turn of at most 16 completions, so that none hides another, as docs/semantics.md says,
 * nor one that was idle. And that a poll which lets a sender get ahead in its list keeps nothing
 * back.
 */
#include "lab.h"
#include "base/pause.h"
#include "attributes.h"

#define TURN   16
#define SENDS  (LAB_SLOTS / 2)
#define QUEUES 40 /* more than a CQ watches at a time */

/* A queue pair that sends, whose completions are on the CQ of @e's receives. */
static struct ibv_qp *sender_on_same_cq(struct lab_end *e)
{
	struct ibv_qp_init_attr init = init_of(IBV_QPT_UD, e->cq, SENDS, 1);
	struct ibv_qp *qp = lab_qp(e->pd, &init);

	lab_start(qp, LAB_QKEY);
	return qp;
}

static void send_to_nobody(struct lab_end *e, struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct lab_request r;
	struct ibv_send_wr *bad;

	lab_request(e, &r, ah, 0xABCDE, "x", 1);
	assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
}

/* Polls for one completion at a time until it is of @qp. How many others came before. */
static unsigned others_before(struct ibv_cq *cq, const struct ibv_qp *qp, void (*again)(void *arg),
                              void *arg)
{
	struct ibv_wc wc;

	for (unsigned n = 0;; n++) {
		lab_poll(cq, 1, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.qp_num == qp->qp_num || n > 100000)
			return n;
		again(arg);
	}
}

struct busy_sender {
	struct lab_end *e;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
};

static void send_again(void *arg)
{
	struct busy_sender *b = arg;

	send_to_nobody(b->e, b->qp, b->ah);
}

LAB_CASE(a_busy_sender_does_not_hide_receives)
{
	struct lab_end *e = lab_end(1), *from = lab_end(2);
	struct busy_sender b = { e, sender_on_same_cq(e), lab_ah_to(e, e) };

	lab_post(e, 1);
	for (unsigned i = 0; i < SENDS; i++)
		send_again(&b);
	lab_send_text(from, lab_ah_to(from, e), e->qp->qp_num, "here");
	assert_in_range(others_before(e->cq, e->qp, send_again, &b), 0, TURN);
}

LAB_CASE(sends_wait_no_longer_than_for_a_turn_of_receives)
{
	struct lab_end *e = lab_end(1), *from = lab_end(2);
	struct ibv_qp *qp = sender_on_same_cq(e);
	struct ibv_ah *ah = lab_ah_to(from, e);
	struct ibv_wc wc[2 * TURN];
	unsigned received = 0;

	lab_post(e, 2 * TURN);
	for (unsigned i = 0; i < 2 * TURN; i++)
		lab_send_text(from, ah, e->qp->qp_num, "one of many");
	send_to_nobody(e, qp, lab_ah_to(e, e));
	lab_poll(e->cq, TURN + 1, wc);
	for (unsigned i = 0; i <= TURN; i++)
		received += wc[i].opcode == IBV_WC_RECV;
	assert_int_equal(received, TURN);
}

/* Many receive queues on one CQ, all but one of which get a new message for each that is polled. */
struct flood {
	struct lab_end *to[QUEUES], *from;
	struct ibv_ah *ah;
	unsigned quiet, turn;
};

static void flood_again(void *arg)
{
	struct flood *f = arg;
	unsigned i = f->turn++ % QUEUES;

	if (i == f->quiet)
		i = f->turn++ % QUEUES;
	lab_post(f->to[i], 1);
	lab_send_text(f->from, f->ah, f->to[i]->qp->qp_num, "flood");
}

/* All but one have messages for two turns. */
static struct flood begin_flood(unsigned quiet)
{
	struct flood f = { .quiet = quiet, .from = lab_end(2) };
	struct lab_options options = { .cqe = QUEUES * LAB_SLOTS, .cap.max_send_wr = 1 };

	for (unsigned i = 0; i < QUEUES; i++) {
		f.to[i] = lab_end_with(&options);
		options.neighbour = f.to[0];
	}
	f.ah = lab_ah_to(f.from, f.to[0]);
	for (unsigned i = 0; i < 2 * TURN * QUEUES; i++)
		flood_again(&f);
	return f;
}

static void flood(unsigned quiet)
{
	struct flood f = begin_flood(quiet);

	lab_post(f.to[quiet], 1);
	lab_send_text(f.from, f.ah, f.to[quiet]->qp->qp_num, "the one that counts");
	assert_in_range(others_before(f.to[0]->cq, f.to[quiet]->qp, flood_again, &f), 0,
	                TURN * QUEUES);
	lab_clean_up(NULL);
}

LAB_CASE(flooded_queues_do_not_hide_another)
{
	flood(0);
	flood(1);
	flood(QUEUES / 2);
	flood(QUEUES - 1);
}

/* All queues but the last one fall idle @later polls later than they could. */
static void the_last_of_many_is_found(unsigned later)
{
	enum { LONG = 1100, ENDS = 4 };
	struct lab_options options = { .cqe = ENDS * LAB_SLOTS };
	struct lab_end *to[ENDS], *from = lab_end(2);
	struct ibv_ah *ah;
	struct ibv_wc wc[TURN];

	for (unsigned i = 0; i < ENDS; i++) {
		to[i] = lab_end_with(&options);
		options.neighbour = to[0];
	}
	ah = lab_ah_to(from, to[0]);
	for (unsigned n = 0; n < LONG; n++) {
		unsigned i = n < ENDS ? n : n - ENDS - later;
		struct lab_end *e = to[i < ENDS ? i : ENDS - 1];

		lab_post(e, 1);
		lab_send_text(from, ah, e->qp->qp_num, "here");
		assert_int_equal(ibv_poll_cq(to[0]->cq, TURN, wc), 1);
	}
	lab_clean_up(NULL);
}

LAB_CASE(a_poll_finds_what_is_there)
{
	for (unsigned later = 0; later < TURN; later++)
		the_last_of_many_is_found(later); /* it is another one's turn when they do */
}

static void send_many(struct lab_end *to, struct lab_end *from, struct ibv_ah *ah, unsigned n)
{
	lab_post(to, n);
	while (n--)
		lab_send_text(from, ah, to->qp->qp_num, "one of many");
}

/* All of them fall idle in the same poll, and have messages once more. */
LAB_CASE(queues_that_fall_idle_together_are_found)
{
	enum { LONG = 1100, ENDS = 4 };
	struct lab_options options = { .cqe = ENDS * LAB_SLOTS };
	struct lab_end *to[ENDS], *from = lab_end(2);
	struct ibv_ah *ah;
	struct ibv_wc wc[TURN];

	for (unsigned i = 0; i < ENDS; i++) {
		to[i] = lab_end_with(&options);
		options.neighbour = to[0];
	}
	ah = lab_ah_to(from, to[0]);
	for (unsigned n = 0; n < 6; n++) { /* from the third time on all are known to the poll */
		for (unsigned i = 0; i < ENDS; i++)
			send_many(to[i], from, ah, 1);
		lab_poll(to[0]->cq, ENDS, wc);
		for (unsigned i = 0; n >= 3 && i < LONG; i++)
			assert_int_equal(ibv_poll_cq(to[0]->cq, TURN, wc), 0);
	}
}

/* A program that polls @n at a time, one of whose queues always has as many. */
static void one_that_was_idle_is_found(unsigned n)
{
	enum { ENDS = 3, BUSY = 1, IDLE = 2, MOST = 3 * TURN };
	struct lab_options options = { .cqe = ENDS * LAB_SLOTS };
	struct lab_end *to[ENDS], *from = lab_end(2);
	struct ibv_wc wc[4 * TURN];
	struct ibv_ah *ah;
	unsigned others = 0;
	bool found = false;

	for (unsigned i = 0; i < ENDS; i++) {
		to[i] = lab_end_with(&options);
		options.neighbour = to[0];
	}
	ah = lab_ah_to(from, to[0]);
	send_many(to[BUSY], from, ah, 3 * TURN);
	lab_poll(to[0]->cq, TURN, wc);
	lab_poll(to[0]->cq, 1, wc); /* one that looks at all, before */
	send_many(to[IDLE], from, ah, 1);
	while (!found) {
		send_many(to[BUSY], from, ah, n);
		assert_int_equal(ibv_poll_cq(to[0]->cq, (int)n, wc), n);
		for (unsigned i = 0; i < n && !found; i++) {
			found = wc[i].qp_num == to[IDLE]->qp->qp_num;
			assert_in_range(++others, 1, MOST);
		}
	}
	lab_clean_up(NULL);
}

LAB_CASE(a_busy_queue_does_not_hide_one_that_was_idle)
{
	for (unsigned n = 1; n <= 2 * TURN; n++)
		one_that_was_idle_is_found(n);
	one_that_was_idle_is_found(4 * TURN);
}

/* ---- lists that are being written, as it seems ---- */

#define LIST 8

/* Posts a list of which @n messages arrive: the next one fails. */
static void send_part_of_list(struct lab_end *from, struct ibv_ah *ah, uint32_t qpn, unsigned n)
{
	struct lab_request r[LIST];
	struct ibv_send_wr *bad;
	struct ibv_wc wc[LIST];

	for (unsigned i = 0; i < LIST; i++) {
		lab_request(from, &r[i], ah, qpn, "one of a list", 14);
		if (i == n)
			r[i].sge.lkey = ~from->mr->lkey;
		if (i)
			r[i - 1].wr.next = &r[i].wr;
	}
	assert_int_equal(ibv_post_send(from->qp, &r[0].wr, &bad), 0);
	lab_poll(from->send_cq, LIST, wc);
	assert_int_equal(wc[n].status, IBV_WC_LOC_PROT_ERR);
	lab_bring_to(from, IBV_QPS_RTS);
}

/* A program that gets 0 may go to sleep, and nobody would wake it for what is there already. */
static void each_poll_finds_one(struct ibv_cq *cq, unsigned n)
{
	struct ibv_wc wc;

	for (; n; n--) {
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

static void part_of_a_list_is_found(unsigned queues)
{
	struct lab_end *to[QUEUES], *from = lab_end(2);
	struct lab_options options = { .cqe = QUEUES * LAB_SLOTS };
	struct ibv_ah *ah;

	for (unsigned i = 0; i < queues; i++) {
		to[i] = lab_end_with(&options);
		options.neighbour = to[0];
	}
	ah = lab_ah_to(from, to[0]);
	for (unsigned i = 0; i < 2 * queues; i++) {
		struct lab_end *e = to[i % queues];

		lab_post(e, LIST);
		send_part_of_list(from, ah, e->qp->qp_num, LIST / 2);
		each_poll_finds_one(to[0]->cq, LIST / 2);
		lab_post(e, LIST / 2);
		send_part_of_list(from, ah, e->qp->qp_num, LIST - 1);
		each_poll_finds_one(to[0]->cq, LIST - 1);
	}
	lab_clean_up(NULL);
}

LAB_CASE(a_poll_finds_a_list_that_broke_off)
{
	part_of_a_list_is_found(1);
	part_of_a_list_is_found(4);
}

/* Of two queues that a list breaks off for, none keeps the other one's messages, nor its own. */
LAB_CASE(a_poll_finds_two_lists_that_broke_off)
{
	struct lab_options options = { .host = 1 };
	struct lab_end *first = lab_end_with(&options), *second, *from = lab_end(2);
	struct ibv_ah *ah;

	options.neighbour = first;
	second = lab_end_with(&options);
	ah = lab_ah_to(from, first);
	for (unsigned i = 0; i < 2; i++) {
		lab_post(first, LIST);
		lab_post(second, LIST);
		send_part_of_list(from, ah, first->qp->qp_num, 2);
		send_part_of_list(from, ah, second->qp->qp_num, 3);
		each_poll_finds_one(first->cq, 5);
	}
}

/* Posts the rest of a list's receives as soon as it is told to, again and again. */
struct poster {
	struct lab_end *e;
	_Atomic unsigned rounds, done; /* rounds: UINT_MAX ends it */
};

static void *post_rest(void *arg)
{
	struct poster *p = arg;
	struct base_pause pause = { 0 };

	for (;;) {
		unsigned rounds = atomic_load(&p->rounds);

		if (rounds == UINT_MAX)
			return NULL;
		if (rounds == atomic_load(&p->done)) {
			base_pause(&pause);
			continue;
		}
		pause.looks = 0;
		for (unsigned i = 0; i < LIST - 3; i++)
			lab_post(p->e, 1);
		atomic_store(&p->done, rounds);
	}
}

/* A poll waits for no more of a list than has receives: more of them does not make it wait anew. */
LAB_CASE(a_poll_finds_a_list_while_receives_are_posted)
{
	struct lab_end *to = lab_end(1), *from = lab_end(2);
	struct ibv_ah *ah = lab_ah_to(from, to);
	struct poster p = { .e = to };
	struct ibv_wc wc[LIST];
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, post_rest, &p), 0);
	for (unsigned i = 1; i <= 300; i++) {
		struct base_pause pause = { 0 };

		lab_post(to, 3);
		send_part_of_list(from, ah, to->qp->qp_num, 2);
		assert_int_equal(ibv_poll_cq(to->cq, 1, wc), 1);
		atomic_store(&p.rounds, i);
		assert_int_equal(ibv_poll_cq(to->cq, 1, wc), 1);
		while (atomic_load(&p.done) != i)
			base_pause(&pause);
		send_part_of_list(from, ah, to->qp->qp_num, LIST - 2);
		lab_poll(to->cq, LIST - 2, wc);
	}
	atomic_store(&p.rounds, UINT_MAX);
	pthread_join(thread, NULL);
}

/* While others are busy. */
LAB_CASE(a_list_that_breaks_off_waits_two_turns)
{
	struct flood f = begin_flood(QUEUES / 2);
	struct ibv_qp *quiet = f.to[f.quiet]->qp;

	lab_post(f.to[f.quiet], LIST);
	send_part_of_list(f.from, f.ah, quiet->qp_num, 2);
	assert_in_range(others_before(f.to[0]->cq, quiet, flood_again, &f), 0, TURN * QUEUES);
	assert_in_range(others_before(f.to[0]->cq, quiet, flood_again, &f), 0, 2 * TURN * QUEUES);
}
