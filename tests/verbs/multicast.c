/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receivers of a message that is sent to a group: the queue pairs that are attached to it on
 * ports that have joined it, one copy each.
 */
#include "lab.h"

#define GROUP "239.5.0.1"

/* An end on @host whose port has joined and whose QP is attached. */
static struct lab_end *member(int host, struct lab_group **g)
{
	struct lab_end *e = lab_end(host);

	*g = lab_join(host, GROUP);
	lab_attach(e->qp, &(*g)->mgid, (*g)->mlid);
	return e;
}

static void send_to(struct lab_end *from, const struct lab_group *g, const char *text)
{
	lab_send_text(from, lab_ah_group(from, g), LAB_MCAST, text);
}

LAB_CASE(joined_and_attached_it_gets_one_copy)
{
	struct lab_group *g;
	struct lab_end *a = lab_end(1), *b = member(2, &g);

	lab_post(b, 2);
	send_to(a, g, "to all");
	lab_expect_text(b, "to all");
	lab_expect_nothing(b, a);
}

LAB_CASE(every_member_gets_a_copy)
{
	struct lab_end *a = lab_end(1), *m[3];
	struct lab_group *g;

	for (int i = 0; i < 3; i++) {
		m[i] = member(i + 2, &g);
		lab_post(m[i], 1);
	}
	send_to(a, g, "to all");
	for (int i = 0; i < 3; i++)
		lab_expect_text(m[i], "to all");
}

LAB_CASE(attached_without_joining_it_gets_nothing)
{
	struct lab_group *g;
	struct lab_end *a = lab_end(1), *b = member(2, &g), *c = lab_end(3);

	lab_attach(c->qp, &g->mgid, g->mlid);
	lab_post(b, 1);
	lab_post(c, 1);
	send_to(a, g, "to members");
	lab_expect_text(b, "to members");
	lab_expect_nothing(c, a);
}

LAB_CASE(joined_without_attaching_it_gets_nothing)
{
	struct lab_group *g;
	struct lab_end *a = lab_end(1), *b = member(2, &g), *c = lab_end(3);

	lab_join(3, GROUP);
	lab_post(b, 1);
	lab_post(c, 1);
	send_to(a, g, "to members");
	lab_expect_text(b, "to members");
	lab_expect_nothing(c, a);
}

LAB_CASE(having_left_it_gets_nothing_more)
{
	struct lab_group *g, *others;
	struct lab_end *a = lab_end(1), *b = member(2, &g), *c = member(3, &others);

	lab_post(b, 2);
	lab_post(c, 2);
	send_to(a, g, "before");
	lab_expect_text(b, "before");
	lab_expect_text(c, "before");
	lab_leave(g);
	send_to(a, g, "after");
	lab_expect_text(c, "after");
	lab_expect_nothing(b, a);
}

LAB_CASE(joining_again_it_gets_the_next)
{
	struct lab_group *g, *others;
	struct lab_end *a = lab_end(1), *b = member(2, &g), *c = member(3, &others);

	lab_post(b, 2);
	lab_post(c, 2);
	lab_leave(g);
	send_to(a, others, "missed");
	g = lab_join(2, GROUP);
	send_to(a, g, "again");
	lab_expect_text(b, "again");
	lab_expect_text(c, "missed");
	lab_expect_text(c, "again");
}

LAB_CASE(having_detached_it_gets_nothing_more)
{
	struct lab_group *g;
	struct lab_end *a = lab_end(1), *b = member(2, &g);

	lab_post(b, 1);
	lab_detach(b->qp, &g->mgid, g->mlid);
	send_to(a, g, "after");
	lab_expect_nothing(b, a);
}

/* The sender's copy of the list of receivers is not stale for a single message. */
LAB_CASE(attaching_and_detaching_count_from_the_next_message_on)
{
	struct lab_group *g;
	struct lab_end *a = lab_end(1), *b = member(2, &g);
	struct ibv_ah *ah = lab_ah_group(a, g);

	for (int i = 0; i < 20; i++) {
		lab_post(b, 1);
		lab_send_text(a, ah, LAB_MCAST, "attached");
		lab_expect_text(b, "attached");
		lab_detach(b->qp, &g->mgid, g->mlid);
		lab_send_text(a, ah, LAB_MCAST, "detached");
		lab_quiet(b->cq);
		lab_attach(b->qp, &g->mgid, g->mlid);
	}
}

