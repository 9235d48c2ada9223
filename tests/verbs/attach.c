/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_attach_mcast(3) and ibv_detach_mcast(3): what they accept, refuse and remember.
 * Which messages arrive is in multicast.c, the limits are in limits.c.
 */
#include "lab.h"

#define MLID 0xC123

LAB_CASE(a_qp_is_attached_and_detached)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	assert_int_equal(ibv_attach_mcast(e->qp, &mgid, MLID), 0);
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), 0);
}

LAB_CASE(a_unicast_gid_is_refused)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(e->context, 1, 0, &gid), 0);
	assert_int_equal(ibv_attach_mcast(e->qp, &gid, MLID), EINVAL);
	assert_int_equal(ibv_detach_mcast(e->qp, &gid, MLID), EINVAL);
}

LAB_CASE(a_lid_that_is_not_multicast_is_refused)
{
	static const uint16_t lids[] = { 0, 1, 0xBFFF, 0xFFFF };
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	for (size_t i = 0; i < LAB_ARRAY(lids); i++) {
		assert_int_equal(ibv_attach_mcast(e->qp, &mgid, lids[i]), EINVAL);
		assert_int_equal(ibv_detach_mcast(e->qp, &mgid, lids[i]), EINVAL);
	}
}

LAB_CASE(the_first_and_the_last_multicast_lid_are_accepted)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	lab_attach(e->qp, &mgid, 0xC000);
	lab_attach(e->qp, &mgid, 0xFFFE);
}

/* No other type can be made here yet, so a UD QP says that it is one. */
LAB_CASE(a_qp_that_is_not_ud_is_refused)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	e->qp->qp_type = IBV_QPT_RC;
	assert_int_equal(ibv_attach_mcast(e->qp, &mgid, MLID), EINVAL);
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), EINVAL);
	e->qp->qp_type = IBV_QPT_UD;
}

LAB_CASE(a_failure_is_a_positive_errno_and_sets_errno)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	errno = 0;
	assert_int_equal(ibv_attach_mcast(e->qp, &mgid, 1), EINVAL);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), EINVAL);
	assert_int_equal(errno, EINVAL);
}

LAB_CASE(attached_again_it_takes_one_detach)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_attach_mcast(e->qp, &mgid, MLID), 0);
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), 0);
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), EINVAL);
}

LAB_CASE(detaching_what_is_not_attached_is_refused)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), EINVAL);
}

LAB_CASE(detaching_must_name_the_mgid)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1), other = lab_mgid(2);

	lab_attach(e->qp, &mgid, MLID);
	assert_int_equal(ibv_detach_mcast(e->qp, &other, MLID), EINVAL);
	lab_detach(e->qp, &mgid, MLID);
}

LAB_CASE(detaching_must_name_the_mlid)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	lab_attach(e->qp, &mgid, MLID);
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID + 1), EINVAL);
	lab_detach(e->qp, &mgid, MLID);
}

LAB_CASE(detaching_must_name_the_qp)
{
	struct lab_end *e = lab_end(1), *other = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	lab_attach(e->qp, &mgid, MLID);
	assert_int_equal(ibv_detach_mcast(other->qp, &mgid, MLID), EINVAL);
	lab_detach(e->qp, &mgid, MLID);
}

LAB_CASE(each_mlid_of_an_mgid_is_detached_by_itself)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	lab_attach(e->qp, &mgid, MLID);
	lab_attach(e->qp, &mgid, MLID + 1);
	lab_detach(e->qp, &mgid, MLID);
	lab_detach(e->qp, &mgid, MLID + 1);
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID + 1), EINVAL);
}

LAB_CASE(detaching_touches_no_other_group)
{
	struct lab_end *e = lab_end(1);

	for (unsigned i = 0; i < 8; i++) {
		union ibv_gid mgid = lab_mgid(i);

		lab_attach(e->qp, &mgid, (uint16_t)(MLID + i));
	}
	for (unsigned i = 0; i < 8; i++) {
		union ibv_gid mgid = lab_mgid(i);

		lab_detach(e->qp, &mgid, (uint16_t)(MLID + i));
	}
}

LAB_CASE(both_work_in_every_state_of_the_qp)
{
	union ibv_gid mgid = lab_mgid(1);

	for (int s = IBV_QPS_RESET; s <= IBV_QPS_ERR; s++) {
		struct lab_end *e = lab_end(1);

		lab_bring_to(e, s);
		assert_int_equal(ibv_attach_mcast(e->qp, &mgid, MLID), 0);
		assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), 0);
	}
}

LAB_CASE(an_attachment_outlives_changes_of_state)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	lab_attach(e->qp, &mgid, MLID);
	lab_to(e->qp, IBV_QPS_ERR);
	lab_to(e->qp, IBV_QPS_RESET);
	lab_detach(e->qp, &mgid, MLID);
}

LAB_CASE(an_attached_qp_cannot_be_destroyed)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	lab_attach(e->qp, &mgid, MLID);
	assert_int_equal(ibv_destroy_qp(e->qp), EBUSY);
	lab_detach(e->qp, &mgid, MLID);
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	lab_forget(e->qp);
}

/* EBUSY left it whole. */
LAB_CASE(a_qp_that_was_not_destroyed_goes_on_receiving)
{
	struct lab_end *e = lab_end(1), *sender = lab_end(2);
	union ibv_gid mgid = lab_mgid(1);

	lab_attach(e->qp, &mgid, MLID);
	lab_post(e, 1);
	assert_int_equal(ibv_destroy_qp(e->qp), EBUSY);
	lab_expect_nothing(e, sender);
}

/* Takes all that the child holds when it is killed, and says on @ready when it has it. */
static void hold_and_wait(int ready)
{
	struct lab_end *e = lab_end(1);
	struct lab_group *g = lab_join(1, "239.9.9.9");

	if (ibv_attach_mcast(e->qp, &g->mgid, g->mlid) || write(ready, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

LAB_CASE(a_process_that_dies_is_detached_and_leaves_its_groups)
{
	uint64_t groups = lab_status("groups"), qps = lab_status("qps");
	int ready[2], status;
	char byte;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		hold_and_wait(ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	assert_int_equal(lab_status("groups"), groups + 1);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	lab_await_status("qps", qps);
	lab_await_status("groups", groups);
}
