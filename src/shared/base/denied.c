/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tries the system calls that filters forbid: see denied.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/denied.h"
#include "base/util.h"

static int try_memfd(void)
{
	return memfd_create("try", MFD_CLOEXEC);
}

static int try_ftruncate(void)
{
	int fd = memfd_create("try", MFD_CLOEXEC), error;

	if (fd < 0 || !ftruncate(fd, 1))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int try_epoll(void)
{
	return epoll_create1(EPOLL_CLOEXEC);
}

static int try_signalfd(void)
{
	sigset_t none;

	sigemptyset(&none);
	return signalfd(-1, &none, SFD_CLOEXEC);
}

static int try_timerfd(void)
{
	return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
}

static int try_eventfd(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

static int try_inotify(void)
{
	return inotify_init1(IN_CLOEXEC);
}

static int try_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

static int try_flock(void)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error;

	/* a directory that others may lock, too: whether it is granted does not matter */
	if (fd < 0 || !flock(fd, LOCK_SH | LOCK_NB) || errno == EWOULDBLOCK)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int try_robust_list(void)
{
	struct robust_list_head *head;
	size_t bytes;

	/* sets what is set already */
	if (syscall(SYS_get_robust_list, 0, &head, &bytes) ||
	    syscall(SYS_set_robust_list, head, bytes))
		return -1;
	return dup(STDERR_FILENO);
}

const char *base_denied_call(int error)
{
	static const struct {
		const char *name;
		int (*try)(void); /* a descriptor, or -1 and errno */
	} calls[] = {
		{ "memfd_create", try_memfd },          { "ftruncate", try_ftruncate },
		{ "epoll_create1", try_epoll },         { "signalfd4", try_signalfd },
		{ "timerfd_create", try_timerfd },      { "eventfd2", try_eventfd },
		{ "inotify_init1", try_inotify },       { "socket", try_socket },
		{ "set_robust_list", try_robust_list }, { "flock", try_flock },
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		int fd = calls[i].try();

		if (fd >= 0)
			close(fd);
		else if (errno == error)
			return calls[i].name;
	}
	return NULL;
}
