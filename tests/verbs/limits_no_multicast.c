/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HCAs without multicast.
 *
 * umbel: --set max_mcast_grp=0
 */
#include "lab.h"

LAB_CASE(the_device_shows_that_it_has_no_groups)
{
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(lab_open(1), &attr), 0);
	assert_int_equal(attr.max_mcast_grp, 0);
	assert_int_equal(attr.max_total_mcast_qp_attach, 0);
}

LAB_CASE(attaching_and_detaching_say_enosys)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	assert_int_equal(ibv_attach_mcast(e->qp, &mgid, 0xC001), ENOSYS);
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, 0xC001), ENOSYS);
}

LAB_CASE(unicast_works)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);

	lab_post(b, 1);
	lab_expect_nothing(b, a);
}