LAB_CASE(a_sender_need_not_be_a_member)
{
	struct lab_group *g;
	struct lab_end *a = lab_end(1), *b = member(2, &g);

	lab_post(a, 1);
	lab_post(b, 1);
	send_to(a, g, "from outside");
	lab_expect_text(b, "from outside");
	lab_quiet(a->cq);
}

LAB_CASE(a_send_only_member_gets_nothing)
{
	struct lab_group *g;
	struct lab_end *b = member(2, &g), *a = lab_end(1), *c = lab_end(3);

	lab_join_send_only(3, GROUP);
	lab_attach(c->qp, &g->mgid, g->mlid);
	lab_post(b, 2);
	lab_post(c, 1);
	send_to(c, g, "from the sender");
	lab_expect_text(b, "from the sender");
	send_to(a, g, "from another");
	lab_expect_text(b, "from another");
	lab_expect_nothing(c, a);
}

/* ---- its own messages ---- */

LAB_CASE(a_sender_that_is_attached_gets_its_own_copy)
{
	struct lab_group *g;
	struct lab_end *a = member(1, &g), *b = lab_end(2);

	lab_post(a, 2);
	send_to(a, g, "own");
	lab_expect_text(a, "own");
	lab_expect_nothing(a, b);
}

LAB_CASE(without_a_receive_the_sender_loses_its_own_copy)
{
	struct lab_group *g;
	struct lab_end *a = member(1, &g), *b = lab_end(2);
	uint64_t lost = lab_counter(1, "no_receive");

	send_to(a, g, "own");
	assert_int_equal(lab_counter(1, "no_receive"), lost + 1);
	lab_post(a, 1);
	lab_expect_nothing(a, b);
}

static struct lab_end *blocking(struct lab_group **g)
{
	struct lab_options o = { .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB };
	struct lab_end *e = lab_end_with(&o);

	*g = lab_join(1, GROUP);
	lab_attach(e->qp, &(*g)->mgid, (*g)->mlid);
	return e;
}

LAB_CASE(with_block_self_the_sender_gets_no_copy)
{
	struct lab_group *g, *others;
	struct lab_end *a = blocking(&g), *b = member(2, &others);

	lab_post(a, 2);
	lab_post(b, 1);
	send_to(a, g, "not to myself");
	lab_expect_text(b, "not to myself");
	lab_expect_nothing(a, b);
}

LAB_CASE(block_self_lets_others_messages_in)
{
	struct lab_group *g;
	struct lab_end *a = blocking(&g), *b = lab_end(2), *neighbour = lab_end(1);

	lab_post(a, 2);
	send_to(b, g, "from another host");
	lab_expect_text(a, "from another host");
	send_to(neighbour, g, "from the same host");
	lab_expect_text(a, "from the same host");
}

/* It is a property of the QP: others on the host still get the message. */
LAB_CASE(block_self_is_for_the_qp_alone)
{
	struct lab_group *g;
	struct lab_end *a = blocking(&g), *neighbour = lab_end(1);

	lab_attach(neighbour->qp, &g->mgid, g->mlid);
	lab_post(neighbour, 1);
	send_to(a, g, "to the neighbour");
	lab_expect_text(neighbour, "to the neighbour");
}

LAB_CASE(two_qps_of_a_host_get_a_copy_each)
{
	struct lab_group *g;
	struct lab_end *a = lab_end(1), *b = member(2, &g), *c = lab_end(2);

	lab_attach(c->qp, &g->mgid, g->mlid);
	lab_post(b, 2);
	lab_post(c, 2);
	send_to(a, g, "to both");
	lab_expect_text(b, "to both");
	lab_expect_text(c, "to both");
	lab_expect_nothing(b, a);
	lab_expect_nothing(c, a);
}

/* ---- attached more than once ---- */

LAB_CASE(attached_twice_it_gets_one_copy)
{
	struct lab_group *g;
	struct lab_end *a = lab_end(1), *b = member(2, &g);

	assert_int_equal(ibv_attach_mcast(b->qp, &g->mgid, g->mlid), 0);
	lab_post(b, 3);
	send_to(a, g, "once");
	lab_expect_text(b, "once");
	lab_expect_nothing(b, a);
}

