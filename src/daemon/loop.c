/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The event loop and its timers: see loop.h.
 */
#include <time.h>

#include "base/util.h"
#include "daemon/loop.h"

static uint64_t now_ns(void *arg)
{
	(void)arg;
	return base_now_ns();
}

static int on_due(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon_loop *loop = arg;

	(void)s;
	(void)usec;
	base_timers_run(&loop->timers);
	return 0;
}

/* Sets the event source to the time of the earliest timer. What is due needs no timer of the
 * kernel's: it has its turn after the next event source. */
static void wake(void *arg, uint64_t at_ns)
{
	struct daemon_loop *loop = arg;

	if (at_ns <= base_now_ns()) {
		loop->due_now = true;
		return;
	}
	sd_event_source_set_time(loop->due, at_ns / 1000 + 1);
	sd_event_source_set_enabled(loop->due, SD_EVENT_ONESHOT);
}

int daemon_loop_init(struct daemon_loop *loop)
{
	const struct base_clock clock = { .now_ns = now_ns, .wake = wake, .arg = loop };
	int ret = sd_event_default(&loop->events);

	base_timers_init(&loop->timers, &clock);
	if (ret >= 0)
		ret = sd_event_add_time(loop->events, &loop->due, CLOCK_MONOTONIC, 0, 1, on_due,
		                        loop);
	if (ret >= 0)
		ret = sd_event_source_set_enabled(loop->due, SD_EVENT_OFF);
	return ret < 0 ? ret : 0;
}

int daemon_loop_turn(struct daemon_loop *loop)
{
	bool due = loop->due_now;
	int ret = sd_event_run(loop->events, due ? 0 : UINT64_MAX);

	if (!due || ret < 0)
		return ret;
	loop->due_now = false;
	base_timers_run(&loop->timers);
	return 1;
}

int daemon_loop_run(struct daemon_loop *loop, void (*turn_done)(void *arg), void *arg)
{
	int ret = 0, code = 0;

	while (ret >= 0 && sd_event_get_state(loop->events) != SD_EVENT_FINISHED) {
		ret = daemon_loop_turn(loop);
		turn_done(arg);
	}
	if (ret >= 0)
		ret = sd_event_get_exit_code(loop->events, &code);
	return ret < 0 ? ret : code;
}

void daemon_loop_fini(struct daemon_loop *loop)
{
	loop->due = sd_event_source_disable_unref(loop->due);
	loop->events = sd_event_unref(loop->events);
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
