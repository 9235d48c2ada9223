/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that nobody has: see unowned.h.
 */
#include "base/util.h"
#include "daemon/clients/pages.h"
#include "daemon/clients/unowned.h"

#define LATER_NS 1000000000ull

void daemon_unowned_init(struct daemon_unowned *u, const struct shm_region *region,
                         struct daemon_chores *chores, struct shm_extents *rings,
                         struct shm_extents *payloads)
{
	u->region = region;
	u->chores = chores;
	u->kind[0] = rings;
	u->kind[1] = payloads;
}

/* Frees pages of a free range that ends at @end. True: none are left. */
static bool clear(struct daemon_unowned *u, uint64_t end, uint32_t *budget)
{
	while (u->at < end) {
		if (u->next < u->at) {
			if (!daemon_chore_spend(budget, DAEMON_PAGES_SEEK))
				return false;
			u->next = daemon_pages_next(u->region, u->at);
		}
		if (u->next >= end)
			break;
		if (!*budget)
			return false;
		u->at = u->next + daemon_pages_free(u->region, u->next, end - u->next, budget);
		u->next = 0;
	}
	u->at = end;
	return true;
}

/* True: it has gone through all of this kind. */
static bool look_at(struct daemon_unowned *u, struct shm_extents *e, uint32_t *budget)
{
	struct shm_extent_range_at range;

	while (shm_extent_walk(e, &range)) {
		if (!daemon_chore_spend(budget, 1))
			return false;
		if (u->at < range.from)
			u->at = range.from;
		if (range.free && !clear(u, range.to, budget))
			return false;
		shm_extent_walk_on(e);
	}
	return true;
}

static void begin(struct daemon_unowned *u)
{
	u->at = u->next = 0;
	if (u->now < ARRAY_SIZE(u->kind))
		shm_extent_walk_begin(u->kind[u->now]);
}

static bool look(struct daemon_chore *c, uint32_t *budget)
{
	struct daemon_unowned *u = container_of(c, struct daemon_unowned, look);

	while (u->now < ARRAY_SIZE(u->kind)) {
		if (!look_at(u, u->kind[u->now], budget))
			return false;
		u->now++;
		begin(u);
	}
	return true;
}

static void on_time(struct base_timer *t)
{
	struct daemon_unowned *u = container_of(t, struct daemon_unowned, timer);

	if (u->look.waits) { /* the last look is not over */
		daemon_unowned_look(u);
		return;
	}
	u->now = 0;
	begin(u);
	daemon_chore_add(u->chores, &u->look, look);
}

void daemon_unowned_look(struct daemon_unowned *u)
{
	if (!base_timer_is_set(&u->timer))
		base_timer_set_in(u->chores->timers, &u->timer, LATER_NS, on_time);
}
