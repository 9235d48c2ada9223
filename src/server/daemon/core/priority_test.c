/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's priority: it is had, used up, and given back.
 */
#include <harness.h>

#include "base/pause.h"
#include "base/util.h"
#include "daemon/core/priority.h"

#define PATIENCE_NS 20000000000ull

static int policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

/* Whether this process may have it: a container may deny it to root. */
static bool may_have_it(void)
{
	const struct sched_param high = { .sched_priority = 1 }, none = { 0 };

	return !sched_setscheduler(0, SCHED_RR, &high) &&
	       !sched_setscheduler(0, SCHED_OTHER, &none);
}

static void work(struct daemon_priority *p, uint64_t ns)
{
	const uint64_t began = base_now_ns();

	daemon_priority_begin(p);
	while (base_now_ns() - began < ns)
		base_relax();
	daemon_priority_note(p);
}

/* Between two looks the priority may have gone and come back: it is used up again. */
static void await_without(struct daemon_priority *p)
{
	const uint64_t began = base_now_ns();

	while (policy() == SCHED_RR) {
		if (base_now_ns() - began > PATIENCE_NS)
			fail_msg("it keeps the priority");
		work(p, DAEMON_PRIORITY_WORK_NS);
	}
}

static void await_priority(void)
{
	const uint64_t began = base_now_ns();
	struct base_pause pause = { 0 };

	while (policy() != SCHED_RR) {
		if (base_now_ns() - began > PATIENCE_NS)
			fail_msg("the priority is not given back");
		base_pause(&pause);
	}
}

/* The C library loads another one before it cancels the first thread of a process. The first
 * case, as it is loaded once. */
CASE(without_memory_it_ends)
{
	struct daemon_priority p = { 0 };
	struct rlimit before, none;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* their runtimes map memory */
	skip();
#endif
	if (!may_have_it())
		skip();
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	daemon_priority_start(&p);
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	daemon_priority_stop(&p);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
}

CASE(who_has_used_it_up_gets_it_back_later)
{
	struct daemon_priority p = { 0 };

	if (!may_have_it())
		skip();
	daemon_priority_start(&p);
	assert_int_equal(policy(), SCHED_RR);
	for (unsigned i = 0; i < 3; i++) {
		await_without(&p);
		await_priority();
	}
	daemon_priority_stop(&p);
	assert_int_equal(policy(), SCHED_OTHER);
}

CASE(many_short_turns_use_it_up)
{
	struct daemon_priority p = { 0 };
	unsigned turns = 0;

	if (!may_have_it())
		skip();
	daemon_priority_start(&p);
	for (uint64_t before = 0; p.worked_ns >= before; turns++) {
		before = p.worked_ns;
		work(&p, DAEMON_PRIORITY_WORK_NS / 50);
	}
	assert_in_range(turns, 2, 50);
	daemon_priority_stop(&p);
}

/* However short it took: what programs can do themselves needs no priority. */
CASE(work_for_programs_uses_it_up)
{
	struct daemon_priority p = { 0 };

	if (!may_have_it())
		skip();
	daemon_priority_start(&p);
	daemon_priority_spend(&p, DAEMON_PRIORITY_WORK_NS - 1000);
	assert_in_range(p.worked_ns, DAEMON_PRIORITY_WORK_NS - 1000, DAEMON_PRIORITY_WORK_NS);
	work(&p, 1000);
	assert_int_equal(p.worked_ns, 0); /* it begins anew */
	await_priority();
	daemon_priority_stop(&p);
}

CASE(its_children_do_not_have_it)
{
	struct daemon_priority p = { 0 };
	int status;
	pid_t pid;

	if (!may_have_it())
		skip();
	daemon_priority_start(&p);
	pid = fork();
	if (!pid)
		_exit(policy() == SCHED_OTHER ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	daemon_priority_stop(&p);
}

/* In a child: the preparation cannot be taken back without privileges. */
static void expect_none(int (*prepare)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct daemon_priority p = { 0 };

		if (prepare())
			_exit(1);
		daemon_priority_start(&p);
		work(&p, 1000);
		_exit(policy() == SCHED_OTHER ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int become_nice(void)
{
	return setpriority(PRIO_PROCESS, 0, 19);
}

static int limit_real_time(void)
{
	return setrlimit(RLIMIT_RTTIME, &(struct rlimit){ 200000, 200000 });
}

CASE(who_is_nice_or_would_be_ended_for_it_has_none)
{
	expect_none(become_nice);
	expect_none(limit_real_time);
}

int main(void)
{
	setpriority(PRIO_PROCESS, 0,
	            0); /* the tests may run as nice ones; if that is denied, so is all */
	return harness_run(NULL, NULL);
}
