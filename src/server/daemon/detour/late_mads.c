/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules about management datagrams: see late_mads.h.
 */
#include <stdlib.h>

#include "base/util.h"
#include "daemon/detour/late_mads.h"
#include "fabric/agents/mads.h"

/* MADs that are to be held beside so many are lost: 2 MB. */
#define MOST_HELD 4096

struct daemon_late_mad {
	TAILQ_ENTRY(daemon_late_mad) entry;
	struct base_timer timer;
	struct daemon_late_mads *all;
	struct fabric_port *from, *at; /* as fabric_mad_land() has them */
	struct fabric_mad mad;
};

static void drop(struct daemon_late_mad *m)
{
	base_timer_stop(&m->timer);
	TAILQ_REMOVE(&m->all->held, m, entry);
	m->all->n--;
	free(m);
}

static void on_time(struct base_timer *t)
{
	struct daemon_late_mad *m = container_of(t, struct daemon_late_mad, timer);
	struct fabric *f = m->all->f;
	struct fabric_port *from = m->from, *at = m->at;
	struct fabric_mad mad = m->mad;

	drop(m);
	fabric_mad_land(f, from, at, &mad);
}

/* False: there is no room, or no memory. */
static bool hold(struct daemon_late_mads *late, struct fabric_port *from, struct fabric_port *at,
                 const struct fabric_mad *mad, uint64_t ns)
{
	struct daemon_late_mad *m = late->n < MOST_HELD ? calloc(1, sizeof(*m)) : NULL;

	if (!m)
		return false;
	m->all = late;
	m->from = from;
	m->at = at;
	m->mad = *mad;
	TAILQ_INSERT_TAIL(&late->held, m, entry);
	late->n++;
	base_timer_set_in(&late->loop->timers, &m->timer, ns, on_time);
	return true;
}

/* A struct fabric_mad_gate's function. */
static enum fabric_mad_fate judge(void *arg, struct fabric_port *from, struct fabric_port *at,
                                  const struct fabric_mad *mad)
{
	struct daemon_late_mads *late = arg;
	const struct daemon_verdict v =
	        daemon_rules_judge_mad(late->rules, from, at, mad->data, base_now_ns());

	if (v.faults & DAEMON_FAULT_DROP)
		return FABRIC_MAD_FAULTY;
	if (v.faults & DAEMON_FAULT_DUPLICATE)
		hold(late, from, at, mad, v.delay_ns);
	if (!(v.faults & DAEMON_FAULT_DELAY))
		return FABRIC_MAD_DELIVERED;
	return hold(late, from, at, mad, v.delay_ns) ? FABRIC_MAD_HELD : FABRIC_MAD_FAULTY;
}

void daemon_late_mads_init(struct daemon_late_mads *late)
{
	TAILQ_INIT(&late->held);
}

void daemon_late_mads_adapt(struct daemon_late_mads *late)
{
	late->f->mads->gate = (struct fabric_mad_gate){ .judge = late->rules->n_mads ? judge : NULL,
		                                        .arg = late };
}

void daemon_late_mads_stop(struct daemon_late_mads *late)
{
	struct daemon_late_mad *m;

	if (late->f && late->f->mads)
		late->f->mads->gate = (struct fabric_mad_gate){ 0 };
	while ((m = TAILQ_FIRST(&late->held)))
		drop(m);
}
