/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of loop.c: the order of turns, and what stops.
 */
#include <harness.h>

#include "base/util.h"
#include "daemon/core/loop.h"

#define CROWD 300 /* more than the loop takes from the kernel at once */

struct party {
	struct daemon_source source;
	unsigned turns;
	int mine, other; /* ends of a pair of sockets */
	struct daemon_source *stops;
	bool leaves; /* at its first turn */
};

static void on_turn(struct daemon_source *s, uint32_t events)
{
	struct party *p = container_of(s, struct party, source);

	(void)events;
	p->turns++;
	if (p->stops)
		daemon_source_stop(p->stops);
	if (p->leaves)
		daemon_source_stop(s);
}

static void come(struct daemon_loop *loop, struct party *p, uint32_t patient)
{
	int pair[2];

	memset(p, 0, sizeof(*p));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	p->mine = pair[0];
	p->other = pair[1];
	p->source.ready = on_turn;
	p->source.patient = patient;
	assert_int_equal(daemon_source_watch(loop, &p->source, p->mine, EPOLLIN), 0);
}

static void go(struct party *p)
{
	daemon_source_stop(&p->source);
	close(p->mine);
	if (p->other >= 0)
		close(p->other);
}

static void hang_up(struct party *p)
{
	close(p->other);
	p->other = -1;
}

static void say(struct party *p)
{
	assert_int_equal(send(p->other, "x", 1, 0), 1);
}

static void take_turns(struct daemon_loop *loop, unsigned n)
{
	while (n--)
		assert_int_equal(daemon_loop_turn(loop), 0);
}

CASE(one_who_asks_is_served_ahead_of_a_crowd_that_has_ended)
{
	static struct party crowd[CROWD], one;
	struct daemon_loop loop = { 0 };
	unsigned others = 0;

	assert_int_equal(daemon_loop_init(&loop), 0);
	for (unsigned i = 0; i < CROWD; i++) {
		come(&loop, &crowd[i], EPOLLHUP);
		crowd[i].leaves = true;
		hang_up(&crowd[i]);
	}
	come(&loop, &one, EPOLLHUP);
	say(&one);
	take_turns(&loop, 1);
	assert_int_equal(one.turns, 1);
	/* it goes on asking: the crowd has one turn in eight */
	take_turns(&loop, 79);
	assert_int_equal(one.turns, 70);
	for (unsigned i = 0; i < CROWD; i++)
		others += crowd[i].turns;
	assert_int_equal(others, 10);
	/* and all of them when nobody asks */
	one.leaves = true;
	take_turns(&loop, 1 + CROWD - 10);
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(crowd[i].turns, 1);
	for (unsigned i = 0; i < CROWD; i++)
		go(&crowd[i]);
	go(&one);
	daemon_loop_fini(&loop);
}

CASE(all_who_ask_have_their_turn_in_a_round)
{
	static struct party crowd[CROWD];
	struct daemon_loop loop = { 0 };

	assert_int_equal(daemon_loop_init(&loop), 0);
	for (unsigned i = 0; i < CROWD; i++) {
		come(&loop, &crowd[i], EPOLLHUP);
		say(&crowd[i]); /* it is never read */
	}
	take_turns(&loop, 5 * CROWD);
	for (unsigned i = 0; i < CROWD; i++)
		assert_in_range(crowd[i].turns, 4, 6);
	for (unsigned i = 0; i < CROWD; i++)
		go(&crowd[i]);
	daemon_loop_fini(&loop);
}

CASE(a_patient_one_has_turns_until_it_is_stopped)
{
	struct daemon_loop loop = { 0 };
	struct party p;

	assert_int_equal(daemon_loop_init(&loop), 0);
	come(&loop, &p, EPOLLHUP);
	hang_up(&p);
	take_turns(&loop, 3);
	assert_int_equal(p.turns, 3);
	daemon_source_stop(&p.source);
	/* watched anew, it is told of anew */
	assert_int_equal(daemon_source_watch(&loop, &p.source, p.mine, EPOLLIN), 0);
	take_turns(&loop, 1);
	assert_int_equal(p.turns, 4);
	go(&p);
	daemon_loop_fini(&loop);
}

