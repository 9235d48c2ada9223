/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When the thread of a weak fabric looks: see weak_due.h.
 */
#include "base/util.h"
#include "hca/process/weak_due.h"

static uint64_t silent_until(const struct hca_weak_wait *w)
{
	return atomic_load_explicit(&w->moved_ns, memory_order_relaxed) + HCA_WEAK_SILENT_NS;
}

void hca_weak_due_add(struct base_timers *all, struct hca_weak_wait *w, uint64_t now_ns)
{
	uint64_t at = silent_until(w);

	if (at > now_ns)
		w->vain = 0;
	else
		at = now_ns + ((uint64_t)HCA_WEAK_SILENT_NS << w->vain);
	base_timer_set_sooner(all, &w->timer, at, NULL);
}

struct hca_weak_wait *hca_weak_due_take(struct base_timers *all, uint64_t now_ns)
{
	struct base_timer *t;
	struct hca_weak_wait *w;

	while ((t = base_timers_take(all, now_ns))) {
		w = container_of(t, struct hca_weak_wait, timer);
		if (silent_until(w) <= now_ns) {
			w->vain += w->vain < HCA_WEAK_VAIN_MOST;
			return w;
		}
		hca_weak_due_add(all, w, now_ns); /* its program is at work */
	}
	return NULL;
}

void hca_weak_due_drop(struct hca_weak_wait *w)
{
	base_timer_stop(&w->timer);
}
