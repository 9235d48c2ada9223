/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loops that wait: they sleep, and their callers do not notice.
 */
#include <harness.h>

#include "base/lock.h"
#include "base/pause.h"
#include "base/util.h"

#define WAIT_NS 200000000u

/* Processor time of the calling thread. */
static uint64_t used_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void expect_slept(uint64_t began, uint64_t used)
{
	const uint64_t took = base_now_ns() - began;

	used = used_ns() - used;
	if (used > took / 8)
		fail_msg("a wait of %lu us took %lu us of a processor", (unsigned long)took / 1000,
		         (unsigned long)used / 1000);
}

CASE(the_first_looks_follow_each_other)
{
	struct base_pause p = { 0 };

	for (unsigned i = 1; i < BASE_PAUSE_LOOKS; i++)
		assert_false(base_pause(&p));
	assert_true(base_pause(&p));
	assert_int_equal(p.looks, BASE_PAUSE_LOOKS);
	assert_false(base_pause(&p));
	base_pause_sleep(&p);
	assert_int_equal(p.looks, 2 * BASE_PAUSE_LOOKS);
}

CASE(each_sleep_is_twice_as_long_up_to_a_millisecond)
{
	struct base_pause p = { 0 };
	uint64_t least = BASE_PAUSE_MIN_NS;

	for (unsigned i = 0; i < 20; i++) {
		const uint64_t began = base_now_ns();

		base_pause_sleep(&p);
		assert_true(base_now_ns() - began >= least);
		least = 2 * least < BASE_PAUSE_MOST_NS ? 2 * least : BASE_PAUSE_MOST_NS;
	}
}

CASE(a_long_wait_leaves_the_processor_to_others)
{
	const uint64_t began = base_now_ns(), used = used_ns();
	struct base_pause p = { 0 };

	while (base_now_ns() - began < WAIT_NS)
		base_pause(&p);
	expect_slept(began, used);
}

struct holder {
	struct base_lock lock;
	pthread_barrier_t met;
};

static void *hold(void *arg)
{
	const struct timespec rest = { .tv_nsec = WAIT_NS };
	struct holder *h = arg;

	base_lock(&h->lock);
	pthread_barrier_wait(&h->met);
	nanosleep(&rest, NULL);
	base_unlock(&h->lock);
	return NULL;
}

CASE(a_wait_for_a_lock_leaves_the_processor_to_its_holder)
{
	struct holder h = { 0 };
	uint64_t began, used;
	pthread_t thread;

	assert_int_equal(pthread_barrier_init(&h.met, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, hold, &h), 0);
	pthread_barrier_wait(&h.met);
	began = base_now_ns();
	used = used_ns();
	base_lock(&h.lock);
	expect_slept(began, used);
	base_unlock(&h.lock);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&h.met);
}

static volatile sig_atomic_t n_signals;

static void count_signal(int sig)
{
	(void)sig;
	n_signals++;
}

CASE(a_signal_changes_no_errno)
{
	const struct sigaction action = { .sa_handler = count_signal };
	const struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { 0 };
	const uint64_t began = base_now_ns();
	struct base_pause p = { .looks = 10 * BASE_PAUSE_LOOKS };

	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (n_signals < 20 && base_now_ns() - began < 20000000000u) {
		errno = EDOM;
		base_pause_sleep(&p);
		assert_int_equal(errno, EDOM);
	}
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	if (n_signals < 20)
		fail_msg("only %d signals came", (int)n_signals);
}

static void *wait_though_cancelled(void *arg)
{
	struct base_pause p = { 0 };

	pthread_cancel(pthread_self());
	base_pause_sleep(&p);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return arg;
}

CASE(a_sleep_is_no_cancellation_point)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, wait_though_cancelled, &state), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &state);
}
