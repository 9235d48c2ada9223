/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of a weak fabric's subnet: see weak_events.h.
 */
#include <stdio.h>

#include "base/util.h"
#include "daemon/core/loop.h"
#include "daemon/detour/weak_events.h"

/* So far moments are apart: a program that joins anew has time to. */
#define MOMENT_NS 500000000ull
/* One moment is of so many ports at most, as each has a turn: then a moment is short. */
#define MOST_PORTS 64

static bool is_chosen(const struct daemon_weak_events *e, uint32_t port, enum base_weak_step step)
{
	const struct fabric_weak *weak = &e->subnet->f->weak;

	return weak->choose(weak->arg, port, e->moment, step);
}

static void cause(struct daemon_weak_events *e, const struct fabric_port *p,
                  enum control_sm_event_type type)
{
	struct control_sm_event event = { .type = type, .at.port = p->num };

	snprintf(event.at.node, sizeof(event.at.node), "%s", p->node->name);
	daemon_subnet_cause(e->subnet, &event);
}

/* At most one event: it is to be told apart from others. */
static void meet(struct daemon_weak_events *e, const struct fabric_port *p)
{
	if (is_chosen(e, p->index, BASE_WEAK_STEP_reregister))
		cause(e, p, CONTROL_SM_CLIENT_REREGISTER);
	else if (is_chosen(e, p->index, BASE_WEAK_STEP_lid))
		cause(e, p, CONTROL_SM_LID_CHANGE);
}

static void on_moment(struct base_timer *t)
{
	struct daemon_weak_events *e = container_of(t, struct daemon_weak_events, timer);
	const struct fabric *f = e->subnet->f;
	const unsigned first = e->moment * MOST_PORTS;

	for (unsigned i = 0; i < f->n_ib_ports && i < MOST_PORTS; i++)
		meet(e, f->hca_port[(first + i) % f->n_ib_ports]);
	if (is_chosen(e, f->hca_port[0]->index, BASE_WEAK_STEP_sm)) /* once for all */
		cause(e, f->hca_port[0], CONTROL_SM_CHANGE);
	e->moment++;
	base_timer_set_in(&e->subnet->loop->timers, &e->timer, MOMENT_NS, on_moment);
}

void daemon_weak_events_init(struct daemon_weak_events *e)
{
	if (e->subnet->f->weak.choose && e->subnet->f->n_ib_ports)
		base_timer_set_in(&e->subnet->loop->timers, &e->timer, MOMENT_NS, on_moment);
}

void daemon_weak_events_stop(struct daemon_weak_events *e)
{
	base_timer_stop(&e->timer);
}