CASE(what_is_stopped_while_it_waits_has_no_turn)
{
	static struct party p[2];
	struct daemon_loop loop = { 0 };

	for (unsigned patient = 0; patient < 2; patient++) {
		memset(&loop, 0, sizeof(loop));
		assert_int_equal(daemon_loop_init(&loop), 0);
		for (unsigned i = 0; i < 2; i++)
			come(&loop, &p[i], patient ? EPOLLHUP : 0);
		for (unsigned i = 0; i < 2; i++) {
			p[i].stops = &p[!i].source;
			hang_up(&p[i]);
		}
		take_turns(&loop, 4);
		assert_int_equal(p[0].turns + p[1].turns, 4);
		assert_true(!p[0].turns || !p[1].turns);
		for (unsigned i = 0; i < 2; i++)
			go(&p[i]);
		daemon_loop_fini(&loop);
	}
}

struct clock_test {
	struct base_timer timer;
	unsigned times;
};

static void on_time(struct base_timer *t)
{
	container_of(t, struct clock_test, timer)->times++;
}

CASE(timers_run_at_their_time_and_at_once)
{
	struct daemon_loop loop = { 0 };
	struct clock_test t = { 0 };
	uint64_t from;

	assert_int_equal(daemon_loop_init(&loop), 0);
	base_timer_set_in(&loop.timers, &t.timer, 0, on_time);
	take_turns(&loop, 1);
	assert_int_equal(t.times, 1);
	from = base_now_ns();
	base_timer_set_in(&loop.timers, &t.timer, 2 * DAEMON_NS_PER_MS, on_time);
	while (t.times < 2) /* it sleeps */
		take_turns(&loop, 1);
	assert_true(base_now_ns() - from >= 2 * DAEMON_NS_PER_MS);
	daemon_loop_fini(&loop);
}

static struct daemon_loop *ends;

static bool is_hung_up(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
}

/* Ends of connections, and other files that have the number of a closed end. */
CASE(all_ends_are_hung_up)
{
	struct daemon_loop loop = { 0 };
	int pair[3][2];

	assert_int_equal(daemon_loop_init(&loop), 0);
	daemon_loop_hang_up(&loop); /* there are none */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair[i]), 0);
		daemon_loop_note_end(&loop, pair[i][0]);
	}
	daemon_loop_close_end(&loop, pair[0][0]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair[2]), 0);
	assert_int_equal(pair[2][0], pair[0][0]);
	daemon_loop_hang_up(&loop);
	assert_true(is_hung_up(pair[1][1]));
	assert_false(is_hung_up(pair[2][1]));
	for (int i = 0; i < 3; i++)
		close(pair[i][1]);
	close(pair[1][0]);
	close(pair[2][0]);
	daemon_loop_fini(&loop);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void on_time_to_end(struct base_timer *t)
{
	(void)t;
	daemon_loop_end(ends, -5);
}

CASE(it_runs_until_it_is_ended)
{
	struct daemon_loop loop = { 0 };
	struct base_timer t = { 0 };

	assert_int_equal(daemon_loop_init(&loop), 0);
	ends = &loop;
	base_timer_set_in(&loop.timers, &t, 0, on_time_to_end);
	assert_int_equal(daemon_loop_run(&loop, nothing, NULL), -5);
	daemon_loop_fini(&loop);
}

/* By which policy the loop runs. */
static void note_policy(void *policy)
{
	*(int *)policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

/* priority.h: if it may, as root may where no container denies that. */
CASE(it_runs_with_priority)
{
	const struct sched_param high = { .sched_priority = 1 }, none = { 0 };
	struct daemon_loop loop = { 0 };
	struct base_timer t = { 0 };
	int policy = -1;

	if (getpriority(PRIO_PROCESS, 0) > 0 || sched_setscheduler(0, SCHED_RR, &high))
		skip();
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	assert_int_equal(daemon_loop_init(&loop), 0);
	ends = &loop;
	base_timer_set_in(&loop.timers, &t, 0, on_time_to_end);
	assert_int_equal(daemon_loop_run(&loop, note_policy, &policy), -5);
	assert_int_equal(policy, SCHED_RR);
	assert_int_equal(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
	daemon_loop_fini(&loop);
}
