/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The threads that close what may take long: see closer.h.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/signals.h"
#include "daemon/core/closer.h"

#define LARGE_BLOCKS 2048 /* of 512 bytes: a quarter of a millisecond */
#define INTERRUPT    SIGURG
#define INTERRUPT_NS 1000000

#ifndef sigev_notify_thread_id /* an older C library */
#define sigev_notify_thread_id _sigev_un._tid
#endif

struct job {
	STAILQ_ENTRY(job) entry;
	int fd;
};

/* Its threads take one descriptor after the other. */
struct closer_lane {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	STAILQ_HEAD(, job) waiting;
	unsigned n_waiting, most, n, idle; /* threads */
	bool interrupts;                   /* its threads, while they close */
	bool ended, abandoned;             /* abandoned: its last thread frees it */
};

/* ---- a lane ---- */

/* Of nobody any more. */
static void free_lane(struct closer_lane *l)
{
	pthread_mutex_destroy(&l->mutex);
	pthread_cond_destroy(&l->changed);
	free(l);
}

static struct job *take(struct closer_lane *l)
{
	struct job *job;

	while (STAILQ_EMPTY(&l->waiting) && !l->ended) {
		l->idle++;
		pthread_cond_wait(&l->changed, &l->mutex);
		l->idle--;
	}
	job = STAILQ_FIRST(&l->waiting);
	if (job) {
		STAILQ_REMOVE_HEAD(&l->waiting, entry);
		l->n_waiting--;
	}
	return job;
}

static void do_nothing(int signal)
{
	(void)signal;
}

/* A timer that interrupts this thread; false: there can be none. The kernel's own calls, as the
 * functions are in a library of their own in older C libraries. */
static bool make_timer(int *timer)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = INTERRUPT };
	const struct sigaction action = { .sa_handler = do_nothing };
	sigset_t set;

	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	sigaction(INTERRUPT, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, INTERRUPT);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return !syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, timer);
}

/* A signal ends the wait of a socket that lingers; the kernel goes on with that without us. Another
 * follows, as the first may come before the wait. */
static void close_interrupted(int fd, int timer)
{
	const struct timespec ms = { .tv_nsec = INTERRUPT_NS };
	const struct itimerspec on = { ms, ms }, off = { { 0 }, { 0 } };

	syscall(SYS_timer_settime, timer, 0, &on, NULL);
	close(fd);
	syscall(SYS_timer_settime, timer, 0, &off, NULL);
}

static void *close_all(void *arg)
{
	struct closer_lane *l = arg;
	int timer = 0;
	const bool interrupts = l->interrupts && make_timer(&timer);
	struct job *job;
	bool is_last;

	pthread_mutex_lock(&l->mutex);
	while ((job = take(l)) != NULL) {
		pthread_mutex_unlock(&l->mutex);
		if (interrupts)
			close_interrupted(job->fd, timer);
		else
			close(job->fd);
		free(job);
		pthread_mutex_lock(&l->mutex);
	}
	l->n--;
	pthread_cond_broadcast(&l->changed);
	is_last = l->abandoned && !l->n;
	pthread_mutex_unlock(&l->mutex);
	if (interrupts)
		syscall(SYS_timer_delete, timer);
	if (is_last)
		free_lane(l);
	return NULL;
}

static void start_thread(struct closer_lane *l)
{
	pthread_t thread;

	if (base_thread_start(&thread, 0, close_all, l))
		return;
	pthread_detach(thread);
	l->n++;
}

static struct closer_lane *new_lane(unsigned most)
{
	struct closer_lane *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	pthread_mutex_init(&l->mutex, NULL);
	pthread_cond_init(&l->changed, NULL);
	STAILQ_INIT(&l->waiting);
	l->most = most;
	return l;
}

/* It has to be closed in any case: without memory, and where there can be no thread, here. */
static void leave_to(struct closer_lane *l, int fd)
{
	struct job *job = l ? malloc(sizeof(*job)) : NULL;

	if (!job) {
		close(fd);
		return;
	}
	job->fd = fd;
	pthread_mutex_lock(&l->mutex);
	if (l->n_waiting >= l->idle && l->n < l->most)
		start_thread(l);
	if (l->n) {
		STAILQ_INSERT_TAIL(&l->waiting, job, entry);
		l->n_waiting++;
		job = NULL;
		pthread_cond_signal(&l->changed);
	}
	pthread_mutex_unlock(&l->mutex);
	if (job)
		close(fd);
	free(job);
}

