/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_attach_mcast(3) and ibv_detach_mcast(3): what they accept, refuse and remember.
 * Which messages arrive is in multicast.c, the limits are in limits.c.
 */
#include "lab.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define MLID 0xC123

static void a_qp_is_attached_and_detached(void **state)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
	assert_int_equal(ibv_attach_mcast(e->qp, &mgid, MLID), 0);
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), 0);
}

static void a_unicast_gid_is_refused(void **state)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid gid;

	(void)state;
	assert_int_equal(ibv_query_gid(e->context, 1, 0, &gid), 0);
	assert_int_equal(ibv_attach_mcast(e->qp, &gid, MLID), EINVAL);
	assert_int_equal(ibv_detach_mcast(e->qp, &gid, MLID), EINVAL);
}

static void a_lid_that_is_not_multicast_is_refused(void **state)
{
	static const uint16_t lids[] = { 0, 1, 0xBFFF, 0xFFFF };
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
	for (size_t i = 0; i < LAB_ARRAY(lids); i++) {
		assert_int_equal(ibv_attach_mcast(e->qp, &mgid, lids[i]), EINVAL);
		assert_int_equal(ibv_detach_mcast(e->qp, &mgid, lids[i]), EINVAL);
	}
}

static void the_first_and_the_last_multicast_lid_are_accepted(void **state)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
	lab_attach(e->qp, &mgid, 0xC000);
	lab_attach(e->qp, &mgid, 0xFFFE);
}

/* No other type can be made here yet, so a UD QP says that it is one. */
static void a_qp_that_is_not_ud_is_refused(void **state)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
	e->qp->qp_type = IBV_QPT_RC;
	assert_int_equal(ibv_attach_mcast(e->qp, &mgid, MLID), EINVAL);
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), EINVAL);
	e->qp->qp_type = IBV_QPT_UD;
}

static void a_failure_is_a_positive_errno_and_sets_errno(void **state)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
	errno = 0;
	assert_int_equal(ibv_attach_mcast(e->qp, &mgid, 1), EINVAL);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), EINVAL);
	assert_int_equal(errno, EINVAL);
}

static void attached_again_it_takes_one_detach(void **state)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_attach_mcast(e->qp, &mgid, MLID), 0);
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), 0);
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), EINVAL);
}

static void detaching_what_is_not_attached_is_refused(void **state)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), EINVAL);
}

static void detaching_must_name_the_mgid(void **state)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1), other = lab_mgid(2);

	(void)state;
	lab_attach(e->qp, &mgid, MLID);
	assert_int_equal(ibv_detach_mcast(e->qp, &other, MLID), EINVAL);
	lab_detach(e->qp, &mgid, MLID);
}

static void detaching_must_name_the_mlid(void **state)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
	lab_attach(e->qp, &mgid, MLID);
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID + 1), EINVAL);
	lab_detach(e->qp, &mgid, MLID);
}

static void detaching_must_name_the_qp(void **state)
{
	struct lab_end *e = lab_end(1), *other = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
	lab_attach(e->qp, &mgid, MLID);
	assert_int_equal(ibv_detach_mcast(other->qp, &mgid, MLID), EINVAL);
	lab_detach(e->qp, &mgid, MLID);
}

static void each_mlid_of_an_mgid_is_detached_by_itself(void **state)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
	lab_attach(e->qp, &mgid, MLID);
	lab_attach(e->qp, &mgid, MLID + 1);
	lab_detach(e->qp, &mgid, MLID);
	lab_detach(e->qp, &mgid, MLID + 1);
	assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID + 1), EINVAL);
}

static void detaching_touches_no_other_group(void **state)
{
	struct lab_end *e = lab_end(1);

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		union ibv_gid mgid = lab_mgid(i);

		lab_attach(e->qp, &mgid, (uint16_t)(MLID + i));
	}
	for (unsigned i = 0; i < 8; i++) {
		union ibv_gid mgid = lab_mgid(i);

		lab_detach(e->qp, &mgid, (uint16_t)(MLID + i));
	}
}

static void both_work_in_every_state_of_the_qp(void **state)
{
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
	for (int s = IBV_QPS_RESET; s <= IBV_QPS_ERR; s++) {
		struct lab_end *e = lab_end(1);

		lab_bring_to(e, s);
		assert_int_equal(ibv_attach_mcast(e->qp, &mgid, MLID), 0);
		assert_int_equal(ibv_detach_mcast(e->qp, &mgid, MLID), 0);
	}
}

static void an_attachment_outlives_changes_of_state(void **state)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
	lab_attach(e->qp, &mgid, MLID);
	lab_to(e->qp, IBV_QPS_ERR);
	lab_to(e->qp, IBV_QPS_RESET);
	lab_detach(e->qp, &mgid, MLID);
}

static void an_attached_qp_cannot_be_destroyed(void **state)
{
	struct lab_end *e = lab_end(1);
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
	lab_attach(e->qp, &mgid, MLID);
	assert_int_equal(ibv_destroy_qp(e->qp), EBUSY);
	lab_detach(e->qp, &mgid, MLID);
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	lab_forget(e->qp);
}

/* EBUSY left it whole. */
static void a_qp_that_was_not_destroyed_goes_on_receiving(void **state)
{
	struct lab_end *e = lab_end(1), *sender = lab_end(2);
	union ibv_gid mgid = lab_mgid(1);

	(void)state;
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

static void a_process_that_dies_is_detached_and_leaves_its_groups(void **state)
{
	uint64_t groups = lab_status("groups"), qps = lab_status("qps");
	int ready[2], status;
	char byte;
	pid_t child;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(a_process_that_dies_is_detached_and_leaves_its_groups),
		LAB_TEST(a_qp_is_attached_and_detached),
		LAB_TEST(a_unicast_gid_is_refused),
		LAB_TEST(a_lid_that_is_not_multicast_is_refused),
		LAB_TEST(the_first_and_the_last_multicast_lid_are_accepted),
		LAB_TEST(a_qp_that_is_not_ud_is_refused),
		LAB_TEST(a_failure_is_a_positive_errno_and_sets_errno),
		LAB_TEST(attached_again_it_takes_one_detach),
		LAB_TEST(detaching_what_is_not_attached_is_refused),
		LAB_TEST(detaching_must_name_the_mgid),
		LAB_TEST(detaching_must_name_the_mlid),
		LAB_TEST(detaching_must_name_the_qp),
		LAB_TEST(each_mlid_of_an_mgid_is_detached_by_itself),
		LAB_TEST(detaching_touches_no_other_group),
		LAB_TEST(both_work_in_every_state_of_the_qp),
		LAB_TEST(an_attachment_outlives_changes_of_state),
		LAB_TEST(an_attached_qp_cannot_be_destroyed),
		LAB_TEST(a_qp_that_was_not_destroyed_goes_on_receiving),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
