/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The C library's functions by which descriptors come to mean something else: closing, duplicating,
 * and fork(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "sockets/relay.h"
#include "sockets/wrap.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif

/* ---- closing ---- */

int close(int fd)
{
	sockets_close(fd);
	sockets_epoll_close(fd);
	return sockets_real()->close(fd);
}

int close_range(unsigned first, unsigned last, int flags)
{
	if (!sockets_real()->close_range) {
		errno = ENOSYS;
		return -1;
	}
	if (first <= last && !(flags & CLOSE_RANGE_CLOEXEC))
		sockets_close_range(first, last);
	return sockets_real()->close_range(first, last, flags);
}

void closefrom(int first)
{
	sockets_close_range(first < 0 ? 0 : (unsigned)first, ~0u);
	if (sockets_real()->closefrom)
		sockets_real()->closefrom(first);
}

/* ---- duplicating ---- */

static int duplicated(int from, int to)
{
	if (to >= 0) {
		sockets_also(from, to);
		sockets_epoll_also(from, to);
	}
	return to;
}

int dup(int fd)
{
	return duplicated(fd, sockets_real()->dup(fd));
}

/* Closes the socket or set that @to was, if the call can be made. */
static void replace(int from, int to)
{
	if (sockets_real()->fcntl(from, F_GETFD) < 0)
		return;
	sockets_close(to);
	sockets_epoll_close(to);
}

int dup2(int fd, int to)
{
	if (fd == to)
		return sockets_real()->dup2(fd, to);
	replace(fd, to);
	return duplicated(fd, sockets_real()->dup2(fd, to));
}

int dup3(int fd, int to, int flags)
{
	if (fd == to || flags & ~O_CLOEXEC)
		return sockets_real()->dup3(fd, to, flags);
	replace(fd, to);
	return duplicated(fd, sockets_real()->dup3(fd, to, flags));
}

/* ---- fork ---- */

/* Nobody is at our tables while the process is copied. */
static void begin_fork(void)
{
	sockets_each(sockets_leave_listener);
	sockets_relay_prepare();
	sockets_relay_lock();
	sockets_lock();
	sockets_table_lock();
}

static void end_fork(void)
{
	sockets_table_unlock();
	sockets_unlock();
	sockets_relay_unlock();
	sockets_relay_start();
}

/* In the child, whichever function of the C library made it. */
static void forked(void)
{
	sockets_relay_forked();
	sockets_epoll_forked();
	sockets_table_forked();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
	sockets_table_begin();
}

pid_t fork(void)
{
	pid_t pid;

	begin_fork();
	pid = sockets_real()->fork();
	if (pid)
		end_fork();
	return pid;
}

int daemon(int keep_dir, int keep_output)
{
	int ret;

	begin_fork();
	ret = sockets_real()->daemon(keep_dir, keep_output);
	if (ret)
		end_fork(); /* otherwise this is the child */
	return ret;
}
