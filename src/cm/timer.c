/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is to happen later. Few timers are set at a time, and most are stopped before their time:
 * a list will do.
 */
#include <limits.h>

#include "cm/state.h"

static void wake_in(struct cm *cm, uint64_t ms)
{
	cm->ops.wake(cm->ops.arg, ms < UINT_MAX ? (unsigned)ms : UINT_MAX);
}

void cm_timer_set(struct cm *cm, struct cm_timer *t, uint64_t ms, void (*due)(struct cm_timer *t))
{
	cm_timer_stop(t);
	t->due = due;
	t->due_ms = cm->ops.now_ms(cm->ops.arg) + ms;
	t->is_set = true;
	LIST_INSERT_HEAD(&cm->timers, t, entry);
	wake_in(cm, ms);
}

void cm_timer_stop(struct cm_timer *t)
{
	if (!t->is_set)
		return;
	t->is_set = false;
	LIST_REMOVE(t, entry);
}

void cm_run_due(struct cm *cm, uint64_t now_ms)
{
	LIST_HEAD(, cm_timer) due = LIST_HEAD_INITIALIZER(due);
	uint64_t next = UINT64_MAX;
	struct cm_timer *t, *after;

	/* what one of them does may stop or set any other */
	for (t = LIST_FIRST(&cm->timers); t; t = after) {
		after = LIST_NEXT(t, entry);
		if (t->due_ms <= now_ms) {
			LIST_REMOVE(t, entry);
			LIST_INSERT_HEAD(&due, t, entry); /* the oldest comes to be first */
		} else if (t->due_ms < next) {
			next = t->due_ms;
		}
	}
	while ((t = LIST_FIRST(&due))) {
		cm_timer_stop(t);
		t->due(t);
	}
	if (next != UINT64_MAX)
		wake_in(cm, next - now_ms);
}
