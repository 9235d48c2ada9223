/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The event loop and its timers: see loop.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "daemon/core/loop.h"

#define BATCH   64   /* events that are taken from the kernel by one call, */
#define MOST    4096 /* and before somebody has a turn */
#define PATIENT 8    /* one of so many turns is a patient source's */

/* ---- sources ---- */

int daemon_source_watch(struct daemon_loop *loop, struct daemon_source *s, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = s };

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &e))
		return -errno;
	s->loop = loop;
	s->fd = fd;
	s->events = 0;
	s->apart = false;
	return 0;
}

void daemon_source_change(struct daemon_source *s, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = s };

	if (!s->apart)
		epoll_ctl(s->loop->epoll_fd, EPOLL_CTL_MOD, s->fd, &e);
}

static struct daemon_sources *queue_of(struct daemon_source *s)
{
	return s->apart ? &s->loop->patient : &s->loop->ready;
}

/* Its turn comes; or that is over. */
static void put(struct daemon_source *s, uint32_t events)
{
	s->events = events;
	TAILQ_INSERT_TAIL(queue_of(s), s, entry);
}

static uint32_t take(struct daemon_source *s)
{
	uint32_t events = s->events;

	TAILQ_REMOVE(queue_of(s), s, entry);
	s->events = 0;
	return events;
}

void daemon_source_stop(struct daemon_source *s)
{
	struct daemon_loop *loop = s->loop;

	if (!loop)
		return;
	if (s->events)
		take(s);
	if (!s->apart)
		epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	if (loop->now == s)
		loop->now = NULL;
	s->loop = NULL;
}

