/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A subnet that comes apart between switches, and grows together again. Hosts 37 to 40
 * are behind another switch than host 1. Members there stay members and hear nothing
 * of it: it is not their port that went down. But the subnet administrator is on host 1, and
 * out of their reach.
 *
 * umbel: --hosts 40
 */
#include "common.h"

#define GROUP "239.5.5.5"

/* "down" or "up": the link that leads from the first switch to all others. */
static void uplink(const char *what)
{
	char command[256];

	snprintf(command, sizeof(command),
	         "umbel link %s $(umbel show topology |"
	         " awk '$1 == \"sw1\" && $7 !~ /^umbel/ { print \"sw1:\" $4 }')",
	         what);
	if (system(command))
		fail_msg("it fails: %s", command);
}

static struct node member(unsigned host)
{
	struct node n = node_open(RDMA_PS_UDP);

	node_bind(&n, host, 0);
	node_qp(&n, 0);
	return n;
}

CASE(members_stay_and_get_messages_again_when_the_link_returns)
{
	struct node CLOSED tx = member(1), near = member(2), far = member(38);
	struct rdma_ud_param to = join(&tx, GROUP);

	join(&near, GROUP);
	join(&far, GROUP);
	send_to(&tx, &to, "whole");
	assert_received(&tx, "whole");
	assert_received(&near, "whole");
	assert_received(&far, "whole");
	uplink("down");
	send_to(&tx, &to, "apart");
	assert_received(&tx, "apart");
	assert_received(&near, "apart");
	assert_nothing_received(&far);
	uplink("up");
	send_to(&tx, &to, "whole again");
	assert_received(&tx, "whole again");
	assert_received(&near, "whole again");
	assert_received(&far, "whole again");
	assert_no_event(&far);
}

CASE(each_part_goes_on_by_itself)
{
	struct node a = member(1), b = member(37), c = member(39);
	struct rdma_ud_param to;

	join(&a, GROUP);
	to = join(&b, GROUP);
	join(&c, GROUP);
	uplink("down");
	send_to(&b, &to, "in the other part");
	assert_received(&b, "in the other part");
	assert_received(&c, "in the other part");
	assert_nothing_received(&a);
	uplink("up");
	send_to(&b, &to, "to all");
	assert_received(&a, "to all");
	assert_received(&c, "to all");
	node_close(&c);
	assert_received(&b, "to all");
	node_close(&b);
	node_close(&a);
}

CASE(who_cannot_reach_the_sa_does_not_join)
{
	struct node CLOSED n = member(40);
	union address group = address(GROUP, 0);
	struct rdma_cm_event *e;

	uplink("down");
	assert_int_equal(rdma_join_multicast(n.id, &group.sa, NULL), 0);
	e = next_event(&n); /* after three seconds */
	assert_event(e, RDMA_CM_EVENT_MULTICAST_ERROR, -ETIMEDOUT);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_leave_multicast(n.id, &group.sa), 0);
	uplink("up");
	join(&n, GROUP);
}

CASE(a_join_goes_through_once_the_sa_can_be_reached)
{
	struct node CLOSED n = member(40);
	union address group = address(GROUP, 0);

	uplink("down");
	assert_int_equal(rdma_join_multicast(n.id, &group.sa, NULL), 0);
	assert_no_event(&n);
	uplink("up");
	expect_event(&n, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_int_equal(leave(&n, GROUP), 0);
}
