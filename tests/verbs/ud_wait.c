/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A datagram for which no receive is posted waits, as long as the setting ud_wait_us says.
 */
#include "lab.h"

#define MESSAGES 1000
#define HOSTS    3 /* that receive, from host 2 on */

static void set_wait(unsigned us)
{
	char command[64];

	snprintf(command, sizeof(command), "umbel set ud_wait_us=%u > /dev/null", us);
	assert_int_equal(system(command), 0);
}

/* ---- receivers with one receive each ---- */

struct receiver {
	struct lab_end *e;
	pthread_t thread;
	unsigned wrong;
};

static int post(struct lab_end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->slot, LAB_SLOT, e->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(e->qp, &wr, &bad);
}

/* Takes one message after the other. */
static void *receive_all(void *arg)
{
	struct receiver *r = arg;
	struct ibv_wc wc;

	for (uint32_t i = 0, got; i < MESSAGES; i++) {
		lab_poll(r->e->cq, 1, &wc);
		memcpy(&got, r->e->slot + LAB_GRH, sizeof(got));
		r->wrong += wc.status != IBV_WC_SUCCESS || got != i || post(r->e);
	}
	return NULL;
}

static void start(struct receiver *r, int host)
{
	*r = (struct receiver){ .e = lab_end(host) };
	assert_int_equal(post(r->e), 0);
}

static void let_go(struct receiver *r)
{
	assert_int_equal(pthread_create(&r->thread, NULL, receive_all, r), 0);
}

static void end(struct receiver *r)
{
	pthread_join(r->thread, NULL);
	assert_int_equal(r->wrong, 0);
}

static void send_all(struct lab_end *from, struct ibv_ah *ah, uint32_t qpn)
{
	for (uint32_t i = 0; i < MESSAGES; i++)
		lab_send(from, ah, qpn, &i, sizeof(i));
}

LAB_CASE(a_sender_waits_for_a_slow_receiver)
{
	struct lab_end *from = lab_end(1);
	uint64_t waits = lab_counter(2, "receive_waits"), lost = lab_counter(2, "no_receive");
	struct receiver r;

	set_wait(30000000);
	start(&r, 2);
	let_go(&r);
	send_all(from, lab_ah_to(from, r.e), r.e->qp->qp_num);
	end(&r);
	assert_true(lab_counter(2, "receive_waits") > waits);
	assert_int_equal(lab_counter(2, "no_receive"), lost);
}

LAB_CASE(a_sender_to_a_group_waits_for_all_receivers)
{
	struct lab_end *from = lab_end(1);
	struct lab_group *g = lab_join_send_only(1, "239.4.4.4");
	struct ibv_ah *ah = lab_ah_group(from, g);
	struct receiver r[HOSTS];

	set_wait(30000000);
	for (int i = 0; i < HOSTS; i++) {
		struct lab_group *joined = lab_join(2 + i, "239.4.4.4");

		start(&r[i], 2 + i);
		lab_attach(r[i].e->qp, &joined->mgid, joined->mlid);
		ibv_modify_qp(r[i].e->qp, &(struct ibv_qp_attr){ .qkey = joined->qkey },
		              IBV_QP_QKEY);
	}
	for (int i = 0; i < HOSTS; i++)
		let_go(&r[i]);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct lab_request q;

		lab_request(from, &q, ah, LAB_MCAST, &i, sizeof(i));
		q.wr.wr.ud.remote_qkey = g->qkey;
		lab_send_request(from, &q);
	}
	for (int i = 0; i < HOSTS; i++)
		end(&r[i]);
}

/* ---- one that does not receive ---- */

static void send_lost(struct lab_end *from, struct ibv_ah *ah, uint32_t qpn, unsigned n)
{
	const uint64_t waits = lab_counter(2, "receive_waits"), lost = lab_counter(2, "no_receive");

	for (unsigned i = 0; i < n; i++)
		lab_send_text(from, ah, qpn, "?");
	assert_int_equal(lab_counter(2, "receive_waits"), waits + 1);
	assert_int_equal(lab_counter(2, "no_receive"), lost + n);
}

LAB_CASE(who_posts_nothing_is_waited_for_once)
{
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	struct ibv_ah *ah = lab_ah_to(from, to);

	set_wait(100000);
	send_lost(from, ah, to->qp->qp_num, 100);
	lab_post(to, 1);
	lab_send_text(from, ah, to->qp->qp_num, "it has one");
	lab_expect_text(to, "it has one");
	send_lost(from, ah, to->qp->qp_num, 100);
}

/* An interface of IPoIB sends for all programs of a host. */
LAB_CASE(what_has_the_qkey_of_ipoib_does_not_wait)
{
	const struct lab_options o = { .host = 2, .qkey = 0x0B1B };
	struct lab_end *from = lab_end(1), *to = lab_end_with(&o);
	const uint64_t waits = lab_counter(2, "receive_waits"), lost = lab_counter(2, "no_receive");
	struct lab_request q;

	set_wait(60000000);
	lab_request(from, &q, lab_ah_to(from, to), to->qp->qp_num, "?", 1);
	q.wr.wr.ud.remote_qkey = o.qkey;
	lab_send_request(from, &q);
	assert_int_equal(lab_counter(2, "receive_waits"), waits);
	assert_int_equal(lab_counter(2, "no_receive"), lost + 1);
}

/* ---- what happens to who is waited for ---- */

struct change {
	struct lab_end *e;
	uint64_t waits; /* before somebody waits */
	int (*make)(struct lab_end *e);
	int ret;
};

static void *change(void *arg)
{
	struct change *c = arg;

	while (lab_counter(2, "receive_waits") == c->waits)
		poll(NULL, 0, 1);
	c->ret = c->make(c->e);
	return NULL;
}

/* Somebody sends and waits; then @make is called. Less than a minute passes, which the wait is. */
static void send_and(int (*make)(struct lab_end *e), struct lab_end *to)
{
	struct change c = { to, lab_counter(2, "receive_waits"), make, -1 };
	struct lab_end *from = lab_end(1);
	struct ibv_ah *ah = lab_ah_to(from, to);
	const uint32_t qpn = to->qp->qp_num;
	pthread_t thread;

	set_wait(60000000);
	assert_int_equal(pthread_create(&thread, NULL, change, &c), 0);
	alarm(50);
	lab_send_text(from, ah, qpn, "late");
	pthread_join(thread, NULL);
	alarm(0);
	assert_int_equal(c.ret, 0);
}

static int destroy(struct lab_end *e)
{
	return ibv_destroy_qp(e->qp);
}

static int wait_no_more(struct lab_end *e)
{
	(void)e;
	return system("umbel set ud_wait_us=0 > /dev/null");
}

static int modify(struct lab_end *e)
{
	return ibv_modify_qp(e->qp, &(struct ibv_qp_attr){ .qkey = LAB_QKEY }, IBV_QP_QKEY);
}

/* Its record is written anew, twice, and says the same. */
static int change_twice(struct lab_end *e)
{
	return modify(e) || modify(e) || post(e);
}

LAB_CASE(who_is_destroyed_is_waited_for_no_longer)
{
	struct lab_end *to = lab_end(2);

	lab_forget(to->qp);
	send_and(destroy, to);
}

LAB_CASE(who_waits_hears_of_the_setting)
{
	send_and(wait_no_more, lab_end(2));
}

LAB_CASE(a_change_that_changes_nothing_loses_nothing)
{
	struct lab_end *to = lab_end(2);
	struct ibv_wc wc;

	send_and(change_twice, to);
	wc = lab_complete(to->cq, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, LAB_GRH + strlen("late"));
}
