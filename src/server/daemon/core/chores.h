/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chores: work of the daemon that may take long, such as cleaning up after a process that held
 * thousands of objects. They are done in slices of less than a millisecond, one each time that the
 * event loop comes round, so that clients are served in between. Chores are done one after the
 * other, in the order in which they were added.
 *
 * Work is counted, not timed: a unit is what takes a tenth of a microsecond, about a cache line
 * that is read from memory.
 */
#ifndef DAEMON_CHORES_H
#define DAEMON_CHORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/timer.h"

#define DAEMON_SLICE 4096 /* units of work */

/* Part of what the work is about. All zero: it does not wait. */
struct daemon_chore {
	TAILQ_ENTRY(daemon_chore) entry;
	/* Works until it is done, or until *@budget is 0. True: it is done, and may be freed. */
	bool (*work)(struct daemon_chore *c, uint32_t *budget);
	bool waits;
};

struct daemon_chores {
	struct base_timers *timers;
	struct base_timer turn;
	TAILQ_HEAD(, daemon_chore) waiting;
};

void daemon_chores_init(struct daemon_chores *all, struct base_timers *timers);

/* Does all that waits. */
void daemon_chores_fini(struct daemon_chores *all);

/* Has @work called, from the next slice on; leaves a chore alone that waits already. */
void daemon_chore_add(struct daemon_chores *all, struct daemon_chore *c,
                      bool (*work)(struct daemon_chore *c, uint32_t *budget));

/* Does a slice now, once in a request: so a small chore is done when the client has its reply. */
void daemon_chores_slice(struct daemon_chores *all);

static inline bool daemon_chores_wait(const struct daemon_chores *all)
{
	return !TAILQ_EMPTY(&all->waiting);
}

/* Spends @units. False: the budget was used up before. */
static inline bool daemon_chore_spend(uint32_t *budget, uint32_t units)
{
	if (!*budget)
		return false;
	*budget -= units < *budget ? units : *budget;
	return true;
}

#endif
