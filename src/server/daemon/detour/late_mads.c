/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules about management datagrams: see late_mads.h.
 */
#include <stdlib.h>

#include "base/util.h"
#include "daemon/detour/late_mads.h"
#include "fabric/agents/mads.h"
#include "hca/process/weak.h"

/* MADs that are to be held beside so many are lost: 2 MB. */
#define MOST_HELD 4096
/* So many of a port are never late on a weak fabric: by them it learns of the IPoIB broadcast
 * group, and until then no program can join one. Those that begin with the fabric would all fail.
 */
#define FIRST 4

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

/* By rules of faults. */
static enum fabric_mad_fate judge_by_rules(struct daemon_late_mads *late, struct fabric_port *from,
                                           struct fabric_port *at, const struct fabric_mad *mad)
{
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

/* How late the MAD is on a weak fabric, ms. */
static uint8_t lateness(struct daemon_late_mads *late, const struct fabric_port *from,
                        const struct fabric_mad *mad)
{
	struct wire_mad head;
	uint32_t number;

	if (!late->weak || from->node->type != FABRIC_HCA)
		return 0;
	wire_mad_decode(mad->data, &head);
	if (head.mgmt_class != MAD_CLASS_COM_MGT && head.mgmt_class != MAD_CLASS_SUBN_ADM)
		return 0;
	number = late->sent[from->index]++;
	return number < FIRST
	               ? 0
	               : hca_weak_choose(late->weak, from->index, number, BASE_WEAK_STEP_answer);
}

/* A struct fabric_mad_gate's function. */
static enum fabric_mad_fate judge(void *arg, struct fabric_port *from, struct fabric_port *at,
                                  const struct fabric_mad *mad)
{
	struct daemon_late_mads *late = arg;
	uint8_t ms;

	if (late->rules->n_mads)
		return judge_by_rules(late, from, at, mad);
	ms = lateness(late, from, mad);
	return ms && hold(late, from, at, mad, 1000000ull * ms) ? FABRIC_MAD_HELD
	                                                        : FABRIC_MAD_DELIVERED;
}

static uint8_t choose(void *arg, uint32_t object, uint32_t request, enum base_weak_step step)
{
	return hca_weak_choose(arg, object, request, step);
}

void daemon_late_mads_init(struct daemon_late_mads *late)
{
	TAILQ_INIT(&late->held);
	late->weak = hca_weak_new(&late->f->settings, BASE_WEAK_DAEMON, 0);
	if (!late->weak)
		return;
	late->sent = calloc(late->f->region->control->n_ports, sizeof(*late->sent));
	if (!late->sent) {
		hca_weak_free(late->weak);
		late->weak = NULL;
		return;
	}
	late->f->weak = (struct fabric_weak){ choose, late->weak };
	daemon_late_mads_adapt(late);
}

void daemon_late_mads_adapt(struct daemon_late_mads *late)
{
	late->f->mads->gate =
	        (struct fabric_mad_gate){ .judge = late->rules->n_mads || late->weak ? judge : NULL,
		                          .arg = late };
}

void daemon_late_mads_stop(struct daemon_late_mads *late)
{
	struct daemon_late_mad *m;

	if (late->f && late->f->mads)
		late->f->mads->gate = (struct fabric_mad_gate){ 0 };
	while ((m = TAILQ_FIRST(&late->held)))
		drop(m);
	if (late->f)
		late->f->weak = (struct fabric_weak){ 0 };
	hca_weak_free(late->weak);
	free(late->sent);
	late->weak = NULL;
	late->sent = NULL;
}
