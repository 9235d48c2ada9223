/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Eventfds that somebody else fills and drains all the time: no call blocks.
 */
#define _GNU_SOURCE /* pthread_tryjoin_np() */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/eventfd.h"
#include "base/pause.h"

#define ROUNDS 20000

struct lab {
	int fd;
	atomic_bool stop;
};

static void set_nonblocking(int fd, bool on)
{
	assert_int_equal(fcntl(fd, F_SETFL, on ? O_NONBLOCK : 0), 0);
}

static void what_is_added_is_drained(void **state)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	(void)state;
	assert_false(base_eventfd_drain(fd));
	assert_true(base_eventfd_add(fd));
	assert_true(base_eventfd_drain(fd));
	assert_false(base_eventfd_drain(fd));
	close(fd);
}

static void a_full_one_takes_nothing(void **state)
{
	const uint64_t most = UINT64_MAX - 1;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);

	(void)state;
	assert_int_equal(write(fd, &most, sizeof(most)), sizeof(most));
	assert_false(base_eventfd_add(fd));
	assert_true(base_eventfd_drain(fd));
	assert_true(base_eventfd_add(fd));
	close(fd);
}

/* Fills the eventfd whenever there is room for one, and drains it again. */
static void *fill_and_drain(void *arg)
{
	struct lab *l = arg;
	const uint64_t one = 1;
	struct pollfd full = { .fd = l->fd, .events = POLLOUT };
	uint64_t v;

	while (!l->stop) {
		if (poll(&full, 1, 0) == 1)
			(void)!write(l->fd, &one, sizeof(one));
		else
			(void)!read(l->fd, &v, sizeof(v));
	}
	return NULL;
}

static void whoever_fills_it_meanwhile_blocks_nobody(void **state)
{
	const uint64_t most = UINT64_MAX - 2;
	struct lab l = { .fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE) };
	struct base_pause pause = { 0 };
	sigset_t alarm, old;
	pthread_t thread;

	(void)state;
	assert_int_equal(write(l.fd, &most, sizeof(most)), sizeof(most));
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm,
	                &old); /* for the other thread: it is another process's */
	assert_int_equal(pthread_create(&thread, NULL, fill_and_drain, &l), 0);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		if (!base_eventfd_add(l.fd))
			base_eventfd_drain(l.fd); /* lets the other go on */
	}
	l.stop = true;
	set_nonblocking(l.fd, true);
	while (pthread_tryjoin_np(thread, NULL)) { /* it may be waiting for room, or for a value */
		base_eventfd_drain(l.fd);
		base_pause_sleep(&pause);
		base_eventfd_add(l.fd);
		base_pause_sleep(&pause);
	}
	close(l.fd);
}

static void whoever_drains_it_meanwhile_blocks_nobody(void **state)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	(void)state;
	set_nonblocking(fd, false); /* as a process may set it on the daemon's nonblocking one */
	for (int i = 0; i < 1000; i++)
		assert_false(base_eventfd_drain(fd));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_added_is_drained),
		cmocka_unit_test(a_full_one_takes_nothing),
		cmocka_unit_test(whoever_fills_it_meanwhile_blocks_nobody),
		cmocka_unit_test(whoever_drains_it_meanwhile_blocks_nobody),
	};

	base_eventfd_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
