/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's event loop: sd-event, and beside it one list of timers (base/timer.h) on the
 * monotonic clock. One event source has the list run when the earliest timer is due.
 */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H

#include <systemd/sd-event.h>

#include "base/timer.h"

#define DAEMON_NS_PER_MS 1000000ull

struct daemon_loop {
	sd_event *events;
	struct base_timers timers;
	sd_event_source *due; /* when the earliest timer is */
	bool due_now;         /* that time has come */
};

/* 0 or -errno. */
int daemon_loop_init(struct daemon_loop *loop);
void daemon_loop_fini(struct daemon_loop *loop);

/* Waits for an event, and does what has to be done: one event source has its turn, and what is due.
 * As sd_event_run(), which knows nothing of timers that are due at once. */
int daemon_loop_turn(struct daemon_loop *loop);

/*
 * Runs until sd_event_exit(): its code, or -errno. After whatever the loop has done, and before
 * anybody else has a turn, @turn_done is called. (A source of sd-event for that would be a turn of
 * its own, with system calls.)
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
