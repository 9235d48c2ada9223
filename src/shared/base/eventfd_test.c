/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Eventfds that somebody else fills and drains all the time: no call blocks.
 */
#include <harness.h>
#include <sys/eventfd.h>

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

CASE(what_is_added_is_drained)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	assert_false(base_eventfd_drain(fd));
	assert_true(base_eventfd_add(fd));
	assert_true(base_eventfd_drain(fd));
	assert_false(base_eventfd_drain(fd));
	close(fd);
}

CASE(a_full_one_takes_nothing)
{
	const uint64_t most = UINT64_MAX - 1;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);

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

CASE(whoever_fills_it_meanwhile_blocks_nobody)
{
	const uint64_t most = UINT64_MAX - 2;
	struct lab l = { .fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE) };
	struct base_pause pause = { 0 };
	sigset_t alarm, old;
	pthread_t thread;

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

CASE(whoever_drains_it_meanwhile_blocks_nobody)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	set_nonblocking(fd, false); /* as a process may set it on the daemon's nonblocking one */
	for (int i = 0; i < 1000; i++)
		assert_false(base_eventfd_drain(fd));
	close(fd);
}

int main(void)
{
	base_eventfd_init();
	return harness_run(NULL, NULL);
}
