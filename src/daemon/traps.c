/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time of the agents' traps (fabric/traps.h): those that nobody has answered go out again
 * from a timer of the loop.
 */
#include "base/util.h"
#include "daemon/state.h"
#include "fabric/traps.h"

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;

	(void)s;
	(void)usec;
	fabric_traps_run(d->f, base_now_ns());
	return 0;
}

static uint64_t now_ns(void *arg)
{
	(void)arg;
	return base_now_ns();
}

/* Arms the timer, unless it comes sooner already. */
static void wake(void *arg, uint64_t at_ns)
{
	struct daemon *d = arg;
	uint64_t at = at_ns / 1000 + 1, old;
	int enabled = SD_EVENT_OFF;

	sd_event_source_get_enabled(d->trap_timer, &enabled);
	if (enabled != SD_EVENT_OFF && sd_event_source_get_time(d->trap_timer, &old) >= 0 &&
	    old <= at)
		return;
	sd_event_source_set_time(d->trap_timer, at);
	sd_event_source_set_enabled(d->trap_timer, SD_EVENT_ONESHOT);
}

int daemon_traps_init(struct daemon *d)
{
	int ret = sd_event_add_time(d->loop, &d->trap_timer, CLOCK_MONOTONIC, 0, 1, on_timer, d);

	if (ret >= 0)
		ret = sd_event_source_set_enabled(d->trap_timer, SD_EVENT_OFF);
	if (ret < 0)
		return ret;
	d->f->mads->clock = (struct fabric_clock){ .now_ns = now_ns, .wake = wake, .arg = d };
	return 0;
}

void daemon_traps_fini(struct daemon *d)
{
	if (d->f)
		d->f->mads->clock = (struct fabric_clock){ 0 };
	d->trap_timer = sd_event_source_disable_unref(d->trap_timer);
}
