/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Timers: functions to be called at a time. The caller embeds a struct base_timer in what the
 * timer is about and sets it; base_timers_run() calls what is due, the earliest first, those of
 * one time in the order in which they were set. Setting and stopping allocate nothing and
 * cannot fail.
 *
 * The clock is passed in, and so is what has base_timers_run() called in time: tests stop the
 * clock. Not thread-safe.
 */
#ifndef BASE_TIMER_H
#define BASE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define BASE_TIMER_NEVER UINT64_MAX

struct base_timers;

/* All zero: not set. */
struct base_timer {
	uint64_t due_ns;
	void (*due)(struct base_timer *t);
	/* timer.c's */
	struct base_timers *timers; /* NULL: it is not set */
	struct base_timer *child, *next, **link;
	uint64_t serial;
};

struct base_clock {
	uint64_t (*now_ns)(void *arg); /* of a clock that does not jump */
	/* Asks to call base_timers_run() at @at_ns, the earliest time of all that is set. May be
	 * NULL. */
	void (*wake)(void *arg, uint64_t at_ns);
	void *arg;
};

struct base_timers {
	struct base_clock clock;
	struct base_timer *root; /* of a heap: a parent is due before its children */
	uint64_t asked_ns;       /* of clock.wake() last; BASE_TIMER_NEVER: not since a run */
	uint64_t serial;
};

void base_timers_init(struct base_timers *timers, const struct base_clock *clock);

/* The time. */
static inline uint64_t base_timers_now(const struct base_timers *timers)
{
	return timers->clock.now_ns(timers->clock.arg);
}

/* When something is due next; BASE_TIMER_NEVER: nothing is set. */
static inline uint64_t base_timers_next(const struct base_timers *timers)
{
	return timers->root ? timers->root->due_ns : BASE_TIMER_NEVER;
}

static inline bool base_timer_is_set(const struct base_timer *t)
{
	return t->timers;
}

/*
 * Has @due called once, at @at_ns, and not when @t was set to before. In @due the timer is not
 * set any more; @due may set and stop timers, this one too, and free what @t is a part of.
 */
void base_timer_set(struct base_timers *timers, struct base_timer *t, uint64_t at_ns,
                    void (*due)(struct base_timer *t));

/* The same, @ns from now. */
void base_timer_set_in(struct base_timers *timers, struct base_timer *t, uint64_t ns,
                       void (*due)(struct base_timer *t));

/*
 * The same, at the next multiple of @period ns: timers that are set so from time to time, of this
 * process and of others, wake the machine once for all of them.
 */
void base_timer_set_beat(struct base_timers *timers, struct base_timer *t, uint64_t period,
                         void (*due)(struct base_timer *t));

/* The same as base_timer_set(), but leaves a timer alone that is set to come no later. */
void base_timer_set_sooner(struct base_timers *timers, struct base_timer *t, uint64_t at_ns,
                           void (*due)(struct base_timer *t));

/* @t will not be called. It need not be set. */
void base_timer_stop(struct base_timer *t);

/* So long a run goes on at most: the next run calls the other timers that are due, as others have a
 * turn. */
#define BASE_TIMERS_TURN_NS 500000

/*
 * Calls the timers that are due now, for that long. A timer that is set meanwhile is not called
 * before the next run, even if it is due at once.
 */
void base_timers_run(struct base_timers *timers);

/* For a caller that has a loop of its own, in place of base_timers_run(): the timer that is due
 * first, which is not set any more; @due is not called, and may be NULL. NULL: none is due. */
struct base_timer *base_timers_take(struct base_timers *timers, uint64_t now_ns);

#endif
