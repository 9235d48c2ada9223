/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Members whose port goes down, or has its LID or its subnet manager changed: each gets
 * RDMA_CM_EVENT_MULTICAST_ERROR with -ENETRESET, leaves, and may join anew.
 */
#include "common.h"

#define GROUP   "239.4.4.4"
#define SECONDS 120

static void umbel(const char *command)
{
	char text[128];

	snprintf(text, sizeof(text), "umbel %s", command);
	if (system(text))
		fail_msg("it fails: %s", text);
}

static struct node member(unsigned host)
{
	struct node n = node_open(RDMA_PS_UDP);

	node_bind(&n, host, 0);
	node_qp(&n, 0);
	return n;
}

static void expect_reset(struct node *n)
{
	struct pollfd p = { .fd = n->channel->fd, .events = POLLIN };
	struct rdma_cm_event *e;

	assert_int_equal(poll(&p, 1, SECONDS * 1000), 1);
	e = next_event(n);
	assert_event(e, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	assert_ptr_equal(e->id, n->id);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

/* Expects what happens to the members on host 2, and to those on all hosts if @all. */
static void reset_by(const char *command, const char *mend, bool all)
{
	struct node CLOSED tx = member(1), rx = member(2);
	struct rdma_ud_param to = join(&tx, GROUP);

	join(&rx, GROUP);
	umbel(command);
	expect_reset(&rx);
	if (all)
		expect_reset(&tx);
	assert_no_event(&rx);
	assert_no_event(&tx);
	if (mend)
		umbel(mend);
	send_to(&tx, &to, "for members, which host 2 is not");
	assert_nothing_received(&rx);
	assert_int_equal(leave(&rx, GROUP), 0);
	join(&rx, GROUP);
	assert_int_equal(leave(&tx, GROUP), 0);
	to = join(&tx, GROUP);
	send_to(&tx, &to, "again a member");
	assert_received(&rx, "again a member");
}

CASE(a_port_error_resets_its_members)
{
	reset_by("link down h2:1", "link up h2:1", false);
}

CASE(a_dead_switch_resets_the_members_on_it)
{
	reset_by("switch kill sw1", "switch revive sw1", true);
}

CASE(a_lid_change_resets_the_port_s_members)
{
	reset_by("sm event lid-change h2:1", NULL, false);
}

CASE(an_sm_change_resets_all_members)
{
	reset_by("sm event sm-change", NULL, true);
}

CASE(a_client_reregister_resets_the_port_s_members)
{
	reset_by("sm event client-reregister h2:1", NULL, false);
}

CASE(members_on_other_ports_hear_nothing)
{
	struct node CLOSED here = member(2), there = member(3);

	join(&here, GROUP);
	join(&there, GROUP);
	umbel("link down h2:1");
	expect_reset(&here);
	assert_no_event(&there);
	umbel("link up h2:1");
	assert_no_event(&there);
	assert_no_event(&here); /* it joins anew, or not at all */
}

CASE(each_join_of_the_port_is_told_with_its_context)
{
	struct node CLOSED a = member(2), b = member(2);
	int context[2];
	struct rdma_cm_event *e;

	assert_int_equal(join_with(&a, GROUP, RDMA_MC_JOIN_FLAG_FULLMEMBER, &context[0]), 0);
	expect_event(&a, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_int_equal(join_with(&b, GROUP, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, &context[1]),
	                 0);
	expect_event(&b, RDMA_CM_EVENT_MULTICAST_JOIN);
	umbel("sm event client-reregister h2:1");
	e = next_event(&a);
	assert_event(e, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	assert_ptr_equal(e->param.ud.private_data, &context[0]);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	e = next_event(&b);
	assert_event(e, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	assert_ptr_equal(e->param.ud.private_data, &context[1]);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(leave(&a, GROUP), 0);
	assert_int_equal(leave(&b, GROUP), 0);
}

CASE(while_the_port_is_down_a_join_is_refused)
{
	struct node CLOSED n = member(2);
	union address group = address(GROUP, 0);

	umbel("link down h2:1");
	assert_fails(rdma_join_multicast(n.id, &group.sa, NULL), EADDRNOTAVAIL);
	umbel("link up h2:1");
	join(&n, GROUP);
}
