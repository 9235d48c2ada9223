/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work in slices: see chores.h.
 */
#include "base/util.h"
#include "daemon/core/chores.h"

void daemon_chores_init(struct daemon_chores *all, struct base_timers *timers)
{
	*all = (struct daemon_chores){ .timers = timers };
	TAILQ_INIT(&all->waiting);
}

void daemon_chores_fini(struct daemon_chores *all)
{
	while (daemon_chores_wait(all))
		daemon_chores_slice(all);
	base_timer_stop(&all->turn);
}

static void on_turn(struct base_timer *t)
{
	daemon_chores_slice(container_of(t, struct daemon_chores, turn));
}

void daemon_chores_slice(struct daemon_chores *all)
{
	uint32_t budget = DAEMON_SLICE;
	struct daemon_chore *c;

	while ((c = TAILQ_FIRST(&all->waiting)) && daemon_chore_spend(&budget, 1)) {
		/* it may add itself again, and may be freed when it is done */
		TAILQ_REMOVE(&all->waiting, c, entry);
		c->waits = false;
		if (c->work(c, &budget))
			continue;
		TAILQ_INSERT_HEAD(&all->waiting, c, entry);
		c->waits = true;
	}
	if (c)
		base_timer_set_in(all->timers, &all->turn, 0, on_turn);
	else
		base_timer_stop(&all->turn);
}

void daemon_chore_add(struct daemon_chores *all, struct daemon_chore *c,
                      bool (*work)(struct daemon_chore *c, uint32_t *budget))
{
	if (c->waits)
		return;
	c->work = work;
	c->waits = true;
	TAILQ_INSERT_TAIL(&all->waiting, c, entry);
	base_timer_set_in(all->timers, &all->turn, 0, on_turn);
}
