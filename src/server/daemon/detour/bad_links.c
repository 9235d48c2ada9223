/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links that rules make bad: see bad_links.h.
 */
#include "base/util.h"
#include "daemon/detour/bad_links.h"
#include "fabric/agents/link.h"

/* ---- one rule ---- */

/* When it is to do something again, after what was due now. */
static uint64_t next_time(const struct daemon_rule *r, uint64_t now_ns)
{
	uint64_t due_ns = r->due_ns + r->every_ns;

	if (!r->every_ns || (r->count && r->fired >= r->count))
		return BASE_TIMER_NEVER;
	if (due_ns <=
	    now_ns) /* the daemon was busy, or stopped: missed changes are not caught up */
		due_ns = now_ns + r->every_ns;
	return r->until_ns && due_ns >= r->added_ns + r->until_ns ? BASE_TIMER_NEVER : due_ns;
}

/* Its time has come. Nothing can happen to a link that is down but that it comes up otherwise. */
static void come(const struct daemon_rules *rules, struct daemon_rule *r, uint64_t now_ns)
{
	const bool lasts = r->fault & (DAEMON_FAULT_WIDTH | DAEMON_FAULT_SPEED);

	if ((lasts || r->link->state != IB_PORT_DOWN) && daemon_rule_fires(rules, r)) {
		r->link->stats.symbol_errors += r->errors;
		r->link->stats.link_recovered += r->recoveries;
		r->link->peer->stats.link_recovered += r->recoveries; /* both train again */
		r->holds = !r->errors && !r->recoveries;
		r->ends_ns = !lasts        ? now_ns + r->down_ns
		             : r->until_ns ? r->added_ns + r->until_ns
		                           : BASE_TIMER_NEVER;
	}
	r->due_ns = next_time(r, now_ns);
}

/* Whether it now holds and has not before, or the other way round. */
static bool advance(const struct daemon_rules *rules, struct daemon_rule *r, uint64_t now_ns)
{
	const bool held = r->holds;

	if (r->holds && now_ns >= r->ends_ns)
		r->holds = false;
	if (now_ns >= r->due_ns)
		come(rules, r, now_ns);
	return r->holds != held;
}

/* ---- links ---- */

/* All that is wrong with the link by rules that hold. */
static struct fabric_link_fault fault_of(const struct daemon_bad_links *b,
                                         const struct fabric_port *p)
{
	struct fabric_link_fault all = { .widths = UINT8_MAX, .speeds = UINT8_MAX };
	const struct daemon_rule *r;

	TAILQ_FOREACH(r, &b->rules->all, entry)
	{
		if (!r->holds || (r->link != p && r->link != p->peer))
			continue;
		all.down |= r->fault == DAEMON_FAULT_FLAP;
		all.widths &= r->fault == DAEMON_FAULT_WIDTH ? r->up_to : UINT8_MAX;
		all.speeds &= r->fault == DAEMON_FAULT_SPEED ? r->up_to : UINT8_MAX;
	}
	return all;
}

/* Makes the link what the rules say, and tells whose ports it joins. True: it has gone down, or
 * come up, or both. */
static bool apply(struct daemon_bad_links *b, struct fabric_port *p)
{
	const struct fabric_link_fault fault = fault_of(b, p);

	if (!fabric_link_set_fault(b->f, p, &fault))
		return false;
	daemon_port_changed(b->subnet->ports, p, FABRIC_PORT_STATE);
	daemon_port_changed(b->subnet->ports, p->peer, FABRIC_PORT_STATE);
	return true;
}

/* ---- all rules ---- */

static void on_time(struct base_timer *t)
{
	daemon_bad_links_run(container_of(t, struct daemon_bad_links, timer));
}

static bool follow(struct daemon_bad_links *b, bool changed)
{
	if (changed)
		daemon_subnet_sweep(b->subnet);
	return changed;
}

bool daemon_bad_links_run(struct daemon_bad_links *b)
{
	uint64_t now_ns = base_now_ns(), next_ns = BASE_TIMER_NEVER;
	bool changed = false;
	struct daemon_rule *r;

	TAILQ_FOREACH(r, &b->rules->all, entry)
	{
		if (!daemon_rule_is_about_link(r))
			continue;
		if (advance(b->rules, r, now_ns))
			changed |= apply(b, r->link);
		if (r->due_ns < next_ns)
			next_ns = r->due_ns;
		if (r->holds && r->ends_ns < next_ns)
			next_ns = r->ends_ns;
	}
	if (next_ns == BASE_TIMER_NEVER)
		base_timer_stop(&b->timer);
	else
		base_timer_set(&b->loop->timers, &b->timer, next_ns, on_time);
	return follow(b, changed);
}

bool daemon_bad_links_end(struct daemon_bad_links *b, unsigned number)
{
	bool changed = false;
	struct daemon_rule *r;

	TAILQ_FOREACH(r, &b->rules->all, entry)
	{
		if (!daemon_rule_is_about_link(r) || (number && r->number != number))
			continue;
		r->due_ns = BASE_TIMER_NEVER;
		if (!r->holds)
			continue;
		r->holds = false;
		changed |= apply(b, r->link);
	}
	return follow(b, changed);
}

void daemon_bad_links_stop(struct daemon_bad_links *b)
{
	base_timer_stop(&b->timer);
}
