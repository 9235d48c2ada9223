/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The limits that a fabric sets: multicast groups and attachments, sizes of queues,
 * the MTU. They stand in ibv_query_device() and ibv_query_port(), and hold.
 *
 * umbel: --set max_mcast_grp=2 --set max_mcast_qp_attach=3
 * umbel: --set max_total_mcast_qp_attach=4 --set max_qp_wr=8 --set max_sge=2
 * umbel: --set max_cqe=64 --set mtu=1024
 */
#include "lab.h"

#define MLID 0xC100

static struct lab_end *small_end(int host)
{
	struct lab_options o = {
		.host = host,
		.cqe = 64,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 2 }
	};

	return lab_end_with(&o);
}

LAB_CASE(the_device_shows_the_settings)
{
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(lab_open(1), &attr), 0);
	assert_int_equal(attr.max_mcast_grp, 2);
	assert_int_equal(attr.max_mcast_qp_attach, 3);
	assert_int_equal(attr.max_total_mcast_qp_attach, 4);
	assert_int_equal(attr.max_qp_wr, 8);
	assert_int_equal(attr.max_sge, 2);
	assert_int_equal(attr.max_cqe, 64);
}

LAB_CASE(one_group_too_many_says_enomem)
{
	struct lab_end *e = small_end(1);
	union ibv_gid a = lab_mgid(1), b = lab_mgid(2), c = lab_mgid(3);

	lab_attach(e->qp, &a, MLID);
	lab_attach(e->qp, &b, MLID);
	errno = 0;
	assert_int_equal(ibv_attach_mcast(e->qp, &c, MLID), ENOMEM);
	assert_int_equal(errno, ENOMEM);
	/* the place of a group that has gone is free */
	lab_detach(e->qp, &a, MLID);
	assert_int_equal(ibv_attach_mcast(e->qp, &c, MLID), 0);
	assert_int_equal(ibv_detach_mcast(e->qp, &c, MLID), 0);
}

LAB_CASE(one_qp_too_many_in_a_group_says_enomem)
{
	union ibv_gid mgid = lab_mgid(1);
	struct lab_end *e[4];

	for (int i = 0; i < 4; i++)
		e[i] = small_end(1);
	for (int i = 0; i < 3; i++)
		lab_attach(e[i]->qp, &mgid, MLID);
	assert_int_equal(ibv_attach_mcast(e[3]->qp, &mgid, MLID), ENOMEM);
	/* being attached already is no addition */
	assert_int_equal(ibv_attach_mcast(e[0]->qp, &mgid, MLID), 0);
	lab_detach(e[0]->qp, &mgid, MLID);
	lab_attach(e[3]->qp, &mgid, MLID);
}

LAB_CASE(a_qp_counts_once_in_a_group_by_however_many_mlids)
{
	union ibv_gid mgid = lab_mgid(1);
	struct lab_end *e[3];

	for (int i = 0; i < 3; i++)
		e[i] = small_end(1);
	for (int i = 0; i < 10; i++)
		lab_attach(e[0]->qp, &mgid, (uint16_t)(MLID + i));
	lab_attach(e[1]->qp, &mgid, MLID);
	lab_attach(e[2]->qp, &mgid, MLID);
}

LAB_CASE(one_attachment_too_many_in_all_says_enomem)
{
	union ibv_gid a = lab_mgid(1), b = lab_mgid(2);
	struct lab_end *e[3];

	for (int i = 0; i < 3; i++)
		e[i] = small_end(1);
	for (int i = 0; i < 3; i++)
		lab_attach(e[i]->qp, &a, MLID);
	lab_attach(e[0]->qp, &b, MLID);
	assert_int_equal(ibv_attach_mcast(e[1]->qp, &b, MLID), ENOMEM);
	lab_detach(e[2]->qp, &a, MLID);
	lab_attach(e[1]->qp, &b, MLID);
}

/* A refused attachment leaves nothing behind. */
LAB_CASE(a_refused_attachment_is_none)
{
	struct lab_end *e = small_end(1);
	union ibv_gid a = lab_mgid(1), b = lab_mgid(2), c = lab_mgid(3);

	lab_attach(e->qp, &a, MLID);
	lab_attach(e->qp, &b, MLID);
	assert_int_equal(ibv_attach_mcast(e->qp, &c, MLID), ENOMEM);
	assert_int_equal(ibv_detach_mcast(e->qp, &c, MLID), EINVAL);
	lab_detach(e->qp, &a, MLID);
	lab_detach(e->qp, &b, MLID);
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	lab_forget(e->qp);
}

LAB_CASE(the_limits_are_of_each_hca)
{
	union ibv_gid a = lab_mgid(1), b = lab_mgid(2);

	for (int host = 1; host <= 4; host++) {
		struct lab_end *e = small_end(host);

		lab_attach(e->qp, &a, MLID);
		lab_attach(e->qp, &b, MLID);
	}
}

LAB_CASE(queues_beyond_the_settings_are_refused)
{
	struct lab_end *e = small_end(1);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
		                         .send_cq = e->send_cq,
		                         .recv_cq = e->cq,
		                         .cap = { .max_send_wr = 9 } };

	assert_null(ibv_create_qp(e->pd, &init));
	assert_int_equal(errno, EINVAL);
	init.cap = (struct ibv_qp_cap){ .max_recv_sge = 3 };
	assert_null(ibv_create_qp(e->pd, &init));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(e->context, 65, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_resize_cq(e->cq, 65), EINVAL);
}

LAB_CASE(the_port_shows_the_mtu)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(lab_open(1), 1, &attr), 0);
	assert_int_equal(attr.active_mtu, IBV_MTU_1024);
	assert_int_equal(attr.max_mtu, IBV_MTU_4096);
}

LAB_CASE(a_message_beyond_the_mtu_is_not_sent_and_completes)
{
	struct lab_end *a = small_end(1), *b = small_end(2);
	struct ibv_ah *ah = lab_ah_to(a, b);
	static char text[1024];

	lab_post(b, 2);
	memset(text, 't', sizeof(text));
	lab_send(a, ah, b->qp->qp_num, text, 1024);
	lab_expect(b, text, 1024);
	lab_send(a, ah, b->qp->qp_num, NULL, 1025);
	lab_expect_nothing(b, a);
}

LAB_CASE(a_group_message_beyond_the_mtu_is_not_sent_and_completes)
{
	struct lab_end *a = small_end(1), *b = small_end(2);
	struct lab_group *g = lab_join(2, "239.6.0.1");
	static char text[1024];

	lab_attach(b->qp, &g->mgid, g->mlid);
	lab_post(b, 2);
	memset(text, 't', sizeof(text));
	lab_send(a, lab_ah_group(a, g), LAB_MCAST, text, 1024);
	lab_expect(b, text, 1024);
	lab_send(a, lab_ah_group(a, g), LAB_MCAST, NULL, 1025);
	lab_expect_nothing(b, a);
}
