/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of share.c: the descriptors that processes and users may have, and the share of each
 * process.
 */
#include <harness.h>

#include "daemon/clients/share.h"

#define MOST  8192
#define OWN   100 /* the daemon's own */
#define OWNER 1000
#define NAMED 1001

struct lab {
	struct daemon_closer closer;
	struct daemon_shares all;
	struct rlimit before;
};

static struct lab lab;

static int setup(void **state)
{
	struct rlimit few;

	(void)state;
	if (getrlimit(RLIMIT_NOFILE, &lab.before))
		return -1;
	few = (struct rlimit){ MOST, lab.before.rlim_max };
	daemon_shares_init(&lab.all, &lab.closer);
	lab.all.n_fds = OWN;
	return setrlimit(RLIMIT_NOFILE, &few);
}

static int teardown(void **state)
{
	(void)state;
	base_hash_fini(&lab.all.all);
	return setrlimit(RLIMIT_NOFILE, &lab.before);
}

static struct daemon_member join(pid_t pid, uid_t uid)
{
	struct daemon_member m;

	assert_int_equal(daemon_shares_join(&lab.all, &m, pid, uid, uid == OWNER), 0);
	return m;
}

static void leave(struct daemon_member *m)
{
	daemon_shares_leave(&lab.all, m);
}

/* As many as it may have. */
static void fill(struct daemon_member *m)
{
	while (!daemon_shares_full(&lab.all, m))
		daemon_shares_count(&lab.all, m, m->n_fds + 1);
}

CASE_WITH(a_process_leaves_a_quarter, setup, teardown)
{
	struct daemon_member one = join(1, OWNER), two = join(2, OWNER);

	fill(&one);
	assert_int_equal(lab.all.n_fds, MOST - MOST / 4);
	fill(&two);
	assert_int_equal(two.n_fds, DAEMON_FEW_FDS);
	leave(&one);
	assert_null(daemon_shares_full(&lab.all, &two));
	leave(&two);
	assert_int_equal(lab.all.n_fds, OWN);
	assert_int_equal(lab.all.all.n, 0);
}

CASE_WITH(connections_of_a_process_have_one_share, setup, teardown)
{
	struct daemon_member first = join(1, OWNER), second = join(1, OWNER);

	assert_ptr_equal(first.process, second.process);
	fill(&first);
	assert_ptr_equal(daemon_shares_full(&lab.all, &second), first.process);
	leave(&first);
	assert_null(daemon_shares_full(&lab.all, &second));
	leave(&second);
}

/* Each with few. */
CASE_WITH(processes_of_a_named_user_leave_an_eighth, setup, teardown)
{
	struct daemon_member m[2 * MOST / DAEMON_FEW_FDS], other = join(9999, NAMED + 1),
	                                                   owners = join(9998, OWNER);

	for (unsigned i = 0; i < 2 * MOST / DAEMON_FEW_FDS; i++) {
		m[i] = join((pid_t)i + 1, NAMED);
		while (m[i].n_fds < DAEMON_FEW_FDS - 1 && !daemon_shares_full(&lab.all, &m[i]))
			daemon_shares_count(&lab.all, &m[i], m[i].n_fds + 1);
	}
	assert_int_equal(lab.all.n_fds, MOST - MOST / 8);
	assert_null(daemon_shares_full(&lab.all, &other));
	assert_null(daemon_shares_full(&lab.all, &owners));
	for (unsigned i = 0; i < 2 * MOST / DAEMON_FEW_FDS; i++)
		leave(&m[i]);
	leave(&other);
	leave(&owners);
	assert_int_equal(lab.all.n_fds, OWN);
	assert_int_equal(lab.all.all.n, 0);
}

CASE_WITH(processes_without_a_number_have_their_users_share, setup, teardown)
{
	struct daemon_member one = join(0, OWNER), two = join(0, OWNER), known = join(1, OWNER);

	assert_null(one.process);
	assert_ptr_equal(one.user, two.user);
	assert_null(known.user);
	fill(&one);
	assert_int_equal(lab.all.n_fds, MOST - MOST / 8);
	assert_non_null(daemon_shares_full(&lab.all, &two));
	assert_null(daemon_shares_full(&lab.all, &known));
	leave(&one);
	leave(&two);
	leave(&known);
}

CASE_WITH(a_number_of_a_user_is_none_of_a_process, setup, teardown)
{
	struct daemon_member process = join(NAMED, OWNER), user = join(0, NAMED);

	assert_ptr_not_equal(process.process, user.user);
	leave(&process);
	leave(&user);
}

CASE_WITH(the_daemon_itself_has_no_share, setup, teardown)
{
	struct daemon_member self = { 0 };

	daemon_shares_count(&lab.all, &self, MOST);
	assert_int_equal(lab.all.n_fds, OWN + MOST);
	assert_null(daemon_shares_full(&lab.all, &self));
	leave(&self);
}

CASE_WITH(of_few_descriptors_one_has_fewer, setup, teardown)
{
	const struct rlimit few = { 160, lab.before.rlim_max };
	struct daemon_member one = join(1, OWNER), two = join(2, OWNER);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(daemon_shares_few(), 10);
	fill(&one);
	assert_int_equal(lab.all.n_fds, 120);
	fill(&two);
	assert_int_equal(two.n_fds, 10);
	leave(&one);
	leave(&two);
}