/* @waits: until all is closed. */
static void end(struct closer_lane *l, bool waits)
{
	bool is_unused;

	if (!l)
		return;
	pthread_mutex_lock(&l->mutex);
	l->ended = true;
	pthread_cond_broadcast(&l->changed);
	while (waits && l->n)
		pthread_cond_wait(&l->changed, &l->mutex);
	l->abandoned = true;
	is_unused = !l->n;
	pthread_mutex_unlock(&l->mutex);
	if (is_unused)
		free_lane(l);
}

/* ---- which lane ---- */

/* Blocks of a file in memory; -1: it is another file, at which a look could block. Only memory has
 * seals. */
static blkcnt_t blocks_of(int fd)
{
	struct stat st;

	return fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) ? -1 : st.st_blocks;
}

/* A file of /proc is closed in no time: a program offers its memory by one. A look that does not
 * ask the file system cannot block. */
static bool is_of_proc(int fd)
{
	const int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
	struct statx file, proc;

	return !statx(fd, "", flags, STATX_INO, &file) &&
	       !statx(AT_FDCWD, "/proc/self/mem", AT_STATX_DONT_SYNC, STATX_INO, &proc) &&
	       file.stx_dev_major == proc.stx_dev_major && file.stx_dev_minor == proc.stx_dev_minor;
}

static void leave_to_memory(struct daemon_closer *c, int fd)
{
	if (!c->memory)
		c->memory = new_lane(1);
	leave_to(c->memory, fd);
}

static void leave_to_sockets(struct daemon_closer *c, int fd)
{
	if (!c->sockets) {
		c->sockets = new_lane(DAEMON_CLOSER_HELD);
		if (c->sockets)
			c->sockets->interrupts = true;
	}
	c->left++;
	leave_to(c->sockets, fd);
}

static void leave_to_others(struct daemon_closer *c, int fd)
{
	if (!c->others)
		c->others = new_lane(DAEMON_CLOSER_HELD);
	c->left++;
	leave_to(c->others, fd);
}

static bool is_socket(int fd)
{
	int type;
	socklen_t len = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len);
}

void daemon_closer_close(struct daemon_closer *c, int fd)
{
	const blkcnt_t blocks = blocks_of(fd);

	if (blocks < 0 && is_socket(fd))
		leave_to_sockets(c, fd);
	else if (blocks < 0 && !is_of_proc(fd))
		leave_to_others(c, fd);
	else if (blocks > LARGE_BLOCKS)
		leave_to_memory(c, fd);
	else
		close(fd);
}

/* Whether nothing lies in a connection that is shut down. With SO_PASSCRED each message has
 * something beside it, and the room for that is too small: so one without a byte shows, too. The
 * end of a stream looks like that as well, so a stream is left to a thread. */
static bool is_empty(int fd)
{
	const int on = 1;
	struct msghdr msg = { 0 };

	return !setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) &&
	       !recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT) && !(msg.msg_flags & MSG_CTRUNC);
}

void daemon_closer_close_end(struct daemon_closer *c, int fd)
{
	shutdown(fd, SHUT_RDWR);
	if (is_empty(fd))
		close(fd);
	else
		leave_to_sockets(c, fd);
}

static uint64_t waiting_in(struct closer_lane *l)
{
	uint64_t n;

	if (!l)
		return 0;
	pthread_mutex_lock(&l->mutex);
	n = l->n_waiting;
	pthread_mutex_unlock(&l->mutex);
	return n;
}

uint64_t daemon_closer_waiting(const struct daemon_closer *c)
{
	return waiting_in(c->sockets) + waiting_in(c->others);
}

void daemon_closer_fini(struct daemon_closer *c)
{
	end(c->memory, true);
	end(c->sockets, false);
	end(c->others, false);
	*c = (struct daemon_closer){ 0 };
}
