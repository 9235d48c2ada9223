/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * IBV_QP_CREATE_BLOCK_SELF_MCAST_LB as cards have it that block for the whole host, not
 * for the queue pair.
 *
 * umbel: --set block_loopback_host=1
 */
#include "lab.h"

#define GROUP "239.7.0.1"

static struct lab_end *attached(int host, uint32_t create_flags, const struct lab_group *g)
{
	struct lab_options o = { .host = host, .create_flags = create_flags };
	struct lab_end *e = lab_end_with(&o);

	lab_attach(e->qp, &g->mgid, g->mlid);
	lab_post(e, 2);
	return e;
}

LAB_CASE(no_qp_of_the_senders_host_gets_a_copy)
{
	struct lab_group *g = lab_join(1, GROUP);
	struct lab_end *a = attached(1, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, g);
	struct lab_end *neighbour = attached(1, 0, g), *b;

	lab_join(2, GROUP);
	b = attached(2, 0, g);
	lab_send_text(a, lab_ah_group(a, g), LAB_MCAST, "to other hosts");
	lab_expect_text(b, "to other hosts");
	lab_expect_nothing(a, b);
	lab_expect_nothing(neighbour, b);
}

LAB_CASE(a_sender_without_the_flag_reaches_its_host)
{
	struct lab_group *g = lab_join(1, GROUP);
	struct lab_end *a = attached(1, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, g);
	struct lab_end *neighbour = attached(1, 0, g);

	lab_send_text(neighbour, lab_ah_group(neighbour, g), LAB_MCAST, "to all");
	lab_expect_text(a, "to all");
	lab_expect_text(neighbour, "to all");
}
