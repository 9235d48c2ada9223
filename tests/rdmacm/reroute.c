/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Trees led around what has failed: a fat tree with two spines, two hosts on each of four
 * leaves. Members hear nothing of it and get each message once.
 *
 * umbel: --hosts 8 --fat-tree 2 --radix 4
 */
#include "common.h"

#define GROUP     "239.6.6.6"
#define N_MEMBERS 5

static const unsigned hosts[N_MEMBERS] = { 1, 2, 3, 5, 8 };

struct members {
	struct node node[N_MEMBERS];
	struct rdma_ud_param to;
};

static void umbel(const char *command)
{
	char text[128];

	snprintf(text, sizeof(text), "umbel %s", command);
	if (system(text))
		fail_msg("it fails: %s", text);
}

static int setup(void **state)
{
	struct members *m = calloc(1, sizeof(*m));

	for (unsigned i = 0; i < N_MEMBERS; i++) {
		m->node[i] = node_open(RDMA_PS_UDP);
		node_bind(&m->node[i], hosts[i], 0);
		node_qp(&m->node[i], 0);
		m->to = join(&m->node[i], GROUP);
	}
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	struct members *m = *state;

	for (unsigned i = 0; i < N_MEMBERS; i++)
		node_close(&m->node[i]);
	free(m);
	return 0;
}

/* The first member sends; the first @n get it, once. */
static void expect_members(struct members *m, unsigned n, const char *text)
{
	send_to(&m->node[0], &m->to, text);
	for (unsigned i = 0; i < N_MEMBERS; i++) {
		if (i < n)
			assert_received(&m->node[i], text);
		assert_nothing_received(&m->node[i]);
		assert_no_event(&m->node[i]);
	}
}

CASE_WITH(either_spine_will_do, setup, teardown)
{
	struct members *m = *state;

	expect_members(m, N_MEMBERS, "both");
	umbel("switch kill spine1");
	expect_members(m, N_MEMBERS, "the second");
	umbel("switch revive spine1");
	umbel("switch kill spine2");
	expect_members(m, N_MEMBERS, "the first");
	umbel("switch revive spine2");
	expect_members(m, N_MEMBERS, "both again");
}

CASE_WITH(without_spines_a_leaf_is_by_itself, setup, teardown)
{
	struct members *m = *state;

	umbel("switch kill spine1");
	umbel("switch kill spine2");
	expect_members(m, 2, "on the leaf");
	umbel("switch revive spine2");
	expect_members(m, N_MEMBERS, "one is enough");
	umbel("switch revive spine1");
}

/* Each spine has lost another leaf: what one cannot reach goes through a third leaf. */
CASE_WITH(links_that_fail_crosswise_leave_a_way, setup, teardown)
{
	struct members *m = *state;

	umbel("link down leaf1:3");
	umbel("link down spine2:4");
	expect_members(m, N_MEMBERS, "around");
	umbel("link up spine1:1");
	umbel("link up leaf4:4");
	expect_members(m, N_MEMBERS, "straight");
}