LAB_CASE(attached_by_two_mlids_it_gets_one_copy)
{
	struct lab_group *g;
	struct lab_end *a = lab_end(1), *b = member(2, &g);
	uint16_t other = (uint16_t)(g->mlid + 1);

	lab_attach(b->qp, &g->mgid, other);
	lab_post(b, 4);
	send_to(a, g, "once");
	lab_expect_text(b, "once");
	lab_expect_nothing(b, a);
	/* one attachment of the two is enough to get it */
	lab_detach(b->qp, &g->mgid, other);
	send_to(a, g, "still once");
	lab_expect_text(b, "still once");
	lab_expect_nothing(b, a);
}

LAB_CASE(joined_twice_the_port_gets_one_copy_and_must_leave_twice)
{
	struct lab_group *g, *again;
	struct lab_end *a = lab_end(1), *b = member(2, &g), *c = member(3, &again);

	again = lab_join(2, GROUP);
	lab_post(b, 3);
	lab_post(c, 3);
	send_to(a, g, "once");
	lab_expect_text(b, "once");
	lab_leave(again);
	send_to(a, g, "one join left");
	lab_expect_text(b, "one join left");
	lab_leave(g);
	send_to(a, g, "none left");
	lab_expect_nothing(b, a);
}

/* ---- losses ---- */

LAB_CASE(without_a_receive_the_message_is_lost_and_counted)
{
	struct lab_group *g, *others;
	struct lab_end *a = lab_end(1), *b = member(2, &g), *c = member(3, &others);
	uint64_t lost = lab_counter(2, "no_receive"), lost_at_c = lab_counter(3, "no_receive");

	lab_post(c, 2);
	send_to(a, g, "lost at b");
	send_to(a, g, "lost at b too");
	lab_expect_text(c, "lost at b");
	lab_expect_text(c, "lost at b too");
	assert_int_equal(lab_counter(2, "no_receive"), lost + 2);
	assert_int_equal(lab_counter(3, "no_receive"), lost_at_c);
	lab_post(b, 1);
	lab_expect_nothing(b, a);
}

/* As many as were posted; the rest is lost. */
LAB_CASE(each_receive_takes_one_message)
{
	struct lab_group *g;
	struct lab_end *a = lab_end(1), *b = member(2, &g);
	uint64_t lost = lab_counter(2, "no_receive");

	lab_post(b, 3);
	for (int i = 0; i < 5; i++)
		send_to(a, g, "x");
	for (int i = 0; i < 3; i++)
		lab_expect_text(b, "x");
	lab_quiet(b->cq);
	assert_int_equal(lab_counter(2, "no_receive"), lost + 2);
}

LAB_CASE(a_qp_that_is_not_ready_gets_nothing)
{
	struct lab_group *g, *others;
	struct lab_end *a = lab_end(1), *b = member(2, &g), *c = member(3, &others);

	lab_post(c, 2);
	lab_to(b->qp, IBV_QPS_RESET);
	send_to(a, g, "in RESET");
	lab_to_init(b->qp, LAB_QKEY);
	lab_post(b, 2);
	send_to(a, g, "in INIT");
	lab_expect_text(c, "in RESET");
	lab_expect_text(c, "in INIT");
	lab_to_rtr(b->qp);
	send_to(a, g, "in RTR");
	lab_expect_text(b, "in RTR");
	lab_quiet(b->cq);
}

/* ---- groups ---- */

LAB_CASE(two_groups_do_not_mix)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2), *c = lab_end(3);
	struct lab_group *one = lab_join(2, "239.5.1.1"), *two = lab_join(3, "239.5.1.2");

	lab_attach(b->qp, &one->mgid, one->mlid);
	lab_attach(c->qp, &two->mgid, two->mlid);
	lab_post(b, 2);
	lab_post(c, 2);
	send_to(a, one, "one");
	send_to(a, two, "two");
	lab_expect_text(b, "one");
	lab_expect_text(c, "two");
	lab_expect_nothing(b, a);
	lab_expect_nothing(c, a);
}

