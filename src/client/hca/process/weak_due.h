/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When the thread of a weak fabric (weak.h) looks at an object whose requests wait: as soon as its
 * program has done nothing there for HCA_WEAK_SILENT_NS. If a look is in vain, as requests wait for
 * a receive or a way, the next one is later, twice as late each time. The thread looks only at
 * objects that are due.
 *
 * Pure functions of the time. The caller has a lock for hca_weak_due_add() to hca_weak_due_drop().
 */
#ifndef HCA_PROCESS_WEAK_DUE_H
#define HCA_PROCESS_WEAK_DUE_H

#include <stdatomic.h>

#include "base/timer.h"

/* The thread serves a program that has called nothing for so long. */
#define HCA_WEAK_SILENT_NS 2000000
/* It waits 2^7 times as long at most: a quarter of a second. */
#define HCA_WEAK_VAIN_MOST 7

/* All zero: nothing of it waits. */
struct hca_weak_wait {
	struct base_timer timer;
	_Atomic uint64_t moved_ns; /* when anything happened there last */
	uint8_t vain;              /* looks since then */
};

/* Something happens: a request was posted, or a step of one was taken. From any thread. */
static inline void hca_weak_due_moved(struct hca_weak_wait *w, uint64_t now_ns)
{
	atomic_store_explicit(&w->moved_ns, now_ns, memory_order_relaxed);
}

/* Something of it waits. If it did before, it may be due sooner now. */
void hca_weak_due_add(struct base_timers *all, struct hca_weak_wait *w, uint64_t now_ns);

/* Takes out the object that is due first, for the thread to look at. NULL: none is due. */
struct hca_weak_wait *hca_weak_due_take(struct base_timers *all, uint64_t now_ns);

/* Nothing of it waits, or somebody else looks. */
void hca_weak_due_drop(struct hca_weak_wait *w);

#endif