/* False: it was known to be ready. */
static bool note(struct daemon_source *s, uint32_t events)
{
	if (s->events) {
		s->events |= events;
		return false;
	}
	if (events & s->patient) {
		/* or the kernel would tell of it again and again until it has its turn */
		epoll_ctl(s->loop->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
		s->apart = true;
	}
	put(s, events);
	return true;
}

/* Takes what is ready from the kernel: those behind the first batch may be less patient than those
 * ahead. 0 or -errno. */
static int collect(struct daemon_loop *loop, int timeout)
{
	struct epoll_event ready[BATCH];
	int n, all = 0;
	bool more;

	do {
		n = epoll_wait(loop->epoll_fd, ready, BATCH, timeout);
		if (n < 0)
			return errno == EINTR ? 0 : -errno;
		more = n == BATCH;
		/* the kernel tells of each once before it tells of the first one again */
		for (int i = 0; i < n; i++)
			more &= note(ready[i].data.ptr, ready[i].events);
		all += n;
		timeout = 0;
	} while (more && all < MOST);
	return 0;
}

static struct daemon_source *next(struct daemon_loop *loop)
{
	struct daemon_source *first = TAILQ_FIRST(&loop->ready);

	if (first && (++loop->turns % PATIENT || TAILQ_EMPTY(&loop->patient)))
		return first;
	loop->turns = 0;
	return TAILQ_FIRST(&loop->patient);
}

static void serve(struct daemon_loop *loop, struct daemon_source *s)
{
	uint32_t events = take(s);

	loop->now = s;
	s->ready(s, events);
	/* what it was patient about stays so: it has another turn, unless it was stopped */
	if (loop->now == s && s->apart && !s->events)
		put(s, events);
	loop->now = NULL;
}

/* ---- ends of connections ---- */

void daemon_loop_note_end(struct daemon_loop *loop, int fd)
{
	const size_t word = (size_t)fd / 64, n = 2 * word + 1;
	uint64_t *more;

	if (word >= loop->n_ends) {
		more = realloc(loop->ends, n * sizeof(*more));
		if (!more) /* its client may hear of the end later */
			return;
		memset(more + loop->n_ends, 0, (n - loop->n_ends) * sizeof(*more));
		loop->ends = more;
		loop->n_ends = n;
	}
	loop->ends[word] |= 1ull << fd % 64;
}

void daemon_loop_close_end(struct daemon_loop *loop, int fd)
{
	if ((size_t)fd / 64 < loop->n_ends)
		loop->ends[fd / 64] &= ~(1ull << fd % 64);
	daemon_closer_close_end(&loop->closer, fd);
}

void daemon_loop_hang_up(struct daemon_loop *loop)
{
	for (size_t fd = 0; fd < 64 * loop->n_ends; fd++)
		if (loop->ends[fd / 64] >> fd % 64 & 1)
			shutdown((int)fd, SHUT_RDWR);
}

/* ---- timers ---- */

static uint64_t now_ns(void *arg)
{
	(void)arg;
	return base_now_ns();
}

static void on_due(struct daemon_source *s, uint32_t events)
{
	struct daemon_loop *loop = container_of(s, struct daemon_loop, due);
	uint64_t times;

	(void)events;
	/* fails if it was set to another time meanwhile */
	if (read(s->fd, &times, sizeof(times)) == sizeof(times))
		base_timers_run(&loop->timers);
}

/* Sets the kernel's timer to the time of the earliest one. A timer that is due needs no timer of
 * the kernel's: it has its turn after the next source. */
static void wake(void *arg, uint64_t at_ns)
{
	struct daemon_loop *loop = arg;
	const struct itimerspec at = { .it_value = { .tv_sec = (time_t)(at_ns / 1000000000),
		                                     .tv_nsec = (long)(at_ns % 1000000000) } };

	if (at_ns <= base_now_ns())
		loop->due_now = true;
	else
		timerfd_settime(loop->due.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- all ---- */

int daemon_loop_init(struct daemon_loop *loop)
{
	const struct base_clock clock = { .now_ns = now_ns, .wake = wake, .arg = loop };
	int fd, ret;

	base_timers_init(&loop->timers, &clock);
	TAILQ_INIT(&loop->ready);
	TAILQ_INIT(&loop->patient);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return -errno;
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	loop->due.ready = on_due;
	ret = daemon_source_watch(loop, &loop->due, fd, EPOLLIN);
	if (ret)
		close(fd);
	return ret;
}

void daemon_loop_end(struct daemon_loop *loop, int code)
{
	loop->ended = true;
	loop->code = code;
}

int daemon_loop_turn(struct daemon_loop *loop)
{
	bool due = loop->due_now;
	struct daemon_source *s;
	int ret = 0;

	if (TAILQ_EMPTY(&loop->ready)) {
		ret = collect(loop, due || !TAILQ_EMPTY(&loop->patient) ? 0 : -1);
		daemon_priority_begin(&loop->priority);
	}
	if (ret)
		return ret;
	s = next(loop);
	if (s)
		serve(loop, s);
	if (due) {
		loop->due_now = false;
		base_timers_run(&loop->timers);
	}
	return 0;
}

int daemon_loop_run(struct daemon_loop *loop, void (*turn_done)(void *arg), void *arg)
{
	int ret = 0;

	daemon_priority_start(&loop->priority);
	while (!ret && !loop->ended) {
		ret = daemon_loop_turn(loop);
		turn_done(arg);
		daemon_priority_note(&loop->priority);
	}
	daemon_priority_stop(&loop->priority);
	return ret ? ret : loop->code;
}

void daemon_loop_fini(struct daemon_loop *loop)
{
	daemon_closer_fini(&loop->closer);
	free(loop->ends);
	loop->ends = NULL;
	loop->n_ends = 0;
	if (daemon_source_is_watched(&loop->due)) {
		daemon_source_stop(&loop->due);
		close(loop->due.fd);
	}
	if (loop->epoll_fd > 0)
		close(loop->epoll_fd);
}

uint64_t daemon_loop_now_ms(const struct daemon_loop *loop)
{
	return base_timers_now(&loop->timers) / DAEMON_NS_PER_MS;
}

void daemon_loop_wake_in(struct daemon_loop *loop, struct base_timer *t, unsigned ms,
                         void (*due)(struct base_timer *t))
{
	/* at the end of the millisecond: rounded down, the time has come then */
	uint64_t in_ns = (ms + 1) * DAEMON_NS_PER_MS - 1;

	base_timer_set_sooner(&loop->timers, t, base_timers_now(&loop->timers) + in_ns, due);
}
