/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread that closes large files: see closer.h.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/core/closer.h"

#define LARGE_BLOCKS 2048 /* of 512 bytes: a quarter of a millisecond */

/* Only memory has seals: a look at another file could block. */
static bool is_large(int fd)
{
	struct stat st;

	return fcntl(fd, F_GET_SEALS) >= 0 && !fstat(fd, &st) && st.st_blocks > LARGE_BLOCKS;
}

static void *close_all(void *arg)
{
	struct daemon_closer *c = arg;
	int fd;

	while (read(c->queue[0], &fd, sizeof(fd)) == sizeof(fd)) {
		close(fd);
		atomic_fetch_add_explicit(&c->closed, 1, memory_order_relaxed);
	}
	return NULL;
}

/* Signals are the other thread's. Whether it runs. */
static bool start(struct daemon_closer *c)
{
	sigset_t all, before;

	if (pipe2(c->queue, O_CLOEXEC) < 0)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	c->runs = fcntl(c->queue[1], F_SETFL, O_NONBLOCK) >= 0 &&
	          !pthread_create(&c->thread, NULL, close_all, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!c->runs) {
		close(c->queue[0]);
		close(c->queue[1]);
	}
	return c->runs;
}

/* It has to be closed in any case: if the queue is full, here. */
void daemon_closer_close(struct daemon_closer *c, int fd)
{
	if (!is_large(fd) || (!c->runs && !start(c)) ||
	    write(c->queue[1], &fd, sizeof(fd)) != sizeof(fd))
		close(fd);
}

void daemon_closer_fini(struct daemon_closer *c)
{
	if (!c->runs)
		return;
	close(c->queue[1]);
	pthread_join(c->thread, NULL);
	close(c->queue[0]);
	c->runs = false;
}
