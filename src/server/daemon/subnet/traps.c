/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time of traps and of samples: see traps.h.
 */
#include "base/util.h"
#include "daemon/subnet/traps.h"
#include "fabric/agents/pma_samples.h"
#include "fabric/agents/traps.h"

static void on_again(struct base_timer *t)
{
	struct daemon_traps *traps = container_of(t, struct daemon_traps, again);

	const uint64_t now = base_timers_now(&traps->loop->timers);
	uint64_t sample;

	fabric_traps_run(traps->f, now);
	sample = fabric_pma_samples_run(traps->f, now);
	if (sample != UINT64_MAX)
		base_timer_set_sooner(&traps->loop->timers, &traps->again, sample, on_again);
}

static uint64_t now_ns(void *arg)
{
	struct daemon_traps *traps = arg;

	return base_timers_now(&traps->loop->timers);
}

static void wake(void *arg, uint64_t at_ns)
{
	struct daemon_traps *traps = arg;

	base_timer_set_sooner(&traps->loop->timers, &traps->again, at_ns, on_again);
}

void daemon_traps_init(struct daemon_traps *traps, struct fabric *f, struct daemon_loop *loop)
{
	traps->f = f;
	traps->loop = loop;
	f->mads->clock = (struct fabric_clock){ .now_ns = now_ns, .wake = wake, .arg = traps };
}
