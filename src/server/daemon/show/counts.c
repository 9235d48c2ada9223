/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns for what collects the counters of ports: see counts.h.
 */
#include "base/util.h"
#include "daemon/show/counts.h"
#include "fabric/forwarding/collect.h"
#include "fabric/model/flow_state.h"

static void on_turn(struct base_timer *t)
{
	fabric_collect_run(container_of(t, struct daemon_counts, turn)->f);
}

static void wake(void *arg)
{
	struct daemon_counts *counts = arg;

	base_timer_set_in(&counts->loop->timers, &counts->turn, 0, on_turn);
}

void daemon_counts_init(struct daemon_counts *counts, struct fabric *f, struct daemon_loop *loop)
{
	counts->f = f;
	counts->loop = loop;
	f->flows->collect.wake = wake;
	f->flows->collect.arg = counts;
}
