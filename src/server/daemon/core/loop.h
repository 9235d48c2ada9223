/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's event loop: descriptors that it watches, and one list of timers (base/timer.h) on
 * the monotonic clock.
 *
 * The kernel is asked for descriptors that are ready once all that were ready have had their turn,
 * so what a turn costs does not depend on how many are ready. Some can be patient: all others have
 * their turn first, but for one patient turn in eight. Clients that have ended are: ten thousand
 * may end at once, and no live client waits for their clean-up.
 */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>

#include "base/timer.h"
#include "daemon/core/closer.h"
#include "daemon/core/priority.h"

#define DAEMON_NS_PER_MS 1000000ull

struct daemon_loop;

/* A descriptor that is watched. Part of what it is about; all zero: it is not watched. */
struct daemon_source {
	/* It is ready. May stop the source, and free what it is a part of. */
	void (*ready)(struct daemon_source *s, uint32_t events);
	uint32_t
	        patient; /* with one of these events others have their turn first; set beforehand */
	int fd;
	/* the loop's */
	struct daemon_loop *loop; /* NULL: it is not watched */
	uint32_t events;          /* that have come; 0: it is in no queue */
	bool apart;               /* the kernel does not watch it any more: it is patient */
	TAILQ_ENTRY(daemon_source) entry;
};
TAILQ_HEAD(daemon_sources, daemon_source);

struct daemon_loop {
	struct base_timers timers;
	int epoll_fd;
	struct daemon_sources ready, patient; /* those whose turn comes */
	struct daemon_source *now;            /* whose turn it is, until it is stopped */
	unsigned turns;                       /* of those that are not patient, in a row */
	struct daemon_source due;             /* a timer of the kernel's: the earliest time */
	bool due_now;                         /* that time has come */
	bool ended;
	int code; /* if it has */
	struct daemon_closer closer;
	struct daemon_priority priority; /* while it runs */
	uint64_t *ends; /* a bit for each descriptor: it is an end of a connection with a client */
	size_t n_ends;  /* words */
};

/* 0 or -errno. */
int daemon_loop_init(struct daemon_loop *loop);
void daemon_loop_fini(struct daemon_loop *loop);

/* Has s->ready() called when @fd has one of @events (of epoll_ctl(2)), or an error, or is hung up.
 * 0 or -errno. */
int daemon_source_watch(struct daemon_loop *loop, struct daemon_source *s, int fd, uint32_t events);

/* Other events from now on. It is watched. */
void daemon_source_change(struct daemon_source *s, uint32_t events);

/* It will not be called. It need not be watched. The descriptor stays open: it is closed after. */
void daemon_source_stop(struct daemon_source *s);

static inline bool daemon_source_is_watched(const struct daemon_source *s)
{
	return s->loop;
}

/* Closes a descriptor that a client has sent: it takes no longer if close(2) does. */
static inline void daemon_loop_close(struct daemon_loop *loop, int fd)
{
	daemon_closer_close(&loop->closer, fd);
}

/* @fd is our end of a connection with a client, until daemon_loop_close_end(). */
void daemon_loop_note_end(struct daemon_loop *loop, int fd);

/* Closes such an end likewise. */
void daemon_loop_close_end(struct daemon_loop *loop, int fd);

/* The daemon ends: shuts down all such ends. Their clients would not see the end of a process of
 * which a thread is held (closer.h), as that keeps its descriptors open. */
void daemon_loop_hang_up(struct daemon_loop *loop);

/* Ends daemon_loop_run() after this turn. */
void daemon_loop_end(struct daemon_loop *loop, int code);

/* Waits for an event, and serves it: one source has its turn, and the timers that are due. 0 or
 * -errno. */
int daemon_loop_turn(struct daemon_loop *loop);

/*
 * Runs until daemon_loop_end(): its code, or -errno. After whatever the loop has done, and before
 * anybody else has a turn, @turn_done is called.
 */
int daemon_loop_run(struct daemon_loop *loop, void (*turn_done)(void *arg), void *arg);

/* Milliseconds of the timers' clock. */
uint64_t daemon_loop_now_ms(const struct daemon_loop *loop);

/*
 * Has @due called after @ms milliseconds, unless @t is set to come sooner already: for modules
 * that ask to be called and find out themselves what is due by a clock of milliseconds.
 */
void daemon_loop_wake_in(struct daemon_loop *loop, struct base_timer *t, unsigned ms,
                         void (*due)(struct base_timer *t));

#endif
