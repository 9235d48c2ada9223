/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The queue of MADs: see mads.h.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/subnet/mads.h"
#include "fabric/model/flow_state.h"

/* The most that is sent before others have their turn: so many MADs, for so long, with so much work
 * of trees and flows (fabric_flows.work) that follow them. */
#define AT_ONCE   1024
#define TURN_NS   (2 * DAEMON_NS_PER_MS)
#define MOST_WORK 4096

struct daemon_mad {
	STAILQ_ENTRY(daemon_mad) entry;
	struct fabric_port *from;
	struct fabric_mad mad;
};

void daemon_mads_init(struct daemon_mads *mads, struct fabric *f, struct daemon_loop *loop)
{
	mads->f = f;
	mads->loop = loop;
	STAILQ_INIT(&mads->queue);
}

void daemon_mads_fini(struct daemon_mads *mads)
{
	struct daemon_mad *m;

	while ((m = STAILQ_FIRST(&mads->queue))) {
		STAILQ_REMOVE_HEAD(&mads->queue, entry);
		free(m);
	}
	if (mads->loop)
		base_timer_stop(&mads->more);
}

void daemon_mads_queue(struct daemon_mads *mads, struct fabric_port *from,
                       const struct fabric_mad *mad)
{
	struct daemon_mad *m = malloc(sizeof(*m));

	if (!m) {
		mads->f->mads->stats.no_memory++;
		base_log_warning(umad, "out of memory: a MAD is lost");
		return;
	}
	m->from = from;
	m->mad = *mad;
	STAILQ_INSERT_TAIL(&mads->queue, m, entry);
}

static void on_more(struct base_timer *t)
{
	daemon_mads_send(container_of(t, struct daemon_mads, more));
}

/* By a timer: a deferred event source of sd-event, enabled again, comes before all others again. */
void daemon_mads_send_soon(struct daemon_mads *mads)
{
	if (mads->sending || STAILQ_EMPTY(&mads->queue))
		return; /* the call that sends will see to it */
	base_timer_set_in(&mads->loop->timers, &mads->more, 0, on_more);
}

void daemon_mads_send(struct daemon_mads *mads)
{
	const uint64_t most = mads->f->flows->work + MOST_WORK;
	const uint64_t until = base_now_ns() + TURN_NS;
	struct daemon_mad *m;

	if (mads->sending)
		return; /* that call will see to it */
	mads->sending = true;
	for (int n = 0;
	     n < AT_ONCE && mads->f->flows->work < most && (m = STAILQ_FIRST(&mads->queue)); n++) {
		STAILQ_REMOVE_HEAD(&mads->queue, entry);
		fabric_mad_send(mads->f, m->from, &m->mad);
		free(m);
		if (base_now_ns() >= until)
			break;
	}
	mads->sending = false;
	daemon_mads_send_soon(mads);
}