/* Both ports have joined both groups; only the attachments differ. */
LAB_CASE(two_groups_on_the_same_ports_do_not_mix)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2), *c = lab_end(2);
	struct lab_group *one = lab_join(2, "239.5.1.1"), *two = lab_join(2, "239.5.1.2");

	lab_attach(b->qp, &one->mgid, one->mlid);
	lab_attach(c->qp, &two->mgid, two->mlid);
	lab_post(b, 2);
	lab_post(c, 2);
	send_to(a, one, "one");
	send_to(a, two, "two");
	lab_expect_text(b, "one");
	lab_expect_text(c, "two");
	lab_expect_nothing(b, a);
	lab_expect_nothing(c, a);
}

LAB_CASE(one_qp_receives_from_several_groups)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct lab_group *g[4];
	char address[32];

	lab_post(b, 8);
	for (int i = 0; i < 4; i++) {
		snprintf(address, sizeof(address), "239.5.2.%d", i + 1);
		g[i] = lab_join(2, address);
		lab_attach(b->qp, &g[i]->mgid, g[i]->mlid);
	}
	for (int i = 0; i < 4; i++) {
		struct lab_message m;

		send_to(a, g[i], "x");
		m = lab_receive(b);
		assert_memory_equal(m.grh + 24, &g[i]->mgid, 16);
	}
}

LAB_CASE(thirty_queue_pairs_get_a_copy_each)
{
	struct lab_end *a = lab_end(1), *first[4] = { NULL }, *m[30];
	struct lab_group *g = NULL;

	for (int host = 2; host <= 4; host++)
		g = lab_join(host, GROUP);
	for (int i = 0; i < 30; i++) {
		int host = 2 + i % 3;
		struct lab_options o = { .host = host, .neighbour = first[host - 1] };

		m[i] = lab_end_with(&o);
		if (!first[host - 1])
			first[host - 1] = m[i];
		lab_attach(m[i]->qp, &g->mgid, g->mlid);
		lab_post(m[i], 2);
	}
	send_to(a, g, "to thirty");
	/* ten of them complete in each of three CQs */
	for (int host = 2; host <= 4; host++) {
		bool seen[30] = { false };
		struct ibv_wc wc[10];

		lab_poll(first[host - 1]->cq, 10, wc);
		lab_quiet(first[host - 1]->cq);
		for (int k = 0; k < 10; k++) {
			int i = 0;

			assert_int_equal(wc[k].status, IBV_WC_SUCCESS);
			assert_int_equal(wc[k].byte_len, LAB_GRH + 9);
			while (i < 30 && m[i]->qp->qp_num != wc[k].qp_num)
				i++;
			assert_true(i < 30 && !seen[i]);
			seen[i] = true;
			assert_memory_equal(m[i]->slot + LAB_GRH, "to thirty", 9);
		}
	}
}

/* ---- data ---- */

LAB_CASE(messages_of_every_size_arrive_whole)
{
	static const uint32_t sizes[] = { 0, 1, 63, 64, 65, 1000, 4095, 4096 };
	struct lab_group *g, *others;
	struct lab_end *a = lab_end(1), *b = member(2, &g), *c = member(3, &others);
	static char text[LAB_MTU];

	for (size_t i = 0; i < LAB_ARRAY(sizes); i++) {
		for (uint32_t k = 0; k < sizes[i]; k++)
			text[k] = (char)(k * 31 + i);
		lab_post(b, 1);
		lab_post(c, 1);
		lab_send(a, lab_ah_group(a, g), LAB_MCAST, text, sizes[i]);
		lab_expect(b, text, sizes[i]);
		lab_expect(c, text, sizes[i]);
	}
}

/* One payload for all of them: it stays until the last has read it. */
LAB_CASE(a_slow_receiver_still_finds_its_message)
{
	struct lab_group *g, *others;
	struct lab_end *a = lab_end(1), *fast = member(2, &g), *slow = member(3, &others);
	struct ibv_ah *ah = lab_ah_group(a, g);
	static char text[1000];

	lab_post(slow, LAB_SLOTS);
	for (int i = 0; i < LAB_SLOTS; i++) {
		memset(text, i, sizeof(text));
		lab_post(fast, 1);
		lab_send(a, ah, LAB_MCAST, text, sizeof(text));
		lab_expect(fast, text, sizeof(text));
	}
	for (int i = 0; i < LAB_SLOTS; i++) {
		memset(text, i, sizeof(text));
		lab_expect(slow, text, sizeof(text));
	}
}
