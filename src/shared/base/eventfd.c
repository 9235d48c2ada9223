/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Eventfds shared with processes that may be hostile: see eventfd.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/eventfd.h"

#define PATIENCE_US 1000

static void on_alarm(int signal)
{
	(void)signal;
}

void base_eventfd_init(void)
{
	const struct sigaction act = { .sa_handler = on_alarm }; /* without SA_RESTART */
	sigset_t set;

	sigaction(SIGALRM, &act, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* An interval, as the first signal may come before the system call has begun. */
static void set_patience(suseconds_t us)
{
	const struct itimerval t = { { 0, us }, { 0, us } };

	setitimer(ITIMER_REAL, &t, NULL);
}

static bool is_ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) == 1 && (p.revents & events);
}

bool base_eventfd_add(int fd)
{
	const uint64_t one = 1;
	bool done;

	if (!is_ready(fd, POLLOUT))
		return false;
	set_patience(PATIENCE_US);
	done = write(fd, &one, sizeof(one)) == sizeof(one);
	set_patience(0);
	return done;
}

bool base_eventfd_drain(int fd)
{
	uint64_t n;
	struct iovec iov = { &n, sizeof(n) };
	bool done;

	if (preadv2(fd, &iov, 1, -1, RWF_NOWAIT) == sizeof(n))
		return true;
	if (errno != EOPNOTSUPP || !is_ready(fd, POLLIN)) /* kernels before 5.8 */
		return false;
	set_patience(PATIENCE_US);
	done = read(fd, &n, sizeof(n)) == sizeof(n);
	set_patience(0);
	return done;
}
